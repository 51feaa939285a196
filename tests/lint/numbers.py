"""Numbers in sentences: each is bound to a value by name, or shown near, and a wrong last digit is caught.

A number may stand in Markdown in two ways:

- bound: `27 %<!--=share-->`, where a cell `bind(share=...)` prints `share = 0.2712`. It has to be that value, rounded
  to the digits that are written;
- shown: code or outputs of its section, or of the one before, hold it at the digits that are written, and hold no
  number that differs from it in the last digit. So each change of the last digit is caught, by construction.

Otherwise the sentence is computed with say(), which strict nbval compares.
"""

import ast
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from .page import sections, without_code
from .pictures import SHOWS, typed
from .registry import CHAPTER, EVIDENCE, GUIDE, rule
from .syntax import call_name, calls, calls_anywhere, constant_texts, given_to, names_in

NUMBER = re.compile(
    r"(?<![\w.,\\#])(?<!\D/)(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)(?:e(?P<power>[+-]?\d+))?"
    r"(?P<percent>[ \u00a0\u202f]?\\?%| percent\b)?(?:[A-Za-z×-]*)(?P<bound><!--=\s*(?P<name>\w+)\s*-->)?"
)
PLACES = "chapter section exercise assignment equation figure table theorem lemma proposition footnote page version".split()
PLACE = rf"(?:{'|'.join(PLACES)}|eq\.|fig\.|p\.|python|appendix|corollary)"
MANY = rf"(?:{'|'.join(f'{place}s' for place in PLACES)}|eqs\.|figs\.|pp\.|corollaries)"
EXEMPT = {  # what has digits and is no result
    "a year": r"(?:\b(?:in|since|of|from|until|before|after|by) |[(\[] ?|(?<=[a-z.]), )(?:19|20)\d\d[a-z]?(?=[.,;:)\]])",
    "an address": r"https?://[^\s)>]+|\]\([^)]*\)",
    "the number of a work": r"(?i)\barxiv:\S+|\bdoi:\S+|\b10\.\d{4,}/\S+",
    "HTML": r"<!--(?!=).*?-->|</?[a-zA-Z][^>]*>",
    "the number of a heading or an exercise": r"(?m)^#+ [\d.]+|^\*\*\d+(?:\.\d+)?(?:\.|\*\*)(?= [A-Z$`*])",
    "the number of an item": r"(?m)^\s*\d+\. ",
    "a place in a text": rf"(?i)\b{PLACE} \(?\d+(?:\.\d+)*\)?",
    "places in a text": rf"(?i)\b{MANY} \(?\d+(?:\.\d+)*\)?(?:(?:,? and |, | to | or |–)\(?\d+(?:\.\d+)*\)?)*",
    "a level of confidence": r"\b\d+[ \u00a0\u202f]?%(?= (?:confidence )?(?:intervals?|bands?)\b)",
    "a rating": r"★+☆* · \d+ minutes(?: · \d+ points?)?",
    "a name with digits": r"\b(?=[\w.-]*\d)[A-Za-z_]\w*(?:[.-]\d\w*|-[A-Za-z]\w*)*|\b\d+-(?:bit|byte)\b",
    "a power of ten": r"[−-]?\d+[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+",
}
MATH = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.S)
VALUE = re.compile(  # the mathematics that states one number: $n = 12$, $.96$, $r \approx 0.3$, $27\,\%$
    r"\$(?:[^$=<>≈]*(?:=|\\approx|≈|<|>|\\geq?|\\leq?) *)?[−-]?(\d[\d,{}]*(?:\.\d+)?|\.\d+)(?:\\[,;])?( ?\\?%)?\$"
)
RESULT = re.compile(r"(?:=|\\approx|≈)\s*[−-]?(\d[\d,{}]*\.?\d*|\.\d+)\s*(?=[.,;]?\s*(?:\\[;,q\\]|\$|&)|[,;])")


@dataclass(frozen=True)
class Stated:
    """A number as a text states it; `value` is a fraction where it says percent."""

    written: str
    value: Decimal
    unit: Decimal  # of its last digit
    name: str | None = None

    def like(self, value):
        """Whether a value, rounded to the digits that are written, is this number."""
        return rounded(abs(value), self.unit) == self.value

    def neighbors(self):
        """The nine numbers that differ in the last digit."""
        last = int(self.value / self.unit) % 10
        first = self.value - last * self.unit
        return [Stated(self.written, first + digit * self.unit, self.unit) for digit in range(10) if digit != last]


def rounded(value, unit):
    """A value to so many digits, as Python's own formats round it."""
    return (value / unit).quantize(Decimal(1), ROUND_HALF_EVEN) * unit


def stated(text, opening=False):
    """The numbers that a Markdown text states: decimals, percentages, and whole numbers of 10 and more.

    The options of a question are guesses, and numbers of chapters, years of citations and names are no results.
    """
    for match in NUMBER.finditer(telling(text, opening)):
        digits, power, percent = match["digits"].replace(",", ""), int(match["power"] or 0), match["percent"]
        shift = power - (2 if percent else 0)
        value = Decimal(digits).scaleb(shift)
        unit = Decimal(1).scaleb(shift - len(digits.partition(".")[2]))
        if match["name"] or match["power"] or "." in digits or percent or value >= 10:
            written = (match["digits"] + (f"e{match['power']}" if match["power"] else "") + (percent or "")).replace("\\", "")
            yield Stated(written, value, unit, match["name"])


def telling(text, opening=False):
    """A text without what states no result."""
    text = without_code(text)
    text = re.sub(r"[^\n]+\n\s*\n(?=<details>\s*<summary>\s*\(?a\))", "\n", text)  # a question supposes, it states nothing
    text = re.sub(r"<summary>.*?</summary>", " ", text, flags=re.S)
    text = re.sub(r"(?:^>.*\n?)+", lambda quote: re.split(r"\(a\)", quote[0])[0] + "\n\n", text, flags=re.M)
    text = MATH.sub(lambda math: value_of(math[0]), text)
    patterns = [*EXEMPT.values(), *([r"\b\d+ minutes"] if opening else [])]
    for pattern in patterns:
        text = re.sub(pattern, " ", text)
    return text


def value_of(math):
    """The numbers that a piece of mathematics states, as plain text: not those of a definition or a derivation."""
    whole = VALUE.fullmatch(math)
    found = [whole[1] + ("%" if whole[2] else "")] if whole else RESULT.findall(math)
    return "".join(f" {number.rstrip(',')} " for number in re.sub(r"[{}]", "", " ".join(found)).split())


# --- what is shown ---------------------------------------------------------------------------


class Shown:
    """The numbers in the code and the outputs of some cells, and the ranges that assertions hold them to."""

    def __init__(self, cells, silent=()):
        code = [cell for cell in cells if cell.kind == "code"]
        nodes = [node for cell in code for node in ast.walk(cell.tree())]
        self.ranges = [(low, high) for node in nodes for low, high in asserted_range(node)]
        stops = [stop for node in nodes for stop in stops_of(node)]
        ends = [end for node in nodes for end in range_ends(node)] + stops
        self.values = {decimal(node) for node in nodes if is_number(node) and node not in ends}
        self.values |= {decimal(stop) - 1 for stop in stops}
        self.values |= {value for cell in code if cell not in silent for value in values_in(cell.read())}

    def has(self, number):
        half = number.unit / 2
        values = [value for value in self.values if number.unit >= 1 or not is_whole(value)]
        if number.value == 0:  # nearly nothing is not nothing
            return any(value == 0 for value in values)
        ranges = [number.value - half <= low and high <= number.value + half for low, high in self.ranges]
        return any(map(number.like, values)) or any(ranges)

    def pins(self, number):
        """Whether it is shown, and none of its nine neighbors is."""
        return self.has(number) and not any(map(self.has, number.neighbors()))


def is_whole(value):
    """Written without decimals: a 3 in the code, an index perhaps, shows no 3.0 and no 300 %."""
    return value.as_tuple().exponent >= 0


def is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and abs(node.value) < 1e300


def decimal(node):
    return abs(Decimal(repr(node.value)))


def values_in(text):
    """Every number in an output; a percentage as a fraction."""
    for digits, power, percent in re.findall(r"(\d[\d_,]*\.?\d*|\.\d+)(?:e([+-]?\d+))?([ \u00a0\u202f]?%)?", text.replace("_", "")):
        whole = re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d*)?", digits)
        for part in [digits.replace(",", "")] if whole else digits.split(","):
            if part.strip("."):
                yield Decimal(part.rstrip(".")).scaleb(int(power or 0) - (2 if percent else 0))


def stops_of(node):
    """The 65 of `range(1, 65)`, whose last number is 64."""
    stop = node.args[1:2] if call_name(node) in ("range", "arange") else []
    return [one for one in stop if is_number(one) and isinstance(one.value, int)]


def asserted_range(node):
    """(low, high) of `0.265 < share < 0.275`: the share, whatever it is, is 0.27."""
    ends = range_ends(node)
    return [tuple(map(decimal, ends))] if ends else []


def range_ends(node):
    """The two numbers of a comparison such as `0.265 < share < 0.275`."""
    if not isinstance(node, ast.Compare) or not all(isinstance(op, ast.Lt | ast.LtE) for op in node.ops):
        return []
    ends = [node.left, node.comparators[-1]]
    return ends if len(node.ops) == 2 and all(map(is_number, ends)) else []


def bindings(nb):
    """name -> value of all `bind(name=...)`, from the lines that they printed."""
    texts = [cell.stream("stdout") for cell in nb.code if calls(cell, "bind")]
    lines = re.findall(r"^(\w+) = ([+-]?[\d_.]+(?:e[+-]?\d+)?)%?$", "\n".join(texts), re.M)
    return {name: Decimal(value) for name, value in lines}


# --- the rules -------------------------------------------------------------------------------


def with_what_is_near(nb):
    """(position, cells of a section, what it and the one before show) for each section; a cell begins at most one."""
    before, groups = [], [[]]
    for cell in nb.cells:
        if cell.kind == "markdown" and re.search(r"^## ", cell.source, re.M):
            groups.append([])
        groups[-1].append(cell)
    for position, cells in enumerate(groups):
        yield position, cells, [*before, *cells]
        before = cells


@rule(CHAPTER, EVIDENCE, GUIDE, two_tier=True)
def numbers_in_the_text_are_pinned(nb):
    known, found = bindings(nb), []
    for position, cells, near in with_what_is_near(nb):
        shown = Shown(near)
        for cell in (cell for cell in cells if cell in nb.own_markdown):
            for number in dict.fromkeys(stated(cell.source, opening=position == 0)):
                if wrong := fault(number, known, shown):
                    found.append(nb.say(cell, *wrong))
    return found


def fault(number, known, shown):
    """(what is wrong, what to do) with a number in a text, or None."""
    if number.name and number.name not in known:
        names = f"one of {', '.join(sorted(known))}" if known else "none yet"
        return f"{number.written} is bound to {number.name!r}, which no cell binds", f"Call bind({number.name}=...); bound are {names}"
    if number.name:
        value = known[number.name]
        do = f"{number.name} is {value}; change the sentence, or compute it with say()"
        return None if number.like(value) else (f"{number.written} is not {number.name}", do)
    if shown.pins(number):
        return None
    if not shown.has(number):
        do = f"Compute the sentence with say(), or bind the number by name: {number.written}<!--=name-->"
        return f"{number.written} is in the text, but in no code or output of this section or the one before", do
    other = next(other for other in number.neighbors() if shown.has(other))
    return (
        f"{number.written} is shown near, but so is {float(other.value):g}, so a wrong digit would pass",
        f"Compute the sentence with say(), or bind the number by name: {number.written}<!--=name-->",
    )


@rule(CHAPTER, EVIDENCE, GUIDE, two_tier=True)
def computed_sentences_compute_their_numbers(nb):
    """What say() and a caption have as plain digits between the braces is held to what is shown, like any prose."""
    do = "Put the value in braces, such as {share:.0%}"
    found = []
    for _, cells, near in with_what_is_near(nb):
        telling = [cell for cell in near if cell.kind == "code" and calls_anywhere(cell, "say", *SHOWS)]
        shown = Shown(near, silent=telling)  # two such sentences do not vouch for each other
        for cell in (cell for cell in telling if cell in cells):
            texts = [text for call in calls_anywhere(cell, "say", *SHOWS) for text in texts_of(call, cell)]
            for number in dict.fromkeys(number for text in texts for number in stated(text)):
                if not shown.pins(number):
                    found.append(nb.say(cell, f"{number.written} is typed into a computed sentence", do))
    return found


def texts_of(call, cell):
    """The texts that a call shows, also by a name that its cell gives them, with an x in place of what is computed."""
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("text", "caption", "alt"))]
    given += given_to({name for node in given for name in names_in(node)}, cell)
    return [typed(call, node) for node in given if constant_texts(node)]


@rule(CHAPTER, EVIDENCE, GUIDE, two_tier=True)
def bindings_bind_results_to_sentences(nb):
    """A name is bound to what a cell computed, a sentence uses it, and its mark follows a number."""
    marks = re.findall(r"<!--=\s*(\w+)\s*-->", "\n\n".join(cell.source for cell in nb.own_markdown))
    read = [number.name for cell in nb.own_markdown for number in stated(cell.source) if number.name]
    given = [(cell, keyword) for cell in nb.taught for call in calls(cell, "bind") for keyword in call.keywords]
    idle = [(cell, keyword.arg) for cell, keyword in given if keyword.arg and keyword.arg not in marks]
    typed_in = [(cell, keyword.arg) for cell, keyword in given if not names_in(keyword.value)]
    loose = sorted(name for name in set(marks) if marks.count(name) > read.count(name))
    return [
        *(nb.say(cell, f"{name} is bound, but no sentence has <!--={name}-->", "Use it or remove it") for cell, name in idle),
        *(nb.say(cell, f"{name} is bound to a typed number", "Bind it to what a cell computed") for cell, name in typed_in),
        *(nb.say(None, f"<!--={name}--> follows no number", "Put it right behind the number and its %") for name in loose),
    ]


# --- chapters in the old form ----------------------------------------------------------------

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
    text = "\n".join(f"{cell.source}\n{cell.printed()}\n{cell.alt or ''}" for cell in cells if cell.kind == "code")
    for number, percent in re.findall(r"(\d*\.?\d+(?:e[+-]?\d+)?)( ?%)?", text.replace("_", "")):
        yield (float(number) / (100 if percent else 1),) * 2
    for node in [node for cell in cells if cell.kind == "code" for node in ast.walk(cell.tree())]:
        if isinstance(node, ast.Compare) and len(node.ops) == 2:
            ends = [getattr(end, "value", None) for end in (node.left, node.comparators[1])]
            if all(isinstance(end, int | float) for end in ends):
                yield min(ends), max(ends)


@rule(CHAPTER, two_tier=False)
def numbers_in_the_text_are_shown(nb):
    """Near is the same section or the one before; a section without code may refer to the whole chapter."""
    do = "Print or assert it in a cell of this section, or leave it out"
    found, before = [], []
    for _, cells in sections(nb):
        shows = any(cell.kind == "code" for cell in cells)
        numbers = set(shown_numbers([*before, *cells] if shows and before else nb.cells))
        for cell in cells:
            told = measured(cell.source) if cell in nb.own_markdown else []
            for written in dict.fromkeys(w for w, value, decimals in told if not is_shown(value, decimals, numbers)):
                found.append(nb.say(cell, f"{written} is in the text, but in no code or output near it", do))
        before = cells
    return list(dict.fromkeys(found))  # a cell with two headings belongs to two sections


def is_shown(value, decimals, numbers):
    unit = 10**-decimals
    return any(
        low - 0.5001 * unit <= value <= high + 0.5001 * unit and high - low <= 4.001 * unit for low, high in numbers
    )
