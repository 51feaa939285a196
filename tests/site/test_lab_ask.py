"""The live "Ask a sentence": what it computes, by mouse, finger and key, against the library."""

import json
import re

import numpy as np
import pytest
from browser import Visit, served
from index_figure import ASKED, TEA
from live import PAGE, build, check_address, check_axe, check_fits, live, stored
from test_page_vectors import page_vectors, read

from attn_utils import attention, load_glove
from attn_utils.labs import page_normals

pytestmark = pytest.mark.site
FAMOUS = "the animal did not cross the street because it was too tired"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("source"), [stored("ask")])


@pytest.fixture(scope="module")
def vectors():
    """What the scripts hold, in 8 bits."""
    return {word: vector for text in page_vectors.scripts().values() for word, vector in read(text).items()}


def opened(browser, site, **options):
    return live(browser, site, "ask", **options)


def ready(visit):
    visit.page.wait_for_selector("[data-weights]")
    return visit


def words_of(visit):
    return json.loads(visit.figure.locator(".abe-stage").get_attribute("data-words"))


def expected(X, source="raw", draws=1, scale=True, temperature=1, **_):
    """The weights of the library, in the words of the page's state."""
    Q = K = np.asarray(X)
    if source == "random":
        W_Q, W_K = page_normals(draws, 2, 50, 50) / np.sqrt(50)
        Q, K = X @ W_Q, X @ W_K
    return attention(Q * ((1 if scale else np.sqrt(50)) / temperature), K, X)[1]


def ranks(X, word, other, draws):
    rows = [expected(X, "random", seed)[word] for seed in range(1, draws + 1)]
    return [1 + np.sum(row > row[other]) for row in rows]


def check(visit, words, vectors):
    state, X = visit.state(), np.array([vectors[word] for word in words])
    assert words_of(visit) == words
    word, other = (min(state[key], len(words) - 1) for key in ("word", "other"))  # of a longer sentence, the last
    weights = expected(X, **state)
    np.testing.assert_allclose(visit.numbers("weights"), weights, atol=1e-4)
    if state["source"] == "random":
        assert visit.numbers("ranks").tolist() == ranks(X, word, other, state["draws"])
    row = weights[word]
    assert re.search(rf"“{re.escape(words[word])}” gives most to .*?, {max(row):.2f}", visit.caption())
    bars = visit.figure.locator("svg[aria-label^=Bars]").get_attribute("aria-label")
    np.testing.assert_allclose([float(n) for n in re.findall(r" (\d\.\d\d)(?=[,.])", bars)], row, atol=0.0051)
    return weights


def test_it_begins_as_its_still_says(browser, site, vectors):
    with opened(browser, site) as visit:
        ready(visit)
        assert visit.caption() == visit.figure.evaluate("e => e.lab.still")
        check(visit, FAMOUS.split(), vectors)
        assert not [url for url in visit.requests if "words-rest" in url], "the examples wait for all words"


def test_the_page_reads_every_vector(browser, site, vectors):
    with opened(browser, site) as visit:
        ready(visit).page.evaluate("abeLabs.words.load('rest')")
        found = visit.page.evaluate("[...abeLabs.words.vectors].map(([word, vector]) => [word, vector])")
        assert len(found) == len(vectors) == 20_000
        np.testing.assert_allclose([vector for _, vector in found], [vectors[word] for word, _ in found], atol=1e-9)


def test_twenty_four_sentences_equal_the_library(browser, site, vectors):
    """The exact vectors move a weight by no more than the page says."""
    rng, kv = np.random.default_rng(0), load_glove()
    with opened(browser, site) as visit:
        ready(visit).page.evaluate("abeLabs.words.load('rest')")
        for n, trial in zip(range(2, 14), [*range(24)], strict=False):
            words = [str(word) for word in rng.choice(kv.index_to_key, n)]
            words = [word if re.search("[a-z]", word) else "the" for word in words]
            word, other = rng.integers(n, size=2).tolist()
            for source, bound in (("raw", 0.01), ("random", 0.02)):
                state = {"source": source, "draws": int(rng.integers(1, 9)), "scale": True, "temperature": 1}
                visit.set(text=" ".join(words), word=word, other=other, **state)
                weights = check(visit, words, vectors)
                exact = expected(np.array([kv[word] for word in words], float), **state)
                assert np.max(np.abs(weights - exact)) < bound
            visit.set(scale=bool(trial % 2), temperature=[0.25, 0.5, 2, 4][trial % 4])
            check(visit, words, vectors)


def test_mouse_finger_and_keys(browser, site, vectors):
    with opened(browser, site, touch=True) as visit:
        figure, keyboard, words = ready(visit).figure, visit.page.keyboard, FAMOUS.split()
        press = figure.locator(".abe-asked button")
        press.nth(1).click()
        assert visit.state()["word"] == 1
        press.nth(4).tap()
        for key in ("ArrowRight", "Home", "ArrowRight", "ArrowRight", "Space"):
            keyboard.press(key)
        assert visit.state()["word"] == 2 and press.nth(2).get_attribute("aria-pressed") == "true"
        check(visit, words, vectors)
        figure.get_by_label("Follow the word").select_option(index=6)
        figure.get_by_role("button", name="Draw again").tap()
        figure.get_by_role("button", name="Draw again").press("Enter")
        assert visit.state()["other"] == 6 and visit.state()["draws"] == 14
        check(visit, words, vectors)
        figure.get_by_role("button", name="Draw 50 more").click()
        assert len(visit.numbers("ranks")) == 64 and "Over 64 draws" in visit.caption()
        figure.get_by_role("button", name="Begin anew").click()
        assert "Over one draw" in visit.caption()
        figure.get_by_label("Divide by √50").press("Space")
        figure.get_by_label("Temperature").press("ArrowRight")
        assert visit.state()["scale"] is False and visit.state()["temperature"] == 2
        check(visit, words, vectors)
        figure.get_by_label("Raw vectors").press("Space")
        assert visit.state()["source"] == "raw" and not figure.get_by_role("button", name="Draw again").is_visible()
        figure.get_by_role("button", name="Tea").tap()
        assert check(visit, ASKED, vectors)[TEA].argmax() == TEA
        visit.page.wait_for_function("text => document.querySelector('.abe-said').textContent === text", arg=visit.caption())


def test_unknown_words_are_named_and_near_ones_offered(browser, site, vectors):
    with opened(browser, site) as visit:
        field = ready(visit).figure.get_by_label("Your sentence")
        field.fill("The animel, and “my” STREET!")
        visit.page.wait_for_function("() => abeLabs.words.whole()")
        assert words_of(visit) == ["the", "and", "my", "street"] and "no vector for “animel”" in visit.caption()
        visit.figure.get_by_role("button", name="animal", exact=True).click()
        check(visit, ["the", "animal", "and", "my", "street"], vectors)
        assert field.input_value() == "the animal and my street"
        for typed, wanted in (("exhaus", "exhausted"), ("kichen", "kitchen"), ("recieve", "receive")):
            field.fill(f"the {typed}")
            assert wanted in visit.figure.locator(".abe-offers button").all_inner_texts()
        field.fill("xqzzvw")
        assert visit.caption() == "There is no vector for “xqzzvw” here. Type a word that it knows."
        field.fill("the " * 20)
        assert len(words_of(visit)) == 16 and "The first 16 words count." in visit.caption()
        np.testing.assert_allclose(visit.numbers("weights"), 1 / 16, atol=1e-9)
        field.fill("")
        assert visit.caption() == "Type a word that it knows."
        for source in ("raw", "random"):
            visit.set(source=source)
            assert "undefined" not in visit.figure.locator(".abe-stage").inner_html()
            assert not visit.figure.locator(".abe-picture svg").filter(visible=True).count()
        visit.set(text="the bank of the bank", word=1, other=4, source="raw")
        assert visit.caption().startswith("With raw vectors, “bank (word 2)” gives most to itself")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_it_fits_and_axe_finds_nothing(width, theme, browser, site):
    with opened(browser, site, width=width, theme=theme) as visit:
        ready(visit)
        for state in ({}, {"source": "raw", "text": "internationally recognized organizations xqz"}):
            visit.set(**state)
            visit.page.wait_for_load_state("networkidle")
            check_fits(visit)
            check_axe(visit)


def test_its_state_stands_in_the_address(browser, site):
    with opened(browser, site) as visit:
        ready(visit)
        check_address(visit, text="my old dog slept", word=2, other=3, source="raw", temperature=0.5)


def test_it_works_from_a_folder_and_a_link_with_rare_words_keeps_its_place(browser, site, vectors):
    link = "#lab-ask?text=the%20exhausted%20nurse%20climbed&word=2&other=1"
    with live(browser, site, "ask", fragment=link) as visit:
        visit.page.wait_for_function("() => window.abeLabs?.words?.whole()")
        check(visit, "the exhausted nurse climbed".split(), vectors)
        assert visit.state()["word"] == 2 and "“nurse” gives most" in visit.caption()


def test_without_its_vectors_the_still_stays(browser, site):
    with served(site) as address, Visit(browser, address, "index.html") as visit:
        visit.page.route("**/words-first.js", lambda route: route.abort())
        visit.page.goto(address + PAGE + "#lab-ask")
        figure = visit.page.locator("figure[data-lab=ask]")
        figure.scroll_into_view_if_needed()
        visit.page.wait_for_function("() => window.abeLabs?.words && document.querySelector('.abe-stage').hidden")
        assert "the still picture stays" in "".join(visit.problems)
        assert figure.locator("img").is_visible() and not figure.locator(".abe-stage").is_visible()


@pytest.mark.parametrize("page, words", [("book/index.html", ASKED), ("notebooks/01_qkv_basics.html", FAMOUS.split())])
def test_the_book_shows_it(page, words, browser, built, vectors):
    """On the pages themselves, from a folder: what it says at first is what stands below the still."""
    with Visit(browser, built.as_uri() + "/", page) as visit:
        visit.figure = visit.page.locator("figure[data-lab=ask]")
        told = visit.figure.locator("figcaption").inner_text()
        visit.figure.scroll_into_view_if_needed()
        visit.page.wait_for_selector("[data-ranks]")
        assert visit.figure.locator("figcaption").inner_text() == told
        found = json.loads(visit.figure.locator(".abe-stage").get_attribute("data-weights"))
        state = visit.figure.evaluate("e => e.lab.state")
        shown = visit.figure.get_by_role("button", name="The animal").count()
        assert shown == (words != ASKED), "the first page answers the first question of chapter 1 at one press"
        np.testing.assert_allclose(found, expected(np.array([vectors[word] for word in words]), **state), atol=1e-4)
        assert not visit.problems
