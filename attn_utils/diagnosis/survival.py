"""What of the differences between tokens a head lets through: the norm of its weights off the mean.

With P = 11^T / T and rows that sum to one, A P = P, and so (I - P) A V = (I - P) A (I - P) V: of the values, only what
differs between tokens reaches the differences between outputs, for causal and for any other weights. The norm of
(I - P) A (I - P) is the largest factor by which any difference is scaled (above 1 where few tokens are passed on to
many); its Frobenius norm over sqrt(T - 1) is the factor for random values, in the root mean square. Neither is the
spectral gap: that of a head with a sink is large, though differences survive it.
"""

import numpy as np

from attn_utils.leading import krylov_values

EXACT = 256  # up to so many keys the whole matrix is decomposed
TOLERANCE = 2e-3  # of the iterations: two digits are shown
PASSES = 60
WIDTH = 8  # vectors at a time


def largest_survival(blocks, n_queries, n_keys):
    """The norm of (I - P) A (I - P), from blocks of rows of A; the matrix need not exist.

    blocks  a function that gives (first row, rows (b, n_keys)) anew at each call
    """
    if n_keys <= EXACT and n_queries <= EXACT:
        A = np.concatenate([rows for _, rows in blocks()]).astype(np.float64)  # (n_queries, n_keys)
        A = A - A.mean(0)
        return float(np.linalg.norm(A - A.mean(1, keepdims=True), 2))
    columns = sum(rows.sum(0, dtype=np.float64) for _, rows in blocks())  # (n_keys,), A^T 1
    apply = _off_mean_and_back(blocks, n_queries, columns.astype(np.float32)[:, None])
    return float(krylov_values(apply, n_keys, 1, np.float32, TOLERANCE, PASSES, WIDTH, size=1.0)[0])


def _off_mean_and_back(blocks, n_queries, columns):
    """A function from vectors (n_keys, b) to M of them and M^T M of them, M = (I - P) A (I - P).

    Each block of rows is used once: A^T (I - P) u = A^T u - A^T 1 mean(u), for u = A v.
    """

    def apply(vectors):
        vectors = vectors - vectors.mean(0)
        there, back = np.empty((n_queries, vectors.shape[1]), np.float32), np.zeros_like(vectors)
        for start, rows in blocks():
            image = rows @ vectors  # (b, width)
            there[start : start + len(rows)] = image
            back += rows.T @ image
        mean = there.mean(0, dtype=np.float64).astype(np.float32)
        back -= columns * mean
        return there - mean, back - back.mean(0)

    return apply
