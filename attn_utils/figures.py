"""The look of the book's figures, and outputs that carry a result: a captioned picture, a sentence, a table."""

import html

import numpy as np

from attn_utils.outputs import as_png, data_uri, in_kernel, png_size, stable_id

COLORS = {  # Okabe and Ito's palette: distinguishable with colour-blind eyes
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "amber": "#E69F00",
    "yellow": "#F0E442",
    "black": "#1A1A1A",
    "grey": "#767676",
}


def use_book_style():
    """Set matplotlib's rcParams to the book's figure style: white card, thin axes, colour-blind-safe cycle.

    Called once in each notebook, in the open, because importing this package must change nothing.
    """
    import matplotlib.pyplot as plt

    cycle = [COLORS[name] for name in ("blue", "orange", "green", "purple", "sky", "amber", "black")]
    plt.rcParams.update(
        {
            "axes.edgecolor": COLORS["grey"],
            "axes.grid": False,
            "axes.labelcolor": COLORS["black"],
            "axes.labelsize": 10,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": plt.cycler(color=cycle),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.figsize": (5.6, 3.2),
            "font.size": 10,
            "image.cmap": "cividis",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "savefig.facecolor": "white",
            "xtick.color": COLORS["black"],
            "ytick.color": COLORS["black"],
        }
    )


def draw_weights(weights, queries=None, keys=None, ax=None):
    """Draw attention weights as a heat map: a row for each query, a column for each key.

    weights   (n_queries, n_keys), numbers from 0 to 1; NaN is left grey ("not there yet")
    queries   labels of the rows;  keys   labels of the columns (the queries' when None)

    Returns the matplotlib Axes. The colour scale always runs from 0 to 1, so pictures can be compared.
    """
    import matplotlib.pyplot as plt

    weights = np.asarray(weights)
    if weights.ndim != 2:
        raise ValueError(
            f"weights have shape {weights.shape}, expected (n_queries, n_keys). Choose one head: weights[0]."
        )
    ax = plt.gca() if ax is None else ax
    ax.set_facecolor("#D9D9D9")
    picture = ax.imshow(weights, vmin=0, vmax=1, cmap="cividis")
    keys = queries if keys is None and weights.shape[0] == weights.shape[1] else keys
    if keys is not None:
        ax.set_xticks(range(weights.shape[1]), keys, rotation=90)
    if queries is not None:
        ax.set_yticks(range(weights.shape[0]), queries)
    ax.set(xlabel="key (looked at)", ylabel="query (looking)")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(picture, ax=ax, label="weight", shrink=0.85)
    return ax


# ------------------------------------------------------------- outputs that carry a result


def figure(fig, caption, alt=None):
    """Show a picture with a visible caption that states the finding.

    fig      matplotlib Figure, or a list of them: panels, which stand side by side and wrap on a narrow screen
    caption  the finding, with its numbers computed: f"... in {share:.0%} of the draws ..."
    alt      what a blind reader needs beside the caption; the caption itself when None

    One output of HTML, so that strict nbval compares caption and alt text like any other output. The figures are
    closed, so that they show only once. In a plain script the caption is printed.
    Raises ValueError for an empty caption or alt text, or something that is no matplotlib Figure.
    """
    panels = list(fig) if isinstance(fig, (list, tuple)) else [fig]
    for panel in panels:
        if not hasattr(panel, "savefig"):
            raise ValueError(f"fig is {type(panel).__name__}, expected a matplotlib Figure, or a list of them.")
    caption = _sentence(caption, "caption")
    alt = caption if alt is None else _sentence(alt, "alt")
    pictures = "".join(_image(as_png(panel), alt if i == 0 else "") for i, panel in enumerate(panels))
    markup = f'<figure class="abe-figure" id="{stable_id("figure", [caption, alt])}">{pictures}'
    markup += f"<figcaption>{html.escape(caption, quote=False)}</figcaption></figure>"
    _display({"text/html": markup, "text/plain": f"Figure: {caption}"})


def say(text):
    """Show a sentence that carries a result, written as an f-string so that its numbers are computed.

    text   Markdown, such as f"Over {n} draws the first token gets {share:.0%} of the weight."

    Strict nbval compares it like any other output. In a plain script it is printed.
    Raises ValueError when text is empty or no string.
    """
    text = _sentence(text, "text")
    _display({"text/markdown": text, "text/plain": text})


def table(columns, caption=None):
    """Show a table set as a table.

    columns  dict from heading to the sequence of its cells, all of equal length. Numbers are shown as they are
             written by str(): round or format them first
    caption  a line above it that says what it shows; none when None

    Columns of numbers stand on the right. Raises ValueError for columns that are empty or of unequal length.
    """
    cells = {str(heading): [str(cell) for cell in column] for heading, column in dict(columns).items()}
    lengths = {heading: len(column) for heading, column in cells.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(f"the columns have the lengths {lengths}, expected one length of at least 1 for all.")
    rule = ["--:" if all(map(_is_number, column)) else ":--" for column in cells.values()]
    rows = [list(cells), rule, *zip(*cells.values(), strict=True)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    text = text if caption is None else f"{_sentence(caption, 'caption')}\n\n{text}"
    _display({"text/markdown": text, "text/plain": text})


def bind(**values):
    """Print "name = value" lines, to which numbers in the prose are bound by name: 27 %<!--=share-->.

    values   numbers; shown with six significant digits, more than any sentence states

    For prose that cannot be a say(). The cell is tagged remove-cell, so that the site does not show it.
    """
    for name, value in values.items():
        print(f"{name} = {value:.6g}")


def _sentence(text, name):
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name} is {text!r}, expected a sentence that states what is shown.")
    return text.strip()


def _image(png, alt):
    width, height = png_size(png)
    return f'<img src="{data_uri(png)}" alt="{html.escape(alt)}" width="{width}" height="{height}">'


def _is_number(text):
    return text.lstrip("+-−").replace(".", "", 1).replace(",", "").replace("%", "").strip().isdigit()


def _display(bundle):
    if not in_kernel():
        return print(bundle["text/plain"])
    from IPython.display import display

    display(bundle, raw=True)
