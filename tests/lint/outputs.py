"""What outputs may show: nothing that differs from one honest run, one machine or one network to the next."""

import re

from .page import Page
from .registry import rule


def long_numbers(text):
    """Numbers with a decimal point or exponent and more than 6 significant digits.

    Whole numbers are exact counts and may be longer. An arXiv number is no measurement.
    """
    numbers = re.findall(r"(?<![\w.])(?<!arXiv:)\d[\d_,]*(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w.]*\d)", text)
    for number in numbers:
        digits = re.sub(r"[eE].*|\D", "", number).lstrip("0")
        if re.search(r"[.eE]", number) and len(digits) > 6:
            yield number


@rule()
def at_most_6_significant_digits(nb):
    do = "Round it: the last digits differ from one machine to the next"
    shown = [(cell, cell.printed() + "\n" + (cell.alt or "")) for cell in nb.code]
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


@rule()
def nothing_volatile_is_printed(nb):
    do = "Print a count or a rounded Python number, and no time"
    return [
        nb.say(cell, f"{what} in an output: {match.group()!r}", do)
        for cell in nb.code
        for what, pattern in VOLATILE.items()
        if (match := re.search(pattern, cell.printed()))
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


@rule()
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


@rule()
def no_machine_paths(nb):
    texts = [(cell, f"{cell.source}\n{cell.printed()}\n{cell.alt or ''}") for cell in nb.cells]
    do = "Use a path relative to the notebook, or package data"
    return [
        nb.say(cell, f"a path of one machine, {match.group()!r}", do)
        for cell, text in texts
        if (match := re.search(MACHINE_PATH, text))
    ]
