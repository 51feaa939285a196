"""Whatever frameworks hand out, in one form: layers of heads, one matrix at a time, and the states between them.

    read(given, states, ...) -> Input
        .layers      list of Layer: .n_heads, .shape, .head(sequence, head) -> (n_queries, n_keys) in float32 or 64
        .states      list of functions of the sequence that return (n_tokens, d); empty where none were given
        .values      list of Layer of the values, or None
        .n_sequences how many sequences; .mask, .tokens as given
"""

from dataclasses import dataclass

import numpy as np

from attn_utils.diagnosis.arrays import is_array, shape_of, to_numpy
from attn_utils.diagnosis.files import is_path, read_file

NAMES = {"layers": "layers", "layer": "layers", "heads": "heads", "head": "heads", "batch": "batch",
         "sequences": "batch", "sequence": "batch", "examples": "batch"}  # fmt: skip
ENTRIES = {"attentions": "weights", "weights": "weights", "hidden_states": "states", "states": "states",
           "hidden": "states", "values": "values", "mask": "mask", "attention_mask": "mask",
           "tokens": "tokens"}  # fmt: skip
EAGER = (
    "Ask for the weights: output_attentions=True, and load the model with attn_implementation='eager', since fused "
    "attention (sdpa, flash) never forms them; in PyTorch call attention with need_weights=True and "
    "average_attn_weights=False."
)


class Layer:
    """One layer's arrays, as the framework has them: converted head by head when they are asked for."""

    def __init__(self, array, axes, name):
        self.array, self.axes, self.name = array, axes, name  # axes: those before the last two, in order
        sizes = dict(zip(axes, shape_of(array), strict=False))
        self.n_sequences, self.n_heads = sizes.get("batch", 1), sizes.get("heads", 1)
        self.shape = shape_of(array)[-2:]

    def head(self, sequence, head):
        """The matrix of one head of one sequence."""
        at = {"batch": sequence if self.n_sequences > 1 else 0, "heads": head}
        found = self.array
        for axis in self.axes:
            found = found[at[axis]]
        return to_numpy(found, self.name)

    def let_go(self):
        """Forget what was read from a file."""
        if hasattr(self.array, "let_go"):
            self.array.let_go()


@dataclass
class Input:
    layers: list
    states: list
    values: list | None
    n_sequences: int
    mask: object = None
    tokens: list | None = None


def read(given, states=None, values=None, axes=None, mask=None, tokens=None):
    """The Input that was meant; raises ValueError saying what was given, expected, and how to settle it."""
    found = _take_apart(given, states)
    states = found.get("states")
    arrays = _list_of_layers(found.get("weights"))
    raw = None if states is None else _list_of_states(states)
    layers = _layers(arrays, axes, raw)
    _check_layers(layers)
    n_sequences = max(layer.n_sequences for layer in layers)
    values = values if values is not None else found.get("values")
    return Input(
        layers,
        [] if raw is None else [_state(state, i, n_sequences, layers[0]) for i, state in enumerate(raw)],
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
    result = model(X)
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


# ------------------------------------------------------------------------- axes


def _list_of_layers(weights):
    """A list of arrays, or one array with its leading axes still to be understood."""
    weights = _rows_as_array(weights)
    if isinstance(weights, (list, tuple)):
        if not weights:
            raise ValueError(f"there are no weights: the list is empty, expected one array for each layer. {EAGER}")
        for i, layer in enumerate(weights, 1):
            if layer is None:
                raise ValueError(f"the weights of layer {i} are None, expected an array. {EAGER}")
        return [_checked(_rows_as_array(layer), i) for i, layer in enumerate(weights, 1)]
    return _checked(weights, 1)


def _checked(array, number):
    if not is_array(array):
        array = array if isinstance(array, (list, tuple)) else None if array is None else np.asarray(array)
        if array is None or np.ndim(np.asarray(array, dtype=object)) == 0:
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


def _layers(arrays, axes, states):
    """The Layers of a list of arrays, or of one array, with every axis named."""
    names = _parse(axes)
    single = states is not None and all(len(shape_of(state)) == 2 for state in states)  # no batch in the states
    if isinstance(arrays, list):
        names = names[1:] if names and names[0] == "layers" else names
        differing = len({shape_of(array)[0] for array in arrays if len(shape_of(array)) == 3}) > 1
        return [_layer(array, names, i, single or differing) for i, array in enumerate(arrays, 1)]
    names = names or _axes_of_one(shape_of(arrays), single)
    _check_axes(names, shape_of(arrays))
    if "layers" not in names:
        return [Layer(arrays, names, "the weights of layer 1")]
    if names[0] != "layers":
        raise ValueError(f"axes names {' '.join(names)!r}, expected layers first. Move that axis to the front.")
    return [Layer(_Slice(arrays, i), names[1:], f"the weights of layer {i + 1}") for i in range(shape_of(arrays)[0])]


class _Slice:
    """One layer of an array of layers, cut out when it is indexed."""

    def __init__(self, array, i):
        self.whole, self.i, self.shape = array, i, shape_of(array)[1:]

    def __getitem__(self, index):
        return self.whole[self.i][index]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.whole[self.i], dtype)


def _parse(axes):
    if axes is None:
        return None
    words = axes.replace(",", " ").split() if isinstance(axes, str) else list(axes)
    if not words or any(word not in NAMES for word in words):
        raise ValueError(f"axes is {axes!r}, expected names out of layers, heads and batch, such as 'layers heads'.")
    return [NAMES[word] for word in words]


def _check_axes(names, shape):
    if len(names) != len(shape) - 2 or len(set(names)) < len(names):
        raise ValueError(
            f"axes names {len(names)} axes ({' '.join(names)}), and the array of shape {shape} has {len(shape) - 2} "
            "in front of queries and keys. Name each of them once, in order."
        )


def _axes_of_one(shape, single):
    """Names of the leading axes of one array; ValueError with the readings where there are two."""
    lead = shape[:-2]
    if len(lead) == 3:
        return ["layers", "batch", "heads"]
    if len(lead) == 2 and (single or lead[0] == 1):
        return ["layers", "heads"]
    if len(lead) == 1 and (single or lead[0] == 1):
        return ["layers"] if lead[0] == 1 else _refuse(shape, ["layers", "heads"])
    return [] if not lead else _refuse(shape, ["layers heads", "batch heads"] if len(lead) == 2 else
                                       ["layers", "heads", "batch"])  # fmt: skip


def _layer(array, names, number, single):
    """One Layer of a list."""
    name = f"the weights of layer {number}"
    lead = shape_of(array)[:-2]
    if names is None:
        if len(lead) == 3:
            _refuse(shape_of(array), ["layers batch heads"], " as one layer of a list: pass the array by itself, or")
        names = ["batch", "heads"] if len(lead) == 2 else ["heads"] if len(lead) == 1 else []
        if len(lead) == 1 and lead[0] > 1 and not single:
            _refuse(shape_of(array), ["heads", "batch"])
    elif not lead:
        names = []
    _check_axes(names, shape_of(array))
    return Layer(array, names, name)


def _refuse(shape, readings, more=""):
    tail = "queries, keys"
    shown = " or ".join(f"({', '.join([*reading.split(), tail])})" for reading in readings)
    ways = " or ".join(f"axes={reading!r}" for reading in readings)
    raise ValueError(
        f"an array of shape {shape}{more} can be read as {shown}, and its numbers do not say which. "
        f"Pass {ways}."
    )


def _check_layers(layers):
    """All layers have the same number of sequences, and of tokens where queries and keys are the same."""
    many = {layer.n_sequences for layer in layers} - {1}
    if len(many) > 1:
        raise ValueError(f"the layers hold {sorted(many)} sequences, expected the same number in all.")
    if len({layer.shape for layer in layers}) > 1:
        sizes = [layer.shape[0] if len(set(layer.shape)) == 1 else layer.shape for layer in layers]
        raise ValueError(
            f"the layers have T = {sizes}, "
            "expected the same number of tokens in all. Diagnose layers of differing T one by one."
        )


# ------------------------------------------------------------------------- states and values


def _list_of_states(states):
    states = _rows_as_array(states)
    if isinstance(states, (list, tuple)):
        return [_as_state(_rows_as_array(state), i) for i, state in enumerate(states)]
    states = _as_state(states, 0)
    shape = shape_of(states)
    return [states] if len(shape) == 2 else [_Slice(states, i) for i in range(shape[0])]


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
        found = to_numpy(one[...] if isinstance(one, _Slice) else one, name)
        if not np.isfinite(found).all():
            raise ValueError(f"{name} contains NaN or inf, expected finite numbers. Look for where they arise.")
        return found

    return get


def _values(values, layers):
    """The values as Layers, one for each layer of weights, with heads shared where there are fewer."""
    if not isinstance(values, (list, tuple)):
        deep = len(shape_of(values)) > len(layers[0].axes) + 2
        values = [_Slice(values, i) for i in range(shape_of(values)[0])] if deep else [values]
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
