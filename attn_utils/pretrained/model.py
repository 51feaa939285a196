"""What both trained models have: a Run, the questions one can ask, and the checks of what is passed in."""

from typing import NamedTuple

import numpy as np

from attn_utils import transformer
from attn_utils.inputs import as_floating, check_mask, check_params, check_switch


class Run(NamedTuple):
    """What a forward pass leaves: n tokens, d features, counted over layers and heads."""

    tokens: list  # n strings; None where a pass was given bare ids
    ids: np.ndarray  # (n,) rows of the vocabulary
    weights: np.ndarray  # (layers, heads, n_queries, n_keys); None where they were not to be kept
    hidden: np.ndarray  # (layers + 1, n, d): what enters the first layer, then what leaves each
    values: np.ndarray  # (layers, heads, n_keys, d_head): what the weights average
    logits: np.ndarray = None  # (n, vocabulary), of a decoder: scores of the token that follows each
    cache: tuple = None  # of a decoder: the keys and values so far, each (layers, KV heads, n_keys, d_head)


class Model:
    """A trained model: its parameters, its tokenizer, and what can be asked of it."""

    forward = None  # the function that runs it
    longest = None  # number of tokens that it has positions for

    def __init__(self, params, tokenizer):
        self.params, self.tokenizer = params, tokenizer

    def ids(self, text):
        """The tokens of a text as rows of the vocabulary, (n,).

        A special token written out in the text, such as "[SEP]" or "<|im_start|>", counts as that token.
        Raises ValueError when text is no string, has no token of its own, holds half a character (a lone surrogate,
        as bytes of another encoding leave behind), or is longer than the model can read.
        """
        if not isinstance(text, str):
            raise ValueError(f"text is {type(text).__name__}, expected a string such as 'It was too tired.'.")
        check_characters(text)
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
        return check_ids(ids, self.params["embed.W"], self.longest)


def combine(mixed, W_O):
    """The heads written into the stream: the sum over heads of (n, d_head) (d_head, d). Returns (n, d)."""
    return np.sum(mixed @ W_O, axis=0)


def split_layers(params):
    """One dict per layer, numbers left out: [{"W_Q": ..., ...}, ...]. What belongs to no layer is left out, too."""
    return transformer.split_layers({name: value for name, value in params.items() if name[0].isdecimal()})


# ------------------------------------------------------------------------- checks


def check_characters(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text has {ascii(text[error.start])} at position {error.start}, which is half of a character (a lone "
            "surrogate). Read the text in its own encoding, or pass text.encode('utf-8', 'replace').decode()."
        ) from None


def check_ids(ids, vocabulary, longest):
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


def check_frozen(frozen, layers, n, params):
    expected = (len(layers), len(layers[0]["W_Q"]), n, n)
    if _shape(frozen) != expected:
        raise ValueError(
            f"frozen has shape {_shape(frozen)}, expected {expected} = (layers, heads, n_tokens, n_tokens), "
            "such as the weights of a run over the same ids."
        )
    frozen = as_floating(frozen, "frozen")
    if not np.isfinite(frozen).all():
        raise ValueError("frozen holds NaN or inf, expected weights. Pass those of a run, or what was made of them.")
    return frozen.astype(params["embed.W"].dtype, copy=False)


def check_model(params, **switches):
    """Stop unless the parameters are those of a model, and every switch is True or False."""
    for name, value in switches.items():
        check_switch(value, name)
    check_params(params, ", such as load_minilm().params")
    if "embed.W" not in params or "0.W_Q" not in params:
        raise ValueError(f"params hold {', '.join(list(params)[:3])}, expected embed.W, 0.W_Q and all of a model.")


def check_cache(cache):
    """The number of tokens in the cache of an earlier Run."""
    pair = isinstance(cache, (tuple, list)) and len(cache) == 2 and all(np.ndim(each) == 4 for each in cache)
    if not pair or cache[0].shape != cache[1].shape:
        raise ValueError(f"cache is {cache!r:.60}, expected that of an earlier run, such as run.cache, or None.")
    return cache[0].shape[2]


def _shape(array):
    try:
        return np.shape(array)
    except ValueError:  # rows of several lengths
        return ()


def check_room(n_bytes):
    if n_bytes > 1e9:
        raise ValueError(
            f"the weights of all heads would take {n_bytes / 1e9:.1f} GB, expected at most 1. Pass a shorter text, or "
            "keep_weights=False to go without them."
        )


def check_places(places, name, layers, mask):
    """A boolean array over queries and keys, or None."""
    if places is None:
        return None
    return check_mask(places, (len(layers[0]["W_Q"]), *mask.shape), name)
