"""The set-up cell that opens every notebook: its one template, and the repository's address."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "https://github.com/"
# Eight lines are all it may have. pip's words are caught, because not every front end shows what a child process
# prints. Where an environment is read-only, pip turns to the user's own folder, into which Python does not look if it
# was not there at the start: hence the last line's first half. What install_missing() needs does not import NumPy.
TEMPLATE = """\
# Finds attn_utils. Where this notebook stands alone (Colab), installs it and what else is missing.
import os, site, subprocess, sys; from importlib.util import find_spec
source = os.environ.get("ATTN_UTILS_SOURCE") or "{address}/archive/refs/heads/main.zip"
sys.path += [source] * os.path.isdir(source + "/attn_utils")  # a checkout is used as it stands
command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", source]
if not find_spec("attn_utils") and (done := subprocess.run(command, capture_output=True, text=True)).returncode:
    raise RuntimeError(done.stderr + "No pip: python -m ensurepip. May not write: use a venv. No network: connect.")
sys.path += [site.USER_SITE] * bool(site.ENABLE_USER_SITE); import attn_utils; attn_utils.install_missing()"""


def repository(root=ROOT):
    """OWNER/NAME as pyproject.toml has it."""
    project = tomllib.loads((Path(root) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].removeprefix(HOST)


def setup_cell(root=ROOT):
    """The text of the set-up cell, with the repository's address filled in."""
    return TEMPLATE.format(address=HOST + repository(root))


if __name__ == "__main__":
    print(setup_cell())
