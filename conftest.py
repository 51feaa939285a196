"""Set before any test runs: the surroundings in which the notebooks were executed."""

from kernel_env import set_kernel_env

set_kernel_env()
