"""Killing a build, a download or a comparison leaves no child running, and the lock is free."""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from attn_utils.lifeline import lifeline, python

HOLD = """
import fcntl, os, time
alive = open(os.environ["ALIVE"], "w")
fcntl.flock(alive, fcntl.LOCK_EX)
open(os.environ["ALIVE"] + ".now", "w").close()
time.sleep(600)
"""
BUILD = """
import build_book
from pathlib import Path
build_book.BUILD = Path(FOLDER)
build_book.NEXT, build_book.LOG, build_book.JUPYTER_BOOK = build_book.BUILD / "next", build_book.BUILD / "log", HOLD
build_book.main()
"""
DOWNLOAD = """
from attn_utils import fetch
fetch.PIP = HOLD
fetch.fetch_files(fetch.MINILM)
"""


COMPARE = """
import nbformat, runpy, sys
from pathlib import Path
path = Path(FOLDER) / "sleeps.ipynb"
nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(HOLD)]), path)
sys.argv[1:] = [str(path)]
runpy.run_module("compare_notebooks", run_name="__main__")
"""


def start(code, folder, monkeypatch):
    """Run code whose child sleeps, in a process of its own; returns when the child is at it."""
    monkeypatch.setenv("ALIVE", str(folder / "alive"))
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(folder))
    code = f"FOLDER, HOLD = {str(folder)!r}, {HOLD!r}\n{textwrap.dedent(code)}"
    tools = str(Path(__file__).parents[1] / "tools")
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join([tools, *sys.path])}
    process = subprocess.Popen([sys.executable, "-c", code], env=surroundings, stdout=subprocess.DEVNULL)
    assert soon(lambda: (folder / "alive.now").exists() or process.poll() is not None)
    assert process.poll() is None, "it ended before its child had begun"
    return process


def soon(true, patience=120):
    """Whether something comes true while one waits for it."""
    end = time.monotonic() + patience
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


def free(path):
    """Whether nobody holds the lock of a file or folder; the lock of a process ends with it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("code, lock", [(BUILD, "lock"), (DOWNLOAD, ".")], ids=["build", "download"])
def test_no_child_goes_on_and_the_lock_is_free(code, lock, how, tmp_path, monkeypatch):
    process = start(code, tmp_path, monkeypatch)
    assert not free(tmp_path / "alive") and not free(tmp_path / lock)
    process.send_signal(how)
    process.wait()
    assert soon(lambda: free(tmp_path / "alive")), "the child goes on"
    assert free(tmp_path / lock)


def test_a_comparison_of_notebooks_that_is_killed_takes_its_kernels_along(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what was killed cannot clean up
    process = start(COMPARE, tmp_path, monkeypatch)
    process.kill()
    process.wait()
    assert soon(lambda: free(tmp_path / "alive")), "the kernel goes on"


def test_a_child_ends_by_itself_as_ever():
    code = "import sys; print(sys.argv[1:]); sys.exit(3)"
    with lifeline() as stdin:
        done = subprocess.run(python(code, "one", 2), stdin=stdin, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "['one', '2']\n", "")


def test_a_child_ends_with_the_block():
    with lifeline() as stdin:
        child = subprocess.Popen(python("import time; time.sleep(600)"), stdin=stdin)
    assert child.wait(timeout=120) == 1
