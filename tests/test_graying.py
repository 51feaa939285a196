"""Token Graying: what it promises about condition numbers, and what it says when asked for nonsense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct, idct

from attn_utils import dct_graying, svd_graying

RNG = np.random.default_rng(0)
BOTH = pytest.mark.parametrize("graying", [svd_graying, dct_graying])
EPSILONS = st.floats(0.05, 1)


def tokens(seed, n=12, d=5, kappa=50.0):
    """A matrix whose singular values fall evenly, on a log scale, from kappa to 1."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(size, min(n, d))))[0] for size in (n, d))
    return U * np.geomspace(kappa, 1, min(n, d)) @ V.T


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), epsilon=EPSILONS, sizes=st.sampled_from([(12, 5), (5, 12), (6, 6), (1, 4), (4, 1)]))
def test_the_condition_number_becomes_its_own_power(seed, epsilon, sizes):
    X = tokens(seed, *sizes)
    before, after = (np.linalg.svd(Y)[1] for Y in (X, svd_graying(X, epsilon)))
    np.testing.assert_allclose(after[0], before[0], rtol=1e-9)  # the largest stays
    np.testing.assert_allclose(after / after[0], (before / before[0]) ** epsilon, rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), a=EPSILONS, b=EPSILONS)
def test_twice_is_once_with_the_product(seed, a, b):
    X = tokens(seed)
    for graying in (svd_graying, dct_graying):
        np.testing.assert_allclose(graying(graying(X, a), b), graying(X, a * b), atol=1e-9 * abs(X).max())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), epsilon=EPSILONS, factor=st.floats(1e-3, 1e3), negative=st.booleans())
def test_a_factor_passes_through(seed, epsilon, factor, negative):
    X, factor = tokens(seed), -factor if negative else factor
    for graying in (svd_graying, dct_graying):
        np.testing.assert_allclose(graying(factor * X, epsilon), factor * graying(X, epsilon), rtol=1e-6, atol=1e-12)


@BOTH
def test_one_returns_the_tokens(graying):
    for X in (tokens(0), tokens(1, 5, 12), np.ones((4, 3)), np.zeros((4, 3)), RNG.normal(size=(2, 3, 6, 4))):
        np.testing.assert_allclose(graying(X, 1), X, atol=1e-13 * max(1, abs(X).max()))


def test_the_svd_does_not_care_about_order_and_the_cosine_transform_does():
    X, order = tokens(0), RNG.permutation(12)
    np.testing.assert_allclose(svd_graying(X[order], 0.5), svd_graying(X, 0.5)[order], atol=1e-12)
    Q = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    np.testing.assert_allclose(svd_graying(X @ Q, 0.5), svd_graying(X, 0.5) @ Q, atol=1e-12)
    assert not np.allclose(dct_graying(X[order], 0.5), dct_graying(X, 0.5)[order], atol=0.1)


def test_the_cosine_transform_written_out():
    X, epsilon = tokens(3), 0.6
    C = dct(dct(X, axis=0, norm="ortho"), axis=1, norm="ortho")
    C = np.sign(C) * abs(C).max() * (abs(C) / abs(C).max()) ** epsilon
    expected = idct(idct(C, axis=0, norm="ortho"), axis=1, norm="ortho")
    np.testing.assert_allclose(dct_graying(X, epsilon), expected, atol=1e-12)


def test_the_cosine_transform_lowers_the_condition_number_of_smooth_tokens_but_not_to_a_power():
    smooth = [np.cumsum(np.cumsum(np.random.default_rng(i).normal(size=(64, 16)), axis=0), axis=1) for i in range(8)]
    kappa, by_dct = np.linalg.cond(smooth), np.linalg.cond(dct_graying(smooth, 0.7))
    assert (by_dct < kappa).all()
    assert np.ptp(np.log(by_dct) / np.log(kappa)) > 0.02  # with the SVD it is 0.7 for each


@BOTH
@pytest.mark.parametrize("dtype, tolerance", [(np.float16, 2e-2), (np.float32, 1e-5), (np.longdouble, 1e-12)])
def test_types_are_kept_and_the_input_is_not_touched(graying, dtype, tolerance):
    X = tokens(0).astype(dtype)
    kept = X.copy()
    result = graying(X, 0.7)
    assert result.dtype == dtype and result.shape == X.shape and (X == kept).all()
    np.testing.assert_allclose(result.astype(float), graying(X.astype(float), 0.7), rtol=tolerance, atol=50 * tolerance)


@BOTH
def test_whole_numbers_and_lists_are_tokens_too(graying):
    lists = [[1, 2, 0], [4, -1, 3]]
    assert graying(lists, 0.5).dtype == np.float64
    np.testing.assert_array_equal(graying(lists, 0.5), graying(np.array(lists, float), 0.5))


@BOTH
def test_batches_are_grayed_one_by_one(graying):
    X = RNG.normal(size=(2, 3, 6, 4)) * np.array([1e-3, 1, 1e3])[:, None, None]
    for i in np.ndindex(2, 3):
        np.testing.assert_allclose(graying(X, 0.4)[i], graying(X[i], 0.4), rtol=1e-8, atol=1e-15)


def test_zero_singular_values_stay_zero():
    X = tokens(0) @ np.diag([1, 1, 1, 0, 0]) @ np.linalg.qr(RNG.normal(size=(5, 5)))[0]  # of rank 3
    before, after = (np.linalg.svd(Y)[1] for Y in (X, svd_graying(X, 0.2)))
    assert np.linalg.matrix_rank(X) == np.linalg.matrix_rank(svd_graying(X, 0.2)) == 3
    assert after[3] < 1e-13 * after[0]  # and not (1e-16)^0.2, which is 6e-4
    np.testing.assert_allclose(after[0] / after[2], (before[0] / before[2]) ** 0.2, rtol=1e-9)


@BOTH
def test_what_rounding_leaves_is_not_lifted(graying):
    for X in (np.ones((8, 8)), np.ones((8, 8), np.float32), np.outer(np.arange(8.0), np.ones(8))):
        np.testing.assert_allclose(np.linalg.svd(graying(X, 0.1))[1][2:], 0, atol=1e-5 * X.max())


@BOTH
def test_all_zeros_stay_all_zeros_without_a_warning(graying):
    X = np.stack([np.zeros((4, 3)), tokens(0, 4, 3)])
    assert not graying(X, 0.5)[0].any() and np.isfinite(graying(X, 0.5)).all()


@BOTH
@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e30, 1e37])
def test_very_small_and_very_large_numbers(graying, size):
    X = (tokens(0, kappa=3) / 3 * size).astype(np.float32)
    expected = graying(X.astype(float), 0.5)
    np.testing.assert_allclose(graying(X, 0.5), expected, atol=1e-4 * size)


@BOTH
def test_an_overflow_is_named(graying):
    X = np.full((50, 50), 3.4e38, np.float32) * np.sign(RNG.normal(size=(50, 50))).astype(np.float32)
    with pytest.raises(ValueError, match="overflow float32"):
        graying(X, 0.01)


@BOTH
@pytest.mark.parametrize("epsilon", [0, -0.5, 1.01, np.nan, np.inf, "0.5", None, True, [0.5], np.array([0.5])])
def test_an_epsilon_outside_its_range_is_named(graying, epsilon):
    with pytest.raises(ValueError, match="epsilon is .*expected a number above 0 and at most 1"):
        graying(np.ones((3, 2)), epsilon)


@BOTH
@pytest.mark.parametrize(
    "X, message",
    [
        (np.array([[1.0, np.nan]]), "NaN or inf"),
        (np.array([[1.0, np.inf]]), "NaN or inf"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((2, 3, 0)), "empty"),
        (np.ones(4), r"expected \(..., n_tokens, features\)"),
        (np.float64(3.0), r"expected \(..., n_tokens, features\)"),
        (np.ones((2, 2), complex), "real numbers"),
        (np.array([["a"]]), "real numbers"),
    ],
)
def test_tokens_that_are_none_are_named(graying, X, message):
    with pytest.raises(ValueError, match=message):
        graying(X, 0.5)


@BOTH
def test_numbers_of_numpy_are_an_epsilon_too(graying):
    X = tokens(0).astype(np.float32)
    assert graying(X, np.float64(0.5)).dtype == np.float32
    np.testing.assert_array_equal(graying(X, np.float64(0.5)), graying(X, 0.5))
    np.testing.assert_array_equal(graying(X, np.int64(1)), graying(X, 1.0))


@BOTH
def test_half_precision_of_many_tokens_is_grayed_as_float32_is(graying):
    """An eps of float16 times 768 would take three quarters of the singular values for zero."""
    X = np.random.default_rng(0).normal(size=(512, 768)).astype(np.float16)
    found, expected = graying(X, 0.5), graying(X.astype(np.float32), 0.5)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(float), expected, atol=2e-3 * abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 3), (12, 5), (16, 64), (512, 768)])
def test_the_rounding_of_every_type_is_not_lifted(dtype, shape):
    """Tokens of rank 2, rounded to their type: beyond the second nothing is raised to the power of 0.1."""
    rng = np.random.default_rng(shape[0])
    X = (rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))).astype(dtype)
    after = np.linalg.svd(svd_graying(X, 0.1).astype(float))[1]
    assert after[1] > 0.5 * after[0] and (after[2:] < 2e-3 * after[0]).all()


@BOTH
def test_long_doubles_beyond_float64_are_grayed(graying):
    X, size = tokens(0).astype(np.longdouble), np.finfo(np.longdouble).max / 100
    for factor in (size, 1 / size):
        np.testing.assert_allclose((graying(X * factor, 0.7) / factor).astype(float), graying(X, 0.7).astype(float))
