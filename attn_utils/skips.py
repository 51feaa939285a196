"""The experiment of chapter 5: wires cut and attention switched off, on two tasks, many seeds side by side.

An arm says which skips are there, what the attention weights are, and how the model starts. Both tasks go through the
same layers: the digits can be told without attention, the lookup cannot.
"""

from typing import Any, NamedTuple

import autograd.numpy as ag
import numpy as np

from attn_utils.gradients import cross_entropy, feed_forward, linear, rms_norm, softmax
from attn_utils.inputs import check_rng, real_number, whole_number
from attn_utils.spectra import condition_number
from attn_utils.tasks import digits_as_patches
from attn_utils.training import fit
from attn_utils.transformer import FEED_FORWARD, split_layers, transformer
from attn_utils.vision_transformer import embed_patches, init_classifier, read_off

D, D_FF, BATCH = 16, 32, 16  # features of a token, inside the feed-forward part; examples for each model at a step
N_SYMBOLS, N_SHOWN, N_LABELS = 16, 8, 10  # of the lookup
TASKS = ("digits", "lookup")


# -------------------------------------------------------------------------- arms


def identity(scores):
    """Weights that ignore the scores: each token attends to itself alone, A = I. (..., n, n) gives (..., n, n)."""
    return np.broadcast_to(np.eye(scores.shape[-1], dtype=np.float32), scores.shape)


def uniform(scores):
    """Weights that ignore the scores: each token attends to all alike. (..., n, n) gives (..., n, n)."""
    return np.full(scores.shape, 1 / scores.shape[-1], dtype=np.float32)


def nothing(scores):
    """Weights of zero: the branch adds nothing, attention is deleted. (..., n, n) gives (..., n, n)."""
    return np.zeros(scores.shape, dtype=np.float32)


class Arm(NamedTuple):
    """One way of building the model."""

    skip: tuple  # whether attention, and the feed-forward part, add to their input
    weighting: Any = softmax  # from scores to weights; or "convolution" in attention's place
    recipe: str = "standard"  # the start, as for init_classifier


BOTH, NO_FF, NO_ATTENTION, NEITHER = (True, True), (True, False), (False, True), (False, False)

ARMS = {
    "both skips": Arm(BOTH),
    "no feed-forward skip": Arm(NO_FF),
    "no attention skip": Arm(NO_ATTENTION),
    "neither": Arm(NEITHER),
    "A = I, both skips": Arm(BOTH, identity),
    "A = I, no attention skip": Arm(NO_ATTENTION, identity),
    "A = I, neither": Arm(NEITHER, identity),
    "uniform, both skips": Arm(BOTH, uniform),
    "uniform, no attention skip": Arm(NO_ATTENTION, uniform),
    "uniform, neither": Arm(NEITHER, uniform),
    "deleted": Arm(BOTH, nothing),  # a branch of zero has to have its skip
    "deleted, no feed-forward skip": Arm(NO_FF, nothing),
    "prepared, both skips": Arm(BOTH, softmax, "conditioned"),
    "prepared, neither": Arm(NEITHER, softmax, "conditioned"),
    "prepared, A = I, neither": Arm(NEITHER, identity, "conditioned"),
    "prepared, deleted, no feed-forward skip": Arm(NO_FF, nothing, "conditioned"),
    "convolution, both skips": Arm(BOTH, "convolution"),
    "convolution, no mixing skip": Arm(NO_ATTENTION, "convolution"),
}


# ------------------------------------------------------------------------- tasks


def draw_labels(rng, size=64):
    """Draw lookups: 8 of 16 symbols, each with one of 10 labels, and the question for the label of one of them.

    rng    numpy.random.Generator
    size   number of examples, or a shape such as (3, 64)

    Returns (tokens, labels). tokens (*size, 9, 26), float32: the question first, the symbol that is asked for with no
    label, then those shown, one-hot symbol and one-hot label. labels (*size,), whole numbers. Labels are drawn anew
    for each example, so that the question's token by itself says nothing: whoever passes nothing between tokens is
    right in a tenth.
    Raises ValueError for sizes that are no whole numbers of at least 1, or an rng that is no Generator.
    """
    check_rng(rng)
    size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    size = tuple(whole_number(n, "size") for n in size)
    order = rng.random((*size, N_SYMBOLS)).argsort(axis=-1)[..., :N_SHOWN]  # (*size, 8)
    labels = rng.integers(N_LABELS, size=(*size, N_SHOWN))  # (*size, 8)
    tokens = np.zeros((*size, N_SHOWN + 1, N_SYMBOLS + N_LABELS), np.float32)
    tokens[..., 1:, :N_SYMBOLS] = np.eye(N_SYMBOLS)[order]
    tokens[..., 1:, N_SYMBOLS:] = np.eye(N_LABELS)[labels]
    tokens[..., 0, :] = tokens[..., 1, :]
    tokens[..., 0, N_SYMBOLS:] = 0
    return tokens, labels[..., 0]  # the first of those shown is asked for: there are no positions to notice it by


def held_out(task):
    """The examples that accuracies are measured on, no model having met them: (tokens, labels), 397 or 500 of them.

    task   "digits": (397, 16, 4) patches of 2 x 2 pixels; "lookup": (500, 9, 26), as from draw_labels
    Raises ValueError for another task.
    """
    check_task(task)
    return draw_labels(np.random.default_rng(999), 500) if task == "lookup" else digits_as_patches()[1]


def batches(task, seeds, gray=None):
    """A function batch(rng) -> (tokens, labels) for training, (seeds, 16, n_tokens, d_patch) and (seeds, 16).

    task    one of TASKS;  seeds   models side by side, each on examples of its own
    gray    a function applied to all training images first; digits only
    """
    check_task(task)
    if task == "lookup":
        return lambda rng: draw_labels(rng, (seeds, BATCH))
    images, labels = digits_as_patches()[0]  # (1400, 16, 4), (1400,)
    images = images if gray is None else gray(images)

    def batch(rng):
        i = rng.integers(len(labels), size=(seeds, BATCH))
        return images[i], labels[i]

    return batch


def check_task(task):
    """Stops where task is none of TASKS."""
    if task not in TASKS:
        raise ValueError(f"task is {task!r}, expected one of {', '.join(map(repr, TASKS))}.")


def arm_named(arm):
    """The Arm of this name; an Arm is handed back. Raises ValueError, naming those that exist, for another name."""
    if isinstance(arm, Arm):
        return arm
    if arm not in ARMS:
        raise ValueError(f"arm is {arm!r}, expected an Arm, or one of {', '.join(map(repr, ARMS))}.")
    return ARMS[arm]


# ------------------------------------------------------------------------- model


def start(arm, seeds, task="digits", layers=4, draw=0):
    """Draw the parameters of an arm, for `seeds` models side by side: the dict of init_classifier, float32.

    arm      a name in ARMS, or an Arm;  seeds   number of models;  task   one of TASKS
    layers   depth;  draw   seed of the draw: arms with one recipe and one draw start from the same weights

    Each model has 16 features, one head, 32 features inside the feed-forward part. For the lookup, symbols and labels
    are embedded at N(0, 1) and positions at zero.
    Raises ValueError for another arm or task and for sizes that are no positive whole numbers.
    """
    arm, rng = arm_named(arm), np.random.default_rng(whole_number(draw, "draw", 0))
    check_task(task)
    n_tokens, d_patch = (N_SHOWN + 1, N_SYMBOLS + N_LABELS) if task == "lookup" else (16, 4)
    models = (whole_number(seeds, "seeds"),)
    sizes = {"n_tokens": n_tokens, "d_patch": d_patch, "n_classes": 10, "n_layers": layers, "n_heads": 1}
    params = init_classifier(rng, models=models, d=D, d_ff=D_FF, recipe=arm.recipe, **sizes)
    if task == "lookup":
        params["embed.W"] = params["embed.W"] * np.float32(np.sqrt(d_patch))
        params["embed.position"] = 0 * params["embed.position"]
    if arm.weighting == "convolution":
        params = {name: W for name, W in params.items() if name.split(".")[1] not in ("W_Q", "W_K", "W_V", "W_O")}
        for i in range(layers):
            C = rng.normal(size=(*models, 9 * D, D)) / np.sqrt(9 * D)  # (seeds, 144, 16)
            params |= {f"{i}.C": C.astype(np.float32), f"{i}.c": np.zeros((*models, 1, D), np.float32)}
    return params


def logits(params, X, arm, graying=None):
    """One logit a class, differentiable: (*models, n, n_tokens, d_patch) gives (*models, n, 10).

    params   as from start, for a task that X belongs to;  arm   as for start
    graying  a function applied to the tokens that the first layer reads. No gradient goes through it, so that
             the embedding has to be frozen: see train

    Of the digits the mean token is read, of the lookup the question's token; each normalized first.
    """
    tokens = run(params, embed_patches(params, X), arm_named(arm), graying)  # (*models, n, n_tokens, 16)
    if X.shape[-2] == N_SHOWN + 1:
        return linear(rms_norm(tokens[..., 0, :]), params["head.W"], params["head.b"])
    return read_off(params, tokens, rms_norm)


def run(params, tokens, arm, graying=None):
    """The layers alone: tokens (*models, n, n_tokens, 16) in and out, an RMSNorm before each part."""
    tokens = tokens if graying is None else graying(tokens)
    layers = {name: W for name, W in params.items() if name[0].isdigit()}
    if arm.weighting == "convolution":
        return _convolve(split_layers(layers), tokens, arm.skip)
    return transformer(layers, tokens, skip=arm.skip, weighting=arm.weighting, norm=rms_norm)[0]


def _neighbors():
    """Which patch lies where around which: (144, 16), zeros and ones; beyond the edge there is nothing."""
    grid = np.stack(np.divmod(np.arange(16), 4), axis=-1)  # (16, 2) row and column
    moves = np.stack(np.divmod(np.arange(9), 3), axis=-1) - 1  # (9, 2)
    near = (grid[:, None, None] + moves[None, :, None] == grid).all(-1)  # (16, 9, 16)
    return near.reshape(144, 16).astype(np.float32)


def _convolve(layers, X, skip):
    gather = _neighbors()  # (144, 16)
    for layer in layers:
        around = ag.reshape(gather @ rms_norm(X), (*X.shape[:-1], 9 * D))  # (..., 16, 144)
        change = linear(around, layer["C"], layer["c"])
        X = X + change if skip[0] else change
        change = feed_forward(rms_norm(X), *(layer[name] for name in FEED_FORWARD))
        X = X + change if skip[1] else change
    return X


def walk(params, X, arm):
    """What attention does and what passes through the layers, for arms with attention.

    params, X, arm   as for logits
    Returns (weights, states): the weights of each layer, (*models, 1, n, n_tokens, n_tokens), and the tokens before
    the first layer and behind each, (*models, n, n_tokens, 16).
    """
    arm, states, weights = arm_named(arm), [embed_patches(params, X)], []
    for layer in split_layers({name: W for name, W in params.items() if name[0].isdigit()}):
        layer = {f"0.{name}": W for name, W in layer.items()}
        X, (A,) = transformer(layer, states[-1], skip=arm.skip, weighting=arm.weighting, norm=rms_norm)
        states, weights = [*states, X], [*weights, A]
    return weights, states


# ---------------------------------------------------------------------- training


class Trained(NamedTuple):
    """What a training left."""

    params: dict  # of all models
    accuracy: np.ndarray  # (seeds,) on the test set, at the end
    steps: list  # at which it was looked at
    looks: np.ndarray  # (looks, seeds) accuracies on the test set


def train(
    arm, rate, steps, seeds=3, task="digits", layers=4, *, draw=0, every=None, gray=None, graying=None, on_step=None
):
    """Train an arm from its start, `seeds` models side by side, each on batches of its own, and measure accuracies.

    arm, seeds, task, layers, draw   as for start; arms with one draw also meet the same batches
    rate, steps   of Adam
    every         look at the accuracies at step 1 and at each multiple of this; None: only at the end
    gray          a function applied to the images before they are embedded, such as svd_graying at some epsilon
    graying       a function applied to the embedded tokens; the embedding is then frozen. `frozen` alone freezes it
    on_step       called as on_step(step, params) after each step

    Returns Trained. Raises ValueError as start does.
    """
    arm, params = arm_named(arm), start(arm, seeds, task, layers, draw)
    real_number(rate, "rate", above=0)
    X, labels = held_out(task)
    X = X if gray is None else gray(X)
    kept = {k: params.pop(k) for k in ("embed.W", "embed.position")} if graying is not None else {}
    seen, found = [], []

    def loss(params, X, labels):  # the sum over models: each has its own gradient
        return seeds * cross_entropy(logits({**_as_dict(params), **kept}, X, arm, graying), labels)

    def look(step, params):
        if step == steps or every and (step == 1 or step % every == 0):
            seen.append(step), found.append(accuracy({**params, **kept}, X, labels, arm, graying))
        return on_step(step, {**params, **kept}) if on_step is not None else None

    rng, batch = np.random.default_rng([draw, 1]), batches(task, seeds, gray)
    params, _ = fit(loss, params, batch, steps, rng=rng, lr=rate, on_step=look, progress=False)
    return Trained(params | kept, found[-1], seen, np.array(found))


def _as_dict(params):
    return {name: params[name] for name in params}  # what autograd makes of a dict is none itself


def frozen(tokens):
    """A graying that changes nothing: train(..., graying=frozen) freezes the embedding, the fair baseline."""
    return tokens


def accuracy(params, X, labels, arm, graying=None):
    """Share of right answers of each model: (seeds,).

    params, arm, graying   as for logits;  X (n, n_tokens, d_patch), labels (n,), the same for all models
    """
    X = np.broadcast_to(X, (len(params["head.b"]), *X.shape))  # (seeds, n, n_tokens, d_patch)
    return (logits(params, X, arm, graying).argmax(-1) == labels).mean(-1)


def kappas(params, X, arm):
    """Median condition number of the tokens before the first layer and behind each, (layers + 1, seeds), in float64.

    X (n, n_tokens, d_patch): a few images.
    """
    exact = {name: value.astype(float) for name, value in params.items()}
    X = np.broadcast_to(X, (len(params["head.b"]), *X.shape)).astype(float)
    return np.median(condition_number(np.array(walk(exact, X, arm)[1])), axis=-1)


def final(arm, rate, steps, seeds, task="digits", layers=4):
    """The accuracies at the end of train(), (seeds,), as a list rounded to four digits: what a sweep collects."""
    return train(arm, rate, steps, seeds, task, layers).accuracy.round(4).tolist()
