"""Draw the pictures of the book's first page from the real word vectors.

    python tools/index_figure.py    writes book/images/row-of-it.svg and book/images/ask-tea.svg

The first shows the weights of "it" without their words: which belongs to which is the first question of chapter 1, so
the picture does not say it. The second is the still of "Ask a sentence", with another sentence. The weights go into
their metadata as well, so that tests/test_index_figure.py can compare them with a fresh computation.
"""

import json
from pathlib import Path

from attn_utils import COLORS, attention, embed, load_glove, use_book_style
from attn_utils.labs import draw_asked

WORDS = "the animal did not cross the street because it was too tired".split()
IT = WORDS.index("it")
ASKED = "we drink green tea while they drink black coffee".split()
TEA, COFFEE = ASKED.index("tea"), ASKED.index("coffee")
PICTURE = Path(__file__).resolve().parent.parent / "book" / "images" / "row-of-it.svg"
ASK = PICTURE.with_name("ask-tea.svg")


def row_of_it():
    """The weights of "it" over the twelve words, for Q = K = V = the raw vectors."""
    return raw_row(WORDS, IT)  # (12,)


def raw_row(words, asks):
    """The weights of one word of a sentence, for Q = K = V = the raw vectors."""
    X = embed(words, load_glove())  # (n_tokens, 50)
    return attention(X, X, X)[1][asks]  # (n_tokens,)


def draw(row):
    """The sentence, and below it the weights of the row as bars, the largest first: which is whose?"""
    import matplotlib.pyplot as plt

    use_book_style()
    figure, axes = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    heights = sorted(row, reverse=True)
    axes.barh(range(len(row)), heights, height=0.66, color=COLORS["blue"])
    for place, weight in enumerate(heights):
        axes.text(-0.004, place, f"{place + 1}.", ha="right", va="center", fontsize=10)
        axes.text(weight + 0.003, place, f"{weight:.1%}", va="center", fontsize=10)
    axes.text(0.155, 7.5, "?", ha="center", va="center", fontsize=64, color=COLORS["orange"])
    half = WORDS.index("because")
    sentence = " ".join(WORDS[:half]) + "\n" + " ".join(WORDS[half:]).replace(" it ", r" $\bf{it}$ ")
    axes.set_title(sentence, fontsize=13, loc="left")
    axes.set(xlim=(-0.014, 0.205), ylim=(len(row) - 0.4, -0.8))
    axes.axis("off")
    return figure


def save(figure, path, data):
    import matplotlib

    matplotlib.rcParams.update({"svg.hashsalt": path.stem, "svg.fonttype": "path"})
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Description": json.dumps(data)})
    print(path.name)


def main():
    import matplotlib

    matplotlib.use("Agg")
    PICTURE.parent.mkdir(exist_ok=True)
    row, tea = row_of_it(), raw_row(ASKED, TEA)
    save(draw(row), PICTURE, {"sorted": [round(float(weight), 4) for weight in sorted(row, reverse=True)]})
    save(draw_asked(tea, ASKED, TEA, COFFEE), ASK, {"row": [round(float(weight), 4) for weight in tea]})


if __name__ == "__main__":
    main()
