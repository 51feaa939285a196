"""Draw the figure of the book's first page from the real word vectors: what "it" looks at.

    python tools/index_figure.py    writes book/images/row-of-it.svg

The weights go into the picture's metadata as well, so that tests/test_index_figure.py can compare
the stored picture with a fresh computation.
"""

import json
from pathlib import Path

import numpy as np

from attn_utils import COLORS, attention, embed, load_glove, use_book_style

WORDS = "the animal did not cross the street because it was too tired".split()
IT, ANIMAL = WORDS.index("it"), WORDS.index("animal")
PICTURE = Path(__file__).resolve().parent.parent / "book" / "images" / "row-of-it.svg"


def row_of_it():
    """The weights of "it" over the twelve words, for Q = K = V = the raw vectors."""
    X = embed(WORDS, load_glove())  # (12, 50)
    _, weights = attention(X, X, X)  # (12, 12)
    return weights[IT]  # (12,)


def rank(row, place):
    """1 for the largest weight of the row, 12 for the smallest."""
    return int(1 + np.sum(row > row[place]))


def draw(row):
    """The sentence as a column, an arc from "it" to each word (width = weight), and the weights as bars."""
    import matplotlib.pyplot as plt

    use_book_style()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(4.6, 4.6), sharey=True, width_ratios=[1, 1.35], layout="constrained"
    )
    draw_arcs(left, row)
    draw_bars(right, row)
    return figure


def draw_arcs(axes, row):
    for place, weight in enumerate(row):
        if place != IT:
            angle = np.linspace(-np.pi / 2, np.pi / 2, 60)
            middle, half = (IT + place) / 2, (IT - place) / 2
            axes.plot(-abs(half) * np.cos(angle), middle + half * np.sin(angle),
                      lw=45 * weight, color=color(place), solid_capstyle="butt")  # fmt: skip
    axes.set(xlim=(-4.4, 0.1), ylim=(11.6, -0.6))
    axes.axis("off")


def draw_bars(axes, row):
    axes.barh(range(12), row, height=0.62, color=[color(place) for place in range(12)])
    for place, weight in enumerate(row):
        bold = "bold" if place in (IT, ANIMAL) else "normal"
        axes.text(-0.006, place, WORDS[place], ha="right", va="center", fontsize=12, weight=bold)
        axes.text(weight + 0.004, place, f"{weight:.1%}", va="center", fontsize=10, weight=bold)
    axes.set(xlim=(-0.085, 0.225))
    axes.axis("off")


def color(place):
    return {IT: COLORS["black"], ANIMAL: COLORS["orange"]}.get(place, COLORS["blue"])


def main():
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "row-of-it", "svg.fonttype": "path"})
    row = row_of_it()
    data = json.dumps({"row": [round(float(weight), 4) for weight in row]})
    PICTURE.parent.mkdir(exist_ok=True)
    draw(row).savefig(PICTURE, metadata={"Date": None, "Creator": None, "Description": data})
    print(f"{PICTURE.name}: 'animal' is {rank(row, ANIMAL)}th of {len(row)}, weight {row[ANIMAL]:.4f}")


if __name__ == "__main__":
    main()
