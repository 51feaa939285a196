"""Which keys a query may see: from a mask that is given, or recognized in the weights where the pattern shows.

A Pattern says it in words. Recognized are causal, windowed, prefix and cross-attention, keys in a cache, padding on
either side, and any mask that all heads of a layer share to the digit.
"""

from dataclasses import dataclass, field

import numpy as np

from attn_utils.diagnosis.arrays import to_numpy

FILLED = 0.9  # share of the allowed places that must carry weight for a pattern to be believed
CONSTANT = 1e-3  # rows of padding are uniform to this fraction
SHARP = 1e-6  # the edge of a window carries weights above this: what fades to zero is no window


@dataclass
class Pattern:
    """What a layer's queries may see.

    kind     "full", "causal", "windowed", "prefix", "cross" or "other"
    queries  the rows that are no padding, (n,) indices
    keys     the columns that are no padding, (m,) indices
    see      (n, m) booleans over those, or None where everything may be seen
    words    sentences for the reader, such as "16 padded tokens on the right are left out"
    """

    kind: str
    queries: np.ndarray
    keys: np.ndarray
    see: np.ndarray | None = None
    words: list = field(default_factory=list)

    @property
    def causal(self):
        """Whether no query sees a later key."""
        if self.see is None:
            return False
        n, m = self.see.shape
        return m >= n and m > 1 and not self.see[~np.tri(n, m, m - n, dtype=bool)].any()

    @property
    def may_see(self):
        """(n,) how many keys each query may see."""
        return np.full(len(self.queries), len(self.keys)) if self.see is None else self.see.sum(-1)

    def cut(self, A):
        """The weights without padding; where there is none, as they are."""
        n, m = A.shape
        if len(self.queries) == n and len(self.keys) == m:
            return A
        return np.ascontiguousarray(A[np.ix_(self.queries, self.keys)])


def recognize(support, example):
    """The Pattern that a layer's weights show.

    support  (n_queries, n_keys) booleans: where some head of the layer has weight
    example  (n_queries, n_keys) one head's weights
    """
    n, m = support.shape
    if not support.any():
        return Pattern("full", np.arange(n), np.arange(m))
    if n != m and not support.any(0).all():
        return _across(support, example)
    left, right = _padding(support, example) if n == m else (0, 0)
    queries = keys = np.arange(n) if n != m else np.arange(left, n - right)
    keys = np.arange(m) if n != m else keys
    inner = support[np.ix_(queries, keys)]
    kind, see, words = _shape_of_pattern(inner, example[np.ix_(queries, keys)])
    words += [f"{many} padded {_plural(many)} on the {side} are left out"
              for many, side in ((left, "left"), (right, "right")) if many]  # fmt: skip
    return Pattern(kind, queries, keys, see, words)


def _across(support, example):
    """The Pattern between two sequences where no query looks at some keys: they are padding, if they lie at an end."""
    seen, queries = np.flatnonzero(support.any(0)), np.arange(len(support))
    keys = np.arange(seen[0], seen[-1] + 1)
    inner = support[:, keys]
    kind, see, words = _shape_of_pattern(inner, example[:, keys])
    left, right = int(keys[0]), support.shape[1] - 1 - int(keys[-1])
    words += [f"{many} {'key' if many == 1 else 'keys'} on the {side}, at which no query looks, are left out"
              for many, side in ((left, "left"), (right, "right")) if many]  # fmt: skip
    return Pattern(kind, queries, keys, see, words)


def from_mask(mask, support, example, sequence, n_sequences):
    """The Pattern of a mask that was given; what a tokenizer's leaves open is recognized as without it.

    mask  boolean with True where a query may look; additive, with 0 there and large negative numbers elsewhere; or a
          tokenizer's, of 1 for tokens and 0 for padding, (n_keys,) or (n_sequences, n_keys)
    """
    mask = to_numpy(mask, "mask")
    n, m = shape = support.shape
    if _is_tokenizers(mask, shape, n_sequences):
        real = mask if mask.ndim == 1 else mask[sequence if len(mask) > 1 else 0]
        keys = np.flatnonzero(real > 0)
        queries = keys if n == m else np.arange(n)
        if not len(keys):
            raise ValueError("the mask marks every token as padding, expected at least one 1. Is it turned around?")
        words = [f"{m - len(keys)} padded {_plural(m - len(keys))}, as the mask says, are left out"] * (len(keys) < m)
        kind, see, more = _shape_of_pattern(support[np.ix_(queries, keys)], example[np.ix_(queries, keys)])
        return Pattern(kind, queries, keys, see, more + words)
    see = _places(mask, shape, sequence)
    queries, keys = np.flatnonzero(see.any(-1)), np.flatnonzero(see.any(-2))
    words = [f"{n - len(queries)} queries may see nothing, as the mask says, and are left out"] * (len(queries) < n)
    inner = see[np.ix_(queries, keys)]
    return Pattern("full" if inner.all() else "masked", queries, keys, None if inner.all() else inner, words)


def _is_tokenizers(mask, shape, n_sequences):
    """Whether a mask is (n_keys,) or (n_sequences, n_keys) of 0 and 1, and not one over queries and keys."""
    n, m = shape
    if mask.ndim not in (1, 2) or mask.shape[-1] != m or not np.isin(mask, (0, 1)).all():
        return False
    if mask.ndim == 2 and n == n_sequences == len(mask):
        raise ValueError(
            f"the mask has shape {mask.shape}, and there are {n_sequences} sequences of {n} tokens: it may be a "
            "tokenizer's (batch, tokens) or one over (queries, keys). Pass mask[:, None, None, :] for the first, "
            "mask[None, None] for the second."
        )
    return mask.ndim == 1 or len(mask) == n_sequences or len(mask) == 1 != n


def _places(mask, shape, sequence):
    """A boolean (n_queries, n_keys) from a boolean or an additive mask with any leading axes."""
    additive = (mask < 0).any() or not np.isin(mask, (0, 1)).all()
    if additive and ((mask > 0).any() or ((mask < 0) & (mask > -1e3)).any()):
        raise ValueError(
            f"the mask holds numbers from {mask.min():.3g} to {mask.max():.3g}, expected True and False, 1 and 0, or "
            "0 and large negative numbers such as -inf that are added to the scores. A bias on the scores is no mask."
        )
    see = mask == 0 if additive else mask > 0
    if see.ndim > 2:
        see = see[sequence if see.shape[0] > 1 else 0]
        see = see.all(tuple(range(see.ndim - 2)))
    try:
        return np.broadcast_to(see, shape)
    except ValueError:
        raise ValueError(
            f"the mask has shape {mask.shape}, expected one over (queries, keys) = {shape}, with any batch and head "
            "axes of its own in front, or a tokenizer's (batch, tokens)."
        ) from None


def _padding(support, example):
    """(left, right): how many tokens at either end are padding, where that shows; 0 where it does not."""
    n = len(support)
    dead = ~support.any(0)  # keys at which nobody looks
    right = int(np.argmin(dead[::-1])) if not dead.all() else 0
    last = np.where(dead, -1, n - 1 - np.argmax(support[::-1], axis=0))  # the last query that looks at each key
    reach = np.maximum.accumulate(last)  # up to each key
    starts = [p for p in range(1, n - right - 1) if reach[p - 1] < p]
    left = int(np.argmin(dead)) or (starts[0] if starts else 0)
    if left and not _odd_rows(support[:left], example[:left], dead[:left]):
        left = 0
    inner = support[left : n - right, left : n - right]
    if len(inner) < 2 or max(_filled(inner, np.ones_like(inner)), _lower(inner)) < FILLED:
        return 0, 0
    return left, right


def _odd_rows(support, example, dead):
    """Whether the first rows are those of padding: nobody looks at them, or they see nothing, or all alike."""
    high, low = example.max(-1), example.min(-1)
    return bool(dead.all() or ((high - low) <= CONSTANT * high).all() or not support.any())


def _filled(support, allowed):
    """Share of the allowed places that carry weight; 0 where weight lies elsewhere."""
    return 0.0 if (support & ~allowed).any() else float(support.sum() / allowed.sum())


def _lower(support):
    return _filled(support, np.tri(*support.shape, dtype=bool))


def _shape_of_pattern(support, example):
    """(kind, places that may be seen or None, words)."""
    n, m = support.shape
    back = np.arange(n)[:, None] + (m - n) - np.arange(m)  # how far back each key lies
    if n != m:
        if m > n and _filled(support, back >= 0) >= FILLED and not support.all():
            return "causal", back >= 0, [f"the {n} queries are the last of {m} tokens, causal with a cache"]
        if n == 1:
            return "cross", None, [f"one query, and {m} keys"]
        return "cross", None, [f"cross-attention from {n} queries to {m} {'key' if m == 1 else 'keys'}"]
    if n < 3 or support.all():
        return _tiny(support, back)
    causal = not support[back < 0].any() and support[back > 0].any()
    window = _window(support, example, np.where(back < 0, -back, back), back >= 0 if causal else np.ones_like(support))
    if window:
        words = [f"each token sees {window - 1} tokens back" + ("" if causal else " and ahead") + " (a window)"]
        near = np.abs(back) < window
        return "windowed", near & (back >= 0) if causal else near, words
    if causal:
        return "causal", back >= 0, []
    first = int(np.argmin(np.append(support[0], False)))  # keys that the first query sees
    prefix = (back >= 0) | (np.arange(m) < first)
    if 1 < first < m and _filled(support, prefix) >= FILLED:
        return "prefix", prefix, [f"the first {first} tokens are seen by all, the rest causally (a prefix)"]
    return "full", None, []


def _tiny(support, back):
    if support.shape == (2, 2) and not support[0, 1] and support[1, 0]:
        return "causal", back >= 0, []
    return "full", None, []


def _window(support, example, distance, allowed):
    """How many tokens wide a sharp window is, the own one included; None where there is none."""
    reach = int(distance[support].max()) + 1
    if reach < 2 or reach > len(support) - 1 or _filled(support, allowed & (distance < reach)) < FILLED:
        return None
    edge = example[(distance == reach - 1) & allowed]
    return reach if np.median(edge) > SHARP else None


def _plural(many):
    return "token" if many == 1 else "tokens"
