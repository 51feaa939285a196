"""Scaled dot-product attention and its causal mask, in plain NumPy.

Shapes are written (..., n_queries, d_k): any number of leading batch and head axes.
"""

import numpy as np

from attn_utils.inputs import (
    as_floating,
    at_least_single,
    check_attention_shapes,
    check_mask,
    check_scale,
    finite_matrix,
    in_type,
    whole_number,
)
from attn_utils.weightings import softmax


def causal_mask(n_queries, n_keys=None):
    """Mask in which a token may attend to itself and to what came before it; True = may.

    n_queries  number of tokens that ask, an integer of at least 1
    n_keys     number of tokens that can be attended to; n_queries when None. Where there are more keys than
               queries, the queries are the *last* tokens, as behind a cache: query i may attend to the keys
               0 to n_keys - n_queries + i

    Returns a boolean array (n_queries, n_keys): row = query, column = key. The square one is lower triangular.
    Raises ValueError when a number is not a positive integer, or when there are more queries than keys: in causal
    attention each query brings a key of its own.

    True means what it does in PyTorch's scaled_dot_product_attention. Its is_causal=True, however, takes the queries
    for the *first* tokens (aligned upper left): the same where both numbers are equal, wrong behind a cache.
    Chapter 3 builds both by hand.
    """
    n_keys = n_queries if n_keys is None else n_keys
    fix = ", such as causal_mask(4), or causal_mask(2, 6) for 2 tokens behind 4 cached ones"
    n_queries, n_keys = whole_number(n_queries, "n_queries", fix=fix), whole_number(n_keys, "n_keys", fix=fix)
    if n_queries > n_keys:
        raise ValueError(
            f"n_queries is {n_queries} and n_keys is {n_keys}, expected at least as many keys as queries: the first "
            f"{n_queries - n_keys} would look nowhere. Count the new tokens among the keys: n_keys = cached + new."
        )
    return np.tril(np.ones((n_queries, n_keys), dtype=bool), n_keys - n_queries)  # (n_queries, n_keys)


def attention(Q, K, V, mask=None, scale=None, weighting=softmax):
    """Scaled dot-product attention: weights = weighting(scale * Q K^T), output = weights V.

    Q          (..., n_queries, d_k)  what each token asks
    K          (..., n_keys, d_k)     what each token offers to be found by
    V          (..., n_keys, d_v)     what each token passes on
    mask       boolean, broadcastable to (..., n_queries, n_keys); True where a query may look
    scale      the factor on Q K^T; 1/sqrt(d_k) when None
    weighting  a function from scores to weights over the last axis; softmax by default.
               Masked scores reach it as -inf.

    Returns (output, weights): (..., n_queries, d_v) and (..., n_queries, n_keys).
    Leading axes broadcast against each other. float32 in, float32 out; float16 is computed in float32.
    A query that may look nowhere gets weights and output of zero, never NaN.
    Raises ValueError when shapes do not fit, an input is empty or holds NaN or inf, the mask is not boolean,
    or weighting is no function that gives a finite weight for each score.

    Source: Vaswani et al. (2017), equation 1. Chapter 1 builds it by hand.
    """
    if not callable(weighting):
        raise ValueError(f"weighting is {weighting!r}, expected a function from scores to weights: softmax.")
    Q, K, V = (finite_matrix(array, name) for array, name in ((Q, "Q"), (K, "K"), (V, "V")))
    check_attention_shapes(Q, K, V)
    kinds = np.result_type(Q, K, V), np.result_type(Q, K)  # what comes in decides what goes out
    Q, K, V = at_least_single(Q), at_least_single(K), at_least_single(V)
    scale = 1 / np.sqrt(Q.shape[-1]) if scale is None else check_scale(scale)
    with np.errstate(over="ignore", invalid="ignore"):  # the message below says so
        scores = Q @ np.swapaxes(K, -1, -2) * Q.dtype.type(scale)  # (..., n_queries, n_keys)
    if not np.isfinite(scores).all():
        raise ValueError(f"scale * Q K^T overflows {scores.dtype}, expected finite scores. Use smaller Q, K or scale.")
    if mask is not None:
        scores = np.where(check_mask(mask, scores.shape), scores, scores.dtype.type(-np.inf))
    weights = as_floating(weighting(scores), "the result of weighting")  # (..., n_queries, n_keys)
    if weights.shape != scores.shape:
        raise ValueError(
            f"weighting gave the shape {np.shape(weights)} for scores {scores.shape}, expected the same shape: "
            "a weight for each score, such as softmax gives."
        )
    weights = finite_matrix(weights, "the result of weighting")
    with np.errstate(over="ignore", invalid="ignore"):  # in_type says so
        output = weights @ V  # (..., n_queries, d_v)
    return in_type(output, kinds[0], "outputs of weighting"), in_type(weights, kinds[1], "results of weighting")
