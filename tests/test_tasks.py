"""The pronoun sentences: what they promise, and what they say when asked for nonsense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_utils import load_glove
from attn_utils.tasks import (
    FAMOUS_WORDS,
    PRONOUN_ADJECTIVE,
    PRONOUN_IT,
    PRONOUN_TEMPLATE,
    PRONOUN_VERB,
    PRONOUN_WORDS,
    deal_adjectives,
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
