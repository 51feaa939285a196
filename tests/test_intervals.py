"""Intervals cover what they say they cover."""

import numpy as np
import pytest
from scipy import stats

from attn_utils.intervals import mean_interval, proportion_interval


def test_mean_interval_equals_scipys_and_takes_places():
    values = np.random.default_rng(0).normal(size=(20, 3))
    mean, low, high = mean_interval(values)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    np.testing.assert_allclose([mean, low, high], [values.mean(0), theirs.low, theirs.high])
    np.testing.assert_allclose(mean_interval(values[:, 0]), [mean[0], low[0], high[0]])
    assert mean_interval(values[:, 0], 0.5)[1] > low[0]


def test_mean_interval_covers_the_true_mean_in_19_of_20_repetitions():
    values = np.random.default_rng(1).normal(3, 2, size=(20, 4000))
    _, low, high = mean_interval(values)
    assert 0.94 < np.mean((low <= 3) & (3 <= high)) < 0.96


def test_proportion_interval_equals_scipys_wilson():
    for count, n in ((0, 20), (20, 20), (7, 20), (1, 1), (341, 2000)):
        theirs = stats.binomtest(count, n).proportion_ci(0.9, "wilson")
        np.testing.assert_allclose(proportion_interval(count, n, 0.9), [count / n, theirs.low, theirs.high], atol=1e-12)
    share, low, high = proportion_interval(np.array([0, 5, 20]), 20)
    assert low[0] == 0 and high[2] == 1 and high[0] > 0.1 and np.all((low <= share) & (share <= high))


@pytest.mark.parametrize("values", [3.0, [1.0], [], [1.0, np.nan], [1.0, np.inf]])
def test_means_of_nothing_are_refused(values):
    with pytest.raises(ValueError, match="two draws|NaN"):
        mean_interval(values)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_small_types_do_not_overflow(dtype):
    np.testing.assert_array_equal(proportion_interval(dtype(100), dtype(120)), proportion_interval(100, 120))
    values = np.full(20, 100, dtype) + np.arange(20, dtype=dtype)
    np.testing.assert_array_equal(mean_interval(values), mean_interval(values.astype(float)))


@pytest.mark.parametrize("values", [["1", "2"], [1j, 2], [[1, 2], [3]], np.ma.masked_array([1.0, 9.0, 2.0], [0, 1, 0])])
def test_what_is_no_draw_is_named(values):
    with pytest.raises(ValueError, match="^values (has|is)"):
        mean_interval(values)


@pytest.mark.parametrize("count, n", [(3, 2), (-1, 2), (0.5, 2), (0, 0), (1, 2.0), (True, 2), (np.ma.masked_array([1, 2], [0, 1]), 3)])
def test_counts_that_are_none_are_refused(count, n):
    with pytest.raises(ValueError, match="whole numbers"):
        proportion_interval(count, n)


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, np.nan, "0.9", None, [0.9]])
def test_levels_that_are_none_are_refused(level):
    for call in (lambda: mean_interval([1.0, 2.0], level), lambda: proportion_interval(1, 2, level)):
        with pytest.raises(ValueError, match="level is"):
            call()
