"""Singular values: all of a matrix, the leading ones, and those of attention that is never formed.

Matrices are written (..., m, n); attention weights (..., n_queries, n_keys).
"""

import numpy as np

from attn_utils.inputs import (
    at_least_single,
    check_scale,
    check_switch,
    finite_matrix,
    for_lapack,
    is_whole,
    real_number,
    restored,
    unit_scale,
    whole_number,
)


def singular_values(A, k=None):
    """Singular values of a matrix, largest first; with k, only the k leading ones, without a full decomposition.

    A  (..., m, n), or a scipy LinearOperator (m, n)
    k  how many, from 1 to min(m, n); all when None (not possible for a LinearOperator)

    Returns (..., k) of the type of A (float16 is decomposed in float32, long double in float64, since LAPACK has
    neither). The leading ones come from scipy's svds (Lanczos iterations with fixed starting vectors, so that a second
    call gives the same digits). Values that repeat, as those of a permutation do, are looked for a second time. Where
    the iterations give up or have overlooked one, and where k is no small part of min(m, n), the full decomposition
    is used instead; for that, and for nothing else, a LinearOperator is turned into a matrix.
    Raises ValueError for NaN, an input that is not a matrix of real numbers, an operator without rmatvec, a k outside
    its range, or values that overflow the type of A.

    Source: Golub and Kahan (1965); scipy.sparse.linalg.svds. Chapter 4 compares both.
    """
    A = _check_operator(A) if hasattr(A, "matvec") else finite_matrix(A, "A")
    k = _check_k(k, min(A.shape[-2:]), required=hasattr(A, "matvec"))
    few = k is not None and 8 * k < min(A.shape[-2:])
    if hasattr(A, "matvec"):
        unit, exponent, kind = _unit_operator(A)
        values = _leading(unit, k) if few else _dense(unit)[:k]
        return restored(values, exponent, kind, "the singular values")
    unit, exponent = unit_scale(A)
    unit = for_lapack(unit)
    if few:
        values = np.array([_leading(matrix, k) for matrix in unit.reshape(-1, *A.shape[-2:])])
        values = values.reshape(*A.shape[:-2], k)
    else:
        values = np.linalg.svd(unit, compute_uv=False)[..., :k]
    return restored(values, exponent[..., 0], A.dtype, "the singular values")


def attention_singular_values(Q, K, k=2, scale=None, causal=False, block=128, tol=1e-3, max_passes=30):
    """The k leading singular values of softmax(scale Q K^T) without ever holding the (n_queries, n_keys) matrix.

    Q, K        (n_queries, d_k) and (n_keys, d_k), one head
    k           how many, at least 1
    scale       1/sqrt(d_k) when None
    causal      True: query i looks at keys 0 to i only
    block       rows of the matrix that exist at a time: memory is block * n_keys numbers
    tol         stop when a pass changes no value by more than this fraction
    max_passes  give up after so many passes over the matrix (RuntimeError)

    Returns (k,). Each pass makes every block of rows once and applies it and its transpose to a few vectors, the basis
    of a block Krylov space, in which the values are then read off. They are approached from below, repeated ones as
    well as single ones. What lies below a few epsilons of the type times the first one is rounding.
    Raises ValueError for shapes that do not fit, NaN, scores that overflow, or a k, block, tol or max_passes out of
    range.

    Source: Musco and Musco (2015), algorithm 2. Chapter 4 checks it against the full decomposition.
    """
    Q, K = _check_pair(Q, K, causal)
    k = _check_k(k, min(len(Q), len(K)), required=True)
    block, max_passes = _check_effort(block, tol, max_passes)
    check_switch(causal, "causal")
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else check_scale(scale)
    dtype, Q, K = np.result_type(Q, K), at_least_single(Q), at_least_single(K)
    with np.errstate(over="ignore", invalid="ignore"):  # _scores says so
        Q = Q * Q.dtype.type(scale)
    apply = _attention_and_back(Q, K, causal, block)
    return krylov_values(apply, len(K), k, np.result_type(Q, K), tol, max_passes).astype(dtype)


def _leading(A, k):
    """The k leading singular values of one matrix or LinearOperator of unit scale, largest first, in its type."""
    from scipy.sparse.linalg import ArpackError

    start = np.random.default_rng(0).normal(size=(2, min(A.shape))).astype(A.dtype)  # our own generator: repeatable
    try:
        return _lanczos(A, k, *start)
    except ArpackError:  # values that repeat or lie close together: the iterations give up, or find one for many
        return _dense(A)[:k] if hasattr(A, "matvec") else np.linalg.svd(A, compute_uv=False)[:k]


def _unit_operator(A):
    """(A over a power of two, so that no square overflows or vanishes; the exponent; the type, float32 or float64)."""
    kind = np.result_type(A.dtype, np.float32)  # an operator of whole numbers works in float64
    rng = np.random.default_rng(1)
    try:
        image, back = (f(rng.normal(size=n).astype(kind)) for f, n in ((A.matvec, A.shape[1]), (A.rmatvec, A.shape[0])))
    except NotImplementedError:
        raise ValueError(
            "the operator A has no rmatvec, expected one that applies the transpose. Pass matvec and rmatvec."
        ) from None
    if not (np.isfinite(image).all() and np.isfinite(back).all()):
        raise ValueError("the operator A gives NaN or inf, expected finite numbers. Look for where they arise.")
    limit = np.finfo(kind).maxexp - 2  # of the power of two itself
    exponent = int(np.clip(np.frexp(np.abs(image).max())[1], -limit, limit))
    return A * kind.type(2.0**-exponent), exponent, kind


def _lanczos(A, k, start, other):
    """The k leading singular values, largest first. Raises ArpackError where it gives up, or has overlooked one."""
    from scipy.sparse.linalg import ArpackError, aslinearoperator, svds

    if k == 1:
        return svds(A, k=1, v0=start, tol=1e-6, return_singular_vectors=False)
    U, values, Vt = svds(A, k=k, v0=start, tol=1e-6)
    found = U * values @ Vt if not hasattr(A, "matvec") else aslinearoperator(U * values) @ aslinearoperator(Vt)
    left = svds(A - found, k=1, v0=other, tol=1e-3, return_singular_vectors=False)[0]
    slack, noise = (1e-4, 1e-5) if A.dtype == np.float32 else (1e-6, 1e-13)
    if left > values.min() * (1 + slack) + noise * values.max():  # of equal values, one start may find one for all
        raise ArpackError(-9999)
    return np.sort(values)[::-1]


def _dense(operator):
    """All singular values of a LinearOperator, formed."""
    matrix = finite_matrix(operator @ np.eye(operator.shape[1], dtype=operator.dtype), "the operator A")
    return np.linalg.svd(matrix, compute_uv=False)


def _attention_and_back(Q, K, causal, block):
    """A function from vectors (n_keys, b) to A of them and A^T A of them, made block by block; a weight once a call."""
    rows = [slice(start, min(start + block, len(Q))) for start in range(0, len(Q), block)]
    future = np.arange(len(K)) if causal else None
    totals = np.concatenate([_log_total(_scores(Q[part], K, future, part)) for part in rows])  # (n_queries,)
    Q = np.hstack([Q, -totals[:, None]])  # one more product, with a key of ones, divides each row by its sum
    K = np.hstack([K, np.ones_like(K[:, :1])])

    def apply(vectors):
        there, back = np.empty((len(Q), vectors.shape[1]), vectors.dtype), np.zeros_like(vectors)
        for part in rows:
            weights = _scores(Q[part], K, future, part)
            np.exp(weights, out=weights)  # (block, n_keys), rows summing to one
            there[part] = weights @ vectors
            back += weights.T @ there[part]
        return there, back

    return apply


def _scores(Q, K, future, part):
    with np.errstate(over="ignore", invalid="ignore"):
        scores = Q @ K.T  # (block, n_keys)
    if not np.isfinite(scores).all():
        raise ValueError("the scores of Q and K overflow, expected finite ones. Make Q, K or the scale smaller.")
    if future is not None:
        scores[future > np.arange(part.start, part.stop)[:, None]] = -np.inf
    return scores


def _log_total(scores):
    """ln of the sum of exp over each row."""
    highest = scores.max(-1)
    scores -= highest[:, None]
    return highest + np.log(np.exp(scores, out=scores).sum(-1))


def krylov_values(apply, n, k, dtype, tol, max_passes, width=None, size=0.0):
    """The k largest singular values of a map A that exists as apply(vectors (n, b)) -> (A of them, A^T A of them).

    n           how many columns A has
    dtype       of the vectors that apply is given, and of what is returned, (k,)
    tol         stop when a pass changes no value by more than this fraction
    max_passes  give up after so many (RuntimeError)
    width       vectors at a time; k + 6 when None
    size        of the numbers that A is made of: its values may be nothing but their rounding

    They are those of A times an orthonormal basis of a growing block Krylov space of A^T A. The roots of the
    eigenvalues of A^T A would lose what lies below the root of the type's precision.

    Source: Musco and Musco (2015), algorithm 2.
    """
    rng, width = np.random.default_rng(0), min(n, width or k + 6)
    noise = 4 * np.finfo(dtype).eps  # of the largest value: below it the weights themselves are rounded
    new = np.linalg.qr(rng.normal(size=(n, width)))[0]  # (n, width)
    basis, there, before = np.empty((n, 0)), [], None
    for _ in range(max_passes):
        image, back = apply(new.astype(dtype))  # (n_queries, width), (n, width)
        basis, there = np.hstack([basis, new]), [*there, image]
        values = np.linalg.svd(np.hstack(there).astype(np.float64), compute_uv=False)[:k]  # (k,)
        slack = tol * values + noise * max(values[0], size)
        done = before is not None and np.all(np.abs(values - before) <= slack)
        if done or basis.shape[1] == n:
            return values.astype(dtype)
        before, new = values, _fresh(basis, back.astype(np.float64))
        if new.shape[1] == 0:
            return values.astype(dtype)
    raise RuntimeError(f"no convergence to {tol:g} in {max_passes} passes. Raise max_passes or tol.")


def _fresh(basis, images):
    """An orthonormal basis of what the images add to the basis, as far as there is room."""
    room = basis.shape[0] - basis.shape[1]
    for _ in range(2):  # twice is enough (Kahan and Parlett)
        images = images - basis @ (basis.T @ images)
        images, triangle = np.linalg.qr(images)
    size = np.abs(np.diag(triangle))
    return images[:, size > 0.5][:, :room]


def _check_pair(Q, K, causal):
    Q, K = finite_matrix(Q, "Q"), finite_matrix(K, "K")
    if Q.ndim != 2 or K.ndim != 2 or Q.shape[1] != K.shape[1]:
        raise ValueError(
            f"Q has shape {Q.shape} and K {K.shape}, expected (n_queries, d_k) and (n_keys, d_k) of one head. "
            "Choose a head first, such as Q[0]."
        )
    if causal and len(Q) != len(K):
        raise ValueError(f"causal weights need as many queries as keys, given {len(Q)} and {len(K)}.")
    return Q, K


def _check_operator(A):
    if np.dtype(A.dtype).kind not in "biuf" or np.dtype(A.dtype).itemsize > 8:
        raise ValueError(f"the operator A has type {A.dtype}, expected real numbers. Give it dtype=float.")
    return A


def _check_effort(block, tol, max_passes):
    """The whole numbers among them, as ints."""
    if real_number(tol, "tol", above=0, fix=" and below 1, such as 1e-3") >= 1:
        raise ValueError(f"tol is {tol!r}, expected a number between 0 and 1, such as 1e-3.")
    return whole_number(block, "block", fix=", such as block=128"), whole_number(max_passes, "max_passes")


def _check_k(k, most, required):
    """k as an int, or None where that may be."""
    if k is None and not required:
        return None
    if not is_whole(k) or k > most:
        raise ValueError(f"k is {k!r}, expected a whole number from 1 to {most}, the smaller side of the matrix.")
    return int(k)
