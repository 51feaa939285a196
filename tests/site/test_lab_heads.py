"""The live heads of chapters 7 and 8: every score against NumPy, files of one's own, and all controls."""

import base64
import importlib.util
import json
from functools import cache

import numpy as np
import pytest
from html_rules import ROOT
from live import Live, build, check_address, check_axe, check_fits, live, stored

from attn_utils import diagnose
from attn_utils.pretrained import load_minilm, load_smollm

pytestmark = pytest.mark.site
CHAPTERS = {"minilm": "07", "smollm": "08"}
SHOWS = ("first", "last", "previous", "next", "itself", "copy", "link", "alike")


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    return {name: build(tmp_path_factory.mktemp(name), [stored("heads", chapter)]) for name, chapter in CHAPTERS.items()}


@cache
def scripts():
    """Name -> what the script of this name hands over."""
    spec = importlib.util.spec_from_file_location("live_figures", ROOT / "book" / "_ext" / "live_figures.py")
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    texts = site.head_scripts(ROOT / "book" / "labs" / "heads.npz")
    return {name: json.loads(text[text.index(", ") + 2 : -3]) for name, text in texts.items()}


@cache
def weights(name, number):
    """(tokens, weights of all heads (layers * heads, n, n)) as they are stored."""
    model = scripts()["contents"][name]
    tokens = model["sentences"][number - 1]["tokens"]
    n, bytes_ = len(tokens), np.frombuffer(base64.b64decode(scripts()[f"{name}-{number}"]), np.uint8)
    A = np.zeros((model["layers"] * model["heads"], n, n))
    A[:, np.tri(n, dtype=bool) if model["causal"] else np.ones((n, n), bool)] = bytes_.reshape(len(A), -1) / 255
    return tokens, A


def overlap(A, B, causal):
    return np.minimum(A, B)[..., int(causal) :, :].sum(axis=-1).mean(axis=-1)


def scores(tokens, A, causal, h, word, key):
    """Each kind of score for all heads, (heads,), in the order of the page."""
    n, i = len(tokens), np.arange(len(tokens))
    found = {"first": A[:, 1:, 0].mean(axis=1)}
    if tokens[-1] == "[SEP]":
        found["last"] = A[:, :-1, -1].mean(axis=1)
    found["previous"] = A[:, i[1:], i[:-1]].mean(axis=1)
    if not causal:
        found["next"] = A[:, i[:-1], i[1:]].mean(axis=1)
    found["itself"] = A[:, i[int(causal) :], i[int(causal) :]].mean(axis=1)
    before = [max((p for p in range(k) if tokens[p] == tokens[k]), default=None) for k in range(n)]
    again = [(k, p + 1) for k, p in enumerate(before) if p is not None and p + 1 < k]
    same = [(k, [p for p in range(n) if p != k and tokens[p] == tokens[k]]) for k in range(n) if tokens.count(tokens[k]) > 1]
    if causal and again:
        found["copy"] = np.mean([A[:, k, p] for k, p in again], axis=0)
    if not causal and same:
        found["copy"] = np.mean([A[:, k, p].sum(axis=1) for k, p in same], axis=0)
    return found | {"link": A[:, word - 1, key - 1], "alike": overlap(A, A[h], causal)}


def arrived(visit, number):
    visit.page.wait_for_function("n => document.querySelector('.abe-stage').dataset.sentence === String(n)", arg=number)


def choose(visit, **state):
    visit.set(**state)
    arrived(visit, visit.state()["sentence"])


@pytest.mark.parametrize("name", CHAPTERS)
def test_it_begins_as_its_still_says(name, browser, sites):
    with live(browser, sites[name], "heads") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")


@pytest.mark.parametrize("name", CHAPTERS)
def test_twenty_settings_equal_numpy_on_the_stored_weights(name, browser, sites):
    rng, model = np.random.default_rng(0), scripts()["contents"][name]
    with live(browser, sites[name], "heads") as visit:
        for k in range(24):
            number, show = k % 12 + 1, SHOWS[int(rng.integers(len(SHOWS)))]
            tokens, A = weights(name, number)
            word, key = (int(w) for w in rng.integers(1, len(tokens) + 1, 2))
            layer, head = int(rng.integers(1, model["layers"] + 1)), int(rng.integers(1, model["heads"] + 1))
            choose(visit, sentence=number, word=word, key=key, layer=layer, head=head, show=show)
            h = (layer - 1) * model["heads"] + head - 1
            expected = scores(tokens, A, model["causal"], h, word, key)
            np.testing.assert_allclose(visit.numbers("row"), A[h, word - 1], atol=1e-4)
            np.testing.assert_allclose(visit.numbers("pattern"), A[h], atol=1e-4)
            shown = expected.get(show, expected["first"])
            np.testing.assert_allclose(visit.numbers("map"), shown, atol=1e-4)
            np.testing.assert_allclose(visit.numbers("scores"), [one[h] for one in expected.values()], atol=1e-4)
            ranks = [1 + np.sum(one > one[h] + 1e-9) for one in expected.values()]
            np.testing.assert_allclose(visit.numbers("ranks"), ranks, atol=0)
            best = visit.numbers("nearest").astype(int)
            assert h not in best and shown[best].min() >= np.sort(np.delete(shown, h))[-5] - 1e-6
            assert f"In head {layer}.{head} of {model['title']}, " in visit.caption()


@pytest.mark.parametrize(("name", "load"), [("minilm", load_minilm), ("smollm", load_smollm)])
def test_the_page_is_within_a_step_of_the_model(name, load, browser, sites, trained_weights):
    model, listed = load(), scripts()["contents"][name]["sentences"]
    with live(browser, sites[name], "heads") as visit:
        for number, one in enumerate(listed, 1):
            exact = model.attend(one["text"])[1]
            layer, head = (int(k) + 1 for k in np.random.default_rng(number).integers(exact.shape[:2]))
            choose(visit, sentence=number, layer=layer, head=head)
            assert np.abs(visit.numbers("pattern") - exact[layer - 1, head - 1]).max() < 1 / 255
        assert "within 1/255" in visit.figure.locator(".abe-stage").inner_text() or visit.figure.get_by_text("within 1/255").count()


@pytest.mark.parametrize("name", CHAPTERS)
def test_who_is_alike_here_and_elsewhere(name, browser, sites):
    """The rule, and its test on the sentences in which the head was not chosen."""
    model = scripts()["contents"][name]
    with live(browser, sites[name], "heads") as visit:
        for number, layer, head in ((1, 4, 2), (3, 2, 5)):
            choose(visit, sentence=number, layer=layer, head=head, show="alike")
            visit.page.wait_for_function("() => / elsewhere/.test(document.querySelector('.abe-near').textContent)")
            h, best = (layer - 1) * model["heads"] + head - 1, visit.numbers("nearest").astype(int)
            for k, line in zip(best, visit.figure.locator(".abe-near button").all(), strict=True):
                every = [overlap(*(weights(name, s)[1][[k, h]]), model["causal"]) for s in range(1, 13)]
                here, there = every[number - 1], (sum(every) - every[number - 1]) / 11
                text = line.inner_text()
                assert text.startswith(f"{k // model['heads'] + 1}.{k % model['heads'] + 1} shares {here:.2f} here, ")
                assert abs(float(text.split(", ")[1].split()[0]) - there) < 1 / 255 + 0.0051


def test_mouse_finger_and_keys(browser, sites):
    with live(browser, sites["minilm"], "heads", touch=True) as visit:
        figure, page = visit.figure, visit.page
        arcs, pattern, map_ = (figure.locator(".abe-picture").nth(k) for k in range(3))
        for k, press in enumerate(("click", "tap")):
            getattr(arcs, press)(position={"x": 100, "y": 24 * (3 + k) + 14})
            assert visit.state()["word"] == 4 + k
        pattern.click(position={"x": 50, "y": 24})
        assert visit.state()["word"] == 1
        width = map_.bounding_box()["width"]
        cell = (width - 24) / 12
        for (layer, head), press in (((2, 3), "click"), ((6, 12), "tap")):
            getattr(map_, press)(position={"x": 22 + cell * (head - 0.5), "y": 36 + 30 * (layer - 0.5)})
            assert (visit.state()["layer"], visit.state()["head"]) == (layer, head)
        box = map_.bounding_box()
        page.mouse.move(box["x"] + 30, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 22 + 4.5 * cell, box["y"] + 36 + 75, steps=4)
        page.mouse.up()
        assert (visit.state()["layer"], visit.state()["head"]) == (3, 5)
        for label, key in (("Word", "word"), ("Layer", "layer"), ("Head", "head"), ("looks at", "key")):
            before = visit.state()[key]
            figure.get_by_role("button", name=f"{label}: one more").press("Enter")
            figure.get_by_role("button", name=f"{label}: one more").tap()
            figure.get_by_role("button", name=f"{label}: one less").click()
            assert visit.state()[key] == before + 1
        lines = figure.locator(".abe-scores button")
        for k, press in enumerate(("click", "tap")):
            getattr(lines.nth(k), press)()
            assert lines.nth(k).get_attribute("aria-pressed") == "true"
        lines.last.press("Enter")
        assert visit.state()["show"] == "alike"
        near = figure.locator(".abe-near button").first
        chosen = near.inner_text().split()[0]
        near.press("Enter")
        assert chosen == f"{visit.state()['layer']}.{visit.state()['head']}"
        menu = figure.get_by_label("A sentence that MiniLM reads")
        menu.focus()
        menu.press("ArrowDown")
        arrived(visit, 2)
        menu.select_option(index=9)
        arrived(visit, 10)
        assert visit.state()["word"] == 15 and "“cat” gives most to" in visit.caption()
        page.wait_for_function("e => document.querySelector('.abe-said').textContent === e", arg=visit.caption())


def opened(visit, name, text):
    visit.figure.locator("summary").last.click()
    visit.figure.get_by_label("What diagnose() wrote").set_input_files({"name": name, "mimeType": "application/json", "buffer": text.encode()})
    visit.figure.locator("summary").last.click()


def test_a_file_of_ones_own_is_read_and_sent_nowhere(browser, sites):
    A = np.random.default_rng(0).dirichlet(np.ones(6), (2, 3, 6)) * np.tri(6)  # (layers, heads, 6, 6)
    A /= A.sum(axis=-1, keepdims=True)
    found = diagnose(A, axes="layers heads", pictures=64, tokens=list("abcabc"))
    with live(browser, sites["minilm"], "heads") as visit:
        asked = list(visit.requests)
        opened(visit, "mine.json", json.dumps(found.to_dict(pictures=True)))
        arrived(visit, 0)
        for layer, head, word in ((1, 1, 6), (2, 3, 4)):
            visit.set(layer=layer, head=head, word=word, show="copy")
            np.testing.assert_allclose(visit.numbers("row"), A[layer - 1, head - 1, word - 1], atol=1e-4)
            np.testing.assert_allclose(visit.numbers("map"), A[:, :, [3, 4, 5], [1, 2, 3]].mean(axis=-1).ravel(), atol=1e-4)
            previous = [one["to_previous"] for one in found.layers[layer - 1]["heads"]]
            assert abs(visit.numbers("scores")[1] - previous[head - 1]) < 1e-4
            assert f"In head {layer}.{head} of mine.json" in visit.caption()
        assert visit.requests == asked
        check_axe(visit)
        visit.figure.get_by_role("button", name="Back to the sentences").click()
        arrived(visit, 1)
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")


def test_a_file_without_patterns_shows_what_it_has(browser, sites):
    A = np.random.default_rng(0).dirichlet(np.ones(9), (4, 2, 9))
    found = diagnose(A, axes="layers heads")
    with live(browser, sites["smollm"], "heads", width=360) as visit:
        opened(visit, "mine.json", json.dumps(found.to_dict()))
        arrived(visit, 0)
        for k, name in enumerate(("sink", "to_previous", "to_next", "to_self")):
            visit.figure.locator(".abe-scores button").nth(k).click()
            expected = [head[name] for layer in found.layers for head in layer["heads"]]
            np.testing.assert_allclose(visit.numbers("map"), expected, atol=1e-4)
        assert "no patterns" in visit.caption()
        check_fits(visit)


PART = {"heads": [{"sink": 0.5, "to_previous": 0.1, "to_next": 0.1, "to_self": 0.1}], "n_keys": 2}
WRONG = {
    "no json": ("{", "is no JSON"),
    "a list": ("[1]", "holds no layers with heads"),
    "null": ("null", "holds no layers with heads"),
    "other numbers of heads": (json.dumps({"layers": [PART, {"heads": PART["heads"] * 2}]}), "differ in their number of heads"),
    "no square": (json.dumps({"layers": [PART], "pictures": {"1,1": [[1, 0]]}}), "without a square pattern"),
    "a head is missing": (json.dumps({"layers": [PART], "pictures": {}}), "without a square pattern"),
    "two sizes": (json.dumps({"layers": [{**PART, "heads": PART["heads"] * 2}], "pictures": {"1,1": [[1]], "1,2": [[1, 0], [1, 0]]}}), "differ in size"),
    "heads that are none": (json.dumps({"layers": [{"heads": [None]}]}), "holds no layers with heads"),
    "a number": (json.dumps({"layers": [{"heads": [1]}]}), "holds no layers with heads"),
    "too many": (json.dumps({"layers": [{"heads": PART["heads"] * 5000}]}), "has 5000 heads, expected at most 4,096"),
    "texts": (json.dumps({"layers": [PART], "pictures": {"1,1": [["x"]]}}), "without a square pattern"),
}


def test_a_wrong_file_gets_a_sentence_and_changes_nothing(browser, sites):
    with live(browser, sites["minilm"], "heads") as visit:
        before = visit.numbers("pattern")
        for name, (text, message) in WRONG.items():
            opened(visit, f"{name}.json", text)
            visit.page.wait_for_function("m => document.querySelector('figcaption').textContent.includes(m)", arg=message)
            np.testing.assert_array_equal(visit.numbers("pattern"), before)
        visit.set(layer=1)
        assert "In head 1.2" in visit.caption()


def test_a_hostile_file_runs_nothing(browser, sites):
    """Scripts in names and texts for numbers: they are shown as text, cut to a length, and the figure goes on."""
    evil = "<img src=x onerror=window.evil=1>" + "x" * 5000
    part = {"heads": [{"sink": evil, "to_previous": None, "to_next": 0.1, "to_self": [1, 2]}], "n_keys": 2}
    picture = {"1,1": [[1, 0], [0.5, 0.5]]}
    with live(browser, sites["minilm"], "heads", width=360) as visit:
        for tokens in ([evil, evil], "ab", [None, {"a": 1}]):
            opened(visit, evil[:33] + ".json", json.dumps({"layers": [part], "pictures": picture, "tokens": tokens}))
            arrived(visit, 0)
            assert len(visit.caption()) < 400
            assert len(visit.figure.locator(".abe-near, .abe-scores").all_inner_texts()[0]) < 800
        opened(visit, "mine.json", json.dumps({"layers": [part]}))
        arrived(visit, 0)
        np.testing.assert_array_equal(visit.numbers("scores"), [0, 0, 0.1, 0])
        assert visit.page.evaluate("window.evil") is None and not visit.figure.locator("img[src=x]").count()


def test_a_file_can_be_opened_again_when_it_is_mended(browser, sites):
    with live(browser, sites["minilm"], "heads") as visit:
        opened(visit, "mine.json", "{")
        visit.page.wait_for_function("() => document.querySelector('figcaption').textContent.includes('is no JSON')")
        assert visit.figure.get_by_label("What diagnose() wrote").evaluate("e => e.files.length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("name", CHAPTERS)
def test_it_fits_and_axe_finds_nothing(name, width, theme, browser, sites):
    with live(browser, sites[name], "heads", width=width, theme=theme) as visit:
        check_fits(visit)
        choose(visit, sentence=7, show="alike")
        for summary in visit.figure.locator("summary").all():
            summary.click()
        check_fits(visit)
        check_axe(visit)


def test_its_state_stands_in_the_address(browser, sites):
    with live(browser, sites["minilm"], "heads") as visit:
        choose(visit, sentence=10)
        choose(visit, sentence=1)
        check_address(visit, sentence=10, word=15, layer=3, head=10, show="copy")


def test_it_works_from_a_folder(browser, sites):
    with Live(browser, sites["smollm"].as_uri() + "/", "heads") as visit:
        choose(visit, sentence=4, show="alike")
        visit.page.wait_for_function("() => / elsewhere/.test(document.querySelector('.abe-near').textContent)")
        assert not visit.problems
