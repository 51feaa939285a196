"""Softmax attention by experiment: the small library behind the book.

Importing it is quick and changes nothing: no network, no seed, no style, no silenced warning.
"""

from attn_utils.attention import attention, causal_mask, softmax
from attn_utils.claims import ledger, report
from attn_utils.explore import COLORS, draw_weights, explore, explore_3d, use_book_style
from attn_utils.glove import embed, load_glove
from attn_utils.graying import dct_graying, svd_graying
from attn_utils.install import install_missing
from attn_utils.spectra import diagnose

__version__ = "0.1.0"

__all__ = [
    "COLORS",
    "attention",
    "causal_mask",
    "dct_graying",
    "diagnose",
    "draw_weights",
    "embed",
    "explore",
    "explore_3d",
    "install_missing",
    "ledger",
    "load_glove",
    "report",
    "softmax",
    "svd_graying",
    "use_book_style",
]
