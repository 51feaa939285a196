"""From notebooks/assignments/NN_*.ipynb, with solutions, everything that students and instructors get.

    python tools/make_assignments.py            write all of it
    python tools/make_assignments.py --check    say what is not up to date; the exit code is 1 if anything is

Written are notebooks/assignments/student/ (by nbgrader), the exercises at the end of each chapter, and, without
--check, a course folder for nbgrader in _build/course. Two runs give the same bytes.
"""

import argparse
import contextlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from execute_notebooks import METADATA, TRANSIENT
from set_repository import pages, write
from setup_cell import ROOT, repository

SOURCES = "notebooks/assignments"
STUDENTS = "notebooks/assignments/student"
COURSE = "_build/course"
CODE_STUB = "pass  # your code here"
TEXT_STUB = "*Your answer: double-click here and write.*"
STARS = re.compile(r"^(★+☆*) · (\d+) minutes · (\d+) points?$", re.M)

CHECK_CELL = """\
checks.{name}({name})
### BEGIN HIDDEN TESTS
import runpy, attn_utils
grade = runpy.run_path(attn_utils.__path__[0] + "/checks/grade.py")["grade"]
grade("{name}", {name})
### END HIDDEN TESTS"""

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


def check_cell(name):
    """The text of the cell that checks and grades one exercise."""
    return CHECK_CELL.format(name=name)


def sources(root=ROOT):
    """The assignments with solutions, in order."""
    return sorted((root / SOURCES).glob("[0-9][0-9]_*.ipynb"))


# ------------------------------------------------------------------------------ student versions


def settings(folder):
    """The configuration of nbgrader for a course folder, from the same text that instructors get."""
    from traitlets.config import PyFileConfigLoader

    path = Path(folder) / "nbgrader_config.py"
    config = PyFileConfigLoader(path.name, str(path.parent)).load_config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.db_url = f"sqlite:///{folder}/gradebook.db"
    return config


def lay_out(folder, paths):
    """A course folder with the sources in it."""
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    for path in paths:
        place = folder / "source" / path.stem
        place.mkdir(parents=True)
        shutil.copyfile(path, place / path.name)


def generate(folder, paths, root=ROOT):
    """Let nbgrader generate the student versions in a course folder: name -> text."""
    from nbgrader.apps import NbGraderAPI

    lay_out(folder, paths)
    own = str(Path(sys.executable).parent)  # nbgrader calls alembic by its name
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys([own, *os.environ.get("PATH", "").split(os.pathsep)]))
    api = NbGraderAPI(config=settings(folder))
    for path in paths:
        with quiet() as log:
            done = api.generate_assignment(path.stem)
        if not done["success"]:
            raise RuntimeError(f"nbgrader could not generate {path.stem}:\n{done.get('log') or log}{done.get('error')}")
        released = folder / "release" / path.stem / path.name
        released.write_text(normal(released, path, pages(repository(root))), encoding="utf-8")
    return {path.name: (folder / "release" / path.stem / path.name).read_text("utf8") for path in paths}


@contextlib.contextmanager
def quiet():
    """nbgrader logs every step on stderr; show it only when something fails."""
    with open(os.devnull, "w") as sink, contextlib.redirect_stderr(sink):
        yield ""


def normal(released, source, site):
    """The text of a student version as we store it: no outputs, the metadata and cell ids of the source."""
    nb, original = nbformat.read(released, 4), nbformat.read(source, 4)
    nb.metadata = nbformat.from_dict(METADATA)
    for cell, before in zip(nb.cells, original.cells, strict=True):
        cell.id = before.id
        for key in (*TRANSIENT, "deletable", "editable"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        elif "nbgrader" not in cell.metadata:
            cell.source = on_the_site(cell.source, site)
    return nbformat.writes(nb, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def on_the_site(text, site):
    """Markdown whose links to chapters and pages lead to the site: a student version also stands alone."""
    text = re.sub(r"\]\(\.\./(\w+)\.ipynb", rf"](https://{site}/notebooks/\1.html", text)
    return re.sub(r"\]\(\.\./\.\./book/([\w-]+)\.md", rf"](https://{site}/book/\1.html", text)


# ------------------------------------------------------------------- the exercises of a chapter


def exercises(nb, name, address):
    """The Markdown that a chapter ends with: each exercise, its solution folded away, and where to solve it."""
    parts = [OPENING.format(number=int(name[:2]), **launches(name, address))]
    for cells in by_exercise(nb):
        told, solved = [], []
        for cell in cells:
            kind = cell.metadata.get("nbgrader", {})
            if kind.get("solution"):
                solved.append(solution(cell))
            elif cell.cell_type == "markdown":
                told.append(from_chapter(cell.source))
            elif not kind:
                told.append(f"```python\n{cell.source}\n```")
        parts.append("\n\n".join(told))
        parts.append(FOLDED.format("\n\n".join(solved)))
    return "\n\n".join(parts)


OPENING = (
    "## Solve the graded exercises\n\nThese are the exercises of assignment {number}, on other data than the chapter. "
    "Solve them where each answer is checked and each mistake is named: open the assignment [in Colab]({colab}) or "
    "[in Binder]({binder}). [The page for teachers](../book/instructors.md) says how a class is graded."
)
FOLDED = "<details><summary>Solution</summary>\n\n{}\n\n</details>"


def launches(name, address):
    """Where the student version opens."""
    file = f"{STUDENTS}/{name}.ipynb"
    return {
        "colab": f"https://colab.research.google.com/github/{address}/blob/main/{file}",
        "binder": f"https://mybinder.org/v2/gh/{address}/main?urlpath=lab/tree/{file}",
    }


def by_exercise(nb):
    """The cells of each exercise, from its heading on."""
    found = []
    for cell in nb.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## Exercise"):
            found.append([])
        if found:
            found[-1].append(cell)
    return found


def from_chapter(text):
    """Markdown of an assignment as it stands in the chapter: headings one level down, links from its folder."""
    return re.sub(r"\]\(\.\./", "](", re.sub(r"^(#+ )", r"#\1", text, flags=re.M))


def solution(cell):
    """The solution in a cell: its code without the marks, or its text."""
    if cell.cell_type == "markdown":
        return from_chapter(cell.source)
    code = re.sub(r"^ *### (BEGIN|END) SOLUTION\n?|^\w+ = None\b.*\n", "", cell.source, flags=re.M).rstrip()
    return f"```python\n{code}\n```"


def with_exercises(chapter, text):
    """The text of a chapter's notebook with its last cell, the exercises, brought up to date."""
    nb = nbformat.read(chapter, 4)
    nb.cells = [cell for cell in nb.cells if "exercises" not in cell.metadata.get("tags", [])]
    cell = nbformat.v4.new_markdown_cell(text, id=f"{chapter.name[:2]}-900", metadata={"tags": ["exercises"]})
    nb.cells.append(cell)
    return nbformat.writes(nb, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


# --------------------------------------------------------------------------------------- all of it


def wanted(root, folder):
    """Every file that is generated and checked in: path -> text."""
    paths, address = sources(root), repository(root)
    texts = {root / STUDENTS / name: text for name, text in generate(folder, paths, root).items()}
    for path in paths:
        chapter = root / "notebooks" / path.name
        if chapter.is_file():
            text = exercises(nbformat.read(path, 4), path.stem, address)
            texts[chapter] = with_exercises(chapter, text)
    return texts


def outdated(root, texts):
    """The generated files that are not as they should be, and student versions without an assignment."""
    found = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf8") != text]
    return found + [path for path in (root / STUDENTS).glob("*.ipynb") if path not in texts]


def publish_course(root, folder):
    """Put the course folder in its place under _build, without the database of this run."""
    first = sources(root)[0].stem
    (folder / "README.md").write_text(README.format(name=first), encoding="utf-8")
    for leftover in folder.glob("gradebook.db*"):
        leftover.unlink()
    place = root / COURSE
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        texts = wanted(args.root, folder)
        late = outdated(args.root, texts)
        names = "\n".join(str(path.relative_to(args.root)) for path in late)
        if args.check:
            sys.exit(f"not up to date, run make assignments:\n{names}" if late else 0)
        for path in late:
            put(path, texts.get(path))
        publish_course(args.root, folder)
    print(names or "nothing to change")
    print(f"The course folder is {COURSE}")


def put(path, text):
    """Write a file in one step, or remove one that is generated no more."""
    if text is None:
        return path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch()
    write(path, text)


if __name__ == "__main__":
    main()
