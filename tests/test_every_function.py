"""Every public function of attn_utils is handed what it does not expect, by one table with a row for each.

A row holds arguments that work, and says of each what kind of thing it is. Each kind has values that must be refused,
with a ValueError or TypeError that says what was given, what was expected and what to do; arrays also come in forms
that must give the same result. Inputs stay as they were, and no warning leaks. A function without a row is named by
the first test.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import warnings
from copy import deepcopy

import numpy as np
import pytest
from function_table import MACHINERY, OWN_TABLES, ROWS
from wrong_values import ARRAYS, KINDS, converted, forms, result_arrays, sizes

import attn_utils


def defined_in(module):
    """The public functions and classes that a module defines, primitives of autograd among them."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, ast.Assign) and "primitive(" in ast.unparse(node.value):
            names = [each.id for target in node.targets for each in getattr(target, "elts", [target])]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


def public_functions():
    """(room, name) of all there is, rooms with a table of their own left out."""
    for module in pkgutil.walk_packages(attn_utils.__path__, "attn_utils."):
        room = module.name.removeprefix("attn_utils.")
        if room.split(".")[0] not in OWN_TABLES:
            yield from ((room, name) for name in defined_in(importlib.import_module(module.name)))


def test_every_public_function_has_a_row():
    there = set(public_functions())
    inside = {(room, name) for room, names in MACHINERY.items() for name in names.split()}
    assert not there - set(ROWS) - inside, "a public function needs a row in tests/function_table.py"
    assert not (set(ROWS) | inside) - there, "the table names what is not there (any more)"
    assert not set(ROWS) & inside
    exported = {(attn_utils._ROOM_OF[name], name) for name in attn_utils.__all__} - {("figures", "COLORS")}
    assert {pair for pair in exported if pair[0] not in OWN_TABLES} <= set(ROWS), "what is exported is for readers"


def test_every_argument_of_a_row_has_a_kind():
    for (room, name), row in ROWS.items():
        parameters = inspect.signature(getattr(row.call, "fun", row.call)).parameters.values()
        taken = {each.name for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)}
        assert taken <= set(row.kinds), f"{room}.{name}: no kind for {taken - set(row.kinds)}"
        assert set(row.kinds.values()) <= set(KINDS), f"{room}.{name}: {set(row.kinds.values()) - set(KINDS)}"


# ------------------------------------------------------------------------------ calling


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch, capsys):
    from attn_utils import full_scale

    (tmp_path / "data").mkdir()
    monkeypatch.setattr(full_scale, "FOLDER", tmp_path / "data" / "full_scale")
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(tmp_path))


def call(row, changed=None):
    """The result of a row's call with some arguments changed: no warning leaks, and no input is changed."""
    arguments = {name: make() if name in row.made else deepcopy(make) for name, make in row.arguments.items()}
    arguments |= changed or {}
    kept = {name: deepcopy(value) for name, value in arguments.items() if row.kinds[name] in ARRAYS | {"params"}}
    given = dict(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed = [arguments.pop(name) for name in row.positional]
        result = row.call(*placed, **arguments)
    for name, before in kept.items():
        assert same(before, given[name]), f"{name} was changed"
    return result


def same(a, b):
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[name], b[name]) for name in a)
    return np.array_equal(np.ma.getdata(a), np.ma.getdata(b), equal_nan=np.asarray(a).dtype.kind == "f")


def tells(error, name):
    """Whether an error names the argument, and says what is expected or what to do, as no error of Python's does."""
    text = str(error)
    named = re.search(rf"\b({name})\b", text)
    python = re.search(r"not supported between|unexpected keyword|'\w+' object|must be a string or", text)
    return named and not python and re.search(r"[Ee]xpected|needs|\b(Use|Pass|Write|Run|Draw|Choose|Look|Check|Say)\b", text)


def ids(pair):
    return ".".join(pair)


PAIRS = pytest.mark.parametrize("pair", ROWS, ids=ids)


@PAIRS
def test_what_works_works(pair):
    call(ROWS[pair])


@PAIRS
def test_what_does_not_fit_is_refused_in_words(pair):
    row, trouble = ROWS[pair], []
    for name, kind in row.kinds.items():
        allowed = [repr(value) for value in row.allowed.get(name, [])]
        wrong = [*KINDS[kind](row.arguments.get(name)), *row.refused.get(name, [])]
        for value in [each for each in wrong if repr(each) not in allowed]:
            try:
                result = call(row, {name: value})
            except (ValueError, TypeError) as error:
                if not tells(error, row.called.get(name, name)):
                    trouble.append(f"{name}={value!r:.70} gives {type(error).__name__}: {str(error)[:150]}")
            except Exception as error:
                trouble.append(f"{name}={value!r:.70} gives {type(error).__name__}: {str(error)[:150]}")
            else:
                trouble.append(f"{name}={value!r:.70} is taken, and gives {result!r:.70}")
    assert not trouble, "\n".join(trouble)


@PAIRS
def test_the_form_of_an_array_does_not_matter(pair):
    row, trouble = ROWS[pair], []
    expected = result_arrays(call(row))
    for name, kind in row.kinds.items():
        if kind not in ARRAYS or row.arguments.get(name) is None:
            continue
        for form, value in forms(row.arguments[name], lists=kind != "raw").items():
            try:
                found = result_arrays(call(row, {name: value}))
                close = [np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(found, expected, strict=True)]
            except Exception as error:
                close = [False, f"{type(error).__name__}: {str(error)[:150]}"]
            if not all(close):
                trouble.append(f"{name}: {form} gives {close}")
    assert not trouble, "\n".join(trouble)


@PAIRS
@pytest.mark.parametrize("kind, tolerance", [("float16", 5e-2), ("float32", 1e-3), ("longdouble", 1e-9)])
def test_every_type_gives_the_same_and_comes_back(pair, kind, tolerance):
    row = ROWS[pair]
    arrays = {name: row.arguments[name] for name, each in row.kinds.items() if each in ARRAYS and name in row.arguments}
    arrays = {name: converted(value, kind) for name, value in arrays.items()}
    if not any(getattr(value, "dtype", None) == kind for value in arrays.values()):
        return
    for found, expected in zip(result_arrays(call(row, arrays)), result_arrays(call(row)), strict=True):
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)
        if row.keeps and found.dtype.kind == "f" and found.size and found.ndim:
            assert found.dtype == kind


@PAIRS
def test_one_token_and_any_size_are_answered_or_refused_in_words(pair):
    row, trouble = ROWS[pair], []
    for name, kind in row.kinds.items():
        if kind not in ARRAYS - {"raw"} or row.arguments.get(name) is None:
            continue
        for form, value in sizes(row.arguments[name]).items():
            try:
                found = result_arrays(call(row, {name: value}))
                if not row.infinite and not all(np.isfinite(each).all() for each in found):
                    trouble.append(f"{name}: {form} gives NaN or inf")
            except (ValueError, TypeError, Warning) as error:
                if isinstance(error, Warning) or not tells(error, "|".join([*row.kinds, "scores"])):
                    trouble.append(f"{name}: {form} gives {type(error).__name__}: {str(error)[:150]}")
    assert not trouble, "\n".join(trouble)
