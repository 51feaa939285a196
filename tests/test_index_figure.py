"""The figure of the first page: it shows the weights that the vectors give, and not which word has which."""

import json
import re
from pathlib import Path

import index_figure
import numpy as np
import pytest
from index_figure import ASKED, COFFEE, IT, TEA, WORDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "book/index.md"]
ANIMAL = WORDS.index("animal")


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


def test_the_caption_says_what_the_row_says(row, figure_text):
    caption = figure_text.rsplit("\n\n", 1)[1]
    assert re.findall(r"\d+\.\d%", caption) == [f"{max(row):.1%}", f"{min(row):.1%}"]


@pytest.mark.parametrize("page", PAGES)
def test_the_alt_text_says_what_is_seen(page, row):
    text = (ROOT / page).read_text(encoding="utf-8")
    alt = re.search(r':alt: "(.*)"|!\[(.*)\]\(book/images/row-of-it\.svg\)', text)
    alt = alt[1] or alt[2]
    assert 80 <= len(alt) <= 300
    assert re.findall(r"\d+\.\d percent", alt) == [f"{part:.1%}".replace("%", " percent") for part in (max(row), min(row))]


@pytest.mark.parametrize("page", PAGES)
def test_the_first_pages_do_not_answer_the_first_question(page, row):
    """Chapter 1 asks where "animal" stands in the row of "it"; neither its rank nor its weight is told before."""
    text = (ROOT / page).read_text(encoding="utf-8")
    place = int(1 + np.sum(row > row[ANIMAL]))  # 10
    told = rf"(?i)\b{place}th\b|\btenth\b|{row[ANIMAL]:.1%}|{100 * row[ANIMAL]:.1f} percent|arrow is not|not there"
    assert re.findall(told, text) == []


def test_the_stored_picture_shows_this_row(row):
    picture = index_figure.PICTURE.read_text(encoding="utf-8")
    stored = json.loads(re.search(r"<dc:description>(.*?)</dc:description>", picture)[1].replace("&quot;", '"'))
    assert np.allclose(stored["sorted"], np.sort(row)[::-1], atol=1e-4), "run: python tools/index_figure.py"


def test_the_bars_are_the_sorted_row_and_bear_no_words(row):
    import matplotlib.pyplot as plt

    figure = index_figure.draw(row)
    [axes] = figure.axes
    assert np.allclose([bar.get_width() for bar in axes.patches], np.sort(row)[::-1])
    assert not [text for text in axes.texts if set(text.get_text().split()) & set(WORDS)]
    plt.close(figure)


def test_the_live_figure_of_the_first_page_says_what_its_vectors_give():
    """Its caption is the first sentence of the live figure, its still shows the same row, and it begins there."""
    row = index_figure.raw_row(ASKED, TEA)
    page = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    options, caption = re.search(r":::\{live-figure\} ask\n(.*?)\n\n(.*?)\n:::", page, re.S).groups()
    assert row.argmax() == TEA and np.sum(row > row[COFFEE]) == 1
    told = f"With raw vectors, “tea” gives most to itself, {row[TEA]:.2f}; “coffee” gets {row[COFFEE]:.2f} and is 2nd of 9."
    assert caption == told
    begin = json.loads(re.search(":begin: (.*)", options)[1])
    assert begin == {"text": " ".join(ASKED), "word": TEA, "other": COFFEE}
    picture = index_figure.ASK.read_text(encoding="utf-8")
    stored = json.loads(re.search(r"<dc:description>(.*?)</dc:description>", picture)[1].replace("&quot;", '"'))
    assert np.allclose(stored["row"], row, atol=1e-4), "run: python tools/index_figure.py"
