"""The training loop: Adam, interrupts, what it names when a loss is not finite, and its progress bar."""

import _thread
import asyncio

import autograd.numpy as anp
import numpy as np
import pytest

from attn_utils.gradients import (
    attend,
    squared_error,
)
from attn_utils.training import fit

RNG = np.random.default_rng(0)


def bowl(params, centre):
    return anp.sum((params["x"] - centre) ** 2)


def constant_batch(rng):
    return (np.array([1.0, -2.0]),)


def test_fit_finds_the_minimum_and_changes_nothing_else():
    start = {"x": np.zeros(2)}
    params, losses = fit(bowl, start, constant_batch, 500, rng=RNG, lr=0.05, progress=False)
    np.testing.assert_allclose(params["x"], [1, -2], atol=1e-2)
    assert losses.shape == (500,) and losses[0] == 5 and losses[-1] < 1e-3 and (start["x"] == 0).all()


def test_adam_equals_its_definition():
    """Three steps against algorithm 1 of Kingma and Ba (2015), written out, with the decay of AdamW."""
    x, m, v = np.array([0.5, -1.0]), 0, 0
    for t in (1, 2, 3):
        g = 2 * (x - [1.0, -2.0])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - 0.1 * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + 0.01 * x)
    start = {"x": np.array([0.5, -1.0])}
    params, _ = fit(bowl, start, constant_batch, 3, rng=RNG, lr=0.1, weight_decay=0.01, progress=False)
    np.testing.assert_allclose(params["x"], x, rtol=1e-12)


def test_fit_keeps_types_repeats_and_calls_back():
    seen = []
    runs = [
        fit(
            bowl,
            {"x": np.zeros(2, np.float32)},
            lambda rng: (rng.normal(size=2).astype(np.float32),),
            5,
            rng=np.random.default_rng(3),
            on_step=lambda step, params: seen.append((step, params["x"].copy())),
        )
        for _ in range(2)
    ]
    assert runs[0][0]["x"].dtype == np.float32 and (runs[0][1] == runs[1][1]).all()
    assert [step for step, _ in seen] == [1, 2, 3, 4, 5] * 2 and not (seen[0][1] == seen[4][1]).all()


def test_fit_stops_when_it_is_told():
    seen = []
    stop = lambda step, params: seen.append(step) or step == 4  # noqa: E731
    params, losses = fit(bowl, {"x": np.zeros(2)}, constant_batch, 50, rng=RNG, on_step=stop, progress=False)
    assert seen == [1, 2, 3, 4] and losses.shape == (4,) and params["x"][0] > 0


def test_fit_takes_a_schedule_and_betas():
    """Two steps against the definition, the rate halved at the second."""
    x, m, v = np.array([0.5, -1.0]), 0, 0
    for t, rate in ((1, 0.1), (2, 0.05)):
        g = 2 * (x - [1.0, -2.0])
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
        x = x - rate * m / (1 - 0.8**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8)
    options = {"lr": lambda step: 0.1 / step, "betas": (0.8, 0.95), "progress": False}
    params, _ = fit(bowl, {"x": np.array([0.5, -1.0])}, constant_batch, 2, rng=RNG, **options)
    np.testing.assert_allclose(params["x"], x, rtol=1e-12)


def test_an_interrupt_returns_what_was_learned(capsys):
    def interrupt(step, params):
        if step == 3:
            _thread.interrupt_main()

    params, losses = fit(bowl, {"x": np.zeros(2)}, constant_batch, 10**6, rng=RNG, on_step=interrupt)
    assert 3 <= len(losses) < 100 and params["x"][0] > 0
    assert "Interrupted" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_not_finite_stops_and_names_the_step():
    with pytest.raises(FloatingPointError, match="step 1.*'x'"):
        fit(lambda p: anp.sum(anp.log(p["x"])), {"x": np.array([0.0])}, lambda rng: (), 5, rng=RNG)
    with pytest.raises(FloatingPointError, match="step 1 the loss"):
        fit(lambda p: anp.sum(p["x"]) + np.inf, {"x": np.zeros(1)}, lambda rng: (), 5, rng=RNG)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"rng": 3}, "rng"),
        ({"lr": 0}, "lr"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"betas": (0.9,)}, "betas"),
        ({"params": {"x": np.arange(3)}}, "'x'"),
        ({"params": {"x": np.zeros(3, np.float16)}}, "'x'"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"loss": bowl, "params": {"x": np.zeros(2)}, "batch": constant_batch, "steps": 3, "rng": RNG} | change
    with pytest.raises(ValueError, match=message):
        fit(**arguments)


@pytest.mark.parametrize(
    "loss, message",
    [
        (lambda p: np.nan, "loss returned nan, expected one number that depends on params"),
        (lambda p: 3.0, "loss returned 3.0"),
        (lambda p: None, "loss returned None"),
        (lambda p: "low", "loss returned 'low'"),
        (lambda p: p["x"], r"loss returned shape \(2,\)"),
        (lambda p: p["x"][:1], r"loss returned shape \(1,\)"),
        (lambda p: anp.sum(p["x"]) * 1j, "type complex128, expected one real number"),
    ],
)
def test_a_loss_that_is_no_number_of_the_parameters_is_named(loss, message):
    with pytest.raises(ValueError, match=message):
        fit(loss, {"x": np.zeros(2)}, lambda rng: (), 2, rng=RNG)


def test_nan_in_the_loss_is_named_at_whatever_step_it_comes():
    for step in (1, 2, 3):  # the parameter goes down by lr at each step
        with pytest.raises(FloatingPointError, match=f"at step {step} the"):
            fit(lambda p, end=step: anp.where(p["x"][0] < -0.1 * (end - 1) + 0.05, np.nan, p["x"][0]),
                {"x": np.zeros(1)}, lambda rng: (), 3, rng=RNG, lr=0.1)  # fmt: skip


def test_what_the_last_step_makes_infinite_is_not_handed_back():
    with pytest.raises(FloatingPointError, match="after step 1 'x' is not finite. Lower lr"):
        fit(lambda p: anp.sum(p["x"]), {"x": np.zeros(2, np.float32)}, lambda rng: (), 1, rng=RNG, lr=1e39)


def test_numpys_true_stops_too():
    params, losses = fit(
        bowl, {"x": np.zeros(2)}, constant_batch, 50, rng=RNG, on_step=lambda step, p: np.bool_(step == 4)
    )
    assert len(losses) == 4


def test_fit_packs_types_and_shapes_of_every_kind():
    """Numbers, empty arrays, two types, an array that is a transposed view, and one that the loss does not use."""
    start = {
        "number": np.float32(2.0),
        "empty": np.zeros((0, 3)),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "unused": np.ones(3, np.float32),
        "single": np.ones((1, 2), np.float32),
    }
    kept = {name: np.array(value) for name, value in start.items()}

    def loss(p):
        return p["number"] ** 2 + anp.sum(p["turned"] ** 2) + anp.sum(p["single"] ** 2) + anp.sum(p["empty"])

    params, losses = fit(loss, start, lambda rng: (), 3, rng=RNG, progress=False)
    for name, value in kept.items():
        assert params[name].shape == value.shape and params[name].dtype == value.dtype
        assert (np.asarray(start[name]) == value).all()
    assert (params["unused"] == 1).all() and losses[-1] < losses[0]
    assert not np.shares_memory(params["turned"], params["empty"])
    assert params["unused"].base is None and params["single"].base is None  # no views of one long vector


def test_many_parameters_train_as_each_would_alone():
    start = {name: RNG.normal(size=(2, 3)).astype(kind) for name, kind in zip("abcd", ["f4", "f8", "f4", "f8"])}  # noqa: B905
    loss = lambda p: sum(anp.sum((value - 1) ** 2) for value in p.values())  # noqa: E731
    together, _ = fit(loss, start, lambda rng: (), 10, rng=RNG, progress=False)
    for name, value in start.items():
        alone, _ = fit(loss, {name: value}, lambda rng: (), 10, rng=RNG, progress=False)
        np.testing.assert_array_equal(together[name], alone[name])


def test_parameters_seen_at_a_step_stay_as_they_were():
    seen = []
    fit(bowl, {"x": np.zeros(2)}, constant_batch, 3, rng=RNG, on_step=lambda s, p: seen.append(p["x"]), progress=False)
    copies = [value.copy() for value in seen]
    fit(bowl, {"x": np.zeros(2)}, constant_batch, 3, rng=RNG, progress=False)
    assert len({tuple(value) for value in seen}) == 3
    assert all((a == b).all() for a, b in zip(seen, copies, strict=True))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_is_named_among_many_parameters():
    start = {"fine": np.ones(2, np.float32), "at fault": np.zeros(2, np.float32), "other": np.ones(2)}
    loss = lambda p: anp.sum(p["fine"]) + anp.sum(anp.sqrt(p["at fault"])) + anp.sum(p["other"])  # noqa: E731
    with pytest.raises(FloatingPointError, match="at step 1 the gradient of 'at fault' is not finite"):
        fit(loss, start, lambda rng: (), 5, rng=RNG, progress=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_diverging_attention_is_named_with_its_step_and_largest_parameter():
    def loss(p, X):
        return anp.sum(attend(X @ p["W"], X @ p["W"], X)[0] ** 2) + 0 * anp.sum(p["calm"])

    start = {"calm": np.ones(2, np.float32), "W": np.ones((2, 2), np.float32)}
    with pytest.raises(FloatingPointError, match="at step [23] the loss could not be computed.*NaN.*in 'W'"):
        fit(loss, start, lambda rng: (np.eye(3, 2, dtype=np.float32),), 9, rng=RNG, lr=1e30, progress=False)


def test_other_errors_of_the_loss_pass_through_unchanged():
    with pytest.raises(ValueError, match="^expected the same|^output has shape"):
        fit(lambda p: squared_error(p["x"], np.ones(3)), {"x": np.zeros(2)}, lambda rng: (), 5, rng=RNG, progress=False)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": True}, "steps"),
        ({"params": {}}, "params is dict"),
        ({"params": [np.zeros(2)]}, "params is list"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"weight_decay": np.nan}, "weight_decay"),
        ({"batch": lambda rng: np.ones((2, 2))}, "comma"),
        ({"lr": lambda step: -0.1}, r"lr\(1\) is -0.1"),
        ({"lr": lambda step: np.nan}, r"lr\(1\) is nan"),
    ],
)
def test_more_bad_arguments(change, message):
    arguments = {"loss": bowl, "params": {"x": np.zeros(2)}, "batch": constant_batch, "steps": 3, "rng": RNG} | change
    with pytest.raises(ValueError, match=message):
        fit(**arguments, progress=False)


def test_an_interrupt_inside_the_loss_returns_what_was_learned(capsys):
    calls = []

    def loss(params, centre):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return bowl(params, centre)

    params, losses = fit(loss, {"x": np.zeros(2)}, constant_batch, 10, rng=RNG, progress=False)
    assert losses.shape == (3,) and params["x"][0] > 0
    assert "after 3 of 10" in capsys.readouterr().out
    again, losses = fit(bowl, {"x": np.zeros(2)}, constant_batch, 3, rng=RNG, progress=False)  # autograd is in order
    np.testing.assert_array_equal(again["x"], params["x"])


def test_a_stored_notebook_keeps_no_trace_of_the_progress_bar(tmp_path):
    """A cell that trains, executed as the chapters are."""
    import nbformat
    from execute_notebooks import run_all

    code = (
        "import numpy as np\nfrom attn_utils.training import fit\n"
        "_ = fit(lambda p: (p['x'] ** 2).sum(), {'x': np.ones(2)}, lambda rng: (), 9, rng=np.random.default_rng(0))\n"
        "print('done')"
    )
    path = tmp_path / "01_trains.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), path)
    assert not asyncio.run(run_all([path], 60, 1))
    outputs = nbformat.read(path, as_version=4).cells[0].outputs
    assert [(output.output_type, output.text) for output in outputs] == [("stream", "done\n")]
