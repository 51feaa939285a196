"""The look of the book's figures, and outputs that carry a result: a captioned picture, a sentence, a table."""

import html
import numbers
import re

import numpy as np

from attn_utils.inputs import as_floating, is_whole
from attn_utils.outputs import plain_sentence, sentence, show, unique_id
from attn_utils.pictures import check_figure, check_legible, close, describe, render

COLORS = {  # Okabe and Ito's palette: distinguishable with color-blind eyes
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


NUMBER = re.compile(r"[+−-]?(?:(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*%?|nan|inf)")


def use_book_style():
    """Set matplotlib's rcParams to the book's figure style: white card, thin axes, color-blind-safe cycle.

    A figure of the default size has letters of 11 pixels where it is shown 328 pixels wide, as on a phone. A wider
    one needs larger letters, or is better drawn as panels: several figures, handed to figure() as a list.

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
            "figure.figsize": (4.0, 2.8),  # inches
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

    weights   (n_queries, n_keys), numbers from 0 to 1; NaN is left gray ("not there yet")
    queries   labels of the rows;  keys   labels of the columns (the queries' when None and the matrix is square)
    ax        matplotlib Axes to draw on; the current one when None

    Returns the matplotlib Axes. The color scale always runs from 0 to 1, so pictures can be compared; what is larger
    looks like 1. Raises ValueError for weights that are no numbers or no matrix, or labels of another number.
    """
    import matplotlib.pyplot as plt

    weights = as_floating(weights, "weights")
    if weights.ndim != 2 or weights.size == 0:
        raise ValueError(
            f"weights have shape {weights.shape}, expected (n_queries, n_keys). Choose one head: weights[0]."
        )
    if ax is not None and not hasattr(ax, "imshow"):
        raise ValueError(f"ax is {type(ax).__name__}, expected a matplotlib Axes, such as that of plt.subplots().")
    keys = queries if keys is None and weights.shape[0] == weights.shape[1] else keys
    for labels, n, name in ((queries, weights.shape[0], "queries"), (keys, weights.shape[1], "keys")):
        if labels is not None and (not np.iterable(labels) or isinstance(labels, str)):
            raise ValueError(f"{name} is {labels!r:.60}, expected {n} labels, such as a list of words.")
        if labels is not None and len(labels) != n:
            raise ValueError(f"{name} has {len(labels)} labels, expected {n} for weights of the shape {weights.shape}.")
    ax = plt.gca() if ax is None else ax
    ax.set_facecolor("#D9D9D9")
    picture = ax.imshow(weights, vmin=0, vmax=1, cmap="cividis")
    if keys is not None:
        ax.set_xticks(range(weights.shape[1]), keys, rotation=90)
    if queries is not None:
        ax.set_yticks(range(weights.shape[0]), queries)
    ax.set(xlabel="key (looked at)", ylabel="query (looking)")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(picture, ax=ax, label="weight", shrink=0.85)
    return ax


# ------------------------------------------------------------- outputs that carry a result


def figure(fig, caption, alt=None, name=None):
    """Show a picture with a visible caption that states the finding.

    fig      matplotlib Figure, or a list of them: panels, which stand side by side and wrap on a narrow screen
             (figsize=(3, 2.4) lets two of them stand in a row)
    caption  the finding, with its numbers computed: f"... in {share:.0%} of the draws ...". Shown as it is written:
             no Markdown, no TeX; Unicode has dₖ, √d, × and ≤
    alt      what a blind reader needs beside the caption; for panels a list may give each its own. When None, it is
             read off the figure (kind of plot, axes, legend), so that no sentence is read out twice
    name     gives the figure the id "fig-name", to which the text can link; made of the caption's words when None

    One output of HTML, so that strict nbval compares caption and alt text like any other output. The figures are
    closed, so that they show only once. In a plain script the caption is printed.
    Raises ValueError for an empty caption or alt text, for something that is no matplotlib Figure, and for text
    that is smaller than 11 pixels where the picture is 328 pixels wide.

        figure(fig, f"'animal' is first in {first:.0%} of the draws.", name="draws")
    """
    caption = plain_sentence(caption, "caption")
    label = unique_id("fig", caption) if name is None else _id(name)
    markup = f'<figure class="abe-figure" id="{label}" style="margin:0 0 1rem">{pictures(fig, alt)}'
    show("text/html", f"{markup}\n{caption_element(caption)}</figure>", f"Figure: {caption}")


def pictures(fig, alt=None):
    """The checked and encoded pictures of one figure or several panels, as HTML; the figures are closed."""
    panels = list(fig) if isinstance(fig, (list, tuple)) else [fig]
    for panel in panels:
        check_figure(panel)
    if not panels:
        raise ValueError("fig is an empty list, expected at least one matplotlib Figure.")
    alts = _alts(alt, panels)
    for number, panel in enumerate(panels, 1):
        check_legible(panel, f"panel {number}" if len(panels) > 1 else "fig")
    style = 'style="max-width:100%;height:auto"'
    shown = "\n".join(render(panel).tag(text, style) for panel, text in zip(panels, alts, strict=True))
    for panel in panels:
        close(panel)
    row = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:.5rem"
    return f'<div class="abe-panels" style="{row}">\n{shown}</div>'


def caption_element(caption):
    """A caption as HTML. Its color is that of the page, so that it can be read in a light and in a dark theme."""
    style = "max-width:42rem;margin:.5rem 0 0;line-height:1.5"
    return f'<figcaption style="{style}">{html.escape(caption, quote=False)}</figcaption>'


def say(text):
    """Show a sentence that carries a result, written as an f-string so that its numbers are computed.

    text   Markdown, in which $...$ is mathematics

    Strict nbval compares it like any other output. In a plain script it is printed.
    Raises ValueError when text is empty or no string.

        say(f"Over {n} draws the first token gets {share:.0%} of the weight.")
    """
    text = sentence(text, "text")
    show("text/markdown", text, text)


def table(columns, caption=None, digits=None):
    """Show a table set as a table.

    columns  dict from heading to the sequence of its cells, all of equal length; cells are Markdown
    caption  a line above it that says what it shows; none when None
    digits   decimals of the floating-point numbers: one number for all, or a dict from heading to number. When
             None they are shown as str() writes them

    Columns of numbers stand on the right. In a plain script the table is printed as Markdown.
    Raises ValueError for columns that are no sequences, are empty or of unequal length, for two headings that read
    the same, and for digits that are no whole number or belong to a heading that is not there.

        table({"word": words, "weight": weights}, "The row of 'it'.", digits=2)
    """
    columns = _columns(columns)
    lengths = {heading: len(column) for heading, column in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(f"the columns have the lengths {lengths}, expected one length of at least 1 for all.")
    digits = digits if isinstance(digits, dict) else dict.fromkeys(columns, digits)
    digits = {str(heading): n for heading, n in digits.items()}
    if unknown := sorted(set(digits) - set(columns)):
        raise ValueError(f"digits names {unknown}, expected headings of the table: {list(columns)}.")
    for wrong in [n for n in digits.values() if n is not None and not is_whole(n, least=0)]:
        raise ValueError(f"digits is {wrong!r}, expected a whole number of at least 0, or a dict of them by heading.")
    cells = {heading: [_cell(value, digits.get(heading)) for value in column] for heading, column in columns.items()}
    rule = ["--:" if _numbers(column) else ":--" for column in cells.values()]
    rows = [[_cell(heading) for heading in cells], rule, *zip(*cells.values(), strict=True)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    text = text if caption is None else f"{sentence(caption, 'caption')}\n\n{text}"
    show("text/markdown", text, text)


def bind(**values):
    """Print "name = value" lines, to which numbers in the prose are bound by name: 27 %<!--=share-->.

    values   numbers; whole ones are shown as they are, others with six significant digits, more than a sentence states

    For prose that cannot be a say(). The cell is tagged remove-cell, so that the site does not show it.
    Raises TypeError for a value that is no single real number, and ValueError for NaN or infinity.

        bind(share=np.mean(first == "animal"), draws=2000)
    """
    for name, value in values.items():
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, expected one number: a name in the prose stands for one.")
        if value != value or abs(value) == np.inf:
            raise ValueError(f"{name} is {value!r}, which no sentence can state. Look for where it arises upstream.")
        print(f"{name} = {value:d}" if isinstance(value, numbers.Integral) else f"{name} = {value:.6g}")


def _id(name):
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", str(name)):
        raise ValueError(f"name is {name!r}, expected lower-case words joined by hyphens, such as 'drain-by-layer'.")
    return f"fig-{name}"


def _alts(alt, panels):
    """An alt text for each panel. One text for several panels is that of the first; the others are read off."""
    several = isinstance(alt, (list, tuple))
    if several and len(alt) != len(panels):
        raise ValueError(f"alt has {len(alt)} texts, expected one for each of the {len(panels)} panels.")
    given = alt if several else [alt, *[None] * (len(panels) - 1)]
    return [_alt(text, panel, n, len(panels)) for n, (text, panel) in enumerate(zip(given, panels, strict=True), 1)]


def _alt(given, panel, number, total):
    if given is not None:
        return plain_sentence(given, "alt")
    return describe(panel) if total == 1 else f"Panel {number} of {total}. {describe(panel)}"


def _columns(columns):
    """The columns as lists by heading, checked to be several cells each under a heading of its own."""
    if not isinstance(columns, dict):
        raise ValueError(f"columns is {type(columns).__name__}, expected a dict: {{'heading': [1, 2]}}.")
    for heading, column in columns.items():
        if isinstance(column, (str, bytes, set, frozenset)) or not np.iterable(column):  # of a dict, the keys
            raise ValueError(f"the column {heading!r} is {column!r:.60}, expected a sequence of cells, such as a list.")
    if len(set(map(str, columns))) < len(columns):
        raise ValueError(f"the headings {list(columns)} read alike, expected a different one for each column.")
    return {str(heading): list(column) for heading, column in columns.items()}


def _cell(value, digits=None):
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    floating = isinstance(value, (float, np.floating))
    text = f"{value:.{digits}f}" if floating and digits is not None else str(value)
    return " ".join(re.sub(r"(?<!\\)\|", r"\\|", text).split())


def _numbers(column):
    """Whether the cells are numbers as a table shows them: 1,234, -0.5, .25, 27 %, 1e-07, nan; a dash is a gap."""
    cells = [cell for cell in column if cell not in ("", "-", "–", "—")]
    return bool(cells) and all(NUMBER.fullmatch(cell) for cell in cells)
