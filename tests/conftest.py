"""What the tests share: no test's figure style reaches another; trained weights and PyTorch are there, or it is said why not."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from fetch_weights import why_missing

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {".git", ".venv", ".venv-reference", "_build", "notebooks", "book", "tests"}


@pytest.fixture(autouse=True)
def own_figure_style():
    with plt.rc_context():
        yield
    plt.close("all")


@pytest.fixture(scope="session")
def trained_weights():
    """Ask for it where a test needs MiniLM or SmolLM2. With CI=true their absence is an error, elsewhere a skip."""
    missing = why_missing()
    if missing:
        pytest.skip(f"needs trained weights: {missing}")


def of_the_reference(name):
    """A framework, for tests marked `reference`, which `make reference-test` runs. With CI=true its absence is an error."""
    try:
        return importlib.import_module(name)
    except ImportError:
        left_out = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        left_out(f"{NAMES.get(name, name)} is not installed here: make reference-test has an environment of its own for it")


NAMES = {"torch": "PyTorch", "jax": "JAX"}


@pytest.fixture(scope="session")
def torch():
    return of_the_reference("torch")


@pytest.fixture(scope="session")
def transformers(torch):
    """Hugging Face's transformers, which asks for nothing from elsewhere."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    return of_the_reference("transformers")


@pytest.fixture(scope="session")
def jax():
    return of_the_reference("jax")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """A wheel built from a copy of the checkout, so that no build folder is left behind in it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, ignore=lambda _, names: [n for n in names if n in LEFT_OUT or n.endswith(".egg-info")])
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", folder, copy]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"no wheel can be built from the checkout:\n{done.stderr[-2000:]}"
    return next(folder.glob("*.whl"))
