"""One small Transformer for the training experiments: a dictionary of parameters and plain functions.

A layer's parameters are named "0.W_Q", "0.W_K", "0.W_V", "0.W_O" and so on, where 0 is the layer; "0.W_1" and
"0.W_2" belong to its feed-forward part, where it has one. Heads stand before sequences in every shape, so that a
projection is one matrix product. Leading axes of the parameters are independent models, trained side by side:
Adam works number by number, so none of them notices the others.

The functions are differentiable by autograd. With arrays that are not being differentiated they are plain NumPy.
"""

import numpy
from autograd import numpy as np
from autograd.extend import defvjp, primitive
from autograd.tracer import isbox

from attn_utils.gradients import attend, center_tokens, feed_forward, sigmoid, softmax, turned
from attn_utils.inputs import as_floating, check_mask, check_rng, check_scale, check_switch, is_whole, real_number

ATTENTION, FEED_FORWARD = ("W_Q", "W_K", "W_V", "W_O"), ("W_1", "b_1", "W_2", "b_2")  # the parameters of each part


def init_transformer(rng, n_layers, n_heads, d, d_head=None, *, d_ff=None, models=(), std=0.02, gate=False, sink=False):
    """Draw the parameters of a Transformer, all weights from N(0, std^2), float32.

    rng        numpy.random.Generator
    n_layers   number of layers;  n_heads   heads in each
    d          features of a token;  d_head   features of a query, key and value of one head (d when None)
    d_ff       features inside the feed-forward part; None for layers of attention alone
    models     shape of the leading axes, () for one model, (3,) for three side by side
    std        standard deviation; None for 1/sqrt(n) where an output is a sum over n features, which keeps their size
    gate       also W_G, the weights of a gate on the output of each head
    sink       also a sink logit for each head, 0 at the start

    Returns a dict from name to array, for layer 0, 1, ...:
    W_Q, W_K, W_V (*models, n_heads, d, d_head), W_O (*models, n_heads, d_head, d), W_G (*models, n_heads, d, 1),
    sink (*models, n_heads, 1, 1, 1); W_1 (*models, d, d_ff), W_2 (*models, d_ff, d) and the biases, 0 at the
    start, b_1 (*models, 1, d_ff), b_2 (*models, 1, d).
    Raises ValueError when a size is not a positive whole number, std not positive, models no tuple, or rng no
    Generator.

    Source: the initialisation of Ran-Milo (2026), whose heads have the full width, d_head = d.
    """
    d_head = d if d_head is None else d_head
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d": d, "d_head": d_head}
    sizes |= {} if d_ff is None else {"d_ff": d_ff}
    n_layers, n_heads, d, d_head, *inner = check_sizes(rng, models, **sizes)
    d_ff = inner[0] if inner else None
    if std is not None:
        real_number(std, "std", above=0, fix=", or None for 1/sqrt(features)")
    check_switch(gate, "gate"), check_switch(sink, "sink")
    shapes = {"W_Q": (n_heads, d, d_head), "W_K": (n_heads, d, d_head), "W_V": (n_heads, d, d_head)}
    shapes |= {"W_O": (n_heads, d_head, d)} | ({"W_G": (n_heads, d, 1)} if gate else {})
    flat = {"sink": (n_heads, 1, 1, 1)} if sink else {}
    if d_ff is not None:
        shapes |= {"W_1": (d, d_ff), "W_2": (d_ff, d)}
        flat |= {"b_1": (1, d_ff), "b_2": (1, d)}
    params = {}
    for layer in range(n_layers):
        for name, shape in shapes.items():
            taken = n_heads * d_head if name == "W_O" else shape[-2]  # features that the output is a sum over
            params[f"{layer}.{name}"] = normal_weights(rng, (*models, *shape), taken**-0.5 if std is None else std)
        for name, shape in flat.items():
            params[f"{layer}.{name}"] = numpy.zeros((*models, *shape), numpy.float32)
    return params


def transformer(
    params,
    X,
    *,
    mask=None,
    weighting=softmax,
    scale=None,
    skip=True,
    norm=None,
    post=False,
    center_values=False,
    graying=None,
):
    """Run tokens through all layers: attention, then the feed-forward part where the parameters have one.

    params     what init_transformer returns
    X          (*models, ..., n_tokens, d), where ... are the axes of the sequences
    mask       True where a query may look, broadcastable to (n_tokens, n_tokens), such as causal_mask(n_tokens)
    weighting  a function of attn_utils.gradients from scores to weights: softmax, softmax1, relu, sigmoid;
               where the parameters have a sink, it is called as weighting(scores, sink)
    scale      the factor on the scores; 1/sqrt(d_head) when None
    skip       whether a part adds to its input (True) or replaces it; a pair such as (False, True) says it for
               the attention and the feed-forward part
    norm       rms_norm or layer_norm of attn_utils.gradients, or another function of tokens; None for no norm
    post       False normalises what a part reads, norm(x) inside x + f(norm(x)); True what it leaves, norm(x + f(x))
    center_values   takes the mean token out of the values of every head, so that attention passes on no average
    graying    a function applied to X first, such as lambda X: svd_graying(X, 0.7). X must then be data:
               no gradient goes through it

    Returns (output, weights): an array of the shape of X, and a list with the weights of each layer,
    (*models, n_heads, ..., n_tokens, n_tokens).
    Raises ValueError when X does not fit the parameters, when these hold no layer or an incomplete one, when
    the mask is not boolean or does not fit, or when a switch has another form than those above.

    Source: Vaswani et al. (2017); pre-norm as in Xiong et al. (2020); the gate as in Qiu et al. (2025), one number
    a head; centred values as in chapter 4; graying as in Ji et al. (2025).
    """
    layers, X = split_layers(params), as_floats(X, "X")
    _check_input(layers, X)
    mask = mask if mask is None else check_mask(mask, (X.shape[-2], X.shape[-2]))
    scale = scale if scale is None else check_scale(scale)
    skips = _check_switches(skip, norm, post, center_values, weighting)
    before, after = (_as_is, norm) if post else (norm or _as_is, _as_is)
    stream, seen = X if graying is None else grayed(graying, X), []
    for layer in layers:
        change, weights = attention_layer(layer, before(stream), mask, weighting, scale, center_values)
        stream = after(stream + change if skips[0] else change)
        seen.append(weights)
        if "W_1" in layer:
            change = feed_forward(before(stream), *(layer[name] for name in FEED_FORWARD))
            stream = after(stream + change if skips[1] else change)
    return stream, seen


def _as_is(X):
    return X


def as_floats(X, name):
    """Data as a floating-point array, checked to be finite; what is differentiated stays what it is."""
    if isbox(X):
        return X
    X = as_floating(X, name)
    if not numpy.isfinite(X).all():
        raise ValueError(f"{name} contains NaN or inf, expected finite numbers. Look for where they arise upstream.")
    return X


def attention_layer(layer, X, mask=None, weighting=softmax, scale=None, center_values=False):
    """One attention layer: the outputs of all heads, gated where there is a gate, projected and summed.

    layer   dict of one layer's parameters, as split_layers returns them; the rest as for transformer

    Returns (output, weights), (*models, ..., n_tokens, d) and (*models, n_heads, ..., n_tokens, n_tokens).
    """
    Q, K, V = (project(X, layer[name]) for name in ("W_Q", "W_K", "W_V"))  # (*models, n_heads, ..., n_tokens, d_head)
    if "sink" in layer and weighting is softmax:
        raise ValueError("the layer has a sink, which softmax does not take. Pass weighting=sink_softmax.")
    V = center_tokens(V) if center_values else V
    weigh = weighting if "sink" not in layer else lambda scores: weighting(scores, _fit_axes(layer["sink"], scores))
    mixed, weights = attend(Q, K, V, mask=mask, scale=scale, weighting=weigh)
    if "W_G" in layer:
        mixed = mixed * sigmoid_gate(project(X, layer["W_G"]))
    return combine(mixed, layer["W_O"]), weights


def _project(X, W):
    """X W for each head: (*models, ..., n_tokens, d) and (*models, n_heads, d, k) give (*models, n_heads, ..., k)."""
    return (_rows(X, W.ndim - 3, heads=False) @ W).reshape(*W.shape[:-2], *X.shape[W.ndim - 3 : -1], W.shape[-1])


def _combine(mixed, W):
    """The sum over heads of mixed W: (*models, n_heads, ..., n_tokens, k) and (*models, n_heads, k, d)."""
    heads = _rows(mixed, W.ndim - 3) @ W  # (*models, n_heads, n_rows, d)
    total = heads.sum(axis=-3) if heads.shape[-3] > 1 else heads
    return total.reshape(*W.shape[:-3], *mixed.shape[W.ndim - 2 : -1], W.shape[-1])


def _rows(array, models, heads=True):
    """All rows of tokens behind the axes of models and heads: (*models, n_heads or 1, n_rows, features)."""
    head = array.shape[models : models + 1] if heads else (1,)
    return array.reshape(*array.shape[:models], *head, -1, array.shape[-1])


project, combine = primitive(_project), primitive(_combine)

# each of the two is the other's gradient: what one spreads over the heads, the other sums up
defvjp(
    project,
    lambda Q, X, W: lambda g: _combine(g, turned(W)),
    lambda Q, X, W: lambda g: turned(_rows(X, W.ndim - 3, heads=False)) @ _rows(g, W.ndim - 3),
)
defvjp(
    combine,
    lambda output, mixed, W: lambda g: _project(g, turned(W)),
    lambda output, mixed, W: lambda g: turned(_rows(mixed, W.ndim - 3)) @ _rows(g, W.ndim - 3, heads=False),
)


def sigmoid_gate(scores):
    """1 / (1 + e^-s), a gate between closed (0) and open (1), for scores with one column (..., n, 1)."""
    return sigmoid(scores)  # over a single place: the count is 1


def split_layers(params):
    """The parameters as a list of dicts, one a layer: {"0.W_Q": a, "1.W_Q": b} becomes [{"W_Q": a}, {"W_Q": b}]."""
    if not hasattr(params, "items"):  # what autograd makes of a dict is none itself
        raise ValueError(f"params is {type(params).__name__}, expected a dict, as init_transformer draws it.")
    layers = {}
    for name, value in params.items():
        layer, _, short = name.partition(".")
        if not (layer.isdecimal() and short):
            raise ValueError(f"params hold the name {name!r}, expected a layer and a name, such as '0.W_Q'.")
        layers.setdefault(int(layer), {})[short] = value
    return [layers[layer] for layer in sorted(layers)]


def _fit_axes(sink, scores):
    """The sink's (*models, n_heads, 1, 1, 1) with as many axes of length 1 as the scores need."""
    heads = sink.shape[:-3]
    return np.reshape(sink, heads + (1,) * (scores.ndim - len(heads)))


def normal_weights(rng, shape, std):
    return rng.normal(scale=std, size=shape).astype(numpy.float32)


def grayed(graying, X):
    if not callable(graying):
        raise ValueError(f"graying is {graying!r}, expected a function, such as lambda X: svd_graying(X, 0.7).")
    if isbox(X):
        raise ValueError("no gradient goes through graying: gray the data first, not what was learned from it.")
    Y = graying(X)
    if numpy.shape(Y) != X.shape:
        raise ValueError(f"graying turned shape {X.shape} into {numpy.shape(Y)}, expected the same.")
    return Y


def check_sizes(rng, models, **sizes):
    """The sizes as ints, since a small type of NumPy's would overflow. Stops where one is no positive whole number."""
    check_rng(rng)
    if not isinstance(models, (tuple, list)):
        raise ValueError(f"models is {models!r}, expected a tuple such as () for one model, (3,) for three.")
    named = sizes | {f"models[{i}]": size for i, size in enumerate(models)}
    for name, size in named.items():
        if not is_whole(size):
            raise ValueError(f"{name} is {size!r}, expected a positive whole number.")
    return [int(size) for size in sizes.values()]


def _check_switches(skip, norm, post, center_values, weighting):
    """The skips as a pair, for attention and the feed-forward part."""
    skips = tuple(skip) if isinstance(skip, (tuple, list)) else (skip, skip)
    if len(skips) != 2 or not all(map(_is_switch, skips)):
        raise ValueError(f"skip is {skip!r}, expected True, False or a pair of them (attention, feed-forward part).")
    for name, value in (("post", post), ("center_values", center_values)):
        if not _is_switch(value):
            raise ValueError(f"{name} is {value!r}, expected True or False.")
    check_norm("norm", norm)
    if post and norm is None:
        raise ValueError("post is True and there is no norm to put last. Pass norm=rms_norm, or leave post out.")
    if not callable(weighting):
        raise ValueError(f"weighting is {weighting!r}, expected a function of attn_utils.gradients, such as softmax.")
    return skips


def check_norm(name, norm):
    if norm is not None and not callable(norm):
        raise ValueError(f"{name} is {norm!r}, expected rms_norm or layer_norm of attn_utils.gradients, or None.")


def _is_switch(value):
    return isinstance(value, (bool, numpy.bool_))


def _check_input(layers, X):
    if not layers:
        raise ValueError("params hold no layer, expected names such as '0.W_Q'. Draw them with init_transformer.")
    for i, layer in enumerate(layers):
        _check_layer(i, layer, layers[0])
    W = layers[0]["W_Q"]
    models, d = W.shape[:-3], W.shape[-2]
    if X.ndim < len(models) + 2 or X.shape[-1] != d or X.shape[: len(models)] != models or 0 in X.shape:
        wanted = ", ".join([*map(str, models), "...", "n_tokens", str(d)])
        raise ValueError(f"X has shape {X.shape}, expected ({wanted}) for these parameters, with nothing empty.")


def _check_layer(i, layer, first):
    """Every matrix is there and has the shape that W_Q, W_1 and the first layer ask for."""
    for group in (ATTENTION, FEED_FORWARD if any(name in layer for name in FEED_FORWARD) else ()):
        if missing := [name for name in group if name not in layer]:
            wanted = f"{', '.join(group[:-1])} and {group[-1]}"
            raise ValueError(f"layer {i} has no {', '.join(missing)}, expected all of {wanted}.")
    if layer["W_Q"].ndim < 3:
        raise ValueError(f"layer {i} has W_Q of shape {layer['W_Q'].shape}, expected (*models, n_heads, d, d_head).")
    *models, _, d, _ = first["W_Q"].shape
    n_heads, _, d_head = layer["W_Q"].shape[-3:]
    expected = dict.fromkeys(("W_Q", "W_K", "W_V"), (n_heads, d, d_head)) | {"W_O": (n_heads, d_head, d)}
    if "W_1" in layer:
        d_ff = layer["W_1"].shape[-1]
        expected |= {"W_1": (d, d_ff), "b_1": (1, d_ff), "W_2": (d_ff, d), "b_2": (1, d)}
    for name, shape in expected.items():
        if layer[name].shape != (*models, *shape):
            raise ValueError(f"layer {i} has {name} of shape {layer[name].shape}, expected {(*models, *shape)}.")


# ------------------------------------------------ a start without skips (chapter 5)


def condition_layers(rng, n_layers, n_heads, d, d_head, *, d_ff, models=(), alpha=0.0, beta=2.0):
    """Draw layers that can be trained without skips: nothing in them squeezes the tokens together at the start.

    W_Q W_K^T = alpha Z + beta I in every head, with Z from N(0, 1/d): the scores of a token with itself stand out
    (where d_head < d, the nearest matrix of that rank). W_V and W_O of all heads together are orthogonal matrices,
    as far as their shapes allow, and so are W_1 and W_2, scaled so that features keep their size.

    Sizes and errors as for init_transformer. Returns its dict.
    Source: Ji et al. (2025), "Cutting the Skip", in miniature; alpha Z + beta I from Trockman and Kolter (2023).
    """
    d_head = d if d_head is None else d_head
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "d": d, "d_head": d_head, "d_ff": d_ff}
    n_layers, n_heads, d, d_head, d_ff = check_sizes(rng, models, **sizes)
    real_number(alpha, "alpha"), real_number(beta, "beta")
    params = init_transformer(rng, n_layers, n_heads, d, d_head, d_ff=d_ff, models=models)
    for layer in range(n_layers):
        Z = rng.normal(size=(*models, n_heads, d, d)) / numpy.sqrt(d)
        U, S, Vt = numpy.linalg.svd(alpha * Z + beta * numpy.eye(d))
        root = numpy.sqrt(S[..., None, :d_head])  # (*models, n_heads, 1, d_head)
        values = _orthogonal(rng, models, d, n_heads * d_head).reshape(*models, d, n_heads, d_head)
        outputs = _orthogonal(rng, models, n_heads * d_head, d).reshape(*models, n_heads, d_head, d)
        drawn = {"W_Q": U[..., :d_head] * root, "W_K": turned(Vt)[..., :d_head] * root}
        drawn |= {"W_V": numpy.moveaxis(values, -2, -3), "W_O": outputs}
        drawn |= {"W_1": _orthogonal(rng, models, d, d_ff), "W_2": _orthogonal(rng, models, d_ff, d)}
        params |= {f"{layer}.{name}": matrix.astype(numpy.float32) for name, matrix in drawn.items()}
    return params


def _orthogonal(rng, models, rows, columns):
    """A random matrix (*models, rows, columns) with orthonormal rows or columns, times max(1, sqrt(columns / rows))."""
    Q, R = numpy.linalg.qr(rng.normal(size=(*models, max(rows, columns), min(rows, columns))))
    Q = Q * numpy.sign(numpy.diagonal(R, axis1=-2, axis2=-1))[..., None, :]  # evenly distributed
    return Q if rows >= columns else turned(Q) * numpy.sqrt(columns / rows)
