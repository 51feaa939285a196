"""The two forms of an exploration, its limits, and the book's figure style."""

import json
import re
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
import pytest

from attn_utils import COLORS, draw_weights, explorations, explore, explore_3d, use_book_style

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


def test_the_html_holds_every_frame_with_its_alt_text(shown):
    explore(bars, alt="Two bars, the first of height {height}", height=[1, 2, 3])
    markup = shown[0][0]
    data = frames(markup)
    assert [frame["label"] for frame in data] == ["height = 1", "height = 2", "height = 3"]
    assert [frame["alt"] for frame in data] == [f"Two bars, the first of height {h}" for h in (1, 2, 3)]
    assert len({frame["src"] for frame in data}) == 3 and all(f["src"].startswith("data:image/png") for f in data)
    assert 'type="range" min="0" max="2"' in markup and 'alt="Two bars, the first of height 1"' in markup
    assert "<noscript>" in markup and not re.search(r"https?://", markup)


def test_running_it_again_gives_the_same_bytes(shown):
    for _ in range(2):
        explore(bars, alt="{height}", height=[1, 2])
    assert shown[0][0] == shown[1][0]


def test_two_explorations_have_two_ids(shown):
    explore(bars, alt="{height}", height=[1, 2])
    explore(bars, alt="{height}", height=[1, 3])
    ids = [re.search(r'id="(explore-\w+)"', parts[0]).group(1) for parts in shown]
    assert len(set(ids)) == 2


def test_labels_alt_functions_and_pyplot_drawings(shown):
    explore(
        lambda h: plt.bar([0], [h]) and None, alt=lambda h: f"<{h}> & more", label=lambda h: f"{h} cm", height=[1, 2]
    )
    markup = shown[0][0]
    assert frames(markup)[1] == {**frames(markup)[1], "alt": "<2> & more", "label": "2 cm"}
    assert 'alt="&lt;1&gt; &amp; more"' in markup
    assert plt.get_fignums() == []  # nothing is left to be shown a second time


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
        ({"alt": " ", "height": [1, 2]}, "alt text"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        explore(bars, **options)


def test_too_heavy_and_uneven_frames_are_refused(shown):
    rng = np.random.default_rng(0)

    def noise(n):
        plt.figure(figsize=(6, 6)).gca().imshow(rng.random((200, 200)))

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
        "explore(lambda h: plt.bar([0], [h]) and None, alt='{h}', h=[1, 2])"
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


def test_the_widget_moves_its_picture():
    widget = explorations._slider_widget("h", ["one", "two"], ["a <1>", "b"], [b"1", b"2"])
    (play, slider), picture = widget.children[0].children, widget.children[1]
    assert 'alt="a &lt;1&gt;"' in picture.value
    slider.value = 1
    assert 'alt="b"' in picture.value
    play.value = 0
    play.value = 1
    assert slider.value == 1


def scene():
    from plotly import graph_objects

    points = np.array([0.123456789, -1e-9, 2]), [0, 1, 2], [np.float32(0.5), 1, 2]
    return graph_objects.Figure(graph_objects.Scatter3d(x=points[0], y=points[1], z=points[2]))


def test_the_3d_picture_has_a_still_image_and_no_foreign_script(shown):
    explore_3d(bars(1), scene(), alt="Three points on a line")
    markup = shown[0][0]
    assert 'alt="Three points on a line"' in markup and "abe-still" in markup
    assert frames(markup)["data"][0]["x"] == [0.1235, 0.0, 2]
    assert not re.search(r"(src|href)=.https?://", markup)
    with pytest.raises(ValueError, match="alt"):
        explore_3d(bars(1), scene(), alt="")


def test_draw_weights():
    weights = np.array([[1, np.nan], [0.25, 0.75]])
    ax = draw_weights(weights, ["a", "b"], ax=plt.figure().gca())
    np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), weights)
    assert ax.images[0].get_clim() == (0, 1)
    assert [t.get_text() for t in ax.get_xticklabels()] == [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="one head"):
        draw_weights(np.ones((2, 3, 3)))


def luminance(colour):
    channels = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_text_of_figures_stands_out_from_the_white_card():
    use_book_style()
    for name in ("axes.labelcolor", "xtick.color", "ytick.color", "text.color"):
        assert 1.05 / (luminance(plt.rcParams[name]) + 0.05) >= 4.5
    assert plt.rcParams["figure.facecolor"] == "white" and len(set(COLORS.values())) == len(COLORS)


def test_the_style_is_set_only_when_asked():
    before = "import matplotlib.pyplot as plt; before = dict(plt.rcParams)"
    code = f"{before}\nimport attn_utils\nassert dict(plt.rcParams) == before"
    subprocess.run([sys.executable, "-c", code], check=True, env={"MPLBACKEND": "agg", "PATH": "/usr/bin:/bin"})


def test_only_figures_that_draw_opened_are_used_and_all_are_closed(shown):
    mine = plt.figure()
    explore(lambda h: plt.subplots()[1].bar([0], [h]) and None, alt="{height}", height=[1, 2])
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
    widget = explorations._slider_widget("h", ["one", "two", "three"], ["a", "b", "c"], [b"1", b"2", b"3"])
    play, slider = widget.children[0].children
    slider.value = 2
    assert play.value == 2
