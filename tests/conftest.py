"""What the tests share: no test's figure style reaches another, and trained weights are there or skipped with a reason."""

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
