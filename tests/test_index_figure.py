"""The figure of the first page: its picture, its caption and its alt text say what the vectors say."""

import json
import re
from pathlib import Path

import index_figure
import numpy as np
import pytest
from index_figure import ANIMAL, IT, WORDS, rank

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def row():
    return index_figure.row_of_it()


@pytest.fixture(scope="module")
def figure_text():
    """The figure block of the index page: options and caption."""
    page = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    return re.search(r":::\{figure\} images/row-of-it\.svg\n(.*?)\n:::", page, re.S).group(1)


def test_the_row_is_the_formula_written_out(row):
    from attn_utils import embed, load_glove

    X = embed(WORDS, load_glove()).astype(float)  # (12, 50)
    exps = np.exp(X[IT] @ X.T / np.sqrt(50))  # (12,)
    assert np.allclose(row, exps / exps.sum(), atol=1e-6)


def test_animal_is_tenth_of_twelve(row):
    assert rank(row, ANIMAL) == 10 and len(row) == 12
    assert [WORDS[place] for place in np.argsort(-row)[:3]] == ["it", "not", "because"]


def test_the_caption_says_what_the_row_says(row, figure_text):
    caption = figure_text.rsplit("\n\n", 1)[1]
    largest = [f"{row[WORDS.index(word)]:.1%}" for word in ("it", "not", "because", "animal")]
    assert re.findall(r"\d+\.\d%", caption) == largest
    assert f"{rank(row, ANIMAL)}th of {len(row)}" in caption


@pytest.mark.parametrize("page", ["README.md", "book/index.md"])
def test_the_alt_text_states_the_finding(page, row):
    text = (ROOT / page).read_text(encoding="utf-8")
    alt = re.search(r':alt: "(.*)"|!\[(.*)\]\(book/images/row-of-it\.svg\)', text)
    alt = alt[1] or alt[2]
    assert 80 <= len(alt) <= 300
    assert f"{row[ANIMAL]:.1%}".replace("%", " percent") in alt and "tenth of twelve" in alt


def test_the_stored_picture_shows_this_row(row):
    picture = index_figure.PICTURE.read_text(encoding="utf-8")
    stored = json.loads(re.search(r"<dc:description>(.*?)</dc:description>", picture)[1].replace("&quot;", '"'))
    assert np.allclose(stored["row"], row, atol=1e-4), "run: python tools/index_figure.py"


def test_arcs_and_bars_are_drawn_from_the_row(row):
    import matplotlib.pyplot as plt

    figure = index_figure.draw(row)
    arcs, bars = figure.axes
    widths = [line.get_linewidth() for line in arcs.lines]
    assert np.allclose(np.array(widths) / 45, np.delete(row, IT))
    assert np.allclose([bar.get_width() for bar in bars.patches], row)
    plt.close(figure)
