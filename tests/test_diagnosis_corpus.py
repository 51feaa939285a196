"""The corpus of models whose state is known: no false alarm on the healthy, no miss among the others."""

import pytest

from attn_utils.diagnosis.corpus import HELD_OUT, STORED, load_corpus, table_of_verdicts, tally, unpack, verdicts
from attn_utils.diagnosis.verdicts import judge

HEALTHY = {"healthy", "padded", "windowed", "half precision", "sinks"}


@pytest.mark.parametrize("name, group, truth, found", list(verdicts()), ids=[case["name"] for case in load_corpus()])
def test_every_verdict_is_the_truth(name, group, truth, found):
    assert found == truth and (group in HEALTHY) == (not truth)


def test_healthy_models_raise_no_alarm_by_their_weights_alone():
    false = [name for name, group, _, found in verdicts(with_states=False) if group in HEALTHY and found]
    assert not false


def test_what_has_to_be_recognized_is_said():
    assert not [case["name"] for case in load_corpus() if case["said"] != case["notes"]]


def test_the_corpus_holds_every_kind_and_is_small():
    groups = tally()
    assert set(groups) == HEALTHY | {"collapsed", "saturated", "dropout"}
    assert not any(one["false"] or one["missed"] for one in groups.values())
    assert sum(one["cases"] for one in groups.values()) > 90
    assert STORED.stat().st_size < 150_000


def test_models_that_no_threshold_has_seen_are_judged_right():
    """Of other families, sizes and seeds; what has to be recognized in them is said, too."""
    wrong = [(name, truth, found) for name, _, truth, found in verdicts(HELD_OUT) if truth != found]
    assert not wrong and not [case["name"] for case in load_corpus(HELD_OUT) if case["said"] != case["notes"]]
    expected = set().union(*(one["expected"] for one in tally(HELD_OUT).values()))
    assert {"collapse", "uniform", "saturated", "condition", "dropout", "rows"} <= expected
    assert sum(one["cases"] for one in tally(HELD_OUT).values()) >= 60
    assert not {case["name"] for case in load_corpus()} & {case["name"] for case in load_corpus(HELD_OUT)}
    assert HELD_OUT.stat().st_size < 100_000


def test_the_table_of_verdicts_is_narrow_and_shows_mistakes(monkeypatch):
    from attn_utils.diagnosis import findings

    table = table_of_verdicts()
    assert list(table) == ["models", "alarm expected", "judged right"] and table["judged right"][0] == "53 of 53"
    monkeypatch.setitem(findings.THRESHOLDS, "rest", findings.THRESHOLDS["rest"]._replace(bound=0.9))
    assert table_of_verdicts()["judged right"][0] != "53 of 53" and tally()["healthy"]["false"] > 0


def test_moved_thresholds_are_noticed(monkeypatch):
    """The corpus can fail: with another bound it does."""
    from attn_utils.diagnosis import findings

    for kind, bound in (("rest", 0.4), ("rest", 1e-6), ("uniform", 0.005), ("saturated", 0.99), ("condition", 10)):
        with monkeypatch.context() as changed:
            changed.setitem(findings.THRESHOLDS, kind, findings.THRESHOLDS[kind]._replace(bound=bound))
            wrong = [case for case in load_corpus()
                     if {f.kind for f in judge(*unpack(case)) if f.level == "alarm"} != set(case["truth"])]  # fmt: skip
        assert wrong, (kind, bound)
