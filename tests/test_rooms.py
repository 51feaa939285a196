"""attn_utils is a house: each idea has a room, a room's private names stay in it, and imports run downwards only."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import attn_utils
from attn_utils import gradients, norms, weightings

ROOT = Path(attn_utils.__file__).parent
ROOMS = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(ROOT.rglob("*.py"))}
LONGEST = 400  # lines; a longer file usually holds two ideas


def imported(path):
    """(module of attn_utils, name) for every import of our own in a file, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attn_utils":
            yield from ((node.module, alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.startswith("attn_utils."))


def room_of(module, name):
    """The room that `from module import name` leads to: a submodule where there is one of that name."""
    whole = f"{module}.{name}".removeprefix("attn_utils.")
    inside = module.removeprefix("attn_utils").removeprefix(".")
    return whole if whole in ROOMS else f"{inside}.__init__" if f"{inside}.__init__" in ROOMS else inside


def test_no_room_takes_a_private_name_of_another():
    taken = [f"{room} takes {name} from {module}" for room, path in ROOMS.items() for module, name in imported(path)
             if name and name.startswith("_")]  # fmt: skip
    assert not taken


@pytest.mark.parametrize("folder", ["tests", "tools", "benchmarks"])
def test_private_names_stay_in_the_library(folder):
    """A test that reaches into a room's private names holds on to how the room does its work."""
    taken = [f"{path.name} takes {name} from {module}" for path in sorted((ROOT.parent / folder).rglob("*.py"))
             for module, name in imported(path) if name and name.startswith("_")]  # fmt: skip
    assert not taken


def test_imports_run_one_way():
    above = {room: {room_of(*found) for found in imported(path)} - {room, ""} for room, path in ROOMS.items()}
    list(graphlib.TopologicalSorter(above).static_order())  # CycleError names the rooms that go round in a circle


def test_no_room_bears_the_name_of_an_exported_function():
    assert not {room.split(".")[-1] for room in ROOMS} & set(attn_utils.__all__)


def test_every_exported_name_is_there():
    for name in attn_utils.__all__:
        assert getattr(attn_utils, name) is not None
        assert name in dir(attn_utils)
    with pytest.raises(AttributeError, match="no_such_name"):
        attn_utils.no_such_name  # noqa: B018


def test_a_room_is_reached_through_the_package():
    code = "import attn_utils; print(attn_utils.spectra.stable_rank.__name__, attn_utils.pretrained.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "stable_rank attn_utils.pretrained\n", done.stderr


def test_rooms_are_small():
    lengths = {room: len(path.read_text("utf8").splitlines()) for room, path in ROOMS.items()}
    long = {room: n for room, n in lengths.items() if n > LONGEST and not room.startswith("checks.")}
    assert not long, "a room over 400 lines usually holds two ideas"


def test_importing_loads_nothing_but_numpy():
    code = "import sys, attn_utils; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    before = set(subprocess.run([sys.executable, "-c", code.replace(", attn_utils", "")], capture_output=True, text=True,
                                check=True).stdout.split())  # fmt: skip
    after = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    new = {name for name in after - before if name not in sys.stdlib_module_names}
    assert new <= {"attn_utils", "numpy"}


def test_every_weighting_has_a_differentiable_twin():
    """The lists that tests and checks share name every function of their kind, so that a new one is tried at once."""
    assert set(weightings.WEIGHTINGS) == set(gradients.WEIGHTINGS)
    listed = {*weightings.WEIGHTINGS, "sink_softmax"}  # takes a sink as well: not a function of scores alone
    helpers = {"count_visible", "as_floating", "at_least_single", "check_axis", "whole_number"}
    public = {name for name, value in vars(weightings).items() if callable(value) and not name.startswith("_")}
    assert public - helpers == listed
    assert set(gradients.NORMS) == {name for name in vars(norms) if name.endswith("_norm")}


def test_what_is_no_name_is_no_attribute():
    """hasattr() must not stumble over a dotted name, as doctest and mock ask for it."""
    for name in ("nothing", "_private", "spectra.gap", "no.room", "", "softmax "):
        assert not hasattr(attn_utils, name)
