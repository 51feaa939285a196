"""The live figure of chapter 5 against attn_utils.graying, for every digit that it shows."""

import itertools

import numpy as np
import pytest
from live import build, check_address, check_axe, check_fits, live, stored

from attn_utils.graying import dct_graying, svd_graying
from attn_utils.spectra import condition_number

pytestmark = pytest.mark.site
GRAYINGS = {"svd": svd_graying, "dct": dct_graying}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    try:
        shown = stored("gray")
    except LookupError:
        pytest.skip("chapter 5 does not show it yet")
    return build(tmp_path_factory.mktemp("source"), [shown])


def descend(X):
    """Steps of gradient descent at the best rate, run one by one, until a hundredth of the error is left."""
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    error = start = Vt[0] + Vt[-1]  # as much along the steepest direction as along the flattest
    for step in range(1, 100_000):
        error = error - 2 / (s[0] ** 2 + s[-1] ** 2) * X.T @ (X @ error)
        if np.linalg.norm(error) <= 0.01 * np.linalg.norm(start):
            return step
    raise AssertionError("it did not arrive")


def check(visit):
    state = visit.state()
    X = np.array(visit.data()["images"][state["digit"]]) / 16  # (16, 4)
    grayed = GRAYINGS[state["way"]](X, state["epsilon"])
    np.testing.assert_allclose(visit.numbers("grayed"), grayed, atol=1e-4)
    for name, tokens in (("before", X), ("after", grayed)):
        np.testing.assert_allclose(visit.numbers(name), np.linalg.svd(tokens, compute_uv=False), atol=1e-4)
    kappa = [condition_number(X), condition_number(grayed)]
    np.testing.assert_allclose(visit.numbers("kappa"), kappa, rtol=1e-6)
    assert visit.numbers("steps").tolist() == [descend(X), descend(grayed)]
    assert f"from {kappa[0]:.1f} to {kappa[1]:.1f}" in visit.caption()


def test_it_begins_as_its_still_says(browser, site):
    with live(browser, site, "gray") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        check(visit)


def test_every_digit_grayed_either_way_equals_the_library(browser, site):
    rng = np.random.default_rng(0)
    with live(browser, site, "gray") as visit:
        for digit, way in itertools.product(range(10), GRAYINGS):
            visit.set(digit=digit, way=way, epsilon=round(float(rng.uniform(0.05, 1)), 3))
            check(visit)
        for way in GRAYINGS:
            visit.set(way=way, epsilon=1)
            np.testing.assert_allclose(visit.numbers("grayed"), np.array(visit.data()["images"][9]) / 16, atol=1e-9)


def test_mouse_finger_and_keys(browser, site):
    with live(browser, site, "gray", touch=True) as visit:
        figure = visit.figure
        for key, name in (("epsilon", "ε, the exponent"), ("digit", "Which digit")):
            slider = figure.get_by_label(name)
            for press in (slider.click, slider.tap):
                slider.press("End")
                check(visit)
                press(position={"x": 40, "y": 22})
                check(visit)
                assert visit.state()[key] < {"epsilon": 0.5, "digit": 4}[key]
            before = visit.state()[key]
            slider.press("ArrowRight")
            assert visit.state()[key] > before
        figure.get_by_role("radio", name="cosines (DCT)").click()
        check(visit)
        figure.get_by_role("radio", name="singular values").tap()
        assert visit.state()["way"] == "svd"
        figure.get_by_role("radio", name="singular values").press("ArrowRight")
        assert visit.state()["way"] == "dct"
        check(visit)
        visit.page.wait_for_function("e => document.querySelector('.abe-said').textContent === e", arg=visit.caption())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with live(browser, site, "gray", width=width, theme=theme) as visit:
        for digit, way, epsilon in ((3, "svd", 0.4), (8, "dct", 0.05)):
            visit.set(digit=digit, way=way, epsilon=epsilon)
            check_fits(visit)
            check_axe(visit)


def test_its_state_stands_in_the_address(browser, site):
    with live(browser, site, "gray") as visit:
        check_address(visit, digit=7, way="dct", epsilon=0.25)
