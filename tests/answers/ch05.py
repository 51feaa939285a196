"""Assignment 5: answers that have to pass, and wrong ones with words of the message that has to name the mistake."""

import numpy as np
from scipy import linalg


def values(X):
    return np.linalg.svd(X, compute_uv=False)


def smaller_gram(X):
    """X X^T or X^T X, whichever is smaller: it has no zeros among its eigenvalues."""
    Xt = np.swapaxes(X, -1, -2)
    return X @ Xt if X.shape[-2] <= X.shape[-1] else Xt @ X


def by_eigenvalues(X):
    eigenvalues = np.linalg.eigvalsh(smaller_gram(X.astype(float)))
    return np.sqrt(eigenvalues[..., -1] / eigenvalues[..., 0])


def one_at_a_time(X):
    if X.ndim > 2:
        return [one_at_a_time(one) for one in X]
    s = linalg.svdvals(X)
    return max(s) / min(s)


def by_pseudoinverse(X):
    return np.linalg.norm(X, 2, axis=(-2, -1)) * np.linalg.norm(np.linalg.pinv(X), 2, axis=(-2, -1))


def sums_of_directions(X, epsilon):
    if X.ndim > 2:
        return np.array([sums_of_directions(one, epsilon) for one in X])
    U, s, Vt = linalg.svd(X, full_matrices=False)
    return sum(s[0] ** (1 - epsilon) * s[i] ** epsilon * np.outer(U[:, i], Vt[i]) for i in range(len(s)))


def from_the_gram(X, epsilon):
    """(X X^T / s_1^2)^((epsilon - 1) / 2) X, from whichever side is smaller."""
    X = X.astype(float)
    eigenvalues, W = np.linalg.eigh(smaller_gram(X))
    power = (eigenvalues / eigenvalues[..., -1:]) ** ((epsilon - 1) / 2)
    M = (W * power[..., None, :]) @ np.swapaxes(W, -1, -2)
    return M @ X if X.shape[-2] <= X.shape[-1] else X @ M


def with_diagonals(X, epsilon):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    logs = np.log(s)
    lifted = np.exp(logs.max(axis=-1, keepdims=True) * (1 - epsilon) + epsilon * logs)
    return np.einsum("...nk,...k,...kd->...nd", U, lifted, Vt).tolist()


def grayed(lift):
    def answer(X, epsilon):
        U, s, Vt = np.linalg.svd(X, full_matrices=False)
        return (U * lift(s, epsilon)[..., None, :]) @ Vt

    return answer


def scaled_in_place(X, epsilon):
    first = values(X)[..., :1, None]
    X /= first
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return first * ((U * (s**epsilon)[..., None, :]) @ Vt)


def without_new_axis(X, epsilon):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return U * (s[..., :1] * (s / s[..., :1]) ** epsilon) @ Vt


def full_matrices(X, epsilon):
    U, s, Vt = np.linalg.svd(X)
    return (U * (s[..., :1] * (s / s[..., :1]) ** epsilon)[..., None, :]) @ Vt


def step_by_step(kappa, left):
    n, error = 0, 1.0
    while error > left:
        n, error = n + 1, error * (kappa**2 - 1) / (kappa**2 + 1)
    return n


def descend(kappa, left):
    """Gradient descent itself, from an error that lies evenly on both axes."""
    s = np.array([kappa, 1.0])
    w, n = np.ones(2), 0
    while np.linalg.norm(w) > left * np.sqrt(2):
        w, n = w - 2 / (s @ s) * s**2 * w, n + 1
    return n


def factor(kappa):
    return (kappa**2 - 1) / (kappa**2 + 1)


def until(share):
    return lambda kappa, left: int(np.ceil(np.log(left) / np.log(share(kappa))))


RIGHT = {
    "kappa_of": [by_eigenvalues, one_at_a_time, by_pseudoinverse, np.linalg.cond, lambda X: np.exp(np.ptp(np.log(values(X)), -1))],
    "gray": [sums_of_directions, from_the_gram, with_diagonals, lambda X, e: with_diagonals(X.astype(np.float32), e)],
    "steps_needed": [
        step_by_step,
        descend,
        until(factor),
        lambda kappa, left: np.ceil(np.log(1 / left) / (2 * np.arctanh(1 / kappa**2))),
        lambda kappa, left: 1 + np.sum(factor(kappa) ** np.arange(1, 20000) > left),
    ],
    "speedup_prediction": [81, 81.0, np.array(80.99), (81 / 9) ** 2],
    "skip_prediction": [(1, 19, 1), [1.0, 19.0, 1.0], np.array([1, 1.9 / 0.1, 1])],
    "epsilon_prediction": [(1 / 3, 1 / 27), [0.333, 0.037], np.array([3.0**-1, 3.0**-3])],
    "gray_limit": ["b", "(b)", " B"],
}

WRONG = {
    "kappa_of": [
        (lambda X: (values(X)[..., 0] / values(X)[..., -1]) ** 2, "squared"),
        (lambda X: np.linalg.cond(smaller_gram(X)), "squared"),
        (lambda X: np.linalg.cond(X @ np.swapaxes(X, -1, -2)), "astronomical"),
        (lambda X: values(X)[..., -1] / values(X)[..., 0], "turn it round"),
        (lambda X: values(X)[..., 0] / values(X)[..., 1], "not the smallest"),
        (lambda X: values(X)[0] / values(X)[-1], "right for one matrix"),
        (lambda X: values(X).max() / values(X).min(), "whole stack"),
        (lambda X: np.log(np.linalg.cond(X)), "logarithm"),
        (lambda X: np.linalg.norm(X, axis=-1).max(-1) / np.linalg.norm(X, axis=-1).min(-1), "lengths of tokens"),
        (lambda X: np.sum(values(X) ** 2, -1) / values(X)[..., 0] ** 2, "stable rank"),
        (lambda X: 3.0, "kappa_of()"),
        (lambda X: np.abs(np.linalg.eigvals(X)).max() / np.abs(np.linalg.eigvals(X)).min(), "only a square matrix has"),
        (lambda X: np.linalg.inv(X), "kappa_of() is an array of numbers of shape (2, 2), expected a single value"),
    ],
    "gray": [
        (grayed(lambda s, e: (s / s[..., :1]) ** e), "factor s_1 in front"),
        (grayed(lambda s, e: s**e), "before you take the power, and multiply"),
        (grayed(lambda s, e: s[..., :1] * (s / s[..., :1]) ** (2 * e)), "squared"),
        (grayed(lambda s, e: s[..., :1] * (s / s[..., :1]) ** (1 / e)), "upside down"),
        (grayed(lambda s, e: s.max() * (s / s.max()) ** e), "whole stack"),
        (grayed(lambda s, e: s[0] * (s / s[0]) ** e), "right for one matrix"),
        (lambda X, e: np.sign(X) * np.abs(X) ** e, "raise the entries"),
        (grayed(lambda s, e: s[..., :1] * (s / s[..., :1]) ** (1 - e)), "not 1 - epsilon"),
        (lambda X, e: sums_of_directions(X, e) if X.ndim == 2 else X @ np.diag(e), "right for one matrix"),
        (lambda X, e: e * X, "common factor"),
        (scaled_in_place, "changes its input in place"),
        (without_new_axis, "right for one matrix"),
        (full_matrices, "stops with ValueError"),
        (grayed(lambda s, e: np.where(s > s.mean(-1, keepdims=True), s, 0)), "its own power"),
        (grayed(lambda s, e: s + e), "largest singular value has changed"),
        (lambda X, e: np.matmul(*np.linalg.svd(X, full_matrices=False)[::2]), "you left out s"),
        (grayed(lambda s, e: np.maximum(s, e * s[..., :1])), "its own power"),
        (lambda X, e: X, "comes back as it was"),
        (lambda X, e: np.linalg.svd(X, full_matrices=False)[0], "has to stay s_1"),
    ],
    "steps_needed": [
        (until(lambda k: (k - 1) / (k + 1)), "squares are missing"),
        (lambda k, left: np.log(left) / np.log(factor(k)), "round up"),
        (lambda k, left: int(np.log(left) / np.log(factor(k))), "round up, not down"),
        (lambda k, left: round(np.log(left) / np.log(factor(k))), "nearest"),
        (until(lambda k: 1 - 1 / k**2), "belongs to the rate"),
        (until(lambda k: factor(k) ** 2), "square of the error"),
        (lambda k, left: np.log(factor(k)) / np.log(left), "upside down"),
        (lambda k, left: 1, "the same answer whatever comes in"),
        (lambda k, left: int(k**2 / 2 * np.log(1 / left)), "approximation for large kappa"),
        (lambda k, left: int(np.ceil(k**2 / 2 * np.log(1 / left))), "approximation for large kappa"),
        (lambda k, left: int(np.ceil((1 - left) / (1 - factor(k)))), "shares multiply"),
        (lambda k, left: 1 + int(np.ceil(np.log(left) / np.log(factor(k)))), "one step too many"),
        (lambda k, left: int(np.ceil(np.log10(left) / np.log(factor(k)))), "steps_needed()"),
        (lambda k, left: 10, "the same answer whatever comes in"),
    ],
    "speedup_prediction": [
        (9, "How do the steps grow with kappa"),
        (2, "what is the new kappa"),
        (6561, "what is the new kappa"),
        (40.5, "an exponent, not a factor"),
        (1 / 81, "turn it round"),
        (100, "speedup_prediction is not right yet. What is kappa after graying"),
        ((81, 9), "expected a single value"),
    ],
    "skip_prediction": [
        ((19, 19, 19), "what the bound allows"),
        ((1, 1, 1), "add the identity first"),
        ((1, 19, 19), "`turn`"),
        ((10, 19, 1), "`shrink`"),
        ((1, 10, 1), "`split`: the smallest"),
        ((1, 19, np.sqrt(1.81)), "root of 1 + 0.81"),
        (19, "has 1 result, expected 3"),
        ((2, 3, 4), "skip_prediction is not right yet. Write out"),
    ],
    "epsilon_prediction": [
        ((1 / 3, 1 / 3), "three cubes"),
        ((1 / 3, 1 / 9), "exponents multiply"),
        ((1 / 27, 1 / 3), "swapped"),
        ((3, 27), "at most 1"),
        ((0.5, 0.125), "does not square it"),
        ((0.33, 0.04), "rounded too much"),
        (1 / 3, "has 1 result, expected 2"),
        ((0.7, 0.4), "epsilon_prediction is not right yet. One layer"),
    ],
    "gray_limit": [
        ("a", "What becomes of the others"),
        ("c", "keep its lead"),
        ("0", "has to be a letter"),
        (0.0, "has to be a letter"),
        ("right angles", "has to be a letter"),
    ],
}
