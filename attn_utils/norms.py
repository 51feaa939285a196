"""Normalization of tokens: RMSNorm and LayerNorm, with and without gains, in plain NumPy.

gradients.py makes both differentiable for training; the trained models of chapters 7 and 8 bring gains of their own.
"""

import numpy as np


def rms_norm(X, gain=None, epsilon=1e-6):
    """Every token divided by the root of its mean square, then scaled: gain * x / sqrt(mean(x^2) + epsilon).

    X        (..., d)
    gain     (d,), or None for no scaling
    epsilon  keeps a token of zeros at zero

    Returns an array of the same shape and type. Source: Zhang and Sennrich (2019), equation 4.
    """
    X = X / root_mean_square(X, epsilon)
    return X if gain is None else X * gain


def layer_norm(X, gain=None, shift=None, epsilon=1e-6):
    """Every token less its mean, divided by its standard deviation, then scaled and shifted.

    X            (..., d)
    gain, shift  (d,) each, or None for none

    Returns an array of the same shape and type; a constant token becomes zero (or `shift`). Without a gain, what
    comes out is orthogonal to (1, ..., 1), so that its smallest singular value is zero where n_tokens >= d.
    Source: Ba, Kiros and Hinton (2016), equation 3.
    """
    X = rms_norm(X - np.mean(X, axis=-1, keepdims=True), gain, epsilon)
    return X if shift is None else X + shift


def root_mean_square(X, epsilon):
    """sqrt(mean(x^2) + epsilon) of every token, (..., 1)."""
    return np.sqrt(row_dot(X, X) / X.shape[-1] + float(epsilon))  # (..., 1); a Python number leaves float32 what it is


def row_dot(a, b):
    """The scalar product of each row of a with that of b, (..., 1). Short rows are not numpy.sum's strength."""
    return np.einsum("...i,...i->...", a, b)[..., None]
