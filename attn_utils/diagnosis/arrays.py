"""Whatever a framework hands out, as NumPy: no framework is imported, an object is known by what it can do."""

import numpy as np

KINDS = "biuf"  # what counts as numbers: booleans, whole numbers, floats


def shape_of(array):
    """The shape as a tuple of ints, without a copy: of NumPy, PyTorch, JAX and TensorFlow arrays, and of lists."""
    return tuple(int(n) for n in (array.shape if hasattr(array, "shape") else np.shape(array)))


def is_array(thing):
    """Whether a thing has a shape and can be indexed, as arrays of every framework do."""
    return hasattr(thing, "shape") and hasattr(thing, "__getitem__")


def to_numpy(array, name):
    """One array as NumPy in float32, or float64 where it was float64: gradients are cut off, half precision is widened.

    array  a NumPy array, a list, or a tensor on any device, of any precision, with or without a gradient
    name   how an error calls it
    """
    if np.ma.is_masked(array):
        raise ValueError(f"{name} is a masked array, expected a plain one. Say what stands there: {name}.filled(0).")
    array = _plain(array.detach()) if hasattr(array, "detach") else array
    try:
        array = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} is of type {type(array).__name__}, expected an array of numbers with rows of "
            f"one length ({error})."
        ) from None
    if array.dtype.kind == "V" and "float" in array.dtype.name:  # bfloat16 of ml_dtypes, as JAX hands out
        array = array.astype(np.float32)
    if array.dtype.kind not in KINDS:
        raise ValueError(f"{name} has type {array.dtype}, expected real numbers. Convert it to a float array first.")
    wide = array.dtype.kind != "f" or array.dtype.itemsize > 4
    return array.astype(np.float64 if wide else np.float32, copy=False)


def _plain(tensor):
    """A PyTorch tensor without its gradient, in memory that NumPy reads and in a type that NumPy knows."""
    tensor = tensor.to_dense() if getattr(tensor, "is_sparse", False) else tensor
    tensor = tensor.cpu() if hasattr(tensor, "cpu") else tensor
    small = any(word in str(tensor.dtype) for word in ("bfloat16", "float16", "float8"))
    return (tensor.float() if small and hasattr(tensor, "float") else tensor).numpy()
