"""How a result reaches its reader: with a kernel, without one, and as pictures inside HTML."""

import base64
import hashlib
import io
import json
import sys
from importlib import resources


def show_both(markup, text, make_widget):
    """Display one output with both forms; where there is no kernel, print the text."""
    if not in_kernel():
        return print(text)
    from IPython.display import display

    display({"text/html": markup, "text/plain": text, **_view(_make_or_none(make_widget))}, raw=True)


def show_widget(make_widget):
    """Display a widget without any other form, so that stored outputs keep no trace of it.

    Returns the widget, or None where there is no kernel or no ipywidgets.
    """
    widget = _make_or_none(make_widget) if in_kernel() else None
    if widget is not None:
        from IPython.display import display

        display(_view(widget), raw=True)
    return widget


def in_kernel():
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def _make_or_none(make_widget):
    """The widget, or None where ipywidgets or anywidget is missing."""
    try:
        return make_widget()
    except ImportError:
        return None


def _view(widget):
    """The mime bundle that stands for a widget."""
    if widget is None:
        return {}
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


# ------------------------------------------------------------------- pictures


def as_png(figure):
    """A matplotlib Figure as a small PNG (64 colours); the figure is closed, so that it shows only once."""
    import matplotlib.pyplot as plt
    from PIL import Image

    buffer, small = io.BytesIO(), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, facecolor="white")
    plt.close(figure)
    image = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    image.save(small, format="PNG", optimize=True)
    return small.getvalue()


def png_size(png):
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")  # IHDR: width, height


def data_uri(png):
    return "data:image/png;base64," + base64.b64encode(png).decode()


def stable_id(kind, parts):
    """An id that depends on what is shown in words, so that re-running gives the same bytes."""
    return f"{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]}"


def asset(name):
    """The text of a script or style that lies beside this module."""
    return (resources.files("attn_utils") / name).read_text("utf8").rstrip("\n")
