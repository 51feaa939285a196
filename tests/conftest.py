"""What the tests share: no test's figure style reaches another; trained weights and PyTorch are there, or it is said why not."""

import importlib
import os

import matplotlib.pyplot as plt
import pytest
from fetch_weights import why_missing


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


@pytest.fixture(scope="session")
def torch():
    """PyTorch, for tests marked `reference`, which `make reference-test` runs. With CI=true its absence is an error."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        left_out = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        left_out("PyTorch is not installed here: make reference-test has an environment of its own for it")
