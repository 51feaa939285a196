"""A small site of one page with outputs on it, and a live figure on that page, in Chromium."""

import json
import shutil
from contextlib import contextmanager
from importlib import resources

import nbformat
import numpy as np
from browser import Visit, missing, served
from html_rules import ROOT
from sphinx.application import Sphinx

PAGE = "notebooks/page.html"
CONF = """
import sys
sys.path.insert(0, {ext!r})
extensions, html_theme, language = ["myst_nb", "live_figures", "page_vectors"], "sphinx_book_theme", "en"
html_static_path, html_css_files = [{css!r}], ["book.css", "outputs.css", "labs.css"]
nb_execution_mode, nb_render_markdown_format = "off", "myst"
html_favicon = {icon!r}
html_context = {{"default_mode": "light"}}
"""


def build(source, outputs, scripts=None):
    """Build a site of one page, in the book's styles, from outputs of cells. scripts: texts of more of them, by name."""
    cells = [nbformat.v4.new_code_cell("1", outputs=[one], execution_count=1) for one in outputs]
    title = nbformat.v4.new_markdown_cell("# A page\n\n" + "Words. " * 2000)
    last = nbformat.v4.new_markdown_cell("## The end\n\n" + "Words. " * 500)
    (source / "notebooks").mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=[title, *cells, last]), source / "notebooks" / "page.ipynb")
    (source / "index.md").write_text("# Home\n\n```{toctree}\nnotebooks/page\n```\n")
    (source / "book" / "labs").mkdir(parents=True)
    files = {path.name: path.read_text("utf8") for path in (ROOT / "book" / "labs").glob("*.js")}
    for name, text in {**files, **(scripts or {})}.items():
        (source / "book" / "labs" / name).write_text(text, "utf8")
    shutil.copyfile(ROOT / "book" / "labs" / "heads.npz", source / "book" / "labs" / "heads.npz")
    places = {"ext": "_ext", "css": "css", "icon": "images/favicon.svg"}
    places = {name: str(ROOT / "book" / place) for name, place in places.items()}
    (source / "conf.py").write_text(CONF.format(**places))
    out = source / "_build"
    Sphinx(source, source, out, source / "_doctrees", "html", status=None, warning=None).build()
    return out


def stored(name, chapter=""):
    """The output of lab(name, ...) as it stands in the notebooks, or in the one whose file begins with `chapter`."""
    for path in sorted((ROOT / "notebooks").glob(f"{chapter}*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if f'data-lab="{name}"' in str(output.get("data", {}).get("text/html", "")):
                    return output
    raise LookupError(f"no notebook of the book shows lab({name!r}, ...)")


class Live(Visit):
    """A page whose live figure `name` is in view. numbers() are what it exposes, set() changes its state."""

    def __init__(self, browser, address, name, fragment="", **options):
        super().__init__(browser, address, PAGE + fragment, **options)
        self.name = name
        self.figure = self.page.locator(f"figure[data-lab={name}]")
        if not fragment.startswith("#lab-"):
            self.figure.scroll_into_view_if_needed()
        self.page.wait_for_selector(f"figure[data-lab={name}].abe-live")

    def numbers(self, name):
        return np.array(json.loads(self.figure.locator(".abe-stage").get_attribute(f"data-{name}")), float)

    def set(self, **state):
        self.figure.evaluate("(e, state) => e.lab.set(state)", state)

    def state(self):
        return self.figure.evaluate("e => e.lab.state")

    def caption(self):
        return self.figure.locator("figcaption").inner_text()

    def data(self):
        return self.figure.evaluate("e => e.lab.data")


@contextmanager
def live(browser, site, name, **options):
    """Open a live figure; at the end, nothing may have gone wrong on the page."""
    with served(site) as address, Live(browser, address, name, **options) as visit:
        yield visit
        assert not visit.problems


def check_fits(visit):
    """What every live figure keeps, at the width of this page: it fits, and fingers and eyes find its controls."""
    assert visit.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    small = visit.figure.evaluate(
        """e => [...e.querySelectorAll('button, select, summary, input, svg [tabindex]')].filter(c => c.checkVisibility())
        .map(c => [c.getAttribute('aria-label') || c.textContent || c.type, c.getBoundingClientRect()])
        .filter(([_, box]) => box.width < 43.9 || box.height < 43.9).map(([name, box]) => [name, box.width, box.height])"""
    )
    assert not small, "controls too small for a thumb"
    letters = visit.figure.evaluate(
        "e => [...e.querySelectorAll('svg text')].map(t => parseFloat(getComputedStyle(t).fontSize))"
    )
    assert min(letters, default=11) >= 11
    outside = visit.figure.evaluate(
        """e => {const stage = e.querySelector('.abe-stage').getBoundingClientRect();
        return [...e.querySelectorAll('svg text, button, input, table')].filter(t => t.checkVisibility())
        .filter(t => {const box = t.getBoundingClientRect(); return box.left < stage.left - 1 || box.right > stage.right + 1})
        .map(t => t.textContent || t.outerHTML.slice(0, 80))}"""
    )
    assert not outside, "what sticks out of the stage"


def axe_complaints(page, selector):
    """What axe finds wrong with the elements of a page."""
    try:
        axe = resources.files("axe_playwright_python") / "axe.min.js"
    except ImportError:
        missing("the package axe-playwright-python is not installed")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe.read_text("utf8"))
    found = page.evaluate("s => axe.run([...document.querySelectorAll(s)], {preload: false})", selector)
    assert found["passes"], "axe looked at nothing"
    return [(one["id"], node["html"][:100], node["failureSummary"][:200])
            for one in found["violations"] for node in one["nodes"]]  # fmt: skip


def check_axe(visit):
    """No complaint of axe about the live figure."""
    assert not axe_complaints(visit.page, f"figure[data-lab={visit.name}]")


def check_address(visit, **state):
    """A state travels in the address: a link opens it, Reset leads back, and the page's anchors go on working."""
    begin, page = visit.state(), visit.page
    visit.set(**state)
    link = visit.figure.evaluate("e => e.lab.link()")
    page.wait_for_function("link => location.href === link", arg=link)
    changed = visit.state()
    assert changed != begin
    visit.figure.get_by_role("button", name="Reset").click()
    assert visit.state() == begin
    page.wait_for_function("() => !location.hash")
    page.goto(link)  # the same document: only the fragment changes
    page.wait_for_function("() => location.hash.length > 1")
    assert visit.state() == changed
    page.evaluate("location.hash = '#the-end'")
    assert visit.state() == changed
    page.go_back()
    page.wait_for_function("link => location.href === link", arg=link)
    assert visit.state() == changed
    page.reload()
    page.wait_for_selector("figure.abe-live")
    assert visit.state() == changed, "a new visitor sees another state than the one who sent the link"
