"""The text: plain Markdown, headings in order, and no sentence twice."""

import re
from collections import Counter

from .page import headings, without_code
from .registry import CHAPTER, EVIDENCE, GUIDE, rule

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


@rule()
def no_raw_sphinx(nb):
    do = "Use plain Markdown: Jupyter and Colab show this as it stands"
    return [
        nb.say(cell, f"{what}: {match.group().strip()[:40]!r}", do)
        for cell in nb.markdown
        for what, pattern in SPHINX.items()
        if (match := re.search(pattern, without_code(cell.source), flags=re.M))
    ]


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


@rule()
def headings_are_in_sentence_case(nb):
    do = "Write a sentence with a verb; names go into NAMES in tests/lint/prose.py"
    return [
        nb.say(cell, f"capital in {word!r}, heading {text!r}", do)
        for cell, _, text in headings(nb)
        for word in title_cased(text)
    ]


@rule()
def headings_form_a_tree(nb):
    found, before = [], 0
    for cell, level, text in headings(nb):
        if (level == 1) != (before == 0):
            found.append(nb.say(cell, f"level {level}: {text!r}", "One title, first; then sections"))
        elif level > before + 1:
            found.append(nb.say(cell, f"level {level} after level {before}", "Skip no level"))
        before = level
    return found if before else [nb.say(None, "no heading", "Start with a title")]


@rule(CHAPTER, EVIDENCE, GUIDE)
def sentences_are_not_repeated(nb):
    """Eight words in the same order are the same sentence; what frames a question may recur."""
    cells = {}
    for cell in nb.own_markdown:
        for sentence in sentences(cell.source):
            cells.setdefault(sentence, []).append(cell)
    return [
        nb.say(where[1], f"a sentence for the {ordinal(len(where))} time: {sentence[:60]!r}", "Say it once")
        for sentence, where in cells.items()
        if len(where) > 1
    ]


def ordinal(count):
    return {2: "second", 3: "third"}.get(count, f"{count}th")


def sentences(text, words=8):
    """The sentences of a Markdown text that have at least so many words, in lower case."""
    text = re.sub(r"^#+ .*$|<[^>]+>|^> ?", "\n\n", without_code(text), flags=re.M)
    for sentence in re.split(r"(?<=[.?!:])[\s*]+|\n\s*\n", text):
        plain = " ".join(re.findall(r"[^\W_]+", sentence.lower()))
        if plain.count(" ") + 1 >= words:
            yield plain


@rule(CHAPTER, EVIDENCE, GUIDE)
def prose_is_not_filler(nb):
    """A word may be frequent; the same three in a row, again and again, tell a reader nothing."""
    text = re.sub(r"<[^>]+>|https?://\S+|\*\*[^*]+\*\*", " ", without_code(nb.prose()))
    words = re.findall(r"[^\W\d_]+", text.lower())
    triples = Counter(zip(words, words[1:], words[2:], strict=False))
    triple, count = max(triples.items(), key=lambda item: item[1], default=((), 0))
    if len(words) < 200 or count <= max(12, 0.015 * len(words)):
        return []
    return [nb.say(None, f"{' '.join(triple)!r} {count} times in {len(words)} words", "Write what only this place says")]
