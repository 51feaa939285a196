"""The file itself: its metadata, its cells' ids, the set-up cell, its size, and where the book lists it."""

import re

from execute_notebooks import METADATA
from stamp import KEY

from .registry import ASSIGNMENT, CHAPTER, EVIDENCE, GUIDE, rule


@rule()
def metadata_is_as_agreed(nb):
    found = []
    stored = {key: value for key, value in nb.data.get("metadata", {}).items() if key != KEY}
    if stored != METADATA:
        do = f"Expected exactly {METADATA} and the stamp of a run; `make notebooks` writes both"
        found.append(nb.say(None, f"notebook metadata {stored}", do))
    if (nb.data.get("nbformat"), nb.data.get("nbformat_minor")) != (4, 5):
        found.append(nb.say(None, "not nbformat 4.5", "Run `make notebooks`"))
    known = {"tags", "mystnb"} | ({"nbgrader"} if nb.kind == ASSIGNMENT else set())
    for cell in nb.cells:
        if extra := sorted(set(cell.metadata) - known):
            do = "Keep tags and mystnb only; `make notebooks` removes what execution adds"
            found.append(nb.say(cell, f"cell metadata {', '.join(extra)}", do))
    return found


@rule()
def cell_ids_are_stable(nb):
    found, seen = [], set()
    for cell in nb.cells:
        if not re.fullmatch(rf"{re.escape(nb.name[:2])}-\d{{3}}", cell.id):
            found.append(nb.say(cell, "its id", f"Give it one like {nb.name[:2]}-{cell.number:03d}"))
        if cell.id in seen:
            found.append(nb.say(cell, "its id is taken", "Give it one of its own"))
        seen.add(cell.id)
    return found


@rule()
def setup_cell_is_the_shared_one(nb):
    do = "Copy the text that tools/setup_cell.py prints into the first code cell, tagged remove-cell"
    setup = nb.book.setup.strip()
    first = nb.code[0] if nb.code else None
    if first is None or first.source.strip() != setup:
        return [nb.say(first, "the first code cell is not the set-up cell", do)]
    found = []
    if first.tags != ["remove-cell"]:
        found.append(nb.say(first, f"the set-up cell has the tags {first.tags}", do))
    if first.outputs:
        found.append(nb.say(first, "the set-up cell has an output", "It has to be silent"))
    again = [cell for cell in nb.code[1:] if cell.source.strip() == setup]
    return found + [nb.say(cell, "the set-up cell a second time", "Remove it") for cell in again]


@rule()
def file_is_small(nb):
    kilobytes = nb.size / 1000
    if kilobytes <= 700:  # pictures are stored at twice the size; the page with all of them stays under 1 MB
        return []
    return [nb.say(None, f"{kilobytes:.0f} KB, allowed are 700", "Make figures smaller or fewer")]


@rule(CHAPTER, EVIDENCE, GUIDE)
def is_listed(nb):
    """In _toc.yml, evidence among the sections of its chapter; a chapter and a guide on the first page too."""
    chapter, found = f"notebooks/{nb.path.stem}", []
    entries = {entry["file"]: entry for part in nb.book.toc.get("parts", []) for entry in part.get("chapters", [])}
    if nb.kind in (CHAPTER, GUIDE) and chapter not in entries:
        found.append(nb.say(None, "_toc.yml does not list it", f"Add `- file: {chapter}` to the part that it belongs to"))
    if nb.kind in (CHAPTER, GUIDE) and f"../{chapter}.ipynb" not in nb.book.index:
        found.append(nb.say(None, "book/index.md does not link it", f"Link ../{chapter}.ipynb there"))
    below = [section.get("file") for section in entries.get(chapter, {}).get("sections", [])]
    evidence = f"notebooks/evidence/{nb.path.stem}"
    if nb.kind == EVIDENCE and evidence not in below:
        do = f"Add `sections:` with `- file: {evidence}` below `- file: {chapter}`"
        found.append(nb.say(None, "_toc.yml does not list it under its chapter", do))
    return found
