"""RMSNorm and LayerNorm: what they compute, in every type, at every size, and what they refuse."""

import numpy as np
import pytest

from attn_utils.norms import layer_norm, rms_norm, root_mean_square

RNG = np.random.default_rng(0)
TOKENS = RNG.normal(size=(2, 5, 8)) * 3 + 1
GAIN, SHIFT = RNG.normal(size=8), RNG.normal(size=8)


def by_hand(norm, X, gain, shift, epsilon):
    """One token at a time, in float64."""
    X = np.asarray(X, dtype=np.float64)
    out = np.empty_like(X)
    for place in np.ndindex(X.shape[:-1]):
        x = X[place] - (X[place].mean() if norm is layer_norm else 0)
        out[place] = gain * x / np.sqrt((x**2).mean() + epsilon) + (shift if norm is layer_norm else 0)
    return out


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 2e-2)])
def test_they_are_what_their_papers_define(norm, dtype, tolerance):
    """Gains and shifts in float64 do not change the type; a large epsilon shows where it is added."""
    X = TOKENS.astype(dtype)
    shift = {"shift": SHIFT} if norm is layer_norm else {}
    for epsilon in (1e-6, np.float64(0.5)):
        found = norm(X, GAIN, epsilon=epsilon, **shift)
        assert found.dtype == dtype and found.shape == X.shape
        np.testing.assert_allclose(found, by_hand(norm, X, GAIN, SHIFT, epsilon), atol=tolerance)
    np.testing.assert_allclose(norm(X), by_hand(norm, X, 1, 0, 1e-6), atol=tolerance)


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
@pytest.mark.parametrize("dtype, size", [(np.float16, 6e3), (np.float32, 1e30), (np.float64, 1e200)])
def test_large_tokens_do_not_become_zero(norm, dtype, size):
    """Their squares are too large for the type; small tokens beside them are not touched."""
    X = TOKENS[0].astype(dtype)
    large = np.concatenate([X * dtype(size / np.abs(X).max()), X, np.zeros((1, 8), dtype)])
    with np.errstate(all="raise", under="ignore", over="ignore"):
        found = norm(large)
    tolerance = 2e-2 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found[:5], by_hand(norm, X, 1, 0, 0), atol=tolerance)
    np.testing.assert_array_equal(found[5:10], norm(X))
    np.testing.assert_array_equal(found[10], 0)


def test_an_epsilon_of_numpy_does_not_change_the_type():
    assert root_mean_square(np.float32(TOKENS), np.float64(1e-6)).dtype == np.float32


def test_lists_and_whole_numbers_and_views_are_tokens():
    expected = rms_norm(np.array([[1.0, 2.0], [3.0, 4.0]]))
    for tokens in ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]]), np.array([[1.0, 3.0], [2.0, 4.0]]).T):
        np.testing.assert_array_equal(rms_norm(tokens), expected)
    np.testing.assert_array_equal(rms_norm([1, 2]), expected[0])
    assert np.isnan(layer_norm([1, np.nan])).all()


def test_what_comes_in_stays_what_it_is():
    X, gain, shift = TOKENS.copy(), GAIN.copy(), SHIFT.copy()
    for array in (X, gain, shift):
        array.flags.writeable = False
    layer_norm(X, gain, shift)
    rms_norm(X, gain)[...] = 0  # what comes back is no view of it
    np.testing.assert_array_equal(X, TOKENS)


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"X": 3.0}, r"X has shape \(\)"),
        ({"X": np.ones((2, 0))}, r"X has shape \(2, 0\)"),
        ({"X": "a"}, "X has type"),
        ({"X": np.ma.masked_array([1.0, 2.0], [0, 1])}, "X is a masked array"),
        ({"gain": np.ones(3)}, r"gain has shape \(3,\), expected \(2,\)"),
        ({"gain": 2.0}, "gain has shape"),
        ({"gain": np.ones((2, 2))}, "gain has shape"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": np.nan}, "epsilon is nan"),
    ],
)
def test_what_they_refuse(norm, arguments, message):
    with pytest.raises(ValueError, match=message):
        norm(**{"X": np.ones((2, 2)), **arguments})


def test_a_shift_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"shift has shape \(1,\), expected \(2,\)"):
        layer_norm(np.ones((2, 2)), shift=[1.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
def test_what_overflows_a_type_is_said(norm, dtype):
    X = np.array([[1, 2, -9]], dtype)
    with np.errstate(over="raise"), pytest.raises(ValueError, match=f"normalized tokens overflow {dtype}, expected"):
        norm(X, np.full(3, np.finfo(dtype).max))
    with pytest.raises(ValueError, match="gain contains NaN or inf"):
        norm(X, np.full(3, np.inf))
    assert np.isnan(norm(np.array([[1, np.nan, 2]], dtype), np.ones(3))).all()
