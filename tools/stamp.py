"""What a notebook carries to show that its stored outputs belong to its sources: two sums over the code cells.

`tools/execute_notebooks.py` writes the stamp when all cells ran; the rule `is_fresh` in tests/lint compares it.
There is no way to write one without running.
"""

import hashlib
import json

from set_repository import renamed

KEY = "abe"  # in the notebook's metadata


def stamp(cells, setup, address):
    """{"code": sha256, "outputs": sha256} of the code cells, given as dictionaries in the form of nbformat 4.

    setup     text of the set-up cell, which is left out: it produces no result, and a test of its own compares it
    address   OWNER/NAME of the repository, so that moving the book to another one makes no notebook stale
    """
    code = [cell for cell in cells if cell["cell_type"] == "code" and joined(cell["source"]).strip() != setup.strip()]
    sources = [joined(cell["source"]) for cell in code]
    outputs = [[shown(output) for output in cell.get("outputs", [])] for cell in code]
    return {"code": digest(sources, address), "outputs": digest(outputs, address)}


def digest(parts, address):
    text = renamed(json.dumps(parts, sort_keys=True, ensure_ascii=False), address, "OWNER/NAME")
    return hashlib.sha256(text.encode()).hexdigest()


def shown(output):
    """What an output shows, each text in one piece, whether the file has it as a string or as a list of lines."""
    data = {kind: joined(content) for kind, content in output.get("data", {}).items()}
    return [output["output_type"], output.get("name", ""), joined(output.get("text", "")), data]


def joined(text):
    """A text that may be stored as a list of lines."""
    lines = isinstance(text, list) and all(isinstance(line, str) for line in text)
    return "".join(text) if lines else text
