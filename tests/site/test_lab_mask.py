"""The live mask of chapter 3: what it computes, by mouse, finger and key."""

import numpy as np
import pytest
from live import build, check_address, check_axe, check_fits, live, stored

from attn_utils import attention, causal_mask

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("source"), [stored("mask")])


def vectors(visit, words):
    data = visit.data()
    return np.array([data["vectors"][data["words"].index(word)] for word in words])


def check(visit, words, mask):
    X = vectors(visit, words)
    output, weights = attention(X, X, X, mask=mask)
    np.testing.assert_allclose(visit.numbers("weights"), weights, atol=1e-4)
    np.testing.assert_allclose(visit.numbers("output"), output, atol=1e-4)
    for place, weight in zip(visit.figure.locator(".abe-place").all(), weights.ravel(), strict=True):
        assert place.inner_text() in ("–", f"{weight:.2f}")


def test_it_begins_as_its_still_says(browser, site):
    with live(browser, site, "mask") as visit:
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        check(visit, visit.data()["sentence"], causal_mask(len(visit.data()["sentence"])))


def test_twenty_settings_equal_the_library(browser, site):
    rng = np.random.default_rng(0)
    with live(browser, site, "mask") as visit:
        known = visit.data()["words"]
        for n in [2, 3, 4, 5] * 5:
            words = [str(word) for word in rng.choice(known, n)]
            mask = rng.random((n, n)) < 0.6
            flipped = np.flatnonzero(mask != causal_mask(n)).tolist()
            visit.set(text=" ".join(words), flipped=flipped)
            check(visit, words, mask)


def test_a_leak_makes_the_cache_wrong(browser, site):
    """`moved` is how far an output went since its word was written, against the library."""
    rng = np.random.default_rng(1)
    with live(browser, site, "mask") as visit:
        words = visit.data()["sentence"]
        X, n = vectors(visit, words), len(words)
        for step in range(1, n + 1):
            mask = rng.random((n, n)) < 0.7
            visit.set(flipped=np.flatnonzero(mask != causal_mask(n)).tolist(), step=step)
            now = attention(X[:step], X[:step], X[:step], mask=mask[:step, :step])[0]
            then = [attention(X[:t], X[:t], X[:t], mask=mask[:t, :t])[0][-1] for t in range(1, step + 1)]
            np.testing.assert_allclose(visit.numbers("moved"), np.linalg.norm(now - then, axis=1), atol=1e-4)
            t, d = np.arange(1, step + 1), X.shape[1]
            assert visit.numbers("again") == (3 * t * d**2 + 2 * t**2 * d).sum()
            assert visit.numbers("cached") == (3 * d**2 + 2 * t * d).sum()
            leaks = np.triu(mask[:step, :step], 1).sum()
            assert visit.figure.locator(".abe-leak").count() == leaks
            assert ("leaks" in visit.caption()) == (leaks > 0)
            assert ("the cache" in visit.caption()) == (visit.numbers("moved").max() > 1e-6)


def test_mouse_finger_and_keys(browser, site):
    with live(browser, site, "mask", touch=True) as visit:
        words = visit.data()["sentence"]
        n, mask, keyboard = len(words), causal_mask(len(words)), visit.page.keyboard
        for press, (i, j) in (("click", (4, 1)), ("tap", (1, 3)), ("click", (0, 0)), ("tap", (4, 1))):
            mask[i, j] = not mask[i, j]
            getattr(visit.figure.locator(".abe-place").nth(n * i + j), press)()
            check(visit, words, mask)
        visit.figure.locator(".abe-place").first.focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "End", "Home", "Space"):
            keyboard.press(key)
        mask[1, 0] = False
        check(visit, words, mask)
        visit.page.wait_for_function("e => document.querySelector('.abe-said').textContent === e", arg=visit.caption())
        for name, mask in (("No mask", np.ones((n, n), bool)), ("Window of 2", causal_mask(n) & ~np.tri(n, k=-2, dtype=bool))):
            visit.figure.get_by_role("button", name=name).click()
            check(visit, words, mask)
        visit.figure.get_by_label("Your sentence").fill("my old dog zzz slept")
        assert "no vector for “zzz”" in visit.caption()
        visit.figure.get_by_role("button", name="Causal mask").click()
        check(visit, ["my", "old", "dog", "slept"], causal_mask(4))
        visit.figure.get_by_role("button", name="one less").tap()
        visit.figure.get_by_role("button", name="one less").press("Enter")
        assert "2 of 4 words are written" in visit.caption()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with live(browser, site, "mask", width=width, theme=theme) as visit:
        check_fits(visit)
        check_axe(visit)
        visit.set(text="question mother teacher morning summer", flipped=[2], step=4)
        check_fits(visit)
        check_axe(visit)


def test_its_state_stands_in_the_address(browser, site):
    with live(browser, site, "mask") as visit:
        check_address(visit, text="my old dog slept", flipped=[1, 2], step=3)


@pytest.mark.parametrize("fragment", ["?text=", "?text=%3Cscript%3E", "?text=" + "%F0%9F%98%80" * 200])
def test_a_link_without_a_known_word_asks_for_one(fragment, browser, site):
    with live(browser, site, "mask", fragment="#lab-mask" + fragment) as visit:
        assert "Type two words or more" in visit.caption()
        assert not visit.figure.locator(".abe-place").count() or not visit.figure.locator(".abe-place").first.is_visible()
        visit.figure.get_by_label("Your sentence").fill("my dog")
        check(visit, ["my", "dog"], causal_mask(2))
        visit.figure.get_by_label("Your sentence").fill("")
        assert not visit.figure.locator(".abe-place").first.is_visible()
        visit.figure.get_by_role("button", name="Reset").click()
        check(visit, visit.data()["sentence"], causal_mask(len(visit.data()["sentence"])))
