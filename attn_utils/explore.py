"""Explorations that move with and without a kernel, and the look of the book's figures."""

import base64
import hashlib
import html
import io
import json
import sys

import numpy as np

COLORS = {  # Okabe and Ito's palette: distinguishable with colour-blind eyes
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "amber": "#E69F00",
    "yellow": "#F0E442",
    "black": "#1A1A1A",
    "grey": "#767676",
}

MAX_BYTES = 150_000  # of one exploration, all frames together


def use_book_style():
    """Set matplotlib's rcParams to the book's figure style: white card, thin axes, colour-blind-safe cycle.

    Called once in each notebook, in the open, because importing this package must change nothing.
    """
    import matplotlib.pyplot as plt

    cycle = [COLORS[name] for name in ("blue", "orange", "green", "purple", "sky", "amber", "black")]
    plt.rcParams.update(
        {
            "axes.edgecolor": COLORS["grey"],
            "axes.grid": False,
            "axes.labelcolor": COLORS["black"],
            "axes.labelsize": 10,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": plt.cycler(color=cycle),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.figsize": (5.6, 3.2),
            "font.size": 10,
            "image.cmap": "cividis",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "savefig.facecolor": "white",
            "xtick.color": COLORS["black"],
            "ytick.color": COLORS["black"],
        }
    )


def draw_weights(weights, queries=None, keys=None, ax=None):
    """Draw attention weights as a heat map: a row for each query, a column for each key.

    weights   (n_queries, n_keys), numbers from 0 to 1; NaN is left grey ("not there yet")
    queries   labels of the rows;  keys   labels of the columns (the queries' when None)

    Returns the matplotlib Axes. The colour scale always runs from 0 to 1, so pictures can be compared.
    """
    import matplotlib.pyplot as plt

    weights = np.asarray(weights)
    if weights.ndim != 2:
        raise ValueError(
            f"weights have shape {weights.shape}, expected (n_queries, n_keys). Choose one head: weights[0]."
        )
    ax = plt.gca() if ax is None else ax
    ax.set_facecolor("#D9D9D9")
    picture = ax.imshow(weights, vmin=0, vmax=1, cmap="cividis")
    keys = queries if keys is None and weights.shape[0] == weights.shape[1] else keys
    if keys is not None:
        ax.set_xticks(range(weights.shape[1]), keys, rotation=90)
    if queries is not None:
        ax.set_yticks(range(weights.shape[0]), queries)
    ax.set(xlabel="key (looked at)", ylabel="query (looking)")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(picture, ax=ax, label="weight", shrink=0.85)
    return ax


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
    _show(markup, f"Slider over {name}: {', '.join(labels)}", lambda: _slider_widget(name, labels, texts, frames))


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
    markup = _scene_html(_png(still), _plain(scene.to_plotly_json()), alt)
    if "google.colab" in sys.modules:
        scene.show(renderer="colab")
    else:
        _show(markup, "A picture to turn by dragging: " + alt, lambda: _scene_widget(scene))


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
        return _png(figure)
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


def _png(figure):
    """A matplotlib Figure as a small PNG (64 colours); the figure is closed, so that it shows only once."""
    import matplotlib.pyplot as plt
    from PIL import Image

    buffer, small = io.BytesIO(), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, facecolor="white")
    plt.close(figure)
    image = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    image.save(small, format="PNG", optimize=True)
    return small.getvalue()


def _png_size(png):
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")  # IHDR: width, height


def _data_uri(png):
    return "data:image/png;base64," + base64.b64encode(png).decode()


# ------------------------------------------------------------- the two forms


def _show(markup, text, make_widget):
    """Display one output with both forms; where there is no kernel, print the text."""
    if not _in_kernel():
        return print(text)
    from IPython.display import display

    display({"text/html": markup, "text/plain": text, **_view(_make_or_none(make_widget))}, raw=True)


def show_widget(make_widget):
    """Display a widget without any other form, so that stored outputs keep no trace of it.

    Returns the widget, or None where there is no kernel or no ipywidgets.
    """
    widget = _make_or_none(make_widget) if _in_kernel() else None
    if widget is not None:
        from IPython.display import display

        display(_view(widget), raw=True)
    return widget


def _in_kernel():
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def _make_or_none(make_widget):
    """The widget, or None where ipywidgets or anywidget is missing."""
    try:
        return make_widget()
    except ImportError:
        return None


def _view(widget):
    """The mime bundle that stands for a widget."""
    if widget is None:
        return {}
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


def _slider_widget(name, labels, texts, frames):
    import ipywidgets

    shown = zip(texts, frames, strict=True)
    pictures = [f'<img alt="{html.escape(text)}" src="{_data_uri(png)}">' for text, png in shown]
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


STYLE = """<style>
.abe-explore,.abe-3d{margin:0 0 1rem;padding:.75rem;background:#fff;color:#1a1a1a;border-radius:.4rem;
  max-width:100%;box-sizing:border-box}
.abe-explore img,.abe-3d img{display:block;max-width:100%;height:auto}
.abe-explore .abe-controls{display:flex;flex-wrap:wrap;gap:.5rem .75rem;align-items:center;margin-top:.5rem;
  color:#1a1a1a}
.abe-explore .abe-controls[hidden],.abe-3d [hidden]{display:none}
.abe-explore button{min-width:4.5rem;min-height:2.75rem;border:1px solid #595959;border-radius:.3rem;
  background:#fff;color:#1a1a1a;font:inherit;cursor:pointer}
.abe-explore input{flex:1 1 8rem;min-width:6rem;min-height:2.75rem;accent-color:#0072b2}
.abe-explore output{min-width:6rem;font-variant-numeric:tabular-nums}
.abe-explore :focus-visible,.abe-3d :focus-visible{outline:3px solid #0072b2;outline-offset:2px}
.abe-3d .abe-scene{width:100%;height:26rem}
.abe-3d p{margin:.4rem 0 0;font-size:.9em;color:#1a1a1a}
</style>"""

SLIDER_SCRIPT = """(function(){
document.querySelectorAll('[id="ID"]:not([data-ready])').forEach(function(box){
box.dataset.ready='1';
var frames=JSON.parse(box.querySelector('script[type="application/json"]').textContent);
var img=box.querySelector('img'),range=box.querySelector('input'),out=box.querySelector('output');
var play=box.querySelector('button'),timer=null;
function show(i){
var frame=frames[i];img.src=frame.src;img.alt=frame.alt;
out.textContent=frame.label;range.setAttribute('aria-valuetext',frame.label);}
function stop(){clearInterval(timer);timer=null;play.textContent='Play';out.setAttribute('aria-live','polite');}
range.addEventListener('input',function(){if(timer)stop();show(+range.value);});
play.addEventListener('click',function(){
if(timer)return stop();
if(+range.value===frames.length-1){range.value=0;show(0);}
play.textContent='Stop';out.setAttribute('aria-live','off');
timer=setInterval(function(){range.value=+range.value+1;show(+range.value);if(+range.value===frames.length-1)stop();},900);
});
range.value=0;show(0);box.querySelector('.abe-controls').hidden=false;
});
})();"""


def _slider_html(name, labels, texts, frames):
    """The form that needs no kernel: frames, a range input, a play button and a few lines of script."""
    sizes = {_png_size(png) for png in frames}
    if len(sizes) > 1:
        raise ValueError(
            f"the frames have the sizes {sorted(sizes)}, expected one. Give every figure the same figsize."
        )
    ((width, height),) = sizes
    figure_id = _stable_id("explore", [name, *labels, *texts])
    data = [{"src": _data_uri(p), "alt": t, "label": s} for p, t, s in zip(frames, texts, labels, strict=True)]
    first = f'<img src="{_data_uri(frames[0])}" alt="{html.escape(texts[0])}" width="{width}" height="{height}">'
    return f"""{STYLE}
<figure class="abe-explore" id="{figure_id}">{first}
<div class="abe-controls" hidden>
<button type="button">Play</button>
<input type="range" min="0" max="{len(frames) - 1}" step="1" value="0"
 aria-label="{html.escape(name)}" aria-valuetext="{html.escape(labels[0])}">
<output aria-live="polite">{html.escape(labels[0])}</output>
</div>
<noscript><p>Moving the slider needs scripts; this is its first picture ({html.escape(labels[0])}).</p></noscript>
<script type="application/json">{_json(data)}</script>
<script>{SLIDER_SCRIPT.replace("ID", figure_id)}</script>
</figure>"""


SCENE_SCRIPT = """(function(){
var root=document.documentElement.dataset.content_root;
if(root===undefined||!('IntersectionObserver' in window))return;
function library(){
window.abePlotly=window.abePlotly||new Promise(function(done,fail){
var tag=document.createElement('script');tag.src=root+'_static/plotly/plotly.min.js';
tag.onload=done;tag.onerror=fail;document.head.appendChild(tag);});
return window.abePlotly;}
document.querySelectorAll('[id="ID"]:not([data-ready])').forEach(function(box){
box.dataset.ready='1';
var still=box.querySelector('.abe-still'),scene=box.querySelector('.abe-scene'),hint=box.querySelector('p');
var data=JSON.parse(box.querySelector('script[type="application/json"]').textContent);
var seen=new IntersectionObserver(function(entries){
if(!entries.some(function(e){return e.isIntersecting;}))return;
seen.disconnect();
library().then(function(){
scene.hidden=false;
return Plotly.newPlot(scene,data.data,data.layout,
{responsive:true,displaylogo:false,displayModeBar:false,scrollZoom:false});
}).then(function(){still.hidden=true;hint.hidden=false;}).catch(function(){scene.hidden=true;still.hidden=false;});
});
seen.observe(box);
});
})();"""


def _scene_html(png, scene, alt):
    figure_id = _stable_id("scene", [alt])
    width, height = _png_size(png)
    return f"""{STYLE}
<figure class="abe-3d" id="{figure_id}" aria-label="{html.escape(alt)}">
<img class="abe-still" src="{_data_uri(png)}" alt="{html.escape(alt)}" width="{width}" height="{height}">
<div class="abe-scene" hidden></div>
<p hidden>Drag to turn it.</p>
<script type="application/json">{_json({"data": scene.get("data", []), "layout": scene.get("layout", {})})}</script>
<script>{SCENE_SCRIPT.replace("ID", figure_id)}</script>
</figure>"""


def _stable_id(kind, parts):
    """An id that depends on what is shown in words, so that re-running gives the same bytes."""
    return f"{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]}"


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
