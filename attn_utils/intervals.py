"""What an average over draws is worth: intervals of confidence."""

import numbers

import numpy as np

from attn_utils.inputs import as_floating, is_whole


def mean_interval(values, level=0.95):
    """The mean of independent draws and an interval that covers the true mean in `level` of all repetitions.

    values   (n_draws,), or (n_draws, ...) with an interval for each place; at least two draws
    level    between 0 and 1

    Returns (mean, low, high), numbers or arrays of shape (...). The interval is Student's: mean -+ t s / sqrt(n) with
    t from n - 1 degrees of freedom. It is exact for draws from a normal distribution, and from 20 draws on close
    for most that are not; one far outlier in them widens it.
    For the difference of two arms that share their seeds, pass the differences: they scatter less than the arms.
    Raises ValueError for fewer than two draws, for NaN or inf, or for a level outside 0 to 1.

    Source: Student (1908), The probable error of a mean.
    """
    from scipy import stats

    values = as_floating(values, "values").astype(float)
    _check_level(level)
    if values.ndim == 0 or len(values) < 2:
        raise ValueError(f"values have shape {values.shape}, expected (n_draws, ...) with at least two draws.")
    if not np.isfinite(values).all():
        raise ValueError("values hold NaN or inf, which have no mean. Say how many there are, and leave them out.")
    exponent, n = np.frexp(np.abs(values).max(initial=0))[1], len(values)
    values = np.ldexp(values, -exponent)  # rounds nothing, and no square overflows
    mean = values.mean(axis=0)
    half = stats.t.ppf((1 + level) / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    with np.errstate(over="ignore"):  # a bound beyond what float64 holds is inf
        return tuple(np.ldexp(each, exponent) for each in (mean, mean - half, mean + half))


def proportion_interval(count, n, level=0.95):
    """A share of independent draws and its interval: in how many of all cases does it happen, having seen count of n?

    count   how often it happened: a whole number from 0 to n, or an array of them
    n       number of draws
    level   between 0 and 1

    Returns (share, low, high). Wilson's interval stays inside 0 to 1 and is of use where count is 0 or n, where the
    one with the standard error shrinks to a point.
    Raises ValueError for a count that is no whole number from 0 to n, or for a level outside 0 to 1.

    Source: Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    from scipy import stats

    _check_level(level)
    count = count if np.ma.is_masked(count) else np.asarray(count)
    whole = not np.ma.is_masked(count) and count.dtype.kind in "iu" and is_whole(n)
    if not whole or (count < 0).any() or (count > n).any():
        raise ValueError(f"count is {count} and n {n!r}, expected whole numbers with 0 <= count <= n and n >= 1.")
    n = int(n)  # the square of a small NumPy type would overflow
    z, share = stats.norm.ppf((1 + level) / 2), count / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # at the ends the bound is 0 or 1 exactly, which rounding would miss
    return share, np.where(count == 0, 0.0, middle - half)[()], np.where(count == n, 1.0, middle + half)[()]


def _check_level(level):
    if not isinstance(level, numbers.Real) or not 0 < level < 1:
        raise ValueError(f"level is {level!r}, expected a number between 0 and 1, such as 0.95.")
