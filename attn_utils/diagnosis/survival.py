"""What of the differences between tokens a head lets through: the norm of its weights off the mean.

With P = 11^T / T and rows that sum to one, A P = P, and so (I - P) A V = (I - P) A (I - P) V: of the values, only what
differs between tokens reaches the differences between outputs, for causal and for any other weights. The norm of
(I - P) A (I - P) is the largest factor by which any difference is scaled (above 1 where few tokens are passed on to
many); its Frobenius norm over sqrt(T - 1) is the factor for random values, in the root mean square. Neither is the
spectral gap: that of a head with a sink is large, though differences survive it.
"""

import numpy as np

EXACT = 256  # up to so many keys the whole matrix is decomposed
TOLERANCE = 2e-3  # of the iterations: two digits are shown
PASSES = 40
WIDTH = 4  # vectors at a time


def largest_survival(blocks, n_queries, n_keys):
    """The norm of (I - P) A (I - P), from blocks of rows of A; the matrix need not exist.

    blocks  a function that gives (first row, rows (b, n_keys)) anew at each call
    """
    if n_keys <= EXACT and n_queries <= EXACT:
        A = np.concatenate([rows for _, rows in blocks()]).astype(np.float64)  # (n_queries, n_keys)
        A = A - A.mean(0)
        return float(np.linalg.norm(A - A.mean(1, keepdims=True), 2))
    return _by_iteration(blocks, n_keys)


def _by_iteration(blocks, n_keys):
    """Square root of the largest eigenvalue of M^T M, M = (I - P) A (I - P), from a growing block Krylov space."""
    vectors = np.random.default_rng(0).normal(size=(n_keys, WIDTH)).astype(np.float32)
    new = _orthonormal(vectors - vectors.mean(0), None)
    basis, images, before = new, np.empty((n_keys, 0), np.float32), None
    for _ in range(PASSES):
        images = np.hstack([images, _gram(blocks, new)])
        small = basis.T.astype(np.float64) @ images
        top = float(np.sqrt(max(np.linalg.eigvalsh((small + small.T) / 2)[-1], 0)))
        if before is not None and abs(top - before) <= TOLERANCE * top:
            break
        before, new = top, _orthonormal(images[:, -new.shape[1] :], basis)
        if not new.shape[1]:
            break
        basis = np.hstack([basis, new])
    return top


def _gram(blocks, vectors):
    """M^T M times vectors (n_keys, b), that are orthogonal to 1 already: each block of rows is used once.

    (I - P) A^T (I - P) A v = (I - P) (A^T A v - A^T 1 mean(A v)).
    """
    total, columns, mean, n = np.zeros_like(vectors), np.zeros(len(vectors), np.float32), 0, 0
    for _, rows in blocks():
        image = rows @ vectors  # (b, width)
        total += rows.T @ image
        columns += rows.sum(0)
        mean, n = mean + image.sum(0), n + len(rows)
    total -= columns[:, None] * (mean / n)
    return total - total.mean(0)


def _orthonormal(vectors, basis):
    """An orthonormal basis of what the vectors add to the basis."""
    for _ in range(2 if basis is not None else 1):  # twice is enough (Kahan and Parlett)
        if basis is not None:
            vectors = vectors - basis @ (basis.T @ vectors)
        size = np.linalg.norm(vectors, axis=0)
        vectors = vectors / np.where(size > 0, size, 1)
        vectors, triangle = np.linalg.qr(vectors)
        vectors = vectors[:, np.abs(np.diag(triangle)) > 1e-3]
    return vectors.astype(np.float32)
