"""Explorations: pictures that move with a slider or turn by dragging, with and without a kernel.

Their scripts and style are files beside this module: slider.js, scene.js, explorations.css.
"""

import html
import sys

import numpy as np

from attn_utils.outputs import as_json, asset, plain, plain_sentence, sentence, show_both, unique_id
from attn_utils.pictures import check_figure, check_legible, close, describe, render

MAX_BYTES = 150_000  # of one exploration, all frames together
SCALES = (2, 1.5, 1)  # pixels to one that is shown: the first with which the frames are light enough


def explore(draw, caption=None, alt=None, label=None, **values):
    """Call draw(value) for each value and show one control over the pictures, with the caption of each below.

    draw     function of one value; returns a matplotlib Figure, or draws one with pyplot
    caption  what is to be seen: a function of the value, or a template such as "At d_k = {d_k} they are even."
    alt      what a blind reader needs beside the caption, in the same two forms; read off each figure when None.
             Given alone it is the caption
    label    how to write a value beside the slider: a function of the value ("d_k = 4" when None)
    values   exactly one keyword: the parameter's name and its values, such as d_k=[4, 8, 16]

    The single output carries two forms. Where a kernel is alive: a widget. On the site, in nbviewer,
    with no kernel: self-contained HTML with pre-rendered frames, a slider, a play button, a caption that is read
    out when it changes, and alt text for every frame. No external request; without scripts the first frame stays,
    as a still image with its caption. The frames are as sharp as 150 KB allow.
    Raises ValueError when the frames weigh over 150 KB together, differ in size, lack a caption, or hold letters of
    less than 11 pixels where they are 328 pixels wide, and for values, functions or templates of another form.

        explore(draw, lambda d_k: f"At d_k = {d_k} the largest weight is {top[d_k]:.2f}.", d_k=[4, 64, 1024])
    """
    name, steps = _one_parameter(values)
    for function, what in ((draw, "draw"), (label, "label")):
        if not (callable(function) or (function is None and what == "label")):
            raise ValueError(f"{what} is {function!r}, expected a function of {name}, such as lambda {name}: ...")
    caption, alt = (alt, None) if caption is None else (caption, alt)
    labels = [str(label(value)) if label else f"{name} = {value}" for value in steps]
    captions = [_text(caption, "caption", name, value) for value in steps]
    figures = [_drawn(draw, value) for value in steps]
    if alt is None:
        alts = [f"{label}. {describe(fig)}" for label, fig in zip(labels, figures, strict=True)]
    else:
        alts = [_text(alt, "alt text", name, value) for value in steps]
    words = list(zip(labels, captions, alts, strict=True))
    markup, frames = _sharpest(name, words, figures)
    for figure, value in zip(figures, steps, strict=True):  # drawing once more moves a layout a little: not before
        check_legible(figure, f"draw({value!r})")
    show_both(markup, f"Slider over {name}: {', '.join(labels)}", lambda: _slider_widget(name, words, frames))


def explore_3d(still, scene, caption=None, alt=None):
    """Show a picture that can be turned by dragging, with a still image wherever that is not possible.

    still    matplotlib Figure of the same data: seen first, without scripts, and in print
    scene    plotly Figure; coordinates are rounded to four decimals so that outputs are repeatable
    caption  the finding; it stands below the picture
    alt      what a blind reader needs beside the caption; read off the still when None. Given alone it is the caption

    On the site plotly.js is the site's own copy and is loaded when the picture comes into view. In a
    live Jupyter the scene is a widget, in Colab plotly's own renderer shows it.
    Raises ValueError for an empty caption or alt text, TeX in them, figures of another kind, or a still whose letters
    are smaller than 11 pixels where it is 328 pixels wide.
    """
    caption, alt = (alt, None) if caption is None else (caption, alt)
    caption = plain_sentence(caption, "caption")
    check_figure(still, "still")
    if not hasattr(scene, "to_plotly_json"):
        raise ValueError(f"scene is {type(scene).__name__}, expected a plotly Figure: graph_objects.Figure(...).")
    alt = describe(still) if alt is None else plain_sentence(alt, "alt")
    close(still)
    picture = render(still)
    check_legible(still, "still")  # after the picture is made, as in explore()
    markup = _scene_html(picture, plain(scene.to_plotly_json()), caption, alt)
    if "google.colab" in sys.modules:
        scene.show(renderer="colab")
        print(caption)
    else:
        show_both(markup, "A picture to turn by dragging: " + caption, lambda: _scene_widget(scene, caption))


# ------------------------------------------------------------------- frames


def _one_parameter(values):
    if len(values) != 1:
        raise ValueError(
            f"got the parameters {sorted(values)}, expected exactly one, such as explore(draw, caption, d_k=[4, 8])."
        )
    ((name, steps),) = values.items()
    if not np.iterable(steps) or isinstance(steps, (str, bytes)):
        raise ValueError(f"{name} is {steps!r}, expected several values, such as {name}=[{steps!r}, ...].")
    steps = list(steps)
    if len(steps) < 2:
        raise ValueError(f"{name} has {len(steps)} value(s), expected at least two to move between.")
    return name, steps


def _text(given, what, name, value):
    """The caption or alt text at one value."""
    if given is None:
        raise ValueError(f"no {what} is given, expected a function of {name}, or a template with {{{name}}} in it.")
    if callable(given):
        return plain_sentence(given(value), f"the {what} at {name} = {value}")
    try:
        text = sentence(given, f"the {what} at {name} = {value}").format(**{name: value})
    except (KeyError, IndexError) as error:
        raise ValueError(
            f"the {what} template {given!r} asks for {error}, but only {{{name}}} is known. Write {{{{ for a brace."
        ) from None
    except (AttributeError, TypeError, ValueError) as error:
        if not isinstance(given, str):
            raise
        raise ValueError(
            f"the {what} template {given!r} cannot be filled at {name} = {value!r}: {error}. Write {{{{ for a brace, "
            f"or hand over a function of {name}."
        ) from None
    return plain_sentence(text, f"the {what} at {name} = {value}")


def _drawn(draw, value):
    """The Figure of one value, no longer pyplot's."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    before = set(plt.get_fignums())
    try:
        figure = draw(value)
        opened = [number for number in plt.get_fignums() if number not in before]
        if figure is None and opened:
            figure = plt.figure(opened[-1])
        if not isinstance(figure, Figure):
            raise ValueError(
                f"draw({value!r}) returned {type(figure).__name__} and opened no figure, expected a matplotlib Figure. "
                "Begin it with figure, ax = plt.subplots() and end it with return figure."
            )
        return figure
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


def _sharpest(name, words, figures):
    """The HTML with the sharpest frames that are light enough, and these frames."""
    figure_id = unique_id("explore", f"{name} {words[0][1]}")  # once, also where the first scale is too heavy
    for scale in SCALES:
        frames = [render(figure, scale) for figure in figures]
        markup = _slider_html(figure_id, name, words, frames)
        if len(markup.encode()) <= MAX_BYTES:
            return markup, frames
    raise ValueError(
        f"the exploration of {name!r} weighs {len(markup.encode()) / 1000:.0f} KB, at most {MAX_BYTES // 1000} are "
        "allowed. Draw fewer values, a smaller figure, or fewer colors."
    )


# ------------------------------------------------------------- the two forms


def _slider_widget(name, words, frames):
    import ipywidgets

    shown = zip(words, frames, strict=True)
    pictures = [
        f'{frame.tag(alt)}<p role="status">{html.escape(caption)}</p>' for (_, caption, alt), frame in shown
    ]
    options = [(label, i) for i, (label, *_) in enumerate(words)]
    slider = ipywidgets.SelectionSlider(options=options, description=name, layout={"height": "44px"})
    play = ipywidgets.Play(min=0, max=len(frames) - 1, interval=900, layout={"height": "44px"})
    picture = ipywidgets.HTML(pictures[0])
    slider.observe(lambda change: setattr(picture, "value", pictures[change["new"]]), "value")
    play.observe(lambda change: setattr(slider, "value", change["new"]), "value")
    slider.observe(lambda change: setattr(play, "value", change["new"]), "value")  # play goes on from there
    return ipywidgets.VBox([ipywidgets.HBox([play, slider]), picture])


def _scene_widget(scene, caption):
    import ipywidgets
    from plotly.graph_objects import FigureWidget  # needs anywidget

    return ipywidgets.VBox([FigureWidget(scene), ipywidgets.HTML(f"<p>{html.escape(caption)}</p>")])


def _style():
    return "<style>\n" + asset("explorations.css") + "\n</style>"


def _slider_html(figure_id, name, words, frames):
    """The form that needs no kernel: frames, a range input, a play button and a few lines of script."""
    sizes = {(frame.width, frame.height) for frame in frames}
    if len(sizes) > 1:
        raise ValueError(
            f"the frames have the sizes {sorted(sizes)}, expected one. Give every figure the same figsize."
        )
    label, caption, alt = words[0]
    data = [
        {"src": frame.address, "alt": alt, "label": label, "caption": caption}
        for frame, (label, caption, alt) in zip(frames, words, strict=True)
    ]
    widest = max(len(label) for label, *_ in words)
    return f"""{_style()}
<figure class="abe-explore" id="{figure_id}">{frames[0].tag(alt)}
<div class="abe-controls" hidden>
<button type="button">Play</button>
<input type="range" min="0" max="{len(frames) - 1}" step="1" value="0"
 aria-label="{html.escape(name)}" aria-valuetext="{html.escape(label)}">
<output style="width:{widest}ch">{html.escape(label)}</output>
</div>
<noscript><p>Moving the slider needs scripts; this is its first picture ({html.escape(label)}).</p></noscript>
<script type="application/json">{as_json(data)}</script>
<figcaption aria-live="polite">{html.escape(caption, quote=False)}</figcaption>
<script>{asset("slider.js").replace("ID", figure_id)}</script>
</figure>"""


def _scene_html(still, scene, caption, alt):
    figure_id = unique_id("scene", caption)
    return f"""{_style()}
<figure class="abe-3d" id="{figure_id}">
{still.tag(alt, 'class="abe-still"')}
<div class="abe-scene" hidden></div>
<p hidden>Drag to turn it.</p>
<script type="application/json">{as_json({"data": scene.get("data", []), "layout": scene.get("layout", {})})}</script>
<figcaption>{html.escape(caption, quote=False)}</figcaption>
<script>{asset("scene.js").replace("ID", figure_id)}</script>
</figure>"""
