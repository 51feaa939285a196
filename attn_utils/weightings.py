"""From scores to weights: the softmax and its alternatives.

A *score* is a number before the weighting, a *weight* one after it. Each function works along one axis, lets a
score of -inf get no weight, and computes half precision in float32, because a sum of many small float16 numbers
stops growing long before it is complete.
"""

import numpy as np

from attn_utils.inputs import as_floating, at_least_single, check_axis, whole_number


def softmax(scores, axis=-1):
    """Turn scores into weights that are positive and sum to one along `axis`.

    scores  array of any shape; -inf marks a place that must get no weight
    axis    the axis to normalize over

    Returns an array of the same shape and floating-point type. Integers become float64.
    Where every score along the axis is -inf, the weights are all zero: nothing may be
    looked at, so nothing is (PyTorch's softmax gives NaN there).
    Raises ValueError for an empty axis or none of that number, NaN or +inf.

    Source: Vaswani et al. (2017), section 3.2.1. Chapter 1 builds it by hand.
    """
    scores, highest, kind = _check_scores(scores, axis)
    highest = np.where(np.isneginf(highest), 0, highest)  # a fully masked row: avoid -inf - -inf
    with np.errstate(over="ignore"):  # a difference too large for the type is -inf: its weight is 0
        exps = np.exp(scores - highest)  # the largest exponent is 0: exp cannot overflow
    total = np.sum(exps, axis=axis, keepdims=True)
    return (exps / np.where(total == 0, 1, total)).astype(kind, copy=False)


def sink_softmax(scores, sink, axis=-1):
    """Softmax with one more place to put weight, which belongs to no token: e^s_j / (e^sink + sum_k e^s_k).

    scores  array of any shape; -inf marks a place that must get no weight
    sink    the score of the extra place: a number, or an array that broadcasts against the scores and
            has length 1 along `axis` (one per head, say)
    axis    the axis to normalize over

    Returns an array of the same shape and floating-point type: a row sums to less than one, and what is
    missing is the weight of the sink. Where every score is -inf, the weights are all zero.
    Raises ValueError for an empty axis or none of that number, NaN or +inf in the scores, or a sink that is not
    finite or does not fit.

    Source: the learned sink logit of gpt-oss (OpenAI, 2025). Chapter 6 derives it from a key without a token.
    """
    scores, top, kind = _check_scores(scores, axis)
    sink = _check_sink(sink, scores, top.shape, axis)
    top = np.maximum(top, sink)  # the largest exponent is 0
    with np.errstate(over="ignore"):  # a difference too large for the type is -inf: its weight is 0
        terms = np.exp(scores - top)
        weights = terms / (np.sum(terms, axis, keepdims=True) + np.exp(sink - top))
    return weights.astype(kind, copy=False)


def softmax1(scores, axis=-1):
    """Softmax with one added to the denominator: e^s_j / (1 + sum_k e^s_k). Looking nowhere becomes possible.

    scores, axis   as for sink_softmax, whose sink is 0 here

    Returns an array of the same shape and floating-point type; a row sums to less than one.
    Raises ValueError for an empty axis or none of that number, NaN or +inf.

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
    Raises ValueError for an empty axis or none of that number, NaN or +inf, or an `uncounted` below 0.

    Source: the code of Ran-Milo (2026), which counts the visible tokens other than BOS.
    """
    scores, _, kind = _check_scores(scores, axis)
    return (np.maximum(scores, 0) / count_visible(scores, axis, uncounted)).astype(kind, copy=False)


def sigmoid(scores, axis=-1, uncounted=0):
    """The logistic function of each score, divided by how many places count: 1 / (1 + e^-s_j) / count.

    scores, axis, uncounted   as for relu

    Returns an array of the same shape and floating-point type; rows sum to anything from 0 to 1 (a little
    more where places are uncounted). Raises ValueError as relu does.

    Source: "sigmoid over length" of chapter 6; Gu et al. (2024) train a language model with a sigmoid.
    """
    scores, _, kind = _check_scores(scores, axis)
    exps = np.exp(-np.abs(scores))  # never above 1: cannot overflow
    weights = np.where(scores >= 0, 1, exps) / (1 + exps) / count_visible(scores, axis, uncounted)
    return weights.astype(kind, copy=False)


# Every weighting that needs scores alone. Tests and checks go through this list, so that a new one is tried at once.
WEIGHTINGS = {"softmax": softmax, "softmax1": softmax1, "relu": relu, "sigmoid": sigmoid}


def count_visible(scores, axis=-1, uncounted=0):
    """How many places count for each query: scores that are not -inf, less `uncounted`, and at least 1.

    Returns an array of the scores' type (float32 for float16, which ends at 65,504), with length 1 along `axis`.
    """
    whole_number(uncounted, "uncounted", least=0, fix=" places")
    seen = np.sum(~np.isneginf(scores), axis=axis, keepdims=True)
    return np.maximum(seen - uncounted, 1).astype(np.promote_types(scores.dtype, np.float32))


def _check_scores(scores, axis):
    """(scores in at least float32, their maximum, the type to hand back), checked for NaN, +inf, an empty axis."""
    scores = as_floating(scores, "scores")
    if scores.ndim > 0:
        check_axis(axis, scores.shape)
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
    return at_least_single(scores), at_least_single(top), scores.dtype


def _check_sink(sink, scores, one_per_row, axis):
    """The sink's score in the type of the scores, checked to be finite and to fit."""
    with np.errstate(over="ignore"):  # too large for the type: the message below says so
        sink = as_floating(sink, "sink").astype(scores.dtype)
    try:
        fits = np.broadcast_shapes(sink.shape, one_per_row) == one_per_row
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"sink has shape {sink.shape}, expected one that broadcasts to the scores {scores.shape} "
            f"and has length 1 along axis {axis}. For one number per head use (heads, 1, 1)."
        )
    if not np.isfinite(sink).all():
        raise ValueError(
            f"sink contains NaN or inf in {scores.dtype}, expected finite scores. Use softmax for no sink at all."
        )
    return sink
