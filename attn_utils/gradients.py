"""The differentiable pieces of every training experiment, each with its gradient derived by hand.

They are primitives of autograd: a loss written with `import autograd.numpy as np` can call any of them. Derived by
hand, a gradient is faster and stays finite where exp overflows. Chapter 2 derives the softmax's. fit() trains in
float32 or float64; half precision is computed in float32 here, too, and goes back in its type (a loss: in float32).
"""

import numpy
from autograd.extend import defvjp, primitive

from attn_utils import norms, weightings
from attn_utils.inputs import at_least_single
from attn_utils.norms import row_dot
from attn_utils.weightings import count_visible


def _softmax_gradient(weights, scores, axis=-1):
    # J = diag(w) - w w^T, so J g = w * (g - <g, w>): no matrix is ever formed
    if axis in (-1, weights.ndim - 1):
        return lambda g: weights * (g - row_dot(g, weights))
    return lambda g: weights * (g - numpy.sum(g * weights, axis=axis, keepdims=True))


softmax = primitive(weightings.softmax)
softmax.__doc__ = "attn_utils.softmax with its gradient: J g = w * (g - <g, w>), derived in chapter 2."
defvjp(softmax, _softmax_gradient)


def _sink_softmax_gradient(weights, scores, sink, axis=-1):
    # the softmax's J with one more place whose value is 0: the same formula, although a row sums to less than one
    return _softmax_gradient(weights, scores, axis)


def _sink_gradient(weights, scores, sink, axis=-1):
    # d w_j / d sink = -w_j w_sink, where w_sink = 1 - sum_j w_j
    def gradient(g):
        wide = at_least_single(weights)
        missing = 1 - numpy.sum(wide, axis=axis, keepdims=True)
        step = -numpy.sum(g * wide, axis=axis, keepdims=True) * missing
        return _sum_to(step, numpy.shape(sink)).astype(weights.dtype)

    return gradient


def _sum_to(array, shape):
    """Sum over the axes along which something of this shape was broadcast."""
    if array.shape == shape:
        return array
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n < array.shape[i])
    return array.sum(axis=stretched, keepdims=True)


sink_softmax = primitive(weightings.sink_softmax)
sink_softmax.__doc__ = "attn_utils.weightings.sink_softmax with its gradient, for the sink as well."
defvjp(sink_softmax, _sink_softmax_gradient, _sink_gradient)


def softmax1(scores, axis=-1):
    """attn_utils.weightings.softmax1, differentiable by autograd."""
    return sink_softmax(scores, 0.0, axis)


def _relu_gradient(weights, scores, axis=-1, uncounted=0):
    share = 1 / count_visible(scores, axis, uncounted)
    return lambda g: g * (weights > 0) * share


relu = primitive(weightings.relu)
relu.__doc__ = "attn_utils.weightings.relu with its gradient: 1 / count where the score is positive."
defvjp(relu, _relu_gradient)


def _sigmoid_gradient(weights, scores, axis=-1, uncounted=0):
    count = count_visible(scores, axis, uncounted)
    return lambda g: g * weights * (1 - weights * count)  # the logistic function f has f' = f (1 - f)


sigmoid = primitive(weightings.sigmoid)
sigmoid.__doc__ = "attn_utils.weightings.sigmoid with its gradient: f (1 - f) / count."
defvjp(sigmoid, _sigmoid_gradient)


# The differentiable twins of weightings.WEIGHTINGS; a test asserts that none is missing.
WEIGHTINGS = {"softmax": softmax, "softmax1": softmax1, "relu": relu, "sigmoid": sigmoid}


@primitive
def masked_scores(Q, K, mask, scale):
    """scale * Q K^T, with -inf where the mask is False, in at least float32.

    The gradient is that of the unmasked scores: every weighting passes back zero where a score is -inf.
    """
    with numpy.errstate(over="ignore", invalid="ignore"):  # the weighting says so
        scores = at_least_single(Q) @ numpy.swapaxes(at_least_single(K), -1, -2)  # (..., n_queries, n_keys)
    if scale != 1:
        scores *= scale
    if mask is not None:
        numpy.copyto(scores, -numpy.inf, where=numpy.logical_not(mask))
    return scores


defvjp(
    masked_scores,
    lambda scores, Q, K, mask, scale: lambda g: _sum_to((g @ K) * _like(scale, g), Q.shape),
    lambda scores, Q, K, mask, scale: lambda g: _sum_to((numpy.swapaxes(g, -1, -2) @ Q) * _like(scale, g), K.shape),
    None,
    None,
)


def _like(number, array):
    return array.dtype.type(number)


def attend(Q, K, V, mask=None, scale=None, weighting=softmax):
    """attn_utils.attention for training: the same shapes and result, differentiable by autograd.

    Q (..., n_queries, d_k), K (..., n_keys, d_k), V (..., n_keys, d_v); mask True where a query may look;
    scale 1/sqrt(d_k) when None; weighting softmax, or another of this module's functions from scores to weights.
    Returns (output, weights).
    Inputs are not checked here, for speed: attn_utils.attention says what is wrong with a shape.
    """
    scale = 1 / numpy.sqrt(Q.shape[-1]) if scale is None else scale
    scores = masked_scores(Q, K, mask, float(scale))  # (..., n_queries, n_keys)
    weights = weighting(scores)  # (..., n_queries, n_keys)
    output, kind = mix(weights, V), numpy.result_type(Q.dtype, K.dtype)  # (..., n_queries, d_v)
    return _in_type(output, numpy.result_type(kind, V.dtype)), _in_type(weights, kind)


def _in_type(array, kind):
    """The array in this type where that is half precision, computed in float32."""
    return array.astype(kind) if kind == numpy.float16 else array


@primitive
def mix(weights, V):
    """weights V, attention's output: (..., n_queries, n_keys) and (..., n_keys, d_v) give (..., n_queries, d_v)."""
    return weights @ V


defvjp(
    mix,
    lambda output, weights, V: lambda g: _sum_to(g @ turned(V), weights.shape),
    lambda output, weights, V: lambda g: _sum_to(turned(weights) @ g, V.shape),
)


def turned(array):
    return numpy.swapaxes(array, -1, -2)


@primitive
def rms_norm(X, epsilon=1e-6):
    """attn_utils.norms.rms_norm without a gain, which the projections that follow have: X (..., d), same shape."""
    return norms.rms_norm(X, epsilon=epsilon)


def _rms_norm_gradient(Y, X, epsilon=1e-6):
    # y = x / r with r^2 = mean(x^2) + epsilon: dy = (dx - y mean(y dx)) / r, and this matrix is symmetric
    r = norms.root_mean_square(X, epsilon)
    return lambda g: (g - Y * (row_dot(g, Y) / X.shape[-1])) / r


defvjp(rms_norm, _rms_norm_gradient)


def layer_norm(X, epsilon=1e-6):
    """attn_utils.norms.layer_norm without gain and shift: the rms_norm of the centered token. X (..., d)."""
    return rms_norm(_center_features(X), epsilon)


@primitive
def _center_features(X):
    return X - numpy.mean(X, axis=-1, keepdims=True)


NORMS = {"rms_norm": rms_norm, "layer_norm": layer_norm}


@primitive
def center_tokens(X):
    """attn_utils.spectra.center_tokens for training: X (..., n_tokens, d) less its mean token."""
    return X - numpy.mean(X, axis=-2, keepdims=True)


# the matrix that takes a mean out is symmetric: the gradient is centered in the same way
defvjp(_center_features, lambda Y, X: lambda g: g - numpy.mean(g, axis=-1, keepdims=True))
defvjp(center_tokens, lambda Y, X: lambda g: g - numpy.mean(g, axis=-2, keepdims=True))


@primitive
def mean_token(X):
    """The mean over tokens: (..., n_tokens, d) gives (..., d)."""
    return numpy.mean(X, axis=-2)


defvjp(mean_token, lambda Y, X: lambda g: numpy.repeat(g[..., None, :] / X.shape[-2], X.shape[-2], axis=-2))


@primitive
def linear(X, W, b):
    """X W + b for every token: X (*models, ..., d), W (*models, d, k), b (*models, 1, k) give (*models, ..., k)."""
    Y = _as_rows(X, W) @ W  # (*models, n_rows, k)
    Y += b
    return Y.reshape(*X.shape[:-1], W.shape[-1])


def _as_rows(X, W):
    """All tokens of a model one below the other, (*models, n_rows, features)."""
    return X.reshape(*W.shape[:-2], -1, X.shape[-1])


defvjp(
    linear,
    lambda Y, X, W, b: lambda g: (_as_rows(g, W) @ turned(W)).reshape(X.shape),
    lambda Y, X, W, b: lambda g: turned(_as_rows(X, W)) @ _as_rows(g, W),
    lambda Y, X, W, b: lambda g: _row_sum(_as_rows(g, W)),
)


def _row_sum(rows):
    """The sum of all rows, (..., 1, features), as a matrix product, which is several times faster than numpy.sum."""
    return numpy.ones((1, rows.shape[-2]), rows.dtype) @ rows


_GELU = 0.7978845608028654  # sqrt(2/pi)


@primitive
def gelu(X):
    """GELU in its form with tanh: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, number by number.

    Source: Hendrycks and Gimpel (2016).
    """
    wide = at_least_single(X)
    with numpy.errstate(over="ignore"):
        return (wide * _half_plus_half_tanh(wide * wide, wide)).astype(X.dtype, copy=False)


def _half_plus_half_tanh(squares, X):
    t = squares * (0.044715 * _GELU)  # may be inf: its tanh is one
    t += _GELU
    t *= X
    numpy.tanh(t, out=t)
    t *= 0.5
    t += 0.5
    return t


def _gelu_gradient(Y_given, X_given):
    # with p = (1 + tanh u) / 2, the derivative of x p is p + x p', and p' = 2 p (1 - p) u'
    def gradient(g):
        X, Y, kind = at_least_single(X_given), at_least_single(Y_given), X_given.dtype
        squares = X * X
        p = _half_plus_half_tanh(squares, X)
        slope = squares * (6 * 0.044715 * _GELU)
        slope += 2 * _GELU  # 2 u'
        slope *= X - Y  # x (1 - p)
        slope += 1
        slope *= p
        slope *= g
        return slope.astype(kind, copy=False)

    return gradient


defvjp(gelu, _gelu_gradient)


def feed_forward(X, W_1, b_1, W_2, b_2):
    """The feed-forward part of a layer: gelu(X W_1 + b_1) W_2 + b_2, for every token by itself.

    X (*models, ..., n_tokens, d); W_1 (*models, d, d_ff), b_1 (*models, 1, d_ff), W_2 (*models, d_ff, d),
    b_2 (*models, 1, d). Returns the shape of X. Source: Vaswani et al. (2017), equation 2, with GELU for ReLU.
    """
    return linear(gelu(linear(X, W_1, b_1)), W_2, b_2)


@primitive
def cross_entropy(logits, targets):
    """Mean of -log softmax(logits)[target].

    logits (..., n_classes); targets, whole numbers of shape (...). Returns one number.
    Raises ValueError when the targets do not fit the logits or are not whole numbers from 0 to n_classes - 1.
    """
    _check_targets(numpy.asarray(targets), logits)
    logits = at_least_single(logits)
    shifted = logits - numpy.max(logits, axis=-1, keepdims=True)
    log_total = numpy.log(numpy.sum(numpy.exp(shifted), axis=-1))  # (...)
    chosen = numpy.take_along_axis(shifted, numpy.asarray(targets)[..., None], axis=-1)[..., 0]  # (...)
    return numpy.mean(log_total - chosen)


def _check_targets(targets, logits):
    if targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets have shape {targets.shape}, expected {logits.shape[:-1]}: one a row.")
    if targets.dtype.kind not in "iu":
        raise ValueError(f"targets have type {targets.dtype}, expected whole numbers: the place of the right class.")
    if targets.size and not (0 <= targets.min() and targets.max() < logits.shape[-1]):
        raise ValueError(
            f"targets go from {targets.min()} to {targets.max()}, expected 0 to {logits.shape[-1] - 1}, one a class."
        )


def _cross_entropy_gradient(loss, logits, targets):
    def gradient(g):
        step = weightings.softmax(at_least_single(logits))  # d loss / d logits = (softmax - one-hot) / n
        index = numpy.asarray(targets)[..., None]
        numpy.put_along_axis(step, index, numpy.take_along_axis(step, index, axis=-1) - 1, axis=-1)
        return (step * (g / index.size).astype(step.dtype)).astype(logits.dtype, copy=False)

    return gradient


defvjp(cross_entropy, _cross_entropy_gradient, None)


@primitive
def squared_error(output, target):
    """Mean of (output - target)^2 over all numbers of two arrays of the same shape. Returns one number."""
    if numpy.shape(output) != numpy.shape(target):
        raise ValueError(
            f"output has shape {numpy.shape(output)} and target {numpy.shape(target)}, expected the same. "
            "A column (n, 1) and a vector (n,) would be compared each with each."
        )
    return numpy.mean(_difference(output, target) ** 2)


def _difference(output, target):
    return at_least_single(numpy.asarray(output)) - at_least_single(numpy.asarray(target))


def _squared_error_gradient(loss, output, target):
    def gradient(g):
        difference = _difference(output, target)
        factor = (2 * g / output.size).astype(numpy.result_type(output, numpy.float32))
        return _in_type(difference * factor, output.dtype)

    return gradient


defvjp(squared_error, _squared_error_gradient, None)
