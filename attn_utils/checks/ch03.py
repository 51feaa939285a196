"""The checks of assignment 3: two masks, leaks, a step with a cache, the mass that moves to the first token."""

import numpy as np

from attn_utils.checks.core import Check, Value
from attn_utils.weightings import softmax


def _textbook(scores, axis=-1):
    """A softmax that turns a row of -inf into NaN, as most of them do."""
    exps = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exps / exps.sum(axis=axis, keepdims=True)


# ------------------------------------------------------------------------ causal_weights


def causal_weights(scores):
    return softmax(np.where(_triangle(scores), scores, -np.inf))


def _triangle(scores, k=0):
    return np.tril(np.ones(scores.shape[-2:], dtype=bool), k)


def causal_cases(rng):
    usual = [(rng.normal(size=shape),) for shape in ((2, 2), (5, 5), (2, 4, 4), (2, 3, 4, 4))]
    single = rng.normal(size=(4, 4)).astype(np.float32)
    towering = rng.normal(size=(4, 4)) + 1000 * np.triu(np.ones((4, 4)), 1)  # the future is far above the past
    huge = rng.uniform(-1e10, 1e10, size=(5, 5))
    huge[:, 0] = rng.uniform(-1e10, -9e9, size=5)  # row 0 is left with a score below -9e9
    return [*usual, (single,), (towering,), (huge,)]


def _filled(fill, allowed=_triangle, function=softmax):
    def mistake(scores):
        return function(np.where(allowed(scores), scores, fill))

    return mistake


def _added(number):
    def mistake(scores):
        return softmax(scores + np.where(_triangle(scores), 0, number))

    return mistake


def _past_only(scores):
    return _triangle(scores, -1)


def _future(scores):
    return ~_triangle(scores, -1)


def _strict_future(scores):
    return ~_triangle(scores)


def _rescaled(scores, function=softmax):
    cut = function(scores) * _triangle(scores)
    return cut / cut.sum(-1, keepdims=True)


def _over_queries(scores, function=softmax):
    return function(np.where(_triangle(scores), scores, -np.inf), axis=-2)


def _one_only(scores, function):
    out = scores.copy()
    out[np.triu_indices(len(out), 1)] = -np.inf
    return function(out)


def _divided(exps):
    return exps / exps.sum(-1, keepdims=True)


OVERFLOW = "large scores overflow, and far negative ones vanish: subtract the largest visible score of each row first."
BATCH = "right for one matrix: with a batch, the mask has to act on the last two axes, and n is scores.shape[-1]."
ZERO = "a score of 0 is a score like any other: e^0 = 1. The future needs -inf in front of the softmax."
UPSIDE_DOWN = "your mask is upside down: zeros belong above the diagonal, where the key comes after the query."
ITSELF = "you hide each token from itself: the diagonal belongs to what it may see."
FINITE = "a large number is not -inf: a true score may lie below it, and then the future wins. Use -np.inf."

CAUSAL_WEIGHTS = Check(
    "causal_weights",
    causal_weights,
    causal_cases,
    mistakes=[
        *((_filled(-np.inf, _future, function), UPSIDE_DOWN) for function in (softmax, _textbook)),
        *((_filled(-np.inf, _past_only, function), ITSELF) for function in (softmax, _textbook)),
        *(
            (_filled(-np.inf, _strict_future, function), UPSIDE_DOWN + " And the diagonal may be seen.")
            for function in (softmax, _textbook)
        ),
        (lambda s: softmax(s) * _triangle(s), "you mask after the softmax: rows do not sum to 1, the future leaks."),
        (
            _rescaled,
            "you mask after the softmax and rescale: where a future score towers, the past has underflowed by then.",
        ),
        (lambda s: softmax(s * _triangle(s)), ZERO),
        (_filled(0), ZERO),
        *((_filled(-number), FINITE) for number in (1e9, 1e4, 1e5, 1e6, 1e8)),
        *((_added(-number), FINITE) for number in (1e9, 1e4, 1e5, 1e6, 1e8)),
        *(
            (
                lambda s, f=function: _over_queries(s, f),
                "your softmax runs down the columns: each row, over the keys, has to sum to 1 (axis=-1).",
            )
            for function in (softmax, _textbook)
        ),
        (lambda s: _divided(np.exp(np.where(_triangle(s), s, -np.inf))), OVERFLOW),
        (lambda s: _divided(np.exp(s) * _triangle(s)), OVERFLOW),
        (lambda s: _divided(np.where(_triangle(s), np.exp(s), 0)), OVERFLOW),
        *((lambda s, f=function: _one_only(s, f), BATCH) for function in (softmax, _textbook)),
        (lambda s: softmax(s), "there is no mask: the future gets weight."),
        (
            lambda s: np.where(_triangle(s), s, -np.inf),
            "these are the masked scores: the softmax is missing.",
        ),
    ],
    properties=[
        (
            lambda value, scores: np.all(np.triu(np.nan_to_num(np.asarray(value)), 1) == 0),
            "some weights above the diagonal are not zero: a query sees a key that comes after it.",
        ),
        (
            lambda value, scores: np.allclose(np.sum(value, axis=-1), 1, atol=1e-3),
            "not every row sums to 1: the softmax has to run over what may be seen, and over nothing else.",
        ),
    ],
    tried="seven random arrays, one with a towering future and one with scores near -10^10.",
)

# --------------------------------------------------------------------------- window_mask


def window_mask(real, window):
    return _near(real, window) & real[..., None, :]


def _back(real):
    place = np.arange(real.shape[-1])
    return place[:, None] - place


def _near(real, window):
    return (_back(real) >= 0) & (_back(real) < window)


def window_cases(rng):
    real = np.array([True, True, True, False])
    left = np.arange(6) >= 2
    batch = rng.random((3, 7)) < 0.7
    batch[:, 3], batch[0, :2] = True, False
    return [(real, 2), (left, 3), (batch, 4), (batch[None], 1), (np.ones(5, dtype=bool), 5), (left, 9)]


def _wide(window):
    def mistake(real, w):
        return _near(real, window(w)) & real[..., None, :]

    return mistake


PADDED_QUERIES = "padding is hidden as a query, not as a key: columns belong to keys, so use real[..., None, :]."

WINDOW_MASK = Check(
    "window_mask",
    window_mask,
    window_cases,
    mistakes=[
        (lambda real, w: ~window_mask(real, w), "your mask is inverted: True means that a query may look."),
        (
            lambda real, w: np.swapaxes(_near(real, w), -1, -2) & real[..., None, :],
            "your mask is upside down: a query looks back, so True belongs on and below the diagonal.",
        ),
        (
            lambda real, w: np.swapaxes(window_mask(real, w), -1, -2),
            "rows and columns are swapped: a row belongs to a query, a column to a key.",
        ),
        (
            lambda real, w: (np.abs(_back(real)) < w) & real[..., None, :],
            "your window looks ahead as well: nothing after the query may be seen.",
        ),
        (
            lambda real, w: (_back(real) < w) & real[..., None, :],
            "the future is visible: a key may stand 0 or more places back, not a negative number of them.",
        ),
        (_wide(lambda w: w + 1), "your window is one token too long: the query itself counts as one of the window."),
        (_wide(lambda w: w - 1), "your window is one token too short: the query itself counts, and w - 1 before it."),
        (
            lambda real, w: (_back(real) > 0) & (_back(real) < w) & real[..., None, :],
            "the diagonal is missing: a query sees itself.",
        ),
        (
            lambda real, w: (_back(real) > 0) & (_back(real) <= w) & real[..., None, :],
            "the diagonal is missing: a query sees itself, and window - 1 tokens before it.",
        ),
        (_wide(lambda w: 10**9), "there is no window: a token `window` places back, or further, is out of sight."),
        (
            lambda real, w: (_back(real) >= w) & real[..., None, :],
            "you keep what lies outside the window.",
        ),
        (
            lambda real, w: _back(real) >= 0,
            "this is the causal mask alone: window and padding are missing.",
        ),
        (lambda real, w: _near(real, w), "padding is not hidden, or not for each sentence of a batch."),
        (
            lambda real, w: np.broadcast_to(_near(real, w), (*real.shape, real.shape[-1])),
            "padding is not hidden: `real` has to come in.",
        ),
        (
            lambda real, w: _near(real, w) & real[:, None],
            "right for a batch: for one sentence real[:, None] hides queries. Use real[..., None, :].",
        ),
        (lambda real, w: _near(real, w) & real[..., :, None], PADDED_QUERIES),
        (
            lambda real, w: _near(real, w) & real[..., :, None] & real[..., None, :],
            "you hide padding as a query, too: the mask depends on the key alone. Nobody reads those rows.",
        ),
        (lambda real, w: _near(real, w) | real[..., None, :], "the conditions have to hold together: combine with &."),
        (lambda real, w: _near(real, w) & ~real[..., None, :], "`real` is True at words: you keep the padding alone."),
        (
            lambda real, w: _near(real, w) & real,
            "with a batch, `& real` compares sentences with queries: give it an axis, real[..., None, :].",
        ),
    ],
    tried="sentences and batches with padding on either side, windows from 1 to more than the sentence.",
)

# --------------------------------------------------------------------------------- leaks

NAMES = ["late", "rescaled", "centred_keys", "centred_values", "two_layers"]
LEAKS = [True, False, False, True, True]
WHY = {
    "late": "over which scores does the softmax sum before `late` cuts?",
    "rescaled": "write out a weight of `rescaled`: what becomes of the sum that the softmax divided by?",
    "centred_keys": "what is added to the scores of one row of `centred_keys`? Is it the same for all keys?",
    "centred_values": "the mean value in `centred_values` is taken over all tokens. Do the weights take it out again?",
    "two_layers": "what do the inputs of the second layer of `two_layers` know already?",
}
NOTHING_LEAKS, ALL_LEAK = [False] * 5, [True] * 5


def _but(*names):
    """The answer that is wrong about some programs."""
    return np.array([truth != (name in names) for name, truth in zip(NAMES, LEAKS, strict=True)])


LEAK_CHECK = Value(
    "leaks",
    np.array(LEAKS),
    mistakes=[
        *((_but(name), f"one of the five is wrong: {text}") for name, text in WHY.items()),
        (~np.array(LEAKS), "it is the other way round: True for a program that leaks."),
        (np.array(NOTHING_LEAKS), "some do leak. A triangle of zeros does not prove a program tight: " + WHY["late"]),
        (np.array(ALL_LEAK), "not all of them leak: " + WHY["rescaled"]),
        *(
            (_but(one, other), f"two of the five are wrong. First, {WHY[one]} Then, {WHY[other]}")
            for n, one in enumerate(NAMES)
            for other in NAMES[n + 1 :]
        ),
    ],
    hint="Three or more are wrong. For each program ask: if the last token changes, does output 0 change?",
    tried="a mean key shifts all scores of a row alike, and rescaling takes out the one factor that knew the future.",
)

# --------------------------------------------------------------------------- decode_step


def decode_step(q, k, v, K, V):
    K, V = np.vstack([K, k]), np.vstack([V, v])
    return softmax(K @ q / np.sqrt(len(q))) @ V, K, V


def decode_cases(rng):
    shapes = [(2, 3, 4), (0, 5, 2), (4, 4, 4), (7, 9, 3), (1, 2, 2)]  # (n, d_k, d_v)
    cases = []
    for n, d_k, d_v in shapes:
        cases.append([rng.normal(size=size) for size in (d_k, d_k, d_v, (n, d_k), (n, d_v))])
    single = [rng.normal(size=size).astype(np.float32) for size in (6, 6, 2, (3, 6), (3, 2))]
    return [tuple(case) for case in [*cases, single]]


def _step(scale=lambda q, K: 1 / np.sqrt(len(q)), use=lambda K, V: (K, V), newest_first=False):
    def mistake(q, k, v, K, V):
        K, V = (np.vstack(pair[::-1] if newest_first else pair) for pair in ((K, k), (V, v)))
        seen, values = use(K, V)
        return softmax(scale(q, K) * (seen @ q)) @ values, K, V

    return mistake


def _old_caches(q, k, v, K, V):
    return decode_step(q, k, v, K, V)[0], K, V


def _no_append(q, k, v, K, V):
    return softmax(K @ q / np.sqrt(len(q))) @ V, K, V


def _not_first(q, k, v, K, V):
    """The newest is left out, except where it is all there is."""
    return (_step() if len(K) == 0 else _step(use=lambda K, V: (K[:-1], V[:-1])))(q, k, v, K, V)


def _no_softmax(q, k, v, K, V):
    _, K, V = decode_step(q, k, v, K, V)
    return K @ q / np.sqrt(len(q)) @ V, K, V


LEFT_OUT = "the newest token does not see itself: its own key and value belong to the caches before it looks."

DECODE_STEP = Check(
    "decode_step",
    decode_step,
    decode_cases,
    mistakes=[
        (_no_append, "you look at the old tokens only and append nothing: put k and v into the caches, then look."),
        (_step(use=lambda K, V: (K[:-1], V[:-1])), LEFT_OUT),
        (_not_first, LEFT_OUT),
        (_old_caches, "the output is right, but you return the old caches: the next step needs the new rows, too."),
        (_step(newest_first=True), "the order in the caches is wrong: the newest goes to the end."),
        (_step(scale=lambda q, K: 1), "you did not scale the scores: divide them by the root of d_k."),
        (_step(scale=lambda q, K: 1 / len(q)), "you divided by d_k, not by its root."),
        (
            _step(scale=lambda q, K: 1 / np.sqrt(len(K))),
            "you scaled by the number of keys, which grows with every step, not by the key dimension d_k.",
        ),
        (
            lambda q, k, v, K, V: (_step(scale=lambda q, K: 1 / np.sqrt(len(v)))(q, k, v, K, V)),
            "you scaled by the width of the values, d_v, not by the key dimension d_k.",
        ),
        (lambda *args: decode_step(*args)[0], "you return the output alone: return output, K, V."),
        (
            lambda q, k, v, K, V: (decode_step(q, k, v, K, V)[0], k, v),
            "you return the new key and value alone: the next step needs all of K and V.",
        ),
        (
            lambda q, k, v, K, V: decode_step(q, q, v, K, V),
            "you put the query into the cache: later tokens look for the key k.",
        ),
        (
            lambda q, k, v, K, V: decode_step(k, k, v, K, V),
            "you compare the new key with the keys: it is the query q that looks.",
        ),
        (
            lambda q, k, v, K, V: (decode_step(q, k, v, K, V)[0][None], *decode_step(q, k, v, K, V)[1:]),
            "your output has an axis too many: one token, one vector of length d_v.",
        ),
        (
            lambda *args: tuple(decode_step(*args)[n] for n in (1, 2, 0)),
            "the order is: output, K, V.",
        ),
        (_no_softmax, "there is no softmax: scores are not weights."),
        (
            lambda q, k, v, K, V: (np.vstack([V, v]).mean(0), *decode_step(q, k, v, K, V)[1:]),
            "this is the plain mean of the values: weigh them by the softmax of the scores.",
        ),
    ],
    tried="six steps, the first of a text among them.",
)

COUNTS = [
    (48828.125, "one factor 2 is missing: a key *and* a value, of 2 bytes a number."),
    (97656.25, "both factors 2 are missing: a key and a value, and 2 bytes a number."),
    (10**9 / 122880, "you count 15 heads: the cache holds the heads for keys and values, which are fewer."),
    (10**9 / 61440, "you count 15 heads, and one factor 2 is missing: keys and values have fewer heads."),
    (122070.3125, "you count one head: there are several for keys and values in each layer."),
    (781250, "you count one layer: each layer has a cache of its own."),
    (2**30 / 40960, "you took 1 GB for 2^30 bytes: here it is 10^9."),
    (24415, "the last of these tokens does not fit any more: round down."),
    (12207.03125, "one factor 2 too many: a number takes 2 bytes."),
    (3051.7578125, "a byte is what the question asks about: you counted bits."),
    (40960, "these are the bytes for one token: how many times do they fit into 10^9?"),
    (24, "these are thousands: give the number of tokens."),
    (24.4140625, "these are thousands: give the number of tokens."),
]
TOKENS_THAT_FIT = Value(
    "tokens_that_fit",
    24414,
    rtol=0,
    atol=1e-3,
    mistakes=[
        (10**9 / 40960, "tokens are whole: round down."),
        (24400, "this is rounded: all digits are asked for, down to the last token."),
        *((kind(count), text) for count, text in COUNTS for kind in (float, int)),
    ],
    hint="Bytes for one token: 2 (key, value) x layers x heads for keys and values x width x bytes for a number.",
    tried="40,960 bytes for each token.",
)

# --------------------------------------------------------------------------- first_share


def first_share(layers):
    row = np.eye(layers.shape[-1])[-1]
    for weights in layers[::-1]:
        row = row @ weights
    return row[0]


def share_cases(rng):
    shapes = [(2, 3), (2, 5), (3, 3), (4, 6), (5, 5)]  # (n_layers, n)
    cases = [(causal_weights(rng.normal(size=(depth, n, n))),) for depth, n in shapes]
    return [*cases, (causal_weights(rng.normal(size=(3, 5, 5))).astype(np.float32),)]


def _product(layers):
    """The layers as one matrix, the first layer to the right."""
    product = np.eye(layers.shape[-1])
    for weights in layers:
        product = weights @ product
    return product


def _first_power(layers):
    return np.linalg.matrix_power(layers[0], len(layers))[-1, 0]


WRONG_ORDER = "the order is wrong: the first layer acts first and stands on the right of the product, A_L ... A_2 A_1."

FIRST_SHARE = Check(
    "first_share",
    first_share,
    share_cases,
    mistakes=[
        (lambda layers: first_share(layers[::-1]), WRONG_ORDER),
        (
            lambda layers: _product(layers)[0, -1],
            "row and column are swapped: the last token is the query, row -1, and the first is the key, column 0.",
        ),
        (
            lambda layers: _product(layers[::-1])[0, -1],
            "row and column are swapped: the last token is the query, row -1, and the first is the key, column 0.",
        ),
        (_first_power, "you take the first layer to a power: the layers differ, multiply them all."),
        (
            lambda layers: np.prod(layers, axis=0)[-1, 0],
            "you multiply the direct weights alone, entry by entry: multiply matrices, with @.",
        ),
        (
            lambda layers: layers[:, -1, 0].sum(),
            "you add the weights of the layers: layers act one after the other, so multiply them as matrices.",
        ),
        (lambda layers: layers[:, -1, 0].mean(), "you take the mean of the layers: multiply them as matrices."),
        (lambda layers: layers.mean(axis=0)[-1, 0], "you take the mean of the layers: multiply them as matrices."),
        (lambda layers: layers[-1, -1, 0], "this is the last layer alone: those before have mixed what it reads."),
        (lambda layers: layers[0, -1, 0], "this is the first layer alone: the others mix on."),
        (lambda layers: _product(layers)[-1], "this is the whole last row: take its first entry."),
        (lambda layers: _product(layers), "this is the product of all layers: take the last row's first entry."),
        (
            lambda layers: _product(layers)[:, 0].mean(),
            "this is the mean over all tokens: the last one is asked for.",
        ),
        (lambda layers: _product(layers)[:, 0].sum(), "this is the sum over all tokens: the last one is asked for."),
        (lambda layers: _product(layers)[-1, -1], "this is the share of the last token: take that of the first."),
        (
            lambda layers: 1 - np.prod(1 - layers[:, -1, 0]),
            "mass also takes the way through tokens in between: multiply the layers as matrices.",
        ),
        (lambda layers: _product(layers[1:])[-1, 0], "the first layer is left out."),
        (lambda layers: _product(layers[:-1])[-1, 0], "the last layer is left out."),
    ],
    tried="six random stacks of two to five layers.",
)

SHARE_PREDICTION = Value(
    "share_prediction",
    (1.0, 0.0),
    atol=0.006,
    mistakes=[
        ((1, 1), "right about the star. In the chain, how many places can anything move in one layer?"),
        ((0, 0), "right about the chain. In the star, how much of the rest does every layer send to the first token?"),
        ((0, 1), "the star comes first: are the two swapped?"),
        ((1, 0.5), "right about the star. In the chain, how many places can anything move in one layer?"),
        ((0.5, 0), "right about the chain. In the star that is the share after one layer: the next halves the rest."),
        ((1, 1 / 4), "right about the star. In the chain, 16 layers reach 16 places back: where is the first token?"),
        ((0.94, 0), "right about the chain. In the star every layer halves what is left: how much is left after 16?"),
        ((0.5, 0.5), "that is one layer of the star: stack 16. And how far does one layer of the chain reach?"),
        ((1 / 64, 1 / 64), "nothing spreads evenly here: follow the mass of the last token, layer by layer."),
    ],
    hint="Follow the last token's mass: star, 1/2 to the first, then 1/2 of the rest, ...; chain, one place at a time.",
    tried="after 16 layers the star is empty but for its centre, and in the chain nothing has arrived.",
)

CHECKS = [
    CAUSAL_WEIGHTS,
    WINDOW_MASK,
    LEAK_CHECK,
    DECODE_STEP,
    TOKENS_THAT_FIT,
    FIRST_SHARE,
    SHARE_PREDICTION,
]
