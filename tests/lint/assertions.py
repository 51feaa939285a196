"""Assertions: each can fail, and a figure has one that fails when the figure would look different."""

import ast

from .registry import CHAPTER, EVIDENCE, GUIDE, rule
from .syntax import BUILTINS, bound_by, call_name, functions, imported, names_in, reaches

SIZES = {"len"}  # calls, and the attributes of an array, that tell its size and no result
SIZE_ATTRIBUTES = {"shape", "size", "ndim", "dtype"}


def asserts(cell):
    return [node for node in ast.walk(cell.tree()) if is_assert(node)]


def is_assert(node):
    name = call_name(node) or ""
    return isinstance(node, ast.Assert) or name.startswith("assert_")


def claims(node):
    """The conditions that an assertion makes: `assert a and b` makes two."""
    if not isinstance(node, ast.Assert):
        return [node]
    is_and = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
    return node.test.values if is_and else [node.test]


def always_holds(test):
    """True for `True`, `(x, "text")`, `x == x`, `len(x) >= 0`, `x > 1 or True`, `len("abc") == 3`, ..."""
    if isinstance(test, ast.BoolOp):
        hold = any if isinstance(test.op, ast.Or) else all
        return hold(always_holds(part) for part in test.values)
    if isinstance(test, ast.Tuple | ast.List | ast.Dict | ast.JoinedStr | ast.Lambda):
        return True
    if isinstance(test, ast.Compare):
        return compares_nothing(test)
    if isinstance(test, ast.Call) and len(test.args) > 1 and call_name(test) not in ("isinstance", "hasattr"):
        return ast.dump(test.args[0]) == ast.dump(test.args[1])
    return is_constant(test)


def is_constant(node):
    """Nothing in it was computed before: no name but those of Python itself."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names <= BUILTINS


def compares_nothing(test):
    sides = [ast.dump(side) for side in (test.left, *test.comparators)]
    is_length = call_name(test.left) == "len" and isinstance(test.ops[0], ast.GtE)
    return is_constant(test) or len(set(sides)) < len(sides) or (is_length and sides[1] == ast.dump(ast.Constant(0)))


def is_on_sizes(test):
    """True for a comparison of lengths and shapes alone: `len(x) == len(y)`, `x.shape == (3, 3)`."""
    if isinstance(test, ast.UnaryOp):
        return is_on_sizes(test.operand)
    if not isinstance(test, ast.Compare):
        return False
    sides = (test.left, *test.comparators)
    return any(map(is_size, sides)) and all(is_size(side) or is_constant(side) for side in sides)


def is_size(node):
    if isinstance(node, ast.Subscript):
        return is_size(node.value)
    return call_name(node) in SIZES or getattr(node, "attr", None) in SIZE_ATTRIBUTES


@rule()
def assertions_can_fail(nb):
    do = "Assert something that a wrong result would break"
    return [
        nb.say(cell, f"an assertion that always holds: {ast.unparse(node)!r}", do)
        for cell in nb.code
        for node in asserts(cell)
        if always_holds(node.test if isinstance(node, ast.Assert) else node)
    ]


@rule(CHAPTER, EVIDENCE, GUIDE)
def results_are_asserted(nb):
    """Somewhere a result is asserted: not a length or a shape, which a wrong result has as well."""
    tests = [test for cell in nb.taught for node in asserts(cell) for test in claims(node)]
    if any(not (always_holds(test) or is_on_sizes(test)) for test in tests):
        return []
    found = f"{len(tests)} assertions, none of them on a result" if tests else "no assertion"
    return [nb.say(None, found, "Assert what the text says; lengths and shapes stay the same when results are wrong")]


@rule()
def figures_are_asserted(nb):
    """An assertion of a result, in the cell or in the next, reads what the figure is drawn from.

    Or what was made from that: in its own cell; in a chapter of the old form, anywhere.
    """
    found, known, modules = [], functions(nb), imported(nb)
    for cell, after in zip(nb.code, [*nb.code[1:], None], strict=True):
        if not cell.has_figure():
            continue
        drawn = reaches(names_in(cell.tree()) | bound_by(cell.tree()), known) - modules - DRAWING
        near = [cell, after] if after else [cell]
        if any(stands_for(one, made_from(drawn, [one] if nb.is_two_tier else nb.code, known), known) for one in near):
            continue
        some = ", ".join(sorted(drawn - set(known))[:5])
        do = f"Assert what it shows, here or in the next code cell, on the data behind it ({some})"
        found.append(nb.say(cell, "a figure that no assertion on its data stands for", do))
    return found


DRAWING = {"ax", "axes", "fig", "figure", "draw", "describe", "caption", "label"}


def made_from(names, cells, known):
    """The names, with those that statements of these cells make from them."""
    made = set(names)
    for statement in (statement for cell in cells for statement in cell.tree().body):
        if not isinstance(statement, ast.FunctionDef) and reaches(names_in(statement), known) & made:
            made |= bound_by(statement)
    return made


def stands_for(cell, data, known):
    """Whether some assertion of a cell would break with the data."""
    tests = [test for node in asserts(cell) for test in claims(node) if not (always_holds(test) or is_on_sizes(test))]
    return any(reaches(names_in(test), known) & data for test in tests)
