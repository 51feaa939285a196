"""The checks of assignment 6: a softmax with a sink, ReLU attention, a gate, two measurements, three predictions."""

from dataclasses import replace

import numpy as np

from attn_utils.checks.core import Check, Choice, Value
from attn_utils.tasks import trigger_sequences
from attn_utils.weightings import relu, softmax, softmax1
from attn_utils.weightings import sink_softmax as right_sink_softmax

# --------------------------------------------------------------------------- sink_softmax


def sink_softmax(scores, sink):
    return right_sink_softmax(scores, sink)


def sink_softmax_cases(rng):
    usual = [(rng.normal(size=shape), sink) for shape, sink in (((3,), 0.7), ((3, 4), 0.0), ((4, 4), -1.5))]
    batch = rng.normal(size=(2, 3, 5)), 2.0
    single = rng.normal(size=(3, 4)).astype(np.float32), 1.0
    large = rng.normal(size=(3, 5)) + np.array([[1000], [-1000], [0]]), 0.5
    loud = rng.normal(size=(2, 5)), 1000.0
    quiet = rng.normal(size=(2, 3)) - 1000, -1000.0
    hidden = np.where(np.tri(4, 5, -1, dtype=bool), rng.normal(size=(4, 5)), -np.inf), 0.3  # row 0: all masked
    return [*usual, batch, single, large, loud, quiet, hidden]


def _sunk(extra, axis=-1):
    """Weights over the sum of exponentials and something extra, without care for overflow."""

    def mistake(scores, sink):
        exps = np.exp(scores)
        return exps / (exps.sum(axis, keepdims=True) + extra(sink))

    return mistake


def _top(scores):
    return scores.max(axis=-1, keepdims=True)


def _careful(extra):
    """The largest score is subtracted from the scores; what is added to the sum is extra(sink, largest score)."""

    def mistake(scores, sink):
        exps = np.exp(scores - _top(scores))
        return exps / (exps.sum(-1, keepdims=True) + extra(sink, _top(scores)))

    return mistake


def _shifted(scores, sink, top):
    exps = np.exp(scores - top)
    return exps / (exps.sum(-1, keepdims=True) + np.exp(sink - top))


def _wider(scores, sink):
    column = np.full((*scores.shape[:-1], 1), sink, dtype=scores.dtype)
    return softmax(np.concatenate([scores, column], axis=-1))


OVERFLOW = "large scores overflow, or all exponentials vanish: subtract the largest of scores and sink from both first."
ONE_TOP = "you subtract one maximum from all rows: a row far below it vanishes. Use each row's own."
NO_SINK = "the sink is missing: your rows sum to 1. Add its exponential to the denominator."

SINK_SOFTMAX = Check(
    "sink_softmax",
    sink_softmax,
    sink_softmax_cases,
    mistakes=[
        (lambda s, b: softmax(s), NO_SINK),
        (_careful(lambda b, top: 0), NO_SINK),
        (_sunk(lambda b: 0), NO_SINK),
        (lambda s, b: softmax1(s), "you always add e^0 = 1, as softmax1 does: add e^sink."),
        (_sunk(lambda b: 1), "you always add 1, as softmax1 does: add e^sink. And large scores overflow."),
        (
            _careful(lambda b, top: np.exp(b)),
            "you subtract the largest score from the scores, but not from the sink: then it does not cancel.",
        ),
        (
            _careful(lambda b, top: 1),
            "you add 1 after subtracting the largest score: the sink has to be shifted too, and it is not always 0.",
        ),
        (_careful(lambda b, top: b), "you add the sink itself: it is a score, so add its exponential, shifted too."),
        (
            _careful(lambda b, top: np.exp(b - top)),
            "where all scores are -inf, so is the largest, and subtracting it gives NaN: "
            "let the sink take part in the maximum.",
        ),
        (_sunk(np.exp), OVERFLOW),
        (_sunk(lambda b: b), "you add the sink itself: it is a score, so add its exponential."),
        (_sunk(lambda b: np.exp(-b)), "the sign of the sink is wrong: a higher sink takes more weight."),
        (lambda s, b: right_sink_softmax(s, -b), "the sign of the sink is wrong: a higher sink takes more weight."),
        (_wider, "you return the weight of the sink as well: it belongs to no token, so leave the last column out."),
        (
            lambda s, b: right_sink_softmax(s, b + np.log(s.shape[-1])),
            "you add the sink once for each key: add it once for each row.",
        ),
        (
            lambda s, b: softmax(s - b),
            "subtracting the sink from all scores changes nothing: it cancels. Add e^sink to the denominator.",
        ),
        (
            lambda s, b: right_sink_softmax(s, b, axis=0),
            "your sums run over the first axis: the softmax runs over the last one, keys (axis=-1).",
        ),
        (
            lambda s, b: np.exp(s - _both(s, b)) / (np.exp(s - _both(s, b)).sum() + np.exp(b - _both(s, b))),
            "your denominator is one sum for all rows: each row needs its own (axis=-1, keepdims=True).",
        ),
        (lambda s, b: _shifted(s, b, s.max()), ONE_TOP),
        (lambda s, b: _shifted(s, b, _both(s, b)), ONE_TOP),
        (
            lambda s, b: _shifted(s, b, np.maximum(_top(s), 0)),
            "where scores and sink are far below 0, all vanishes: take the largest of scores and sink, not 0.",
        ),
        (
            lambda s, b: _shifted(s, np.maximum(_top(s), b), np.maximum(_top(s), b)),
            "after the shift the sink's term is e^(sink - largest), which is 1 only where the sink is the largest.",
        ),
        (
            lambda s, b: right_sink_softmax(s, b) / right_sink_softmax(s, b).sum(-1, keepdims=True),
            "you normalise the rows to 1 at the end, which undoes the sink.",
        ),
    ],
    properties=[
        (
            lambda value, scores, sink: np.all(np.sum(value, axis=-1) <= 1 + 1e-3),
            "a row sums to more than 1: the sink has to take a share of the row, not add to it.",
        ),
    ],
    tried="nine random arrays: with masks, of float32, and with scores and sinks near 1000 and -1000.",
)


def _both(scores, sink):
    return max(scores.max(), sink)


# ------------------------------------------------------------------------- relu_attention


def relu_attention(Q, K, V):
    scores = np.where(np.tri(Q.shape[-2], dtype=bool), Q @ np.swapaxes(K, -1, -2), -np.inf)
    weights = relu(scores, uncounted=1)
    return weights @ V, weights


def relu_attention_cases(rng):
    shapes = [((), 4, 3, 2), ((), 5, 5, 5), ((), 7, 4, 3), ((2,), 4, 6, 3), ((2, 3), 5, 3, 4)]
    triples = [
        tuple(rng.normal(size=(*lead, n, d)) for d in (d_k, d_k, d_v)) for lead, n, d_k, d_v in shapes
    ]  # leading axes, n_tokens, d_k, d_v
    single = tuple(rng.normal(size=(6, d)).astype(np.float32) for d in (4, 4, 2))
    agreeing = tuple(np.abs(rng.normal(size=(6, d))) for d in (3, 3, 4))  # no score is negative
    return [*triples, single, agreeing]


def _relu_with(count=None, mask="lower", act=lambda s: np.maximum(s, 0), scale=lambda d: 1, keys=None):
    """ReLU attention with one part exchanged. count: of (n, weights) -> what divides the weights."""
    masks = {"lower": np.tril, "upper": np.triu, "none": lambda a: a}
    masks |= {"strict": lambda a: np.tril(a, -1), "ahead": lambda a: np.tril(a, 1)}
    count = count or (lambda n, w: np.maximum(np.arange(n), 1)[:, None])
    keys = keys or (lambda K: np.swapaxes(K, -1, -2))

    def mistake(Q, K, V):
        scores = Q @ keys(K) / scale(Q.shape[-1])
        weights = masks[mask](act(scores))
        with np.errstate(all="ignore"):
            weights = weights / count(Q.shape[-2], weights)
        return weights @ V, weights

    return mistake


def _softmaxed(Q, K, V):
    scores = np.where(np.tri(Q.shape[-2], dtype=bool), Q @ np.swapaxes(K, -1, -2), -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


def _row_sums(n, weights):
    sums = weights.sum(-1, keepdims=True)
    return np.where(sums > 0, sums, 1)


def _bos_hidden(Q, K, V):
    weights = relu_attention(Q, K, V)[1].copy()
    weights[..., 0] = 0
    return weights @ V, weights


def _counted_before_the_mask(Q, K, V):
    scores = np.maximum(Q @ np.swapaxes(K, -1, -2), 0)
    weights = np.tril(scores / np.arange(Q.shape[-2])[:, None])  # the first row: s / 0
    return weights @ V, weights


def _relu_on_output(Q, K, V):
    _, weights = _relu_with(act=lambda s: s)(Q, K, V)
    return np.maximum(weights @ V, 0), weights


NO_SCALE = "this head has no scale: do not divide the scores by the root of d_k."
SIMPLEX = "you divide each row by its sum, which makes it sum to 1 again, as a softmax does. Divide by the count."
FIRST = "the first query sees BOS alone: its count would be 0, and you divide by it. The count is at least 1."

RELU_ATTENTION = Check(
    "relu_attention",
    relu_attention,
    relu_attention_cases,
    mistakes=[
        (
            _relu_with(count=lambda n, w: np.arange(1, n + 1)[:, None]),
            "you count BOS as well: the count is i for the row with i tokens before it, 1, 1, 2, 3, ...",
        ),
        (_relu_with(count=lambda n, w: np.arange(n)[:, None]), FIRST),
        (_counted_before_the_mask, FIRST),
        (
            _relu_with(count=lambda n, w: np.maximum(np.arange(n) - 1, 1)[:, None]),
            "your count is one too small: the query with i tokens before it sees i besides BOS, itself included.",
        ),
        (
            _relu_with(count=lambda n, w: n),
            "you divide all rows by the number of tokens: each query counts those that it sees, without BOS.",
        ),
        (
            _relu_with(count=lambda n, w: n - 1),
            "you divide all rows by n - 1: each query counts the tokens that it sees, without BOS.",
        ),
        (
            _relu_with(count=lambda n, w: np.maximum(np.arange(n), 1)),
            "your count goes along the keys: it belongs to the query, so it is a column, count[:, None].",
        ),
        (
            _relu_with(count=lambda n, w: np.maximum(np.arange(n)[::-1], 1)[:, None]),
            "your count is upside down: the first query sees one token, the last all of them.",
        ),
        (
            _relu_with(count=lambda n, w: np.maximum((w > 0).sum(-1, keepdims=True), 1)),
            "you count the positive weights: the count is of the tokens that may be looked at, whatever their scores.",
        ),
        (
            _relu_with(count=lambda n, w: np.maximum((w[..., 1:] > 0).sum(-1, keepdims=True), 1)),
            "you count the positive weights: the count is of the tokens that may be looked at, whatever their scores.",
        ),
        (_relu_with(count=_row_sums), SIMPLEX),
        (_relu_with(count=lambda n, w: w.sum(-1, keepdims=True)), SIMPLEX),
        (_relu_with(count=lambda n, w: 1), "the count is missing: divide each row by how many tokens it sees."),
        (_relu_with(mask="none"), "there is no mask: a query sees the keys up to its own place."),
        (_relu_with(mask="upper"), "your mask is upside down: a query sees earlier keys, so keep the lower triangle."),
        (_relu_with(mask="ahead"), "your mask lets each query see one token too many, the one after it."),
        (_relu_with(mask="strict"), "your mask hides the query's own place: it sees the keys up to and with itself."),
        (_relu_with(act=lambda s: s), "the ReLU is missing: negative scores give weight 0."),
        (_relu_with(act=np.abs), "this is the absolute value: negative scores give weight 0."),
        (_relu_with(act=lambda s: np.maximum(-s, 0)), "you keep the negative scores: the positive ones are wanted."),
        (_relu_with(act=lambda s: (s > 0).astype(float)), "your weights are 0 or 1 before the count: keep the scores."),
        (_relu_with(act=lambda s: np.maximum(s, 0) ** 2), "your scores are squared: the ReLU keeps them as they are."),
        (_relu_with(scale=np.sqrt), NO_SCALE),
        (_relu_with(scale=lambda d: d), NO_SCALE),
        (_relu_with(keys=lambda K: K), "you did not transpose K: the scores are Q K^T, one for each query and key."),
        (
            _relu_with(keys=lambda K: K.T),
            "K.T reverses all axes, also those of a batch: swap the last two only, with np.swapaxes(K, -1, -2).",
        ),
        (_softmaxed, "this is a softmax: the weights here are max(score, 0) over the count."),
        (_bos_hidden, "BOS is not counted, but it may be looked at: its weight is like any other."),
        (_relu_on_output, "the ReLU belongs on the scores, not on the output."),
        (
            lambda Q, K, V: _relu_with()(K, Q, V),
            "queries and keys are swapped: the scores are Q K^T.",
        ),
        (lambda Q, K, V: relu_attention(Q, K, V)[0], "you return the output alone: return output, weights."),
        (lambda Q, K, V: relu_attention(Q, K, V)[1], "you return the weights alone: return output, weights."),
        (lambda Q, K, V: relu_attention(Q, K, V)[::-1], "the order is the other way round: return output, weights."),
    ],
    tried="seven random triples with batches and heads, of 4 to 7 tokens.",
)

# --------------------------------------------------------------------------- gated_output


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated_output(X, W_G, A, V):
    return _sigmoid(X @ W_G) * (A @ V)


def gated_output_cases(rng):
    def case(lead, n, d, d_v):
        sizes = (*lead, n, d), (d, 1), (*lead, n, n), (*lead, n, d_v)
        X, W_G, scores, V = (rng.normal(size=size) for size in sizes)
        return X, W_G, softmax(scores), V

    shapes = [((), 3, 2, 4), ((), 4, 4, 4), ((), 5, 3, 1), ((2,), 3, 4, 5), ((2, 3), 4, 3, 2)]
    return [*(case(*sizes) for sizes in shapes), tuple(one.astype(np.float32) for one in case((), 6, 3, 2))]


KEY_GATE = (
    "you gate the keys' tokens (their values or columns): the gate belongs to the query and multiplies its whole row."
)

GATED_OUTPUT = Check(
    "gated_output",
    gated_output,
    gated_output_cases,
    mistakes=[
        (lambda X, W, A, V: A @ V, "the gate is missing, or it cancels again: this is the output as it was."),
        (lambda X, W, A, V: A @ (_sigmoid(X @ W) * V), KEY_GATE),
        (lambda X, W, A, V: (A * np.swapaxes(_sigmoid(X @ W), -1, -2)) @ V, KEY_GATE),
        (lambda X, W, A, V: (X @ W) * (A @ V), "the sigmoid is missing: a gate lies between 0 and 1."),
        (lambda X, W, A, V: _sigmoid(-(X @ W)) * (A @ V), "the sign is wrong: a large x W_G opens the gate."),
        (lambda X, W, A, V: np.tanh(X @ W) * (A @ V), "this is the tanh: a gate is a sigmoid, between 0 and 1."),
        (lambda X, W, A, V: np.maximum(X @ W, 0) * (A @ V), "this is a ReLU: a gate is a sigmoid, between 0 and 1."),
        (
            lambda X, W, A, V: softmax(X @ W, axis=-2) * (A @ V),
            "your gates sum to 1 over the tokens: each gate is a sigmoid of its own token alone.",
        ),
        (lambda X, W, A, V: _sigmoid(X @ W) + A @ V, "you add the gate: multiply by it."),
        (lambda X, W, A, V: _sigmoid(A @ X @ W) * (A @ V), "your gate sees the mixed tokens A X: take X itself."),
        (
            lambda X, W, A, V: softmax(_sigmoid(X @ W) * np.log(A)) @ V,
            "you gate the scores: the softmax stays as it is, and the gate comes after it.",
        ),
        (lambda X, W, A, V: _sigmoid(A @ V), "this is the sigmoid of the output: multiply by that of X W_G."),
        (
            lambda X, W, A, V: _sigmoid((X @ W).mean(-2, keepdims=True)) * (A @ V),
            "you use one gate for all queries: each has its own.",
        ),
        (
            lambda X, W, A, V: _sigmoid(X @ W)[..., 0] * (A @ V),
            "your gates run along the features: one gate for each query is a column, (n_tokens, 1).",
        ),
        (lambda X, W, A, V: _sigmoid(X @ W) * V, "the weights are missing: the gate multiplies A V."),
        (lambda X, W, A, V: _sigmoid(X @ W) * A, "the values are missing: the gate multiplies A V."),
    ],
    tried="six random cases with batches, heads and float32.",
)

# ---------------------------------------------------------------------------- sink_weight


def sink_weight(A, Y):
    return A[_rest(Y), 0].mean()


def _rest(Y, bos=False, trigger=False):
    rest = ~Y.any(axis=-1) | trigger
    rest[:, 0] = bos
    return rest


def sink_weight_cases(rng):
    def case(n, n_tokens, d):
        Y = trigger_sequences(n, rng, n_tokens, d)[1]
        may = np.tri(n_tokens, dtype=bool)
        return softmax(np.where(may, rng.normal(size=(n, n_tokens, n_tokens)), -np.inf)), Y

    return [case(*sizes) for sizes in ((1, 5, 4), (4, 5, 5), (8, 6, 4), (5, 12, 6), (20, 8, 5))]


def _per_sequence_sum(A, Y):
    return np.sum(np.where(_rest(Y), A[..., 0], 0)) / len(A)


SINK_WEIGHT = Check(
    "sink_weight",
    sink_weight,
    sink_weight_cases,
    mistakes=[
        (
            lambda A, Y: A[_rest(Y, bos=True), 0].mean(),
            "you count the row of BOS, whose weight on itself is always 1: leave the first row out.",
        ),
        (
            lambda A, Y: A[:, 1:, 0].mean(),
            "you count the rows of the trigger: they are busy. Rest is where the target is zero.",
        ),
        (
            lambda A, Y: A[..., 0].mean(),
            "you count all rows: leave out those of the triggers, which are busy, and of BOS, which has no choice.",
        ),
        (
            lambda A, Y: A[Y.any(axis=-1), 0].mean(),
            "these are the rows of the triggers: the rows at rest are the others.",
        ),
        (
            lambda A, Y: 1 - sink_weight(A, Y),
            "this is the weight that is not on BOS.",
        ),
        (
            lambda A, Y: np.swapaxes(A, -1, -2)[_rest(Y), 0].mean(),
            "you read row 0, what BOS looks at: the weight on BOS is the first column, A[..., 0].",
        ),
        (
            lambda A, Y: A[:, 0][_rest(Y)].mean(),
            "you read row 0, what BOS looks at: the weight on BOS is the first column, A[..., 0].",
        ),
        (
            lambda A, Y: A[:, -1, 0].mean(),
            "you look at the last row alone: take all rows at rest.",
        ),
        (lambda A, Y: np.sum(A[_rest(Y), 0]), "this is the sum: take the mean over the rows at rest."),
        (_per_sequence_sum, "you divide by the number of sequences: divide by the number of rows at rest."),
        (
            lambda A, Y: np.where(_rest(Y), A[..., 0], 0).mean(),
            "you put zeros in the busy rows and divide by all rows: divide by the number of rows at rest.",
        ),
        (
            lambda A, Y: np.where(_rest(Y), A[..., 0], 0)[:, 1:].mean(),
            "you put zeros in the busy rows and divide by all rows: divide by the number of rows at rest.",
        ),
        (lambda A, Y: A[_rest(Y), 1].mean(), "BOS is the first token, and Python counts from 0: A[..., 0]."),
        (lambda A, Y: A[_rest(Y)].max(axis=-1).mean(), "you take the largest weight of each row: take that on BOS."),
        (lambda A, Y: A[_rest(Y)].mean(), "you average over all keys: take the weight on BOS, A[..., 0]."),
        (lambda A, Y: A[_rest(Y), 0].max(), "this is the largest weight on BOS: take the mean."),
        (lambda A, Y: A[_rest(Y), 0].min(), "this is the smallest weight on BOS: take the mean."),
        (lambda A, Y: np.median(A[_rest(Y), 0]), "this is the median: take the mean."),
    ],
    tried="five random batches of the trigger task, of 5 to 12 tokens.",
)

# ----------------------------------------------------------------------------- sink_score


def sink_score(n, leak):
    return np.log((n - 1) * (1 - leak) / leak)


def sink_score_cases(rng):
    fixed = [(16, 0.2), (2, 0.5), (4096, 0.01), (10, 0.9), (1_000_000, 0.001)]
    return [*fixed, (int(rng.integers(3, 1000)), float(rng.uniform(0.1, 0.8)))]


SINK_SCORE = Check(
    "sink_score",
    sink_score,
    sink_score_cases,
    mistakes=[
        (
            lambda n, x: np.log(n * (1 - x) / x),
            "you count n other tokens: BOS is one of the n, so n - 1 are left.",
        ),
        (lambda n, x: np.log((n - 1) / x), "this holds for a small leak only: BOS itself is in the denominator, too."),
        (lambda n, x: np.log(n / x), "BOS is one of the n, and its exponential is in the denominator, too."),
        (
            lambda n, x: np.log((n - 1) * x / (1 - x)),
            "leak and the rest are swapped: a smaller leak needs a larger score.",
        ),
        (lambda n, x: -sink_score(n, x), "the sign is wrong: a smaller leak needs a larger score."),
        (lambda n, x: (n - 1) * (1 - x) / x, "this is e^c: take its logarithm."),
        (lambda n, x: np.log10((n - 1) * (1 - x) / x), "the softmax has e in it: use the natural logarithm."),
        (lambda n, x: np.log2((n - 1) * (1 - x) / x), "the softmax has e in it: use the natural logarithm."),
        (
            lambda n, x: np.log((1 - x) / x),
            "the number of tokens is missing: n - 1 others have e^0 = 1 each in the denominator.",
        ),
        (lambda n, x: np.log((1 - x) / x / (n - 1)), "more tokens need a larger score: multiply by n - 1."),
        (
            lambda n, x: np.log((n - 1) * (1 - (n - 1) * x) / ((n - 1) * x)),
            "leak is what all the other tokens get together, not each of them.",
        ),
        (
            lambda n, x: np.log((1 - (n - 1) * x) / x),
            "leak is what all the other tokens get together, not each of them.",
        ),
    ],
    tried="six pairs, from 2 tokens to a million.",
)

GROWTH_PREDICTION = Choice(
    "growth_prediction",
    "c",
    {
        "a": "a million more tokens have a score of 0, so e^c, not c, has to grow a million times.",
        "b": "no root is taken anywhere: solve e^c / (e^c + n - 1) = 0.99 for c.",
        "d": "each new token brings e^0 = 1 to the denominator: at the same c the leak grows with n.",
    },
    "c grows by the logarithm of a million, 13.8.",
)

# ---------------------------------------------------------------------------- predictions


def _letters(value):
    """Letters in lower case, also where they come as one text, "nlell" or "n, l, e, l, l"."""
    if isinstance(value, str):
        letters = [one for one in value if one.isalpha()]
        value = letters if len(letters) == 5 else value
    texts = isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
    return [one.strip().lower() for one in value] if texts else value


REST_PREDICTION = Value(
    "rest_prediction",
    ("n", "l", "e", "l", "l"),
    mistakes=[
        (
            ("l", "l", "e", "l", "l"),
            "softmax: without BOS, row 1 has to look at itself. What does that say about xM, and the trigger's row?",
        ),
        (("n", "e", "e", "l", "l"), "softmax1: can one of its weights be exactly 0?"),
        (("n", "e", "e", "e", "e"), "which of these weights or gates can be exactly 0, not only small?"),
        (("n", "l", "e", "l", "e"), "gate: can a sigmoid be exactly 0?"),
        (("n", "l", "e", "e", "l"), "sigmoid: can it be exactly 0?"),
        (("n", "l", "e", "e", "e"), "sigmoid and gate: can a sigmoid be exactly 0?"),
        (("n", "e", "e", "e", "l"), "softmax1 and sigmoid: can their weights be exactly 0?"),
        (
            ("n", "l", "e", "l", "n"),
            "gate: its rows sum to one, but what comes out of it is multiplied by something that can come close to 0.",
        ),
        (
            ("n", "l", "l", "l", "l"),
            "ReLU: can its weights be exactly 0? And equal for all tokens at the trigger?",
        ),
        (
            ("n", "n", "e", "l", "l"),
            "softmax1: what happens to a row whose scores all fall far below 0?",
        ),
        (
            ("n", "l", "e", "n", "l"),
            "sigmoid: what happens to a row whose scores all fall far below 0, or rise far above?",
        ),
        (("n", "n", "e", "n", "n"), "which of the rows can come *close* to nothing, softmax1, sigmoid or gate?"),
        (("n", "n", "e", "l", "n"), "softmax1 and gate: what can all of a row come close to?"),
        (("n", "l", "n", "l", "l"), "ReLU: what are its weights where all scores are negative?"),
    ],
    hint='Five letters of "e", "l", "n". Ask of each head: what can a row of it sum to, 1 only, nearly 0, or 0?',
    tried="no plain softmax; all others come close to nothing, and ReLU alone gets there.",
)

ALARM_PREDICTION = Choice(
    "alarm_prediction",
    "c",
    {
        "a": "without BOS, row 1 forces xM = 0 for ordinary tokens. Does this task need anything else from them?",
        "b": "what does weight on a token with an empty value pass on? Does it matter on which token it lies?",
    },
    "the alarm needs nothing from ordinary tokens: all their values may be empty, and any is a place to rest.",
)

CHECKS = [
    SINK_SOFTMAX,
    RELU_ATTENTION,
    GATED_OUTPUT,
    SINK_WEIGHT,
    SINK_SCORE,
    GROWTH_PREDICTION,
    replace(REST_PREDICTION, clean=_letters),
    ALARM_PREDICTION,
]
