"""The pass over everything: layer by layer and head by head, so that one matrix is in memory at a time."""

import numpy as np

from attn_utils.diagnosis.diagnosis import Diagnosis, gather
from attn_utils.diagnosis.measures import measure_head, rows_of
from attn_utils.diagnosis.patterns import from_mask, recognize
from attn_utils.diagnosis.reading import read, tokens_of
from attn_utils.diagnosis.rows import examine_rows
from attn_utils.diagnosis.states import measure_state
from attn_utils.diagnosis.streams import read_pairs
from attn_utils.inputs import is_whole
from attn_utils.progress import Progress

SAMPLE = 8  # heads of a layer that a pattern is read from where there are more than 512 tokens


def diagnose(given=None, states=None, *, values=None, axes=None, sequence=None, mask=None, tokens=None, queries=None,
             keys=None, causal=False, scale=None, pictures=0, progress=True):  # fmt: skip
    """Look at a model's attention, and the tokens between its layers, for what goes wrong in them.

    given      what a framework hands out: an output with .attentions (and .hidden_states), a tuple or list with one
               array for each layer, a generator of them (each is let go before the next is asked for), one array, a
               dict, a Run of attn_utils.pretrained, the path of a .npy, .npz or .safetensors file, or a function (a
               model) that returns one of these, or (weights, states), for `states`.
               An array is (T, T), (heads, T, T) or (batch, heads, T, T) within a list, of NumPy, PyTorch (on any
               device, in any precision, with or without gradients), JAX, or nested lists
    states     the tokens between the layers: (T, d) or (batch, T, d) each, in a list, the input first; for a function,
               its input
    values     what the weights average: (heads, T, d_head) for each layer; without them a sink has no size of value
    axes       names of the axes in front of queries and keys, out of "layers", "heads" and "batch", such as
               "layers heads": asked for where the shape alone has two readings
    sequence   which one of a batch, counted from 0; "all" for every one, and the spread of the numbers; None: all
    mask       boolean with True where a query may look, additive, or a tokenizer's (batch, T). Without it causal,
               windowed, prefix and padded weights are recognized where the pattern shows
    tokens     strings that name the keys, for the words of the findings and the axes of a report; for a batch a list of
               them for each sequence
    queries, keys   instead of `given`, (T, d_head), (heads, T, d_head) or (layers, heads, T, d_head): the weights are
               made block by block and never held, for long contexts; with causal and scale (1/sqrt(d_head) when None)
    pictures   n: keep each head's weights averaged into n x n cells, for a report
    progress   show a bar on long work

    Returns a Diagnosis: print it, or see .findings, .collapsed, .saturated, .layers, .states, .plot(), .to_dict().
    Raises ValueError, saying what was given, what was expected and what to do, for axes with two readings, weights that
    are None, NaN (naming layer and head), a mask that the weights contradict, or tokens that do not fit.

    Source: chapter 4 derives the measures; attn_utils.diagnosis.findings names the source of each threshold.
    """
    if (queries is None) != (keys is None) or (given is None) == (queries is None):
        raise ValueError("expected either attention weights, or queries= and keys= together, and not both.")
    if given is None:
        return read_pairs(queries, keys, causal, scale, _look_at_pairs, progress)
    found = read(given, states, values, axes, mask, tokens)
    chosen = _sequences(sequence, found.n_sequences)
    tokens = dict(zip(chosen, tokens_of(found.tokens, chosen, found.n_sequences, found.first.shape[1]), strict=True))
    layers = {one: [] for one in chosen}
    patterns = {one: None for one in chosen}
    drawn = {one: {} for one in chosen}
    with _bar(found, len(chosen), progress) as bar:
        for number, layer in enumerate(found.layers, 1):
            for one in chosen:
                pattern, summary, kept = _look_at_layer(number, layer, one, found, tokens[one], pictures, bar)
                patterns[one] = patterns[one] or pattern
                layers[one].append(summary)
                drawn[one] |= kept
            layer.let_go()
    results = []
    for one in chosen:
        real = patterns[one].queries
        measured = [measure_state(state(one)[real]) for state in found.states]
        results.append(Diagnosis(layers[one], measured, tokens[one], drawn[one]))
    return results[0] if len(results) == 1 else gather(results, [one + 1 for one in chosen])


def _look_at_layer(number, layer, one, found, tokens, pictures, bar):
    """(Pattern, the layer's dict, pictures by layer and head) of one layer and one sequence."""
    pattern = _pattern(layer, one, found, number)
    V = found.values[number - 1] if found.values else None
    heads, kept = [], {}
    for head in range(layer.n_heads):
        A = _matrix(layer, one, head, number, pattern)
        heads.append(_look_at_head(A, pattern, head, V, one, layer, tokens))
        if pictures:
            kept[number, head + 1] = shrink(pattern.cut(A), pictures)
        bar.step(f"head {head + 1} of {layer.n_heads} in layer {number}")
    return pattern, _summary(number, heads, _told(pattern, layer.shape), layer.shape), kept


def _bar(found, sequences, progress):
    """A bar over all heads, where looking takes long; where nobody knows how many layers come, it has no end."""
    work = None if found.count is None else sum(layer.n_heads for layer in found.layers) * sequences
    long = work != 1 and found.first.shape[0] > 256
    return Progress(work, "heads", "looking at heads", progress and long)


def _sequences(sequence, many):
    """The numbers of the sequences to look at, from 0."""
    if sequence is None or (isinstance(sequence, str) and sequence == "all"):
        return list(range(many))
    if not is_whole(sequence, -many) or sequence >= many:
        raise ValueError(f"sequence is {sequence!r}, expected 'all' or a whole number below {many}, the batch's size.")
    return [int(sequence) % many]


def _pattern(layer, one, found, number):
    every = layer.n_heads if max(layer.shape) <= 512 else min(layer.n_heads, SAMPLE)
    heads = sorted({round(i) for i in np.linspace(0, layer.n_heads - 1, every)})
    support = np.zeros(layer.shape, bool)
    for head in heads:
        A = _matrix(layer, one, head, number, None) if found.mask is None else np.nan_to_num(layer.head(one, head))
        support |= A != 0
    if found.mask is None:
        return recognize(support, A)
    return from_mask(found.mask, support, A, one, found.n_sequences)


def _matrix(layer, one, head, number, pattern):
    """One head's weights, checked to be finite wherever they count."""
    A = layer.head(one, head)
    finite = np.isfinite(A)
    if not finite.all():
        if pattern is not None and finite[pattern.queries].all():
            return np.where(finite, A, 0)
        rows = int((~finite).any(-1).sum())
        raise ValueError(
            f"the weights of layer {number} contain NaN or inf (head {head + 1}, in {rows} of {len(A)} rows), expected "
            "finite numbers. A row with every place masked often turns into NaN: where these are rows of padding, pass "
            "mask= to leave them out."
        )
    return A


def _look_at_head(A, pattern, head, V, one, layer, tokens):
    """All numbers of one head."""
    A = pattern.cut(A)
    _check_mask(A, pattern, layer.name, head)
    rows = examine_rows(A, pattern.see)
    found = {"head": head + 1, "rows": rows.kind, "rows_say": rows.words, "rows_cure": rows.cure,
             "row_sums": list(rows.range), "empty": bool(not A.any())}  # fmt: skip
    V = None if V is None else V.head(one, head * V.n_heads // layer.n_heads)[pattern.keys]
    itself = layer.shape[0] == layer.shape[1]
    numbers = measure_head(rows_of(A), A.shape, pattern.may_see, itself, V if rows.usable else None,
                           rows.kind not in ("weights",))  # fmt: skip
    found |= numbers if rows.usable and not found["empty"] else _without(numbers)
    found["sink_at"] = int(pattern.keys[found["sink_at"] - 1]) + 1
    if tokens is not None:
        found["sink_token"] = tokens[found["sink_at"] - 1]
    return found


def _without(numbers):
    """The numbers of a head that has none: NaN for each."""
    found = {name: np.nan if isinstance(value, float) else value for name, value in numbers.items()}
    return found | ({"profile": []} if "profile" in found else {})


def _check_mask(A, pattern, name, head):
    if pattern.see is not None and pattern.kind == "masked" and (A * ~pattern.see).max() > 1e-6:
        raise ValueError(
            f"{name} has weight where the mask is False (head {head + 1}), expected none. True means: the query may "
            "look. PyTorch's boolean attn_mask and key_padding_mask mean the opposite: pass ~mask."
        )


def _told(pattern, shape):
    """A Pattern as the dict of a layer: where padding is left out, the numbers of the tokens that are not."""
    told = {"kind": pattern.kind, "causal": bool(pattern.causal), "words": list(pattern.words)}
    for name, kept, size in zip(("queries", "keys"), (pattern.queries, pattern.keys), shape, strict=True):
        told |= {name: [int(i) + 1 for i in kept]} if len(kept) < size else {}
    return told


def _summary(number, heads, pattern, shape):
    """One layer's dict: its heads and their means."""
    means = {}
    for name in ("entropy", "survives", "survives_typically", "gap", "sink"):
        values = np.array([head[name] for head in heads], float)
        means[name] = float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
    return {"layer": number, "T": shape[0], "n_keys": shape[1], "n_heads": len(heads), "pattern": pattern, **means,
            "heads": heads}  # fmt: skip


def _look_at_pairs(pairs, causal, work, progress):
    """The same for heads that exist as queries and keys only: pairs yields (layer, head, blocks, shape)."""
    layers = {}
    with Progress(work, "heads", "looking at heads", progress) as bar:
        for number, head, blocks, (n, m) in pairs:
            see = np.arange(m - n, m) + 1 if causal else np.full(n, m)
            one = {"head": head + 1, "rows": "weights", "rows_say": "", "rows_cure": "", "row_sums": [1.0, 1.0],
                   "empty": False}  # fmt: skip
            one |= measure_head(blocks, (n, m), see, n == m)
            layers.setdefault(number, ([], (n, m)))[0].append(one)
            bar.step(f"head {head + 1} in layer {number}")
    pattern = {"kind": "causal" if causal else "full", "causal": bool(causal), "words": []}
    return Diagnosis([_summary(number, heads, pattern, shape) for number, (heads, shape) in layers.items()], [])


def shrink(A, n):
    """A matrix averaged into at most n x n cells."""
    rows, columns = (np.linspace(0, size, min(n, size) + 1).astype(int)[:-1] for size in A.shape)
    sums = np.add.reduceat(np.add.reduceat(A, rows, axis=0), columns, axis=1)
    cells = np.diff(np.append(rows, A.shape[0]))[:, None] * np.diff(np.append(columns, A.shape[1]))
    return (sums / cells).astype(np.float32)
