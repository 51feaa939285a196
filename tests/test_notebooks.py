"""Every chapter and every assignment keeps every rule of lint.py for its kind."""

import pytest
from lint import ASSIGNMENT, CHAPTER, ROOT, check, load, rules_for

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
ASSIGNMENTS = sorted((ROOT / "notebooks" / "assignments").glob("[0-9][0-9]_*.ipynb"))


def test_there_are_notebooks():
    assert CHAPTERS, "no notebooks/NN_*.ipynb: the rules below would pass on nothing"
    assert ASSIGNMENTS, "no notebooks/assignments/NN_*.ipynb: the rules below would pass on nothing"


@pytest.fixture(scope="module")
def read():
    """load(), with each file read once."""
    seen = {}
    return lambda path: seen.get(path) or seen.setdefault(path, load(path))


@pytest.mark.parametrize("name", rules_for(CHAPTER))
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_rule(path, name, read):
    complain(path, name, read)


@pytest.mark.parametrize("name", rules_for(ASSIGNMENT))
@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: f"assignment-{path.stem}")
def test_rule_for_assignments(path, name, read):
    complain(path, name, read)


def complain(path, name, read):
    complaints = check(read(path), name)
    if complaints:
        pytest.fail("\n".join([f"{name}: {len(complaints)} found", *complaints]), pytrace=False)
