"""The markup of live figures, and what the site makes of it; tests/site/test_outputs.py opens one in a browser."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.patches
import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from attn_utils import lab, labs

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_screen():
    matplotlib.use("agg")
    yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch):
    seen = []
    monkeypatch.setattr(labs, "show", lambda *parts: seen.append(parts))
    return seen


def blank():
    return plt.figure(figsize=(3, 2))


def test_a_live_figure_is_a_still_a_link_the_data_and_a_caption(shown):
    lab("mask", blank(), "Nobody looks ahead.", data={"tokens": ["<a>"], "scores": np.array([[1 / 3, np.nan]]), "n": np.int64(2)})
    mime, markup, text = shown[0]
    page = BeautifulSoup(markup, "html.parser")
    assert mime == "text/html" and text == f"Figure: Nobody looks ahead.\nLive on the site: {labs.SITE}labs/mask.html"
    assert page.figure["data-lab"] == "mask" and page.figure["id"] == "lab-mask"
    assert page.img["alt"] and page.figcaption.get_text() == "Nobody looks ahead."
    assert page.a["href"] == f"{labs.SITE}labs/mask.html" == page.a.get_text()
    assert json.loads(page.script.get_text()) == {"tokens": ["<a>"], "scores": [[0.333333, None]], "n": 2}
    assert page.find(class_="abe-stage").has_attr("hidden") and "<a>" not in page.script.get_text()


def test_the_same_live_figure_gives_the_same_bytes(shown):
    for _ in range(2):
        lab("mask", blank(), "Nobody looks ahead.", data={"values": np.eye(2)})
    assert shown[0] == shown[1]


def test_what_is_masked_is_a_gap(shown):
    data = {"x": np.ma.masked_array([0.5, 1.0], [0, 1]), "n": np.ma.masked_array([1, 2], [0, 1]), "yes": np.bool_(True)}
    lab("mask", blank(), "Nobody looks ahead.", data=data)
    page = BeautifulSoup(shown[0][1], "html.parser")
    assert json.loads(page.script.get_text()) == {"x": [0.5, None], "n": [1, None], "yes": True}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"name": "../mask"}, "expected that of a script"),
        ({"data": [1]}, "data is list"),
        ({"data": {"a": object()}}, "type object cannot travel to a page"),
        ({"data": {"a": [1j]}}, "type complex cannot travel"),
        ({"data": {"a": {1, 2}}}, "type set cannot travel"),
        ({"data": {"a": b"x"}}, "type bytes cannot travel"),
        ({"data": {(1, 2): 3}}, "type dict cannot travel.*keys are texts"),
        ({"caption": ""}, "caption is ''"),
        ({"fig": None}, "fig is NoneType"),
    ],
)
def test_what_a_live_figure_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        lab(**{"name": "mask", "fig": blank(), "caption": "Nobody looks ahead.", **arguments})


def test_the_still_of_a_sentence_shows_the_row():
    """A bar for each word, as long as its weight, and an arc from the word that asks to each of the others."""
    row, words = np.array([0.1, 0.6, 0.3]), ["we", "drink", "tea"]
    [axes] = labs.draw_asked(row, words, asks=1, followed=2).axes
    bars = [patch for patch in axes.patches if isinstance(patch, matplotlib.patches.Rectangle)]
    np.testing.assert_allclose([bar.get_width() / bars[1].get_width() for bar in bars], row / 0.6)
    arcs = [patch for patch in axes.patches if isinstance(patch, matplotlib.patches.Arc)]
    assert [arc.center[1] for arc in arcs] == [0.5, 1.5] and arcs[1].get_linewidth() > arcs[0].get_linewidth()
    written = [text.get_text() for text in axes.texts]
    assert written == ["we", "0.10", "drink", "0.60", "tea", "0.30"]
    with pytest.raises(ValueError):
        labs.draw_asked(row, words[:2], asks=0, followed=1)


def extension():
    spec = importlib.util.spec_from_file_location("live_figures", ROOT / "book" / "_ext" / "live_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def app(tmp_path):
    """What the extension needs of Sphinx."""
    added = []
    builder = SimpleNamespace(format="html")
    return SimpleNamespace(srcdir=ROOT, outdir=tmp_path, builder=builder, live_figures={}, added=added,
                           add_js_file=lambda name, **_: added.append(name))  # fmt: skip


def test_the_site_finds_the_live_figures_that_the_library_writes(app, shown):
    lab("mask", blank(), "Nobody looks ahead.")
    site = extension()
    for page, body in (("notebooks/05_b", shown[0][1]), ("notebooks/03_a", shown[0][1]), ("book/index", "<p>")):
        site.find_labs(app, page, None, {"body": body}, None)
    assert app.added == ["labs/loader.js"] * 2  # not on the page without one
    site.write_labs(app, None)
    assert 'url=../notebooks/03_a.html#lab-mask"' in (app.outdir / "labs" / "mask.html").read_text()
    assert len(list((app.outdir / "_static" / "labs" / "heads").glob("*.js"))) == 1 + 2 * (12 + 1)  # on demand
    scripts = {path.name for path in (app.outdir / "_static" / "labs").glob("*.js")}
    assert scripts == {path.name for path in (ROOT / "book" / "labs").glob("*.js")} >= {"loader.js", "common.js", "mask.js"}


def test_a_live_figure_without_a_script_stops_the_build(app, shown):
    lab("nowhere", blank(), "Nobody looks ahead.")
    with pytest.raises(ExtensionError, match="notebooks/03_a: lab\\('nowhere'\\) has no script book/labs/nowhere.js"):
        extension().find_labs(app, "notebooks/03_a", None, {"body": shown[0][1]}, None)


def lint(folder, env=None):
    command = [sys.executable, ROOT / "tools" / "lint_scripts.py", folder]
    return subprocess.run(command, capture_output=True, text=True, env=env)


def test_the_linter_passes_the_scripts_and_finds_a_mistake(tmp_path):
    done = lint(ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (tmp_path / "book" / "labs").mkdir(parents=True)
    (tmp_path / "biome.json").write_text((ROOT / "biome.json").read_text())
    (tmp_path / "book" / "labs" / "wrong.js").write_text("abeLabs.define('wrong', () => { undefined_name(); });")
    done = lint(tmp_path)
    assert done.returncode == 1 and "undefined_name" in done.stderr and "wrong.js" in done.stderr


def test_the_random_numbers_of_the_page():
    """mulberry32 in plain integers; the browser test compares the script with these."""
    a, expected = 5, []
    for _ in range(4):
        a = (a + 0x6D2B79F5) % 2**32
        t = ((a ^ (a >> 15)) * (a | 1)) % 2**32
        t ^= (t + ((t ^ (t >> 7)) * (t | 61)) % 2**32) % 2**32
        expected.append((t ^ (t >> 14)) / 2**32)
    r, angle = np.sqrt(-2 * np.log(1 - np.array(expected[::2]))), 2 * np.pi * np.array(expected[1::2])
    pairs = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
    np.testing.assert_allclose(labs.page_normals(5, 4), pairs.ravel(), atol=1e-15)
    np.testing.assert_array_equal(labs.page_normals(5, 3), labs.page_normals(5, 4)[:3])
    many = labs.page_normals(1, 100, 100)
    assert many.shape == (100, 100) and abs(many.mean()) < 0.03 and abs(many.std() - 1) < 0.03
    assert np.ndim(labs.page_normals(1)) == 0


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, "1", True])
def test_a_seed_that_no_page_can_draw_from(seed):
    with pytest.raises(ValueError, match=r"seed is .*, expected a whole number from 0 to 4294967295"):
        labs.page_normals(seed, 3)


def test_a_notebooks_link_leads_to_a_chapter_and_not_to_the_first_page():
    places = ["book/index.html#lab-ask", "notebooks/03_a.html#lab-ask", "notebooks/01_b.html#lab-ask"]
    assert extension().first(places) == "notebooks/01_b.html#lab-ask"
