"""The repository's address: it agrees everywhere, and one command changes it everywhere."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import make_assignments
import nbformat
import pytest
from set_repository import disagreements, main, pages, set_repository
from setup_cell import repository, setup_cell

ROOT = Path(__file__).resolve().parent.parent
NAMES = ["pyproject.toml", "_config.yml", "README.md", "CITATION.cff", "environment.yml", "CONTRIBUTING.md"]


@pytest.fixture
def copy(tmp_path):
    """A copy of the files that may name the repository."""
    for name in NAMES:
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("book", "notebooks", ".github"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "attn_utils").mkdir()
    shutil.copy(ROOT / "attn_utils" / "labs.py", tmp_path / "attn_utils")
    return tmp_path


def everything(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_address_agrees_everywhere():
    assert disagreements(ROOT) == []


def test_live_figures_lead_to_the_site(copy):
    labs = copy / "attn_utils" / "labs.py"
    labs.write_text(labs.read_text("utf8").replace(".github.io/", ".example.org/"), encoding="utf-8")
    assert disagreements(copy) == [f"attn_utils/labs.py: SITE is not https://{pages(repository(copy))}/"]


def test_the_set_up_cell_is_short_and_is_python():
    text = setup_cell()
    assert len(text.splitlines()) <= 8
    assert f"/{repository()}/archive/" in text
    compile(text, "set-up cell", "exec")


def test_a_new_address_reaches_every_file(copy):
    old = repository(copy)
    changed = set_repository(copy, "ada-l/Attention.2")
    assert repository(copy) == "ada-l/Attention.2"
    assert disagreements(copy) == []
    assert {"pyproject.toml", "_config.yml", "README.md", "CITATION.cff", "attn_utils/labs.py"} <= set(changed)
    assert all(old.encode() not in data for data in everything(copy).values())
    owner, name = old.split("/")
    assert all(f"{owner}.github.io/{name}".encode() not in data for data in everything(copy).values())
    for path in (copy / "notebooks").glob("*.ipynb"):
        assert "ada-l/Attention.2" in json.dumps(json.loads(path.read_text("utf8"))["cells"])


def test_the_exercises_of_a_chapter_and_the_student_versions_follow(copy):
    set_repository(copy, "ada-l/Attention.2")
    for path in make_assignments.sources(copy):
        assignment = nbformat.read(path, 4)
        told = make_assignments.exercises(assignment, path.stem, "ada-l/Attention.2")
        chapter = copy / "notebooks" / path.name
        assert make_assignments.with_exercises(chapter, told) == chapter.read_text("utf8")
        page = make_assignments.exercises_page(assignment, path.stem, "ada-l/Attention.2")
        assert page == (copy / make_assignments.page_of(path.stem)).read_text("utf8")
        student = (copy / make_assignments.STUDENTS / path.name).read_text("utf8")
        assert f"https://ada-l.github.io/Attention.2/notebooks/{path.stem}.html" in student


def test_there_and_back_gives_the_same_bytes(copy):
    before, old = everything(copy), repository(copy)
    set_repository(copy, "ada/attention")
    assert everything(copy) != before
    set_repository(copy, old)
    assert everything(copy) == before
    assert set_repository(copy, old) == []


@pytest.mark.parametrize("bad", ["", "ada", "ada/", "/book", "ada/book/x", "-ada/book", "ada/..", "ada/b k", "ada/x.git"])
def test_what_is_no_address_is_refused(copy, bad):
    before = everything(copy)
    with pytest.raises(ValueError, match="is not OWNER/NAME"):
        set_repository(copy, bad)
    assert everything(copy) == before


def test_the_check_names_what_disagrees(copy, capsys):
    readme, config = copy / "README.md", copy / "_config.yml"
    readme.write_text(readme.read_text("utf8") + "\nhttps://mybinder.org/v2/gh/eve/book/main\n", encoding="utf-8")
    config.write_text(config.read_text("utf8").replace(repository(copy), "eve/book"), encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["--check", "--root", str(copy)])
    assert "README.md: launches eve/book" in str(stopped.value)
    assert "_config.yml" in str(stopped.value)


def test_the_check_reads_what_readers_are_told_to_clone(copy):
    page = copy / "book" / "how-to-use.md"
    page.write_text(page.read_text(encoding="utf-8").replace("git clone https://github.com/", "git clone https://github.com/other/"), encoding="utf-8")
    assert any("how-to-use.md" in line for line in disagreements(copy))


def test_the_check_sees_an_edited_set_up_cell(copy):
    path = next(iter(sorted((copy / "notebooks").glob("*.ipynb"))))
    path.write_text(path.read_text("utf8").replace("Finds attn_utils", "Find attn_utils"), encoding="utf-8")
    assert disagreements(copy) == [f"notebooks/{path.name}: its first code cell is not what tools/setup_cell.py prints"]


def test_the_command_line_refuses_in_one_line():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "set_repository.py", "not an address"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
