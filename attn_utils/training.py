"""Training in the open: Adam, one loop, and gradients through autograd.

Losses are written with `import autograd.numpy as np`. The softmax and the cross-entropy carry gradients
derived by hand (chapter 2 derives the first), which is faster and stays finite where exp overflows.
"""

import numpy
from autograd import numpy as np
from autograd import value_and_grad
from autograd.extend import defvjp, primitive

from attn_utils.attention import softmax as _softmax


def _softmax_gradient(weights, scores, axis=-1):
    # J = diag(w) - w w^T, so J g = w * (g - <g, w>): no matrix is ever formed
    return lambda g: weights * (g - numpy.sum(g * weights, axis=axis, keepdims=True))


softmax = primitive(_softmax)
softmax.__doc__ = "attn_utils.softmax with its gradient: J g = w * (g - <g, w>), derived in chapter 2."
defvjp(softmax, _softmax_gradient)


def attend(Q, K, V, mask=None, scale=None):
    """attn_utils.attention for training: the same shapes and result, differentiable by autograd.

    Q (..., n_queries, d_k), K (..., n_keys, d_k), V (..., n_keys, d_v); mask True where a query may look;
    scale 1/sqrt(d_k) when None. Returns (output, weights).
    Inputs are not checked here, for speed: attn_utils.attention says what is wrong with a shape.
    """
    scale = 1 / numpy.sqrt(Q.shape[-1]) if scale is None else scale
    scores = (Q @ np.swapaxes(K, -1, -2)) * float(scale)  # (..., n_queries, n_keys)
    if mask is not None:
        scores = np.where(mask, scores, -numpy.inf)
    weights = softmax(scores)  # (..., n_queries, n_keys)
    return weights @ V, weights


@primitive
def cross_entropy(logits, targets):
    """Mean of -log softmax(logits)[target].

    logits (..., n_classes); targets, whole numbers of shape (...). Returns one number.
    """
    shifted = logits - numpy.max(logits, axis=-1, keepdims=True)
    log_total = numpy.log(numpy.sum(numpy.exp(shifted), axis=-1))  # (...)
    chosen = numpy.take_along_axis(shifted, numpy.asarray(targets)[..., None], axis=-1)[..., 0]  # (...)
    return numpy.mean(log_total - chosen)


def _cross_entropy_gradient(loss, logits, targets):
    def gradient(g):
        step = _softmax(logits)  # d loss / d logits = (softmax - one-hot) / n
        index = numpy.asarray(targets)[..., None]
        numpy.put_along_axis(step, index, numpy.take_along_axis(step, index, axis=-1) - 1, axis=-1)
        return step * (g / index.size).astype(step.dtype)

    return gradient


defvjp(cross_entropy, _cross_entropy_gradient, None)


def fit(loss, params, batch, steps, *, rng, lr=1e-2, weight_decay=0.0, on_step=None, progress=True):
    """Minimise a loss with Adam and return what was learned.

    loss          loss(params, *batch(rng)) -> one number, written with autograd.numpy
    params        dict from name to array; not changed, types (float32, float64) are kept
    batch         batch(rng) -> tuple of arrays, drawn anew at every step
    steps         number of steps
    rng           numpy.random.Generator, handed to batch
    lr            learning rate of Adam (betas .9 and .999)
    weight_decay  decoupled, as in AdamW: every step also shrinks the parameters by lr * weight_decay
    on_step       on_step(step, params), called after each step (from 1)
    progress      show a bar in a live kernel; it leaves no trace in stored outputs

    Returns (params, losses): the learned dict and an array (steps,) of the loss before each step.
    An interrupt (Ctrl-C, the stop button) returns what was learned so far.
    Raises ValueError for bad arguments, FloatingPointError when the loss or a gradient is not finite
    (naming the step and the parameter).

    Source: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter (2019) for the decay.
    """
    _check_fit(params, steps, rng, lr)
    params = {name: numpy.array(value) for name, value in params.items()}
    moments = {name: (numpy.zeros_like(value), numpy.zeros_like(value)) for name, value in params.items()}
    step_loss = value_and_grad(loss)
    losses = []
    with _Progress(steps, progress) as bar:
        try:
            for step in range(1, steps + 1):
                value, gradients = step_loss(params, *batch(rng))
                _check_finite(step, value, gradients)
                params, moments = _adam(params, gradients, moments, step, lr, weight_decay)
                losses.append(float(value))
                bar.show(step, losses[-1])
                if on_step is not None:
                    on_step(step, params)
        except KeyboardInterrupt:
            print(f"Interrupted after {len(losses)} of {steps} steps: returning what was learned so far.")
    return params, numpy.array(losses)


def _adam(params, gradients, moments, step, lr, weight_decay, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """One step of Adam for every parameter; returns new dicts."""
    new_params, new_moments = {}, {}
    for name, value in params.items():
        gradient, (m, v) = gradients[name].astype(value.dtype), moments[name]
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        direction = (m / (1 - beta1**step)) / (numpy.sqrt(v / (1 - beta2**step)) + epsilon)
        new_params[name] = (value - lr * (direction + weight_decay * value)).astype(value.dtype)
        new_moments[name] = (m, v)
    return new_params, new_moments


def _check_fit(params, steps, rng, lr):
    if not isinstance(rng, numpy.random.Generator):
        raise ValueError(f"rng is {type(rng).__name__}, expected a numpy Generator, such as np.random.default_rng(0).")
    if not isinstance(steps, (int, numpy.integer)) or steps < 1:
        raise ValueError(f"steps is {steps!r}, expected a positive whole number.")
    if not lr > 0:
        raise ValueError(f"lr is {lr!r}, expected a positive learning rate, such as 0.01.")
    for name, value in params.items():
        if numpy.asarray(value).dtype.kind != "f":
            raise ValueError(f"parameter {name!r} has type {numpy.asarray(value).dtype}, expected floating point.")


def _check_finite(step, value, gradients):
    bad = [name for name, gradient in gradients.items() if not numpy.isfinite(gradient).all()]
    if bad or not numpy.isfinite(value):
        where = f"the gradient of {', '.join(map(repr, bad))}" if bad else "the loss"
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
