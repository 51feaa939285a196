"""attn_utils.spectra: against full decompositions, closed forms and properties; bad input; diagnose on every form."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse.linalg import aslinearoperator

import attn_utils
from attn_utils import attention, causal_mask, diagnose, softmax, spectra
from attn_utils.spectra import (
    attention_singular_values,
    center_tokens,
    condition_number,
    entropy,
    remove_outlier,
    singular_values,
    spectral_gap,
    stable_rank,
    stable_rank_gram,
    token_cosine,
    token_spread,
)


def gauss(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# entries of whole sixteenths: no subnormal numbers, and still ties, zeros and cancellations
SIXTEENTHS = st.integers(-160, 160).map(lambda n: n / 16)


def matrices(min_side=1, max_side=7):
    return hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=min_side, max_side=max_side),
                      elements=SIXTEENTHS)  # fmt: skip


SQUARE_SCORES = st.integers(2, 7).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=SIXTEENTHS))


# ---------------------------------------------------------------- singular values


@pytest.mark.parametrize("shape", [(60, 60), (200, 50), (50, 200), (3, 40, 40), (2, 3, 30, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_leading_singular_values_equal_the_full_decomposition(shape, dtype):
    A = gauss(*shape).astype(dtype)
    full = np.linalg.svd(A.astype(float), compute_uv=False)
    for k in (1, 2, 5, min(shape[-2:])):
        found = singular_values(A, k)
        assert found.dtype == dtype and found.shape == (*shape[:-2], k)
        np.testing.assert_allclose(found, full[..., :k], rtol=1e-4 if dtype == "float32" else 1e-6)
    np.testing.assert_allclose(singular_values(A), full, rtol=1e-3, atol=1e-4 if dtype == "float32" else 1e-12)


def test_a_linear_operator_is_enough():
    A, B = gauss(60, 60), gauss(60, 60, seed=1)
    product = aslinearoperator(A) @ aslinearoperator(B)
    np.testing.assert_allclose(singular_values(product, 3), np.linalg.svd(A @ B, compute_uv=False)[:3], rtol=1e-8)
    np.testing.assert_allclose(singular_values(aslinearoperator(A[:5, :5]), 3), singular_values(A[:5, :5])[:3])


def test_a_second_call_gives_the_same_digits():
    A = gauss(80, 80)
    assert np.array_equal(singular_values(A, 2), singular_values(A, 2))
    Q, K = gauss(2, 70, 5)
    assert np.array_equal(attention_singular_values(Q, K), attention_singular_values(Q, K))


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_scale_does_not_matter(scale):
    A = gauss(40, 40)
    np.testing.assert_allclose(singular_values(scale * A, 2), scale * singular_values(A, 2), rtol=1e-7)
    for measure in (stable_rank, stable_rank_gram, token_cosine, token_spread, condition_number, spectral_gap):
        np.testing.assert_allclose(measure(scale * A), measure(A), rtol=1e-6)


def test_zeros_are_answered():
    zeros = np.zeros((30, 20))
    assert np.array_equal(singular_values(zeros, 2), [0, 0])
    assert spectral_gap(zeros) == stable_rank(zeros) == stable_rank_gram(zeros) == token_spread(zeros) == 0
    assert token_cosine(zeros) == 0 and condition_number(zeros) == np.inf


@given(matrices())
@settings(max_examples=100, deadline=None)
def test_singular_values_are_ordered_and_hold_the_frobenius_norm(A):
    values = singular_values(A)
    assert (np.diff(values) <= 1e-12).all() and (values >= 0).all()
    np.testing.assert_allclose((values**2).sum(), (A**2).sum(), atol=1e-9)
    np.testing.assert_allclose(singular_values(A.T), values, atol=1e-9)


# ---------------------------------------------------- matrix-free, for attention


@pytest.mark.parametrize("shape", [(90, 90, 6), (120, 70, 3), (70, 120, 8), (64, 64, 64), (5, 5, 2), (9, 4, 3)])
@pytest.mark.parametrize("block", [1, 17, 1000])
def test_matrix_free_equals_the_full_decomposition(shape, block):
    n, m, d = shape
    Q, K = gauss(n, d), gauss(m, d, seed=1)
    full = np.linalg.svd(attention(Q, K, K)[1], compute_uv=False)
    found = attention_singular_values(Q, K, 3, block=block, tol=1e-6, max_passes=60)
    np.testing.assert_allclose(found, full[:3], rtol=1e-4)


def test_matrix_free_with_a_causal_mask_a_scale_and_float32():
    Q, K = gauss(2, 100, 8).astype(np.float32)
    weights = attention(Q, K, K, mask=causal_mask(100), scale=0.7)[1]
    found = attention_singular_values(Q, K, 2, scale=0.7, causal=True, block=30)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.svd(weights, compute_uv=False)[:2], rtol=2e-3)


def test_matrix_free_survives_large_scores():
    Q, K = 40 * gauss(2, 60, 4)
    full = np.linalg.svd(attention(Q, K, K)[1], compute_uv=False)
    np.testing.assert_allclose(attention_singular_values(Q, K, 2, tol=1e-6, max_passes=60), full[:2], rtol=1e-4)


def test_matrix_free_never_holds_the_matrix():
    """At T = 4,096 the weights alone would be 67 MB in float32; the peak stays far below."""
    import tracemalloc

    Q, K = gauss(2, 4096, 4).astype(np.float32)
    tracemalloc.start()
    attention_singular_values(Q, K, 2, block=64, tol=1e-2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15e6


def test_no_convergence_is_said():
    Q, K = gauss(2, 300, 300)
    with pytest.raises(RuntimeError, match="Raise max_passes or tol"):
        attention_singular_values(Q, K, 2, tol=1e-12, max_passes=3)


# ------------------------------------------------------------------ the measures


@given(matrices())
@settings(max_examples=150, deadline=None)
def test_stable_ranks_lie_between_one_and_the_rank(X):
    rank = np.linalg.matrix_rank(X)
    of_x, of_gram = stable_rank(X), stable_rank_gram(X)
    if rank == 0:
        assert of_x == of_gram == 0
    else:
        assert 1 - 1e-9 <= of_gram <= of_x + 1e-9 <= rank + 2e-9
        s = np.linalg.svd(X, compute_uv=False)
        np.testing.assert_allclose([of_x, of_gram], [(s**n).sum() / s[0] ** n for n in (2, 4)], rtol=1e-9)


def test_stable_ranks_of_known_matrices():
    assert np.isclose(stable_rank(np.eye(6)), 6) and np.isclose(stable_rank_gram(np.eye(6)), 6)
    assert np.isclose(stable_rank(np.ones((4, 9))), 1)
    X = np.diag([2.0, 1.0])
    assert np.isclose(stable_rank(X), 1.25) and np.isclose(stable_rank_gram(X), 1 + 1 / 16)


def test_stacks_give_one_number_for_each_matrix():
    X = gauss(2, 3, 6, 5)
    for measure in (stable_rank, stable_rank_gram, condition_number, spectral_gap, token_cosine, token_spread):
        assert np.allclose(measure(X), [[measure(X[i, j]) for j in range(3)] for i in range(2)])
        assert isinstance(measure(X[0, 0]), float)


def test_condition_number():
    assert np.isclose(condition_number(np.diag([8.0, 2.0, 1.0])), 8)
    Q = np.linalg.qr(gauss(7, 7))[0]
    assert np.isclose(condition_number(Q), 1)
    assert condition_number(np.ones((3, 3))) == np.inf
    assert condition_number(np.ones((3, 3), np.float32)) == np.inf


@given(SQUARE_SCORES, st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_removing_the_outlier_is_centring_the_values(scores, d):
    A, n = softmax(scores), len(scores)
    V = gauss(n, d, seed=3)
    np.testing.assert_allclose(remove_outlier(A) @ V, A @ center_tokens(V), atol=1e-12)
    np.testing.assert_allclose(remove_outlier(A) @ V, A @ V - V.mean(0), atol=1e-12)
    np.testing.assert_allclose(remove_outlier(A).sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose(center_tokens(remove_outlier(A) @ V), center_tokens(A @ V), atol=1e-12)


def test_removing_the_outlier_keeps_the_rest_of_the_spectrum():
    A = softmax(gauss(50, 50))
    before, after = np.linalg.eigvals(A), np.linalg.eigvals(remove_outlier(A))
    distances = np.abs(before[:, None] - after).min(1)
    assert (distances > 1e-9).sum() == 1 and np.isclose(before[distances.argmax()], 1)
    assert np.abs(after).min() < 1e-12


def test_removing_the_outlier_takes_rectangles_stacks_and_float32():
    A = softmax(gauss(2, 4, 6, 9)).astype(np.float32)
    assert remove_outlier(A).dtype == np.float32 and np.allclose(remove_outlier(A), A - 1 / 9, atol=1e-7)


def test_gap_of_known_matrices():
    assert np.isclose(spectral_gap(np.full((8, 8), 1 / 8)), 1)
    assert np.isclose(spectral_gap(np.eye(8)[::-1]), 0)
    assert np.isclose(spectral_gap(np.diag([2.0, 0.5, 0.1])), 0.75)


@given(matrices(min_side=2))
@settings(max_examples=100, deadline=None)
def test_token_measures_keep_their_bounds(X):
    n = len(X)
    assert -1 / (n - 1) - 1e-9 <= token_cosine(X) <= 1 + 1e-9
    assert 0 <= token_spread(X) <= 1 + 1e-9
    np.testing.assert_allclose(token_spread(center_tokens(X)), np.any(center_tokens(X)), atol=1e-6)
    order = np.random.default_rng(0).permutation(n)
    np.testing.assert_allclose(token_cosine(X[order]), token_cosine(X), atol=1e-9)


def test_cosine_by_hand():
    X = gauss(6, 4)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs = [units[i] @ units[j] for i in range(6) for j in range(6) if i != j]
    assert np.isclose(token_cosine(X), np.mean(pairs))
    assert np.isclose(token_cosine(np.ones((3, 2))), 1) and token_spread(np.ones((3, 2))) == 0


@given(SQUARE_SCORES)
@settings(max_examples=100, deadline=None)
def test_entropy_lies_between_one_key_and_all(scores):
    rows = entropy(softmax(scores))
    assert (rows >= -1e-12).all() and (rows <= 1 + 1e-12).all()


def test_entropy_of_known_rows():
    assert np.allclose(entropy(np.full((3, 5), 0.2)), 1) and np.allclose(entropy(np.eye(4)), 0)
    half = np.array([[0.5, 0.5, 0, 0]])
    assert np.allclose(entropy(half), 0.5)
    assert np.allclose(entropy(half, mask=np.array([[True, True, False, False]])), 1)
    assert np.allclose(entropy(np.zeros((2, 3))), 0) and np.allclose(entropy(np.ones((1, 1))), 1)
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    assert np.allclose(entropy(causal, causal_mask(4)), 1)
    assert entropy(np.eye(3, dtype=np.float32)).dtype == np.float32


def test_zhai_bound_on_entropy():
    """Zhai et al. (2023): the least entropy for scores of norm s, attained at one raised score."""
    T, s = 64, 4.0
    b = np.exp(-s * np.sqrt(T / (T - 1)))
    bound = np.log(1 + (T - 1) * b) + s * np.sqrt(T * (T - 1)) * b / (1 + (T - 1) * b)
    scores = np.full(T, -s / np.sqrt(T * (T - 1)))
    scores[0] = s * np.sqrt((T - 1) / T)
    assert np.isclose(entropy(softmax(scores)[None])[0] * np.log(T), bound)
    for seed in range(50):
        other = gauss(T, seed=seed)
        assert entropy(softmax(s * other / np.linalg.norm(other))[None])[0] * np.log(T) >= bound


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "function",
    [singular_values, spectral_gap, stable_rank, stable_rank_gram, condition_number, remove_outlier, center_tokens,
     token_cosine, token_spread, entropy],
)  # fmt: skip
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.full((3, 3), np.nan), "NaN or inf"),
        (np.full((3, 3), np.inf), "NaN or inf"),
        (np.ones(3), "expected"),
        (np.ones((0, 3)), "empty"),
        (np.ones((3, 3), complex), "real numbers"),
        (np.array([["a", "b"]]), "real numbers"),
    ],
)
def test_bad_matrices_are_refused_with_words(function, bad, words):
    with pytest.raises(ValueError, match=words):
        function(bad)


@pytest.mark.parametrize("k", [0, -1, 6, 2.0, True, "two"])
def test_a_bad_k_is_refused(k):
    with pytest.raises(ValueError, match="whole number from 1 to 5"):
        singular_values(gauss(5, 8), k)
    with pytest.raises(ValueError, match="whole number from 1 to 5"):
        attention_singular_values(gauss(5, 2), gauss(8, 2), k)


def test_float16_and_operators_of_any_real_kind_work():
    A = softmax(gauss(40, 40)).astype(np.float16)
    assert singular_values(A, 2).dtype == singular_values(A).dtype == np.float16 and spectral_gap(A) > 0
    assert condition_number(A) > 1
    Q, K = gauss(2, 40, 3)
    found = attention_singular_values(Q.astype(np.float16), K.astype(np.float16))
    assert found.dtype == np.float16 and np.allclose(found, attention_singular_values(Q, K), atol=0.01)
    whole = aslinearoperator(np.diag(np.arange(40)))
    assert np.allclose(singular_values(whole, 2), [39, 38])
    for n in (5, 40):
        assert np.array_equal(singular_values(aslinearoperator(np.zeros((n, n))), 2), [0, 0])
        with pytest.raises(ValueError, match="NaN or inf"):
            singular_values(aslinearoperator(np.full((n, n), np.nan)), 2)
    with pytest.raises(ValueError, match="real numbers"):
        singular_values(aslinearoperator(1j * gauss(40, 40)), 2)


@pytest.mark.parametrize(
    ("option", "values"),
    [("block", [0, -1, 2.5, "a", True]), ("max_passes", [0, 1.5, None]), ("tol", [0, -1, 1, np.nan, "a", True])],
)
def test_efforts_out_of_range_are_refused(option, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{option} is"):
            attention_singular_values(gauss(5, 3), gauss(5, 3), 2, **{option: value})


def test_scores_that_overflow_are_said():
    for Q in (1e200 * gauss(5, 3), (1e25 * gauss(5, 3)).astype(np.float32)):
        with pytest.raises(ValueError, match="overflow"):
            attention_singular_values(Q, Q, 2)


def test_entropy_refuses_what_is_no_distribution():
    A = softmax(gauss(6, 6))
    with pytest.raises(ValueError, match="sums to 2, expected 1"):
        entropy(2 * A)
    with pytest.raises(ValueError, match="expected one that broadcasts"):
        entropy(A, np.ones((5, 5), bool))
    with pytest.raises(ValueError, match="expected bool"):
        entropy(A, np.ones((6, 6)))
    with pytest.raises(ValueError, match="where the mask is False"):
        entropy(A, causal_mask(6))


def test_a_linear_operator_needs_k():
    with pytest.raises(ValueError, match="k is None"):
        singular_values(aslinearoperator(gauss(30, 30)))


def test_other_mistakes_are_explained():
    with pytest.raises(ValueError, match="d_k|expected .n_queries, d_k."):
        attention_singular_values(gauss(5, 2), gauss(5, 3))
    with pytest.raises(ValueError, match="Choose a head"):
        attention_singular_values(gauss(2, 5, 3), gauss(2, 5, 3))
    with pytest.raises(ValueError, match="as many queries as keys"):
        attention_singular_values(gauss(5, 2), gauss(6, 2), causal=True)
    with pytest.raises(ValueError, match="NaN"):
        attention_singular_values(np.full((5, 2), np.nan), gauss(5, 2))
    with pytest.raises(ValueError, match="scale"):
        attention_singular_values(gauss(5, 2), gauss(5, 2), scale=np.nan)
    with pytest.raises(ValueError, match="block"):
        attention_singular_values(gauss(5, 2), gauss(5, 2), block=0)
    with pytest.raises(ValueError, match="at least two tokens"):
        spectral_gap(np.ones((1, 1)))
    with pytest.raises(ValueError, match="at least two tokens"):
        token_cosine(np.ones((1, 4)))
    with pytest.raises(ValueError, match="apply a softmax first"):
        remove_outlier(gauss(4, 4))
    with pytest.raises(ValueError, match="before remove_outlier"):
        entropy(remove_outlier(np.eye(3)))


# --------------------------------------------------------------------- diagnose


def healthy_states(T=12, d=20):
    return gauss(T, d)


def test_diagnose_is_in_the_package():
    assert attn_utils.diagnose is spectra.diagnose and "diagnose" in attn_utils.__all__


@pytest.mark.parametrize("shape", [(8, 8), (3, 8, 8), (3, 4, 8, 8)])
def test_diagnose_takes_one_matrix_and_stacks(shape):
    found = diagnose(softmax(2 * gauss(*shape)))
    layers, heads = (1, 1) if len(shape) == 2 else (shape[0], 1 if len(shape) == 3 else shape[1])
    assert len(found.layers) == layers and found.layers[0]["heads"] == heads and found.states == []
    assert all(0 <= layer["gap"] <= 1 and 0 <= layer["entropy"] <= 1 for layer in found.layers)


def test_diagnose_takes_lists_with_differing_heads():
    found = diagnose([softmax(gauss(2, 6, 6)), softmax(gauss(6, 6))], [gauss(6, 3), gauss(6, 3), gauss(6, 3)])
    assert [layer["heads"] for layer in found.layers] == [2, 1] and len(found.states) == 3


def test_diagnose_takes_a_function_with_and_without_states():
    X = healthy_states()
    seen = []

    def model(given):
        seen.append(given)
        output, weights = attention(given, given, given)
        return [weights], [given, output]

    found = diagnose(model, X)
    assert seen[0] is X and len(found.layers) == 1 and len(found.states) == 2
    found = diagnose(lambda given: attention(given, given, given)[1], X)
    assert len(found.states) == 1


def test_a_healthy_model_has_nothing_to_report():
    found = diagnose(softmax(2 * gauss(2, 12, 12)), healthy_states())
    assert found.findings == [] and not found.collapsed and not found.frozen
    assert "Nothing stands out" in str(found)


def test_collapse_is_found_and_named():
    weights = softmax(0.01 * gauss(3, 50, 50))
    X = np.ones((50, 1)) @ gauss(1, 20) + 1e-3 * gauss(50, 20)
    found = diagnose(weights, [gauss(50, 20), X])
    text = str(found)
    assert found.collapsed and not found.frozen
    for words in ("Spectral gap", "layers 1 to 3", "Nearly uniform", "Rank collapse", "state 1", "0.001"):
        assert words in text
    assert found.states[1]["cosine"] > 0.99 and found.states[0]["cosine"] < 0.2


def test_a_gap_alone_is_no_collapse_when_the_tokens_stay_distinct():
    found = diagnose(softmax(0.01 * gauss(50, 50)), healthy_states(50))
    assert "Spectral gap" in str(found) and not found.collapsed
    assert diagnose(softmax(0.01 * gauss(50, 50))).collapsed


def test_frozen_weights_are_found():
    found = diagnose(softmax(1000 * gauss(20, 20)))
    assert found.frozen and not found.collapsed and "Frozen weights in layer 1" in str(found)


def test_a_single_bad_head_is_not_hidden_by_the_mean():
    weights = softmax(2 * gauss(2, 8, 30, 30))
    weights[1, 3] = np.eye(30)
    weights[0, 5] = 1 / 30
    text = str(diagnose(weights))
    assert "Frozen single heads" in text and "layer 2 head 3" in text
    assert "A spectral gap in single heads" in text and "layer 1 head 5" in text
    assert not diagnose(weights).frozen and len(diagnose(weights).layers[0]["gap_by_head"]) == 8


def test_ill_conditioned_tokens_are_found():
    X = np.linalg.qr(gauss(6, 6))[0] * np.logspace(0, -5, 6)
    assert "about 10^5" in str(diagnose(softmax(2 * gauss(6, 6)), X))
    assert "above 10^6" in str(diagnose(softmax(2 * gauss(6, 6)), np.ones((6, 6))))


def test_causal_weights_are_recognised_and_measured_by_what_they_may_see():
    scores = np.where(causal_mask(10), 0.0, -np.inf)
    found = diagnose(softmax(scores))
    assert found.layers[0]["causal"] and np.isclose(found.layers[0]["entropy"], 1)
    assert "Causal weights in layer 1" in str(found) and "do not subtract 1/T" in str(found)
    mixed = diagnose([softmax(scores), softmax(gauss(10, 10))])
    assert [layer["causal"] for layer in mixed.layers] == [True, False]


def test_rows_that_do_not_sum_to_one_are_said():
    weights = np.abs(gauss(6, 6))
    assert "Rows sum to between" in str(diagnose(weights)) and "not to one" in str(diagnose(weights))
    assert "Rows sum" not in str(diagnose(softmax(gauss(6, 6)).astype(np.float32)))
    removed = diagnose(remove_outlier(softmax(2 * gauss(6, 6))))
    assert "Rows sum" in str(removed) and np.isnan(removed.layers[0]["entropy"])  # negative weights


def test_a_single_token_is_said():
    found = diagnose(np.ones((2, 3, 1, 1)), np.ones((1, 4)))
    assert "One token" in str(found) and not found.collapsed and np.isnan(found.layers[0]["gap"])
    found.plot()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_refused_naming_layer_and_head(bad):
    weights = softmax(gauss(3, 4, 5, 5))
    weights[1, 2, 0, 0] = bad
    with pytest.raises(ValueError, match=r"layer 2 contain NaN or inf \(heads 2\)"):
        diagnose(weights)
    with pytest.raises(ValueError, match="token matrix of state 1 contains NaN"):
        diagnose(softmax(gauss(5, 5)), [gauss(5, 3), np.full((5, 3), np.nan)])


@pytest.mark.parametrize("bad", [gauss(4), gauss(4, 5), gauss(2, 2, 2, 4, 4), [], np.ones((0, 4, 4)), "weights", None])
def test_weights_of_a_wrong_form_are_refused(bad):
    with pytest.raises(ValueError, match="expected"):
        diagnose(bad)


def test_what_a_function_returns_is_checked():
    X, A = gauss(6, 6), softmax(gauss(6, 6))
    for wrong in (
        lambda X: attention(X, X, X),  # (output, weights): the other way round
        lambda X: (A, A),  # two layers as a tuple: the second would pass for tokens
        lambda X: (A, [X], 0),
        lambda X: (A, None),
    ):
        with pytest.raises(
            ValueError, match=r"returned a tuple of .* expected the weights alone or \(weights, states\)"
        ):
            diagnose(wrong, X)
    for wrong in (lambda X: None, lambda X: {"weights": A}, lambda X: 3.0):
        with pytest.raises(ValueError, match="expected an array .* Does the model function return its weights"):
            diagnose(wrong, X)
    assert len(diagnose(lambda X: [A, A], X).layers) == 2


def test_plain_lists_are_matrices_too():
    A, X = softmax(gauss(6, 6)), gauss(6, 3)
    assert str(diagnose(A.tolist(), X.tolist())) == str(diagnose(A, X))
    assert len(diagnose([A.tolist(), A.tolist()]).layers) == 2
    with pytest.raises(ValueError, match="equal length"):
        diagnose([[1, 0], [1]])


@pytest.mark.parametrize("bad", [softmax(gauss(4, 4)) + 0j, np.full((4, 4), "a"), np.full((4, 4), None)])
def test_weights_that_are_no_real_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="weights of layer 1 has type .* expected real numbers"):
        diagnose(bad)


def test_layers_of_differing_length_are_refused():
    with pytest.raises(ValueError, match=r"T = \[6, 5\], expected the same"):
        diagnose([softmax(gauss(6, 6)), softmax(gauss(5, 5))])


def test_zeros_are_no_rank_collapse_but_said():
    found = diagnose(np.zeros((4, 4)), np.zeros((4, 2)))
    assert "all zero" in str(found) and "Rank collapse" not in str(found) and found.collapsed
    assert found.layers[0]["gap"] == 0 and np.isnan(found.layers[0]["entropy"])


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 3, 1e200])
def test_rows_with_other_sums_are_not_called_frozen_or_flat(factor):
    found = diagnose(factor * softmax(gauss(20, 20)))
    assert "Rows sum" in str(found) and "Frozen" not in str(found) and "uniform" not in str(found)


def test_fully_masked_rows_do_not_lower_the_entropy():
    weights = np.vstack([np.zeros((5, 8)), np.full((3, 8), 1 / 8)])
    found = diagnose(weights)
    assert np.isclose(found.layers[0]["entropy"], 1) and "fully masked" in str(found)


def test_half_precision_weights_are_softmax_weights():
    assert "Rows sum" not in str(diagnose(softmax(gauss(300, 300)).astype(np.float16)))


def test_identity_weights_are_not_called_causal():
    found = diagnose(np.eye(5, dtype=int))
    assert not found.layers[0]["causal"] and found.frozen


def test_tokens_of_a_wrong_form_are_refused():
    with pytest.raises(ValueError, match="weights are for 4 tokens"):
        diagnose(softmax(gauss(4, 4)), gauss(5, 3))
    with pytest.raises(ValueError, match="one sequence at a time"):
        diagnose(softmax(gauss(4, 4)), [gauss(2, 4, 3)])
    for bad in (gauss(4), gauss(2, 2, 4, 3), 3.0):
        with pytest.raises(ValueError, match=r"expected \(T, d\)"):
            diagnose(softmax(gauss(4, 4)), bad)
    for bad in (gauss(4, 3) + 0j, "abc", [gauss(4, 3), None]):
        with pytest.raises(ValueError, match="expected real numbers"):
            diagnose(softmax(gauss(4, 4)), bad)


def test_the_plot_shows_weights_and_tokens():
    import matplotlib.pyplot as plt

    figure = diagnose(softmax(gauss(3, 9, 9)), [healthy_states(9)] * 4).plot()
    labels = [line.get_label() for ax in figure.axes for line in ax.lines]
    assert {"gap", "entropy", "cosine", "spread"} <= set(labels)
    diagnose(softmax(gauss(3, 9, 9))).plot()
    plt.close("all")


def test_thresholds_carry_their_reasons():
    for bound, reason in spectra.THRESHOLDS.values():
        assert bound > 0 and len(reason) > 30


@given(SQUARE_SCORES)
@settings(max_examples=60, deadline=None)
def test_diagnose_answers_for_any_softmax(scores):
    found = diagnose(softmax(scores), scores)
    assert isinstance(str(found), str) and found.layers[0]["row_sums"][0] > 0.99


def test_importing_stays_light():
    code = "import sys, attn_utils.spectra; print('scipy' in sys.modules, 'matplotlib' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["False", "False"]
