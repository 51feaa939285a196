"""What the live figures share, against NumPy and attn_utils: mathematics, random numbers, the address, the controls."""

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from browser import Visit, served
from live import PAGE, build, check_axe, check_fits, live

from attn_utils import attention, labs, softmax

pytestmark = pytest.mark.site
TRIAL = """
abeLabs.define("trial", function (lab) {
  lab.begin({depth: 2, kind: "a", on: true, word: "tea", grid: [1, 2, 3, 4], place: 0.5});
  const handle = abeLabs.element("button", {type: "button", "class": "abe-button", style: "touch-action: pan-y"}, "drag me");
  abeLabs.drag(handle, {move: function (dx) { lab.set({place: dx}); }});
  lab.stage.append(
    lab.slider({key: "depth", label: "Depth", min: 0, max: 12, text: function (v) { return v + " layers"; }}),
    lab.choice({key: "kind", label: "Kind", options: [{value: "a", label: "first"}, {value: "b", label: "second"}]}),
    lab.toggle({key: "on", label: "On"}),
    lab.field({key: "word", label: "Word"}), lab.stepper({key: "depth", label: "Steps", min: 0, max: 12}),
    lab.cells({key: "grid", caption: "Grid", rows: ["r", "s"], columns: ["a", "b"], min: -9, max: 9,
      label: function (i, j) { return "row " + i + ", column " + j; }}),
    handle,
    lab.picture({height: 120, draw: function (pen) {
      const plot = pen.axes({x: [0, 4], y: [0, 9], xLabel: "place", yLabel: "number"});
      pen.bars(plot, lab.state.grid, {at: [0.5, 1.5, 2.5, 3.5]});
      return "Bars of " + lab.state.grid.join(", ") + ".";
    }}));
  lab.run(function (state) {
    lab.numbers({grid: state.grid});
    return "Depth " + state.depth + ", kind " + state.kind + ", " + (state.on ? "on" : "off") + ", " + state.word + ".";
  });
});
"""


def output(name):
    """What lab(name, ...) displays."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labs, "show", lambda mime, content, text: seen.append({mime: content, "text/plain": text}))
        labs.lab(name, plt.figure(figsize=(3, 2)), "Depth 2, kind a, on, tea.")
    return nbformat.v4.new_output("display_data", data=seen[0])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    matplotlib.use("agg")
    scripts = {"trial.js": TRIAL, "other.js": TRIAL.replace('"trial"', '"other"')}
    return build(tmp_path_factory.mktemp("source"), [output("trial"), output("other")], scripts)


@pytest.fixture
def trial(browser, site):
    with live(browser, site, "trial", touch=True) as visit:
        yield visit


def call(visit, name, *arguments):
    """A function of the common part, on the page."""
    return visit.page.evaluate("([name, args]) => abeLabs[name](...args)", [name, arguments])


def test_random_numbers_are_those_of_python(trial):
    for seed in (0, 1, 17, 2**32 - 1):
        np.testing.assert_allclose(call(trial, "normals", seed, 101), labs.page_normals(seed, 101), atol=1e-12)


def test_mathematics_equals_numpy(trial):
    rng = np.random.default_rng(0)
    for n, d in ((2, 2), (3, 5), (8, 4), (6, 6), (12, 50)):
        Q, K, V = rng.normal(size=(3, n, d)) * 3
        mask = rng.random((n, n)) < 0.6
        found = call(trial, "attention", Q.tolist(), K.tolist(), V.tolist(), {"mask": mask.tolist()})
        output, weights = attention(Q, K, V, mask=mask)
        np.testing.assert_allclose(found["weights"], weights, atol=1e-12)
        np.testing.assert_allclose(found["output"], output, atol=1e-12)
        np.testing.assert_allclose(call(trial, "softmax", Q[0].tolist()), softmax(Q[0]), atol=1e-12)
        low = np.outer(Q[:, 0], K[0]) + 1e-7 * V  # nearly of rank 1
        for A in (Q, Q.T, low, np.zeros((n, d))):
            exact = np.linalg.svd(A, compute_uv=False)
            np.testing.assert_allclose(call(trial, "singularValues", A.tolist()), exact, atol=1e-12 * (1 + exact[0]))


def test_every_control_by_mouse_finger_and_key(trial):
    page, lab = trial.page, trial.figure
    slider = lab.get_by_role("slider", name="Depth")
    width = slider.bounding_box()["width"]
    for key, depth in (("ArrowRight", 3), ("End", 12), ("ArrowLeft", 11), ("Home", 0)):
        slider.press(key)
        assert trial.state()["depth"] == depth and slider.get_attribute("aria-valuetext") == f"{depth} layers"
        assert slider.bounding_box()["width"] == width
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert trial.state()["depth"] == 6
    page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert trial.state()["depth"] == 12
    lab.get_by_role("button", name="one more").first.click(force=True)
    assert trial.state()["depth"] == 12, "the stepper passes its end"
    lab.get_by_role("button", name="one less").first.tap()
    lab.get_by_role("button", name="one less").first.press("Enter")
    assert trial.state()["depth"] == 10
    lab.get_by_role("radio", name="first").press("ArrowRight")
    assert trial.state()["kind"] == "b" and "kind b" in trial.caption()
    lab.get_by_role("radio", name="first").tap()
    assert trial.state()["kind"] == "a"
    lab.get_by_role("checkbox", name="On").press("Space")
    assert not trial.state()["on"]
    lab.get_by_role("checkbox", name="On").tap()
    assert trial.state()["on"]
    lab.get_by_label("Word").fill("a/b&c=d, é?")
    assert trial.state()["word"] == "a/b&c=d, é?"


def test_a_matrix_is_written_dragged_and_stepped(trial):
    cell = trial.figure.get_by_role("spinbutton", name="row 1, column 0")
    cell.press("ArrowUp")
    assert trial.state()["grid"] == [1, 2, 4, 4]
    cell.fill("-2.5")
    cell.fill("")
    cell.press("Tab")
    assert trial.state()["grid"] == [1, 2, -2.5, 4] and cell.input_value() == "-2.5"
    cell.fill("400")
    cell.press("Tab")
    assert trial.state()["grid"][2] == 9 and cell.input_value() == "9"
    drag(trial, cell, -24, "mouse")
    assert trial.numbers("grid").tolist() == [1, 2, 7, 4]


def test_a_drag_goes_sideways_and_a_swipe_scrolls(trial):
    handle = trial.figure.get_by_role("button", name="drag me")
    drag(trial, handle, 40, "mouse")
    assert trial.state()["place"] == 40
    drag(trial, handle, 30, "touch")
    assert trial.state()["place"] == pytest.approx(30, abs=1)
    assert handle.evaluate("e => getComputedStyle(e).touchAction") == "pan-y"


def drag(visit, element, dx, kind):
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if kind == "mouse":
        visit.page.mouse.move(x, y)
        visit.page.mouse.down()
        visit.page.mouse.move(x + dx, y, steps=5)
        visit.page.mouse.up()
        return
    device = visit.context.new_cdp_session(visit.page)
    for name, at in (("touchStart", 0), *(("touchMove", dx * i / 5) for i in range(1, 6)), ("touchEnd", None)):
        points = [] if at is None else [{"x": x + at, "y": y}]
        device.send("Input.dispatchTouchEvent", {"type": name, "touchPoints": points})


def test_the_sentence_is_read_out_when_the_hand_rests(trial):
    said = trial.figure.locator(".abe-said")
    assert said.text_content() == "", "it speaks before anything changed"
    slider = trial.figure.get_by_role("slider", name="Depth")
    trial.page.evaluate(
        """() => {window.spoken = []; new MutationObserver(() => spoken.push(document.querySelector('.abe-said').textContent))
        .observe(document.querySelector('.abe-said'), {childList: true})}"""
    )
    for _ in range(5):
        slider.press("ArrowRight")
    trial.page.wait_for_function("spoken.length > 0")
    assert trial.page.evaluate("spoken") == [trial.caption()]


def test_two_figures_share_the_address(browser, site):
    with live(browser, site, "trial") as visit:
        page = visit.page
        visit.set(depth=5, word="a/b & é", grid=[1, 2, 3, -4.25])
        page.wait_for_function("() => location.hash.startsWith('#lab-trial?')")
        page.locator("#lab-other").scroll_into_view_if_needed()
        page.wait_for_selector("#lab-other.abe-live")
        page.evaluate("document.getElementById('lab-other').lab.set({on: false})")
        page.wait_for_function("() => location.hash.startsWith('#lab-other?')")
        link = page.url
    with live(browser, site, "other", fragment="#" + link.split("#")[1]) as visit:
        assert visit.state()["on"] is False
        assert visit.figure.evaluate("e => Math.abs(e.getBoundingClientRect().top)") < 400, "the link leads elsewhere"
        visit.page.locator("#lab-trial").scroll_into_view_if_needed()
        visit.page.wait_for_selector("#lab-trial.abe-live")
        state = visit.page.evaluate("document.getElementById('lab-trial').lab.state")
        assert (state["depth"], state["word"], state["grid"]) == (5, "a/b & é", [1, 2, 3, -4.25])


def test_a_figure_that_was_not_seen_keeps_its_part_of_the_address(browser, site):
    with live(browser, site, "trial", fragment="#lab-trial?depth=7/lab-unseen?x=1") as visit:
        visit.set(depth=8)
        visit.page.wait_for_function("() => location.hash === '#lab-trial?depth=8/lab-unseen?x=1'")


@pytest.mark.parametrize("fragment", ["#lab-trial?depth=x&grid=1,b&on=7&constructor=1&%E0%A4", "#lab-trial?", "#the-end"])
def test_a_mangled_address_does_no_harm(fragment, browser, site):
    with live(browser, site, "trial", fragment=fragment) as visit:
        assert visit.caption() == "Depth 2, kind a, on, tea." and visit.state()["grid"] == [1, 2, 3, 4]


def test_the_link_is_copied(browser, site):
    with live(browser, site, "trial") as visit:
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visit.set(depth=9)
        visit.figure.get_by_role("button", name="Copy link").click()
        visit.figure.get_by_role("button", name="Link copied").wait_for()
        assert visit.page.evaluate("navigator.clipboard.readText()").endswith(PAGE + "#lab-trial?depth=9")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_controls_fit_a_phone_and_axe_finds_nothing(theme, browser, site):
    with live(browser, site, "trial", width=360, theme=theme) as visit:
        check_fits(visit)
        check_axe(visit)
        visit.page.set_viewport_size({"width": 800, "height": 800})
        visit.page.wait_for_function("document.querySelector('#lab-trial svg').clientWidth > 500")
        check_fits(visit)


@pytest.mark.parametrize("fragment", ["#lab-constructor?a=1", "#lab-trial?toString=1&__proto__=2&depth=NaN", "#lab-?=&&&/lab-trial"])
def test_names_of_the_language_are_no_figures(fragment, trial):
    before = trial.caption()
    trial.page.evaluate("hash => { location.hash = hash; }", fragment)
    trial.page.wait_for_timeout(50)  # hashchange comes late
    assert trial.caption() == before and not trial.problems


def test_an_address_holds_a_short_text(trial):
    """A link may hold anything; the sentence below a figure stays one, and no letter of two halves is cut."""
    trial.page.evaluate("location.hash = '#lab-trial?word=a' + encodeURIComponent('😀').repeat(20000)")
    trial.page.wait_for_function("() => document.querySelector('figcaption').textContent.includes('😀')")
    assert trial.state()["word"] == "a" + "😀" * 139
    trial.set(depth=3)
    trial.page.wait_for_function("() => location.hash.includes('depth=3')")


def test_where_a_figure_fails_the_caption_is_that_of_the_still(browser, tmp_path):
    broken = TRIAL.replace('return "Bars of', 'throw new Error("broken"); return "Bars of').replace('return "Depth "', 'return "Deep "')
    out = build(tmp_path, [output("trial")], {"trial.js": broken})
    with served(out) as address, Visit(browser, address, PAGE + "#lab-trial") as visit:
        visit.page.wait_for_function("() => document.querySelector('.abe-stage').hidden && window.abeLabs")
        visit.page.wait_for_timeout(300)
        assert visit.page.locator("figcaption").inner_text() == "Depth 2, kind a, on, tea."
        assert "broken" in "".join(visit.problems)


def test_the_sentence_of_the_still_is_printed_with_it(trial):
    """In print the still stands, whatever was changed before: the caption must be about what is seen."""
    trial.set(depth=7)
    trial.page.evaluate("addEventListener('beforeprint', () => { window.printed = document.querySelector('figcaption').textContent; })")
    trial.page.pdf()
    assert trial.page.evaluate("window.printed") == trial.figure.evaluate("e => e.lab.still")
    trial.page.wait_for_function("() => document.querySelector('figcaption').textContent.startsWith('Depth 7')")
