"""The tools: notebooks are executed all or not at all, and give the same bytes each time."""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import build_book
import nbformat
import pytest
from execute_notebooks import METADATA, all_notebooks, clean, tier
from setup_cell import repository, setup_cell
from stamp import KEY, stamp

ROOT = Path(__file__).resolve().parent.parent


def notebook(path, *sources, metadata=None):
    """Write a notebook with these code cells, as an editor leaves it: no outputs, odd metadata."""
    nb = nbformat.v4.new_notebook(metadata=metadata or {"language_info": {"name": "python", "version": "3.11.7"}})
    nb.cells = [nbformat.v4.new_markdown_cell("# Title", id="x-000")]
    for number, source in enumerate(sources, 1):
        nb.cells.append(nbformat.v4.new_code_cell(source, id=f"x-{number:03d}"))
    nbformat.write(nb, path)
    return path


def execute(*paths, **env):
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "execute_notebooks.py", *paths],
        capture_output=True, text=True, env=os.environ | env,
    )  # fmt: skip


def outputs(path):
    nb = json.loads(path.read_text("utf8"))
    return [cell["outputs"] for cell in nb["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook that prints, shows a figure, a widget and both forms of one display, executed once."""
    both = "{'text/html': '<b>3</b>', 'application/vnd.jupyter.widget-view+json': {'model_id': 'none'}}"
    path = notebook(
        tmp_path_factory.mktemp("run") / "ä ö.ipynb",
        "print('one'); print('two', flush=True); print('drei ä')",
        "import ipywidgets\nslider = ipywidgets.IntSlider()\ndisplay(slider)",
        f"display({both}, raw=True)",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "import os; os.getcwd() == os.path.dirname(os.path.abspath('x')), os.environ['OMP_NUM_THREADS']",
        "display({'application/vnd.jupyter.widget-view+json': {'model_id': 'none'}}, raw=True)",
    )
    path.chmod(0o640)
    done = execute(path)
    assert done.returncode == 0, done.stderr
    return path


def test_executing_twice_gives_the_same_bytes(executed):
    before = executed.read_bytes()
    done = execute(executed)
    assert done.returncode == 0 and "unchanged" in done.stdout
    assert executed.read_bytes() == before


def test_text_and_form_of_the_file(executed):
    text = executed.read_text("utf8")
    assert text.endswith("}\n") and not text.endswith("\n\n")
    assert text.startswith('{\n "cells": [') and "drei ä" in text
    assert stat.S_IMODE(executed.stat().st_mode) == 0o640
    nb = json.loads(text)
    assert nb["metadata"] == METADATA | {KEY: stamp(nb["cells"], setup_cell(), repository())}
    code = [cell for cell in nb["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4, 5, 6]
    assert [cell["id"] for cell in nb["cells"]] == [f"x-{number:03d}" for number in range(7)]
    assert all(cell["metadata"] == {} for cell in nb["cells"])


def test_prints_are_merged_and_widgets_stripped(executed):
    printed, widget, both, figure, value, empty = outputs(executed)
    assert [(one["name"], "".join(one["text"])) for one in printed] == [("stdout", "one\ntwo\ndrei ä\n")]
    assert [set(one["data"]) for one in widget] == [{"text/plain"}]
    assert [set(one["data"]) for one in both] == [{"text/html"}]
    assert [set(one["data"]) for one in figure] == [{"image/png", "text/plain"}]
    assert "".join(value[0]["data"]["text/plain"]) == "(True, '1')"
    assert empty == []


def test_a_failing_cell_is_named_and_the_file_stays(tmp_path):
    path = notebook(tmp_path / "bad.ipynb", "x = 1", "def check():\n    assert x == 2, 'x is one'\ncheck()", "print(3)")
    before = path.read_bytes()
    done = execute(path)
    assert done.returncode == 1
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["bad.ipynb"]
    assert "bad.ipynb: code cell 2 (id x-002) failed" in done.stderr
    assert "assert x == 2, 'x is one'" in done.stderr and "AssertionError: x is one" in done.stderr
    assert "\x1b[" not in done.stderr


def test_a_failing_cell_shows_what_it_had_printed(tmp_path):
    path = notebook(tmp_path / "bad.ipynb", "print('other cell')", "print('loss 0.5')\nprint('loss nan')\n1 / 0")
    done = execute(path)
    told = done.stderr.partition("--- printed before it failed")[2].partition("--- error")
    assert told[0].split() == ["loss", "0.5", "loss", "nan"] and "ZeroDivisionError" in told[2]
    silent = notebook(tmp_path / "silent.ipynb", "1 / 0")
    assert "--- printed" not in execute(silent).stderr


def test_evidence_runs_before_its_chapter_and_assignments_last(tmp_path):
    """With two workers the chapter still waits: its ledger may read what the evidence has stored."""
    for folder in ("evidence", "assignments"):
        (tmp_path / folder).mkdir()
    trace = "import pathlib; trace = pathlib.Path({!r}); "
    add = trace.format(str(tmp_path / "trace")) + "trace.open('a').write({!r})"
    wait = "import time; time.sleep(0.5); "
    paths = [
        notebook(tmp_path / "assignments" / "03_x.ipynb", add.format("assignment ")),
        notebook(tmp_path / "03_x.ipynb", add.format("chapter ")),
        notebook(tmp_path / "evidence" / "03_x.ipynb", wait + add.format("evidence ")),
    ]
    done = execute(*paths)
    assert done.returncode == 0, done.stderr
    order = (tmp_path / "trace").read_text().split()
    assert order.index("evidence") < order.index("chapter")
    assert [tier(path) for path in paths] == [2, 1, 0]


def test_all_notebooks_are_executed(tmp_path):
    names = ["notebooks/evidence/03_x.ipynb", "notebooks/01_x.ipynb", "notebooks/assignments/01_x.ipynb"]
    for name in [*names, "notebooks/assignments/student/01_x.ipynb"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in all_notebooks(tmp_path)] == names


def test_one_broken_notebook_does_not_keep_the_other_from_being_written(tmp_path):
    good, bad = notebook(tmp_path / "good.ipynb", "1 + 1"), notebook(tmp_path / "bad.ipynb", "1 / 0")
    done = execute(good, bad)
    assert done.returncode == 1 and "1 of 2 notebooks failed" in done.stderr
    assert outputs(good)[0][0]["data"] == {"text/plain": ["2"]} and outputs(bad) == [[]]


def test_an_unreadable_notebook_is_named_and_the_others_run(tmp_path):
    good, bad = notebook(tmp_path / "good.ipynb", "1 + 1"), tmp_path / "bad.ipynb"
    bad.write_text("not json")
    done = execute(good, bad)
    assert done.returncode == 1 and "bad.ipynb cannot be read as a notebook" in done.stderr
    assert outputs(good)[0][0]["data"] == {"text/plain": ["2"]}
    assert execute("--workers", "0", good).returncode == 2


def test_a_notebook_to_compare_that_is_not_there_is_named():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "compare_notebooks.py", "nope.ipynb"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "no such notebook: nope.ipynb" in done.stderr


def test_a_cell_that_hangs_is_named(tmp_path):
    path = notebook(tmp_path / "slow.ipynb", "import time\ntime.sleep(60)")
    done = execute("--timeout", "2", path)
    assert done.returncode == 1 and "code cell 1 (id x-001) failed" in done.stderr
    assert "CellTimeoutError" in done.stderr


def test_a_missing_notebook_is_said_in_one_line(tmp_path):
    done = execute(tmp_path / "none.ipynb")
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1


def test_clean_drops_what_changes_from_run_to_run():
    stream = nbformat.v4.new_output("stream", name="stdout", text="a")
    cell = nbformat.v4.new_code_cell("1", execution_count=7, outputs=[stream, stream.copy()])
    cell.metadata.update({"execution": {"iopub.status.busy": "2026"}, "tags": ["hide-input"], "scrolled": True})
    nb = clean(
        nbformat.v4.new_notebook(
            cells=[cell], metadata={"widgets": {}, "kernelspec": {"name": "mine", "display_name": "Mine"}}
        )
    )
    assert nb.cells[0].metadata == {"tags": ["hide-input"]}
    assert nb.cells[0].execution_count == 1
    assert [one.text for one in nb.cells[0].outputs] == ["aa"]
    assert "widgets" not in nb.metadata and nb.metadata.kernelspec.name == "python3"


def test_the_kernel_is_that_of_this_environment(tmp_path):
    path = notebook(tmp_path / "which.ipynb", "import sys\nprint(sys.prefix)")
    spec = tmp_path / "share" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["/bin/false"], "display_name": "x", "language": "python"}')
    assert execute(path, JUPYTER_PATH=str(tmp_path / "share")).returncode == 0
    assert "".join(outputs(path)[0][0]["text"]).strip() == sys.prefix


def test_every_version_is_pinned_once_and_in_one_place():
    lines = (ROOT / "constraints.txt").read_text("utf8").splitlines()[1:]
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==[0-9][A-Za-z0-9.+!]*", line) for line in lines]
    assert all(pins), "only exact versions belong into constraints.txt"
    names = [re.sub("[-_.]+", "-", pin[1]).lower() for pin in pins]
    assert len(set(names)) == len(names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    asked = sum(project["optional-dependencies"].values(), project["dependencies"])
    wanted = {re.sub("[-_.]+", "-", re.match(r"[A-Za-z0-9._-]+", one)[0]).lower() for one in asked}
    assert wanted <= set(names)
    assert not [one for one in asked if "==" in one], "exact versions stand in constraints.txt alone"


@pytest.mark.parametrize(
    "log, shown",
    [
        ("reading sources\nbook/a.md:3: WARNING: no such page\nbook/a.md:3: WARNING: no such page\ndone\n",
         ["book/a.md:3: WARNING: no such page"]),
        ("Traceback:\n  x\nExtension error:\nthe page cannot be written:\n  one\n  two\nTraceback (most recent)\n  y\n",
         ["the page cannot be written:", "  one", "  two"]),
        ("  File x\nsphinx.errors.ThemeError: no theme\n", ["sphinx.errors.ThemeError: no theme"]),
        ("killed\n", ["killed"]),
    ],
)  # fmt: skip
def test_a_failed_build_shows_what_is_wrong_and_little_else(tmp_path, monkeypatch, log, shown):
    monkeypatch.setattr(build_book, "LOG", tmp_path / "book.log")
    build_book.LOG.write_text(log, encoding="utf-8")
    assert build_book.problems() == shown
