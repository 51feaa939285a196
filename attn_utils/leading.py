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
    Raises ValueError for NaN, an input that is not a matrix of real numbers, or a k outside its range.

    Source: Golub and Kahan (1965); scipy.sparse.linalg.svds. Chapter 4 compares both.
    """
    A = _check_operator(A) if hasattr(A, "matvec") else finite_matrix(A, "A")
    smallest = min(A.shape[-2:])
    _check_k(k, smallest, required=hasattr(A, "matvec"))
    if hasattr(A, "matvec"):
        return _leading(A, k) if 8 * k < smallest else _dense(A)[:k]
    wide = for_lapack(A, "A")
    if k is None or 8 * k >= smallest:
        return np.linalg.svd(wide, compute_uv=False)[..., :k].astype(A.dtype)
    values = [_leading(matrix, k) for matrix in wide.reshape(-1, *A.shape[-2:])]
    return np.array(values, dtype=A.dtype).reshape(*A.shape[:-2], k)


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
    _check_k(k, min(len(Q), len(K)), required=True)
    _check_effort(block, tol, max_passes)
    check_switch(causal, "causal")
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else check_scale(scale)
    dtype, Q, K = np.result_type(Q, K), at_least_single(Q), at_least_single(K)
    apply = _attention_and_back(Q * Q.dtype.type(scale), K, causal, block)
    return _block_krylov(apply, len(K), k, np.result_type(Q, K), tol, max_passes).astype(dtype)


def _leading(A, k):
    """The k leading singular values of one matrix or LinearOperator, largest first, in its type."""
    from scipy.sparse.linalg import ArpackError

    kind = np.result_type(A.dtype, np.float32)  # an operator of whole numbers works in float64
    start = np.random.default_rng(0).normal(size=(2, min(A.shape))).astype(kind)  # our own generator: repeatable
    exponent = _exponent(A, kind)
    if exponent is None:
        return np.zeros(k, kind)
    unit = A * kind.type(2.0**-exponent)
    try:
        values = _lanczos(unit, k, *start)
    except ArpackError:  # values that repeat or lie close together: the iterations give up, or find one for many
        values = _dense(unit)[:k] if hasattr(unit, "matvec") else np.linalg.svd(unit, compute_uv=False)[:k]
    return np.ldexp(values, exponent)


def _exponent(A, kind):
    """The power of two by which A is divided, so that no square overflows or vanishes; None where A is zero."""
    if hasattr(A, "matvec"):
        image = A.matvec(np.random.default_rng(1).normal(size=A.shape[1]).astype(kind))
        if not np.isfinite(image).all():
            raise ValueError("the operator A gives NaN or inf, expected finite numbers. Look for where they arise.")
    else:
        image = A
    largest = np.abs(image).max()
    limit = np.finfo(kind).maxexp - 2  # of the power of two itself
    return None if largest == 0 else int(np.clip(np.frexp(largest)[1], -limit, limit))  # a random image is zero: A is


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
    kind = np.result_type(operator.dtype, np.float32)
    matrix = finite_matrix(operator @ np.eye(operator.shape[1], dtype=kind), "the operator A")
    return np.linalg.svd(at_least_single(matrix), compute_uv=False)


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


def _block_krylov(apply, n, k, dtype, tol, max_passes):
    """The k largest singular values of a map, from a growing block Krylov space of A^T A.

    They are those of A times an orthonormal basis of the space. The roots of the eigenvalues of A^T A would lose what
    lies below the root of the type's precision.
    """
    rng, width = np.random.default_rng(0), min(n, k + 6)
    noise = 4 * np.finfo(dtype).eps  # of the largest value: below it the weights themselves are rounded
    new = np.linalg.qr(rng.normal(size=(n, width)))[0]  # (n, width)
    basis, there, before = np.empty((n, 0)), [], None
    for _ in range(max_passes):
        image, back = apply(new.astype(dtype))  # (n_queries, width), (n, width)
        basis, there = np.hstack([basis, new]), [*there, image]
        values = np.linalg.svd(np.hstack(there).astype(np.float64), compute_uv=False)[:k]  # (k,)
        slack = tol * values + noise * values[0]
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
    if np.dtype(A.dtype).kind not in "biuf":
        raise ValueError(f"the operator A has type {A.dtype}, expected real numbers. Give it a float dtype.")
    return A


def _check_effort(block, tol, max_passes):
    whole_number(block, "block", fix=", such as block=128")
    whole_number(max_passes, "max_passes")
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.number)) or not 0 < tol < 1:
        raise ValueError(f"tol is {tol!r}, expected a number between 0 and 1, such as 1e-3.")


def _check_k(k, most, required):
    if k is None and not required:
        return
    if not is_whole(k) or k > most:
        raise ValueError(f"k is {k!r}, expected a whole number from 1 to {most}, the smaller side of the matrix.")
