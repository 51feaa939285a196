"""Student versions: as generated, without solutions, running to the end unedited; chapters list their exercises."""

import re
import subprocess

import course_folder
import exercise_pages
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
def test_the_chapter_ends_with_a_list_of_its_exercises(source):
    last = nbformat.read(ROOT / "notebooks" / source.name, 4).cells[-1]
    assert last.metadata.tags == ["exercises"]
    told = nbformat.read(source, 4)
    listed = re.findall(r"^- \*\*\[([A-Z])\. (.+)\]\((\S+)\)\*\* (★+☆*), (\d+) minutes\. \S.*[.?]$", last.source, re.M)
    assert [f"{letter}: {title}" for letter, title, *_ in listed] == [
        cells[0].source.splitlines()[0].removeprefix("## Exercise ") for cells in make_assignments.by_exercise(told)
    ]
    assert all(page.startswith(f"../{exercise_pages.page_of(source.stem)}#exercise-") for _, _, page, *_ in listed)
    assert "<details>" not in last.source and "BEGIN" not in last.source
    for cell in graded(told, "solution"):
        assert not [line for line in secret_lines(cell) if line in last.source]


@by_name
def test_the_page_below_the_chapter_has_all_exercises_with_their_solutions(source):
    page = (ROOT / exercise_pages.page_of(source.stem)).read_text("utf8")
    told = nbformat.read(source, 4)
    count = len(make_assignments.by_exercise(told))
    assert count and page.count("\n## Exercise ") == count
    assert page.count("<summary>Solution</summary>") == count
    assert "BEGIN" not in page and "END" not in page
    for cell in graded(told, "solution"):
        assert all(line in page for line in secret_lines(cell))


@by_name
def test_the_list_leads_to_headings_that_are_there(source):
    last = nbformat.read(ROOT / "notebooks" / source.name, 4).cells[-1]
    page = (ROOT / exercise_pages.page_of(source.stem)).read_text("utf8")
    there = {exercise_pages.anchor(heading) for heading in re.findall(r"^## (.+)$", page, re.M)}
    assert set(re.findall(r"\.md#([\w-]+)\)", last.source)) == there


def exercise(text):
    return [nbformat.v4.new_markdown_cell("## Exercise A: Fill it in\n\n" + text)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Write `f(x)`: twice $x.5$ of e.g. this. Then rest.", "Write `f(x)`: twice $x.5$ of e.g. this."),
        ("How many are there? Set `n`.", "How many are there?"),
        ("One sentence\non two lines.\n\nAnother.", "One sentence on two lines."),
    ],
)
def test_the_list_takes_the_first_sentence(text, sentence):
    told = exercise_pages.in_a_line(exercise("★★☆ · 15 minutes · 4 points\n\n" + text))
    assert told["sentence"] == sentence and told["stars"] == "★★☆" and told["minutes"] == "15"
    assert told["anchor"] == "exercise-a-fill-it-in"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Write it.", "has no rating. Write a line such as"),
        ("★☆☆ · 5 minutes · 1 point\n\n$$\nx\n$$", "exercise A has no first sentence"),
    ],
)
def test_an_exercise_that_cannot_be_listed_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        exercise_pages.in_a_line(exercise(text))


@by_name
def test_points_and_minutes_are_typed_once(source):
    """Other points in the metadata, other minutes in one line of stars: every sum follows."""
    nb = nbformat.read(source, 4)
    assert make_assignments.as_text(make_assignments.added_up(nb)) == source.read_text("utf8")
    first = make_assignments.by_exercise(nb)[0]
    stars, minutes, worth = exercise_pages.rating(first).groups()
    first[0].source = first[0].source.replace(f"{minutes} minutes", f"{int(minutes) + 7} minutes")
    next(cell for cell in first if cell.metadata.get("nbgrader", {}).get("points")).metadata.nbgrader.points += 9
    make_assignments.added_up(nb)
    assert f"{stars} · {int(minutes) + 7} minutes · {int(worth) + 9} points" in first[0].source
    total, by_hand = make_assignments.points(nb.cells)
    assert f"exercises and {total} points" in nb.cells[0].source
    assert f"about {make_assignments.minutes_of(nb)} minutes" in nb.cells[0].source
    page = (ROOT / make_assignments.TEACHERS).read_text("utf8")
    changed = make_assignments.planned(page, source.stem, nb)
    [row] = set(changed.splitlines()) - set(page.splitlines())
    assert row.endswith(f"| {make_assignments.minutes_of(nb)} minutes | {total}, {by_hand} |")


def test_a_wrong_answer_is_one_line_in_jupyter():
    set_kernel_env()
    wrong = "from attn_utils import checks\nchecks.softmax(lambda scores: scores / scores.sum(axis=-1, keepdims=True))"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(wrong)])
    NotebookClient(nb, kernel_name="python3", timeout=60, allow_errors=True).execute()
    [output] = nb.cells[0].outputs
    assert output.ename == "WrongAnswer"
    assert [line.startswith("Wrong: you divide the scores themselves") for line in output.traceback] == [True]


@pytest.mark.parametrize("place", [f"{STUDENTS}/09_gone.ipynb", f"{exercise_pages.PAGES}/09_gone.md"])
def test_what_has_no_assignment_any_more_is_removed(place, tmp_path):
    stray = tmp_path / place
    stray.parent.mkdir(parents=True)
    stray.write_text("{}")
    assert make_assignments.outdated(tmp_path, {}) == [stray]
    make_assignments.put(stray, None)
    assert not stray.exists()
    make_assignments.put(stray, "{}")
    assert make_assignments.outdated(tmp_path, {stray: "{}"}) == []


# ------------------------------------------------------------------------------ the course folder


@pytest.fixture
def publish(tmp_path):
    """Publish a small course folder, with a release of the given text: the place under _build, and what was kept."""

    def run(text="{}"):
        made = tmp_path / "made"
        (made / "release").mkdir(parents=True, exist_ok=True)
        (made / "release" / "01_x.ipynb").write_text(text)
        (made / "gradebook.db").touch()
        place, kept = course_folder.publish(tmp_path, made, "01_x")
        return place.relative_to(tmp_path).as_posix(), [path.name for path in kept]

    return run


def test_the_course_folder_holds_no_database_and_says_what_to_run(publish, tmp_path):
    assert publish() == ("_build/course", [])
    place = tmp_path / "_build" / "course"
    assert sorted(path.name for path in place.iterdir()) == [course_folder.MANIFEST, "README.md", "release"]
    assert "nbgrader autograde 01_x\n" in (place / "README.md").read_text("utf8")


def test_a_course_folder_that_nobody_touched_is_brought_up_to_date(publish, tmp_path):
    publish()
    assert publish("new") == ("_build/course", [])
    assert (tmp_path / "_build" / "course" / "release" / "01_x.ipynb").read_text() == "new"
    assert [path.name for path in (tmp_path / "_build").iterdir()] == ["course"]


@pytest.mark.parametrize(
    "touched",
    ["gradebook.db", "submitted/ada/01_x/01_x.ipynb", "autograded/ada/01_x/01_x.ipynb", "nbgrader_config.py",
     "release/01_x.ipynb"],
)  # fmt: skip
def test_nothing_of_a_running_course_is_lost(touched, publish, tmp_path):
    publish()
    theirs = tmp_path / "_build" / "course" / touched
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("a term's work")
    before = course_folder.contents(tmp_path / "_build" / "course")
    assert publish("new") == ("_build/course-2", ["course"])
    assert course_folder.contents(tmp_path / "_build" / "course") == before
    assert theirs.read_text() == "a term's work"
    assert publish("newer") == ("_build/course-2", ["course"])  # the second is untouched, and follows
    (tmp_path / "_build" / "course-2" / "gradebook.db").touch()
    assert publish("newest") == ("_build/course-3", ["course", "course-2"])


def test_a_course_folder_of_an_earlier_version_is_kept(publish, tmp_path):
    old = tmp_path / "_build" / "course"
    old.mkdir(parents=True)
    (old / "gradebook.db").write_text("grades")
    assert publish() == ("_build/course-2", ["course"])
    assert (old / "gradebook.db").read_text() == "grades"


def test_make_clean_keeps_a_course(tmp_path):
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text("utf8"), encoding="utf-8")
    for name in ("course/release", "course-2/submitted", "course-3", "html", ".course.new"):
        (tmp_path / "_build" / name).mkdir(parents=True)
    (tmp_path / "_build" / "course-3" / "gradebook.db").touch()
    (tmp_path / "_build" / "book.log").touch()
    done = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "_build").iterdir()) == ["course-2", "course-3"]
    assert "_build/course-2" in done.stdout
