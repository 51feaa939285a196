"""Heads that exist as queries and keys only: their weights are made block by block, and never all at once."""

import numpy as np

from attn_utils.diagnosis.arrays import is_array, shape_of, to_numpy
from attn_utils.inputs import check_scale

CELLS = 4_000_000  # weights that exist at a time


def read_pairs(queries, keys, causal, scale, look, progress):
    """Hand every head to look(pairs, causal, how many, progress), and return what that makes of them."""
    Q, K = (_four_axes(array, name) for array, name in ((queries, "queries"), (keys, "keys")))
    n_layers, n_heads, n, d = Q.shape
    if len(Q) != len(K) or n_heads % K.shape[1] or K.shape[3] != d:
        raise ValueError(
            f"queries have shape {shape_of(queries)} and keys {shape_of(keys)}, expected the same layers and width, "
            "and as many heads, or fewer of the keys that several queries share."
        )
    if causal and K.shape[2] < n:
        raise ValueError(f"causal weights need a key for each query, given {n} queries and {K.shape[2]} keys.")
    scale = 1 / np.sqrt(d) if scale is None else float(check_scale(scale))
    share = n_heads // K.shape[1]
    pairs = (
        (i + 1, h, _blocks(Q.head(i, h) * np.float32(scale), K.head(i, h // share), causal), (n, K.shape[2]))
        for i in range(n_layers)
        for h in range(n_heads)
    )
    return look(pairs, causal, n_layers * n_heads, progress)


class _four_axes:
    """Queries or keys as (layers, heads, n, d), converted head by head."""

    def __init__(self, array, name):
        self.array = array if is_array(array) else to_numpy(array, name)
        self.name = name
        shape = shape_of(self.array)
        if not 2 <= len(shape) <= 4 or 0 in shape:
            raise ValueError(
                f"{name} have shape {shape}, expected (T, d_head), (heads, T, d_head) or (layers, heads, T, d_head). "
                "Take one sequence out of a batch first: queries[0]."
            )
        self.lead = len(shape) - 2
        self.shape = (1,) * (4 - len(shape)) + shape

    def __len__(self):
        return self.shape[0]

    def head(self, layer, head):
        at = ((), (head,), (layer, head))[self.lead]
        found = to_numpy(self.array[at] if at else self.array, self.name).astype(np.float32, copy=False)
        if not np.isfinite(found).all():
            raise ValueError(f"{self.name} of layer {layer + 1} and head {head + 1} contain NaN or inf.")
        return found


def _blocks(Q, K, causal):
    """A function that gives (first row, weights (b, n_keys)) anew at each call."""
    step = max(1, CELLS // len(K))
    ahead = len(K) - len(Q)

    def blocks():
        for start in range(0, len(Q), step):
            stop = min(start + step, len(Q))
            seen = stop + ahead if causal else len(K)
            scores = Q[start:stop] @ K[:seen].T  # (b, seen)
            if causal:
                late = np.arange(start + ahead, stop + ahead)[:, None] < np.arange(start + ahead, seen)
                scores[:, start + ahead :][late] = -np.inf
            scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            if seen < len(K):
                scores = np.pad(scores, ((0, 0), (0, len(K) - seen)))
            yield start, scores

    return blocks
