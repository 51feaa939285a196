"""Where the cases of a sweep are computed: in turn, or on an executor of concurrent.futures."""

import contextlib
import functools
import io
import queue
import random
import signal
import sys
import threading
import time
import traceback
from concurrent import futures

import numpy as np

from attn_utils.fingerprints import name_of, reads
from attn_utils.progress import hidden_progress

MAX_SENT = 10_000_000  # bytes that travel to a worker with every case


class Failed(Exception):
    """A case failed: its place, and the error."""


class WorkerError(Exception):
    """An error of run in another process: its type and words, and its traceback as text."""

    def __str__(self):
        return "\n".join(self.args)


def outcomes(executor, run, cases, places):
    """Yield (place, value, seconds) for these places of the cases, as they are finished.

    executor   None for in turn, or an executor of concurrent.futures

    Raises Failed where a case does; on an executor what had begun by then is yielded before.
    What has not begun is canceled when the generator is closed.
    """
    return _in_turn(run, cases, places) if executor is None else _on(executor, run, cases, places)


def describe(executor):
    """An executor as "ProcessPoolExecutor, 2 workers", without the names of machines."""
    if executor is None:
        return "in turn"
    name = "Dask" if type(executor).__module__.startswith("distributed") else type(executor).__name__
    workers = getattr(executor, "_max_workers", None)
    return f"{name}, {workers} workers" if workers else name


def what_failed(error, call):
    """A sentence on the error of a case, which is given as a call."""
    if isinstance(error, futures.BrokenExecutor) or type(error).__name__ == "KilledWorker":  # the latter is Dask's
        return (
            f"A worker died ({type(error).__name__}), at {call} or beside it. Perhaps memory ran out: fewer workers "
            "need less. Perhaps it could not start: a script calls sweep under if __name__ == '__main__'. "
            "Open a new executor, and call sweep again."
        )
    what = error.args[0] if isinstance(error, WorkerError) else f"{type(error).__name__}: {error}"
    return f"{call} failed with {what.rstrip('.')}."


def _in_turn(run, cases, places):
    for place in places:
        try:
            outcome = _timed(run, cases[place])
        except Exception as error:
            raise Failed(place, error) from error
        yield place, *outcome


def _on(executor, run, cases, places):
    here = isinstance(executor, futures.ThreadPoolExecutor)
    call = functools.partial(_timed, run) if here else functools.partial(_timed_elsewhere, _packed(run))
    pending, errors = {}, {}
    try:
        with _uninterrupted():
            _submit(executor, call, cases, places, pending, errors)
        if not errors:
            yield from _finished(pending, errors)
        with _uninterrupted():
            for future in [future for future in pending if future.cancel()]:  # only after an error is there one left
                del pending[future]
        yield from _finished(pending, errors, to_the_end=True)
    finally:
        with _uninterrupted():
            for future in pending:
                future.cancel()
    if errors:
        raise Failed(min(errors), errors[min(errors)])


def _submit(executor, call, cases, places, pending, errors):
    """Hand the cases to the executor: pending gets future -> place, errors the place where the executor broke."""
    for place in places:
        try:
            pending[executor.submit(call, cases[place])] = place
        except futures.BrokenExecutor as error:
            errors[place] = error
            return


def _finished(pending, errors, to_the_end=False):
    """Yield what is finished and take it out of pending, until one fails; its error goes into errors."""
    arrived = queue.SimpleQueue()  # written in C: an interrupt while it waits leaves no lock behind
    with _uninterrupted():
        for future in pending:
            future.add_done_callback(arrived.put)
    for _ in range(len(pending)):
        future = arrived.get()
        place, error = pending.pop(future), _error(future)
        if isinstance(error, KeyboardInterrupt):  # Ctrl-C in a terminal reaches the workers, too
            raise error
        if error is None:
            yield place, *future.result()
        else:
            errors[place] = error
            if not to_the_end:
                return


@contextlib.contextmanager
def _uninterrupted():
    """Put off Ctrl-C to the end of the block. Inside concurrent.futures it can leave a lock held for good: a hang."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if came:
        signal.raise_signal(signal.SIGINT)


def _error(future):
    return futures.CancelledError("canceled by the executor") if future.cancelled() else future.exception()


def _timed(run, case):
    """The result of a case and its seconds. No bar is shown; a draw from a global generator is an error."""
    state, begin = _global_state(), time.perf_counter()
    with hidden_progress():
        value = run(**case)
    seconds = time.perf_counter() - begin
    if _global_state() != state:
        raise ValueError(
            "it draws from the global generator of NumPy or Python, so that its result depends on the order. "
            "Use rng = np.random.default_rng(seed) and rng.normal(...) instead of np.random.normal(...)."
        )
    return value, seconds


def _global_state():
    name, key, *rest = np.random.get_state()  # noqa: NPY002 - to see that nobody uses it
    return name, key.tobytes(), *rest, random.getstate()


def _packed(run):
    """A function as bytes, with what it reads of a notebook."""
    try:
        packed = _dumps(run)
    except Exception as error:
        raise ValueError(
            f"{name_of(run)} cannot be sent to other processes ({error}). It reads something that lives in this one "
            "only, such as an open file: make that inside it."
        ) from error
    if len(packed) > MAX_SENT:
        sizes = {name: len(_dumps(value)) for name, value in reads(run)[1:] if not callable(value)}
        largest = max(sizes, key=sizes.get, default="what it reads")
        raise ValueError(
            f"{name_of(run)} would be sent with {len(packed) / 1e6:.0f} MB for every case ({largest!r} above all), at "
            f"most {MAX_SENT / 1e6:.0f} are allowed. Load or make the data inside it."
        )
    return packed


def _dumps(value):
    import cloudpickle

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, value):
            # cloudpickle would send the mere name of a notebook's function with a cache
            if isinstance(value, functools._lru_cache_wrapper) and value.__module__ == "__main__":
                return _cached, (value.__wrapped__, value.cache_parameters())
            # and a copy of a primitive of autograd, which says that it comes from there: a copy has no gradient
            if getattr(value, "_is_autograd_primitive", False) and (home := _home(value)):
                return getattr, (home, value.__name__)
            return super().reducer_override(value)

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    return buffer.getvalue()


def _home(function):
    """The module that another process finds a function in under its name, or None: a notebook is none."""
    modules = [module for module in list(sys.modules.values()) if getattr(module, "__name__", "__main__") != "__main__"]
    return next((each for each in modules if getattr(each, "__dict__", {}).get(function.__name__) is function), None)


def _cached(function, parameters):
    return functools.lru_cache(**parameters)(function)


@functools.lru_cache(maxsize=4)
def _unpacked(packed):
    import cloudpickle

    return cloudpickle.loads(packed)


def _timed_elsewhere(packed, case):
    """As _timed, in another process. Errors go back as text: those of a notebook's own kind do not travel."""
    try:
        return _timed(_unpacked(packed), case)
    except Exception as error:
        raise WorkerError(f"{type(error).__name__}: {error}", traceback.format_exc()) from None
