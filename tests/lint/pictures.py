"""Pictures: alt texts, captions that are computed, and a size that a phone can show."""

import base64
import re

from .notebook import joined
from .page import Page, without_code
from .registry import rule
from .syntax import (
    argument,
    bound_by,
    call_name,
    calls_anywhere,
    constant_texts,
    functions,
    is_computed,
    names_in,
    reaches,
)


def bad_alt(text, shortest=80, longest=300):
    """What is wrong with an alt text, or None."""
    if not text or not text.strip():
        return "no alt text"
    if re.search(r"\.(png|jpe?g|svg|gif|webp)$", text.strip(), re.I) or "_images/" in text:
        return f"a file path as alt text ({text[:60]!r})"
    if not shortest <= len(text) <= longest:
        return f"alt text of {len(text)} characters, allowed are {shortest} to {longest}"
    return None


@rule(two_tier=False)
def pictures_have_alt_text(nb):
    do = "State the finding in the cell's metadata, mystnb > image > alt"
    found, seen = [], {}
    for cell in nb.code:
        pictures = len(cell.pictures())
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


@rule()
def html_images_have_alt_text(nb):
    do = "State what is to be seen, in a sentence"
    found = []
    for cell in nb.cells:
        pages = cell.pages()
        if cell.kind == "markdown":
            pages.append(Page.read(without_code(cell.source)))
            alts = re.findall(r"!\[([^\]]*)\]\(", without_code(cell.source))
        else:
            alts = []
        for page in pages:
            alts += [image.get("alt") for image in page.tags("img")] + [frame["alt"] for frame in page.frames()]
        found += [nb.say(cell, f"image with {bad_alt(alt, 20, 600)}", do) for alt in alts if bad_alt(alt, 20, 600)]
    return found


@rule()
def frames_have_their_own_words(nb):
    """Who moves the control hears or reads something else at each value: the alt text, or the caption."""
    do = "Let the caption of explore() depend on the value, and state what is seen there"
    found = []
    for cell in nb.code:
        for page in cell.pages():
            words = [(frame["alt"], frame.get("caption")) for frame in page.frames()]
            if len(set(words)) < len(words):
                found.append(nb.say(cell, f"{len(words)} frames, {len(set(words))} of them told differently", do))
    return found


@rule(two_tier=True)
def pictures_have_captions(nb):
    """Each picture comes from figure(), explore(), explore_3d() or lab(), with a caption that a reader sees."""
    found, known = [], functions(nb)
    for cell in nb.code:
        if cell.pictures():
            do = "Show it with figure(fig, caption), the numbers in the caption computed"
            found.append(nb.say(cell, "a bare picture", do))
        if cell.alt:
            do = "Remove mystnb > image: figure() takes the alt text, and strict nbval compares it"
            found.append(nb.say(cell, "an alt text in the metadata, which nothing compares", do))
        for html in cell.mime("text/html"):
            page = Page.read(html)
            if page.tags("img") and not any(caption.strip() for caption in page.captions):
                do = "Pass a caption that says what is to be seen"
                found.append(nb.say(cell, "a picture without a <figcaption>", do))
            if page.tags("img") and not shows_pictures(cell, known):
                do = f"Show it with one of {', '.join(SHOWS)}, which compare its words"
                found.append(nb.say(cell, "a picture from elsewhere", do))
    return found


SHOWS = {"figure": 1, "explore": 1, "explore_3d": 2, "lab": 2}  # where the caption stands among the arguments


def shows_pictures(cell, known):
    """Whether a cell calls figure() and the like, or a function of the notebook that does."""
    return bool(reaches(names_in(cell.tree()), known) & set(SHOWS))


@rule(two_tier=True)
def captions_are_computed(nb):
    do = 'Compute its numbers: f"... {share:.0%} ..."'
    texts = constants(nb)
    found = []
    for cell in nb.taught:
        for call in calls_anywhere(cell, *SHOWS):
            for what, given in spoken(call):
                given = texts.get(getattr(given, "id", None), given)
                if not is_computed(given) and re.search(r"\d", typed(call, given)):
                    found.append(nb.say(cell, f"{what}= with typed numbers", do))
    return found


def spoken(call):
    """(what it is, the expression) of the caption and the alt text that a call passes."""
    for what, place in (("caption", SHOWS[call_name(call)]), ("alt", None)):
        given = argument(call, place, what)
        if given is not None:
            yield what, given


def typed(call, text):
    """What a text has outside of braces; explore() fills those of a template itself."""
    written = " x ".join(constant_texts(text))
    return re.sub(r"\{[^{}]*\}", "x", written) if call_name(call) == "explore" else written


def constants(nb):
    """Names that are given a text that is not computed: name -> expression."""
    found = {}
    for statement in (s for cell in nb.taught for s in cell.tree().body if hasattr(s, "value")):
        if constant_texts(statement.value) and not is_computed(statement.value):
            found |= {name: statement.value for name in bound_by(statement)}
    return found


@rule()
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
