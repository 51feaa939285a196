"""The claims ledger: what the sources say beside what a cell measured, with a computed verdict.

The rows live in book/claims.yml; data/claims.json holds the same, and what the notebooks measured, in the form
that travels with the package.
"""

import json
from functools import cache
from importlib import resources
from string import Formatter

import numpy as np

from attn_utils.figures import say, table
from attn_utils.inputs import whole_number

VERDICTS = ("reproduced", "reproduced with a condition", "differs", "answered", "not testable here", "not measured yet")
_reported = {}  # claim id -> (here, verdict) reached in this kernel, for ledger()


def report(claim_id, value, here=None, facts=None):
    """Print one line: the claim, the source's value, ours, and the verdict that follows from the row's rule.

    claim_id   an id of book/claims.yml
    value      what was measured: a number, a bool, a string, or a sequence of numbers, of the kind and shape of
               the row's `refuted_by`; None only where the row says why it is not testable here
    here       how to print it, when the bare value would not read well
    facts      dict of what the texts of the row name in braces, such as {share:.0%}

    The verdict is computed, never passed in: *reproduced* when the value satisfies the row's `close`,
    *reproduced with a condition* when it satisfies `partly`, *differs* otherwise; a question is *answered*.
    Raises ValueError for an unknown id (naming near ones), NaN, infinity, a value that the rule cannot judge,
    and facts that are missing or that no text names.
    """
    row = _row(claim_id)
    outcome = verdict(row, value, facts)
    text = str(here if here is not None else _format(value))
    if " | " in text or len(text.splitlines()) > 1:
        raise ValueError(f"{claim_id}: here is {text!r}, expected one line without ' | ', which separates the parts.")
    _reported[claim_id] = text, outcome
    print(f"{claim_id} | source: {row['theirs']} | here: {text} | {outcome}")


def ledger(chapter):
    """Show every claim of a chapter as a table: the source's value, ours, the verdict, a link to the cell.

    chapter   its number

    In the evidence, and in a chapter that reports its claims itself, the verdicts are those reached in this
    kernel. In a chapter whose evidence reports them they are read from data/claims.json. A chapter without claims
    shows one sentence.

    Raises ValueError for a chapter that is no number, and RuntimeError when a claim that this notebook has to report
    was not reported yet.
    """
    whole_number(chapter, "chapter", fix=", such as ledger(3)")
    rows = [row for row in claims().values() if chapter in row["chapter"]]
    if not rows:
        return say(f"None of the claims in the ledger belongs to chapter {chapter}.")
    _refuse_silence(rows, chapter)
    table(_columns(rows, [_found(row, chapter) for row in rows]))


def _refuse_silence(rows, chapter):
    """Stop where claims of this notebook are not reported yet; those that only the evidence reports may be silent."""
    silent = [row["id"] for row in rows if row["id"] not in _reported and not {"open", "untestable"} & set(row)]
    elsewhere = any(_stored(row, chapter).get("notebook", "").startswith("evidence/") for row in rows)
    if silent and (not elsewhere or any(row["id"] in _reported for row in rows)):
        raise RuntimeError(
            f"not reported yet: {', '.join(silent)}. Run the cells above that call report(); where the chapter has "
            "evidence, execute that and run: python tools/claims.py --rows"
        )


def _found(row, chapter):
    """(here, verdict, link) of a row: from this kernel, else from what its notebook stored, else what stands open."""
    name, stored = row["id"], _stored(row, chapter)
    if name in _reported:
        return *_reported[name], f"#claim-{name}"
    if stored:
        return stored["here"], stored["verdict"], f"{stored['notebook']}#claim-{name}"
    return "", standing(row), ""


def _stored(row, chapter):
    return next((one for one in row.get("measured", []) if one["chapter"] == chapter), {})


def standing(row):
    """The verdict on a row that no cell reports: why it is not testable here, or what it waits for."""
    if "untestable" in row:
        return f"not testable here: {row['untestable']}"
    return f"not measured yet: {row['open']}" if "open" in row else "not measured yet"


def _columns(rows, found):
    """The columns of the table; the claims link to the cells that measured them."""
    columns = {"The claim": [], "The source": [], "Measured here": [], "Verdict": []}
    for row, (here, outcome, link) in zip(rows, found, strict=True):
        claim = in_markdown(row["says"][0].upper() + row["says"][1:])
        name, colon, why = outcome.partition(": ")
        cells = f"[{claim}]({link})" if link else claim, in_markdown(row["theirs"]), in_markdown(here)
        for column, cell in zip(columns.values(), (*cells, f"*{name}*{colon}{in_markdown(why)}"), strict=True):
            column.append(cell)
    return columns


def in_markdown(text):
    """Text that Markdown, and a cell of a Markdown table, shows as it is."""
    for mark in "\\`*_[]$~|<":
        text = text.replace(mark, "\\" + mark)
    return text


def verdict(row, value, facts=None):
    """The verdict on a measured value under the rule of a claim's row, as text."""
    if facts is not None and not isinstance(facts, dict):
        raise ValueError(f"{row['id']}: facts is {facts!r:.60}, expected a dict of what the texts of its row name.")
    told = _texts(row, facts or {})
    name, why = judge(row, value)
    if why and why not in told:
        raise ValueError(
            f"{row['id']}: the verdict on {_format(value)} is {name!r}, and its row has no `{why}` to say why."
        )
    return f"{name}: {told[why]}" if why else name


def judge(row, value):
    """(name of the verdict, name of the text of the row that says why, or None)."""
    if value is None:
        if "untestable" not in row:
            raise ValueError(
                f"{row['id']}: no value was given, and its row does not say why it is not testable here. "
                "Pass what was measured."
            )
        return "not testable here", "untestable"
    _check(row, value)
    if "answer" in row:
        return "answered", "answer"
    if "close" in row and _holds(row["close"], value, row):
        return "reproduced", None
    if "partly" in row and _holds(row["partly"], value, row):
        return "reproduced with a condition", "condition"
    return "differs", "otherwise"


@cache
def claims():
    """All claims as a dict from id to row."""
    rows = json.loads((resources.files("attn_utils") / "data" / "claims.json").read_text("utf8"))
    return {row["id"]: row for row in rows}


def _row(claim_id):
    if not isinstance(claim_id, str) or claim_id not in claims():
        import difflib

        near = difflib.get_close_matches(str(claim_id), claims(), n=3, cutoff=0.4)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(
            f"unknown claim {claim_id!r}: it is not in attn_utils/data/claims.json.{hint} A new claim needs a row in "
            "book/claims.yml, and then: python tools/claims.py --rows"
        )
    if "open" in claims()[claim_id]:
        raise ValueError(f"{claim_id}: book/claims.yml says that it is open. Give its row a rule in place of `open`.")
    return claims()[claim_id]


# ---------------------------------------------------------------- texts


def texts_of(row):
    """The texts of a row that a verdict may print, by name."""
    told = {name: row[name] for name in ("otherwise", "untestable", "answer") if name in row}
    return told | ({"condition": row["partly"]["condition"]} if "partly" in row else {})


def facts_named(row):
    """The names in braces that the texts of a row want to have filled."""
    return {name for text in texts_of(row).values() for _, name, _, _ in Formatter().parse(text) if name is not None}


def _texts(row, facts):
    """The row's texts with the facts in place; all of its names and no others have to be there."""
    wanted, given = facts_named(row), set(facts)
    if wanted != given:
        raise ValueError(
            f"{row['id']}: got the facts {sorted(given)}, expected {sorted(wanted)}, which the texts of its row name."
        )
    try:
        return {name: text.format(**facts) for name, text in texts_of(row).items()}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{row['id']}: the facts {facts} do not fit the texts of its row: {error}") from error


# ---------------------------------------------------------------- rules

RULES = {
    "within": lambda value, bound, theirs: np.abs(value - theirs) <= bound,
    "relative": lambda value, bound, theirs: np.abs(value - theirs) <= bound * np.abs(theirs),
    "at_least": lambda value, bound, theirs: value >= bound,
    "at_most": lambda value, bound, theirs: value <= bound,
    "between": lambda value, bound, theirs: (value >= bound[0]) & (value <= bound[1]),
    "equal": lambda value, bound, theirs: np.asarray(value == bound),
}


def _holds(rule, value, row):
    """Whether a value satisfies every part of a rule such as {within: 0.001} or {at_least: 5, at_most: 7}."""
    parts = {name: bound for name, bound in rule.items() if name != "condition"}
    if not parts:
        raise ValueError(f"{row['id']}: its rule {rule} has no bound.")
    return all(_part_holds(name, bound, value, row) for name, bound in parts.items())


def _part_holds(name, bound, value, row):
    if name not in RULES:
        raise ValueError(f"{row['id']}: unknown rule {name!r}, expected one of {', '.join(RULES)}.")
    theirs = np.asarray(row.get("value", np.nan))
    if name in ("within", "relative") and (theirs.shape != np.shape(value) or np.isnan(theirs).any()):
        raise ValueError(f"{row['id']}: got {np.size(value)} numbers to compare with the source's {row.get('value')}.")
    return bool(np.all(RULES[name](np.asarray(value), np.asarray(bound), theirs)))


def _check(row, value):
    """Stop at a value that is not finite, not of the kind and shape of `refuted_by`, or not possible."""
    kind = _kind(row, value)
    if "refuted_by" in row and kind != _kind(row, row["refuted_by"]):
        raise ValueError(f"{row['id']}: got {value!r}, expected a value of the kind of {row['refuted_by']!r}.")
    low, high = row.get("possible", (-np.inf, np.inf))
    if "possible" in row and not np.all((np.asarray(value) >= low) & (np.asarray(value) <= high)):
        raise ValueError(f"{row['id']}: got {_format(value)}, expected what is possible: {low} to {high}.")


def _kind(row, value):
    """('number' or 'yes or no' or 'text', shape) of a value."""
    kinds = {_kind_of_one(row, leaf) for leaf in _leaves(value)}
    try:
        shape = np.shape(value)
    except ValueError:  # lists of several lengths
        kinds, shape = set(), ()
    if len(kinds) != 1:
        raise ValueError(
            f"{row['id']}: got {value!r}, expected one value or several of one kind. Pass what was measured."
        )
    return kinds.pop(), shape


def _leaves(value):
    """The single values, as Python knows them: NumPy would turn [True, 2.5] into two numbers."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    return np.ravel(value).tolist() if isinstance(value, (np.ndarray, np.generic)) else [value]


def _kind_of_one(row, value):
    if isinstance(value, (bool, str)):
        return "text" if isinstance(value, str) else "yes or no"
    if not isinstance(value, (int, float)):
        raise ValueError(f"{row['id']}: got {value!r}, expected a number, a bool or a string. Pass what was measured.")
    if not np.isfinite(value):
        raise ValueError(f"{row['id']}: NaN and infinity cannot be judged (got {value}). Pass what was measured.")
    return "number"


def _format(value):
    """A value as text of at most four significant digits."""
    if value is None:
        return "not measured"
    if isinstance(value, (str, bool, np.bool_)):
        return {True: "yes", False: "no"}.get(value, str(value))
    if np.ndim(value):
        return " ".join(_format(number) for number in np.ravel(value))
    return f"{value:d}" if isinstance(value, (int, np.integer)) else f"{float(value):.4g}"
