"""Each rule for the form of two tiers is broken once, in a chapter that tells or in its evidence."""

import copy
from dataclasses import replace

import pytest
from lint import CHAPTER, EVIDENCE, GUIDE, RULES, load, rules_for, stored_notebooks
from lint.questions import answers
from notebook_cells import (
    ALT,
    BOOK,
    CLAIMS,
    PREDICT,
    SLIDER,
    broken,
    captioned,
    code,
    evidence,
    folded,
    lay_out,
    md,
    notebook,
    old_chapter,
    prints,
    read,
    shows,
    stamped,
    told_chapter,
)

TITLE, ASKS, FOLD, ASSERTS, ANSWERS, BINDS, SAYS, EXPLORES, LEDGER, END = 0, 2, 4, 5, 6, 7, 8, 9, 12, 13
SET_UP, CLAIM, PRINTS, REPORTS, CONCLUDES = 2, 4, 5, 6, 7  # in the evidence


@pytest.fixture
def folder(tmp_path):
    return lay_out(tmp_path, two_tier=True)


def test_a_clean_chapter_and_its_clean_evidence_pass(folder):
    assert broken(read(folder, told_chapter())) == []
    assert broken(read(folder, evidence(), "evidence/01_test.ipynb")) == []


def test_the_form_follows_from_the_file_of_the_evidence(folder):
    assert read(folder, told_chapter()).is_two_tier and read(folder, evidence(), "evidence/01_test.ipynb").is_two_tier
    (folder / "evidence" / "01_test.ipynb").unlink()
    assert not read(folder, told_chapter()).is_two_tier
    assert not read(folder, told_chapter(), "assignments/01_test.ipynb").is_two_tier


def test_rules_say_for_which_kind_and_form_they_hold():
    assert "reports_stand_in_the_evidence" in rules_for(CHAPTER, True)
    assert "reports_stand_in_the_evidence" not in rules_for(CHAPTER, False) + rules_for(EVIDENCE, True)
    assert "pictures_have_alt_text" in rules_for(CHAPTER, False) and "pictures_have_alt_text" not in rules_for(CHAPTER, True)
    assert {"is_fresh", "figures_are_asserted", "nothing_volatile_is_printed"} <= set(rules_for(EVIDENCE, True))


BREAKS = []  # (rule, whether in the evidence, what changes the cells)


def breaks(rule, in_evidence=False):
    return lambda function: BREAKS.append((rule, in_evidence, function)) or function


def edit(rule, index, old, new, in_evidence=False):
    def change(cells):
        assert old in cells[index]["source"]
        cells[index]["source"] = cells[index]["source"].replace(old, new)

    BREAKS.append((rule, in_evidence, change))


def put(rule, index, in_evidence=False, **parts):
    BREAKS.append((rule, in_evidence, lambda cells: cells[index].update(copy.deepcopy(parts))))


# --- pictures

put("pictures_have_captions", FOLD, outputs=[captioned(), shows(image_png="AAAA")])
put("pictures_have_captions", FOLD, outputs=[captioned(" ", alt="A line that ends at 4.25.")])
put("pictures_have_captions", EXPLORES, outputs=[shows(text_html=SLIDER.replace("figcaption", "p"))])
put("pictures_have_captions", FOLD, metadata={"mystnb": {"image": {"alt": ALT}}})
put("html_images_have_alt_text", FOLD, outputs=[captioned(alt="short")])
put("html_images_have_alt_text", EXPLORES, outputs=[shows(text_html=SLIDER.replace('alt="Bars of equal height, one for each token"', 'alt=""'))])
edit("captions_are_computed", FOLD, "f'It ends at {x[-1]:.2f}.'", "'It ends at 4.25.'")
edit("captions_are_computed", FOLD, "f'It ends at {x[-1]:.2f}.'", "'It ends ' + f'at 4.25.'")
edit("captions_are_computed", FOLD, "f'It ends at {x[-1]:.2f}.'", "f'It ends at {4.25}.'")
edit("captions_are_computed", FOLD, "f'It ends at {x[-1]:.2f}.'", "f'It ends at {x[-1]:.2f}.', alt='A line up to 4.25.'")
edit("captions_are_computed", FOLD, "figure(fig, f'It ends at {x[-1]:.2f}.')", "text = 'It ends at 4.25.'\nfigure(fig, caption=text)")
edit("captions_are_computed", EXPLORES, "caption=tell", "alt='Bars up to 4.25.'")
edit("figures_are_asserted", ASSERTS, "x[3] > 3", "len(x) == len(scores)")
edit("figures_are_asserted", ASSERTS, "x[3] > 3", "unrelated > 3")

edit("captions_are_computed", FOLD, "figure(fig, f'It ends at {x[-1]:.2f}.')", "def show(fig):\n    figure(fig, 'It ends at 4.25.')\nshow(fig)")
edit("pictures_have_captions", FOLD, "figure(fig, f'It ends at {x[-1]:.2f}.')", "display(HTML(page(fig, x)))")

# --- code

put("folded_code_is_named", FOLD, metadata={"tags": ["hide-input"]})
put("folded_code_is_named", FOLD, metadata={"tags": ["hide-input"], "mystnb": {"code_prompt_show": "Show code"}})
edit("folded_code_is_named", FOLD, "# Code: the line\n", "")
edit("folded_code_is_named", FOLD, "# Code: the line", "# Code: the bars")
put("only_bindings_are_removed", ASSERTS, metadata={"tags": ["remove-cell"]})
put("only_bindings_are_removed", BINDS, metadata={})

# --- questions

edit("predictions_are_answered_after_the_run", ANSWERS, "It is (a). ", "")
edit("predictions_are_answered_after_the_run", ANSWERS, "It is (a). ", "It is (d). ")
edit("predictions_are_answered_after_the_run", ASKS, PREDICT, PREDICT + "\nIt is (a). It has to be.\n")

# --- the ledger


@breaks("the_ledger_stands_at_the_end")
def measures_after_the_ledger(cells):
    cells[END]["source"] = "## Measure once more\n\nOne more thing.\n\n" + cells[END]["source"]


put("reports_stand_in_the_evidence", ASSERTS, source="from attn_utils import report as tell\ntell('it-rises', x[3])", outputs=[prints("it-rises\n")])
put("reports_stand_in_the_evidence", ASSERTS, source="assert x[3] > 3\nreport('it-rises', x[3])", outputs=[prints("it-rises\n")])
ROW = "[It rises](evidence/01_test.ipynb#claim-it-rises)"


def ledger(old, new):
    table = told_chapter()["cells"][LEDGER]["outputs"][0]["data"]["text/markdown"]
    assert old in table
    return [shows(text_markdown=table.replace(old, new))]


put("ledger_rows_link_to_the_evidence", LEDGER, outputs=[shows(text_markdown="**It rises**<br>source: 12")])
put("ledger_rows_link_to_the_evidence", LEDGER, outputs=ledger(ROW, "It rises"))
put("ledger_rows_link_to_the_evidence", LEDGER, outputs=ledger(ROW, ROW.replace("it-rises", "it-falls")))
put("ledger_rows_link_to_the_evidence", LEDGER, outputs=ledger("12.35", "12.36"))
put("ledger_rows_link_to_the_evidence", LEDGER, outputs=ledger("*reproduced*", "*differs*"))
put("ledger_rows_link_to_the_evidence", LEDGER, outputs=ledger("| 12.35 |", "| 112.35 |"))
put("ledger_rows_link_to_the_evidence", LEDGER, source="ledger(2)")
put("ledger_rows_link_to_the_evidence", LEDGER, outputs=ledger("evidence/01_test.ipynb", "02_scaling.ipynb"))
put("relative_links_resolve", LEDGER, outputs=ledger("| It falls later", "| [It falls](03_none.ipynb#claim-x)"))
PRESENTED = "[article of ABC](https://example.org/post) on"
edit("sources_are_linked_where_first_named", TITLE, PRESENTED, "article of\nABC on")
edit("sources_are_linked_where_first_named", TITLE, PRESENTED, "article that everybody knows, on")
put("frames_have_their_own_words", EXPLORES, outputs=[shows(text_html=SLIDER.replace("One bar at d = 2, the others are gone", "Bars of equal height at d = 1"))])

# --- the evidence

for mark in ("**Claim.**", "**It would be refuted by**"):
    edit("sections_claim_and_conclude", CLAIM, mark, "", in_evidence=True)
edit("sections_claim_and_conclude", CLAIM, "The sum of the scores rises with every row.", "It holds.", in_evidence=True)
edit("sections_claim_and_conclude", CONCLUDES, "**Concluded.**", "", in_evidence=True)
edit("sections_claim_and_conclude", SET_UP, "Set up the draws", "Draw some sums", in_evidence=True)
edit("numbers_in_the_text_are_pinned", CONCLUDES, "12.35", "12.36", in_evidence=True)
put("nothing_volatile_is_printed", PRINTS, in_evidence=True, outputs=[prints("12.35 after 3 seconds\n")])
put("pictures_have_captions", PRINTS, in_evidence=True, source="assert sums.sum()\nplt.plot(sums)", outputs=[shows(image_png="AAAA")])


@pytest.mark.parametrize(("rule", "in_evidence", "change"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_rule_catches(rule, in_evidence, change, folder):
    data = evidence() if in_evidence else told_chapter()
    change(data["cells"])
    place = "evidence/01_test.ipynb" if in_evidence else "01_test.ipynb"
    assert rule in broken(read(folder, stamped(data), place))


BROKEN = {rule for rule, *_ in BREAKS} | {"is_listed", "predictions_can_be_lost"}  # these have tests of their own


@pytest.mark.parametrize("place", ["01_test.ipynb", "evidence/01_test.ipynb"])
@pytest.mark.parametrize("toc", [
    {},
    {"parts": [{"chapters": [{"file": "book/notation"}]}]},
    {"parts": [{"chapters": [{"file": "notebooks/02_test", "sections": [{"file": "notebooks/evidence/01_test"}]}]}]},
])  # fmt: skip
def test_a_notebook_that_the_table_of_contents_lacks(place, toc, folder):
    nb = read(folder, evidence() if "evidence" in place else told_chapter(), place)
    nb.book = replace(BOOK, toc=toc)
    assert broken(nb) == ["is_listed"]


def test_a_chapter_that_the_first_page_lacks(folder):
    nb = read(folder, told_chapter(), book=replace(BOOK, index="[Two](../notebooks/02_test.ipynb)"))
    assert broken(nb) == ["is_listed"]


def test_where_one_letter_is_always_right(folder):
    data = told_chapter()
    asked = [PREDICT.replace("the numbers. Their", f"the {n} numbers. The {n}") for n in ("first", "second", "third", "fourth")]
    for n, quote in enumerate(asked):
        cells = [md(f"## Step {'abcd'[n]}\n\n" + quote), code("assert x[0] > 1"), md("It is (b).")]
        data["cells"][ANSWERS + 5 : ANSWERS + 5] = cells
    assert broken(read(folder, notebook(data["cells"]))) == []  # (a) once, (b) four times
    for cell in data["cells"]:
        cell["source"] = cell["source"].replace("It is (a)", "It is (b)")
    assert broken(read(folder, notebook(data["cells"]))) == ["predictions_can_be_lost"]


@pytest.mark.parametrize("opens", ["It is (a).", "(a): it grows.", "**(a)** it is.", "Right: (a), it grows."])
def test_answers_may_open_in_several_ways(opens, folder):
    data = told_chapter()
    data["cells"][ANSWERS]["source"] = data["cells"][ANSWERS]["source"].replace("It is (a).", opens)
    assert broken(read(folder, stamped(data))) == []


def test_a_cell_may_answer_and_begin_the_next_section(folder):
    data = told_chapter()
    asked = "\n\n## 1.2 Go on\n\n" + PREDICT.replace("the numbers. Their", "the other numbers. The second")
    data["cells"][ANSWERS]["source"] += asked
    data["cells"][EXPLORES + 1 : EXPLORES + 2] = [code("assert tell(z) > 1"), md("It is (c).\n\n## 1.3 Stop\n\nEnough.")]
    nb = read(folder, notebook(data["cells"]))
    assert broken(nb) == []
    assert [letter for *_, letter in answers(nb)] == ["a", "c"]


def test_evidence_may_conclude_in_the_cell_that_begins_the_next_section(folder):
    data = evidence()
    data["cells"][CONCLUDES]["source"] += "\n\n## Set up more\n\nNothing is claimed."
    assert broken(read(folder, data, "evidence/01_test.ipynb")) == []
    data["cells"][CONCLUDES]["source"] = data["cells"][CONCLUDES]["source"].replace("**Concluded.**", "")
    assert broken(read(folder, data, "evidence/01_test.ipynb")) == ["sections_claim_and_conclude"]


def test_an_answer_may_be_a_computed_sentence(folder):
    data = told_chapter()
    data["cells"][ANSWERS]["source"] = data["cells"][ANSWERS]["source"].replace("It is (a). ", "")
    data["cells"][SAYS] |= {"outputs": [shows(text_markdown="It is (a): in all it is 12.35.")]}
    assert broken(read(folder, stamped(data))) == []


def test_frames_may_share_an_alt_text_where_their_captions_differ(folder):
    data = told_chapter()
    same = SLIDER.replace("One bar at d = 2, the others are gone", "Bars of equal height at d = 1")
    told = same.replace('"label":"d = 1"', '"label":"d = 1","caption":"Even."').replace('"label":"d = 2"', '"label":"d = 2","caption":"One."')
    data["cells"][EXPLORES]["outputs"] = [shows(text_html=told)]
    assert broken(read(folder, stamped(data))) == []


def test_a_template_of_explore_is_filled_for_each_value(folder):
    data = told_chapter()
    data["cells"][EXPLORES]["source"] = "explore(draw, 'At d = {d:.1f} they are even.', d=rows)"
    data["cells"][EXPLORES + 1]["source"] = "assert rows[1] > rows[0]"
    assert broken(read(folder, stamped(data))) == []
    data["cells"][EXPLORES]["source"] = "explore(draw, 'Over 2,000 draws at d = {d:.1f} they are even.', d=rows)"
    assert "captions_are_computed" in broken(read(folder, stamped(data)))


@pytest.mark.parametrize("rule", ["reports_stand_in_the_evidence", "pictures_have_captions"])
def test_the_old_form_is_not_held_to_the_new(rule, tmp_path):
    data = old_chapter()
    data["cells"][3]["source"] += "\nreport('it-rises', 3)"
    assert broken(read(lay_out(tmp_path, two_tier=False), stamped(data))) == []
    assert rule in broken(read(lay_out(tmp_path, two_tier=True), stamped(data)))


def test_a_chapter_without_claims_needs_no_ledger(folder):
    data = told_chapter()
    del data["cells"][LEDGER - 1 : LEDGER + 1]
    assert broken(read(folder, notebook(data["cells"]))) == ["the_ledger_is_called"]
    free = {"first": CLAIMS["first"] | {"claims": []}}
    assert broken(read(folder, notebook(data["cells"]), book=replace(BOOK, sources=free))) == []


def test_sources_without_a_name_or_a_link_ask_for_nothing(folder):
    data = told_chapter()
    data["cells"][TITLE]["source"] = data["cells"][TITLE]["source"].replace("](https://example.org/post)", "]")
    for source in ({"claims": []}, {"name": "An article of ABC on sums", "no_link": "it is gone"}, {"heading": "Papers on sums"}):
        book = replace(BOOK, sources=CLAIMS | {"first": source})
        assert "sources_are_linked_where_first_named" not in broken(read(folder, data, book=book))


def test_folded_code_is_what_a_run_of_it_leaves(folder):
    data = told_chapter()
    data["cells"][FOLD] = folded("The line.", "plt.plot(x)\nfigure(fig, f'{x[3]:.0f}')", captioned("A line up to four, then flat."))
    assert broken(read(folder, notebook(data["cells"]))) == []


def test_a_page_that_is_generated_may_be_linked(folder):
    data = told_chapter()
    data["cells"][ANSWERS]["source"] += " See [the ledger](../book/claims.md)."
    assert broken(read(folder, data)) == []


def test_a_notebook_without_a_number_is_a_guide(folder):
    """In the form of a chapter, with the rules for its numbers and pictures, and without a ledger or a self-check."""
    nb = read(folder, told_chapter(), "my_page.ipynb")
    assert (nb.kind, nb.is_two_tier, nb.number) == (GUIDE, True, 0)
    rules = set(rules_for(GUIDE, True))
    assert {"numbers_in_the_text_are_pinned", "pictures_have_captions", "is_fresh", "is_listed"} <= rules
    assert not {"the_ledger_is_called", "self_check_gives_feedback", "sections_claim_and_conclude"} & rules


def test_a_guide_is_listed_and_linked(folder):
    nb = read(folder, told_chapter(), "my_page.ipynb")
    [toc, index] = RULES["is_listed"][0](nb)
    assert "_toc.yml does not list it" in toc and "book/index.md does not link it" in index and toc.startswith("guide ")
    listed = {"parts": [{"chapters": [{"file": "notebooks/my_page"}]}]}
    nb.book = replace(nb.book, toc=listed, index="[x](../notebooks/my_page.ipynb)")
    assert RULES["is_listed"][0](nb) == []


def test_stored_notebooks_are_chapters_guides_evidence_and_assignments(tmp_path):
    names = ["notebooks/01_a.ipynb", "notebooks/page.ipynb", "notebooks/evidence/01_a.ipynb", "notebooks/assignments/01_a.ipynb"]
    others = ["notebooks/1_a.ipynb", "notebooks/evidence/page.ipynb", "notebooks/assignments/student/01_a.ipynb"]
    for name in names + others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in stored_notebooks(tmp_path)] == names


def test_load_reads_evidence_and_its_chapter(folder):
    nb = load(folder / "evidence" / "01_test.ipynb")
    assert (nb.kind, nb.is_two_tier, nb.number) == (EVIDENCE, True, 1)
    assert RULES["sections_claim_and_conclude"][0](nb) == []
