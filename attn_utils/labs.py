"""Live figures: a still picture that the site turns into one that computes in the page.

Their scripts are files in book/labs/, which the site loads when the figure comes into view.
"""

import re

from attn_utils.figures import caption_element, pictures
from attn_utils.outputs import as_json, plain, plain_sentence, show

SITE = "https://attention-by-experiment.github.io/attention-by-experiment/"  # kept by tools/set_repository.py
DECIMALS = 6  # of the numbers that are handed to the script


def lab(name, fig, caption, alt=None, data=None):
    """Show a still figure that becomes a live one on the site.

    name     of the script book/labs/NAME.js, such as "mask"
    fig      matplotlib Figure, or a list of them: seen in Jupyter, in Colab, in print and without scripts
    caption  the finding, with its numbers computed, as in figure(); it has to hold for the state in which the live
             figure begins
    alt      what a blind reader needs beside the caption, as in figure()
    data     dict of what the script computes with: arrays (rounded to six decimals), numbers, texts

    One output of HTML without any script of its own: the page of the site brings it. Elsewhere a link leads to the
    live figure. What the script computes equals attn_utils; a test in a browser compares them.
    Raises ValueError for what figure() refuses, a name that is no word, or data that are no dict or hold what no page
    can read.

        lab("mask", fig, caption, data={"tokens": words, "scores": scores, "values": V})
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", str(name)):
        raise ValueError(f"name is {name!r}, expected that of a script in book/labs/, such as 'mask' for mask.js.")
    if data is not None and not isinstance(data, dict):
        raise ValueError(f"data is {type(data).__name__}, expected a dict from names to arrays, numbers or texts.")
    caption = plain_sentence(caption, "caption")
    link = f"{SITE}labs/{name}.html"
    markup = f"""<figure class="abe-lab" id="lab-{name}" data-lab="{name}" style="margin:0 0 1rem">
{pictures(fig, alt)}
<div class="abe-stage" hidden></div>
<p class="abe-link" style="margin:.5rem 0 0">Live on the site: <a href="{link}">{link}</a></p>
<script type="application/json">{as_json(plain(data or {}, DECIMALS))}</script>
{caption_element(caption)}</figure>"""
    show("text/html", markup, f"Figure: {caption}\nLive on the site: {link}")
