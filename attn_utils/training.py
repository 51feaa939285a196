"""Training in the open: Adam, one loop, and gradients through autograd.

Losses are written with `import autograd.numpy as np`. The softmax and the cross-entropy carry gradients
derived by hand (chapter 2 derives the first), which is faster and stays finite where exp overflows.
So do the alternatives to the softmax of chapter 6.
"""

import contextlib

import numpy
from autograd import value_and_grad
from autograd.extend import SparseObject, defvjp, primitive, vspace

from attn_utils.attention import _count
from attn_utils.attention import relu as _relu
from attn_utils.attention import sigmoid as _sigmoid
from attn_utils.attention import sink_softmax as _sink_softmax
from attn_utils.attention import softmax as _softmax


def _softmax_gradient(weights, scores, axis=-1):
    # J = diag(w) - w w^T, so J g = w * (g - <g, w>): no matrix is ever formed
    if axis in (-1, weights.ndim - 1):
        return lambda g: weights * (g - _row_dot(g, weights))
    return lambda g: weights * (g - numpy.sum(g * weights, axis=axis, keepdims=True))


def _row_dot(a, b):
    """The scalar product of each row of a with that of b, (..., 1). Short rows are not numpy.sum's strength."""
    return numpy.einsum("...i,...i->...", a, b)[..., None]


softmax = primitive(_softmax)
softmax.__doc__ = "attn_utils.softmax with its gradient: J g = w * (g - <g, w>), derived in chapter 2."
defvjp(softmax, _softmax_gradient)


def _sink_softmax_gradient(weights, scores, sink, axis=-1):
    # the softmax's J with one more place whose value is 0: the same formula, although a row sums to less than one
    return _softmax_gradient(weights, scores, axis)


def _sink_gradient(weights, scores, sink, axis=-1):
    # d w_j / d sink = -w_j w_sink, where w_sink = 1 - sum_j w_j
    def gradient(g):
        missing = 1 - numpy.sum(weights, axis=axis, keepdims=True)
        step = -numpy.sum(g * weights, axis=axis, keepdims=True) * missing
        return _sum_to(step, numpy.shape(sink)).astype(weights.dtype)

    return gradient


def _sum_to(array, shape):
    """Sum over the axes along which something of this shape was broadcast."""
    if array.shape == shape:
        return array
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n < array.shape[i])
    return array.sum(axis=stretched, keepdims=True)


sink_softmax = primitive(_sink_softmax)
sink_softmax.__doc__ = "attn_utils.attention.sink_softmax with its gradient, for the sink as well."
defvjp(sink_softmax, _sink_softmax_gradient, _sink_gradient)


def softmax1(scores, axis=-1):
    """attn_utils.attention.softmax1, differentiable by autograd."""
    return sink_softmax(scores, 0.0, axis)


def _relu_gradient(weights, scores, axis=-1, uncounted=0):
    share = 1 / _count(scores, axis, uncounted)
    return lambda g: g * (weights > 0) * share


relu = primitive(_relu)
relu.__doc__ = "attn_utils.attention.relu with its gradient: 1 / count where the score is positive."
defvjp(relu, _relu_gradient)


def _sigmoid_gradient(weights, scores, axis=-1, uncounted=0):
    count = _count(scores, axis, uncounted)
    return lambda g: g * weights * (1 - weights * count)  # the logistic function f has f' = f (1 - f)


sigmoid = primitive(_sigmoid)
sigmoid.__doc__ = "attn_utils.attention.sigmoid with its gradient: f (1 - f) / count."
defvjp(sigmoid, _sigmoid_gradient)


@primitive
def masked_scores(Q, K, mask, scale):
    """scale * Q K^T, with -inf where the mask is False.

    The gradient is that of the unmasked scores: every weighting passes back zero where a score is -inf.
    """
    scores = Q @ numpy.swapaxes(K, -1, -2)  # (..., n_queries, n_keys)
    if scale != 1:
        scores *= scale
    if mask is not None:
        numpy.copyto(scores, -numpy.inf, where=numpy.logical_not(mask))
    return scores


defvjp(
    masked_scores,
    lambda scores, Q, K, mask, scale: lambda g: _sum_to((g @ K) * _like(scale, g), Q.shape),
    lambda scores, Q, K, mask, scale: lambda g: _sum_to((numpy.swapaxes(g, -1, -2) @ Q) * _like(scale, g), K.shape),
    None,
    None,
)


def _like(number, array):
    return array.dtype.type(number)


def attend(Q, K, V, mask=None, scale=None, weighting=softmax):
    """attn_utils.attention for training: the same shapes and result, differentiable by autograd.

    Q (..., n_queries, d_k), K (..., n_keys, d_k), V (..., n_keys, d_v); mask True where a query may look;
    scale 1/sqrt(d_k) when None; weighting softmax, or another of this module's functions from scores to weights.
    Returns (output, weights).
    Inputs are not checked here, for speed: attn_utils.attention says what is wrong with a shape.
    """
    scale = 1 / numpy.sqrt(Q.shape[-1]) if scale is None else scale
    scores = masked_scores(Q, K, mask, float(scale))  # (..., n_queries, n_keys)
    weights = weighting(scores)  # (..., n_queries, n_keys)
    return mix(weights, V), weights


@primitive
def mix(weights, V):
    """weights V, attention's output: (..., n_queries, n_keys) and (..., n_keys, d_v) give (..., n_queries, d_v)."""
    return weights @ V


defvjp(
    mix,
    lambda output, weights, V: lambda g: _sum_to(g @ _turned(V), weights.shape),
    lambda output, weights, V: lambda g: _sum_to(_turned(weights) @ g, V.shape),
)


def _turned(array):
    return numpy.swapaxes(array, -1, -2)


@primitive
def rms_norm(X, epsilon=1e-6):
    """Every token divided by the root of its mean square: x / sqrt(mean(x^2) + epsilon).

    X (..., d). Returns the same shape and type; a token of zeros stays zero. No gain: the projections that follow
    have one. Source: Zhang and Sennrich (2019), equation 4.
    """
    return X / _root_mean_square(X, epsilon)


def _root_mean_square(X, epsilon):
    return numpy.sqrt(_row_dot(X, X) / X.shape[-1] + float(epsilon))  # (..., 1)


def _rms_norm_gradient(Y, X, epsilon=1e-6):
    # y = x / r with r^2 = mean(x^2) + epsilon: dy = (dx - y mean(y dx)) / r, and this matrix is symmetric
    r = _root_mean_square(X, epsilon)
    return lambda g: (g - Y * (_row_dot(g, Y) / X.shape[-1])) / r


defvjp(rms_norm, _rms_norm_gradient)


def layer_norm(X, epsilon=1e-6):
    """Every token less its mean, divided by its standard deviation: rms_norm of the centred token.

    X (..., d). Returns the same shape and type; a constant token becomes zero. No gain and no bias.
    What comes out is orthogonal to (1, ..., 1), so that its smallest singular value is zero where n_tokens >= d.
    Source: Ba et al. (2016), equation 3.
    """
    return rms_norm(_center_features(X), epsilon)


@primitive
def _center_features(X):
    return X - numpy.mean(X, axis=-1, keepdims=True)


@primitive
def center_tokens(X):
    """attn_utils.spectra.center_tokens for training: X (..., n_tokens, d) less its mean token."""
    return X - numpy.mean(X, axis=-2, keepdims=True)


# the matrix that takes a mean out is symmetric: the gradient is centred in the same way
defvjp(_center_features, lambda Y, X: lambda g: g - numpy.mean(g, axis=-1, keepdims=True))
defvjp(center_tokens, lambda Y, X: lambda g: g - numpy.mean(g, axis=-2, keepdims=True))


@primitive
def mean_token(X):
    """The mean over tokens: (..., n_tokens, d) gives (..., d)."""
    return numpy.mean(X, axis=-2)


defvjp(mean_token, lambda Y, X: lambda g: numpy.repeat(g[..., None, :] / X.shape[-2], X.shape[-2], axis=-2))


@primitive
def linear(X, W, b):
    """X W + b for every token: X (*models, ..., d), W (*models, d, k), b (*models, 1, k) give (*models, ..., k)."""
    Y = _as_rows(X, W) @ W  # (*models, n_rows, k)
    Y += b
    return Y.reshape(*X.shape[:-1], W.shape[-1])


def _as_rows(X, W):
    """All tokens of a model one below the other, (*models, n_rows, features)."""
    return X.reshape(*W.shape[:-2], -1, X.shape[-1])


defvjp(
    linear,
    lambda Y, X, W, b: lambda g: (_as_rows(g, W) @ _turned(W)).reshape(X.shape),
    lambda Y, X, W, b: lambda g: _turned(_as_rows(X, W)) @ _as_rows(g, W),
    lambda Y, X, W, b: lambda g: _row_sum(_as_rows(g, W)),
)


def _row_sum(rows):
    """The sum of all rows, (..., 1, features), as a matrix product, which is several times faster than numpy.sum."""
    return numpy.ones((1, rows.shape[-2]), rows.dtype) @ rows


_GELU = 0.7978845608028654  # sqrt(2/pi)


@primitive
def gelu(X):
    """GELU in its form with tanh: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, number by number.

    Source: Hendrycks and Gimpel (2016).
    """
    return X * _half_plus_half_tanh(X * X, X)


def _half_plus_half_tanh(squares, X):
    t = squares * (0.044715 * _GELU)
    t += _GELU
    t *= X
    numpy.tanh(t, out=t)
    t *= 0.5
    t += 0.5
    return t


def _gelu_gradient(Y, X):
    # with p = (1 + tanh u) / 2, the derivative of x p is p + x p', and p' = 2 p (1 - p) u'
    def gradient(g):
        squares = X * X
        p = _half_plus_half_tanh(squares, X)
        slope = squares * (6 * 0.044715 * _GELU)
        slope += 2 * _GELU  # 2 u'
        slope *= X - Y  # x (1 - p)
        slope += 1
        slope *= p
        slope *= g
        return slope

    return gradient


defvjp(gelu, _gelu_gradient)


def feed_forward(X, W_1, b_1, W_2, b_2):
    """The feed-forward part of a layer: gelu(X W_1 + b_1) W_2 + b_2, for every token by itself.

    X (*models, ..., n_tokens, d); W_1 (*models, d, d_ff), b_1 (*models, 1, d_ff), W_2 (*models, d_ff, d),
    b_2 (*models, 1, d). Returns the shape of X. Source: Vaswani et al. (2017), equation 2, with GELU for ReLU.
    """
    return linear(gelu(linear(X, W_1, b_1)), W_2, b_2)


@primitive
def cross_entropy(logits, targets):
    """Mean of -log softmax(logits)[target].

    logits (..., n_classes); targets, whole numbers of shape (...). Returns one number.
    Raises ValueError when the targets do not fit the logits or are not whole numbers from 0 to n_classes - 1.
    """
    _check_targets(numpy.asarray(targets), logits)
    shifted = logits - numpy.max(logits, axis=-1, keepdims=True)
    log_total = numpy.log(numpy.sum(numpy.exp(shifted), axis=-1))  # (...)
    chosen = numpy.take_along_axis(shifted, numpy.asarray(targets)[..., None], axis=-1)[..., 0]  # (...)
    return numpy.mean(log_total - chosen)


def _check_targets(targets, logits):
    if targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets have shape {targets.shape}, expected {logits.shape[:-1]}: one a row.")
    if targets.dtype.kind not in "iu":
        raise ValueError(f"targets have type {targets.dtype}, expected whole numbers: the place of the right class.")
    if targets.size and not (0 <= targets.min() and targets.max() < logits.shape[-1]):
        raise ValueError(
            f"targets go from {targets.min()} to {targets.max()}, expected 0 to {logits.shape[-1] - 1}, one a class."
        )


def _cross_entropy_gradient(loss, logits, targets):
    def gradient(g):
        step = _softmax(logits)  # d loss / d logits = (softmax - one-hot) / n
        index = numpy.asarray(targets)[..., None]
        numpy.put_along_axis(step, index, numpy.take_along_axis(step, index, axis=-1) - 1, axis=-1)
        return step * (g / index.size).astype(step.dtype)

    return gradient


defvjp(cross_entropy, _cross_entropy_gradient, None)


@primitive
def squared_error(output, target):
    """Mean of (output - target)^2 over all numbers of two arrays of the same shape. Returns one number."""
    if numpy.shape(output) != numpy.shape(target):
        raise ValueError(
            f"output has shape {numpy.shape(output)} and target {numpy.shape(target)}, expected the same. "
            "A column (n, 1) and a vector (n,) would be compared each with each."
        )
    return numpy.mean((output - target) ** 2)


defvjp(
    squared_error,
    lambda loss, output, target: lambda g: (output - target) * (2 * g / output.size).astype(output.dtype),
    None,
)


def fit(loss, params, batch, steps, *, rng, lr=1e-2, betas=(0.9, 0.999), weight_decay=0.0, on_step=None, progress=True):
    """Minimise a loss with Adam and return what was learned.

    loss          loss(params, *batch(rng)) -> one number, written with autograd.numpy
    params        dict from name to array; not changed, types (float32, float64) are kept
    batch         batch(rng) -> tuple of arrays, drawn anew at every step
    steps         number of steps
    rng           numpy.random.Generator, handed to batch
    lr            learning rate of Adam: a number, or a function of the step (from 1)
    betas         how much of the running means of gradient and squared gradient Adam keeps at a step
    weight_decay  decoupled, as in AdamW: every step also shrinks the parameters by lr * weight_decay
    on_step       on_step(step, params), called after each step (from 1); returning True stops the training
    progress      show a bar in a live kernel; it leaves no trace in stored outputs

    Returns (params, losses): the learned dict and an array of the loss before each step taken.
    An interrupt (Ctrl-C, the stop button) returns what was learned so far.
    Raises ValueError for bad arguments, FloatingPointError when the loss or a gradient is not finite, or when the
    loss stops over NaN or inf of its own (naming the step and the parameter).

    Source: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter (2019) for the decay.
    """
    _check_fit(params, steps, rng, lr, betas, weight_decay)
    vectors, unpack = _pack(params)
    moments = {kind: (numpy.zeros_like(vector), numpy.zeros_like(vector)) for kind, vector in vectors.items()}
    step_loss = value_and_grad(lambda vectors, *drawn: loss(unpack(vectors), *drawn))
    losses = []
    with _Progress(steps, progress) as bar:
        try:
            for step in range(1, steps + 1):
                drawn = _check_batch(batch(rng))
                with _named(step, vectors, unpack):
                    value, gradients = step_loss(vectors, *drawn)
                _check_finite(step, value, gradients, unpack)
                rate = _check_rate(lr(step), step) if callable(lr) else lr
                for kind, gradient in gradients.items():
                    vectors[kind] = _adam(vectors[kind], gradient, *moments[kind], step, rate, weight_decay, *betas)
                losses.append(float(value))
                bar.show(step, losses[-1])
                if on_step is not None:
                    stop = on_step(step, unpack(vectors))
                    if isinstance(stop, (bool, numpy.bool_)) and stop:
                        break
        except KeyboardInterrupt:
            print(f"Interrupted after {len(losses)} of {steps} steps: returning what was learned so far.")
    return {name: value.copy() for name, value in unpack(vectors).items()}, numpy.array(losses)


def _adam(value, gradient, m, v, step, lr, weight_decay, beta1, beta2, epsilon=1e-8):
    """One step of Adam: returns the new value; m and v, the running means, change in place."""
    m *= beta1
    m += (1 - beta1) * gradient
    v *= beta2
    v += (1 - beta2) * gradient**2
    direction = (m / (1 - beta1**step)) / (numpy.sqrt(v / (1 - beta2**step)) + epsilon)
    return (value - lr * (direction + weight_decay * value)).astype(value.dtype)


def _pack(params):
    """The parameters in one long vector for each floating-point type, and a function that cuts it up again.

    Adam works number by number, so that one long vector is as good as many arrays, and much faster.
    """
    params = {name: numpy.asarray(value) for name, value in params.items()}
    parts, places = {value.dtype: [] for value in params.values()}, {}
    for name, value in params.items():
        start = sum(part.size for part in parts[value.dtype])
        parts[value.dtype].append(value.ravel())
        places[name] = value.dtype, slice(start, start + value.size), value.shape

    def unpack(vectors):
        vectors = {kind: vectors[kind] for kind in parts}
        return {name: _piece(vectors[kind], place, shape) for name, (kind, place, shape) in places.items()}

    return {kind: numpy.concatenate(part) for kind, part in parts.items()}, unpack


@primitive
def _piece(vector, place, shape):
    return vector[place].reshape(shape)


def _piece_gradient(piece, vector, place, shape):
    # everything is zero but for the piece, so autograd is told to add that alone
    return lambda g: SparseObject(vspace(vector), lambda total: _add_at(total, place, g))


def _add_at(total, place, g):
    total[place] += numpy.ravel(g)
    return total


defvjp(_piece, _piece_gradient, None, None)


def _check_fit(params, steps, rng, lr, betas, weight_decay):
    if not isinstance(rng, numpy.random.Generator):
        raise ValueError(f"rng is {type(rng).__name__}, expected a numpy Generator, such as np.random.default_rng(0).")
    if isinstance(steps, bool) or not isinstance(steps, (int, numpy.integer)) or steps < 1:
        raise ValueError(f"steps is {steps!r}, expected a positive whole number.")
    if not callable(lr) and not lr > 0:
        raise ValueError(f"lr is {lr!r}, expected a positive learning rate, such as 0.01.")
    if not weight_decay >= 0:
        raise ValueError(f"weight_decay is {weight_decay!r}, expected a number of at least 0.")
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas are {betas!r}, expected two numbers of at least 0 and below 1, such as (0.9, 0.999).")
    if not isinstance(params, dict) or not params:
        raise ValueError(f"params is {type(params).__name__} {params!r:.40}, expected a dict from name to array.")
    for name, value in params.items():
        if numpy.asarray(value).dtype not in (numpy.float32, numpy.float64):  # Adam's 1e-8 is zero in float16
            raise ValueError(f"parameter {name!r} has type {numpy.asarray(value).dtype}, expected float32 or float64.")


def _check_batch(drawn):
    if not isinstance(drawn, (tuple, list)):
        raise ValueError(
            f"batch(rng) returned {type(drawn).__name__}, expected a tuple of what the loss takes after params. "
            "One array is a tuple with a comma: (X,)."
        )
    return drawn


def _check_rate(rate, step):
    if not 0 <= rate < numpy.inf:
        raise ValueError(f"lr({step}) is {rate!r}, expected a learning rate of at least 0.")
    return rate


@contextlib.contextmanager
def _named(step, vectors, unpack):
    """An error over NaN or inf inside the loss, such as the softmax raises, gets the step and the largest parameter."""
    try:
        yield
    except ValueError as error:
        if "NaN" not in str(error):
            raise
        sizes = {name: numpy.abs(value).max(initial=0) for name, value in unpack(vectors).items()}
        largest = max(sizes, key=lambda name: numpy.nan_to_num(sizes[name], nan=numpy.inf))
        raise FloatingPointError(
            f"at step {step} the loss could not be computed: {error} The largest number in the parameters is "
            f"{sizes[largest]:.4g}, in {largest!r}. Lower lr, or look for what grows."
        ) from error


def _check_finite(step, value, gradients, unpack):
    bad = []
    if not all(numpy.isfinite(gradient).all() for gradient in gradients.values()):
        bad = [name for name, gradient in unpack(gradients).items() if not numpy.isfinite(gradient).all()]
    if bad or not numpy.isfinite(value):
        names = ", ".join(map(repr, bad[:3])) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
        where = f"the gradient of {names}" if bad else "the loss"
        raise FloatingPointError(
            f"at step {step} {where} is not finite (loss {float(value):.4g}). Lower lr, or look for a division by zero."
        )


class _Progress:
    """A progress bar in a live kernel. Only the widget's view is displayed, which stored outputs do not keep."""

    def __init__(self, steps, wanted):
        self.steps, self.widget = steps, None
        if wanted:
            from attn_utils.explore import show_widget

            self.widget = show_widget(self._make)

    def _make(self):
        import ipywidgets

        return ipywidgets.IntProgress(max=self.steps, description="training")

    def show(self, step, loss):
        if self.widget is not None and (step % max(1, self.steps // 50) == 0 or step == self.steps):
            self.widget.value = step
            self.widget.description = f"loss {loss:.3f}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.widget is not None:
            self.widget.close()
