"""The checks of assignment 2: the scale, e^H, the spread of a row, a gradient at the query, what width does."""

import numpy as np

from attn_utils.checks.core import Check, Choice, Value
from attn_utils.weightings import softmax

# ---------------------------------------------------------------------------- unit_scale


def unit_scale(q_std, k_std, d_k):
    return 1 / (q_std * k_std * np.sqrt(d_k))


def unit_scale_cases(rng):
    drawn = [(*rng.uniform(0.1, 4, size=2), d_k) for d_k in (4, 9, 64, 100, 1024)]
    cases = [(0.5, 3.0, 16), (1.0, 1.0, 64), *drawn]
    return [(float(q_std), float(k_std), d_k) for q_std, k_std, d_k in cases]


UNIT_SCALE = Check(
    "unit_scale",
    unit_scale,
    unit_scale_cases,
    mistakes=[
        (lambda a, b, d: 1 / np.sqrt(d), "you assume components of variance 1: q_std and k_std have to come in."),
        (lambda a, b, d: 1 / (a * b * d), "you divided by d_k, not by its root: variances add, not spreads."),
        (lambda a, b, d: a * b * np.sqrt(d), "this is the spread itself: the factor has to divide by it."),
        (lambda a, b, d: 1 / (a**2 * b**2 * d), "you divided by the variance of the scores: take its root."),
        (
            lambda a, b, d: 1 / (a**2 * b**2 * np.sqrt(d)),
            "the root is taken of d_k alone: the standard deviations come out of it, not squared.",
        ),
        (
            lambda a, b, d: 1 / np.sqrt(a * b * d),
            "the variance of one product is q_std^2 k_std^2: the squares are missing under the root.",
        ),
        (
            lambda a, b, d: 1 / np.sqrt(d * (a**2 + b**2)),
            "the variance of a product of independent numbers of mean 0 is the product of their variances.",
        ),
        (lambda a, b, d: 1 / ((a + b) * np.sqrt(d)), "the spreads of the two factors multiply, they do not add."),
        (lambda a, b, d: np.sqrt(d) / (a * b), "you multiply by the root of d_k: divide by it."),
        (lambda a, b, d: 1 / (a * b), "d_k is missing: a score adds up d_k products."),
        (lambda a, b, d: a * b / np.sqrt(d), "larger components make larger scores: divide by q_std and k_std, too."),
        (lambda a, b, d: 1 / (a * np.sqrt(d)), "the spread of the keys is missing."),
        (lambda a, b, d: 1 / (b * np.sqrt(d)), "the spread of the queries is missing."),
        (lambda a, b, d: 1 / (a * b * 4), "you always divide by 4, which is right for d_k = 16 alone."),
    ],
    tried="seven pairs of spreads with widths from 4 to 1024.",
)

# ---------------------------------------------------------------------------- neighbours


def neighbours(weights):
    return np.exp(_entropy(weights))


def _entropy(weights, axis=-1):
    weights = np.asarray(weights, dtype=float)
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=axis)


def neighbours_cases(rng):
    shapes = [(4,), (3, 5), (4, 4), (2, 3, 6)]
    usual = [(softmax(2 * rng.normal(size=shape)),) for shape in shapes]
    masked = np.where(rng.random((5, 7)) < 0.5, -np.inf, rng.normal(size=(5, 7)))
    masked[:, 0] = 0  # no row without any weight
    single = softmax(rng.normal(size=(3, 4)).astype(np.float32))
    return [*usual, (softmax(masked),), (np.eye(4),), (single,)]


def _naive(weights):
    return np.exp(-np.sum(weights * np.log(weights), axis=-1))


SUM_OF_LOGS = "the logarithms have to be weighted: H is the sum of -p ln p, not of -ln p."

NEIGHBOURS = Check(
    "neighbours",
    neighbours,
    neighbours_cases,
    mistakes=[
        (_naive, "a weight of zero makes NaN, since the logarithm of 0 is -inf: let such places add nothing."),
        (_entropy, "this is the entropy H: take e to its power."),
        (lambda w: -np.sum(w * np.log(w), axis=-1), "this is H, and zeros make it NaN: let them add 0, then take e^H."),
        (lambda w: np.exp(-_entropy(w)), "the minus sign is missing: H = -sum of p ln p is not negative."),
        (lambda w: np.exp(np.sum(w * np.log(w), axis=-1)), "the minus sign is missing in H; and zeros make it NaN."),
        (
            lambda w: np.exp(_entropy(w) / np.log(2)),
            "you mix two bases: with log2 the number of neighbours is 2^H, with ln it is e^H.",
        ),
        (lambda w: 2 ** _entropy(w), "you mix two bases: with ln the number of neighbours is e^H, with log2 2^H."),
        (lambda w: _entropy(w) / np.log(w.shape[-1]), "this is H / ln n, between 0 and 1: the number is e^H."),
        (lambda w: np.exp(_entropy(w) / np.log(w.shape[-1])), "do not divide H by ln n: take e to the power of H."),
        (lambda w: np.exp(_entropy(w, axis=0)), "you sum over the first axis: the keys are the last (axis=-1)."),
        (lambda w: np.exp(-np.sum(w * np.log(w), axis=0)), "the keys are the last axis (axis=-1); and zeros make NaN."),
        (lambda w: np.exp(_entropy(w, axis=None)), "you sum over all rows: each has an entropy of its own (axis=-1)."),
        (lambda w: np.exp(_entropy(w)).mean(), "this is the mean over the rows: give one number for each row."),
        (lambda w: np.exp(_entropy(w).mean()), "this is one number for all rows: give one for each (axis=-1)."),
        (
            lambda w: 1 / np.sum(w**2, axis=-1),
            "1 / sum of p^2 counts neighbours, too, but another way: asked for is e^H.",
        ),
        (lambda w: np.sum(w > 0, axis=-1), "you count the keys with any weight, however small: asked for is e^H."),
        (lambda w: np.exp(-np.sum(np.log(np.where(w > 0, w, 1)), axis=-1)), SUM_OF_LOGS),
        (lambda w: np.exp(-np.sum(np.log(w), axis=-1)), SUM_OF_LOGS),
    ],
    properties=[
        (
            lambda value, weights: np.shape(value) == weights.shape[:-1] and np.all(np.asarray(value) > 0.999),
            "a query has at least 1 neighbour, when one key gets everything: some of yours have fewer.",
        ),
    ],
    tried="seven random arrays of weights, one with many zeros and one with a 1 in each row.",
)

# --------------------------------------------------------------------- shifts and spreads

SHIFT_PREDICTION = Choice(
    "shift_prediction",
    "b",
    {
        "a": "write out q . (k + 3): does the part with the 3 differ from key to key? What does the softmax do to it?",
        "c": "write out q . (k + 3) and (q + 3) . k: which of the two added parts is the same for all keys of a row?",
    },
    "q . (k + 3) adds 3 times the sum of q to every score of the row, and the softmax ignores a common shift; "
    "(q + 3) . k adds 3 times the sum of k, which differs from key to key.",
)


def row_spread(q, k_std):
    return k_std * np.linalg.norm(q)


def row_spread_cases(rng):
    drawn = [(rng.normal(size=d_k), float(k_std)) for d_k, k_std in ((9, 2.0), (64, 0.58))]
    shifted = (rng.normal(size=16) + 3, 1.0)
    single = (5 * rng.normal(size=(30,)).astype(np.float32), 0.3)
    return [(np.array([3.0, -1.0, 2.0]), 0.5), *drawn, shifted, single]


ROW_SPREAD = Check(
    "row_spread",
    row_spread,
    row_spread_cases,
    mistakes=[
        (lambda q, s: s * np.sqrt(len(q)), "that holds for components of q of size 1: this q is given, use its own."),
        (lambda q, s: np.sqrt(len(q)), "that holds for components of variance 1: use q and k_std."),
        (lambda q, s: s**2 * np.sum(q**2), "this is the variance: its root is asked for."),
        (lambda q, s: np.sqrt(s * np.sum(q**2)), "k_std belongs under the root as a square: variances add."),
        (lambda q, s: s * np.sum(q**2), "the root is missing: the spread is k_std times the length of q."),
        (lambda q, s: s * np.abs(np.sum(q)), "spreads do not add with their signs: add the variances q_i^2 k_std^2."),
        (lambda q, s: s * np.sum(q), "spreads do not add with their signs: add the variances q_i^2 k_std^2."),
        (lambda q, s: s * np.sum(np.abs(q)), "you add standard deviations: for independent terms variances add."),
        (lambda q, s: s * np.std(q) * np.sqrt(len(q)), "q is given, not random: its mean is not to be taken out."),
        (lambda q, s: s * np.std(q), "np.std(q) is the spread of q's components: the score adds d_k terms q_i k_i."),
        (
            lambda q, s: s * np.linalg.norm(q) / np.sqrt(len(q)),
            "you scaled by 1/sqrt(d_k): the unscaled scores are asked for.",
        ),
        (lambda q, s: np.linalg.norm(q), "the spread of the keys is missing: k_std."),
    ],
    tried="five queries of other lengths and means, with keys of other spreads.",
)

# ------------------------------------------------------------------------ query_gradient


def query_gradient(q, K, g, scale):
    p = softmax(scale * K @ q)
    return scale * K.T @ (p * (g - p @ g))


def query_gradient_cases(rng):
    shapes = [(3, 2, 0.5), (4, 4, 0.7), (6, 3, 1.0), (5, 16, 0.25), (2, 9, 0.2)]  # (n_keys, d_k, scale)
    cases = [(rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=n), scale) for n, d, scale in shapes]
    single = [one.astype(np.float32) for one in (rng.normal(size=8), rng.normal(size=(5, 8)), rng.normal(size=5))]
    return [*cases, (*single, 0.4)]


def _back(into_scores, scale=None, last=None):
    """The gradient with another step through the softmax, another scale inside it, or another factor at the end."""

    def mistake(q, K, g, s):
        p = softmax((s if scale is None else scale(K)) * K @ q)
        return (s if last is None else last(s, K)) * K.T @ into_scores(p, g)

    return mistake


def _right(p, g):
    return p * (g - p @ g)


def _not_transposed(q, K, g, scale):
    p = softmax(scale * K @ q)
    return scale * K @ _right(p, g)


QUERY_GRADIENT = Check(
    "query_gradient",
    query_gradient,
    query_gradient_cases,
    mistakes=[
        (_back(_right, last=lambda s, K: 1), "the scale is missing in front: scale * Kq has the derivative scale * K."),
        (
            _back(_right, scale=lambda K: 1),
            "the scale is missing inside the softmax: p belongs to the scores scale * Kq.",
        ),
        (
            _back(_right, scale=lambda K: 1, last=lambda s, K: 1),
            "there is no scale: it acts inside the softmax and again in front, by the chain rule.",
        ),
        (
            _back(_right, scale=lambda K: K.shape[1] ** -0.5, last=lambda s, K: K.shape[1] ** -0.5),
            "you use 1/sqrt(d_k): use the scale that you are given.",
        ),
        (_back(_right, last=lambda s, K: s**2), "the scale stands in front twice: once there, once in the softmax."),
        (
            _back(lambda p, g: p * g),
            "only diag(p) is there: without - p p^T a constant g, which changes nothing, would move q.",
        ),
        (
            _back(lambda p, g: p * g - p**2 @ g),
            "p * p is no matrix: the Jacobian needs the outer product p p^T, np.outer(p, p).",
        ),
        (_back(lambda p, g: -p * (p @ g)), "only - p p^T is there: diag(p) is missing."),
        (
            _back(lambda p, g: p * (1 - p) * g),
            "p (1 - p) is the diagonal of J alone: each weight depends on all scores of the row.",
        ),
        (_back(lambda p, g: p * (g - g.sum())), "subtract p . g, the mean of g under the weights, not the sum of g."),
        (_back(lambda p, g: p * (g - g.mean())), "subtract p . g, the mean under the weights, not the plain mean."),
        (_back(lambda p, g: g - p @ g), "the factor p in front is missing: J g = p * (g - p . g)."),
        (_back(lambda p, g: g), "the softmax is missing: between the weights and the scores stands its Jacobian."),
        (_back(lambda p, g: p * (p @ g - g)), "the sign is wrong: J g = p * (g - p . g)."),
        (_not_transposed, "K is not transposed: the gradient collects keys, K^T (J g), and has length d_k."),
        (
            lambda q, K, g, s: _right(softmax(s * K @ q), g),
            "this is the gradient at the scores: one step is left, through scale * Kq to q.",
        ),
        (
            lambda q, K, g, s: s * _right(softmax(s * K @ q), g),
            "this is the gradient at the products Kq: one step is left, K^T.",
        ),
    ],
    tried="six random rows, with other scales than 1/sqrt(d_k).",
)

# ----------------------------------------------------------------------------- two predictions

LOTTERY_PREDICTION = Value(
    "lottery_prediction",
    (0.25, 0.0),
    atol=0.03,
    mistakes=[
        ((0, 0), "right about the typical query. But in how many rows are the two best scores close?"),
        ((0.25, 0.25), "right about the mean. But does the typical query still hesitate? What is its lead?"),
        ((1 / 16, 0), "right about the median. For the mean: leads grow like the spread of the scores."),
        ((1 / 16, 1 / 16), "leads grow like the spread of the scores; and mean and median tell different stories."),
        ((0.5, 0), "right about the median. The mean halves for four times the width: how often is that here?"),
        ((1, 0), "right about the median. But close races become rarer as the leads grow."),
        ((1, 1), "that would hold with the scale: here there is none."),
        ((4, 0), "right about the median. The mean does not rise: close races become rarer."),
        ((0, 0.25), "the mean comes first, then the median."),
        ((4, 4), "the scores grow by 4: does a row that is nearly one-hot react more, or less?"),
    ],
    hint="Mean: how much rarer is a lead of a few units when all leads are larger by the factor of the scores' spread? "
    "Median: does the typical query have a close race?",
    tried="the mean falls to a quarter, the median to nothing.",
)

STEP_PREDICTION = Value(
    "step_prediction",
    4,
    rtol=0.03,
    mistakes=[
        (1, "that holds for the spread of the scores before the step. Do the changes of the products cancel, too?"),
        (16, "that is the unscaled score. The scale changes with the width, too."),
        (2, "the sum of changes grows like d_k, and the scale divides by the root of d_k: what is left?"),
        (0.25, "that would be 1/sqrt(d_k) alone: the sum of the changes grows as well."),
        (1 / 4096**0.5 * 4, "that would be 1/d_k alone: the sum of the changes grows as well."),
        (256, "each component moves by the learning rate: the changes grow with their number, not with its square."),
        (8, "count the powers of d_k: d_k for the sum, 1/sqrt(d_k) for the scale."),
    ],
    hint="How does the sum of d_k changes of one sign grow with d_k, and what does the scale take away?",
    tried="the rise grows like the root of the width.",
)

CHECKS = [
    UNIT_SCALE,
    NEIGHBOURS,
    SHIFT_PREDICTION,
    ROW_SPREAD,
    QUERY_GRADIENT,
    LOTTERY_PREDICTION,
    STEP_PREDICTION,
]
