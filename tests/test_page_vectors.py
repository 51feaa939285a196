"""The word vectors of the page: small enough, read back as they were written, and close to those of load_glove()."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from index_figure import IT, WORDS

from attn_utils import attention, load_glove

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("page_vectors", ROOT / "book" / "_ext" / "page_vectors.py")
page_vectors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page_vectors)


@pytest.fixture(scope="module")
def kv():
    return load_glove()


@pytest.fixture(scope="module")
def scripts():
    return page_vectors.scripts()


def read(text):
    """{word: vector} of one script, as the page reads it."""
    told = json.loads(re.search(r"push\((.*)\);\n$", text, re.S)[1], strict=False)
    words = []
    for letter, rest in re.findall(r"([A-Z])([^A-Z]*)", told["words"]):
        words.append((words[-1] if words else "")[: ord(letter) - ord("A")] + rest)
    place = {letter: i for i, letter in enumerate(page_vectors.LETTERS)}
    places = np.array([place[letter] for letter in told["steps"]]).reshape(len(words), -1)
    steps = np.where(places % 2, -(places + 1) // 2, places // 2)
    found = dict(zip(words, np.array(told["base"]) + np.array(told["step"]) * steps, strict=True))
    return found | {word: np.array(numbers) / 1000 for word, numbers in told["thousandths"].items()}


@pytest.fixture(scope="module")
def page(scripts):
    return {name: read(text) for name, text in scripts.items()}


@pytest.fixture(scope="module")
def vectors(page, kv):
    """The page's vectors in the order of the library's words."""
    both = {word: vector for part in page.values() for word, vector in part.items()}
    return np.array([both[word] for word in kv.index_to_key])


def test_they_are_small_enough(scripts):
    sizes = {name: len(text.encode()) for name, text in scripts.items()}
    assert sizes["words-first.js"] < 200_000 and sum(sizes.values()) <= 1_100_000


def test_every_word_is_there_once_and_the_frequent_ones_come_first(page, kv):
    first, rest = (set(page[name]) for name in ("words-first.js", "words-rest.js"))
    assert first | rest == set(kv.index_to_key) and not first & rest
    assert first > set(kv.index_to_key[:3000]) | set(WORDS) and len(first) < 3050  # and the words of the examples


def test_a_script_is_one_line_that_every_server_may_send(scripts):
    for text in scripts.values():
        assert text.count("\n") == 1 and not set(text) & set("\r\0\u2028\u2029\ufeff")


def test_the_scripts_hold_what_was_measured(vectors, kv):
    found = page_vectors.quantized(kv.vectors.astype(float))
    same = np.all(vectors == page_vectors.restored(found), axis=1)
    assert 10 < np.sum(~same) < 50  # the words of the examples
    assert np.max(np.abs(vectors - kv.vectors)[~same]) <= 0.0005001
    assert np.all(np.ptp(found["steps"], axis=0) <= 256), "more than 8 bits"


def weights(X, M=None):
    return attention(X if M is None else X @ M, X, X)[1]


def test_the_row_of_it_is_within_a_thousandth(vectors, kv):
    rows = [kv.key_to_index[word] for word in WORDS]
    exact = weights(kv.vectors[rows])[IT]
    steps = page_vectors.restored(page_vectors.quantized(kv.vectors.astype(float)))  # as it would be, were it no example
    for page in (vectors, steps):
        assert np.max(np.abs(weights(page[rows])[IT] - exact)) < 0.001


@pytest.mark.parametrize("source, bound", [("raw", 0.01), ("random", 0.02)])
def test_the_weights_of_any_sentence_are_as_close_as_the_page_says(source, bound, vectors, kv):
    """Half of the sentences are drawn as text uses words, half from all words alike."""
    assert f"{source}: {bound}" in re.search("BOUND = {(.*?)}", (ROOT / "book" / "labs" / "ask.js").read_text("utf8"))[1]
    rng, used = np.random.default_rng(0), 1 / (np.arange(len(vectors)) + 2.7)
    worst = 0
    for n in range(2000):
        rows = rng.choice(len(vectors), rng.integers(2, 17), p=used / used.sum() if n % 2 else None)
        M = np.linalg.multi_dot(rng.normal(size=(2, 50, 50)) / np.sqrt(50)) if source == "random" else None
        worst = max(worst, np.max(np.abs(weights(vectors[rows], M) - weights(kv.vectors[rows].astype(float), M))))
    assert bound / 3 < worst < bound
