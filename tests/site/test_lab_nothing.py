"""The live figure of chapter 6 against attn_utils.weightings, and its "best possible" against everything else."""

import itertools

import numpy as np
import pytest
from live import build, check_address, check_axe, check_fits, live, stored

from attn_utils.weightings import relu, sink_softmax, softmax, softmax1

pytestmark = pytest.mark.site
RULES = ("softmax", "softmax1", "sink", "relu")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("source"), [stored("nothing")])


def weigh(state, score, many):
    scores = np.array([0.0] * state["withBos"] + [score] * many)
    rule = state["rule"]
    if rule == "sink":
        return sink_softmax(scores, state["sink"])
    return relu(scores, uncounted=int(state["withBos"])) if rule == "relu" else {"softmax": softmax, "softmax1": softmax1}[rule](scores)


def expected(tokens, state):
    """(weights of the last row at rest, of the trigger, outputs (n, 2), errors (2,)) by the library."""
    passed = np.vstack([np.full((int(state["withBos"]), 2), state["bos"]), state["keep"] * tokens])
    rows = [weigh(state, state["rest"], i) for i in range(1, len(tokens))] + [weigh(state, state["trigger"], len(tokens))]
    outputs = np.array([row @ passed[: len(row)] for row in rows])
    errors = [np.abs(outputs[:-1]).max(), np.abs(outputs[-1] - tokens.mean(axis=0)).max()]
    return rows[-2], rows[-1], outputs, errors


def check(visit):
    for name, value in zip(("weights", "trigger", "outputs", "errors"), expected(tokens_of(visit), visit.state()), strict=True):
        np.testing.assert_allclose(visit.numbers(name), value, atol=1e-4)


def tokens_of(visit):
    return np.array(visit.data()["tokens"])


def draw(rng):
    low, high = (-8, -8, 0, -1, -4), (8, 8, 1.5, 1, 4)
    return dict(zip(("rest", "trigger", "keep", "bos", "sink"), (float(x) for x in rng.uniform(low, high)), strict=True))


def test_it_begins_as_its_still_says(browser, site):
    with live(browser, site, "nothing") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        check(visit)


def test_settings_equal_the_library(browser, site):
    rng = np.random.default_rng(0)
    with live(browser, site, "nothing") as visit:
        for rule, with_bos in itertools.product(RULES, (True, False)):
            for _ in range(4):
                visit.set(rule=rule, withBos=with_bos, **draw(rng))
                check(visit)
                errors = visit.numbers("errors")
                assert f"{errors[0]:.3f} at rest and {errors[1]:.3f} at the trigger" in visit.caption()


def test_nothing_beats_what_is_called_the_best(browser, site):
    """The least error that the page names is a bound for 2,000 random settings, and the sliders come near it."""
    rng = np.random.default_rng(1)
    with live(browser, site, "nothing") as visit:
        tokens = tokens_of(visit)
        for rule, with_bos in itertools.product(RULES, (True, False)):
            visit.set(rule=rule, withBos=with_bos)
            least = visit.numbers("least")
            assert (least > 0.01) == (rule == "softmax" and not with_bos)
            for _ in range(2000):
                errors = expected(tokens, {"rule": rule, "withBos": with_bos, **draw(rng)})[3]
                assert max(errors) >= least - 1e-12
            button = visit.figure.get_by_role("button", name="Show the best possible")
            button.press("Enter")
            assert "best possible" not in visit.caption() and "Try first" in visit.caption()
            for rest in (1, 2, 3):
                visit.set(rest=rest)
            button.click()
            check(visit)
            assert "The best possible is" in visit.caption()
            assert visit.numbers("errors").max() - least < 0.02
            assert (visit.numbers("errors").max() < 1e-12) == (rule == "relu")


def test_mouse_finger_and_keys(browser, site):
    with live(browser, site, "nothing", touch=True) as visit:
        figure = visit.figure
        figure.get_by_role("radio", name="sink", exact=True).click()
        figure.get_by_role("checkbox").tap()
        assert visit.state()["rule"] == "sink" and visit.state()["withBos"] is False
        assert not figure.get_by_label("What BOS passes on").is_visible()
        figure.get_by_role("checkbox").press("Space")
        assert visit.state()["withBos"] is True
        names = {"rest": "Score of the tokens at rest", "trigger": "Score of the tokens at the trigger",
                 "keep": "What a token passes on", "bos": "What BOS passes on", "sink": "Score of the sink"}  # fmt: skip
        for key, name in names.items():
            slider, before = figure.get_by_label(name), visit.state()[key]
            slider.press("ArrowRight")
            assert visit.state()[key] > before
            for press in (slider.click, slider.tap):
                press(position={"x": 20, "y": 22})
                assert visit.state()[key] < before
                slider.press("End")
            check(visit)
        figure.get_by_role("radio", name="sink", exact=True).press("ArrowRight")
        assert visit.state()["rule"] == "relu"
        figure.get_by_role("radio", name="softmax1").tap()
        check(visit)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with live(browser, site, "nothing", width=width, theme=theme) as visit:
        check_fits(visit)
        check_axe(visit)
        visit.set(rule="sink", rest=-8, trigger=8, keep=1.5, bos=-1)
        check_fits(visit)
        check_axe(visit)


def test_its_state_stands_in_the_address(browser, site):
    with live(browser, site, "nothing") as visit:
        check_address(visit, rule="relu", withBos=False, rest=-2.5, keep=0.75)
