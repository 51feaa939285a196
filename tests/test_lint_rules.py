"""Each rule that holds for a chapter of the old form, or for an assignment, is broken once; a clean notebook passes all."""

import base64
import copy

import pytest
from lint import ROOT, RULES, Notebook, load
from lint.numbers import measured
from lint.outputs import long_numbers
from lint.prose import title_cased
from lint.questions import predictions, questions
from notebook_cells import (
    ALT,
    BOOK,
    FOLDED,
    METADATA,
    PREDICT,
    QUESTION,
    SLIDER,
    broken,
    lay_out,
    md,
    old_chapter,
    prints,
    read,
    shows,
    stamped,
)
from stamp import KEY, stamp


@pytest.fixture
def data():
    """A clean chapter; the constants below name its cells."""
    return old_chapter()


@pytest.fixture
def check(tmp_path):
    folder = lay_out(tmp_path, two_tier=False)
    return lambda data, **given: broken(read(folder, stamped(data), **given))


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
edit("no_output_is_missing", ASSERT, "assert alt(z) > 1", "assert alt(z) > 1\nz")
edit("code_lines_fit_the_page", ASSERT, "assert alt(z) > 1", "assert alt(z) > 1  # " + "because " * 10)
WIDE = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (721).to_bytes(4, "big") + bytes(16)).decode()
output("figures_read_on_a_phone", FIGURE, shows(image_png=WIDE))
edit("no_output_is_missing", ASSERT, "assert alt(z) > 1", "assert alt(z) > 1\nif z:\n    print(z)")
edit("no_output_is_missing", ASSERT, "assert alt(z) > 1", "assert alt(z) > 1\nfig, ax = plt.subplots()")
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
output("frames_have_their_own_words", EXPLORE, shows(text_html=SLIDER.replace(*ALTS)))
output("at_most_6_significant_digits", EXPLORE, shows(text_html=SLIDER.replace('"d = 2"', '"d = 2.1234567"')))
edit("html_images_have_alt_text", PLAIN, "It goes", "![](02_scaling.ipynb) It goes")
edit("figures_are_asserted", ASSERT, "assert alt(z) > 1", "z = 1")
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
edit("matrix_products_have_shapes", PRINTS, "  # (n, n)", "")
for always in ("True", "x == x", "(x > 1, 'text')", "len(x) >= 0", "x > 1 or True", "'text'", "1 < 2", "len('abc') == 3"):
    edit("assertions_can_fail", ASSERT, "assert alt(z) > 1", f"assert alt(z) > 1\nassert {always}")
edit("assertions_can_fail", ASSERT, "assert alt(z) > 1", "assert alt(z) > 1\nnp.testing.assert_allclose(x, x)")
for size in ("len(x) == len(y)", "x.shape == (3, 3) and len(x) == 3", "not len(x) != 3"):  # no figure stands on its size
    edit("figures_are_asserted", ASSERT, "assert alt(z) > 1", f"assert {size}")
edit("figures_are_asserted", ASSERT, "alt(z)", "other")


@breaks("results_are_asserted")
def assertions_on_lengths(cells):
    for index in (6, 11):
        cells[index]["source"] = "assert len(x) == len(y)"
    for index, result in ((FIGURE, prints("1")), (EXPLORE, prints("1"))):  # without figures, which ask for more
        cells[index].update(outputs=[result], source="print(1)", metadata={})
    cells[ASSERT]["source"] = "assert x.shape == (3,)"


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
edit("opening_says_the_minutes", TITLE, "about 20 minutes", "some time")
edit("predictions_have_folded_answers", SECTION, "</summary>", "")
edit("predictions_are_questions", SECTION, PREDICT, "> **Predict.** What? (a) yes, (b) no, (c) both.\n")
edit("predictions_are_questions", SECTION, "(b) stays as it is", "(b) grows")
edit("predictions_are_questions", SECTION, "(a) grows, (b) stays", "(b) grows, (a) stays")
edit("predictions_are_questions", SECTION, "(a) grows", "(b) grows")
edit("predictions_are_questions", SECTION, "(b) stays as it is, (c) vanishes", "and grows")
SENTENCE = "The weights of a row always sum to one. "
edit("sentences_are_not_repeated", SECTION, "Words come first.", SENTENCE * 2)
edit("sentences_are_not_repeated", PLAIN, "It goes on", SENTENCE + "So " + SENTENCE.lower() + SENTENCE + "It goes on")
edit("prose_is_not_filler", SECTION, "Words come first.", "".join(f"Here is word {n} of us. " for n in range(60)))
for number in ("12.4", "0.25", "17%", "17 percent", ".3457"):
    edit("numbers_in_the_text_are_shown", SECTION, "a sum\n\n", f"a sum\n\nIt is {number}. ")
SELF_CHECK = "self_check_gives_feedback"
edit(SELF_CHECK, END, "Check yourself", "Look back")
edit(SELF_CHECK, END, "(c) it is three", "(a) it is three")
edit(SELF_CHECK, END, "(c) it is three", "(c) it is one")
edit(SELF_CHECK, END, "Row 3 sums to one: read on.", "No.")
edit(SELF_CHECK, END, "Row 3 sums to one: read on.", "Row 3 sums to two: read on.")
edit(SELF_CHECK, END, "What do the weights of row 3 sum to?", "What?")
edit(SELF_CHECK, END, QUESTION.replace("a row", "row 4").replace("Row 3", "Row 4").replace("1.", "4."), "")
edit("ends_as_agreed", END, "## Sum up", "## And so on")
edit("ends_as_agreed", END, "## Exercises", "## And so on")
edit("ends_as_agreed", END, "## Read further", "## And so on")
edit("the_ledger_is_called", SOURCES, "What the sources say", "What they say")
edit("the_ledger_is_called", LEDGER, "ledger(1)", "table(rows)")
for clock in (
    "time.perf_counter()", "perf_counter()", "now()", "time.time()", "timeit.timeit(f)", "datetime.now()",
    "time.perf_counter", "list(map(call, [time.time]))", "time.strftime('%H')", "time.localtime()", "np.datetime64('now')",
):  # fmt: skip
    imports = "import time, timeit\nfrom time import perf_counter, time as now\nfrom datetime import datetime\n"
    edit("no_result_hangs_on_the_clock", PRINTS, "scores =", f"{imports}start = {clock}\nscores =")


@pytest.mark.parametrize(("rule", "change"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_rule_catches(rule, change, data, check):
    change(data["cells"])
    assert check(data) == [rule]


@pytest.mark.parametrize("wrong", [{}, {"kernelspec": {}}, METADATA | {"widgets": {}}])
def test_notebook_metadata(wrong, data, check):
    assert check(data | {"metadata": dict(wrong)}) == ["metadata_is_as_agreed"]


def test_large_file(data, check):
    assert check(data, size=701_000) == ["file_is_small"]


def test_every_rule_is_broken_once():
    import test_lint_fresh
    import test_lint_numbers
    import test_lint_two_tiers

    broken = {rule for rule, _ in BREAKS} | {rule for rule, *_ in ASSIGNMENT_BREAKS}
    broken |= {"file_is_small", "asks_for_words"}  # these have tests of their own
    broken |= test_lint_fresh.BROKEN | test_lint_numbers.BROKEN | test_lint_two_tiers.BROKEN
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
    cells.append(md("## Solve the graded exercises\n\nIt is 0.77.") | {"id": "01-900"})
    cells[-1]["metadata"] = {"tags": ["exercises"]}
    assert check(data) == []


def broken_by(change, drop=None):
    """The rules that assignment 1 breaks when the text of its cells and outputs is changed."""
    nb = load(ROOT / "notebooks" / "assignments" / "01_qkv_basics.ipynb")
    setup, address = nb.book.setup, nb.book.address
    cells = [copy.deepcopy(cell.raw) for cell in nb.cells if drop is None or cell.nbgrader.get("grade_id") != drop]
    texts = [(place, key) for cell in cells for place in (cell, *cell.get("outputs", [])) for key in ("source", "text")]
    texts = [(place, key) for place, key in texts if key in place]
    joined = change("\0".join("".join(place[key]) for place, key in texts))
    for (place, key), text in zip(texts, joined.split("\0"), strict=True):
        place[key] = text
    metadata = nb.data["metadata"] | {KEY: stamp(cells, setup, address)}
    return broken(Notebook(nb.path, nb.data | {"cells": cells, "metadata": metadata}, nb.book))


def test_complaints_say_where_and_what(data, tmp_path):
    data["cells"][PRINTS]["execution_count"] = None
    nb = Notebook(tmp_path / "01_test.ipynb", data, BOOK)
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
    assert len(predictions(PREDICT + FOLDED + "\ntext\n\n> a quote\n\n" + PREDICT)) == 2
    assert [len(given) for _, given in questions(QUESTION * 2)] == [3, 3]


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
    data["cells"][ASSERT]["source"] = "assert .907 < alt(z) < .909"
    assert check(data) == []
    data["cells"][ASSERT]["source"] = "assert .1 < alt(z) < .97"
    assert check(data) == ["numbers_in_the_text_are_shown"]


def test_products_inside_a_sum_need_no_shape(data, check):
    data["cells"][PRINTS]["source"] = "total = (Q @ K.T).sum()\nprint(total)"
    assert check(data) == []
