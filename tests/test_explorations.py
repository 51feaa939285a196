"""The two forms of an exploration, its captions, and its limits."""

import base64
import io
import json
import re

import matplotlib
import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from attn_utils import explorations, explore, explore_3d, outputs
from attn_utils.pictures import Picture

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    matplotlib.use("agg")
    with plt.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch):
    """What would be displayed in a kernel."""
    seen = []
    monkeypatch.setattr(explorations, "show_both", lambda *parts: seen.append(parts))
    return seen


def bars(height):
    figure, ax = plt.subplots(figsize=(3, 2))
    ax.bar([0, 1], [height, 1])
    return figure


def frames(markup):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', markup, re.S).group(1))


def test_the_html_holds_every_frame_with_its_caption_and_alt_text(shown):
    explore(bars, "The first is {height} high.", "Two bars, the first of height {height}", height=[1, 2, 3])
    markup = shown[0][0]
    data = frames(markup)
    assert [frame["label"] for frame in data] == ["height = 1", "height = 2", "height = 3"]
    assert [frame["alt"] for frame in data] == [f"Two bars, the first of height {h}" for h in (1, 2, 3)]
    assert [frame["caption"] for frame in data] == [f"The first is {h} high." for h in (1, 2, 3)]
    assert len({frame["src"] for frame in data}) == 3 and all(f["src"].startswith("data:image/webp") for f in data)
    assert 'type="range" min="0" max="2"' in markup and 'alt="Two bars, the first of height 1"' in markup
    assert '<figcaption aria-live="polite">The first is 1 high.</figcaption>' in markup
    assert "<noscript>" in markup and not re.search(r"https?://", markup)


def test_alt_alone_is_the_caption_and_the_pictures_are_read_off(shown):
    explore(bars, alt="The first is {height} high.", height=[1, 2])
    data = frames(shown[0][0])
    assert [frame["caption"] for frame in data] == ["The first is 1 high.", "The first is 2 high."]
    assert [frame["alt"] for frame in data] == ["height = 1. Bars: see the caption.", "height = 2. Bars: see the caption."]


def test_frames_are_as_sharp_as_the_limit_allows(shown, monkeypatch):
    explore(bars, "{height}", height=[1, 2])
    sharp, size = pixels(frames(shown[0][0])[0]["src"]), re.search(r'width="(\d+)" height="(\d+)"', shown[0][0]).groups()
    monkeypatch.setattr(explorations, "MAX_BYTES", len(shown[0][0]) - 1)
    explore(bars, "{height}", height=[1, 2])
    assert sharp == (660, 440) and size == ("330", "220")
    assert pixels(frames(shown[1][0])[0]["src"]) == (495, 330) and 'width="330" height="220"' in shown[1][0]


def test_the_id_does_not_depend_on_the_sharpness(shown, monkeypatch):
    monkeypatch.setattr(outputs, "in_kernel", lambda: True)
    monkeypatch.setattr(outputs, "_GIVEN", outputs.Counter())
    monkeypatch.setattr(explorations, "MAX_BYTES", 9_500)
    explore(bars, "Bars of height {height}", height=[1, 2])
    assert 'id="explore-height-bars-of-height"' in shown[0][0] and pixels(frames(shown[0][0])[0]["src"]) < (660, 440)


def pixels(address):
    return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).size


def test_the_slider_keeps_its_width(shown):
    explore(bars, "{height}", label=lambda h: "x" * h, height=[1, 30])
    assert '<output style="width:30ch">x</output>' in shown[0][0]


def test_running_it_again_gives_the_same_bytes(shown):
    for _ in range(2):
        explore(bars, alt="{height}", height=[1, 2])
    assert shown[0][0] == shown[1][0]


def test_two_explorations_have_two_ids(shown, monkeypatch):
    monkeypatch.setattr(outputs, "in_kernel", lambda: True)
    monkeypatch.setattr(outputs, "_GIVEN", outputs.Counter())
    explore(bars, "Bars of height {height}", height=[1, 2])
    explore(bars, "Bars of height {height}", height=[1, 3])
    ids = [re.search(r'id="(explore-[\w-]+)"', parts[0]).group(1) for parts in shown]
    assert ids == ["explore-height-bars-of-height", "explore-height-bars-of-height-2"]


def small(figsize=(3, 2)):
    return plt.subplots(figsize=figsize)[1]


def test_letters_that_are_too_small_on_a_phone_are_refused(shown):
    """As figure() measures them, in every frame; a still of explore_3d as well."""

    def grows(size):
        small().set_xlabel("key", fontsize=size)

    explore(grows, "At {size}.", size=[9, 10])
    with pytest.raises(ValueError, match=r"draw\(6\): the text 'key' is 6 points large.*at least 11"):
        explore(grows, "At {size}.", size=[10, 6])
    with pytest.raises(ValueError, match="draw.1.*letters are 7.1 pixels large"):
        explore(lambda h: small((6.4, 4.8)).bar([0], [h]) and None, "At {h}.", h=[1, 2])
    with pytest.raises(ValueError, match="still: the text .* 10 points large"):
        explore_3d(small((6.4, 4.8)).figure, scene(), "Three points on a line.")


def test_labels_alt_functions_and_pyplot_drawings(shown):
    explore(
        lambda h: small().bar([0], [h]) and None, alt=lambda h: f"<{h}> & more", label=lambda h: f"{h} cm", height=[1, 2]
    )
    markup = shown[0][0]
    assert frames(markup)[1] == {**frames(markup)[1], "caption": "<2> & more", "label": "2 cm"}
    assert ">&lt;1&gt; &amp; more</figcaption>" in markup
    assert plt.get_fignums() == []  # nothing is left to be shown a second time


def test_the_slider_says_what_it_moves_and_labels_are_text(shown):
    explore(bars, "{height}", label=lambda h: f'<i>"{h}"', height=[1, 2])
    page = BeautifulSoup(shown[0][0], "html.parser")
    assert page.input["aria-label"] == "height" and page.input["aria-valuetext"] == '<i>"1"'
    assert '(<i>"1").' in page.noscript.get_text() and not page.find("i")


def test_a_tiny_negative_number_is_zero_on_every_machine():
    assert str(outputs.plain([-1e-9, np.float32(-1e-9)])) == "[0.0, 0.0]"


def test_text_cannot_end_the_script(shown):
    explore(bars, alt="</script><b>{height}", height=[1, 2])
    assert shown[0][0].count("</script>") == 2
    explore(bars, alt="<!--<script>{height}", height=[1, 2])
    assert "<!--<script" not in shown[1][0].split("<figure")[1]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alt": "x"}, "exactly one"),
        ({"alt": "x", "a": [1, 2], "b": [1, 2]}, "exactly one"),
        ({"alt": "x", "height": [1]}, "at least two"),
        ({"alt": " ", "height": [1, 2]}, "the caption at height = 1"),
        ({"height": [1, 2]}, "no caption is given"),
        ({"caption": "{height}", "alt": "", "height": [1, 2]}, "the alt text at height = 1"),
        ({"caption": "$d_k$ = {height}", "height": [1, 2]}, "holds TeX"),
        ({"caption": "x", "height": 3}, "height is 3, expected several values"),
        ({"caption": "x", "height": "ab"}, "height is 'ab', expected several values"),
        ({"caption": "x", "label": "cm", "height": [1, 2]}, "label is 'cm', expected a function"),
        ({"caption": 3, "height": [1, 2]}, "the caption at height = 1 is 3"),
        ({"caption": "{height:q}", "height": [1, 2]}, "template '{height:q}' cannot be filled at height = 1"),
        ({"caption": "{height.size}", "height": [1, 2]}, "cannot be filled"),
        ({"caption": "{height", "height": [1, 2]}, "cannot be filled.*Write {{ for a brace"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        explore(bars, **options)


def test_what_is_no_figure_and_no_function_is_named():
    with pytest.raises(ValueError, match="draw is None, expected a function of height"):
        explore(None, "x", height=[1, 2])
    for still, turned, message in (
        (None, scene(), "still is NoneType, expected a matplotlib Figure"),
        (bars(1), scene().to_dict(), "scene is dict, expected a plotly Figure"),
        (scene(), bars(1), "still is Figure"),
    ):
        with pytest.raises(ValueError, match=message):
            explore_3d(still, turned, "x")


def test_an_error_inside_a_caption_function_is_its_own():
    with pytest.raises(KeyError, match="depth"):
        explore(bars, lambda height: {}["depth"], height=[1, 2])


def test_too_heavy_and_uneven_frames_are_refused(shown):
    rng = np.random.default_rng(0)

    def noise(n):
        small(figsize=(4, 4)).imshow(rng.random((300, 300)))

    with pytest.raises(ValueError, match="KB"):
        explore(noise, alt="noise {n}", n=[1, 2, 3])
    with pytest.raises(ValueError, match="sizes"):
        explore(lambda w: plt.figure(figsize=(w, 2)), alt="{w}", w=[2, 3])


def test_without_a_kernel_the_text_is_printed(capsys):
    explore(bars, alt="{height}", height=[1, 2])
    assert capsys.readouterr().out == "Slider over height: height = 1, height = 2\n"


def run_cell(source):
    cells = [nbformat.v4.new_code_cell(source)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    return notebook.cells[0].outputs


def test_in_a_kernel_one_output_carries_both_forms():
    source = (
        "import matplotlib.pyplot as plt\nfrom attn_utils import explore\n"
        "explore(lambda h: plt.subplots(figsize=(3, 2))[1].bar([0], [h]) and None, alt='{h}', h=[1, 2])"
    )
    (output,) = run_cell(source)
    assert set(output["data"]) == {"text/html", "text/plain", VIEW}


def test_a_progress_bar_leaves_nothing_but_a_widget():
    source = (
        "import numpy as np, autograd.numpy as anp\nfrom attn_utils.training import fit\n"
        "_ = fit(lambda p: anp.sum(p['x']**2), {'x': np.ones(2)}, lambda rng: (), 5, rng=np.random.default_rng(0))"
    )
    for output in run_cell(source):
        assert set(output["data"]) == {VIEW}


FRAMES = [Picture(name, 4, 3) for name in (b"1", b"2", b"3")]


def test_the_widget_moves_its_picture():
    widget = explorations._slider_widget("h", [("one", "A <1>.", "a <1>"), ("two", "B.", "b")], FRAMES[:2])
    (play, slider), picture = widget.children[0].children, widget.children[1]
    assert 'alt="a &lt;1&gt;"' in picture.value and '<p role="status">A &lt;1&gt;.</p>' in picture.value
    slider.value = 1
    assert 'alt="b"' in picture.value and "B." in picture.value
    play.value = 0
    play.value = 1
    assert slider.value == 1


def scene():
    from plotly import graph_objects

    points = np.array([0.123456789, -1e-9, 2]), [0, 1, 2], [np.float32(0.5), 1, 2]
    return graph_objects.Figure(graph_objects.Scatter3d(x=points[0], y=points[1], z=points[2]))


def test_the_3d_picture_has_a_still_image_and_no_foreign_script(shown):
    explore_3d(bars(1), scene(), "Three <points> on a line.", alt="A line")
    markup = shown[0][0]
    assert 'alt="A line"' in markup and "abe-still" in markup
    assert "<figcaption>Three &lt;points&gt; on a line.</figcaption>" in markup
    assert frames(markup)["data"][0]["x"] == [0.1235, 0.0, 2]
    assert not re.search(r"(src|href)=.https?://", markup)
    for texts in ({"alt": ""}, {"caption": " "}, {"caption": "Three.", "alt": ""}, {}):
        with pytest.raises(ValueError, match="expected a sentence"):
            explore_3d(bars(1), scene(), **texts)


def test_alt_alone_is_the_caption_of_a_scene(shown):
    explore_3d(bars(1), scene(), alt="Three points on a line.")
    assert "<figcaption>Three points on a line.</figcaption>" in shown[0][0]
    assert 'alt="Bars: see the caption."' in shown[0][0]
    assert plt.get_fignums() == []


def test_only_figures_that_draw_opened_are_used_and_all_are_closed(shown):
    mine = plt.figure()
    explore(lambda h: small().bar([0], [h]) and None, alt="{height}", height=[1, 2])
    assert plt.get_fignums() == [mine.number]
    for draw in (lambda h: None, lambda h: plt.subplots()[1], lambda h: "a bar"):
        with pytest.raises(ValueError, match="expected a matplotlib Figure"):
            explore(draw, alt="{height}", height=[1, 2])
    with pytest.raises(ZeroDivisionError):
        explore(lambda h: plt.figure() and 1 / 0, alt="{height}", height=[1, 2])
    assert plt.get_fignums() == [mine.number]


def test_a_template_that_asks_for_another_name_is_named(shown):
    with pytest.raises(ValueError, match="only {height} is known"):
        explore(bars, alt="{depth}", height=[1, 2])


def test_a_gap_in_a_scene_is_null_in_the_page(shown):
    from plotly import graph_objects

    gap = graph_objects.Figure(graph_objects.Scatter3d(x=np.array([1, np.nan, np.inf]), y=[0, 1, 2], z=[0, 1, 2]))
    explore_3d(bars(1), gap, alt="Two points and a gap")
    assert frames(shown[0][0])["data"][0]["x"] == [1.0, None, None]


def test_play_goes_on_from_where_the_slider_was_left():
    widget = explorations._slider_widget("h", [("one", "A", "a"), ("two", "B", "b"), ("three", "C", "c")], FRAMES)
    play, slider = widget.children[0].children
    slider.value = 2
    assert play.value == 2
