"""Each rule of lint.py catches a notebook that breaks just it, and a clean notebook passes all."""

import base64
import copy

import pytest
from lint import (
    ASSIGNMENT,
    CHAPTER,
    METADATA,
    ROOT,
    RULES,
    Notebook,
    load,
    long_numbers,
    measured,
    predictions,
    questions,
    rules_for,
    title_cased,
)

SETUP = "# Finds attn_utils.\nimport attn_utils; attn_utils.install_missing()"
BIBLIOGRAPHY = "@article{vaswani2017, eprint = {1706.03762}, doi = {10.1000/xyz}}"
ALT = "Line that rises from 1 to 4 and then stays flat: a figure with nothing to say but its alt text."
SLIDER = (
    '<figure class="abe-explore" id="explore-d"><img alt="Bars of equal height, one for each token" '
    'src="data:image/png;base64,AAAA"><input type="range" aria-label="d">'
    '<script type="application/json">[{"src":"data:image/png;base64,AAAA","alt":"Bars of equal height at d = 1",'
    '"label":"d = 1"},{"src":"data:image/png;base64,BBBB","alt":"One bar at d = 2, the others are gone",'
    '"label":"d = 2"}]</script></figure>'
)
PREDICT = (
    "> **Predict.** (a) yes, (b) no.\n> <details><summary>See what the answers mean</summary>\n"
    "> (a) would mean that it rises.</details>\n\n"
)
OPTION = "<details><summary>({}) this one</summary>Because the weights of a row sum to one.</details>\n"
QUESTION = "What sums to one?\n\n" + "".join(OPTION.format(letter) for letter in "abc") + "\n"
OPENING = (
    "# Weigh words\n\n**You will do** this and **learn** that. You **need** NumPy and 20 minutes, "
    "and read [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762)."
)
CLOSING = "## Summary\n\nIt rises.\n\n## Exercises\n\n1. Why?\n\n## Further reading\n\nMore."


def md(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text, *outputs, **metadata):
    return {"cell_type": "code", "metadata": metadata, "source": text, "outputs": list(outputs)}


def shows(**data):
    data = {key.replace("_", "/", 1): value for key, value in data.items()}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def prints(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def numbered(cells):
    count = 0
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"01-{number:03d}"
        if cell["cell_type"] == "code":
            cell["execution_count"] = count = count + 1
    return cells


@pytest.fixture
def data(tmp_path):
    """A clean chapter; the constants below name its cells."""
    (tmp_path / "02_scaling.ipynb").write_text("{}")
    cells = [
        md(OPENING),
        code(SETUP, tags=["remove-cell"]),
        md("## 1.1 Print a sum\n\n" + "word " * 1300 + "\n\n" + PREDICT * 4),
        code("scores = Q @ K.T  # (n, n)\nprint(sum(scores))", prints("12.3456\n")),
        md("It goes on in [chapter 2](02_scaling.ipynb)."),
        code("plt.plot(x)\nplt.show()", shows(image_png="AAAA"), mystnb={"image": {"alt": ALT}}),
        code("\n".join(f"assert x[{i}] > {i}" for i in range(4))),
        code("explore(draw, alt=alt, d=[1, 2])", shows(text_html=SLIDER)),
        code("assert z > 1"),
        md("## What the sources say, and what we measured"),
        code("ledger(1)", shows(text_markdown="| id | verdict |")),
        code("\n".join(f"assert y[{i}] > {i}" for i in range(4))),
        md("## Check yourself\n\n" + QUESTION * 3 + CLOSING),
    ]
    numbered(cells)
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def check(tmp_path):
    def names(data, size=1000):
        """The rules that a notebook breaks."""
        nb = Notebook(tmp_path / "01_test.ipynb", copy.deepcopy(data), SETUP, BIBLIOGRAPHY, size)
        return [name for name in rules_for(CHAPTER) if RULES[name][0](nb)]

    return names


def test_a_clean_notebook_passes(data, check):
    assert check(data) == []


TITLE, SECTION, PRINTS, PLAIN, FIGURE, EXPLORE, ASSERT, SOURCES, LEDGER, END = 0, 2, 3, 4, 5, 7, 8, 9, 10, 12
BREAKS = []


def breaks(rule):
    return lambda function: BREAKS.append((rule, function)) or function


def edit(rule, index, old, new):
    """Register a break that replaces text in the source of one cell."""

    def change(cells):
        assert old in cells[index]["source"]
        cells[index]["source"] = cells[index]["source"].replace(old, new)

    change.__name__ = f"{old[:12]}->{new[:24]}"
    BREAKS.append((rule, change))


def output(rule, index, *outputs):
    """Register a break that replaces the outputs of one cell."""
    BREAKS.append((rule, lambda cells: cells[index].update(outputs=list(outputs))))


@breaks("execution_counts_run_from_1")
def never_executed(cells):
    cells[PRINTS]["execution_count"] = None


@breaks("execution_counts_run_from_1")
def out_of_order(cells):
    cells[PRINTS]["execution_count"] = 7


output("no_output_is_missing", PRINTS)
output("no_output_is_missing", 10)
edit("no_output_is_missing", ASSERT, "assert z > 1", "assert z > 1\nz")
edit("code_lines_fit_the_page", ASSERT, "assert z > 1", "assert z > 1  # " + "because " * 10)
WIDE = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (721).to_bytes(4, "big") + bytes(16)).decode()
output("figures_read_on_a_phone", FIGURE, shows(image_png=WIDE))
edit("no_output_is_missing", ASSERT, "assert z > 1", "assert z > 1\nif z:\n    print(z)")
edit("no_output_is_missing", ASSERT, "assert z > 1", "assert z > 1\nfig, ax = plt.subplots()")
output("nothing_on_stderr", PRINTS, prints("1\n"), prints("UserWarning: no\n", "stderr"))
output("no_error_outputs", PRINTS, prints("1\n"), {"output_type": "error", "ename": "E", "evalue": "e"})
edit("no_nbval_escape", PRINTS, "scores =", "# NBVAL_IGNORE_OUTPUT\nscores =")


@breaks("no_nbval_escape")
def tagged(cells):
    cells[PRINTS]["metadata"]["tags"] = ["nbval-ignore-output"]


@breaks("no_nbval_escape")
def may_raise(cells):
    cells[PRINTS]["metadata"]["tags"] = ["raises-exception"]


def alt(text):
    return lambda cells: cells[FIGURE]["metadata"].update(mystnb={"image": {"alt": text}})


for wrong in ("", "too short", "../_images/" + "0" * 90 + ".png", "far too long " * 30):
    BREAKS.append(("pictures_have_alt_text", alt(wrong)))
BREAKS.append(("pictures_have_alt_text", lambda cells: cells[FIGURE].update(metadata={})))


@breaks("pictures_have_alt_text")
def alt_twice(cells):
    cells[PRINTS]["outputs"].append(shows(image_png="AAAA"))
    cells[PRINTS]["metadata"]["mystnb"] = {"image": {"alt": ALT}}
    cells[PRINTS]["source"] += "\nassert scores.all()"


@breaks("pictures_have_alt_text")
def stale_alt(cells):
    cells[PRINTS]["metadata"]["mystnb"] = {"image": {"alt": ALT.upper()}}


output("html_images_have_alt_text", EXPLORE, shows(text_html=SLIDER.replace("Bars of", "").replace("alt", "x")))
ALTS = "One bar at d = 2, the others are gone", "Bars of equal height at d = 1"
output("html_images_have_alt_text", EXPLORE, shows(text_html=SLIDER.replace(ALTS[0], "")))
output("frames_have_their_own_alt_text", EXPLORE, shows(text_html=SLIDER.replace(*ALTS)))
output("at_most_6_significant_digits", EXPLORE, shows(text_html=SLIDER.replace('"d = 2"', '"d = 2.1234567"')))
edit("html_images_have_alt_text", PLAIN, "It goes", "![](02_scaling.ipynb) It goes")
edit("figures_are_asserted", ASSERT, "assert z > 1", "z = 1")
output("at_most_6_significant_digits", PRINTS, prints("12.34567\n"))
output("at_most_6_significant_digits", LEDGER, shows(text_markdown="| it | 0.1234567e-3 |"))
output("at_most_6_significant_digits", EXPLORE, shows(text_html=SLIDER + "<output>3.14159265</output>"))
output("nothing_volatile_is_printed", PRINTS, prints("it took 3.4 s\n"))
output("nothing_volatile_is_printed", PRINTS, prints("12 ms\n"))
output("nothing_volatile_is_printed", PRINTS, prints("<generator object f at 0x7f12ab34cd56>\n"))
output("nothing_volatile_is_printed", PRINTS, prints("2026-11-29 18:55\n"))
output("nothing_volatile_is_printed", PRINTS, prints("[np.float64(0.5)]\n"))
for html in (
    '<script src="https://cdn.example.org/x.js"></script>',
    '<link rel="stylesheet" href="//cdn.example.org/x.css">',
    "<iframe></iframe>",
    '<img src="http://example.org/x.png" alt="Bars of equal height, one for each token">',
    "<style>@import 'x.css';</style>",
    '<p style="background: url(https://example.org/x.png)">x</p>',
    "<script>fetch('https://example.org')</script>",
):
    output("nothing_loads_from_elsewhere", EXPLORE, shows(text_html=SLIDER + html))
edit("nothing_loads_from_elsewhere", PLAIN, "It", "![Bars of equal height](https://example.org/x.png) It")
edit("no_machine_paths", PRINTS, "print(", "open('/home/me/x')\nprint(")
output("no_machine_paths", PRINTS, prints("/tmp/abc/x.npz\n"))


@breaks("metadata_is_as_agreed")
def timed(cells):
    cells[PRINTS]["metadata"]["execution"] = {"iopub.status.busy": "2026"}


@breaks("cell_ids_are_stable")
def random_id(cells):
    cells[PRINTS]["id"] = "3fa9c1d2"


@breaks("cell_ids_are_stable")
def same_id(cells):
    cells[PRINTS]["id"] = cells[FIGURE]["id"]


edit("setup_cell_is_the_shared_one", 1, "Finds", "Looks for")
BREAKS.append(("setup_cell_is_the_shared_one", lambda cells: cells[1].update(metadata={})))
output("setup_cell_is_the_shared_one", 1, prints("installed\n"))
edit("plain_python", PRINTS, "print", "%matplotlib inline\nprint")
edit("plain_python", PRINTS, "print", "!pip install x\nprint")
edit("plain_python", PRINTS, "print", "os.system('ls')\nprint")
edit("no_trailing_semicolons", PRINTS, "print(sum(scores))", "print(sum(scores));  # quiet")
edit("code_cells_are_short", PRINTS, "print", "x = 1\n" * 20 + "print")
edit("functions_are_short", PRINTS, "print", "def f():\n" + "    x = 1\n" * 14 + "print")
edit("matrix_products_have_shapes", PRINTS, "  # (n, n)", "")
for always in ("True", "x == x", "(x > 1, 'text')", "len(x) >= 0", "x > 1 or True", "'text'", "1 < 2"):
    edit("assertions_can_fail", ASSERT, "assert z > 1", f"assert z > 1\nassert {always}")


@breaks("at_least_8_assertions")
def few_assertions(cells):
    for index in (6, 11):
        cells[index]["source"] = cells[index]["source"].replace("assert x[1] > 1\nassert x[2] > 2\n", "")
        cells[index]["source"] = cells[index]["source"].splitlines()[0]


for raw in (
    "see {cite:p}`vaswani2017`",
    "```{note}\nx\n```",
    ":::{tip}\nx\n:::",
    "(here)=\n",
    "+++\n",
    "$$x$$ (eq)".replace("$$x", "$$\nx\n"),
    "> [!NOTE]\n> x",
    "[](02_scaling.ipynb)",
):
    edit("no_raw_sphinx", PLAIN, "It goes", f"{raw}\n\nIt goes")
edit("headings_are_in_sentence_case", SECTION, "Print a sum", "Print A Long Sum")
edit("headings_form_a_tree", SECTION, "## 1.1", "#### 1.1")
edit("headings_form_a_tree", SECTION, "## 1.1", "# 1.1")
edit("relative_links_resolve", PLAIN, "02_scaling", "02_scalling")
edit("citations_are_in_the_bibliography", TITLE, "1706.03762", "1706.99999")
edit("citations_are_in_the_bibliography", TITLE, "https://arxiv.org/abs/1706.03762", "https://doi.org/10.1/no")
for part in ("do", "learn", "need", "20 minutes"):
    edit("opens_with_the_contract", TITLE, part, "x")
edit("asks_for_predictions", SECTION, PREDICT, "")
edit("asks_for_predictions", SECTION, "</summary>", "")
for number in ("12.4", "0.25", "17%", "17 percent", ".3457"):
    edit("numbers_in_the_text_are_shown", SECTION, "a sum\n\n", f"a sum\n\nIt is {number}. ")
output("has_an_exploration", EXPLORE, shows(text_html=SLIDER.replace("range", "text")))
edit("has_a_self_check", END, "Check yourself", "Look back")
edit("has_a_self_check", END, "(c) this one", "(a) this one")
edit("has_a_self_check", END, "Because the weights of a row sum to one.", "No.")
edit("has_a_self_check", END, QUESTION * 3, QUESTION * 2)
edit("ends_as_agreed", END, "## Summary", "## And so on")
edit("ends_as_agreed", END, "## Exercises", "## And so on")
edit("ends_as_agreed", END, "## Further reading", "## And so on")
edit("ends_as_agreed", SOURCES, "What the sources say", "What they say")
edit("has_the_right_length", SECTION, "word " * 1300, "word " * 900)
edit("has_the_right_length", SECTION, "word " * 1300, "word " * 2600)


@pytest.mark.parametrize(("rule", "change"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_rule_catches(rule, change, data, check):
    change(data["cells"])
    assert check(data) == [rule]


def test_median_of_code_cells(data, check):
    for cell in data["cells"][3:]:
        if cell["cell_type"] == "code":
            cell["source"] += "\nx = 1" * 6
    assert check(data) == ["code_cells_are_short"]


@pytest.mark.parametrize("wrong", [{}, {"kernelspec": {}}, METADATA | {"widgets": {}}])
def test_notebook_metadata(wrong, data, check):
    assert check(data | {"metadata": wrong}) == ["metadata_is_as_agreed"]


def test_large_file(data, check):
    assert check(data, size=701_000) == ["file_is_small"]


def test_every_rule_is_broken_once():
    broken = {rule for rule, _ in BREAKS} | {rule for rule, *_ in ASSIGNMENT_BREAKS}
    broken |= {"file_is_small", "asks_for_words"}  # these have tests of their own
    assert broken == set(RULES)


ASSIGNMENT_BREAKS = [  # (rule, what stands in assignment 1, what breaks it)
    ("exercises_are_rated", "★★☆ · 15 minutes · 4 points", "★★ · 15 minutes · 4 points"),
    ("exercises_rise_in_difficulty", "## Exercise C: Rank", "## Exercise D: Rank"),
    ("opening_adds_up", "about 60 minutes", "about 50 minutes"),
    ("opening_adds_up", "5 exercises and 18 points", "5 exercises and 20 points"),
    ("checks_are_the_generated_ones", "checks.ranks(ranks)", "checks.ranks((12, 13))"),
    ("checks_are_the_generated_ones", 'grade("ranks", ranks)', 'print("ranks", ranks)'),
    ("checks_are_the_generated_ones", "Correct: the ratio", "Wrong: the ratio"),
    ("checks_are_the_generated_ones", "### BEGIN SOLUTION", "### SOLUTION"),
]


def test_an_assignment_passes_the_rules_for_assignments():
    assert broken_by(lambda text: text) == []


@pytest.mark.parametrize("rule, old, new", ASSIGNMENT_BREAKS)
def test_rule_for_assignments_catches(rule, old, new):
    def change(text):
        assert old in text
        return text.replace(old, new)

    assert rule in broken_by(change)


def test_an_assignment_asks_for_words():
    assert broken_by(lambda text: text, drop="explain_ranks") == ["exercises_are_rated", "asks_for_words"]


def test_the_exercises_of_a_chapter_count_neither_as_its_words_nor_as_its_numbers(data, check):
    cells = data["cells"]
    cells.append(md("## Solve the graded exercises\n\nIt is 0.77. " + "word " * 2000) | {"id": "01-900"})
    cells[-1]["metadata"] = {"tags": ["exercises"]}
    assert check(data) == []


def broken_by(change, drop=None):
    """The rules that assignment 1 breaks when the text of its cells and outputs is changed."""
    nb = load(ROOT / "notebooks" / "assignments" / "01_qkv_basics.ipynb")
    cells = [cell.raw for cell in nb.cells if drop is None or cell.nbgrader.get("grade_id") != drop]
    texts = [(place, key) for cell in cells for place in (cell, *cell.get("outputs", [])) for key in ("source", "text")]
    texts = [(place, key) for place, key in texts if key in place]
    joined = change("\0".join("".join(place[key]) for place, key in texts))
    for (place, key), text in zip(texts, joined.split("\0"), strict=True):
        place[key] = text
    changed = Notebook(nb.path, nb.data | {"cells": cells}, nb.setup, nb.bibliography)
    return [name for name in rules_for(ASSIGNMENT) if RULES[name][0](changed)]


def test_complaints_say_where_and_what(data, tmp_path):
    data["cells"][PRINTS]["execution_count"] = None
    nb = Notebook(tmp_path / "01_test.ipynb", data, SETUP, "")
    [line] = RULES["execution_counts_run_from_1"][0](nb)
    assert line == ("01_test.ipynb, cell 4 (01-004): execution count None, expected 2. Run `make notebooks`.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.1234 12.3456 1e-9 20,000 1048576 0.000123456", []),
        ("0.0001234567", ["0.0001234567"]),
        ("1.234567e-05 and 123456.78", ["1.234567e-05", "123456.78"]),
        ("[0.97308850595084, 1.]", ["0.97308850595084"]),
        ("arXiv:1706.03762, version 1.2.3", []),
    ],
)
def test_long_numbers(text, found):
    assert list(long_numbers(text)) == found


@pytest.mark.parametrize(
    ("heading", "found"),
    [
        ("1.2 Draw the projections again", []),
        ("Scale by $\\sqrt{d_k}$: Why it works", []),
        ("Read GloVe vectors with NumPy, QKV and Q", []),
        ("Draw The Projections", ["The", "Projections"]),
    ],
)
def test_sentence_case(heading, found):
    assert list(title_cased(heading)) == found


def test_helpers_read_the_agreed_forms():
    assert len(predictions(PREDICT + "\ntext\n\n> a quote\n\n" + PREDICT)) == 2
    assert [len(group) for group in questions(QUESTION * 2)] == [3, 3]


def test_numbers_that_a_text_states():
    text = (
        "## 1.2 It is .35\n\n**1.3** In chapter 2.1 it is 3.5 of 12 and 17% at [x](https://arxiv.org/abs/1706.03762)."
    )
    assert [written for written, *_ in measured(text)] == [".35", "3.5", "17%"]
    assert not list(measured("> **Predict.** (a) 95%?\n> <details><summary>0.5</summary>No.</details>"))


@pytest.mark.parametrize("number", ["12.3", "12.35", "12.346"])
def test_rounded_numbers_count_as_shown(number, data, check):
    data["cells"][SECTION]["source"] += f" It is {number}."
    assert check(data) == []


def test_a_range_that_is_asserted_counts_as_shown(data, check):
    data["cells"][SECTION]["source"] += " It is .908."
    data["cells"][ASSERT]["source"] = "assert .907 < z < .909"
    assert check(data) == []
    data["cells"][ASSERT]["source"] = "assert .1 < z < .97"
    assert check(data) == ["numbers_in_the_text_are_shown"]


def test_products_inside_a_sum_need_no_shape(data, check):
    data["cells"][PRINTS]["source"] = "total = (Q @ K.T).sum()\nprint(total)"
    assert check(data) == []
