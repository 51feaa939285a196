"""A reader's machine, who opens one notebook on Colab: an empty folder, no network, a Python without attn_utils.

That Python is a new environment, which sees the packages of the current one but not those that are installed
editable: attn_utils is not there, and the set-up cell has to find it.
"""

import contextlib
import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

from attn_utils.fetch import cache_folder

ROOT = Path(__file__).resolve().parent.parent
NOWHERE = "http://127.0.0.1:9"  # nothing listens there
KERNEL = "alone"
OFFLINE = """
import socket
find = socket.getaddrinfo
def refuse(host, *args, **kwargs):
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        raise OSError(f"this test has no network, and something asked for {host}")
    return find(host, *args, **kwargs)
socket.getaddrinfo = refuse
"""


class Reader:
    """Made inside a folder: `env`, the Python; `home`; and `work`, which is empty."""

    def __init__(self, folder):
        self.folder, self.home, self.work = folder, folder / "home", folder / "work"
        for made in (self.home, self.work):
            made.mkdir()
        venv.create(folder / "env", with_pip=False, symlinks=True)
        self.python = str(folder / "env" / "bin" / "python")
        [site] = (folder / "env" / "lib").glob("python*/site-packages")
        # A folder added by a .pth file has no say over .pth files of its own: editable installs stay out.
        paths = sysconfig.get_paths()
        (site / "current.pth").write_text("\n".join(dict.fromkeys([paths["purelib"], paths["platlib"]])))
        (site / "sitecustomize.py").write_text(OFFLINE)

    def environment(self, source=ROOT):
        """The variables of the reader's processes."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JUPYTER", "PIP_"))}
        proxies = {key: NOWHERE for key in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
        own = {"HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache"), "IPYTHONDIR": str(self.home / "ipy")}
        # Without the cache of fonts matplotlib would look through all fonts of the machine first.
        own |= {"MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))}
        own |= {"ATTN_UTILS_CACHE": str(cache_folder())}  # the trained weights, fetched before: 177 MB
        own |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # as kernel_env.py has it, whose BLAS threads are kept
        return kept | proxies | own | {"ATTN_UTILS_SOURCE": str(source), "PIP_NO_INDEX": "1", "PYTHONNOUSERSITE": "1"}

    def run(self, code, source=ROOT):
        """Run a few lines in the reader's folder and Python."""
        command = [self.python, "-c", code]
        return subprocess.run(
            command, cwd=self.work, env=self.environment(source), capture_output=True, text=True, timeout=120
        )

    @contextlib.contextmanager
    def at_the_desk(self):
        """Inside the block a kernel named KERNEL can be started, which is the reader's."""
        spec = self.folder / "jupyter" / "kernels" / KERNEL
        spec.mkdir(parents=True)
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
        before = dict(os.environ)
        surroundings = self.environment() | {"JUPYTER_PATH": str(self.folder / "jupyter")}
        try:
            os.environ.clear()
            os.environ.update(surroundings)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
