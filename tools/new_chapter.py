"""Begin a chapter: a notebook and its evidence that run, keep every rule, and are listed where readers look.

    python tools/new_chapter.py my_topic

writes notebooks/NN_my_topic.ipynb and notebooks/evidence/NN_my_topic.ipynb under the next free number, executes
both, and lists them in _toc.yml, on the first page and on the page for teachers. They hold a small experiment
(tools/skeleton), to be replaced by yours. When anything fails or is interrupted, nothing is left behind.
"""

import argparse
import contextlib
import re
import subprocess
import sys
import time

import nbformat
from set_repository import write
from setup_cell import ROOT, setup_cell

SKELETON = ROOT / "tools" / "skeleton"
LISTS = ("_toc.yml", "book/index.md", "book/instructors.md")
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
CODE = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.M | re.S)
FOLD = re.compile(r'fold="([^"]+)"')


def next_number(root):
    """One more than the last chapter."""
    return 1 + max((int(path.name[:2]) for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb")), default=0)


def check_name(root, name):
    """Stop at a name that no chapter can have."""
    if not NAME.fullmatch(name):
        raise ValueError(f"NAME is {name!r}, expected lower-case words joined by underscores, such as NAME=my_topic")
    taken = [path for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb") if path.stem[3:] == name]
    if taken:
        raise ValueError(f"there is a chapter of that name: notebooks/{taken[0].name}. Choose another NAME")


def title_of(name):
    return name.replace("_", " ").capitalize()


def filled(text, name, number):
    """A skeleton with the chapter's own name in it."""
    values = {"title": title_of(name), "name": f"{number:02d}_{name}", "number": str(number)}
    return re.sub(r"<<(\w+)>>", lambda match: values[match[1]], text)


def notebook(text, number, root=ROOT):
    """A notebook from Markdown: each ```python block becomes a code cell, each heading begins a Markdown cell."""
    cells, end = [], 0
    for block in [*CODE.finditer(text), None]:
        told = text[end : block.start() if block else len(text)]
        parts = [part.strip() for part in re.split(r"^(?=## )", told, flags=re.M)]
        cells += [nbformat.v4.new_markdown_cell(part) for part in parts if part]
        if block:
            cells.append(code_cell(block[1].strip(), block[2].rstrip("\n"), root))
            end = block.end()
    for place, cell in enumerate(cells, 1):
        cell.id = f"{number:02d}-{place:03d}"
    return nbformat.v4.new_notebook(cells=cells)


def code_cell(option, source, root):
    """The cell of a block: `setup` stands for the set-up cell, fold="Code: ..." folds it away under that line."""
    if option == "setup":
        return nbformat.v4.new_code_cell(setup_cell(root), metadata={"tags": ["remove-cell"]})
    folded = FOLD.fullmatch(option)
    shown = {"code_prompt_show": folded[1], "code_prompt_hide": folded[1]} if folded else {}
    metadata = {"tags": ["hide-input"], "mystnb": shown} if folded else {}
    return nbformat.v4.new_code_cell(source, metadata=metadata)


# ------------------------------------------------------------------------------- the lists of chapters


def in_contents(text, stem):
    """_toc.yml with the chapter behind the last one, its evidence below it."""
    lines = text.splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if re.match(r" *- file: notebooks/\d\d_", line)]
    if not places:
        raise ValueError("_toc.yml lists no chapter, so there is no part to put this one into. Add it by hand")
    indent = " " * (len(lines[places[-1]]) - len(lines[places[-1]].lstrip()))
    after = places[-1] + 1
    while after < len(lines) and lines[after].startswith(indent + " "):
        after += 1
    entry = f"{indent}- file: notebooks/{stem}\n{indent}  sections:\n{indent}    - file: notebooks/evidence/{stem}\n"
    return "".join([*lines[:after], entry + f"{indent}      title: Evidence\n", *lines[after:]])


def in_table(text, row, after=r"^\| \[\d+\. [^|]*/notebooks/\d\d_\w+\.ipynb\).*\|$"):
    """A page with one more row behind the last row of its first table of chapters."""
    rows = list(re.finditer(after + "\n(?!" + after.removeprefix("^") + ")", text, re.M))
    if not rows:
        raise ValueError(f"found no table of chapters for the row {row!r}. Add it by hand")
    place = rows[0].end()
    return text[:place] + row + "\n" + text[place:]


def listed(root, name, number, minutes, seconds):
    """The lists that name every chapter, with this one in them: path -> text."""
    stem, link = f"{number:02d}_{name}", f"[{number}. {title_of(name)}](../notebooks/{number:02d}_{name}.ipynb)"
    contents, first, teachers = (root / place for place in LISTS)
    asks = "How much is left of a value when attention averages many?"
    timed = in_table(teachers.read_text("utf8"), f"| {link} | {minutes} minutes | {seconds} s | | |")
    needs = f"| {number} | 1 | standard deviation | the same |"
    return {
        contents: in_contents(contents.read_text("utf8"), stem),
        first: in_table(first.read_text("utf8"), f"| {link} | {asks} |"),
        teachers: in_table(timed, needs, after=r"^\| \d+ \| [^|]* \| [^|]* \| [^|]* \|$"),
    }


# --------------------------------------------------------------------------------------------- all of it


def begin(root, name):
    """Write, execute and list a chapter with its evidence; return their paths."""
    check_name(root, name)
    number = next_number(root)
    chapter = root / "notebooks" / f"{number:02d}_{name}.ipynb"
    pair = {"evidence": chapter.parent / "evidence" / chapter.name, "chapter": chapter}
    told = {kind: filled((SKELETON / f"{kind}.md").read_text("utf8"), name, number) for kind in pair}
    with all_or_nothing(*pair.values(), *(root / place for place in LISTS)):
        for kind, path in pair.items():
            path.parent.mkdir(exist_ok=True)
            write(path, nbformat.writes(notebook(told[kind], number, root)) + "\n")
            seconds = execute(root, path)  # the chapter comes second, and its seconds are listed
        minutes = re.search(r"about (\d+) minutes", told["chapter"])[1]
        for path, text in listed(root, name, number, minutes, max(1, round(seconds))).items():
            write(path, text)
    return pair


@contextlib.contextmanager
def all_or_nothing(*paths):
    """Put the files back as they were, or remove them, when what follows fails or is interrupted."""
    before = {path: path.read_text("utf8") if path.exists() else None for path in paths}
    try:
        yield
    except BaseException:
        for path, text in before.items():
            path.unlink(missing_ok=True) if text is None else write(path, text)
        raise


def execute(root, path):
    """Execute a notebook in place and return the seconds it took; stop with what it says when it fails."""
    start = time.perf_counter()
    command = [sys.executable, root / "tools" / "execute_notebooks.py", path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{path.relative_to(root)} could not be executed:\n{done.stderr.strip()}")
    return time.perf_counter() - start


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="", metavar="my_topic")
    args = parser.parse_args(arguments)
    try:
        pair = begin(ROOT, args.name)
    except ValueError as error:
        sys.exit(f"make new-chapter: {error}.")
    number = pair["chapter"].name[:2]
    for path in pair.values():
        print(path.relative_to(ROOT))
    print("They are listed in _toc.yml, book/index.md and book/instructors.md.")
    print(f"Replace the experiment by yours, then: make check NB={number}")


if __name__ == "__main__":
    main()
