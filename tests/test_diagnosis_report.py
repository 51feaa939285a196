"""The report: one page that asks for nothing, holds every number, and shows words from outside as words."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from bs4 import BeautifulSoup
from drawn import gauss

from attn_utils import causal_mask, diagnose, softmax
from attn_utils.diagnosis import THRESHOLDS, Finding
from attn_utils.diagnosis.depth import state_lines
from attn_utils.diagnosis.reports import write_report

EVIL = ['<script>document.title="owned"</script>', '"><img src=x onerror=alert(1)>', "</script><b>&amp;", "\u2028", "", "é"]


def model(n_layers=3, n_heads=4, T=6, sink=8.0, seed=0):
    """Causal weights with a sink, and states."""
    scores = 2 * gauss(n_layers, n_heads, T, T, seed=seed)
    scores[..., 0] += sink
    X = gauss(n_layers + 1, T, 16, seed=seed + 1)
    return softmax(np.where(causal_mask(T), scores, -np.inf)), list(X)


def diagnosed(pictures=24, tokens=None, **sizes):
    weights, states = model(**sizes)
    return diagnose(list(weights), states, axes="layers heads", tokens=tokens, pictures=pictures)


def page_of(found, **rest):
    return BeautifulSoup(found.report(**rest), "html.parser")


def data_of(page):
    return json.loads(page.find("script", id="data").string)


def test_the_page_asks_for_nothing_from_elsewhere():
    text = diagnosed().report()
    page = BeautifulSoup(text, "html.parser")
    assert not page.find_all(["link", "img", "iframe", "object", "source"]) and not page.find_all(src=True)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_findings_come_first_and_say_all_that_they_know():
    found = diagnosed()
    found.findings = [replace(found.findings[0], level="alarm", kind="collapse", text="All gone."), *found.findings]
    page = page_of(found, title="My model")
    assert page.h1.string == "My model" and page.title.string == "My model"
    assert page.main.find_all("section")[0].h2["id"] == "findings"
    cards = page.select(".card")
    assert len(cards) == len(found.findings) and "alarm" in cards[0]["class"] and "note" in cards[-1]["class"]
    for card, finding in zip(cards, found.findings, strict=True):
        words = card.get_text(" ")
        assert finding.text in words and finding.advice in words and finding.source in words
        assert f"{finding.threshold:.3g}" in words or f"{finding.threshold:,.0f}" in words
        assert card.a["href"] == finding.chapter
        assert bool(card.button) == bool(finding.heads)
    assert page.select_one(".verdict").get_text(" ").startswith("1 alarm")


def test_a_healthy_model_has_no_card():
    found = diagnose(softmax(gauss(2, 2, 8, 8)), axes="layers heads")
    page = page_of(found)
    assert not found.findings and not page.select(".card")
    assert "Nothing stands out" in page.get_text() and "no states" in page.select_one(".given").string


@pytest.mark.parametrize("where", ["tokens", "title", "finding", "note", "rows"])
def test_words_from_outside_are_only_words(where):
    """What a tokenizer, a file's name or a model says cannot become part of the page."""
    found = diagnosed(tokens=EVIL if where == "tokens" else None)
    title = "".join(EVIL) if where == "title" else None
    if where == "finding":
        found.findings = [Finding("sink", "alarm", *EVIL[:1], advice=EVIL[1], source=EVIL[2], chapter="javascript:alert(1)")]
    if where == "note":
        found.notes = list(EVIL)
    if where == "rows":
        found.layers[0]["heads"][0] |= {"rows": "sums", "rows_say": EVIL[0]}
        found.layers[0]["pattern"]["kind"] = EVIL[1]
    plain = BeautifulSoup(diagnosed().report(), "html.parser")
    page = page_of(found, title=title)
    kinds = [tag.name for tag in page.find_all(["script", "img", "b", "meta", "style"])]
    assert kinds.count("script") == 2 and "img" not in kinds
    assert kinds.count("b") <= len(plain.find_all("b"))
    assert not page.find_all(onerror=True) and not page.find_all("a", href=re.compile("^javascript"))
    if where == "tokens":
        assert data_of(page)["tokens"] == EVIL


def test_every_head_is_there_with_its_numbers():
    found = diagnosed()
    data = data_of(page_of(found))
    assert [len(heads) for heads in data["layers"]] == [4, 4, 4]
    for layer, heads in zip(found.layers, data["layers"], strict=True):
        for head, shown in zip(layer["heads"], heads, strict=True):
            for name in ("entropy", "survives", "survives_typically", "sink", "to_previous", "distance"):
                assert shown[name] == pytest.approx(head[name], abs=1e-4)
            assert shown["at"] == head["sink_at"]
            assert sum(weight for *_, weight in shown["profile"]) == pytest.approx(1, abs=1e-3)
    assert "to_next" not in data["measures"], "no causal head looks ahead"
    assert [one["heads"] for one in data["findings"]] == [finding.heads for finding in found.findings]
    assert {one["shows"] for one in data["findings"]} <= {None, *data["measures"]}


def test_a_pattern_is_stored_as_roots():
    found = diagnosed()
    rows, columns, largest, packed = data_of(page_of(found))["pictures"]["2,3"]
    levels = np.frombuffer(base64.b64decode(packed), np.uint8).reshape(rows, columns) / 255
    assert np.allclose(levels**2 * largest, found.pictures[2, 3], atol=0.01 * largest)


def test_without_pictures_there_is_no_choice_of_them():
    page = page_of(diagnosed(pictures=0))
    assert data_of(page)["pictures"] == {} and "pattern" not in data_of(page)["measures"]
    assert not page.find("input", value="pattern")


def test_a_number_that_rounding_made_is_only_tiny():
    found = diagnosed()
    found.findings = [replace(found.findings[0], number=7.57e-17, threshold=12000.0)]
    words = page_of(found).select_one(".card dl").get_text(" ")
    assert "below 0.0001" in words and "12,000" in words and "e-17" not in words


def test_numbers_that_are_not_known_are_left_out():
    found = diagnosed()
    found.layers[0]["heads"][0] |= {"entropy": np.nan, "sink": np.inf}
    shown = data_of(page_of(found))["layers"][0][0]
    assert "entropy" not in shown and "sink" not in shown
    assert "NaN" not in page_of(found).find("script", id="data").string


def test_a_batch_says_that_its_numbers_are_means():
    weights = np.stack([model(seed=seed)[0] for seed in (0, 1)], axis=1)  # (layers, batch, heads, T, T)
    found = diagnose(list(weights), pictures=6)
    page = page_of(found)
    assert "means over 2 sequences" in page.get_text() and "2 sequences" in page.select_one(".given").string
    low, high = data_of(page)["layers"][0][0]["range"]["entropy"]
    assert low < data_of(page)["layers"][0][0]["entropy"] < high


@pytest.mark.parametrize("left", [False, True])
def test_where_padding_is_left_out_the_axes_know_which_tokens_are_shown(left):
    """A cell's place is no token's place there: a picture without its tokens said nothing of where the weight goes."""
    real = np.arange(2, 8) if left else np.arange(6)
    weights = np.zeros((1, 2, 8, 8))
    weights[..., real[:, None], real] = softmax(gauss(2, 6, 6))
    mask = np.isin(np.arange(8), real).astype(int)
    found = diagnose(weights, axes="layers heads", mask=mask, tokens=list("abcdefgh"), pictures=8)
    data = data_of(page_of(found))
    assert found.pictures[1, 1].shape == (6, 6) and data["tokens"] == list("abcdefgh")
    assert data["real"] == [[(real + 1).tolist(), (real + 1).tolist()]]
    assert data_of(page_of(diagnosed()))["real"] == [None] * 3


def test_the_largest_grid_stays_light_enough_to_send():
    found = diagnosed(n_layers=32, n_heads=32, T=32)
    text = found.report()
    assert len(text.encode()) < 1_500_000
    assert len(data_of(BeautifulSoup(text, "html.parser"))["pictures"]) == 1024


def test_the_same_diagnosis_gives_the_same_bytes():
    assert diagnosed().report() == diagnosed().report()


def test_the_file_appears_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old one")
    found = diagnosed()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        found.report(path)
    assert path.read_text() == "the old one" and list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    assert found.report(path) == path.read_text("utf8") == write_report(found)


@pytest.mark.parametrize("title", ["", "  ", 3, b"model"])
def test_a_title_is_words(title):
    with pytest.raises(ValueError, match="title is .*expected a few words"):
        diagnosed().report(title=title)


def test_every_threshold_is_told():
    words = page_of(diagnosed()).select_one("section:has(#reading)").get_text(" ")
    for name, one in THRESHOLDS.items():
        assert name in words and one.reason in words and one.source in words


def test_ids_are_unique_and_labels_lead_to_them():
    page = page_of(diagnosed())
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert {tag["aria-labelledby"] for tag in page.find_all(attrs={"aria-labelledby": True})} <= set(ids)


@pytest.mark.parametrize("count", [2, 9, 40, 130])
def test_lines_over_depth_stay_inside(count):
    states = [{"rest": i / count, "spread": np.nan if i == 1 else 1.5, "cosine": -0.4} for i in range(count)]
    svg = BeautifulSoup(state_lines(states), "html.parser").find_all("svg")[-1]
    assert "nan" not in str(svg)
    heights = [float(y) for path in svg.select("path.line") for y in re.findall(r",(-?[\d.]+)", path["d"])]
    assert 0 <= min(heights) and max(heights) <= 200
    assert len(svg.find_all("text")) <= 3 + 9


def test_one_state_is_no_line():
    assert state_lines([{"rest": 0.5}]) == "" == state_lines([])
