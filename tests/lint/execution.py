"""Executed, fresh, complete: the stored outputs are those of the stored sources, run in order."""

import ast
import re

from stamp import KEY, stamp

from .registry import rule
from .syntax import call_name, walk_run


@rule()
def execution_counts_run_from_1(nb):
    counts = [(cell, cell.raw.get("execution_count")) for cell in nb.code if cell.source.strip()]
    if not was_run(nb):
        return [nb.say(None, "it was never executed", "Run `tools/execute_notebooks.py` on this notebook")]
    return [
        nb.say(cell, f"execution count {count}, expected {want}", "Run `make notebooks`")
        for want, (cell, count) in enumerate(counts, 1)
        if count != want
    ]


def was_run(nb):
    """Whether any code cell was executed; of one that never was, a single complaint says enough."""
    return not nb.code or any(cell.raw.get("execution_count") for cell in nb.code)


@rule()
def is_fresh(nb):
    """The stamp of the last run fits the sources and the outputs. Writing a stamp without a run is not possible."""
    stored = nb.data.get("metadata", {}).get(KEY) or {}
    run = "Run `tools/execute_notebooks.py` on this notebook"
    if not stored:
        return [nb.say(None, "no stamp of a run", run)]
    now = stamp([cell.raw for cell in nb.cells], nb.book.setup, nb.book.address)
    if stored.get("code") != now["code"]:
        return [nb.say(None, "a code cell was changed, moved or removed after the last run", run)]
    if stored != now:
        return [nb.say(None, "a stored output is not what the last run gave", f"{run}, and edit no output by hand")]
    return []


@rule()
def no_output_is_missing(nb):
    do = "Run `make notebooks`; if the cell really shows nothing, end it with a statement"
    return [
        nb.say(cell, f"{what}, but no {kind} is stored", do)
        for cell in nb.taught
        if was_run(nb)
        for what, kind in missing_outputs(cell)
    ]


EXPECTED = {  # a call of this name leaves an output of this kind
    "print": "printed text",
    "report": "printed text",
    "bind": "printed text",
    "explore": "HTML output",
    "explore_3d": "HTML output",
    "lab": "HTML output",
    "ledger": "Markdown output",
    "say": "Markdown output",
    "table": "Markdown output",
    "show": "picture",
    "subplots": "picture",
    "figure": "picture",
    "draw_weights": "picture",
}
OTHERWISE = {"close", "explore", "explore_3d", "lab"}  # a figure made for these, or closed, is not shown by the cell
SILENT = {  # calls that return None: fine as a last line
    *("use_book_style", "install_missing", "append", "extend", "insert", "update", "add", "sort"),
    *("shuffle", "close", "savefig", "set_printoptions", "write_text", "tight_layout"),
}


def missing_outputs(cell):
    """(what the cell does, the kind of output that should be there) for each that is not."""
    stored = stored_kinds(cell)
    called = {call_name(node) for node in walk_run(cell.tree()) if not is_method_of_table(node)}
    for name in sorted(EXPECTED.keys() & called):
        if EXPECTED[name] not in stored and not (EXPECTED[name] == "picture" and OTHERWISE & called):
            yield f"it calls {name}()", EXPECTED[name]
            return  # one complaint is enough for a cell that was not executed
    if ends_in_value(cell.tree()) and not cell.outputs:
        yield "its last line is an expression", "output"


def is_method_of_table(node):
    """`ax.table(...)` and the like: only the book's own functions are called by their bare names."""
    return call_name(node) in ("table", "bind", "say", "lab") and isinstance(node.func, ast.Attribute)


def stored_kinds(cell):
    html = cell.mime("text/html")
    kinds = {
        "printed text": cell.stream("stdout"),
        "HTML output": html,
        "Markdown output": cell.mime("text/markdown"),
        "picture": cell.pictures() or any("abe-figure" in text for text in html),
    }
    return {name for name, found in kinds.items() if found}


def ends_in_value(tree):
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return False
    value = tree.body[-1].value
    name = call_name(value) or ""
    is_none = isinstance(value, ast.Constant) and value.value is None
    return not (is_none or name in SILENT or name.startswith("assert_"))


@rule()
def nothing_on_stderr(nb):
    return [
        nb.say(cell, f"stderr: {cell.stream('stderr').strip()[:120]!r}", "Remove the cause")
        for cell in nb.code
        if cell.stream("stderr")
    ]


@rule()
def no_error_outputs(nb):
    return [
        nb.say(cell, f"error output {output.get('ename')}: {output.get('evalue', '')[:80]}",
               "Catch the error and print its message, or repair the cell")
        for cell in nb.code
        for output in cell.outputs
        if output["output_type"] == "error"
    ]  # fmt: skip


@rule()
def no_nbval_escape(nb):
    found = []
    for cell in nb.code:
        marks = [tag for tag in cell.tags if tag.startswith("nbval") or tag == "raises-exception"]
        marks += re.findall(r"#\s*((?:NBVAL|PYTEST_VALIDATE)\w*)", cell.source)
        do = "Print something that can be compared instead"
        found += [nb.say(cell, f"{mark} switches the comparison off", do) for mark in marks]
    return found


CLOCKS = set(
    "perf_counter perf_counter_ns process_time process_time_ns monotonic monotonic_ns thread_time time_ns timeit".split()
)
DATES = {"time.time", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
DATES |= {f"time.{name}" for name in ("localtime", "gmtime", "ctime", "strftime", "asctime")}
NOW = {"now", "today"}  # np.datetime64("now")


@rule()
def no_result_hangs_on_the_clock(nb):
    """Times go neither into an output nor into an assertion: a busy machine would turn the suite red."""
    do = "Count operations, or calls, or bytes; seconds belong to benchmarks/"
    known = aliases(nb)
    return [
        nb.say(cell, f"it reads the clock: {clock}", do)
        for cell in nb.taught
        for clock in dict.fromkeys([*clocks(cell, known), *re.findall(r"^\s*(%%?time(?:it)?)\b", cell.source, re.M)])
    ]


def clocks(cell, known):
    """`perf_counter()`, `time.time()`, `datetime.now()`, under whatever name, also where they are only handed on."""
    for node in ast.walk(cell.tree()):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            written = ast.unparse(node)
            first, dot, rest = written.partition(".")
            full = (known.get(first, first) + dot + rest).split(".")
            imported = dot or first in known  # a name of the cell's own may be called timeit
            if (imported and full[-1] in CLOCKS) or ".".join(full[-2:]) in DATES:
                yield f"{written}()"
        if call_name(node) == "datetime64" and {getattr(arg, "value", None) for arg in node.args} & NOW:
            yield ast.unparse(node)


def aliases(nb):
    """What each imported name stands for: {"now": "time.perf_counter", "np": "numpy"}."""
    found = {}
    for node in (node for cell in nb.code for node in ast.walk(cell.tree())):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found
