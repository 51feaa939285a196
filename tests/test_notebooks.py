"""Every chapter, its evidence, every guide and every assignment keep every rule of tests/lint for their kind."""

import pytest
from lint import ROOT, Book, check, load, rules_for, stored_notebooks

FOLDERS = {"chapter": "notebooks/NN_*", "guide": "notebooks/[a-z]*", "assignment": "notebooks/assignments/NN_*"}
FOUND = stored_notebooks()
BOOK = Book.read(ROOT)
READ = {path: load(path, book=BOOK) for path in FOUND}
CASES = [(path, name) for path, nb in READ.items() for name in rules_for(nb.kind, nb.is_two_tier)]


def called(path):
    """01_qkv_basics, evidence-01_qkv_basics, ..."""
    return "-".join([*path.relative_to(ROOT / "notebooks").parts[:-1], path.stem])


@pytest.mark.parametrize(("path", "name"), CASES, ids=[f"{called(path)}-{name}" for path, name in CASES])
def test_rule(path, name):
    complaints = check(READ[path], name)
    if complaints:
        pytest.fail("\n".join([f"{name}: {len(complaints)} found", *complaints]), pytrace=False)


@pytest.mark.parametrize("kind", FOLDERS)
def test_there_are_notebooks(kind):
    assert kind in {nb.kind for nb in READ.values()}, f"no {FOLDERS[kind]}.ipynb: the rules would pass on nothing"


def test_no_notebook_is_left_out():
    """A file that the rules do not read, for its name or its place, would pass them all."""
    stored = {path for path in (ROOT / "notebooks").rglob("*.ipynb") if not {"student", ".ipynb_checkpoints"} & set(path.parts)}
    assert stored == set(FOUND)


def test_the_rules_are_applied_to_evidence():
    """Each notebook in notebooks/evidence/ has a chapter, and is held to the rules for evidence."""
    for path in sorted((ROOT / "notebooks" / "evidence").glob("*.ipynb")):
        assert (ROOT / "notebooks" / path.name).exists(), f"evidence/{path.name} has no chapter of its name"
        assert (path, "sections_claim_and_conclude") in CASES
