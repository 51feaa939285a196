"""Several heads: `attention` on a heads axis against what PyTorch's MultiheadAttention found, stored and live."""

import numpy as np
import pytest

from attn_utils import attention, causal_mask, stored

CASES = stored("heads-of-pytorch").value
FORMS = {(case["n_heads"], len(case["X"]), case["causal"]) for case in CASES}


def heads(case):
    """(output, weights) with a leading axis of heads, each with its own columns of the matrices."""
    n_heads, X = case["n_heads"], case["X"]  # (n_tokens, d)
    Q, K, V = (np.stack(np.split(X @ case[name], n_heads, axis=1)) for name in ("W_Q", "W_K", "W_V"))
    mixed, weights = attention(Q, K, V, causal_mask(len(X)) if case["causal"] else None)  # (n_heads, n_tokens, d_head)
    return np.concatenate(mixed, axis=1) @ case["W_O"], weights


def test_the_cases_are_of_several_kinds():
    assert {causal for *_, causal in FORMS} == {True, False} and max(FORMS)[0] > 2 and len(FORMS) == len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_heads_equal_what_pytorch_found(case):
    output, weights = heads(case)
    np.testing.assert_allclose(output, case["output"], atol=1e-7)
    np.testing.assert_allclose(weights, case["weights"], atol=1e-7)


@pytest.mark.reference
def test_pytorch_finds_what_is_stored(torch):
    """The script as it stands makes these numbers, from inputs that it draws again; ours agree to float64's rounding."""
    import make_heads_reference as script

    assert len(script.CASES) == len(CASES) and stored(script.NAME).engine.startswith("torch.nn.MultiheadAttention")
    for seed, ((n_heads, d, n_tokens, causal), case) in enumerate(zip(script.CASES, CASES, strict=True)):
        drawn = script.inputs(seed, d, n_tokens)
        assert all(np.array_equal(drawn[name], case[name]) for name in drawn)
        output, weights = script.by_pytorch(n_heads, causal, **drawn)
        np.testing.assert_allclose(output, case["output"], atol=1e-7)
        ours = heads(case)
        np.testing.assert_allclose(ours[0], output, atol=1e-12)
        np.testing.assert_allclose(ours[1], weights, atol=1e-12)
