"""What an array, a mask, a scale or a count must be: checks that say what was given, what is expected, and the fix.

Every other room calls these, so that the same mistake gets the same words everywhere.
"""

import numpy as np


def as_floating(array, name):
    """The input as a floating-point array; whole numbers and booleans become float64.

    Raises ValueError for text, objects, complex numbers, rows of several lengths, and masked arrays with something
    masked, which would be counted all the same; `name` is how the message calls the input.
    """
    if _is_masked(array):
        raise ValueError(f"{name} is a masked array, expected a plain one. Say what stands there: {name}.filled(0).")
    try:
        array = np.asarray(array)
    except ValueError:
        raise ValueError(
            f"{name} has rows of several lengths, expected an array. Pad the short ones, and mask what is padded."
        ) from None
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(f"{name} has type {array.dtype}, expected real numbers. Convert it to a float array first.")
    return array


def _is_masked(array):
    """Whether something is masked in an array, or in one of a list of them, as of one for each head."""
    return any(map(_is_masked, array)) if isinstance(array, (list, tuple)) else np.ma.is_masked(array)


def finite_matrix(array, name):
    """The input as a floating-point array, checked to be a non-empty matrix, or stack of them, without NaN or inf.

    array  (..., n_tokens, features). Raises ValueError, calling the input `name`, where it is anything else.
    """
    array = as_floating(array, name)
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


def at_least_single(X):
    """float16 as float32, other types unchanged: half precision is too coarse to sum in, and LAPACK has none."""
    return X.astype(np.float32) if X.dtype == np.float16 else X


def for_lapack(X):
    """float16 as float32 and long double as float64, since LAPACK has neither; other types unchanged."""
    return X.astype(np.float64) if X.dtype.itemsize > 8 else at_least_single(X)


def unit_scale(X):
    """(X, in at least float32, with every matrix divided by a power of two; the exponents of these, (..., 1, 1)).

    Nothing is rounded, and no square or sum overflows or vanishes: the largest entry is from 1/2 to 1.
    """
    X = at_least_single(X)
    exponent = np.frexp(np.abs(X).max((-2, -1), keepdims=True))[1]
    return np.ldexp(X, -exponent), exponent


def in_type(result, kind, what):
    """The result in the type of what came in. Raises ValueError, calling it `what`, where that cannot hold it."""
    with np.errstate(over="ignore"):  # the message says so
        result = result.astype(kind, copy=False)
    if not np.isfinite(result).all():
        raise ValueError(f"{what} overflow {kind}, expected finite numbers. Use a wider type, or smaller inputs.")
    return result


def restored(work, exponent, kind, what):
    """What came of matrices at unit_scale, back at their own scale and in the type of what came in: see in_type."""
    with np.errstate(over="ignore"):  # in_type says so
        result = np.ldexp(work.astype(np.promote_types(work.dtype, kind), copy=False), exponent)
    return in_type(result, kind, what)


def noise_floor(X, values):
    """At most how large the singular values are that rounding alone leaves of a matrix of lower rank, (..., 1).

    X (..., m, n), values (..., min(m, n)), in the type of the decomposition. It is s_1 max(m, n) epsilon, as in
    numpy.linalg.matrix_rank, with the epsilon of the type of X. float16 is decomposed in float32, so that only its
    entries are rounded in float16: by at most half an epsilon each, all together half an epsilon of their norm.
    """
    rounding = values[..., :1] * (max(X.shape[-2:]) * float(np.finfo(values.dtype).eps))
    if X.dtype != np.float16:
        return rounding
    return rounding + np.linalg.norm(values, axis=-1, keepdims=True) * (float(np.finfo(X.dtype).eps) / 2)


def check_axis(axis, shape):
    """Stop unless axis is the number of one axis of an array of this shape."""
    if not is_whole(axis, -len(shape)) or axis >= len(shape):
        raise ValueError(
            f"axis is {axis!r}, expected the whole number of one axis, from {-len(shape)} to {len(shape) - 1} "
            f"for the shape {shape}."
        )


def check_attention_shapes(Q, K, V):
    """Stop where queries, keys and values do not fit each other: (..., n_queries, d_k), (..., n_keys, d_k or d_v)."""
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(
            f"Q has d_k = {Q.shape[-1]} and K has d_k = {K.shape[-1]} (shapes {Q.shape} and {K.shape}), "
            "expected the same. Use projections W_Q and W_K of the same width."
        )
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"K has {K.shape[-2]} keys and V has {V.shape[-2]} values (shapes {K.shape} and {V.shape}), "
            "expected one value per key. Is one of them transposed?"
        )
    try:
        np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    except ValueError:
        raise ValueError(
            f"the leading axes of Q {Q.shape}, K {K.shape} and V {V.shape} do not broadcast, "
            "expected equal batch and head axes, or 1. Reshape them to (batch, heads, n_tokens, features)."
        ) from None


def check_scale(scale):
    """The factor on the scores as a NumPy scalar. Raises ValueError unless it is one finite real number."""
    number = np.asarray(scale)
    if np.ma.is_masked(scale) or number.ndim or number.dtype.kind not in "iuf" or not np.isfinite(number):
        raise ValueError(f"scale is {scale!r:.60}, expected one finite number, such as 1 / np.sqrt(d_k).")
    return number


def check_mask(mask, shape, name="mask"):
    """The mask as a boolean array that broadcasts to `shape` = (..., n_queries, n_keys), True where a query may look.

    Raises ValueError, calling it `name`, for another type or a shape that does not broadcast.
    """
    if _is_masked(mask):
        raise ValueError(f"{name} is a masked array, expected a plain one. Say what is there: {name}.filled(False).")
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(
            f"{name} has type {mask.dtype}, expected bool with True where a query may look. "
            f"For a mask of 0 and 1 use {name}.astype(bool); an additive mask of 0 and -inf is {name} == 0."
        )
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} has shape {mask.shape}, expected one that broadcasts to the scores {shape} "
            "= (..., n_queries, n_keys)."
        )
    return mask


def is_whole(value, least=1):
    """Whether a value is a whole number of at least `least`; True and False are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)) and value >= least


def whole_number(value, name, least=1, fix=""):
    """The value as an int, checked to be a whole number of at least `least`. `fix` ends the message of the ValueError.

    A small type of NumPy's would overflow in what is computed from it.
    """
    if not is_whole(value, least):
        raise ValueError(f"{name} is {value!r}, expected a whole number of at least {least}{fix}.")
    return int(value)


def check_rng(rng):
    """Stop unless rng is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng is {type(rng).__name__}, expected a numpy Generator, such as np.random.default_rng(0).")


def real_number(value, name, low=None, above=None, fix=""):
    """The value, checked to be one finite real number, at least `low`, above `above`. `fix` ends the message."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    most = float(np.finfo(float).max)
    bad = not real or not -most <= value <= most or (low is not None and value < low)
    if bad or (above is not None and value <= above):
        bounds = f" of at least {low}" if low is not None else f" above {above}" if above is not None else ""
        raise ValueError(f"{name} is {value!r:.60}, expected one finite number{bounds}{fix}.")
    return value


def check_switch(value, name):
    """The value, checked to be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} is {value!r:.60}, expected True or False.")
    return value


def check_function(value, name, fix=""):
    """The value, checked to be something that can be called. `fix` ends the message."""
    if not callable(value):
        raise ValueError(f"{name} is {value!r:.60}, expected a function{fix}.")
    return value


def check_params(params, fix=""):
    """Stop unless params is a dict from names to arrays, not empty. `fix` ends the message."""
    if not hasattr(params, "items") or not params:  # what autograd makes of a dict is none itself
        raise ValueError(f"params is {type(params).__name__} {params!r:.40}, expected a dict from name to array{fix}.")
