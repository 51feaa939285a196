"""Links, citations, and the sources that the ledger audits."""

import re
from pathlib import Path
from urllib.parse import unquote

from .page import without_code
from .registry import CHAPTER, rule


def links(text):
    """The targets of all links and images in Markdown, but for addresses elsewhere."""
    text = without_code(text)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"(?:href|src)=\"([^\"]+)\"", text)
    return [target for target in targets if not target.startswith("data:")]


GENERATED = {"claims.md"}  # pages of book/ that exist from the first build on


@rule()
def relative_links_resolve(nb):
    found = []
    for cell in nb.cells:
        texts = [cell.source] if cell.kind == "markdown" else cell.mime("text/markdown") + cell.mime("text/html")
        for target in (target for text in texts for target in links(text)):
            path = unquote(target.split("#")[0])
            if path.startswith("/") and not path.startswith("//"):
                found.append(nb.say(cell, f"the absolute link {target!r}", "Make it relative"))
            elif not path or re.match(r"[a-z]+:|//", path) or Path(path).name in GENERATED:
                continue
            elif not (nb.path.parent / path).exists():
                found.append(nb.say(cell, f"a link to {target!r}", "There is no such file"))
    return found


@rule()
def citations_are_in_the_bibliography(nb):
    do = "Add the work to book/references.bib, with its arXiv number or DOI"
    known = nb.book.bibliography.lower()
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


@rule(CHAPTER, two_tier=True)
def sources_are_linked_where_first_named(nb):
    """A document whose claims the chapter tests, and that has an address, is linked in the paragraph that names it first."""
    paragraphs = [(cell, part) for cell in nb.own_markdown for part in re.split(r"\n\s*\n", cell.source)]
    found = []
    for source in nb.book.sources.values():
        link, names = source.get("link"), names_of(source)
        if not link:
            continue
        cell, first = next(((c, p) for c, p in paragraphs if link in p or any(n in squeezed(p) for n in names)), (None, ""))
        do = f"Link it: [...]({link})"
        if cell and link not in first:
            found.append(nb.say(cell, f"{source.get('name') or source['heading']!r} is named without its address", do))
        if not cell and nb.book.claims(nb.number, source):
            do = f"Say who wrote it and what it says, with the link: [...]({link})"
            found.append(nb.say(None, f"{source['heading']!r} is put to the test without being presented", do))
    return found


def names_of(source):
    """What a sentence calls a source: its name or its heading in the ledger, without the article."""
    given = (source.get("name"), source.get("heading"))
    return [re.sub(r"^(?:the|an?) ", "", squeezed(text)) for text in given if text]


def squeezed(text):
    """Text in one line, in lower case and without marks, so that its setting does not matter."""
    return " ".join(re.findall(r"[^\W_]+", without_code(text).lower()))
