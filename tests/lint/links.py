"""Links, citations, and the sources that the ledger audits."""

import re
from urllib.parse import unquote

from .page import without_code
from .registry import CHAPTER, rule


def links(text):
    """The targets of all links and images in Markdown, but for addresses elsewhere."""
    text = without_code(text)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r"(?:href|src)=\"([^\"]+)\"", text)
    return [target for target in targets if not target.startswith("data:")]


@rule()
def relative_links_resolve(nb):
    found = []
    for cell in nb.cells:
        texts = [cell.source] if cell.kind == "markdown" else cell.mime("text/markdown") + cell.mime("text/html")
        for target in (target for text in texts for target in links(text)):
            path = unquote(target.split("#")[0])
            if path.startswith("/") and not path.startswith("//"):
                found.append(nb.say(cell, f"the absolute link {target!r}", "Make it relative"))
            elif path and not re.match(r"[a-z]+:|//", path) and not (nb.path.parent / path).exists():
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
    """A source with an address in book/claims.yml (`link`) has it in the paragraph that names it first."""
    paragraphs = [(cell, part) for cell in nb.own_markdown for part in re.split(r"\n\s*\n", cell.source)]
    found = []
    for source in nb.book.sources.values():
        name, link = source.get("name"), source.get("link")
        first = next(((c, p) for c, p in paragraphs if name and names(p, name)), None) if link else None
        if first and link not in first[1]:
            do = f"Link it there: [{name}]({link})"
            found.append(nb.say(first[0], f"the first mention of {name!r} without its address", do))
    return found


def names(paragraph, name):
    """Whether a paragraph names a source, however its words are broken into lines and whatever its case."""
    return " ".join(name.lower().split()) in " ".join(without_code(paragraph).lower().split())
