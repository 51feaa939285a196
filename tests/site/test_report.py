"""A report of diagnose() in Chromium, from a file: it asks for nothing, it moves by key, mouse and tap, and it fits."""

import numpy as np
import pytest

from attn_utils import causal_mask, diagnose, softmax

pytestmark = pytest.mark.site
EVIL = '<script>document.title="owned"</script>'
TOKENS = [EVIL, '"><img src=x onerror="document.title=1">', *(f" word{i}" for i in range(10))]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of 32 layers of 32 heads, with sinks, states and tokens that would like to be scripts."""
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=(32, 32, 12, 12))
    scores[8:, :8, :, 0] += 8
    weights = softmax(np.where(causal_mask(12), scores, -np.inf))
    found = diagnose(list(weights), list(rng.normal(size=(33, 12, 16))), axes="layers heads", tokens=TOKENS, pictures=12)
    path = tmp_path_factory.mktemp("report") / "report.html"
    found.report(path, "A model")
    return path


@pytest.fixture
def visit(browser, report):
    """visit(width, theme) opens the report; whatever it asks for or complains of fails the test."""
    contexts, problems = [], []

    def open_page(width=1280, theme="light", **how):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url != report.as_uri() and problems.append(request.url))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_and_no_token_runs(visit, width, theme):
    page = visit(width, theme)
    for name in page.locator("input[name=measure]").all():
        name.check()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() == "A model" and page.locator("img").count() == 0
    assert page.locator(".cell").count() == 1024
    for cell in page.locator(".cell").all()[::341]:
        box = cell.bounding_box()
        assert min(box["width"], box["height"]) >= 8 and box["x"] + box["width"] <= width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert light > 200 if theme == "light" else light < 60


def test_the_keyboard_moves_over_the_heads(visit):
    page = visit()
    title = page.locator("#head h3")
    assert title.inner_text() == "Layer 1, head 1"
    page.locator(".cell[tabindex='0']").focus()
    for key, place in (("ArrowRight", "Layer 1, head 2"), ("ArrowDown", "Layer 2, head 2"), ("End", "Layer 2, head 32"),
                       ("PageDown", "Layer 32, head 32"), ("Home", "Layer 32, head 1"), ("PageUp", "Layer 1, head 1"),
                       ("ArrowUp", "Layer 1, head 1"), ("ArrowLeft", "Layer 1, head 1")):  # fmt: skip
        page.keyboard.press(key)
        assert title.inner_text() == place
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused.startswith(place)
    assert page.locator(".cell[tabindex='0']").count() == 1 == page.locator("[aria-selected=true]").count()
    page.locator("button[aria-label='layer below']").press("Enter")
    assert title.inner_text() == "Layer 2, head 1"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "layer below"


def test_the_mouse_shows_and_a_click_keeps(visit):
    page = visit()
    title = page.locator("#head h3")
    page.locator("[data-at='4,6']").hover()
    assert title.inner_text() == "Layer 5, head 7"
    page.locator("[data-at='9,2']").click()
    page.locator("[data-at='4,6']").hover()
    assert title.inner_text() == "Layer 10, head 3"
    assert "Strongest key, token 1 “" + EVIL in page.locator("#head").inner_text()


def test_a_tap_shows_a_pattern_and_its_weights(visit):
    page = visit(360, has_touch=True)
    page.locator("[data-at='9,2']").tap()
    canvas = page.locator(".pattern canvas")
    assert page.locator("#head h3").inner_text() == "Layer 10, head 3" and canvas.is_visible()
    assert canvas.get_attribute("aria-label").startswith("Pattern of layer 10, head 3: most weight from")
    box = canvas.bounding_box()
    canvas.tap(position={"x": box["width"] / 24, "y": box["height"] / 24})  # the first query at the first key
    assert page.locator(".says").inner_text() == f"1 “{EVIL}” → 1 “{EVIL}”: weight 1"
    canvas.tap(position={"x": box["width"] * 23 / 24, "y": box["height"] / 24})
    assert page.locator(".says").inner_text().endswith("weight below 0.001")
    for button in page.locator(".steps button").all():
        assert min(button.bounding_box()["width"], button.bounding_box()["height"]) >= 44


def test_a_finding_shows_its_heads(visit):
    page = visit()
    sink = page.locator(".card", has_text="Attention sink").first
    sink.locator("button").click()
    assert sink.locator("button").get_attribute("aria-pressed") == "true"
    assert page.locator("input[value=sink]").is_checked()
    bright = page.locator(".cell:not(.dim)").count()
    assert 150 < bright < 1024
    sink.locator("button").click()
    assert page.locator(".cell.dim").count() == 0


def test_without_scripts_the_findings_stay(visit):
    page = visit(java_script_enabled=False)
    assert page.locator(".card").first.is_visible() and page.locator("noscript p").is_visible()
    assert not page.locator("#stage").is_visible() and not page.locator(".mark").first.is_visible()
    page.locator("summary").first.click()
    assert page.locator("tbody tr").first.is_visible()


@pytest.mark.parametrize("left", [False, True])
def test_the_axes_of_a_padded_text_show_the_tokens_that_are_there(browser, tmp_path, left):
    real = np.arange(3, 8) if left else np.arange(5)
    weights = np.zeros((1, 2, 8, 8))
    weights[..., real[:, None], real] = np.full((5, 5), 0.05) + 0.75 * np.eye(5)[[0, 0, 0, 0, 0]]
    found = diagnose(weights, axes="layers heads", mask=np.isin(np.arange(8), real).astype(int), tokens=list("abcdefgh"),
                     pictures=8)  # fmt: skip
    found.report(tmp_path / "report.html")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    shown = [list("abcdefgh")[i] for i in real]
    for axis in ("rows", "columns"):
        assert page.locator(f".pattern .{axis} span").all_text_contents() == shown
    assert f"to {real[0] + 1} “{shown[0]}”" in page.locator(".says").inner_text()
    page.close()
