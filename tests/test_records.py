"""Values in files come back as they went in, or not at all."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attn_utils.records import from_text, read_record, to_text, write_record


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, two in zip(a, b, strict=True):
            same(one, two)
    elif isinstance(a, dict):
        same(list(a), list(b))
        same(list(a.values()), list(b.values()))
    elif isinstance(a, (np.ndarray, np.generic)):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))
    elif isinstance(a, float):
        assert (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    else:
        assert a == b


DTYPES = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="="), hnp.unsigned_integer_dtypes(endianness="="),
    hnp.floating_dtypes(endianness="=", sizes=(16, 32, 64)), hnp.complex_number_dtypes(endianness="=", sizes=(64, 128)),
)  # fmt: skip
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3)))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    ARRAYS,
    ARRAYS.filter(lambda a: a.ndim == 0).map(lambda a: a[()]),
)
KEYS = st.one_of(st.text(), st.sampled_from(["~", 1, 2.5, (1, "a"), None]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(KEYS, inner)),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_comes_back(value):
    text = to_text(value)
    same(from_text(text), value)
    assert to_text(from_text(text)) == text and text.isascii()


def test_strings_and_views_and_other_byte_orders_come_back():
    words = np.array(["", "ä", "tea"])
    same(from_text(to_text(words)), words)
    same(from_text(to_text(np.str_("tea"))), np.str_("tea"))
    view = np.arange(12.0).reshape(3, 4).T[::2]
    same(from_text(to_text(view)), np.ascontiguousarray(view))
    same(from_text(to_text(np.arange(3, dtype=">i4"))), np.arange(3, dtype="i4"))
    same(from_text(to_text(np.array([1 + 2j, np.inf])[:, None].T)), np.array([[1 + 2j, np.inf]]))


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"bytes", np.array([object()]), np.array(["2020"], "datetime64[D]"), np.longdouble(1), len],
)
def test_other_types_are_named(value):
    for wrapped in (value, [value], {"a": (value,)}):
        with pytest.raises(TypeError, match="cannot be kept"):
            to_text(wrapped)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"~": "exec", "items": []}',
        '{"~": "array"}',
        '{"~": "array", "dtype": "O", "shape": [1], "data": [1]}',
        '{"~": "array", "dtype": "f8", "shape": [3], "data": [1]}',
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError):
        from_text(text)


def test_a_record_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_record(path, {"x": np.float32(0.1)})
    assert read_record(path) == {"x": np.float32(0.1)} and json.loads(path.read_text())
    for error in (KeyboardInterrupt, OSError):
        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr("os.fsync", lambda descriptor, error=error: (_ for _ in ()).throw(error))
            write_record(path, {"x": 2})
        assert read_record(path) == {"x": np.float32(0.1)} and list(tmp_path.iterdir()) == [path]


def test_a_number_changed_by_hand_is_seen(tmp_path):
    path = tmp_path / "a.json"
    write_record(path, {"x": 0.125})
    for old, new in (("0.125", "0.126"), ('"x"', '"y"'), ("{", "["), ("record", "recor")):
        write_record(path, {"x": 0.125})
        assert old in (text := path.read_text())
        path.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match="a.json is damaged or was edited by hand"):
            read_record(path)
