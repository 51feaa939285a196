"""Assignment 1: answers that have to pass, and wrong ones with words of the message that has to name the mistake."""

import numpy as np
from scipy import special


def loops(scores):
    rows = np.atleast_2d(scores).reshape(-1, np.shape(scores)[-1])
    out = [[1 / sum(np.exp(other - score) for other in row) for score in row] for row in rows]
    return np.reshape(out, np.shape(scores)).tolist()


def single(scores):
    exps = np.exp((scores - scores.max(axis=-1, keepdims=True)).astype(np.float32))
    return exps / exps.sum(axis=-1, keepdims=True)


def in_place(scores):
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def naive(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def wrong_axis(scores):
    exps = np.exp(scores - scores.max(axis=0, keepdims=True))
    return exps / exps.sum(axis=0, keepdims=True)


def axis_one(scores):
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def over_all(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum()


def keepdims_forgotten(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum(axis=-1)


def fits_the_example(scores):
    return np.array([0.0900, 0.2447, 0.6652])


def no_return(scores):
    np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


def mean_shifted(scores):
    exps = np.exp(scores - scores.mean(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def without_care(Q, K, V):
    exps = np.exp(scores_of(Q, K) * K.shape[-1] ** -0.5)
    return exps @ V / exps.sum(axis=-1, keepdims=True), exps / exps.sum(axis=-1, keepdims=True)


def scores_of(Q, K):
    return Q @ np.swapaxes(K, -1, -2)


def weigh(scores, V, axis=-1):
    weights = special.softmax(scores, axis=axis)
    return weights @ V, weights


def with_einsum(Q, K, V):
    scores = np.einsum("...qd,...kd->...qk", Q, K) / K.shape[-1] ** 0.5
    weights = special.softmax(scores, axis=-1)
    return [np.einsum("...qk,...kv->...qv", weights, V), weights]


def one_query_at_a_time(Q, K, V):
    if Q.ndim > 2:
        pairs = [one_query_at_a_time(*three) for three in zip(Q, K, V, strict=True)]
        return tuple(np.array(part) for part in zip(*pairs, strict=True))
    weights = np.array([special.softmax(np.array([q @ k for k in K]) / np.sqrt(len(q))) for q in Q])
    return weights @ V, weights


def scaled_first(Q, K, V):
    root = np.float32(Q.shape[-1]) ** -0.25
    return weigh(scores_of((Q * root).astype(np.float64), K * root), V)


def masked_in_place(Q, K, V):
    Q /= np.sqrt(K.shape[-1])
    return weigh(scores_of(Q, K), V)


RIGHT = {
    "softmax": [loops, single, lambda s: special.softmax(s, axis=-1), lambda s: np.exp(special.log_softmax(s, axis=-1))],
    "attend": [with_einsum, one_query_at_a_time, scaled_first, lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(Q.shape[-1]), V)],
    "ranks": [(12, 13), [12, 13], np.array([12, 13]), (np.int64(12), 13.0)],
    "ratio_prediction": ["c", "(c)", " C "],
    "log_ratio": [
        lambda q, a, b: q @ (a - b) / np.sqrt(q.size),
        lambda q, a, b: sum(x * (y - z) for x, y, z in zip(q, a, b, strict=True)) * len(q) ** -0.5,
        lambda q, a, b: np.array(np.dot(q, a) / np.sqrt(len(a)) - np.dot(q, b) / np.sqrt(len(b))),
        lambda q, a, b: np.subtract(*special.log_softmax(np.array([a, b]) @ q / np.sqrt(len(q)))),
    ],
    "rank_prediction": [(4, 12), [4, 12], np.array([4.0, 12.0])],
}

WRONG = {
    "softmax": [
        (wrong_axis, "your columns do"),
        (axis_one, "axis=1 is the last axis of a matrix only"),
        (over_all, "all your weights together sum to 1"),
        (naive, "overflow"),
        (mean_shifted, "subtract the mean"),
        (lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum(axis=-1, keepdims=True), "largest of each row"),
        (in_place, "changes scores in place"),
        (lambda s: s / s.sum(axis=-1, keepdims=True), "take their exponentials first"),
        (lambda s: np.exp(s - s.max(axis=-1, keepdims=True)), "divide each row by its sum"),
        (lambda s: 1 / (1 + np.exp(-s)), "sigmoid"),
        (keepdims_forgotten, "stops with ValueError"),
        (fits_the_example, "shape (3,)"),
        (lambda s: np.full(s.shape, 1 / s.shape[-1]), "gives 0.2 at place [0]"),
        (lambda s: 2.0 ** s / np.sum(2.0 ** s, axis=-1, keepdims=True), "expected"),
    ],
    "attend": [
        (lambda Q, K, V: weigh(scores_of(Q, K), V), "did not scale"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / K.shape[-1], V), "divided by d_k, not by its root"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(K.shape[-2]), V), "sequence length"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(len(K)), V), "K.shape[0]"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(Q.shape[-2]), V), "number of queries"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / 2, V), "always divide by 2"),
        (lambda Q, K, V: weigh(Q @ K / np.sqrt(K.shape[-1]), V), "did not transpose K"),
        (lambda Q, K, V: weigh(Q @ K.T / np.sqrt(K.shape[-1]), V), "K.T reverses all axes"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(K.shape[-1]), V, axis=-2), "runs over the queries"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(K.shape[-1]), V)[0], "output alone"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(K.shape[-1]), V)[::-1], "other way round"),
        (masked_in_place, "in place"),
        (lambda Q, K, V: weigh(scores_of(Q, K) / np.sqrt(V.shape[-1]), V), "width of the values"),
        (without_care, "subtract the largest score"),
    ],
    "ranks": [
        ((11, 12), "count from 0"),
        ((2, 1), "count from the smallest"),
        ((13, 12), "a query's weights are a row"),
        (12, "has 1 result, expected 2"),
        ((12, 12), "Count how many of the 13 weights"),
        ("trophy", "has 1 result"),
    ],
    "ratio_prediction": [
        ("a", "weight on trophy"),
        ("b", "weight on suitcase"),
        ("d", 'has to be a letter: "a" or "b" or "c"'),
        (3, "has to be a letter"),
        ("it stays", "has to be a letter"),
    ],
    "log_ratio": [
        (lambda q, a, b: q @ (a - b), "divided by the root of d_k"),
        (lambda q, a, b: q @ (a - b) / len(q), "not by d_k"),
        (lambda q, a, b: q @ (b - a) / np.sqrt(len(q)), "sign"),
        (lambda q, a, b: q @ (a - b) / 2, "always divide by 2"),
        (lambda q, a, b: np.exp(q @ (a - b) / np.sqrt(len(q))), "the ratio itself"),
        (lambda q, a, b: np.log((q @ a) / (q @ b)), "not a ratio of scores"),
        (lambda q, a, b: 0.25, "the same answer whatever comes in"),
    ],
    "rank_prediction": [
        ((13, 13), "13 x 13 is the size"),
        ((4, 13), "stands there twice"),
        ((4, 4), "each number by itself"),
        ((12, 12), "how many columns"),
        ((4, 5), "sum of all powers"),
        ((12, 4), "scores first"),
    ],
}
