"""From notebooks/assignments/NN_*.ipynb, with solutions, everything that students and instructors get.

    python tools/make_assignments.py            write all of it
    python tools/make_assignments.py --check    say what is not up to date; the exit code is 1 if anything is

Written are notebooks/assignments/student/ (by nbgrader), the list of exercises at the end of each chapter and their
page in book/exercises/ (exercise_pages.py), all sums of points and minutes, and, without --check, a course folder for
nbgrader in _build/course (course_folder.py). Two runs give the same bytes.
"""

import argparse
import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from course_folder import lay_out, publish, settings
from execute_notebooks import METADATA, TRANSIENT
from exercise_pages import (
    PAGES,
    STARS,
    STUDENTS,
    as_text,
    by_exercise,
    exercises,
    exercises_page,
    page_of,
    rating,
    with_exercises,
)
from set_repository import pages, write
from setup_cell import ROOT, repository

SOURCES = "notebooks/assignments"
TEACHERS = "book/instructors.md"

CHECK_CELL = """\
checks.{name}({name})
### BEGIN HIDDEN TESTS
import runpy, attn_utils
grade = runpy.run_path(attn_utils.__path__[0] + "/checks/grade.py")["grade"]
grade("{name}", {name})
### END HIDDEN TESTS"""


def check_cell(name):
    """The text of the cell that checks and grades one exercise."""
    return CHECK_CELL.format(name=name)


def sources(root=ROOT):
    """The assignments with solutions, in order."""
    return sorted((root / SOURCES).glob("[0-9][0-9]_*.ipynb"))


# ------------------------------------------------------------------------------ points and minutes


def points(cells):
    """The points of some cells: all, and those that are given by hand. They are typed in the cells' metadata alone."""
    worth = [(cell.metadata.get("nbgrader", {}).get("points", 0), cell.cell_type) for cell in cells]
    return sum(n for n, _ in worth), sum(n for n, kind in worth if kind == "markdown")


def added_up(nb):
    """The assignment with its points in the line of stars, and its sums in the opening."""
    parts = by_exercise(nb)
    for cells in parts:
        stars, minutes, _ = rating(cells).groups()
        worth = points(cells)[0]
        line = f"{stars} · {minutes} minutes · {worth} point{'s' if worth != 1 else ''}"
        cells[0].source = STARS.sub(line, cells[0].source, count=1)
    text = re.sub(r"\babout \d+ minutes", f"about {minutes_of(nb)} minutes", nb.cells[0].source)
    nb.cells[0].source = re.sub(
        r"\d+ exercises and \d+ points", f"{len(parts)} exercises and {points(nb.cells)[0]} points", text
    )
    return nb


def minutes_of(nb):
    """The minutes of all exercises of an assignment."""
    return sum(int(rating(cells)[2]) for cells in by_exercise(nb))


def planned(text, name, nb):
    """The page for teachers, with the minutes and points of one assignment in its table."""
    row = rf"(^\|[^|]*/{name}\.ipynb\) \|[^|]*\|[^|]*\|)[^|]*\|[^|]*\|$"
    worth, by_hand = points(nb.cells)
    return re.sub(row, rf"\1 {minutes_of(nb)} minutes | {worth}, {by_hand} |", text, flags=re.M)


# ------------------------------------------------------------------------------ student versions


def generate(folder, paths, root=ROOT):
    """Let nbgrader generate the student versions in a course folder: name -> text."""
    from nbgrader.apps import NbGraderAPI

    lay_out(folder, {path.name: as_text(added_up(nbformat.read(path, 4))) for path in paths})
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
    return as_text(nb)


def on_the_site(text, site):
    """Markdown whose links to chapters and pages lead to the site: a student version also stands alone."""
    text = re.sub(r"\]\(\.\./(\w+)\.ipynb", rf"](https://{site}/notebooks/\1.html", text)
    return re.sub(r"\]\(\.\./\.\./book/([\w-]+)\.md", rf"](https://{site}/book/\1.html", text)


# --------------------------------------------------------------------------------------- all of it


def wanted(root, folder):
    """Every file that is generated and checked in, and the assignments with their sums: path -> text."""
    told = {path: added_up(nbformat.read(path, 4)) for path in sources(root)}
    texts = {path: as_text(nb) for path, nb in told.items()}
    teachers = (root / TEACHERS).read_text(encoding="utf-8")
    for path, nb in told.items():
        chapter = root / "notebooks" / path.name
        if chapter.is_file():
            texts[chapter] = with_exercises(chapter, exercises(nb, path.stem, repository(root)))
        texts[root / page_of(path.stem)] = exercises_page(nb, path.stem, repository(root))
        teachers = planned(teachers, path.stem, nb)
    texts[root / TEACHERS] = teachers
    students = generate(folder, list(told), root)
    return texts | {root / STUDENTS / name: text for name, text in students.items()}


def outdated(root, texts):
    """The generated files that are not as they should be, and those whose assignment is gone."""
    found = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf8") != text]
    kept = [*(root / STUDENTS).glob("*.ipynb"), *(root / PAGES).glob("*.md")]
    return found + [path for path in kept if path not in texts]


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
        place, kept = publish(args.root, folder, sources(args.root)[0].stem)
    print(names or "nothing to change")
    for course in kept:
        print(f"{course.relative_to(args.root)} is in use, or was edited: it stays as it is, all of it")
    print(f"The course folder is {place.relative_to(args.root)}")


def put(path, text):
    """Write a file in one step, or remove one that is generated no more."""
    if text is None:
        return path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, text)


if __name__ == "__main__":
    main()
