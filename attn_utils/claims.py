"""The claims ledger: what the sources say beside what a cell measured, with a computed verdict.

The rows live in book/claims.yml; data/claims.json is the same in the form that travels with the package.
"""

import json
from functools import cache
from importlib import resources

import numpy as np

_reported = {}  # claim id -> the line printed in this kernel, for ledger()


def report(claim_id, value, here=None):
    """Print one line: the claim, the source's value, ours, and the verdict that follows from the row's rule.

    claim_id   an id of book/claims.yml
    value      what was measured: a number, a bool, a string, or a sequence of numbers;
               None only where the row says why it is not testable here
    here       how to print it, when the bare value would not read well

    The verdict is computed, never passed in: *reproduced* when the value satisfies the row's `close`,
    *reproduced with a condition* when it satisfies `partly`, *differs* otherwise.
    Raises ValueError for an unknown id (naming near ones), NaN, or a value that the rule cannot judge.
    """
    row = _row(claim_id)
    text = here if here is not None else _format(value)
    if " | " in str(text) or len(str(text).splitlines()) > 1:
        raise ValueError(f"{claim_id}: here is {text!r}, expected one line without ' | ', which separates the parts.")
    line = f"{claim_id} | source: {row['theirs']} | here: {text} | {verdict(row, value)}"
    _reported[claim_id] = line
    print(line)


def ledger(chapter):
    """Show every claim of a chapter with the verdict reached in this kernel (Markdown, reads well on a phone).

    chapter   its number

    Outside a notebook it prints the lines of report() once more.

    Raises ValueError when the chapter has no claims, RuntimeError when one of them was not reported yet.
    """
    rows = [row for row in claims().values() if chapter in row["chapter"]]
    if not rows:
        raise ValueError(f"chapter {chapter!r} has no claims in book/claims.yml.")
    silent = [row["id"] for row in rows if row["id"] not in _reported]
    if silent:
        raise RuntimeError(f"not reported yet: {', '.join(silent)}. Run the cells above that call report().")
    import IPython

    if IPython.get_ipython() is None:  # a plain Python script shows no Markdown
        print("\n".join(_reported[row["id"]] for row in rows))
    else:
        IPython.display.display(
            IPython.display.Markdown("\n\n".join(_entry(row, _reported[row["id"]]) for row in rows))
        )


def verdict(row, value):
    """The verdict on a measured value under the rule of a claim's row, as text."""
    if value is None:
        if "untestable" not in row:
            raise ValueError(f"{row['id']}: no value was given, and its row does not say why it is not testable here.")
        return f"not testable here: {row['untestable']}"
    if "close" in row and _holds(row["close"], value, row):
        return "reproduced"
    if "partly" in row and _holds(row["partly"], value, row):
        return f"reproduced with a condition: {row['partly']['condition']}"
    if "otherwise" not in row:
        raise ValueError(
            f"{row['id']}: {_format(value)} does not satisfy its rule, and its row has no `otherwise` to say why."
        )
    return f"differs: {row['otherwise']}"


@cache
def claims():
    """All claims as a dict from id to row."""
    rows = json.loads((resources.files("attn_utils") / "data" / "claims.json").read_text("utf8"))
    return {row["id"]: row for row in rows}


def _row(claim_id):
    if claim_id not in claims():
        import difflib

        near = difflib.get_close_matches(str(claim_id), claims(), n=3, cutoff=0.4)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(
            f"unknown claim {claim_id!r}: it is not in book/claims.yml.{hint} New claims need a row there."
        )
    return claims()[claim_id]


RULES = {
    "within": lambda value, bound, theirs: np.abs(value - theirs) <= bound,
    "relative": lambda value, bound, theirs: np.abs(value - theirs) <= bound * np.abs(theirs),
    "at_least": lambda value, bound, theirs: value >= bound,
    "at_most": lambda value, bound, theirs: value <= bound,
    "between": lambda value, bound, theirs: (value >= bound[0]) & (value <= bound[1]),
}


def _holds(rule, value, row):
    """Whether a value satisfies every part of a rule such as {within: 0.001} or {at_least: 5, at_most: 7}."""
    parts = {name: bound for name, bound in rule.items() if name != "condition"}
    if not parts:
        raise ValueError(f"{row['id']}: its rule {rule} has no bound.")
    return all(_part_holds(name, bound, value, row) for name, bound in parts.items())


def _part_holds(name, bound, value, row):
    if np.size(value) == 0 or _has_nan(value):
        raise ValueError(
            f"{row['id']}: NaN or nothing cannot be judged (here {_format(value)!r}). Pass what was measured."
        )
    if name == "equal":
        if np.shape(value) != np.shape(bound) or isinstance(value, str) != isinstance(bound, str):
            raise ValueError(f"{row['id']}: got {value!r}, expected a value of the kind of {bound!r}.")
        return bool(np.array_equal(value, bound))
    if name not in RULES:
        raise ValueError(f"{row['id']}: unknown rule {name!r}, expected one of equal, {', '.join(RULES)}.")
    value = np.asarray(value, dtype=float)
    theirs = np.asarray(row.get("value", np.nan), dtype=float)
    if np.isnan(value).any() or (name in ("within", "relative") and np.isnan(theirs).any()):
        raise ValueError(f"{row['id']}: NaN cannot be judged (here {_format(value)}, source {row.get('value')}).")
    if name in ("within", "relative") and value.shape != theirs.shape:
        raise ValueError(f"{row['id']}: got {value.size} numbers, expected {theirs.size} as in the source.")
    return bool(np.all(RULES[name](value, bound, theirs)))


def _has_nan(value):
    array = np.asarray(value)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _format(value):
    """A value as text of at most four significant digits."""
    if value is None:
        return "not measured"
    if isinstance(value, (str, bool, np.bool_)):
        return {True: "yes", False: "no"}.get(value, str(value))
    if np.ndim(value):
        return " ".join(_format(number) for number in np.ravel(value))
    return f"{value:d}" if isinstance(value, (int, np.integer)) else f"{float(value):.4g}"


def _entry(row, line):
    source, here, outcome = line.split(" | ", 3)[1:]
    name, _, why = outcome.partition(": ")
    return f"**{row['says']}**<br>{source}; {here}<br>*{name}*{': ' + why if why else ''} (`{row['id']}`)"
