"""attn_utils.diagnosis: what diagnose() says of attention and of the tokens between layers, and what it does not say."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import SQUARE_SCORES, gauss
from hypothesis import given, settings

import attn_utils
from attn_utils import causal_mask, diagnose, diagnosis, softmax
from attn_utils.pictures import check_legible


def weights(*shape, size=2.0, seed=0):
    return softmax(size * gauss(*shape, seed=seed))


def kinds(found):
    return [finding.kind for finding in found.findings]


def test_diagnose_is_in_the_package():
    assert attn_utils.diagnose is diagnosis.diagnose and "diagnose" in attn_utils.__all__


# ------------------------------------------------------------------------- healthy


def test_a_healthy_model_has_nothing_to_report():
    found = diagnose([weights(2, 12, 12)], gauss(12, 20))
    assert found.findings == [] and not found.collapsed and not found.saturated


def test_nothing_is_said_of_what_was_not_given():
    """With weights alone the old version said that the tokens stay distinct, and had seen no token."""
    text = str(diagnose(weights(12, 12)))
    assert text == "- No alarm: nothing stands out in what was given (weights of 1 head in 1 layer; no states)."
    assert "(weights of 2 heads in 1 layer, 1 state)" in str(diagnose([weights(2, 12, 12)], gauss(12, 20)))
    assert diagnose(weights(12, 12)).to_dict()["states"] == []


@pytest.mark.parametrize("T, d", [(128, 256), (256, 64)])
@pytest.mark.parametrize("c", [0.2, 0.37, 0.9, 0.97])
def test_tokens_that_share_a_direction_have_not_collapsed(T, d, c):
    """sr(X X^T) < 1.1 ignored T and d: at 128 tokens a mean cosine of .2 was called rank collapse."""
    X = np.sqrt(c) * gauss(1, d) + np.sqrt(1 - c) * gauss(T, d, seed=1)
    found = diagnose(weights(T, T, size=0.5), [gauss(T, d), X])
    assert not found.collapsed and found.alarms == [] and abs(found.states[1]["cosine"] - c) < 0.05
    assert found.states[1]["stable_rank_gram"] < 1.1 or c < 0.2 + 1e-9
    assert kinds(found) == (["alike"] if found.states[1]["cosine"] > 0.9 else [])


def test_one_huge_token_and_one_huge_feature_hide_nothing_and_are_named():
    X = gauss(40, 64)
    X[0, 5] = 20_000
    found = diagnose(weights(40, 40), [gauss(40, 64), X])
    assert not found.collapsed and kinds(found) == ["massive"] and "feature 6 of token 1 is 2e+04" in str(found)
    assert found.states[1]["heavy_tokens"] == [1] and found.alarms == []
    X = 1.0 + 1e-4 * gauss(40, 64)
    X[0, 5] = 20_000
    assert diagnose(weights(40, 40), X).collapsed  # all others alike
    X = gauss(40, 64)
    X[:, 3] += 30
    assert 4 in diagnose(weights(40, 40), X).states[0]["outlier_features"] and not diagnose(weights(40, 40), X).collapsed


def test_where_notes_follow_it_is_not_said_that_nothing_stands_out():
    A = 0.5 * weights(2, 12, 12)
    A[:, :, 0] += 0.5
    text = str(diagnose(A, axes="heads"))
    assert "nothing stands out" not in text.lower() and "no states). 1 thing to know:\n- Attention sink" in text
    assert "1 state; 2 sequences)" in str(diagnose([weights(2, 3, 12, 12)], [gauss(2, 12, 20)]))


# ------------------------------------------------------------------------- sinks


@pytest.mark.parametrize("T", [16, 400])
def test_a_sink_is_called_a_sink_and_not_a_gap(T):
    """Half on oneself, half on token 1: a gap of .95, and half of every difference survives."""
    A = np.eye(T) / 2
    A[:, 0] += 0.5
    found = diagnose(A)
    head = found.layers[0]["heads"][0]
    assert head["gap"] > 0.7 and np.isclose(head["survives"], 0.5, rtol=0.01)
    assert kinds(found) == ["sink"] and found.alarms == [] and not found.collapsed and not found.saturated
    V = gauss(T, 8)
    before, after = V - V.mean(0), A @ V - (A @ V).mean(0)
    assert np.allclose(after, before / 2)
    measured = diagnose(A, values=V).layers[0]["heads"][0]
    assert np.isclose(measured["survives_values"], 0.5) and 0 < measured["value_sink"] < 1


def test_a_sink_that_takes_all_is_no_entropy_collapse():
    A = 0.98 * np.eye(40)[np.zeros(40, int)] + 0.02 * weights(40, 40)
    found = diagnose(A, tokens=["<bos>", *map(str, range(39))])
    assert kinds(found) == ["sink"] and "token 1 ('<bos>')" in str(found) and "no collapse" in str(found)
    A = np.roll(A, 3, axis=1)
    assert diagnose(A).layers[0]["heads"][0]["sink_at"] == 4


@pytest.mark.parametrize("T", [2, 3, 4, 8])
def test_uniform_weights_over_few_keys_are_no_sink(T):
    assert "sink" not in kinds(diagnose(np.full((T, T), 1 / T)))
    assert "sink" not in kinds(diagnose(softmax(np.where(causal_mask(T), 0.0, -np.inf))))


# ------------------------------------------------------------------------- collapse


def test_collapse_is_found_and_named():
    A = softmax(0.01 * gauss(3, 50, 50))
    X = np.ones((50, 1)) @ gauss(1, 20) + 1e-3 * gauss(50, 20)
    found = diagnose(list(A), [gauss(50, 20), gauss(50, 20), gauss(50, 20), X])
    text = str(found)
    assert found.collapsed and not found.saturated and {"collapse", "uniform"} == {one.kind for one in found.alarms}
    for words in ("Rank collapse from state 3 on", "layers 1 to 3", "Uniform weights", "0.001", "skip connection"):
        assert words in text, words
    assert found.states[3]["cosine"] > 0.99 and found.states[0]["cosine"] < 0.2


@pytest.mark.parametrize("sign", [1, -1])
def test_tokens_on_one_line_have_collapsed_whatever_their_sizes_and_signs(sign):
    sizes = np.abs(gauss(30, 1)) + 0.1
    sizes[::2] *= sign
    X = sizes @ gauss(1, 20) + 1e-4 * gauss(30, 20)
    assert diagnose(weights(30, 30), X).collapsed


def test_uniform_weights_alarm_where_nothing_says_that_the_tokens_stay_distinct():
    A = softmax(0.01 * gauss(50, 50))
    assert diagnose(A).collapsed and kinds(diagnose(A)) == ["uniform"] and diagnose(A).alarms
    seen = diagnose(A, gauss(50, 20))
    assert not seen.collapsed and kinds(seen) == ["uniform"] and seen.alarms == []
    assert "at most 0.00" in str(seen) and "pass the states to see" in str(diagnose(A))


def test_all_zero_tokens_are_said():
    found = diagnose(weights(4, 4), np.zeros((4, 2)))
    assert "all zero" in str(found) and "Rank collapse" not in str(found) and found.collapsed
    assert "Later states differ again" in str(diagnose(weights(9, 9), [np.ones((9, 4)), gauss(9, 4)]))


# ------------------------------------------------------------------------- saturation, dead heads, condition


@pytest.mark.parametrize("causal", [False, True])
def test_sharp_scores_with_a_favorite_key_are_saturated_and_no_sink(causal):
    """Of 17 queries 7 to 12 look at token 3, each at one key: the softmax passes no gradient all the same."""
    for share in (7, 9, 12):
        A = np.eye(17)[[*[2] * share, *range(share, 17)]]
        if causal:
            A[:2] = np.eye(17)[:2]
        found = diagnose(A)
        assert found.saturated and kinds(found) == ["saturated"], (share, str(found))
    assert not diagnose(np.eye(17)[[0] * 17]).saturated  # all of them: a sink


def test_saturated_weights_are_found():
    found = diagnose(weights(20, 20, size=1000))
    assert found.saturated and not found.collapsed and "Saturated weights (entropy collapse) in layer 1" in str(found)


@pytest.mark.parametrize("T", [2, 3, 5, 7])
def test_few_queries_make_no_sink_and_all_of_them_at_one_key_no_saturation(T):
    assert "sink" not in {kind for seed in range(20) for kind in kinds(diagnose(softmax(2 * gauss(4, T, T, seed=seed)), axes="heads"))}
    A = np.where(np.arange(T) == 0, 1 - 1e-4, 1e-4 / (T - 1)) * np.ones((T, 1))
    assert not diagnose(A).saturated and diagnose(A).alarms == [] and ("sink" in kinds(diagnose(A))) == (T > 3)


@pytest.mark.parametrize("size, words", [(1e-9, "and less than 0.0001"), (5e-3, "and at most 0.00")])
def test_how_much_gets_through_uniform_weights_is_one_sentence(size, words):
    assert words in str(diagnose(weights(20, 20, size=size))) and "at most less" not in str(diagnose(weights(20, 20, size=size)))


def test_a_single_head_is_not_hidden_by_the_mean():
    A = weights(2, 8, 30, 30)
    A[1, 3] = np.eye(30)[np.maximum(np.arange(30) - 1, 0)]
    A[0, 5] = 1 / 30
    found = diagnose(A, axes="layers heads")
    assert found.alarms == [] and not found.saturated and sorted(kinds(found)) == ["saturated", "uniform"]
    assert "head 2.4 (the previous token)" in str(found) and "Uniform weights in head 1.6" in str(found)
    one = next(finding for finding in found.findings if finding.kind == "saturated")
    assert (one.layer, one.head, one.heads, one.threshold) == (2, 4, [[2, 4]], diagnosis.THRESHOLDS["saturated"].bound)


def test_dead_heads_are_found_by_what_they_write():
    A, V = weights(1, 4, 20, 20), gauss(1, 4, 20, 8)
    V[0, 2] *= 1e-5
    found = diagnose(A, values=V, axes="layers heads")
    assert kinds(found) == ["dead"] and "head 1.3" in str(found)
    A[0, 1] = 0
    assert "heads 1.2, 1.3" in str(diagnose(A, values=V, axes="layers heads"))
    assert "head 1.2" in str(diagnose(A, axes="layers heads")) and kinds(diagnose(np.zeros((5, 5)))) == ["dead"]


def test_shared_values_are_those_of_their_group():
    A, V = weights(1, 4, 20, 20), gauss(1, 2, 20, 8)
    one, other = (diagnose(A, values=values, axes="layers heads").to_dict() for values in (V, V.repeat(2, 1)))
    assert one == other
    with pytest.raises(ValueError, match="values of layer 1 have shape"):
        diagnose(A, values=gauss(1, 3, 20, 8), axes="layers heads")


def test_ill_conditioned_tokens_are_found():
    Q = np.linalg.qr(gauss(40, 40))[0]
    found = diagnose(weights(40, 40), Q * np.logspace(0, -7, 40))
    assert kinds(found) == ["condition"] and "about 10^6" in str(found) or "above 10^6" in str(found)
    assert not found.collapsed


def test_what_a_norm_or_a_repeated_token_empties_is_not_ill_conditioned():
    X = gauss(64, 32)
    normed = (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True)  # LayerNorm: rank 31
    assert diagnose(weights(64, 64), normed).alarms == [] and diagnose(weights(64, 64), normed).states[0]["condition"] > 1e10
    repeated = gauss(40, 64)[np.arange(40) // 2]
    assert diagnose(weights(40, 40), repeated).alarms == [] and repeated.shape == (40, 64)
    square = [diagnose(weights(64, 64), gauss(64, 64, seed=seed)).alarms for seed in range(5)]
    assert square == [[]] * 5


# ------------------------------------------------------------------------- numbers


def test_numbers_of_patterns_that_one_knows():
    T = 64
    previous = np.eye(T)[np.maximum(np.arange(T) - 1, 0)]
    head = diagnose(previous).layers[0]["heads"][0]
    assert np.isclose(head["to_previous"], 1) and np.isclose(head["top"], 1) and head["entropy"] < 1e-9
    assert np.isclose(head["distance"], (T - 1) / T) and np.isclose(sum(bin["weight"] for bin in head["profile"]), 1)
    head = diagnose(np.eye(T)).layers[0]["heads"][0]
    assert np.isclose(head["survives"], 1) and np.isclose(head["survives_typically"], 1) and np.isclose(head["to_self"], 1)
    head = diagnose(np.full((T, T), 1 / T)).layers[0]["heads"][0]
    assert head["survives"] < 1e-12 and head["survives_typically"] < 1e-8 and np.isclose(head["entropy"], 1)
    assert np.isclose(head["gap"], 1) and np.isclose(head["distance"], (T**2 - 1) / (3 * T))


@pytest.mark.parametrize("T", [40, 300, 700])
@pytest.mark.parametrize("causal", [False, True])
def test_what_survives_is_the_norm_off_the_mean(T, causal):
    scores = gauss(T, T)
    A = softmax(np.where(causal_mask(T), scores, -np.inf) if causal else scores)
    P = np.full((T, T), 1 / T)
    off = A - P @ A - A @ P + P @ A @ P
    head = diagnose(A).layers[0]["heads"][0]
    assert np.isclose(head["survives"], np.linalg.norm(off, 2), rtol=0.01)
    assert np.isclose(head["survives_typically"], np.linalg.norm(off) / np.sqrt(T - 1), rtol=1e-4)


def test_a_single_token_is_said():
    found = diagnose(np.ones((2, 3, 1, 1)), np.ones((1, 4)))
    assert "One token" in str(found) and found.alarms == [] and np.isnan(found.layers[0]["survives"])
    found.plot()


@given(SQUARE_SCORES)
@settings(max_examples=60, deadline=None)
def test_diagnose_answers_for_any_softmax(scores):
    found = diagnose(softmax(scores), scores)
    assert isinstance(str(found), str) and json.dumps(found.to_dict(), allow_nan=False)
    assert not {"rows", "dropout", "dead"} & set(kinds(found))


# ------------------------------------------------------------------------- the result


def test_to_dict_is_what_json_takes():
    found = diagnose(tuple(weights(2, 3, 4, 12, 12)), [gauss(3, 12, 5)] * 3, tokens=[list("abcdefghijkl")] * 3)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(told["sequences"]) == 3 and told["tokens"][0] == "a" and len(told["layers"][1]["heads"]) == 4
    told = json.loads(json.dumps(diagnose(weights(20, 20, size=1000)).to_dict(), allow_nan=False))
    one = told["findings"][0]
    assert one["kind"] == "saturated" and one["level"] == "alarm" and one["layer"] == 1 and one["head"] == 1
    assert one["number"] < one["threshold"] == 0.1 and "Zhai" in one["source"] and one["advice"]
    assert one["chapter"].startswith("https://") and one["chapter"].endswith("02_scaling.html")


def test_alarms_come_first():
    A = weights(2, 4, 30, 30, size=1000)
    A[0] = 0.5 * weights(30, 30)
    A[0, :, :, 0] += 0.5
    assert kinds(diagnose(A, axes="layers heads")) == ["saturated", "sink"]


def test_pictures_are_averages_of_cells():
    A = weights(2, 3, 40, 40)
    found = diagnose(A, axes="layers heads", pictures=8)
    assert len(found.pictures) == 6 and found.pictures[2, 3].shape == (8, 8)
    assert np.allclose(found.pictures[1, 1], A[0, 0].reshape(8, 5, 8, 5).mean((1, 3)))
    assert diagnose(A, axes="layers heads").pictures == {} and found.pictures[1, 1].mean() > 0


def test_the_chapter_and_the_source_of_every_finding_are_there():
    for threshold in diagnosis.THRESHOLDS.values():
        assert threshold.bound > 0 and len(threshold.reason) > 30 and threshold.source
    pages = {finding.chapter.split("/")[-1].removesuffix(".html") for finding in (
        *diagnose(weights(20, 20, size=1000)).findings, *diagnose(np.full((9, 9), 1 / 9), np.ones((9, 2))).findings)}  # fmt: skip
    root = attn_utils.__path__[0] + "/../notebooks/"
    assert pages and all(open(f"{root}{page}.ipynb").readable() for page in pages)


@pytest.mark.parametrize("layers, heads", [(1, 1), (4, 1), (6, 12), (32, 32)])
def test_the_plot_is_legible_at_every_size(layers, heads):
    A = softmax(gauss(layers, heads, 9, 9) * 3)
    figure = diagnose(A, [gauss(9, 9)] * (layers + 1), axes="layers heads").plot()
    check_legible(figure)  # else figure() would refuse it
    labels = [line.get_label() for ax in figure.axes for line in ax.lines]
    assert {"mean cosine", "outside one direction"} <= set(labels)
    titles = {ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")}
    assert ("Weights" if heads == 1 else "Entropy (1 = uniform)") in titles
    diagnose(A, axes="layers heads").plot()
    plt.close("all")


@pytest.mark.parametrize("layers, heads", [(2, 2), (4, 1), (1, 4), (3, 8), (6, 12)])
def test_no_legend_of_the_plot_is_cut_off(layers, heads):
    A = softmax(gauss(layers, heads, 9, 9))
    figure = diagnose(A, [gauss(9, 9)] * (layers + 1), axes="layers heads").plot()
    figure.canvas.draw()
    boxes = [ax.get_legend().get_window_extent() for ax in figure.axes if ax.get_legend()]
    assert boxes and all(0 <= box.x0 and box.x1 <= figure.bbox.width for box in boxes)
    plt.close("all")


def test_heads_are_looked_at_one_at_a_time():
    """At no time are two heads in memory, however many there are."""
    import tracemalloc

    class Layer:
        shape = (1, 6, 1200, 1200)

        def __getitem__(self, index):
            return Row()

    class Row:
        def __getitem__(self, head):
            return weights(1200, 1200, seed=head).astype(np.float32)

    tracemalloc.start()
    found = diagnose([Layer(), Layer()], progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.layers) == 2 and found.layers[1]["n_heads"] == 6
    assert peak < 8 * 8 * 1200**2  # making one takes several of float64


# ------------------------------------------------------------------------- layers that pass by


def same(one, other):
    return json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def test_layers_may_come_one_by_one_and_once():
    A, X = weights(3, 2, 4, 12, 12), gauss(2, 12, 5)
    whole = diagnose(list(A), [X] * 4)
    assert same(whole, diagnose((layer for layer in A), [X] * 4)) and same(whole, diagnose(map(np.array, A), [X] * 4))
    assert same(whole, diagnose(dict(enumerate(A)).values(), (state for state in [X] * 4)))
    assert same(diagnose(list(A), sequence=1), diagnose(iter(A), sequence=1))
    assert same(diagnose(list(A[:, 0]), axes="heads"), diagnose(iter(A[:, 0]), axes="heads"))


def test_no_two_layers_that_pass_by_are_in_memory():
    import weakref

    alive, most = [], []

    class Layer(np.ndarray):
        pass

    def passing():
        for seed in range(4):
            layer = weights(1, 2, 12, 12, seed=seed).view(Layer)
            alive.append(weakref.ref(layer))
            most.append(sum(one() is not None for one in alive))
            yield layer
            del layer

    assert len(diagnose(passing()).layers) == 4 and max(most) == 1


@pytest.mark.parametrize("layers, words", [
    ([], "no layer comes"),
    ([weights(1, 2, 9, 9), None], "weights of layer 2 are None"),
    ([weights(1, 2, 9, 9), weights(1, 2, 8, 8)], r"T = \[9, 8\]"),
    ([weights(2, 2, 9, 9), weights(3, 2, 9, 9)], r"\[2, 3\] sequences"),
    ([weights(3, 9, 9)], "axes='heads'"),
    ([1.0], "layer 1 are of type float"),
])  # fmt: skip
def test_layers_that_pass_by_are_checked_as_they_come(layers, words):
    with pytest.raises(ValueError, match=words):
        diagnose(iter(layers))


def test_values_need_their_layers_in_a_list():
    A, V = weights(2, 1, 2, 9, 9), gauss(2, 1, 2, 9, 4)
    with pytest.raises(ValueError, match=r"Pass list\(layers\)"):
        diagnose(iter(A), values=V)
    assert diagnose(list(A), values=list(V)).layers[0]["heads"][0]["value_sink_size"] > 0


# ------------------------------------------------------------------------- progress


@pytest.mark.parametrize("passing, words", [(False, "[##########----------] head 1 of 2 in layer 1"), (True, "\x1b[Khead 2")])
def test_a_terminal_sees_a_bar_on_long_work(capsys, monkeypatch, passing, words):
    import sys

    A = np.full((1, 2, 300, 300), 1 / 300)
    diagnose([A])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    diagnose(iter([A]) if passing else [A])
    out, err = capsys.readouterr()
    assert out == "" and words in err and err.endswith("head 2 of 2 in layer 1\n") and err.count("\n") == 1
    diagnose([A[:, :, :9, :9]])
    diagnose([A], progress=False)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------- what a first try with a model of one's own did


def test_tokens_name_the_keys_of_their_own_sequence():
    """They were left out in silence where they did not fit, and those of one sequence were put on all of a batch."""
    A = np.full((1, 2, 1, 12, 12), 0.1 / 12)
    A[0, 0, 0, :, 0] += 0.9
    A[0, 1, 0, :, 4] += 0.9
    text = str(diagnose(list(A), tokens=[list("abcdefghijkl"), list("mnopqrstuvwx")]))
    assert "token 1 ('a')" in text
    two = diagnose(list(A), tokens=[list("abcdefghijkl"), list("mnopqrstuvwx")]).sequences[1]
    assert "token 5 ('q')" in str(two) and two.tokens[0] == "m"
    assert "token 5 ('q')" in str(diagnose(list(A), sequence=1, tokens=list("mnopqrstuvwx")))
    assert diagnose(list(A), sequence=0, tokens=np.arange(12)).tokens[3] == "3"
    for tokens, how, words in ((list("abcdefghijkl"), {}, "one list, and there are 2 sequences"),
                               ([list("abcdefghijkl")] * 3, {}, "3 lists, and there are 2 sequences"),
                               (list("abc"), {"sequence": 0}, "3 tokens for 12 keys"), ([], {"sequence": 0}, "0 tokens")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            diagnose(list(A), tokens=tokens, **how)
    with pytest.raises(ValueError, match="9 tokens for 12 keys"):
        diagnose([weights(1, 2, 9, 12)], tokens=list("abcdefghi"))


def test_what_is_recognized_in_some_sequences_is_said_of_those():
    A = weights(1, 3, 2, 12, 12)
    A[0, 1, :, :, 9:] = 0
    A /= A.sum(-1, keepdims=True)
    notes = diagnose(list(A)).notes
    assert notes == ["In sequence 2: Recognized in layer 1: 3 padded tokens on the right are left out."]
    assert diagnose(list(A), sequence=1).notes == ["Recognized in layer 1: 3 padded tokens on the right are left out."]


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_keys_of_cross_attention_are_no_choice(side):
    """Uniform weights over the nine keys that are there had an entropy of .73 against all 20."""
    A = np.zeros((1, 2, 14, 20))
    A[..., slice(11, 20) if side == "left" else slice(0, 9)] = 1 / 9
    found = diagnose([A])
    assert np.isclose(found.layers[0]["entropy"], 1) and kinds(found) == ["uniform"]
    assert f"11 keys on the {side}, at which no query looks, are left out" in str(found) and "14 queries to 9 keys" in str(found)
    assert not diagnose([softmax(gauss(1, 2, 14, 20))]).layers[0]["pattern"].get("keys")


def test_nothing_is_recognized_in_what_are_no_weights():
    for scores in (gauss(9, 16), np.tril(gauss(9, 9))):
        found = diagnose(scores)
        assert kinds(found) == ["rows"] and found.notes == []


def test_a_file_of_another_kind_and_a_model_without_input_are_told_what_to_do():
    with pytest.raises(ValueError, match=r"'weights.pt', expected weights, or the path of a .npy.*np.savez"):
        diagnose("weights.pt")

    def model(X):
        return X.shape

    with pytest.raises(ValueError, match=r"nothing to call it with.*diagnose\(model\(\*\*inputs"):
        diagnose(model)
    with pytest.raises(AttributeError):
        diagnose(model, "no array")


def test_a_head_that_cannot_be_read_in_one_sequence_of_cross_attention_alone():
    """Train mode in a batch of T5's cross-attention ended in KeyError: 'profile'."""
    A = weights(1, 2, 2, 7, 12)
    A[0, 0, 1] = 3 * A[0, 0, 1] ** 2 + 0.1
    for order in (A, A[:, ::-1]):
        found = diagnose(list(order))
        assert kinds(found) == ["rows"] and "In 1 of 2 sequences" in str(found)


def test_the_output_of_generate_is_told_from_layers():
    steps = tuple(tuple(weights(3, 1, 2, 1 if n else 6, 6 + n)) for n in range(3))
    with pytest.raises(ValueError, match=r"layer 1 is itself 3 arrays.*generate\(\).*attentions\[0\]"):
        diagnose(steps)
    assert len(diagnose(steps[0]).layers) == 3


def test_one_query_is_not_one_token():
    found = diagnose(list(np.full((2, 1, 2, 1, 9), 1 / 9)))
    text = str(found)
    assert "One token" not in text and "One query" in text and "one query, and 9 keys" in text
    assert kinds(found) == ["uniform"] and "gets through" not in text and found.alarms == []


def test_one_and_two_are_said_as_one_says_them():
    A = weights(1, 2, 2, 12, 12, size=0.5)
    A[:, :, 0] = 0.6 * np.eye(12)[0] + 0.4 * A[:, :, 0]
    assert "In both sequences, such as the first: Attention sink: 1 of 2 heads gives" in str(diagnose(list(A)))


@pytest.mark.parametrize("T", [300, 1000])
@pytest.mark.parametrize("noise", [0, 1e-7])
def test_what_survives_plain_averaging_is_rounding_and_found_at_once(T, noise):
    A = (np.full((T, T), 1 / T) * (1 + noise * gauss(T, T))).astype(np.float32)
    assert diagnose(A).layers[0]["heads"][0]["survives"] < 1e-6
