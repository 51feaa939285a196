"""The checks of assignment 1: softmax, attention, one row of it, the ratio of two weights, ranks."""

import numpy as np

from attn_utils.checks.core import Check, Choice, Value
from attn_utils.scaled_dot_product import attention
from attn_utils.weightings import softmax as right_softmax

# ------------------------------------------------------------------------------- softmax


def softmax(scores):
    return right_softmax(scores)


def softmax_cases(rng):
    shapes = [(5,), (3, 4), (4, 4), (2, 3, 5)]
    usual = [(rng.normal(size=shape),) for shape in shapes]
    single = rng.normal(size=(3, 4)).astype(np.float32)
    large = rng.normal(size=(3, 5)) + np.array([[1000], [-1000], [0]])
    mixed = rng.normal(size=(2, 6)) + np.array([[0, 0, 0, 0, 0, 1000], [-900, -900, 0, 0, 0, 1000]])
    return [*usual, (single,), (large,), (mixed,)]


def _exp_over(axis):
    def mistake(scores):
        return right_softmax(scores, axis=axis)

    return mistake


def _naive(scores):
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


def _shifted_by(what):
    """A softmax over the last axis from which something else than the largest score of the row is subtracted."""

    def mistake(scores):
        exps = np.exp(scores - what(scores, axis=-1, keepdims=True))
        return exps / exps.sum(-1, keepdims=True)

    return mistake


def _naive_over_columns(scores):
    return np.exp(scores) / np.exp(scores).sum(0, keepdims=True)


def _over_all(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum()


def _naive_over_all(scores):
    return np.exp(scores) / np.exp(scores).sum()


COLUMNS = "your rows do not sum to 1, your columns do: the softmax runs over the last axis, keys (axis=-1)."
ALL = "all your weights together sum to 1: each row needs a sum of its own (axis=-1, keepdims=True)."

SOFTMAX = Check(
    "softmax",
    softmax,
    softmax_cases,
    mistakes=[
        (_exp_over(0), COLUMNS),
        (_naive_over_columns, COLUMNS),
        (_over_all, ALL),
        (_naive_over_all, ALL),
        (
            lambda s: np.exp(s - s.max(1, keepdims=True)) / np.exp(s - s.max(1, keepdims=True)).sum(1, keepdims=True),
            "axis=1 is the last axis of a matrix only: with a batch or for one row it is not. Use axis=-1.",
        ),
        (
            _naive,
            "large scores overflow: exp(1000) is inf. Subtract the largest score of each row first; it cancels.",
        ),
        (
            _shifted_by(np.mean),
            "you subtract the mean of a row: one score far above the others still overflows. Subtract the largest.",
        ),
        (
            _shifted_by(lambda s, **one_row: s.max()),
            "you subtract the largest of all scores: a row far below it becomes 0/0. Subtract the largest of each row.",
        ),
        (
            lambda s: s / s.sum(-1, keepdims=True),
            "you divide the scores themselves by their sum: take their exponentials first.",
        ),
        (
            lambda s: np.exp(s - s.max(-1, keepdims=True)),
            "these are the exponentials: divide each row by its sum, so that it sums to 1.",
        ),
        (np.exp, "these are the exponentials: divide each row by its sum, so that it sums to 1."),
        (lambda s: 1 / (1 + np.exp(-s)), "this is the sigmoid of each score: the weights of a row share one sum."),
        (
            lambda s: np.log(right_softmax(s)),
            "these are the logarithms of the weights: leave out the log.",
        ),
        (lambda s: right_softmax(-s), "the largest score gets the smallest weight: there is a minus sign too many."),
    ],
    properties=[
        (
            lambda value, scores: np.allclose(np.sum(value, axis=-1), 1, atol=1e-3),
            "your rows do not sum to 1 over the last axis.",
        ),
    ],
    tried="seven random arrays with one to three axes, one of float32 and two with scores near 1000.",
)

# -------------------------------------------------------------------------------- attend


def attend(Q, K, V):
    return attention(Q, K, V)


def attend_cases(rng):
    shapes = [  # (leading axes, n_queries, n_keys, d_k, d_v)
        ((), 3, 5, 9, 2),
        ((), 4, 4, 4, 4),
        ((), 6, 2, 3, 5),
        ((2,), 3, 5, 7, 4),
        ((2, 3), 2, 4, 4, 6),
    ]
    sizes = [[(*b, n, d), (*b, m, d), (*b, m, v)] for b, n, m, d, v in shapes]
    cases = [tuple(rng.normal(size=size) for size in three) for three in sizes]
    single = tuple(rng.normal(size=size).astype(np.float32) for size in ((3, 8), (5, 8), (5, 2)))
    large = tuple(rng.normal(size=size) * 3 for size in ((3, 8), (5, 8), (5, 2)))
    large[0][0] = large[1][0] = 30  # a score above 2,500: its exponential overflows
    return [*cases, single, large]


def _scaled_by(scale):
    """Attention with another factor on the scores."""

    def mistake(Q, K, V):
        return attention(Q, K, V, scale=scale(Q, K))

    return mistake


def _scaled_by_values(Q, K, V):
    return attention(Q, K, V, scale=1 / np.sqrt(V.shape[-1]))


def _key_not_transposed(Q, K, V):
    weights = right_softmax(Q @ K / np.sqrt(K.shape[-1]))
    return weights @ V, weights


def _all_axes_reversed(Q, K, V):
    weights = right_softmax(Q @ K.T / np.sqrt(K.shape[-1]))
    return weights @ V, weights


def _over_queries(Q, K, V):
    weights = right_softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]), axis=-2)
    return weights @ V, weights


def _no_softmax(Q, K, V):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    return scores @ V, scores


def _naive_softmax(Q, K, V):
    exps = np.exp(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1]))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ V, weights


def _scaled_weights(Q, K, V):
    weights = right_softmax(Q @ np.swapaxes(K, -1, -2)) / np.sqrt(K.shape[-1])
    return weights @ V, weights


def _multiplied(Q, K):
    return np.sqrt(K.shape[-1])


ATTEND = Check(
    "attend",
    attend,
    attend_cases,
    mistakes=[
        (_scaled_by(lambda Q, K: 1.0), "you did not scale the scores: divide them by the root of d_k."),
        (
            _scaled_by(lambda Q, K: 1 / K.shape[-1]),
            "you divided by d_k, not by its root: the scores come out too small.",
        ),
        (
            _scaled_by(lambda Q, K: 1 / np.sqrt(K.shape[-2])),
            "you scaled by the sequence length, the number of keys, not by the key dimension d_k.",
        ),
        (
            _scaled_by(lambda Q, K: 1 / np.sqrt(Q.shape[-2])),
            "you scaled by the number of queries, not by the key dimension d_k.",
        ),
        (
            _scaled_by(lambda Q, K: 1 / np.sqrt(K.shape[0])),
            "you took the root of K.shape[0], the number of keys (or a batch), not of the key dimension K.shape[-1].",
        ),
        (_scaled_by(lambda Q, K: 0.5), "you always divide by 2, which is right for d_k = 4 alone."),
        (_scaled_by(_multiplied), "you multiply by the root of d_k: divide by it."),
        (_key_not_transposed, "you did not transpose K: the scores are Q K^T, one number for each query and key."),
        (
            _all_axes_reversed,
            "K.T reverses all axes, also those of a batch: swap the last two only, with np.swapaxes(K, -1, -2).",
        ),
        (
            _over_queries,
            "your softmax runs over the queries: each row of weights, over the keys, has to sum to 1 (axis=-1).",
        ),
        (_scaled_by_values, "you scaled by the width of the values, d_v, not by the key dimension d_k."),
        (_naive_softmax, "large scores overflow: subtract the largest score of each row before the exponential."),
        (_no_softmax, "there is no softmax: your weights are the scores themselves."),
        (_scaled_weights, "you divided the weights by the root of d_k: divide the scores, before the softmax."),
        (lambda Q, K, V: attention(Q, K, V)[0], "you return the output alone: return output, weights."),
        (lambda Q, K, V: attention(Q, K, V)[1], "you return the weights alone: return output, weights."),
        (lambda Q, K, V: attention(Q, K, V)[::-1], "the order is the other way round: return output, weights."),
        (lambda Q, K, V: attention(K, Q, V), "queries and keys are swapped: the scores are Q K^T."),
    ],
    tried="seven random triples with more queries than keys and fewer, with batches, heads and large scores.",
)

# ------------------------------------------------------------------------- a row, a ratio

RANKS = Value(
    "ranks",
    (12, 13),
    mistakes=[
        ((11, 12), "you count from 0: the largest weight has rank 1."),
        ((2, 1), "you count from the smallest weight: the largest has rank 1."),
        ((1, 0), "you count from the smallest weight, and from 0: the largest has rank 1."),
        ((13, 12), "either the two words are swapped, or you read the column of 'it': a query's weights are a row."),
        ((12, 11), "you read the column of 'it', and count from 0: a query's weights are a row."),
        ((11, 13), "you count trophy from 0 and suitcase from 1: the largest weight has rank 1."),
    ],
    hint="Count how many of the 13 weights in the row of 'it' are larger than that of the word, and add 1.",
    tried="trophy comes 12th and suitcase last, of 13 tokens.",
)

RATIO_PREDICTION = Choice(
    "ratio_prediction",
    "c",
    {
        "a": "'small' would have to get into the weight on trophy. Which vectors are in that weight's score?",
        "b": "'small' would have to get into the weight on suitcase. Which vectors are in that weight's score?",
    },
    "the ratio holds one query and two keys, and the last word is none of them.",
)


def log_ratio(q, k_1, k_2):
    return np.dot(q, k_1 - k_2) / np.sqrt(len(q))


def log_ratio_cases(rng):
    return [tuple(rng.normal(size=(3, d))) for d in (4, 9, 50)] + [tuple(40 * rng.normal(size=(3, 16)))]


LOG_RATIO = Check(
    "log_ratio",
    log_ratio,
    log_ratio_cases,
    mistakes=[
        (lambda q, a, b: q @ (a - b), "the scores are divided by the root of d_k, and so is their difference."),
        (lambda q, a, b: q @ (a - b) / len(q), "divide by the root of d_k, not by d_k."),
        (lambda q, a, b: q @ (b - a) / np.sqrt(len(q)), "the sign is wrong: the weight on k_1 is on top of the ratio."),
        (lambda q, a, b: q @ (a + b) / np.sqrt(len(q)), "the logarithm of a ratio is a difference, not a sum."),
        (lambda q, a, b: q @ (a - b) / 2, "you always divide by 2, which is right for d_k = 4 alone."),
        (
            lambda q, a, b: np.exp(q @ (a - b) / np.sqrt(len(q))),
            "this is the ratio itself: its logarithm is asked for.",
        ),
        (
            lambda q, a, b: np.log((q @ a) / (q @ b)),
            "a ratio of weights is not a ratio of scores: the weights are exponentials of them.",
        ),
        (lambda q, a, b: (q @ a) / (q @ b), "this is a ratio of scores: the weights are exponentials of them."),
        (
            lambda q, a, b: np.log(np.exp(q @ a / np.sqrt(len(q))) / np.exp(q @ b / np.sqrt(len(q)))),
            "large scores overflow on the way: simplify the formula first, so that no exponential is left.",
        ),
    ],
    tried="random vectors of length 4, 9, 16 and 50, some with scores in the thousands.",
)

# -------------------------------------------------------------------------------- ranks

RANK_PREDICTION = Value(
    "rank_prediction",
    (4, 12),
    mistakes=[
        ((13, 13), "13 x 13 is the size. Q has 4 columns: what does that say about Q K^T? And which tokens are equal?"),
        ((4, 13), "the scores have rank 4. For the weights: the word 'the' stands there twice, with the same vector."),
        ((4, 4), "the scores have rank 4; but the exponential acts on each number by itself. Does that keep the rank?"),
        ((12, 12), "the weights have rank 12. For the scores: Q is 13 x 4, so how many columns does Q K^T combine?"),
        ((50, 12), "the words have 50 features, but queries and keys have 4 of them left."),
        ((4, 5), "a power of the scores raises the rank, and the exponential is a sum of all powers."),
        ((12, 4), "the order is: scores first, then weights."),
        ((13, 12), "the weights have rank 12. For the scores: Q is 13 x 4, so how many columns does Q K^T combine?"),
    ],
    hint="The rank is the number of singular values that are not zero; np.linalg.matrix_rank counts them.",
    tried="rank 4 before the softmax, rank 12 after it.",
)

CHECKS = [SOFTMAX, ATTEND, RANKS, RATIO_PREDICTION, LOG_RATIO, RANK_PREDICTION]
