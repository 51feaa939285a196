"""import attn_utils is quick and harmless; install_missing installs what is missing and nothing else."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import attn_utils.install
from attn_utils import install_missing

ROOT = Path(__file__).parents[1]


def test_requirements_equal_those_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    assert sorted(attn_utils.install.REQUIREMENTS.values()) == sorted(project["dependencies"])


def test_the_version_stands_once_in_each_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    assert attn_utils.__version__ == project["version"]


def test_nothing_missing_installs_nothing(monkeypatch):
    monkeypatch.setattr(attn_utils.install, "_pip_install", lambda missing: pytest.fail(f"installs {missing}"))
    assert install_missing() is None  # nothing to show below the set-up cell


def test_only_what_is_missing_is_installed_and_numpy_is_pinned(monkeypatch):
    calls = []

    def run(command, **options):
        pins = Path(command[command.index("--constraint") + 1]).read_text()
        calls.append((command, pins))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert install_missing({"numpy": "numpy>=2.0", "no_such_module": "no-such-module>=1"}) == ["no-such-module>=1"]
    ((command, pins),) = calls
    assert command[-1] == "no-such-module>=1" and not any(word.startswith("numpy") for word in command)
    assert f"numpy=={metadata.version('numpy')}" in pins and f"scipy=={metadata.version('scipy')}" in pins


def test_a_failure_of_pip_is_said_clearly(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "no route to host")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(RuntimeError, match="(?s)no-such-module.*no route to host"):
        install_missing({"no_such_module": "no-such-module"})


HARMLESS = """
import sys, warnings, random, os
import numpy as np
filters, state, legacy = list(warnings.filters), random.getstate(), np.random.get_state()[1].copy()
import socket
socket.socket.connect = None
import attn_utils
heavy = {"gensim", "ipywidgets", "plotly", "scipy", "autograd", "matplotlib", "IPython", "PIL", "pyarrow"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert warnings.filters == filters and random.getstate() == state
assert (np.random.get_state()[1] == legacy).all()
"""


def test_importing_has_no_side_effect():
    subprocess.run([sys.executable, "-c", HARMLESS], check=True, cwd=ROOT)
