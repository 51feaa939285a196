"""Set before any test runs: the surroundings in which the notebooks were executed, and eyes for nbval."""

from pathlib import Path

from kernel_env import set_kernel_env

set_kernel_env()  # before NumPy is loaded: BLAS looks only once how many threads it may have

import compare_pictures  # noqa: E402


def pytest_configure(config):
    if config.getoption("nbval", False):
        compare_pictures.install()
        rules = Path(__file__).with_name("nbval_sanitize.cfg")
        config.option.nbval_sanitize_with = config.option.nbval_sanitize_with or str(rules)
