"""The live figure of scores, scale and weights in chapter 2: what it computes, by mouse, finger and key."""

import numpy as np
import pytest
from live import build, check_address, check_axe, check_fits, live, stored

from attn_utils import softmax
from attn_utils.labs import page_normals

pytestmark = pytest.mark.site
WIDTHS, COUNTS = [4, 8, 16, 32, 64, 128, 256, 512, 1024], [4, 8, 16, 32, 64]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("source"), [stored("temperature")])


@pytest.fixture(scope="module")
def drawn():
    """The draws of the page: a query and 64 keys each."""
    return np.array([np.vstack([page_normals(2 * s, 1, 1024), page_normals(2 * s + 1, 64, 1024)]) for s in range(60)])


def check(visit, drawn):
    state = visit.state()
    d_k, T, draws = state["width"], state["keys"], drawn[: state["draws"]]
    scores = np.einsum("sd,skd->sk", draws[:, 0, :d_k], draws[:, 1 : T + 1, :d_k]) / d_k ** state["power"]
    weights = softmax(scores)
    J = weights[:, :, None] * (np.eye(T) - weights[:, None, :])
    logs = np.log(np.where(weights > 0, weights, 1))
    np.testing.assert_allclose(visit.numbers("scores"), scores[-1], atol=1e-4)
    np.testing.assert_allclose(visit.numbers("weights"), weights[-1], atol=1e-4)
    np.testing.assert_allclose(visit.numbers("largest"), weights.max(axis=1), atol=1e-4)
    np.testing.assert_allclose(visit.numbers("neighbors"), np.exp(-(weights * logs).sum(axis=1)), atol=1e-4)
    np.testing.assert_allclose(visit.numbers("jacobian"), np.sqrt((J**2).sum(axis=(1, 2))), atol=1e-4)
    assert f"a spread of {scores.std():.2f}." in visit.caption()
    assert f"{weights.max(axis=1).mean():.2f} in the mean of {len(draws)} draws" in visit.caption()


def test_it_begins_as_its_still_says(browser, site, drawn):
    with live(browser, site, "temperature") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        check(visit, drawn)


def test_twenty_settings_equal_the_library(browser, site, drawn):
    rng = np.random.default_rng(0)
    with live(browser, site, "temperature") as visit:
        for _ in range(24):
            power = round(float(rng.choice([0, 0.5, 1, rng.random()])), 2)
            visit.set(width=int(rng.choice(WIDTHS)), keys=int(rng.choice(COUNTS)), power=power,
                      draws=int(rng.integers(1, 60)))  # fmt: skip
            check(visit, drawn)


def test_mouse_finger_and_keys(browser, site, drawn):
    with live(browser, site, "temperature", touch=True) as visit:
        width, keys, power = (visit.figure.get_by_role("slider", name=name) for name in ("Width", "Number T", "divided by"))
        for slider, presses in ((width, ("End", "ArrowLeft")), (keys, ("Home", "ArrowRight")), (power, ["ArrowRight"] * 10)):
            length = slider.bounding_box()["width"]
            for key in presses:
                slider.press(key)
                check(visit, drawn)
                assert slider.bounding_box()["width"] == length
        assert power.get_attribute("aria-valuetext") == "√dₖ" and "divided by √dₖ" in visit.caption()
        box = width.bounding_box()
        visit.page.mouse.move(box["x"] + box["width"] - 6, box["y"] + 22)
        visit.page.mouse.down()
        visit.page.mouse.move(box["x"] + 6, box["y"] + 22, steps=6)
        visit.page.mouse.up()
        assert visit.state()["width"] == 4
        box = keys.bounding_box()
        visit.page.touchscreen.tap(box["x"] + box["width"] - 6, box["y"] + 22)
        assert visit.state()["keys"] == 64
        visit.figure.get_by_role("button", name="Draw again").click()
        visit.figure.get_by_role("button", name="20 more").tap()
        visit.figure.get_by_role("button", name="Draw again").press("Enter")
        assert visit.state()["draws"] == 52
        check(visit, drawn)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with live(browser, site, "temperature", width=width, theme=theme) as visit:
        check_fits(visit)
        check_axe(visit)
        visit.set(width=1024, keys=64, power=0.35, draws=50)
        check_fits(visit)
        check_axe(visit)


def test_its_state_stands_in_the_address(browser, site, drawn):
    with live(browser, site, "temperature") as visit:
        check_address(visit, width=256, keys=8, power=0.5, draws=30)
    with live(browser, site, "temperature", fragment="#lab-temperature?width=1e9&keys=-5&power=7&draws=0.2") as visit:
        assert visit.state() == {"width": 1024, "keys": 4, "power": 1, "draws": 1}
        check(visit, drawn)
