"""The pronoun experiment: its models, its cuts and its rivals do what chapter 1 says of them."""

import numpy as np
import pytest

from attn_utils import pronouns
from attn_utils.pronouns import ADJECTIVE, IT, NOUNS, cut, experiment, one_layer, two_layers
from attn_utils.tasks import PRONOUN_TEMPLATE, PRONOUN_WORDS, pronoun_pairs, pronoun_split


@pytest.fixture(scope="module")
def run():
    return experiment(two_layers, 0)


@pytest.fixture(scope="module")
def X():
    sentences, _, _ = pronoun_pairs(PRONOUN_WORDS, 3, np.random.default_rng(0))
    return pronouns.vectors(sentences)  # (6, 12, 50): row n + 3 differs from row n in the adjective


@pytest.fixture
def p():
    return pronouns.start(np.random.default_rng(1))


def test_places_are_those_of_the_template():
    words = PRONOUN_TEMPLATE.split()
    assert (words[IT], [words[place] for place in (*NOUNS, ADJECTIVE)]) == ("it", ["{}"] * 3)


def test_shapes_and_types(p, X):
    assert {name: value.shape for name, value in p.items()} == {
        **dict.fromkeys(("Q1", "K1", "Q2", "K2"), (50, 8)),
        "V1": (50, 50),
        "P": (12, 50),
    }
    assert {value.dtype for value in p.values()} == {np.dtype(np.float32)}
    tokens, weights = pronouns.first_layer(p, X + p["P"])
    assert tokens.shape == (6, 12, 50) and np.allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert one_layer(p, X).shape == two_layers(p, X).shape == (6, 12)


def test_two_layers_are_those_of_the_formula(p, X):
    H = (X[0] + p["P"]).astype(float)  # (12, 50)
    scores = (H @ p["Q1"]) @ (H @ p["K1"]).T / np.sqrt(8)  # (12, 12)
    A = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    H = H + A @ H @ p["V1"]
    assert np.allclose(two_layers(p, X)[0], (H[IT] @ p["Q2"]) @ (H @ p["K2"]).T / np.sqrt(8), atol=1e-4)


def test_one_layer_cannot_choose_by_the_adjective(p, X):
    scores = one_layer(p, X)  # (6, 12)
    assert np.array_equal(scores[:3, NOUNS], scores[3:, NOUNS])
    assert not np.array_equal(two_layers(p, X)[:3, NOUNS], two_layers(p, X)[3:, NOUNS])


def test_both_routes_cut_leave_exactly_one_half(run, p, X):
    both = cut((IT, ADJECTIVE), *((noun, ADJECTIVE) for noun in NOUNS))
    scores = two_layers(p, X, both)
    assert np.array_equal(scores[:3, NOUNS], scores[3:, NOUNS])
    assert pronouns.accuracy(two_layers, run, both) == 0.5


def test_a_cut_link_gets_no_weight(p, X):
    mask = cut((IT, ADJECTIVE), (0, 3))
    assert mask.sum() == 142 and not mask[IT, ADJECTIVE] and not mask[0, 3]
    weights = pronouns.first_layer(p, X, mask)[1]  # (6, 12, 12)
    assert np.all(weights[:, IT, ADJECTIVE] == 0) and weights[:, ADJECTIVE, IT].min() > 0


@pytest.mark.parametrize("link", [(8,), (8, 12), (-1, 3), (1.0, 3), (True, 3)])
def test_a_link_that_is_none_is_named(link):
    with pytest.raises(ValueError, match="two places from 0 to 11"):
        cut(link)


def test_a_query_keeps_a_key():
    with pytest.raises(ValueError, match="query 8 has no key left"):
        cut(*((IT, key) for key in range(12)))


def test_a_run_holds_what_it_was_trained_and_tested_on(run):
    assert (run["words"], run["held_out"]) == pronoun_split(np.random.default_rng(0))
    assert run["losses"].shape == (100,)
    assert pronouns.accuracy(two_layers, run) > 0.9 > 0.6 > pronouns.accuracy(two_layers, run, params="start")
    again = experiment(two_layers, 0)
    assert all(np.array_equal(run["params"][name], again["params"][name]) for name in run["params"])


def test_famous_sentence_after_training(run):
    tired, wide = (pronouns.famous(two_layers, run["params"], word) for word in ("tired", "wide"))  # (12,) each
    assert np.argmax(tired) == 1 and np.argmax(wide) == 6


def test_dealt_adjectives_and_words_left_out():
    words = PRONOUN_WORDS["animals"][1:5] + ("exhausted",)
    dealt = experiment(one_layer, 3, dealt=True, left_out=words, steps=2)
    usual = experiment(one_layer, 3, steps=2)
    lists = ("animal_adjectives", "place_adjectives")
    assert set(dealt["words"]["animal_adjectives"]) - set(usual["words"]["animal_adjectives"])
    both = [{word for name in lists for word in run["words"][name]} - set(words) for run in (dealt, usual)]
    assert both[0] == both[1] and dealt["held_out"] == usual["held_out"]
    assert not set(words) & {word for listed in dealt["words"].values() for word in listed}


def test_other_words_widths_and_decays():
    """What a control changes reaches the training, and nothing else moves."""
    lists = {name: listed[::2] for name, listed in PRONOUN_WORDS.items()}
    few = experiment(one_layer, 1, steps=1, vocabulary=lists)
    assert all({*few["words"][name], *few["held_out"][name]} == set(lists[name]) for name in lists)
    narrow = experiment(two_layers, 1, steps=1, d_k=2)
    assert {name: narrow["params"][name].shape for name in ("Q1", "K1", "Q2", "K2")} == dict.fromkeys(
        ("Q1", "K1", "Q2", "K2"), (50, 2)
    )
    usual, free = experiment(two_layers, 1, steps=1), experiment(two_layers, 1, steps=1, weight_decay=0.0)
    assert usual["losses"][0] == free["losses"][0]
    shrunk = 0.01 * usual["start"]["V1"]  # the learning rate times the decay
    assert np.allclose(free["params"]["V1"] - usual["params"]["V1"], shrunk, atol=1e-6)


def test_mask_while_training_is_used():
    free, bound = experiment(two_layers, 2, steps=2), experiment(two_layers, 2, steps=2, mask=cut((IT, ADJECTIVE)))
    assert np.array_equal(free["start"]["Q1"], bound["start"]["Q1"])
    assert not np.array_equal(free["params"]["Q1"], bound["params"]["Q1"])


def test_strongest_other_link(run):
    weights = np.full((12, 12), 0.05)
    weights[IT, [ADJECTIVE, 3, 4]] = 0.4, 0.2, 0.3
    assert pronouns.strongest_other(weights, IT) == (IT, 4)
    seen = pronouns.first_weights(run)  # (12, 12)
    assert np.allclose(seen.sum(axis=1), 1, atol=1e-5) and pronouns.strongest_other(seen, 1)[0] == 1


def test_probe_reads_the_classes_off_the_word_vectors(run):
    found = pronouns.share_right(pronouns.probe(run["words"]), run["held_out"])
    assert found > 0.9 > 0.8 > pronouns.share_right(pronouns.by_similarity, run["held_out"]) > 0.6
    sentences = [PRONOUN_TEMPLATE.format("street", "cross", "animal", word).split() for word in ("tired", "wide")]
    assert pronouns.probe(run["words"])(sentences).tolist() == [6, 1]


def test_probe_learns_no_more_than_its_labels(run):
    dealt = experiment(one_layer, 0, dealt=True, steps=1)
    assert pronouns.share_right(pronouns.probe(dealt["words"]), run["held_out"]) < 0.8


@pytest.mark.parametrize("ridge", [0, -1, float("nan")])
def test_a_ridge_is_positive(ridge):
    with pytest.raises(ValueError, match="expected one finite number above 0, such as 1"):
        pronouns.probe(PRONOUN_WORDS, ridge)
