"""The ledger: verdicts are computed, every claim can be refuted and is accounted for, the packaged table is the book's."""

import copy
import json
import re
from pathlib import Path

import claims as tool  # tools/claims.py
import execute_notebooks
import numpy as np
import pytest

import attn_utils.claims
from attn_utils import ledger, report
from attn_utils.claims import facts_named, judge, texts_of, verdict

ROOT = Path(__file__).parents[1]
BOOK, ROWS = tool.read_claims()
RULED = [pytest.param(row, id=row["id"]) for row in ROWS if "refuted_by" in row]


def row(**fields):
    return {
        "id": "x",
        "chapter": [1],
        "says": "something",
        "theirs": "3",
        "value": 3,
        "otherwise": "so it is",
        **fields,
    }


@pytest.mark.parametrize(
    "rule, good, bad",
    [
        ({"within": 0.5}, 3.4, 3.6),
        ({"relative": 0.1}, 2.8, 3.4),
        ({"at_least": 2}, 2, 1.9),
        ({"at_most": 2}, 2, 2.1),
        ({"between": [1, 2]}, 1.5, 2.5),
        ({"at_least": 1, "at_most": 2}, 1.5, 0.5),
        ({"equal": 3}, 3, 4),
        ({"equal": "yes"}, "yes", "no"),
        ({"equal": True}, True, False),
        ({"equal": [True, False]}, [True, False], [True, True]),
        ({"at_least": 2}, [2, 3], [2, 1]),
        ({"at_most": [2, 0.5]}, [2, 0], [2, 1]),
        ({"between": [[1, 0], [2, 1]]}, [1.5, 0], [1.5, 2]),
    ],
)
def test_the_verdict_follows_from_the_value(rule, good, bad):
    assert verdict(row(close=rule, refuted_by=bad), good) == "reproduced"
    assert verdict(row(close=rule, refuted_by=bad), bad) == "differs: so it is"
    partly = row(partly={**rule, "condition": "sometimes"}, refuted_by=bad)
    assert verdict(partly, good) == "reproduced with a condition: sometimes"
    assert verdict(partly, bad) == "differs: so it is"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float32("nan"), [3, float("nan")]])
def test_nan_and_infinity_are_no_measurement(value):
    for rule in ({"equal": 3}, {"at_least": 1}, {"at_most": 5}, {"within": 1}):
        with pytest.raises(ValueError, match="NaN and infinity cannot be judged"):
            verdict(row(close=rule, refuted_by=[9, 9] if np.ndim(value) else 9), value)
    with pytest.raises(ValueError, match="NaN and infinity"):
        verdict({"id": "q", "answer": "so"}, value)


@pytest.mark.parametrize("value", ["3", True, np.bool_(True), [3], [[3]], (3, 3)])
def test_a_value_of_another_kind_is_no_measurement(value):
    with pytest.raises(ValueError, match="expected a value of the kind of 9"):
        verdict(row(close={"at_least": 1}, refuted_by=9), value)


@pytest.mark.parametrize("value", [[], [True, 2.5], [[1], [2, 3]], 1j, object(), [None, 1], {"a": 1}, np.array(None)])
def test_what_is_no_value_at_all_is_refused(value):
    for refuted_by in (9, [9, 9]):
        with pytest.raises(ValueError, match="Pass what was measured"):
            verdict(row(close={"at_least": 1}, refuted_by=refuted_by), value)


def test_numbers_of_numpy_are_numbers():
    claim = row(close={"at_least": 1}, refuted_by=0)
    values = 2, np.int64(2), np.float32(2), np.array(2.0)
    assert [verdict(claim, value) for value in values] == 4 * ["reproduced"]
    assert verdict(row(close={"equal": True}, refuted_by=False), np.bool_(True)) == "reproduced"
    assert verdict(row(close={"at_least": 1}, refuted_by=[0, 0]), np.ones(2, "float32")) == "reproduced"


def test_none_needs_a_reason():
    with pytest.raises(ValueError, match="does not say why it is not testable"):
        verdict(row(close={"equal": 1}, refuted_by=2), None)
    assert verdict({"id": "x", "untestable": "no CIFAR here"}, None) == "not testable here: no CIFAR here"


def test_what_is_not_possible_is_no_measurement():
    claim = row(close={"at_least": 0.9}, refuted_by=0.1, possible=[0, 1])
    for value in (1.2, -0.1):
        with pytest.raises(ValueError, match="what is possible: 0 to 1"):
            verdict(claim, value)


def test_lists_are_compared_number_by_number():
    claim = row(value=[1, 2], close={"within": 0.1}, refuted_by=[5, 5])
    assert verdict(claim, [1.05, 2]) == "reproduced" and verdict(claim, [1.05, 2.2]) == "differs: so it is"
    with pytest.raises(ValueError, match="expected a value of the kind of"):
        verdict(claim, [1, 2, 3])


def test_a_rule_that_cannot_judge_is_an_error():
    with pytest.raises(ValueError, match="source's nan"):
        verdict({**row(close={"within": 1}, refuted_by=9), "value": float("nan")}, 1)
    with pytest.raises(ValueError, match="2 numbers to compare with the source's 3"):
        verdict(row(close={"within": 1}, refuted_by=[9, 9]), [1, 2])
    with pytest.raises(ValueError, match="unknown rule 'near'"):
        verdict(row(close={"near": 1}, refuted_by=2), 1)
    with pytest.raises(ValueError, match="no bound"):
        verdict(row(partly={"condition": "always"}, refuted_by=2), 1)
    with pytest.raises(ValueError, match="no `otherwise`"):
        verdict({"id": "x", "close": {"equal": 1}, "refuted_by": 2}, 2)


# ---------------------------------------------------------------- facts in texts


FACTUAL = {"partly": {"at_least": 2, "condition": "in {share:.0%} of {n} draws"}, "otherwise": "only {n}"}


def test_facts_are_set_into_the_texts():
    claim = row(**FACTUAL, refuted_by=1)
    facts = {"share": 0.163, "n": 2000}
    assert verdict(claim, 3, facts) == "reproduced with a condition: in 16% of 2000 draws"
    assert verdict(claim, 1, facts) == "differs: only 2000"


@pytest.mark.parametrize("facts", [None, {"share": 0.1}, {"share": 0.1, "n": 3, "more": 1}])
def test_facts_and_texts_have_to_fit(facts):
    with pytest.raises(ValueError, match=r"expected \['n', 'share'\]"):
        verdict(row(**FACTUAL, refuted_by=1), 3, facts)


def test_a_fact_that_its_text_cannot_show_is_named():
    with pytest.raises(ValueError, match="do not fit the texts"):
        verdict(row(**FACTUAL, refuted_by=1), 3, {"share": "many", "n": 2})


# ---------------------------------------------------------------- report() and ledger()


@pytest.fixture
def two_claims(monkeypatch):
    rows = {name: {**row(close={"equal": 3}, refuted_by=4), "id": name, "chapter": [99]} for name in ("first", "other")}
    monkeypatch.setattr(attn_utils.claims, "claims", lambda: rows)
    monkeypatch.setattr(attn_utils.claims, "_reported", {})
    return rows


def shown(capsys):
    """The table that ledger() prints outside a notebook, without its rule: a list of lists of cells."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    return [re.split(r" \| ", line[2:-2]) for line in lines if not line.startswith("| :-")]


def test_report_prints_one_line(two_claims, capsys):
    report("first", 3)
    report("first", 4, here="four of them")
    assert capsys.readouterr().out.splitlines() == [
        "first | source: 3 | here: 3 | reproduced",
        "first | source: 3 | here: four of them | differs: so it is",
    ]


@pytest.mark.parametrize("here", ["3 | reproduced", "3\n4"])
def test_what_is_shown_cannot_forge_a_verdict(two_claims, here):
    with pytest.raises(ValueError, match="expected one line"):
        report("first", 4, here=here)


def test_an_unknown_claim_is_refused_with_a_hint(two_claims):
    with pytest.raises(ValueError, match=r"'first'.*tools/claims.py --rows"):
        report("frist", 3)


@pytest.mark.parametrize("value", [1j, object()])
def test_a_value_of_no_kind_is_named_with_its_claim(two_claims, value):
    """Also where it is not said how to print it."""
    with pytest.raises(ValueError, match="first: got .*expected a number"):
        report("first", value)


@pytest.mark.parametrize("chapter", ["3", None, 3.0, True, [3], 0])
def test_the_ledger_of_no_chapter_is_refused(chapter):
    with pytest.raises(ValueError, match="chapter is .*such as ledger"):
        ledger(chapter)


def test_an_open_claim_cannot_be_reported(two_claims):
    two_claims["first"] = {"id": "first", "chapter": [99], "says": "a", "theirs": "b", "open": "more time"}
    with pytest.raises(ValueError, match="says that it is open"):
        report("first", 3)


def test_numbers_are_printed_with_four_digits(two_claims, capsys):
    report("other", 1.23456789)
    assert "here: 1.235 |" in capsys.readouterr().out


def test_a_chapter_that_reports_has_to_report_all(two_claims, capsys):
    report("first", 3)
    with pytest.raises(RuntimeError, match="not reported yet: other"):
        ledger(99)
    report("other", 4)
    capsys.readouterr()
    ledger(99)
    assert shown(capsys) == [
        ["The claim", "The source", "Measured here", "Verdict"],
        ["[Something](#claim-first)", "3", "3", "*reproduced*"],
        ["[Something](#claim-other)", "3", "4", "*differs*: so it is"],
    ]


STORED = [{"chapter": 99, "notebook": "evidence/99_x.ipynb", "here": "3.1", "verdict": "reproduced"}]


def test_a_chapter_with_evidence_shows_what_that_stored(two_claims, capsys):
    two_claims["first"]["measured"] = STORED
    ledger(99)
    assert shown(capsys)[1:] == [
        ["[Something](evidence/99_x.ipynb#claim-first)", "3", "3.1", "*reproduced*"],
        ["Something", "3", "", "*not measured yet*"],
    ]


def test_the_evidence_itself_has_to_report_all(two_claims):
    two_claims["first"]["measured"] = STORED
    report("first", 3)
    with pytest.raises(RuntimeError, match="not reported yet: other"):
        ledger(99)


def test_a_chapter_in_the_old_form_does_not_show_an_earlier_run(two_claims):
    two_claims["first"]["measured"] = [{**STORED[0], "notebook": "99_x.ipynb"}]
    with pytest.raises(RuntimeError, match="not reported yet: first, other"):
        ledger(99)


def test_what_stands_open_needs_no_report(two_claims, capsys):
    common = {"chapter": [99], "says": "it may | or not", "theirs": "it *may*"}
    two_claims["first"] = {"id": "first", **common, "open": "a larger model"}
    two_claims["other"] = {"id": "other", **common, "untestable": "no GPU"}
    ledger(99)
    assert shown(capsys)[1:] == [
        ["It may \\| or not", "it \\*may\\*", "", "*not measured yet*: a larger model"],
        ["It may \\| or not", "it \\*may\\*", "", "*not testable here*: no GPU"],
    ]


def test_a_chapter_without_claims_says_so(two_claims, capsys):
    ledger(9)
    assert capsys.readouterr().out == "None of the claims in the ledger belongs to chapter 9.\n"


# ------------------------------------------------------- the book's own table


def test_the_packaged_table_is_what_the_book_says():
    text = (ROOT / "attn_utils" / "data" / "claims.json").read_text("utf8")
    assert text == tool.packaged(), "run: python tools/claims.py --rows"


def test_the_ledger_fits_the_notebooks():
    tool.measurements()


def test_no_claim_of_the_sources_is_lost():
    counts = {}
    for claim in ROWS:
        counts[claim["source"]] = counts.get(claim["source"], 0) + 1
    for source, least in {"qkv-blog": 18, "mind-the-gap": 17, "always-skip": 15, "sinks-necessary": 17}.items():
        assert counts[source] >= least


@pytest.mark.parametrize("claim", RULED)
def test_the_value_that_should_refute_a_claim_does(claim):
    assert judge(claim, claim["refuted_by"]) == ("differs", "otherwise")


def passing(claim):
    """A value at, or in the middle of, the bounds of the laxest rule of a row."""
    rule = claim.get("partly") or claim["close"]
    name = next(name for name in rule if name != "condition")
    value = {"within": claim.get("value"), "relative": claim.get("value")}.get(name, rule[name])
    if name == "between":
        low, high = rule[name]
        value = (np.asarray(low, float) + np.asarray(high, float)) / 2
    kind = object if isinstance(np.ravel(claim["refuted_by"])[0], (bool, np.bool_)) else float
    return np.broadcast_to(np.asarray(value, dtype=kind), np.shape(claim["refuted_by"])).tolist()


@pytest.mark.parametrize("claim", RULED)
def test_every_entry_of_a_measurement_counts(claim):
    """No bound is one that anything passes: each entry taken over from refuted_by changes the verdict."""
    value = passing(claim)
    before = judge(claim, value)[0]
    assert before != "differs"
    if np.ndim(value) == 0:
        return
    for i, refuting in enumerate(claim["refuted_by"]):
        changed = copy.copy(value)
        changed[i] = refuting
        assert judge(claim, changed)[0] != before, f"entry {i} may be anything between {value[i]} and {refuting}"


@pytest.mark.parametrize("claim", RULED)
def test_the_rows_refuse_what_is_no_measurement(claim):
    shape = np.shape(claim["refuted_by"])
    wrong = [None, "3", np.full(shape, np.nan).tolist(), np.full(shape, np.inf).tolist(), [claim["refuted_by"]]]
    kind = type(np.ravel(claim["refuted_by"]).tolist()[0])
    wrong += [np.full(shape, 1.0).tolist() if kind is bool else np.full(shape, True).tolist()]
    for value in wrong:
        with pytest.raises(ValueError):
            judge(claim, value)


NAMES_WITH_DIGITS = r"[Cc]hapter \d|N\(0, 1(/d)?\)|softmax1|8 bits|CIFAR-10"


@pytest.mark.parametrize("claim", [pytest.param(row, id=row["id"]) for row in ROWS if texts_of(row)])
def test_no_number_is_typed_into_a_verdict(claim):
    """What a condition or a reason states in numbers is a fact that the notebook passes to report()."""
    for text in texts_of(claim).values():
        assert not re.search(r"\d", re.sub(r"\{[^}]*\}|" + NAMES_WITH_DIGITS, "", text)), text


def test_facts_are_named_for_a_report_only():
    """A row that no cell reports has nobody to fill its texts."""
    reported = {name for name, _ in tool.measurements()}
    assert [claim["id"] for claim in ROWS if facts_named(claim) and claim["id"] not in reported] == []


def test_every_document_can_be_found_or_says_that_it_cannot():
    documents = [entry for entry in BOOK.values() if entry["kind"] == "document"]
    assert len(documents) == 4
    assert [entry["link"] for entry in documents if "link" in entry] == [
        "https://aibr.jp/archives/101018",
        "https://aibr.jp/archives/64315",
    ]
    bibliography = (ROOT / "book" / "references.bib").read_text("utf8")
    cited = [key for entry in documents for key in entry["papers"]] + [row["cites"] for row in ROWS if "cites" in row]
    assert [key for key in cited if f"{{{key}," not in bibliography] == []


def test_papers_that_were_not_read_in_full_are_marked():
    """Ji et al. is known from summaries beyond its abstract, Xiao et al. from a transcription of its tables."""
    second_hand = {claim["id"] for claim in ROWS if claim.get("cites") in ("ji2025", "xiao2024")}
    assert second_hand and all("as_summarized" in claim for claim in ROWS if claim["id"] in second_hand)


# ------------------------------------------- the generator, on a book of one page

CLAIMS = """
blog:
  heading: A blog
  about: About it.
  kind: document
  name: A post
  author: somebody
  no_link: no address was found
  papers: [vaswani2017]
  read: all of it
  code: https://example.org/code
  claims:
    - {id: one, chapter: 1, says: "it holds, at $5 and `x_y`", words: "it *does*", original: です, where: line 1,
       theirs: "5", value: 5, close: {within: 1}, otherwise: "no", refuted_by: 7}
    - {id: two, chapter: [1, 2], says: another, words: so, original: そう, where: line 2, otherwise: "no",
       partly: {equal: true, condition: on Sundays}, refuted_by: false}
"""
LINE = "one | source: 5 | here: 5.1 | reproduced"
TWO = "two | source: another | here: yes | reproduced with a condition: on Sundays"
OPEN = "    - {id: open, chapter: 1, says: later, words: so, original: そう, where: line 3, open: a larger model}\n"
OF_A_PAPER = (
    "    - {id: paper, chapter: 1, says: theirs, from: paper, cites: ji2025, as_summarized: by notes,"
    " where: section 2, untestable: no GPU}\n"
)
QUESTION = (
    "    - {id: why, chapter: 1, says: why, from: question, words: so, original: そう, where: line 4, answer: because}\n"
)


@pytest.fixture
def small_book(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks" / "evidence").mkdir(parents=True)
    (tmp_path / "book" / "claims.yml").write_text(CLAIMS)

    def write(*lines, name="01_first.ipynb", more=""):
        output = {"output_type": "stream", "name": "stdout", "text": [line + "\n" for line in lines]}
        cells = [{"cell_type": "code", "outputs": [output]}, {"cell_type": "markdown"}]
        (tmp_path / "notebooks" / name).write_text(json.dumps({"cells": cells}))
        (tmp_path / "book" / "claims.yml").write_text(CLAIMS + more)
        return tmp_path

    return write


def test_the_page_lists_every_row(small_book):
    page = tool.claims_page(small_book(LINE, TWO))
    assert "Of the documents' own 2 claims, 1 is reproduced and 1 is reproduced with a condition." in page
    assert "| A blog | 1 | 1 | 2 |" in page and "| All documents | 1 | 1 | 2 |" in page
    assert "[reproduced]{.verdict .verdict-reproduced} ([chapter 1](../notebooks/01_first.ipynb#claim-one))" in page
    assert "<br>Source: 5<br>Here: 5.1" in page and "\\$5 and \\`x\\_y\\`" in page
    assert "[reproduced with a condition]{.verdict .verdict-condition}: on S" in page
    assert "[not measured yet]{.verdict .verdict-open} (chapter 2)" in page
    assert "> “it \\*does\\*” (<span lang=\"ja\">です</span>)\\\n> line 1" in page
    assert "- **Where it is:** no address was found" in page and "{cite:t}`vaswani2017`" in page


def test_what_evidence_measured_is_there_for_its_chapter(small_book):
    """tools/execute_notebooks.py keeps it as soon as the evidence ran, before the chapter's ledger reads it."""
    small_book(name="01_first.ipynb")
    root = small_book(LINE, TWO, name="evidence/01_first.ipynb")
    table = root / "attn_utils" / "data" / "claims.json"
    table.parent.mkdir(parents=True)
    assert execute_notebooks.keep_measurements(root / "notebooks" / "01_first.ipynb") is None and not table.exists()
    assert execute_notebooks.keep_measurements(root / "notebooks" / "evidence" / "01_first.ipynb") is None
    [one, _] = json.loads(table.read_text("utf8"))
    assert one["measured"][0]["here"] == "5.1" and one["measured"][0]["notebook"] == "evidence/01_first.ipynb"
    (root / "book" / "claims.yml").write_text("blog: {claims: [{id: one}]}")
    assert "its measurements do not fit" in execute_notebooks.keep_measurements(
        root / "notebooks" / "evidence" / "01_first.ipynb"
    )


def test_papers_and_questions_are_counted_apart(small_book):
    root = small_book(LINE, TWO, "why | source: why | here: 1 | answered: because", more=OF_A_PAPER + QUESTION + OPEN)
    page = tool.claims_page(root)
    assert "Of the documents' own 3 claims, 1 is reproduced, 1 is reproduced with a condition and 1 is not measured yet." in page
    assert "Of the papers' 1 claim, 1 is not testable here. The documents leave open 1 question: 1 is answered." in page
    assert "| All documents | 1 | 1 | 0 | 1 | 3 |" in page
    assert "| Claims of papers | 0 | 0 | 1 | 0 | 1 |" in page
    assert "> {cite:t}`ji2025`, section 2; as summarized by notes" in page
    assert page.index("claim-open") < page.index("leaves open") < page.index("papers behind it")


@pytest.mark.parametrize(
    "names, sentence",
    [
        (["differs"], "Of 1 claim, 1 differs."),
        (2 * ["not measured yet"], "Of 2 claims, 2 are not measured yet."),
        (2 * ["reproduced"] + ["differs"], "Of 3 claims, 2 are reproduced and 1 differs."),
        (
            ["reproduced", "differs", "differs", "not testable here"],
            "Of 4 claims, 1 is reproduced, 2 differ and 1 is not testable here.",
        ),
    ],
)
def test_the_count_is_right_in_number_and_grammar(names, sentence):
    assert tool.told("Of {} claim", names) == sentence


def test_what_is_measured_in_the_evidence_is_read_from_there(small_book):
    small_book(name="01_first.ipynb")
    root = small_book(LINE, TWO, name="evidence/01_first.ipynb")
    page = tool.claims_page(root)
    assert "([the evidence of chapter 1](../notebooks/evidence/01_first.ipynb#claim-one))" in page
    measured = {row["id"]: row["measured"] for row in json.loads(tool.packaged(root))}
    assert measured["one"] == [
        {"chapter": 1, "notebook": "evidence/01_first.ipynb", "here": "5.1", "verdict": "reproduced"}
    ]


@pytest.mark.parametrize(
    "lines, message",
    [
        ((LINE,), "does not report the claim 'two'"),
        ((LINE, TWO, "three | source: 1 | here: 1 | reproduced"), "reports 'three'"),
        ((), "does not report the claim 'one'"),
        ((LINE, LINE, TWO), "'one' is reported twice"),
        ((LINE.replace("source: 5", "source: 6"), TWO), "execute it again"),
    ],
)
def test_a_ledger_that_does_not_fit_fails(small_book, lines, message):
    with pytest.raises(ValueError, match=message):
        tool.claims_page(small_book(*lines))


def test_a_claim_that_is_open_is_not_reported(small_book):
    root = small_book(LINE, TWO, "open | source: later | here: 1 | reproduced", more=OPEN)
    with pytest.raises(ValueError, match="calls open"):
        tool.measurements(root)


def test_a_second_chapter_has_to_report_too(small_book):
    root = small_book(LINE, TWO)
    small_book(name="02_second.ipynb")
    with pytest.raises(ValueError, match="02_second.ipynb does not report the claim 'two'"):
        tool.claims_page(root)


def test_a_new_row_reaches_report_before_it_is_measured(small_book, monkeypatch):
    """The order for a new claim: its row, --rows, the notebook, the page."""
    root = small_book(LINE)
    monkeypatch.setattr(tool, "ROOT", root)
    (root / "attn_utils" / "data").mkdir(parents=True)
    assert tool.main(["--rows"]) == 0
    rows = {row["id"]: row for row in json.loads((root / "attn_utils" / "data" / "claims.json").read_text("utf8"))}
    assert "measured" in rows["one"] and "measured" not in rows["two"] and "words" not in rows["two"]


def test_a_bad_table_is_named(small_book):
    root = small_book(LINE, TWO)
    (root / "book" / "claims.yml").write_text(CLAIMS.replace("id: two", "id: one"))
    with pytest.raises(ValueError, match="'one' stands twice"):
        tool.read_claims(root)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("theirs:", "thiers:", "thiers"),
        ("close: {within: 1}", "close: {withn: 1}", "withn"),
        ("close: {within: 1}", "partly: {within: 1}", "no condition"),
        ("  about: About it.\n", "", "about"),
        ("says: another, ", "", "says"),
        ("original: そう, ", "", "original"),
        ("where: line 2, ", "", "where"),
        ("blog:", "blog: [", "cannot be read"),
        ("refuted_by: 7", "expect: 7", "refuted_by"),
        ("refuted_by: 7", "refuted_by: 5.5", "calls that 'reproduced'"),
        ("refuted_by: 7", "refuted_by: [7]", "numbers to compare"),
        ("refuted_by: 7", "refuted_by: .inf", "infinity"),
        ("refuted_by: 7", "refuted_by: 7, open: later", "expected one of"),
        ("close: {within: 1}, ", "", "expected one of"),
        ("on Sundays", '"on {n Sundays"', "cannot be filled"),
        ("kind: document", "kind: blog", "expected document or papers"),
        ("no_link: no address was found", "author_too: me", "author_too"),
        ("  no_link: no address was found\n", "", "either link or no_link"),
        ("  code: https://example.org/code\n", "", "either code or no_code"),
        ("says: another", "from: nowhere, says: another", "expected paper or question"),
        ("says: another", "from: paper, says: another", "cites"),
    ],
)
def test_a_table_that_report_could_not_use_is_refused(small_book, old, new, message):
    root = small_book(LINE, TWO)
    assert old in CLAIMS
    (root / "book" / "claims.yml").write_text(CLAIMS.replace(old, new))
    with pytest.raises(ValueError, match=message):
        tool.read_claims(root)


def test_unknown_arguments_write_nothing(capsys):
    assert tool.main(["--chek"]) == 2 and "--check" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "accidents"),
    [
        ("random-heavy-words", [5 / 2000, 10 / 2000]),  # what 2,000 draws of blind chance, 1 in 495, may well have
        ("learned-not-given", [[0.97, 0.05], [0.97, 0.95]]),  # a model that is always wrong knows the link as well
    ],
)
def test_chapter_1_does_not_take_an_accident_for_a_finding(name, accidents):
    assert [judge(attn_utils.claims.claims()[name], value)[0] for value in accidents] == ["differs"] * 2


@pytest.mark.parametrize(
    ("name", "value"), [("near-words", [0.0, 0.2, 0.2]), ("tired-near", 0.0), ("it-animal-far", [13, 0.6])]
)
def test_chapter_1_refuses_distances_that_cannot_be(name, value):
    with pytest.raises(ValueError, match="expected what is possible"):
        judge(attn_utils.claims.claims()[name], value)
