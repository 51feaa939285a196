"""Student versions: as generated, without solutions, running to the end unedited; chapters end with their exercises."""

import re

import make_assignments
import nbformat
import pytest
from execute_notebooks import METADATA
from kernel_env import set_kernel_env
from make_assignments import ROOT, STUDENTS
from nbclient import NotebookClient
from stamp import KEY

SOURCES = make_assignments.sources()
by_name = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


def student_of(source):
    return ROOT / STUDENTS / source.name


def graded(nb, kind):
    """The cells that nbgrader knows as solution or grade cells."""
    return [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get(kind)]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """All that is generated, generated anew: path -> text."""
    return make_assignments.wanted(ROOT, tmp_path_factory.mktemp("course"))


def test_what_is_checked_in_is_a_fresh_generation(fresh):
    assert SOURCES
    assert make_assignments.outdated(ROOT, fresh) == [], "run make assignments"


def test_no_database_is_left_in_the_repository():
    assert [*ROOT.glob("*.db"), *(ROOT / "notebooks").rglob("*.db"), *(ROOT / "tests").rglob("*.db")] == []


@by_name
def test_no_solution_and_no_hidden_test_gets_out(source):
    told = nbformat.read(source, 4)
    text = student_of(source).read_text("utf8")
    assert "SOLUTION" not in text and "HIDDEN" not in text and "grade.py" not in text
    secret = [line for cell in graded(told, "solution") for line in secret_lines(cell)]
    assert len(secret) >= 10
    shown = {line.strip() for cell in nbformat.reads(text, 4).cells for line in cell.source.splitlines()}
    assert [line for line in secret if line in shown] == []


def secret_lines(cell):
    """The lines of a solution, without what is too short to give anything away."""
    found = re.search(r"### BEGIN SOLUTION\n(.*)### END SOLUTION", cell.source, re.S)
    lines = (found[1] if found else cell.source).splitlines()
    return [line.strip() for line in lines if len(line.strip()) > 8]


@by_name
def test_the_opening_says_how_checks_answer_and_how_grading_runs(source):
    opening = nbformat.read(source, 4).cells[0].source
    assert opening.endswith("restart the kernel and run all cells: grading runs them from the top.")


@by_name
def test_student_versions_have_no_outputs_and_the_same_cells(source):
    told, student = nbformat.read(source, 4), nbformat.read(student_of(source), 4)
    assert [cell.id for cell in told.cells] == [cell.id for cell in student.cells]
    assert student.metadata == METADATA and KEY in told.metadata  # only what was run carries the stamp of a run
    code = [cell for cell in student.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


@by_name
def test_unedited_it_runs_to_the_end_and_says_what_is_not_done(source, tmp_path):
    set_kernel_env()
    nb = nbformat.read(student_of(source), 4)
    NotebookClient(nb, kernel_name="python3", timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell in nb.cells:
        if cell.cell_type == "code":
            streams = [output for output in cell.outputs if output.output_type == "stream"]
            assert all(output.name == "stdout" for output in streams)
    checked = [cell for cell in graded(nb, "grade") if cell.cell_type == "code"]
    said = ["".join(output.text for output in cell.outputs) for cell in checked]
    assert said and all(text.startswith("Not done yet: ") for text in said)


@by_name
def test_the_chapter_ends_with_its_exercises(source):
    chapter = ROOT / "notebooks" / source.name
    last = nbformat.read(chapter, 4).cells[-1]
    assert last.metadata.tags == ["exercises"]
    told = nbformat.read(source, 4)
    count = len(make_assignments.by_exercise(told))
    assert last.source.count("### Exercise ") == count
    assert last.source.count("<summary>Solution</summary>") == count
    assert "BEGIN" not in last.source and "END" not in last.source
    for cell in graded(told, "solution"):
        assert all(line in last.source for line in secret_lines(cell))


def test_a_wrong_answer_is_one_line_in_jupyter():
    set_kernel_env()
    wrong = "from attn_utils import checks\nchecks.softmax(lambda scores: scores / scores.sum(axis=-1, keepdims=True))"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(wrong)])
    NotebookClient(nb, kernel_name="python3", timeout=60, allow_errors=True).execute()
    [output] = nb.cells[0].outputs
    assert output.ename == "WrongAnswer"
    assert [line.startswith("Wrong: you divide the scores themselves") for line in output.traceback] == [True]


def test_a_student_version_without_an_assignment_is_removed(tmp_path):
    stray = tmp_path / STUDENTS / "09_gone.ipynb"
    stray.parent.mkdir(parents=True)
    stray.write_text("{}")
    assert make_assignments.outdated(tmp_path, {}) == [stray]
    make_assignments.put(stray, None)
    assert not stray.exists()
    make_assignments.put(stray, "{}")
    assert make_assignments.outdated(tmp_path, {stray: "{}"}) == []


def test_the_course_folder_holds_no_database_and_says_what_to_run(tmp_path):
    for folder in (tmp_path / "root" / make_assignments.SOURCES, tmp_path / "made"):
        folder.mkdir(parents=True)
    (tmp_path / "root" / make_assignments.SOURCES / "01_x.ipynb").write_text("{}")
    (tmp_path / "made" / "gradebook.db").touch()
    make_assignments.publish_course(tmp_path / "root", tmp_path / "made")
    place = tmp_path / "root" / make_assignments.COURSE
    assert [path.name for path in place.iterdir()] == ["README.md"]
    assert "nbgrader autograde 01_x\n" in (place / "README.md").read_text("utf8")
