"""A notebook as it is stored: its cells, what they show, and what the rules need to know of the repository."""

import ast
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml
from setup_cell import repository, setup_cell

from .page import Page, without_addresses
from .registry import ASSIGNMENT, CHAPTER, EVIDENCE, GUIDE

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Book:
    """What the rules need to know of the repository around a notebook."""

    setup: str  # the text of the set-up cell
    address: str = "owner/name"
    bibliography: str = ""
    toc: dict = field(default_factory=dict)
    index: str = ""
    sources: dict = field(default_factory=dict)  # book/claims.yml

    @classmethod
    def read(cls, root=ROOT):
        texts = {name: text(root / name) for name in ("book/references.bib", "_toc.yml", "book/index.md")}
        claims = yaml.safe_load(text(root / "book" / "claims.yml")) or {}
        bibliography, toc, index = texts.values()
        return cls(setup_cell(root), repository(root), bibliography, yaml.safe_load(toc) or {}, index, claims)

    def claims(self, chapter, source=None):
        """The ids of the claims that a chapter measures: not those that are open or cannot be tested here."""
        sources = [source] if source else self.sources.values()
        rows = [row for one in sources for row in one.get("claims", [])]
        rows = [row for row in rows if not {"open", "untestable"} & row.keys()]
        return [row["id"] for row in rows if chapter in (row["chapter"] if listed(row["chapter"]) else [row["chapter"]])]


def listed(value):
    return isinstance(value, list)


def text(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


@dataclass
class Notebook:
    """A notebook as stored, in the book that it belongs to."""

    path: Path
    data: dict
    book: Book
    size: int = 0
    cells: list = field(init=False)

    def __post_init__(self):
        self.cells = [Cell(number, raw) for number, raw in enumerate(self.data["cells"], 1)]

    @property
    def name(self):
        return self.path.name

    @property
    def number(self):
        """The number of its chapter, 0 where the file name has none."""
        return int(self.name[:2]) if self.name[:2].isdigit() else 0

    @property
    def kind(self):
        beside = CHAPTER if self.number else GUIDE
        return {"assignments": ASSIGNMENT, "evidence": EVIDENCE}.get(self.path.parent.name, beside)

    @property
    def is_two_tier(self):
        """Evidence, a guide, or a chapter that has evidence; the files say so, no list does."""
        evidence = self.path.parent / "evidence" / self.name
        return self.kind in (EVIDENCE, GUIDE) or (self.kind == CHAPTER and evidence.exists())

    @property
    def code(self):
        return [cell for cell in self.cells if cell.kind == "code"]

    @property
    def taught(self):
        """The code cells without the set-up cell, and without the checks of an assignment, which are generated."""
        own = [cell for cell in self.code if cell.source.strip() != self.book.setup.strip()]
        return [cell for cell in own if not cell.nbgrader.get("grade")]

    @property
    def visible(self):
        """The code cells that a reader of the site sees without a click."""
        return [cell for cell in self.taught if not HIDDEN & set(cell.tags)]

    @property
    def markdown(self):
        return [cell for cell in self.cells if cell.kind == "markdown"]

    @property
    def own_markdown(self):
        """The Markdown cells without the exercises, which are generated from the assignment."""
        return [cell for cell in self.markdown if "exercises" not in cell.tags]

    def prose(self):
        return "\n\n".join(cell.source for cell in self.own_markdown)

    def say(self, cell, found, do):
        where = f"{self.name}, cell {cell.number} ({cell.id})" if cell else self.name
        where = f"{self.kind} {where}" if self.kind != CHAPTER else where
        return f"{where}: {found}. {do}."


HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell"}


@dataclass
class Cell:
    number: int
    raw: dict

    @property
    def kind(self):
        return self.raw["cell_type"]

    @property
    def id(self):
        return self.raw.get("id", "no id")

    @property
    def source(self):
        return joined(self.raw["source"])

    @property
    def metadata(self):
        return self.raw.get("metadata", {})

    @property
    def tags(self):
        return self.metadata.get("tags", [])

    @property
    def mystnb(self):
        return self.metadata.get("mystnb", {})

    @property
    def nbgrader(self):
        return self.metadata.get("nbgrader", {})

    @property
    def outputs(self):
        return self.raw.get("outputs", [])

    @property
    def alt(self):
        return self.mystnb.get("image", {}).get("alt")

    @property
    def lines(self):
        return [line for line in self.source.splitlines() if line.strip()]

    def tree(self):
        """The syntax tree, empty where the source is not Python (rule `plain_python` says so)."""
        return parsed(self.source) if self.kind == "code" else parsed("")

    def mime(self, kind):
        """All stored outputs of a MIME type, as text."""
        bundles = [output.get("data", {}) for output in self.outputs]
        return [joined(bundle[kind]) for bundle in bundles if kind in bundle]

    def pages(self):
        return [Page.read(html) for html in self.mime("text/html")]

    def stream(self, name):
        streams = [o for o in self.outputs if o["output_type"] == "stream" and o["name"] == name]
        return "".join(joined(output["text"]) for output in streams)

    def pictures(self):
        """The outputs that are bare pictures, without a caption."""
        return self.mime("image/png") + self.mime("image/svg+xml")

    def has_figure(self):
        marks = ("abe-figure", "abe-explore", "abe-3d", "data-lab")
        return bool(self.pictures() or any(mark in html for html in self.mime("text/html") for mark in marks))

    def printed(self):
        """All text that the outputs show or speak, with addresses and data URIs taken out."""
        return self.read() + "\n" + without_addresses("\n".join(page.readable() for page in self.pages()))


    def read(self):
        """What stands on the page: printed text, tables, sentences, captions; no alt texts."""
        parts = [self.stream("stdout"), *self.mime("text/plain"), *self.mime("text/markdown")]
        return without_addresses("\n".join([*parts, *("".join(page.text) for page in self.pages())]))


@cache
def parsed(source):
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse("")


def joined(text):
    return text if isinstance(text, str) else "".join(text)


NAMES = {  # folder -> what its notebooks are called: chapters NN_name; beside them, guides without a number
    "notebooks": ("[0-9][0-9]_*.ipynb", "[a-z]*.ipynb"),
    "notebooks/evidence": ("[0-9][0-9]_*.ipynb",),
    "notebooks/assignments": ("[0-9][0-9]_*.ipynb",),
}


def stored_notebooks(root=ROOT, folders=tuple(NAMES)):
    """The paths of every notebook that is stored executed, by folder: chapters, guides, evidence, assignments."""
    return [path for folder in folders for name in NAMES[folder] for path in sorted((Path(root) / folder).glob(name))]


def load(path, root=ROOT, book=None):
    """Read a notebook of the repository at `root`; who reads many passes the same `Book.read(root)` to each."""
    text = Path(path).read_text(encoding="utf-8")
    return Notebook(Path(path), json.loads(text), book or Book.read(root), len(text.encode()))
