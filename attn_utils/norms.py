"""Normalization of tokens: RMSNorm and LayerNorm, with and without gains, in plain NumPy.

gradients.py makes both differentiable for training; the trained models of chapters 7 and 8 bring gains of their own.
"""

import numpy as np

from attn_utils.inputs import as_floating, at_least_single, in_type, real_number


@np.errstate(over="ignore", invalid="ignore")  # _handed_back says so
def rms_norm(X, gain=None, epsilon=1e-6):
    """Every token divided by the root of its mean square, then scaled: gain * x / sqrt(mean(x^2) + epsilon).

    X        (..., d)
    gain     (d,), or None for no scaling
    epsilon  keeps a token of zeros at zero; a number of at least 0

    Returns an array of the same shape and floating-point type (float16 is computed in float32); NaN stays NaN.
    Raises ValueError for tokens without features, a gain of another shape, a negative epsilon, or what would overflow.
    Source: Zhang and Sennrich (2019), equation 4.
    """
    X, kind = _tokens(X)
    Y = X / root_mean_square(X, epsilon)
    return _handed_back(Y if gain is None else Y * _per_feature(gain, "gain", X), X, kind)


@np.errstate(over="ignore", invalid="ignore")
def layer_norm(X, gain=None, shift=None, epsilon=1e-6):
    """Every token less its mean, divided by its standard deviation, then scaled and shifted.

    X            (..., d)
    gain, shift  (d,) each, or None for none
    epsilon      keeps a constant token at zero; a number of at least 0

    Returns an array of the same shape and floating-point type, as rms_norm does; a constant token becomes zero (or
    `shift`). Without a gain, what comes out is orthogonal to (1, ..., 1), so that its smallest singular value is zero
    where n_tokens >= d.
    Raises ValueError as rms_norm does. Source: Ba, Kiros and Hinton (2016), equation 3.
    """
    X, kind = _tokens(X)
    Y = rms_norm(X - np.mean(X, axis=-1, keepdims=True), gain, epsilon)
    return _handed_back(Y if shift is None else Y + _per_feature(shift, "shift", X), X, kind)


def root_mean_square(X, epsilon):
    """sqrt(mean(x^2) + epsilon) of every token, (..., 1)."""
    epsilon = float(real_number(epsilon, "epsilon", low=0, fix=", such as 1e-6"))  # leaves float32 what it is
    r = np.sqrt(row_dot(X, X) / X.shape[-1] + epsilon)  # (..., 1)
    if np.isinf(r).any():  # the squares are too large for the type, the root is not
        top = np.max(np.abs(X), axis=-1, keepdims=True)
        scaled = X / np.where(top == 0, 1, top)
        r = np.where(np.isinf(r), top * np.sqrt(row_dot(scaled, scaled) / X.shape[-1]), r)
    return r


def row_dot(a, b):
    """The scalar product of each row of a with that of b, (..., 1). Short rows are not numpy.sum's strength."""
    return np.einsum("...i,...i->...", a, b)[..., None]


def _tokens(X):
    """(tokens in at least float32, the type to hand back), checked to have features."""
    X = as_floating(X, "X")
    if X.ndim == 0 or X.shape[-1] == 0:
        raise ValueError(f"X has shape {X.shape}, expected (..., d) with d >= 1. A single token is a vector.")
    return at_least_single(X), X.dtype


def _handed_back(Y, X, kind):
    """Y in the type of what came in, which must hold what came of finite tokens."""
    return in_type(Y, kind, "the normalized tokens") if np.isfinite(X).all() else Y.astype(kind, copy=False)


def _per_feature(values, name, X):
    """A gain or a shift, checked to have one finite number for each feature."""
    values = as_floating(values, name)
    if values.shape != X.shape[-1:]:
        raise ValueError(f"{name} has shape {values.shape}, expected {X.shape[-1:]}: one number for each feature of X.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or inf, expected finite numbers. Look for where they arise.")
    return values
