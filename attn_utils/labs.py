"""Live figures: a still picture that the site turns into one that computes in the page.

Their scripts are files in book/labs/, which the site loads when the figure comes into view.
"""

import re

import numpy as np

from attn_utils.figures import COLORS, caption_element, pictures
from attn_utils.inputs import is_whole
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


def draw_asked(row, words, asks, followed):
    """Draw what one word gives to the others: the sentence as a column, arcs to its left, bars to its right.

    row       (n_tokens,) weights;  words   the tokens
    asks      place of the word that gives them;  followed   place of the word that stands out

    The still of "Ask a sentence". Returns the matplotlib Figure.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Arc

    figure, ax = plt.subplots(figsize=(4.0, 0.6 + 0.24 * len(words)))
    for j, (weight, word) in enumerate(zip(row, words, strict=True)):
        color = COLORS["orange"] if j == followed else COLORS["grey"] if j == asks else COLORS["blue"]
        if j != asks:
            wide = 0.05 * abs(j - asks)
            ax.add_patch(Arc((0, (j + asks) / 2), wide, abs(j - asks), theta1=90, theta2=270, color=color,
                             linewidth=1 + 30 * weight, alpha=min(1, 0.25 + 2 * weight)))  # fmt: skip
        ax.text(0.02, j, word, va="center", weight="bold" if j in (asks, followed) else None)
        ax.barh(j, 0.4 * weight / max(row), left=0.28, color=color)
        ax.text(0.29 + 0.4 * weight / max(row), j, f"{weight:.2f}", va="center")
    ax.set(xlim=(-0.34, 0.8), ylim=(len(words) - 0.5, -0.5))
    ax.axis("off")
    return figure


def page_normals(seed, *shape):
    """Standard normal numbers that book/labs/numbers.js draws, too: mulberry32, then Box and Muller.

    seed   whole number from 0 to 2**32 - 1;  shape   of the array; a single number when there is none

    For stills whose live figure draws again. Everything else in this book draws with numpy's generators.
    Raises ValueError for another seed.

        Q, K = page_normals(0, 2, 8, 64)
    """
    if not is_whole(seed, least=0) or seed >= 2**32:
        raise ValueError(f"seed is {seed!r}, expected a whole number from 0 to {2**32 - 1}.")
    n = int(np.prod(shape))
    u = _uniforms(seed, n + n % 2).reshape(-1, 2)  # (n_pairs, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * np.pi * u[:, 1]  # (n_pairs,) each
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)  # (n_pairs, 2)
    return pairs.ravel()[:n].reshape(shape)[()]


def _uniforms(seed, n):
    """n numbers from 0 to 1 by mulberry32 (T. Ettinger, 2017, public domain), in the arithmetic of 32 bits."""
    low = np.uint64(0xFFFFFFFF)
    a = (np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x6D2B79F5)) & low
    t = ((a ^ (a >> np.uint64(15))) * (a | np.uint64(1))) & low
    t ^= (t + (((t ^ (t >> np.uint64(7))) * (t | np.uint64(61))) & low)) & low
    return (t ^ (t >> np.uint64(14))) / 2**32
