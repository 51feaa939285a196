"""Copies MathJax and plotly.js out of installed packages, so that no page needs the network, and the licenses of all
that the site ships.

Jupyter Book always loads sphinx_thebe, whose "live code" would come from a content network; the book does
not use it, so its scripts are taken off the pages.
"""

import importlib.util
import re
import shutil
from importlib import metadata
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
# The distributions whose scripts, styles or fonts lie in _static.
SHIPPED = [
    "django-static-mathjax",
    "plotly",
    "sphinx",
    "sphinx-book-theme",
    "pydata-sphinx-theme",
    "sphinx-copybutton",
    "sphinx-design",
    "sphinx-togglebutton",
    "myst-nb",
]
LICENSE_TEXT = re.compile(r"(^|/)[^/]*(licen[cs]e|copying|notice)[^/]*$", re.IGNORECASE)
ABOUT_LICENSES = """The scripts, styles and fonts of this site come from the packages below.
The text of each package's license lies beside this file.

"""


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


def copy_licenses(target, shipped=SHIPPED):
    """Copy the license texts that the distributions carry, and a list of them; none at all is an error."""
    target.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in shipped:
        found = license_texts(name)
        if not found:
            raise ExtensionError(f"{name} carries no license text: the site may not ship its files without one")
        for number, path in enumerate(found):
            file = f"{name}-{number + 1}.txt" if number else f"{name}.txt"
            shutil.copyfile(path, target / file)
            lines.append(f"{name} {metadata.version(name)}: {file} ({path.name})")
    (target / "README.txt").write_text(ABOUT_LICENSES + "\n".join(lines) + "\n", encoding="utf-8")


def license_texts(name):
    """The files of an installed distribution that hold a license, each text once."""
    texts = {}
    for file in sorted(metadata.files(name) or [], key=str):
        path = Path(file.locate())
        if LICENSE_TEXT.search(str(file)) and path.suffix in ("", ".txt", ".md", ".rst") and path.is_file():
            texts.setdefault(path.read_bytes(), path)
    return list(texts.values())


def copy_assets(app, exception):
    """When the HTML is written, add the scripts that it points to."""
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        copy(package_folder("mathjax", "static/mathjax/es5"), MATHJAX, static / "mathjax")
        copy(package_folder("plotly", "package_data"), PLOTLY, static / "plotly")
        copy_licenses(static / "licenses")


def drop_thebe(app, config):
    """Unregister all that sphinx_thebe adds to a page."""
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if not one.handler.__module__.startswith("sphinx_thebe")]
    app.registry.css_files[:] = [one for one in app.registry.css_files if "thebe" not in one[0]]


def setup(app):
    app.connect("config-inited", drop_thebe)
    app.connect("build-finished", copy_assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
