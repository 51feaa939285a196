"""The vendored word vectors: the real ones, row by row."""

from pathlib import Path

import gensim
import numpy as np
import pytest

import attn_utils.glove
from attn_utils import embed, load_glove


@pytest.fixture(scope="module")
def kv():
    return load_glove()


def test_what_is_loaded(kv):
    assert len(kv) == len(kv.key_to_index) == 20_000 and kv.vectors.shape == (20_000, 50)
    assert kv.vectors.dtype == np.float32 and np.isfinite(kv.vectors).all()
    assert kv.index_to_key[0] == "the" and kv.key_to_index["the"] == 0
    assert "it" in kv and "no-such-word" not in kv and kv["it"].shape == (50,)
    assert kv.most_similar("animal", topn=1)[0][0] == "animals"  # gensim's own methods work on it


def test_equals_the_full_vectors_row_by_row(kv):
    full_kv = load_glove(full=True)
    assert len(full_kv) == 400_000
    assert full_kv.index_to_key[:20_000] == kv.index_to_key
    assert (full_kv.vectors[:20_000] == kv.vectors).all()


def test_equals_the_rows_that_gensim_ships_for_its_tests(kv):
    """gensim renamed seven rows to try its parser on rare letters; the numbers are GloVe's all the same."""
    lines = (Path(gensim.__file__).parent / "test" / "test_data" / "test_glove.txt").read_text("utf8").splitlines()
    rows = {line.split(" ")[0]: np.array(line.split(" ")[1:], dtype=np.float32) for line in lines}
    same = [word for word in rows if word in kv and (kv[word] == rows[word]).all()]
    assert len(same) >= 65 and {"the", "it", "was", "not"} <= set(same)
    for word in set(rows) - set(same):
        assert (kv.vectors == rows[word]).all(axis=1).any(), f"the row named {word!r} is not among ours under any name"


def test_a_damaged_file_is_noticed(monkeypatch):
    monkeypatch.setattr(attn_utils.glove, "SUBSET_SHA256", "0" * 64)
    with pytest.raises(RuntimeError, match="damaged"):
        load_glove()


def test_the_file_is_small_and_holds_no_pickle():
    path = Path(attn_utils.glove.__file__).parent / "data" / attn_utils.glove.SUBSET
    assert path.stat().st_size <= 4_000_000
    with np.load(path, allow_pickle=False) as file:
        assert sorted(file.files) == ["vectors", "words"]


def test_embed(kv):
    X = embed("it was too tired".split(), kv)
    assert X.shape == (4, 50) and X.dtype == np.float32 and (X[0] == kv["it"]).all()


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "empty"),
        ("it was", "Split it first"),
        (["It"], "use 'it'"),
        (["anmal"], "'animal'"),
        (["qqqqzzzz"], "400,000"),
        ([5, 0], "words hold 5, expected some of"),
    ],
)
def test_embed_says_what_is_wrong(kv, words, message):
    with pytest.raises(ValueError, match=message):
        embed(words, kv)
