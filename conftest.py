"""Set before any test runs: the surroundings in which the notebooks were executed, and eyes for nbval."""

import compare_pictures
from kernel_env import set_kernel_env

set_kernel_env()


def pytest_configure(config):
    if config.getoption("nbval", False):
        compare_pictures.install()
