"""Values in files: JSON that gives back exactly what went in, written in one step, checked when read. No pickle."""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

TAG = "~"  # the key that marks what JSON has no form of its own for
KINDS = "biufcU"  # of arrays: bools, whole numbers, floating-point and complex numbers, strings
LEFT_OVER = 3600  # seconds after which a half-written file is nobody's any more


def to_text(value):
    """A value as JSON text from which from_text makes the same value, digit by digit and type by type.

    value   None, a bool, number or string, a NumPy array or scalar (numbers, bools, strings), or a list, tuple or dict
            of these; NaN and inf may be among them

    The same value gives the same text, so that texts can be compared. Raises TypeError naming any other type.
    """
    return json.dumps(_encode(value), ensure_ascii=True)


def from_text(text):
    """The value of which to_text made the text. Raises ValueError where the text is something else."""
    try:
        return _decode(json.loads(text))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"this is not a text of to_text(): {error!r}.") from error


def _encode(value):
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_encode(item) for item in value]
    if kind is tuple:
        return {TAG: "tuple", "items": [_encode(item) for item in value]}
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            return {key: _encode(item) for key, item in value.items()}
        return {TAG: "dict", "items": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if kind is np.ndarray or isinstance(value, np.generic):
        return _encode_array(value)
    raise TypeError(
        f"a value of type {kind.__name__} cannot be kept. Expected None, bools, numbers, strings, NumPy arrays, "
        "and lists, tuples and dicts of them."
    )


def _encode_array(value):
    dtype = value.dtype
    if dtype.kind not in KINDS or dtype in (np.longdouble, np.clongdouble):
        raise TypeError(f"an array of type {dtype} cannot be kept. Expected numbers, bools or strings.")
    flat = np.ravel(np.asarray(value, dtype.newbyteorder("=")))
    flat = flat.view(flat.real.dtype) if dtype.kind == "c" else flat
    kind = "array" if isinstance(value, np.ndarray) else "scalar"
    name = dtype.name if dtype.kind != "U" else f"U{dtype.itemsize // 4}"
    return {TAG: kind, "dtype": name, "shape": list(value.shape), "data": flat.tolist()}


def _decode(value):
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _decode(item) for key, item in value.items()}
    if value[TAG] == "tuple":
        return tuple(_decode(item) for item in value["items"])
    if value[TAG] == "dict":
        return {_decode(key): _decode(item) for key, item in value["items"]}
    if value[TAG] not in ("array", "scalar"):
        raise ValueError(f"{value[TAG]!r} is no kind of value that to_text() writes.")
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in KINDS:
        raise ValueError(f"an array of type {dtype} is none that to_text() writes.")
    flat = np.array(value["data"], dtype if dtype.kind != "c" else f"f{dtype.itemsize // 2}")
    array = (flat.view(dtype) if dtype.kind == "c" else flat).reshape(value["shape"])
    return array if value[TAG] == "array" else array[()]


def write_record(path, record):
    """Write a dict to a file that appears in one step or not at all, with a checksum of its content."""
    text = to_text(record)
    whole = json.dumps({"sha256": _sha256(text), "record": json.loads(text)}, ensure_ascii=True) + "\n"
    write_whole(path, whole)


def write_whole(path, text):
    """Write a text to a file that appears in one step or not at all."""
    path = Path(path)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    try:
        with open(descriptor, "w", encoding="utf8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def read_record(path):
    """The dict in a file of write_record. Raises ValueError where the file is damaged or was edited by hand."""
    try:
        whole = json.loads(Path(path).read_text("utf8"))
        text = json.dumps(whole["record"], ensure_ascii=True)
        if whole["sha256"] != _sha256(text):
            raise ValueError("its content is not that of its checksum")
        record = from_text(text)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{Path(path).name} is damaged or was edited by hand ({error}).") from error
    if not isinstance(record, dict):
        raise ValueError(f"{Path(path).name} holds a {type(record).__name__}, expected a dict.")
    return record


def remove_left_over(folder):
    """Remove what processes that were killed while writing left in a folder."""
    for part in Path(folder).glob(".*.part"):
        with contextlib.suppress(OSError):  # another process was faster
            if time.time() - part.stat().st_mtime > LEFT_OVER:
                part.unlink()


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
