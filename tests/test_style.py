"""`make style` prints where each notebook stands, and stops nothing; `make lint` and it install nothing."""

import shutil
import subprocess
import sys

import pytest
from lint import ROOT
from notebook_cells import code, folded, lay_out, md, notebook, prints, read, shows, told_chapter
from style import GUIDE, most_in_a_row, right_letters, style, table, words


@pytest.fixture
def nb(tmp_path):
    return read(lay_out(tmp_path, two_tier=True), told_chapter())


def test_what_the_table_says_of_a_small_chapter(nb):
    told = style(nb)
    assert told.keys() == GUIDE.keys()
    assert (told["cells"], told["lines"]) == (6, 8)  # neither the set-up, nor what is folded, nor the binding
    assert (told["in a row"], told["right"], told["printing"], told["longest cell"]) == (1, "1 0 0", 0, 3)


def test_words_are_those_that_a_reader_reads():
    assert words("Two [words](https://example.org/a-b), `code` and $x + 1$.") == 5
    assert words("<details><summary>One</summary>two</details>\n\n```python\nx = 1\n```") == 2


def test_the_longest_function_is_counted_folded_or_not(tmp_path):
    cells = [folded("two functions", "def f():\n    return 1\n\ndef g(x):\n    y = x\n\n    return y"), code("h = lambda x: x")]
    assert style(read(lay_out(tmp_path, two_tier=True), notebook(cells)))["longest function"] == 4


def test_a_computed_sentence_stands_between_two_cells(tmp_path):
    folder = lay_out(tmp_path, two_tier=True)
    one, two = [code("a = 1"), code("b = 2")], [code("c = 3"), code("d = 4")]
    said = code("say(f'{a}')", shows(text_markdown="1"))
    assert most_in_a_row(read(folder, notebook([*one, *two]))) == 4
    assert most_in_a_row(read(folder, notebook([*one, md("A sentence."), *two]))) == 2
    assert most_in_a_row(read(folder, notebook([*one, said, *two]))) == 3
    assert most_in_a_row(read(folder, notebook([*one, folded("more", "x = 1"), *two]))) == 4


def test_printing_cells_and_bare_values_are_counted(tmp_path):
    value = {"output_type": "execute_result", "data": {"text/plain": "3"}, "metadata": {}}
    cells = [code("print(1)", prints("1\n")), code("3", value), code("say('x')", shows(text_markdown="x", text_plain="x"))]
    assert style(read(lay_out(tmp_path, two_tier=True), notebook(cells)))["printing"] == 2


def test_a_prediction_without_a_letter_is_counted_apart(nb):
    nb.cells[6].raw["source"] = "The share is 27 %."
    assert right_letters(nb) == "0 0 0 + 1 without"


def test_the_guide_stands_above_the_notebooks(nb):
    lines = table([nb])
    assert len(lines) == 3 and lines[1].startswith("guide for a chapter") and "1200-1800" in lines[1]
    assert lines[2].startswith("01_test")


def test_it_prints_every_notebook_and_stops_nothing():
    done = subprocess.run([sys.executable, ROOT / "tools" / "style.py"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"\n{path.stem} " in done.stdout


@pytest.mark.parametrize("target", ["lint", "style"])
def test_without_an_environment_one_line_says_what_to_run(target, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(["make", "-s", "-C", tmp_path, target], capture_output=True, text=True)
    assert done.returncode != 0
    line = done.stderr.splitlines()[0]
    assert "make book or make test" in line and "installs nothing" in line
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
