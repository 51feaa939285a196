"""Training in the open: Adam, and one loop that says what went wrong.

Losses are written with `import autograd.numpy as np` and the pieces of gradients.py.
"""

import contextlib

import numpy
from autograd import value_and_grad
from autograd.extend import SparseObject, defvjp, primitive, vspace
from autograd.tracer import getval, isbox

from attn_utils.inputs import check_function, check_params, check_rng, check_switch, real_number, whole_number
from attn_utils.progress import Progress


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
    Raises ValueError for bad arguments and for a loss that is no real number or does not depend on the parameters,
    FloatingPointError when the loss, a gradient or what was learned is not finite, or when the loss stops over NaN or
    inf of its own (naming the step and the parameter).

    Source: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter (2019) for the decay.
    """
    _check_functions(loss, batch, on_step)
    _check_fit(params, rng, lr, betas, weight_decay)
    steps, progress = whole_number(steps, "steps"), check_switch(progress, "progress")
    vectors, unpack = _pack(params)
    moments = {kind: (numpy.zeros_like(vector), numpy.zeros_like(vector)) for kind, vector in vectors.items()}
    step_loss = value_and_grad(lambda vectors, *drawn: _one_number(loss(unpack(vectors), *drawn)))
    losses = []
    often = max(1, steps // 50)  # a bar that moves at every step would take longer than the steps
    with Progress(steps, "training", wanted=progress) as bar:
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
                if step % often == 0 or step == steps:
                    bar.show(step, f"loss {losses[-1]:.3f}")
                if on_step is not None:
                    stop = on_step(step, unpack(vectors))
                    if isinstance(stop, (bool, numpy.bool_)) and stop:
                        break
        except KeyboardInterrupt:
            print(f"Interrupted after {len(losses)} of {steps} steps: returning what was learned so far.")
    learned = {name: value.copy() for name, value in unpack(vectors).items()}
    _check_learned(learned, len(losses))
    return learned, numpy.array(losses)


def _adam(value, gradient, m, v, step, lr, weight_decay, beta1, beta2, epsilon=1e-8):
    """One step of Adam: returns the new value; m and v, the running means, change in place."""
    m *= beta1
    m += (1 - beta1) * gradient
    v *= beta2
    v += (1 - beta2) * gradient**2
    direction = (m / (1 - beta1**step)) / (numpy.sqrt(v / (1 - beta2**step)) + epsilon)
    with numpy.errstate(over="ignore"):  # what is not finite is named at the next step, or at the end
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


def _check_fit(params, rng, lr, betas, weight_decay):
    check_rng(rng)
    if not callable(lr):
        real_number(lr, "lr", above=0, fix=", the learning rate, such as 0.01, or a function of the step")
    real_number(weight_decay, "weight_decay", low=0)
    if not isinstance(betas, (tuple, list)) or len(betas) != 2 or not all(map(_is_share, betas)):
        raise ValueError(f"betas are {betas!r}, expected two numbers of at least 0 and below 1, such as (0.9, 0.999).")
    check_params(params)
    for name, value in params.items():
        kind = value.dtype if hasattr(value, "dtype") else numpy.asarray(value).dtype
        if kind not in (numpy.float32, numpy.float64):  # Adam's 1e-8 is zero in float16
            raise ValueError(f"params hold {name!r} of type {kind}, expected float32 or float64. Convert it first.")
        if numpy.ma.is_masked(value) or not numpy.isfinite(value).all():
            raise ValueError(f"params hold {name!r} with NaN, inf or masked places, expected finite numbers to start.")


def _check_functions(loss, batch, on_step):
    check_function(loss, "loss", ", loss(params, *batch(rng)) -> one number")
    check_function(batch, "batch", ", batch(rng) -> tuple of arrays; lambda rng: () where the loss takes none")
    if on_step is not None:
        check_function(on_step, "on_step", ", on_step(step, params), or None")


def _is_share(beta):
    return isinstance(beta, (int, float, numpy.number)) and 0 <= beta < 1


def _check_batch(drawn):
    if not isinstance(drawn, (tuple, list)):
        raise ValueError(
            f"batch(rng) returned {type(drawn).__name__}, expected a tuple of what the loss takes after params. "
            "One array is a tuple with a comma: (X,)."
        )
    return drawn


def _one_number(loss):
    """What the loss returned, checked to be one real number that depends on the parameters."""
    if not isbox(loss):
        raise ValueError(
            f"loss returned {loss!r:.60}, expected one number that depends on params. Write it with autograd.numpy, "
            "and return it."
        )
    value = numpy.asarray(getval(loss))
    if value.ndim or value.dtype.kind != "f":
        raise ValueError(
            f"loss returned shape {value.shape} and type {value.dtype}, expected one real number, such as the mean."
        )
    return loss


def _check_learned(params, step):
    bad = [name for name, value in params.items() if not numpy.isfinite(value).all()]
    if bad:
        raise FloatingPointError(
            f"after step {step} {', '.join(map(repr, bad[:3]))} is not finite. Lower lr, or look for what grows."
        )


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
