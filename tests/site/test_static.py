"""The built pages keep every rule of html_rules.py, and each rule catches a page that breaks it."""

import json
import re

import pytest
import yaml
from html_rules import ROOT, RULES, STYLE_LOADS, Site

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
GUIDES = sorted((ROOT / "notebooks").glob("[a-z]*.ipynb"))  # beside the chapters, without a number
NOTEBOOKS = [*CHAPTERS, *GUIDES, *sorted((ROOT / "notebooks" / "evidence").glob("[0-9][0-9]_*.ipynb"))]
EXERCISES = sorted((ROOT / "book" / "exercises").glob("[0-9][0-9]_*.md"))
PACKAGED = json.loads((ROOT / "attn_utils" / "data" / "claims.json").read_text(encoding="utf-8"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def site(built):
    repository = CONFIG["repository"]
    return Site(built, repository=repository["url"], branch=repository["branch"])


@pytest.mark.parametrize("name", RULES)
def test_site(name, site):
    complaints = [line for page in site.pages.values() for line in RULES[name](page)]
    if complaints:
        pytest.fail("\n".join([f"{name}: {len(complaints)} found", *complaints]), pytrace=False)


TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LISTED = [chapter for part in TOC["parts"] for chapter in part["chapters"]]


def address(path):
    """The page of a notebook or a Markdown file, without its ending."""
    return path.relative_to(ROOT).with_suffix("").as_posix()


def below(entry):
    """The files of an entry of _toc.yml and of all sections under it."""
    return [entry["file"], *(file for section in entry.get("sections", []) for file in below(section))]


def test_every_page_of_the_contents_is_there(site):
    files = [file for entry in LISTED for file in below(entry)] + [TOC["root"]]
    assert len(set(files)) == len(files), "a page is listed twice"
    assert not [file for file in files if f"{file}.html" not in site.pages]
    assert not [address(path) for path in [*NOTEBOOKS, *EXERCISES] if address(path) not in files]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_evidence_and_exercises_are_listed_below_their_chapter(path, site):
    sections = {entry["file"]: below(entry)[1:] for entry in LISTED}[address(path)]
    there = [address(page) for page in [*NOTEBOOKS, *EXERCISES] if page.stem == path.stem and page != path]
    assert sections == there
    links = {tag["href"] for tag in site.pages[f"{address(path)}.html"].soup.select(".bd-sidebar-primary a[href]")}
    assert not [page for page in there if not any(link.endswith(f"{page.partition('/')[2]}.html") for link in links)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_the_number_of_its_file(path, site):
    assert title_numbers(site, path) == [f"{int(path.stem[:2])}."]


@pytest.mark.parametrize("path", [*NOTEBOOKS[len(CHAPTERS) :], *EXERCISES], ids=address)
def test_a_page_that_is_no_chapter_has_no_number(path, site):
    assert title_numbers(site, path) == []
    assert not site.pages[f"{address(path)}.html"].soup.select("article .section-number")


def title_numbers(site, path):
    page = site.pages[f"{address(path)}.html"]
    return [tag.get_text().strip() for tag in page.soup.select("article h1 .section-number")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=address)
def test_stored_outputs_are_shown(path, site):
    """The page shows what the notebook stores: it was built from this notebook, not from an older one."""
    page = site.pages[f"{address(path)}.html"]
    alts = {tag.get("alt") for tag in page.soup.find_all("img")}
    figures = {tag.get("id") for tag in page.soup.find_all("figure")}
    text = re.sub(r"\s+", " ", page.soup.get_text())
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code" or "remove-cell" in cell["metadata"].get("tags", []):
            continue
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt")
        assert alt is None or alt in alts, f"{path.name}, cell {cell['id']}: its picture is not on the page"
        for output in cell["outputs"]:
            html = "".join(output.get("data", {}).get("text/html", ""))
            for figure in re.findall(r'<figure class="abe-[^"]*" id="([^"]+)"', html):
                assert figure in figures, f"{path.name}, cell {cell['id']}: {figure} is not on the page"
            said = re.sub(r"\s+", " ", "".join(output.get("text", ""))).strip()
            assert said in text, f"{path.name}, cell {cell['id']}: the page does not show {said[:80]!r}"


def test_claims_page_lists_all_claims(site):
    sources = yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
    claims = [claim["id"] for source in sources.values() for claim in source["claims"]]
    assert len(claims) >= 50
    shown = {tag.get_text() for tag in site.pages["book/claims.html"].soup.find_all("code")}
    assert not [claim for claim in claims if claim not in shown], "claims that the page does not show"


def test_each_claim_links_to_the_cell_that_measured_it(site):
    """The anchors themselves are checked by links_resolve."""
    links = {tag["href"] for tag in site.pages["book/claims.html"].soup.find_all("a", href=True)}
    measured = [(row["id"], one["notebook"]) for row in PACKAGED for one in row.get("measured", [])]
    wanted = {f"../notebooks/{notebook.removesuffix('.ipynb')}.html#claim-{name}" for name, notebook in measured}
    assert wanted and wanted <= links


def ledgers():
    """(name of the page, Markdown of its ledger) of the notebooks that store one as a table."""
    for path in sorted((ROOT / "notebooks").rglob("[0-9][0-9]_*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                text = "".join(output.get("data", {}).get("text/markdown", ""))
                if text.startswith("| The claim |"):
                    yield path.relative_to(ROOT).with_suffix(".html").as_posix(), text


def test_a_ledger_is_a_table_that_links_to_the_cells(site):
    found = list(ledgers())
    assert len(found) >= 7
    for name, text in found:
        tables = [table for table in site.pages[name].soup.find_all("table") if "Measured here" in table.get_text()]
        assert len(tables) == 1, f"{name}: one ledger, set as a table"
        links = [tag["href"].split("#")[-1] for tag in tables[0].find_all("a", href=True)]
        assert links == re.findall(r"^\| \[.*?\]\([^)]*#(claim-[\w-]+)\) \|", text, re.M), name


def test_the_site_ships_the_licenses_of_its_parts(built):
    texts = {path.name: path.read_text("utf8") for path in (built / "_static" / "licenses").iterdir()}
    assert "Apache License" in texts["django-static-mathjax.txt"] and "Plotly" in texts["plotly.txt"]
    assert (built / "_static" / "mathjax").is_dir() and (built / "_static" / "plotly").is_dir()


def test_styles_load_nothing_from_elsewhere(built):
    sheets = sorted((built / "_static").rglob("*.css"))
    assert sheets
    assert not [sheet.name for sheet in sheets if STYLE_LOADS.search(sheet.read_text(errors="replace"))]


# --- each rule catches what it is for --------------------------------------------------------

EXPLORE = (
    '<figure class="abe-explore" id="explore-1"><img alt="Flat" src="data:image/png;base64,AA">'
    '<button>Play</button><input type="range" max="1" aria-label="d"><output>d = 1</output>'
    '<script type="application/json">[{"alt": "Flat", "caption": "It is flat."}, '
    '{"alt": "Steep", "caption": "It is steep."}]</script>'
    '<figcaption aria-live="polite">It is flat.</figcaption></figure>'
)
SCENE = (
    '<figure class="abe-3d" id="scene-1"><img class="abe-still" alt="A cloud" src="data:image/png;base64,AA">'
    '<div class="abe-scene" hidden></div><figcaption>Words.</figcaption></figure>'
)
HUB = "https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/notebooks/01_a.ipynb"
COLAB = "https://colab.research.google.com/github/owner/name/blob/main/notebooks/01_a.ipynb"
CLEAN = f"""<!DOCTYPE html><html lang="en"><head><title>A</title></head><body><main id="main">
<h1>A</h1><p>See <a href="../index.html">home</a>, <a href="#main">up</a>, <a href="https://example.org/">far</a>.</p>
<span class="math">\\(\\sqrt{{d}}\\)</span><pre>{{ref}}`x`</pre>{EXPLORE}{SCENE}
<a href="{HUB}">Binder</a><a href="{COLAB}">Colab</a></main></body></html>"""
HOME = '<html><head><meta http-equiv="Refresh" content="0; url=notebooks/01_a.html" /></head></html>'


def broken_rules(page=CLEAN, home=HOME):
    site = Site(texts={"notebooks/01_a.html": page, "index.html": home})
    return [name for name, function in RULES.items() if any(function(page) for page in site.pages.values())]


def test_a_clean_site_passes():
    assert broken_rules() == []


BREAKS = [
    ("links_resolve", "../index.html", "../missing.html"),
    ("links_resolve", "#main", "#nowhere"),
    ("links_resolve", "../index.html", "../index.html#nowhere"),
    ("links_resolve", "../index.html", "/index.html"),
    ("links_resolve", "../index.html", "../../index.html"),
    ("nothing_loads_from_elsewhere", "<h1>", '<script src="https://example.org/x.js"></script><h1>'),
    ("nothing_loads_from_elsewhere", "<h1>", '<img alt="A dog" src="//example.org/x.png"><h1>'),
    ("nothing_loads_from_elsewhere", "<title>", '<link rel="stylesheet" href="https://example.org/x.css"><title>'),
    ("nothing_loads_from_elsewhere", "<h1>", '<iframe src="https://example.org"></iframe><h1>'),
    ("nothing_loads_from_elsewhere", "<h1>", "<script>fetch('https://example.org/x')</script><h1>"),
    ("nothing_loads_from_elsewhere", "<h1>", "<script>tag.src = 'https://example.org/x';</script><h1>"),
    ("nothing_loads_from_elsewhere", "<title>", "<style>@import '//example.org/x.css';</style><title>"),
    ("nothing_loads_from_elsewhere", "<p>", '<p style="background:url(http://example.org/x.png)">'),
    ("images_have_alt_text", "<h1>", '<img src="data:,"><h1>'),
    ("images_have_alt_text", "<h1>", '<img alt="" src="data:,"><h1>'),
    ("images_have_alt_text", "<h1>", '<img alt="../_images/3fa9.png" src="data:,"><h1>'),
    ("page_says_its_language", ' lang="en"', ""),
    ("one_title", "<h1>A</h1>", ""),
    ("one_title", "<h1>A</h1>", "<h1>A</h1><h1>B</h1>"),
    ("ids_are_unique", "<p>", '<p id="main">'),
    ("page_is_light", "<p>", "<p>" + "x" * 1_000_000),
    ("explorations_are_complete", '"Steep"', '""'),
    ("explorations_are_complete", '"Steep"', '"Flat"'),
    ("explorations_are_complete", 'max="1"', 'max="2"'),
    ("explorations_are_complete", ' aria-label="d"', ""),
    ("explorations_are_complete", "<button>Play</button>", ""),
    ("explorations_are_complete", '{"alt": "Steep"', '{"src": "' + "A" * 150_000 + '", "alt": "Steep"'),
    ("explorations_are_complete", '"It is steep."', '" "'),
    ("explorations_are_complete", ' aria-live="polite"', ""),
    ("outputs_have_captions", "<figcaption>Words.</figcaption>", ""),
    ("outputs_have_captions", "<figcaption>Words.", "<figcaption>"),
    ("captions_are_not_read_twice", "<figcaption>Words.", "<figcaption>A cloud"),
    ("scenes_have_a_still_image", ' class="abe-scene" hidden', ' class="abe-scene"'),
    ("scenes_have_a_still_image", "abe-still", "still"),
    ("launch_buttons_are_right", HUB, HUB.replace("owner", "other")),
    ("launch_buttons_are_right", COLAB, COLAB.replace("main", "master")),
    ("setup_cell_is_hidden", "<p>", '<div class="cell_input"><pre>importlib.util.find_spec("x")</pre></div><p>'),
    ("bars_say_their_names", "<p>", '<details><summary aria-label="Toggle">Code: a plot</summary></details><p>'),
    ("bars_say_their_names", "<p>", "<details><summary><i></i></summary></details><p>"),
    ("nothing_raw_is_shown", "<p>", "<pre>Traceback (most recent call last):</pre><p>"),
    ("nothing_raw_is_shown", "<p>", "<p>{cite:p}`vaswani`"),
    ("nothing_raw_is_shown", "<p>", "<p>the scale $$\\sqrt{d}$$"),
]


@pytest.mark.parametrize(("rule", "old", "new"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_rule_catches(rule, old, new):
    assert old in CLEAN
    assert broken_rules(CLEAN.replace(old, new, 1)) == [rule]


def test_redirect_to_nowhere_is_caught():
    assert broken_rules(home=HOME.replace("01_a", "09_z")) == ["redirects_lead_to_a_page"]


def test_every_rule_is_broken_once():
    assert {rule for rule, _, _ in BREAKS} | {"redirects_lead_to_a_page"} == set(RULES)


@pytest.mark.parametrize(
    "css",
    [
        "@import 'https://example.org/x.css';",
        "@import url(//x.css);",
        "a{background:url('https://example.org/x')}",
        "b{src:url(//x)}",
    ],
)
def test_styles_that_load_are_caught(css):
    assert STYLE_LOADS.search(css)
    assert not STYLE_LOADS.search("@import '../basic.css'; a{background:url(data:image/png;base64,AA)}")
