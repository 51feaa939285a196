"""sweep(): in order, independent of the engine, resumable, honest about what it reuses."""

import errno
import functools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent import futures
from pathlib import Path

import numpy as np
import pytest

from attn_utils.engines import MAX_SENT
from attn_utils.progress import Progress
from attn_utils.sweeps import grid, sweep

ROOT = Path(__file__).parents[1]
CALLS = []
SCALE = 2.0
RNG = np.random.default_rng(0)


def draw(seed, n):
    """Larger cases come first and take longer, so that an engine finishes them last."""
    rng = np.random.default_rng([seed, n])
    A = rng.normal(size=(n, n)).astype(np.float32)
    return {"values": np.linalg.svd(A @ A.T, compute_uv=False), "mean": float(A.mean()), "n": n}


def count(seed):
    CALLS.append(seed)
    return SCALE * seed


def fails_at_three(seed):
    CALLS.append(seed)
    if seed == 3:
        raise ArithmeticError("no third draw")
    return seed


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def same(a, b):
    assert list(a) == list(b) and all(a[key] == b[key] for key in ("mean", "n"))
    assert a["values"].dtype == b["values"].dtype == np.float32
    np.testing.assert_array_equal(a["values"], b["values"])


def spawn(workers=2):
    return futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


# ------------------------------------------------------------------------- the cases


def test_grid_takes_all_combinations_the_last_fastest():
    assert grid(seed=range(2), rate=[0.1, 0.2]) == [
        {"seed": 0, "rate": 0.1},
        {"seed": 0, "rate": 0.2},
        {"seed": 1, "rate": 0.1},
        {"seed": 1, "rate": 0.2},
    ]
    for steps in (3, "relu", b"relu", {1, 2}, {"a": 1}):
        with pytest.raises(ValueError, match=r"seed=\["):
            grid(seed=steps)


def test_numpy_numbers_in_a_case_become_pythons():
    found = sweep(
        lambda seed, rate: (type(seed), type(rate)), grid(seed=np.arange(2), rate=np.array([0.5], np.float32))
    )
    assert found == [(int, float)] * 2


@pytest.mark.parametrize(
    "cases, said",
    [
        ([], "empty"),
        (None, "cases is None, expected a list"),
        (3, "cases is 3"),
        ({"seed": [1, 2]}, r"cases\[0\] is 'seed'.*grid"),
        ([{}], "expected a dict"),
        ([{1: 2}], "expected a dict"),
        ([{"seed": np.arange(3)}], "'seed' of cases.0. is a ndarray"),
        ([{"f": abs}], "Pass a name"),
        ([{"seed": 1}, {"seed": 2}, {"seed": np.int64(1)}], "cases hold seed=1 twice"),
    ],
)
def test_cases_that_make_no_sense_are_refused(cases, said):
    with pytest.raises(ValueError, match=said):
        sweep(count, cases)
    assert CALLS == []


def test_one_and_true_and_one_point_are_three_cases():
    assert len(sweep(lambda x: x, grid(x=[1, 1.0, True]))) == 3


# ------------------------------------------------------------------- order and engines


def test_every_engine_finds_the_same_in_the_order_of_the_cases():
    cases = grid(n=[90, 30, 5], seed=range(3))
    in_turn = sweep(draw, cases)
    assert [found["n"] for found in in_turn] == [90] * 3 + [30] * 3 + [5] * 3
    backward = sweep(draw, cases[::-1])[::-1]
    with futures.ThreadPoolExecutor(3) as threads, spawn() as processes:
        for others in (backward, sweep(draw, cases, threads), sweep(draw, cases, processes)):
            for ours, theirs in zip(in_turn, others, strict=True):
                same(ours, theirs)


class Shuffled(futures.Executor):
    """Finishes what was submitted in another order, all at once."""

    def __init__(self, seed):
        self.rng, self.waiting, self._max_workers = np.random.default_rng(seed), [], 1

    def submit(self, function, *args):
        self.waiting.append((futures.Future(), function, args))
        if len(self.waiting) == 12:
            for i in self.rng.permutation(12):
                future, function, args = self.waiting[i]
                future.set_result(function(*args))
        return self.waiting[-1][0]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_finishing_does_not_matter(seed):
    assert sweep(count, grid(seed=range(12)), Shuffled(seed)) == [2.0 * i for i in range(12)]


def test_results_know_how_they_were_made():
    found = sweep(count, grid(seed=range(3)))
    assert found == [0.0, 2.0, 4.0] and found.cases == grid(seed=range(3)) and found.engine == "in turn"
    assert found.seconds >= 0
    with futures.ThreadPoolExecutor(2) as threads:
        assert sweep(count, grid(seed=range(3)), threads).engine == "ThreadPoolExecutor, 2 workers"


def test_a_generator_that_cases_share_is_refused():
    for run in (
        lambda seed: RNG.normal(),
        functools.partial(lambda seed, rng: rng.normal(), rng=np.random.default_rng(1)),
        functools.partial(lambda seed, draw: draw(), draw=RNG.normal),
        lambda seed, rng=RNG: rng.normal(),
        lambda seed: [RNG.normal() for _ in range(2)],
    ):
        with pytest.raises(ValueError, match=r"draws from .* a generator that all cases share.*default_rng\(seed\)"):
            sweep(run, grid(seed=range(2)))


class Draws:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def draw(self, seed):
        return self.rng.normal()


def test_a_generator_that_an_object_keeps_is_refused():
    with pytest.raises(ValueError, match="a generator that all cases share"):
        sweep(Draws().draw, grid(seed=range(2)))


def test_a_draw_from_a_global_generator_is_refused():
    for run in (lambda seed: np.random.normal(), lambda seed: random.random()):  # noqa: NPY002
        with pytest.raises(RuntimeError, match=r"seed=0.*global generator"):
            sweep(run, grid(seed=range(2)))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"executor": 3}, "executor is 3, expected None, or an executor"),
        ({"store": ""}, "store is '', expected the name of a folder"),
        ({"store": 3}, "store is 3"),
        ({"version": 3}, "version is 3, expected a text"),
    ],
)
def test_other_surroundings_are_refused(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        sweep(count, grid(seed=[1]), **options)
    assert CALLS == [] and list(tmp_path.iterdir()) == []


NOTEBOOK = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache
import numpy as np
from attn_utils import softmax
from attn_utils.sweeps import grid, sweep

POWER = 2
@cache
def table(n):
    return np.arange(n, dtype=float)
def helper(x):
    return softmax(table(3) * x ** POWER)[-1]
def run(seed):
    return helper(seed)
class Own(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")
def fails(seed):
    raise Own("one", "two")
def now(value):
    def run(seed):
        return value
    return run
for method in ("fork", "spawn", "forkserver"):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        POWER = 2
        assert sweep(run, grid(seed=range(4)), pool) == sweep(run, grid(seed=range(4)))
        POWER = 3
        def helper(x):
            return 10 * x ** POWER
        assert sweep(run, grid(seed=range(4)), pool) == [0, 10, 80, 270], "an older definition was used"
        try:
            sweep(fails, grid(seed=[5]), pool)
        except RuntimeError as error:
            assert "fails(seed=5) failed with Own: one and two" in str(error), error
            assert "line" in str(error.__cause__)
        else:
            raise AssertionError
        def helper(x):
            return softmax(table(3) * x ** POWER)[-1]
print("fine")
"""


def test_functions_of_a_notebook_travel_with_every_start_method():
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    assert (
        "".join(
            output.text
            for output in book.cells[0].outputs
            if output.output_type == "stream" and output.name == "stdout"
        )
        == "fine\n"
    )


def test_data_too_large_to_travel_are_named():
    big = np.zeros(MAX_SENT // 8 + 1)
    with spawn(1) as pool, pytest.raises(ValueError, match=r"10 MB for every case \('big' above all\).*inside it"):
        sweep(lambda seed: big[seed], grid(seed=range(2)), pool)
    with futures.ThreadPoolExecutor(1) as threads:
        assert sweep(lambda seed: big[seed], grid(seed=range(2)), threads) == [0, 0]


def test_what_cannot_travel_is_said(tmp_path):
    with open(tmp_path / "file", "w") as file, spawn(1) as pool:
        with pytest.raises(ValueError, match="cannot be sent to other processes.*open file"):
            sweep(lambda seed: file.name, grid(seed=[1]), pool)


# --------------------------------------------------------------------------- the store


def test_a_second_run_takes_everything_from_the_store(tmp_path, capsys):
    cases = grid(n=[4, 3], seed=range(2))
    first = sweep(draw, cases, store=tmp_path / "new" / "store")
    again = sweep(draw, cases, store=tmp_path / "new" / "store")
    for ours, theirs in zip(first, again, strict=True):
        same(ours, theirs)
    assert again.seconds == first.seconds  # of then
    sweep(count, grid(seed=range(3)), store=tmp_path)
    CALLS.clear()
    assert sweep(count, grid(seed=range(5)), store=tmp_path) == [0, 2, 4, 6, 8] and CALLS == [3, 4]
    assert capsys.readouterr().out == ""


def test_other_code_or_data_are_computed_anew_and_said(tmp_path, capsys, monkeypatch):
    sweep(count, grid(seed=range(3)), store=tmp_path)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    CALLS.clear()  # count reads it, too
    assert sweep(count, grid(seed=range(3)), store=tmp_path) == [0, 3, 6]
    CALLS.clear()
    assert "3 of the cases" in (said := capsys.readouterr().out) and "seed=0: it was made by other code" in said
    sweep(count, grid(seed=range(3)), store=tmp_path)
    assert CALLS == []
    sweep(count, grid(seed=range(3)), store=tmp_path, version="new table")
    assert CALLS == [0, 1, 2]


DAMAGES = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "edited": lambda text: text.replace('"value": 2.0', '"value": 7.0'),
    "not a record": lambda text: "[1, 2]",
    "binary": lambda text: "\0" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_computed_anew(tmp_path, capsys, damage):
    sweep(count, grid(seed=range(3)), store=tmp_path)
    (path,) = [path for path in tmp_path.iterdir() if json.loads(path.read_text())["record"]["case"] == {"seed": 1}]
    text = path.read_text()
    path.write_text(damage(text))
    assert path.read_text() != text
    CALLS.clear()
    assert sweep(count, grid(seed=range(3)), store=tmp_path) == [0, 2, 4] and CALLS == [1]
    assert "seed=1" in capsys.readouterr().out
    CALLS.clear()
    assert sweep(count, grid(seed=range(3)), store=tmp_path) == [0, 2, 4] and CALLS == []


def test_a_file_in_the_place_of_another_case_is_not_taken(tmp_path):
    sweep(count, grid(seed=range(2)), store=tmp_path)
    one, two = sorted(tmp_path.iterdir())
    one.write_text(two.read_text())
    CALLS.clear()
    assert sweep(count, grid(seed=range(2)), store=tmp_path) == [0, 2] and len(CALLS) == 1


def test_a_store_that_is_a_file_and_a_result_that_no_file_holds_are_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="a file or below one, expected a folder"):
        sweep(count, grid(seed=[1]), store=tmp_path / "file")
    with pytest.raises(ValueError, match="below one, expected a folder"):
        sweep(count, grid(seed=[1]), store=tmp_path / "file" / "inner")
    with pytest.raises(TypeError, match=r"result of <lambda>\(seed=1\).*type object cannot be kept"):
        sweep(lambda seed: object(), grid(seed=[1]), store=tmp_path)
    assert not list(tmp_path.glob(".*"))


KILLED = """
import os, sys, time
from attn_utils.sweeps import grid, sweep
def run(seed):
    if seed == 2 and sys.argv[1] == "die":
        os.kill(os.getpid(), 9)
    print("ran", seed)
    return seed * 0.1
print(sweep(run, grid(seed=range(4)), store=STORE))
"""


def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KILLED.replace("STORE", repr(str(tmp_path / "store"))))
    runs = [
        subprocess.run([sys.executable, "-u", script, arg], capture_output=True, text=True) for arg in ("die", "go")
    ]
    assert runs[0].returncode == -signal.SIGKILL and runs[0].stdout == "ran 0\nran 1\n"
    assert runs[1].stdout == f"ran 2\nran 3\n{[seed * 0.1 for seed in range(4)]}\n", runs[1].stderr


def test_two_sweeps_may_share_a_store(tmp_path):
    with futures.ThreadPoolExecutor(2) as both, futures.ThreadPoolExecutor(4) as threads:
        tasks = [both.submit(sweep, draw, grid(n=[6], seed=range(20)), threads, tmp_path) for _ in range(2)]
        one, two = (task.result() for task in tasks)
    for ours, theirs in zip(one, two, strict=True):
        same(ours, theirs)
    assert len(list(tmp_path.iterdir())) == 20


def test_what_a_killed_process_left_half_written_is_removed_once_it_is_old(tmp_path):
    old, young = tmp_path / ".count-1-x.part", tmp_path / ".count-2-x.part"
    for part in (old, young):
        part.write_text("{")
    os.utime(old, (1, 1))
    sweep(count, grid(seed=[1]), store=tmp_path)
    assert not old.exists() and young.exists()  # the young one may be another sweep's


# ------------------------------------------------------------------------------ errors


def test_a_failing_case_is_named_and_the_finished_ones_are_kept(tmp_path):
    with pytest.raises(
        RuntimeError, match=r"fails_at_three\(seed=3\) failed with ArithmeticError: no third draw\. 3 of 6"
    ) as caught:
        sweep(fails_at_three, grid(seed=range(6)), store=tmp_path)
    assert isinstance(caught.value.__cause__, ArithmeticError) and len(list(tmp_path.iterdir())) == 3
    with pytest.raises(RuntimeError, match="3 of 6 cases are finished and lost: with store=FOLDER"):
        sweep(fails_at_three, grid(seed=range(6)))


def test_on_an_executor_what_has_begun_is_kept_and_the_rest_is_canceled(tmp_path):
    with futures.ThreadPoolExecutor(1) as threads:
        with pytest.raises(RuntimeError, match=r"fails_at_three\(seed=3\).*ArithmeticError"):
            sweep(fails_at_three, grid(seed=range(400)), threads, store=tmp_path)
    kept = sorted(json.loads(path.read_text())["record"]["case"]["seed"] for path in tmp_path.iterdir())
    assert kept == sorted(set(CALLS) - {3}), "what was computed was not kept"
    with spawn(1) as pool, pytest.raises(RuntimeError, match=r"\(seed=3\) failed with ArithmeticError: no third draw"):
        sweep(fails_at_three, grid(seed=range(6)), pool)


class NeverStarts(futures.Executor):
    """The first case fails, the others wait for ever, as on a cluster without workers. They can be canceled."""

    def __init__(self):
        self.all = []

    def submit(self, function, *args):
        self.all.append(futures.Future())
        if len(self.all) == 1:
            self.all[0].set_exception(ArithmeticError("at once"))
        return self.all[-1]


def test_a_failure_does_not_wait_for_what_never_begins():
    executor = NeverStarts()
    with pytest.raises(RuntimeError, match=r"seed=0\) failed with ArithmeticError: at once"):
        sweep(count, grid(seed=range(4)), executor)
    assert [future.cancelled() for future in executor.all] == [False, True, True, True]


def dies_at_two(seed, flag):
    if seed == 2 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return seed


def test_a_killed_worker_is_said_and_the_same_sweep_goes_on(tmp_path):
    cases = grid(seed=range(4), flag=[str(tmp_path / "flag")])
    with spawn(1) as pool, pytest.raises(RuntimeError, match="A worker died .BrokenProcessPool.*Open a new executor"):
        sweep(dies_at_two, cases, pool, store=tmp_path / "store")
    with spawn(1) as pool:
        assert sweep(dies_at_two, cases, pool, store=tmp_path / "store") == [0, 1, 2, 3]


def test_an_interrupt_keeps_what_is_finished(tmp_path, capsys):
    def interrupted(seed):
        if seed == 2:
            raise KeyboardInterrupt
        return seed

    with pytest.raises(KeyboardInterrupt):
        sweep(interrupted, grid(seed=range(4)), store=tmp_path)
    assert capsys.readouterr().out.startswith("Interrupted. 2 of 4 cases are finished and kept in")
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupt_cancels_what_has_not_begun():
    """Many times, because it may come while the sweep holds locks of concurrent.futures: that used to hang."""
    import _thread

    for late in range(40):
        called = []

        def interrupting(seed, late=late, called=called):
            if seed == late:
                _thread.interrupt_main()
            called.append(seed)
            time.sleep(0.001 * (seed > late))

        with futures.ThreadPoolExecutor(1) as threads, pytest.raises(KeyboardInterrupt):
            sweep(interrupting, grid(seed=range(1000)), threads)
        assert len(called) < 1000


def test_an_interrupt_waits_until_no_lock_is_held():
    """Raised inside concurrent.futures it may leave a lock taken, and the pool then never ends."""

    class Interrupted(futures.ThreadPoolExecutor):
        handed = 0

        def submit(self, *call):
            signal.raise_signal(signal.SIGINT)
            future = super().submit(*call)
            self.handed += 1
            return future

    before = signal.getsignal(signal.SIGINT)
    with Interrupted(1) as threads, pytest.raises(KeyboardInterrupt):
        sweep(lambda seed: seed, grid(seed=range(5)), threads)
    assert threads.handed == 5 and signal.getsignal(signal.SIGINT) is before


def test_run_must_be_a_function():
    with pytest.raises(ValueError, match="run is a int, expected a function"):
        sweep(3, grid(seed=[1]))


# ---------------------------------------------------------------------------- progress


def test_a_terminal_sees_how_far_it_is_and_nothing_else_does(capsys, monkeypatch):
    sweep(count, grid(seed=range(2)))
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    sweep(count, grid(seed=range(2)))
    out, err = capsys.readouterr()
    assert out == "" and "sweep: 1 of 2" in err and err.endswith("sweep: 2 of 2\n")
    sweep(count, grid(seed=range(2)), progress=False)
    assert capsys.readouterr() == ("", "")


def test_what_runs_inside_a_sweep_shows_no_bar_of_its_own(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    def run(seed):
        with Progress(3, "inner", "inner line") as bar:
            bar.show(3, "inner label")

    with futures.ThreadPoolExecutor(2) as threads:
        for executor in (None, threads):
            sweep(run, grid(seed=range(2)), executor)
    assert "inner" not in capsys.readouterr().err
    with Progress(3, "outer", "outer line"):
        assert "outer line" in capsys.readouterr().err


def test_in_a_kernel_a_sweep_shows_a_bar_that_is_not_stored(tmp_path):
    import asyncio

    import nbformat
    from execute_notebooks import run_all

    code = textwrap.dedent(
        """
        from attn_utils.sweeps import grid, sweep
        print(sweep(lambda seed: seed, grid(seed=range(3))))
        """
    )
    path = tmp_path / "01_sweeps.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), path)
    assert not asyncio.run(run_all([path], 60, 1))
    outputs = nbformat.read(path, as_version=4).cells[0].outputs
    assert [(output.output_type, output.text) for output in outputs] == [("stream", "[0, 1, 2]\n")]


@pytest.mark.parametrize("where", ["mkdir", "replace"])
def test_a_store_that_cannot_be_written_to_is_named(tmp_path, monkeypatch, where):
    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, where, refuse)
    with pytest.raises(RuntimeError, match="store is .*cannot be written to .Read-only.*Choose another one"):
        sweep(lambda seed: seed, grid(seed=range(2)), store=tmp_path / "store")


def test_a_read_only_store_serves_what_it_holds(tmp_path, monkeypatch):
    def found():
        return sweep(draws, grid(seed=range(2)), store=tmp_path)

    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = found()
    monkeypatch.setattr(os, "replace", refuse)
    assert found() == before


def draws(seed):
    return seed
