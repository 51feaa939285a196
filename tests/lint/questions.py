"""Questions: predictions before a run, answers after it, and the self-check at the end."""

import re

from .page import parts, sections, text_of, without_code
from .registry import CHAPTER, rule


def predictions(text):
    """All Predict blocks, as the text of their blockquote."""
    quotes = re.findall(r"(?:^>.*\n?)+", text, flags=re.M)
    return [quote for quote in quotes if re.match(r">\s*\*\*Predict", quote)]


def choices(quote):
    """The question of a Predict block and its options: (question, {letter: text})."""
    text = re.sub(r"<details>.*?</details>|^> ?|\*\*Predict\.?\*\*", " ", quote, flags=re.S | re.M)
    parts = re.split(r"\(([a-z])\)", text)
    return plain(parts[0]), {letter: plain(told) for letter, told in zip(parts[1::2], parts[2::2], strict=True)}


def plain(text):
    return " ".join(re.findall(r"[\w$\\.,%−+-]*[\w∞][\w$\\%]*", text))


@rule(CHAPTER)
def predictions_are_questions(nb):
    """A question in words, two options or more, each of which says something else."""
    found = []
    for cell in nb.own_markdown:
        for quote in predictions(cell.source):
            question, options = choices(quote)
            if len(question.split()) < 2 or len(" ".join([question, *options.values()]).split()) < 9:
                do = "Say what is going to be run, and ask what comes out of it"
                found.append(nb.say(cell, f"a Predict block that asks {question!r}", do))
            letters = re.findall(r"\(([a-z])\)", re.sub(r"<details>.*?</details>", "", quote, flags=re.S))
            if letters != list("abcdefgh"[: len(letters)]):
                do = "Letter them (a), (b), (c), in this order"
                found.append(nb.say(cell, f"a Predict block with the letters {', '.join(letters)}", do))
            if len(set(options.values()) - {""}) < max(2, len(options)):
                do = "Offer (a), (b) and (c), each another outcome in words"
                found.append(nb.say(cell, f"a Predict block with the options {list(options.values())}", do))
    return found


@rule(CHAPTER, two_tier=False)
def predictions_have_folded_answers(nb):
    do = "Fold the answer into <details><summary>..</summary> inside the quote"
    return [
        nb.say(cell, "a Predict block without a folded answer", do)
        for cell in nb.own_markdown
        for quote in predictions(cell.source)
        if not re.search(r"<details>.*<summary>.+</summary>.*\S.*</details>", quote, re.S)
    ]


@rule(CHAPTER, two_tier=True)
def predictions_are_answered_after_the_run(nb):
    """The answer stands after the next code cell, in the same section, and opens with its letter: "It is (c)."."""
    found = []
    for cell, quote, before, letter in answers(nb):
        options = choices(quote)[1]
        if before:
            do = "Move the answer behind the code cell that runs it"
            found.append(nb.say(cell, "a Predict block that is answered before the run", do))
        elif letter is None:
            do = f'Open the paragraph after the run with it, such as "It is ({next(iter(options), "a")})."'
            found.append(nb.say(cell, "a Predict block whose answer gives no letter after the run", do))
        elif letter not in options:
            do = f"Name one of its options, ({'), ('.join(options)})"
            found.append(nb.say(cell, f"a Predict block that is answered with ({letter})", do))
    return found


def answers(nb):
    """(cell, quote, whether it is answered before the run, letter or None) for each Predict block of a chapter."""
    for _, section in parts(nb):
        own = [(cell, piece) for cell, text in section if "exercises" not in cell.tags for piece in cut(text)]
        for place, (cell, quote) in enumerate(own):
            if not predictions(quote):
                continue
            after = own[place + 1 :]
            run = next((i for i, (cell, _) in enumerate(after) if cell.kind == "code"), len(after))
            end = next((i for i, (_, text) in enumerate(after) if predictions(text)), len(after))
            texts = [text for _, text in after]
            yield cell, quote, bool(opening_letter(texts[: min(run, end)])), opening_letter(texts[run:end])


def cut(text):
    """A text in pieces, so that each Predict block is one of its own."""
    quotes = "|".join(map(re.escape, predictions(text)))
    return re.split(f"({quotes})", text) if quotes else [text]


def opening_letter(texts):
    """The letter with which the first paragraph that opens with one does so: `It is (c).` or `(c): ...`."""
    for paragraph in (p for text in texts for p in re.split(r"\n\s*\n", text)):
        match = re.match(r"\W*(?:(?:it|that|this|the answer|the right answer|right) (?:is|was) |right: )?\W*\(([a-z])\)",
                         paragraph, re.I)  # fmt: skip
        if match and not paragraph.lstrip().startswith((">", "<details>")):
            return match[1]
    return None


@rule(CHAPTER, two_tier=True)
def predictions_can_be_lost(nb):
    """Where one letter is always right, nobody needs to read the question."""
    letters = [letter for *_, letter in answers(nb) if letter]
    if len(letters) < 4 or len(set(letters)) > 1:
        return []
    return [nb.say(None, f"({letters[0]}) is right in all {len(letters)} predictions", "Put the options in another order")]


def questions(text):
    """The questions of a self-check: (text, [(option, feedback), ...]); each begins with option (a)."""
    groups, end = [], 0
    for match in re.finditer(r"<details>\s*<summary>\s*\(?([a-z])\)(.*?)</summary>(.*?)</details>", text, re.S):
        letter, option, feedback = match.groups()
        if letter == "a" or not groups:
            groups.append((text[end : match.start()].strip(), []))
        groups[-1][1].append((squeezed(option), squeezed(feedback)))
        end = match.end()
    return groups


def squeezed(text):
    return re.sub(r"[>\s]+", " ", text).strip()


@rule(CHAPTER)
def self_check_gives_feedback(nb):
    """Each question asks something, offers three options that differ, and says of each why it is right or wrong."""
    texts = [text_of(cells) for title, cells in sections(nb) if "check yourself" in title.lower()]
    groups = questions("\n".join(texts))
    found = []
    if len(groups) < 3:
        do = "Ask three questions, each option folded with its feedback"
        found.append(nb.say(None, f"{len(groups)} questions under 'Check yourself'", do))
    for number, (asked, given) in enumerate(groups, 1):
        for wrong, do in faults(asked, given):
            found.append(nb.say(None, f"question {number} of the self-check {wrong}", do))
    return found


def faults(asked, given):
    last = re.split(r"\n\s*\n", without_code(asked))[-1]
    options, feedback = [option for option, _ in given], [told for _, told in given]
    if len(re.findall(r"\w+", re.sub(r"^\W*\d+\.?", "", last))) < 4:
        yield f"reads {last[-40:]!r}", "Ask it in a whole sentence"
    if len(given) < 3:
        yield f"has {len(given)} options", "Offer at least three"
    if len({plain(option) for option in options} - {""}) < len(options):
        yield "has options that say the same", "Let each be an answer of its own"
    if any(len(told) < 20 for told in feedback) or len(set(feedback)) < len(feedback):
        yield "has an option without feedback of its own", "Say for every option why it is right or wrong"
