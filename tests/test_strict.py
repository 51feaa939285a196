"""The strict run: each notebook once, alone as a reader has it, and a change of any word that is read is red."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from compare_pictures import FRAME
from lint import stored_notebooks
from nbval.plugin import get_sanitize_patterns
from setup_cell import setup_cell

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = stored_notebooks()

SHOWS = {  # id of a cell -> its source; the outputs of all but the first two are falsified below
    "s-setup": setup_cell(),
    "s-imports": "import matplotlib.pyplot as plt\nfrom attn_utils import explore, figure, say, table",
    "s-caption": "fig, ax = plt.subplots(figsize=(2, 2))\nax.plot([1, 3])\n"
    "figure(fig, 'The line rises from 1 to 3.', alt='A line that rises by 2.')",
    "s-alt": "fig, ax = plt.subplots(figsize=(2, 2))\nax.plot([1, 4])\n"
    "figure(fig, 'The line rises from 1 to 4.', alt='A line that rises by 3.')",
    "s-say": "say('The weight on the first token is 27 %.')",
    "s-table": "table({'seed': [1, 2], 'loss': [0.25, 0.5]})",
    "s-ledger": "from IPython.display import Markdown\nMarkdown('| claim | here |\\n|---|---|\\n| a gap | 155 |')",
    "s-html": "from IPython.display import HTML\nHTML('<p>A share of <b>0.31</b>.</p>')",
    "s-print": "print('a norm of 7.25')",
    "s-value": "3 * 4",
}
FALSE = {  # id of a cell -> (what stands in its output, what is put there)
    "s-caption": ("from 1 to 3", "from 1 to 8"),
    "s-alt": ("rises by 3", "rises by 9"),
    "s-say": ("27 %", "72 %"),
    "s-table": ("0.25", "0.35"),
    "s-ledger": ("155", "255"),
    "s-html": ("0.31", "0.13"),
    "s-print": ("7.25", "7.52"),
    "s-value": ("12", "21"),
}
FAILS = {
    "f-import": "import attn_utils",
    "f-words": "print('before', 'the fall')\nassert 1 == 2, 'one is not two'",
    "f-file": "open('scratch.txt', 'w').close()",
    "f-network": "import socket\nsocket.getaddrinfo('example.org', 80)",
    "f-alone": "import os\nassert sorted(os.listdir()) == ['fails.ipynb', 'scratch.txt'], os.listdir()",
}


def notebook(path, cells, outputs=None):
    """Write a notebook with these code cells, executed so far as there are outputs."""
    made = [nbformat.v4.new_code_cell(source, id=key, execution_count=1) for key, source in cells.items()]
    for cell in made:
        cell.outputs = (outputs or {}).get(cell.id, [])
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


def falsify(output, old, new):
    """The output with some words changed in every form of it but the plain one, which says them again."""
    text = json.dumps(output, ensure_ascii=False)
    assert old in text
    forms = json.loads(text.replace(old, new))
    if len(forms.get("data", {})) > 1:
        forms["data"]["text/plain"] = output["data"]["text/plain"]
    return nbformat.from_dict(forms)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """What the strict run says of a notebook as it was executed, falsified in each cell, and one that fails."""
    folder = tmp_path_factory.mktemp("strict")
    honest = notebook(folder / "honest.ipynb", SHOWS)
    subprocess.run([sys.executable, ROOT / "tools" / "execute_notebooks.py", honest], check=True, capture_output=True)
    outputs = {cell.id: cell.outputs for cell in nbformat.read(honest, 4).cells}
    wrong = {key: [falsify(output, *FALSE[key]) for output in outputs[key]] for key in FALSE}
    paths = [honest, notebook(folder / "false.ipynb", SHOWS, wrong), notebook(folder / "fails.ipynb", FAILS)]
    command = [sys.executable, ROOT / "tools" / "compare_notebooks.py", *paths]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in paths)
    return done.stdout


def named(said, name):
    """The ids of the cells of a notebook that the end of the report names."""
    return re.findall(rf"^\S*{name}\.ipynb: code cell \[\d+\], id (\S+) failed", said, re.MULTILINE)


def test_what_was_executed_is_green(compared):
    assert "honest.ipynb" not in compared


def test_a_number_changed_in_any_output_is_red(compared):
    assert named(compared, "false") == list(FALSE)


def test_a_failure_names_notebook_and_cell_and_shows_what_was_printed(compared):
    assert "fails.ipynb: code cell [2], id f-words failed, or its output is not the stored one" in compared
    [part] = re.findall(r"_ fails.ipynb: code cell \[2\], id f-words _.*?(?=^___)", compared, re.MULTILINE | re.DOTALL)
    assert "before the fall" in part.partition("what the cell printed")[2]
    assert "AssertionError: one is not two" in part and "\x1b" not in compared


def test_there_is_no_package_and_no_network_and_no_neighbour(compared):
    assert named(compared, "fails") == ["f-import", "f-words", "f-network"]
    assert "No module named 'attn_utils'" in compared and "this test has no network" in compared


def test_a_file_left_behind_is_red_and_its_cell_is_named(compared):
    assert "fails.ipynb leaves files behind in the reader's folder: scratch.txt (code cell [3], id f-file)" in compared
    assert re.search(r"^\S*fails.ipynb: the notebook leaves files behind$", compared, re.MULTILINE)


def test_the_rules_of_sanitizing_hide_nothing_that_is_read():
    """They replace pictures, ids and addresses; a word or a number that a reader sees stays to be compared."""
    patterns = get_sanitize_patterns((ROOT / "nbval_sanitize.cfg").read_text("utf8"))
    assert patterns
    for text in (text for path in NOTEBOOKS for text in texts(path)):
        text = FRAME.sub("", text)
        for pattern, replacement in patterns:
            assert re.sub(pattern, replacement, text) == text


def texts(path):
    """All stored outputs of a notebook in words."""
    for output in (output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])):
        yield "".join(output.get("text", ""))
        for kind, content in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield "".join(content)


def test_pictures_inside_pages_are_told_from_their_words():
    frame = "data:image/png;base64," + base64.b64encode(b"picture 27").decode()
    pattern, replacement = get_sanitize_patterns((ROOT / "nbval_sanitize.cfg").read_text("utf8"))[0]
    said = re.sub(pattern, replacement, f'<img src="{frame}" alt="27 %"><figcaption>27 %</figcaption>')
    assert said == '<img src="FRAME" alt="27 %"><figcaption>27 %</figcaption>'
