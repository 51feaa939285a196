"""Token Graying: tokens whose singular values lie closer together, so that gradient descent has an easier start.

Both functions take the tokens of one input as a matrix (n_tokens, d) and lift what is small in it relative to what
is largest. They are preprocessing: they look at data, and no gradient goes through them.
"""

import numpy as np

from attn_utils.inputs import finite_matrix, for_lapack, noise_floor, restored, unit_scale


def svd_graying(X, epsilon):
    """Raise the singular values to a power: with X = U S V^T, return U S~ V^T, S~ = s_1 (S / s_1)^epsilon.

    X        (..., n_tokens, d)
    epsilon  above 0 and at most 1; 1 returns X up to rounding, near 0 all singular values are almost equal

    Returns an array of the same shape and floating-point type. The condition number s_1 / s_min becomes
    (s_1 / s_min)^epsilon exactly. The paper writes S~ = (S / s_1)^epsilon, whose largest singular value is 1;
    here it stays s_1, so that epsilon = 1 changes nothing and the tokens keep their size. The two differ by one
    factor, which no condition number sees.
    Rank-deficient X: singular values of at most s_1 max(n_tokens, d) eps, with eps of the type of X, are taken for
    zero (the rule of numpy.linalg.matrix_rank) and become exactly zero, since no power lifts a zero; the condition
    number of the rest is what becomes its own power. For float16, decomposed in float32, half its eps times ||X||_F is
    taken. Tokens that were rounded to float32 or float16 before have to come in that type: as float64 they would carry
    the rounding as if it were data, and it would be lifted. All zeros stay all zeros.
    Raises ValueError for an epsilon outside (0, 1], NaN or inf, empty input, less than two axes, or an overflow.

    Source: Ji et al. (2025), "Always skip attention", Token Graying. Costs as much as an SVD, O(n d min(n, d)).
    """
    X, epsilon = finite_matrix(X, "X"), _check_epsilon(epsilon)
    work, exponent = unit_scale(X)
    U, S, Vt = np.linalg.svd(for_lapack(work), full_matrices=False)  # (..., n, k), (..., k), (..., k, d)
    lifted = _lift(S, S[..., :1], noise_floor(X, S), epsilon)  # (..., k)
    return restored((U * lifted[..., None, :]) @ Vt, exponent, X.dtype, "the grayed tokens")


def dct_graying(X, epsilon):
    """The cheap version: the same power for the coefficients of a cosine transform instead of singular values.

    With C the two-dimensional DCT (type II, orthonormal) of the matrix of tokens, returns the inverse transform of
    sign(C) c_1 (|C| / c_1)^epsilon, where c_1 is the largest |C|.

    X, epsilon   as for svd_graying

    Returns an array of the same shape and floating-point type. The condition number falls for most images, but
    no formula says how far: to more than kappa^epsilon, to less, or hardly at all. Unlike the singular values, the
    coefficients depend on the order of tokens and features. Coefficients of at most c_1 max(n_tokens, d) eps are
    taken for zero and become zero (for float16: of at most eps times the root mean square of X).
    Raises ValueError as svd_graying does.

    Source: Ji et al. (2025), "Always skip attention". Their code is not public and the text leaves open what is
    raised to the power: the sign kept and the division by the largest are our reading. Costs O(n d log(n d)).
    """
    from scipy.fft import dctn, idctn

    X, epsilon = finite_matrix(X, "X"), _check_epsilon(epsilon)
    work, exponent = unit_scale(X)
    C = dctn(for_lapack(work), axes=(-2, -1), norm="ortho")  # (..., n, d)
    size = np.abs(C)
    largest = size.max(axis=(-2, -1), keepdims=True)
    lifted = _lift(size, largest, _coefficient_noise(X, size, largest), epsilon)  # (..., n, d)
    grayed = idctn(np.copysign(lifted, C), axes=(-2, -1), norm="ortho")
    return restored(grayed, exponent, X.dtype, "the grayed tokens")


def _lift(sizes, largest, noise, epsilon):
    """largest (sizes / largest)^epsilon, and zero for what is zero up to rounding."""
    share = sizes / np.where(largest == 0, 1, largest)
    share[sizes <= noise] = 0
    return largest * share**epsilon


def _coefficient_noise(X, size, largest):
    """As noise_floor, for cosine coefficients: the rounding of float16 spreads evenly over all of them."""
    rounding = largest * (max(X.shape[-2:]) * float(np.finfo(size.dtype).eps))
    if X.dtype != np.float16:
        return rounding
    return rounding + np.sqrt(np.mean(size**2, axis=(-2, -1), keepdims=True)) * float(np.finfo(X.dtype).eps)


def _check_epsilon(epsilon):
    """epsilon as a Python number, which leaves float32 what it is."""
    number = isinstance(epsilon, (int, float, np.integer, np.floating)) and not isinstance(epsilon, bool)
    if not number or not 0 < epsilon <= 1:
        raise ValueError(f"epsilon is {epsilon!r}, expected a number above 0 and at most 1, such as 0.7.")
    return float(epsilon)
