"""The small Transformer: against a forward pass written out, its gradients, and models side by side."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from autograd.test_util import check_grads

import attn_utils
from attn_utils import causal_mask
from attn_utils.training import fit, relu, sink_softmax, softmax1, squared_error
from attn_utils.transformer import combine, init_transformer, project, split_layers, transformer

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
    for weighting in (softmax1, relu):
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
    with pytest.raises(ValueError, match="called 'W_Q', expected a layer and a name"):
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
