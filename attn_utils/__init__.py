"""Softmax attention by experiment: the small library behind the book.

Importing it is quick and changes nothing: no network, no seed, no style, no silenced warning. What it exports is
loaded when it is first asked for, so that the set-up cell can call install_missing() where NumPy is not there yet.
"""

from importlib import import_module
from importlib.util import find_spec

__version__ = "0.1.0"

_ROOM_OF = {
    "COLORS": "figures",
    "attention": "scaled_dot_product",
    "bind": "figures",
    "causal_mask": "scaled_dot_product",
    "dct_graying": "graying",
    "diagnose": "diagnosis",
    "draw_weights": "figures",
    "embed": "glove",
    "explore": "explorations",
    "explore_3d": "explorations",
    "figure": "figures",
    "grid": "sweeps",
    "install_missing": "install",
    "keep": "full_scale",
    "lab": "labs",
    "ledger": "claims",
    "load_glove": "glove",
    "mean_interval": "intervals",
    "proportion_interval": "intervals",
    "report": "claims",
    "say": "figures",
    "softmax": "weightings",
    "stored": "full_scale",
    "svd_graying": "graying",
    "sweep": "sweeps",
    "table": "figures",
    "use_book_style": "figures",
}

__all__ = sorted(_ROOM_OF)


def __getattr__(name):
    """Import an exported name, or a room such as attn_utils.spectra, at its first use (PEP 562)."""
    if name in _ROOM_OF:
        globals()[name] = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
        return globals()[name]
    if name.isidentifier() and not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_ROOM_OF})
