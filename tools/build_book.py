"""Build the site into _build/html; warnings are errors, and a failed build leaves the last good site."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from attn_utils.lifeline import lifeline, python

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
NEXT = BUILD / "next"  # jupyter-book writes into a _build folder of its own in here
SITE = BUILD / "html"
LOG = BUILD / "book.log"
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
PROBLEM = re.compile(r": (WARNING|ERROR|CRITICAL|SEVERE): |^(WARNING|ERROR|CRITICAL): |^[\w.]*(Error|Exception)\b")
STOPPED = re.compile(r"^Extension error[^\n]*:\n(.*?)(?=^Traceback|\Z)", re.MULTILINE | re.DOTALL)


def run_jupyter_book():
    """True when the build had no error and no warning; what it said is in LOG."""
    shutil.rmtree(NEXT, ignore_errors=True)
    NEXT.mkdir(parents=True)
    command = python(JUPYTER_BOOK, "build", ".", "--path-output", NEXT, "-W", "-n", "--keep-going")
    env = os.environ | {"PYTHONWARNINGS": "ignore", "PYTHONUTF8": "1", "NO_COLOR": "1"}
    with lifeline() as stdin:  # a build that is killed must not go on writing while the next one begins
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    LOG.write_text(ANSI.sub("", done.stdout.decode("utf-8", "replace")), encoding="utf-8")
    return done.returncode == 0 and (NEXT / "_build" / "html" / "index.html").is_file()


def problems():
    """The lines of the log that say what is wrong, each once; its end where none does."""
    text = LOG.read_text(encoding="utf-8").replace(f"{ROOT}/", "")
    stopped = STOPPED.search(text)  # an extension stopped the build: its message, all lines of it
    lines = [line.rstrip() for line in (stopped[1] if stopped else text).splitlines() if line.strip()]
    said = lines if stopped else [line for line in lines if PROBLEM.search(line)]
    return list(dict.fromkeys(said)) or lines[-15:]


def publish():
    """Put the new site in the place of the old one."""
    old = BUILD / "old"
    shutil.rmtree(old, ignore_errors=True)
    if SITE.exists():
        SITE.rename(old)
    (NEXT / "_build" / "html").rename(SITE)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(NEXT, ignore_errors=True)


@contextmanager
def alone():
    """One build at a time: a second one waits for the first, which writes into the same folder."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released by the system even when the build is killed
        yield


def main():
    with alone():
        build()


def build():
    if not run_jupyter_book():
        print("\n".join(problems()), file=sys.stderr)
        kept = "; _build/html is still the site of an earlier build" if SITE.exists() else ""
        sys.exit(f"The book was not built (the whole log: {LOG.relative_to(ROOT)}){kept}.")
    publish()
    print(f"The site is at {SITE.relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
