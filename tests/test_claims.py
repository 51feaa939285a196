"""The ledger: verdicts are computed, every claim is accounted for, the packaged table is the book's."""

import json
from pathlib import Path

import claims as tool  # tools/claims.py
import pytest

import attn_utils.claims
from attn_utils import ledger, report
from attn_utils.claims import verdict

ROOT = Path(__file__).parents[1]


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
        ({"at_least": 2}, [2, 3], [2, 1]),
    ],
)
def test_the_verdict_follows_from_the_value(rule, good, bad):
    assert verdict(row(close=rule), good) == "reproduced"
    assert verdict(row(close=rule), bad) == "differs: so it is"
    partly = {**rule, "condition": "sometimes"}
    assert verdict(row(partly=partly), good) == "reproduced with a condition: sometimes"
    assert verdict(row(partly=partly), bad) == "differs: so it is"


def test_a_value_of_another_kind_is_no_verdict():
    for rule, value in (
        ({"equal": 11}, "11"),
        ({"equal": 11}, [11]),
        ({"equal": 3}, float("nan")),
        ({"at_least": 1}, []),
    ):
        with pytest.raises(ValueError):
            verdict(row(close=rule), value)


def test_lists_are_compared_number_by_number():
    claim = row(value=[1, 2], close={"within": 0.1})
    assert verdict(claim, [1.05, 2]) == "reproduced" and verdict(claim, [1.05, 2.2]) == "differs: so it is"
    with pytest.raises(ValueError, match="got 3 numbers, expected 2"):
        verdict(claim, [1, 2, 3])


def test_what_cannot_be_judged_is_an_error():
    with pytest.raises(ValueError, match="NaN"):
        verdict(row(close={"at_least": 1}), float("nan"))
    with pytest.raises(ValueError, match="NaN"):
        verdict({**row(close={"within": 1}), "value": float("nan")}, 1)
    with pytest.raises(ValueError, match="unknown rule 'near'"):
        verdict(row(close={"near": 1}), 1)
    with pytest.raises(ValueError, match="no bound"):
        verdict(row(partly={"condition": "always"}), 1)
    with pytest.raises(ValueError, match="otherwise"):
        verdict({"id": "x", "close": {"equal": 1}}, 2)
    with pytest.raises(ValueError, match="not testable"):
        verdict(row(close={"equal": 1}), None)
    assert verdict(row(untestable="no CIFAR here"), None) == "not testable here: no CIFAR here"


@pytest.fixture
def two_claims(monkeypatch):
    rows = {name: {**row(close={"equal": 3}), "id": name, "chapter": [99]} for name in ("first-claim", "other")}
    monkeypatch.setattr(attn_utils.claims, "claims", lambda: rows)
    monkeypatch.setattr(attn_utils.claims, "_reported", {})


def test_report_prints_one_line(two_claims, capsys):
    report("first-claim", 3)
    report("first-claim", 4, here="four of them")
    assert capsys.readouterr().out.splitlines() == [
        "first-claim | source: 3 | here: 3 | reproduced",
        "first-claim | source: 3 | here: four of them | differs: so it is",
    ]


@pytest.mark.parametrize("here", ["3 | reproduced", "3\n4"])
def test_what_is_shown_cannot_forge_a_verdict(two_claims, here):
    with pytest.raises(ValueError, match="expected one line"):
        report("first-claim", 4, here=here)


def test_an_unknown_claim_is_refused_with_a_hint(two_claims):
    with pytest.raises(ValueError, match="first-claim"):
        report("first-clam", 3)


def test_ledger_wants_every_claim_of_the_chapter(two_claims, capsys, monkeypatch):
    report("first-claim", 3)
    with pytest.raises(RuntimeError, match="other"):
        ledger(99)
    with pytest.raises(ValueError, match="no claims"):
        ledger(98)
    report("other", 4)
    capsys.readouterr()
    ledger(99)  # in a plain script
    assert [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines()] == ["first-claim", "other"]
    shown = []
    monkeypatch.setattr("IPython.get_ipython", object)
    monkeypatch.setattr("IPython.display.display", shown.append)
    ledger(99)
    assert "*reproduced*" in shown[0].data and "*differs*: so it is" in shown[0].data


def test_numbers_are_printed_with_four_digits(two_claims, capsys):
    report("other", 1.23456789)
    assert "here: 1.235 |" in capsys.readouterr().out


# ------------------------------------------------------- the book's own table


def test_the_packaged_table_is_what_the_book_says():
    text = (ROOT / "attn_utils" / "data" / "claims.json").read_text("utf8")
    assert text == tool.packaged(), "run: python tools/claims.py"


def test_no_claim_of_the_sources_is_lost():
    counts = {}
    for claim in tool.read_claims()[1]:
        counts[claim["source"]] = counts.get(claim["source"], 0) + 1
    for source, least in {"qkv-blog": 14, "mind-the-gap": 14, "always-skip": 11, "sinks-necessary": 14}.items():
        assert counts[source] >= least


def test_rows_of_written_chapters_have_a_rule():
    for claim in tool.read_claims()[1]:
        if any(tool.notebook_of(ROOT, chapter) for chapter in claim["chapter"]):
            assert {"close", "partly", "untestable"} & set(claim), f"{claim['id']} has no rule in book/claims.yml"


def test_the_ledger_fits_the_notebooks():
    tool.measurements()


# ------------------------------------------- the generator, on a book of one page

CLAIMS = """
blog:
  heading: A blog
  about: About it.
  claims:
    - {id: one, chapter: 1, says: "it holds, at $5 and `x_y`", theirs: "5", value: 5, close: {within: 1}, otherwise: no}
    - {id: two, chapter: [1, 2], says: another, close: {equal: true}}
"""
LINE = "one | source: 5 | here: 5.1 | reproduced"
TWO = "two | source: another | here: yes | reproduced with a condition: on Sundays"


@pytest.fixture
def small_book(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "book" / "claims.yml").write_text(CLAIMS)

    def write(*lines, name="01_first.ipynb"):
        output = {"output_type": "stream", "name": "stdout", "text": [line + "\n" for line in lines]}
        cells = [{"cell_type": "code", "outputs": [output]}, {"cell_type": "markdown"}]
        (tmp_path / "notebooks" / name).write_text(json.dumps({"cells": cells}))
        return tmp_path

    return write


def test_the_page_lists_every_row(small_book):
    page = tool.claims_page(small_book(LINE, TWO))
    assert "Of 2 claims, 2 are measured so far: 1 reproduced, 1 reproduced with a condition, 0 differs" in page
    assert "[reproduced]{.verdict .verdict-reproduced} ([chapter 1](../notebooks/01_first.ipynb))" in page
    assert (
        "<br>Source: 5<br>Here: 5.1" in page
        and "[reproduced with a condition]{.verdict .verdict-condition}: on S" in page
    )
    assert "[not measured yet]{.verdict .verdict-open} in chapter 2" in page and "\\$5 and \\`x\\_y\\`" in page


@pytest.mark.parametrize(
    "lines, message",
    [
        ((LINE,), "does not report the claim 'two'"),
        ((LINE, TWO, "three | source: 1 | here: 1 | reproduced"), "reports 'three'"),
        ((), "does not report the claim 'one'"),
    ],
)
def test_a_ledger_that_does_not_fit_fails(small_book, lines, message):
    with pytest.raises(ValueError, match=message):
        tool.claims_page(small_book(*lines))


def test_a_second_chapter_has_to_report_too(small_book):
    root = small_book(LINE, TWO)
    small_book(name="02_second.ipynb")
    with pytest.raises(ValueError, match="02_second.ipynb does not report the claim 'two'"):
        tool.claims_page(root)


def test_a_bad_table_is_named(small_book):
    root = small_book(LINE, TWO)
    (root / "book" / "claims.yml").write_text(CLAIMS.replace("id: two", "id: one"))
    with pytest.raises(ValueError, match="'one' stands twice"):
        tool.read_claims(root)
    (root / "book" / "claims.yml").write_text(CLAIMS.replace("theirs:", "thiers:"))
    with pytest.raises(ValueError, match="thiers"):
        tool.read_claims(root)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("close: {within: 1}", "close: {withn: 1}", "withn"),
        ("close: {within: 1}", "partly: {within: 1}", "no condition"),
        ("  about: About it.\n", "", "about"),
        ("says: another, ", "", "says"),
        ("blog:", "blog: [", "cannot be read"),
    ],
)
def test_a_table_that_report_could_not_use_is_refused(small_book, old, new, message):
    root = small_book(LINE, TWO)
    (root / "book" / "claims.yml").write_text(CLAIMS.replace(old, new))
    with pytest.raises(ValueError, match=message):
        tool.read_claims(root)


def test_unknown_arguments_write_nothing(capsys):
    assert tool.main(["--chek"]) == 2 and "--check" in capsys.readouterr().err


def test_the_tool_knows_the_rules_of_the_package():
    assert tool.RULES == set(attn_utils.claims.RULES) | {"equal", "condition"}
