"""The rules for notebooks, each a function from a Notebook to a list of complaints.

A complaint says which notebook and which cell, what was found and what to do about it. The rules
exist because strict nbval passes a notebook that was never executed and ignores every pixel:
what it cannot see is checked here. Each says for which kinds of notebooks it holds: chapters, evidence,
assignments, guides; some hold for the form of two tiers alone, or for the old form alone. They guard that a notebook
is true and complete; how it is written (words, cells, lines) is a table that `make style` prints.
`test_notebooks.py` applies them, `test_lint_*.py` break each of them once.
"""

from . import (  # noqa: F401  importing a module registers its rules
    assertions,
    execution,
    exercises,
    files,
    links,
    numbers,
    outputs,
    pictures,
    prose,
    questions,
    sources,
    tiers,
)
from .notebook import ROOT, Book, Notebook, load, stored_notebooks
from .registry import ASSIGNMENT, CHAPTER, EVIDENCE, GUIDE, RULES, check, rules_for

__all__ = [
    "ASSIGNMENT", "CHAPTER", "EVIDENCE", "GUIDE", "ROOT", "RULES", "Book", "Notebook", "check", "load", "rules_for",
    "stored_notebooks",
]  # fmt: skip
