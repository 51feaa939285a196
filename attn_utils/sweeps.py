"""Sweeps: one function over many seeds, sizes and rates, in turn or on any engine, kept as it goes."""

import contextlib
import itertools
import os
import random
import types

import numpy as np

from attn_utils.cells import Cells, case_key, in_words
from attn_utils.engines import Failed, describe, outcomes, what_failed
from attn_utils.fingerprints import name_of, reads
from attn_utils.inputs import check_switch
from attn_utils.progress import Progress

GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


class Results(list):
    """What a sweep found, in the order of its cases: a list, which also knows how it was made.

    cases     the cases, as plain dicts
    seconds   what the cases took on their workers, summed up; those that come from the store count as they did then
    engine    "in turn", or the executor in words
    """

    def __init__(self, values, cases, seconds, engine):
        super().__init__(values)
        self.cases, self.seconds, self.engine = cases, seconds, engine


def grid(**values):
    """All combinations of values as a list of cases: grid(seed=range(2), rate=[.1, .2]) has four, the last fastest.

    Raises ValueError for values in no order (a set, a dict) or a single one (a number, a text).
    """
    for name, steps in values.items():
        if isinstance(steps, (str, bytes, dict, set, frozenset)) or not np.iterable(steps):
            raise ValueError(f"{name} is {steps!r}, expected several values, such as {name}=[{steps!r}].")
    values = {name: list(steps) for name, steps in values.items()}
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]


def sweep(run, cases, executor=None, store=None, version=None, progress=True):
    """Call run(**case) for every case and return the results in the order of the cases.

    run        a function whose result depends on its arguments alone; randomness comes from a seed among them:
               rng = np.random.default_rng(seed), or default_rng([seed, 1]) for a second stream
    cases      dicts of plain values (numbers, strings, bools, None, tuples), no two alike: grid(seed=range(20), ...)
    executor   None: in turn. Or any concurrent.futures.Executor, which the caller opens and closes: a
               ThreadPoolExecutor, a ProcessPoolExecutor, or Dask's `distributed.Client(address).get_executor()`
    store      folder for finished cases, made when missing; running the same again goes on from there
    version    any text that stands for what run's result depends on and its code does not show, such as a file
    progress   show a bar in a live kernel, which leaves no trace in stored outputs; a line in a terminal

    Returns Results, a list that also has .cases, .seconds and .engine. The same whatever the engine finishes first,
    and to the last digit where BLAS has the same number of threads (OPENBLAS_NUM_THREADS); Dask gives its workers one.

    To processes run travels by value, with the functions and data of the notebook that it reads, so that what was
    defined in a notebook works with every start method, and is never an older definition that a worker still has.
    Large data do not belong among them: make or load them inside run. "spawn" is the safest start method where
    threads are running, as in a notebook: ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")).
    Dask's workers need attn_utils and what run imports. Tried with distributed 2026.8 and a local cluster of two
    workers, one of them killed in the middle: the same results as in turn.

    A case in the store is used when the case, run's code, all that this code reads, and the versions of the packages
    are the same (attn_utils/fingerprints.py); otherwise, or when its file is damaged, it is computed anew, which is
    printed. Files are written in one step, so that two sweeps may share a store.

    Errors: ValueError for cases that are alike or not plain, for another kind of executor, store or version, for a
    run that draws from a generator it shares with others (its results would depend on the order), for data too large
    to send. RuntimeError naming the case when run fails, when workers die, and when the store cannot be written to;
    finished cases stay in the store. A pool whose worker was killed is broken: nothing is tried again in it. Open
    another and call sweep again with the same store. Dask tries a case on other workers by itself, and gives up after
    distributed.scheduler.allowed-failures of them died. An interrupt (Ctrl-C, the stop button) cancels what has not
    begun and is raised again.
    """
    cases = _check_cases(cases)
    _check_run(run)
    _check_surroundings(executor, store, version)
    check_switch(progress, "progress")
    cells = Cells(run, cases, store, version)
    with Progress(len(cases), "sweep", cells.so_far(), progress) as bar, _told(cells):
        bar.show(len(cells.done), cells.so_far())
        with contextlib.closing(outcomes(executor, run, cases, cells.missing())) as found:
            for place, value, seconds in found:
                cells.keep(place, value, seconds)
                bar.show(len(cells.done), cells.so_far())
    values, seconds = zip(*(cells.done[place] for place in range(len(cases))), strict=True)
    return Results(values, cases, sum(seconds), describe(executor))


@contextlib.contextmanager
def _told(cells):
    """What ends a sweep early says which case it was and what is finished."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"Interrupted. {cells.kept()}")
        raise
    except Failed as failed:
        place, error = failed.args
        call = f"{cells.run_name}({in_words(cells.cases[place])})"
        raise RuntimeError(f"{what_failed(error, call)} {cells.kept()}") from error


# -------------------------------------------------------------------------- checks


def _check_cases(cases):
    """The cases as plain dicts. What is equal is written alike: NumPy's numbers become Python's."""
    if not np.iterable(cases):
        raise ValueError(f"cases is {cases!r:.80}, expected a list of dicts: grid(seed=range(20)).")
    checked, seen = [], set()
    for i, case in enumerate(cases):
        if not isinstance(case, dict) or not case or not all(isinstance(name, str) for name in case):
            raise ValueError(f"cases[{i}] is {case!r:.80}, expected a dict of run's arguments: grid(seed=range(20)).")
        checked.append({name: _plain(value, f"{name!r} of cases[{i}]") for name, value in case.items()})
        if case_key(checked[-1]) in seen:
            raise ValueError(
                f"cases hold {in_words(checked[-1])} twice, expected each once: one draw would count as two."
            )
        seen.add(case_key(checked[-1]))
    if not checked:
        raise ValueError("cases is empty, expected at least one dict of run's arguments: grid(seed=range(20)).")
    return checked


def _plain(value, name):
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) in (tuple, list):
        return type(value)(_plain(item, name) for item in value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError(
        f"{name} is a {type(value).__name__}, expected a plain value (number, string, bool, None, or a tuple of them), "
        "by which a case can be named, sent and stored. Pass a name, and look up or make the rest inside run."
    )


def _check_surroundings(executor, store, version):
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(
            f"executor is {executor!r:.60}, expected None, or an executor of concurrent.futures such as "
            "ThreadPoolExecutor(4)."
        )
    if store is not None and (not isinstance(store, (str, os.PathLike)) or not str(store).strip()):
        raise ValueError(f"store is {store!r}, expected the name of a folder, such as 'results', or None.")
    if version is not None and not isinstance(version, str):
        raise ValueError(
            f"version is {version!r:.60}, expected a text such as '2', which you change with what it stands for."
        )


def _check_run(run):
    if not callable(run):
        raise ValueError(f"run is a {type(run).__name__}, expected a function of one case's arguments.")
    for name, value in reads(run):
        owner = getattr(value, "__self__", value)  # draw = rng.normal is no better than rng
        held = vars(owner).values() if isinstance(value, types.MethodType) and hasattr(owner, "__dict__") else ()
        if any(isinstance(each, GENERATORS) for each in (owner, *held)):
            raise ValueError(
                f"{name_of(run)} draws from {name!r}, a generator that all cases share: its results would depend on "
                "their order. Make one inside it, from the case: rng = np.random.default_rng(seed)."
            )
