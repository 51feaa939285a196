"""The book's figure style, and the outputs that carry a result: pictures with captions, sentences, tables."""

import base64
import io
import re
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from attn_utils import COLORS, bind, draw_weights, figure, figures, outputs, say, table, use_book_style
from attn_utils.pictures import describe, drawn_texts, render


@pytest.fixture(autouse=True)
def style():
    matplotlib.use("agg")
    with plt.rc_context():
        use_book_style()
        yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch):
    """(mime type, content, text) of what would be displayed in a kernel."""
    seen = []
    monkeypatch.setattr(figures, "show", lambda *parts: seen.append(parts))
    return seen


def lines(size=None, **settings):
    fig, ax = plt.subplots(figsize=size)
    ax.plot([1, 2], label="scaled")
    ax.plot([2, 1], label="unscaled")
    ax.legend()
    ax.set(xlabel="step", ylabel="error", **settings)
    return fig


def soup(shown):
    return BeautifulSoup(shown[-1][1], "html.parser")


# ------------------------------------------------------------------------- figure()


def test_a_figure_has_a_caption_that_is_seen_and_a_picture_with_words_of_its_own(shown):
    figure(lines(), "The error falls to 1 < 2.")
    mime, markup, text = shown[0]
    page = soup(shown)
    assert mime == "text/html" and text == "Figure: The error falls to 1 < 2."
    assert page.figure["class"] == ["abe-figure"] and page.figcaption.get_text() == "The error falls to 1 < 2."
    assert page.img["alt"] == "Lines: error against step; scaled, unscaled."  # not the caption a second time
    assert not page.find(attrs={"hidden": True}) and not page.find(attrs={"aria-hidden": True})
    assert plt.get_fignums() == []  # nothing is left to be shown a second time


def test_what_survives_a_notebook_that_is_not_trusted(shown):
    """GitHub and JupyterLab keep no script, no style element and no svg."""
    figure(lines(), "The error falls.")
    assert {tag.name for tag in soup(shown).find_all(True)} == {"figure", "div", "img", "figcaption"}
    assert not re.search(r"https?://", shown[0][1])


def test_the_same_figure_gives_the_same_bytes(shown):
    for _ in range(2):
        figure(lines(), "The error falls.")
    assert shown[0] == shown[1]


def test_a_picture_is_sharp_on_a_dense_screen(shown):
    figure(lines(), "The error falls.")
    image = soup(shown).img
    stored = base64.b64decode(image["src"].partition(",")[2])
    picture = Image.open(io.BytesIO(stored))
    assert stored[12:16] == b"VP8L", "a lossless WebP: others blur thin lines"
    assert (image["width"], image["height"]) == ("440", "308") and picture.size == (880, 616)


def test_a_picture_keeps_the_colors_of_its_lines():
    fig, ax = plt.subplots()
    for height, name in enumerate(COLORS):
        ax.axhspan(height, height + 1, color=COLORS[name])
    picture = Image.open(io.BytesIO(render(fig).webp)).convert("RGB")
    counts = {color for count, color in picture.getcolors(picture.width * picture.height) if count > 500}
    for code in COLORS.values():
        wanted = np.array([int(code[at : at + 2], 16) for at in (1, 3, 5)])
        assert min(np.abs(wanted - color).max() for color in counts) <= 4, code


def test_panels_stand_in_a_row_that_wraps_each_with_words_of_its_own(shown):
    figure([lines((3, 2.4), title="left"), lines((3, 2.4), title="right")], "Both fall.")
    page = soup(shown)
    assert [image["alt"] for image in page.find_all("img")] == [
        "Panel 1 of 2. Lines: left; error against step; scaled, unscaled.",
        "Panel 2 of 2. Lines: right; error against step; scaled, unscaled.",
    ]
    assert "flex-wrap:wrap" in page.find(class_="abe-panels")["style"]
    assert all("max-width:100%" in image["style"] for image in page.find_all("img"))
    figure([lines(), lines()], "Both fall.", alt=["One falls.", "The other falls."])
    assert [image["alt"] for image in soup(shown).find_all("img")] == ["One falls.", "The other falls."]
    figure([lines(), lines()], "Both fall.", alt="One falls.")
    alts = [image["alt"] for image in soup(shown).find_all("img")]
    assert alts[0] == "One falls." and alts[1].startswith("Panel 2 of 2. Lines")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"fig": 3, "caption": "It falls."}, "fig is int"),
        ({"fig": [], "caption": "It falls."}, "empty list"),
        ({"fig": plt, "caption": "It falls."}, "fig is module, expected a matplotlib Figure"),
        ({"caption": " "}, "caption is ' '"),
        ({"caption": None}, "caption is None"),
        ({"caption": "It falls.", "alt": ""}, "alt is ''"),
        ({"caption": "It falls.", "alt": ["a", "b"]}, "alt has 2 texts"),
        ({"caption": "It falls with $d_k$."}, "caption holds TeX, '\\$d_k\\$'"),
        ({"caption": "It falls.", "alt": "It falls with $T$."}, "alt holds TeX"),
        ({"caption": "It falls.", "name": "Drain 3"}, "expected lower-case words"),
    ],
)
def test_what_a_figure_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        figure(**{"fig": lines(), **arguments})


def test_money_is_no_tex(shown):
    figure(lines(), "A run costs $3, ten cost $25.")
    assert soup(shown).figcaption.get_text() == "A run costs $3, ten cost $25."


def test_ids_are_made_of_words_and_unique_in_a_kernel(shown, monkeypatch):
    figure(lines(), "In 17% of the draws 'it' looks at 'animal'.", name="drain-2")
    figure(lines(), "In 17% of the draws 'it' looks at 'animal'.")
    figure(lines(), "In 18% of the draws 'it' looks at 'animal'.")
    monkeypatch.setattr(outputs, "in_kernel", lambda: True)
    monkeypatch.setattr(outputs, "_GIVEN", outputs.Counter())
    for _ in range(2):
        figure(lines(), "In 19% of the draws 'it' looks at 'animal'.")
    ids = [re.search('id="(.*?)"', markup)[1] for _, markup, _ in shown]
    assert ids == ["fig-drain-2", *["fig-in-of-the-draws-it-looks"] * 3, "fig-in-of-the-draws-it-looks-2"]


# ----------------------------------------------------------------- legible on a phone


def test_the_style_is_legible_by_itself(shown):
    fig = lines(title="Errors")
    assert {"Errors", "error", "step", "scaled"} <= {text for text, _ in drawn_texts(fig)}
    figure(fig, "The error falls.")
    assert shown


def test_text_that_a_phone_cannot_show_is_named():
    with pytest.raises(ValueError, match="fig: the text .* is 10 points .* 8 inches wide.* 5.7 pixels.* at least 19.3"):
        figure(lines((8, 3)), "The error falls.")
    small = lines()
    small.axes[0].text(1, 1.5, "hidden note", fontsize=6)
    with pytest.raises(ValueError, match="'hidden note' is 6 points.* 6.8 pixels.*9.7 points.* 2.5 inches"):
        figure(small, "The error falls.")
    with pytest.raises(ValueError, match="panel 2: the text"):
        figure([lines(), lines((8, 3))], "Both fall.")


def test_only_text_that_is_drawn_is_measured(shown):
    fig = lines()
    ax = fig.axes[0]
    ax.text(1, 1.5, "never shown", fontsize=4).set_visible(False)
    ax.text(1, 1.5, "  ", fontsize=4)
    ax.tick_params(labelleft=False, labelsize=10)
    figure(fig, "The error falls.")
    assert shown
    ticks = lines()
    ticks.axes[0].tick_params(labelsize=7)
    with pytest.raises(ValueError, match="is 7 points"):
        figure(ticks, "The error falls.")


def test_a_narrow_figure_is_measured_at_the_size_it_is_shown():
    """A picture narrower than the phone is not enlarged."""
    narrow = lines((2, 2))
    narrow.axes[0].text(0, 1.5, "note", fontsize=7)
    with pytest.raises(ValueError, match="shown 220 pixels wide.*10.7 pixels"):
        figure(narrow, "The error falls.")


# ----------------------------------------------------------------------- in words


def test_figures_in_words():
    fig, ax = plt.subplots()
    draw_weights(np.eye(2), ["a", "b"], ax=ax)
    assert describe(fig) == "Heat map: query (looking) against key (looked at). The color is the weight."
    fig, ax = plt.subplots()
    ax.bar([0, 1], [1, 2])
    ax.set(title="Variance of $d_k$", ylabel=r"$\sqrt{d}$")
    assert describe(fig) == "Bars: Variance of d_k; √d."
    fig, (left, right) = plt.subplots(1, 2)
    left.scatter([1], [2])
    left.text(0, 0, "it")
    right.set_visible(False)
    assert describe(fig) == "Points: it."
    assert describe(plt.figure()) == "Drawing: see the caption."
    fig, axes = plt.subplots(2, 3)
    for number, ax in enumerate(axes.flat, 1):
        ax.imshow(np.eye(2))
        ax.set(title=f"head {number}")
    assert describe(fig) == "6 plots. The first: Heat map: head 1. The last: Heat map: head 6."
    fig, ax = plt.subplots()
    ax.set(title="word " * 200)
    assert len(describe(fig)) <= 400


# ------------------------------------------------------------- sentences, tables, numbers


def test_a_sentence_is_markdown(shown):
    say(f" It gets **{0.271:.0%}** of $d_k$. ")
    assert shown == [("text/markdown", "It gets **27%** of $d_k$.", "It gets **27%** of $d_k$.")]
    for wrong in ("", " ", None, 3):
        with pytest.raises(ValueError, match="text is"):
            say(wrong)


def test_a_table_is_set_as_a_table(shown):
    columns = {"word": ["a|b", "c\nd"], "weight": np.array([0.25, 10.0]), "share": ["2.5 %", "–"], "n": [1, 20]}
    table(columns, "The row of 'it'.", digits={"weight": 2})
    mime, text, plain = shown[0]
    assert mime == "text/markdown" and plain == text
    assert text.splitlines() == [
        "The row of 'it'.",
        "",
        "| word | weight | share | n |",
        "| :-- | --: | --: | --: |",
        r"| a\|b | 0.25 | 2.5 % | 1 |",
        "| c d | 10.00 | – | 20 |",
    ]


@pytest.mark.parametrize(
    "cells, right",
    [
        (["1", "-2", "−3", "+4"], True),
        (["1,234.5", ".25", "3.", "1e-07"], True),
        (["27 %", "3%", "nan", "inf"], True),
        (["", "–", "1"], True),
        (["", "–"], False),
        (["1", "two"], False),
        (["1-2", "."], False),
        (["%", "1"], False),
        (["v1", "v2"], False),
    ],
)
def test_columns_of_numbers_stand_on_the_right(shown, cells, right):
    table({"x": cells})
    assert shown[0][1].splitlines()[1] == ("| --: |" if right else "| :-- |")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"columns": {}}, "lengths"),
        ({"columns": {"a": []}}, "lengths"),
        ({"columns": {"a": [1], "b": [1, 2]}}, "'b': 2"),
        ({"columns": {"a": [1]}, "digits": {"b": 2}}, "digits names"),
        ({"columns": {"a": [1]}, "caption": ""}, "caption"),
        ({"columns": [("a", [1])]}, "columns is list, expected a dict"),
        ({"columns": {"a": "xyz"}}, "the column 'a' is 'xyz', expected a sequence"),
        ({"columns": {"a": 3}}, "the column 'a' is 3"),
        ({"columns": {"a": {"x", "y"}}}, "expected a sequence"),
        ({"columns": {1: [1], "1": [2]}}, "read alike"),
        ({"columns": {"a": [0.5]}, "digits": -1}, "digits is -1"),
        ({"columns": {"a": [0.5]}, "digits": {"a": "2"}}, "digits is '2'"),
        ({"columns": {"a": [0.5]}, "digits": True}, "digits is True"),
    ],
)
def test_what_a_table_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        table(**arguments)


def test_a_dict_is_a_column_of_its_keys(capsys):
    """A table of results by name: the names, in their order, beside what belongs to them."""
    found = {"skip": 0.5, "norm": 0.25}
    table({"arm": found, "share": map("{:.2f}".format, found.values())})
    assert capsys.readouterr().out.splitlines()[2:] == ["| skip | 0.50 |", "| norm | 0.25 |"]


def test_numbers_are_bound_by_name(capsys):
    bind(share=np.float32(0.25), draws=2000, chance=1 / 3)
    assert capsys.readouterr().out == "share = 0.25\ndraws = 2000\nchance = 0.333333\n"
    for wrong in ("27", [1, 2], None, np.ones(1), True, 1j, np.ma.masked):
        with pytest.raises(TypeError, match="share is"):
            bind(share=wrong)
    for wrong in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="share is"):
            bind(share=wrong)


def test_whole_numbers_are_bound_as_they_are(capsys):
    """Six significant digits of 1,048,577 parameters are those of another number."""
    bind(n=1_048_577, m=np.int64(1_048_577), big=10**20, zero=np.array(0.5))
    assert capsys.readouterr().out == f"n = 1048577\nm = 1048577\nbig = {10**20}\nzero = 0.5\n"


def test_headings_and_cells_may_be_numbers_of_any_kind(shown):
    table({3: [np.array(0.123456)], "n": np.arange(1)}, digits={3: 2})
    assert shown[0][1].splitlines()[0] == "| 3 | n |" and shown[0][1].splitlines()[2] == "| 0.12 | 0 |"


def test_without_a_kernel_the_result_is_printed(capsys):
    figure(lines(), "The error falls.")
    say("It falls.")
    table({"n": [1]})
    assert capsys.readouterr().out == "Figure: The error falls.\nIt falls.\n| n |\n| --: |\n| 1 |\n"


CELL = """
import matplotlib.pyplot as plt
from attn_utils import figure, lab, say, table, use_book_style
use_book_style()
def line():
    fig, ax = plt.subplots()
    ax.plot([1, 2])
    return fig
figure(line(), "It rises.")
figure(line(), "It rises.")
say("It *rises*.")
table({"n": [1]})
lab("mask", line(), "It rises.")
"""


def test_in_a_kernel_each_result_is_one_output():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    data = [output["data"] for output in notebook.cells[0].outputs]
    assert [set(one) for one in data] == [{f"text/{kind}", "text/plain"} for kind in
                                          ("html", "html", "markdown", "markdown", "html")]  # fmt: skip
    found = [re.search('id="(.*?)"', one["text/html"])[1] for one in data if "text/html" in one]
    assert found == ["fig-it-rises", "fig-it-rises-2", "lab-mask"]


# ------------------------------------------------------------------------- the style


def test_draw_weights():
    weights = np.array([[1, np.nan], [0.25, 0.75]])
    ax = draw_weights(weights, ["a", "b"], ax=plt.figure().gca())
    np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), weights)
    assert ax.images[0].get_clim() == (0, 1)
    assert matplotlib.colors.to_hex(ax.get_facecolor()) == "#d9d9d9"  # behind NaN
    assert [t.get_text() for t in ax.get_xticklabels()] == [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="one head"):
        draw_weights(np.ones((2, 3, 3)))
    plt.close("all")
    for wrong, message in (
        ({"queries": ["a"]}, "queries has 1 labels, expected 2"),
        ({"keys": ["a", "b", "c"]}, "keys has 3 labels, expected 2"),
        ({"weights": weights * 1j}, "weights has type complex"),
        ({"weights": [["a"]]}, "weights has type"),
        ({"weights": np.ones((0, 3))}, "weights have shape"),
        ({"ax": 3}, "ax is int"),
    ):
        with pytest.raises(ValueError, match=message):
            draw_weights(**{"weights": weights, **wrong})
    assert plt.get_fignums() == []  # nothing was begun


def luminance(color):
    channels = np.array(matplotlib.colors.to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_text_of_figures_stands_out_from_the_white_card():
    use_book_style()
    for name in ("axes.labelcolor", "xtick.color", "ytick.color", "text.color"):
        assert 1.05 / (luminance(plt.rcParams[name]) + 0.05) >= 4.5
    assert plt.rcParams["image.cmap"] == "cividis"  # readable with color-blind eyes, and in gray
    assert not plt.rcParams["axes.spines.top"] and not plt.rcParams["axes.spines.right"]
    assert plt.rcParams["figure.facecolor"] == "white" and len(set(COLORS.values())) == len(COLORS)


def test_the_style_is_set_only_when_asked():
    before = "import matplotlib.pyplot as plt; before = dict(plt.rcParams)"
    code = f"{before}\nimport attn_utils\nassert dict(plt.rcParams) == before"
    subprocess.run([sys.executable, "-c", code], check=True, env={"MPLBACKEND": "agg", "PATH": "/usr/bin:/bin"})


