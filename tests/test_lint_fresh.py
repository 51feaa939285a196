"""A stamp says which sources gave which outputs: a changed one of either is caught, and only a run writes one."""

import json
import shutil

import pytest
from execute_notebooks import METADATA, all_notebooks, clean
from lint import CHAPTER, ROOT, RULES, Book, load, rules_for
from notebook_cells import SETUP, broken, code, lay_out, md, notebook, old_chapter, prints, read
from stamp import KEY, stamp

BROKEN = {"is_fresh"}
PRINTS = 3


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path, two_tier=False)


@pytest.fixture
def data():
    return old_chapter()


def drop(cells):
    del cells[PRINTS]


def swap(cells):
    cells[PRINTS], cells[8] = cells[8], cells[PRINTS]


STALE = {
    "a number": lambda cells: cells[PRINTS].update(source="scores = Q @ K.T  # (n, n)\nprint(2 * sum(scores))"),
    "a comment": lambda cells: cells[PRINTS].update(source=cells[PRINTS]["source"] + "  # why"),
    "an output": lambda cells: cells[PRINTS].update(outputs=[prints("12.3457\n")]),
    "an alt text": lambda cells: cells[7]["outputs"][0]["data"].update(
        {"text/html": cells[7]["outputs"][0]["data"]["text/html"].replace("at d = 2", "at d = 3")}
    ),
    "a cell less": drop,
    "two cells in another order": swap,
}


@pytest.mark.parametrize("what", STALE)
def test_what_was_changed_after_the_run_is_caught(what, data, folder):
    STALE[what](data["cells"])
    assert "is_fresh" in broken(read(folder, data))


def test_words_may_change_without_a_run(data, folder):
    data["cells"][4]["source"] += " See there."
    assert broken(read(folder, data)) == []


def test_a_notebook_without_a_stamp_is_not_fresh(data, folder):
    del data["metadata"][KEY]
    [complaint] = RULES["is_fresh"][0](read(folder, data))
    assert "no stamp" in complaint and "tools/execute_notebooks.py" in complaint


def test_what_was_never_run_is_told_in_one_line(data, folder):
    for cell in (cell for cell in data["cells"] if cell["cell_type"] == "code"):
        cell |= {"execution_count": None, "outputs": []}
    nb = read(folder, data)
    assert len(RULES["execution_counts_run_from_1"][0](nb)) == 1 and RULES["no_output_is_missing"][0](nb) == []
    data["cells"][1]["execution_count"] = 1
    assert len(RULES["no_output_is_missing"][0](read(folder, data))) > 1


def test_the_complaint_tells_a_source_from_an_output(data, folder):
    STALE["an output"](data["cells"])
    assert "a stored output is not what the last run gave" in RULES["is_fresh"][0](read(folder, data))[0]
    STALE["a number"](data["cells"])
    assert "a code cell was changed" in RULES["is_fresh"][0](read(folder, data))[0]


def test_the_rule_holds_for_every_kind():
    assert {kind for kind in ("chapter", "evidence", "assignment") if "is_fresh" in rules_for(kind, False)} >= {CHAPTER, "assignment"}
    assert "is_fresh" in rules_for("evidence", True)


def test_a_new_address_or_set_up_cell_makes_nothing_stale():
    text = json.dumps([code("print(1)", prints("see ada.github.io/book")), code("url = 'https://github.com/Ada/book'")])
    moved = text.replace("ada.github.io/book", "eve.github.io/other").replace("Ada/book", "Eve/other")
    assert stamp(json.loads(text), SETUP, "Ada/book") == stamp(json.loads(moved), SETUP, "Eve/other")
    with_setup = [code(SETUP), *json.loads(text)]
    assert stamp(with_setup, SETUP, "Ada/book") == stamp(json.loads(text), SETUP, "Ada/book")
    assert stamp(json.loads(moved), SETUP, "Ada/book") != stamp(json.loads(text), SETUP, "Ada/book")


def test_moving_the_book_makes_no_notebook_stale(tmp_path):
    from set_repository import set_repository

    for name in ("pyproject.toml", "_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("book", "notebooks", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    set_repository(tmp_path, "ada-l/Attention.2")
    paths, book = all_notebooks(tmp_path), Book.read(tmp_path)
    assert paths and [path.name for path in paths if RULES["is_fresh"][0](load(path, book=book))] == []


def test_student_versions_carry_no_stamp():
    for path in (ROOT / "notebooks" / "assignments" / "student").glob("*.ipynb"):
        assert json.loads(path.read_text("utf8"))["metadata"] == METADATA


def test_lines_and_one_string_are_the_same_text():
    one, many = code("a = 1\nb = 2", prints("1\n2\n")), code(["a = 1\n", "b = 2"], prints(["1\n", "2\n"]))
    assert stamp([one], SETUP, "a/b") == stamp([many], SETUP, "a/b")


def test_clean_stamps_what_it_hands_back():
    import nbformat
    from setup_cell import repository, setup_cell

    nb = nbformat.from_dict(notebook([md("# Title"), code("print(1)", prints("1\n"))]))
    nb.metadata.pop(KEY)
    first = clean(nb).metadata
    assert first[KEY] == stamp(nb.cells, setup_cell(), repository())
    assert clean(nb).metadata == first
