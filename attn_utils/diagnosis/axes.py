"""Which axis of an array is which: layers, a batch of sequences, heads; asked for where the shape has two readings."""

import numpy as np

from attn_utils.diagnosis.arrays import shape_of, to_numpy

NAMES = {"layers": "layers", "layer": "layers", "heads": "heads", "head": "heads", "batch": "batch",
         "sequences": "batch", "sequence": "batch", "examples": "batch"}  # fmt: skip


class Layer:
    """One layer's arrays, as the framework has them: converted head by head when they are asked for."""

    def __init__(self, array, axes, name, shape=None):
        self.array, self.axes, self.name = array, axes, name  # axes: those before the last two, in order
        self.sizes = shape_of(array) if shape is None else shape
        sizes = dict(zip(axes, self.sizes, strict=False))
        self.n_sequences, self.n_heads = sizes.get("batch", 1), sizes.get("heads", 1)
        self.shape = self.sizes[-2:]
        self.passing = False  # whether it comes once, and is not kept by anyone else

    def head(self, sequence, head):
        """The matrix of one head of one sequence."""
        at = {"batch": sequence if self.n_sequences > 1 else 0, "heads": head}
        found = self.array
        for axis in self.axes:
            found = found[at[axis]]
        return to_numpy(found, self.name)

    def let_go(self):
        """Forget what was read from a file, or what passes by."""
        if hasattr(self.array, "let_go"):
            self.array.let_go()
        if self.passing:
            self.array = None


def name_axes_of_list(arrays, names, single, start=1):
    """The Layers of a list of arrays.

    names   from parse_axes(), or None: then they are what the shape says
    single  whether it is known that there is no batch
    start   the number of the first one
    """
    names = names[1:] if names and names[0] == "layers" else names
    differing = len({shape_of(array)[0] for array in arrays if len(shape_of(array)) == 3}) > 1
    return [_layer(array, names, i, single or differing) for i, array in enumerate(arrays, start)]


def name_axes(array, names, single):
    """The Layers of one array, with every axis named."""
    names = names or _axes_of_one(shape_of(array), single)
    _check_axes(names, shape_of(array))
    if "layers" not in names:
        return [Layer(array, names, "the weights of layer 1")]
    if names[0] != "layers":
        raise ValueError(f"axes names {' '.join(names)!r}, expected layers first. Move that axis to the front.")
    return [Layer(Slice(array, i), names[1:], f"the weights of layer {i + 1}") for i in range(shape_of(array)[0])]


class Slice:
    """One layer of an array of layers, cut out when it is indexed."""

    def __init__(self, array, i):
        self.whole, self.i, self.shape = array, i, shape_of(array)[1:]

    def __getitem__(self, index):
        return self.whole[self.i][index]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.whole[self.i], dtype)


def parse_axes(axes):
    """The names of the axes that a caller gives, in order; None for None."""
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


def check_layers(layers):
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
