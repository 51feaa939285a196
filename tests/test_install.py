"""import attn_utils is quick and harmless; install_missing installs what is missing and nothing else."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import attn_utils.install
from attn_utils import install_missing
from attn_utils.install import last_words, remedy

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


def test_a_python_that_is_too_new_is_named(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: pytest.fail("pip is asked"))
    monkeypatch.setattr(attn_utils.install, "NEWEST", (3, 10))
    with pytest.raises(RuntimeError, match=r"Python 3\.\d+.*no-such-module.*Use a Python from 3.11 to 3.10"):
        install_missing({"no_such_module": "no-such-module"})
    assert install_missing({"sys": "all-is-there"}) is None  # whoever built them all has no trouble


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(RuntimeError, match="no home folder.*Set HOME to a folder that can be written to"):
        install_missing()


def test_the_end_of_what_pip_said_is_quoted_in_whole_lines():
    assert last_words(" one\ntwo\n") == "one\ntwo"
    assert last_words("first\n" + "a" * 300 + "\n" + "b" * 300) == "a" * 300 + "\n" + "b" * 300
    assert last_words("a" * 1000) == "a" * 600


def test_on_colab_the_menu_is_named(monkeypatch):
    assert "kernel" in remedy("a conflict") and "Runtime" not in remedy("a conflict")
    monkeypatch.setitem(sys.modules, "google.colab", None)
    assert "Runtime, Restart session" in remedy("a conflict")


def test_the_supported_pythons_are_the_same_everywhere():
    oldest, newest = attn_utils.install.OLDEST, attn_utils.install.NEWEST
    versions = [f"3.{minor}" for minor in range(oldest[1], newest[1] + 1)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    assert project["requires-python"] == f">={versions[0]},<3.{newest[1] + 1}"
    script = (ROOT / "tools" / "setup_venv.sh").read_text("utf8")
    assert f"{oldest} <= sys.version_info[:2] <= {newest}" in script
    assert f"python: {versions}".replace("'", '"') in (ROOT / ".github/workflows/tests.yml").read_text("utf8")
    said = f"Python {', '.join(versions[:-1])} or {versions[-1]}"
    for page in ("README.md", "book/how-to-use.md", "tools/setup_venv.sh"):
        assert said in (ROOT / page).read_text("utf8"), f"{page} names other Pythons"
    assert "3.14" in (ROOT / "README.md").read_text("utf8"), "README does not say why a newer one is not enough"


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
