"""The checks of assignment 5: condition numbers, Token Graying, steps of gradient descent, skips, the cube."""

import numpy as np

from attn_utils.checks.core import Check, Choice, Value


def _values(X):
    return np.linalg.svd(X, compute_uv=False)


# ------------------------------------------------------------------------------ kappa_of


def kappa_of(X):
    s = _values(X)
    return s[..., 0] / s[..., -1]


def kappa_cases(rng):
    """Shapes of every kind, none nearly singular."""
    shapes = [(5, 3), (4, 4), (2, 7), (3, 6, 4), (2, 3, 3, 5)]
    single = _with_values(rng, (2, 6, 3)).astype(np.float32)
    return [(np.array([[3.0, 0.0], [4.0, 5.0]]),), *((_with_values(rng, shape),) for shape in shapes), (single,)]


def _with_values(rng, shape):
    """Random matrices whose singular values fall from about 5 to about 0.5."""
    U, s, Vt = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    s = np.geomspace(5, 0.5, s.shape[-1]) * rng.uniform(0.8, 1.25, size=s.shape)
    return (U * s[..., None, :]) @ Vt


SQUARED = "your singular values are squared, as the eigenvalues of X X^T are: take their roots, or those of X itself."
NUMBER_EACH = "this is one number for the whole stack: each matrix has a condition number of its own."

KAPPA_OF = Check(
    "kappa_of",
    kappa_of,
    kappa_cases,
    mistakes=[
        (lambda X: kappa_of(X) ** 2, SQUARED),
        (lambda X: 1 / kappa_of(X), "this is the smallest over the largest: turn it round."),
        (
            lambda X: _values(X)[..., 0] / _values(X)[..., 1],
            "the second singular value is not the smallest, as soon as there are more than two: take the last.",
        ),
        (lambda X: _values(X)[..., 0] - _values(X)[..., -1], "this is a difference: divide by the smallest."),
        (
            lambda X: _values(X)[0] / _values(X)[-1],
            "right for one matrix: of a stack, s[0] is the first matrix. Use s[..., 0] and s[..., -1].",
        ),
        (lambda X: _values(X).max() / _values(X).min(), NUMBER_EACH),
        (lambda X: kappa_of(X).mean(), NUMBER_EACH),
        (lambda X: np.log(kappa_of(X)), "this is the logarithm of the condition number."),
        (
            lambda X: np.abs(np.linalg.eigvals(X)).max(-1) / np.abs(np.linalg.eigvals(X)).min(-1),
            "these are eigenvalues, which only a square matrix has: take the singular values.",
        ),
        (lambda X: _values(X)[..., 0], "this is the largest singular value: divide by the smallest."),
        (lambda X: _values(X)[..., 0] / _values(X).mean(-1), "divide by the smallest singular value, not by the mean."),
        (
            lambda X: (_values(X) ** 2).sum(-1) / _values(X)[..., 0] ** 2,
            "this is the stable rank: the condition number needs the smallest singular value, too.",
        ),
        (
            lambda X: np.linalg.norm(X, axis=-1).max(-1) / np.linalg.norm(X, axis=-1).min(-1),
            "this compares lengths of tokens: tokens of equal length can be as lopsided as you like.",
        ),
        (
            lambda X: np.abs(X).max((-2, -1)) / np.abs(X).min((-2, -1)),
            "this compares entries: take the singular values, np.linalg.svd(X, compute_uv=False).",
        ),
    ],
    properties=[
        (
            lambda value, X: np.all(np.nan_to_num(np.abs(np.asarray(value)), nan=9e9) < 1e6),
            "some of yours are astronomical: X X^T or X^T X has zeros where X is not square. Use the values of X.",
        ),
        (lambda value, X: np.all(np.asarray(value) > 0.999), "a condition number is never below 1."),
    ],
    tried="seven matrices and stacks, wide, tall and square.",
)

# ---------------------------------------------------------------------------------- gray


def gray(X, epsilon):
    return _new_values(lambda s, first, epsilon: first * (s / first) ** epsilon)(X, epsilon)


def _new_values(lift):
    """X with other singular values: lift(s, s_1, epsilon)."""

    def function(X, epsilon):
        U, s, Vt = np.linalg.svd(X, full_matrices=False)
        return (U * lift(s, s[..., :1], epsilon)[..., None, :]) @ Vt

    return function


def gray_cases(rng):
    shapes = [(5, 3), (4, 4), (2, 7), (3, 6, 4), (2, 2, 3, 5)]
    drawn = [(_with_values(rng, shape), eps) for shape, eps in zip(shapes, (0.5, 0.3, 0.7, 0.4, 0.6), strict=True)]
    single = _with_values(rng, (2, 6, 3)).astype(np.float32)
    return [(np.array([[3.0, 0.0], [4.0, 5.0]]), 0.5), *drawn, (single, 0.9)]


def _no_last_factor(X, epsilon):
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    return U * (s[..., :1] * (s / s[..., :1]) ** epsilon)[..., None, :]


def _with_diag(X, epsilon):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return U @ np.diag(s[0] * (s / s[0]) ** epsilon) @ Vt


def _without_axis(X, epsilon):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return (U * (s[..., :1] * (s / s[..., :1]) ** epsilon)) @ Vt


ONE_MATRIX = "right for one matrix: of a stack, each has its own singular values. Write U * lifted[..., None, :]."


def _not_transposed(X, epsilon):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return (U * (s[..., :1] * (s / s[..., :1]) ** epsilon)[..., None, :]) @ np.swapaxes(Vt, -1, -2)


GRAY = Check(
    "gray",
    gray,
    gray_cases,
    mistakes=[
        (
            _new_values(lambda s, first, e: (s / first) ** e),
            "the factor s_1 in front is missing: the largest singular value has to stay what it was.",
        ),
        (
            _new_values(lambda s, first, e: s**e),
            "divide by s_1 before you take the power, and multiply by it afterwards: s_1 has to stay.",
        ),
        (
            _new_values(lambda s, first, e: first * s**e),
            "divide by s_1 before you take the power.",
        ),
        (
            _new_values(lambda s, first, e: first * (s / first) ** (2 * e)),
            "your singular values are squared, as those of X X^T are: take their roots first.",
        ),
        (
            _new_values(lambda s, first, e: first * (s / first) ** (1 - e)),
            "the exponent is epsilon, not 1 - epsilon: epsilon = 1 changes nothing.",
        ),
        (
            _new_values(lambda s, first, e: first * (s / first) ** (1 / e)),
            "the exponent is upside down: 1 / epsilon pushes the weak directions down, epsilon lifts them.",
        ),
        (
            _new_values(lambda s, first, e: e * s + (1 - e) * first),
            "you mix s and s_1 by a straight line: asked for is a power of their ratio.",
        ),
        (_new_values(lambda s, first, e: np.ones_like(s)), "you left out s: all your singular values are 1."),
        (_new_values(lambda s, first, e: e * s), "a common factor changes no condition number: asked for is a power."),
        (
            _new_values(lambda s, first, e: s.max() * (s / s.max()) ** e),
            "you take the largest singular value of the whole stack: each matrix has its own, s[..., :1].",
        ),
        (
            _new_values(lambda s, first, e: s[0] * (s / s[0]) ** e),
            "right for one matrix: of a stack, s[0] is the first matrix. Use s[..., :1].",
        ),
        (
            _new_values(lambda s, first, e: s[..., -1:] * (s / s[..., -1:]) ** e),
            "you divide by the smallest singular value: it would stay, and s_1 would shrink. Divide by s_1.",
        ),
        (
            lambda X, e: np.sign(X) * np.abs(X) ** e,
            "you raise the entries to the power: it is the singular values that are raised.",
        ),
        (
            lambda X, e: np.sign(X) * np.abs(X).max() * (np.abs(X) / np.abs(X).max()) ** e,
            "you raise the entries to the power: it is the singular values that are raised.",
        ),
        (_with_diag, ONE_MATRIX),
        (_without_axis, ONE_MATRIX),
        (_no_last_factor, "the factor V^T is missing: these are the tokens in turned coordinates."),
        (
            _not_transposed,
            "np.linalg.svd returns V^T already: do not transpose it again.",
        ),
        (
            lambda X, e: _values(X)[..., :1] * (_values(X) / _values(X)[..., :1]) ** e,
            "these are the new singular values: put U and V^T around them again.",
        ),
        (lambda X, e: X, "nothing is grayed: X comes back as it was."),
    ],
    properties=[
        (
            lambda value, X, e: np.allclose(_values(np.asarray(value))[..., 0], _values(X)[..., 0], rtol=1e-3),
            "the largest singular value has changed: it has to stay s_1.",
        ),
        (
            lambda value, X, e: np.allclose(kappa_of(np.asarray(value)), kappa_of(X) ** e, rtol=1e-3),
            "the condition number has not become its own power: kappa of the result should be kappa(X)^epsilon.",
        ),
    ],
    tried="seven matrices and stacks with epsilon from .3 to .9.",
)

# -------------------------------------------------------------------------- steps, speed


def steps_needed(kappa, left):
    return int(np.ceil(_steps(kappa, left)))


def _steps(kappa, left):
    return np.log(left) / np.log((kappa**2 - 1) / (kappa**2 + 1))


def steps_cases(rng):
    """Exact numbers of steps that are not close to a whole number, where rounding would decide."""
    drawn = [(float(rng.uniform(1.5, 40)), float(rng.uniform(0.001, 0.5))) for _ in range(40)]
    clear = [case for case in drawn if 0.05 < _steps(*case) % 1 < 0.95]
    low = next(case for case in clear if _steps(*case) % 1 < 0.5)  # where to round up is not to round off
    return [(2.0, 0.01), (3.0, 0.01), (1.5, 0.01), low, *clear[:6]]


def _with_factor(factor, rounded=np.ceil):
    def mistake(kappa, left):
        return rounded(np.log(left) / np.log(factor(kappa)))

    return mistake


def _for_large_kappa(rounded):
    return lambda kappa, left: rounded(-np.log(left) * kappa**2 / 2)


LARGE_KAPPA = "this is the approximation for large kappa, kappa^2/2 times ln(1/left): take the factor of one step."


def _best(kappa):
    return (kappa**2 - 1) / (kappa**2 + 1)


STEPS_NEEDED = Check(
    "steps_needed",
    steps_needed,
    steps_cases,
    mistakes=[
        (
            _with_factor(lambda k: (k - 1) / (k + 1)),
            "one step leaves (kappa^2 - 1) / (kappa^2 + 1): the squares are missing.",
        ),
        (_with_factor(_best, lambda n: n), "steps are whole: round up."),
        (_with_factor(_best, np.floor), "after that many steps slightly too much is left: round up, not down."),
        (_with_factor(_best, np.round), "rounding to the nearest may be one step too few: round up."),
        (_with_factor(_best, lambda n: np.floor(n) + 2), "this is one step too many."),
        *((_for_large_kappa(rounded), LARGE_KAPPA) for rounded in (np.floor, np.ceil, np.round, float)),
        (
            _with_factor(lambda k: 1 - 1 / k**2),
            "1 - 1/kappa^2 belongs to the rate 1/s_1^2: the best one leaves (kappa^2 - 1) / (kappa^2 + 1).",
        ),
        (
            _with_factor(lambda k: _best(k) ** 2),
            "you follow the square of the error, the loss: asked for is the error itself.",
        ),
        (
            lambda k, left: np.log(_best(k)) / np.log(left),
            "the quotient is upside down: factor^n = left gives n = ln(left) / ln(factor).",
        ),
        (
            lambda k, left: np.ceil(np.log(1 - left) / np.log(_best(k))),
            "`left` is what remains, not what is gone: n = ln(left) / ln(factor).",
        ),
        (
            lambda k, left: np.ceil((1 - left) / (1 - _best(k))),
            "each step takes a share of what is *left*, not of the start: the shares multiply.",
        ),
        (
            lambda k, left: np.ceil(-_steps(k, left)),
            "a number of steps is not negative: there is a minus sign too many.",
        ),
        (
            lambda k, left: np.ceil(k**2),
            "kappa^2 is how the number grows: the formula for one step gives it exactly.",
        ),
    ],
    rtol=1e-9,
    atol=0.01,
    tried="ten pairs with condition numbers up to 40.",
)

SPEEDUP_PREDICTION = Value(
    "speedup_prediction",
    81,
    rtol=0.03,
    mistakes=[
        (9, "that is how much kappa falls, from 81 to 9. How do the steps grow with kappa?"),
        (2, "epsilon halves the *logarithm* of kappa: what is the new kappa?"),
        (4, "epsilon halves the logarithm of kappa, not kappa: what is the new kappa?"),
        (6561, "81 squared over 1 squared would be with kappa = 1: what is the new kappa?"),
        (40.5, "epsilon is an exponent, not a factor: the new kappa is the root of 81."),
        (1 / 81, "turn it round: steps before over steps after."),
        (1, "fewer steps are needed: they grow with kappa."),
        (3, "the new kappa is 9, not 27 or 3: and the steps grow with its square."),
        (729, "the new kappa is 9. The steps grow with the square of kappa, not with its cube."),
        (18, "epsilon is an exponent: what is 81 to the power of 1/2?"),
    ],
    hint="What is kappa after graying, and how does the number of steps grow with kappa?",
    tried="kappa falls from 81 to 9, and the steps grow with its square.",
)

# --------------------------------------------------------------------- skips and the cube

TURNED = "for `turn`: X + XM sends both tokens to the same length, and at which angle to each other?"

SKIP_PREDICTION = Value(
    "skip_prediction",
    (1, 19, 1),
    rtol=0.02,
    mistakes=[
        ((19, 19, 19), "19 is what the bound allows. Write out I + M for each: is it reached?"),
        ((1, 1, 1), "these are the condition numbers of the branches alone: add the identity first."),
        ((1, 19, 19), TURNED),
        ((19, 19, 1), "for `shrink`: I + M is 0.1 I. How lopsided is that?"),
        ((10, 19, 1), "for `shrink`: I + M is 0.1 I, small in both directions. How lopsided is that?"),
        ((0.1, 19, 1), "for `shrink`: 0.1 is its size. How lopsided is it?"),
        ((1, 1.9, 1), "for `split`: the largest singular value is 1.9. Divide by the smallest."),
        ((1, 10, 1), "for `split`: the smallest singular value is 0.1. And the largest?"),
        ((1, 0.1, 1), "for `split`: the smallest singular value is 0.1. And the largest over it?"),
        ((1, 1, 19), "for `split`: write out I + M, a diagonal matrix. " + TURNED[0].upper() + TURNED[1:]),
        ((1, 19, 1.9), TURNED),
        ((1, 19, 1.345), "for `turn`: both singular values are the root of 1 + 0.81, so what is their ratio?"),
        ((1, 1 / 19, 1), "for `split`: largest over smallest, a number above 1."),
        ((10, 19, 19), "for `shrink`: 0.1 I is small in both directions. " + TURNED[0].upper() + TURNED[1:]),
    ],
    hint="Write out I + M for each branch and take its two singular values.",
    tried="one bound, 19, and three branches: it is reached where the skip cancels one direction and doubles another.",
)

EPSILON_PREDICTION = Value(
    "epsilon_prediction",
    (1 / 3, 1 / 27),
    rtol=0.02,
    mistakes=[
        ((1 / 3, 1 / 3), "right for every layer. Grayed once, the tokens go through three cubes: undo all three."),
        ((0.33, 0.04), "right when rounded, but rounded too much: write fractions, such as 1/2, or three digits."),
        ((1 / 3, 1 / 9), "right for every layer. A cube of a cube of a cube: exponents multiply."),
        ((1 / 3, 1), "right for every layer. With epsilon = 1 nothing is grayed."),
        ((1 / 27, 1 / 3), "the two are swapped: every layer comes first."),
        ((1 / 27, 1 / 27), "right for the first alone. Before every layer, one cube has to be undone."),
        ((1 / 9, 1 / 27), "right for the first alone. Before every layer, one cube has to be undone."),
        ((1 / 9, 1 / 9), "one layer makes kappa^3, and three make the cube of the cube of the cube."),
        ((3, 27), "these are the exponents that the layers cause: graying has to undo them. And epsilon is at most 1."),
        ((1 / 2, 1 / 8), "one layer cubes kappa: it does not square it."),
        ((1 / 9, 1 / 3), "the cube needs a third: once for every layer. And a first graying faces three cubes."),
    ],
    hint="One layer turns kappa into kappa^3, graying into kappa^epsilon: which power stands behind three layers?",
    tried="a third undoes one cube, a twenty-seventh three.",
)

GRAY_LIMIT = Choice(
    "gray_limit",
    "b",
    {
        "a": "alike are tokens with *one* large singular value. What becomes of the others here?",
        "c": "cosines come from the shared, strong direction. Does it keep its lead when the others are lifted?",
    },
    "with equal singular values the rows of U V^T are left, and twelve rows of twelve are orthogonal.",
)

CHECKS = [
    KAPPA_OF,
    GRAY,
    STEPS_NEEDED,
    SPEEDUP_PREDICTION,
    SKIP_PREDICTION,
    EPSILON_PREDICTION,
    GRAY_LIMIT,
]
