"""attn_utils.diagnosis: diagnose on every form that a model's attention takes, and what it says."""


import numpy as np
import pytest
from drawn import SQUARE_SCORES, gauss
from hypothesis import given, settings

import attn_utils
from attn_utils import attention, causal_mask, diagnose, diagnosis, softmax
from attn_utils.pictures import check_legible
from attn_utils.spectra import remove_outlier


def healthy_states(T=12, d=20):
    return gauss(T, d)


def test_diagnose_is_in_the_package():
    assert attn_utils.diagnose is diagnosis.diagnose and "diagnose" in attn_utils.__all__


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
    check_legible(figure)  # else figure() would refuse it
    diagnose(softmax(gauss(3, 9, 9))).plot()
    plt.close("all")


def test_thresholds_carry_their_reasons():
    for bound, reason in diagnosis.THRESHOLDS.values():
        assert bound > 0 and len(reason) > 30


@given(SQUARE_SCORES)
@settings(max_examples=60, deadline=None)
def test_diagnose_answers_for_any_softmax(scores):
    found = diagnose(softmax(scores), scores)
    assert isinstance(str(found), str) and found.layers[0]["row_sums"][0] > 0.99
