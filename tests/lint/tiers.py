"""The shape of a chapter and of its evidence: what each has to hold, and how the one leads to the other."""

import ast
import json
import re
from dataclasses import replace

from claims import lines_of

from attn_utils.claims import in_markdown

from .page import headings, parts, sections, text_of, without_code
from .registry import CHAPTER, EVIDENCE, rule
from .syntax import argument, calls

LEDGER = "what the sources say, and what we measured"
CLOSING = {
    "a summary": r"\bsum(mary|marise|marize|s? up)\b|what to keep",
    "exercises": r"exercise",
    "further reading": r"further reading|read (further|on|more)",
}


@rule(CHAPTER)
def opening_says_the_minutes(nb):
    if re.search(r"(?i)\babout \d+ minutes", text_of(sections(nb)[0][1])):
        return []
    return [nb.say(nb.cells[0], "the opening does not say how long it takes", 'Say "about 30 minutes" in it')]


@rule(CHAPTER)
def ends_as_agreed(nb):
    titles = [text.lower() for _, level, text in headings(nb) if level >= 2]
    return [
        nb.say(None, f"no section for {what}", "Every chapter ends with one")
        for what, pattern in CLOSING.items()
        if not any(re.search(pattern, title) for title in titles)
    ]


def ledger_sections(nb):
    """(position, cells) of the sections that are the ledger's."""
    return [(i, cells) for i, (title, cells) in enumerate(sections(nb)) if title.lower().startswith(LEDGER)]


@rule(CHAPTER)
def the_ledger_is_called(nb):
    """A chapter that has claims shows its ledger in the section of that name; one without claims needs neither."""
    expected = nb.book.claims(nb.number)
    shown = [call for _, cells in ledger_sections(nb) for cell in cells for call in calls(cell, "ledger")]
    if shown or not expected:
        return []
    do = f"Add it, with ledger({nb.number}) in a cell of its own"
    return [nb.say(None, "no section 'What the sources say, and what we measured' that calls ledger()", do)]


@rule(CHAPTER, two_tier=True)
def the_ledger_stands_at_the_end(nb):
    """After it come the self-check, the summary, exercises and reading; no experiment."""
    closing = re.compile("|".join([*CLOSING.values(), "check yourself"]))
    found = []
    for position, _ in ledger_sections(nb):
        for title, cells in sections(nb)[position + 1 :]:
            if not closing.search(title.lower()):
                do = "Move the ledger behind it: what is measured after the ledger is not in it"
                found.append(nb.say(cells[0], f"the section {title!r} follows the ledger", do))
    return found


@rule(CHAPTER, two_tier=True)
def ledger_rows_link_to_the_evidence(nb):
    """ledger(N) shows a table; each claim of the chapter has a row, each row leads to the cell that measured it."""
    do = f"Execute evidence/{nb.name}, run `tools/claims.py --rows`, then execute this notebook"
    found = []
    told = told_by_the_evidence(nb)
    for cell in (cell for _, cells in ledger_sections(nb) for cell in cells if calls(cell, "ledger")):
        if {getattr(argument(call, 0, "chapter"), "value", None) for call in calls(cell, "ledger")} != {nb.number}:
            found.append(nb.say(cell, "the ledger of another chapter", f"Call ledger({nb.number})"))
        rows = table_rows("\n".join(cell.mime("text/markdown")))
        expected = nb.book.claims(nb.number)
        if expected and not rows:
            found.append(nb.say(cell, "a ledger that is no table", do))
        linked = {claim for row in rows for claim in re.findall(rf"evidence/{re.escape(nb.name)}#claim-([\w-]+)\)", row)}
        missing = [claim for claim in expected if claim not in linked]
        if rows and missing:
            found.append(nb.say(cell, f"no row that links to the evidence for {', '.join(missing)}", do))
        for row in rows:
            other = [claim for claim in re.findall(r"#claim-([\w-]+)\)", row) if not all(part in row for part in told.get(claim, ()))]
            found += [nb.say(cell, f"a row of {claim} that differs from what the evidence reports", do) for claim in other]
            if "#claim-" not in row and not re.search(r"\*not (?:measured yet|testable here)\*", row):
                found.append(nb.say(cell, f"a row without a link to its evidence: {row[:60]!r}", do))
        found += [nb.say(cell, f"a link to {claim}, which the evidence does not report", do) for claim in sorted(linked - reported(nb))]
    return found


def reported(nb):
    """The claims that the stored evidence of a chapter reports."""
    evidence = nb.path.parent / "evidence" / nb.name
    return set(re.findall(r"([\w-]+) \| source: ", evidence.read_text(encoding="utf-8")))


def told_by_the_evidence(nb):
    """claim -> what its row of the ledger has to hold: what was measured and the verdict, as the evidence printed them."""
    evidence = nb.path.parent / "evidence" / nb.name
    lines = lines_of("\n".join(cell.stream("stdout") for cell in replace(nb, data=json.loads(evidence.read_text("utf8"))).code))
    told = {}
    for claim, line in lines.items():
        name, _, why = line["verdict"].partition(": ")
        told[claim] = f"| {in_markdown(line['here'])} |", f"*{name}*", in_markdown(why)
    return told


def table_rows(text):
    """The rows of the Markdown tables in a text, without their headings."""
    rows, body = [], False
    for line in text.splitlines():
        if re.fullmatch(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*", line) and "|" in line:
            body = True
        elif not line.lstrip().startswith("|"):
            body = False
        elif body:
            rows.append(line.strip())
    return rows


@rule(CHAPTER, two_tier=True)
def reports_stand_in_the_evidence(nb):
    do = f"Move it to evidence/{nb.name}, and say in the chapter what came out, with say()"
    return [nb.say(cell, "a call of report()", do) for cell in nb.taught if calls(cell, "report") or imports_as_other(cell)]


def imports_as_other(cell):
    """Whether report() is imported under another name, under which nobody would find its calls."""
    names = [alias for node in ast.walk(cell.tree()) if isinstance(node, ast.ImportFrom) for alias in node.names]
    return any(alias.name == "report" and alias.asname for alias in names)


FREE = r"(?i)\b(?:set[- ]?up|notes?|setting|read (?:further|on|more)|further reading|references)\b"


@rule(EVIDENCE)
def sections_claim_and_conclude(nb):
    """Each section states a claim and what would refute it; one that reports a row of the ledger concludes."""
    found = []
    for title, section in parts(nb)[1:]:
        if re.search(FREE, title):
            continue
        text = without_code("\n\n".join(text for _, text in section))
        wanted = {"**Claim.**": "what is claimed", "**It would be refuted by**": "what would refute it"}
        if any(calls(cell, "report") for cell, _ in section):
            wanted["**Concluded.**"] = "what came out"
        for mark, what in wanted.items():
            if len(re.findall(r"\w+", text.partition(mark)[2].split("**")[0])) < 4:
                do = f'Say it after "{mark}"'
                found.append(nb.say(section[0][0], f"the section {title!r} does not say {what}", do))
    return found
