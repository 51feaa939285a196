"""attention, its mask and its weightings against their checks, against properties, and against PyTorch."""

import types

import attention_checks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attn_utils import attention, causal_mask, softmax, weightings


@pytest.mark.parametrize("check", attention_checks.CHECKS, ids=lambda check: check.__name__)
def test_check(check):
    check(types.SimpleNamespace(attention=attention, causal_mask=causal_mask, **vars(weightings)))


SIZES = st.integers(1, 6)
NUMBERS = st.floats(-1e4, 1e4, width=32)


@given(st.data(), SIZES, SIZES, SIZES, SIZES, st.sampled_from([np.float32, np.float64]))
@settings(max_examples=150, deadline=None)
def test_properties(data, n_queries, n_keys, d_k, d_v, dtype):
    """Weights are a masked distribution, outputs stay within the values, keys may be reordered."""
    draw = lambda *shape: data.draw(hnp.arrays(dtype, shape, elements=NUMBERS))  # noqa: E731
    Q, K, V = draw(n_queries, d_k), draw(n_keys, d_k), draw(n_keys, d_v)
    mask = data.draw(hnp.arrays(bool, (n_queries, n_keys)))
    output, weights = attention(Q, K, V, mask=mask)
    assert np.isfinite(output).all() and (weights >= 0).all() and (weights[~mask] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1), rtol=1e-5)
    slack = 1e-4 * np.abs(V).max() + 1e-6
    seen = mask.any(axis=-1)
    assert (output[seen] <= V.max(axis=0) + slack).all() and (output[seen] >= V.min(axis=0) - slack).all()
    order = data.draw(st.permutations(range(n_keys)))
    moved = attention(Q, K[order], V[order], mask=mask[:, order])[1]
    if dtype == np.float64:  # in float32 a near tie of scores of 1e8 may fall either way
        np.testing.assert_allclose(moved, weights[:, order], atol=1e-6)


@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats(-700, 700)))
@settings(max_examples=100, deadline=None)
def test_softmax_keeps_the_order_of_scores(scores):
    weights = softmax(scores)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)
    assert (np.diff(np.take_along_axis(weights, np.argsort(scores, axis=-1), axis=-1), axis=-1) >= 0).all()


@pytest.mark.reference
def test_rectangular_causal_masks_of_pytorch(torch):
    """Ours is causal_lower_right; is_causal=True means the upper left, of which chapter 3 warns."""
    from torch.nn.attention.bias import causal_lower_right, causal_upper_left

    for n_queries, n_keys in ((2, 5), (1, 4), (3, 3)):
        lower = causal_lower_right(n_queries, n_keys)._materialize().numpy()
        upper = causal_upper_left(n_queries, n_keys)._materialize().numpy()
        assert np.array_equal(lower, causal_mask(n_queries, n_keys))
        assert np.array_equal(upper, causal_mask(n_keys)[:n_queries])
        q, k, v = (torch.randn(n, 4, dtype=torch.float64) for n in (n_queries, n_keys, n_keys))
        attend = torch.nn.functional.scaled_dot_product_attention
        theirs = attend(q[None], k[None], v[None], is_causal=True)[0].numpy()
        np.testing.assert_allclose(theirs, attention(q, k, v, causal_mask(n_keys)[:n_queries])[0], atol=1e-12)


@pytest.mark.reference
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("masked", ["none", "boolean", "causal"])
def test_equals_pytorch(dtype, masked, torch):
    rng = np.random.default_rng(1)
    Q, K, V = (rng.normal(size=(2, 3, n, d)).astype(dtype) for n, d in ((6, 8), (6, 8), (6, 5)))
    mask = {"none": None, "boolean": rng.random((6, 6)) < 0.6, "causal": causal_mask(6)}[masked]
    if masked == "boolean":
        mask[:, 0] = True  # PyTorch gives NaN for a fully masked row, we give zeros
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, (Q, K, V)), attn_mask=None if mask is None else torch.tensor(mask)
    )
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(attention(Q, K, V, mask=mask)[0], theirs.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("weighting", "words"),
    [
        (lambda scores: scores * np.nan, "contains NaN or inf"),
        (lambda scores: scores * 1j, "type complex128"),
        (lambda scores: scores.astype(str), "type <U"),
        (lambda scores: np.ma.masked_array(scores, scores > 0), "is a masked array"),
        (lambda scores: [[1.0], [1.0, 2.0]], "rows of several lengths"),
        (lambda scores: None, "type object"),
    ],
)
def test_what_a_weighting_must_not_give_is_named(weighting, words):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=f"the result of weighting.*{words}|the result of weighting {words}"):
        attention(X, X, X, weighting=weighting)
    assert np.array_equal(attention(X, X, X, weighting=lambda scores: np.eye(3, dtype=int).tolist())[0], X)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_an_output_that_overflows_is_said(dtype):
    X, top = np.ones((3, 2), dtype), np.full((3, 2), np.finfo(dtype).max)
    with np.errstate(over="raise"), pytest.raises(ValueError, match=f"outputs of weighting overflow {dtype}"):
        attention(X, X, top, weighting=np.ones_like)


def test_what_is_masked_counts_nowhere():
    """A list of masked arrays and a masked scale were taken for what stands below the mask."""
    X = np.arange(6.0).reshape(3, 2)
    heads = [np.ma.masked_array(X, X > 2)] * 2
    for scale in (np.ma.masked, np.ma.masked_array(2.0, True)):
        with pytest.raises(ValueError, match="scale is mask"):
            attention(X, X, X, scale=scale)
    with pytest.raises(ValueError, match="Q is a masked array"):
        attention(heads, X, X)
    with pytest.raises(ValueError, match="mask is a masked array"):
        attention(X, X, X, mask=[np.ma.masked_array([True] * 3, [0, 1, 0])] * 3)
