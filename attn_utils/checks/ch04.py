"""The checks of assignment 4: stable ranks, the repair, gaps of patterns, triage, products of layers."""

import numpy as np

from attn_utils.checks.core import Check, Choice, Value
from attn_utils.leading import singular_values
from attn_utils.spectra import entropy, spectral_gap, stable_rank, stable_rank_gram

# --------------------------------------------------------------------------- stable ranks


def stable_ranks(X):
    return stable_rank(X), stable_rank_gram(X)


def stable_ranks_cases(rng):
    shapes = [(3, 2), (4, 4), (3, 7), (9, 4)]
    tokens = [3 * rng.normal(size=shape) for shape in shapes]
    near = rng.normal(size=5) + 0.1 * rng.normal(size=(6, 5))  # nearly equal tokens
    single = rng.normal(size=(5, 3)).astype(np.float32)
    return [(X,) for X in (*tokens, near, single)]


def _powers(first, second, over=None):
    """The pair with other powers on top, and the powers `over` of s_1 below."""
    below = over or (first, second)

    def mistake(X):
        s = singular_values(X)
        return np.sum(s**first) / s[0] ** below[0], np.sum(s**second) / s[0] ** below[1]

    return mistake


def _participation(X):
    s = singular_values(X)
    return np.sum(s) ** 2 / np.sum(s**2), np.sum(s**2) ** 2 / np.sum(s**4)


def _rank(X):
    rank = np.linalg.matrix_rank(X)
    return rank, rank


def _root(X):
    return np.sqrt(stable_rank(X)), np.sqrt(stable_rank_gram(X))


def _centred(X):
    return stable_ranks(X - X.mean(axis=0))


STABLE_RANKS = Check(
    "stable_ranks",
    stable_ranks,
    stable_ranks_cases,
    mistakes=[
        (
            _powers(1, 2),
            "you add up the singular values themselves for X, and their squares for X X^T. sr(X) has the squares; "
            "X X^T has the singular values s_i^2, so its stable rank has the fourth powers.",
        ),
        (_powers(1, 1), "the singular values have to be squared for X, and to the fourth power for X X^T."),
        (
            _powers(4, 8),
            "your singular values are squared already: those of X X^T are s_i^2. Take svd(X), or halve the powers.",
        ),
        (_powers(2, 2), "your two numbers are the same: for X X^T the powers are fourth powers."),
        (_powers(4, 4), "your two numbers are the same: for X the powers are squares."),
        (_powers(4, 2), "the order is the other way round: first X (squares), then X X^T (fourth powers)."),
        (_powers(2, 3), "X X^T has the singular values s_i^2: squared once more, that is the fourth power."),
        (
            _powers(2, 8),
            "for X X^T you raise too often: its singular values are s_i^2 already, so s_i^4 is their square.",
        ),
        (
            lambda X: (stable_rank(X), stable_rank(X) ** 2),
            "for X X^T you square the sum: add up the fourth powers instead.",
        ),
        (
            lambda X: tuple((singular_values(X) / singular_values(X)[0]) ** k for k in (2, 4)),
            "you return one number for each singular value: add them up.",
        ),
        (_powers(2, 4, (1, 1)), "you divide by s_1: its power has to be that of the numbers above, 2 and 4."),
        (_powers(2, 4, (2, 2)), "for X X^T divide by s_1^4, not by s_1^2."),
        (
            lambda X: (np.linalg.norm(X) / singular_values(X)[0], stable_rank_gram(X)),
            "the norms have to be squared: sr(X) is the sum of the s_i^2, not its root, over s_1^2, not s_1.",
        ),
        (_root, "these are ratios of norms: square them, or add up the powers of the singular values without a root."),
        (
            _participation,
            "you divide the squared sum by the sum of squares, which is another measure: divide by the power of s_1.",
        ),
        (_rank, "this is the rank, which counts every direction fully. The stable rank weighs each by its power."),
        (_centred, "you subtract the mean token first. It is a direction like all others here: leave it in."),
        (lambda X: stable_rank(X), "you return one number: both are asked for, first that of X, then that of X X^T."),
    ],
    properties=[
        (
            lambda value, X: len(value) == 2 and all(np.min(one) >= 0.999 for one in value),
            "a stable rank is at least 1: the first direction counts as one. What do you divide by?",
        ),
    ],
    tried="six matrices, wide, tall, square, of nearly equal tokens and of float32.",
)

# ----------------------------------------------------------------------------- the repair


def repaired_output(A, V):
    return A @ (V - V.mean(axis=-2, keepdims=True))


def _weights(rng, *shape):
    exps = np.exp(rng.normal(size=shape))
    return exps / exps.sum(axis=-1, keepdims=True)


def repaired_cases(rng):
    shapes = [(3, 5, 2), (4, 4, 4), (6, 2, 5)]  # n_queries, n_keys, d_v
    pairs = [(_weights(rng, n, m), 1 + rng.normal(size=(m, d))) for n, m, d in shapes]
    batch = _weights(rng, 2, 3, 4), 1 + rng.normal(size=(2, 4, 5))
    heads = _weights(rng, 2, 3, 4, 4), 1 + rng.normal(size=(2, 3, 4, 4))
    single = tuple(one.astype(np.float32) for one in (_weights(rng, 5, 5), 1 + rng.normal(size=(5, 3))))
    return [*pairs, batch, heads, single]


def _centre(X, axis=-2):
    return X - X.mean(axis=axis, keepdims=True)


def _without_leading(A, V):
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    return (A - s[..., :1, None] * U[..., :, :1] * Vh[..., :1, :]) @ V


def _standardised(A, V):
    return A @ (_centre(V) / V.std(axis=-2, keepdims=True))


OWN_MEAN = (
    "you subtract the mean of the outputs. The repair subtracts the mean of the values: the two differ, "
    "because some keys get more weight than others."
)

REPAIRED_OUTPUT = Check(
    "repaired_output",
    repaired_output,
    repaired_cases,
    mistakes=[
        (lambda A, V: A @ V, "this is the plain output: nothing is subtracted."),
        (lambda A, V: _centre(A @ V), OWN_MEAN),
        (lambda A, V: A @ V - (A @ V).mean(axis=0), OWN_MEAN),
        (lambda A, V: A @ _centre(_centre(V), -1), "subtract the mean token only: the features keep their own mean."),
        (
            lambda A, V: A @ _centre(V, -1),
            "you subtract the mean feature of each token, as LayerNorm does. The mean runs over the tokens (axis=-2).",
        ),
        (
            lambda A, V: A @ (V - V.mean(axis=0)),
            "axis 0 is the tokens of one sequence only: with a batch or heads in front use axis=-2.",
        ),
        (
            lambda A, V: A @ V - V.mean(axis=0),
            "axis 0 is the tokens of one sequence only: with a batch or heads in front use axis=-2.",
        ),
        (
            lambda A, V: A @ V - V.mean(axis=-2),
            "with a batch in front the mean lost an axis: keepdims=True keeps it.",
        ),
        (
            lambda A, V: A @ (V - V.mean(axis=-2)),
            "with a batch in front the mean lost an axis: keepdims=True keeps it.",
        ),
        (lambda A, V: A @ (V - V.mean()), "you subtract one number from all values: subtract the mean token."),
        (
            lambda A, V: (A - 1 / A.shape[-2]) @ V,
            "you divide by the number of queries: a row of A has one weight for each key, so subtract 1/n_keys.",
        ),
        (
            lambda A, V: (A - 1 / len(A)) @ V,
            "len(A) is the number of queries (or the batch): subtract 1/n_keys, A.shape[-1].",
        ),
        (
            lambda A, V: A @ V - 1 / A.shape[-1],
            "you subtract 1/n_keys from the output: it is subtracted from the weights, before the values come in.",
        ),
        (lambda A, V: (A - 1) @ V, "you subtract 1 from every weight: the repair subtracts 1/n_keys."),
        (lambda A, V: V - V.mean(axis=-2, keepdims=True), "these are the values that go in: multiply A by them."),
        (
            _without_leading,
            "you took out the first singular direction of A, which is close to the outlier but not the same: its "
            "vectors are not constant.",
        ),
        (_standardised, "you also divide by the standard deviation: subtract the mean only."),
        (
            lambda A, V: _centre(A @ _centre(V)),
            "the values' mean is gone, which is all: the outputs keep the mean that is theirs.",
        ),
        (lambda A, V: A @ (V + V.mean(axis=-2, keepdims=True)), "the mean is added: subtract it."),
        (
            lambda A, V: A @ (V - V.sum(axis=-2, keepdims=True)),
            "you subtract the sum of the values: subtract their mean.",
        ),
    ],
    tried="six random pairs with more queries than keys and fewer, with batches, heads and float32.",
)

# ------------------------------------------------------------------------------- patterns

PATTERN_GAPS = Value(
    "pattern_gaps",
    (1, 0, 1, 0),
    mistakes=[
        (
            (0, 1, 0, 1),
            "it is the other way round: a gap of 1 means that one direction is left, 0 that s_2 is as large as s_1.",
        ),
        ((1, 1, 1, 1), "a gap of 1 four times? In two of the patterns some difference passes at full size. Which?"),
        ((0, 0, 0, 0), "a gap of 0 four times? In two of the patterns all rows of A are equal. What rank is that?"),
        (
            (1, 1, 1, 0),
            "look at pattern 2 again: it shuffles the tokens. What does it do to the length of any vector?",
        ),
        (
            (1, 0, 0, 0),
            "look at pattern 3 again: each row is sharp, but all twelve rows are equal. What rank is that?",
        ),
        (
            (1, 0, 1, 1),
            "look at pattern 4 again: send in +1 for one group and -1 for the other. What comes out?",
        ),
        (
            (1, 0, 1, 0.5),
            "look at pattern 4 again: each group has a singular value of its own. How large are the two?",
        ),
        (
            (0, 0, 1, 0),
            "look at pattern 1 again: plain averaging. Which difference between tokens does it let through?",
        ),
        ((1, 0, 0, 1), "patterns 3 and 4: which of them has equal rows throughout, and which keeps two groups apart?"),
        ((1, 1, 0, 0), "patterns 2 and 3 are both sharp. Which of them keeps twelve tokens, and which only one?"),
        ((1, 1, 0, 1), "only pattern 1 is right. Ask of each other pattern which differences between tokens survive."),
        ((1, 1, 1, 0.5), "patterns 2 and 4: a shuffle keeps every length, and two groups keep their difference."),
        ((1, 0, 0, 0.5), "patterns 3 and 4: how many different rows does each have?"),
    ],
    hint="Ask of each pattern: what happens to a difference between two tokens? The gap is 0 where one passes in full.",
    tried="equal rows leave one direction; a shuffle keeps all; two groups keep their difference.",
)

DIRECTIONS_LEFT = Value(
    "directions_left",
    2,
    mistakes=[
        (12, "the gap of 0 says that s_2 = s_1, and nothing about s_3. How many different rows has the output?"),
        (6, "six tokens form a group, but all six get the same output."),
        (1, "one direction would mean that both groups get the same output."),
        (11, "the twelve tokens come in groups with one output each. How many groups?"),
        (10, "the twelve tokens come in groups with one output each. How many groups?"),
        (0, "the outputs are means of six values: they are not zero."),
    ],
    hint="Count the different rows of the output.",
    tried="two means are left of twelve values, at a gap of 0: the gap does not look beyond s_2.",
)

# --------------------------------------------------------------------------------- triage


def triage(A):
    return bool(spectral_gap(A) > 0.9), bool(entropy(A).mean() < 0.1)


def _mixed(sharp, share):
    """A share of plain averaging in a pattern."""
    return (1 - share) * sharp + share / len(sharp)


def triage_cases(rng):
    mild = [_weights(rng, T, T) for T in (4, 12)]
    flat = 1 / 12 + 0.001 * _centre(rng.normal(size=(12, 12)), -1)
    shuffle = np.eye(10)[rng.permutation(10)]  # zeros: 0 ln 0
    one = np.eye(9)[np.zeros(9, int)]  # all look at token 1
    pair = np.eye(12)[np.repeat([0, 1], [9, 3])]  # eigenvalues 1 and 0, singular values 3 and 1.7
    half = _mixed(np.eye(12), 0.5 + 0.5 * np.sign(np.arange(12) - 5.5)[:, None])  # half the rows saturated
    most = _mixed(np.eye(12), (np.arange(12) == 5)[:, None])  # all rows but one saturated
    sharp = np.eye(30)[rng.permutation(30)]  # with the leaks below: .04 to .53 nats, ln 30 is 3.4
    leaky = [_mixed(sharp, share) for share in (0.004, 0.009, 0.02, 0.035, 0.08)]
    heavy = 0.8 * np.eye(64)[np.zeros(64, int)] + 0.2 * np.eye(64)[rng.permutation(64)]  # s_1 far above 1
    wide = [_mixed(np.eye(20)[rng.permutation(20)], 1 - ratio) for ratio in (0.05, 0.15, 0.25)]  # s_2 / s_1
    single = shuffle.astype(np.float32)
    return [(A,) for A in (*mild, flat, shuffle, one, pair, half, most, *leaky, heavy, *wide, single)]


def _triage(gap=spectral_gap, row=None, limit=lambda T: 0.1 * np.log(T), over=np.mean):
    """Triage with another gap, another entropy of rows, limit or mean."""

    def nats(A):
        return -np.where(A > 0, A * np.log(np.where(A > 0, A, 1)), 0).sum(axis=1)

    def mistake(A):
        return bool(gap(A) > 0.9), bool(over((row or nats)(A)) < limit(len(A)))

    return mistake


def _eigen_gap(A):
    size = np.sort(np.abs(np.linalg.eigvals(A)))[::-1]
    return 1 - size[1] / size[0]


def _below(k):
    """1 - (s_2 / s_1)^k."""
    return lambda A: 1 - (1 - spectral_gap(A)) ** k


def _nan_row(A):
    with np.errstate(all="ignore"):
        return -(A * np.log(A)).sum(axis=1)


def _log_base(base):
    def row(A):
        return -np.where(A > 0, A * np.log(np.where(A > 0, A, 1)), 0).sum(axis=1) / np.log(base)

    return row


TRIAGE = Check(
    "triage",
    triage,
    triage_cases,
    mistakes=[
        (lambda A: triage(A)[::-1], "the order is the other way round: first collapsed, then saturated."),
        (
            _triage(gap=_eigen_gap),
            "your gap comes from the eigenvalues: what shrinks a difference at most is told by the singular values.",
        ),
        (
            _triage(gap=_below(2)),
            "your singular values are squared, as the eigenvalues of A A^T are: take their roots before the ratio.",
        ),
        (
            _triage(gap=lambda A: 1 - singular_values(A)[1]),
            "you take s_1 for 1: it is larger where some keys are popular. Divide s_2 by s_1.",
        ),
        (
            _triage(gap=lambda A: singular_values(A)[0] - singular_values(A)[1]),
            "the gap is 1 - s_2/s_1, a ratio, not the difference s_1 - s_2.",
        ),
        (
            _triage(gap=lambda A: 1 - spectral_gap(A)),
            "s_2/s_1 above 0.9 is the opposite of collapsed: the gap is 1 - s_2/s_1.",
        ),
        (
            _triage(gap=lambda A: 1 - singular_values(A)[-1] / singular_values(A)[0]),
            "you compare the last singular value with the first: the gap takes the second.",
        ),
        (
            _triage(row=_nan_row),
            "a weight of exactly 0 makes your entropy NaN, and NaN is never below a limit: 0 ln 0 counts as 0.",
        ),
        (
            _triage(limit=lambda T: 0.1),
            "you compare the entropy with 0.1: the limit is a tenth of the largest possible, 0.1 ln T.",
        ),
        (
            _triage(row=_log_base(2)),
            "your entropy is in bits, your limit in nats: use the natural logarithm in both.",
        ),
        (
            _triage(row=_log_base(2), limit=lambda T: 0.1),
            "your entropy is in bits and not divided by the largest possible: compare -sum A ln A with 0.1 ln T.",
        ),
        (
            _triage(over=np.min),
            "a single sharp row makes your layer saturated: take the mean over the rows.",
        ),
        (
            _triage(over=np.max),
            "a single soft row keeps your layer from being saturated: take the mean over the rows.",
        ),
        (
            _triage(over=np.sum),
            "you add up the entropies of all rows: take their mean.",
        ),
        (
            _triage(row=lambda A: -_log_base(np.e)(A)),
            "the entropy has a minus sign in front: without it, it is never above 0.",
        ),
        (
            _triage(limit=lambda T: 0.1 * np.log(T * T), over=np.mean),
            "the largest possible entropy of a row is ln T: a row has T places, not T^2.",
        ),
        (
            lambda A: (triage(A)[0], bool(A.max() > 0.9)),
            "a single weight above 0.9 is no saturated layer: the entropy asks all rows.",
        ),
        (
            lambda A: (triage(A)[0], not triage(A)[1]),
            "saturated means a low entropy: below a tenth of ln T, not above.",
        ),
        (
            _triage(row=lambda A: -_log_base(np.e)(A), limit=lambda T: -0.9 * np.log(T)),
            "saturated means a low entropy: below a tenth of ln T, not above nine tenths.",
        ),
        (
            lambda A: (not triage(A)[0], triage(A)[1]),
            "collapsed is a large gap: above 0.9, not below.",
        ),
    ],
    tried="eighteen layers of 4 to 64 tokens: mild, flat, shuffled, all at one token, half saturated, and between.",
)

# --------------------------------------------------------------------------------- layers


def second_after(L, T, sigma):
    return np.sqrt((L + 1.0) ** (L + 1) / float(L) ** L) * (sigma / np.sqrt(T)) ** L


def second_after_cases(rng):
    fixed = [(1, 64, 0.5), (2, 100, 1.0), (3, 256, 0.8), (6, 1024, 1.0), (10, 50, 1.5)]
    drawn = [(int(rng.integers(2, 9)), int(rng.integers(20, 500)), float(rng.uniform(0.3, 1.5))) for _ in range(3)]
    return [*fixed, *drawn]


def _without_c(L, T, sigma):
    return (sigma / np.sqrt(T)) ** L


def _squared_c(L, T, sigma):
    return second_after(L, T, sigma) ** 2 / _without_c(L, T, sigma)


def _c_squared(L, T, sigma):
    return (L + 1.0) ** (L + 1) / float(L) ** L * _without_c(L, T, sigma)


SECOND_AFTER = Check(
    "second_after",
    second_after,
    second_after_cases,
    mistakes=[
        (_without_c, "the factor c_L is missing: many pairings add up, so the edge lies higher."),
        (_c_squared, "the formula on the right is c_L squared: take its root."),
        (
            lambda L, T, sigma: (2 * sigma / np.sqrt(T)) ** L,
            "you multiply the edge of one layer L times, which makes c_L = 2^L. The directions that one layer keeps "
            "best are not those that the next keeps best.",
        ),
        (
            lambda L, T, sigma: 2 * _without_c(L, T, sigma),
            "you use c_1 = 2 for any number of layers: c_L depends on L.",
        ),
        (
            lambda L, T, sigma: second_after(L, T, 1) * sigma,
            "sigma is not raised to the power L: each layer brings its own.",
        ),
        (lambda L, T, sigma: second_after(L, T, 1), "sigma is missing: each layer brings one."),
        (
            lambda L, T, sigma: second_after(L, T, sigma) * T ** (-L / 2),
            "T has the power -L, you lost the half: each layer divides by the root of T.",
        ),
        (
            lambda L, T, sigma: second_after(L, 1, sigma) * float(T) ** -L / 2,
            "Python reads T**-L/2 as half of T**-L: put the L/2 into brackets.",
        ),
        (
            lambda L, T, sigma: second_after(L, 1, sigma) / np.sqrt(T),
            "T has the power -1/2 whatever L is: each layer divides by the root of T, so the power is -L/2.",
        ),
        (
            lambda L, T, sigma: second_after(L, 1, sigma) * np.sqrt(T) ** L,
            "the power of T is negative: more tokens, a smaller second singular value.",
        ),
        (
            lambda L, T, sigma: second_after(L, T, sigma) ** 2,
            "this is the singular value squared: take the root of all of it.",
        ),
        (
            lambda L, T, sigma: np.sqrt((L + 1.0) ** L / float(L) ** L) * _without_c(L, T, sigma),
            "in c_L the power above is L + 1, not L.",
        ),
        (
            lambda L, T, sigma: second_after(L, T, np.sqrt(sigma)),
            "sigma has the power L/2 instead of L: only T comes with a half.",
        ),
    ],
    tried="eight stacks of 1 to 10 layers.",
    atol=0,
)

LAYERS_TO_BLINDNESS = Value(
    "layers_to_blindness",
    7,
    mistakes=[
        (6, "after 6 layers c_6 / 16^6 is still 2.5e-7. Without the factor c_L you would be there."),
        (8, "at 7 layers the value is below already. (2/16)^L would need 8, but c_L grows more slowly than 2^L."),
        (4, "each layer divides by the root of T, 16, not by T = 256."),
        (3, "each layer divides by the root of T, 16, not by T = 256; and c_L is missing."),
        (5, "after 5 layers the value is 3.7e-6. Try the next ones."),
        (1, "one layer leaves 2/16. Try the next ones."),
    ],
    hint="Call second_after(L, 256, 1) for L = 1, 2, 3, ... and compare with 1e-7.",
    tried="4.5 / 16^7 is the first below 1e-7.",
)

# ------------------------------------------------------------------- what the repair does

REPAIR_PREDICTION = Choice(
    "repair_prediction",
    "b",
    {
        "a": "the repaired output is A V minus a vector. Write down which one, for clock and for child.",
        "c": "something is taken away, yes: one vector. From which of the 17 outputs?",
    },
    "the same vector, the mean value, is subtracted from both, and cancels in the difference.",
)

SHARED_PREDICTION = Choice(
    "shared_prediction",
    "b",
    {
        "a": "rows that sum to zero make the output zero for equal *values*. The mean of the outputs is another "
        "matter: it asks for the sums of the columns.",
    },
    "the mean output is weighed by column sums, and keys differ in how much weight they get from all queries.",
)

CHECKS = [
    STABLE_RANKS,
    REPAIRED_OUTPUT,
    PATTERN_GAPS,
    DIRECTIONS_LEFT,
    TRIAGE,
    SECOND_AFTER,
    LAYERS_TO_BLINDNESS,
    REPAIR_PREDICTION,
    SHARED_PREDICTION,
]
