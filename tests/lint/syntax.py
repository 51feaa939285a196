"""What the source of a cell does, read from its syntax tree: calls, names, values."""

import ast
import builtins
from functools import cache

BUILTINS = set(dir(builtins))


def walk_run(tree):
    """The nodes that run when the cell runs: not the bodies of functions that it defines."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            yield from walk_run(node)


def call_name(node):
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def calls(cell, *names):
    """The calls of these functions that run when the cell runs."""
    return [node for node in walk_run(cell.tree()) if call_name(node) in names]


def calls_anywhere(cell, *names):
    """The calls of these functions in a cell, also those in the bodies of functions that it defines."""
    return [node for node in ast.walk(cell.tree()) if call_name(node) in names]


def argument(call, position, name):
    """An argument of a call by its place, where it has one, or by its name, or None."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == name]
    placed = [] if position is None else call.args[position : position + 1]
    return (named or placed or [None])[0]


@cache
def names_in(node):
    """The names that an expression or a statement reads, without those of Python itself."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return found - BUILTINS


@cache
def bound_by(statement):
    """The names that a statement gives a value to."""
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def imported(nb):
    """The names of modules and of imported things: nothing that a notebook computed."""
    nodes = [node for cell in nb.code for node in ast.walk(cell.tree())]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}


def functions(nb):
    """The functions that a notebook defines: name -> node. A lambda that is given a name is one."""
    found = {}
    for node in (node for cell in nb.code for node in ast.walk(cell.tree())):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            found |= {name: node.value for name in bound_by(node)}
    return found


def reaches(names, known):
    """The names, with those that the notebook's own functions among them read."""
    found, new = set(), set(names)
    while new:
        found |= new
        new = {name for one in new & known.keys() for name in names_in(known[one])} - found
    return found


def given_to(names, cell):
    """The expressions that a cell gives to these names, with = or +=."""
    nodes = [node for node in ast.walk(cell.tree()) if isinstance(node, ast.Assign | ast.AugAssign)]
    return [node.value for node in nodes if bound_by(node) & set(names)]


def constant_texts(node):
    """The parts of a string expression that are written down, not computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [text for part in node.values for text in constant_texts(part)]
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Constant):
        return [str(node.value.value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return constant_texts(node.left) + constant_texts(node.right)
    return []


def is_computed(node):
    """Whether a string expression holds anything that is not written down."""
    if isinstance(node, ast.Constant):
        return False
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) and is_computed(part.value) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return is_computed(node.left) or is_computed(node.right)
    return True
