"""The live figure of three tokens in chapter 1: what it computes, by mouse, finger and key."""

import numpy as np
import pytest
from live import build, check_address, check_axe, check_fits, live, stored

from attn_utils import attention

pytestmark = pytest.mark.site
SIZES = {"X": (3, 2), "W_Q": (2, 4), "W_K": (2, 4), "W_V": (2, 2)}
MOST = {"X": 3, "W_Q": 5, "W_K": 5, "W_V": 20}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("source"), [stored("three_tokens")])


def expected(visit):
    """(scores, output, weights) of the head that is shown, by the library, from the state of the page."""
    state = visit.state()
    X, W_Q, W_K, W_V = (
        np.reshape(state[name if name == "X" else f"{name}_{state['head']}"], size) for name, size in SIZES.items()
    )
    output, weights = attention(X @ W_Q, X @ W_K, X @ W_V)
    return X @ W_Q @ (X @ W_K).T / 2, output, weights


def check(visit):
    scores, output, weights = expected(visit)
    np.testing.assert_allclose(visit.numbers("scores"), scores, atol=1e-4)
    np.testing.assert_allclose(visit.numbers("weights"), weights, atol=1e-4)
    np.testing.assert_allclose(visit.numbers("output"), output, atol=1e-4)
    shown = [float(place.inner_text()) for place in visit.figure.locator(".abe-place").all()]
    np.testing.assert_allclose(shown, weights.ravel(), atol=0.0051)


def test_it_begins_as_its_still_says(browser, site):
    with live(browser, site, "three_tokens") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        check(visit)


def test_twenty_settings_equal_the_library(browser, site):
    rng = np.random.default_rng(0)
    with live(browser, site, "three_tokens") as visit:
        for trial in range(24):
            head = 1 + trial % 2
            state = {name if name == "X" else f"{name}_{head}": rng.uniform(-MOST[name], MOST[name], size).round(2)
                     for name, size in SIZES.items()}  # fmt: skip
            visit.set(head=head, **{key: values.ravel().tolist() for key, values in state.items()})
            check(visit)


def test_it_counts_what_a_change_moves(browser, site):
    """Values move no weight; a query that nobody has moves nothing; the other head keeps its numbers."""
    with live(browser, site, "three_tokens") as visit:
        visit.figure.get_by_role("spinbutton", name="W_V of head 1, row 1, column 1").fill("-3")
        assert visit.caption().startswith("Your change moved 0 of 9 weights and 3 of 3 outputs.")
        check(visit)
        visit.figure.get_by_role("spinbutton", name="we, feature 2").fill("2")
        before = expected(visit)
        visit.figure.get_by_role("radio", name="Head 2").press("Space")
        check(visit)
        visit.figure.get_by_role("spinbutton", name="W_Q of head 2, row 1, column 1").fill("0")
        assert np.allclose(visit.numbers("weights"), 1 / 3)
        visit.figure.get_by_role("radio", name="Head 2").press("ArrowLeft")
        check(visit)
        np.testing.assert_allclose(visit.numbers("output"), before[1], atol=1e-4)
        lit = visit.figure.locator(".abe-lit")
        visit.figure.get_by_role("spinbutton", name="W_K of head 1, row 2, column 4").press("ArrowUp")
        assert visit.caption().startswith("Your change moved 0 of 9 weights and 0 of 3 outputs.") and lit.count() == 0
        check(visit)
        visit.figure.get_by_role("spinbutton", name="W_K of head 1, row 2, column 2").press("ArrowUp")
        assert lit.count() > 0
        check(visit)


def test_a_weight_shows_its_two_vectors(browser, site):
    with live(browser, site, "three_tokens", touch=True) as visit:
        picture, places = visit.figure.locator("svg[role=img]"), visit.figure.locator(".abe-place")
        for press, at, alt in (("hover", 6, "tea asks (1, 2, 1, 0), we is found by (2, 0, 0, 1): the products (2, 0, 0, 0) "
                                "sum to 2. Divided by the root of 4, that is the score 1, and the weight is 0.09."),
                               ("tap", 1, "we asks (1, 1, 0, 0), drink is found by (1, 1, 1, 0)")):  # fmt: skip
            getattr(places.nth(at), press)()
            visit.page.mouse.move(0, 0)  # a mouse that rests on a place points at it
            assert picture.get_attribute("aria-label").startswith(alt)
        assert visit.caption().startswith("In head 1, “we” gives")
        places.nth(1).focus()
        visit.page.keyboard.press("ArrowDown")
        assert picture.get_attribute("aria-label").startswith("drink asks (0, 1, 1, 0), drink is found by (1, 1, 1, 0)")
        assert visit.figure.locator(".abe-place.abe-seen").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with live(browser, site, "three_tokens", width=width, theme=theme) as visit:
        check_fits(visit)
        check_axe(visit)
        visit.set(X=[-2.25, 3, 0, 1, -3, 3], W_Q_1=[-5, 5, -5, 5] * 2, W_K_1=[5, -5, 5, -5] * 2, W_V_1=[-20, 12.5, 20, -20])
        check_fits(visit)
        check_axe(visit)


def test_its_state_stands_in_the_address(browser, site):
    with live(browser, site, "three_tokens") as visit:
        check_address(visit, X=[1, 0, -1, 2.5, 1, 1], head=2, W_K_2=[1, 2, 3, 4, 5, -1, -2, -3])
    with live(browser, site, "three_tokens", fragment="#lab-three_tokens?X=1,2&W_V_1=99,0,0,10&head=7") as visit:
        state = visit.state()
        assert state["X"] == [1, 2, 0, 1, 1, 1] and state["W_V_1"][0] == 20 and state["head"] == 1
        check(visit)
