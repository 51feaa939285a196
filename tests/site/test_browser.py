"""Every page in Chromium, with all other addresses blocked; screenshots in _build/screenshots."""

import re

import pytest
from browser import Visit, served
from html_rules import SITE, page_names

pytestmark = pytest.mark.site
PAGES = [name for name in page_names(SITE) if name != "index.html" and not name.startswith(("labs/", "book/reports/"))]
CHAPTERS = [name for name in PAGES if name.startswith("notebooks/")]
LEDGER = next((name for name in CHAPTERS if name.startswith("notebooks/03_")), None)
SHOTS = SITE.parent / "screenshots"


@pytest.fixture(scope="module")
def base(built):
    with served(built) as address:
        yield address


def holding(name, what):
    return what in (SITE / name).read_text(encoding="utf-8")


def test_the_address_leads_to_the_first_page(browser, base):
    assert CHAPTERS
    with Visit(browser, base, "index.html", scripts=False) as visit:
        visit.page.wait_for_url(base + "book/index.html")
        assert visit.page.locator("article h1").first.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_page(name, theme, browser, base):
    """Nothing fails, mathematics is set, the page fits a phone; and how it looks."""
    with Visit(browser, base, name, theme=theme) as visit:
        visit.read_on()
        assert not visit.problems
        assert visit.page.evaluate("document.documentElement.dataset.theme") == theme
        check_mathematics(visit.page, name)
        assert not formulas_with_bars(visit.page)
        shoot(visit, name, 1280, theme)
        visit.page.set_viewport_size({"width": 360, "height": 740})
        visit.read_on()
        assert not too_wide(visit.page), f"{name} is wider than 360 px"
        assert not formulas_with_bars(visit.page), "a long formula belongs on a line of its own"
        assert not cut_reports(visit.page), "the verdict of a ledger line is out of sight"
        assert not faint(visit.page), "words that are hard to read"
        assert min(bars(visit.page), default=36) >= 36, "a bar over folded code is too low for a thumb"
        shoot(visit, name, 360, theme)
        assert not visit.problems


def shoot(visit, name, width, theme):
    SHOTS.mkdir(parents=True, exist_ok=True)
    shot = name.removesuffix(".html").replace("/", "-")
    # Chromium paints 30,000 pixels of a page without a graphics card: on a busy machine that has taken over 15 seconds.
    visit.page.screenshot(path=SHOTS / f"{shot}-{width}-{theme}.png", full_page=True, timeout=180_000)


def check_mathematics(page, name):
    if 'class="math' in (SITE / name).read_text(encoding="utf-8"):
        unset = "[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container'))"
        assert page.evaluate(f"{unset}.map(e => e.textContent)") == []
    wrong = "[...document.querySelectorAll('mjx-merror, [data-mjx-error]')].map(e => e.textContent)"
    assert page.evaluate(wrong) == []
    text = page.evaluate(
        """() => {const main = (document.querySelector('main') || document.body).cloneNode(true);
        main.querySelectorAll('pre, code, script, style, noscript, mjx-container').forEach(e => e.remove());
        return main.textContent}"""
    )
    assert not re.search(r"\$\$|\\\(|\\\[", text), "raw TeX is left"


def formulas_with_bars(page):
    """The inline formulas with a scroll bar under them, or too wide for the page beside its margins of 16 pixels.

    After a screenshot of a whole page Chromium may leave the bar of a formula that does not fit away.
    """
    return page.evaluate(
        """() => [...document.querySelectorAll('main span.math, main span.math *')].filter(e => {
        const style = getComputedStyle(e), own = e.matches('span.math');
        const bar = /auto|scroll/.test(style.overflowX) && e.offsetHeight > e.clientHeight + 2;
        return style.display !== 'inline' && (bar || own && e.scrollWidth > innerWidth - 32)
        }).map(e => e.textContent)"""
    )


def too_wide(page):
    """What sticks out on the right, where the page scrolls sideways."""
    return page.evaluate(
        """() => {const width = document.documentElement.clientWidth;
        if (Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) <= width) return [];
        return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > width + 1)
            .slice(0, 8).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 40))}"""
    )


def cut_reports(page):
    """The outputs of report() that scroll sideways."""
    return page.evaluate(
        """() => [...document.querySelectorAll('div.cell[id^="claim-"] .cell_output pre')]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""
    )


def faint(page):
    """Visible words with a contrast below 4.5 to the color behind them."""
    return page.evaluate(
        """() => {
        const levels = color => { // color-mix() comes as color(srgb 0.1 0.2 0.3), with levels up to 1
            const found = color.match(/[\\d.]+(e-\\d+)?/g).map(Number);
            return color.startsWith('color(') ? found.map((level, i) => i < 3 ? 255 * level : level) : found;
        };
        const linear = level => level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4;
        const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) => sum + share * linear(c[i] / 255), 0);
        const behind = e => {
            for (; e; e = e.parentElement) {
                const color = levels(getComputedStyle(e).backgroundColor);
                if (color.length < 4 || color[3] > 0.99) return color;
            }
            return [255, 255, 255];
        };
        const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        const contrast = e => {
            const [dark, bright] = [light(levels(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => a - b);
            return (bright + 0.05) / (dark + 0.05);
        };
        return [...document.querySelectorAll('main *')]
            .filter(e => own(e) && !e.closest('svg, script, style, noscript, mjx-container'))
            .filter(e => e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && contrast(e) < 4.5)
            .map(e => e.textContent.trim().slice(0, 60))}"""
    )


def bars(page):
    """The heights of the bars over folded code."""
    return page.evaluate(
        "() => [...document.querySelectorAll('details.hide > summary')].map(e => e.getBoundingClientRect().height)"
    )


def test_the_keyboard_shows_where_it_is(browser, base):
    """Everything that Tab reaches above the first paragraph, and some of it below, has a ring."""
    with Visit(browser, base, LEDGER) as visit:
        for _ in range(60):
            visit.page.keyboard.press("Tab")
            visit.page.wait_for_timeout(30)
            ring = visit.page.evaluate(
                """() => [document.activeElement, ...document.activeElement.querySelectorAll('.toctree-toggle')]
                .map(e => getComputedStyle(e)).some(s => s.outlineStyle !== 'none' || s.boxShadow !== 'none')"""
            )
            assert ring, visit.page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


@pytest.mark.parametrize("links", ["ledger", "page of all claims"])
def test_a_claim_leads_to_its_cell(links, browser, base):
    """The very cell is in view, and marked."""
    name = "book/claims.html" if links != "ledger" else LEDGER
    with Visit(browser, base, name) as visit:
        link = visit.page.locator("article a[href*='#claim-']").last
        anchor = link.get_attribute("href").split("#")[1]
        link.click()
        visit.page.wait_for_url("**/notebooks/**#" + anchor)
        cell = visit.page.locator(f"div.cell#{anchor}, div.cell:has(> span#{anchor})")
        cell.wait_for()
        in_view = "e => Math.abs(e.getBoundingClientRect().top - 64) < 60"
        visit.page.wait_for_function(in_view, arg=cell.element_handle())
        assert anchor.removeprefix("claim-") in cell.locator(".cell_output").inner_text()
        assert cell.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
        assert not visit.problems


@pytest.mark.parametrize("name", CHAPTERS)
def test_explorations_move(name, browser, base):
    with Visit(browser, base, name) as visit:
        figures = visit.page.locator("figure.abe-explore").all()
        alive = figures or holding(name, "data-lab=")
        assert alive or not re.match(r"notebooks/\d", name), f"{name} has no exploration and no live figure"
        for figure in figures:
            check_keyboard(figure)
            check_play(visit.page, figure)
        assert not visit.problems


def state(figure):
    """(picture, its alt text, its caption, value beside the slider)"""
    image, caption = figure.locator("img"), figure.locator("figcaption").inner_text()
    return image.get_attribute("src"), image.get_attribute("alt"), caption, figure.locator("output").inner_text()


def differ(one, other):
    return all(a != b for a, b in zip(one, other, strict=True))


def check_keyboard(figure):
    slider = figure.locator("input[type=range]")
    slider.focus()
    first = state(figure)
    assert all(first)
    slider.press("ArrowRight")
    second = state(figure)
    assert differ(first, second), "ArrowRight changes nothing"
    slider.press("End")
    assert differ(first, state(figure)), "End changes nothing"
    assert slider.input_value() == slider.get_attribute("max")
    slider.press("Home")
    assert state(figure) == first, "Home does not lead back to the first picture"
    assert figure.locator("img").evaluate("e => e.complete && e.naturalWidth > 100")
    width = slider.bounding_box()["width"]
    for _ in range(int(slider.get_attribute("max"))):
        slider.press("ArrowRight")
        assert slider.bounding_box()["width"] == width, "the slider changes its width with its label"
    slider.press("Home")
    for control in (slider, figure.locator("button")):
        assert control.bounding_box()["height"] >= 44


def check_play(page, figure):
    button, first = figure.locator("button"), state(figure)
    word = button.inner_text()
    button.focus()
    page.keyboard.press("Enter")
    assert button.inner_text() != word, "the button does not say that it plays"
    image = figure.locator("img").element_handle()
    page.wait_for_function("([image, src]) => image.src !== src", arg=[image, first[0]])
    assert differ(first, state(figure))
    if button.inner_text() != word:  # a short one may have come to its end
        page.keyboard.press("Enter")
    stopped = state(figure)
    page.wait_for_timeout(1000)
    assert state(figure) == stopped, "it plays on after the stop"
    assert button.inner_text() == word


@pytest.mark.parametrize("name", CHAPTERS)
def test_without_scripts(name, browser, base):
    """A still image with alt text, and no control that does nothing."""
    with Visit(browser, base, name, scripts=False) as visit:
        for figure in visit.page.locator("figure.abe-explore, figure.abe-3d").all():
            image = figure.locator("img")
            assert image.is_visible() and image.bounding_box()["width"] > 100
            assert image.get_attribute("alt")
            assert figure.locator("figcaption").inner_text()
            assert not figure.locator("input, button").or_(figure.locator(".abe-scene")).first.is_visible()
        assert not visit.problems


CAMERA = "e => JSON.stringify(e._fullLayout.scene._scene.getCamera())"


@pytest.mark.parametrize("name", [name for name in CHAPTERS if holding(name, 'class="abe-3d"')])
def test_scenes_turn(name, browser, base):
    with Visit(browser, base, name) as visit:
        assert not asked_for_plotly(visit), "plotly is loaded before its figure is in view"
        for figure in visit.page.locator("figure.abe-3d").all():
            still, scene = figure.locator("img.abe-still"), figure.locator(".abe-scene")
            assert still.is_visible() and still.get_attribute("alt")
            figure.scroll_into_view_if_needed()
            scene.locator("canvas").first.wait_for(state="visible")
            still.wait_for(state="hidden")
            visit.page.wait_for_timeout(500)
            before = scene.evaluate(CAMERA)
            drag(visit.page, scene)
            assert scene.evaluate(CAMERA) != before, "dragging does not turn it"
        assert len(asked_for_plotly(visit)) == 1, "plotly is loaded more than once"
        assert not visit.problems


@pytest.mark.parametrize("name", [name for name in CHAPTERS if holding(name, "data-lab=")])
def test_live_figures_live(name, browser, base):
    with Visit(browser, base, name) as visit:
        for figure in visit.page.locator("figure[data-lab]").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".abe-stage").wait_for(state="visible")
        assert not visit.problems


def asked_for_plotly(visit):
    return [url for url in visit.requests if "plotly" in url]


def drag(page, scene):
    scene.scroll_into_view_if_needed()
    box = scene.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y + 40, steps=6)
    page.mouse.up()
    page.wait_for_timeout(300)


@pytest.mark.parametrize("name", ["book/index.html", *CHAPTERS[:1]])
def test_site_works_from_a_folder(name, browser, built):
    with Visit(browser, built.as_uri() + "/", name) as visit:
        visit.read_on()
        check_mathematics(visit.page, name)
        for figure in visit.page.locator("figure.abe-explore").all():
            check_keyboard(figure)
        for scene in visit.page.locator(".abe-scene").all():
            scene.scroll_into_view_if_needed()
            scene.locator("canvas").first.wait_for(state="visible")
        assert not visit.problems


# --- the checks see what they are for --------------------------------------------------------

BAD = """<!DOCTYPE html><html><head><title>Bad</title></head><body><main>
<p style="width: 2000px">too wide</p><p style="color: #888">faint</p>
<span class="math" style="display: inline-flex; width: 9px; overflow: auto hidden"><mjx-container>a + b</mjx-container></span>
<span class="math" style="display: inline-flex; width: 99px; overflow: hidden"><mjx-container style="flex: 0 0 340px">wide</mjx-container></span><p>raw $$x$$</p><img src="missing.png" alt="x">
<img src="https://example.org/x.png" alt="x">
<script>console.error("no"); fetch("https://example.com/x").catch(() => 0); undefined_name()</script>
</main></body></html>"""


def test_a_bad_page_is_noticed(browser, tmp_path, monkeypatch):
    (tmp_path / "bad.html").write_text(BAD)
    monkeypatch.setattr("test_browser.SITE", tmp_path)
    with served(tmp_path) as address, Visit(browser, address, "bad.html", width=360) as visit:
        visit.page.wait_for_load_state("networkidle")
        told = "\n".join(visit.problems)
        for what in ("console: no", "status 404", "asks for https://example.org/x.png", "https://example.com/x"):
            assert what in told
        assert "script error: undefined_name is not defined" in told
        assert too_wide(visit.page)
        assert formulas_with_bars(visit.page) == ["a + b", "wide"]
        assert faint(visit.page) == ["faint"]
        with pytest.raises(AssertionError, match="raw TeX"):
            check_mathematics(visit.page, "bad.html")
