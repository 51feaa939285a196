"""Word vectors for the live figures: the 20,000 of load_glove(), in 8 bits, as two scripts that are made at each build.

Each of the 50 numbers of a vector becomes one of at most 256 steps between the smallest and the largest that any word
has there. A scale for each word would be closer (by a third, before shaped() below) but takes a fifth more bytes,
since most steps would not fit into one byte of a text any more. The words of the examples come in thousandths
besides, so that what stands below their stills in two digits is what the page computes. book/labs/words.js reads what
is written here.
"""

import json
import re
from os.path import commonprefix
from pathlib import Path

import numpy as np

from attn_utils import load_glove

FIRST = 3000  # words in the part that is loaded first
ASK = Path(__file__).parents[1] / "labs" / "ask.js"  # whose examples must not wait for the second part
STEPS, FINEST = 255, 0.027  # steps in each of the 50 numbers, and how fine they are at most: finer ones take more bytes
LETTERS = [chr(i) for i in range(1, 128) if chr(i) not in '\n\r"\\'] + [chr(i) for i in range(0xA1, 0x400)]


def quantized(vectors):
    """{base (50,), step (50,), steps (n_words, 50)}: vectors are about base + step * steps, which are whole numbers."""
    low, high = vectors.min(axis=0), vectors.max(axis=0)  # (50,) each
    step = np.maximum((high - low) / STEPS, FINEST).round(8)  # (50,): as it travels
    middle = np.round((vectors.mean(axis=0) - low) / step)  # (50,): so that most steps are small numbers
    base = (low + middle * step).round(6)  # (50,)
    steps = np.round((vectors - base) / step)  # (n_words, 50)
    return {"base": base, "step": step, "steps": shaped(vectors, base, step, steps).astype(int)}


def shaped(vectors, base, step, steps):
    """Round some numbers the other way, so that the dot products of words, and not each number, come out close.

    An error hurts where it points along the word itself (its score with itself) or along directions that many
    words have in common. Twice through all 50 numbers, each goes one step up or down where that lowers the sum of both.
    """
    own = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # (n_words, 50)
    common = vectors[:FIRST].T @ vectors[:FIRST]  # (50, 50): of the frequent words
    common /= np.linalg.norm(common, 2)
    error = base + step * steps - vectors  # (n_words, 50)
    for d in [*range(len(base))] * 2:
        slope = error @ common[d] + (error * own).sum(axis=1) * own[:, d]  # (n_words,)
        bend = common[d, d] + own[:, d] ** 2  # (n_words,)
        move = np.clip(np.round(-slope / bend / step[d]), -1, 1)  # (n_words,)
        move[np.abs(error[:, d] + move * step[d]) > step[d]] = 0
        steps[:, d] += move
        error[:, d] += move * step[d]
    return steps


def restored(found):
    """The vectors of the page: what quantized() kept of them, (n_words, 50)."""
    return found["base"] + found["step"] * found["steps"]


def letters(steps):
    """A letter for each step: 0, -1, 1, -2, 2, ... in the order of LETTERS, of which the first 123 take one byte."""
    places = np.where(steps < 0, -2 * steps - 1, 2 * steps)
    return "".join(map(LETTERS.__getitem__, places.ravel()))


def front_coded(words):
    """Sorted words, each as a capital for how much it shares with the one before, and the rest: "AableEd"."""
    texts, before = [], ""
    for word in words:
        shared = min(len(commonprefix([word, before])), 25)
        texts.append(chr(ord("A") + shared) + word[shared:])
        before = word
    return "".join(texts)


def part(words, found, rows, closer):
    """The script with these rows; words are sorted, so that neighbors share their beginning. closer: {word: vector}."""
    rows = sorted(rows, key=words.__getitem__)
    told = {"words": front_coded([words[row] for row in rows])}
    told |= {name: found[name].tolist() for name in ("base", "step")}
    told["thousandths"] = {word: np.round(1000 * vector).astype(int).tolist() for word, vector in closer.items()}
    head = json.dumps(told, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f'(window.abeWords=window.abeWords||[]).push({head},"steps":"{letters(found["steps"][rows])}"}});\n'


def scripts():
    """{name: text} of both scripts."""
    kv = load_glove()
    words, found, n = kv.index_to_key, quantized(kv.vectors.astype(float)), len(kv)
    told = re.findall(r'\btext: "([a-z ]+)"', ASK.read_text(encoding="utf-8"))
    closer = {word: kv[word] for word in sorted({word for text in told for word in text.split()})}
    first = {*range(FIRST), *map(kv.key_to_index.get, closer)}
    rest = {*range(n)} - first
    return {"words-first.js": part(words, found, first, closer), "words-rest.js": part(words, found, rest, {})}


def write_scripts(app, exception):
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "labs"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in scripts().items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


def setup(app):
    app.connect("build-finished", write_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
