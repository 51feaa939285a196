"""Weights as the files have them, turned into the matrices of the equations; read again only when a file changes."""

import os
from typing import NamedTuple


def as_equations(name, array, n_heads):
    """The file's (out, in) matrices as the equations have them, X W, and split into heads; nothing is copied."""
    kind = name.split(".")[-1]
    if kind in ("W_Q", "W_K", "W_V"):
        array = array.reshape(n_heads, -1, array.shape[1]).swapaxes(1, 2)  # (n_heads, d, d_head)
    elif kind in ("b_Q", "b_K", "b_V"):
        array = array.reshape(n_heads, 1, -1)  # (n_heads, 1, d_head)
    elif kind == "W_O":
        array = array.T.reshape(n_heads, -1, array.shape[0])  # (n_heads, d_head, d)
    elif kind in ("W_1", "W_2", "W_gate"):
        array = array.T  # (in, out)
    array.flags.writeable = False  # later loads share it
    return array


class _File(NamedTuple):
    """A file as a key of the cache of what was read: another file under the same name is read anew."""

    path: str
    changed: int


def identity(path):
    return _File(os.fspath(path), path.stat().st_mtime_ns)
