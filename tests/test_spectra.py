"""attn_utils.spectra: numbers of a matrix against closed forms and properties; bad input."""


import numpy as np
import pytest
from drawn import SQUARE_SCORES, gauss, matrices
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_utils import causal_mask, softmax
from attn_utils.spectra import (
    center_tokens,
    condition_number,
    entropy,
    remove_outlier,
    spectral_gap,
    stable_rank,
    stable_rank_gram,
    token_cosine,
    token_spread,
)

# ------------------------------------------------------------------ the measures


@given(matrices())
@settings(max_examples=150, deadline=None)
def test_stable_ranks_lie_between_one_and_the_rank(X):
    rank = np.linalg.matrix_rank(X)
    of_x, of_gram = stable_rank(X), stable_rank_gram(X)
    if rank == 0:
        assert of_x == of_gram == 0
    else:
        assert 1 - 1e-9 <= of_gram <= of_x + 1e-9 <= rank + 2e-9
        s = np.linalg.svd(X, compute_uv=False)
        np.testing.assert_allclose([of_x, of_gram], [(s**n).sum() / s[0] ** n for n in (2, 4)], rtol=1e-9)


def test_stable_ranks_of_known_matrices():
    assert np.isclose(stable_rank(np.eye(6)), 6) and np.isclose(stable_rank_gram(np.eye(6)), 6)
    assert np.isclose(stable_rank(np.ones((4, 9))), 1)
    X = np.diag([2.0, 1.0])
    assert np.isclose(stable_rank(X), 1.25) and np.isclose(stable_rank_gram(X), 1 + 1 / 16)


def test_stacks_give_one_number_for_each_matrix():
    X = gauss(2, 3, 6, 5)
    for measure in (stable_rank, stable_rank_gram, condition_number, spectral_gap, token_cosine, token_spread):
        assert np.allclose(measure(X), [[measure(X[i, j]) for j in range(3)] for i in range(2)])
        assert isinstance(measure(X[0, 0]), float)


def test_condition_number():
    assert np.isclose(condition_number(np.diag([8.0, 2.0, 1.0])), 8)
    Q = np.linalg.qr(gauss(7, 7))[0]
    assert np.isclose(condition_number(Q), 1)
    assert condition_number(np.ones((3, 3))) == np.inf
    assert condition_number(np.ones((3, 3), np.float32)) == np.inf


@given(SQUARE_SCORES, st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_removing_the_outlier_is_centring_the_values(scores, d):
    A, n = softmax(scores), len(scores)
    V = gauss(n, d, seed=3)
    np.testing.assert_allclose(remove_outlier(A) @ V, A @ center_tokens(V), atol=1e-12)
    np.testing.assert_allclose(remove_outlier(A) @ V, A @ V - V.mean(0), atol=1e-12)
    np.testing.assert_allclose(remove_outlier(A).sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose(center_tokens(remove_outlier(A) @ V), center_tokens(A @ V), atol=1e-12)


def test_removing_the_outlier_keeps_the_rest_of_the_spectrum():
    A = softmax(gauss(50, 50))
    before, after = np.linalg.eigvals(A), np.linalg.eigvals(remove_outlier(A))
    distances = np.abs(before[:, None] - after).min(1)
    assert (distances > 1e-9).sum() == 1 and np.isclose(before[distances.argmax()], 1)
    assert np.abs(after).min() < 1e-12


def test_removing_the_outlier_takes_rectangles_stacks_and_float32():
    A = softmax(gauss(2, 4, 6, 9)).astype(np.float32)
    assert remove_outlier(A).dtype == np.float32 and np.allclose(remove_outlier(A), A - 1 / 9, atol=1e-7)


def test_gap_of_known_matrices():
    assert np.isclose(spectral_gap(np.full((8, 8), 1 / 8)), 1)
    assert np.isclose(spectral_gap(np.eye(8)[::-1]), 0)
    assert np.isclose(spectral_gap(np.diag([2.0, 0.5, 0.1])), 0.75)


@given(matrices(min_side=2))
@settings(max_examples=100, deadline=None)
def test_token_measures_keep_their_bounds(X):
    n = len(X)
    assert -1 / (n - 1) - 1e-9 <= token_cosine(X) <= 1 + 1e-9
    assert 0 <= token_spread(X) <= 1 + 1e-9
    np.testing.assert_allclose(token_spread(center_tokens(X)), np.any(center_tokens(X)), atol=1e-6)
    order = np.random.default_rng(0).permutation(n)
    np.testing.assert_allclose(token_cosine(X[order]), token_cosine(X), atol=1e-9)


def test_cosine_by_hand():
    X = gauss(6, 4)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs = [units[i] @ units[j] for i in range(6) for j in range(6) if i != j]
    assert np.isclose(token_cosine(X), np.mean(pairs))
    assert np.isclose(token_cosine(np.ones((3, 2))), 1) and token_spread(np.ones((3, 2))) == 0


@given(SQUARE_SCORES)
@settings(max_examples=100, deadline=None)
def test_entropy_lies_between_one_key_and_all(scores):
    rows = entropy(softmax(scores))
    assert (rows >= -1e-12).all() and (rows <= 1 + 1e-12).all()


def test_entropy_of_known_rows():
    assert np.allclose(entropy(np.full((3, 5), 0.2)), 1) and np.allclose(entropy(np.eye(4)), 0)
    half = np.array([[0.5, 0.5, 0, 0]])
    assert np.allclose(entropy(half), 0.5)
    assert np.allclose(entropy(half, mask=np.array([[True, True, False, False]])), 1)
    assert np.allclose(entropy(np.zeros((2, 3))), 0) and np.allclose(entropy(np.ones((1, 1))), 1)
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    assert np.allclose(entropy(causal, causal_mask(4)), 1)
    assert entropy(np.eye(3, dtype=np.float32)).dtype == np.float32


def test_zhai_bound_on_entropy():
    """Zhai et al. (2023): the least entropy for scores of norm s, attained at one raised score."""
    T, s = 64, 4.0
    b = np.exp(-s * np.sqrt(T / (T - 1)))
    bound = np.log(1 + (T - 1) * b) + s * np.sqrt(T * (T - 1)) * b / (1 + (T - 1) * b)
    scores = np.full(T, -s / np.sqrt(T * (T - 1)))
    scores[0] = s * np.sqrt((T - 1) / T)
    assert np.isclose(entropy(softmax(scores)[None])[0] * np.log(T), bound)
    for seed in range(50):
        other = gauss(T, seed=seed)
        assert entropy(softmax(s * other / np.linalg.norm(other))[None])[0] * np.log(T) >= bound


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "function",
    [spectral_gap, stable_rank, stable_rank_gram, condition_number, remove_outlier, center_tokens,
     token_cosine, token_spread, entropy],
)  # fmt: skip
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.full((3, 3), np.nan), "NaN or inf"),
        (np.full((3, 3), np.inf), "NaN or inf"),
        (np.ones(3), "expected"),
        (np.ones((0, 3)), "empty"),
        (np.ones((3, 3), complex), "real numbers"),
        (np.array([["a", "b"]]), "real numbers"),
    ],
)
def test_bad_matrices_are_refused_with_words(function, bad, words):
    with pytest.raises(ValueError, match=words):
        function(bad)


def test_entropy_refuses_what_is_no_distribution():
    A = softmax(gauss(6, 6))
    with pytest.raises(ValueError, match="sums to 2, expected 1"):
        entropy(2 * A)
    with pytest.raises(ValueError, match="expected one that broadcasts"):
        entropy(A, np.ones((5, 5), bool))
    with pytest.raises(ValueError, match="expected bool"):
        entropy(A, np.ones((6, 6)))
    with pytest.raises(ValueError, match="where the mask is False"):
        entropy(A, causal_mask(6))


def test_other_mistakes_are_explained():
    with pytest.raises(ValueError, match="at least two tokens"):
        spectral_gap(np.ones((1, 1)))
    with pytest.raises(ValueError, match="at least two tokens"):
        token_cosine(np.ones((1, 4)))
    with pytest.raises(ValueError, match="apply a softmax first"):
        remove_outlier(gauss(4, 4))
    with pytest.raises(ValueError, match="before remove_outlier"):
        entropy(remove_outlier(np.eye(3)))


def test_float16_has_a_spectrum():
    A = softmax(gauss(40, 40)).astype(np.float16)
    assert spectral_gap(A) > 0 and condition_number(A) > 1


# --------------------------------------------------------- half precision, long double


@pytest.mark.parametrize("size, shift", [(1, 3), (30, 90), (3000, 0), (1e-3, 0)])
@pytest.mark.parametrize(
    "measure", [stable_rank, stable_rank_gram, condition_number, spectral_gap, token_cosine, token_spread]
)
def test_half_precision_of_many_tokens_gives_what_float64_gives(measure, size, shift):
    """512 x 768: sums of squares in float16 would overflow, and 768 times its eps is no floor of rounding."""
    X = (size * gauss(512, 768) + shift).astype(np.float16)
    with np.errstate(over="raise", invalid="raise"):
        assert np.isclose(measure(X), measure(X.astype(float)), rtol=1e-3, atol=1e-4)
        assert np.isclose(measure(X.astype(np.longdouble)), measure(X.astype(float)), rtol=1e-9)


def test_centred_half_precision_is_rounded_once():
    X = (gauss(512, 768) + 90).astype(np.float16)
    exact = X.astype(float) - X.astype(float).mean(0)
    assert center_tokens(X).dtype == np.float16
    np.testing.assert_allclose(center_tokens(X).astype(float), exact, rtol=1e-3, atol=1e-4)


def test_weights_of_70000_keys_in_half_precision():
    weights = softmax(np.zeros((2, 70_000), np.float16))
    with np.errstate(over="raise"):
        np.testing.assert_allclose(entropy(weights), 1, atol=2e-3)
        assert np.abs(remove_outlier(weights).astype(float)).max() < 1e-7
        assert np.isclose(stable_rank(weights), 1) and spectral_gap(weights) > 1 - 1e-6


@pytest.mark.parametrize("measure", [entropy, remove_outlier])
def test_rows_of_half_precision_that_do_not_sum_to_one_are_refused(measure):
    """The tolerance was 0.98 once: a thousand eps."""
    weights = softmax(gauss(6, 40)).astype(np.float16)
    measure(weights)
    for factor in (0.9, 1.1, 1.9):
        with pytest.raises(ValueError, match="row"):
            measure((factor * weights).astype(np.float16))


def test_a_matrix_of_lower_rank_is_singular_in_every_type():
    X = gauss(512, 2) @ gauss(2, 768, seed=1)
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        assert condition_number(X.astype(dtype)) == np.inf


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_numbers_near_the_ends_of_their_type_are_answered(dtype):
    """Long doubles beyond float64 were refused, or taken for zero; sums of the largest numbers overflowed."""
    info = np.finfo(dtype)
    for size in (info.max, info.smallest_normal * 2**10):
        X = (np.where(np.tri(40), 1, -0.5) * gauss(40, 40).clip(-1, 1)).astype(dtype) * size
        plain = X.astype(np.longdouble) / X.max()
        for measure in (spectral_gap, stable_rank, stable_rank_gram, condition_number, token_spread, token_cosine):
            with np.errstate(over="raise", invalid="raise"):
                assert np.isclose(measure(X), measure(plain.astype(float)), rtol=0.02)
    top = np.full((4, 3), info.max)
    assert not center_tokens(top).any() and center_tokens(top).dtype == dtype
    top[0] *= -1
    with pytest.raises(ValueError, match=f"centered tokens overflow {np.dtype(dtype)}.*Use a wider type"):
        center_tokens(top)


def test_weights_of_70000_keys_that_do_not_sum_to_one_are_refused_in_every_type():
    """The tolerance grew with the keys, to 8 % in float32."""
    for dtype in ("float16", "float32", "float64"):
        weights = softmax(gauss(1, 70_000)).astype(dtype)
        for measure in (entropy, remove_outlier):
            measure(weights)
            with pytest.raises(ValueError, match="row"):
                measure((0.97 * weights).astype(dtype))
