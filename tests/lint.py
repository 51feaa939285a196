"""The rules for notebooks, each a function from a Notebook to a list of complaints.

A complaint says which notebook and which cell, what was found and what to do about it. The rules
exist because strict nbval passes a notebook that was never executed and ignores every pixel:
what it cannot see is checked here. `test_notebooks.py` applies them, `test_lint_rules.py` breaks
each of them once.
"""

import ast
import base64
import io
import json
import re
import statistics
import tokenize
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from make_assignments import STARS, check_cell

ROOT = Path(__file__).resolve().parent.parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
RULES = {}  # name -> (function, the kinds of notebooks that it holds for)
CHAPTER, ASSIGNMENT = "chapter", "assignment"


def rule(function=None, *, chapters_only=False, assignments_only=False):
    """Register a rule. Rules of form hold for every notebook, rules of shape for chapters or assignments only."""
    if function is None:
        return lambda f: rule(f, chapters_only=chapters_only, assignments_only=assignments_only)
    kinds = {CHAPTER: not assignments_only, ASSIGNMENT: not chapters_only}
    RULES[function.__name__] = (function, {kind for kind, holds in kinds.items() if holds})
    return function


def rules_for(kind):
    """The names of the rules that hold for chapters, or for assignments."""
    return [name for name, (_, kinds) in RULES.items() if kind in kinds]


@dataclass
class Notebook:
    """A notebook as stored, with what the rules need to know of the repository around it."""

    path: Path
    data: dict
    setup: str
    bibliography: str
    size: int = 0
    cells: list = field(init=False)

    def __post_init__(self):
        self.cells = [Cell(number, raw) for number, raw in enumerate(self.data["cells"], 1)]

    @property
    def name(self):
        return self.path.name

    @property
    def code(self):
        return [cell for cell in self.cells if cell.kind == "code"]

    @property
    def is_assignment(self):
        return self.path.parent.name == "assignments"

    @property
    def taught(self):
        """The code cells without the set-up cell, and without the checks of an assignment, which are generated."""
        own = [cell for cell in self.code if cell.source.strip() != self.setup.strip()]
        return [cell for cell in own if not cell.nbgrader.get("grade")]

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
        return f"{where}: {found}. {do}."


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
    def nbgrader(self):
        return self.metadata.get("nbgrader", {})

    @property
    def outputs(self):
        return self.raw.get("outputs", [])

    @property
    def alt(self):
        return self.metadata.get("mystnb", {}).get("image", {}).get("alt")

    @property
    def lines(self):
        return [line for line in self.source.splitlines() if line.strip()]

    def tree(self):
        """The syntax tree, empty where the source is not Python (rule `plain_python` says so)."""
        try:
            return ast.parse(self.source)
        except SyntaxError:
            return ast.parse("")

    def mime(self, kind):
        """All stored outputs of a MIME type, as text."""
        bundles = [output.get("data", {}) for output in self.outputs]
        return [joined(bundle[kind]) for bundle in bundles if kind in bundle]

    def stream(self, name):
        streams = [o for o in self.outputs if o["output_type"] == "stream" and o["name"] == name]
        return "".join(joined(output["text"]) for output in streams)

    def has_figure(self):
        html = "".join(self.mime("text/html"))
        return bool(self.mime("image/png") or "abe-explore" in html or "abe-3d" in html)

    def asserts(self):
        return [node for node in ast.walk(self.tree()) if is_assert(node)]


def joined(text):
    return text if isinstance(text, str) else "".join(text)


def load(path, root=ROOT):
    """Read a notebook, and the set-up cell and bibliography of the repository it belongs to."""
    text = Path(path).read_text(encoding="utf-8")
    bibliography = root / "book" / "references.bib"
    known = bibliography.read_text(encoding="utf-8") if bibliography.exists() else ""
    return Notebook(Path(path), json.loads(text), setup_text(root), known, len(text.encode()))


def setup_text(root=ROOT):
    """The one text of the set-up cell, from tools/setup_cell.py."""
    scope = {"__name__": "setup_cell", "__file__": str(root / "tools" / "setup_cell.py")}
    exec(compile((root / "tools" / "setup_cell.py").read_text(), "setup_cell.py", "exec"), scope)
    return scope["setup_cell"]()


def check(notebook, name):
    return RULES[name][0](notebook)


# --- executed, and as it ran ----------------------------------------------------------------


@rule
def execution_counts_run_from_1(nb):
    counts = [(cell, cell.raw.get("execution_count")) for cell in nb.code if cell.source.strip()]
    return [
        nb.say(cell, f"execution count {count}, expected {want}", "Run `make notebooks`")
        for want, (cell, count) in enumerate(counts, 1)
        if count != want
    ]


@rule
def no_output_is_missing(nb):
    do = "Run `make notebooks`; if the cell really shows nothing, end it with a statement"
    return [
        nb.say(cell, f"{what}, but no {kind} is stored", do)
        for cell in nb.taught
        for what, kind in missing_outputs(cell)
    ]


EXPECTED = {  # a call of this name leaves an output of this kind
    "print": "printed text",
    "report": "printed text",
    "explore": "HTML output",
    "explore_3d": "HTML output",
    "ledger": "Markdown output",
    "show": "picture",
    "subplots": "picture",
    "figure": "picture",
    "draw_weights": "picture",
}
SILENT = {  # calls that return None: fine as a last line
    *("use_book_style", "install_missing", "append", "extend", "insert", "update", "add", "sort"),
    *("shuffle", "close", "savefig", "set_printoptions", "write_text", "tight_layout"),
}


def missing_outputs(cell):
    """(what the cell does, the kind of output that should be there) for each that is not."""
    stored = stored_kinds(cell)
    called = [call_name(node) for node in walk_run(cell.tree())]
    for name in sorted(EXPECTED.keys() & set(called)):
        if EXPECTED[name] not in stored and not (EXPECTED[name] == "picture" and drops(called)):
            yield f"it calls {name}()", EXPECTED[name]
            return  # one complaint is enough for a cell that was not executed
    if ends_in_value(cell.tree()) and not cell.outputs:
        yield "its last line is an expression", "output"


def drops(called):
    """A figure made for explore() or closed again is not shown by the cell itself."""
    return bool({"close", "explore", "explore_3d"} & set(called))


def stored_kinds(cell):
    kinds = {
        "printed text": cell.stream("stdout"),
        "HTML output": cell.mime("text/html"),
        "Markdown output": cell.mime("text/markdown"),
        "picture": cell.mime("image/png") or cell.mime("image/svg+xml"),
    }
    return {name for name, found in kinds.items() if found}


def walk_run(tree):
    """The nodes that run when the cell runs: not the bodies of functions that it defines."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            yield from walk_run(node)


def call_name(node):
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def ends_in_value(tree):
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return False
    value = tree.body[-1].value
    name = call_name(value) or ""
    is_none = isinstance(value, ast.Constant) and value.value is None
    return not (is_none or name in SILENT or name.startswith("assert_"))


@rule
def nothing_on_stderr(nb):
    return [
        nb.say(cell, f"stderr: {cell.stream('stderr').strip()[:120]!r}", "Remove the cause")
        for cell in nb.code
        if cell.stream("stderr")
    ]


@rule
def no_error_outputs(nb):
    return [
        nb.say(cell, f"error output {output.get('ename')}: {output.get('evalue', '')[:80]}",
               "Catch the error and print its message, or repair the cell")
        for cell in nb.code
        for output in cell.outputs
        if output["output_type"] == "error"
    ]  # fmt: skip


@rule
def no_nbval_escape(nb):
    found = []
    for cell in nb.code:
        marks = [tag for tag in cell.tags if tag.startswith("nbval") or tag == "raises-exception"]
        marks += re.findall(r"#\s*((?:NBVAL|PYTEST_VALIDATE)\w*)", cell.source)
        do = "Print something that can be compared instead"
        found += [nb.say(cell, f"{mark} switches the comparison off", do) for mark in marks]
    return found


# --- pictures -------------------------------------------------------------------------------


def bad_alt(text, shortest=80, longest=300):
    """What is wrong with an alt text, or None."""
    if not text or not text.strip():
        return "no alt text"
    if re.search(r"\.(png|jpe?g|svg|gif|webp)$", text.strip(), re.I) or "_images/" in text:
        return f"a file path as alt text ({text[:60]!r})"
    if not shortest <= len(text) <= longest:
        return f"alt text of {len(text)} characters, allowed are {shortest} to {longest}"
    return None


@rule
def pictures_have_alt_text(nb):
    do = "State the finding in the cell's metadata, mystnb > image > alt"
    found, seen = [], {}
    for cell in nb.code:
        pictures = len(cell.mime("image/png")) + len(cell.mime("image/svg+xml"))
        if pictures and (wrong := bad_alt(cell.alt)):
            found.append(nb.say(cell, wrong, do))
        if pictures > 1:
            found.append(nb.say(cell, f"{pictures} pictures share one alt text", "Split the cell"))
        if cell.alt and not pictures:
            found.append(nb.say(cell, "alt text, but no picture", "Remove one or add the other"))
        if cell.alt and cell.alt in seen:
            found.append(nb.say(cell, f"the alt text of cell {seen[cell.alt]}", do))
        seen.setdefault(cell.alt, cell.number)
    return found


@rule
def html_images_have_alt_text(nb):
    do = "State the finding"
    found = []
    for cell in nb.cells:
        pages = [Page.read(html) for html in cell.mime("text/html")]
        if cell.kind == "markdown":
            pages.append(Page.read(without_code(cell.source)))
            alts = re.findall(r"!\[([^\]]*)\]\(", without_code(cell.source))
        else:
            alts = []
        alts += [image.get("alt") for page in pages for image in page.tags("img")]
        alts += [frame["alt"] for page in pages for frame in page.frames()]
        found += [nb.say(cell, f"image with {bad_alt(alt, 20, 400)}", do) for alt in alts if bad_alt(alt, 20, 400)]
    return found


@rule
def frames_have_their_own_alt_text(nb):
    do = "Let the alt text of explore() depend on the value, and state what is seen there"
    found = []
    for cell in nb.code:
        for html in cell.mime("text/html"):
            alts = [frame["alt"] for frame in Page.read(html).frames()]
            if len(set(alts)) < len(alts):
                found.append(nb.say(cell, f"{len(alts)} frames, {len(set(alts))} different alt texts", do))
    return found


@rule
def figures_are_asserted(nb):
    found = []
    for cell, after in zip(nb.code, [*nb.code[1:], None], strict=True):
        if cell.has_figure() and not (cell.asserts() or (after and after.asserts())):
            do = "Assert what it shows on the data behind it, here or in the next code cell"
            found.append(nb.say(cell, "a figure that no assertion stands for", do))
    return found


# --- what is printed ------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags with their attributes, the readable text, and the scripts and styles of some HTML."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.all, self.text, self.code, self._inside = [], [], [], None

    @classmethod
    def read(cls, text):
        page = cls()
        page.feed(text)
        page.close()
        return page

    def handle_starttag(self, tag, attributes):
        self.all.append((tag, {key: value or "" for key, value in attributes}))
        self._inside = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        (self.code if self._inside else self.text).append(data)

    def tags(self, *names):
        return [attributes for tag, attributes in self.all if tag in names]

    def frames(self):
        """The frames of the explorations, dicts of src, alt and label, which stand in their scripts."""
        data = [json.loads(text) for text in self.code if text.lstrip().startswith("[{")]
        return [frame for frames in data for frame in frames if "alt" in frame]

    def readable(self):
        """What a reader sees or hears: the text and the spoken attributes."""
        spoken = [a[key] for _, a in self.all for key in ("alt", "aria-label", "title") if key in a]
        spoken += [frame["alt"] + "\n" + frame.get("label", "") for frame in self.frames()]
        return "\n".join(["".join(self.text), *spoken])


def printed(cell):
    """All text that the outputs of a cell show, with addresses and data URIs taken out."""
    parts = [cell.stream("stdout"), *cell.mime("text/plain"), *cell.mime("text/markdown")]
    parts += [Page.read(html).readable() for html in cell.mime("text/html")]
    return re.sub(r"data:[\w/+;,=-]*base64,[A-Za-z0-9+/=]*|https?://[^\s)\"'>]+", " ", "\n".join(parts))


def long_numbers(text):
    """Numbers with a decimal point or exponent and more than 6 significant digits.

    Whole numbers are exact counts and may be longer. An arXiv number is no measurement.
    """
    numbers = re.findall(r"(?<![\w.])(?<!arXiv:)\d[\d_,]*(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w.]*\d)", text)
    for number in numbers:
        digits = re.sub(r"[eE].*|\D", "", number).lstrip("0")
        if re.search(r"[.eE]", number) and len(digits) > 6:
            yield number


@rule
def at_most_6_significant_digits(nb):
    do = "Round it: the last digits differ from one machine to the next"
    shown = [(cell, printed(cell) + "\n" + (cell.alt or "")) for cell in nb.code]
    return [
        nb.say(cell, f"{number} has more than 6 significant digits", do)
        for cell, text in shown
        for number in long_numbers(text)
    ]


VOLATILE = {
    "a memory address": r"\b0x[0-9a-fA-F]{6,16}\b|<[\w.]+ (?:object )?at 0x",
    "a wall time": r"(?i)(?<![\w.])\d+(?:\.\d+)? ?(?:ns|µs|us|ms|secs?|seconds?|minutes?|hours?)\b"
    r"|(?<![\w.])(?:\d+\.\d+ ?|\d+ )s\b|\bwall time\b|\bCPU times\b|\bit/s\b|\d+:\d\d:\d\d",
    "a date and time": r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d",
    "a NumPy scalar": r"\bnp\.(?:float|int|uint|bool|str)\w*\(|\bnp\.(?:True|False)_",
}


@rule
def nothing_volatile_is_printed(nb):
    do = "Print a count or a rounded Python number, assert an inequality for times"
    return [
        nb.say(cell, f"{what} in an output: {match.group()!r}", do)
        for cell in nb.code
        for what, pattern in VOLATILE.items()
        if (match := re.search(pattern, printed(cell)))
    ]


EXTERNAL_TEXT = {
    "@import": r"@import",
    "a style that loads from elsewhere": r"url\(\s*['\"]?(?:https?:)?//",
    "a script that loads from elsewhere": r"(?:fetch|import|open|importScripts)\s*\(\s*['\"]https?:"
    r"|\.(?:src|href)\s*=\s*['\"](?:https?:)?//",
}


def loads_from_elsewhere(html):
    """What some HTML would fetch from another host when it is opened."""
    page = Page.read(html)
    for tag, attributes in page.all:
        if tag in ("iframe", "embed", "object"):
            yield f"<{tag}>"
        address = attributes.get("href" if tag == "link" else "src", "")
        if re.match(r"(?:https?:)?//", address) and tag != "a":
            yield f"<{tag}> from {address[:60]}"
    styles = "\n".join(page.code + [a.get("style", "") for _, a in page.all])
    yield from (what for what, pattern in EXTERNAL_TEXT.items() if re.search(pattern, styles))


@rule
def nothing_loads_from_elsewhere(nb):
    do = "Ship it with the book: the notebook has to work with no network"
    found = []
    for cell in nb.cells:
        texts = cell.mime("text/html") + cell.mime("text/markdown") + cell.mime("image/svg+xml")
        texts += [cell.source] if cell.kind == "markdown" else []
        found += [nb.say(cell, what, do) for text in texts for what in loads_from_elsewhere(text)]
        if cell.mime("application/javascript"):
            found.append(nb.say(cell, "a JavaScript output", do))
        if cell.kind == "markdown" and re.search(r"!\[[^\]]*\]\(\s*<?(?:https?:)?//", cell.source):
            found.append(nb.say(cell, "an image from elsewhere", do))
    return found


MACHINE_PATH = r"(?<![\w.])/(?:home|root|tmp|work|Users|var|opt|mnt)/[\w.-]+|\b[A-Z]:\\\\?\w+"


@rule
def no_machine_paths(nb):
    texts = [(cell, f"{cell.source}\n{printed(cell)}\n{cell.alt or ''}") for cell in nb.cells]
    do = "Use a path relative to the notebook, or package data"
    return [
        nb.say(cell, f"a path of one machine, {match.group()!r}", do)
        for cell, text in texts
        if (match := re.search(MACHINE_PATH, text))
    ]


# --- the file -------------------------------------------------------------------------------


@rule
def metadata_is_as_agreed(nb):
    found = []
    if nb.data.get("metadata") != METADATA:
        do = f"Expected exactly {METADATA}; `make notebooks` writes it"
        found.append(nb.say(None, f"notebook metadata {nb.data.get('metadata')}", do))
    if (nb.data.get("nbformat"), nb.data.get("nbformat_minor")) != (4, 5):
        found.append(nb.say(None, "not nbformat 4.5", "Run `make notebooks`"))
    for cell in nb.cells:
        if extra := sorted(set(cell.metadata) - {"tags", "mystnb"} - ({"nbgrader"} if nb.is_assignment else set())):
            do = "Keep tags and mystnb only; `make notebooks` removes what execution adds"
            found.append(nb.say(cell, f"cell metadata {', '.join(extra)}", do))
    return found


@rule
def cell_ids_are_stable(nb):
    found, seen = [], set()
    for cell in nb.cells:
        if not re.fullmatch(rf"{re.escape(nb.name[:2])}-\d{{3}}", cell.id):
            found.append(nb.say(cell, "its id", f"Give it one like {nb.name[:2]}-{cell.number:03d}"))
        if cell.id in seen:
            found.append(nb.say(cell, "its id is taken", "Give it one of its own"))
        seen.add(cell.id)
    return found


@rule
def setup_cell_is_the_shared_one(nb):
    do = "Copy the text of tools/setup_cell.py into the first code cell, tagged remove-cell"
    first = nb.code[0] if nb.code else None
    if first is None or first.source.strip() != nb.setup.strip():
        return [nb.say(first, "the first code cell is not the set-up cell", do)]
    found = []
    if first.tags != ["remove-cell"]:
        found.append(nb.say(first, f"the set-up cell has the tags {first.tags}", do))
    if first.outputs:
        found.append(nb.say(first, "the set-up cell has an output", "It has to be silent"))
    again = [cell for cell in nb.code[1:] if cell.source.strip() == nb.setup.strip()]
    return found + [nb.say(cell, "the set-up cell a second time", "Remove it") for cell in again]


@rule
def file_is_small(nb):
    kilobytes = nb.size / 1000
    if kilobytes <= 700:  # pictures are stored at twice the size; the page with all of them stays under 1 MB
        return []
    return [nb.say(None, f"{kilobytes:.0f} KB, allowed are 700", "Make figures smaller or fewer")]


# --- the code -------------------------------------------------------------------------------


@rule
def plain_python(nb):
    found = []
    for cell in nb.taught:
        do = "Write plain Python: no magic, no shell, no installation outside the set-up cell"
        try:
            names = {call_name(node) for node in ast.walk(ast.parse(cell.source))}
        except SyntaxError as error:
            line = (cell.source.splitlines() or [""])[(error.lineno or 1) - 1].strip()
            found.append(nb.say(cell, f"not Python: {line[:60]!r}", do))
            continue
        for name in sorted(names & {"get_ipython", "system", "Popen", "check_call", "run_cell_magic"}):
            found.append(nb.say(cell, f"it calls {name}()", do))
    return found


@rule
def no_trailing_semicolons(nb):
    do = "Assign the value to a name, or end with plt.show(): a silenced cell fails under nbval"
    return [
        nb.say(cell, f"a semicolon ends line {line}", do)
        for cell in nb.code
        for line in trailing_semicolons(cell.source)
    ]


def trailing_semicolons(source):
    last = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) and last and last.string == ";":
                yield last.start[0]
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                last = token
    except (tokenize.TokenError, SyntaxError):
        return  # not Python: plain_python says so


@rule
def code_cells_are_short(nb):
    lengths = [len(cell.lines) for cell in nb.taught]
    found = [
        nb.say(cell, f"{len(cell.lines)} lines of code, allowed are 20", "Split it")
        for cell in nb.taught
        if len(cell.lines) > 20
    ]
    if lengths and statistics.median(lengths) > 5:
        median = statistics.median(lengths)
        found.append(nb.say(None, f"code cells of {median:g} lines in the median, allowed are 5",
                            "Split cells, or move helpers to attn_utils"))  # fmt: skip
    return found


@rule
def code_lines_fit_the_page(nb):
    return [
        nb.say(cell, f"a line of {len(line)} characters, allowed are 88: {line.strip()[:40]!r}",
               "Break it; at 1,280 pixels the site shows no more")  # fmt: skip
        for cell in nb.taught
        for line in cell.source.splitlines()
        if len(line) > 88
    ]


@rule
def figures_read_on_a_phone(nb):
    return [
        nb.say(cell, f"a figure {width} pixels wide, allowed are 720: its text is too small at 360 pixels",
               "Make it at most 6.5 inches wide; put panels below each other")  # fmt: skip
        for cell in nb.code
        for picture in cell.mime("image/png")
        if (width := png_width(picture)) > 720
    ]


def png_width(picture):
    """The width in pixels that a base64 PNG states in its header; 0 when it is no PNG."""
    head = base64.b64decode(joined(picture)[:64] + "===")
    return int.from_bytes(head[16:20], "big") if head.startswith(b"\x89PNG") else 0


@rule
def functions_are_short(nb):
    found = []
    for cell in nb.taught:
        for node in ast.walk(cell.tree()):
            if isinstance(node, ast.FunctionDef):
                body = cell.source.splitlines()[node.lineno - 1 : node.end_lineno]
                length = sum(bool(line.strip()) for line in body)
                if length >= 15:
                    do = "Keep it under 15: split it"
                    found.append(nb.say(cell, f"{node.name}() has {length} lines", do))
    return found


@rule
def matrix_products_have_shapes(nb):
    do = "Add a trailing comment with the shape, such as  # (n_queries, n_keys)"
    found = []
    for cell in nb.taught:
        source = cell.source.splitlines()
        for node in ast.walk(cell.tree()):
            if isinstance(node, ast.Assign) and has_product(node.value):
                lines = "\n".join(source[node.lineno - 1 : node.end_lineno])
                if "#" not in lines:
                    found.append(nb.say(cell, f"no shape on {lines.strip()[:60]!r}", do))
    return found


SCALAR = set("all any allclose array_equal corrcoef cosine float int len max mean min norm sum std trace var".split())


def has_product(node):
    """True where a value is made with @, unless a call around it makes a number of it."""
    if call_name(node) in SCALAR:
        return False
    children = ast.iter_child_nodes(node)
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)) or any(map(has_product, children))


# --- assertions -----------------------------------------------------------------------------


def is_assert(node):
    name = call_name(node) or ""
    return isinstance(node, ast.Assert) or name.startswith("assert_")


def cannot_fail(node):
    """True for `assert True`, `assert (x, "text")`, `assert x == x`, `assert len(x) >= 0`, ..."""
    if not isinstance(node, ast.Assert):
        return False
    test = node.test
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(cannot_fail(ast.Assert(test=part)) for part in test.values)
    if isinstance(test, ast.BoolOp):
        return all(cannot_fail(ast.Assert(test=part)) for part in test.values)
    if isinstance(test, ast.Compare):
        return compares_nothing(test)
    literal = ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.JoinedStr | ast.Lambda
    return isinstance(test, literal)


def compares_nothing(test):
    sides = [ast.dump(side) for side in (test.left, *test.comparators)]
    constant = all(isinstance(side, ast.Constant) for side in (test.left, *test.comparators))
    is_length = call_name(test.left) == "len" and isinstance(test.ops[0], ast.GtE)
    return constant or len(set(sides)) < len(sides) or (is_length and sides[1] == ast.dump(ast.Constant(0)))


@rule
def assertions_can_fail(nb):
    do = "Assert something that a wrong result would break"
    return [
        nb.say(cell, f"an assertion that always holds: {ast.unparse(node)!r}", do)
        for cell in nb.code
        for node in cell.asserts()
        if cannot_fail(node)
    ]


@rule(chapters_only=True)
def at_least_8_assertions(nb):
    count = sum(not cannot_fail(node) for cell in nb.taught for node in cell.asserts())
    if count >= 8:
        return []
    return [nb.say(None, f"{count} assertions, at least 8 expected", "Assert what the text says")]


# --- the text -------------------------------------------------------------------------------


def without_code(text):
    """Markdown without fenced code blocks and inline code."""
    text = re.sub(r"^ *(```|~~~)(?!\{).*?^ *\1 *$", "", text, flags=re.M | re.S)
    return re.sub(r"(?<!\})(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


SPHINX = {
    "a role": r"\{[a-zA-Z:+-]+\}`",
    "a directive": r"^ *(?:```+|~~~+)\{[^}]+\}",
    "a colon fence": r"^ *:::+",
    "a target": r"^\([\w-]+\)=\s*$",
    "an attribute block": r"^\s*\{[.#%][^}]*\}\s*$",
    "a comment or a block break": r"^(?:\+\+\+|% )",
    "a labelled equation": r"^\$\$ *\([\w:-]+\) *$",
    "a link without text": r"(?<!!)\[\]\(",
    "an admonition of GitHub": r"^> ?\[!\w+\]",
}


@rule
def no_raw_sphinx(nb):
    do = "Use plain Markdown: Jupyter and Colab show this as it stands"
    return [
        nb.say(cell, f"{what}: {match.group().strip()[:40]!r}", do)
        for cell in nb.markdown
        for what, pattern in SPHINX.items()
        if (match := re.search(pattern, without_code(cell.source), flags=re.M))
    ]


def headings(nb):
    """(cell, level, text) of every heading, in order."""
    for cell in nb.markdown:
        for marks, text in re.findall(r"^(#+) +(.+?) *#*$", without_code(cell.source), flags=re.M):
            yield cell, len(marks), text


NAMES = set(
    "Adam Anthropic Bayes Binder Boltzmann Cauchy Colab Euler Fourier Frobenius Gauss Gaussian GloVe "
    "Gumbel Hessian I Jacobian Jacobians Jordan Jupyter Laplace Lipschitz Markov MiniLM NumPy Perron "
    "Poisson PyTorch Python Rademacher Shannon SmolLM2 Token Graying Transformer Transformers "
    "Vaswani Wikipedia".split()
)


def title_cased(text):
    """The words of a heading that have a capital without being its first word or a name."""
    text = re.sub(r"\$[^$]*\$", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))
    for part in re.split(r"[:.?!] +", text):
        words = re.findall(r"[^\W\d_][\w'’-]*", part)
        yield from (w for w in words[1:] if re.fullmatch(r"[A-Z][a-z’'-]+", w) and w not in NAMES)


@rule
def headings_are_in_sentence_case(nb):
    do = "Write a sentence with a verb; names go into NAMES in tests/lint.py"
    return [
        nb.say(cell, f"capital in {word!r}, heading {text!r}", do)
        for cell, _, text in headings(nb)
        for word in title_cased(text)
    ]


@rule
def headings_form_a_tree(nb):
    found, before = [], 0
    for cell, level, text in headings(nb):
        if (level == 1) != (before == 0):
            found.append(nb.say(cell, f"level {level}: {text!r}", "One title, first; then sections"))
        elif level > before + 1:
            found.append(nb.say(cell, f"level {level} after level {before}", "Skip no level"))
        before = level
    return found if before else [nb.say(None, "no heading", "Start with a title")]


def links(text):
    """The targets of all links and images in Markdown, but for addresses elsewhere."""
    text = without_code(text)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"(?:href|src)=\"([^\"]+)\"", text)
    return [target for target in targets if not target.startswith("data:")]


@rule
def relative_links_resolve(nb):
    found = []
    for cell in nb.markdown:
        for target in links(cell.source):
            path = unquote(target.split("#")[0])
            if path.startswith("/"):
                found.append(nb.say(cell, f"the absolute link {target!r}", "Make it relative"))
            elif path and not re.match(r"[a-z]+:", path) and not (nb.path.parent / path).exists():
                found.append(nb.say(cell, f"a link to {target!r}", "There is no such file"))
    return found


@rule
def citations_are_in_the_bibliography(nb):
    do = "Add the work to book/references.bib, with its arXiv number or DOI"
    known = nb.bibliography.lower()
    return [
        nb.say(cell, f"{work} is not in the bibliography", do)
        for cell in nb.markdown
        for work in cited(cell.source)
        if work.lower() not in known
    ]


def cited(text):
    """arXiv numbers and DOIs that a text links to."""
    yield from re.findall(r"arxiv\.org/(?:abs|pdf|html)/(\d{4}\.\d{4,5}|[a-z.-]+/\d{7})", text, re.I)
    yield from re.findall(r"doi\.org/(10\.[^\s)\"'>]+)", text)


MEASURED = re.compile(r"(?<![\w.,−-])(\d*\.\d+|\d+(?= ?%| percent\b))( ?%| percent\b)?(?![\w]*\d)")
COUNTED = r"(?i)\b(?:chapters?|sections?|exercises?|equations?|eqs?\.|figures?|theorems?|python|versions?) [\d., and]+"


def measured(text):
    """The decimal numbers and percentages that a text states, as (how it is written, value, decimals).

    The options of a question are not stated; headings, chapters and exercises are numbered.
    """
    text = re.sub(r"<summary>.*?</summary>|\*\*Predict\.?\*\*.*?(?=<details>)", " ", without_code(text), flags=re.S)
    text = re.sub(r"https?://[^\s)>]+|<[^>]+>|arXiv:\S+|^#+ [\d.]+|\*\*[\d.]+\*\*", " ", text, flags=re.M)
    for match in MEASURED.finditer(re.sub(COUNTED, " ", text)):
        value, percent = match.groups()
        decimals = len(value.partition(".")[2])
        scale = 100 if percent else 1
        yield match.group(), float(value) / scale, decimals + (2 if percent else 0)


def shown_numbers(cells):
    """Every number in the code and the outputs of some cells, as (low, high): `0.9 < x < 1` shows a range."""
    text = "\n".join(f"{cell.source}\n{printed(cell)}\n{cell.alt or ''}" for cell in cells if cell.kind == "code")
    for number, percent in re.findall(r"(\d*\.?\d+(?:e[+-]?\d+)?)( ?%)?", text.replace("_", "")):
        yield (float(number) / (100 if percent else 1),) * 2
    for node in [node for cell in cells if cell.kind == "code" for node in ast.walk(cell.tree())]:
        if isinstance(node, ast.Compare) and len(node.ops) == 2:
            ends = [getattr(end, "value", None) for end in (node.left, node.comparators[1])]
            if all(isinstance(end, int | float) for end in ends):
                yield min(ends), max(ends)


@rule(chapters_only=True)
def numbers_in_the_text_are_shown(nb):
    """Near is the same section or the one before; a section without code may refer to the whole chapter."""
    do = "Print or assert it in a cell of this section, or leave it out"
    found, before = [], []
    for _, cells in sections(nb):
        shows = any(cell.kind == "code" for cell in cells)
        numbers = set(shown_numbers([*before, *cells] if shows and before else nb.cells))
        for cell in cells:
            stated = measured(cell.source) if cell in nb.own_markdown else []
            for written in dict.fromkeys(w for w, value, decimals in stated if not is_shown(value, decimals, numbers)):
                found.append(nb.say(cell, f"{written} is in the text, but in no code or output near it", do))
        before = cells
    return list(dict.fromkeys(found))  # a cell with two headings belongs to two sections


def is_shown(value, decimals, numbers):
    unit = 10**-decimals
    return any(
        low - 0.5001 * unit <= value <= high + 0.5001 * unit and high - low <= 4.001 * unit for low, high in numbers
    )


# --- the shape of a chapter -----------------------------------------------------------------


def sections(nb):
    """[heading, cells] for each level-2 section; a cell belongs to the last heading that it has."""
    found = [["", []]]
    for cell in nb.cells:
        titles = re.findall(r"^## +(.+)$", cell.source, re.M) if cell.kind == "markdown" else []
        for title in titles:
            found.append([title, [cell]])
        if not titles:
            found[-1][1].append(cell)
    return found


def text_of(cells):
    return "\n\n".join(cell.source for cell in cells if cell.kind == "markdown")


@rule(chapters_only=True)
def opens_with_the_contract(nb):
    opening = text_of(sections(nb)[0][1])
    wanted = {
        "what you will do": r"(?i)\bdo\b",
        "what you will learn": r"(?i)\blearn\b",
        "what you need": r"(?i)\bneed\b",
        "the minutes it takes": r"(?i)\d+ minutes",
    }
    return [
        nb.say(nb.cells[0], f"the opening block does not say {what}", "Say it before the first section")
        for what, pattern in wanted.items()
        if not re.search(pattern, opening)
    ]


def predictions(text):
    """All Predict blocks, as the text of their blockquote."""
    quotes = re.findall(r"(?:^>.*\n?)+", text, flags=re.M)
    return [quote for quote in quotes if re.match(r">\s*\*\*Predict", quote)]


@rule(chapters_only=True)
def asks_for_predictions(nb):
    found, count = [], 0
    for cell in nb.markdown:
        for quote in predictions(cell.source):
            count += 1
            if not re.search(r"<details>.*<summary>.+</summary>.*\S.*</details>", quote, re.S):
                do = "Fold the answer into <details><summary>..</summary> inside the quote"
                found.append(nb.say(cell, "a Predict block without a folded answer", do))
    numbered = [s for s in sections(nb) if re.match(r"\d", s[0])]
    everywhere = numbered and all(predictions(text_of(cells)) for _, cells in numbered)
    if count < 4 and not everywhere:
        do = "Ask in every numbered section, or four times"
        found.append(nb.say(None, f"{count} Predict blocks", do))
    return found


@rule(chapters_only=True)
def has_an_exploration(nb):
    html = "".join(text for cell in nb.code for text in cell.mime("text/html"))
    slider = [a for a in Page.read(html).tags("input") if a.get("type") == "range"]
    if slider and "abe-explore" in html:
        return []
    return [nb.say(None, "no exploration with a slider in the stored outputs", "Call explore()")]


def options(text):
    """(letter, feedback) of every folded option."""
    return re.findall(r"<details>\s*<summary>\s*\(?([a-z])\)(?:.*?)</summary>(.*?)</details>", text, re.S)


def questions(text):
    """Options grouped into questions: each begins with option (a)."""
    groups = []
    for letter, feedback in options(text):
        if letter == "a" or not groups:
            groups.append([])
        groups[-1].append((letter, re.sub(r"[>\s]+", " ", feedback).strip()))
    return groups


@rule(chapters_only=True)
def has_a_self_check(nb):
    texts = [text_of(cells) for title, cells in sections(nb) if "check yourself" in title.lower()]
    if not texts:
        return [nb.say(None, "no section 'Check yourself'", "Add three questions with feedback")]
    groups = questions("\n".join(texts))
    found = []
    if len(groups) < 3:
        found.append(nb.say(None, f"{len(groups)} questions in the self-check", "Ask three"))
    for number, group in enumerate(groups, 1):
        if len(group) < 3:
            do = "Offer at least three"
            found.append(nb.say(None, f"question {number} has {len(group)} options", do))
        if any(len(feedback) < 20 for _, feedback in group):
            do = "Say for every option why it is right or wrong"
            found.append(nb.say(None, f"question {number} has an option without feedback", do))
    return found


@rule(chapters_only=True)
def ends_as_agreed(nb):
    wanted = {
        "What the sources say, and what we measured": r"what the sources say",
        "a summary": r"\bsum(mary|marise| up)\b|what to keep",
        "exercises": r"exercise",
        "further reading": r"further reading|read (further|on|more)",
    }
    titles = [text.lower() for _, level, text in headings(nb) if level >= 2]
    found = [
        nb.say(None, f"no section for {what}", "Every chapter ends with one")
        for what, pattern in wanted.items()
        if not any(re.search(pattern, title) for title in titles)
    ]
    ledger = [c for title, cells in sections(nb) if "what the sources say" in title.lower() for c in cells]
    if not any("ledger(" in cell.source for cell in ledger if cell.kind == "code"):
        found.append(nb.say(None, "the section on the sources does not call ledger()", "Call it"))
    return found


@rule(chapters_only=True)
def has_the_right_length(nb):
    words = len(re.sub(r"<[^>]+>", " ", without_code(nb.prose())).split())
    if 1200 <= words <= 2500:
        return []
    return [nb.say(None, f"{words} words, allowed are 1200 to 2500", "Cut or add")]


# --- the shape of an assignment -------------------------------------------------------------


def parts(nb):
    """(letter, heading cell, cells) of each exercise."""
    found = []
    for cell in nb.cells:
        heading = re.match(r"## Exercise ([A-Z]): \S", cell.source) if cell.kind == "markdown" else None
        if heading:
            found.append((heading[1], cell, []))
        if found:
            found[-1][2].append(cell)
    return found


@rule(assignments_only=True)
def exercises_are_rated(nb):
    do = 'Write "★★☆ · 15 minutes · 4 points" under the heading; points as in the cells that are graded'
    found = []
    for _, heading, cells in parts(nb):
        rating = STARS.search(heading.source)
        points = sum(cell.nbgrader.get("points", 0) for cell in cells)
        if not rating or len(rating[1]) != 3 or int(rating[3]) != points:
            found.append(nb.say(heading, f"an exercise of {points} points that is not rated so", do))
    return found


@rule(assignments_only=True)
def exercises_rise_in_difficulty(nb):
    letters = "".join(letter for letter, _, _ in parts(nb))
    stars = [rating[1] for _, cell, _ in parts(nb) if (rating := STARS.search(cell.source))]
    if len(letters) >= 4 and letters == "ABCDEFGH"[: len(letters)] and {"★☆☆", "★★★"} <= set(stars):
        return []
    do = "Four at least, lettered A, B, ..., one of them with one star and one with three"
    return [nb.say(None, f"exercises {letters} with {', '.join(stars)}", do)]


@rule(assignments_only=True)
def opening_adds_up(nb):
    ratings = [rating for _, cell, _ in parts(nb) if (rating := STARS.search(cell.source))]
    minutes, points = (sum(int(rating[n]) for rating in ratings) for n in (2, 3))
    wanted = [f"about {minutes} minutes", f"{len(ratings)} exercises and {points} points"]
    wanted += ["**What you will do.**", "**What you will learn.**", "**What you need.**"]
    do = "Say it in the first cell"
    return [nb.say(nb.cells[0], f"{text!r} is missing", do) for text in wanted if text not in nb.cells[0].source]


@rule(assignments_only=True)
def checks_are_the_generated_ones(nb):
    do = "A solution cell NAME, then a locked cell check-NAME with the text of check_cell(NAME) in make_assignments.py"
    solved, found = set(), []
    for cell in nb.code:
        name = cell.nbgrader.get("grade_id", "").removeprefix("check-")
        if cell.nbgrader.get("solution"):
            solved.add(name)
            if cell.source.count("### BEGIN SOLUTION") != 1 or cell.source.count("### END SOLUTION") != 1:
                found.append(nb.say(cell, "a solution without its marks", do))
        if cell.nbgrader.get("grade"):
            if name not in solved or cell.source != check_cell(name) or not cell.nbgrader.get("locked"):
                found.append(nb.say(cell, f"the check of {name}", do))
            if not cell.stream("stdout").startswith("Correct: "):
                found.append(nb.say(cell, "a solution that is not stored as correct", "Run `make notebooks`"))
    return found


@rule(assignments_only=True)
def asks_for_words(nb):
    texts = [cell for cell in nb.markdown if cell.nbgrader.get("grade") and cell.nbgrader.get("solution")]
    return [] if texts else [nb.say(None, "no explanation in words", "Ask for one; it is graded by hand")]
