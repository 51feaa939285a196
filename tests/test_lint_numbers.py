"""Numbers in the sentences of a notebook of two tiers: each changed last digit is caught, and no name is read as one."""

import re
from decimal import Decimal

import pytest
from lint import RULES, load, stored_notebooks
from lint.notebook import Cell
from lint.numbers import Shown, bindings, fault, stated, telling, with_what_is_near
from notebook_cells import (
    BOOK,
    broken,
    captioned,
    code,
    evidence,
    folded,
    lay_out,
    md,
    notebook,
    prints,
    read,
    shows,
    stamped,
    told_chapter,
)

BROKEN = {"numbers_in_the_text_are_pinned", "computed_sentences_compute_their_numbers", "bindings_bind_results_to_sentences", "numbers_in_the_text_are_shown"}
PINNED = "numbers_in_the_text_are_pinned"
ANSWERS, BINDS, SAYS, FOLD = 6, 7, 8, 4


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path, two_tier=True)


# --- the mutation test: every number, every other last digit -------------------------------------

PROSE = """\
## Measure many things

Over 2,000 draws the share is 27 %<!--=share--> and the factor 155<!--=factor-->, or 154.6<!--=factor-->. The loss falls
to .34 after 250 steps, to $0.125$ in the end; $r = 0.66$ in 71 percent of 1250 cases, 12.5% of the rest, 1e-5 at most.
The rank is the 48th of 64; with $n = 77$ it takes 3.5x the time and 31M numbers. Asserted is .908.
"""
MEASURES = [
    md(PROSE),
    code("draws, steps, cases, n = 2000, 250, 1250, 77\nbind(share=share, factor=factor)",
         prints("share = 0.2712\nfactor = 154.61\n"), tags=["remove-cell"]),
    code("print(x)\nassert .9075 < low < .9085", prints("[0.3412 0.125 0.6571 0.7149] and 12.5% at 1e-5, 48 of 64, 3.5, 31\n")),
]  # fmt: skip


def measured_chapter():
    data = told_chapter()
    data["cells"][9:9] = MEASURES
    return notebook(data["cells"])


def places(data):
    """(cell, where the last digit of a number that is read stands) for each number in the Markdown of a notebook."""
    for cell in (cell for cell in data["cells"] if cell["cell_type"] == "markdown"):
        for match in re.finditer(r"\d(?=[^\d.,]|[.,](?!\d)|$)", cell["source"]):
            yield cell, match.start()


def changed(cell, place, digit):
    return cell["source"][:place] + digit + cell["source"][place + 1 :]


def test_every_changed_last_digit_is_caught(folder):
    data, tried = measured_chapter(), 0
    assert RULES[PINNED][0](read(folder, data)) == [] == broken(read(folder, data))
    for cell, place in list(places(data)):
        original, opening = cell["source"], cell is data["cells"][0]
        for digit in "0123456789".replace(original[place], ""):
            cell["source"] = changed({"source": original}, place, digit)
            if reads_differently(original, cell["source"], opening):
                tried += 1
                assert PINNED in [name for name in broken(read(folder, data))], f"{original[place - 9:place]}{digit}"
        cell["source"] = original
    assert tried == 9 * 21  # 19 places in PROSE, 2 in the chapter around it


def reads_differently(before, after, opening):
    return [number.value for number in stated(before, opening)] != [number.value for number in stated(after, opening)]


def test_every_changed_last_digit_of_the_book_is_caught():
    """In each stored notebook of two tiers, number by number against what its cells show."""
    for nb in (nb for nb in [load(path, book=BOOK) for path in stored_notebooks()] if nb.is_two_tier):
        known = bindings(nb)
        for position, cells, near in with_what_is_near(nb):
            shown = Shown(near)
            for number in (n for cell in cells if cell in nb.own_markdown for n in stated(cell.source, position == 0)):
                assert fault(number, known, shown) is None, f"{nb.name}: {number}"
                assert all(fault(other, known, shown) for other in number.neighbors()), f"{nb.name}: {number}"


def test_falsified_captions_and_alt_texts_are_caught(folder):
    """They are outputs: strict nbval compares them, and the stamp of the run sees each changed digit before that."""
    data = told_chapter()
    html = data["cells"][FOLD]["outputs"][0]["data"]
    for digit in "012346789":
        html["text/html"] = captioned("A line that ends at 4.25.", alt=f"A line that ends at 4.2{digit}.")["data"]["text/html"]
        assert broken(read(folder, data)) == ["is_fresh"]
        html["text/html"] = captioned(f"A line that ends at 4.2{digit}.", alt="A line that ends at 4.25.")["data"]["text/html"]
        assert broken(read(folder, data)) == ["is_fresh"]


# --- one by one --------------------------------------------------------------------------------


def complaints(folder, text, *cells):
    data = told_chapter()
    data["cells"][9:9] = [md("## Measure\n\n" + text), *(dict(cell) for cell in cells)]
    return RULES[PINNED][0](read(folder, notebook(data["cells"])))


SEEN = code("print(x)", prints("0.2712 0.2833 155 48\n"))


def test_a_number_that_is_not_shown_or_not_alone_is_told_what_to_do(folder):
    [complaint] = complaints(folder, "It is 0.29 there.", SEEN)
    assert "0.29 is in the text, but in no code or output" in complaint and "say()" in complaint
    assert "0.29<!--=name-->" in complaint
    [complaint] = complaints(folder, "It is 0.27 there.", SEEN)
    assert "0.27 is shown near, but so is 0.28, so a wrong digit would pass" in complaint
    assert complaints(folder, "It is 0.271 there.", SEEN) == []
    assert complaints(folder, "It is 27.1 % there.", SEEN) == []


def test_a_bound_number_is_held_to_its_name(folder):
    bound = code("bind(part=part)", prints("part = 0.2712\n"), tags=["remove-cell"])
    assert complaints(folder, "It is 27 %<!--=part--> there, .271<!--=part-->, 0.27<!-- =part -->" .replace("<!-- =", "<!--="), SEEN, bound) == []
    [complaint] = complaints(folder, "It is 28 %<!--=part--> there.", SEEN, bound)
    assert "28 % is not part" in complaint and "part is 0.2712" in complaint
    [complaint] = complaints(folder, "It is 27 %<!--=half--> there.", SEEN, bound)
    assert "no cell binds" in complaint and "Call bind(half=...)" in complaint and "part, share" in complaint
    [complaint] = complaints(folder, "It is 27<!--=part--> there.", SEEN, bound)  # no fraction is 27
    assert "27 is not part" in complaint


@pytest.mark.parametrize("value, written", [("0.2750", "28 %"), ("0.2650", "26 %"), ("-0.96", ".96"), ("1.5e+06", "1,500,000")])
def test_values_are_rounded_as_python_rounds_them(value, written, folder):
    bound = code("bind(part=part)", prints(f"part = {value}\n"), tags=["remove-cell"])
    assert complaints(folder, f"It is {written}<!--=part--> there.", bound) == []


def test_nearly_nothing_does_not_show_nothing():
    tenth, nothing = stated("It is .1, not .0 at all.")
    shown = Shown([Cell(1, code("x = f(0, 1)\nprint(x)", prints("0.1012 0.0003\n")))])
    assert shown.pins(tenth) and not shown.has(nothing)
    assert Shown([Cell(1, code("print(x)", prints("0.0\n")))]).pins(nothing)


def test_what_is_shown_two_sections_before_is_not_near(folder):
    data = told_chapter()
    data["cells"][9:9] = [md("## Measure"), dict(SEEN), md("## Wait\n\nA word."), md("## State\n\nIt is 0.271 there.")]
    assert PINNED in broken(read(folder, notebook(data["cells"])))


def test_a_wide_range_pins_nothing(folder):
    assert complaints(folder, "It is .73 there.", code("assert .725 < x < .735")) == []
    assert len(complaints(folder, "It is .73 there.", code("assert .72 < x < .74"))) == 1
    assert len(complaints(folder, "It is .72 there.", code("assert .72 < x < .74"))) == 1


@pytest.mark.parametrize("text", [
    "In chapter 12, section 3.2.1, exercises 3.1 and 3.2, equation (14), figure 22, table 11 and Python 3.11.",
    "[Ainslie et al., 2023](https://arxiv.org/abs/2305.13245), [Wu et al. (2025)](https://arxiv.org/abs/2502.01951), arXiv:2502.01951, doi:10.1000/182 and Clark et al., 2019.",
    "As Vaswani (2017) said; in 2017, and since 1998.",
    "float32, GPT-2, top-10, GPT-3.5, 8-bit, 16-bit, SmolLM2-135M, MiniLM-L6, d_64, W_12, int8, A100, x86 and H2O.",
    "`0.77` and `range(100)`\n\n```python\nx = 0.77\n```\n\nand more",
    "$\\frac{1}{12}$, $e^{-0.5}$, $10^{-12}$ and $$x = \\sum_{i=1}^{99} 0.5^i$$, 10⁹ and −10¹².",
    "> **Predict.** Is it (a) 95 %, (b) 50 %, (c) 0.5?\n> More: 77.",
    "<details><summary>(a) 0.95</summary>No.</details>",
    "**3. A 24-layer model has 12 heads. What of it?**\n\n<details><summary>(a) 95</summary>No.</details>",
    "Over twenty seeds, with a 95% interval; the 90 % confidence interval and its 99% bands.",
    "★★☆ · 15 minutes · 14 points",
    "One, two, 3 of 9, twelve, a dozen.",
    "10. The tenth item.\n11. The next one.",
    "**3.14** An exercise.",
    '<a href="x12.html" title="0.5">here</a> ![A line](../12/0.77.png)',
])  # fmt: skip
def test_what_is_no_result_is_not_read(text):
    assert [number.written for number in stated(text)] == []


@pytest.mark.parametrize(("text", "found"), [
    ("It is .34, 0.34 and −.96; 27 %, 5%, 31 percent; 1,234.5 and 20,000.", [".34", "0.34", ".96", "27 %", "5%", "31 percent", "1,234.5", "20,000"]),
    ("The 48th of 64, 12x, 3.5×, 2.5e-3, 61M numbers, from 10 to 20, 5–12.", ["48", "64", "12", "3.5", "2.5e-3", "61", "10", "20", "12"]),
    ("$$c_1 = 2,\\; c_2 = 2.60,\\; c_3 = 3.08 .$$ and 16/15 of it", ["2.60", "3.08", "16", "15"]),
    ("$0.125$, $n = 77$, $r \\approx -0.3$, $27\\,\\%$, $d_k = 1{,}024$", ["0.125", "77", "0.3", "27%", "1,024"]),
    ("> **Predict.** Of 66 pairs, how many move? (a) 12, (b) 13.", ["66"]),
    ("<details><summary>(a) 12</summary>It is 34.</details>", ["34"]),
    ("**12** of 14 in the 12 layers (of 24).", ["12", "14", "12", "24"]),
    ("It was 2000 in all, in 2000 draws, of 1999 draws.", ["2000", "2000", "1999"]),
    ("About 30 minutes, 27\u00a0% and 28\u202f%.", ["30", "27\u00a0%", "28\u202f%"]),
    ("| a | b |\n|--:|--:|\n| 0.5 | 12 |", ["0.5", "12"]),
    ("![A line that ends at 4.25](x.png)", ["4.25"]),
])  # fmt: skip
def test_what_is_read(text, found):
    assert [number.written for number in stated(text)] == found


def test_the_minutes_of_the_opening_are_no_result():
    assert list(stated("It takes about 30 minutes.", opening=True)) == []


def test_neighbors_are_the_nine_other_last_digits():
    [number] = stated("It is 27 %.")
    assert [other.value for other in number.neighbors()] == [Decimal(n) / 100 for n in (20, 21, 22, 23, 24, 25, 26, 28, 29)]
    [number] = stated("It is 1,230.")
    assert len({other.value for other in number.neighbors()} - {number.value}) == 9


def test_the_end_of_a_range_is_its_last_number():
    shown = Shown([Cell(1, code("t = np.arange(1, 65)\nseeds = range(20)"))])
    assert {Decimal(64), Decimal(20), Decimal(1)} == shown.values


def test_a_cell_with_several_headings_is_near_to_the_code_below_it(folder):
    data = told_chapter()
    data["cells"][-1]["source"] = data["cells"][-1]["source"].replace("It rises.", "It rises to 77.")
    data["cells"].append(code("top = 77"))
    assert broken(read(folder, notebook(data["cells"]))) == []


def test_numbers_in_code_count_by_value_and_in_comments_not_at_all():
    cell = Cell(1, code("n = 2_000  # 0.77\nlabel = '0.88'", prints("1,234 and 5.5e-3\n")))
    shown = Shown([cell])
    assert {Decimal(2000), Decimal(1234), Decimal("0.0055")} == shown.values


def test_an_alt_text_shows_nothing(folder):
    spoken = code("figure(fig, f'{x}')\nassert x > 1", captioned("It rises from here.", alt="Ticks from 0.26 to 0.77 stand there."))
    assert len(complaints(folder, "It is 0.77 there.", spoken)) == 1
    assert complaints(folder, "It is 0.27 there.", spoken, code("print(x)", prints("0.2712\n"))) == []


# --- say(), captions and bindings ----------------------------------------------------------------


@pytest.mark.parametrize("source", ["say(f'Of 13.7 it is {sum(x):.2f}.')", "say('Of 13.7 it is 12.35.')", "say(text=f'Of {13.7} it is 12.35.')"])
def test_a_number_typed_into_a_computed_sentence(source, folder):
    data = told_chapter()
    data["cells"][SAYS] |= {"source": source, "outputs": [shows(text_markdown="Of 13.7 it is 12.35.")]}
    assert broken(read(folder, stamped(data))) == ["computed_sentences_compute_their_numbers"]


def test_a_number_typed_into_a_caption(folder):
    data = told_chapter()
    data["cells"][FOLD] = folded("the line", "plt.plot(x)\nfigure(fig, f'It ends at {x[-1]:.2f} of 13.7.')", captioned("It ends at 4.25 of 13.7."))
    assert broken(read(folder, notebook(data["cells"]))) == ["computed_sentences_compute_their_numbers"]


def test_sentences_do_not_vouch_for_each_other(folder):
    data = told_chapter()
    said = code("say('It is 77.')", shows(text_markdown="It is 77."))
    data["cells"][9:9] = [said, dict(said)]
    assert broken(read(folder, notebook(data["cells"]))) == ["computed_sentences_compute_their_numbers"]


@pytest.mark.parametrize("source", [
    "text = f'Of {n} it is '\ntext += '13.7.'\nsay(text)",
    "text = 'It is 13.7 '\nsay(text + f'of {n}.')",
    "def tell(n):\n    say(f'Of {n} it is 13.7.')\ntell(n)",
])  # fmt: skip
def test_a_typed_number_is_found_behind_a_name(source, folder):
    data = told_chapter()
    data["cells"].insert(SAYS, code(source, shows(text_markdown="Of 12.35 it is 13.7.")))
    assert broken(read(folder, notebook(data["cells"]))) == ["computed_sentences_compute_their_numbers"]


def test_a_setting_may_be_typed_where_the_code_has_it(folder):
    data = told_chapter()
    data["cells"][SAYS]["source"] = "steps = 250\nsay(f'After 250 steps it is {sum(x):.2f}.')"
    assert broken(read(folder, stamped(data))) == []


def test_bindings_and_marks_belong_together(folder):
    data = told_chapter()
    data["cells"][BINDS] |= {"source": "bind(share=share, idle=2)", "outputs": [prints("share = 0.2712\nidle = 2\n")]}
    assert broken(read(folder, stamped(data))) == ["bindings_bind_results_to_sentences"]
    data = told_chapter()
    data["cells"][ANSWERS]["source"] += " A share<!--=share--> of it."
    assert broken(read(folder, data)) == ["bindings_bind_results_to_sentences"]
    data = told_chapter()
    data["cells"][BINDS]["source"] = "bind(share=0.2712)"
    assert broken(read(folder, stamped(data))) == ["bindings_bind_results_to_sentences"]


def test_the_evidence_is_held_to_it_too(folder):
    data = evidence()
    data["cells"][-1]["source"] += " In 31 of 40 draws."
    assert broken(read(folder, data, "evidence/01_test.ipynb")) == [PINNED]


def test_the_exercises_that_are_generated_are_not_read(folder):
    data = told_chapter()
    data["cells"].append(md("## Solve the graded exercises\n\nIt is 0.77.") | {"metadata": {"tags": ["exercises"]}})
    assert broken(read(folder, notebook(data["cells"]))) == []
    assert "0.77" in telling("It is 0.77.")
