"""The claims ledger, from book/claims.yml and the notebooks' stored outputs.

    python tools/claims.py            write attn_utils/data/claims.json and book/claims.md
    python tools/claims.py --check    exit 1 when either of them, or a notebook, does not fit

A row counts as measured when a notebook of its chapter printed its line. A line of an unknown claim, or a
missing line of a claim whose chapter exists, is an error: the build stops.
"""

import html
import json
import os
import sys
from pathlib import Path

import yaml

RULES = {"within", "relative", "at_least", "at_most", "between", "equal", "condition"}  # as in attn_utils/claims.py
ROOT = Path(__file__).resolve().parents[1]
VERDICTS = ("reproduced", "reproduced with a condition", "differs", "not testable here")
CLASSES = dict(
    zip(VERDICTS, ("verdict-reproduced", "verdict-condition", "verdict-differs", "verdict-open"), strict=True)
)
FIELDS = {"id", "chapter", "says", "theirs", "value", "close", "partly", "otherwise", "untestable", "expect"}


def read_claims(root=ROOT):
    """(sources, rows): what book/claims.yml says, checked. Each row knows its source and a list of chapters."""
    try:
        book = yaml.safe_load((root / "book" / "claims.yml").read_text("utf8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"book/claims.yml cannot be read: {error}") from error
    rows = []
    for source, entry in book.items():
        _want(source, entry, {"heading", "about", "claims"}, {"heading", "about", "claims"})
        for row in entry["claims"]:
            _want(row.get("id"), row, {"id", "chapter", "says"}, FIELDS)
            _check_rules(row)
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


def _check_rules(row):
    """Stop at a rule that report() could not apply."""
    for field in ("close", "partly"):
        unknown = sorted(set(row.get(field, {})) - RULES)
        if unknown or (field == "partly" and field in row and "condition" not in row[field]):
            raise ValueError(
                f"book/claims.yml: {row['id']}: {field} has {unknown or 'no condition'}, known: {sorted(RULES)}."
            )


def packaged(root=ROOT):
    """The text of attn_utils/data/claims.json: what report() reads."""
    return json.dumps(read_claims(root)[1], indent=1, ensure_ascii=False) + "\n"


def notebook_of(root, chapter):
    """The notebook of a chapter, or None while it is not written."""
    found = sorted((root / "notebooks").glob(f"{chapter:02d}_*.ipynb"))
    return found[0] if found else None


def chapters(root):
    """The numbers of the chapters that are written."""
    return sorted({int(path.name[:2]) for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb")})


def reported(notebook):
    """The lines that report() printed in a notebook: claim id -> (source, here, verdict)."""
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    texts = [
        "".join(out.get("text", ""))
        for cell in cells
        for out in cell.get("outputs", [])
        if out["output_type"] == "stream"
    ]
    lines = [line.split(" | ", 3) for text in texts for line in text.splitlines()]
    return {
        parts[0]: (parts[1].removeprefix("source: "), parts[2].removeprefix("here: "), parts[3])
        for parts in lines
        if len(parts) == 4 and parts[1].startswith("source: ") and parts[3].startswith(VERDICTS)
    }


def measurements(root=ROOT):
    """(claim id, chapter) -> (source, here, verdict) over all notebooks; raises when rows and lines do not fit."""
    rows = read_claims(root)[1]
    found, faults = {}, []
    for chapter in chapters(root):
        notebook = notebook_of(root, chapter)
        lines, here = reported(notebook), {row["id"] for row in rows if chapter in row["chapter"]}
        faults += [
            f"{notebook.name} reports {name!r}, which book/claims.yml does not list for chapter {chapter}"
            for name in lines
            if name not in here
        ]
        faults += [
            f"{notebook.name} does not report the claim {name!r} of its chapter" for name in sorted(here - set(lines))
        ]
        found.update({(name, chapter): line for name, line in lines.items()})
    if faults:
        raise ValueError("the claims ledger does not fit the notebooks: " + "; ".join(faults))
    return found


def claims_page(root=ROOT):
    """The Markdown of book/claims.md."""
    book, rows = read_claims(root)
    found = measurements(root)
    parts = [INTRODUCTION, _count(rows, found)]
    for source, entry in book.items():
        parts.append(f"## {entry['heading']}\n\n{entry['about'].strip()}")
        parts += [_section(root, row, found) for row in rows if row["source"] == source]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# Compare every claim with its measurement

<!-- Generated by tools/claims.py from book/claims.yml and the notebooks' stored outputs. Do not edit. -->

This book grew out of four documents written by others. Each of their testable statements stands here, in our own
words, beside what a cell of this book measured. Nobody types a verdict: it follows from the measured value and the
tolerance written down in `book/claims.yml`. Where we differ from a source, that is a measurement and no reproach;
the chapter shows it, and you can run it again."""


def _count(rows, found):
    """One honest line on where the ledger stands; a claim measured in several chapters counts once, by the first."""
    verdicts = {}
    for (name, _), line in sorted(found.items(), key=lambda item: item[0][1]):
        verdicts.setdefault(name, _name(line[2]))
    told = ", ".join(f"{list(verdicts.values()).count(kind)} {kind}" for kind in VERDICTS)
    return f"Of {len(rows)} claims, {len(verdicts)} are measured so far: {told}. The others wait for their chapter."


def _name(verdict):
    return max((kind for kind in VERDICTS if verdict.startswith(kind)), key=len)


def _section(root, row, found):
    """One claim: its statement, then what each of its chapters measured."""
    lines = [f"(claim-{row['id']})=\n**{_sentence(row['says'])}** (`{row['id']}`)"]
    lines += [
        _measured(notebook_of(root, chapter), chapter, found.get((row["id"], chapter))) for chapter in row["chapter"]
    ]
    return "\n\n".join(lines)


def _measured(notebook, chapter, line):
    if notebook is None:
        return f"[not measured yet]{{.verdict .verdict-open}} in chapter {chapter}"
    source, here, verdict = line
    name = _name(verdict)
    badge = f"[{name}]{{.verdict .{CLASSES[name]}}}"
    told = f"{badge}{_escape(verdict.removeprefix(name))} ([chapter {chapter}](../notebooks/{notebook.name}))"
    return f"{told}<br>Source: {_escape(source)}<br>Here: {_escape(here)}"


def _sentence(text):
    return _escape(text[0].upper() + text[1:])


def _escape(text):
    """Text that MyST shows as it is."""
    text = html.escape(text, quote=False)
    for mark in "\\`*_[]$~":
        text = text.replace(mark, "\\" + mark)
    return text


def _write(path, text):
    if path.exists() and path.read_text("utf8") == text:
        return
    partial = path.with_suffix(".partial")
    partial.write_text(text, "utf8")
    os.replace(partial, path)


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(f"unknown arguments {arguments}: only --check is known", file=sys.stderr)
        return 2
    table = ROOT / "attn_utils" / "data" / "claims.json"
    try:
        text = packaged()
        if arguments == ["--check"]:
            measurements()
            if not table.exists() or table.read_text("utf8") != text:
                raise ValueError(
                    "attn_utils/data/claims.json is not what book/claims.yml says. Run: python tools/claims.py"
                )
            return 0
        _write(table, text)  # first, because notebooks read it
        _write(ROOT / "book" / "claims.md", claims_page())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
