"""Singular values: all of a matrix, the leading ones, and those of attention that is never formed.

Matrices are written (..., m, n); attention weights (..., n_queries, n_keys).
"""

import numpy as np

from attn_utils.inputs import at_least_single, check_scale, finite_matrix, is_whole, whole_number


def singular_values(A, k=None):
    """Singular values of a matrix, largest first; with k, only the k leading ones, without a full decomposition.

    A  (..., m, n), or a scipy LinearOperator (m, n), which is never turned into a matrix
    k  how many, from 1 to min(m, n); all when None (not possible for a LinearOperator)

    Returns (..., k) of the type of A (float16 is decomposed in float32). The leading ones come from scipy's svds
    (Lanczos iterations with a fixed starting vector, so that a second call gives the same digits); where k is no small
    part of min(m, n), the full decomposition is quicker and is used instead.
    Raises ValueError for NaN, an input that is not a matrix of real numbers, or a k outside its range.

    Source: Golub and Kahan (1965); scipy.sparse.linalg.svds. Chapter 4 compares both.
    """
    A = _check_operator(A) if hasattr(A, "matvec") else finite_matrix(A, "A")
    smallest = min(A.shape[-2:])
    _check_k(k, smallest, required=hasattr(A, "matvec"))
    if hasattr(A, "matvec"):
        return _leading(A, k) if 8 * k < smallest else _dense(A)[:k]
    wide = at_least_single(A)
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
    of a block Krylov space, in which the values are then read off. They are approached from below.
    Raises ValueError for shapes that do not fit, NaN, scores that overflow, or a k, block, tol or max_passes out of
    range.

    Source: Musco and Musco (2015), algorithm 2. Chapter 4 checks it against the full decomposition.
    """
    Q, K = _check_pair(Q, K, causal)
    _check_k(k, min(len(Q), len(K)), required=True)
    _check_effort(block, tol, max_passes)
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else check_scale(scale)
    dtype, Q, K = np.result_type(Q, K), at_least_single(Q), at_least_single(K)
    apply = _gram_of_attention(Q * Q.dtype.type(scale), K, causal, block)
    return _block_krylov(apply, len(K), k, np.result_type(Q, K), tol, max_passes).astype(dtype)


def _leading(A, k):
    """The k leading singular values of one matrix or LinearOperator, largest first."""
    from scipy.sparse.linalg import svds

    kind = np.result_type(A.dtype, np.float32)  # an operator of whole numbers works in float64
    start = np.random.default_rng(0).normal(size=min(A.shape)).astype(kind)  # our own generator: repeatable
    if not hasattr(A, "matvec"):
        scale = np.abs(A).max()
        if scale == 0:
            return np.zeros(k, A.dtype)
        A = A / scale
    else:
        small = A.rmatvec if A.shape[0] >= A.shape[1] else A.matvec
        image = small((A.matvec if A.shape[0] >= A.shape[1] else A.rmatvec)(start))  # A^T A or A A^T, once
        if not np.isfinite(image).all():
            raise ValueError("the operator A gives NaN or inf, expected finite numbers. Look for where they arise.")
        if not image.any():  # a random vector is in the null space: A is zero
            return np.zeros(k, kind)
        scale = 1
    return np.sort(svds(A, k=k, v0=start, return_singular_vectors=False, tol=1e-6))[::-1] * scale


def _dense(operator):
    """All singular values of a small LinearOperator."""
    kind = np.result_type(operator.dtype, np.float32)
    matrix = finite_matrix(operator @ np.eye(operator.shape[1], dtype=kind), "the operator A")
    return np.linalg.svd(at_least_single(matrix), compute_uv=False)


def _gram_of_attention(Q, K, causal, block):
    """A function from vectors (n_keys, b) to A^T A of them, made block by block; each weight is made once a call."""
    rows = [slice(start, min(start + block, len(Q))) for start in range(0, len(Q), block)]
    future = np.arange(len(K)) if causal else None
    totals = np.concatenate([_log_total(_scores(Q[part], K, future, part)) for part in rows])  # (n_queries,)
    Q = np.hstack([Q, -totals[:, None]])  # one more product, with a key of ones, divides each row by its sum
    K = np.hstack([K, np.ones_like(K[:, :1])])

    def apply(vectors):
        total = np.zeros_like(vectors)
        for part in rows:
            weights = _scores(Q[part], K, future, part)
            np.exp(weights, out=weights)  # (block, n_keys), rows summing to one
            total += weights.T @ (weights @ vectors)
        return total

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
    """Square roots of the k largest eigenvalues of a positive map, from a growing block Krylov space."""
    rng = np.random.default_rng(0)
    width = min(n, k + 6)
    new = np.linalg.qr(rng.normal(size=(n, width)).astype(dtype))[0]  # (n, width)
    basis, images, before = np.empty((n, 0), dtype), np.empty((n, 0), dtype), None
    for _ in range(max_passes):
        basis, images = np.hstack([basis, new]), np.hstack([images, apply(new)])  # (n, passes * width) each
        small = basis.T.astype(np.float64) @ images  # (p, p): the map seen from inside the space
        values = np.sqrt(np.maximum(np.linalg.eigvalsh((small + small.T) / 2)[::-1][:k], 0))  # (k,)
        done = before is not None and np.all(np.abs(values - before) <= tol * values)
        if done or basis.shape[1] == n:
            return values.astype(dtype)
        before, new = values, _fresh(basis, images[:, -new.shape[1] :])
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
