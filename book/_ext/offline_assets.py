"""Copies MathJax and plotly.js out of installed packages, so that no page needs the network.

Jupyter Book always loads sphinx_thebe, whose "live code" would come from a content network; the book does
not use it, so its scripts are taken off the pages.
"""

import importlib.util
import shutil
from pathlib import Path

from sphinx.errors import ExtensionError

# What MathJax 3 may ask for: the fonts, the TeX extensions, the menu and its speech in English.
MATHJAX = [
    "tex-chtml.js",
    "output/chtml/fonts/woff-v2/*.woff",
    "input/tex/extensions/*.js",
    "input/mml.js",
    "input/mml/*.js",
    "ui/*.js",
    "a11y/*.js",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
]
PLOTLY = ["plotly.min.js"]


def package_folder(package, inside):
    """The folder `inside` of an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    folder = Path(next(iter(spec.submodule_search_locations))) / inside if spec else None
    if folder is None or not folder.is_dir():
        raise ExtensionError(f"{package} with {inside} is not installed: run make book, which sets up .venv")
    return folder


def copy(source, patterns, target):
    """Copy the files that match, keeping their folders; a pattern without a match is an error."""
    for pattern in patterns:
        found = sorted(source.glob(pattern))
        if not found:
            raise ExtensionError(f"nothing matches {pattern} in {source}")
        for path in found:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def copy_assets(app, exception):
    """When the HTML is written, add the scripts that it points to."""
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        copy(package_folder("mathjax", "static/mathjax/es5"), MATHJAX, static / "mathjax")
        copy(package_folder("plotly", "package_data"), PLOTLY, static / "plotly")


def drop_thebe(app, config):
    """Unregister all that sphinx_thebe adds to a page."""
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if not one.handler.__module__.startswith("sphinx_thebe")]
    app.registry.css_files[:] = [one for one in app.registry.css_files if "thebe" not in one[0]]


def setup(app):
    app.connect("config-inited", drop_thebe)
    app.connect("build-finished", copy_assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
