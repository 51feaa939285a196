"""Assignment 4: answers that have to pass, and wrong ones with words of the message that has to name the mistake."""

import numpy as np
from scipy import stats

# --------------------------------------------------------------------------- stable ranks


def by_norms(X):
    gram = X @ X.T
    return [
        np.linalg.norm(X, "fro") ** 2 / np.linalg.norm(X, 2) ** 2,
        np.linalg.norm(gram, "fro") ** 2 / np.linalg.norm(gram, 2) ** 2,
    ]


def by_eigenvalues(X):
    size = np.linalg.eigvalsh(X.T.astype(float) @ X)
    return np.array([size.sum() / size.max(), (size**2).sum() / size.max() ** 2])


def by_loop(X):
    s = np.linalg.svd(X.astype(np.float64))[1]
    first, second = 0.0, 0.0
    for value in s:
        first += (value / max(s)) ** 2
        second += (value / max(s)) ** 4
    return first, second


def gram_values(X):
    """The singular values of X X^T, squared as those of X would be."""
    s = np.linalg.svd(X @ X.T, compute_uv=False)
    return (s**2).sum() / s[0] ** 2, (s**4).sum() / s[0] ** 4


def not_squared(X):
    s = np.linalg.svd(X, compute_uv=False)
    return s.sum() / s[0], (s**2).sum() / s[0] ** 2


def norms_not_squared(X):
    s = np.linalg.svd(X, compute_uv=False)
    return np.linalg.norm(X) / s[0], np.linalg.norm(X @ X.T) / s[0] ** 2


def first_not_raised(X):
    s = np.linalg.svd(X, compute_uv=False)
    return (s**2).sum() / s[0], (s**4).sum() / s[0]


def normalised_in_place(X):
    X /= np.linalg.norm(X, 2)
    s = np.linalg.svd(X, compute_uv=False)
    return (s**2).sum(), (s**4).sum()


def last_instead_of_first(X):
    s = np.linalg.svd(X, compute_uv=False)
    return (s**2).sum() / s[-1] ** 2, (s**4).sum() / s[-1] ** 4


def centred_ranks(X):
    return by_norms(X - X.mean(axis=0))


# ----------------------------------------------------------------------------- the repair


def subtract_after(A, V):
    return A @ V - V.mean(axis=-2, keepdims=True)


def with_big_matrix(A, V):
    n = A.shape[-1]
    return (A - np.ones(A.shape) / n) @ V


def with_projector(A, V):
    n = V.shape[-2]
    return np.einsum("...qk,kj,...jd->...qd", A, np.eye(n) - 1 / n, V)


def one_by_one(A, V):
    if A.ndim > 2:
        return [one_by_one(a, v) for a, v in zip(A, V, strict=True)]
    mean = sum(V) / len(V)
    return [[float(sum(w * (v[c] - mean[c]) for w, v in zip(row, V, strict=True))) for c in range(V.shape[1])] for row in A]


def center_in_place(A, V):
    V -= V.mean(axis=-2, keepdims=True)
    return A @ V


def deflate(A, V):
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    s = s.copy()
    s[..., 0] = 0
    return (U * s[..., None, :]) @ Vh @ V


def column_means_off(A, V):
    return (A - A.mean(axis=-2, keepdims=True)) @ V


def loses_an_axis(A, V):
    return A @ V - V.mean(axis=-2)


# --------------------------------------------------------------------------------- triage


def with_stats(A):
    s = np.linalg.svd(A)[1]
    rows = stats.entropy(A, axis=1) / np.log(A.shape[1])
    return [s[1] < 0.1 * s[0], rows.mean() < 0.1]


def with_gram(A):
    size = np.sqrt(np.linalg.eigvalsh(A.astype(float).T @ A)[::-1])
    total = 0
    for row in A:
        total -= sum(w * np.log2(w) for w in row if w > 0) / np.log2(len(A))
    return np.array([bool(1 - size[1] / size[0] > 0.9), bool(total / len(A) < 0.1)])


def with_norms(A):
    first = np.linalg.norm(A, 2)
    second = np.linalg.svd(A, compute_uv=False)[1]
    logs = np.log(A, out=np.zeros_like(A), where=A > 0)
    return (first - second) / first > 0.9, -np.mean(np.sum(A * logs, axis=1)) / np.log(len(A)) < 0.1


def nats(A):
    return stats.entropy(A, axis=1)


def gap_of(A):
    s = np.linalg.svd(A, compute_uv=False)
    return 1 - s[1] / s[0]


def saturated(A):
    return bool(nats(A).mean() < 0.1 * np.log(len(A)))


def collapsed(A):
    return bool(gap_of(A) > 0.9)


def by_eigenvalues_of_A(A):
    size = np.sort(np.abs(np.linalg.eigvals(A)))
    return bool(1 - size[-2] / size[-1] > 0.9), saturated(A)


def by_squares(A):
    size = np.linalg.eigvalsh(A @ A.T)
    return bool(1 - size[-2] / size[-1] > 0.9), saturated(A)


def takes_first_for_one(A):
    return bool(1 - np.linalg.svd(A, compute_uv=False)[1] > 0.9), saturated(A)


def meets_zero(A):
    return collapsed(A), bool(-(A * np.log(A)).sum(axis=1).mean() < 0.1 * np.log(len(A)))


def nansum(A):
    """Right: the NaN of 0 ln 0 is left out of the sum."""
    return collapsed(A), bool(-np.nansum(A * np.log(A), axis=1).mean() < 0.1 * np.log(len(A)))


def in_bits(A):
    return collapsed(A), bool((nats(A) / np.log(2)).mean() < 0.1 * np.log(len(A)))


# --------------------------------------------------------------------------------- layers


def with_logs(L, T, sigma):
    log_c = ((L + 1) * np.log(L + 1) - L * np.log(L)) / 2
    return np.exp(log_c + L * np.log(sigma) - L / 2 * np.log(T))


def with_loop(L, T, sigma):
    value = (L + 1) ** 0.5
    for _ in range(L):
        value *= sigma / T**0.5 * ((L + 1) / L) ** 0.5
    return value


def by_square(L, T, sigma):
    return np.float32((sigma**2 / T) ** L * (L + 1) ** (L + 1) / L**L) ** 0.5


def c_forgotten(L, T, sigma):
    return sigma**L * T ** (-L / 2)


def c(L):
    return ((L + 1) ** (L + 1) / L**L) ** 0.5


RIGHT = {
    "stable_ranks": [by_norms, by_eigenvalues, by_loop],
    "repaired_output": [subtract_after, with_big_matrix, with_projector, one_by_one],
    "pattern_gaps": [(1, 0, 1, 0), [1.0, 0.0, 1.0, 0.0], np.array([1, 0, 1, 0]), (1 - 1e-9, 1e-12, 1, 0)],
    "directions_left": [2, 2.0, np.int64(2), np.array(2)],
    "triage": [with_stats, with_gram, with_norms, nansum],
    "second_after": [with_logs, with_loop, by_square],
    "layers_to_blindness": [7, 7.0, np.int64(7)],
    "repair_prediction": ["b", "(b)", "B "],
    "shared_prediction": ["b", "(b)", "B"],
}

WRONG = {
    "stable_ranks": [
        (gram_values, "singular values are squared already"),
        (not_squared, "you add up the singular values themselves for X"),
        (norms_not_squared, "ratios of norms: square them"),
        (first_not_raised, "you divide by s_1: its power"),
        (normalised_in_place, "changes X in place"),
        (last_instead_of_first, "expected"),
        (centred_ranks, "subtract the mean token first"),
        (lambda X: (np.linalg.matrix_rank(X), np.linalg.matrix_rank(X @ X.T)), "this is the rank"),
        (lambda X: by_norms(X)[::-1], "the other way round"),
        (lambda X: by_norms(X)[0], "you return one number"),
        (lambda X: (by_norms(X)[0], by_norms(X)[0]), "for X X^T the powers are fourth"),
        (lambda X: tuple(np.sqrt(by_norms(X))), "ratios of norms"),
        (lambda X: (by_norms(X)[0], np.sum(np.linalg.svd(X @ X.T)[1] ** 4) / np.linalg.norm(X, 2) ** 8), "raise too often"),
        (lambda X: (by_norms(X)[0], by_norms(X)[0] ** 2), "you square the sum"),
        (lambda X: [np.linalg.svd(X / np.linalg.norm(X, 2))[1] ** k for k in (2, 4)], "add them up"),
        (lambda X: (1.5, 1.2), "the same answer whatever comes in"),
        (lambda X: tuple(1 / np.array(by_norms(X))), "at least 1"),
    ],
    "repaired_output": [
        (center_in_place, "changes its input in place"),
        (lambda A, V: A @ V, "plain output"),
        (lambda A, V: A @ V - (A @ V).mean(axis=-2, keepdims=True), "mean of the outputs"),
        (column_means_off, "mean of the outputs"),
        (lambda A, V: A @ (V - V.mean(axis=-1, keepdims=True)), "as LayerNorm does"),
        (lambda A, V: A @ (V - V.mean(axis=0, keepdims=True)), "axis 0 is the tokens of one sequence only"),
        (loses_an_axis, "keepdims=True"),
        (lambda A, V: A @ (V - V.mean()), "subtract the mean token"),
        (lambda A, V: (A - 1 / A.shape[-2]) @ V, "number of queries"),
        (lambda A, V: A @ V - 1 / V.shape[-2], "subtract 1/n_keys from the output"),
        (lambda A, V: (A - 1) @ V, "subtract 1 from every weight"),
        (deflate, "first singular direction"),
        (lambda A, V: (A - 0.2) @ V, "expected"),
        (lambda A, V: A - 1 / A.shape[-1], "expected an array of numbers of shape (3, 2)"),
        (lambda A, V: (A.T - 1 / len(V)) @ V, "stops with ValueError"),
    ],
    "pattern_gaps": [
        ((0, 1, 0, 1), "other way round"),
        ((1, 1, 1, 0), "it shuffles the tokens"),
        ((1, 0, 0, 0), "all twelve rows are equal"),
        ((1, 0, 1, 1), "+1 for one group"),
        ((1, 0, 1, 0.5), "look at pattern 4 again"),
        ((1, 0, 0.71, 0), "what happens to a difference"),
        ((1, 0, 1), "3 results, expected 4"),
        (1, "has 1 result"),
    ],
    "directions_left": [
        (12, "nothing about s_3"),
        (6, "all six get the same"),
        (1, "both groups get the same"),
        (10, "How many groups"),
        (4, "Count the different rows"),
        ("two", "expected a single value"),
    ],
    "triage": [
        (by_eigenvalues_of_A, "from the eigenvalues"),
        (by_squares, "singular values are squared"),
        (takes_first_for_one, "you take s_1 for 1"),
        (meets_zero, "makes your entropy NaN"),
        (in_bits, "in bits"),
        (lambda A: (collapsed(A), bool(nats(A).mean() < 0.1)), "compare the entropy with 0.1"),
        (lambda A: (collapsed(A), bool(nats(A).min() < 0.1 * np.log(len(A)))), "a single sharp row"),
        (lambda A: (collapsed(A), bool(nats(A).sum() < 0.1 * np.log(len(A)))), "add up the entropies"),
        (lambda A: (collapsed(A), bool(-nats(A).mean() < 0.1 * np.log(len(A)))), "minus sign in front"),
        (lambda A: (saturated(A), collapsed(A)), "first collapsed, then saturated"),
        (lambda A: (bool(1 - gap_of(A) > 0.9), saturated(A)), "the opposite of collapsed"),
        (lambda A: (gap_of(A), nats(A).mean() / np.log(len(A))), "expected True or False"),
        (lambda A: (bool(gap_of(A) > 0.8), saturated(A)), "has result 1 wrong"),
        (lambda A: (collapsed(A), bool(nats(A).mean() > 0.9 * np.log(len(A)))), "not above nine tenths"),
        (lambda A: (False, False), "the same answer whatever comes in"),
        (lambda A: collapsed(A), "has 1 result, expected 2"),
        (lambda A: (collapsed(A), bool(A.max() > 0.9)), "no saturated layer"),
    ],
    "second_after": [
        (c_forgotten, "c_L is missing"),
        (lambda L, T, sigma: c(L) ** 2 * c_forgotten(L, T, sigma), "c_L squared"),
        (lambda L, T, sigma: (2 * sigma / T**0.5) ** L, "edge of one layer L times"),
        (lambda L, T, sigma: 2 * c_forgotten(L, T, sigma), "c_1 = 2"),
        (lambda L, T, sigma: c(L) * sigma * T ** (-L / 2), "sigma is not raised"),
        (lambda L, T, sigma: c(L) * sigma**L * T**-L / 2, "brackets"),
        (lambda L, T, sigma: c(L) * (sigma / T) ** (L / 2), "only T comes with a half"),
        (lambda L, T, sigma: c(L) * sigma**L / T**L, "lost the half"),
        (lambda L, T, sigma: c(L) * sigma**L * T ** (L / 2), "power of T is negative"),
        (lambda L, T, sigma: (c(L) * c_forgotten(L, T, sigma)) ** 2, "squared"),
        (lambda L, T, sigma: ((L + 1) ** L / L**L) ** 0.5 * c_forgotten(L, T, sigma), "L + 1, not L"),
        (lambda L, T, sigma: 0.125, "the same answer whatever comes in"),
        (lambda L, T, sigma: c(L + 1) * c_forgotten(L, T, sigma), "expected"),
    ],
    "layers_to_blindness": [
        (6, "still 2.5e-7"),
        (8, "below already"),
        (4, "divides by the root of T"),
        (3, "c_L is missing"),
        (5, "Try the next ones"),
        (10, "compare with 1e-7"),
    ],
    "repair_prediction": [
        ("a", "Write down which one"),
        ("c", "From which of the 17"),
        ("d", "has to be a letter"),
        (2, "has to be a letter"),
        ("the same", "has to be a letter"),
    ],
    "shared_prediction": [
        ("a", "sums of the columns"),
        ("c", "has to be a letter"),
        (True, "has to be a letter"),
        (0, "has to be a letter"),
        ("something", "has to be a letter"),
    ],
}
