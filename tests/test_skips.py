"""The experiment of chapter 5: what an arm does to the layers, what the lookup asks, and that cut wires are cut."""

import numpy as np
import pytest

from attn_utils import skips, stored
from attn_utils.gradients import rms_norm
from attn_utils.graying import svd_graying


def test_a_lookup_asks_for_a_symbol_that_is_shown_with_the_right_label():
    tokens, labels = skips.draw_labels(np.random.default_rng(0), (3, 40))
    assert tokens.shape == (3, 40, 9, 26) and labels.shape == (3, 40) and tokens.dtype == np.float32
    symbols, shown = tokens[..., :16], tokens[..., 1:, 16:]
    assert (symbols[..., 1:, :].sum(axis=-2) <= 1).all() and (symbols.sum(axis=-1) == 1).all()
    assert (tokens[..., 0, 16:] == 0).all() and (shown.sum(axis=-1) == 1).all()
    asked = (symbols[..., :1, :] * symbols[..., 1:, :]).sum(axis=-1)  # (3, 40, 8) one where the symbol is
    assert (asked.sum(axis=-1) == 1).all() and ((asked[..., None] * shown).sum(axis=-2).argmax(-1) == labels).all()


@pytest.mark.parametrize("task", skips.TASKS)
@pytest.mark.parametrize("arm", [name for name in skips.ARMS if "convolution" not in name])
def test_the_walk_ends_where_the_logits_are_read(arm, task):
    params, X = skips.start(arm, 2, task), skips.held_out(task)[0][:3]
    X = np.broadcast_to(X, (2, *X.shape))
    weights, states = skips.walk(params, X, arm)
    last = rms_norm(states[-1])
    read = last[..., 0, :] if task == "lookup" else last.mean(axis=-2)
    expected = read @ params["head.W"] + params["head.b"]
    np.testing.assert_allclose(skips.logits(params, X, arm), expected, rtol=1e-4, atol=1e-5)
    assert len(weights) == 4 and len(states) == 5


def test_weights_that_ignore_the_scores():
    scores = np.random.default_rng(0).normal(size=(2, 5, 5))
    assert (skips.identity(scores) == np.eye(5)).all() and not skips.nothing(scores).any()
    np.testing.assert_allclose(skips.uniform(scores), 0.2)


@pytest.mark.parametrize(
    ("arm", "moves"), [("both skips", True), ("uniform, neither", True), ("A = I, neither", False), ("deleted", False)]
)
def test_only_attention_passes_anything_between_tokens(arm, moves):
    """The control is one: with A = I or attention deleted, the question's token hears of no other."""
    params, (X, _) = skips.start(arm, 1, "lookup"), skips.held_out("lookup")
    here, other = X[None, :1].copy(), X[None, :1].copy()
    other[..., 1:, :] = X[None, 1:2, 1:]
    change = np.abs(skips.logits(params, here, arm) - skips.logits(params, other, arm)).max()
    assert (change > 1e-3) == moves and (moves or change == 0)


def test_a_skip_that_is_cut_changes_the_output_and_the_start_is_the_same():
    full, cut = skips.start("both skips", 2), skips.start("no attention skip", 2)
    assert all((full[name] == cut[name]).all() for name in full)
    X = np.broadcast_to(skips.held_out("digits")[0][:2], (2, 2, 16, 4))
    outputs = [skips.logits(full, X, arm) for arm in list(skips.ARMS)[:4]]
    assert all(np.abs(a - b).max() > 1e-3 for i, a in enumerate(outputs) for b in outputs[:i])


def test_the_convolution_mixes_the_neighbors_and_no_others():
    params, X = skips.start("convolution, both skips", 1), skips.held_out("digits")[0][:1].astype(float)
    tokens = np.random.default_rng(0).normal(size=(1, 1, 16, 16))
    one = {name: W for name, W in params.items() if name.startswith("0.") or not name[0].isdigit()}
    other = tokens.copy()
    other[..., 0, :] += 1  # the corner: its neighbors are the patches 1, 4 and 5
    change = np.abs(
        skips.run(one, tokens, skips.arm_named("convolution, both skips"))
        - skips.run(one, other, skips.arm_named("convolution, both skips"))
    ).max(axis=(0, 1, 3))
    assert set(np.flatnonzero(change)) == {0, 1, 4, 5} and skips.logits(
        params, X[None], "convolution, both skips"
    ).shape == (1, 1, 10)


def test_training_learns_measures_and_repeats_itself():
    looks = []
    found = skips.train(
        "both skips", 5e-3, 60, 2, layers=2, every=30, on_step=lambda step, params: looks.append(step) and None
    )
    assert found.steps == [1, 30, 60] and found.looks.shape == (3, 2) and looks == list(range(1, 61))
    assert found.accuracy.min() > 0.2 and (found.accuracy == found.looks[-1]).all()
    X, labels = skips.held_out("digits")
    assert (skips.accuracy(found.params, X, labels, "both skips") == found.accuracy).all()
    assert skips.final("both skips", 5e-3, 60, 2, layers=2) == found.accuracy.round(4).tolist()
    other = skips.train("both skips", 5e-3, 60, 2, layers=2, draw=1)
    assert (other.accuracy != found.accuracy).any()


def test_a_grayed_embedding_is_frozen_and_gray_pixels_reach_the_loss():
    start = skips.start("both skips", 1, layers=1)
    for graying in (skips.frozen, lambda X: svd_graying(X, 0.5)):
        found = skips.train("both skips", 1e-2, 3, 1, layers=1, graying=graying)
        assert all((found.params[name] == start[name]).all() for name in ("embed.W", "embed.position"))
        assert (found.params["0.W_V"] != start["0.W_V"]).any()
    plain, gray = (
        skips.train("both skips", 1e-2, 3, 1, layers=1, gray=gray).params["head.W"] for gray in (None, lambda X: 2 * X)
    )
    assert np.abs(plain - gray).max() > 1e-4


def test_kappas_are_those_of_the_states():
    params, X = skips.start("neither", 2), skips.held_out("digits")[0][:3]
    found = skips.kappas(params, X, "neither")
    assert found.shape == (5, 2) and (np.diff(np.log(found[:, 0])) > 1).any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: skips.start("no skip", 2), "arm is 'no skip', expected an Arm"),
        (lambda: skips.start("neither", 2, "mnist"), "task is 'mnist', expected one of 'digits'"),
        (lambda: skips.train("neither", 0.0, 2), "rate"),
        (lambda: skips.start("neither", 0), "seeds"),
        (lambda: skips.held_out("images"), "task is 'images'"),
    ],
)
def test_what_it_refuses(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("task", skips.TASKS)
def test_the_stored_arms_are_those_of_the_room(task):
    """What the chapter shows: every arm, three rates, twenty seeds; with attention off the lookup stays at chance."""
    found = stored(f"skip-arms-{task}").value
    arms = [arm for arm in skips.ARMS if task == "digits" or "convolution" not in arm]
    assert set(found) == {"0.001", "0.003", "0.01"} and all(list(by_arm) == arms for by_arm in found.values())
    assert all(
        len(seeds) == 20 and 0 <= min(seeds) <= max(seeds) <= 1
        for by_arm in found.values()
        for seeds in by_arm.values()
    )
    off = [np.mean(by_arm[arm]) for by_arm in found.values() for arm in arms if "A = I" in arm or "deleted" in arm]
    assert task == "digits" or max(off) < 0.13
