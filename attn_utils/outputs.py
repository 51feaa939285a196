"""How a result reaches its reader: with a kernel and without one, as HTML, Markdown or text."""

import base64
import json
import re
import sys
from collections import Counter
from importlib import resources

import numpy as np


def show_both(markup, text, make_widget):
    """Display one output with both forms; where there is no kernel, print the text."""
    if not in_kernel():
        return print(text)
    from IPython.display import display

    display({"text/html": markup, "text/plain": text, **_view(_make_or_none(make_widget))}, raw=True)


def show(mime, content, text):
    """Display one output, content in its mime type beside the text; where there is no kernel, print the text."""
    if not in_kernel():
        return print(text)
    from IPython.display import display

    display({mime: content, "text/plain": text}, raw=True)


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


# ------------------------------------------------------------ names and contents

_GIVEN = Counter()  # how often each id was given out in this kernel


def unique_id(kind, caption):
    """An id made of the caption's first words, without its numbers, so that re-running gives the same bytes.

    A second output with the same words in one kernel gets "-2", so that ids are unique on a page.
    """
    words = re.findall("[a-z]+", caption.lower())[:6]
    found = "-".join([kind, *words])
    if in_kernel():
        _GIVEN[found] += 1
    return found if _GIVEN[found] < 2 else f"{found}-{_GIVEN[found]}"


def asset(name):
    """The text of a script or style that lies beside this module."""
    return (resources.files("attn_utils") / name).read_text("utf8").rstrip("\n")


def as_json(data):
    """JSON that can stand inside a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def plain(value, decimals=4):
    """Nested arrays and numbers as lists and numbers of so many decimals: the same bytes on every machine.

    What is masked or not finite becomes None, a gap. Raises ValueError naming the type of anything else.
    """
    if isinstance(value, dict) and {"bdata", "dtype"} <= set(value):  # plotly packs its arrays
        array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return plain(array.reshape(_shape(value, array)), decimals)
    if np.ma.isMaskedArray(value):
        return plain(value.filled(np.nan) if value.dtype.kind == "f" else value.tolist(), decimals)
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item, decimals) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return plain(value[()], decimals)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item, decimals) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):  # no -0.0; JSON has no NaN, null is a gap
        return round(value, decimals) + 0.0 if np.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise ValueError(
        f"a value of type {type(value).__name__} cannot travel to a page. Expected arrays, numbers, texts, None, lists "
        "of them, and dicts whose keys are texts."
    )


def _shape(packed, array):
    """The shape that plotly notes beside a packed array of several axes, such as "3, 2"."""
    return tuple(int(n) for n in str(packed["shape"]).split(",")) if "shape" in packed else array.shape


def sentence(text, name):
    """The text without space around it. Raises ValueError when it is empty or no string."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name} is {text!r}, expected a sentence that states what is shown.")
    return text.strip()


def plain_sentence(text, name):
    """A sentence that is shown as it is written. Raises ValueError for TeX, which captions and alt texts cannot set."""
    found = re.search(r"\$[^$]*[\\_^{][^$]*\$|\\\(|\$[A-Za-z]\$", sentence(text, name))
    if found:
        raise ValueError(
            f"{name} holds TeX, {found.group()!r}: it is shown as it is written. Use Unicode: dₖ, √d, ×, ≤, 10⁻³."
        )
    return text.strip()
