"""Brings the live figures of lab() to life: their scripts, on the pages that have one, and an address for each.

A notebook cannot know on which page it will stand, so that its link leads to labs/NAME.html, which leads on.
Data that a figure loads on demand are scripts, too, because a page that was opened from a folder may read nothing else.
"""

import base64
import html
import json
import posixpath
import re
import shutil
from pathlib import Path

import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

LAB = re.compile(r'<figure class="abe-lab" id="([\w-]+)" data-lab="(\w+)"')
FOLDER = "book/labs"
REDIRECT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Live figure</title>
<meta http-equiv="refresh" content="0; url={0}"></head><body><p><a href="{0}">The live figure</a></p></body></html>
"""


FIGURE = """<figure class="abe-lab" id="lab-{0}" data-lab="{0}"><div class="abe-panels">"""
STAGE = """</div><div class="abe-stage" hidden></div>
<script type="application/json">{}</script><figcaption>{}</figcaption></figure>"""


class LiveFigure(SphinxDirective):
    """A figure of lab() on a page that is no notebook: a stored still, the state in which it begins, and a caption.

    :::{live-figure} ask
    :still: images/ask.svg
    :alt: What a blind reader needs.
    :begin: {"text": "we drink tea", "word": 2}

    The caption, which is also the first sentence of the live figure.
    :::
    """

    required_arguments = 1
    has_content = True
    option_spec = dict.fromkeys(("still", "alt"), directives.unchanged_required) | {"begin": directives.unchanged}

    def run(self):
        data = json.dumps({"begin": json.loads(self.options.get("begin", "{}"))}, ensure_ascii=False)
        still = nodes.image(uri=self.options["still"], alt=self.options["alt"])
        caption = html.escape(" ".join(" ".join(self.content).split()), quote=False)
        stage = STAGE.format(data.replace("<", "\\u003c"), caption)
        begin = FIGURE.format(self.arguments[0])
        return [nodes.raw("", begin, format="html"), still, nodes.raw("", stage, format="html")]


def scripts(app):
    return Path(app.srcdir) / FOLDER


def find_labs(app, pagename, templatename, context, doctree):
    """Note which page has which live figure, and load the loader there."""
    found = LAB.findall(context.get("body", ""))
    for figure, name in found:
        if not (scripts(app) / f"{name}.js").is_file():
            raise ExtensionError(f"{pagename}: lab({name!r}) has no script {FOLDER}/{name}.js")
        app.live_figures.setdefault(name, []).append(f"{pagename}.html#{figure}")
    if found:
        app.add_js_file("labs/loader.js", loading_method="defer")


def first(places):
    """The place in a chapter that a notebook's link leads to, the first where there are several."""
    return min(places, key=lambda place: (not place.startswith("notebooks/"), place))


def head_scripts(path):
    """Name -> text of the scripts with the weights of trained models, from heads.npz (tools/make_heads.py)."""
    with np.load(path, allow_pickle=False) as file:
        contents = json.loads(file["contents"].tobytes().decode("utf8"))
        texts = {name: base64.b64encode(file[name].tobytes()).decode() for name in file.files if name != "contents"}
    texts = {name: f'abeHeads.add("{name}", "{text}");\n' for name, text in texts.items()}
    return {"contents": f'abeHeads.add("contents", {json.dumps(contents)});\n', **texts}


def write_labs(app, exception):
    """Copy the scripts, and write the address of each live figure that is on a page."""
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static" / "labs"
        static.mkdir(parents=True, exist_ok=True)
        for script in sorted(scripts(app).glob("*.js")):
            shutil.copyfile(script, static / script.name)
        for data in scripts(app).glob("heads.npz"):
            (static / "heads").mkdir(exist_ok=True)
            for name, text in head_scripts(data).items():
                (static / "heads" / f"{name}.js").write_text(text, encoding="utf-8")
        for name, places in app.live_figures.items():
            page = Path(app.outdir) / "labs" / f"{name}.html"
            page.parent.mkdir(exist_ok=True)
            page.write_text(REDIRECT.format(posixpath.join("..", first(places))), encoding="utf-8")


def begin(app):
    app.live_figures = {}  # name -> places


def setup(app):
    app.add_directive("live-figure", LiveFigure)
    app.connect("builder-inited", begin)
    app.connect("html-page-context", find_labs)
    app.connect("build-finished", write_labs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
