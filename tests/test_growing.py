"""Growing the book: a new chapter that runs and keeps every rule, and the commands that the guide gives, in its order."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import check_chapter
import nbformat
import new_chapter
import pytest
import yaml
from lint import check, load, rules_for
from test_prose import is_there, targets

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "book" / "contributing.md").read_text(encoding="utf-8")
STEM = "09_my_topic"
PAIR = [f"notebooks/{STEM}.ipynb", f"notebooks/evidence/{STEM}.ipynb"]


def copy_of_the_checkout(folder):
    """The files that git would know, without those that are built."""
    left_out = shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__", ".*_cache", "*.egg-info", "claims.md")
    return Path(shutil.copytree(ROOT, folder, ignore=left_out))


def run(root, *command):
    """A tool of a copied checkout, which finds the package of that copy."""
    env = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run([sys.executable, *command], cwd=root, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A copy of the checkout in which a chapter was begun."""
    root = copy_of_the_checkout(tmp_path_factory.mktemp("grown") / "book")
    done = run(root, "tools/new_chapter.py", "my_topic")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == PAIR[::-1]
    return root


# ------------------------------------------------------------------------------- a new chapter


def test_a_new_chapter_keeps_every_rule_and_is_listed_everywhere(grown):
    for name in PAIR:
        notebook = load(grown / name, grown)
        names = rules_for(notebook.kind, notebook.is_two_tier)
        assert notebook.is_two_tier and len(names) > 20
        assert [complaint for name in names for complaint in check(notebook, name)] == []
    contents = yaml.safe_load((grown / "_toc.yml").read_text("utf8"))
    listed = {entry["file"]: entry for part in contents["parts"] for entry in part["chapters"]}
    assert listed[f"notebooks/{STEM}"]["sections"] == [{"file": f"notebooks/evidence/{STEM}", "title": "Evidence"}]
    chapters = [file for file in listed if file.startswith("notebooks/")]
    assert chapters == sorted(chapters), "the chapters do not stand in order"
    assert f"| [9. My topic](../notebooks/{STEM}.ipynb) | " in (grown / "book" / "index.md").read_text("utf8")
    done = run(grown, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_prose.py", "-k", "chapters or teachers")
    assert done.returncode == 0, done.stdout
    [cell] = [cell for cell in nbformat.read(grown / PAIR[0], 4).cells if cell.source == "ledger(9)"]
    assert "belongs to chapter 9" in cell.outputs[0].data["text/markdown"], "a chapter without a claim"


def test_a_chapter_of_a_name_that_is_taken_or_none_is_refused(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "03_masks.ipynb").touch()
    new_chapter.check_name(tmp_path, "my_topic_2")
    for name in ("", "My_topic", "my topic", "09_topic", "a/b", "_x"):
        with pytest.raises(ValueError, match="expected lower-case words joined by underscores"):
            new_chapter.check_name(tmp_path, name)
    with pytest.raises(ValueError, match="there is a chapter of that name: notebooks/03_masks.ipynb"):
        new_chapter.check_name(tmp_path, "masks")
    assert new_chapter.next_number(tmp_path) == 4


def test_when_it_fails_nothing_is_left_behind(tmp_path, monkeypatch):
    for name in ("_toc.yml", "book/index.md", "book/instructors.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "notebooks").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(new_chapter, "execute", lambda root, path: 1.0)
    monkeypatch.setattr(new_chapter, "listed", lambda *_: {tmp_path / "_toc.yml": "cut", tmp_path / "pyproject.toml/x": ""})
    with pytest.raises(OSError):  # the second of the lists cannot be written
        new_chapter.begin(tmp_path, "my_topic")
    monkeypatch.setattr(new_chapter, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        new_chapter.begin(tmp_path, "my_topic")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_chapter_goes_behind_the_sections_of_the_last_one():
    text = (
        "parts:\n  - chapters:\n      - file: notebooks/01_a\n        sections:\n          - file: book/x\n  - caption: R\n"
    )
    found = yaml.safe_load(new_chapter.in_contents(text, "02_b"))["parts"]
    assert [entry["file"] for entry in found[0]["chapters"]] == ["notebooks/01_a", "notebooks/02_b"]
    assert found[0]["chapters"][0]["sections"] == [{"file": "book/x"}] and found[1] == {"caption": "R"}
    with pytest.raises(ValueError, match="lists no chapter"):
        new_chapter.in_contents("root: x\n", "02_b")
    with pytest.raises(ValueError, match="found no table of chapters"):
        new_chapter.in_table("no table\n", "| row |")


# ------------------------------------------------------------------------------- make check


def test_what_is_checked_of_a_chapter():
    paths = check_chapter.notebooks_of(ROOT, "3")
    assert [path.name for path in paths].count("03_causal_masks.ipynb") >= 2
    commands = [command for _, command in check_chapter.steps(paths)]
    assert commands[-1] == ["tools/compare_notebooks.py", *paths] and "03_causal_masks" in commands[0]
    assert ["tools/make_assignments.py", "--check"] in commands and ["tools/claims.py", "--check"] in commands
    without = check_chapter.steps(check_chapter.notebooks_of(ROOT, "08"))
    assert len(without) == len(commands) - 1
    for words in commands:
        assert all((ROOT / word).exists() for word in map(str, words) if "/" in word)


@pytest.mark.parametrize(("number", "message"), [("", "expected the number"), ("x", "expected the number"), ("²", "expected the number"), ("77", "There are 01, 02")])
def test_a_chapter_that_is_not_there_is_said_in_one_line(number, message):
    done = run(ROOT, "tools/check_chapter.py", *([number] if number else []))
    assert done.returncode == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_every_step_runs_and_what_failed_is_named(monkeypatch, capsys):
    ran = []

    def fake(command, cwd):
        ran.append(command[1:])
        return subprocess.CompletedProcess(command, 1 if "tools/claims.py" in command else 0)

    monkeypatch.setattr(check_chapter.subprocess, "run", fake)
    with pytest.raises(SystemExit) as stopped:
        check_chapter.main(["03"])
    assert stopped.value.code == "Something is wrong with the claims and their measurements (see above)."
    assert len(ran) == len(capsys.readouterr().out.splitlines()) == 5
    monkeypatch.setattr(check_chapter.subprocess, "run", lambda command, cwd: subprocess.CompletedProcess(command, 0))
    check_chapter.main(["03"])
    assert "All is well with " in capsys.readouterr().out


# ------------------------------------------------------------------------------- the guide

CHANGES = re.findall(r"^### (.+)\n\n((?:\d+\. .+\n)+)", GUIDE.partition("## Find what to touch")[2].partition("\n## ")[0], re.M)
COMMAND = re.compile(r"`((?:make|\.venv/bin/python) [^`]+)`")


@pytest.mark.parametrize(("change", "steps"), CHANGES, ids=[change for change, _ in CHANGES])
def test_what_the_guide_names_is_there(change, steps):
    """Each step names a file or a command; the files exist, the scripts exist, the targets of make exist."""
    for step in steps.splitlines():
        named = re.findall(r"`([^`]+)`", step)
        assert named or step.startswith("2. Assert"), f"{change}: {step!r} names nothing"
        for command in COMMAND.findall(step):
            words = shlex.split(command)
            assert words[0] != "make" or words[1] in targets(), command
        places = [word for text in named for word in text.split() if "/" in word and not word.startswith((".venv", "["))]
        assert [place for place in places if not is_there(place)] == [], f"{change}: {step}"


def test_the_guide_covers_what_people_come_for():
    assert {"A claim", "A figure", "A weighting", "An exercise", "A chapter"} <= {change for change, _ in CHANGES}


ROW = """\
    - id: uniform-spread
      chapter: 9
      says: attending to sixteen tokens equally keeps the size of their values
      words: attending to all tokens equally keeps the size of their values
      original: 大きさは変わらない
      where: a document of this test
      theirs: "1"
      value: 1
      close: {within: 0.1}
      otherwise: the output is smaller
      refuted_by: 0.5
"""
REPORT = """\
from attn_utils import report
alone, among = (spread("normal", n, np.random.default_rng(0)) for n in (1, 16))
report("uniform-spread", among / alone)"""


def test_the_steps_of_a_claim_work_in_their_order(grown):
    steps = dict(CHANGES)["A claim"].splitlines()
    edits = iter([write_the_row, report_it])
    for step in steps:
        commands = COMMAND.findall(step)
        if not commands:
            next(edits)(grown)
        for command in commands:
            for words in calls(grown, shlex.split(command.replace("NN_name", STEM))):
                done = run(grown, *words)
                assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    assert next(edits, None) is None, "the guide does not say to write the row and to report the value"
    [cell] = [cell for cell in nbformat.read(grown / PAIR[0], 4).cells if cell.source == "ledger(9)"]
    told = cell.outputs[0].data["text/markdown"]
    assert f"evidence/{STEM}.ipynb#claim-uniform-spread" in told and "*differs*: the output is smaller" in told


def calls(root, words):
    """What a command of the guide runs, for Python; make check without its last step, which would execute again."""
    if words[0] != "make":
        return [words[1:]]
    return [command for _, command in check_chapter.steps(check_chapter.notebooks_of(root, "09"))[:-1]]


def write_the_row(root):
    claims = root / "book" / "claims.yml"
    text = claims.read_text("utf8")
    claims.write_text(text.replace("  claims:\n", "  claims:\n" + ROW, 1), encoding="utf-8")


def report_it(root):
    evidence = root / "notebooks" / "evidence" / f"{STEM}.ipynb"
    nb = nbformat.read(evidence, 4)
    nb.cells.append(nbformat.v4.new_code_cell(REPORT, id="09-900"))
    nbformat.write(nb, evidence)
