"""Assignment 2: answers that have to pass, and wrong ones with words of the message that has to name the mistake."""

import numpy as np
from scipy import special, stats


def normalised_first(q_std, k_std, d_k):
    return np.float32(d_k) ** -0.5 / q_std / k_std


def entropy_by_loops(weights):
    rows = np.reshape(weights, (-1, np.shape(weights)[-1]))
    numbers = [np.prod([float(p) ** -float(p) for p in row if p > 0]) for row in rows]
    return np.reshape(numbers, np.shape(weights)[:-1]).tolist()


def in_two(weights):
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = weights * np.log2(weights)
    return 2 ** -np.nansum(bits, axis=-1)


def zeros_overwritten(weights):
    weights[weights == 0] = 1
    return np.exp(-np.sum(weights * np.log(weights), axis=-1))


def full_jacobian(q, K, g, scale):
    p = special.softmax(scale * K @ q)
    return g @ (np.diag(p) - np.outer(p, p)) @ (scale * K)


def pushes(q, K, g, scale):
    h = 1e-5
    steps = np.eye(len(q)) * h
    return np.array([g @ (special.softmax(scale * K @ (q + e)) - special.softmax(scale * K @ (q - e))) for e in steps]) / (2 * h)


def from_the_mean_key(q, K, g, scale):
    p = special.softmax(scale * (K @ q))
    mean = sum(w * k for w, k in zip(p, K, strict=True))
    return [scale * sum(w * c * (k[i] - mean[i]) for w, c, k in zip(p, g, K, strict=True)) for i in range(len(q))]


def with_scales(inside, front):
    def answer(q, K, g, scale):
        p = special.softmax(inside(scale, K) * (K @ q))
        return front(scale, K) * (p * (g - p @ g)) @ K

    return answer


def with_jacobian(J):
    def answer(q, K, g, scale):
        p = special.softmax(scale * (K @ q))
        return scale * (J(p) @ g) @ K

    return answer


def stops_at_the_scores(q, K, g, scale):
    p = special.softmax(scale * (K @ q))
    return p * (g - p @ g)


RIGHT = {
    "unit_scale": [
        normalised_first,
        lambda a, b, d: (a * a * b * b * d) ** -0.5,
        lambda a, b, d: 1 / np.sqrt(sum(a**2 * b**2 for _ in range(d))),
        lambda a, b, d: np.array(1 / (a * b * d**0.5)),
    ],
    "neighbours": [
        entropy_by_loops,
        in_two,
        lambda w: np.exp(stats.entropy(w, axis=-1)),
        lambda w: np.exp(special.entr(w.astype(np.float32)).sum(axis=-1)),
        lambda w: np.exp(-(w * np.log(w + 1e-12)).sum(-1)),
    ],
    "shift_prediction": ["b", "(b)", "B"],
    "row_spread": [
        lambda q, s: s * np.sqrt(q @ q),
        lambda q, s: np.sqrt(sum(x**2 * s**2 for x in q)),
        lambda q, s: np.float32(s * np.linalg.norm(q)),
        lambda q, s: np.std(np.array([q, -q]) * s, axis=0) @ (np.abs(q) / np.linalg.norm(q)),
    ],
    "query_gradient": [
        full_jacobian,
        pushes,
        from_the_mean_key,
        lambda q, K, g, scale: with_scales(lambda s, K: s, lambda s, K: s)(q.astype(np.float32), K, g, scale),
    ],
    "lottery_prediction": [(0.25, 0), [0.25, 0.0], np.array([0.26, 0.001]), (1 / 4, np.float32(0))],
    "step_prediction": [4, 4.0, np.sqrt(16), np.array(3.98)],
}

WRONG = {
    "unit_scale": [
        (lambda a, b, d: d**-0.5, "assume components of variance 1"),
        (lambda a, b, d: 1 / a / b / d, "not by its root"),
        (lambda a, b, d: a * b * d**0.5, "this is the spread itself"),
        (lambda a, b, d: 1 / (d * (a * b) ** 2), "take its root"),
        (lambda a, b, d: (a * b * d) ** -0.5, "squares are missing"),
        (lambda a, b, d: (d * (a**2 + b**2)) ** -0.5, "product of their variances"),
        (lambda a, b, d: 1 / ((a + b) * d**0.5), "multiply, they do not add"),
        (lambda a, b, d: d**0.5 / (a * b), "multiply by the root"),
        (lambda a, b, d: 1 / (a * b * d**0.25), "gives 0.3333, expected 0.1667 for q_std = 0.5, k_std = 3, d_k = 16"),
        (lambda a, b, d: 1 / 6, "the same answer whatever comes in"),
        (lambda a, b, d: print(1 / (a * b * d**0.5)) if a != 0.5 else 1 / 6, "gives nothing back"),
    ],
    "neighbours": [
        (lambda w: np.exp(-np.sum(w * np.log(w), axis=-1)), "makes NaN"),
        (lambda w: stats.entropy(w, axis=-1), "take e to its power"),
        (lambda w: np.exp(-stats.entropy(w, axis=-1)), "minus sign is missing"),
        (lambda w: np.exp(stats.entropy(w, base=2, axis=-1)), "mix two bases: with log2"),
        (lambda w: 2 ** stats.entropy(w, axis=-1), "mix two bases: with ln"),
        (lambda w: np.exp(-np.sum(w * np.log(np.maximum(w, 1e-12)), axis=0)), "first axis"),
        (lambda w: np.exp(stats.entropy(w)), "of shape (5,), expected an array of numbers of shape (3,)"),
        (lambda w: np.exp(-(w * np.log(w)).sum(0)), "and zeros make NaN"),
        (lambda w: np.exp(stats.entropy(w, axis=-1)).mean(), "mean over the rows"),
        (lambda w: 1 / (w**2).sum(axis=-1), "another way"),
        (lambda w: (w > 0.05).sum(axis=-1), "neighbours()"),
        (lambda w: np.full(w.shape[:-1], 2.5), "expected"),
        (zeros_overwritten, "changes weights in place"),
        (lambda w: -np.sum(w * np.log(w), axis=-1), "zeros make it NaN"),
        (lambda w: np.exp(np.sum(np.where(w > 0, w * np.log(np.where(w > 0, w, 1)), 0), axis=-1)), "minus sign"),
        (lambda w: np.exp(np.sum(w * np.log(w), axis=-1)), "minus sign is missing in H"),
        (lambda w: special.entr(w).sum(axis=-1) + 1, "expected"),
        (lambda w: special.entr(w).mean(axis=-1), "at least 1 neighbour"),
    ],
    "shift_prediction": [
        ("a", "write out q . (k + 3)"),
        ("c", "the same for all keys of a row"),
        ("queries", "has to be a letter"),
        (2, "has to be a letter"),
        (("b",), "has to be a letter"),
    ],
    "row_spread": [
        (lambda q, s: s * len(q) ** 0.5, "components of q of size 1"),
        (lambda q, s: s**2 * (q @ q), "this is the variance"),
        (lambda q, s: s * (q @ q), "the root is missing"),
        (lambda q, s: s * np.abs(q).sum(), "for independent terms variances add"),
        (lambda q, s: s * q.sum(), "do not add with their signs"),
        (lambda q, s: s * q.std() * len(q) ** 0.5, "its mean is not to be taken out"),
        (lambda q, s: s * np.linalg.norm(q) / len(q) ** 0.5, "unscaled scores"),
        (lambda q, s: np.std(np.random.default_rng(0).normal(size=(50, len(q))) @ q * s), "expected"),
        (lambda q, s: 1.871, "the same answer whatever comes in"),
        (lambda q, s: s * np.max(np.abs(q)), "gives 1.5, expected 1.871 for q = [3.0, -1.0, 2.0], k_std = 0.5"),
    ],
    "query_gradient": [
        (with_scales(lambda s, K: s, lambda s, K: 1), "missing in front"),
        (with_scales(lambda s, K: 1, lambda s, K: s), "missing inside the softmax"),
        (with_scales(lambda s, K: 1, lambda s, K: 1), "there is no scale"),
        (with_scales(lambda s, K: K.shape[-1] ** -0.5, lambda s, K: K.shape[-1] ** -0.5), "scale that you are given"),
        (with_scales(lambda s, K: s, lambda s, K: s**2), "in front twice"),
        (with_jacobian(np.diag), "only diag(p)"),
        (with_jacobian(lambda p: np.diag(p) - p * p), "np.outer"),
        (with_jacobian(lambda p: -np.outer(p, p)), "diag(p) is missing"),
        (with_jacobian(lambda p: np.diag(p * (1 - p))), "diagonal of J alone"),
        (with_jacobian(lambda p: np.outer(p, p) - np.diag(p)), "the sign is wrong"),
        (with_jacobian(lambda p: np.diag(p) + np.outer(p, p)), "query_gradient()"),
        (lambda q, K, g, s: s * K @ (g * special.softmax(s * K @ q)), "stops with ValueError"),
        (stops_at_the_scores, "gradient at the scores"),
        (lambda q, K, g, s: np.zeros(len(q)), "query_gradient() gives 0 at place [0]"),
        (lambda q, K, g, s: full_jacobian(q, K, g, s)[None, :], "expected an array of numbers of shape (2,)"),
    ],
    "lottery_prediction": [
        ((0, 0), "right about the typical query"),
        ((0.25, 0.25), "right about the mean"),
        ((0.0625, 0), "right about the median"),
        ((1, 1), "would hold with the scale"),
        ((0.5, 0), "halves for four times"),
        (0.25, "has 1 result, expected 2"),
        ((0, 0.25), "mean comes first"),
        ((0.7, 0.1), "lottery_prediction is not right yet. Mean: how much rarer"),
    ],
    "step_prediction": [
        (1, "Do the changes of the products cancel"),
        (16, "that is the unscaled score"),
        (2, "what is left?"),
        (0.25, "sum of the changes grows as well"),
        (256, "not with its square"),
        (3, "step_prediction is not right yet. How does the sum"),
        ("four", "expected a single value"),
        ((64, 1024), "expected a single value"),
    ],
}
