"""The trigger task: tokens, targets, and what it refuses."""

import numpy as np
import pytest

from attn_utils.tasks import trigger_sequences


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_tokens_are_what_their_flags_say(rng):
    X, _, place = trigger_sequences(200, rng)
    assert X.shape == (200, 16, 16) and X.dtype == np.float32 and place.shape == (200,)
    trigger = np.arange(16) == place[:, None]
    ordinary = ~trigger & (np.arange(16) > 0)
    assert (X[:, 0] == np.eye(16)[0]).all()
    for rows, flags in ((X[trigger], (0, 1, 0)), (X[ordinary], (0, 0, 1))):
        assert (rows[:, [0, 1, -1]] == flags).all()
        assert np.abs(rows[:, 2:-1]).max() < 1 and abs(rows[:, 2:-1].mean()) < 0.02
        assert abs(rows[:, 2:-1].var() - 1 / 3) < 0.02


def test_the_target_is_the_mean_up_to_the_trigger_and_zero_elsewhere(rng):
    X, Y, place = trigger_sequences(100, rng)
    assert Y.shape == X.shape and Y.dtype == np.float32
    for tokens, target, at in zip(X, Y, place, strict=True):
        np.testing.assert_allclose(target[at], tokens[1 : at + 1].astype(float).mean(axis=0), atol=1e-6)
        assert not np.delete(target, at, axis=0).any()


def test_the_trigger_stands_anywhere_from_the_third_token_on(rng):
    counts = np.bincount(trigger_sequences(14_000, rng)[2], minlength=16)
    assert counts[:2].sum() == 0 and counts[2:].min() > 850 and counts[2:].max() < 1150
    assert (trigger_sequences(50, rng, place=7)[2] == 7).all()


def test_without_bos_the_same_sequences_are_one_token_shorter():
    with_bos = trigger_sequences(30, np.random.default_rng(3))
    without = trigger_sequences(30, np.random.default_rng(3), bos=False)
    assert without[0].shape == (30, 15, 16)
    assert (without[0] == with_bos[0][:, 1:]).all() and (without[1] == with_bos[1][:, 1:]).all()
    assert (without[2] == with_bos[2] - 1).all() and not without[0][..., 0].any()


def test_a_shape_of_sequences_and_other_sizes(rng):
    X, Y, place = trigger_sequences((3, 5), rng, n_tokens=6, d=8)
    assert X.shape == Y.shape == (3, 5, 6, 8) and place.shape == (3, 5)
    assert (Y.any(axis=-1).argmax(axis=-1) == place).all()
    assert not (X[0] == X[1]).all()


def test_draws_depend_on_the_generator_alone():
    draws = [trigger_sequences(4, np.random.default_rng(seed))[0] for seed in (1, 1, 2)]
    assert (draws[0] == draws[1]).all() and not (draws[0] == draws[2]).all()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"n": 0}, "n is 0"),
        ({"n": 2.5}, "n is 2.5"),
        ({"n": (3, 0)}, "n is 0"),
        ({"n": True}, "n is True"),
        ({"n_tokens": 3}, "n_tokens is 3"),
        ({"d": 2}, "d is 2"),
        ({"place": 1}, "place is 1"),
        ({"place": 16}, "place is 16"),
        ({"place": 7.5}, "place is 7.5, expected a whole number from 2 to 15"),
        ({"place": "7"}, "place is '7'"),
        ({"place": np.array([7, 8])}, "place is array"),
        ({"rng": 3}, "rng is int"),
    ],
)
def test_bad_arguments_are_named(rng, change, words):
    with pytest.raises(ValueError, match=words):
        trigger_sequences(**({"n": 4, "rng": rng} | change))
