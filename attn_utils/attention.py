"""Softmax, masks and scaled dot-product attention, in plain NumPy.

Shapes are written (..., n_queries, d_k): any number of leading batch and head axes.
A *score* is a number before the softmax, a *weight* one after it.
"""

import numpy as np


def softmax(scores, axis=-1):
    """Turn scores into weights that are positive and sum to one along `axis`.

    scores  array of any shape; -inf marks a place that must get no weight
    axis    the axis to normalise over

    Returns an array of the same shape and floating-point type. Integers become float64.
    Where every score along the axis is -inf, the weights are all zero: nothing may be
    looked at, so nothing is (PyTorch's softmax gives NaN there).
    Raises ValueError for an empty axis, NaN or +inf.

    Source: Vaswani et al. (2017), section 3.2.1. Chapter 1 builds it by hand.
    """
    scores, highest = _scores(scores, axis)
    highest = np.where(np.isneginf(highest), 0, highest)  # a fully masked row: avoid -inf - -inf
    with np.errstate(over="ignore"):  # a difference too large for float16 or float32 is -inf: its weight is 0
        exps = np.exp(scores - highest)  # the largest exponent is 0: exp cannot overflow
    total = np.sum(exps, axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)


def causal_mask(n):
    """Mask in which token i may look at tokens 0 to i: lower triangular, True = may look.

    n   number of tokens, an integer of at least 1

    Returns a boolean array (n, n): row = query, column = key.
    Raises ValueError when n is not a positive integer.
    The convention is that of PyTorch's scaled_dot_product_attention. Chapter 3 builds it by hand.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n is {n!r}, expected a positive whole number of tokens, such as causal_mask(4).")
    return np.tril(np.ones((n, n), dtype=bool))  # (n, n)


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
    Leading axes broadcast against each other. float32 in, float32 out.
    A query that may look nowhere gets weights and output of zero, never NaN.
    Raises ValueError when shapes do not fit, an input is empty or holds NaN or inf,
    or the mask is not boolean.

    Source: Vaswani et al. (2017), equation 1. Chapter 1 builds it by hand.
    """
    Q, K, V = (_finite(array, name) for array, name in ((Q, "Q"), (K, "K"), (V, "V")))
    _check_shapes(Q, K, V)
    scale = 1 / np.sqrt(Q.shape[-1]) if scale is None else _check_scale(scale)
    scores = Q @ np.swapaxes(K, -1, -2) * Q.dtype.type(scale)  # (..., n_queries, n_keys)
    if not np.isfinite(scores).all():
        raise ValueError(f"scale * Q K^T overflows {scores.dtype}. Use float64, or smaller inputs.")
    if mask is not None:
        scores = np.where(_check_mask(mask, scores.shape), scores, scores.dtype.type(-np.inf))
    weights = weighting(scores)  # (..., n_queries, n_keys)
    return weights @ V, weights


def _floating(array, name):
    """The input as a floating-point array; whole numbers and booleans become float64."""
    array = np.asarray(array)
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(f"{name} has type {array.dtype}, expected real numbers. Convert it to a float array first.")
    return array


def _finite(array, name):
    """The input as a floating-point array, checked to be a non-empty matrix (or stack) without NaN or inf."""
    array = _floating(array, name)
    if array.ndim < 2:
        raise ValueError(
            f"{name} has shape {array.shape}, expected (..., n_tokens, features). "
            f"A single token is a matrix with one row: {name}[None, :]."
        )
    if array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape}: it is empty. Attention needs at least one token and feature."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or inf, expected finite numbers. Look for where they arise upstream.")
    return array


def _check_shapes(Q, K, V):
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(
            f"Q has d_k = {Q.shape[-1]} and K has d_k = {K.shape[-1]} (shapes {Q.shape} and {K.shape}), "
            "expected the same. Use projections W_Q and W_K of the same width."
        )
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"K has {K.shape[-2]} keys and V has {V.shape[-2]} values (shapes {K.shape} and {V.shape}), "
            "expected one value a key. Is one of them transposed?"
        )
    try:
        np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    except ValueError:
        raise ValueError(
            f"the leading axes of Q {Q.shape}, K {K.shape} and V {V.shape} do not broadcast, "
            "expected equal batch and head axes, or 1. Reshape them to (batch, heads, n_tokens, features)."
        ) from None


def _check_scale(scale):
    scale = np.asarray(scale)
    if scale.ndim or scale.dtype.kind not in "iuf" or not np.isfinite(scale):
        raise ValueError(f"scale is {scale!r}, expected one finite number, such as 1 / np.sqrt(d_k).")
    return scale


def _check_mask(mask, shape):
    """The mask as a boolean array that broadcasts to the shape of the scores."""
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(
            f"mask has type {mask.dtype}, expected bool with True where a query may look. "
            "For a mask of 0 and 1 use mask.astype(bool); an additive mask of 0 and -inf is mask == 0."
        )
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask has shape {mask.shape}, expected one that broadcasts to the scores {shape} "
            "= (..., n_queries, n_keys)."
        )
    return mask


# ------------------------------------------------ alternatives to the softmax (chapter 6)


def sink_softmax(scores, sink, axis=-1):
    """Softmax with one more place to put weight, which belongs to no token: e^s_j / (e^sink + sum_k e^s_k).

    scores  array of any shape; -inf marks a place that must get no weight
    sink    the score of the extra place: a number, or an array that broadcasts against the scores and
            has length 1 along `axis` (one for each head, say)
    axis    the axis to normalise over

    Returns an array of the same shape and floating-point type: a row sums to less than one, and what is
    missing is the weight of the sink. Where every score is -inf, the weights are all zero.
    Raises ValueError for an empty axis, NaN or +inf in the scores, or a sink that is not finite or does not fit.

    Source: the learned sink logit of gpt-oss (OpenAI, 2025). Chapter 6 derives it from a key without a token.
    """
    scores, top = _scores(scores, axis)
    sink = _check_sink(sink, scores, top.shape, axis)
    top = np.maximum(top, sink)  # the largest exponent is 0
    with np.errstate(over="ignore"):  # a difference too large for the type is -inf: its weight is 0
        terms = np.exp(scores - top)
        return terms / (np.sum(terms, axis, keepdims=True) + np.exp(sink - top))


def softmax1(scores, axis=-1):
    """Softmax with one added to the denominator: e^s_j / (1 + sum_k e^s_k). Looking nowhere becomes possible.

    scores, axis   as for sink_softmax, whose sink is 0 here

    Returns an array of the same shape and floating-point type; a row sums to less than one.
    Raises ValueError for an empty axis, NaN or +inf.

    Source: Miller (2023). The same as one more key and value of zeros, as chapter 6 shows.
    """
    return sink_softmax(scores, 0.0, axis)


def relu(scores, axis=-1, uncounted=0):
    """The positive part of each score, divided by how many places count: max(s_j, 0) / count.

    scores     array of any shape; -inf marks a place that must get no weight
    axis       the axis of the keys
    uncounted  how many of the places that may be looked at do not count, such as 1 for a BOS token

    The count is the number of scores that are not -inf, less `uncounted`, and at least 1.
    Returns an array of the same shape and floating-point type; rows sum to anything from 0 up.
    Raises ValueError for an empty axis, NaN or +inf, or an `uncounted` below 0.

    Source: the code of Ran-Milo (2026), which counts the visible tokens other than BOS.
    """
    scores, _ = _scores(scores, axis)
    return np.maximum(scores, 0) / _count(scores, axis, uncounted)


def sigmoid(scores, axis=-1, uncounted=0):
    """The logistic function of each score, divided by how many places count: 1 / (1 + e^-s_j) / count.

    scores, axis, uncounted   as for relu

    Returns an array of the same shape and floating-point type; rows sum to anything from 0 to 1 (a little
    more where places are uncounted). Raises ValueError as relu does.

    Source: "sigmoid over length" of chapter 6; Gu et al. (2024) train a language model with a sigmoid.
    """
    scores, _ = _scores(scores, axis)
    exps = np.exp(-np.abs(scores))  # never above 1: cannot overflow
    return np.where(scores >= 0, 1, exps) / (1 + exps) / _count(scores, axis, uncounted)


def _scores(scores, axis):
    """The scores as a floating-point array and their maximum, checked for NaN, +inf and an empty axis."""
    scores = _floating(scores, "scores")
    if scores.ndim == 0 or scores.shape[axis] == 0:
        raise ValueError(
            f"scores have shape {scores.shape}: weights need at least one score along axis {axis}. "
            "Pass a non-empty array."
        )
    top = np.max(scores, axis, keepdims=True)
    if not (top < np.inf).all():  # False for NaN, too
        raise ValueError(
            "scores contain NaN or +inf, expected finite numbers (or -inf for a masked place). "
            "Check the input for an overflow or a division by zero."
        )
    return scores, top


def _count(scores, axis, uncounted):
    """How many places count for each query, of the scores' type, with the axis kept."""
    if isinstance(uncounted, bool) or not isinstance(uncounted, (int, np.integer)) or uncounted < 0:
        raise ValueError(f"uncounted is {uncounted!r}, expected a whole number of places, 0 or more.")
    seen = np.sum(~np.isneginf(scores), axis=axis, keepdims=True)
    return np.maximum(seen - uncounted, 1).astype(scores.dtype)


def _check_sink(sink, scores, one_a_row, axis):
    """The sink's score in the type of the scores, checked to be finite and to fit."""
    sink = np.asarray(sink).astype(scores.dtype)
    try:
        fits = np.broadcast_shapes(sink.shape, one_a_row) == one_a_row
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"sink has shape {sink.shape}, expected one that broadcasts to the scores {scores.shape} "
            f"and has length 1 along axis {axis}. For a number a head use (heads, 1, 1)."
        )
    if not np.isfinite(sink).all():
        raise ValueError("sink contains NaN or inf, expected finite scores. Use softmax for no sink at all.")
    return sink
