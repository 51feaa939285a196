"""A table of how the notebooks are written, beside the guide of the design. It judges nothing and stops nothing.

    python tools/style.py [notebook.ipynb ...]

Without arguments: all chapters, their evidence, and the guides.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the rules know how to read a notebook

from lint import CHAPTER, EVIDENCE, Book, load, stored_notebooks  # noqa: E402
from lint.page import without_code  # noqa: E402
from lint.questions import answers, predictions  # noqa: E402
from lint.syntax import functions  # noqa: E402

GUIDE = {  # column -> what a chapter of the design has, as it is printed; evidence has no limit
    "words": "1200-1800",
    "cells": "<= 30",
    "lines": "<= 150",
    "in a row": "<= 2",
    "right": "a, b, c equally",
    "printing": "few",
    "longest cell": "mostly 5",
    "longest function": "mostly < 15",
    "longest paragraph": "short",
}


def style(nb):
    """What the table says of a notebook: column -> value. Code that is folded or left out counts as not visible."""
    lengths = [len(cell.lines) for cell in nb.visible]
    return {
        "words": words(nb.prose()),
        "cells": len(nb.visible),
        "lines": sum(lengths),
        "in a row": most_in_a_row(nb),
        "right": right_letters(nb),
        "printing": sum(map(prints, nb.visible)),
        "longest cell": max(lengths, default=0),
        "longest function": max(map(lines_of, functions(nb).values()), default=0),
        "longest paragraph": max(map(words, paragraphs(nb)), default=0),
    }


def lines_of(function):
    return function.end_lineno - function.lineno + 1


def words(text):
    """The words that a reader reads: no code, no tags, no addresses."""
    text = re.sub(r"<[^>]+>|\]\([^)]*\)", " ", without_code(text))
    return len(re.findall(r"\S*\w\S*", text))


def most_in_a_row(nb):
    """The most visible code cells without a sentence between them, be it Markdown, a caption or a computed one."""
    most = run = 0
    for cell in nb.cells:
        run += cell in nb.visible
        most = max(most, run)
        if cell.kind == "markdown" or cell.mime("text/markdown") or any(page.captions for page in cell.pages()):
            run = 0
    return most


def right_letters(nb):
    """How often each letter is the right one, such as "2 1 3", with the predictions whose answer gives none."""
    letters = Counter(letter or "?" for *_, letter in answers(nb))
    asked = sum(len(predictions(cell.source)) for cell in nb.own_markdown)
    none = f" + {letters['?']} without" if letters["?"] else ""
    return " ".join(f"{letters[letter]}" for letter in "abc") + none if asked else "-"


def prints(cell):
    """Whether a cell shows printed text, or a bare value."""
    bare = any(set(output.get("data", {})) == {"text/plain"} for output in cell.outputs)
    return bool(cell.stream("stdout")) or bare


def paragraphs(nb):
    """The paragraphs of the prose that are running text."""
    found = (part.strip() for cell in nb.own_markdown for part in re.split(r"\n\s*\n", cell.source))
    return [part for part in found if not part.startswith(("#", "|", "```", "<", "$$", ">"))]


def table(notebooks):
    """The lines of the table: the guide first, then a line for each notebook."""
    rows = [["", *GUIDE], ["guide for a chapter", *GUIDE.values()]]
    for nb in notebooks:
        name = f"evidence/{nb.path.stem}" if nb.kind == EVIDENCE else nb.path.stem
        rows.append([name, *map(str, style(nb).values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    args = parser.parse_args(arguments)
    missing = [str(path) for path in args.notebooks if not path.is_file()]
    if missing:
        sys.exit(f"no such notebook: {', '.join(missing)}")
    paths = args.notebooks or stored_notebooks(ROOT, ("notebooks", "notebooks/evidence"))
    book = Book.read(ROOT)
    notebooks = [load(path.resolve(), book=book) for path in paths]
    notebooks.sort(key=lambda nb: (nb.path.stem, nb.kind != CHAPTER))
    print("\n".join(table(notebooks)))
    print("\nright: how often (a), (b) and (c) are. A guide, no limit: no build fails on it. Evidence has no guide.")


if __name__ == "__main__":
    main()
