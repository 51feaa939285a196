"""Whatever frameworks hand out, in one form: layers of heads, one matrix at a time, and the states between them.

    read(given, states, ...) -> Input
        .layers      Layers to walk through once: .n_heads, .shape, .head(sequence, head) -> (n_queries, n_keys)
        .first       the first of them;  .count  how many there are, None where they are made as they are asked for
        .states      list of functions of the sequence that return (n_tokens, d); empty where none were given
        .values      list of Layer of the values, or None
        .n_sequences how many sequences; .mask, .tokens as given
"""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from attn_utils.diagnosis.arrays import is_array, shape_of, to_numpy
from attn_utils.diagnosis.axes import Layer, Slice, check_layers, name_axes, name_axes_of_list, parse_axes
from attn_utils.diagnosis.files import is_path, read_file

ENTRIES = {"attentions": "weights", "weights": "weights", "hidden_states": "states", "states": "states",
           "hidden": "states", "values": "values", "mask": "mask", "attention_mask": "mask",
           "tokens": "tokens"}  # fmt: skip
EAGER = (
    "Ask for the weights: output_attentions=True, and load the model with attn_implementation='eager', since fused "
    "attention (sdpa, flash) never forms them; in PyTorch call attention with need_weights=True and "
    "average_attn_weights=False."
)


@dataclass
class Input:
    layers: object
    first: Layer
    count: int | None
    states: list
    values: list | None
    n_sequences: int
    mask: object = None
    tokens: list | None = None


def read(given, states=None, values=None, axes=None, mask=None, tokens=None):
    """The Input that was meant; raises ValueError saying what was given, expected, and how to settle it."""
    found = _take_apart(given, states)
    raw = None if found.get("states") is None else _list_of_states(found["states"])
    values = values if values is not None else found.get("values")
    layers, first, count, n_sequences = _read_layers(found.get("weights"), parse_axes(axes), raw, values)
    return Input(
        layers,
        first,
        count,
        [] if raw is None else [_state(state, i, n_sequences, first) for i, state in enumerate(raw)],
        None if values is None else _values(values, layers),
        n_sequences,
        mask if mask is not None else found.get("mask"),
        tokens if tokens is not None else found.get("tokens"),
    )


# ------------------------------------------------------------------------- what was given


def _take_apart(given, states):
    """A dict with "weights" and, where they are there, "states", "values", "mask", "tokens"."""
    if is_path(given):
        found = read_file(given)
    elif isinstance(given, (str, Path)):
        raise ValueError(
            f"given is {str(given)!r}, expected weights, or the path of a .npy, .npz or .safetensors file. Save them "
            "with np.savez('attention.npz', **{f'attention.{i}': w for i, w in enumerate(weights)})."
        )
    elif hasattr(given, "attentions") or hasattr(given, "cross_attentions"):
        found = _of_transformers(given)
    elif hasattr(given, "weights") and hasattr(given, "hidden"):  # a Run of attn_utils.pretrained
        found = {"weights": given.weights, "states": given.hidden, "values": given.values, "tokens": given.tokens}
    elif isinstance(given, dict):
        found = _of_dict(given)
    elif callable(given) and not is_array(given):
        return _run(given, states)
    else:
        found = {"weights": given}
    if states is not None:
        found["states"] = states
    return {name: value for name, value in found.items() if value is not None}


def _of_transformers(output):
    """The weights and states of an output of Hugging Face's transformers."""
    weights = getattr(output, "attentions", None)
    if weights is None:
        others = [name for name in ("encoder_attentions", "decoder_attentions", "cross_attentions")
                  if getattr(output, name, None) is not None]  # fmt: skip
        if others:
            raise ValueError(
                f"the output has {' and '.join(others)}, expected one kind of attention. Pass one: "
                f"diagnose(output.{others[0]})."
            )
        raise ValueError(f"the output's attentions are None, expected weights. {EAGER}")
    return {"weights": weights, "states": getattr(output, "hidden_states", None)}


def _of_dict(given):
    found = {ENTRIES[name]: value for name, value in given.items() if name in ENTRIES}
    if "weights" not in found:
        raise ValueError(
            f"the dict has {', '.join(map(str, given)) or 'no entries'}, expected 'attentions' or 'weights', and "
            "perhaps 'hidden_states', 'values', 'attention_mask' and 'tokens'."
        )
    return found


def _run(model, X):
    """What a function returns: weights, (weights, states), or an output with .attentions."""
    try:
        result = model(X)
    except Exception as error:
        if X is not None:
            raise
        raise ValueError(
            f"a function was given and nothing to call it with, and called with None it fails ({error}). Pass what a "
            "model returns, such as diagnose(model(**inputs, output_attentions=True)), or its input as the second "
            "argument."
        ) from error
    if hasattr(result, "attentions") or (hasattr(result, "weights") and hasattr(result, "hidden")):
        return _take_apart(result, None)
    if not isinstance(result, tuple) or (len(result) > 2 and all(is_array(part) for part in result)):
        return {"weights": result, "states": X if X is not None and _is_tokens(X) else None}
    if len(result) != 2 or not _are_states(result[1]):
        shapes = ", ".join(str(shape_of(part)) if is_array(part) else type(part).__name__ for part in result)
        raise ValueError(
            f"the function returned a tuple of ({shapes}), expected the weights alone or (weights, states) with states "
            "a list of token matrices. For attention(), which returns (output, weights), return the second: "
            "lambda X: attention(X, X, X)[1]. Put the weights of several layers into a list."
        )
    return {"weights": result[0], "states": result[1]}


def _is_tokens(X):
    return isinstance(X, (list, tuple)) or (is_array(X) and len(shape_of(X)) > 1 and "int" not in str(X.dtype))


def _are_states(part):
    if isinstance(part, (list, tuple)):
        return True
    return is_array(part) and not _look_like_weights(part)


def _look_like_weights(part):
    """Whether what should be tokens is square, nowhere negative and has rows summing to one."""
    shape = shape_of(part)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
        return False
    part = to_numpy(part, "the states")
    return bool((part >= 0).all() and np.abs(part.sum(-1) - 1).max() < 1e-3)


def tokens_of(tokens, chosen, n_sequences, n_keys):
    """The strings of each chosen sequence, in a list as long as `chosen`; of None for each where none were given."""
    if tokens is None:
        return [None] * len(chosen)
    tokens = list(tokens.tolist() if hasattr(tokens, "tolist") else tokens)
    nested = bool(tokens) and all(isinstance(one, (list, tuple)) or np.ndim(one) for one in tokens)
    if nested and len(tokens) != n_sequences or not nested and len(chosen) > 1:
        raise ValueError(
            f"tokens are {f'{len(tokens)} lists' if nested else 'one list'}, and there are {n_sequences} sequences, "
            "expected a list of strings for each. For one sequence alone, pass sequence= as well."
        )
    every = [list(tokens[one]) if nested else tokens for one in chosen]
    if {len(one) for one in every} != {n_keys}:
        raise ValueError(
            f"there are {len(every[0])} tokens for {n_keys} keys, expected as many: tokens name the keys, with "
            "padding and special tokens, and in cross-attention those of the sequence that is looked at."
        )
    return [[str(token) for token in one] for one in every]


# ------------------------------------------------------------------------- layers


def _read_layers(weights, names, states, values):
    """(layers, the first, how many or None, n_sequences) of weights in any form."""
    single = states is not None and all(len(shape_of(state)) == 2 for state in states)  # no batch in the states
    if _is_passing(weights):
        if values is not None:
            raise ValueError(
                "the layers are made as they are asked for, and values were given: expected both as lists, so that "
                "each layer finds its values. Pass list(layers)."
            )
        layers = _passing(iter(weights), names, single)
        first = next(layers, None)
        if first is None:
            raise ValueError(f"there are no weights: no layer comes, expected one array for each layer. {EAGER}")
        return chain([first], layers), first, None, first.n_sequences
    arrays = _list_of_layers(weights)
    layers = name_axes_of_list(arrays, names, single) if isinstance(arrays, list) else name_axes(arrays, names, single)
    check_layers(layers)
    return layers, layers[0], len(layers), max(layer.n_sequences for layer in layers)


def _is_passing(weights):
    """Whether the layers come one by one, and may come only once: a generator, map(), a view of a dict's values."""
    known = isinstance(weights, (list, tuple, str, bytes, dict, set, frozenset)) or is_array(weights)
    return hasattr(weights, "__iter__") and not known


def _passing(arrays, names, single):
    """The Layers of arrays that pass by: each is let go before the next is asked for."""
    first, number = None, 0
    for array in arrays:  # enumerate() would hold on to each until the next
        number += 1
        [layer] = name_axes_of_list([_layer_of(array, number)], names, single, number)
        array = None
        check_layers([first or layer, layer])
        first = first or Layer(None, layer.axes, layer.name, layer.sizes)
        layer.passing = True
        yield layer
        layer.let_go()


def _list_of_layers(weights):
    """A list of arrays, or one array with its leading axes still to be understood."""
    weights = _rows_as_array(weights)
    if isinstance(weights, (list, tuple)):
        if not weights:
            raise ValueError(f"there are no weights: the list is empty, expected one array for each layer. {EAGER}")
        return [_layer_of(layer, i) for i, layer in enumerate(weights, 1)]
    return _checked(weights, 1)


def _layer_of(array, number):
    if array is None:
        raise ValueError(f"the weights of layer {number} are None, expected an array. {EAGER}")
    if isinstance(array, (list, tuple)) and array and all(is_array(part) and len(shape_of(part)) > 2 for part in array):
        raise ValueError(
            f"layer {number} is itself {len(array)} arrays, such as one of shape {shape_of(array[0])}: generate() of "
            "transformers returns a tuple of layers for each new token. Run the model once on the whole text, or pass "
            "one of them: attentions[0] is that of the prompt."
        )
    return _checked(_rows_as_array(array), number)


def _checked(array, number):
    if not is_array(array):
        if np.ndim(np.asarray(array, dtype=object)) == 0:
            raise ValueError(
                f"the weights of layer {number} are of type {type(array).__name__}, expected an array "
                "(T, T) or (n_heads, T, T), or a list of such arrays. Does the model function return its weights?"
            )
        array = to_numpy(array, f"the array of weights of layer {number}")
    shape = shape_of(array)
    if len(shape) < 2 or 0 in shape or len(shape) > 5:
        raise ValueError(
            f"the weights of layer {number} have shape {shape}, expected (n_queries, n_keys) with axes for heads, "
            "batch and layers in front, none of them empty."
        )
    return array


def _rows_as_array(given):
    """A matrix written as a list of rows of numbers, as an array; anything else as it is."""
    rows = isinstance(given, (list, tuple)) and len(given) and all(isinstance(row, (list, tuple)) for row in given)
    if not rows or any(is_array(cell) or isinstance(cell, (list, tuple)) for row in given for cell in row):
        return given
    if len({len(row) for row in given}) > 1:
        raise ValueError(f"rows of {sorted({len(row) for row in given})} numbers, expected rows of equal length.")
    return np.array(given)


# ------------------------------------------------------------------------- states and values


def _list_of_states(states):
    states = _rows_as_array(list(states) if _is_passing(states) else states)
    if isinstance(states, (list, tuple)):
        return [_as_state(_rows_as_array(state), i) for i, state in enumerate(states)]
    states = _as_state(states, 0)
    shape = shape_of(states)
    return [states] if len(shape) == 2 else [Slice(states, i) for i in range(shape[0])]


def _as_state(state, number):
    name = f"the token matrix of state {number}"
    state = state if is_array(state) else to_numpy(state, name)
    if not 2 <= len(shape_of(state)) <= 4 or 0 in shape_of(state):
        raise ValueError(f"{name} has shape {shape_of(state)}, expected (T, d), or (batch, T, d).")
    return state


def _state(state, number, n_sequences, layer):
    """A function of the sequence that returns (T, d)."""
    name, shape = f"the token matrix of state {number}", shape_of(state)
    if len(shape) == 3 and shape[0] not in (1, n_sequences):
        raise ValueError(
            f"{name} has shape {shape}, and there are weights of {n_sequences} sequences: expected (T, d) or "
            f"({n_sequences}, T, d). Pass one sequence at a time, or the batch that the weights belong to."
        )
    if len(shape) > 3 or shape[-2] != layer.shape[0]:
        raise ValueError(
            f"the weights are for {layer.shape[0]} tokens, and {name} has shape {shape}, expected the same number. "
            "Pass tokens as (T, d), one row per token."
        )

    def get(sequence):
        one = state if len(shape) == 2 else state[sequence if shape[0] > 1 else 0]
        found = to_numpy(one[...] if isinstance(one, Slice) else one, name)
        if not np.isfinite(found).all():
            raise ValueError(f"{name} contains NaN or inf, expected finite numbers. Look for where they arise.")
        return found

    return get


def _values(values, layers):
    """The values as Layers, one for each layer of weights, with heads shared where there are fewer."""
    if not isinstance(values, (list, tuple)):
        deep = len(shape_of(values)) > len(layers[0].axes) + 2
        values = [Slice(values, i) for i in range(shape_of(values)[0])] if deep else [values]
    if len(values) != len(layers):
        raise ValueError(f"there are values of {len(values)} layers and weights of {len(layers)}, expected as many.")
    found = []
    for i, (array, layer) in enumerate(zip(values, layers, strict=True), 1):
        axes = layer.axes[len(layer.axes) - len(shape_of(array)) + 2 :] if len(shape_of(array)) > 2 else []
        one = Layer(array, axes, f"the values of layer {i}")
        if one.shape[0] != layer.shape[1] or layer.n_heads % one.n_heads:
            raise ValueError(
                f"the values of layer {i} have shape {shape_of(array)}, and the weights {layer.n_heads} heads of "
                f"{layer.shape[1]} keys: expected (heads, keys, features), and a batch axis where the weights have one."
            )
        found.append(one)
    return found
