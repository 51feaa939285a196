"""The surroundings in which every notebook runs, the same in `make notebooks` and in the tests."""

import atexit
import os
import shutil
import tempfile


def set_kernel_env():
    """One BLAS thread, this environment's own kernel, and no settings of the reader's."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel of .venv, not one in the home folder
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    for name in ("JUPYTER_PATH", "MPLBACKEND"):
        os.environ.pop(name, None)
    if "IPYTHONDIR" not in os.environ:  # start-up files of the reader would change outputs
        folder = tempfile.mkdtemp(prefix="ipython-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["IPYTHONDIR"] = folder
