"""The course folder for nbgrader: its settings, its files, and a place under _build where it overwrites no course."""

import hashlib
import json
import shutil
from itertools import count
from pathlib import Path

COURSE = "_build/course"
MANIFEST = ".as_written.json"  # what stood in the folder when it was written: name -> sha256
CODE_STUB = "pass  # your code here"
TEXT_STUB = "*Your answer: double-click here and write.*"

CONFIG = f'''\
"""nbgrader for Attention by Experiment. Written by tools/make_assignments.py."""

import os

c = get_config()  # noqa: F821
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
c.CourseDirectory.course_id = "attention-by-experiment"

# Student versions.
c.ClearSolutions.code_stub = {{"python": "{CODE_STUB}"}}
c.ClearSolutions.text_stub = "{TEXT_STUB}"

# Grading: a process outside the student's kernel decides, and no submission can stop the others.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "attn_utils.checks.autograder.RestoreCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "attn_utils.checks.autograder.Judge",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Judge.timeout = 60  # seconds for one cell
c.Judge.answer_timeout = 20  # seconds for one call of an answer
c.LimitOutput.max_lines = 200
'''

README = """\
# A course folder for nbgrader

Written by `make assignments`. It holds the assignments of *Attention by Experiment* with solutions in `source/`, the
versions for students in `release/`, and the settings in `nbgrader_config.py`. Copy it to where you keep your course,
into an environment with nbgrader and attn_utils, and run the commands inside it.

    source /path/to/environment/bin/activate   # nbgrader needs its tools on the PATH
    nbgrader generate_assignment {name} --force
    nbgrader release_assignment {name}     # with a JupyterHub; else hand out release/{name}
    nbgrader collect {name}                # with a JupyterHub; else fill submitted/STUDENT/{name}
    nbgrader autograde {name}
    nbgrader generate_feedback {name}
    nbgrader export

The second line writes `gradebook.db` and `release/` anew. The explanations in words are graded by hand, in
`nbgrader formgrader` (or *Nbgrader, Formgrader* in JupyterLab) before the export. The page *Teach with this book*
says what the grades mean and what they cannot see.
"""


def settings(folder):
    """The configuration of nbgrader for a course folder, from the same text that instructors get."""
    from traitlets.config import PyFileConfigLoader

    path = Path(folder) / "nbgrader_config.py"
    config = PyFileConfigLoader(path.name, str(path.parent)).load_config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.db_url = f"sqlite:///{folder}/gradebook.db"
    return config


def lay_out(folder, texts):
    """A course folder with the sources in it: name of the file -> text."""
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    for name, text in texts.items():
        place = folder / "source" / Path(name).stem
        place.mkdir(parents=True)
        (place / name).write_text(text, encoding="utf-8")


def publish(root, folder, first):
    """Put a course folder in its place under _build; return that place, and what was left as it is.

    A folder that somebody works in is kept, all of it: the new one then goes beside it, into course-2 and so on.
    """
    for leftover in folder.glob("gradebook.db*"):
        leftover.unlink()  # the database of this run
    (folder / "README.md").write_text(README.format(name=first), encoding="utf-8")
    (folder / MANIFEST).write_text(json.dumps(contents(folder), indent=1), encoding="utf-8")
    kept = []
    for number in count(1):
        place = root / (COURSE if number == 1 else f"{COURSE}-{number}")
        if not place.exists() or is_as_written(place):
            break
        kept.append(place)
    replace(place, folder)
    return place, kept


def contents(folder):
    """Every file below a folder but the manifest: name -> sha256."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def is_as_written(place):
    """True where a folder holds what an earlier run put there, and nothing else: no grades, no submissions, no edit."""
    try:
        return json.loads((place / MANIFEST).read_text(encoding="utf-8")) == contents(place)
    except (OSError, ValueError):
        return False


def replace(place, folder):
    """Put the copy of a folder in the place of an older one, in one step."""
    fresh = place.with_name(f".{place.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(folder, fresh)
    if place.exists():
        shutil.rmtree(place)
    fresh.rename(place)
