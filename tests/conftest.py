"""What every test shares: no test's figure style reaches another."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def own_figure_style():
    with plt.rc_context():
        yield
    plt.close("all")
