"""Explorations: pictures that move with a slider or turn by dragging, with and without a kernel.

Their scripts and style are files beside this module: slider.js, scene.js, explorations.css.
"""

import base64
import html
import json
import sys

import numpy as np

from attn_utils.outputs import as_png, asset, data_uri, png_size, show_both, stable_id

MAX_BYTES = 150_000  # of one exploration, all frames together


def explore(draw, alt, label=None, **values):
    """Call draw(value) for each value and show one control over the pictures.

    draw     function of one value; returns a matplotlib Figure, or draws one with pyplot
    alt      alt text: a function of the value, or a template such as "Weights at d_k = {d_k}"
    label    how to write a value beside the slider: a function of the value ("d_k = 4" when None)
    values   exactly one keyword: the parameter's name and its values, such as d_k=[4, 8, 16]

    The single output carries two forms. Where a kernel is alive: a widget. On the site, in nbviewer,
    with no kernel: self-contained HTML with pre-rendered frames, a slider, a play button and alt text
    for every frame. No external request; without scripts the first frame stays, as a still image.
    Raises ValueError when the frames weigh over 150 KB together, differ in size, or lack alt text.
    """
    name, steps = _one_parameter(values)
    labels = [str(label(value)) if label else f"{name} = {value}" for value in steps]
    texts = [_alt_text(alt, name, value) for value in steps]
    frames = [_frame(draw, value) for value in steps]
    markup = _slider_html(name, labels, texts, frames)
    if len(markup) > MAX_BYTES:
        raise ValueError(
            f"the exploration of {name!r} weighs {len(markup) / 1000:.0f} KB, at most {MAX_BYTES // 1000} are allowed. "
            "Draw fewer values, a smaller figure, or fewer colours."
        )
    show_both(markup, f"Slider over {name}: {', '.join(labels)}", lambda: _slider_widget(name, labels, texts, frames))


def explore_3d(still, scene, alt):
    """Show a picture that can be turned by dragging, with a still image wherever that is not possible.

    still   matplotlib Figure of the same data: seen first, without scripts, and in print
    scene   plotly Figure; coordinates are rounded to four decimals so that outputs are repeatable
    alt     alt text, stating the finding

    On the site plotly.js is the site's own copy and is loaded when the picture comes into view. In a
    live Jupyter the scene is a widget, in Colab plotly's own renderer shows it.
    """
    if alt is None or not str(alt).strip():
        raise ValueError("alt is empty, expected a sentence that states what the picture shows.")
    markup = _scene_html(as_png(still), _plain(scene.to_plotly_json()), alt)
    if "google.colab" in sys.modules:
        scene.show(renderer="colab")
    else:
        show_both(markup, "A picture to turn by dragging: " + alt, lambda: _scene_widget(scene))


# ------------------------------------------------------------------- frames


def _one_parameter(values):
    if len(values) != 1:
        raise ValueError(
            f"got the parameters {sorted(values)}, expected exactly one, such as explore(draw, alt, d_k=[4, 8])."
        )
    ((name, steps),) = values.items()
    steps = list(steps)
    if len(steps) < 2:
        raise ValueError(f"{name} has {len(steps)} value(s), expected at least two to move between.")
    return name, steps


def _alt_text(alt, name, value):
    try:
        text = alt(value) if callable(alt) else str(alt).format(**{name: value})
    except (KeyError, IndexError) as error:
        raise ValueError(
            f"the alt template {alt!r} asks for {error}, but only {{{name}}} is known. Write {{{{ for a brace."
        ) from None
    if text is None or not str(text).strip():
        raise ValueError(
            f"the alt text at {name} = {value} is empty, expected a sentence that states what the picture shows."
        )
    return text


def _frame(draw, value):
    """One picture as PNG bytes."""
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        figure = draw(value)
        opened = [number for number in plt.get_fignums() if number not in before]
        if figure is None and opened:
            figure = plt.figure(opened[-1])
        if not hasattr(figure, "savefig"):
            raise ValueError(
                f"draw({value!r}) returned {type(figure).__name__} and opened no figure, expected a matplotlib Figure. "
                "Begin it with figure, ax = plt.subplots() and end it with return figure."
            )
        return as_png(figure)
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


# ------------------------------------------------------------- the two forms


def _slider_widget(name, labels, texts, frames):
    import ipywidgets

    shown = zip(texts, frames, strict=True)
    pictures = [f'<img alt="{html.escape(text)}" src="{data_uri(png)}">' for text, png in shown]
    slider = ipywidgets.SelectionSlider(options=[(label, i) for i, label in enumerate(labels)], description=name)
    play = ipywidgets.Play(min=0, max=len(frames) - 1, interval=900)
    picture = ipywidgets.HTML(pictures[0])
    slider.observe(lambda change: setattr(picture, "value", pictures[change["new"]]), "value")
    play.observe(lambda change: setattr(slider, "value", change["new"]), "value")
    slider.observe(lambda change: setattr(play, "value", change["new"]), "value")  # play goes on from there
    return ipywidgets.VBox([ipywidgets.HBox([play, slider]), picture])


def _scene_widget(scene):
    from plotly.graph_objects import FigureWidget  # needs anywidget

    return FigureWidget(scene)


def _style():
    return "<style>\n" + asset("explorations.css") + "\n</style>"


def _slider_html(name, labels, texts, frames):
    """The form that needs no kernel: frames, a range input, a play button and a few lines of script."""
    sizes = {png_size(png) for png in frames}
    if len(sizes) > 1:
        raise ValueError(
            f"the frames have the sizes {sorted(sizes)}, expected one. Give every figure the same figsize."
        )
    ((width, height),) = sizes
    figure_id = stable_id("explore", [name, *labels, *texts])
    data = [{"src": data_uri(p), "alt": t, "label": s} for p, t, s in zip(frames, texts, labels, strict=True)]
    first = f'<img src="{data_uri(frames[0])}" alt="{html.escape(texts[0])}" width="{width}" height="{height}">'
    return f"""{_style()}
<figure class="abe-explore" id="{figure_id}">{first}
<div class="abe-controls" hidden>
<button type="button">Play</button>
<input type="range" min="0" max="{len(frames) - 1}" step="1" value="0"
 aria-label="{html.escape(name)}" aria-valuetext="{html.escape(labels[0])}">
<output aria-live="polite">{html.escape(labels[0])}</output>
</div>
<noscript><p>Moving the slider needs scripts; this is its first picture ({html.escape(labels[0])}).</p></noscript>
<script type="application/json">{_json(data)}</script>
<script>{asset("slider.js").replace("ID", figure_id)}</script>
</figure>"""


def _scene_html(png, scene, alt):
    figure_id = stable_id("scene", [alt])
    width, height = png_size(png)
    return f"""{_style()}
<figure class="abe-3d" id="{figure_id}" aria-label="{html.escape(alt)}">
<img class="abe-still" src="{data_uri(png)}" alt="{html.escape(alt)}" width="{width}" height="{height}">
<div class="abe-scene" hidden></div>
<p hidden>Drag to turn it.</p>
<script type="application/json">{_json({"data": scene.get("data", []), "layout": scene.get("layout", {})})}</script>
<script>{asset("scene.js").replace("ID", figure_id)}</script>
</figure>"""


def _json(data):
    """JSON that can stand inside a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _plain(value):
    """Plotly's figure as plain lists and numbers of four decimals: the same bytes on every machine."""
    if isinstance(value, dict) and "bdata" in value:  # plotly packs its arrays
        array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return _plain(array.reshape(_shape(value, array)))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), 4) + 0.0 if np.isfinite(value) else None  # no -0.0; JSON has no NaN, null is a gap
    return value.item() if isinstance(value, np.generic) else value


def _shape(packed, array):
    """The shape that plotly notes beside a packed array of several axes, such as "3, 2"."""
    return tuple(int(n) for n in str(packed["shape"]).split(",")) if "shape" in packed else array.shape
