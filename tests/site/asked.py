"""A small site of the chapters' text alone, with their questions: seconds instead of minutes for the whole book."""

import re

import nbformat
from html_rules import ROOT
from live import CONF
from sphinx.application import Sphinx

CHAPTERS = sorted(path for path in (ROOT / "notebooks").glob("*.ipynb"))


def build(source):
    """The Markdown of all chapters and guides on pages of their own; code cells are there, without outputs."""
    (source / "notebooks").mkdir()
    for path in CHAPTERS:
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            cell.source = re.sub(r"\]\((?!https?:)[^)]*\)", "](https://example.org/)", cell.source)
            if cell.cell_type == "code":
                cell.outputs = []
        nbformat.write(notebook, source / "notebooks" / path.name)
    pages = "\n".join(f"notebooks/{path.stem}" for path in CHAPTERS)
    (source / "index.md").write_text(f"# Home\n\n```{{toctree}}\n{pages}\n```\n")
    places = {"ext": "_ext", "css": "css", "icon": "images/favicon.svg"}
    conf = CONF.format(**{name: str(ROOT / "book" / place) for name, place in places.items()})
    conf = conf.replace('"live_figures"', '"live_figures", "questions", "offline_assets"').replace('"labs.css"', '"labs.css", "questions.css"')
    conf += 'myst_enable_extensions = ["amsmath", "dollarmath", "linkify"]\nmyst_dmath_double_inline = True\nmathjax_path = "mathjax/tex-chtml.js"\n'
    (source / "conf.py").write_text(conf)
    out = source / "_build"
    Sphinx(source, source, out, source / "_doctrees", "html", status=None, warning=None).build()
    return out
