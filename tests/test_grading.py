"""Grading for real: student version, submissions, `nbgrader autograde` and `export`, with honest and other students.

One command grades all of them, as an instructor would. Points of assignment 1: 14 by machine, 4 by hand.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path

import make_assignments
import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "notebooks" / "assignments" / "01_qkv_basics.ipynb"
NAME = SOURCE.stem
SHORT = "\nc.Judge.timeout = 6\nc.Judge.answer_timeout = 4\n"
WRONG = {
    "softmax": "def softmax(scores):\n    return scores / scores.sum(-1, keepdims=True)",
    "attend": "def attend(Q, K, V):\n    w = attention(Q, K, V, scale=1.0)[1]\n    return w @ V, w",
    "ranks": "ranks = (1, 2)",
    "ratio_prediction": "ratio_prediction = 'a'",
    "log_ratio": "def log_ratio(q, k_1, k_2):\n    return 0.5",
    "rank_prediction": "rank_prediction = (13, 13)",
}
SOLVED = {
    cell.metadata.nbgrader.grade_id: cell.source
    for cell in nbformat.read(SOURCE, 4).cells
    if cell.metadata.get("nbgrader", {}).get("solution")
}
HALF = ("softmax", "attend", "ranks")
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
        return next(c for c in self.nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)

    def checks(self):
        return [c for c in self.nb.cells if c.metadata.get("nbgrader", {}).get("grade_id", "").startswith("check-")]


def right(text):
    return Submission(text, SOLVED)


def wrong(text):
    return Submission(text, WRONG)


def half(text):
    return Submission(text, {name: SOLVED[name] for name in HALF})


def untouched(text):
    return Submission(text)


def checks_deleted(text):
    made = wrong(text)
    gone = [*made.checks(), made.cell("attend")]
    made.nb.cells = [cell for cell in made.nb.cells if cell not in gone]
    return made


def checks_overwritten(text):
    made = wrong(text)
    for cell in made.checks():
        cell.source = "14.0"
        cell.metadata.nbgrader.points = 100
    return made


def checks_patched(text):
    made = wrong(text)
    made.nb.cells.insert(4, nbformat.v4.new_code_cell(PATCHES))
    return made


def endless_loop(text):
    made = right(text)
    made.cell("softmax").source = "def softmax(scores):\n    while True:\n        pass"
    made.cell("ranks").source = "while True:\n    pass"
    return made


def stubborn_loop(text):
    """Cannot be interrupted: what comes after it is lost."""
    made = right(text)
    made.cell("ranks").source = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    return made


def enormous_print(text):
    made = right(text)
    made.cell("ranks").source += "\nfor n in range(200): print('x' * 100_000)"
    made.cell("softmax").source += "\n    print('y' * 10_000_000)"
    return made


def dead_kernel(text):
    made = right(text)
    made.cell("log_ratio").source = "import os\nos._exit(1)"
    return made


def no_notebook(text):
    return None


STUDENTS = {  # what each earns: by machine, of 14
    right: 14,
    wrong: 0,
    half: 8,
    untouched: 0,
    checks_deleted: 0,
    checks_overwritten: 0,
    checks_patched: 0,
    endless_loop: 14 - 2 - 2,
    stubborn_loop: 2 + 4,
    enormous_print: 14,
    dead_kernel: 2 + 4 + 2 + 1,
    no_notebook: 0,
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course folder in which all these students were graded by one command."""
    folder = tmp_path_factory.mktemp("course")
    text = make_assignments.generate(folder, [SOURCE])[SOURCE.name]
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
    print(graded.stderr[-6000:])
    assert exported.returncode == 0, exported.stderr
    with open(folder / "grades.csv", newline="") as stream:
        return {row["student_id"]: row for row in csv.DictReader(stream)}


@pytest.mark.parametrize("student", STUDENTS, ids=lambda student: student.__name__)
def test_each_student_gets_what_was_earned(student, grades):
    row = grades[student.__name__]
    assert float(row["score"]) == STUDENTS[student]
    assert float(row["max_score"]) == 18
