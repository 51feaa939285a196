"""The look-up task and its bare head: what is drawn, what a head computes, and that the options reach the training."""

import numpy as np
import pytest

from attn_utils import attention
from attn_utils.lookup import (
    PLAIN_AVERAGING,
    draw_lookups,
    head_error,
    spread_of_scores,
    start_head,
    symbol_scores,
    train_head,
)


def test_an_example_shows_different_symbols_and_asks_for_the_first():
    asked, shown, V = draw_lookups(np.random.default_rng(0), size=50)
    assert asked.shape == (50, 1, 32) and shown.shape == (50, 16, 32) and V.shape == (50, 16, 8)
    assert {array.dtype for array in (asked, shown, V)} == {np.dtype("float32")}
    assert (shown.sum(axis=1) <= 1).all() and (shown.sum(axis=2) == 1).all()  # no symbol twice, each row one symbol
    assert (asked == shown[:, :1]).all() and len(set(asked.argmax(-1).ravel())) > 20


def test_plain_averaging_has_the_error_it_is_said_to_have():
    _, _, V = draw_lookups(np.random.default_rng(1), size=20_000)
    assert abs(((V.mean(axis=1) - V[:, 0]) ** 2).mean() - PLAIN_AVERAGING) < 0.01


def test_the_loss_is_that_of_attention_with_its_scale():
    """The first loss of a training is what attention() itself gives on the same examples."""
    params = start_head(0, d_k=9)
    asked, shown, V = draw_lookups(np.random.default_rng([3, 1]))
    for scale in (None, 1.0, 0.25):
        output = attention(asked @ params["W_Q"], shown @ params["W_K"], V, scale=scale)[0]
        _, losses = train_head(params, scale, seed=3, steps=1)
        np.testing.assert_allclose(losses[0], ((output - V[:, :1]) ** 2).mean(), rtol=1e-5)
    assert head_error(params, asked, shown, V, scale=0.25) == losses[0]


def test_a_scaled_head_learns_and_its_start_is_not_changed():
    start = start_head(0, d_k=64)
    before = {name: W.copy() for name, W in start.items()}
    params, losses = train_head(start, lr=0.02)
    assert losses[0] > 0.7 and losses[-20:].mean() < 0.05 and losses.shape == (200,)
    assert all((start[name] == before[name]).all() for name in start)
    assert (symbol_scores(params).argmax(axis=1) == np.arange(32)).all()


def test_options_reach_the_training():
    params, losses = train_head(start_head(0, d_k=4), steps=50, on_step=lambda step, params: step == 7)
    assert len(losses) == 7
    decayed, _ = train_head(start_head(0, d_k=64), 1.0, lr=0.01, steps=50, weight_decay=10.0)
    assert spread_of_scores(decayed) < spread_of_scores(start_head(0, d_k=64)) / 2


def test_the_spread_is_that_of_the_wrong_keys_and_follows_the_start():
    assert abs(spread_of_scores(start_head(0)) / 32 - 1) < 0.1
    assert abs(spread_of_scores(start_head(0, shrink=0.5)) / 8 - 1) < 0.1
    params = {"W_Q": np.eye(32, dtype=np.float32), "W_K": 5 * np.eye(32, dtype=np.float32)}
    assert spread_of_scores(params) == 0  # right keys, on the diagonal, do not count


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="size"):
        draw_lookups(np.random.default_rng(0), size=0)
    with pytest.raises(ValueError, match="rng"):
        draw_lookups(0)
    with pytest.raises(ValueError, match="d_k"):
        start_head(0, d_k=2.5)
