"""Outputs of figure(), table() and lab() on a small site of their own, in Chromium: they live, and they fit."""

import json

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from browser import Visit, served
from bs4 import BeautifulSoup
from html_rules import ROOT, RULES, Site
from live import PAGE, build

from attn_utils import attention, causal_mask, figures, labs

pytestmark = pytest.mark.site
WORDS = ["the", "animal", "was", "too", "tired"]
rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(3, 5, 4))


def outputs(monkeypatch):
    """What the functions display, as outputs of cells."""
    seen = []
    for module in (figures, labs):
        monkeypatch.setattr(module, "show", lambda mime, content, text: seen.append({mime: content, "text/plain": text}))
    panels = [plt.figure(figsize=(3, 2.4)) for _ in range(2)]
    for panel in panels:
        panel.gca().plot([1, 2])
    figures.figure(panels, "Both lines rise from 1 to 2.", name="both")
    figures.figure([plt.figure() for _ in range(2)], "Two panels of the usual size.", name="usual")
    figures.table({"word": WORDS, "weight": rng.random(5)}, "The row of 'it', with $d_k$ = 4.", digits=2)
    figures.say(f"It gets **{0.25:.0%}**.")
    _, ax = plt.subplots()
    figures.draw_weights(attention(Q, K, V, mask=causal_mask(5))[1], WORDS, ax=ax)
    data = {"words": WORDS, "vectors": Q, "sentence": WORDS}
    labs.lab("mask", ax.figure, "No token looks at what comes after it.", data=data)
    labs.lab("broken", plt.figure(), "This one has a script that fails.")
    return [nbformat.v4.new_output("display_data", data=one) for one in seen]


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    """A site of one page with these outputs, built with the book's extension and styles."""
    matplotlib.use("agg")
    source = tmp_path_factory.mktemp("source")
    with pytest.MonkeyPatch.context() as patch, plt.rc_context():
        figures.use_book_style()
        shown = outputs(patch)
    plt.close("all")
    return build(source, shown, {"broken.js": "abeLabs.define('broken', function () { undefined_name(); });"})


def live(visit):
    """The live mask, once it is in view."""
    lab = visit.page.locator("figure[data-lab=mask]")
    assert lab.locator("img").is_visible() and not visit.page.locator(".abe-place").count(), "loaded before it is seen"
    lab.scroll_into_view_if_needed()
    lab.locator(".abe-place").first.wait_for(state="visible")
    return lab


def test_the_still_stays_in_print_without_scripts_and_where_a_script_fails(browser, little):
    with served(little) as address, Visit(browser, address, PAGE) as visit:
        lab = live(visit)
        visit.page.emulate_media(media="print")
        assert lab.locator("img").is_visible() and not lab.locator(".abe-stage").is_visible()
        assert lab.locator(".abe-link").inner_text() == f"Live on the site: {labs.SITE}labs/mask.html"
        visit.page.emulate_media(media="screen")
        broken = visit.page.locator("figure[data-lab=broken]")
        broken.scroll_into_view_if_needed()
        visit.page.wait_for_load_state("networkidle")
        assert "undefined_name" in "".join(visit.problems) and "the still picture stays" in "".join(visit.problems)
        assert broken.locator("img").is_visible() and not broken.locator(".abe-stage").is_visible()
    with served(little) as address, Visit(browser, address, PAGE, scripts=False) as visit:
        assert visit.page.locator("figure[data-lab=mask] img").is_visible()
        assert not visit.page.locator(".abe-stage").first.is_visible()


def test_the_address_of_a_live_figure_leads_to_it(browser, little):
    with served(little) as address, Visit(browser, address, "labs/mask.html", scripts=False) as visit:
        visit.page.wait_for_url(address + PAGE + "#lab-mask")


def test_the_loader_is_on_pages_with_live_figures_only(little):
    assert "labs/loader.js" in (little / PAGE).read_text() and "labs/loader.js" not in (little / "index.html").read_text()


def test_pictures_of_328_pixels_on_a_phone_and_captions_in_both_themes(browser, little):
    for theme in ("light", "dark"):
        with served(little) as address, Visit(browser, address, PAGE, width=360, theme=theme) as visit:
            image = visit.page.locator("figure[data-lab=broken] img")
            bar = 360 - visit.page.evaluate("document.documentElement.clientWidth")  # on a phone it lies on the page
            assert image.bounding_box()["width"] + bar >= 328
            caption = visit.page.locator("figcaption").first
            assert contrast(caption) >= 7


@pytest.mark.parametrize(("width", "beside"), [(360, False), (1280, True)])
def test_panels_stand_in_a_row_where_there_is_room(width, beside, browser, little):
    with served(little) as address, Visit(browser, address, PAGE, width=width) as visit:
        for name in ("both", "usual"):
            one, two = (picture.bounding_box() for picture in visit.page.locator(f"#fig-{name} img").all())
            assert (one["y"] == two["y"]) == beside
            assert beside or two["y"] >= one["y"] + one["height"]
            assert one["width"] >= 300, "its letters are too small"


def test_an_output_is_as_far_from_the_next_cell_as_any_other(browser, little):
    """No output adds a margin of its own to that of its cell."""
    with served(little) as address, Visit(browser, address, PAGE) as visit:
        gaps = visit.page.evaluate(
            """() => [...document.querySelectorAll('div.cell_output')].map(e => {
            const deep = e => e.lastElementChild && /DIV|FIGURE/.test(e.tagName) ? deep(e.lastElementChild) : e;
            return e.parentElement.getBoundingClientRect().bottom - deep(e).getBoundingClientRect().bottom})"""
        )
        assert len(gaps) >= 6 and max(gaps) <= 8


def contrast(element):
    """Of the text of an element with the first background behind it that is not transparent."""
    ink, paper = element.evaluate(
        """e => {let behind = e; const color = () => getComputedStyle(behind).backgroundColor;
        while (/, 0\\)$|transparent/.test(color()) && behind.parentElement) behind = behind.parentElement;
        return [getComputedStyle(e).color, color()].map(c => c.match(/[\\d.]+/g).slice(0, 3).map(Number))}"""
    )
    light, dark = sorted(map(luminance, (ink, paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(levels):
    channels = np.array(levels) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_tables_and_sentences_are_set(little):
    page = BeautifulSoup((little / PAGE).read_text(), "html.parser")
    rows = [[cell.get_text(strip=True) for cell in row.find_all(["th", "td"])] for row in page.select("table tr")]
    assert rows[0] == ["word", "weight"] and len(rows) == 6 and rows[5][0] == "tired"
    assert "text-right" in page.select_one("table td:nth-of-type(2)")["class"]
    assert page.select_one(".cell_output strong").get_text() == "25%"


@pytest.mark.parametrize("rule", ["ids_are_unique", "images_have_alt_text", "nothing_loads_from_elsewhere",
                                  "outputs_have_captions", "captions_are_not_read_twice", "links_resolve"])  # fmt: skip
def test_the_page_keeps_the_rules(rule, little):
    site = Site(little)
    assert RULES[rule](site.pages[PAGE]) == []


def test_scripts_are_light():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "book" / "labs").glob("*.js")}
    assert sizes and not {name: size for name, size in sizes.items() if size > 15_000}
    assert sum(sizes.values()) <= 120 * 1024


def test_the_data_survive_the_markup(little):
    page = BeautifulSoup((little / PAGE).read_text(), "html.parser")
    data = json.loads(page.select_one("figure[data-lab=mask] script").get_text())
    np.testing.assert_allclose(data["vectors"], Q, atol=1e-6)
