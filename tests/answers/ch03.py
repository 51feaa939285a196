"""Assignment 3: answers that have to pass, and wrong ones with words of the message that has to name the mistake."""

import numpy as np
from scipy import special


def triangle(scores, k=0):
    return np.tril(np.ones(np.shape(scores)[-2:]), k)


def row_by_row(scores):
    n = scores.shape[-1]
    rows = scores.reshape(-1, n, n)
    weights = np.zeros(rows.shape)
    for matrix, out in zip(rows, weights, strict=True):
        for i in range(n):
            out[i, : i + 1] = special.softmax(matrix[i, : i + 1])
    return weights.reshape(scores.shape).tolist()


def copied_and_filled(scores):
    scores = scores.astype(np.float64)
    scores[..., *np.triu_indices(scores.shape[-1], 1)] = -np.inf
    return np.exp(special.log_softmax(scores, axis=-1))


def filled_in_place(scores):
    scores[..., *np.triu_indices(scores.shape[-1], 1)] = -np.inf
    return special.softmax(scores, axis=-1)


def only_for_one(scores):
    out = np.array(scores)
    out[np.triu_indices(len(out), 1)] = -np.inf
    return special.softmax(out, axis=-1)


def after_and_rescaled(scores):
    weights = special.softmax(scores, axis=-1) * triangle(scores)
    return weights / weights.sum(axis=-1, keepdims=True)


def filled(number, allowed=triangle):
    return lambda scores: special.softmax(np.where(allowed(scores) > 0, scores, number), axis=-1)


def window_by_loops(real, window):
    n = real.shape[-1]
    rows = [[[bool(r[j]) and i - window < j <= i for j in range(n)] for i in range(n)] for r in real.reshape(-1, n)]
    return np.reshape(rows, (*real.shape, n)).tolist()


def window_by_triangles(real, window):
    ones = np.ones((real.shape[-1],) * 2, dtype=bool)
    return np.tril(ones) & ~np.tril(ones, -window) & np.expand_dims(real, -2)


def window_by_product(real, window):
    n = real.shape[-1]
    return np.einsum("ij,...j->...ij", np.tri(n) - np.tri(n, k=-window), real) > 0


def band(real, low, high):
    place = np.arange(real.shape[-1])
    back = place[:, None] - place
    return (back >= low) & (back <= high)


def cached(q, k, v, K, V):
    K, V = np.append(K, k[None], axis=0), np.append(V, v[None], axis=0)
    return special.softmax(K @ q / len(q) ** 0.5) @ V, K, V


def cached_by_loops(q, k, v, K, V):
    keys, values = [*K.tolist(), k.tolist()], [*V.tolist(), v.tolist()]
    exps = [np.exp(np.dot(q, key) / np.sqrt(q.size)) for key in keys]
    out = [sum(e * value[n] for e, value in zip(exps, values, strict=True)) / sum(exps) for n in range(len(v))]
    return [out, keys, values]


def cached_without_copy(q, k, v, K, V):
    scores = np.append(K @ q, k @ q) / np.sqrt(np.float32(len(k)))
    weights = special.softmax(scores)
    return weights[:-1] @ V + weights[-1] * v, np.concatenate([K, [k]]), np.concatenate([V, [v]])


def step(scale=lambda q, K: len(q) ** -0.5, old=False):
    def answer(q, k, v, K, V):
        before = K, V
        K, V = np.vstack((K, k)), np.vstack((V, v))
        keys, values = before if old else (K, V)
        return special.softmax(keys @ q * scale(q, keys)) @ values, K, V

    return answer


def overwrites_the_oldest(q, k, v, K, V):
    if len(K):
        K[0], V[0] = k, v
    return special.softmax(K @ q / len(q) ** 0.5) @ V, K, V


def flat(q, k, v, K, V):
    K, V = np.append(K, k), np.append(V, v)
    return special.softmax(K @ q / len(q) ** 0.5) @ V, K, V


def never_appends(q, k, v, K, V):
    return special.softmax(K @ q / len(q) ** 0.5) @ V, K, V


def product(layers):
    out = layers[0]
    for weights in layers[1:]:
        out = weights @ out
    return out


def by_all_ways(layers):
    def arrives(depth, token):
        if depth < 0:
            return float(token == 0)
        return sum(layers[depth][token][j] * arrives(depth - 1, j) for j in range(token + 1))

    return arrives(len(layers) - 1, len(layers[0]) - 1)


def backwards(layers):
    layers = np.array(layers)[::-1]
    return product(layers)[-1, 0]


RIGHT = {
    "causal_weights": [
        row_by_row,
        copied_and_filled,
        filled(-np.inf),
        lambda s: special.softmax(s + np.triu(np.full(s.shape[-2:], -np.inf), 1), axis=-1),
        filled(np.finfo(np.float32).min * 1.0),
    ],
    "window_mask": [window_by_loops, window_by_triangles, window_by_product],
    "leaks": [
        [True, False, False, True, True],
        (True, False, False, True, True),
        np.array([1, 0, 0, 1, 1], dtype=bool),
        [np.True_, np.False_, False, True, True],
    ],
    "decode_step": [cached, cached_by_loops, cached_without_copy, step()],
    "tokens_that_fit": [24414, 24414.0, np.int64(24414), np.array(10**9 // 40960)],
    "first_share": [
        by_all_ways,
        lambda layers: product(layers)[-1][0],
        lambda layers: np.linalg.multi_dot([np.eye(len(layers[0])), *layers[::-1], np.eye(len(layers[0]))])[-1, 0],
        lambda layers: np.float32(product(layers.astype(np.float32))[-1, 0]),
    ],
    "share_prediction": [(1, 0), [1.0, 0.0], np.array([1 - 2.0**-16, 0])],
}

WRONG = {
    "causal_weights": [
        (filled(-np.inf, lambda s: triangle(s).T), "upside down"),
        (filled(-np.inf, lambda s: triangle(s, -1)), "hide each token from itself"),
        (lambda s: special.softmax(s, axis=-1) * triangle(s), "mask after the softmax: rows do not sum to 1"),
        (after_and_rescaled, "underflowed by then"),
        (lambda s: special.softmax(s * triangle(s), axis=-1), "a score like any other"),
        (filled(0), "a score like any other"),
        (filled(-1e9), "large number is not -inf"),
        (filled(-9999), "large number is not -inf"),
        (filled(-np.pi), "a key that comes after it"),
        (lambda s: special.softmax(s + (triangle(s) - 1) * 1e9, axis=-1), "large number is not -inf"),
        (lambda s: special.softmax(np.where(triangle(s) > 0, s, -np.inf), axis=-2), "down the columns"),
        (lambda s: special.softmax(s, axis=-1), "there is no mask"),
        (lambda s: np.exp(s) * triangle(s) / (np.exp(s) * triangle(s)).sum(-1, keepdims=True), "subtract the largest visible"),
        (lambda s: np.exp(np.where(triangle(s) > 0, s, -np.inf)) / np.exp(np.where(triangle(s) > 0, s, -np.inf)).sum(-1, keepdims=True), "overflow"),
        (filled_in_place, "changes scores in place"),
        (only_for_one, "right for one matrix"),
        (lambda s: triangle(s) / triangle(s).sum(-1, keepdims=True), "causal_weights()"),
        (lambda s: np.array([[1, 0], [0.4, 0.6]]), "causal_weights()"),
    ],
    "window_mask": [
        (lambda real, w: ~(band(real, 0, w - 1) & real[..., None, :]), "inverted"),
        (lambda real, w: band(real, 1 - w, 0) & real[..., None, :], "upside down"),
        (lambda real, w: band(real, 1 - w, w - 1) & real[..., None, :], "looks ahead"),
        (lambda real, w: band(real, 0, w) & real[..., None, :], "too long"),
        (lambda real, w: band(real, 0, w - 2) & real[..., None, :], "too short"),
        (lambda real, w: band(real, 1, w) & real[..., None, :], "diagonal is missing"),
        (lambda real, w: band(real, -99, w - 1) & real[..., None, :], "future is visible"),
        (lambda real, w: band(real, 0, w - 1) & real[:, None], "right for a batch"),
        (lambda real, w: np.tril(np.ones((real.shape[-1],) * 2, dtype=bool)), "causal mask alone"),
        (lambda real, w: band(real, 0, 99) & real[..., None, :], "no window"),
        (lambda real, w: band(real, 0, w - 1), "padding is not hidden"),
        (lambda real, w: band(real, 0, w - 1) & real[..., :, None], "hidden as a query"),
        (lambda real, w: band(real, 0, w - 1) & real[..., :, None] & real[..., None, :], "Nobody reads"),
        (lambda real, w: band(real, 0, w - 1) & real, "give it an axis"),
        (lambda real, w: band(real, 0, w - 1) | real[..., None, :], "combine with &"),
        (lambda real, w: (band(real, 0, w - 1) & real[..., None, :]).astype(int), "expected an array of True or False"),
        (lambda real, w: band(real, 0, w - 1) & ~real[..., None, :], "keep the padding alone"),
    ],
    "leaks": [
        ([True, True, False, True, True], "`rescaled`"),
        ([True, False, True, True, True], "scores of one row of `centred_keys`"),
        ([True, False, False, False, True], "`centred_values`"),
        ([True, False, False, True, False], "`two_layers`"),
        ([False, False, False, True, True], "`late`"),
        ([False, True, True, False, False], "other way round"),
        ([True] * 5, "`rescaled`"),
        ([False] * 5, "does not prove a program tight"),
        ([1, 0, 0, 1, 1], "expected an array of True or False"),
        (True, "is a single value (True or False), expected an array"),
        ([False, True, False, False, True], "Three or more are wrong"),
    ],
    "decode_step": [
        (step(old=True), "does not see itself"),
        (never_appends, "append nothing"),
        (step(lambda q, K: 1), "did not scale"),
        (step(lambda q, K: 1 / len(q)), "not by its root"),
        (step(lambda q, K: len(K) ** -0.5), "number of keys"),
        (lambda q, k, v, K, V: step(lambda q, K: len(v) ** -0.5)(q, k, v, K, V), "width of the values"),
        (overwrites_the_oldest, "in place"),
        (flat, "decode_step() stops with ValueError"),
        (lambda *args: step()(*args)[0], "output alone"),
        (lambda q, k, v, K, V: step()(q, q, v, K, V), "query into the cache"),
        (lambda q, k, v, K, V: (cached(q, k, v, K, V)[0], K, V), "return the old caches"),
        (lambda q, k, v, K, V: (cached(q, k, v, K, V)[0], np.vstack([k, K]), np.vstack([v, V])), "newest goes to the end"),
        (lambda q, k, v, K, V: (cached(q, k, v, K, V)[0][None], *cached(q, k, v, K, V)[1:]), "an axis too many"),
        (lambda q, k, v, K, V: (v, np.vstack([K, k]), np.vstack([V, v])), "result 1 wrong"),
    ],
    "tokens_that_fit": [
        (48828, "one factor 2 is missing"),
        (8138, "you count 15 heads"),
        (26214, "2^30"),
        (2**30 / 40960, "2^30"),
        (10**9 / 40960, "tokens are whole"),
        (24400, "all digits"),
        (24415, "does not fit any more"),
        (10**9 // 40960 // 2, "too many"),
        (40960, "bytes for one token"),
        (24000, "Bytes for one token: 2"),
        ("24414", "is a single value (text)"),
    ],
    "first_share": [
        (backwards, "order is wrong"),
        (lambda layers: np.linalg.multi_dot(list(layers))[-1, 0], "order is wrong"),
        (lambda layers: product(layers)[0, -1], "row and column"),
        (lambda layers: np.linalg.matrix_power(layers[0], len(layers))[-1, 0], "to a power"),
        (lambda layers: np.prod(layers, axis=0)[-1, 0], "entry by entry"),
        (lambda layers: np.prod(layers[:, -1, 0]), "direct weights alone"),
        (lambda layers: layers[-1][-1, 0], "last layer alone"),
        (lambda layers: product(layers)[-1], "whole last row"),
        (lambda layers: product(layers)[:, 0].mean(), "mean over all tokens"),
        (lambda layers: 1.0, "same answer whatever comes in"),
        (lambda layers: product([(A + np.eye(len(A))) / 2 for A in layers])[-1, 0], "expected"),
    ],
    "share_prediction": [
        ((1, 1), "in one layer"),
        ((0, 0), "In the star"),
        ((0, 1), "star comes first"),
        ((0.5, 0), "after one layer"),
        ((1, 0.3), "share_prediction is not right yet. Follow the last"),
        (1, "has 1 result, expected 2"),
        (("star", "chain"), "share_prediction"),
    ],
}
