"""The pronoun experiment of chapter 1: models trained to look from "it" to a noun, a rival without attention, cuts.

A model is a function model(p, X, mask=None): parameters p (a dict), word vectors X (n, 12, 50) and a mask (12, 12)
for its first layer, True where a query may look. It returns the scores of "it", (n, 12).
"""

import functools

import numpy as np

from attn_utils.glove import load_glove
from attn_utils.gradients import attend, cross_entropy
from attn_utils.inputs import is_whole, real_number
from attn_utils.tasks import (
    PRONOUN_ADJECTIVE,
    PRONOUN_IT,
    PRONOUN_NOUNS,
    PRONOUN_TEMPLATE,
    PRONOUN_WORDS,
    deal_adjectives,
    pronoun_pairs,
    pronoun_sentences,
    pronoun_split,
    word_rows,
)
from attn_utils.training import fit
from attn_utils.weightings import softmax

N_TOKENS = len(PRONOUN_TEMPLATE.split())  # 12
IT, NOUNS, ADJECTIVE = PRONOUN_IT, PRONOUN_NOUNS, PRONOUN_ADJECTIVE  # places in a sentence: 8, (1, 6), 11

# ------------------------------------------------------- the models


def start(rng, d_k=8):
    """Parameters before training: matrices Q1, K1 (50, d_k) and V1 (50, 50) of layer 1, Q2 and K2 of layer 2, and P.

    P (12, 50) is added to the word vectors and tells each token its place. All float32, drawn from rng.
    """
    params = {name: rng.normal(size=(50, d_k)) / np.sqrt(50) for name in ("Q1", "K1", "Q2", "K2")}
    params["V1"] = rng.normal(size=(50, 50)) / np.sqrt(200)
    params["P"] = rng.normal(size=(N_TOKENS, 50)) / 2
    return {name: value.astype(np.float32) for name, value in params.items()}


def row_of_it(p, X):
    """Scores of "it" against all tokens, (n, 12): one query, Q2's, and twelve keys, K2's."""
    query = X[:, [IT]] @ p["Q2"]  # (n, 1, d_k)
    keys = X @ p["K2"]  # (n, 12, d_k)
    return (query * keys).sum(axis=-1) / keys.shape[-1] ** 0.5  # (n, 12)


def first_layer(p, X, mask=None):
    """Attention in which each token adds what it gathers to itself: (n, 12, 50), and the weights (n, 12, 12).

    X already has P added to it.
    """
    gathered, weights = attend(X @ p["Q1"], X @ p["K1"], X @ p["V1"], mask)
    return X + gathered, weights


def one_layer(p, X, mask=None):
    """Scores of "it", (n, 12), from words and places alone. There is no layer for the mask to cut."""
    return row_of_it(p, X + p["P"])


def two_layers(p, X, mask=None):
    """Scores of "it", (n, 12), after every token has gathered something from the others in a layer below."""
    return row_of_it(p, first_layer(p, X + p["P"], mask)[0])


# ------------------------------------------------------- training and tests


def vectors(sentences):
    """GloVe vectors of sentences, strings (n, n_tokens): (n, n_tokens, 50)."""
    return _glove().vectors[word_rows(sentences, _glove())]


def experiment(
    model,
    seed,
    *,
    mask=None,
    dealt=False,
    left_out=(),
    vocabulary=PRONOUN_WORDS,
    d_k=8,
    steps=100,
    lr=0.01,
    weight_decay=1.0,
):
    """Train a model on sentences of its own words, drawn from the seed, and keep a third of all words for the test.

    The loss is the cross-entropy between the weights of "it" and the right noun: the row that is read off at the end
    is the label of the training. 64 new sentences at each step.

    mask        for the first layer, while it learns; see cut()
    dealt       True deals the training adjectives at random to animals and places (the shuffled labels of a control)
    left_out    words that are taken out of the training lists as well, and not tested
    vocabulary  lists as in tasks.PRONOUN_WORDS, of which a third is held out
    d_k         length of queries and keys in both layers
    steps, lr, weight_decay   of fit(), which trains with Adam

    Returns a run: {"start": parameters before, "params": after, "losses": (steps,), "words": lists trained on,
    "held_out": lists for the test}.
    Raises ValueError when left_out leaves a list empty, and as fit() does.

    Source: derived in chapter 1.
    """
    rng = np.random.default_rng(seed)
    words, held_out = pronoun_split(rng, words=vocabulary)
    words = deal_adjectives(words, rng) if dealt else words
    words = {name: tuple(word for word in listed if word not in left_out) for name, listed in words.items()}
    before = start(rng, d_k)

    def batch(rng):
        sentences, right, _ = pronoun_sentences(words, 64, rng)
        return vectors(sentences), right  # (64, 12, 50), (64,)

    def loss(p, X, right):
        return cross_entropy(model(p, X, mask), right)

    params, losses = fit(loss, before, batch, steps, rng=rng, lr=lr, weight_decay=weight_decay, progress=False)
    return {"start": before, "params": params, "losses": losses, "words": words, "held_out": held_out}


def to_nouns(model, p, words, mask=None, n=1000):
    """Weights of "it" on the right and on the wrong noun, (2n, 2), in n pairs that differ in the adjective alone."""
    sentences, right, wrong = pronoun_pairs(words, n, np.random.default_rng(0))
    weights = softmax(model(p, vectors(sentences), mask))  # (2n, 12)
    return np.take_along_axis(weights, np.c_[right, wrong], axis=1)  # (2n, 2)


def accuracy(model, run, mask=None, words="held_out", params="params"):
    """Share of 2,000 sentences in which "it" gives the right noun more weight than the wrong one.

    What ignores the adjective is right in exactly one half: the sentences are the pairs of pronoun_pairs().

    run     what experiment() returns
    mask    for the first layer, at the test alone: cut() makes one
    words   "held_out", or "words" for those of the training
    params  "params", or "start" for the model before training
    """
    right, wrong = to_nouns(model, run[params], run[words], mask).T  # (2000,) each
    return float(np.mean(right > wrong))


def famous(model, p, adjective, mask=None):
    """Weights of "it", (12,), in "the animal did not cross the street because it was too" and an adjective."""
    tokens = [PRONOUN_TEMPLATE.format("animal", "cross", "street", adjective).split()]  # (1, 12)
    return softmax(model(p, vectors(tokens), mask))[0]


# ------------------------------------------------------- cuts


def cut(*links):
    """A mask (12, 12) for the first layer, True everywhere but at the links (query, key), places from 0 to 11.

    Raises ValueError for a place that is none, and for a query with nothing left to look at.
    """
    mask = np.ones((N_TOKENS, N_TOKENS), dtype=bool)
    for link in links:
        places = link if isinstance(link, (tuple, list)) else ()
        if len(places) != 2 or not all(is_whole(place, 0) and place < N_TOKENS for place in places):
            raise ValueError(f"link is {link!r}, expected (query, key), two places from 0 to 11, such as (8, 11).")
        mask[tuple(places)] = False
    if not mask.any(axis=1).all():
        query = int(np.argmin(mask.any(axis=1)))
        raise ValueError(f"query {query} has no key left to look at. Leave it at least one link.")
    return mask


def first_weights(run, n=200):
    """Weights of layer 1, (12, 12), a mean over n pairs of test sentences: who looks where in a trained two_layers."""
    sentences, _, _ = pronoun_pairs(run["held_out"], n, np.random.default_rng(0))
    X = vectors(sentences) + run["params"]["P"]  # (2n, 12, 50)
    return first_layer(run["params"], X)[1].mean(axis=0)


def strongest_other(weights, query):
    """The link (query, key) of the largest weight that does not lead to the adjective: what a control should cut.

    weights   (12, 12), as first_weights() returns them
    """
    others = np.delete(np.arange(N_TOKENS), ADJECTIVE)  # (11,)
    return query, int(others[np.argmax(weights[query, others])])


# ------------------------------------------------------- a rival without attention


def probe(words, ridge=1.0):
    """Two ridge classifiers on single words, no attention: is a noun an animal, does an adjective fit animals?

    words   the lists to learn from, as in a run's "words"
    ridge   strength of the penalty on the squared weights, above 0

    Returns choose(sentences) -> the place, 1 or 6, of the noun that it picks, (n,): the noun that is more of an
    animal if the adjective fits animals, else the other one. It is told where nouns and adjective stand.
    Raises ValueError for a ridge that is not positive.
    """
    real_number(ridge, "ridge", above=0, fix=", such as 1")
    noun = _ridge(words["animals"], words["places"], ridge)
    adjective = _ridge(words["animal_adjectives"], words["place_adjectives"], ridge)

    def choose(sentences):
        X = vectors(sentences)  # (n, 12, 50)
        first, second = (noun(X[:, place]) for place in NOUNS)  # (n,) each
        fits_animal = adjective(X[:, ADJECTIVE]) > 0  # (n,)
        return np.where((first > second) == fits_animal, *NOUNS)

    return choose


def by_similarity(sentences):
    """The place, 1 or 6, of the noun whose vector has the larger dot product with the adjective's, (n,)."""
    X = vectors(sentences)  # (n, 12, 50)
    first, second = (np.sum(X[:, place] * X[:, ADJECTIVE], axis=-1) for place in NOUNS)  # (n,) each
    return np.where(first > second, *NOUNS)


def share_right(choose, words, n=1000):
    """Share of right choices in the 2n test sentences that accuracy() uses; choose(sentences) -> places (2n,)."""
    sentences, right, _ = pronoun_pairs(words, n, np.random.default_rng(0))
    return float(np.mean(choose(sentences) == right))


def _ridge(yes, no, strength):
    """A linear function of vectors (n, 50): ridge regression on +1 for the words `yes` and -1 for `no`, zero half way
    between the means of the two kinds."""
    X = vectors([[*yes, *no]])[0].astype(float)  # (n_words, 50)
    y = np.repeat([1.0, -1.0], [len(yes), len(no)])  # (n_words,)
    middle = (X[y > 0].mean(axis=0) + X[y < 0].mean(axis=0)) / 2  # (50,)
    X = X - middle
    w = np.linalg.solve(X.T @ X + strength * np.eye(X.shape[1]), X.T @ y)  # (50,)
    return lambda vectors: (vectors - middle) @ w


@functools.cache
def _glove():
    return load_glove()
