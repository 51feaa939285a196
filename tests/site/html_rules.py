"""The rules for the built pages, each a function from a Page to a list of complaints.

`test_static.py` applies them to _build/html and breaks each of them once on a few lines of HTML.
"""

import json
import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "_build" / "html"
RULES = {}
LOADS = {"link": "href"} | dict.fromkeys(("script", "img", "iframe", "source", "video", "embed"), "src")
ELSEWHERE = re.compile(r"(?:https?:)?//")
FETCHES = re.compile(
    r"(?:fetch|import|open|importScripts)\s*\(\s*['\"`]https?:|\.(?:src|href)\s*=\s*['\"`](?:https?:)?//"
)
STYLE_LOADS = re.compile(r"(?:@import\s+|url\(\s*)(?:url\(\s*)?['\"]?(?:https?:)?//")


def rule(function):
    RULES[function.__name__] = function
    return function


@dataclass
class Page:
    """A page of the site: its place below the site's root, its text, and the site for links to follow."""

    name: str
    text: str
    site: "Site"

    @cached_property
    def soup(self):
        return BeautifulSoup(self.text, "html.parser")

    @cached_property
    def targets(self):
        """What a #fragment may point to."""
        found = {tag["id"] for tag in self.soup.find_all(id=True)}
        return found | {tag["name"] for tag in self.soup.find_all("a", attrs={"name": True})} | {"", "top"}

    @property
    def is_redirect(self):
        return bool(self.soup.find("meta", attrs={"http-equiv": re.compile("refresh", re.I)}))

    @property
    def is_notebook(self):
        return self.name.startswith("notebooks/")

    @property
    def is_ours(self):
        """Not one of the pages that Sphinx makes by itself."""
        return self.name not in ("search.html", "genindex.html") and not self.is_redirect

    def say(self, found, do):
        return f"{self.name}: {found}. {do}."


class Site:
    """All pages below a folder; `texts` replaces the folder in the rules' own tests."""

    def __init__(self, root=None, texts=None, repository="https://github.com/owner/name", branch="main"):
        self.root, self.repository, self.branch = root, repository, branch
        if root:
            texts = {name: (Path(root) / name).read_text(encoding="utf-8") for name in page_names(root)}
        self.pages = {name: Page(name, text, self) for name, text in texts.items()}

    def has(self, name):
        return name in self.pages or bool(self.root and (Path(self.root) / name).is_file())


def page_names(root):
    """The pages below a folder, without the theme's own snippets."""
    names = (path.relative_to(root).as_posix() for path in sorted(Path(root).rglob("*.html")))
    return [name for name in names if not name.startswith(("_static/", "_sources/"))]


def shorten(tag):
    return re.sub(r"\s+", " ", str(tag))[:90]


@rule
def links_resolve(page):
    found = []
    for tag in page.soup.find_all(True):
        for attribute in ("href", "src"):
            target = tag.get(attribute)
            if target is not None and (wrong := broken(page, target)):
                found.append(page.say(f"{shorten(tag)}: {wrong}", "Point it to something that is there"))
    return found


def broken(page, target):
    """Why an address inside the site leads nowhere, or None."""
    if re.match(r"[a-zA-Z][a-zA-Z+.-]*:|//", target):
        return None
    path, _, fragment = target.partition("#")
    path = unquote(path.split("?")[0])
    if path.startswith("/"):
        return "an absolute path, which fails in a folder and under an address with a prefix"
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path)) if path else page.name
    if name.startswith("..") or not page.site.has(name):
        return f"there is no {name}"
    other = page.site.pages.get(name)
    if other and unquote(fragment) not in other.targets:
        return f"{name} has no #{fragment}"
    return None


@rule
def redirects_lead_to_a_page(page):
    if not page.is_redirect:
        return []
    meta = page.soup.find("meta", attrs={"http-equiv": re.compile("refresh", re.I)})
    target = re.sub(r".*?url=", "", meta.get("content", ""), flags=re.I).strip("'\" ")
    wrong = "another host" if ELSEWHERE.match(target) else broken(page, target)
    return [page.say(f"a redirect to {target!r}: {wrong}", "Point it to a page")] if wrong else []


@rule
def nothing_loads_from_elsewhere(page):
    do = "Ship it with the site, which has to work offline from a folder"
    found = []
    for tag in page.soup.find_all(list(LOADS)):
        address = tag.get(LOADS[tag.name], "")
        declares = tag.name == "link" and {"canonical", "alternate"} & set(tag.get("rel", []))
        if ELSEWHERE.match(address) and not declares:
            found.append(page.say(f"<{tag.name}> loads {address}", do))
        if ELSEWHERE.search(tag.get("srcset", "")):
            found.append(page.say(f"<{tag.name}> loads {tag['srcset']}", do))
    for tag in page.soup.find_all("script", src=False):
        if match := FETCHES.search(tag.get_text()):
            found.append(page.say(f"a script with {match.group()}", do))
    styles = [tag.get_text() for tag in page.soup.find_all("style")]
    styles += [tag["style"] for tag in page.soup.find_all(style=True)]
    return found + [page.say(f"a style with {m.group()}", do) for style in styles if (m := STYLE_LOADS.search(style))]


@rule
def images_have_alt_text(page):
    return [
        page.say(f"{shorten(tag)}: {wrong}", "Say in words what the picture shows")
        for tag in page.soup.find_all("img")
        if (wrong := bad_alt(tag.get("alt")))
    ]


def bad_alt(alt):
    if not alt or not alt.strip():
        return "no alt text"
    if "_images/" in alt or re.search(r"\.(png|jpe?g|svg|gif|webp)$", alt.strip(), re.I):
        return "a file path as alt text"
    return None


@rule
def page_says_its_language(page):
    html = page.soup.find("html")
    if page.is_redirect or (html and html.get("lang")):
        return []
    return [page.say("no lang on <html>", "Set language in _config.yml")]


@rule
def one_title(page):
    titles = [tag for tag in page.soup.find_all("h1") if not tag.find_parent(class_="onlyprint")]
    if page.is_redirect or len(titles) == 1:
        return []
    return [page.say(f"{len(titles)} <h1>", "Give a page exactly one title")]


@rule
def ids_are_unique(page):
    counts = Counter(tag["id"] for tag in page.soup.find_all(id=True))
    return [page.say(f"the id {id!r} {n} times", "Rename one") for id, n in counts.items() if n > 1]


@rule
def page_is_light(page):
    kilobytes = len(page.text.encode()) / 1000
    if kilobytes <= 1000:
        return []
    return [page.say(f"{kilobytes:.0f} KB, allowed are 1000", "Fewer or smaller frames and tables")]


@rule
def explorations_are_complete(page):
    found = []
    for figure in page.soup.find_all("figure", class_="abe-explore"):
        name, size = figure.get("id", "an exploration without id"), len(str(figure).encode()) / 1000
        slider, data = figure.find("input", type="range"), figure.find("script", type="application/json")
        frames = json.loads(data.get_text()) if data else []
        alts = [frame.get("alt") for frame in frames]
        wrong = {
            f"{size:.0f} KB, allowed are 150": size > 150,
            "no picture": not figure.find("img"),
            "no slider with a name": not (slider and slider.get("aria-label")),
            "no play button": not figure.find("button"),
            "no place for the value": not figure.find("output"),
            "a slider and frames that do not match": not slider or str(len(frames) - 1) != slider.get("max"),
            "a frame without alt text": any(map(bad_alt, alts)),
            "two frames with the same alt text": len(set(alts)) < len(alts),
            "a frame without caption": not all(frame.get("caption", "").strip() for frame in frames),
            "a caption that is not read out when it changes": not figure.find("figcaption", attrs={"aria-live": "polite"}),
        }
        found += [page.say(f"{name}: {what}", "See attn_utils/explorations.py") for what, holds in wrong.items() if holds]
    return found


@rule
def outputs_have_captions(page):
    """A picture of figure(), explore(), explore_3d() or lab() says below it what is to be seen."""
    return [
        page.say(f"{figure.get('id', 'a picture')} has no caption", "Pass a caption to the function that shows it")
        for figure in page.soup.find_all("figure", class_=re.compile("^abe-"))
        if not (figure.figcaption and figure.figcaption.get_text(strip=True))
    ]


@rule
def captions_are_not_read_twice(page):
    """A screen reader speaks the alt text and then the caption: the same words there are noise."""
    return [
        page.say(f"{figure.get('id', 'a picture')}: its alt text is its caption", "Leave alt away, or say what is beside it")
        for figure in page.soup.find_all("figure", class_=re.compile("^abe-"))
        for image in figure.find_all("img")
        if figure.figcaption and image.get("alt", "").strip() == figure.figcaption.get_text(strip=True)
    ]


@rule
def scenes_have_a_still_image(page):
    found = []
    for figure in page.soup.find_all("figure", class_="abe-3d"):
        still, scene = figure.find("img", class_="abe-still"), figure.find(class_="abe-scene")
        if not still or not scene or still.has_attr("hidden") or not scene.has_attr("hidden"):
            found.append(page.say(f"{figure.get('id')}: no still image before the scene", "See explore_3d()"))
    return found


@rule
def launch_buttons_are_right(page):
    if not page.is_notebook:
        return []
    notebook = page.name.removesuffix(".html") + ".ipynb"
    project = page.site.repository.removeprefix("https://github.com/")
    wanted = {
        "Binder": f"https://mybinder.org/v2/gh/{project}/{page.site.branch}?urlpath=lab/tree/{notebook}",
        "Colab": f"https://colab.research.google.com/github/{project}/blob/{page.site.branch}/{notebook}",
    }
    there = {tag["href"] for tag in page.soup.find_all("a", href=True)}
    return [
        page.say(f"no {where} button to {address}", "See launch_buttons in _config.yml")
        for where, address in wanted.items()
        if address not in there
    ]


@rule
def setup_cell_is_hidden(page):
    shown = [tag for tag in page.soup.find_all(class_="cell_input") if "find_spec(" in tag.get_text()]
    return [page.say("the set-up cell is shown", "Tag it remove-cell") for _ in shown if page.is_notebook]


@rule
def bars_say_their_names(page):
    """What folds away has words on it or a label; with both, the label would be read out in place of the words."""
    found = [(tag, tag.get_text(strip=True), tag.get("aria-label", "")) for tag in page.soup.find_all("summary")]
    wrong = [shorten(tag) for tag, words, label in found if bool(words) == bool(label)]
    return [page.say(f"{tag} has no name, or two", "See book/_ext/named_bars.py") for tag in wrong]


RAW = {
    "a traceback": r"Traceback \(most recent call last\)",
    "a MyST role": r"\{[a-z:]+\}`",
    "a MyST directive": r"```+\{|^:::",
    "raw TeX": r"\$\$|\\(?:frac|sqrt|mathrm|begin)\b",
}


@rule
def nothing_raw_is_shown(page):
    found = [page.say("a traceback", "Repair the cell")] if re.search(RAW["a traceback"], page.text) else []
    text = prose(page)
    kinds = [(what, pattern) for what, pattern in RAW.items() if what != "a traceback"]
    matches = [(what, re.search(pattern, text, re.M)) for what, pattern in kinds]
    do = "It was not rendered: look at the source"
    return found + [page.say(f"{what}: {match.group()!r}", do) for what, match in matches if match]


def prose(page):
    """The text of a page but for code, and for mathematics that MathJax will set."""
    main = BeautifulSoup(str(page.soup.find("main") or page.soup), "html.parser")
    for tag in main.find_all(["pre", "code", "script", "style", "noscript"]) + main.find_all(class_="math"):
        tag.decompose()
    return main.get_text()
