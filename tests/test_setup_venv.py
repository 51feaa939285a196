"""tools/setup_venv.sh installs when what is asked for has changed, by content, and does nothing otherwise.

A Python of shell stands in for the real one: its venv and pip leave a note of each call, so that every case takes
a tenth of a second and needs no network.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHON = """#!/bin/sh
case "$*" in
  "-c "*"print("*) echo "Python {version}" ;;
  "-c "*"sys.exit("*) case {version} in 3.11|3.12|3.13) ;; *) exit 1 ;; esac ;;
  "-c "*) ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo "venv {version}" >>"$NOTES" ;;
  "-m pip --version") ;;
  *" download "*) [ -z "${{OFFLINE:-}}" ] ;;
  *" install "*) echo "$*" | sed 's/.* -e/pip/' >>"$NOTES"
    if [ -n "${{HANG:-}}" ]; then echo half >"$(dirname "$0")/half"; sleep 60; fi
    if [ -n "${{FAIL:-}}" ]; then echo "ERROR: $FAIL"; exit 1; fi ;;
  *) echo "unexpected: $*" >>"$NOTES"; exit 1 ;;
esac
"""


class Checkout:
    """What make sets up: the script, the Makefile, the two files that it installs from; pythons of shell."""

    def __init__(self, folder):
        self.folder, self.bin, self.noted = folder / "ein Ordner mit Ü", folder / "bin", folder / "notes"
        (self.folder / "tools").mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(ROOT / "tools" / "setup_venv.sh", self.folder / "tools")
        shutil.copy(ROOT / "Makefile", self.folder)
        for name in ("pyproject.toml", "constraints.txt"):
            (self.folder / name).write_text(f"# {name}\n")
        for name in ("python3.13", "python3.12", "python3.11", "python3", "python"):
            self.python(name, None)
        self.python("python3.11", "3.11")

    def python(self, name, version):
        """Put an interpreter of this version on the path; None for one that does not run."""
        path = self.bin / name
        path.write_text(PYTHON.format(version=version) if version else "#!/bin/sh\nexit 127\n")
        path.chmod(0o755)
        return str(path)

    def command(self, *extras, venv=".venv"):
        return ["sh", "tools/setup_venv.sh", venv, ",".join(extras) or "book,test"]

    def environment(self, **settings):
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHON", "MAKEFLAGS")}
        return kept | {"PATH": f"{self.bin}:/usr/bin:/bin", "NOTES": str(self.noted)} | settings

    def run(self, *command, **settings):
        """Run a command, the script without one; returns what was noted by venv and pip meanwhile."""
        self.noted.write_text("")
        self.done = subprocess.run(
            command or self.command(), cwd=self.folder, env=self.environment(**settings), capture_output=True, text=True
        )
        return self.noted.read_text().splitlines()


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


@pytest.fixture
def ready(checkout):
    """A checkout whose .venv is made and complete."""
    assert checkout.run() == ["venv 3.11", "pip .[book,test]"] and checkout.done.returncode == 0, checkout.done.stderr
    return checkout


def test_what_is_ready_is_left_alone_in_silence(ready):
    assert ready.run() == [] and ready.done.returncode == 0 and ready.done.stdout == ready.done.stderr == ""


def test_touched_files_install_nothing_and_changed_ones_do(ready):
    stamp, before = ready.folder / ".venv" / ".ready", time.time() + 100
    for name in ("pyproject.toml", "constraints.txt"):
        os.utime(ready.folder / name, (before, before))  # as a fresh checkout of the same commit leaves it
    written = stamp.stat().st_mtime_ns
    assert ready.run() == [] and stamp.stat().st_mtime_ns == written
    for name in ("pyproject.toml", "constraints.txt"):
        path = ready.folder / name
        path.write_text(path.read_text() + "numpy==2.0\n")
        os.utime(path, (1, 1))  # older than the stamp, as a checkout of another commit may be
        assert ready.run() == ["pip .[book,test]"], f"{name} has another content"
        assert ready.run() == []


def test_a_further_extra_is_added_and_then_kept_up_to_date(ready):
    assert ready.run(*ready.command("book", "test", "site")) == ["pip .[book,site,test]"]
    assert ready.run() == [] and ready.run(*ready.command("site")) == []  # going back and forth installs nothing
    (ready.folder / "constraints.txt").write_text("# others\n")
    assert ready.run() == ["pip .[book,site,test]"]


def test_another_python_makes_a_new_environment(ready):
    asked = ready.python("python3.12", "3.12")
    assert ready.run() == [], "a newer Python on the path is no reason"
    assert ready.run(PYTHON=asked) == ["venv 3.12", "pip .[book,test]"]
    assert ready.run(PYTHON=asked) == ready.run() == []
    ready.python("../ein Ordner mit Ü/.venv/bin/python", "3.13")  # the system's Python was raised under it
    assert ready.run() == ["pip .[book,test]"]


def test_a_checkout_that_was_moved_is_set_up_anew(ready):
    ready.folder = ready.folder.rename(ready.folder.parent / "elsewhere")
    assert ready.run() == ["venv 3.11", "pip .[book,test]"]


def test_a_stamp_of_the_old_kind_costs_an_installation_and_not_the_environment(ready):
    (ready.folder / ".venv" / ".ready").write_text("")
    assert ready.run() == ["pip .[book,test]"] and ready.run() == []


def test_a_second_environment_does_not_touch_the_first(ready):
    assert ready.run(*ready.command("reference", venv=".venv-reference")) == ["venv 3.11", "pip .[reference]"]
    assert ready.run() == ready.run(*ready.command("reference", venv=".venv-reference")) == []


def test_an_interrupted_installation_is_begun_anew(ready):
    (ready.folder / "constraints.txt").write_text("# others\n")
    half = ready.folder / ".venv" / "bin" / "half"
    process = subprocess.Popen(
        ready.command(), cwd=ready.folder, env=ready.environment(HANG="1"), start_new_session=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while not half.exists():
        time.sleep(0.02)
    assert ready.run() == [] and "another make is installing" in ready.done.stderr
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert ready.run() == ["venv 3.11", "pip .[book,test]"] and not half.exists()
    assert ready.run() == []


def test_a_failed_installation_leaves_no_stamp(checkout):
    assert checkout.run(FAIL="no such thing") == ["venv 3.11", "pip .[book,test]"]
    assert checkout.done.returncode == 1 and "ERROR: no such thing" in checkout.done.stderr
    assert checkout.run() == ["pip .[book,test]"] and checkout.run() == []


def test_no_network_is_said_in_one_line(checkout):
    checkout.run(OFFLINE="1")
    assert checkout.done.returncode == 1 and len(checkout.done.stderr.splitlines()) == 1
    assert "no package index can be reached" in checkout.done.stderr
    checkout.run()
    assert checkout.run(OFFLINE="1") == [] and checkout.done.returncode == 0, "what is there needs no network"


def test_a_python_that_does_not_do_is_named(checkout):
    for version, said in (("3.14", "is Python 3.14"), ("3.10", "is Python 3.10"), (None, "does not run")):
        python = checkout.python("other", version)
        assert checkout.run(PYTHON=python) == []
        assert checkout.done.returncode == 1 and said in checkout.done.stderr
        assert "Python 3.11, 3.12 or 3.13" in checkout.done.stderr
    checkout.python("python3.11", None)
    checkout.python("python3", "3.14")
    assert checkout.run() == [] and "here is Python 3.14" in checkout.done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_has_a_home_folder_where_the_user_has_none(checkout):
    (checkout.folder / "Makefile").open("a").write("\nwhere:\n\t@echo $$HOME\n")
    checkout.run("make", "-s", "where", HOME="/some/where")
    assert checkout.done.stdout == "/some/where\n"
    getent = checkout.bin / "getent"  # knows of no such user
    getent.write_text("#!/bin/sh\nexit 2\n")
    getent.chmod(0o755)
    checkout.run("make", "-s", "where", HOME="")
    assert checkout.done.stdout == f"{checkout.folder}/_build/home\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_goes_by_content_too_and_lint_installs_nothing(checkout):
    checkout.run("make", "lint")
    assert checkout.done.returncode != 0 and "lint installs nothing" in checkout.done.stderr
    assert not (checkout.folder / ".venv").exists()
    assert checkout.run("make", "site-ready") == [
        "venv 3.11", "pip .[book,course,test]", "pip .[book,course,site,test]"
    ]  # fmt: skip
    for name in ("pyproject.toml", "constraints.txt", ".venv/.ready"):
        (checkout.folder / name).touch()
    assert checkout.run("make", ".venv/.ready", "site-ready") == []
    (checkout.folder / "constraints.txt").write_text("# others\n")
    checkout.run("make", "lint")
    assert checkout.noted.read_text().count("pip .[") == 0
    assert checkout.run("make", ".venv/.ready") == ["pip .[book,course,site,test]"]
