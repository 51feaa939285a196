"""Rank collapse in one frame: ways to mix tokens, stacks of fresh layers, and tasks over contexts of any length.

A form is a way to mix: it turns queries, keys and values into outputs. What it does to the tokens is one matrix, its
effective weights; mixed(Q, K, np.eye(n_tokens), form) is that matrix. All functions take leading axes.
"""

from functools import partial

import numpy

from attn_utils.gradients import attend, center_tokens, feed_forward, squared_error
from attn_utils.inputs import check_rng, check_switch, real_number, whole_number
from attn_utils.training import fit

FORMS = ("plain", "repaired", "shaped", "differential", "identity", "shrunk", "none")
TASKS = ("lookup", "group mean", "previous")
N_CODE, N_VALUES = 32, 8  # features of a name or a position, and of what a token carries
WIDTH = 2 * N_CODE + N_VALUES  # own name, name asked for, values
N_GROUPS = 4


def mixed(Q, K, V, form="plain", subtract=0.2):
    """The outputs of one head that mixes its values in one of several forms, (..., n_tokens, d_v).

    Q, K      queries and keys, (..., n_tokens, d_k), as many of each
    V         values, (..., n_tokens, d_v); with the identity, the result is the matrix that the form multiplies by
    form      with A the softmax weights of scores scaled by 1/sqrt(d_k), T = n_tokens and P = 1/T in every place:
              "plain"         A
              "repaired"      A - P, the outlier taken away
              "shaped"        I + A' - P, where A' has scores that are divided by sqrt(d_k) once more
              "differential"  A_1 - subtract A_2, each from one half of the features of Q and K
              "identity"      I: every token gets its own value
              "shrunk"        A, times the one number that gives its outputs the size of the repaired ones
              "none"          0: no value at all
    subtract  lambda of the differential form; 0.2 is where its authors start the first layer

    Differentiable by autograd, but for "shrunk". Raises ValueError for an unknown form, for queries and keys of
    different counts, and for an odd d_k in the differential form.

    Source: Nait Saada et al. (2025) for the repair; Noci et al. (2023) for the shaped form, whose temperature is the
    root of the width; Ye et al. (2024) for the differential one, without the norm and the factor behind it.
    """
    _check_form(form, Q, K)
    if form in ("identity", "none"):
        return V if form == "identity" else 0 * V
    if form == "plain":
        return attend(Q, K, V)[0]
    if form == "differential":
        half = Q.shape[-1] // 2
        first, second = (attend(Q[..., part], K[..., part], V)[0] for part in (slice(0, half), slice(half, None)))
        return first - subtract * second
    scale = 1 / Q.shape[-1] if form == "shaped" else None
    repaired = attend(Q, K, center_tokens(V), scale=scale)[0]
    if form == "repaired":
        return repaired
    if form == "shaped":
        return V + repaired
    plain = attend(Q, K, V)[0]
    sizes = [numpy.linalg.norm(each, axis=(-2, -1), keepdims=True) for each in (repaired, plain)]
    return plain * (sizes[0] / numpy.where(sizes[1] > 0, sizes[1], 1)).astype(plain.dtype)


def fresh_stack(X, seed, depth=12, form="plain", *, skip=False, norm=None, post=False, values=True, feed=False):
    """Tokens after each of several untrained layers: depth + 1 states, beginning with X.

    X       (..., n_tokens, d)
    seed    of the weights: one head of full width, W_Q, W_K and W_V (d, d) from N(0, 1/d), new in every layer and the
            same for every form and switch
    depth   number of layers
    form    how a head mixes, as for mixed()
    skip    whether a part adds to its input (True) or replaces it
    norm    rms_norm or layer_norm, or None
    post    False: norm in front of each part; True: behind it, after the sum
    values  False: the tokens themselves are the values, W_V is left out
    feed    True: each layer also has a feed-forward part, of width 4 d

    Returns a list of arrays of the shape of X. Without a skip sizes can run away over the depth: the numbers of
    spectra.py do not depend on the size.
    Raises ValueError for a depth or a seed that is no whole number, a switch that is none, or an unknown form.
    """
    whole_number(depth, "depth")
    for name, switch in {"skip": skip, "post": post, "values": values, "feed": feed}.items():
        check_switch(switch, name)
    before, after = (_as_is, norm or _as_is) if post else (norm or _as_is, _as_is)
    d, states = X.shape[-1], [X]
    for layer in range(depth):
        rng = numpy.random.default_rng([whole_number(seed, "seed", 0), layer])
        W_Q, W_K, W_V = rng.normal(scale=d**-0.5, size=(3, d, d)).astype(X.dtype)  # (d, d) each
        read = before(states[-1])  # (..., n_tokens, d)
        change = mixed(read @ W_Q, read @ W_K, read @ W_V if values else read, form)
        X = after(states[-1] + change if skip else change)
        if feed:
            change = _fresh_feed_forward(before(X), rng)
            X = after(X + change if skip else change)
        states.append(X)
    return states


def draw_task(rng, task="lookup", size=16, n_tokens=16, mean_free=False):
    """Draw examples of a task over n_tokens tokens: returns (X, target), float32.

    rng        numpy.random.Generator
    task       "lookup": every token asks for the values of the token that it names;
               "group mean": for the mean of the values in its group, one of four, times the root of T/4;
               "previous": for the values of the token before it (the first one for its own)
    size       number of examples
    mean_free  True: values and targets are free of their mean over the tokens, which the repair takes away

    X is (size, n_tokens, 72): a token's name or position in 32 numbers, the name it asks for in 32, and 8 values from
    N(0, 1). Names are random signs, new in every example; positions are sines and cosines. The target is
    (size, n_tokens, 8). Its variance is 1 (with mean_free a little less), so that the squared error is
    about the share that is not explained.
    Raises ValueError for an unknown task, sizes that are no whole numbers (at least 4 tokens), or an rng that is none.

    Source: the lookup as in associative recall; the previous token as in the first half of an induction head
    (Elhage et al., 2021). The exact tasks are this book's.
    """
    check_rng(rng)
    check_switch(mean_free, "mean_free")
    _check_one_of("task", task, TASKS)
    size, T = whole_number(size, "size"), whole_number(n_tokens, "n_tokens", 4)
    V = rng.standard_normal((size, T, N_VALUES), dtype=numpy.float32)  # (size, T, 8)
    V = V - V.mean(axis=1, keepdims=True) if mean_free else V
    own, asked, target = {"lookup": _lookup, "group mean": _group_mean, "previous": _previous}[task](rng, V)
    if mean_free:
        target = target - target.mean(axis=1, keepdims=True)
    return numpy.concatenate([own, asked, V], axis=-1, dtype=numpy.float32), target.astype(numpy.float32)


def start_mixer(seed, depth=1, open_values=False):
    """A small model before training: {"Q", "K", "V"}, each (depth, 72, 72), and "out", (72, 8), float32.

    seed         of the draw, from N(0, 1/72)
    depth        number of layers
    open_values  True adds the identity to every W_V, and to "out" the 8 rows of the values: what a head mixes reaches
                 the output from the first step on, so that only queries and keys have everything to learn

    Raises ValueError for a seed or a depth that is no whole number, or a switch that is none.
    """
    rng, depth = numpy.random.default_rng(whole_number(seed, "seed", 0)), whole_number(depth, "depth")
    check_switch(open_values, "open_values")
    matrices = rng.normal(scale=WIDTH**-0.5, size=(3, depth, WIDTH, WIDTH))  # (3, depth, 72, 72)
    out, way = rng.normal(scale=WIDTH**-0.5, size=(WIDTH, N_VALUES)), numpy.eye(WIDTH)  # (72, 8) and (72, 72)
    if open_values:
        matrices[2], out = matrices[2] + way, out + way[:, -N_VALUES:]
    Q, K, V = matrices.astype(numpy.float32)
    return {"Q": Q, "K": K, "V": V, "out": out.astype(numpy.float32)}


def mixer_states(params, X, form="plain", skip=True):
    """Tokens after every layer of a small model, beginning with X, (..., n_tokens, d). Differentiable by autograd."""
    states = [X]
    for Q, K, V in zip(params["Q"], params["K"], params["V"], strict=True):  # (d, d) each
        change = mixed(states[-1] @ Q, states[-1] @ K, states[-1] @ V, form)
        states.append(states[-1] + change if skip else change)
    return states


def mixer_error(params, X, target, form="plain", skip=True):
    """Mean squared error of a small model on examples as from draw_task: what train_mixer minimizes. One number."""
    return squared_error(mixer_states(params, X, form, skip)[-1] @ params["out"], target)


def train_mixer(seed, lr=0.01, form="plain", task="lookup", n_tokens=16, *, mean_free=False, depth=1, skip=True,
                open_values=False, steps=200, tokens=512, **options):  # fmt: skip
    """Train a small model on new examples at every step: returns (params, losses), as fit() does.

    seed       of the start and of the examples: two arms with one seed begin alike and meet the same ones
    lr         learning rate of Adam
    form       how its heads mix, as for mixed();  task, n_tokens, mean_free   as for draw_task()
    depth      number of layers;  skip   whether a layer adds to its input
    open_values   as for start_mixer
    tokens     in one batch: it holds tokens / n_tokens examples, at least one
    options    handed to fit(), such as on_step; start=params begins elsewhere than start_mixer does
    """
    start = options.pop("start", None) or start_mixer(seed, depth, open_values)
    size = max(1, whole_number(tokens, "tokens") // whole_number(n_tokens, "n_tokens", 4))
    real_number(lr, "lr", above=0)
    return fit(
        partial(mixer_error, form=form, skip=skip),
        start,
        partial(draw_task, task=task, size=size, n_tokens=n_tokens, mean_free=mean_free),
        steps,
        lr=lr,
        **{"rng": numpy.random.default_rng([seed, 1]), "progress": False} | options,
    )


def _lookup(rng, V):
    size, T, _ = V.shape
    names = _signs(rng, (size, T, N_CODE))
    place = rng.permuted(numpy.tile(numpy.arange(T), (size, 1)), axis=1)[..., None]  # (size, T, 1) whom a token names
    return names, numpy.take_along_axis(names, place, axis=1), numpy.take_along_axis(V, place, axis=1)


def _group_mean(rng, V):
    size, T, _ = V.shape
    group = rng.permuted(numpy.tile(numpy.arange(T) % N_GROUPS, (size, 1)), axis=1)  # (size, T)
    names = numpy.take_along_axis(_signs(rng, (size, N_GROUPS, N_CODE)), group[..., None], axis=1)  # (size, T, 32)
    same = (group[:, :, None] == group[:, None]).astype(numpy.float32)  # (size, T, T)
    return names, 0 * names, same / numpy.sqrt(same.sum(axis=-1, keepdims=True)) @ V


def _previous(rng, V):
    size, T, _ = V.shape
    rates = numpy.geomspace(numpy.pi / 2, numpy.pi / 512, N_CODE // 2)  # radians a token
    angles = numpy.arange(T)[:, None] * rates  # (T, 16)
    place = numpy.sqrt(2) * numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], axis=1)  # (T, 32)
    places = numpy.tile(place, (size, 1, 1))  # (size, T, 32)
    return places, 0 * places, numpy.concatenate([V[:, :1], V[:, :-1]], axis=1)


def _signs(rng, shape):
    return rng.choice(numpy.float32([-1, 1]), size=shape)


def _fresh_feed_forward(X, rng):
    d = X.shape[-1]
    W_1 = rng.normal(scale=d**-0.5, size=(d, 4 * d)).astype(X.dtype)
    W_2 = rng.normal(scale=(4 * d) ** -0.5, size=(4 * d, d)).astype(X.dtype)
    return feed_forward(X, W_1, numpy.zeros((1, 4 * d), X.dtype), W_2, numpy.zeros((1, d), X.dtype))


def _as_is(X):
    return X


def _check_form(form, Q, K):
    _check_one_of("form", form, FORMS)
    if Q.shape[-2] != K.shape[-2]:
        raise ValueError(f"Q has {Q.shape[-2]} tokens and K {K.shape[-2]}, expected as many: a form mixes tokens.")
    if form == "differential" and Q.shape[-1] % 2:
        raise ValueError(f"d_k is {Q.shape[-1]}, expected an even number: the differential form halves it.")


def _check_one_of(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, allowed))}.")
