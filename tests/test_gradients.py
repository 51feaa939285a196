"""The differentiable pieces: values against their definitions, gradients against finite differences and PyTorch."""


import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from autograd.test_util import check_grads
from scipy import stats

import attn_utils
from attn_utils import attention, causal_mask, gradients, spectra, weightings
from attn_utils.gradients import (
    NORMS,
    WEIGHTINGS,
    attend,
    center_tokens,
    cross_entropy,
    feed_forward,
    gelu,
    layer_norm,
    linear,
    mean_token,
    relu,
    rms_norm,
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
    for weighting in (*WEIGHTINGS.values(), lambda s: sink_softmax(s, 0.4)):
        gradient = grad(lambda s, w=weighting: anp.sum(w(s) ** 2))(scores)
        assert np.isfinite(gradient).all() and gradient[0, 1] == 0 and (gradient[1] == 0).all()


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_attend_with_another_weighting(name):
    weighting = WEIGHTINGS[name]
    Q, K, V = (RNG.normal(size=(2, 4, 3)) for _ in range(3))
    plain = weightings.WEIGHTINGS[name]
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


def test_values_may_have_more_axes_than_queries_and_keys():
    Q, V = RNG.normal(size=(4, 5)), RNG.normal(size=(2, 3, 4, 5))
    check_grads(lambda x: anp.sum(attend(x, Q, V)[0] ** 2), modes=["rev"], order=1)(Q)
    check_grads(lambda x: anp.sum(attend(Q, Q, x)[0] ** 2), modes=["rev"], order=1)(V)


def test_squared_error_value_and_gradient():
    output, target = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3, 4))
    assert squared_error(output, target) == pytest.approx(((output - target) ** 2).sum() / 24)
    check_grads(lambda x: squared_error(x, target), modes=["rev"], order=1)(output)
    assert grad(squared_error)(output.astype(np.float32), target.astype(np.float32)).dtype == np.float32


# ------------------------------------------------ the parts of a Transformer (chapter 5)


@pytest.mark.parametrize("function", [*NORMS.values(), gelu, center_tokens, mean_token])
def test_gradients_of_the_parts(function):
    X = RNG.normal(size=(2, 3, 4))
    weigh = RNG.normal(size=function(X).shape)
    check_grads(lambda x: anp.sum(weigh * function(x) ** 2), modes=["rev"], order=1)(X)
    assert grad(lambda x: anp.sum(function(x) ** 2))(X.astype(np.float32)).dtype == np.float32


def test_the_norms_are_what_they_are_called():
    X = RNG.normal(size=(2, 6, 5)) * 3 + 1
    np.testing.assert_allclose((rms_norm(X) ** 2).mean(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(rms_norm(X), X / np.sqrt((X**2).mean(-1, keepdims=True)), rtol=1e-5)
    np.testing.assert_allclose(layer_norm(X).mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose(layer_norm(X), (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True), rtol=1e-5)
    assert not rms_norm(np.zeros((2, 3))).any() and not layer_norm(np.full((2, 3), 7.0)).any()


def test_gradients_of_the_norms_where_epsilon_counts():
    X = RNG.normal(size=(3, 4))  # the mean square is about epsilon
    for norm in NORMS.values():
        check_grads(lambda x, norm=norm: anp.sum(norm(x, 1.0) ** 3), modes=["rev"], order=1)(X)
    assert np.isfinite(grad(lambda x: anp.sum(layer_norm(x) ** 3))(np.zeros((2, 3)))).all()


def test_gelu_is_near_its_definition():
    x = np.linspace(-6, 6, 1001)
    assert abs(gelu(x) - x * stats.norm.cdf(x)).max() < 5e-4
    np.testing.assert_allclose(gelu(np.array([-1e4, -100.0, 0, 100, 1e4])), [0, 0, 0, 100, 1e4])


def test_center_tokens_is_that_of_spectra():
    X = RNG.normal(size=(2, 5, 3)) + 4
    np.testing.assert_allclose(center_tokens(X), spectra.center_tokens(X), atol=1e-12)


@pytest.mark.parametrize("models", [(), (2,), (2, 3)])
def test_linear_and_feed_forward_and_their_gradients(models):
    X = RNG.normal(size=(*models, 2, 3, 4))
    W_1, b_1, W_2, b_2 = (RNG.normal(size=(*models, *shape)) for shape in ((4, 6), (1, 6), (6, 4), (1, 4)))
    flat = X.reshape(*models, 6, 4)
    hidden = flat @ W_1 + b_1
    np.testing.assert_allclose(linear(X, W_1, b_1), hidden.reshape(*models, 2, 3, 6))
    expected = (gelu(hidden) @ W_2 + b_2).reshape(X.shape)
    np.testing.assert_allclose(feed_forward(X, W_1, b_1, W_2, b_2), expected)
    arguments = (X, W_1, b_1, W_2, b_2)
    for i in range(5):
        part = lambda a, i=i: anp.sum(feed_forward(*[a if j == i else b for j, b in enumerate(arguments)]) ** 2)  # noqa: E731
        check_grads(part, modes=["rev"], order=1)(arguments[i])


def test_softmax_gradient_is_the_same_along_either_axis():
    scores, weigh = RNG.normal(size=(4, 6)), RNG.normal(size=(4, 6))
    along = grad(lambda s: anp.sum(weigh * softmax(s)))(scores)
    across = grad(lambda s: anp.sum(weigh.T * softmax(s, 0)))(scores.T)
    np.testing.assert_allclose(along, across.T, rtol=1e-12, atol=1e-15)


def torch_gradients(torch, function, *arrays):
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    output = function(torch, *tensors)
    (output**2).sum().backward()
    return [output.detach().numpy(), *(tensor.grad.numpy() for tensor in tensors)]


@pytest.mark.reference
@pytest.mark.parametrize(
    "ours, theirs, shapes",
    [
        (rms_norm, lambda t, x: t.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-6), [(2, 3, 4)]),
        (layer_norm, lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-6), [(2, 3, 4)]),
        (gelu, lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), [(3, 5)]),
        (softmax, lambda t, x: x.softmax(-1), [(3, 5)]),
        (
            lambda q, k, v: attend(q, k, v)[0],
            lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v),
            [(2, 5, 4), (2, 5, 4), (2, 5, 4)],
        ),
        (linear, lambda t, x, W, b: x @ W + b, [(5, 3), (3, 4), (1, 4)]),
    ],
)
def test_values_and_gradients_equal_pytorchs(ours, theirs, shapes, torch):
    arrays = [RNG.normal(size=shape) for shape in shapes]
    expected = torch_gradients(torch, theirs, *arrays)
    np.testing.assert_allclose(ours(*arrays), expected[0], rtol=1e-9, atol=1e-12)
    for i, gradient in enumerate(expected[1:]):
        part = lambda a, i=i: anp.sum(ours(*[a if j == i else b for j, b in enumerate(arrays)]) ** 2)  # noqa: E731
        np.testing.assert_allclose(grad(part)(arrays[i]), gradient, rtol=1e-8, atol=1e-11)


@pytest.mark.reference
def test_the_cross_entropy_equals_pytorchs(torch):
    logits, targets = RNG.normal(size=(6, 4)), RNG.integers(4, size=6)
    theirs = torch.tensor(logits, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(theirs, torch.tensor(targets))
    loss.backward()
    assert cross_entropy(logits, targets) == pytest.approx(loss.item(), rel=1e-12)
    np.testing.assert_allclose(grad(cross_entropy)(logits, targets), theirs.grad.numpy(), rtol=1e-9)


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(ValueError, match="expected the same"):
        squared_error(np.ones((8, 1)), np.ones(8))
    with pytest.raises(ValueError, match="one a row"):
        cross_entropy(np.ones((4, 3)), [1])


@pytest.mark.parametrize("targets", [[0, 3], [-1, 0], [0.0, 1.0], [True, False]])
def test_targets_that_name_no_class_are_refused(targets):
    with pytest.raises(ValueError, match="whole numbers|expected 0 to 2"):
        cross_entropy(np.ones((2, 3)), np.array(targets))


# ------------------------------------------------------------------------- half precision


def test_half_precision_is_computed_in_float32_and_comes_back():
    """512 x 768 numbers and 70,000 keys, of which sums in float16 overflow or stop growing."""
    rng = np.random.default_rng(0)
    X, Y = (150 * rng.normal(size=(2, 512, 768))).astype(np.float16)
    many, target = np.zeros((2, 70_000), np.float16), np.array([3, 69_999])
    with np.errstate(all="raise", under="ignore"):
        assert np.isclose(gradients.cross_entropy(many, target), np.log(70_000), rtol=1e-6)
        expected = np.mean((X.astype(float) - Y.astype(float)) ** 2)
        assert np.isclose(gradients.squared_error(X, Y), expected, rtol=1e-5)
        assert gradients.gelu(X).dtype == np.float16 and np.isfinite(gradients.gelu(X)).all()
        for loss, inputs in ((gradients.cross_entropy, (many, target)), (gradients.squared_error, (X, Y))):
            half, single = grad(loss)(*inputs), grad(loss)(inputs[0].astype(np.float32), *inputs[1:])
            assert half.dtype == np.float16
            np.testing.assert_allclose(half, single, rtol=2e-3, atol=1e-7)
        for name, weighting in gradients.WEIGHTINGS.items():
            slope = grad(lambda scores, weighting=weighting: anp.sum(weighting(scores)[:, :100] * 1000))
            half, single = slope(many), slope(many.astype(np.float32))
            assert np.isfinite(half).all(), name
            np.testing.assert_allclose(half, single, rtol=5e-3, atol=1e-6, err_msg=name)


def test_attention_for_training_in_half_precision():
    rng = np.random.default_rng(0)
    Q, K, V = (40 * rng.normal(size=(3, 20, 256))).astype(np.float16)  # scores up to 1e6 before the scale
    output, weights = gradients.attend(Q, K, V)
    assert output.dtype == weights.dtype == np.float16
    for found, expected in zip((output, weights), attention(Q, K, V), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)
    keys = np.zeros((70_000, 2), np.float16)
    assert np.isclose(gradients.attend(Q[:1, :2], keys, keys + 1)[0], 1, atol=2e-3).all()
