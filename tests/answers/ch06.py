"""Assignment 6: answers that have to pass, and wrong ones with words of the message that has to name the mistake."""

import numpy as np
from scipy import special

# --------------------------------------------------------------------------- sink_softmax


def wider(scores, sink):
    """The weights beside one more key, which is then left out."""
    column = np.full((*scores.shape[:-1], 1), float(sink))
    return special.softmax(np.concatenate([scores, column], axis=-1), axis=-1)[..., :-1]


def by_logs(scores, sink):
    total = np.logaddexp(special.logsumexp(scores.astype(np.float64), axis=-1, keepdims=True), sink)
    return np.exp(scores - total)


def by_rows(scores, sink):
    if scores.ndim > 1:
        return [by_rows(row, sink) for row in scores]
    return [float(1 / (np.exp(sink - s) + sum(np.exp(other - s) for other in scores))) if s > -np.inf else 0.0
            for s in scores]  # fmt: skip


def shares(scores, sink):
    """What the sink leaves, times a plain softmax where there is one."""
    safe = np.where(np.isneginf(scores).all(axis=-1, keepdims=True), -1e300, scores)
    total = special.logsumexp(safe, axis=-1, keepdims=True)
    return special.softmax(safe, axis=-1) * special.expit(total - sink)


def sink_not_shifted(scores, sink):
    top = scores.max(axis=-1, keepdims=True)
    exps = np.exp(scores - top)
    return exps / (np.exp(sink) + exps.sum(axis=-1, keepdims=True))


def one_after_shift(scores, sink):
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / (1 + exps.sum(axis=-1, keepdims=True))


def sink_left_out_of_maximum(scores, sink):
    top = scores.max(axis=-1, keepdims=True)
    return np.exp(scores - top) / (np.exp(sink - top) + np.exp(scores - top).sum(axis=-1, keepdims=True))


def shift_by(scores, sink, top):
    return np.exp(scores - top) / (np.exp(sink - top) + np.exp(scores - top).sum(axis=-1, keepdims=True))


def one_maximum(scores, sink):
    return shift_by(scores, sink, scores.max())


def sink_taken_for_the_largest(scores, sink):
    exps = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), sink))
    return exps / (1 + exps.sum(axis=-1, keepdims=True))


def careless(scores, sink):
    return np.exp(scores) / (np.exp(sink) + np.exp(scores).sum(axis=-1, keepdims=True))


def not_exponentiated(scores, sink):
    return np.exp(scores) / (sink + np.exp(scores).sum(axis=-1, keepdims=True))


def keeps_the_column(scores, sink):
    column = np.full((*scores.shape[:-1], 1), float(sink))
    return special.softmax(np.concatenate([scores, column], axis=-1), axis=-1)


def softmax_one(scores, sink):
    return wider(scores, 0.0)


def first_axis(scores, sink):
    row = np.full((1, *scores.shape[1:]), float(sink))
    return special.softmax(np.concatenate([scores, row]), axis=0)[:-1]


def shifts_in_place(scores, sink):
    top = np.maximum(scores.max(axis=-1, keepdims=True), sink)
    scores -= top
    return np.exp(scores) / (np.exp(sink - top) + np.exp(scores).sum(axis=-1, keepdims=True))


# ------------------------------------------------------------------------- relu_attention


def relu_loops(Q, K, V):
    if Q.ndim > 2:
        pairs = [relu_loops(*three) for three in zip(Q, K, V, strict=True)]
        return tuple(np.array(part) for part in zip(*pairs, strict=True))
    n = len(Q)
    weights = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            weights[i, j] = max(float(Q[i] @ K[j]), 0.0) / max(i, 1)
    return weights @ V, weights


def relu_einsum(Q, K, V):
    n = Q.shape[-2]
    may = np.arange(n)[:, None] >= np.arange(n)
    seen = may.sum(axis=1) - 1
    seen[0] = 1
    weights = np.einsum("...id,...jd->...ij", Q, K).clip(0) * may / seen[:, None]
    return [np.einsum("...ij,...jv->...iv", weights, V), weights]


def relu_masked_first(Q, K, V):
    scores = Q.astype(np.float64) @ np.moveaxis(K, -1, -2)
    scores = np.where(np.tri(Q.shape[-2]) > 0, scores, -1e9)
    weights = scores * (scores > 0) / np.clip(np.arange(Q.shape[-2]), 1, None).reshape(-1, 1)
    return weights @ V, weights


def relu_head(Q, K, V, count=None, mask=np.tril, act=lambda s: np.maximum(s, 0)):
    weights = mask(act(Q @ np.swapaxes(K, -1, -2)))
    count = np.maximum(np.arange(Q.shape[-2]), 1)[:, None] if count is None else count(weights)
    return weights / count @ V, weights / count


def count_then_mask(Q, K, V):
    n = Q.shape[-2]
    seen = np.tri(n).sum(axis=-1, keepdims=True) - 1
    weights = np.tril(np.maximum(Q @ np.swapaxes(K, -1, -2), 0) / seen)
    return weights @ V, weights


def relu_one_ahead(Q, K, V):
    return relu_head(Q, K, V, mask=lambda w: np.tril(w, 1))


def scaled(Q, K, V):
    return relu_head(Q / np.sqrt(Q.shape[-1]), K, V)


def q_in_place(Q, K, V):
    Q *= 1.0
    Q[..., 0, :] = 0
    return relu_head(Q, K, V)


def key_as_is(Q, K, V):
    weights = np.tril(np.maximum(Q @ K, 0))
    return weights @ V, weights


def k_t(Q, K, V):
    weights = np.tril(np.maximum(Q @ K.T, 0)) / np.maximum(np.arange(len(Q)), 1)[:, None]
    return weights @ V, weights


def softmax_head(Q, K, V):
    scores = np.where(np.tri(Q.shape[-2]) > 0, Q @ np.swapaxes(K, -1, -2), -np.inf)
    weights = special.softmax(scores, axis=-1)
    return weights @ V, weights


# --------------------------------------------------------------------------- gated_output


def gate_on_rows(X, W_G, A, V):
    return (special.expit(X @ W_G) * A) @ V


def gate_by_diagonal(X, W_G, A, V):
    gate = special.expit(np.einsum("...nd,dk->...n", X.astype(np.float64), W_G))
    return np.einsum("...n,...nm,...mv->...nv", gate, A, V)


def gate_in_halves(X, W_G, A, V):
    return (A @ V) / 2 + np.tanh(X @ W_G / 2) * (A @ V) / 2


def gate_on_keys(X, W_G, A, V):
    return A @ (special.expit(X @ W_G) * V)


def gate_on_columns(X, W_G, A, V):
    return (A * np.swapaxes(special.expit(X @ W_G), -1, -2)) @ V


def gate_on_scores(X, W_G, A, V):
    return special.softmax(np.log(A) * special.expit(X @ W_G), axis=-1) @ V


def gate_renormalised(X, W_G, A, V):
    gated = special.expit(X @ W_G) * A
    return gated / gated.sum(axis=-1, keepdims=True) @ V


def gate_in_place(X, W_G, A, V):
    A *= special.expit(X @ W_G)
    return A @ V


def flat_gate(X, W_G, A, V):
    return special.expit(X @ W_G[:, 0]) * (A @ V)


# ---------------------------------------------------------------------------- sink_weight


def sink_loops(A, Y):
    found = []
    for weights, target in zip(A, Y, strict=True):
        for i in range(1, len(weights)):
            if not target[i].any():
                found.append(weights[i][0])
    return sum(found) / len(found)


def sink_by_average(A, Y):
    rest = (np.abs(Y).sum(axis=-1) == 0).astype(float)
    rest[:, 0] = 0
    return np.average(A[:, :, 0], weights=rest)


def sink_sliced(A, Y):
    return np.array(A[:, 1:, 0][np.linalg.norm(Y[:, 1:], axis=-1) < 1e-9].mean())


def at_rest(Y):
    rest = (Y == 0).all(axis=-1)
    rest[:, 0] = False
    return rest


def bos_row_counted(A, Y):
    return A[(Y == 0).all(axis=-1)][:, 0].mean()


def busy_rows_as_zero(A, Y):
    return (A[..., 0] * at_rest(Y)).mean()


def mean_of_means(A, Y):
    """Right: every sequence has as many rows at rest."""
    return np.mean([weights[rest, 0].mean() for weights, rest in zip(A, at_rest(Y), strict=True)])


def clears_first_target(A, Y):
    Y[:, 0] = 1
    return A[~Y.any(axis=-1), 0].mean()


# ----------------------------------------------------------------------------- sink_score


def solve(n, leak):
    """Bisection of the softmax itself."""
    low, high = -50.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        off = (n - 1) / (np.exp(middle) + n - 1)
        low, high = (middle, high) if off > leak else (low, middle)
    return low


RIGHT = {
    "sink_softmax": [wider, by_logs, by_rows, shares],
    "relu_attention": [relu_loops, relu_einsum, relu_masked_first],
    "gated_output": [gate_on_rows, gate_by_diagonal, gate_in_halves],
    "sink_weight": [sink_loops, sink_by_average, sink_sliced, mean_of_means],
    "sink_score": [solve, lambda n, x: np.log(n - 1) - special.logit(x), lambda n, x: np.log((n - 1) / x - (n - 1))],
    "growth_prediction": ["c", "(c)", " C"],
    "rest_prediction": [("n", "l", "e", "l", "l"), ["N", "L", "E", "L", "L"], "nlell", "n, l, e, l, l"],
    "alarm_prediction": ["c", "(c)", "C "],
}

WRONG = {
    "sink_softmax": [
        (lambda s, b: special.softmax(s, axis=-1), "the sink is missing"),
        (softmax_one, "you always add e^0"),
        (sink_not_shifted, "but not from the sink"),
        (one_after_shift, "add 1 after subtracting"),
        (sink_left_out_of_maximum, "where all scores are -inf"),
        (careless, "overflow"),
        (not_exponentiated, "you add the sink itself"),
        (keeps_the_column, "leave the last column out"),
        (first_axis, "first axis"),
        (shifts_in_place, "changes its input in place"),
        (lambda s, b: wider(s, -b), "sign of the sink"),
        (lambda s, b: wider(s, b) / wider(s, b).sum(axis=-1, keepdims=True), "undoes the sink"),
        (lambda s, b: special.softmax(s - b, axis=-1), "the sink is missing"),
        (lambda s, b: np.full(s.shape, 0.2), "expected"),
        (one_maximum, "you subtract one maximum from all rows"),
        (lambda s, b: shift_by(s, b, np.maximum(s.max(-1, keepdims=True), 0)), "not 0"),
        (sink_taken_for_the_largest, "only where the sink is the largest"),
        (lambda s, b: wider(s, b) + 0.1, "sums to more than 1"),
        (lambda s, b: wider(s, b) ** 2, "expected"),
        (lambda s, b: 3 * wider(s, b), "sums to more than 1"),
    ],
    "relu_attention": [
        (relu_one_ahead, "one token too many"),
        (lambda Q, K, V: relu_head(Q, K, V, lambda w: np.arange(1, Q.shape[-2] + 1)[:, None]), "you count BOS as well"),
        (lambda Q, K, V: relu_head(Q, K, V, lambda w: np.arange(Q.shape[-2])[:, None]), "you divide by it"),
        (count_then_mask, "you divide by it"),
        (
            lambda Q, K, V: relu_head(Q, K, V, lambda w: np.maximum(np.arange(Q.shape[-2]) - 1, 1)[:, None]),
            "one too small",
        ),
        (lambda Q, K, V: relu_head(Q, K, V, lambda w: Q.shape[-2]), "by the number of tokens"),
        (lambda Q, K, V: relu_head(Q, K, V, lambda w: w.sum(-1, keepdims=True)), "sum to 1 again"),
        (lambda Q, K, V: relu_head(Q, K, V, lambda w: 1), "the count is missing"),
        (lambda Q, K, V: relu_head(Q, K, V, lambda w: np.maximum(np.arange(Q.shape[-2]), 1)), "it is a column"),
        (lambda Q, K, V: relu_head(Q, K, V, mask=np.triu), "upside down"),
        (lambda Q, K, V: relu_head(Q, K, V, mask=lambda w: w), "no mask"),
        (lambda Q, K, V: relu_head(Q, K, V, mask=lambda w: np.tril(w, -1)), "own place"),
        (lambda Q, K, V: relu_head(Q, K, V, act=lambda s: s), "ReLU is missing"),
        (lambda Q, K, V: relu_head(Q, K, V, act=np.abs), "absolute value"),
        (scaled, "no scale"),
        (softmax_head, "this is a softmax"),
        (k_t, "K.T reverses"),
        (key_as_is, "stops with ValueError"),
        (q_in_place, "in place"),
        (lambda Q, K, V: relu_head(Q, K, V)[0], "output alone"),
        (lambda Q, K, V: relu_head(Q, K, V)[::-1], "other way round"),
        (lambda Q, K, V: relu_head(Q, K, V, act=lambda s: np.where(s > 0, s, 0.01 * s)), "expected"),
    ],
    "gated_output": [
        (gate_on_keys, "belongs to the query"),
        (gate_on_columns, "belongs to the query"),
        (gate_on_scores, "you gate the scores"),
        (gate_renormalised, "it cancels again"),
        (gate_in_place, "in place"),
        (flat_gate, "is a column"),
        (lambda X, W_G, A, V: A @ V, "the gate is missing"),
        (lambda X, W_G, A, V: (X @ W_G) * (A @ V), "sigmoid is missing"),
        (lambda X, W_G, A, V: (1 - special.expit(X @ W_G)) * (A @ V), "sign is wrong"),
        (lambda X, W_G, A, V: np.tanh(X @ W_G) * (A @ V), "tanh"),
        (lambda X, W_G, A, V: special.softmax(X @ W_G, axis=-2) * (A @ V), "sum to 1 over the tokens"),
        (lambda X, W_G, A, V: special.softmax(X @ W_G, axis=-1) * (A @ V), "the gate is missing"),
        (lambda X, W_G, A, V: special.expit(X @ W_G), "expected an array"),
        (lambda X, W_G, A, V: 0.5 * (A @ V), "expected"),
    ],
    "sink_weight": [
        (bos_row_counted, "the row of BOS"),
        (lambda A, Y: A[:, 1:, 0].mean(), "rows of the trigger"),
        (lambda A, Y: A[:, :, 0].mean(), "you count all rows"),
        (lambda A, Y: A[Y.any(axis=-1)][:, 0].mean(), "these are the rows of the triggers"),
        (lambda A, Y: 1 - sink_loops(A, Y), "not on BOS"),
        (lambda A, Y: A[:, 0, :][at_rest(Y)].mean(), "you read row 0"),
        (lambda A, Y: A[:, -1, 0].mean(), "last row alone"),
        (lambda A, Y: A[at_rest(Y)][:, 0].sum(), "this is the sum"),
        (busy_rows_as_zero, "divide by all rows"),
        (lambda A, Y: A[at_rest(Y)][:, 1].mean(), "counts from 0"),
        (lambda A, Y: A[at_rest(Y)].max(axis=-1).mean(), "largest weight of each row"),
        (clears_first_target, "in place"),
        (lambda A, Y: A[at_rest(Y)][:, 0], "expected a single value"),
        (lambda A, Y: 0.9999, "the same answer whatever comes in"),
    ],
    "sink_score": [
        (lambda n, x: np.log(n * (1 - x) / x), "n - 1 are left"),
        (lambda n, x: np.log((n - 1) / x), "small leak only"),
        (lambda n, x: np.log((n - 1) * x / (1 - x)), "are swapped"),
        (lambda n, x: np.log(x / ((n - 1) * (1 - x))), "sign is wrong"),
        (lambda n, x: (n - 1) * (1 - x) / x, "take its logarithm"),
        (lambda n, x: np.log10((n - 1) * (1 - x) / x), "natural logarithm"),
        (lambda n, x: np.log((1 - x) / x), "number of tokens is missing"),
        (lambda n, x: np.log((1 - (n - 1) * x) / x), "all the other tokens get together"),
        (lambda n, x: 4.094, "the same answer whatever comes in"),
        (lambda n, x: np.sqrt(n - 1) * special.logit(1 - x), "expected"),
    ],
    "growth_prediction": [
        ("a", "so e^c, not c"),
        ("b", "no root is taken"),
        ("d", "the leak grows"),
        ("e", "has to be a letter"),
        (14, "has to be a letter"),
    ],
    "rest_prediction": [
        (("l", "l", "e", "l", "l"), "row 1 has to look at itself"),
        (("n", "e", "e", "e", "e"), "exactly 0, not only small"),
        (("n", "l", "e", "l", "n"), "its rows sum to one"),
        (("n", "l", "e", "e", "l"), "sigmoid: can it be exactly 0"),
        (("n", "l", "l", "l", "l"), "ReLU: can its weights"),
        (("e", "e", "e", "e", "e"), "Ask of each head"),
        ("nlele", "gate: can a sigmoid be exactly 0"),
        ("limit", "Ask of each head"),
        ("softmax", "has 1 result, expected 5"),
        (("n", "l", "e", "l"), "4 results, expected 5"),
        ((False, True, True, True, True), "Five letters"),
    ],
    "alarm_prediction": [
        ("a", "row 1 forces xM = 0"),
        ("b", "with an empty value"),
        ("d", "has to be a letter"),
        (3, "has to be a letter"),
        ("no sink", "has to be a letter"),
    ],
}
