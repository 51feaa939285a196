"""The small Transformer: against a forward pass written out, its gradients, and models side by side."""

import functools
import sys
from pathlib import Path

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from autograd.test_util import check_grads

import attn_utils
from attn_utils import causal_mask, dct_graying, svd_graying
from attn_utils.gradients import (
    NORMS,
    WEIGHTINGS,
    cross_entropy,
    gelu,
    layer_norm,
    rms_norm,
    sink_softmax,
    squared_error,
)
from attn_utils.training import fit
from attn_utils.transformer import combine, condition_layers, init_transformer, project, split_layers, transformer
from attn_utils.vision_transformer import classifier, embed_patches, init_classifier, read_off

RNG = np.random.default_rng(0)


def draw(*sizes, **options):
    """Parameters in float64, large enough that the weights are far from uniform."""
    params = init_transformer(np.random.default_rng(1), *sizes, std=0.5, **options)
    return {name: value.astype(float) + (0.3 if "sink" in name else 0) for name, value in params.items()}


def written_out(params, X, mask, scale, skip, weigh=attn_utils.softmax):
    """One sequence (n_tokens, d) through one model, head by head, with attn_utils.attention."""
    seen = []
    for layer in split_layers(params):
        change, rows = 0, []
        for h in range(len(layer["W_Q"])):
            Q, K, V = (X @ layer[name][h] for name in ("W_Q", "W_K", "W_V"))
            if "sink" in layer:
                sink = layer["sink"][h, 0, 0, 0]
                weigh = lambda s, sink=sink: attn_utils.softmax(np.c_[s, np.full(len(s), sink)])[:, :-1]  # noqa: E731
            output, weights = attn_utils.attention(Q, K, V, mask=mask, scale=scale, weighting=weigh)
            if "W_G" in layer:
                output = output / (1 + np.exp(-X @ layer["W_G"][h]))
            change = change + output @ layer["W_O"][h]
            rows.append(weights)
        X = X + change if skip else change
        seen.append(np.array(rows))
    return X, seen


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("kinds", [{}, {"gate": True}, {"sink": True}, {"gate": True, "sink": True}])
def test_equals_the_forward_pass_written_out(kinds, skip):
    params, X = draw(3, 2, 6, 4, **kinds), RNG.normal(size=(5, 7, 6))
    weighting = {"weighting": sink_softmax} if "sink" in kinds else {}
    for scale in (None, 1.0):
        output, weights = transformer(params, X, mask=causal_mask(7), scale=scale, skip=skip, **weighting)
        assert output.shape == X.shape and [w.shape for w in weights] == [(2, 5, 7, 7)] * 3
        for i, one in enumerate(X):
            expected, rows = written_out(params, one, causal_mask(7), scale, skip)
            np.testing.assert_allclose(output[i], expected, rtol=1e-10)
            for ours, theirs in zip(weights, rows, strict=True):
                np.testing.assert_allclose(ours[:, i], theirs, rtol=1e-10, atol=1e-15)


def test_other_weightings_no_mask_and_no_batch():
    params, X = draw(2, 2, 6), RNG.normal(size=(5, 6))
    for weighting in WEIGHTINGS.values():
        output, weights = transformer(params, X, weighting=weighting)
        expected, rows = written_out(params, X, None, None, True, weighting)
        np.testing.assert_allclose(output, expected, rtol=1e-10)
        np.testing.assert_allclose(weights[1], rows[1], rtol=1e-10)


def test_models_side_by_side_do_not_notice_each_other():
    params, X = draw(2, 2, 6, 3, models=(3,), gate=True), RNG.normal(size=(3, 4, 5, 6))
    output, weights = transformer(params, X, mask=causal_mask(5))
    for i in range(3):
        alone = transformer({name: value[i] for name, value in params.items()}, X[i], mask=causal_mask(5))
        np.testing.assert_allclose(output[i], alone[0], rtol=1e-10)
        np.testing.assert_allclose(weights[1][i], alone[1][1], rtol=1e-10)


def test_models_side_by_side_train_as_they_would_alone():
    start, X = draw(1, 2, 4, models=(2,)), RNG.normal(size=(2, 6, 5, 4))
    loss = lambda params, X: X.shape[0] * squared_error(transformer(params, X)[0], 0 * X)  # noqa: E731
    both, _ = fit(loss, start, lambda rng: (X,), 20, rng=RNG, progress=False)
    for i in range(2):
        one = {name: value[i : i + 1] for name, value in start.items()}
        alone, _ = fit(loss, one, lambda rng, i=i: (X[i : i + 1],), 20, rng=RNG, progress=False)
        for name, value in alone.items():
            np.testing.assert_allclose(both[name][i], value[0], rtol=1e-6)


def test_a_norm_is_applied_to_what_each_layer_reads():
    params, X = draw(2, 1, 6), RNG.normal(size=(5, 6))
    halve = lambda stream: stream / 2  # noqa: E731
    once = X + transformer({k: v for k, v in params.items() if k[0] == "0"}, X / 2, skip=False)[0]
    twice = once + transformer({k: v for k, v in params.items() if k[0] == "1"}, once / 2, skip=False)[0]
    np.testing.assert_allclose(transformer(params, X, norm=halve)[0], twice, rtol=1e-10)


@pytest.mark.parametrize("kinds", [{}, {"gate": True, "sink": True, "models": (2,)}])
def test_gradients_against_finite_differences(kinds):
    params, X = draw(2, 2, 4, 3, **kinds), RNG.normal(size=(2, 3, 4, 4))
    X = X if "models" in kinds else X[0]
    weighting = {"weighting": sink_softmax} if "sink" in kinds else {}

    def loss(params):
        output, weights = transformer(params, X, mask=causal_mask(4), **weighting)
        return anp.sum(output**2) + anp.sum(weights[0] ** 3)

    check_grads(loss, modes=["rev"], order=1)(params)
    check_grads(lambda x: anp.sum(transformer(params, x, **weighting)[0] ** 2), modes=["rev"], order=1)(X)


def test_project_and_combine_and_their_gradients():
    X, W = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 6, 5, 3))
    np.testing.assert_allclose(project(X, W), np.einsum("mbtd,mhdk->mhbtk", X, W), rtol=1e-10)
    mixed, W_O = RNG.normal(size=(2, 6, 3, 4, 5)), RNG.normal(size=(2, 6, 5, 3))
    np.testing.assert_allclose(combine(mixed, W_O), np.einsum("mhbtk,mhkd->mbtd", mixed, W_O), rtol=1e-10)
    for function, array, matrix in ((project, X, W), (combine, mixed, W_O)):
        check_grads(lambda a, f=function, w=matrix: anp.sum(f(a, w) ** 2), modes=["rev"], order=1)(array)
        check_grads(lambda w, f=function, a=array: anp.sum(f(a, w) ** 2), modes=["rev"], order=1)(matrix)


def test_float32_stays_float32():
    params, X = init_transformer(RNG, 2, 2, 4, gate=True), RNG.normal(size=(3, 5, 4)).astype(np.float32)
    output, weights = transformer(params, X, mask=causal_mask(5))
    assert output.dtype == weights[0].dtype == np.float32
    gradients = grad(lambda p: squared_error(transformer(p, X)[0], X))(params)
    assert {value.dtype for value in gradients.values()} == {np.dtype(np.float32)}


def test_the_initialisation():
    params = init_transformer(np.random.default_rng(0), 2, 3, 8, 4, models=(5,), gate=True, sink=True)
    shapes = {"W_Q": (8, 4), "W_K": (8, 4), "W_V": (8, 4), "W_O": (4, 8), "W_G": (8, 1), "sink": (1, 1, 1)}
    assert {name: value.shape for name, value in params.items()} == {
        f"{layer}.{name}": (5, 3, *shape) for layer in range(2) for name, shape in shapes.items()
    }
    assert abs(params["0.W_Q"].std() - 0.02) < 0.002 and not params["1.sink"].any()
    assert init_transformer(RNG, 1, 1, 8)["0.W_Q"].shape == (1, 8, 8)


@pytest.mark.parametrize("sizes", [(0, 1, 4), (1, 0, 4), (1, 1, 0), (1, 1, 4, 0), (1.5, 1, 4), (True, 1, 4)])
def test_bad_sizes(sizes):
    with pytest.raises(ValueError, match="positive whole number"):
        init_transformer(RNG, *sizes)


def test_input_that_does_not_fit_is_named():
    params = draw(1, 2, 4, models=(3,))
    for shape in ((3, 5, 6), (2, 5, 4), (5, 4), (3, 0, 5, 4)):
        with pytest.raises(
            ValueError, match=rf"X has shape \({', '.join(map(str, shape))}\), expected \(3, ..., n_tok"
        ):
            transformer(params, np.zeros(shape))
    with pytest.raises(ValueError, match="no layer"):
        transformer({}, np.zeros((5, 4)))


def test_a_mask_that_is_not_boolean_or_does_not_fit_is_named():
    params, X = draw(1, 1, 4), np.zeros((5, 4))
    additive = np.where(causal_mask(5), 0.0, -np.inf)  # taken as True and False, it is upside down
    for mask, words in ((additive, "expected bool"), (causal_mask(4), r"mask has shape \(4, 4\)")):
        with pytest.raises(ValueError, match=words):
            transformer(params, X, mask=mask)


def test_parameters_that_make_no_layer_are_named():
    params, X = draw(2, 1, 4), np.zeros((5, 4))
    with pytest.raises(ValueError, match="name 'W_Q', expected a layer and a name"):
        transformer({"W_Q": params["0.W_Q"]}, X)
    del params["1.W_V"]
    with pytest.raises(ValueError, match="layer 1 has no W_V"):
        transformer(params, X)
    with pytest.raises(ValueError, match="weighting=sink_softmax"):
        transformer(draw(1, 1, 4, sink=True), X)


def test_an_initialisation_that_cannot_be_drawn_is_named():
    with pytest.raises(ValueError, match="models is 3, expected a tuple"):
        init_transformer(RNG, 1, 1, 4, models=3)
    with pytest.raises(ValueError, match="rng is int"):
        init_transformer(0, 1, 1, 4)


def test_nested_lists_are_tokens_too():
    params = draw(1, 1, 2)
    lists = [[0.5, 1.0], [2.0, -1.0]]
    assert (transformer(params, lists)[0] == transformer(params, np.array(lists))[0]).all()


def test_layers_come_in_the_order_of_their_numbers():
    params = {f"{layer}.W_Q": layer for layer in (10, 2, 0)}
    assert split_layers(params) == [{"W_Q": 0}, {"W_Q": 2}, {"W_Q": 10}]


# ------------------------------------------------ feed-forward part, skips, norms (chapter 5)


def draw_both(*sizes, **options):
    return draw(*sizes, **{"d_ff": 5} | options)


def with_biases(params):
    """Biases start at zero: let them be something."""
    rng = np.random.default_rng(2)
    return {k: v + 0.3 * rng.normal(size=v.shape) if ".b_" in k or k == "head.b" else v for k, v in params.items()}


def one_head_written_out(params, X, skips, norm, post, center):
    """One sequence through one model with one head, from the equations of the chapter."""
    identity = lambda x: x  # noqa: E731
    before, after = (identity, norm) if post else (norm, identity)
    for layer in split_layers(params):
        x = before(X)
        Q, K, V = (x @ layer[name][0] for name in ("W_Q", "W_K", "W_V"))
        V = V - V.mean(axis=0) if center else V
        change = attn_utils.softmax(Q @ K.T / np.sqrt(Q.shape[1])) @ V @ layer["W_O"][0]
        X = after(X + change if skips[0] else change)
        x = before(X)
        change = gelu(x @ layer["W_1"] + layer["b_1"]) @ layer["W_2"] + layer["b_2"]
        X = after(X + change if skips[1] else change)
    return X


@pytest.mark.parametrize("norm, post", [(None, False), (rms_norm, False), (rms_norm, True), (layer_norm, False)])
@pytest.mark.parametrize("skip", [True, False, (True, False), [False, True]])
@pytest.mark.parametrize("center", [True, False])
def test_every_switch_equals_the_equations(skip, norm, post, center):
    params, X = with_biases(draw_both(3, 1, 4)), RNG.normal(size=(6, 4))
    output, weights = transformer(params, X, skip=skip, norm=norm, post=post, center_values=center)
    skips = (skip, skip) if isinstance(skip, bool) else skip
    expected = one_head_written_out(params, X, skips, norm or (lambda x: x), post, center)
    np.testing.assert_allclose(output, expected, rtol=1e-9, atol=1e-12)
    assert len(weights) == 3 and weights[0].shape == (1, 6, 6)


@pytest.mark.parametrize(
    "switches",
    [
        {"norm": rms_norm},
        {"norm": layer_norm, "skip": (False, True)},
        {"norm": rms_norm, "post": True, "skip": (True, False)},
        {"norm": rms_norm, "skip": False, "center_values": True},
    ],
)
@pytest.mark.parametrize("models", [(), (2,)])
def test_gradients_of_the_switches_against_finite_differences(switches, models):
    params, X = with_biases(draw_both(2, 2, 4, 3, models=models)), RNG.normal(size=(*models, 2, 3, 4))
    loss = lambda p: anp.sum(transformer(p, X, **switches)[0] ** 2)  # noqa: E731
    check_grads(loss, modes=["rev"], order=1)(params)


def test_centred_values_pass_on_no_average():
    params, X = draw(1, 2, 4), RNG.normal(size=(5, 4))
    params["0.W_Q"] *= 0  # every token looks at all tokens alike
    assert abs(transformer(params, X, skip=False, center_values=True)[0]).max() < 1e-12
    assert abs(transformer(params, X, skip=False)[0]).max() > 0.1


def test_graying_comes_first_and_is_for_data():
    params, X = draw_both(1, 1, 4), RNG.normal(size=(3, 6, 4))
    graying = lambda X: svd_graying(X, 0.5)  # noqa: E731
    np.testing.assert_array_equal(transformer(params, X, graying=graying)[0], transformer(params, graying(X))[0])
    with pytest.raises(ValueError, match="no gradient goes through graying"):
        grad(lambda x: anp.sum(transformer(params, x, graying=graying)[0]))(X)
    with pytest.raises(ValueError, match="graying turned shape"):
        transformer(params, X, graying=lambda X: X[0])
    with pytest.raises(ValueError, match="graying is 0.5, expected a function"):
        transformer(params, X, graying=0.5)


def test_float32_stays_float32_with_all_switches():
    params, X = init_transformer(RNG, 2, 2, 4, d_ff=6, models=(2,)), RNG.normal(size=(2, 3, 5, 4)).astype(np.float32)
    for norm in (None, *NORMS.values()):
        switches = {"norm": norm, "center_values": True, "graying": lambda X: dct_graying(X, 0.5)}
        gradients = grad(lambda p, s=switches: squared_error(transformer(p, X, **s)[0], X))(params)
        assert {value.dtype for value in gradients.values()} == {np.dtype(np.float32)}
        assert transformer(params, X, **switches)[0].dtype == np.float32


def test_the_initialisation_of_the_feed_forward_part():
    params = init_transformer(np.random.default_rng(0), 2, 3, 8, 4, d_ff=32, models=(5,), std=None)
    shapes = {"W_1": (8, 32), "W_2": (32, 8), "b_1": (1, 32), "b_2": (1, 8)}
    assert all(params[f"{layer}.{name}"].shape == (5, *shape) for name, shape in shapes.items() for layer in (0, 1))
    for name, width in (("W_Q", 8), ("W_O", 12), ("W_1", 8), ("W_2", 32)):
        assert params[f"1.{name}"].std() == pytest.approx(width**-0.5, rel=0.1)
    assert not params["0.b_1"].any() and not params["1.b_2"].any()


def test_without_a_feed_forward_part_the_draw_is_what_it_was():
    """Chapter 6 hangs on these numbers."""
    params = init_transformer(np.random.default_rng(0), 1, 1, 4, gate=True)
    rng = np.random.default_rng(0)
    for name, shape in (
        ("W_Q", (1, 4, 4)),
        ("W_K", (1, 4, 4)),
        ("W_V", (1, 4, 4)),
        ("W_O", (1, 4, 4)),
        ("W_G", (1, 4, 1)),
    ):
        np.testing.assert_array_equal(params[f"0.{name}"], rng.normal(scale=0.02, size=shape).astype(np.float32))


@pytest.mark.parametrize(
    "switches, message",
    [
        ({"skip": 1}, "skip is 1, expected True, False or a pair"),
        ({"skip": "attention"}, "skip is 'attention'"),
        ({"skip": (True,)}, "pair"),
        ({"skip": (True, False, True)}, "pair"),
        ({"skip": (True, None)}, "pair"),
        ({"norm": "rms"}, "norm is 'rms', expected rms_norm or layer_norm"),
        ({"post": True}, "no norm to put last"),
        ({"post": "yes", "norm": rms_norm}, "post is 'yes'"),
        ({"center_values": 1}, "center_values is 1"),
        ({"weighting": "softmax"}, "weighting is 'softmax'"),
        ({"scale": "large"}, "scale"),
        ({"scale": np.nan}, "scale"),
    ],
)
def test_switches_of_another_form_are_named(switches, message):
    with pytest.raises(ValueError, match=message):
        transformer(draw_both(1, 1, 4), np.ones((5, 4)), **switches)


def test_an_unknown_switch_is_an_error():
    with pytest.raises(TypeError, match="skips"):
        transformer(draw(1, 1, 4), np.ones((5, 4)), skips=True)


@pytest.mark.parametrize("name", ["W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2"])
def test_a_parameter_that_does_not_fit_the_others_is_named(name):
    params = draw_both(2, 2, 4, models=(3,))
    wrong = params | {f"1.{name}": np.zeros((*params[f"1.{name}"].shape[:-1], 9))}
    if name == "W_1":  # then d_ff is 9, and the others do not fit
        name = "b_1"
    with pytest.raises(ValueError, match=f"layer 1 has {name} of shape .* expected"):
        transformer(wrong, np.ones((3, 5, 4)))
    del params["1.b_1"]
    with pytest.raises(ValueError, match="layer 1 has no b_1, expected all of W_1, b_1, W_2 and b_2"):
        transformer(params, np.ones((3, 5, 4)))


def test_layers_of_other_widths_or_models_are_named():
    params = draw(1, 1, 4, models=(2,)) | {k.replace("0", "1"): v for k, v in draw(1, 1, 4).items()}
    with pytest.raises(ValueError, match="layer 1 has W_Q"):
        transformer(params, np.ones((2, 5, 4)))
    with pytest.raises(ValueError, match="layer 0 has W_Q of shape"):
        transformer({f"0.W_{name}": np.ones((4, 4)) for name in "QKVO"}, np.ones((5, 4)))


# ------------------------------------------------ the classifier

IMAGES = {"d_patch": 3, "n_tokens": 6, "n_classes": 5, "n_layers": 2, "n_heads": 2, "d": 4, "d_ff": 7}


def draw_classifier(seed=0, **options):
    params = init_classifier(np.random.default_rng(seed), **IMAGES | options)
    return with_biases({name: value.astype(float) for name, value in params.items()})


def test_the_classifier_written_out():
    params, patches = draw_classifier(), RNG.normal(size=(4, 6, 3))
    logits, weights = classifier(params, patches, norm=rms_norm, skip=(True, False))
    tokens = patches @ params["embed.W"] + params["embed.position"]
    np.testing.assert_allclose(embed_patches(params, patches), tokens, rtol=1e-12)
    layers = {name: value for name, value in params.items() if name[0].isdecimal()}
    stream, expected_weights = transformer(layers, tokens, norm=rms_norm, skip=(True, False))
    np.testing.assert_allclose(logits, stream.mean(1) @ params["head.W"] + params["head.b"], rtol=1e-10)
    assert logits.shape == (4, 5)
    np.testing.assert_allclose(weights[1], expected_weights[1], rtol=1e-12)


def test_gradients_of_the_classifier_against_finite_differences():
    params, patches, labels = draw_classifier(models=(2,)), RNG.normal(size=(2, 3, 6, 3)), RNG.integers(5, size=(2, 3))
    check_grads(lambda p: cross_entropy(classifier(p, patches, norm=layer_norm)[0], labels), modes=["rev"], order=1)(
        params
    )


def test_classifiers_side_by_side_are_alone():
    params, patches = draw_classifier(models=(3,)), RNG.normal(size=(3, 4, 6, 3))
    logits = classifier(params, patches, norm=rms_norm)[0]
    assert logits.shape == (3, 4, 5)
    for i in range(3):
        alone = classifier({name: value[i] for name, value in params.items()}, patches[i], norm=rms_norm)[0]
        np.testing.assert_allclose(logits[i], alone, rtol=1e-9)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_images_may_have_any_axes_before(shape):
    params, patches = draw_classifier(), RNG.normal(size=(*shape, 6, 3))
    logits = classifier(params, patches)[0]
    assert logits.shape == (*shape, 5)
    flat = classifier(params, patches.reshape(-1, 6, 3))[0]
    np.testing.assert_allclose(logits.reshape(-1, 5), flat, rtol=1e-10)


def test_the_classifier_grays_patches_not_tokens():
    params, patches = draw_classifier(), RNG.normal(size=(4, 6, 3))
    gray = lambda X: svd_graying(X, 0.5)  # noqa: E731
    np.testing.assert_array_equal(classifier(params, patches, graying=gray)[0], classifier(params, gray(patches))[0])
    loss = lambda p: anp.sum(classifier(p, patches, graying=gray)[0] ** 2)  # noqa: E731
    assert np.isfinite(grad(loss)(params)["embed.W"]).all()


@pytest.mark.reference
def test_the_classifier_equals_pytorch(torch):
    sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
    from training_step import torch_classifier

    params, patches = draw_classifier(n_heads=1), RNG.normal(size=(4, 6, 3))
    theirs = {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}
    logits = torch_classifier(theirs, torch.tensor(patches))
    np.testing.assert_allclose(classifier(params, patches, norm=rms_norm)[0], logits.detach(), rtol=1e-8)
    (logits**2).sum().backward()
    ours = grad(lambda p: anp.sum(classifier(p, patches, norm=rms_norm)[0] ** 2))(params)
    for name, tensor in theirs.items():
        np.testing.assert_allclose(ours[name], tensor.grad, rtol=1e-6, atol=1e-9)


def test_a_classifier_learns_to_tell_bright_from_dark():
    def batch(rng):
        labels = rng.integers(2, size=32)
        noise = rng.normal(size=(32, 6, 3))
        return (noise + (2 * labels - 1)[:, None, None]).astype(np.float32), labels

    start = init_classifier(np.random.default_rng(0), **IMAGES | {"n_classes": 2})
    loss = lambda p, X, y: cross_entropy(classifier(p, X, norm=rms_norm)[0], y)  # noqa: E731
    params, losses = fit(loss, start, batch, 60, rng=np.random.default_rng(0), progress=False)
    assert losses[-5:].mean() < 0.1 < losses[:5].mean()


def test_the_conditioned_recipe_is_what_it_says():
    sizes = {"d": 6, "d_ff": 9, "n_layers": 2, "recipe": "conditioned", "alpha": 0.0, "beta": 2.0}
    params = init_classifier(np.random.default_rng(0), **IMAGES | sizes | {"n_heads": 1, "models": (3,)})
    for i in range(2):
        W_Q, W_K, W_V, W_O = (params[f"{i}.W_{name}"][:, 0].astype(float) for name in "QKVO")
        np.testing.assert_allclose(W_Q @ np.swapaxes(W_K, 1, 2), np.broadcast_to(2 * np.eye(6), (3, 6, 6)), atol=1e-5)
        product = W_V @ W_O
        np.testing.assert_allclose(
            product @ np.swapaxes(product, 1, 2), np.broadcast_to(np.eye(6), (3, 6, 6)), atol=1e-5
        )
        for name in ("W_1", "W_2"):
            np.testing.assert_allclose(np.linalg.cond(params[f"{i}.{name}"]), 1, rtol=1e-5)
        assert not np.allclose(product[0], product[1])
    assert {value.dtype for value in params.values()} == {np.dtype(np.float32)}


def test_the_conditioned_recipe_with_heads_and_noise():
    params = condition_layers(np.random.default_rng(0), 1, 2, 6, 3, d_ff=9, alpha=1.8, beta=1.0)
    assert params["0.W_Q"].shape == (2, 6, 3) and params["0.W_O"].shape == (2, 3, 6)
    together = sum(params["0.W_V"][h].astype(float) @ params["0.W_O"][h] for h in range(2))
    np.testing.assert_allclose(together @ together.T, np.eye(6), atol=1e-5)
    plain = condition_layers(np.random.default_rng(0), 1, 1, 64, 64, d_ff=9, alpha=1.8, beta=1.0)
    M = plain["0.W_Q"][0].astype(float) @ plain["0.W_K"][0].T
    assert np.diag(M).mean() == pytest.approx(1, abs=0.15) and (M - np.eye(64)).std() == pytest.approx(1.8 / 8, rel=0.1)


def test_the_conditioned_recipe_keeps_tokens_apart_without_skips():
    patches = np.random.default_rng(1).random((1, 16, 4))
    sizes = {"d_patch": 4, "n_tokens": 16, "n_classes": 2, "n_layers": 6, "n_heads": 1, "d": 32, "d_ff": 64}
    kappas = {}
    for recipe in ("standard", "conditioned"):
        params = init_classifier(np.random.default_rng(0), **sizes, recipe=recipe)
        layers = {name: value for name, value in params.items() if name[0].isdecimal()}
        stream, _ = transformer(layers, embed_patches(params, patches), skip=False, norm=rms_norm)
        kappas[recipe] = np.linalg.cond(stream[0])
    assert kappas["conditioned"] < kappas["standard"] / 100


@pytest.mark.parametrize(
    "change, message",
    [
        ({"recipe": "best"}, "recipe is 'best', expected 'standard' or 'conditioned'"),
        ({"d": 5}, "d is 5, expected a multiple of n_heads = 2"),
        ({"d_patch": 0}, "d_patch is 0"),
        ({"n_tokens": 2.5}, "n_tokens is 2.5"),
        ({"n_classes": True}, "n_classes is True"),
        ({"n_layers": 0}, "n_layers is 0"),
        ({"n_heads": 0}, "n_heads is 0"),
        ({"d_ff": None}, "d_ff is None"),
        ({"d_head": 0}, "d_head is 0"),
        ({"models": 3}, "models is 3"),
        ({"models": (2.5,)}, r"models\[0\] is 2.5"),
        ({"alpha": np.nan, "recipe": "conditioned"}, "alpha is nan"),
    ],
)
def test_classifiers_that_cannot_be_drawn_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        init_classifier(RNG, **IMAGES | change)
    with pytest.raises(ValueError, match="rng is int"):
        init_classifier(3, **IMAGES)


@pytest.mark.parametrize("std", [0, -1, np.nan])
def test_a_standard_deviation_that_is_none_is_named(std):
    with pytest.raises(ValueError, match="std is"):
        init_transformer(RNG, 1, 1, 4, std=std)


def test_patches_that_do_not_fit_are_named():
    params = draw_classifier(models=(2,))
    for shape in ((2, 4, 6, 4), (2, 4, 5, 3), (3, 4, 6, 3), (6, 3), (2, 0, 6, 3), (3,)):
        with pytest.raises(ValueError, match=r"patches have shape .* expected \(2, ..., 6, 3\)"):
            classifier(params, np.zeros(shape))
    del params["head.b"]
    with pytest.raises(ValueError, match="params have no head.b"):
        classifier(params, np.zeros((2, 4, 6, 3)))


def test_a_feed_forward_part_without_its_first_matrix_is_named():
    params = draw_both(1, 1, 4)
    del params["0.W_1"]
    with pytest.raises(ValueError, match="layer 0 has no W_1"):
        transformer(params, np.ones((5, 4)))


def test_whole_numbers_are_tokens_too():
    params, X = draw_both(1, 1, 4), RNG.integers(3, size=(5, 4))
    X[0] = 0
    np.testing.assert_array_equal(
        transformer(params, X, norm=rms_norm)[0], transformer(params, X * 1.0, norm=rms_norm)[0]
    )
    assert not rms_norm(X)[0].any()


@pytest.mark.parametrize("change", [{"d_ff": None}, {"d_head": 0}, {"beta": np.inf}])
def test_conditioned_layers_that_cannot_be_drawn_are_named(change):
    with pytest.raises(ValueError, match="d_ff|d_head|beta"):
        condition_layers(**{"rng": RNG, "n_layers": 1, "n_heads": 1, "d": 4, "d_head": 4, "d_ff": 6} | change)


def test_orthogonal_matrices_are_drawn_evenly():
    """A bare QR would make the first number of every matrix negative."""
    W_V = condition_layers(np.random.default_rng(0), 1, 1, 4, 4, d_ff=6, models=(200,))["0.W_V"]
    assert abs(np.mean(W_V[:, 0, 0, 0] > 0) - 0.5) < 0.15


def test_the_norm_before_the_head_is_that_of_the_tokens():
    """A classifier with a final norm reads normalized tokens; without one, the tokens as they are."""
    params, patches = draw_classifier(), RNG.normal(size=(4, 6, 3))
    layers = {name: W for name, W in params.items() if name[0].isdecimal()}
    tokens, _ = transformer(layers, embed_patches(params, patches), norm=rms_norm)
    for final_norm, read in ((rms_norm, rms_norm(tokens)), (None, tokens)):
        expected = read.mean(-2) @ params["head.W"] + params["head.b"]
        logits, _ = classifier(params, patches, norm=rms_norm, final_norm=final_norm)
        np.testing.assert_allclose(logits, expected, rtol=1e-6)
        np.testing.assert_array_equal(read_off(params, tokens, final_norm), logits)
    with pytest.raises(ValueError, match="final_norm is 'layer'"):
        classifier(params, patches, final_norm="layer")


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_sizes_of_a_small_type_do_not_overflow(kind):
    """16 heads of 16 features are 256; one over the root of 3 as a uint8 is a float16."""
    sizes = dict(n_layers=1, n_heads=16, d=3, d_head=16, d_ff=3)
    small = {name: kind(size) for name, size in sizes.items()}
    for draw_them in (functools.partial(init_transformer, std=None), condition_layers):
        expected, found = draw_them(np.random.default_rng(0), **sizes), draw_them(np.random.default_rng(0), **small)
        assert all(np.array_equal(found[name], value) for name, value in expected.items())
    sizes = dict(d_patch=3, n_tokens=4, n_classes=2, n_layers=1, n_heads=2, d=6, d_ff=5)
    small = {name: kind(size) for name, size in sizes.items()}
    expected, found = (init_classifier(np.random.default_rng(0), **each) for each in (sizes, small))
    assert all(np.array_equal(found[name], value) for name, value in expected.items())
