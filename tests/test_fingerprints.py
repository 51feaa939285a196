"""A fingerprint changes with what a function's result depends on, and with nothing else."""

import functools
import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

from attn_utils.fingerprints import fingerprint, modules_of_attn_utils, reads, with_imports

BASE = '''
"""Words."""
import math
from functools import cache
import numpy as np
from attn_utils.graying import svd_graying

WIDTH = 3
SIZES = {"a": 1, "b": np.arange(3)}
TWIN_1, TWIN_2, TWIN_3 = 1, 2, 1
UNREAD = 5

def helper(x):
    return x * WIDTH

@cache
def table(n):
    return [n] * 2

FUNCTIONS = {
    "one": helper,
    "two": lambda x: x + 1 if x in {"a", "b", "c", "d"} else max(x + 1, *[y + 5 for y in [x]]),
}

def make(inner):
    def enclosed(x):
        return inner * x
    return enclosed

enclosed = make(4)

def run(seed, more=2):
    """What it does."""
    from attn_utils import softmax
    values = [helper(seed) for _ in table(2)]  # a comment
    f = FUNCTIONS["two"]
    return math.sqrt(sum(values)) + enclosed(f(more)) + SIZES["b"].sum() + TWIN_1 + TWIN_2 + TWIN_3
'''


@pytest.fixture
def of(tmp_path, monkeypatch):
    """Fingerprint of run() in a module with this text; what was imported under the name before is forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    versions = iter(range(1000))

    def of(old="", new="", name="run", **options):
        assert old in BASE
        module_name = f"notebook_{next(versions)}"
        (tmp_path / f"{module_name}.py").write_text(BASE.replace(old, new, 1) if old else BASE)
        spec = importlib.util.spec_from_file_location(module_name, tmp_path / f"{module_name}.py")
        module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return fingerprint(getattr(module, name), **options)

    yield of
    for name in [name for name in sys.modules if name.startswith("notebook_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "old, new",
    [
        ("x * WIDTH", "x + WIDTH"),
        ("WIDTH = 3", "WIDTH = 3.0"),
        ('"a": 1', '"a": 2'),
        ("np.arange(3)", "np.arange(3.0)"),
        ("np.arange(3)", "np.arange(3)[::-1]"),
        ("np.arange(3)", "[0, 1, print]"),
        ("1, 2, 1", "1, 2, 2"),  # one value under two names
        ("1, 2, 1", "1, 1, 2"),
        ("[n] * 2", "[n] * 3"),
        ("else max(x + 1", "else max(x + 2"),
        ("y + 5", "y - 5"),
        ('"c", "d"', '"c", "e"'),
        ("else max(", "else min("),
        ("    \"one\": helper,\n", "    \"one\": print,\n"),
        ("make(4)", "make(5)"),
        ("inner * x", "inner + x"),
        ("more=2", "more=3"),
        ("math.sqrt", "math.cbrt"),
        ("for _ in table(2)]", "for _ in table(3)]"),
        ("import softmax", "import softmax, svd_graying"),
        ("import softmax", "import softmax\n    import json"),
        ("import math\n", "import cmath as math\n"),
    ],
)
def test_it_changes_with(of, old, new):
    assert of() != of(old, new)


@pytest.mark.parametrize(
    "old, new",
    [
        ("", ""),
        ("  # a comment", ""),
        ("lambda x: x + 1 if", "lambda x: (\n      x + 1) if"),
        ('    """What it does."""\n', ""),
        ("UNREAD = 5", "UNREAD = 6"),
        ("helper(seed) for", "helper( seed )  for"),
        ('"""Words."""', '"""Other words."""\n\n\n'),
    ],
)
def test_it_does_not_change_with(of, old, new):
    assert of() == of(old, new)


def test_a_version_stands_for_what_is_not_seen(of):
    assert len({of(), of(version="1"), of(version="2")}) == 3


def test_what_cannot_be_compared_is_named(of):
    with pytest.raises(ValueError, match="'SIZES', which run reads.*version="):
        of("SIZES = {", "class Own: sum = lambda self: 1\nSIZES = Own()\n_ = {")
    assert of("SIZES = {", "class Own: sum = lambda self: 1\nSIZES = Own()\n_ = {", version="1") != of(version="1")


def test_it_is_the_same_in_another_process(tmp_path):
    """The order of a set differs between processes."""
    (tmp_path / "notebook_x.py").write_text(BASE)
    script = "import notebook_x; from attn_utils.fingerprints import fingerprint; print(fingerprint(notebook_x.run))"
    found = set()
    for seed in "123":
        surroundings = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", script], env=surroundings, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1


def test_partial_counts_its_arguments():
    one, two, three = (functools.partial(pow, *arguments) for arguments in ((2,), (3,), (2, 3)))
    assert len({fingerprint(one), fingerprint(two), fingerprint(three)}) == 3
    assert fingerprint(one) == fingerprint(functools.partial(pow, 2))


def test_the_code_of_attn_utils_counts_with_all_that_it_imports(monkeypatch):
    """A change in a module that only an imported one imports is seen; one in a module beside it is not."""
    import attn_utils.fingerprints as module
    from attn_utils.transformer import transformer

    imported = with_imports(["attn_utils.transformer"])
    assert {"attn_utils.gradients", "attn_utils.weightings"} < set(imported)
    assert "attn_utils.claims" not in imported
    before, source = fingerprint(transformer), module.module_source
    for name, changes in (("attn_utils.weightings", True), ("attn_utils.claims", False)):
        with monkeypatch.context() as patch:
            patch.setattr(module, "module_source", lambda each, name=name: "other" if each == name else source(each))
            assert (fingerprint(transformer) != before) == changes


def test_the_package_itself_counts_as_all_of_it():
    import attn_utils

    found = modules_of_attn_utils(attn_utils)
    assert {"attn_utils.weightings", "attn_utils.pretrained", "attn_utils.checks"} < set(found)
    assert set(found) <= set(with_imports(found))


def test_primitives_of_autograd_count_as_the_module_that_made_them():
    from attn_utils import gradients

    for primitive in (gradients.cross_entropy, gradients.softmax, gradients.linear):
        assert modules_of_attn_utils(primitive) == ["attn_utils.gradients"]


def test_reads_looks_into_functions_of_ones_own_only():
    names = {name for name, _ in reads(textwrap.dedent)}
    assert names == {"dedent"}
    assert {"BASE", "helper_of_this_test"} <= {name for name, _ in reads(lambda: helper_of_this_test())}


def helper_of_this_test():
    return BASE
