"""What the set-up cell of every notebook calls: install what is missing, and only that."""

import importlib.util
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

# Import name -> requirement. tests/test_install.py keeps it equal to pyproject.toml.
REQUIREMENTS = {
    "numpy": "numpy>=2.0",
    "matplotlib": "matplotlib>=3.9",
    "scipy": "scipy>=1.13",
    "gensim": "gensim>=4.4",
    "ipywidgets": "ipywidgets>=8.1",
    "autograd": "autograd>=1.8",
    "plotly": "plotly>=6.0",
    "anywidget": "anywidget>=0.9",
    "sklearn": "scikit-learn>=1.5",
    "safetensors": "safetensors>=0.5",
    "gguf": "gguf>=0.17",
    "tokenizers": "tokenizers>=0.20",
    "cloudpickle": "cloudpickle>=3.0",
}


def install_missing(requirements=REQUIREMENTS):
    """Install with pip those packages that cannot be found; never touch NumPy or SciPy.

    requirements   dict from import name to pip requirement

    Returns the list of requirements that were installed, or None (so that the set-up cell shows nothing).
    Raises RuntimeError, with pip's own last words, when pip fails. What is there already is
    neither upgraded nor replaced, so a running Colab kernel needs no restart.
    """
    missing = [line for name, line in requirements.items() if importlib.util.find_spec(name) is None]
    if missing:
        _pip_install(missing)
        importlib.invalidate_caches()
    return missing or None


def _pip_install(missing):
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text("\n".join(_pins()))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(pins), *missing]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"pip could not install {', '.join(missing)}. Is there a network? Install them by hand, restart the kernel "
            f"and run this cell again. pip said:\n{done.stderr.strip()[-600:]}"
        )


def _pins():
    """Constraints that keep NumPy and SciPy exactly as they are."""
    for name in ("numpy", "scipy"):
        try:
            yield f"{name}=={metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
