"""One small Transformer for the training experiments: a dictionary of parameters and plain functions.

A layer's parameters are named "0.W_Q", "0.W_K", "0.W_V", "0.W_O" and so on, where 0 is the layer. Heads stand
before sequences in every shape, so that a projection is one matrix product. Leading axes of the parameters are
independent models, trained side by side: Adam works number by number, so none of them notices the others.

The functions are differentiable by autograd. With arrays that are not being differentiated they are plain NumPy.
"""

import numpy
from autograd import numpy as np
from autograd.extend import defvjp, primitive

from attn_utils.attention import _check_mask
from attn_utils.training import attend, sigmoid, softmax


def init_transformer(rng, n_layers, n_heads, d, d_head=None, *, models=(), std=0.02, gate=False, sink=False):
    """Draw the parameters of an attention-only Transformer, all weights from N(0, std^2), float32.

    rng        numpy.random.Generator
    n_layers   number of layers;  n_heads   heads in each
    d          features of a token;  d_head   features of a query, key and value of one head (d when None)
    models     shape of the leading axes, () for one model, (3,) for three side by side
    std        standard deviation
    gate       also W_G, the weights of a gate on the output of each head
    sink       also a sink logit for each head, 0 at the start

    Returns a dict from name to array, for layer 0, 1, ...:
    W_Q, W_K, W_V (*models, n_heads, d, d_head), W_O (*models, n_heads, d_head, d), W_G (*models, n_heads, d, 1),
    sink (*models, n_heads, 1, 1, 1).
    Raises ValueError when a size is not a positive whole number, models no tuple, or rng no Generator.

    Source: the initialisation of Ran-Milo (2026), whose heads have the full width, d_head = d.
    """
    d_head = d if d_head is None else d_head
    if not isinstance(rng, numpy.random.Generator):
        raise ValueError(f"rng is {type(rng).__name__}, expected a numpy Generator, such as np.random.default_rng(0).")
    if not isinstance(models, (tuple, list)):
        raise ValueError(f"models is {models!r}, expected a tuple such as () for one model, (3,) for three.")
    for name, size in (("n_layers", n_layers), ("n_heads", n_heads), ("d", d), ("d_head", d_head)):
        if isinstance(size, bool) or not isinstance(size, (int, numpy.integer)) or size < 1:
            raise ValueError(f"{name} is {size!r}, expected a positive whole number.")
    shapes = {"W_Q": (d, d_head), "W_K": (d, d_head), "W_V": (d, d_head), "W_O": (d_head, d)}
    shapes |= {"W_G": (d, 1)} if gate else {}
    params = {}
    for layer in range(n_layers):
        for name, shape in shapes.items():
            drawn = rng.normal(scale=std, size=(*models, n_heads, *shape))
            params[f"{layer}.{name}"] = drawn.astype(numpy.float32)
        if sink:
            params[f"{layer}.sink"] = numpy.zeros((*models, n_heads, 1, 1, 1), numpy.float32)
    return params


def transformer(params, X, *, mask=None, weighting=softmax, scale=None, skip=True, norm=None):
    """Run tokens through all layers.

    params     what init_transformer returns
    X          (*models, ..., n_tokens, d), where ... are the axes of the sequences
    mask       True where a query may look, broadcastable to (n_tokens, n_tokens), such as causal_mask(n_tokens)
    weighting  a function of attn_utils.training from scores to weights: softmax, softmax1, relu, sigmoid;
               where the parameters have a sink, it is called as weighting(scores, sink)
    scale      the factor on the scores; 1/sqrt(d_head) when None
    skip       whether each layer adds to its input (True) or replaces it
    norm       a function applied to what a layer reads, before its projections; None for no norm

    Returns (output, weights): an array of the shape of X, and a list with the weights of each layer,
    (*models, n_heads, ..., n_tokens, n_tokens).
    Raises ValueError when X does not fit the parameters, when these hold no layer or an incomplete one, or when
    the mask is not boolean or does not fit.

    Source: Vaswani et al. (2017) without feed-forward parts; the gate as in Qiu et al. (2025), one number a head.
    """
    layers, X = split_layers(params), X if hasattr(X, "shape") else numpy.asarray(X)
    _check_input(layers, X)
    if mask is not None:
        mask = _check_mask(mask, (X.shape[-2], X.shape[-2]))
    stream, seen = X, []
    for layer in layers:
        change, weights = attention_layer(layer, stream if norm is None else norm(stream), mask, weighting, scale)
        stream = stream + change if skip else change
        seen.append(weights)
    return stream, seen


def attention_layer(layer, X, mask=None, weighting=softmax, scale=None):
    """One attention layer: the outputs of all heads, gated where there is a gate, projected and summed.

    layer   dict of one layer's parameters, as split_layers returns them; the rest as for transformer

    Returns (output, weights), (*models, ..., n_tokens, d) and (*models, n_heads, ..., n_tokens, n_tokens).
    """
    Q, K, V = (project(X, layer[name]) for name in ("W_Q", "W_K", "W_V"))  # (*models, n_heads, ..., n_tokens, d_head)
    if "sink" in layer and weighting is softmax:
        raise ValueError("the layer has a sink, which softmax does not take. Pass weighting=sink_softmax.")
    weigh = weighting if "sink" not in layer else lambda scores: weighting(scores, _fit_axes(layer["sink"], scores))
    mixed, weights = attend(Q, K, V, mask=mask, scale=scale, weighting=weigh)
    if "W_G" in layer:
        mixed = mixed * sigmoid_gate(project(X, layer["W_G"]))
    return combine(mixed, layer["W_O"]), weights


@primitive
def project(X, W):
    """X W for each head: (*models, ..., n_tokens, d) and (*models, n_heads, d, k) give (*models, n_heads, ..., k)."""
    return (_rows(X, W.ndim - 3, heads=False) @ W).reshape(*W.shape[:-2], *X.shape[W.ndim - 3 : -1], W.shape[-1])


@primitive
def combine(mixed, W):
    """The sum over heads of mixed W: (*models, n_heads, ..., n_tokens, k) and (*models, n_heads, k, d)."""
    heads = _rows(mixed, W.ndim - 3) @ W  # (*models, n_heads, n_rows, d)
    total = heads.sum(axis=-3) if heads.shape[-3] > 1 else heads
    return total.reshape(*W.shape[:-3], *mixed.shape[W.ndim - 2 : -1], W.shape[-1])


def _rows(array, models, heads=True):
    """All rows of tokens behind the axes of models and heads: (*models, n_heads or 1, n_rows, features)."""
    head = array.shape[models : models + 1] if heads else (1,)
    return array.reshape(*array.shape[:models], *head, -1, array.shape[-1])


def _turned(W):
    return numpy.swapaxes(W, -1, -2)


# each of the two is the other's gradient: what one spreads over the heads, the other sums up
defvjp(
    project,
    lambda Q, X, W: lambda g: combine(g, _turned(W)),
    lambda Q, X, W: lambda g: _turned(_rows(X, W.ndim - 3, heads=False)) @ _rows(g, W.ndim - 3),
)
defvjp(
    combine,
    lambda output, mixed, W: lambda g: project(g, _turned(W)),
    lambda output, mixed, W: lambda g: _turned(_rows(mixed, W.ndim - 3)) @ _rows(g, W.ndim - 3, heads=False),
)


def sigmoid_gate(scores):
    """1 / (1 + e^-s), a gate between closed (0) and open (1), for scores with one column (..., n, 1)."""
    return sigmoid(scores)  # over a single place: the count is 1


def split_layers(params):
    """The parameters as a list of dicts, one a layer: {"0.W_Q": a, "1.W_Q": b} becomes [{"W_Q": a}, {"W_Q": b}]."""
    layers = {}
    for name, value in params.items():
        layer, _, short = name.partition(".")
        if not (layer.isdecimal() and short):
            raise ValueError(f"a parameter is called {name!r}, expected a layer and a name, such as '0.W_Q'.")
        layers.setdefault(int(layer), {})[short] = value
    return [layers[layer] for layer in sorted(layers)]


def _fit_axes(sink, scores):
    """The sink's (*models, n_heads, 1, 1, 1) with as many axes of length 1 as the scores need."""
    heads = sink.shape[:-3]
    return np.reshape(sink, heads + (1,) * (scores.ndim - len(heads)))


def _check_input(layers, X):
    if not layers:
        raise ValueError("params hold no layer, expected names such as '0.W_Q'. Draw them with init_transformer.")
    for i, layer in enumerate(layers):
        missing = [name for name in ("W_Q", "W_K", "W_V", "W_O") if name not in layer]
        if missing:
            raise ValueError(f"layer {i} has no {', '.join(missing)}, expected all of W_Q, W_K, W_V and W_O.")
    W = layers[0]["W_Q"]
    models, d = W.shape[:-3], W.shape[-2]
    if X.ndim < len(models) + 2 or X.shape[-1] != d or X.shape[: len(models)] != models or 0 in X.shape:
        wanted = ", ".join([*map(str, models), "...", "n_tokens", str(d)])
        raise ValueError(f"X has shape {X.shape}, expected ({wanted}) for these parameters, with nothing empty.")
