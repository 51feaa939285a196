"""The plainest task that needs attention, looking up a symbol's numbers, and one bare head that learns it."""

from functools import partial

import numpy as np

from attn_utils.gradients import attend, squared_error
from attn_utils.inputs import check_rng, real_number, whole_number
from attn_utils.training import fit

N_SYMBOLS = 32  # in all
N_SHOWN = 16  # in one example
PLAIN_AVERAGING = 1 - 1 / N_SHOWN  # the expected error of weights that are all the same


def draw_lookups(rng, size=64):
    """Draw examples: 16 of 32 symbols, each carrying 8 random numbers, and the question for the numbers of one.

    rng    numpy.random.Generator
    size   number of examples

    Returns (asked, shown, V): one-hot rows for the symbol that is asked for, (size, 1, 32), and for those that are
    shown, (size, 16, 32); what they carry, from N(0, 1), (size, 16, 8). All float32. The symbol asked for is the first
    of those shown: a head that knows no positions has no use for that. Whoever weights all alike has an expected
    squared error of 15/16.
    Raises ValueError for a size that is no whole number of at least 1, or an rng that is no Generator.
    """
    check_rng(rng)
    whole_number(size, "size")
    one_hot = np.eye(N_SYMBOLS, dtype=np.float32)
    order = rng.random((size, N_SYMBOLS)).argsort(axis=1)  # (size, 32)
    V = rng.standard_normal((size, N_SHOWN, 8), dtype=np.float32)  # (size, 16, 8)
    return one_hot[order[:, :1]], one_hot[order[:, :N_SHOWN]], V


def start_head(seed, d_k=1024, shrink=1.0):
    """One head before training: {"W_Q", "W_K"}, each (32, d_k), float32, with entries from N(0, shrink^2).

    seed     of the draw
    d_k      width of the head
    shrink   standard deviation of the entries

    A symbol is a one-hot row, so that row i of W_Q is the query of symbol i, and row j of W_K the key of symbol j.
    Raises ValueError for a width or a seed that is no whole number, or a negative shrink.
    """
    d_k, seed = whole_number(d_k, "d_k"), whole_number(seed, "seed", 0)
    shrink = real_number(shrink, "shrink", low=0)
    W_Q, W_K = shrink * np.random.default_rng(seed).normal(size=(2, N_SYMBOLS, d_k))  # (32, d_k) each
    return {"W_Q": W_Q.astype(np.float32), "W_K": W_K.astype(np.float32)}


def train_head(params, scale=None, lr=0.01, seed=0, steps=200, **options):
    """Train a head on new examples at every step: returns (params, losses), as fit() does.

    params    as from start_head, not changed
    scale     what scores are multiplied by: 1/sqrt(d_k) when None, 1 for no scale at all
    lr        learning rate of Adam
    seed      of the examples, drawn from a stream of their own: two heads with one seed meet the same ones
    steps     number of steps, with 64 examples each
    options   handed to fit(): weight_decay, on_step, betas
    """
    scale = 1 / np.sqrt(params["W_Q"].shape[1]) if scale is None else scale
    options = {"rng": np.random.default_rng([seed, 1]), "progress": False} | options
    return fit(partial(head_error, scale=scale), params, draw_lookups, steps, lr=lr, **options)


def head_error(params, asked, shown, V, scale):
    """Mean squared error of a head on examples as from draw_lookups: the loss that train_head minimizes. One number.

    params   as from start_head; differentiable in them by autograd
    scale    what scores are multiplied by
    """
    M = symbol_scores(params)  # (32, 32)
    output, _ = attend(asked @ M, shown, V, scale=scale)  # (size, 1, 8): scores x W_Q (y W_K)^T
    return squared_error(output, V[:, :1])


def symbol_scores(params):
    """Scores of all symbols with all, before any scale: W_Q W_K^T, (32, 32). Right ones stand on the diagonal."""
    return params["W_Q"] @ params["W_K"].T


def spread_of_scores(params):
    """Standard deviation of the scores of the wrong keys, those off the diagonal, before any scale. One number."""
    return float(symbol_scores(params)[~np.eye(N_SYMBOLS, dtype=bool)].std())
