"""Rank collapse in one frame: what each form multiplies by, what a fresh stack is, what the tasks ask, how they train."""

import numpy as np
import pytest
from autograd import grad

from attn_utils import attention, softmax
from attn_utils.gradients import rms_norm
from attn_utils.rank_collapse import (
    FORMS,
    TASKS,
    WIDTH,
    draw_task,
    fresh_stack,
    mixed,
    mixer_error,
    mixer_states,
    start_mixer,
    train_mixer,
)
from attn_utils.spectra import center_tokens, remove_outlier, token_spread

T, D = 12, 6


def draws(seed=0, *lead):
    return np.random.default_rng(seed).normal(size=(3, *lead, T, D))


def test_the_matrices_of_the_forms():
    Q, K, V = draws()
    A = softmax(Q @ K.T / np.sqrt(D))
    expected = {"plain": A, "repaired": remove_outlier(A), "identity": np.eye(T), "none": np.zeros((T, T))}
    expected["shaped"] = np.eye(T) + remove_outlier(softmax(Q @ K.T / D))
    halves = [softmax(Q[:, part] @ K[:, part].T / np.sqrt(D / 2)) for part in (slice(0, 3), slice(3, 6))]
    expected["differential"] = halves[0] - 0.2 * halves[1]
    for form, matrix in expected.items():
        np.testing.assert_allclose(mixed(Q, K, np.eye(T), form), matrix, atol=1e-12)
        np.testing.assert_allclose(mixed(Q, K, V, form), matrix @ V, atol=1e-12)
    np.testing.assert_allclose(mixed(Q, K, V, "differential", 0.7), (halves[0] - 0.7 * halves[1]) @ V)
    assert set(expected) | {"shrunk"} == set(FORMS)


def test_shrunk_outputs_are_plain_ones_of_the_repaired_size():
    Q, K, V = draws(1, 2)
    plain, repaired, shrunk = (mixed(Q, K, V, form) for form in ("plain", "repaired", "shrunk"))
    sizes = [np.linalg.norm(each, axis=(-2, -1)) for each in (shrunk, repaired)]
    np.testing.assert_allclose(*sizes)
    ratio = shrunk / plain
    assert np.ptp(ratio[0]) < 1e-12 < abs(ratio[0, 0, 0] - ratio[1, 0, 0])  # one number for each sequence


@pytest.mark.parametrize("form", ["plain", "repaired", "shaped", "differential"])
def test_forms_have_the_gradient_of_finite_differences(form):
    Q, K, V = draws(2)
    for place in range(3):
        def total(X, place=place):
            parts = [Q, K, V]
            parts[place] = X
            return (mixed(*parts, form) ** 3).sum()

        X, step = (Q, K, V)[place], np.random.default_rng(9).normal(size=(T, D))
        slope = (total(X + 1e-6 * step) - total(X - 1e-6 * step)) / 2e-6
        np.testing.assert_allclose((grad(total)(X) * step).sum(), slope, rtol=1e-5, atol=1e-6)


def test_a_plain_fresh_layer_is_attention():
    X = draws()[0]
    W_Q, W_K, W_V = np.random.default_rng([5, 0]).normal(scale=D**-0.5, size=(3, D, D))
    branch = attention(X @ W_Q, X @ W_K, X @ W_V)[0]
    for skip in (False, True):
        states = fresh_stack(X, 5, 1, skip=skip)
        np.testing.assert_allclose(states[1], branch + X * skip)
    assert len(fresh_stack(X, 5, 4)) == 5


def test_the_switches_of_a_fresh_stack():
    X = draws()[0]
    last = {name: fresh_stack(X, 1, 3, **kind)[-1] for name, kind in {
        "norm": {"norm": rms_norm}, "post": {"norm": rms_norm, "post": True}, "values": {"values": False},
        "feed": {"feed": True}, "plain": {}}.items()}  # fmt: skip
    for name in ("norm", "post", "values", "feed"):
        assert not np.allclose(last[name], last["plain"])
    np.testing.assert_allclose((last["post"] ** 2).mean(axis=-1), 1, rtol=1e-3)
    np.testing.assert_allclose(fresh_stack(X, 1, 2, "identity", values=False)[-1], X)
    np.testing.assert_allclose(fresh_stack(X, 1, 2, "none", skip=True)[-1], X)
    # W_V = I: a plain layer averages the tokens themselves, so that no output lies outside of them
    assert fresh_stack(X, 1, 1, values=False)[-1].max() < X.max()
    assert fresh_stack(X.astype(np.float32), 1, 2, feed=True)[-1].dtype == np.float32


def test_tokens_fall_together_without_a_skip():
    X = np.random.default_rng(0).normal(size=(64, 64))
    assert token_spread(fresh_stack(X, 0, 8)[-1]) < 1e-3 < 0.3 < token_spread(fresh_stack(X, 0, 8, skip=True)[-1])


def test_what_the_tasks_ask():
    rng = np.random.default_rng(0)
    X, target = draw_task(rng, "lookup", 5, 16)
    assert X.shape == (5, 16, WIDTH) and target.shape == (5, 16, 8) and X.dtype == target.dtype == np.float32
    match = (X[:, :, 32:64] @ np.swapaxes(X[:, :, :32], 1, 2)).argmax(-1)  # (5, 16) whose name is asked for
    np.testing.assert_array_equal(np.take_along_axis(X[:, :, 64:], match[..., None], axis=1), target)
    assert (np.sort(match, axis=1) == np.arange(16)).all()  # everyone is asked for once
    X, target = draw_task(rng, "previous", 5, 16)
    np.testing.assert_array_equal(target[:, 1:], X[:, :-1, 64:])
    assert (X[0, :, :32] == X[1, :, :32]).all() and not X[:, :, 32:64].any()
    X, target = draw_task(rng, "group mean", 5, 16)
    same = (X[:, :, None, :32] == X[:, None, :, :32]).all(-1)  # (5, 16, 16)
    np.testing.assert_allclose(target, same @ X[:, :, 64:] / 2, atol=1e-5)  # the mean of 4, times the root of 4


@pytest.mark.parametrize("task", TASKS)
def test_targets_have_variance_one_and_can_be_free_of_their_mean(task):
    X, target = draw_task(np.random.default_rng(1), task, 400, 32)
    assert abs(target.var() - 1) < 0.05
    X, target = draw_task(np.random.default_rng(1), task, 40, 32, mean_free=True)
    assert max(np.abs(target.mean(axis=1)).max(), np.abs(X[:, :, 64:].mean(axis=1)).max()) < 1e-6


def test_the_repair_changes_what_all_tokens_share_and_nothing_else():
    params = start_mixer(0)
    X, _ = draw_task(np.random.default_rng(2), size=3)
    plain, repaired = (mixer_states(params, X, form)[-1] for form in ("plain", "repaired"))
    assert np.abs(plain - repaired).max() > 0.1
    np.testing.assert_allclose(center_tokens(plain), center_tokens(repaired), atol=1e-5)


def test_training_begins_at_the_start_and_learns():
    X, target = draw_task(np.random.default_rng([3, 1]), size=32)
    params, losses = train_mixer(3, steps=1, tokens=512)
    np.testing.assert_allclose(losses[0], mixer_error(start_mixer(3), X, target), rtol=1e-5)
    learned, losses = train_mixer(0, 0.02, "differential", "group mean", steps=120, depth=2)
    assert losses[-10:].mean() < 0.5 < losses[0] and learned["Q"].shape == (2, WIDTH, WIDTH)
    again, _ = train_mixer(3, steps=1, start=params)
    assert np.abs(again["V"] - params["V"]).max() > 0
    _, stopped = train_mixer(0, steps=9, on_step=lambda step, params: step == 2)
    assert len(stopped) == 2


def test_open_values_reach_the_output_at_once():
    X, _ = draw_task(np.random.default_rng(0), size=200)
    found = {}
    for open_values in (False, True):
        params = start_mixer(0, open_values=open_values)
        output = X @ params["V"][0] @ params["out"]  # what a token hands on
        found[open_values] = np.corrcoef(output.ravel(), X[..., 64:].ravel())[0, 1]
        assert (params["Q"] == start_mixer(0)["Q"]).all()
    assert found[True] > 0.4 > 0.2 > abs(found[False])


def test_bad_input_is_named():
    Q, K, V = draws()
    for message, call in {
        "form": lambda: mixed(Q, K, V, "planar"),
        "as many": lambda: mixed(Q[:5], K, V),
        "even": lambda: mixed(Q[:, :5], K[:, :5], V, "differential"),
        "task": lambda: draw_task(np.random.default_rng(0), "sum"),
        "n_tokens": lambda: draw_task(np.random.default_rng(0), n_tokens=3),
        "rng": lambda: draw_task(0),
        "mean_free": lambda: draw_task(np.random.default_rng(0), mean_free=2),
        "depth": lambda: fresh_stack(Q, 0, 0),
        "seed": lambda: fresh_stack(Q, -1),
        "skip": lambda: fresh_stack(Q, 0, skip="yes"),
        "open_values": lambda: start_mixer(0, open_values=1),
        "lr": lambda: train_mixer(0, lr=-1),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
