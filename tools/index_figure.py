"""Draw the figure of the book's first page from the real word vectors: the weights of "it", without their words.

    python tools/index_figure.py    writes book/images/row-of-it.svg

Which weight belongs to which word is the first question of chapter 1, so the picture does not say it. The weights
go into its metadata as well, so that tests/test_index_figure.py can compare it with a fresh computation.
"""

import json
from pathlib import Path

from attn_utils import COLORS, attention, embed, load_glove, use_book_style

WORDS = "the animal did not cross the street because it was too tired".split()
IT = WORDS.index("it")
PICTURE = Path(__file__).resolve().parent.parent / "book" / "images" / "row-of-it.svg"


def row_of_it():
    """The weights of "it" over the twelve words, for Q = K = V = the raw vectors."""
    X = embed(WORDS, load_glove())  # (12, 50)
    _, weights = attention(X, X, X)  # (12, 12)
    return weights[IT]  # (12,)


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


def main():
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "row-of-it", "svg.fonttype": "path"})
    row = row_of_it()
    data = json.dumps({"sorted": [round(float(weight), 4) for weight in sorted(row, reverse=True)]})
    PICTURE.parent.mkdir(exist_ok=True)
    draw(row).savefig(PICTURE, metadata={"Date": None, "Creator": None, "Description": data})
    print(f"{PICTURE.name}: {len(row)} weights, from {max(row):.4f} to {min(row):.4f}")


if __name__ == "__main__":
    main()
