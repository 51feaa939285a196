"""The training loop and its hand-derived gradients."""

import _thread
import sys

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from autograd.test_util import check_grads

import attn_utils
from attn_utils import causal_mask
from attn_utils.training import (
    attend,
    cross_entropy,
    fit,
    relu,
    sigmoid,
    sink_softmax,
    softmax,
    softmax1,
    squared_error,
)

RNG = np.random.default_rng(0)


def test_softmax_gradient_against_finite_differences():
    scores = RNG.normal(size=(3, 5))
    for axis in (0, -1):
        check_grads(lambda s, axis=axis: anp.sum(softmax(s, axis) ** 3), modes=["rev"], order=1)(scores)


def test_softmax_gradient_of_masked_scores_is_zero():
    scores = np.array([[1.0, -np.inf, 2.0], [-np.inf] * 3])
    gradient = grad(lambda s: anp.sum(softmax(s) ** 2))(scores)
    assert np.isfinite(gradient).all() and gradient[0, 1] == 0 and (gradient[1] == 0).all()


def test_cross_entropy_value_and_gradient():
    logits, targets = RNG.normal(size=(4, 5)), np.array([0, 3, 3, 1])
    expected = -np.log(attn_utils.softmax(logits)[range(4), targets]).mean()
    np.testing.assert_allclose(cross_entropy(logits, targets), expected)
    check_grads(lambda s: cross_entropy(s, targets), modes=["rev"], order=1)(logits)
    assert np.isfinite(cross_entropy(1e4 * logits, targets))


def test_cross_entropy_takes_leading_axes():
    logits, targets = RNG.normal(size=(2, 3, 5)), RNG.integers(0, 5, size=(2, 3))
    flat = cross_entropy(logits.reshape(6, 5), targets.ravel())
    np.testing.assert_allclose(cross_entropy(logits, targets), flat)
    check_grads(lambda s: cross_entropy(s, targets), modes=["rev"], order=1)(logits)


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_attend_equals_attention(dtype, tolerance):
    Q, K, V = (RNG.normal(size=(2, 6, d)).astype(dtype) for d in (8, 8, 5))
    for options in ({}, {"mask": causal_mask(6)}, {"scale": 0.3}):
        for ours, theirs in zip(attend(Q, K, V, **options), attn_utils.attention(Q, K, V, **options), strict=True):
            assert ours.dtype == dtype
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_attend_gradients():
    Q, K, V = (RNG.normal(size=(2, 4, 3)) for _ in range(3))
    for mask in (None, causal_mask(4)):
        loss = lambda q, k, v, mask=mask: anp.sum(attend(q, k, v, mask=mask, scale=0.5)[0] ** 2)  # noqa: E731
        for argument in range(3):
            check_grads(
                lambda x, i=argument, loss=loss: loss(*[x if j == i else a for j, a in enumerate((Q, K, V))]),
                modes=["rev"],
                order=1,
            )((Q, K, V)[argument])


@pytest.mark.parametrize("uncounted", [0, 1])
@pytest.mark.parametrize("function", [relu, sigmoid])
def test_gradients_of_weights_over_a_count(function, uncounted):
    scores = RNG.normal(size=(3, 4))
    scores += 0.1 * np.sign(scores)  # away from the corner of the relu
    for axis in (0, -1):
        check_grads(lambda s, a=axis: anp.sum(function(s, a, uncounted) ** 3), modes=["rev"], order=1)(scores)


@pytest.mark.parametrize("sink", [0.3, RNG.normal(size=(3, 1)), RNG.normal(size=(2, 1, 1)), RNG.normal(size=(1,))])
def test_gradients_of_a_softmax_with_a_sink(sink):
    scores = RNG.normal(size=(2, 3, 4))
    cubes = lambda s, b: anp.sum(sink_softmax(s, b) ** 3)  # noqa: E731
    check_grads(lambda s: cubes(s, sink), modes=["rev"], order=1)(scores)
    check_grads(lambda b: cubes(scores, b), modes=["rev"], order=1)(sink)
    check_grads(lambda s: anp.sum(softmax1(s, 0) ** 3), modes=["rev"], order=1)(scores)


def test_no_gradient_reaches_a_masked_score():
    scores = np.array([[1.0, -np.inf, 2.0], [-np.inf] * 3])
    for weighting in (softmax, softmax1, relu, sigmoid, lambda s: sink_softmax(s, 0.4)):
        gradient = grad(lambda s, w=weighting: anp.sum(w(s) ** 2))(scores)
        assert np.isfinite(gradient).all() and gradient[0, 1] == 0 and (gradient[1] == 0).all()


@pytest.mark.parametrize("weighting", [softmax1, relu, sigmoid])
def test_attend_with_another_weighting(weighting):
    Q, K, V = (RNG.normal(size=(2, 4, 3)) for _ in range(3))
    plain = getattr(sys.modules["attn_utils.attention"], weighting.__name__)
    ours = attend(Q, K, V, mask=causal_mask(4), weighting=weighting)
    theirs = attn_utils.attention(Q, K, V, mask=causal_mask(4), weighting=plain)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12)
    loss = lambda q: anp.sum(attend(q, K, V, mask=causal_mask(4), weighting=weighting)[0] ** 2)  # noqa: E731
    check_grads(loss, modes=["rev"], order=1)(Q)


def test_attend_broadcasts_and_so_does_its_gradient():
    Q, K, V = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(3, 4, 5)), RNG.normal(size=(2, 1, 4, 5))
    for argument in range(3):
        check_grads(
            lambda x, i=argument: anp.sum(attend(*[x if j == i else a for j, a in enumerate((Q, K, V))])[0] ** 2),
            modes=["rev"],
            order=1,
        )((Q, K, V)[argument])


def test_squared_error_value_and_gradient():
    output, target = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3, 4))
    assert squared_error(output, target) == pytest.approx(((output - target) ** 2).sum() / 24)
    check_grads(lambda x: squared_error(x, target), modes=["rev"], order=1)(output)
    assert grad(squared_error)(output.astype(np.float32), target.astype(np.float32)).dtype == np.float32


def bowl(params, centre):
    return anp.sum((params["x"] - centre) ** 2)


def constant_batch(rng):
    return (np.array([1.0, -2.0]),)


def test_fit_finds_the_minimum_and_changes_nothing_else():
    start = {"x": np.zeros(2)}
    params, losses = fit(bowl, start, constant_batch, 500, rng=RNG, lr=0.05, progress=False)
    np.testing.assert_allclose(params["x"], [1, -2], atol=1e-2)
    assert losses.shape == (500,) and losses[0] == 5 and losses[-1] < 1e-3 and (start["x"] == 0).all()


def test_adam_equals_its_definition():
    """Three steps against algorithm 1 of Kingma and Ba (2015), written out, with the decay of AdamW."""
    x, m, v = np.array([0.5, -1.0]), 0, 0
    for t in (1, 2, 3):
        g = 2 * (x - [1.0, -2.0])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - 0.1 * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + 0.01 * x)
    start = {"x": np.array([0.5, -1.0])}
    params, _ = fit(bowl, start, constant_batch, 3, rng=RNG, lr=0.1, weight_decay=0.01, progress=False)
    np.testing.assert_allclose(params["x"], x, rtol=1e-12)


def test_fit_keeps_types_repeats_and_calls_back():
    seen = []
    runs = [
        fit(
            bowl,
            {"x": np.zeros(2, np.float32)},
            lambda rng: (rng.normal(size=2).astype(np.float32),),
            5,
            rng=np.random.default_rng(3),
            on_step=lambda step, params: seen.append((step, params["x"].copy())),
        )
        for _ in range(2)
    ]
    assert runs[0][0]["x"].dtype == np.float32 and (runs[0][1] == runs[1][1]).all()
    assert [step for step, _ in seen] == [1, 2, 3, 4, 5] * 2 and not (seen[0][1] == seen[4][1]).all()


def test_fit_stops_when_it_is_told():
    seen = []
    stop = lambda step, params: seen.append(step) or step == 4  # noqa: E731
    params, losses = fit(bowl, {"x": np.zeros(2)}, constant_batch, 50, rng=RNG, on_step=stop, progress=False)
    assert seen == [1, 2, 3, 4] and losses.shape == (4,) and params["x"][0] > 0


def test_fit_takes_a_schedule_and_betas():
    """Two steps against the definition, the rate halved at the second."""
    x, m, v = np.array([0.5, -1.0]), 0, 0
    for t, rate in ((1, 0.1), (2, 0.05)):
        g = 2 * (x - [1.0, -2.0])
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
        x = x - rate * m / (1 - 0.8**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8)
    options = {"lr": lambda step: 0.1 / step, "betas": (0.8, 0.95), "progress": False}
    params, _ = fit(bowl, {"x": np.array([0.5, -1.0])}, constant_batch, 2, rng=RNG, **options)
    np.testing.assert_allclose(params["x"], x, rtol=1e-12)


def test_an_interrupt_returns_what_was_learned(capsys):
    def interrupt(step, params):
        if step == 3:
            _thread.interrupt_main()

    params, losses = fit(bowl, {"x": np.zeros(2)}, constant_batch, 10**6, rng=RNG, on_step=interrupt)
    assert 3 <= len(losses) < 100 and params["x"][0] > 0
    assert "Interrupted" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_not_finite_stops_and_names_the_step():
    with pytest.raises(FloatingPointError, match="step 1.*'x'"):
        fit(lambda p: anp.sum(anp.log(p["x"])), {"x": np.array([0.0])}, lambda rng: (), 5, rng=RNG)
    with pytest.raises(FloatingPointError, match="step 1 the loss"):
        fit(lambda p: anp.sum(p["x"]) + np.inf, {"x": np.zeros(1)}, lambda rng: (), 5, rng=RNG)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"rng": 3}, "rng"),
        ({"lr": 0}, "lr"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"betas": (0.9,)}, "betas"),
        ({"params": {"x": np.arange(3)}}, "'x'"),
        ({"params": {"x": np.zeros(3, np.float16)}}, "'x'"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"loss": bowl, "params": {"x": np.zeros(2)}, "batch": constant_batch, "steps": 3, "rng": RNG} | change
    with pytest.raises(ValueError, match=message):
        fit(**arguments)


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(ValueError, match="expected the same"):
        squared_error(np.ones((8, 1)), np.ones(8))
    with pytest.raises(ValueError, match="one a row"):
        cross_entropy(np.ones((4, 3)), [1])


def test_numpys_true_stops_too():
    params, losses = fit(
        bowl, {"x": np.zeros(2)}, constant_batch, 50, rng=RNG, on_step=lambda step, p: np.bool_(step == 4)
    )
    assert len(losses) == 4
