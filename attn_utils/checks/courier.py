"""Carries arguments to an answer and its reply back, as lines of JSON with plain arrays.

The only part of the checks that runs beside a student's code: it knows no right answer. It imports nothing of
attn_utils, so that its text can be sent to any kernel.
"""

import base64
import json
import warnings

import numpy as np


def pack(value):
    """A value as something that JSON can write; what is neither number, text nor array is named only."""
    if value is None or isinstance(value, (bool, int, str)):
        return {"kind": "plain", "value": value}
    if isinstance(value, (tuple, list)):
        return {"kind": type(value).__name__, "items": [pack(one) for one in value]}
    if isinstance(value, (float, np.ndarray, np.generic)):
        array = np.array(value, order="C", subok=False)
        if array.dtype.kind in "biuf":
            array = array.astype(array.dtype.newbyteorder("<")) if array.dtype.itemsize <= 8 else array.astype("<f8")
            data = base64.b64encode(array.tobytes()).decode()
            return {"kind": "array", "dtype": array.dtype.str, "shape": list(array.shape), "data": data}
        if array.dtype.kind == "U":
            return pack(array.tolist())
        return {"kind": "other", "text": f"an array of type {array.dtype}"[:90]}
    name = type(value).__name__[:60]
    return {"kind": "other", "text": f"{'an' if name.lower().startswith(('a', 'e', 'i', 'o')) else 'a'} {name}"}


class Other(str):
    """What could not be carried: its description."""


def unpack(packed):
    """The value again; lists and tuples come back as what they were."""
    if packed["kind"] == "plain":
        return packed["value"]
    if packed["kind"] == "array":
        data = np.frombuffer(base64.b64decode(packed["data"]), packed["dtype"])
        return data.reshape(packed["shape"]).copy()
    if packed["kind"] == "other":
        return Other(str(packed["text"])[:90])
    items = [unpack(one) for one in packed["items"]]
    return tuple(items) if packed["kind"] == "tuple" else items


def carry(answer, line):
    """Call an answer with the arguments in a line, or read it where the line asks for its value; one line back."""
    asked = json.loads(line)
    if asked is None:
        return json.dumps({"value": pack(answer), "after": None})
    args = [unpack(one) for one in asked]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = answer(*args)
        return json.dumps({"value": pack(value), "after": [pack(one) for one in args]})
    except (Exception, SystemExit) as error:
        return json.dumps({"raised": type(error).__name__, "text": str(error)[:300]})
