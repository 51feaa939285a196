"""The pronoun experiment: its models, its cuts and its rivals do what chapter 1 says of them."""

import numpy as np
import pytest

from attn_utils import pronouns
from attn_utils.pronouns import ADJECTIVE, IT, NOUNS, cut, experiment, one_layer, two_layers
from attn_utils.tasks import PRONOUN_TEMPLATE, PRONOUN_WORDS, pronoun_pairs, pronoun_sentences, pronoun_split
from attn_utils.weightings import softmax


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


# ------------------------------------------------------- what goes in where


class Spy:
    """A model that keeps what it was given, and scores the tokens as it is told."""

    def __init__(self, scores=None):
        self.scores = np.arange(12.0) if scores is None else scores

    def __call__(self, p, X, mask=None):
        self.p, self.X, self.mask = p, X, mask
        return np.tile(self.scores, (len(X), 1))


def test_training_draws_new_sentences_of_its_own_words_alone(monkeypatch):
    seen = []

    def spy(words, n, rng):
        drawn = pronoun_sentences(words, n, rng)
        seen.append(drawn[0])
        return drawn

    monkeypatch.setattr(pronouns, "pronoun_sentences", spy)
    run = experiment(one_layer, 4, steps=3)
    assert np.shape(seen) == (3, 64, 12) and not np.array_equal(seen[0], seen[1])
    own, test = ({word for listed in run[part].values() for word in listed} for part in ("words", "held_out"))
    used = set(np.unique(seen).tolist()) - set(PRONOUN_TEMPLATE.split())
    assert used <= own and not used & test and len(used) > 100


def test_each_seed_has_a_start_of_its_own_and_the_rate_arrives():
    first, second = (experiment(one_layer, seed, steps=1, lr=0.03, weight_decay=0.0) for seed in (0, 1))
    assert not np.array_equal(first["start"]["Q2"], second["start"]["Q2"])
    # the first step of Adam has the length of the rate, whatever the gradient
    assert np.isclose(np.abs(first["params"]["Q2"] - first["start"]["Q2"]).max(), 0.03, rtol=1e-3)


def test_one_layer_is_that_of_the_formula(p, X):
    H = (X[0] + p["P"]).astype(float)  # (12, 50)
    assert 0.4 < p["P"].std() < 0.6
    assert np.allclose(one_layer(p, X)[0], (H[IT] @ p["Q2"]) @ (H @ p["K2"]).T / np.sqrt(8), atol=1e-4)


@pytest.mark.parametrize("words", ["words", "held_out"])
@pytest.mark.parametrize("params", ["params", "start"])
def test_accuracy_asks_this_model_with_these_words_and_this_cut(run, words, params):
    spy, mask = Spy(), cut((IT, ADJECTIVE))
    assert pronouns.accuracy(spy, run, mask, words, params) == 0.5  # the later noun always wins: half of the pairs
    assert spy.p is run[params] and spy.mask is mask
    sentences, right, wrong = pronoun_pairs(run[words], 1000, np.random.default_rng(0))
    assert np.array_equal(spy.X, pronouns.vectors(sentences))
    weights = softmax(spy.scores)  # (12,)
    expected = np.c_[weights[right], weights[wrong]]
    assert np.allclose(pronouns.to_nouns(spy, {}, run[words]), expected)


def test_a_tie_is_not_right(run):
    assert pronouns.accuracy(Spy(np.zeros(12)), run) == 0


def test_famous_sentence_goes_in_as_it_stands():
    spy, mask = Spy(), cut((IT, ADJECTIVE))
    row = pronouns.famous(spy, {}, "wide", mask)  # (12,)
    text = "the animal did not cross the street because it was too wide"
    assert np.array_equal(spy.X, pronouns.vectors([text.split()])) and spy.mask is mask
    assert np.allclose(row, softmax(spy.scores))


def test_first_weights_are_a_mean_over_sentences_of_the_test(run):
    sentences, _, _ = pronoun_pairs(run["held_out"], 5, np.random.default_rng(0))
    H = (pronouns.vectors(sentences) + run["params"]["P"]).astype(float)  # (10, 12, 50)
    scores = (H @ run["params"]["Q1"]) @ np.swapaxes(H @ run["params"]["K1"], 1, 2) / np.sqrt(8)  # (10, 12, 12)
    assert np.allclose(pronouns.first_weights(run, 5), softmax(scores).mean(axis=0), atol=1e-4)


def test_strongest_other_reads_the_row_and_not_the_column():
    weights = np.full((12, 12), 0.01)
    weights[2, 5], weights[7, 2], weights[2, ADJECTIVE] = 0.3, 0.9, 0.6
    assert pronouns.strongest_other(weights, 2) == (2, 5)


def test_a_key_that_nobody_may_look_at_is_no_fault():
    assert not cut(*((query, 3) for query in range(12)))[:, 3].any()


# ------------------------------------------------------- the rivals


def by_hand(sentences, words, ridge):
    """The probe's choices, from the formula of ridge regression alone."""

    def fitted(yes, no):
        A, B = (pronouns.vectors([words[name]])[0].astype(float) for name in (yes, no))  # (n_words, 50) each
        middle = (A.mean(axis=0) + B.mean(axis=0)) / 2  # (50,)
        Z, y = np.concatenate([A, B]) - middle, np.repeat([1.0, -1.0], [len(A), len(B)])
        w = np.linalg.lstsq(np.r_[Z, np.sqrt(ridge) * np.eye(50)], np.r_[y, np.zeros(50)], rcond=None)[0]  # (50,)
        return lambda X: (X - middle) @ w

    X = pronouns.vectors(sentences).astype(float)  # (n, 12, 50)
    noun, adjective = fitted("animals", "places"), fitted("animal_adjectives", "place_adjectives")
    return np.where((noun(X[:, 1]) > noun(X[:, 6])) == (adjective(X[:, 11]) > 0), 1, 6)


@pytest.mark.parametrize("ridge", [0.1, 1000])
def test_probe_is_that_of_the_formula(run, ridge):
    sentences, _, _ = pronoun_pairs(run["held_out"], 1000, np.random.default_rng(3))
    lopsided = run["words"] | {"place_adjectives": run["words"]["place_adjectives"][:5]}  # where is the middle?
    for words in (run["words"], lopsided):
        assert np.array_equal(pronouns.probe(words, ridge)(sentences), by_hand(sentences, words, ridge))
    other = by_hand(sentences, run["words"], 100.1 - ridge / 10)  # the strength does something
    assert not np.array_equal(other, by_hand(sentences, run["words"], ridge))


def test_probe_is_fitted_on_the_words_that_it_is_given(monkeypatch, run):
    seen, vectors = [], pronouns.vectors
    monkeypatch.setattr(pronouns, "vectors", lambda words: seen.append(words) or vectors(words))
    pronouns.probe(run["words"])
    own = {word for listed in run["words"].values() for word in listed}
    assert {word for words in seen for word in np.ravel(words).tolist()} == own - set(run["words"]["verbs"])


def test_similarity_compares_each_noun_with_the_adjective(X):
    sentences, _, _ = pronoun_pairs(PRONOUN_WORDS, 3, np.random.default_rng(0))
    expected = [1 if x[1] @ x[ADJECTIVE] > x[6] @ x[ADJECTIVE] else 6 for x in X]
    assert pronouns.by_similarity(sentences).tolist() == expected and len(set(expected)) == 2


def test_rivals_answer_the_sentences_of_accuracy(run):
    asked = []

    def choose(sentences):
        asked.append(sentences)
        return np.full(len(sentences), 1)

    assert pronouns.share_right(choose, run["held_out"]) == 0.5
    sentences, right, _ = pronoun_pairs(run["held_out"], 1000, np.random.default_rng(0))
    assert np.array_equal(asked[0], sentences)
    assert pronouns.share_right(lambda _: right, run["held_out"]) == 1


def test_word_lists_are_as_long_as_their_description_says():
    counts = [str(len(PRONOUN_WORDS[name])) for name in ("animals", "places", "verbs", "animal_adjectives")]
    text = " ".join(pronoun_split.__doc__.split())
    told = "{} animals, {} places, {} verbs, {} adjectives for animals".format(*counts)
    assert f"{told}, {len(PRONOUN_WORDS['place_adjectives'])} for places" in text
