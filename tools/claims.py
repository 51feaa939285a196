"""The claims ledger, from book/claims.yml and the notebooks' stored outputs.

    python tools/claims.py            write attn_utils/data/claims.json and book/claims.md
    python tools/claims.py --rows     write attn_utils/data/claims.json alone; a row may wait for its measurement
    python tools/claims.py --check    exit 1 when either of them, or a notebook, does not fit

A claim is reported in the evidence of its chapter (notebooks/evidence/), or in the chapter where it has none.
A line of an unknown claim, or a missing line of a claim whose chapter exists, is an error: the build stops.
"""

import html
import json
import os
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this checkout's attn_utils, whatever is installed

from attn_utils.claims import RULES, VERDICTS, facts_named, in_markdown, judge, standing  # noqa: E402

CLASSES = dict(zip(VERDICTS, ("reproduced", "condition", "differs", "open", "open", "open"), strict=True))
HEADINGS = {  # short names for the columns of the count
    "reproduced with a condition": "with a condition",
    "not testable here": "not testable",
    "not measured yet": "not yet",
}
FORMS = {  # how a number of claims is told: of one, of several
    "reproduced": ("is reproduced", "are reproduced"),
    "reproduced with a condition": ("is reproduced with a condition", "are reproduced with a condition"),
    "differs": ("differs", "differ"),
    "answered": ("is answered", "are answered"),
    "not testable here": ("is not testable here", "are not testable here"),
    "not measured yet": ("is not measured yet", "are not measured yet"),
}
SOURCE_NEEDED = {"heading", "about", "kind", "claims"}
SOURCE_FIELDS = SOURCE_NEEDED | {"name", "author", "link", "no_link", "papers", "read", "code", "no_code"}
NEEDED = {"id", "chapter", "says", "where"}
ON_THE_PAGE = {"words", "original", "where", "cites", "as_summarized", "expect"}  # not in the package
FIELDS = NEEDED | ON_THE_PAGE | {"from", "theirs", "value", "close", "partly", "otherwise", "untestable", "open"}
FIELDS |= {"answer", "refuted_by", "possible"}
STANDINGS = ({"close", "partly"}, {"untestable"}, {"open"}, {"answer"})  # a row has fields of one of these


# ---------------------------------------------------------------- the rows


def read_claims(root=ROOT):
    """(sources, rows): what book/claims.yml says, checked. Each row knows its source and a list of chapters."""
    try:
        book = yaml.safe_load((root / "book" / "claims.yml").read_text("utf8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"book/claims.yml cannot be read: {error}") from error
    rows = []
    for source, entry in book.items():
        _check_source(source, entry)
        for row in entry["claims"]:
            _want(row.get("id"), row, NEEDED, FIELDS)
            _check_row(entry, row)
            listed = row["chapter"] if isinstance(row["chapter"], list) else [row["chapter"]]
            rows.append({**row, "chapter": listed, "source": source, "theirs": str(row.get("theirs", row["says"]))})
    ids = [row["id"] for row in rows]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"book/claims.yml: the id {twice[0]!r} stands twice. Give each claim its own.")
    return book, rows


def _want(name, entry, needed, allowed):
    """Stop where a source or a row lacks a field or has one that nobody reads."""
    missing, unknown = sorted(needed - set(entry)), sorted(set(entry) - allowed)
    if missing or unknown:
        raise ValueError(
            f"book/claims.yml: {name}: missing {missing}, unknown field {unknown}. Expected some of {sorted(allowed)}."
        )


def _check_source(source, entry):
    """Stop at a document that a reader could not find, or would not know that nobody can."""
    _want(source, entry, SOURCE_NEEDED, SOURCE_FIELDS)
    if entry["kind"] not in ("document", "papers"):
        raise ValueError(f"book/claims.yml: {source}: kind is {entry['kind']!r}, expected document or papers.")
    if entry["kind"] == "document":
        _want(source, entry, {"name", "author", "papers", "read"}, SOURCE_FIELDS)
        for given, why_not in (("link", "no_link"), ("code", "no_code")):
            if (given in entry) == (why_not in entry):
                raise ValueError(f"book/claims.yml: {source}: give either {given} or {why_not}, which says why.")


def _check_row(entry, row):
    """Stop at a row without the source's words, or with a rule that report() could not apply or nothing refutes."""
    own = entry["kind"] == "document" and row.get("from", "document") != "paper"
    _want(row["id"], row, {"words", "original"} if own else {"cites"}, FIELDS)
    if row.get("from", "paper") not in ("paper", "question"):
        raise ValueError(f"book/claims.yml: {row['id']}: from is {row['from']!r}, expected paper or question.")
    standing_on = [fields for fields in STANDINGS if fields & set(row)]
    if len(standing_on) != 1:
        raise ValueError(
            f"book/claims.yml: {row['id']}: expected one of a rule (close, partly), untestable, open and answer, got "
            f"{sorted(set().union(*standing_on))}."
        )
    if standing_on[0] is STANDINGS[0]:
        _check_rules(row)
    try:
        facts_named(row)
    except ValueError as error:
        raise ValueError(f"book/claims.yml: {row['id']}: a text cannot be filled: {error}") from error


def _check_rules(row):
    """Stop at a rule that report() could not apply, or that the value which should refute it passes."""
    for field in ("close", "partly"):
        unknown = sorted(set(row.get(field, {})) - set(RULES) - {"condition"})
        if unknown or (field == "partly" and field in row and "condition" not in row[field]):
            raise ValueError(
                f"book/claims.yml: {row['id']}: {field} has {unknown or 'no condition'}, known: {sorted(RULES)}."
            )
    _want(row["id"], row, {"refuted_by", "otherwise"}, FIELDS)
    outcome, _ = judge(row, row["refuted_by"])
    if outcome != "differs":
        raise ValueError(
            f"book/claims.yml: {row['id']}: refuted_by is {row['refuted_by']!r}, and the rule calls that {outcome!r}. "
            "Give a value that refutes the claim, or tighten the rule."
        )


def packaged(root=ROOT):
    """The text of attn_utils/data/claims.json: the rows that report() reads, with what the notebooks measured."""
    found, _ = collect(root)
    rows = []
    for row in read_claims(root)[1]:
        kept = {name: value for name, value in row.items() if name not in ON_THE_PAGE}
        measured = [{"chapter": chapter, **found[row["id"], chapter]} for chapter in row["chapter"]
                    if (row["id"], chapter) in found]  # fmt: skip
        rows.append(kept | ({"measured": measured} if measured else {}))
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def write_rows(root=ROOT):
    """Bring attn_utils/data/claims.json up to date; notebooks read it."""
    _write(root / "attn_utils" / "data" / "claims.json", packaged(root))


# ---------------------------------------------------------------- the measurements


def notebook_of(root, chapter):
    """The notebook that reports a chapter's claims: its evidence, else the chapter, else None."""
    for folder in (root / "notebooks" / "evidence", root / "notebooks"):
        for path in sorted(folder.glob(f"{chapter:02d}_*.ipynb")):
            return path
    return None


def chapters(root):
    """The numbers of the chapters that are written."""
    return sorted({int(path.name[:2]) for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb")})


def lines_of(text):
    """The lines of report() in a text: claim id -> {source, here, verdict}; a second line of a claim is an error."""
    found = {}
    for parts in (line.split(" | ", 3) for line in text.splitlines()):
        if len(parts) == 4 and parts[1].startswith("source: ") and parts[3].startswith(VERDICTS):
            if parts[0] in found:
                raise ValueError(f"the claim {parts[0]!r} is reported twice. Report it once, where it is measured.")
            source, here = parts[1].removeprefix("source: "), parts[2].removeprefix("here: ")
            found[parts[0]] = {"source": source, "here": here, "verdict": parts[3]}
    return found


def reported(notebook):
    """The lines that report() printed in a notebook."""
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    outputs = [out for cell in cells for out in cell.get("outputs", []) if out["output_type"] == "stream"]
    try:
        return lines_of("\n".join("".join(out.get("text", "")) for out in outputs))
    except ValueError as error:
        raise ValueError(f"{notebook.name}: {error}") from error


def collect(root=ROOT):
    """((claim id, chapter) -> {notebook, here, verdict}, faults): what was measured, and what does not fit."""
    rows = {row["id"]: row for row in read_claims(root)[1]}
    found, faults = {}, []
    for chapter in chapters(root):
        notebook = notebook_of(root, chapter)
        lines = reported(notebook)
        faults += [
            f"{notebook.name} does not report the claim {name!r} of its chapter"
            for name, row in sorted(rows.items())
            if chapter in row["chapter"] and name not in lines and not {"open", "untestable"} & set(row)
        ]
        for name, line in lines.items():
            fault = _misfit(rows.get(name), chapter, line)
            faults += [f"{notebook.name} reports {name!r}, {fault}"] if fault else []
            if not fault:
                place = notebook.relative_to(root / "notebooks").as_posix()
                found[name, chapter] = {"notebook": place, "here": line["here"], "verdict": line["verdict"]}
    return found, faults


def _misfit(row, chapter, line):
    """What is wrong with a line that a notebook printed, or None."""
    if row is None or chapter not in row["chapter"]:
        return f"which book/claims.yml does not list for chapter {chapter}"
    if "open" in row:
        return "which book/claims.yml calls open"
    if line["source"] != row["theirs"]:
        return "with another value of the source than book/claims.yml: execute it again"
    return None


def measurements(root=ROOT):
    """(claim id, chapter) -> {notebook, here, verdict} over all notebooks; raises when rows and lines do not fit."""
    found, faults = collect(root)
    if faults:
        raise ValueError("the claims ledger does not fit the notebooks: " + "; ".join(faults))
    return found


# ---------------------------------------------------------------- the page

INTRODUCTION = """# Compare every claim with its measurement

<!-- Generated by tools/claims.py from book/claims.yml and the notebooks' stored outputs. Do not edit. -->

This book grew out of four documents written by others. Each of their testable statements stands here in the
document's own words, translated from the Japanese, and in ours, beside what a cell of this book measured. Nobody
types a verdict: it follows from the measured value and the tolerance written down in `book/claims.yml`, together
with a value that would refute the claim. Where we differ from a source, that is a measurement and no reproach;
the chapter shows it, and you can run it again."""


def claims_page(root=ROOT):
    """The Markdown of book/claims.md."""
    book, rows = read_claims(root)
    found = measurements(root)
    parts = [INTRODUCTION, _counts(book, rows, found)]
    for source, entry in book.items():
        mine = [row for row in rows if row["source"] == source]
        parts += [f"## {entry['heading']}\n\n{entry['about'].strip()}", *_presented(entry)]
        parts += [_section(row, found) for row in mine if "from" not in row]
        for kind, title in (("question", "Questions that it leaves open"), ("paper", "Claims of the papers behind it")):
            group = [_section(row, found) for row in mine if row.get("from") == kind]
            parts += [f"### {title}", *group] if group and entry["kind"] == "document" else group
    return "\n\n".join(parts) + "\n"


def _counts(book, rows, found):
    """How many claims there are, by document and by verdict; what belongs to a paper is counted apart."""
    documents, papers, questions = {}, [], []
    for row in rows:
        entry, name = book[row["source"]], _verdict_of(row, found)
        if row.get("from") == "paper" or entry["kind"] == "papers":
            papers.append(name)
        elif row.get("from") == "question":
            questions.append(name)
        else:
            documents.setdefault(entry["heading"], []).append(name)
    own = [name for names in documents.values() for name in names]
    said = [told("Of the documents' own {} claim", own)] if own else []
    said += [told("Of the papers' {} claim", papers)] if papers else []
    said += [told("The documents leave open {} question", questions, ": ")] if questions else []
    return " ".join(said) + "\n\n" + _table({**documents, "All documents": own, "Claims of papers": papers})


def _table(lines):
    """The number of each verdict, a line for each group."""
    shown = [name for name in VERDICTS if any(name in names for names in lines.values())]
    rows = [["", *(HEADINGS.get(name, name) for name in shown), "all"], [":--"] + ["--:"] * (len(shown) + 1)]
    for heading, names in lines.items():
        rows.append([heading, *(str(names.count(name)) for name in shown), str(len(names))])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def told(what, names, mark=", "):
    """One sentence that counts verdicts, right for every number of them; what has {} where their number stands."""
    parts = [f"{names.count(name)} {FORMS[name][names.count(name) > 1]}" for name in VERDICTS if name in names]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    return f"{what.format(len(names))}{'s' * (len(names) > 1)}{mark}{listed}."


def _verdict_of(row, found):
    """The name of a row's verdict; a claim measured in several chapters counts once, by the first."""
    lines = [found[row["id"], chapter]["verdict"] for chapter in row["chapter"] if (row["id"], chapter) in found]
    return _name(lines[0] if lines else standing(row))


def _name(verdict):
    return max((kind for kind in VERDICTS if verdict.startswith(kind)), key=len)


def _presented(entry):
    """Who wrote a document, where it can be found, the paper behind it and the authors' code."""
    if entry["kind"] != "document":
        return []
    where = f"[{entry['link']}]({entry['link']})" if "link" in entry else entry["no_link"]
    code = f"[{entry['code']}]({entry['code']})" if "code" in entry else entry["no_code"]
    papers = ", ".join(f"{{cite:t}}`{key}`" for key in entry["papers"])
    lines = {"The document": entry["name"], "Its author": entry["author"], "Where it is": where}
    lines |= {"The paper behind it": papers, "What we read of that": entry["read"], "The authors' code": code}
    return ["\n".join(f"- **{name}:** {text}" for name, text in lines.items())]


def _section(row, found):
    """One claim: its statement, the source's own words, then what each of its chapters measured."""
    parts = [f"(claim-{row['id']})=\n**{_sentence(row['says'])}** (`{row['id']}`)", _quoted(row)]
    lines = [(chapter, found.get((row["id"], chapter))) for chapter in row["chapter"]]
    parts += [_measured(row, chapter, line) for chapter, line in lines]
    return "\n\n".join(parts)


def _quoted(row):
    """The source's words in English and in the original, and where they stand."""
    said = [f"“{_escape(row['words'])}”"] if "words" in row else []
    said += [f"(<span lang=\"ja\">{_escape(row['original'])}</span>)"] if "original" in row else []
    by = f"{{cite:t}}`{row['cites']}`, " if "cites" in row else ""
    second_hand = f"; as summarized {_escape(row['as_summarized'])}" if "as_summarized" in row else ""
    return "> " + "\\\n> ".join([" ".join(said)] * bool(said) + [f"{by}{_escape(row['where'])}{second_hand}"])


def _measured(row, chapter, line):
    link, verdict, told_here = f"chapter {chapter}", standing(row), ""
    if line:
        place = f"../notebooks/{line['notebook']}#claim-{row['id']}"
        evidence = "the evidence of " if line["notebook"].startswith("evidence/") else ""
        link, verdict = f"[{evidence}chapter {chapter}]({place})", line["verdict"]
        told_here = f"<br>Here: {_escape(line['here'])}"
    name = _name(verdict)
    badge = f"[{name}]{{.verdict .verdict-{CLASSES[name]}}}"
    return f"{badge}{_escape(verdict.removeprefix(name))} ({link})<br>Source: {_escape(row['theirs'])}{told_here}"


def _sentence(text):
    return _escape(text[0].upper() + text[1:])


def _escape(text):
    """Text that MyST shows as it is."""
    return in_markdown(html.escape(text, quote=False))


def _write(path, text):
    if path.exists() and path.read_text("utf8") == text:
        return
    partial = path.with_suffix(".partial")
    partial.write_text(text, "utf8")
    os.replace(partial, path)


def _check(table):
    measurements(ROOT)
    if not table.exists() or table.read_text("utf8") != packaged(ROOT):
        raise ValueError(
            "attn_utils/data/claims.json is not what book/claims.yml and the notebooks say. Run: "
            "python tools/claims.py --rows"
        )


def main(arguments):
    if arguments not in ([], ["--rows"], ["--check"]):
        print(f"unknown arguments {arguments}: only --rows and --check are known", file=sys.stderr)
        return 2
    table = ROOT / "attn_utils" / "data" / "claims.json"
    try:
        if arguments == ["--check"]:
            _check(table)
            return 0
        write_rows(ROOT)  # first, because notebooks read it
        if not arguments:
            _write(ROOT / "book" / "claims.md", claims_page(ROOT))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
