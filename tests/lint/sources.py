"""The code of a cell: plain Python, in lines that fit the page, with shapes."""

import ast
import io
import re
import tokenize

from .registry import rule
from .syntax import call_name, calls


@rule()
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


@rule()
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


@rule()
def code_lines_fit_the_page(nb):
    return [
        nb.say(cell, f"a line of {len(line)} characters, allowed are 88: {line.strip()[:40]!r}",
               "Break it; at 1,280 pixels the site shows no more")  # fmt: skip
        for cell in nb.taught
        for line in cell.source.splitlines()
        if len(line) > 88
    ]


@rule()
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


@rule(two_tier=True)
def folded_code_is_named(nb):
    """On the site the button says what is inside; in Jupyter and Colab, which fold nothing, the first line does."""
    found = []
    for cell in (cell for cell in nb.taught if {"hide-input", "hide-cell"} & set(cell.tags)):
        prompt = cell.mystnb.get("code_prompt_show", "")
        first = (cell.source.strip().splitlines() or [""])[0]
        if not re.fullmatch(r"Code: \S.*", prompt):
            do = 'Set mystnb > code_prompt_show in its metadata, such as "Code: the histogram"'
            found.append(nb.say(cell, f"folded code under the name {prompt!r}", do))
        elif bare(first) != bare("# " + prompt):
            do = f"Begin it with `# {prompt}`: Jupyter and Colab show no button"
            found.append(nb.say(cell, f"folded code whose first line is {first[:40]!r}", do))
    return found


@rule(two_tier=True)
def only_bindings_are_removed(nb):
    """What the site leaves out altogether no reader can check; a binding is read in its sentence."""
    do = 'Fold it: the tag hide-input, and "Code: ..." for a name'
    removed = [cell for cell in nb.taught if "remove-cell" in cell.tags and not calls(cell, "bind")]
    shown = [cell for cell in nb.taught if "remove-cell" not in cell.tags and calls(cell, "bind")]
    return [nb.say(cell, "a cell that the site leaves out", do) for cell in removed] + [
        nb.say(cell, "a binding in the reader's way", "Give the cell of bind() the tag remove-cell") for cell in shown
    ]


def bare(line):
    """A comment without its marks, `# Code: the histogram.` -> `the histogram`; empty for a line of code."""
    match = re.fullmatch(r"#\s*(?:code:\s*)?(.*?)[.:]?\s*", line, re.I)
    return match[1].lower() if match else ""
