"""Numbers of a matrix: its spectral gap, stable ranks, condition number, the outlier's removal, entropy, spread.

Attention weights are written (..., n_queries, n_keys), tokens X (..., n_tokens, d). A number of the whole matrix comes
back for every leading axis: a float for one matrix, an array (...) for a stack. Half precision is computed in float32;
matrices go back in their type, numbers in at least float32.
"""

import numpy as np

from attn_utils.inputs import (
    at_least_single,
    check_mask,
    finite_matrix,
    for_lapack,
    noise_floor,
    restored,
    unit_scale,
)
from attn_utils.leading import singular_values

ROW_SUM = 5e-3  # rows this close to one count as softmax weights: room for float16 and bfloat16


def spectral_gap(A):
    """How far the largest singular value stands out: 1 - s2 / s1.

    A  (..., m, n) with at least two rows and columns

    Returns a number from 0 (no gap) to 1 (a single direction is left) for each matrix; 0 for a matrix of zeros.
    Raises ValueError for a single row or column, which has no second singular value, and for NaN.

    Source: Nait Saada, Naderi and Tanner (2025) study the gap between the two; the ratio is our choice of units.
    """
    A, _ = unit_scale(finite_matrix(A, "A"))
    if min(A.shape[-2:]) < 2:
        raise ValueError(
            f"A has shape {A.shape}: a single row or column has no second singular value, so no gap. "
            "Use at least two tokens."
        )
    values = singular_values(A, 2)  # (..., 2)
    first, second = values[..., 0], values[..., 1]
    return _plain(np.where(first > 0, 1 - second / np.where(first > 0, first, 1), 0))


def stable_rank(X):
    """Stable rank of X itself: ||X||_F^2 / ||X||_2^2, the sum of s_i^2 over s_1^2.

    X  (..., n_tokens, d)

    Returns a number from 1 to the rank for each matrix; 0 for a matrix of zeros.
    Not the one that "Mind the Gap" reports: that is stable_rank_gram. Raises ValueError for NaN or a wrong shape.

    Source: Rudelson and Vershynin (2007).
    """
    X, _ = unit_scale(finite_matrix(X, "X"))
    return _over_first((X**2).sum((-2, -1)), singular_values(X, 1)[..., 0] ** 2)


def stable_rank_gram(X):
    """Stable rank of the token covariance X X^T: ||X X^T||_F^2 / ||X X^T||_2^2, the sum of s_i^4 over s_1^4.

    X  (..., n_tokens, d); s_i are the singular values of X

    Returns a number from 1 to the rank for each matrix, never above stable_rank(X); 0 for a matrix of zeros.
    The fourth powers count a direction half as large as the first one as a sixteenth: this one falls to 1 where
    stable_rank(X) stays near 2. Raises ValueError for NaN or a wrong shape.

    Source: Nait Saada, Naderi and Tanner (2025), official code. Chapter 4 shows why the width statement needs it.
    """
    X, _ = unit_scale(finite_matrix(X, "X"))
    tall = X if X.shape[-2] >= X.shape[-1] else np.swapaxes(X, -1, -2)  # (..., larger, smaller)
    gram = np.swapaxes(tall, -1, -2) @ tall  # (..., smaller, smaller), the same non-zero spectrum as X X^T
    return _over_first((gram**2).sum((-2, -1)), singular_values(X, 1)[..., 0] ** 4)


def condition_number(X):
    """Largest over smallest singular value: 1 for an orthogonal matrix, inf for a singular one.

    X  (..., m, n)

    Returns a number for each matrix. A smallest singular value of at most s_1 max(m, n) epsilon, with the epsilon of
    the type of X, is rounding noise (in float16: half its epsilon times ||X||_F); then, and for a matrix of zeros, the
    result is inf. Raises ValueError for NaN or a wrong shape.

    Source: as in Ji et al. (2025), footnote on kappa.
    """
    X = finite_matrix(X, "X")
    values = np.linalg.svd(for_lapack(unit_scale(X)[0]), compute_uv=False)  # (..., min(m, n))
    first, last = values[..., 0], values[..., -1]
    sound = last > noise_floor(X, values)[..., 0]
    return _plain(np.where(sound, first / np.where(sound, last, 1), np.inf))


def remove_outlier(A):
    """Attention weights without their outlier: A - 1/n_keys in every place, for square weights A - 11^T / T.

    A  (..., n_queries, n_keys), rows summing to one

    Returns an array of the same shape and type, rows summing to zero. The same as centring the values:
    remove_outlier(A) @ V == A @ (V - mean over tokens of V) == A @ V - mean over tokens of V.
    Not for causal weights: it would put -1/n_keys on the future.
    Raises ValueError where rows do not sum to one, for NaN or a wrong shape.

    Source: Nait Saada, Naderi and Tanner (2025); Ali et al. (2023). Derived in chapter 4.
    """
    A = finite_matrix(A, "A")
    wide = at_least_single(A)
    off = np.abs(wide.sum(-1) - 1).max()
    if off > _row_tolerance(A):
        raise ValueError(
            f"the rows of A sum to one only within {off:.2g}, expected softmax weights. "
            "Without row sums of one there is no outlier at 1 to remove; apply a softmax first."
        )
    return (wide - wide.dtype.type(1 / A.shape[-1])).astype(A.dtype)


def center_tokens(X):
    """Tokens minus their mean token: what is left of X when all that the tokens share is taken away.

    X  (..., n_tokens, d). Returns the same shape and type, or raises ValueError where that
    cannot hold it. Source: res(X) of Dong et al. (2021), in the 2-norm.
    """
    X = finite_matrix(X, "X")
    wide, exponent = unit_scale(X)
    return restored(wide - wide.mean(-2, keepdims=True), exponent, X.dtype, "the centered tokens")


def token_spread(X):
    """Share of X that differs between tokens: ||X - mean token||_F / ||X||_F.

    X  (..., n_tokens, d)

    Returns a number from 0 (all tokens equal: rank collapse) to 1 (their mean is zero); 0 for a matrix of zeros.
    Raises ValueError for NaN or a wrong shape. Source: relative residual of Dong et al. (2021), in the 2-norm.
    """
    X, _ = unit_scale(finite_matrix(X, "X"))
    size, rest = np.linalg.norm(X, axis=(-2, -1)), np.linalg.norm(center_tokens(X), axis=(-2, -1))
    return _plain(rest / np.where(size > 0, size, 1))


def token_cosine(X):
    """Mean cosine similarity over all pairs of different tokens: 0 when unrelated, 1 when all point the same way.

    X  (..., n_tokens, d) with at least two tokens

    Returns a number from -1 / (n_tokens - 1) to 1 for each matrix. A token of zeros counts as cosine 0 with all others.
    Raises ValueError for a single token, NaN or a wrong shape.

    Source: Noci et al. (2022), section 3. Chapter 4 derives its law under uniform attention.
    """
    X, _ = unit_scale(finite_matrix(X, "X"))
    n = X.shape[-2]
    if n < 2:
        raise ValueError(f"X has shape {X.shape}: one token has no pair to compare. Use at least two tokens.")
    size = np.linalg.norm(X, axis=-1, keepdims=True)  # (..., n, 1)
    units = X / np.where(size > 0, size, 1)  # (..., n, d)
    total = (units.sum(-2) ** 2).sum(-1) - (size > 0).sum((-2, -1))
    return _plain(total / (n * (n - 1)))


def entropy(weights, mask=None):
    """Entropy of each row of weights as a share of the largest possible: 0 = one key takes all, 1 = uniform.

    weights  (..., n_queries, n_keys), not negative, rows summing to one (or to zero: fully masked, entropy 0)
    mask     boolean, True where a query may look; with it the largest possible is ln(number of such places)

    Returns (..., n_queries). A row with a single place to look has no choice to make and gives 1.
    Raises ValueError for negative weights, rows with other sums, weights where the mask forbids them, a mask that is
    not boolean or does not fit, NaN or a wrong shape.

    Source: Zhai et al. (2023), who call its fall entropy collapse; the division by ln T is ours.
    """
    weights = finite_matrix(weights, "weights")
    if (weights < 0).any():
        raise ValueError(
            f"weights contain {weights.min():.3g}: entropy needs weights of at least 0. "
            "Pass the weights after the softmax, before remove_outlier."
        )
    wide = at_least_single(weights)
    sums = wide.sum(-1)  # (..., n_queries)
    off = np.where(sums > 0, np.abs(sums - 1), 0)
    if off.max() > max(ROW_SUM, _row_tolerance(weights)):
        raise ValueError(
            f"a row of the weights sums to {sums.flat[off.argmax()]:.3g}, expected 1 (or 0 where all is masked): "
            "entropy needs a probability distribution. Pass the weights after the softmax."
        )
    if mask is not None and (weights * ~check_mask(mask, weights.shape)).any():
        raise ValueError("some weight lies where the mask is False, expected none. True means: the query may look.")
    logs = np.log(np.where(wide > 0, wide, 1))  # 0 ln 0 = 0
    n = weights.shape[-1] if mask is None else np.broadcast_to(mask, weights.shape).sum(-1)
    most = np.log(np.maximum(n, 1))  # what uniform weights would have
    return np.where(most > 0, -(wide * logs).sum(-1) / np.where(most > 0, most, 1), 1.0).astype(weights.dtype)


def _over_first(total, first):
    return _plain(total / np.where(first > 0, first, 1))


def _plain(value):
    """A float for one matrix, an array for a stack."""
    return float(value) if np.ndim(value) == 0 else value


def _row_tolerance(A):
    """How far a row of softmax weights in this type may be from one: rounding in the sum, and in what half holds."""
    if A.dtype == np.float16:
        return ROW_SUM + A.shape[-1] * 2.0**-25  # half of the smallest step: the weights of many keys are few steps
    return min(ROW_SUM, 10 * float(np.finfo(A.dtype).eps) * max(A.shape[-1], 100))
