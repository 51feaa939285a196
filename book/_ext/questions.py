"""Marks the questions of the chapters for questions.js beside it, which lets a reader answer them on the site.

They are plain Markdown: a quote that begins with **Predict.** and has options (a), (b), (c), answered further down by
a paragraph such as "It is (b)."; and, at a chapter's end, a question with folded options, of which the right one opens
its explanation with "Right" or "Yes". What a reader without scripts sees is not changed here: only classes are added.
"""

import hashlib
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

SCRIPT = "questions.js"
OPENS = re.compile(r"\W*(?:(?:it|that|this|the (?:right )?answer|right) (?:is|was) |right: )?\W*\(([a-z])\)", re.I)
SAYS = re.compile(r"\b(?:it|that|this) (?:is|was) \(([a-z])\)", re.I)
DETAILS = re.compile(r"<details>(\s*<summary>\s*\(([a-z])\).*?</summary>)(.*?</details>)", re.S)
RIGHT = re.compile(r"\s*(?:Right|Yes)\b")
APART = re.compile(r"[,;]?(?:\s+(?:or|and))?\s*$")  # between two options


def key(text):
    """A name for what a reader answered, which a change of the question makes void."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:10]


def mark(app, doctree):
    """Mark all questions of a page."""
    complain = logging.getLogger(__name__).warning
    paragraphs = list(doctree.findall(nodes.paragraph))
    places = [place for place, paragraph in enumerate(paragraphs) if is_prediction(paragraph)]
    for place, end in zip(places, [*places, len(paragraphs)][1:], strict=True):
        one = paragraphs[place]
        after = [p for p in paragraphs[place + 1 : end] if not isinstance(p.parent, nodes.block_quote)]
        name, letters = key(one.astext()), split_options(one)
        answer, letter = find_answer(after)
        if letter not in letters:
            complain("a prediction has no answer: %s", one.astext()[:60], location=one)
            continue
        one["classes"] += ["abe-predict", f"abe-key-{name}", f"abe-right-{letter}"]
        answer["classes"] += ["abe-told", f"abe-key-{name}"]
    for question, options in self_checks(doctree):
        if sum(options.values()) != 1:
            asks = question.astext()[:60]
            complain("a self-check needs one option that opens with Right or Yes: %s", asks, location=question)
        question["classes"] += ["abe-check", f"abe-key-{key(question.astext())}"]


def is_prediction(paragraph):
    """Whether it opens a quote with Predict, in bold."""
    first = next((child for child in paragraph.children if child.astext()), None)
    quoted = isinstance(paragraph.parent, nodes.block_quote) and paragraph.parent.index(paragraph) == 0
    return quoted and isinstance(first, nodes.strong) and first.astext().startswith("Predict")


def split_options(paragraph):
    """Put each option of a prediction into a span of its own; their letters."""
    children, paragraph.children, spans = list(paragraph.children), [], []
    for child in children:
        for piece in pieces(child, "abcdefgh"[len(spans) :]):
            if isinstance(piece, nodes.inline) and "abe-option" in piece["classes"]:
                spans.append(piece)
                paragraph += piece
            else:
                (spans[-1] if spans else paragraph).append(piece)
    for number, span in enumerate(spans):
        cut(paragraph, span, number == len(spans) - 1, spans[0])
    return [span.children[0].astext()[1] for span in spans]


def pieces(child, letters):
    """A child of a paragraph; a text is cut where the next letters begin options."""
    if not isinstance(child, nodes.Text):
        return [child]
    found, rest = [], child.astext()
    for letter in letters:
        before, sign, after = rest.partition(f"({letter})")
        if not sign:
            break
        found += [nodes.Text(before)] * bool(before)
        sign = nodes.inline("", sign, classes=["abe-letter"])
        found.append(nodes.inline("", "", sign, classes=["abe-option"]))
        rest = after
    return found + [nodes.Text(rest)] * bool(rest)


def cut(paragraph, span, is_last, first):
    """Move out of an option what is none of it: the comma before the next one, a further question at the end."""
    behind = []
    if is_last and span.astext().endswith("?"):
        for place, child in enumerate(span.children):
            stop = re.search(r"\.\s+(?=[A-Z])", child.astext()) if isinstance(child, nodes.Text) else None
            if stop:
                behind = [nodes.Text(child.astext()[stop.end() - 1 :]), *span.children[place + 1 :]]
                span.children[place:] = [nodes.Text(child.astext()[: stop.start() + 1])]
                break
    last = span.children[-1]
    if isinstance(last, nodes.Text):
        closed = re.search(r"[.?!]\s*$", first.astext())  # options are whole sentences
        end = APART.search(last) if not is_last or closed else re.search(r"[.?]?\s*$", last)
        span.children[-1] = nodes.Text(last[: end.start()])
        behind = [nodes.Text(last[end.start() :])] * bool(last[end.start() :]) + behind
    place = paragraph.index(span) + 1
    paragraph[place:place] = behind


def find_answer(paragraphs):
    """The paragraph that answers, and its letter: the first that opens with one, or else the first that says one."""
    for pattern in (OPENS.match, SAYS.search):
        for paragraph in paragraphs:
            if found := pattern(paragraph.astext()):
                return paragraph, found[1]
    return None, None


def self_checks(doctree):
    """Each question with {letter: whether it is right}; the options, which are raw HTML, are marked on the way."""
    groups = []

    def marked(found):
        letter, right = found[2], bool(RIGHT.match(found[3]))
        if letter == "a":
            groups.append((question, {}))
        groups[-1][1][letter] = right
        return f'<details class="abe-folded" data-letter="{letter}"{" data-right" * right}>{found[1]}{found[3]}'

    for raw in list(doctree.findall(nodes.raw)):
        before = raw.parent.index(raw) - 1
        if isinstance(raw.parent, nodes.block_quote) or not DETAILS.search(raw.astext()):
            continue
        question = raw.parent[before]
        text = DETAILS.sub(marked, raw.astext())
        raw.rawsource, raw.children = text, [nodes.Text(text)]
    return groups


def load_script(app, pagename, templatename, context, doctree):
    """On pages with questions; before MathJax, so that what is copied into a question is set there, too."""
    if re.search('class="[^"]*abe-(predict|check) ', context.get("body", "")):
        app.add_js_file(SCRIPT, loading_method="defer", priority=300)


def copy_script(app, exception):
    if exception is None and app.builder.format == "html":
        shutil.copyfile(Path(__file__).with_name(SCRIPT), Path(app.outdir) / "_static" / SCRIPT)


def setup(app):
    app.connect("doctree-read", mark)
    app.connect("html-page-context", load_script)
    app.connect("build-finished", copy_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
