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
import types
import warnings
from copy import deepcopy

import numpy as np
import pytest
from function_table import MACHINERY, OWN_TABLES, ROWS
from wrong_values import ARRAYS, KINDS, WHOLE, converted, forms, result_arrays, sizes, small_integers

import attn_utils


def defined_in(module):
    """The public names of all that a module defines and that can be called, whatever made it: def, partial, primitive.

    What is imported is none of them, and neither is what a function defines for itself.
    """
    todo = ast.parse(inspect.getsource(module)).body
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        else:
            names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler))]
        yield from (name for name in names if name[0] != "_" and callable(getattr(module, name, None)))


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


def test_a_function_is_found_however_it_is_made():
    module = types.ModuleType("made_up")
    source = """
import functools
from math import sqrt
def plain(): inside = abs
async def later(): pass
class Kind: method = abs
alias, _hidden = plain, plain
part: object = functools.partial(plain)
number, TABLE = 3, {"a": plain}
if number:
    def conditional(): pass
try:
    fallback = lambda: None
except ImportError:
    raise
"""
    exec(source, vars(module))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "getsource", lambda _: source)
        found = set(defined_in(module))
    assert found == {"Kind", "alias", "conditional", "fallback", "later", "part", "plain"}


def named(room, name):
    return getattr(importlib.import_module(f"attn_utils.{room}"), name)


def test_a_row_calls_the_function_it_is_named_after():
    for (room, name), row in ROWS.items():
        real = named(room, name)
        assert row.call is real or name in row.call.__code__.co_names, f"{room}.{name}: the row calls something else"


def test_no_argument_goes_untried():
    """The kinds raw and free refuse nothing by themselves; only in gradients is nothing checked, for speed."""
    for (room, name), row in ROWS.items():
        idle = {each for each, kind in row.kinds.items() if not KINDS[kind](row.arguments.get(each))}
        idle -= {each for each, values in row.refused.items() if values}
        assert not idle or room == "gradients", f"{room}.{name}: nothing is refused for {idle}"
        assert set(row.refused) | set(row.allowed) <= set(row.kinds), f"{room}.{name}: {row.refused}, {row.allowed}"
        assert row.kinds or not inspect.signature(named(room, name)).parameters


def test_every_argument_of_a_row_has_a_kind():
    for (room, name), row in ROWS.items():
        real = named(room, name)
        parameters = inspect.signature(getattr(real, "fun", real)).parameters.values()
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
def test_the_form_of_an_array_or_of_a_whole_number_does_not_matter(pair):
    row, trouble = ROWS[pair], []
    expected = result_arrays(call(row))
    for name, kind in row.kinds.items():
        given = row.arguments.get(name)
        if kind not in ARRAYS | WHOLE or given is None:
            continue
        for form, value in (small_integers(given) if kind in WHOLE else forms(given, lists=kind != "raw")).items():
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
