"""A matplotlib Figure as a picture inside HTML: sharp, light, legible on a phone, and said in words."""

import base64
import html
import io
import re
import textwrap
from typing import NamedTuple

DPI = 110  # pixels to an inch at the size at which a picture is shown: 10 points are 15 pixels, as the text around it
SCALE = 2  # so many times as many pixels are stored, for dense screens
COLORS_KEPT = 64  # of a picture; more makes it heavier and no clearer
PHONE = 328  # pixels that a picture can be wide on a narrow phone
SMALLEST = 11  # pixels; smaller letters cannot be read there
LONGEST = 400  # letters of a description
MANY = 4  # plots in one figure; of more than that only the first and the last are described


class Picture(NamedTuple):
    """An encoded picture, and the size at which it is shown."""

    webp: bytes
    width: int
    height: int

    @property
    def address(self):
        return "data:image/webp;base64," + base64.b64encode(self.webp).decode()

    def tag(self, alt, attributes=""):
        """The img element, with any further attributes."""
        text = f'<img src="{self.address}" alt="{html.escape(alt)}" width="{self.width}" height="{self.height}"'
        return f"{text}{attributes and ' ' + attributes}>"


def render(fig, scale=SCALE):
    """A matplotlib Figure as a Picture: lossless WebP of 64 colors, which is lighter than PNG or SVG of the same.

    Measured on six kinds of the book's figures: at twice the size it weighs 3 to 46 KB, the PNG 6 to 52 KB, the SVG
    19 to 157 KB.
    """
    from PIL import Image

    buffer, small = io.BytesIO(), io.BytesIO()
    fig.savefig(buffer, format="png", dpi=DPI * scale, facecolor="white")
    image = Image.open(buffer).convert("RGB").quantize(COLORS_KEPT, dither=Image.Dither.NONE)
    image.convert("RGB").save(small, format="WEBP", lossless=True, quality=100, method=4)
    return Picture(small.getvalue(), round(image.width / scale), round(image.height / scale))


def check_figure(fig, name="fig"):
    """Raise ValueError, calling it `name`, for what is no matplotlib Figure."""
    from matplotlib.figure import Figure

    if not isinstance(fig, Figure):
        raise ValueError(f"{name} is {type(fig).__name__}, expected a matplotlib Figure: fig, ax = plt.subplots().")


def close(fig):
    """Take a figure from pyplot, so that Jupyter does not show it a second time; it can still be rendered."""
    import matplotlib.pyplot as plt

    plt.close(fig)


# -------------------------------------------------------------------- legible


def check_legible(fig, name="fig"):
    """Raise ValueError when some text is smaller than 11 pixels where the picture is 328 pixels wide."""
    width = fig.get_figwidth()
    shown = min(PHONE, width * DPI)
    for text, points in drawn_texts(fig):
        pixels = points / 72 / width * shown
        if pixels < SMALLEST - 0.005:
            need = SMALLEST * 72 * width / shown
            raise ValueError(
                f"{name}: the text {text!r} is {points:g} points large in a figure {width:g} inches wide. On a phone, "
                f"where it is shown {shown:.0f} pixels wide, its letters are {pixels:.1f} pixels large, expected at "
                f"least {SMALLEST}. Write it with at least {need:.1f} points, or make the figure at most "
                f"{points * PHONE / 72 / SMALLEST:.1f} inches wide, or hand over its panels as a list of figures."
            )


def drawn_texts(fig):
    """(text, size in points) of every line of text that is drawn: labels, ticks, legends, annotations.

    The figure is drawn by a renderer that listens, since a figure also holds texts that never appear.
    """
    from matplotlib.backends.backend_agg import RendererAgg

    heard = []

    class Listener(RendererAgg):
        def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
            heard.append((s, prop.get_size_in_points()))

    if not any(ax.get_subplotspec() for ax in fig.axes):
        fig.set_layout_engine("none")  # savefig gave it one, which warns where every axis was placed by hand
    fig.draw(Listener(*fig.get_size_inches() * fig.dpi, fig.dpi))
    return [(text, points) for text, points in heard if text.strip()]


# ------------------------------------------------------------------- in words


def describe(fig):
    """What a blind reader needs beside the caption: the kind of each plot, its axes and the names of what it shows."""
    shown = [ax for ax in fig.axes if ax.get_visible()]
    bars = [ax for ax in shown if ax.get_label() == "<colorbar>"]
    scales = [words for ax in bars if (words := _words(ax.get_ylabel() or ax.get_xlabel()))]
    plots = [_plot_in_words(ax) for ax in shown if ax not in bars]
    if len(plots) > MANY:
        plots = [f"{len(plots)} plots. The first: {plots[0]} The last: {plots[-1]}"]
    text = " ".join(plots + [f"The color is the {scale}." for scale in scales]) or "Drawing: see the caption."
    return textwrap.shorten(text, LONGEST, placeholder=" ...")


def _plot_in_words(ax):
    title = _words(ax.get_title("left") or ax.get_title())
    axes = " against ".join(filter(None, (_words(ax.get_ylabel()), _words(ax.get_xlabel()))))
    legend = ax.get_legend()
    names = [text.get_text() for text in [*(legend.get_texts() if legend else []), *ax.texts]]
    said = "; ".join(filter(None, (title, axes, ", ".join(dict.fromkeys(filter(None, map(_words, names)))))))
    return f"{_kind(ax)}: {said or 'see the caption'}."


def _kind(ax):
    if ax.images:
        return "Heat map"
    if ax.containers or ax.patches:
        return "Bars" if ax.containers else "Drawing"
    return "Lines" if ax.lines else "Points" if ax.collections else "Drawing"


def _words(text):
    """A label without the marks of TeX, on one line."""
    return " ".join(re.sub(r"[$\\{}]", "", text.replace("\\sqrt", "√")).split())
