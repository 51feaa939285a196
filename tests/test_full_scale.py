"""Results at full scale are kept with how they were made, and are checked when read."""

import errno
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from attn_utils import full_scale
from attn_utils.full_scale import keep, stored
from attn_utils.records import read_record, write_record
from attn_utils.sweeps import grid, sweep

ROOT = Path(__file__).parents[1]
HOW = {"settings": {"steps": 3, "seeds": 20}, "seconds": 7200.5, "engine": "Dask"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(full_scale, "FOLDER", tmp_path / "attn_utils" / "data" / "full_scale")
    (tmp_path / "attn_utils" / "data").mkdir(parents=True)
    return full_scale.FOLDER


def test_what_is_kept_comes_back_with_how_it_was_made(folder):
    found = sweep(lambda seed: np.float32(seed), grid(seed=range(3)))
    value = {"mean": np.mean(found), "all": np.array(found)}
    path = keep("depth-and-skips", value, HOW["settings"], found.seconds, found.engine)
    assert path == folder / "depth-and-skips.json" and [file.name for file in folder.iterdir()] == [path.name]
    result = stored("depth-and-skips")
    assert result.value["mean"] == 1 and result.value["all"].dtype == np.float32
    assert result.settings == HOW["settings"] and result.engine == "in turn" and result.seconds == found.seconds
    assert result.commit is None, "a folder outside a checkout"
    assert result.versions["numpy"] == np.__version__ and re.fullmatch(r"\d{4}-\d\d-\d\d", result.date)


def test_seconds_may_be_a_number_of_numpy(folder):
    for seconds in (np.float32(1.5), np.float64(1.5)):
        keep("one", 1, **HOW | {"seconds": seconds})
        assert stored("one").seconds == 1.5 and type(stored("one").seconds) is float


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_that_of_the_checkout_and_says_when_it_is_dirty(folder):
    root, source = folder.parents[2], folder.parents[1] / "full_scale.py"
    git(root, "init", "-q")
    keep("one", 1, **HOW)
    assert stored("one").commit is None, "another project's repository around an environment"
    source.write_text("1")
    git(root, "add", "attn_utils/full_scale.py")
    git(root, "commit", "-qm", "first")
    for name in ("one", "two"):  # a result that was just kept does not make the next one dirty
        keep(name, 1, **HOW)
        assert stored(name).commit == git(root, "rev-parse", "HEAD")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    keep("one", 2, **HOW)
    assert stored("one").commit == git(root, "rev-parse", "HEAD")
    source.write_text("2")
    keep("one", 1, **HOW)
    assert stored("one").commit == git(root, "rev-parse", "HEAD") + "-dirty"


def test_without_git_there_is_no_commit(folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    keep("one", 1, **HOW)
    assert stored("one").commit is None


def test_what_is_not_there_or_was_edited_is_said(folder):
    with pytest.raises(ValueError, match=r"'one', expected .*\(there: none yet\).*BOOK_SCALE=full"):
        stored("one")
    path = keep("one", 0.125, **HOW)
    with pytest.raises(ValueError, match=r"'two', expected .*\(there: one\)"):
        stored("two")
    path.write_text(path.read_text().replace("0.125", "0.126"))
    with pytest.raises(ValueError, match="one.json is damaged or was edited by hand"):
        stored("one")
    write_record(path, {"value": 1})
    with pytest.raises(ValueError, match="has the entries .'value'."):
        stored("one")


@pytest.mark.parametrize(
    "field, wrong",
    [("settings", {}), ("settings", [1]), ("seconds", -1), ("seconds", float("nan")), ("seconds", True), ("seconds", "3"),
     ("engine", ""), ("engine", None), ("commit", "main"), ("date", "yesterday"), ("versions", {})],
)  # fmt: skip
def test_a_record_of_another_form_is_refused_on_the_way_in_and_out(folder, field, wrong):
    path = keep("one", 1, **HOW)
    write_record(path, read_record(path) | {field: wrong})
    with pytest.raises(ValueError, match=f"{field}|Invalid isoformat"):
        stored("one")
    if field in HOW:
        with pytest.raises(ValueError, match=field):
            keep("one", 1, **HOW | {field: wrong})


def test_names_sizes_and_types_are_checked(folder):
    for name in ("../one", "One", "a_b", "", "-a", None):
        for call in (lambda name=name: keep(name, 1, **HOW), lambda name=name: stored(name)):
            with pytest.raises(ValueError, match="small letters"):
                call()
    with pytest.raises(ValueError, match="'one' takes .* KB, at most 200"):
        keep("one", np.random.default_rng(0).normal(size=20_000), **HOW)
    with pytest.raises(TypeError, match="cannot be kept"):
        keep("one", object(), **HOW)
    assert not folder.exists()


@pytest.mark.parametrize("where", ["mkdir", "replace"])
def test_where_nothing_can_be_written_it_says_so(folder, monkeypatch, where):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, where, refuse)
    with pytest.raises(RuntimeError, match="'one' cannot be written to .*Permission denied.*checkout of the book"):
        keep("one", 1, **HOW)
    assert not folder.exists() or not list(folder.iterdir())


def test_every_stored_result_of_the_book_is_whole():
    for path in (ROOT / "attn_utils" / "data" / "full_scale").glob("*.json"):
        assert stored(path.stem).commit is not None, f"{path.name} was made outside a checkout"
        assert str(ROOT) not in path.read_text()


def test_the_folder_travels_in_the_wheel(tmp_path):
    """Built from a copy, so that a result lies in it."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "attn_utils", copy / "attn_utils", ignore=shutil.ignore_patterns("*.npz", "__pycache__"))
    (copy / "attn_utils" / "data" / "full_scale" / "one.json").write_text(json.dumps({}))
    script = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    subprocess.run([__import__("sys").executable, "-c", script], cwd=copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert "attn_utils/data/full_scale/one.json" in zipfile.ZipFile(wheel).namelist()
