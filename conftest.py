"""Set before any test runs: the surroundings in which the notebooks were executed, and eyes for nbval."""

from pathlib import Path

import compare_pictures
from kernel_env import set_kernel_env

set_kernel_env()


def pytest_configure(config):
    if config.getoption("nbval", False):
        compare_pictures.install()
        rules = Path(__file__).with_name("nbval_sanitize.cfg")
        config.option.nbval_sanitize_with = config.option.nbval_sanitize_with or str(rules)
