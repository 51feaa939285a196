"""What tests/test_every_function.py hands to functions: values that each kind of argument refuses, and forms of arrays."""

import numpy as np


def with_one(array, value):
    """A copy of the array in which one number is another."""
    array = np.array(array, dtype=float)
    array.flat[-1] = value
    return array


def masked(array):
    """The array with one place masked, which must not be counted all the same."""
    return np.ma.masked_array(array, np.arange(np.size(array)).reshape(np.shape(array)) == 1)


def not_finite(array):
    return [with_one(array, np.nan), with_one(array, np.inf), with_one(array, -np.inf)]


def no_array(array):
    """What is no array of real numbers, or one in which something is masked."""
    strange = [np.array([[1j, 2.0]]), np.array([[None, 1]], object), [[1.0, 2.0], [3.0]], {}]
    return [None, "text", [["a", "b"]], *strange, masked(array)]


def no_matrix(array):
    """What is no matrix of finite numbers."""
    empty = [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 0, 3))]
    return [*no_array(array), 1.0, np.ones(3), *empty, *not_finite(array)]


def no_mask(mask):
    return ["text", np.ones(np.shape(mask)), np.where(mask, 0.0, -np.inf), np.ones((7, 9), bool), masked(mask)]


def no_whole(value):
    return [2.5, 2.0, True, "2", np.nan, [2], -1, 1j]


def no_number(value):
    return ["0.1", [0.1, 0.2], np.nan, 1j]


TEXTS = ["", "  ", 3, b"bytes", ["a"]]
FUNCTIONS = [3, "text", [1]]
KINDS = {
    "matrix": no_matrix,
    "tokens": lambda array: [*no_array(array), np.zeros((3, 0)), 1.0],  # NaN stays NaN
    "scores": lambda array: [*no_array(array), 1.0, np.zeros((3, 0)), *not_finite(array)[:2]],  # -inf: no weight
    "draws": lambda array: [*no_array(array), 1.0, array[:1], *not_finite(array)],
    "pixels": lambda array: [*no_array(array), 1.0, np.ones(3)],
    "features": lambda array: [*no_array(array)[1:], 1.0, np.ones(7), *not_finite(array)],  # None for none
    "heat": lambda array: [*no_array(array), 1.0, np.ones(3), np.zeros((0, 3))],  # NaN is a gap
    "raw": lambda array: [],  # unchecked, for speed, as its docstring says
    "free": lambda value: [],
    "mask": no_mask,
    "axis": lambda value: [2.5, True, "0", None, 7, -7, [0]],
    "whole": lambda value: [*no_whole(value), None],
    "whole or none": no_whole,
    "count": lambda value: [2.5, "2", np.nan, -1, None, 99, True, masked(np.arange(3))],
    "number": lambda value: [*no_number(value), None, np.inf],
    "number or none": lambda value: [*no_number(value), np.inf],
    "positive": lambda value: [*no_number(value), None, 0, -1, np.inf, True],
    "positive or none": lambda value: [*no_number(value), 0, -1, np.inf, True],
    "not negative": lambda value: [*no_number(value), None, -1, np.inf],
    "share": lambda value: [*no_number(value), None, -0.1, 0, 1.5, True],
    "rng": lambda value: [None, 0, "0", np.random],
    "function": lambda value: [None, *FUNCTIONS],
    "function or none": lambda value: FUNCTIONS,
    "text": lambda value: [None, *TEXTS],
    "text or none": lambda value: TEXTS,
    "switch": lambda value: [None, 2, "yes", 0.0],
    "figure": lambda value: [None, 3, "fig", [], [None]],
    "dict": lambda value: [None, 3, "text", [1], {}],
    "params": lambda value: [None, 3, "text", [1], {}],
    "words": lambda value: [None, 3, "text", [], [3], ["Zxqy"], [None]],
    "word lists": lambda value: [None, 3, "text", [], {}, {"animals": []}, {"animals": "cat"}, {"animals": [3]}],
    "ids": lambda value: [None, 3.0, "text", [], [1.5], [-1], [99], [True], [[1, 2]], [None], np.ones(50, int)],
    "shape": lambda value: [None, 3, "text", (0,), (2.5,), (True,)],
}
WHOLE = {"whole", "whole or none", "count"}
ARRAYS = {"matrix", "tokens", "scores", "draws", "pixels", "heat", "raw", "features"}


def forms(array, lists=True):
    """The same numbers in other forms: read-only, not contiguous, of the other byte order, as a list."""
    array = np.asarray(array)
    read_only = array.copy()
    read_only.flags.writeable = False
    found = {"read-only": read_only, "Fortran order": np.asfortranarray(array)}
    if array.ndim:
        found["not contiguous"] = np.repeat(array, 2, axis=-1)[..., ::2]
        found["turned round"] = array[..., ::-1].copy()[..., ::-1]
    if lists and array.ndim:
        found |= {"list": array.tolist(), "nothing masked": np.ma.masked_array(array)}
        found["other byte order"] = array.astype(array.dtype.newbyteorder())
    return found


def small_integers(value):
    """The same whole number in small types of NumPy's."""
    return {kind: np.dtype(kind).type(value) for kind in ("int8", "uint8", "int64") if 0 <= value < 128}


def sizes(array):
    """One token, and numbers near the ends of float64."""
    array = np.asarray(array, float)
    found = {f"{factor:g} times as large": array * factor for factor in (1e-320, 1e-200, 1e150, 1e300)}
    if array.ndim > 1:
        found |= {"one token": array[..., :1, :], "all zeros": 0 * array, "all equal": np.ones_like(array)}
        found["one feature"] = array[..., :1]
    return found


def converted(value, kind):
    """An array of floating-point numbers in another type; what is none stays what it is."""
    return value.astype(kind) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def result_arrays(result):
    """All arrays and numbers in a result, flat."""
    if isinstance(result, dict):
        return [array for name in sorted(result) for array in result_arrays(result[name])]
    if isinstance(result, (tuple, list)):
        return [array for each in result for array in result_arrays(each)]
    array = np.asarray(result) if isinstance(result, (np.ndarray, np.generic, int, float)) else np.zeros(0)
    return [array] if array.dtype.kind in "biuf" else []
