"""The questions of the chapters on the site: all are recognised, and a reader can answer them."""

import pytest
from asked import CHAPTERS, build
from browser import Visit, served
from bs4 import BeautifulSoup
from lint import load
from lint.questions import answers, choices, predictions, questions
from live import axe_complaints

pytestmark = pytest.mark.site
ASKED = [path for path in CHAPTERS if "**Predict.**" in path.read_text(encoding="utf-8")]
FIRST = CHAPTERS[0].stem


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("asked"))


def page(site, path):
    return BeautifulSoup((site / "notebooks" / f"{path.stem}.html").read_text("utf8"), "html.parser")


def name(tag, prefix):
    return next(one for one in tag["class"] if one.startswith(prefix))[len(prefix) :]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_question_is_recognised(path, site):
    """As the rules for notebooks count them, which read the Markdown: each prediction, its options and its answer."""
    notebook, soup = load(path), page(site, path)
    text = "\n\n".join(cell.source for cell in notebook.own_markdown)
    asked = soup.select("p.abe-predict")
    assert len(asked) == len(predictions(text)) == len(soup.select("p.abe-told"))
    for one, quote in zip(asked, predictions(text), strict=True):
        letters = [option.select_one(".abe-letter").get_text() for option in one.select(".abe-option")]
        assert letters == [f"({letter})" for letter in choices(quote)[1]]
    assert [name(one, "abe-key-") for one in asked] == [name(one, "abe-key-") for one in soup.select("p.abe-told")]
    for one, (*_, letter) in zip(asked, answers(notebook), strict=True):
        assert letter in (None, name(one, "abe-right-"))
    checks, folded = soup.select("p.abe-check"), soup.select("details.abe-folded")
    assert len(checks) == len(questions(text)) and len(folded) == sum(len(options) for _, options in questions(text))
    for one in checks:
        options = []
        while (one := one.find_next_sibling()) and one.name == "details" and "abe-folded" in one.get("class", []):
            options.append(one)
        assert [option["data-letter"] for option in options] == list("abcdef"[: len(options)])
        assert sum(option.has_attr("data-right") for option in options) == 1


def test_the_script_is_on_pages_with_questions_only(site):
    for path in CHAPTERS:
        soup = page(site, path)
        assert bool(soup.select("script[src*='_static/questions.js']")) == bool(soup.select(".abe-predict, .abe-check"))
    assert "_static/questions.js" not in (site / "index.html").read_text("utf8")


def kept(visit):
    return visit.page.evaluate("JSON.parse(localStorage.getItem('abe-answers') || '{}')")


@pytest.mark.parametrize("path", ASKED, ids=lambda path: path.stem)
def test_a_reader_answers_every_question(path, browser, site):
    with served(site) as address, Visit(browser, address, f"notebooks/{path.stem}.html") as visit:
        soup = page(site, path)
        right = {name(one, "abe-key-"): name(one, "abe-right-") for one in soup.select("p.abe-predict")}
        forms = visit.page.locator("blockquote .abe-question")
        assert forms.count() == len(right) and not visit.page.locator(".abe-original:visible").count()
        for place, (form, letter) in enumerate(zip(forms.all(), right.values(), strict=True)):
            verdict = visit.page.locator(".abe-verdict").nth(place)
            assert not verdict.is_visible()
            pick = "ab"[place % 2]
            form.locator(f"input[value={pick}]").check()
            form.get_by_role("button").click()
            assert f"You predict ({pick})." in form.locator(".abe-status").inner_text()
            assert verdict.inner_text().startswith("✓" if pick == letter else "✗") and f"predicted ({pick})" in verdict.inner_text()
        for form in visit.page.locator(".abe-question:not(blockquote *)").all():
            folded = [one for one in soup.select("details.abe-folded")]
            group = soup.select(f"p.abe-check.abe-key-{form.locator('input').first.get_attribute('name')[4:]} ~ details.abe-folded")
            assert folded and group
            for option in group[: form.locator("input").count()]:
                form.locator(f"input[value={option['data-letter']}]").check()
                form.get_by_role("button").click()
                said = form.locator(".abe-status p").last
                assert said.inner_text().startswith(f"{'✓' if option.has_attr('data-right') else '✗'} ({option['data-letter']})")
                told = option.get_text().split(option.summary.get_text(), 1)[1].split()
                assert " ".join(said.inner_text().split()).endswith(" ".join(told))
        before = kept(visit)
        assert len(before) == visit.page.locator(".abe-question").count()
        visit.page.reload()
        assert kept(visit) == before and visit.page.locator(".abe-verdict:visible").count() == len(right)
        assert visit.page.locator(".abe-question input:checked").count() == len(before)
        visit.page.get_by_role("button", name="Forget my answers").click()
        assert kept(visit) == {} and not visit.page.locator(".abe-question input:checked").count()
        assert not visit.page.locator(".abe-verdict:visible").count() and not visit.problems


def test_keyboard_from_a_folder(browser, site):
    with Visit(browser, site.as_uri() + "/", f"notebooks/{FIRST}.html") as visit:
        keyboard, form = visit.page.keyboard, visit.page.locator(".abe-question").first
        form.get_by_role("button").press("Enter")
        assert form.locator(".abe-status").inner_text() == "Choose an answer first."
        form.locator("input").first.focus()
        for key in ("Space", "ArrowDown", "ArrowDown", "ArrowUp"):
            keyboard.press(key)
        assert form.locator("input:checked").get_attribute("value") == "b"
        keyboard.press("Enter")
        assert "You predict (b)" in form.locator(".abe-status").inner_text() and form.locator("input").first.is_disabled()
        assert "You were right" in visit.page.locator(".abe-verdict").first.inner_text()
        form.get_by_role("button", name="Change my prediction").press("Enter")
        assert visit.page.evaluate("document.activeElement.value") == "b" and form.locator("input").first.is_enabled()
        assert not visit.page.locator(".abe-verdict").first.is_visible() and not visit.problems


def test_a_browser_that_keeps_nothing_answers_all_the_same(browser, site):
    with served(site) as address, Visit(browser, address, "index.html") as visit:
        visit.page.add_init_script("Storage.prototype.setItem = Storage.prototype.getItem = () => { throw new Error('no') }")
        visit.page.goto(address + f"notebooks/{FIRST}.html")
        form = visit.page.locator(".abe-question").first
        form.get_by_label("(a)").check()
        form.get_by_role("button").click()
        assert "You predict (a)" in form.locator(".abe-status").inner_text()
        form.get_by_role("button").click()
        assert form.locator("input").first.is_enabled()
        check = visit.page.locator(".abe-question:not(blockquote *)").first
        for letter in "ab":
            check.locator(f"input[value={letter}]").check()
            check.get_by_role("button").click()
        assert check.locator(".abe-status p").count() == 2


MANGLED = ("5", "null", '"x"', '{"pick": 3, "tried": "zz"}', '{"pick": "<b>", "committed": true}', '{"pick": "z", "committed": true}',
           '{"pick": "a", "tried": ["q", 7]}', '{"pick": "a", "tried": 7}')  # fmt: skip


def test_answers_of_another_make_stop_nothing(browser, site):
    """What an older page or another script has stored: every question is there, and can be answered."""
    with served(site) as address, Visit(browser, address, f"notebooks/{FIRST}.html") as visit:
        names = visit.page.evaluate("[...new Set([...document.querySelectorAll('.abe-question input')].map(i => i.name.slice(4)))]")
        for one in MANGLED:
            text = "{" + ", ".join(f'"{name}": {one}' for name in names) + "}"
            visit.page.evaluate("text => localStorage.setItem('abe-answers', text)", text)
            visit.page.reload()
            assert visit.page.locator(".abe-question").count() == len(names)
            assert visit.page.locator(".abe-verdict:visible").count() == 0
            assert visit.page.locator(".abe-question input:disabled").count() == 0
        assert not visit.problems


def test_print_and_readers_without_scripts_see_the_text(browser, site):
    with served(site) as address, Visit(browser, address, f"notebooks/{FIRST}.html", scripts=False) as visit:
        assert visit.page.locator("p.abe-predict").first.is_visible() and visit.page.locator("details.abe-folded").first.is_visible()
    with served(site) as address, Visit(browser, address, f"notebooks/{FIRST}.html") as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.locator("p.abe-predict").first.is_visible() and visit.page.locator("details.abe-folded").first.is_visible()
        assert not visit.page.locator(".abe-question:visible, .abe-verdict:visible, .abe-forget:visible").count()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_they_fit_a_thumb_and_axe_finds_nothing(width, theme, browser, site):
    with served(site) as address, Visit(browser, address, f"notebooks/{FIRST}.html", width=width, theme=theme) as visit:
        for form in visit.page.locator(".abe-question").all():
            form.get_by_label("(a)").check()
            form.get_by_role("button").click()
        sizes = visit.page.evaluate("[...document.querySelectorAll('.abe-question :is(label, button), .abe-forget')]"
                                    ".map(e => e.getBoundingClientRect().height)")  # fmt: skip
        assert min(sizes) >= 44
        assert visit.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert not axe_complaints(visit.page, ".abe-question, .abe-verdict, .abe-forget")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_book_has_them_all(path, built, site):
    """The pages themselves mark the same questions as the pages of text alone."""
    for selector in ("p.abe-predict", "p.abe-told", "p.abe-check"):
        assert [one["class"] for one in page(built, path).select(selector)] == [one["class"] for one in page(site, path).select(selector)]
