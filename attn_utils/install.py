"""What the set-up cell of every notebook calls: install what is missing, and only that.

Nothing here imports more than Python's own library: it has to work before NumPy is there.
"""

import importlib.util
import re
import site
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)  # the Pythons that all requirements have wheels for

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

OWN_ENVIRONMENT = (
    "Make an environment of your own, and open the notebook from there: `python3 -m venv book-env`, "
    "`book-env/bin/python -m pip install jupyterlab`, `book-env/bin/python -m jupyterlab`."
)
# What pip says -> what to do about it; the first that fits.
REMEDIES = {
    r"externally[- ]managed": "This Python belongs to the operating system, which keeps others from installing into "
    f"it (PEP 668). {OWN_ENVIRONMENT} Where the machine is yours alone to break (a container), setting "
    "PIP_BREAK_SYSTEM_PACKAGES=1 lets pip install all the same.",
    r"Permission denied|Read-only file system|not writeable": "This environment cannot be written to. "
    f"{OWN_ENVIRONMENT} On a hub, you may also ask its administrator to install them.",
    r"No space left|Disk quota": "The disk is full. Free some space, and run this again.",
    r"connection broken by|from versions: none|[Tt]imed? ?out|name resolution|unreachable|Max retries": "Is there a "
    "network? Connect, and run this again.",
}
OTHERWISE = "Install by hand what is named here, restart the kernel, and run this again."


def install_missing(requirements=REQUIREMENTS):
    """Install with pip those packages that cannot be found; never touch NumPy or SciPy.

    requirements   dict from import name to pip requirement

    Returns the list of requirements that were installed, or None (so that the set-up cell shows nothing).
    Raises RuntimeError, saying what to do, when pip is missing or fails, when this Python is too old or too new, or
    when this user has no home folder.
    What is there already is neither upgraded nor replaced, so a running Colab kernel needs no restart.
    """
    if not isinstance(requirements, dict):
        raise ValueError(f"requirements is {requirements!r:.60}, expected a dict such as {{'numpy': 'numpy>=2.0'}}.")
    _check_home()
    missing = [line for name, line in requirements.items() if importlib.util.find_spec(name) is None]
    if missing:
        _check_python(missing)
        _pip_install(missing)
        _look_again()
    return missing or None


def check_pip(wanted):
    """Raise RuntimeError, saying how to get pip, where this Python has none."""
    if importlib.util.find_spec("pip") is None:
        raise RuntimeError(
            f"pip, which has to fetch {wanted}, is missing from this Python. Run `{sys.executable} -m ensurepip`, or "
            "what your tools have for it (conda install pip, uv pip install pip, apt-get install python3-pip), and "
            "then this again."
        )


def remedy(said):
    """What to do about pip's failure, in a sentence or two, from what pip said."""
    for pattern, advice in REMEDIES.items():
        if re.search(pattern, said):
            return advice
    return OTHERWISE.replace("restart the kernel", "choose Runtime, Restart session") if _on_colab() else OTHERWISE


def last_words(said):
    """The end of what pip said, whole lines of it."""
    kept = []
    for line in reversed(said.strip().splitlines()):
        if sum(map(len, kept)) + len(line) > 600:
            break
        kept.insert(0, line)
    return "\n".join(kept) or said.strip()[-600:]


def _on_colab():
    return "google.colab" in sys.modules


def _check_home():
    """gensim and Jupyter look for the user's home folder when they are imported, and stop where there is none."""
    try:
        Path.home()
    except RuntimeError as error:  # no HOME, and no entry for this user among the system's accounts
        raise RuntimeError(
            "this user has no home folder, which gensim and Jupyter look for. Set HOME to a folder that can be "
            "written to, such as HOME=/tmp/home, restart the kernel, and run this again."
        ) from error


def _check_python(missing):
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        here, oldest, newest = (".".join(map(str, v)) for v in (sys.version_info[:2], OLDEST, NEWEST))
        raise RuntimeError(
            f"this is Python {here}, for which not all of {', '.join(missing)} can be had (gensim is the last to "
            f"follow a new Python). Use a Python from {oldest} to {newest}."
        )


def _pip_install(missing):
    check_pip(", ".join(missing))
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text("\n".join(_pins()))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(pins), *missing]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"pip could not install {', '.join(missing)}. {remedy(done.stderr)} "
            f"pip said:\n{last_words(done.stderr)}"
        )


def _look_again():
    """Let this kernel find what pip has put into folders that were not there when it started.

    Where the environment is read-only, pip installs into the user's own folder, which Python looks into
    only if it existed at the start.
    """
    if site.ENABLE_USER_SITE:
        site.addsitedir(site.getusersitepackages())
    importlib.invalidate_caches()


def _pins():
    """Constraints that keep NumPy and SciPy exactly as they are."""
    for name in ("numpy", "scipy"):
        try:
            yield f"{name}=={metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
