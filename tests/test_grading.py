"""Grading for real: student version, submissions, `nbgrader autograde` and `export`, with honest and other students.

One command grades all of them, as an instructor would. The assignment is a part of assignment 1, with 10 points by
machine and 4 by hand.
"""

import asyncio
import csv
import os
import queue
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import make_assignments
import nbformat
import pytest

from attn_utils import checks
from attn_utils.checks.autograder import Judge, RestoreCells, failure

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "notebooks" / "assignments" / "01_qkv_basics.ipynb"
NAME = SOURCE.stem
KEPT = "ABD"  # the exercises that need no word vectors, and the explanation
SHORT = "\nc.Judge.timeout = 10\nc.Judge.answer_timeout = 5\n"
WRONG = {
    "softmax": "def softmax(scores):\n    return scores / scores.sum(-1, keepdims=True)",
    "attend": "def attend(Q, K, V):\n    w = attention(Q, K, V, scale=1.0)[1]\n    return w @ V, w",
    "ratio_prediction": "ratio_prediction = 'a'",
    "log_ratio": "def log_ratio(q, k_1, k_2):\n    return 0.5",
}
HALF = ("softmax", "attend")


def small():
    """Assignment 1 with some of its exercises."""
    nb = nbformat.read(SOURCE, 4)
    gone = [c for cells in make_assignments.by_exercise(nb) if cells[0].source[12] not in KEPT for c in cells]
    nb.cells = [c for c in nb.cells if c not in gone or name_of(c) == "explain_ranks"]
    return nb


def name_of(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def is_check(cell):
    return name_of(cell).startswith("check-")


SOLVED = {name_of(cell): cell.source for cell in small().cells if cell.metadata.get("nbgrader", {}).get("solution")}
PATCHES = """
import runpy, subprocess, sys, builtins
import attn_utils.checks.core as core, attn_utils.checks.courier as courier
for name in list(checks.CHECKS):
    setattr(checks, name, lambda answer: print("Correct: patched"))
    checks.CHECKS[name] = lambda answer: None
core.Check.judge = lambda *args: core.Verdict("right", "patched")
core.difference = lambda *args: ""
courier.carry = lambda *args: '{"kind": "right", "text": ""}'
runpy.run_path = lambda path: {"grade": lambda *args: None, "carry": lambda *args: None}
np.isclose = np.allclose = lambda *args, **kwargs: True
subprocess.Popen = None
get_ipython().set_custom_exc((BaseException,), lambda *args, **kwargs: None)
"""


class Submission:
    """A student version to edit, cell by cell, as a student would."""

    def __init__(self, text, answers=None):
        self.nb = nbformat.reads(text, 4)
        for name, source in (answers or {}).items():
            self.cell(name).source = source

    def cell(self, name):
        return next(cell for cell in self.nb.cells if name_of(cell) == name)

    def checks(self):
        return [cell for cell in self.nb.cells if is_check(cell)]


def right(text):
    return Submission(text, SOLVED)


def wrong(text):
    return Submission(text, WRONG)


def half(text):
    return Submission(text, {name: SOLVED[name] for name in HALF})


def checks_deleted(text):
    made = wrong(text)
    gone = [*made.checks(), made.cell("attend")]
    made.nb.cells = [cell for cell in made.nb.cells if cell not in gone]
    return made


def checks_overwritten(text):
    made = wrong(text)
    for cell in made.checks():
        cell.source = "10.0"
        cell.metadata.nbgrader.points = 100
    return made


def checks_patched(text):
    made = wrong(text)
    made.nb.cells.insert(4, nbformat.v4.new_code_cell(PATCHES))
    return made


def copied(made):
    """Two cells twice, as copying or splitting a cell in JupyterLab leaves them."""
    for name in ("softmax", "check-attend"):
        cell = made.cell(name)
        twin = nbformat.from_dict(dict(cell, id=f"twin-{name}"))
        made.nb.cells.insert(made.nb.cells.index(cell) + 1, twin)


def unknown(made):
    made.cell("softmax").metadata.nbgrader.grade_id = "bonus"


def another_schema(made):
    made.cell("softmax").metadata.nbgrader.schema_version = 99
    made.cell("attend").metadata.nbgrader.schema_version = 1


def retagged(made):
    for cell in made.checks():
        cell.metadata.nbgrader |= {"solution": True, "locked": False, "cell_type": "markdown", "points": 99}


def no_metadata_at_all(made):
    for cell in made.nb.cells:
        cell.metadata.pop("nbgrader", None)


def nonsense(made):
    made.cell("softmax").metadata.nbgrader = {"grade_id": ["softmax"]}
    made.nb.cells[0].metadata["nbgrader"] = "yes"


MANGLED = [copied, unknown, another_schema, retagged, no_metadata_at_all, nonsense]


def a_foreign_schema(text):
    """nbgrader alone ends the whole run here: the first in the alphabet, so that everybody else comes after."""
    made = right(text)
    another_schema(made)
    return made


def a_mangled_one(text):
    made = right(text)
    for mangle in (copied, retagged):
        mangle(made)
    return made


def endless_loop(text):
    made = right(text)
    made.cell("softmax").source = "import time\ndef softmax(scores):\n    while True:\n        time.sleep(0.01)"
    made.cell("ratio_prediction").source = "while True:\n    time.sleep(0.01)"
    return made


def stubborn_loop(text):
    """Cannot be interrupted: what comes after it is lost."""
    made = right(text)
    stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    time.sleep(0.01)"
    made.cell("ratio_prediction").source = stubborn
    return made


def enormous_print(text):
    made = right(text)
    made.cell("ratio_prediction").source += "\nfor n in range(200): print('x' * 100_000)"
    made.cell("softmax").source += "\n    print('y' * 10_000_000)"
    return made


def dead_kernel(text):
    made = right(text)
    made.cell("log_ratio").source = "import os\nos._exit(1)"
    return made


def dead_when_called(text):
    made = right(text)
    made.cell("log_ratio").source = "import os\ndef log_ratio(q, k_1, k_2):\n    os._exit(1)"
    return made


def no_notebook(text):
    return None


STUDENTS = {  # what each earns: by machine, of 14
    right: 10,
    wrong: 0,
    half: 6,
    checks_deleted: 0,
    checks_overwritten: 0,
    checks_patched: 0,
    a_foreign_schema: 10,
    a_mangled_one: 10,
    endless_loop: 10 - 2 - 1,
    stubborn_loop: 2 + 4,
    enormous_print: 10,
    dead_kernel: 2 + 4 + 1,
    dead_when_called: 2 + 4 + 1,
    no_notebook: 0,
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course folder in which all these students were graded by one command."""
    folder = tmp_path_factory.mktemp("course")
    own = tmp_path_factory.mktemp("own") / SOURCE.name
    nbformat.write(small(), own)
    text = make_assignments.generate(folder, [own])[SOURCE.name]
    config = folder / "nbgrader_config.py"
    config.write_text(config.read_text("utf8") + SHORT, encoding="utf-8")
    for student in STUDENTS:
        place = folder / "submitted" / student.__name__ / NAME
        place.mkdir(parents=True)
        if made := student(text):
            nbformat.write(made.nb, place / SOURCE.name)
        else:
            (place / SOURCE.name).write_text("not a notebook")
    graded = nbgrader(folder, "autograde", NAME)
    exported = nbgrader(folder, "export", "--to", "grades.csv")
    return folder, graded, exported


def nbgrader(folder, *command):
    own = str(Path(sys.executable).parent)
    env = os.environ | {"PATH": os.pathsep.join([own, os.environ.get("PATH", "")]), "no_proxy": "*"}
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *command], cwd=folder, env=env, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def grades(course):
    folder, graded, exported = course
    assert exported.returncode == 0, exported.stderr
    with open(folder / "grades.csv", newline="") as stream:
        return {row["student_id"]: row for row in csv.DictReader(stream)}


@pytest.mark.parametrize("student", STUDENTS, ids=lambda student: student.__name__)
def test_each_student_gets_what_was_earned(student, grades):
    row = grades[student.__name__]
    assert float(row["score"]) == STUDENTS[student]
    assert float(row["max_score"]) == 14


def test_one_command_graded_all_and_names_what_it_could_not_read(course):
    folder, graded, _ = course
    done = {path.parent.parent.name for path in folder.glob(f"autograded/*/{NAME}/{SOURCE.name}")}
    assert done == {student.__name__ for student in STUDENTS} - {"no_notebook"}
    assert "no_notebook" in graded.stderr


def test_a_graded_submission_says_what_was_wrong_and_stays_small(course):
    folder = course[0] / "autograded"
    wrong_ones = nbformat.read(folder / "wrong" / NAME / SOURCE.name, 4)
    told = {name_of(cell): cell.outputs[0].get("evalue", "") for cell in wrong_ones.cells if is_check(cell)}
    assert "take their exponentials first" in told["check-softmax"]
    assert "did not scale" in told["check-attend"]
    assert "no answer within" in (folder / "endless_loop" / NAME / SOURCE.name).read_text("utf8")
    assert (folder / "enormous_print" / NAME / SOURCE.name).stat().st_size < 1_000_000


# ------------------------------------------------------------- parts, without a kernel


@pytest.mark.parametrize("mangle", MANGLED, ids=lambda mangle: mangle.__name__)
def test_what_a_submission_says_of_its_own_cells_counts_for_nothing(mangle, course):
    folder = course[0]
    released = nbformat.read(folder / "release" / NAME / SOURCE.name, 4)
    made = Submission(nbformat.writes(released), SOLVED)
    mangle(made)
    asked = {"notebook": NAME, "assignment": NAME, "db_url": f"sqlite:///{folder}/gradebook.db"}
    nb, _ = RestoreCells().preprocess(made.nb, {"nbgrader": asked})
    graded = {name_of(cell): cell for cell in released.cells if cell.metadata.get("nbgrader", {}).get("grade")}
    found = [cell for cell in nb.cells if name_of(cell)]
    assert len({name_of(cell) for cell in found}) == len(found)
    assert set(graded) <= {name_of(cell) for cell in found}
    for cell in found:
        if is_check(cell):
            own, wanted = cell.metadata["nbgrader"], graded[name_of(cell)].metadata.nbgrader
            assert {key: own[key] for key in ("points", "grade", "solution", "locked", "schema_version")} == {
                key: wanted[key] for key in ("points", "grade", "solution", "locked", "schema_version")
            }


def test_messages_that_are_no_reply_do_not_put_off_the_end():
    async def stray(timeout):
        await asyncio.sleep(0.05)
        return {"parent_header": {"msg_id": "another"}}

    judge = SimpleNamespace(kc=SimpleNamespace(execute=lambda *a, **k: "mine", get_shell_msg=stray), answer_timeout=0.3)
    started = time.monotonic()
    with pytest.raises(queue.Empty):
        asyncio.run(asyncio.wait_for(Judge.asked(judge, "1"), 5))
    assert time.monotonic() - started < 4


def test_a_verdict_is_short_and_an_odd_answer_is_only_a_wrong_one(monkeypatch):
    assert len(failure("x" * 10_000_000).evalue) == 2000

    def breaks(*args):
        raise RecursionError

    monkeypatch.setitem(checks.CHECKS, "softmax", SimpleNamespace(judge=breaks))
    assert "could not be judged" in Judge().verdict("softmax", "softmax").evalue
