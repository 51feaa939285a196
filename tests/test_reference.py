"""The comparisons with PyTorch: in an environment of their own, left out of `make test`, never left out in silence."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WITHOUT = "import sys, pytest; sys.modules['torch'] = None; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.mark.parametrize("ci, code, told", [("true", 1, r"^\d+ errors|, \d+ errors"), ("", 0, r"^\d+ skipped")])
def test_without_pytorch_they_fail_in_ci_and_are_skipped_elsewhere(ci, code, told):
    command = [sys.executable, "-c", WITHOUT, "-q", "-m", "reference", "-p", "no:cacheprovider", "tests/test_attention.py"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"CI": ci}, capture_output=True, text=True)
    assert done.returncode == code and re.search(told, done.stdout, re.M), done.stdout
    assert "passed" not in done.stdout
    assert "make reference-test" in done.stdout


ASK = {"torch", "jax", "transformers", "saved"}  # fixtures that take a package of the reference; saved is made by one


def test_whoever_asks_for_a_package_of_the_reference_is_marked():
    """Without the mark `make test` would skip it, and `make reference-test` would not run it."""
    asking = unmarked = 0
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                asks = not ASK.isdisjoint(argument.arg for argument in node.args.args)
                marked = any("mark.reference" in ast.unparse(one) for one in node.decorator_list)
                asking, unmarked = asking + asks, unmarked + (asks != marked)
    assert asking >= 4 and unmarked == 0


def test_the_book_stays_free_of_pytorch():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    extras = project["optional-dependencies"]
    holding = {name for name, lines in extras.items() if any(line.startswith("torch") for line in lines)}
    assert holding == {"reference"} and not any(line.startswith("torch") for line in project["dependencies"])
