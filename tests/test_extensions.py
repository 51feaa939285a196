"""The book's own Sphinx extensions, where the built site alone would not show a fault."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[1]


def extension(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "book" / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(number):
    title, toc = nodes.title(), nodes.bullet_list()
    title["secnumber"] = [number]
    toc += [nodes.reference(secnumber=[number]), nodes.reference(secnumber=[number, 2])]
    return title, toc, {"": (number,), "#two": (number, 2)}


def test_a_chapter_has_the_number_of_its_file():
    """Chapter 6 stays chapter 6 where it is the fifth in _toc.yml because chapter 5 is not written."""
    below = ["notebooks/evidence/06_sink_necessity", "book/exercises/06_sink_necessity"]
    pages = {"notebooks/06_sink_necessity": page(5), "book/glossary": page(7)} | {name: page(5) for name in below}
    env = SimpleNamespace(
        titles={name: title for name, (title, _, _) in pages.items()},
        tocs={name: toc for name, (_, toc, _) in pages.items()},
        toc_secnumbers={name: numbers for name, (_, _, numbers) in pages.items()},
    )
    extension("chapter_numbers").renumber(None, env)
    assert env.toc_secnumbers["notebooks/06_sink_necessity"] == {"": (6,), "#two": (6, 2)}
    assert env.titles["notebooks/06_sink_necessity"]["secnumber"] == [6]
    assert [link["secnumber"] for link in env.tocs["notebooks/06_sink_necessity"]] == [[6], [6, 2]]
    assert env.toc_secnumbers["book/glossary"] == {"": (7,), "#two": (7, 2)}
    for name in below:  # these would go on counting where the sections of the chapter end
        assert env.toc_secnumbers[name] == {} and "secnumber" not in env.titles[name]
        assert not [link for link in env.tocs[name].findall(nodes.reference) if "secnumber" in link]


def test_a_markdown_link_can_lead_to_a_term():
    """MyST looks for the part behind # among the slugs of a page, which are its headings and now its terms."""
    term = nodes.term("", "head", ids=["term-head"])
    app = SimpleNamespace(env=SimpleNamespace(docname="glossary", metadata={"glossary": {"myst_slugs": {"a-heading": 1}}}))
    extension("glossary_links").add_terms(app, nodes.section("", term))
    slugs = app.env.metadata["glossary"]["myst_slugs"]
    assert slugs["term-head"][1:] == ("term-head", "head") and slugs["a-heading"] == 1
    extension("glossary_links").add_terms(app, nodes.section())
    assert set(slugs) == {"term-head", "a-heading"}


def test_a_bar_over_folded_code_keeps_its_name():
    bar = """<summary aria-label="Toggle hidden content">
<p class="collapsed admonition-title">{}</p>
<p class="expanded admonition-title">{}</p>"""
    for shown, opened, wanted in (
        ("Code: the plot", "Hide code cell source", "Code: the plot"),
        ("Show code cell source", "Hide code cell source", "Hide code cell source"),
    ):
        context = {"body": bar.format(shown, opened)}
        extension("named_bars").name_bars(None, "page", "page.html", context, None)
        assert context["body"] == bar.format(shown, wanted).replace(' aria-label="Toggle hidden content"', "")


def test_an_arrow_of_the_sidebar_is_named_by_its_chapter():
    item = BeautifulSoup("<li><a>3. Masks</a><details><summary><i></i></summary></details></li>", "html.parser")
    named = extension("named_bars").naming_arrows(lambda kind: item if kind == "sidebar" else "")
    assert named("sidebar").summary["aria-label"] == "Pages below “3. Masks”" and named("none") == ""


def test_the_licenses_of_what_the_site_ships_are_copied(tmp_path):
    """MathJax is under the Apache license, plotly.js under the MIT license, and both want their text passed on."""
    extension("offline_assets").copy_licenses(tmp_path)
    assert "Apache License" in (tmp_path / "django-static-mathjax.txt").read_text("utf8")
    plotly = (tmp_path / "plotly.txt").read_text("utf8")
    assert "Permission is hereby granted" in plotly and "Plotly" in plotly
    listed = (tmp_path / "README.txt").read_text("utf8")
    texts = {path.name for path in tmp_path.iterdir()} - {"README.txt"}
    assert len(texts) >= 9 and all(f": {name} (" in listed for name in texts)


def test_a_package_without_a_license_stops_the_build(tmp_path, monkeypatch):
    assets = extension("offline_assets")
    monkeypatch.setattr(assets, "license_texts", lambda name: [])
    with pytest.raises(ExtensionError, match="plotly carries no license text"):
        assets.copy_licenses(tmp_path, ["plotly"])


# ---------------------------------------------------------------- anchors of claims

REPORTED = "first | source: 1 | here: 1 | reproduced\nsecond | source: 1 | here: 2 | differs: so it is\n"


def cell_of(output):
    """A notebook's code cell as MyST-NB makes it: a container with a source and its outputs."""
    cell = nodes.container(nb_element="cell_code")
    source = nodes.container(nb_element="cell_code_source")
    source += nodes.literal_block("", f"print({REPORTED!r})")
    outputs = nodes.container(nb_element="cell_code_output")
    outputs += nodes.literal_block("", output)
    cell += [source, outputs]
    return cell


@pytest.mark.parametrize("suffix, anchors", [(".ipynb", ["claim-first", "claim-second"]), (".md", [])])
def test_a_cell_that_reports_a_claim_can_be_linked_to(suffix, anchors):
    document = new_document("page")
    document += [cell_of("something else"), cell_of(REPORTED)]
    env = SimpleNamespace(docname="page", doc2path=lambda name: name + suffix, metadata={"page": {}})
    document.settings.env = env
    extension("claims_ledger").AnchorClaims(document).apply()
    assert [cell["ids"] for cell in document.children] == [[], anchors]
    assert list(env.metadata["page"].get("myst_slugs", {})) == anchors
