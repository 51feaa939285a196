"""Make book/labs/heads.npz: the weights of two trained models on twelve short sentences each, in 8 bits, for the page.

    python tools/make_heads.py

It is committed, so that the site is built without the models; tests/test_lab_heads.py compares it with them. Members
are the bytes of what the page loads on demand: NAME-1 to NAME-12, head by head (72 of MiniLM with n * n weights each,
270 of SmolLM2 with the n (n + 1) / 2 of a causal matrix), and NAME-alike, how alike each pair of heads is.
"""

import io
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attn_utils.pretrained import load_minilm, load_smollm  # noqa: E402

PATH = ROOT / "book" / "labs" / "heads.npz"
WORDS = "river green seven horse paper cloud"
SENTENCES = {  # with the number of the token (from 0) that the page begins with
    "minilm": {
        "The animal didn't cross the street because it was too tired.": 10,
        "The animal didn't cross the street because it was too wide.": 10,
        "Tired too was it because street the cross didn't animal the.": 4,
        "The trophy didn't fit into the suitcase because it was too big.": 11,
        "The trophy didn't fit into the suitcase because it was too small.": 11,
        "She poured water from the jug into the cup until it was full.": 11,
        "She poured water from the jug into the cup until it was empty.": 11,
        "Anna told Maria that she had passed the exam.": 5,
        "He sat on the bank of the river and counted his money.": 5,
        "The cat sat on the mat, and the dog sat on the cat.": 14,
        "Time flies like an arrow, but fruit flies like a banana.": 9,
        "The old man the boats.": 3,
    },
    "smollm": {
        f"Words: {WORDS} {WORDS}": 8,
        "Mr. Brown met Mrs. Green, and Mr. Brown thanked Mrs. Green.": 14,
        "She said yes. He said no. She said yes. He said no.": 13,
        "The animal didn't cross the street because it was too tired.": 8,
        "The animal didn't cross the street because it was too wide.": 8,
        ", The animal didn't cross the street because it was too tired.": 9,
        "When Anna and Peter went to the shop, Peter gave the bread to Anna.": 13,
        "Paris is in France, Rome is in Italy, Tokyo is in Japan.": 12,
        "Once upon a time there was a little dog who had a big heart.": 8,
        "The keys to the old cabinet are on the kitchen table.": 6,
        "Time flies like an arrow, but fruit flies like a banana.": 8,
        "for i in range(10): print(i)": 10,
    },
}
MODELS = {"minilm": ("MiniLM", load_minilm, False), "smollm": ("SmolLM2", load_smollm, True)}


def in_8_bits(weights):
    """Weights from 0 to 1 as whole numbers from 0 to 255, at most 1/510 away."""
    return np.round(255 * weights).astype(np.uint8)


def likeness(bytes_):
    """(heads, heads): the weight that two heads put on the same tokens, sum_j min(a_ij, b_ij), mean over rows i.

    bytes_ (heads, n, n). The first row of a causal matrix, which has no choice, is left out by the caller.
    """
    A = bytes_ / 255  # (heads, n, n)
    return np.array([np.minimum(A, one).sum(axis=-1).mean(axis=-1) for one in A])


def look(name):
    """(what the page lists, its members by name) of one model."""
    title, load, causal = MODELS[name]
    model, members, listed, alike = load(), {}, [], []
    for number, (text, word) in enumerate(SENTENCES[name].items(), 1):
        tokens, weights = model.attend(text)  # (layers, heads, n, n)
        layers, heads, n, _ = weights.shape
        A = in_8_bits(weights).reshape(layers * heads, n, n)
        members[f"{name}-{number}"] = (A[:, np.tri(n, dtype=bool)] if causal else A).ravel()
        listed.append({"text": text, "tokens": tokens, "word": word})
        alike.append(likeness(A[:, causal:]))
    pairs = np.triu_indices(layers * heads, 1)
    members[f"{name}-alike"] = in_8_bits(np.minimum(np.mean(alike, axis=0)[pairs], 1))
    return {"title": title, "layers": layers, "heads": heads, "causal": causal, "sentences": listed}, members


def archive(members):
    """The bytes of a compressed .npz, written with a fixed date: the same input gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, array in members.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def main():
    contents, members = {}, {}
    for name in MODELS:
        contents[name], more = look(name)
        members |= more
    text = json.dumps(contents, ensure_ascii=False).encode("utf8")
    data = archive({"contents": np.frombuffer(text, np.uint8), **members})
    partial = PATH.with_suffix(".partial")
    partial.write_bytes(data)
    os.replace(partial, PATH)
    largest = max(member.size for member in members.values())
    print(f"{PATH.name}: {len(data):,} bytes, {len(members)} members, the largest {largest:,}")


if __name__ == "__main__":
    main()
