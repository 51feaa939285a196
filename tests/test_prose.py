"""What the README and the pages say about commands, files and versions is true."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").rglob("*.md"))]
PAGES = [page for page in PAGES if page.name != "claims.md"]  # generated
FOLDERS = ("notebooks", "attn_utils", "book", "tests", "tools")


def page_id(page):
    return page.name


def targets():
    """What make can be asked for."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.M) for name in line.split()}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_make_target_exists(page):
    commands = re.findall(r"(?:^|`)(?: {4})?make ((?:[a-z-]+ ?)+)", page.read_text(encoding="utf-8"), re.M)
    named = {target for command in commands for target in command.split()}
    assert named <= targets()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_file_that_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(rf"(?<![\w/.])((?:{'|'.join(FOLDERS)})/[\w./-]*\w)", text))
    assert [name for name in sorted(named) if not is_there(name) and name != "book/claims"] == []


def is_there(name):
    """Whether a path exists; NN_name stands for the notebooks of every chapter."""
    folder, _, file = name.rpartition("/")
    return (ROOT / name).exists() or (file.startswith("NN_name") and (ROOT / folder).is_dir())


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_extra_exists(page):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = re.findall(r'"\.\[([\w,]+)\]"', page.read_text(encoding="utf-8"))
    assert {extra for extras in lists for extra in extras.split(",")} <= set(project["optional-dependencies"])


BRITISH = (
    r"(?i)\b(?:licences?|learnt|colours?|behaviours?|neighbours?|neighbouring|centre[sd]?|greys?|towards|favours?|favoured"
    r"|(?:normal|initial|local|general|summar|real|emphas|optim|visual|recogn)is(?:e|es|ed|ing|ation)\b)"
)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "exercises"], ids=page_id)
def test_the_spelling_is_american(page):
    text = re.sub(r"```.*?```|`[^`]*`|https?://\S+", " ", page.read_text(encoding="utf-8"), flags=re.S)
    assert re.findall(BRITISH, text) == []


def test_the_version_agrees_everywhere():
    import attn_utils

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["version"] == attn_utils.__version__ == str(citation["version"])


def test_the_pages_that_list_chapters_link_those_that_stand():
    index = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\.\./notebooks/(\w+\.ipynb)", index))
    assert linked == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}

def test_the_readme_names_every_room_of_the_package():
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("### The rooms of")[2]
    rows = [name for row in re.findall(r"^\| (`.+?`) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)]
    rooms = {path.stem for path in (ROOT / "attn_utils").glob("*.py")} - {"__init__"}
    rooms |= {path.name for path in (ROOT / "attn_utils").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert sorted(rows) == sorted(rooms), "the table of rooms in README.md"


def works():
    """{key: (year, address)} of the bibliography; an entry that lacks one of them, or has two, is named."""
    found = {}
    for entry in re.split(r"^@", (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), flags=re.M)[1:]:
        key = re.match(r"\w+\{([^,]+),", entry)[1]
        years = re.findall(r"^\s*year\s*=\s*\{(\d{4})\}", entry, re.M)
        urls = re.findall(r"^\s*url\s*=\s*\{(https://[^}]+)\}", entry, re.M)
        assert len(years) == len(urls) == 1, (
            f"book/references.bib: {key} has {len(years)} years and {len(urls)} addresses, expected one of each: "
            "year = {2024}, and url = {https://...}, the arXiv page or the DOI where there is one"
        )
        found[key] = years[0], urls[0]
    return found


def test_every_work_has_one_address_of_its_own():
    urls = [url for _, url in works().values()]
    assert [url for url in urls if urls.count(url) > 1] == []


def test_a_work_without_an_address_is_named(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "references.bib").write_text("% works\n\n@misc{somebody2024,\n  year = {2024},\n}\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="somebody2024 has 1 years and 0 addresses, expected one of each"):
        works()


def test_notebooks_cite_the_year_of_the_bibliography():
    years = {url: year for year, url in works().values()}
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        for text, url in re.findall(r"\[([^]]+)\]\((https://[^)]+)\)", path.read_text(encoding="utf-8")):
            cited = re.search(r"\b(?:19|20)\d\d\b", text)
            assert not cited or url not in years or years[url] == cited[0], f"{path.name}: {text} is of {years[url]}"


def test_pages_cite_works_of_the_bibliography():
    known = works()
    for page in PAGES:
        cited = re.findall(r"\{cite:\w+\}`([^`]+)`", page.read_text(encoding="utf-8"))
        keys = [key.strip() for group in cited for key in group.split(",")]
        assert [key for key in keys if key not in known] == [], page.name


def test_the_example_of_a_claim_is_a_row_of_the_ledger():
    page = (ROOT / "book" / "contributing.md").read_text(encoding="utf-8")
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.S)[1])[0]
    book = yaml.safe_load((ROOT / "book" / "claims.yml").read_text(encoding="utf-8"))
    row = next(row for source in book.values() for row in source["claims"] if row["id"] == example["id"])
    assert example == {field: row[field] for field in example}


def test_the_page_for_teachers_has_the_minutes_and_points_that_each_notebook_states():
    page = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[\d+\. .*?/(\w+)\.ipynb\) \| (\d+) minutes \| \d+ s \| ?(\d*).*? \| ?(.*?) ?\|$", page, re.M)
    assert {name for name, *_ in rows} == {path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    for name, reading, solving, points in rows:
        stated = [about_minutes(ROOT / "notebooks" / f"{name}.ipynb")]
        assignment = ROOT / "notebooks" / "assignments" / f"{name}.ipynb"
        stated += [about_minutes(assignment)] if assignment.exists() else [""]
        assert [reading, solving] == stated, f"{name}: the notebooks state {stated}"
        assert points == (points_of(assignment) if assignment.exists() else "")


def test_the_page_for_teachers_asks_ten_questions_about_each_chapter_it_asks_about():
    page = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    asked = re.split(r"^### Ask about chapter (\d)\n", page, flags=re.M)[1:]
    count = len(asked) // 2
    assert asked[::2] == [str(number) for number in range(1, count + 1)] and count >= 5
    for number, text in zip(asked[::2], asked[1::2], strict=True):
        folded = re.findall(r"<details><summary>(\d+)\. .+\?</summary>\n\n(.+)\n\n</details>", text)
        assert [int(place) for place, _ in folded] == list(range(1, 11)), f"chapter {number}"
        assert [answer for _, answer in folded if f"](../notebooks/0{number}_" not in answer] == []


def points_of(path):
    """All points of an assignment, and those that are given by hand."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    worth = [(cell["metadata"].get("nbgrader", {}).get("points", 0), cell["cell_type"]) for cell in cells]
    return f"{sum(n for n, _ in worth)}, {sum(n for n, kind in worth if kind == 'markdown')}"


def about_minutes(path):
    opening = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    return re.search(r"[Aa]bout (\d+) minutes", opening)[1]
