"""Every notebook keeps every rule of lint.py."""

import pytest
from lint import ROOT, RULES, check, load

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def test_there_are_notebooks():
    assert CHAPTERS, "no notebooks/NN_*.ipynb: the rules below would pass on nothing"


@pytest.fixture(scope="module")
def read():
    """load(), with each file read once."""
    seen = {}
    return lambda path: seen.get(path) or seen.setdefault(path, load(path))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_rule(path, name, read):
    complaints = check(read(path), name)
    if complaints:
        pytest.fail("\n".join([f"{name}: {len(complaints)} found", *complaints]), pytrace=False)
