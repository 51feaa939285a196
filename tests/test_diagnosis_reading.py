"""attn_utils.diagnosis: what diagnose() takes, as frameworks hand it out, and what it refuses with which words."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from drawn import gauss

from attn_utils import attention, diagnose, softmax

T = 12


def weights(*shape, seed=0):
    return softmax(2 * gauss(*shape, seed=seed))


class Tensor:
    """What a PyTorch tensor does where it requires grad, lies on another device and is of half precision."""

    def __init__(self, array, dtype="torch.bfloat16", grad=True, device="cuda"):
        self.array, self.dtype, self.grad, self.device = array, dtype, grad, device

    @property
    def shape(self):
        return self.array.shape

    def _same(self, **changes):
        return Tensor(**{"array": self.array, "dtype": self.dtype, "grad": self.grad, "device": self.device} | changes)

    def __getitem__(self, index):
        return self._same(array=self.array[index])

    def detach(self):
        return self._same(grad=False)

    def cpu(self):
        return self._same(device="cpu")

    def float(self):
        return self._same(dtype="torch.float32")

    def numpy(self):
        if self.grad or self.device != "cpu" or self.dtype not in ("torch.float32", "torch.float64"):
            raise TypeError("can't convert this tensor to numpy")
        return np.asarray(self.array, np.float32)

    def __array__(self, *_, **__):
        raise TypeError("can't convert this tensor to numpy")


# ------------------------------------------------------------------------- axes and batches


def test_a_tuple_of_batch_heads_T_T_is_what_transformers_hands_out():
    found = diagnose(tuple(weights(3, 1, 4, T, T)))
    assert [layer["n_heads"] for layer in found.layers] == [4, 4, 4] and found.sequences == []


@pytest.mark.parametrize("shape, readings", [((8, 4, 50, 50), ("layers heads", "batch heads")), ((3, 8, 8), ("layers", "heads", "batch"))])
def test_an_array_with_two_readings_is_refused_with_both_and_the_cure(shape, readings):
    with pytest.raises(ValueError, match="can be read as") as error:
        diagnose(weights(*shape))
    assert all(f"axes={reading!r}" in str(error.value) for reading in readings) and str(shape) in str(error.value)


def test_axes_settle_it():
    A = weights(3, 4, T, T)
    assert [len(found.layers) for found in (diagnose(A, axes="layers heads"), diagnose(A, axes="batch heads"))] == [3, 1]
    assert len(diagnose(A, axes="batch heads").sequences) == 3
    assert len(diagnose(A[0], axes="heads").layers[0]["heads"]) == 4 and len(diagnose(A[0], axes="layers").layers) == 4
    assert diagnose(A[None].repeat(2, 0), axes=("layers", "batch", "heads")).layers[1]["n_heads"] == 4
    for wrong in ("heads", "layers rows", "", "heads heads"):
        with pytest.raises(ValueError, match="axes"):
            diagnose(A, axes=wrong)


def test_states_without_a_batch_settle_it_too():
    assert len(diagnose(weights(3, 4, T, T), [gauss(T, 5)] * 4).layers) == 3
    found = diagnose([weights(2, 6, 6), weights(6, 6)], [gauss(6, 3), gauss(6, 3), gauss(6, 3)])
    assert [layer["n_heads"] for layer in found.layers] == [2, 1] and len(found.states) == 3


def test_a_list_of_three_axes_is_refused_unless_the_heads_differ():
    with pytest.raises(ValueError, match=r"axes='heads' or axes='batch'"):
        diagnose([weights(3, T, T)] * 2)
    assert [layer["n_heads"] for layer in diagnose([weights(3, T, T), weights(5, T, T)]).layers] == [3, 5]
    assert len(diagnose([weights(3, T, T)] * 2, axes="batch").sequences) == 3


def test_sequence_picks_one_of_a_batch_or_all_with_the_spread():
    A = weights(2, 3, 4, T, T)
    A[:, 1] = np.eye(T)[np.arange(T)[::-1]]  # the second sequence is saturated
    one = diagnose(tuple(A), sequence=1)
    assert one.saturated and one.sequences == []
    assert not diagnose(tuple(A), sequence=0).saturated and diagnose(tuple(A), sequence=-2).saturated
    every = diagnose(tuple(A))
    assert len(every.sequences) == 3 and every.saturated
    low, high = every.layers[0]["heads"][0]["range"]["entropy"]
    assert low < 1e-6 < 0.3 < high and low < every.layers[0]["heads"][0]["entropy"] < high
    assert every.alarms[0].sequences == [2] and "In 1 of 3 sequences, first in sequence 2" in str(every)
    assert str(diagnose(tuple(A), sequence="all")) == str(every)
    for wrong in (3, 1.0, "first", True):
        with pytest.raises(ValueError, match="sequence is .* expected 'all' or a whole number below 3"):
            diagnose(tuple(A), sequence=wrong)


def test_states_of_a_batch_go_with_their_sequence():
    A, X = tuple(weights(2, 3, 4, T, T)), [gauss(3, T, 5, seed=i) for i in range(3)]
    X[-1][1] = 1.0
    found = diagnose(A, X)
    assert found.collapsed and [one.collapsed for one in found.sequences] == [False, True, False]
    assert found.alarms[0].kind == "collapse" and found.alarms[0].sequences == [2]
    with pytest.raises(ValueError, match="weights of 3 sequences"):
        diagnose(A, [gauss(2, T, 5)])


# ------------------------------------------------------------------------- what frameworks hand out


def test_an_output_with_attentions_and_hidden_states():
    output = SimpleNamespace(attentions=tuple(weights(2, 1, 4, T, T)), hidden_states=tuple(gauss(3, 1, T, 8)))
    found = diagnose(output)
    assert len(found.layers) == 2 and len(found.states) == 3
    assert len(diagnose(lambda ids: output, np.arange(T)).states) == 3  # a model, called with its input


@pytest.mark.parametrize("nothing", [SimpleNamespace(attentions=None, hidden_states=None), (None, None)])
def test_weights_that_were_never_formed_are_refused_with_the_cure(nothing):
    with pytest.raises(ValueError, match="output_attentions=True.*attn_implementation='eager'.*sdpa"):
        diagnose(nothing)


def test_an_encoder_and_decoder_are_diagnosed_one_by_one():
    output = SimpleNamespace(encoder_attentions=(weights(1, 2, T, T),), cross_attentions=(weights(1, 2, 5, T),))
    with pytest.raises(ValueError, match=r"encoder_attentions and cross_attentions.*diagnose\(output.encoder_attentions\)"):
        diagnose(output)
    assert "cross-attention from 5 queries to 12 keys" in str(diagnose(output.cross_attentions))


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float16", "torch.float32", "torch.float64"])
def test_tensors_that_require_grad_on_any_device_in_any_precision(dtype):
    A, X = weights(2, 1, 4, T, T), gauss(3, 1, T, 8)
    given = tuple(Tensor(layer, dtype) for layer in A)
    found = diagnose(given, [Tensor(state, dtype) for state in X])
    assert str(found) == str(diagnose(tuple(A), list(X))) and len(found.states) == 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_every_precision_of_numpy(dtype):
    A, X = weights(2, 4, 40, 40), 100 * gauss(3, 40, 600)
    found = diagnose(A.astype(dtype), list(X.astype(dtype)))
    exact = diagnose(A, list(X))
    assert found.alarms == [] and not found.collapsed
    for name in ("stable_rank", "stable_rank_gram", "cosine", "spread", "rest"):
        assert np.isclose(found.states[-1][name], exact.states[-1][name], atol=2e-3), name


def test_plain_lists_are_matrices_too():
    A, X = weights(6, 6), gauss(6, 3)
    assert str(diagnose(A.tolist(), X.tolist())) == str(diagnose(A, X))
    assert len(diagnose([A.tolist(), A.tolist()]).layers) == 2
    with pytest.raises(ValueError, match="equal length"):
        diagnose([[1, 0], [1]])


def test_a_dict_and_a_run():
    A, X = weights(2, 4, T, T), gauss(3, T, 8)
    found = diagnose({"attentions": A, "hidden_states": list(X), "tokens": list("abcdefghijkl")})
    assert len(found.states) == 3 and found.tokens[0] == "a"
    run = SimpleNamespace(weights=A, hidden=X, values=gauss(2, 4, T, 5), tokens=list("abcdefghijkl"))
    assert "value_sink" in diagnose(run).layers[0]["heads"][0] and len(diagnose(run).states) == 3
    with pytest.raises(ValueError, match="the dict has scores, expected 'attentions'"):
        diagnose({"scores": A})


# ------------------------------------------------------------------------- functions


def test_a_function_with_and_without_states():
    X, seen = gauss(T, 20), []

    def model(given):
        seen.append(given)
        output, A = attention(given, given, given)
        return [A], [given, output]

    found = diagnose(model, X)
    assert seen[0] is X and len(found.layers) == 1 and len(found.states) == 2
    assert len(diagnose(lambda given: attention(given, given, given)[1], X).states) == 1


def test_what_a_function_returns_is_checked():
    X, A = gauss(6, 6), weights(6, 6)
    for wrong in (
        lambda X: attention(X, X, X),  # (output, weights): the other way round
        lambda X: (A, A),  # two layers as a tuple: the second would pass for tokens
        lambda X: (A, None),
    ):
        with pytest.raises(ValueError, match=r"returned a tuple of .* expected the weights alone or \(weights, states\)"):
            diagnose(wrong, X)
    for wrong in (lambda X: None, lambda X: 3.0, lambda X: "text"):
        with pytest.raises(ValueError, match="expected"):
            diagnose(wrong, X)
    assert len(diagnose(lambda X: [A, A], X).layers) == 2


# ------------------------------------------------------------------------- files


def test_npy_and_npz_files(tmp_path):
    A, X = weights(12, 1, 4, T, T), gauss(13, T, 8)
    np.save(tmp_path / "a.npy", A[0])
    assert diagnose(tmp_path / "a.npy").layers[0]["n_heads"] == 4
    arrays = {f"attention.{i}": layer for i, layer in enumerate(A)}
    np.savez_compressed(tmp_path / "a.npz", hidden_states=X, tokens=list("abcdefghijkl"), **arrays)
    found = diagnose(str(tmp_path / "a.npz"))
    assert str(found) == str(diagnose(tuple(A), list(X), tokens=list("abcdefghijkl"))) and found.tokens[-1] == "l"
    assert found.to_dict() == diagnose(tuple(A), list(X), tokens=list("abcdefghijkl")).to_dict()  # in the order of numbers


def test_safetensors_files_bfloat16_included(tmp_path):
    A = weights(2, 1, 4, T, T).astype(np.float32)
    brain = (A.view(np.uint32) >> 16).astype(np.uint16)  # bfloat16, cut off
    header, body = {"__metadata__": {"made": "here"}}, b""
    for i in range(2):
        header[f"attention.{i}"] = {"dtype": "BF16", "shape": [1, 4, T, T], "data_offsets": [len(body), len(body) + brain[i].nbytes]}
        body += brain[i].tobytes()
    text = json.dumps(header).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    found = diagnose(tmp_path / "a.safetensors")
    assert len(found.layers) == 2 and found.layers[0]["n_heads"] == 4 and found.alarms == []
    assert np.isclose(found.layers[1]["entropy"], diagnose(tuple(A)).layers[1]["entropy"], atol=5e-3)


def test_what_safetensors_writes_is_read(tmp_path):
    from safetensors.numpy import save_file

    A, X = weights(2, 1, 4, T, T).astype(np.float16), gauss(3, T, 8).astype(np.float32)
    save_file({"attention.0": A[0], "attention.1": A[1], "hidden_states": X}, tmp_path / "a.safetensors")
    assert str(diagnose(tmp_path / "a.safetensors")) == str(diagnose(tuple(A), list(X)))


def test_files_that_hold_something_else_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=gauss(3), y=gauss(3))
    with pytest.raises(ValueError, match="a.npz holds x, y, and none is known as attention weights"):
        diagnose(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_text("no archive")
    with pytest.raises(ValueError, match="b.npz cannot be read"):
        diagnose(tmp_path / "b.npz")
    with pytest.raises(ValueError, match="there is no file"):
        diagnose(tmp_path / "c.npz")


# ------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("bad", [gauss(4), gauss(2, 2, 2, 2, 4, 4), [], np.ones((0, 4, 4)), "weights", None, 3.0])
def test_weights_of_a_wrong_form_are_refused(bad):
    with pytest.raises(ValueError, match="expected"):
        diagnose(bad)


@pytest.mark.parametrize("bad", [weights(4, 4) + 0j, np.full((4, 4), "a"), np.full((4, 4), None), np.ma.masked_less(weights(4, 4), 0.1)])
def test_weights_that_are_no_real_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="weights of layer 1 .*expected"):
        diagnose(bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_refused_naming_layer_and_head(bad):
    A = weights(3, 4, 5, 5)
    A[1, 2, 0, 0] = bad
    with pytest.raises(ValueError, match=r"layer 2 contain NaN or inf \(head 3, in 1 of 5 rows\)"):
        diagnose(A, axes="layers heads")
    with pytest.raises(ValueError, match="token matrix of state 1 contains NaN"):
        diagnose(weights(5, 5), [gauss(5, 3), np.full((5, 3), np.nan)])


def test_layers_of_differing_length_are_refused():
    with pytest.raises(ValueError, match=r"T = \[6, 5\], expected the same"):
        diagnose([weights(6, 6), weights(5, 5)])


def test_tokens_of_a_wrong_form_are_refused():
    with pytest.raises(ValueError, match="weights are for 4 tokens"):
        diagnose(weights(4, 4), gauss(5, 3))
    with pytest.raises(ValueError, match="one sequence at a time"):
        diagnose(weights(4, 4), [gauss(2, 4, 3)])
    for bad in (gauss(4), gauss(2, 2, 2, 4, 3), 3.0):
        with pytest.raises(ValueError, match=r"expected \(T, d\)"):
            diagnose(weights(4, 4), bad)
    for bad in (gauss(4, 3) + 0j, [gauss(4, 3), None]):
        with pytest.raises(ValueError, match="expected"):
            diagnose(weights(4, 4), bad)


def test_either_weights_or_queries_and_keys():
    for wrong in ({}, {"queries": gauss(4, 2)}, {"given": weights(4, 4), "queries": gauss(4, 2), "keys": gauss(4, 2)}):
        with pytest.raises(ValueError, match="either attention weights, or queries= and keys="):
            diagnose(**wrong)


# ------------------------------------------------------------------------- queries and keys


@pytest.mark.parametrize("causal", [False, True])
def test_queries_and_keys_give_the_numbers_of_their_weights(causal):
    Q, K = gauss(2, 6, 300, 8), gauss(2, 3, 300, 8, seed=1)
    scores = Q @ np.repeat(K, 2, 1).swapaxes(-1, -2) / np.sqrt(8)
    A = softmax(np.where(np.tri(300, dtype=bool), scores, -np.inf) if causal else scores)
    found, formed = diagnose(queries=Q, keys=K, causal=causal), diagnose(A, axes="layers heads")
    assert len(found.layers) == 2 and found.layers[0]["pattern"]["causal"] == causal
    for one, other in zip(found.layers[1]["heads"], formed.layers[1]["heads"], strict=True):
        for name in ("entropy", "survives", "survives_typically", "sink", "sink_at", "distance", "to_previous"):
            assert np.isclose(one[name], other[name], rtol=5e-3, atol=1e-5), name


def test_the_weights_of_long_contexts_are_never_formed():
    import tracemalloc

    Q, K = gauss(1, 6000, 8).astype(np.float32), gauss(1, 6000, 8, seed=1).astype(np.float32)
    tracemalloc.start()
    found = diagnose(queries=Q, keys=K, causal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 6000**2 and found.layers[0]["T"] == 6000 and found.alarms == []


def test_queries_and_keys_that_do_not_fit_are_refused():
    for Q, K in ((gauss(5, 3), gauss(5, 4)), (gauss(4, 5, 3), gauss(3, 5, 3)), (gauss(3), gauss(3))):
        with pytest.raises(ValueError, match="expected"):
            diagnose(queries=Q, keys=K)
    with pytest.raises(ValueError, match="a key for each query"):
        diagnose(queries=gauss(5, 3), keys=gauss(4, 3), causal=True)


def test_no_page_of_a_file_stays_in_memory(tmp_path):
    """A map of the whole file would fill up with it, head by head."""
    import gc
    import mmap

    A = softmax(gauss(3, 1, 2, 9, 9)).astype(np.float16)
    np.save(tmp_path / "a.npy", A)
    np.save(tmp_path / "f.npy", np.asfortranarray(A))
    before = sum(isinstance(thing, mmap.mmap) for thing in gc.get_objects())
    found = diagnose(tmp_path / "a.npy", progress=False)
    assert sum(isinstance(thing, mmap.mmap) for thing in gc.get_objects()) == before
    for other in (A, tmp_path / "f.npy"):
        assert [layer["survives"] for layer in diagnose(other).layers] == pytest.approx([layer["survives"] for layer in found.layers])
