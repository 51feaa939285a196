"""What a function's result depends on besides its arguments: the code and the values that it reads, as one hash."""

import ast
import dis
import functools
import hashlib
import importlib
import inspect
import sys
import sysconfig
import textwrap
import types
from importlib import metadata
from pathlib import Path

import numpy as np

from attn_utils.records import to_text

READS_A_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # the last from Python 3.12 on
PACKAGE = Path(__file__).parent
FOREIGN = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def fingerprint(function, version=None):
    """A hash that changes with the code of a function and with what that code reads.

    function   a function written in Python, or functools.partial of one
    version    any text; stands for what cannot be seen from the code, such as a file

    It covers the function's source (comments and docstrings do not count), its defaults, and the functions, numbers,
    strings and arrays that it reads by name, these again with what they read; for what comes from attn_utils, the
    module with all it imports; for other packages their version. Raises ValueError naming what it cannot compare,
    such as an open file, unless a version stands for it.
    """
    parts = [f"version {version!r}"]
    for name, value in reads(function):
        try:
            parts.append(f"{name} = {_describe(value)}")
        except (TypeError, OSError, SyntaxError, ImportError, AttributeError) as error:
            if version is None:
                raise ValueError(
                    f"{name!r}, which {name_of(function)} reads, cannot be compared with what it was ({error}). Make "
                    "it inside the function, or say version=..., a text that you change when its content changes."
                ) from error
            parts.append(f"{name} is a {type(value).__name__}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def name_of(function):
    """What a function is called, also behind functools.partial."""
    function = function.func if isinstance(function, functools.partial) else function
    return getattr(function, "__name__", type(function).__name__)


def reads(function):
    """Pairs (name, value) of all that a function reads by name, itself first, through the functions of its kind.

    Functions of installed packages and of attn_utils are in the list, but are not looked into.
    """
    found, seen, waiting = [], set(), [(name_of(function), function)]
    while waiting:
        name, value = waiting.pop(0)
        found.append((name, value))  # one value under two names stands there twice, and is looked into once
        if id(value) not in seen:
            seen.add(id(value))
            waiting += _read_by(value)
    return found


def _read_by(value):
    """Pairs (name, value) that a value of the user's own leads to."""
    if type(value) in (list, tuple, dict) and not _is_plain(value):  # such as a table of functions
        return [(f"{name!r}", item) for name, item in (value.items() if type(value) is dict else enumerate(value))]
    if modules_of_attn_utils(value):
        return []
    if isinstance(value, functools.partial):
        arguments = [(f"argument {i}", item) for i, item in enumerate(value.args)]
        return [(name_of(value), value.func), *arguments, *sorted(value.keywords.items())]
    if hasattr(value, "__wrapped__") and not _is_foreign(value):  # functools.cache, functools.wraps
        return [(name_of(value), value.__wrapped__)]
    if not isinstance(value, types.FunctionType) or _is_foreign(value):
        return []
    defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    enclosed = [(name, cell.cell_contents) for name, cell in cells if _is_filled(cell)]
    named = [(name, value.__globals__[name]) for name in _global_names(value.__code__) if name in value.__globals__]
    return [(f"default {i}", item) for i, item in enumerate(defaults)] + enclosed + named


def _is_plain(container):
    items = container.values() if type(container) is dict else container
    return all(item is None or type(item) in (bool, int, float, str) for item in items)


def _is_filled(cell):
    """Whether the enclosing function has already given its name a value."""
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _global_names(code):
    """Names that code reads from its module, in order; nested functions included."""
    names = [step.argval for step in dis.get_instructions(code) if step.opname in READS_A_GLOBAL]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _global_names(constant)
    return sorted(set(names))


# ----------------------------------------------------------------- one value as text


def _describe(value):
    """A text that is the same exactly when the value is; an error where there is none."""
    if modules := modules_of_attn_utils(value):
        return "\n".join(f"{name} {module_source(name)}" for name in with_imports(modules))
    if hasattr(value, "__name__") and _is_foreign(value):
        return _foreign_text(value)
    if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>":  # its source is lines, not itself
        return _code_text(value.__code__)
    if isinstance(value, types.FunctionType):
        return "\n".join([_source(value), *(_describe(found) for found in _imports_inside(value))])
    if isinstance(value, (types.ModuleType, type)):
        return _source(value)
    if isinstance(value, functools.partial) or hasattr(value, "__wrapped__"):
        return type(value).__name__  # what is inside stands in the list, too
    if type(value) in (list, tuple, dict) and not _is_plain(value):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":  # as text, images would take minutes
        return f"{value.dtype.str} {value.shape} {hashlib.sha256(np.ascontiguousarray(value)).hexdigest()}"
    return to_text(value)


def _code_text(code):
    """What compiled code does. It differs between versions of Python, so that a lambda's results are made anew then."""
    constants = [
        _code_text(each) if isinstance(each, types.CodeType) else _constant_text(each) for each in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"


def _constant_text(constant):
    return str(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)


def _foreign_text(value):
    """Name and version of what comes with Python or an installed package."""
    if isinstance(value, types.ModuleType):
        return f"{value.__name__} {_version(value.__name__)}"
    module = getattr(value, "__module__", None) or "numpy"  # a ufunc has none
    return f"{module}.{value.__name__} {_version(module)}"


@functools.cache
def _version(module):
    try:
        return metadata.version(module.partition(".")[0])
    except metadata.PackageNotFoundError:
        return "of Python" if module.partition(".")[0] in sys.stdlib_module_names else "of unknown version"


def _is_foreign(value):
    """Whether a value comes with Python or an installed package, so that its version tells all."""
    if isinstance(value, types.ModuleType):
        module = value
    else:
        module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
    file = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__":
        return False
    return file is None or file.startswith(FOREIGN) or "site-packages" in Path(file).parts


def _source(value):
    return ast.unparse(_without_docstrings(_tree(value)))


def _tree(value):
    return ast.parse(textwrap.dedent(inspect.getsource(value)))


def _without_docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _imports_inside(function):
    """What the import statements in a function's body bring: modules, or names of attn_utils."""
    found = []
    for node in ast.walk(_tree(function)):
        if isinstance(node, ast.Import):
            found += [importlib.import_module(alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise TypeError("a relative import inside a function")
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            from_package = node.module == "attn_utils"  # where names stand for modules; elsewhere the module tells all
            found += [getattr(module, alias.name) for alias in node.names] if from_package else [module]
    return found


# ------------------------------------------------------------------ modules of attn_utils


def modules_of_attn_utils(value):
    """Names of the modules of this package that a value is, or comes from; empty for any other value."""
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    if name == "attn_utils":  # the package itself: anything of it may be read
        rooms = [path.stem for path in PACKAGE.glob("[!_]*.py")] + [path.parent.name for path in PACKAGE.glob("*/*.py")]
        return sorted({f"attn_utils.{room}" for room in rooms})
    if isinstance(name, str) and name.startswith("attn_utils."):
        return [name]
    if isinstance(value, types.ModuleType) or not callable(value) or not hasattr(value, "__name__"):
        return []
    # autograd's primitives say that they come from autograd: look where one of this name was made
    rooms = [(room, module) for room, module in list(sys.modules.items()) if room.startswith("attn_utils.")]
    holders = [room for room, module in rooms if vars(module).get(value.__name__) is value]
    return sorted(room for room in holders if value.__name__ in _made_in(room))


@functools.cache
def _made_in(room):
    """Names that a module defines or assigns at its top, not those that it imports."""
    body = _module_tree(room).body
    assigned = [target.id for node in body for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)]
    return {*assigned, *(node.name for node in body if isinstance(node, ast.FunctionDef))}


def with_imports(names):
    """These modules and all of attn_utils that they import, in alphabetical order."""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found and _path(name) is not None:
            found.add(name)
            waiting += _imported_by(name)
    return sorted(found)


@functools.cache
def _imported_by(module):
    """Names of the modules of attn_utils that one of them imports, anywhere in its code."""
    names = []
    for node in ast.walk(_module_tree(module)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return sorted({name for name in names if name.startswith("attn_utils.") and _path(name) is not None})


@functools.cache
def module_source(name):
    """A hash of a module's code, comments and docstrings left out."""
    return hashlib.sha256(ast.unparse(_without_docstrings(_module_tree(name))).encode()).hexdigest()


def _module_tree(name):
    return ast.parse(_path(name).read_text("utf8"))


def _path(name):
    """The file of a module of attn_utils, or None."""
    file = PACKAGE.joinpath(*name.split(".")[1:])
    candidates = (file.with_suffix(".py"), file / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)
