"""The live collapse machine of chapter 4: what it computes, by mouse, finger and key."""

import numpy as np
import pytest
from live import build, check_address, check_axe, check_fits, live, stored

from attn_utils import attention, causal_mask
from attn_utils.labs import page_normals
from attn_utils.leading import singular_values
from attn_utils.norms import rms_norm
from attn_utils.spectra import remove_outlier, token_cosine, token_spread

pytestmark = pytest.mark.site
SIZES, LOUD = [8, 16, 32, 64], [0, 0.25, 0.5, 1, 2, 4, 8]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("source"), [stored("collapse")])


def one_layer(X, number, state):
    """What the library makes of tokens in layer `number` of this setting."""
    W_Q, W_K, W_V = page_normals(1000 * state["draw"] + number, 3, 32, 32) / np.sqrt(32)
    N = rms_norm(X)
    mask = causal_mask(len(X)) if state["causal"] else None
    A = attention(N @ W_Q, N @ W_K, N, mask=mask, scale=state["loud"] / np.sqrt(32))[1]
    A = remove_outlier(A) if state["repair"] else A
    made = A @ N @ W_V + (X if state["skip"] else 0)
    return np.where(np.abs(made) < 1e-12, 0, made)  # uniform weights, repaired, leave nothing but rounding


def run(state):
    states = [page_normals(1000 * state["draw"], 64, 32)[: state["tokens"]]]
    for number in range(1, 25):
        states.append(one_layer(states[-1], number, state))
    return states


def numbers_of(X):
    s = singular_values(X)
    return token_cosine(X), s[1] / s[0] if s[0] else 0, token_spread(X)


def shown(visit):
    return np.array([visit.numbers(name) for name in ("cosine", "ratio", "spread")])  # (3, 25)


def test_it_begins_as_its_still_says(browser, site):
    with live(browser, site, "collapse") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        np.testing.assert_allclose(shown(visit).T, [numbers_of(X) for X in run(visit.state())], atol=1e-4)


def test_whole_runs_equal_the_library(browser, site):
    """All 24 layers, with scores that are not multiplied: louder ones make chaos of the last bit."""
    rng = np.random.default_rng(0)
    with live(browser, site, "collapse") as visit:
        for trial in range(20):
            skip, repair, causal = ((trial >> bit) % 2 == 1 for bit in range(3))
            visit.set(tokens=int(rng.choice(SIZES)), skip=skip, repair=repair, causal=causal,
                      loud=float(rng.choice(LOUD[:4])), draw=int(rng.integers(0, 50)), layer=int(rng.integers(0, 25)))  # fmt: skip
            states = run(visit.state())
            np.testing.assert_allclose(shown(visit).T, [numbers_of(X) for X in states], atol=1e-4)
            np.testing.assert_allclose(visit.numbers("tokens"), states[visit.state()["layer"]], atol=1e-4)


def test_each_layer_equals_the_library(browser, site):
    """One layer at a time from the tokens of the page, with scores as loud as they can be."""
    rng = np.random.default_rng(1)
    with live(browser, site, "collapse") as visit:
        for trial in range(24):
            skip, repair, causal = ((trial >> bit) % 2 == 1 for bit in range(3))
            layer = int(rng.integers(0, 24))
            visit.set(tokens=int(rng.choice(SIZES)), skip=skip, repair=repair, causal=causal, loud=float(rng.choice(LOUD)),
                      draw=int(rng.integers(0, 50)), layer=layer)  # fmt: skip
            before = visit.numbers("tokens")
            visit.set(layer=layer + 1)
            after = visit.numbers("tokens")
            np.testing.assert_allclose(after, one_layer(before, layer + 1, visit.state()), atol=1e-4)
            np.testing.assert_allclose(shown(visit)[:, layer + 1], numbers_of(after), atol=1e-4)


def test_mouse_finger_and_keys(browser, site):
    with live(browser, site, "collapse", touch=True) as visit:
        layer = visit.figure.get_by_role("slider", name="Layer")
        for key, expected in (("Home", 0), ("ArrowRight", 1), ("End", 24)):
            layer.press(key)
            assert visit.state()["layer"] == expected and f"After {expected} layer" in visit.caption()
        visit.figure.get_by_role("button", name="Next layer").click()
        assert visit.state()["layer"] == 24
        box = layer.bounding_box()
        visit.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 22)
        assert visit.state()["layer"] == 12
        visit.figure.get_by_role("button", name="Next layer").tap()
        assert visit.state()["layer"] == 13
        visit.figure.get_by_role("checkbox", name="Skip").tap()
        visit.figure.get_by_role("checkbox", name="Causal mask").click()
        visit.figure.get_by_role("checkbox", name="Repair").press("Space")
        assert "with a skip, repaired, under a causal mask" in visit.caption() and "it leaks" in visit.caption()
        visit.figure.get_by_role("slider", name="Tokens").press("Home")
        visit.figure.get_by_role("slider", name="Scores").press("End")
        visit.figure.get_by_role("button", name="Draw again").press("Enter")
        assert visit.state() == {"tokens": 8, "layer": 13, "skip": True, "repair": True, "causal": True, "loud": 8, "draw": 1}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with live(browser, site, "collapse", width=width, theme=theme) as visit:
        check_fits(visit)
        check_axe(visit)
        visit.set(tokens=64, layer=0, skip=True, causal=True)
        check_fits(visit)
        check_axe(visit)


def test_its_state_stands_in_the_address(browser, site):
    with live(browser, site, "collapse") as visit:
        check_address(visit, layer=7, skip=True, loud=0.5, tokens=16, draw=3)
    with live(browser, site, "collapse", fragment="#lab-collapse?layer=99&tokens=-1&loud=1e9&skip=2&draw=-4") as visit:
        state = visit.state()
        assert (state["layer"], state["tokens"], state["loud"], state["skip"], state["draw"]) == (24, 8, 8, False, 0)
