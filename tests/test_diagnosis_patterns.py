"""attn_utils.diagnosis: which keys a query may see, recognized or given as a mask, and what rows sum to."""

import numpy as np
import pytest
from drawn import gauss

from attn_utils import causal_mask, diagnose, softmax
from attn_utils.spectra import remove_outlier

T, H = 64, 4
LOW = np.finfo(np.float32).min
BACK = np.arange(T)[:, None] - np.arange(T)


def masked(may, heads=H, T=T, size=1.0):
    """Softmax weights (heads, T, T) in float32 under a boolean mask, as frameworks make them: by adding a low number."""
    scores = (size * gauss(heads, T, T)).astype(np.float32)
    return softmax(np.where(may, scores, LOW))


def uniform(may):
    may = np.broadcast_to(may, (T, T))
    return (may / np.maximum(may.sum(-1, keepdims=True), 1)).astype(np.float32)[None].repeat(2, 0)


def pattern(A, **more):
    return diagnose(A[None], **more).layers[0]["pattern"]


# ------------------------------------------------------------------------- recognized


def test_causal_weights_are_measured_by_what_they_may_see():
    found = diagnose(uniform(causal_mask(T)), axes="heads")
    assert found.layers[0]["pattern"]["causal"] and np.isclose(found.layers[0]["entropy"], 1)
    assert "Causal weights in layer 1" in str(found) and "do not subtract 1/T" in str(found)
    mixed = diagnose([uniform(causal_mask(T))[0], softmax(gauss(T, T))])
    assert [layer["pattern"]["causal"] for layer in mixed.layers] == [True, False]


def left_padded(p):
    """What transformers makes of left padding: rows of padding see every place alike, the others no padding."""
    keys = np.arange(T) >= p
    return causal_mask(T) & keys


@pytest.mark.parametrize("p", [1, 5, 40])
@pytest.mark.parametrize("rows", ["alike", "zero", "themselves"])
def test_left_padding_hides_neither_causality_nor_evenness(p, rows):
    """One padded row of 64 made the old version say that nothing stands out."""
    A = uniform(left_padded(p))
    A[:, :p] = 1 / T if rows == "alike" else 0
    found = diagnose(A, axes="heads")
    if rows == "themselves":
        A[:, :p, :p] = np.eye(p)
        found = diagnose(A, axes="heads", mask=np.arange(T) >= p)
    assert np.isclose(found.layers[0]["entropy"], 1)
    assert [finding.kind for finding in found.findings] == ["uniform"]
    if rows != "themselves":
        assert found.layers[0]["pattern"]["causal"]
        assert f"{p} padded token{'s' * (p > 1)} on the left" in str(found)


def test_right_padding_of_an_encoder_is_left_out_and_said():
    """Even weights over 16 of 64 keys gave entropy .67 and no hint."""
    found = diagnose(uniform(np.arange(T) < 16), axes="heads")
    assert "48 padded tokens on the right are left out" in str(found) and np.isclose(found.layers[0]["entropy"], 1)
    found = diagnose(masked(np.arange(T) < 40), axes="heads")
    assert "24 padded tokens on the right" in str(found) and found.layers[0]["pattern"]["kind"] == "full"
    assert 0.8 < found.layers[0]["entropy"] < 1 and found.alarms == []


def test_padded_tokens_do_not_count_in_the_states():
    X = np.vstack([gauss(16, 8), np.ones((48, 8))])
    found = diagnose(list(masked(np.arange(T) < 16)[:2]), [X, X, X])
    assert found.states[0]["tokens"] == 16 and not found.collapsed
    assert diagnose(list(softmax(gauss(2, T, T))), [X, X, X]).states[0]["tokens"] == T


@pytest.mark.parametrize("width", [2, 8, 32])
def test_windows_are_recognized(width):
    causal = masked(causal_mask(T) & (BACK < width))
    both = masked(np.abs(BACK) < width)
    assert pattern(causal) == {"kind": "windowed", "causal": True, "words": [f"each token sees {width - 1} tokens back (a window)"]}
    assert pattern(both)["kind"] == "windowed" and not pattern(both)["causal"]


def test_weights_that_fade_with_distance_are_no_window():
    faded = np.exp(-20.0 * np.abs(BACK)) * (np.abs(BACK) < 5)
    assert pattern((faded / faded.sum(-1, keepdims=True))[None])["kind"] != "windowed"


def test_a_prefix_is_recognized():
    found = pattern(masked(causal_mask(T) | (np.arange(T) < 10)))
    assert found["kind"] == "prefix" and "first 10 tokens" in found["words"][0]


def test_queries_that_are_not_the_keys():
    assert pattern(softmax(gauss(H, 20, T)))["kind"] == "cross"
    cached = diagnose(softmax(np.where(causal_mask(20, T), gauss(H, 20, T), -np.inf))[None])
    assert "the 20 queries are the last of 64 tokens" in str(cached) and cached.layers[0]["pattern"]["kind"] == "causal"
    assert diagnose(softmax(gauss(H, T, 20))[None]).alarms == []


def test_one_sequence_per_mask_row():
    lengths = [64, 30, 10]
    A = np.stack([masked(np.arange(T) < length) for length in lengths])  # (batch, heads, T, T)
    mask = (np.arange(T) < np.array(lengths)[:, None]).astype(int)  # a tokenizer's
    found, seen = diagnose((A, A), mask=mask), diagnose((A, A))
    for one, other in zip(found.sequences, seen.sequences, strict=True):
        assert np.isclose(one.layers[0]["entropy"], other.layers[0]["entropy"])
    assert found.alarms == []


@pytest.mark.parametrize("A", [np.eye(5), np.eye(6)[[3, 1, 0, 2, 5, 4]], softmax(1000 * gauss(20, 20)), np.eye(9)[::-1]])
def test_saturated_weights_are_taken_for_no_mask(A):
    found = diagnose(A)
    assert found.layers[0]["pattern"]["kind"] == "full" and found.saturated


# ------------------------------------------------------------------------- given


@pytest.mark.parametrize("kind", [bool, int, float, "additive"])
def test_masks_of_every_kind(kind):
    may = causal_mask(T) & (np.random.default_rng(0).random((T, T)) < 0.7) | np.eye(T, dtype=bool)
    mask = np.where(may, 0, LOW) if kind == "additive" else may.astype(kind)
    A = uniform(may)
    for given in (mask, mask[None, None]):
        found = diagnose(A, axes="heads", mask=given)
        assert np.isclose(found.layers[0]["entropy"], 1)
    assert diagnose(A, axes="heads").layers[0]["entropy"] < 0.95


def test_a_mask_that_means_the_opposite_is_refused_with_the_cure():
    with pytest.raises(ValueError, match="weight where the mask is False.*PyTorch's boolean attn_mask.*pass ~mask"):
        diagnose(uniform(causal_mask(T)), axes="heads", mask=~causal_mask(T) | np.eye(T, dtype=bool))


@pytest.mark.parametrize("bad", [np.ones((3, 5)), np.linspace(-1, 1, T * T).reshape(T, T), np.zeros(T), np.ones((T + 1, T))])
def test_masks_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="mask"):
        diagnose(softmax(gauss(H, T, T)), axes="heads", mask=bad)


def test_a_mask_with_two_readings_is_refused():
    A = softmax(gauss(5, 2, 5, 5))
    with pytest.raises(ValueError, match=r"mask\[:, None, None, :\] for the first"):
        diagnose((A,), mask=np.ones((5, 5), int))


def test_nan_in_rows_of_padding_needs_the_mask():
    A = uniform(left_padded(3))
    A[:, :3] = np.nan
    with pytest.raises(ValueError, match="in 3 of 64 rows.*pass mask="):
        diagnose(A, axes="heads")
    assert np.isclose(diagnose(A, axes="heads", mask=np.arange(T) >= 3).layers[0]["entropy"], 1)


# ------------------------------------------------------------------------- rows that do not sum to one


def kinds(found):
    return [finding.kind for finding in found.findings]


def test_dropout_is_named_with_its_cure():
    A = masked(causal_mask(T))
    keep = np.random.default_rng(0).random(A.shape) > 0.1
    found = diagnose(A * keep / 0.9, axes="heads")
    assert kinds(found) == ["dropout"] and "model.eval()" in str(found) and "scores" not in str(found)


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.1])
def test_dropout_that_hit_few_weights_of_a_head_is_dropout_and_nothing_else(rate):
    """At 2 % and 12 tokens some heads lose two weights, and some none, whose rows all sum to 1 / .98."""
    keep = np.random.default_rng(0).random((30, 12, 12)) > rate
    A = softmax(0.3 * gauss(30, 12, 12)) * keep / (1 - rate)
    found = diagnose(A, axes="heads")
    assert kinds(found) == ["dropout"] and len(found.findings[0].heads) == 30 and "model.eval()" in str(found)


def test_rows_that_dropout_does_not_leave_stay_a_finding_of_their_own():
    dropped = masked(causal_mask(T))[0] * (np.random.default_rng(0).random((T, T)) > 0.1) / 0.9
    assert kinds(diagnose(np.stack([dropped, 9 * softmax(gauss(T, T))]), axes="heads")) == ["dropout", "rows"]


@pytest.mark.parametrize("A", [
    np.exp(gauss(T, T)) / (np.exp(gauss(T, T)).sum(-1, keepdims=True) + 30),  # a sink logit
    softmax(gauss(T, T)) * np.random.default_rng(0).uniform(0.2, 1, (T, 1)),  # a gate
])  # fmt: skip
def test_rows_below_one_are_a_hidden_sink_or_a_gate_and_still_measured(A):
    found = diagnose(A)
    assert found.alarms == [] and "a sink logit or softmax1" in str(found) and "gate" in str(found)
    assert 0.7 < found.layers[0]["entropy"] < 1


def test_other_sums():
    A = softmax(gauss(T, T))
    for given, words in (
        (A.T, "columns sum to one.*swapaxes"),
        (np.log(A), "logarithms of weights.*np.exp"),
        (gauss(T, T), "apply it first"),
        (np.abs(gauss(T, T)), "apply the softmax first"),
        (1 / (1 + np.exp(-gauss(T, T))), "as sigmoid attention has"),
        (remove_outlier(A), "sum to zero"),
        (3 * A, "each row sums to 3"),
    ):
        found = diagnose(given)
        assert "rows" in kinds(found), words
        with pytest.raises(AssertionError, match=words):
            raise AssertionError(str(found))
        assert not {"uniform", "saturated", "sink"} & set(kinds(found)), words
    assert kinds(diagnose(A.astype(np.float32))) == kinds(diagnose(A.astype(np.float16))) == []


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 3, 1e200])
def test_rows_with_other_sums_are_not_called_saturated_or_uniform(factor):
    assert not {"saturated", "uniform"} & set(kinds(diagnose(factor * softmax(gauss(20, 20)))))


def test_fully_masked_rows_do_not_lower_the_entropy():
    A = np.full((8, 8), 1 / 8)
    A[3] = 0
    found = diagnose(A)
    assert np.isclose(found.layers[0]["entropy"], 1) and found.layers[0]["heads"][0]["rows_say"].startswith("1 rows of zeros")
