"""The corpus of models whose state is known: no false alarm on the healthy, no miss among the others."""

import pytest

from attn_utils.diagnosis.corpus import STORED, load_corpus, table_of_verdicts, unpack, verdicts
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
    table = table_of_verdicts()
    assert set(table["models"]) == HEALTHY | {"collapsed", "saturated", "dropout"}
    assert sum(table["false alarms"]) == sum(table["missed"]) == 0 and sum(table["cases"]) > 90
    assert STORED.stat().st_size < 150_000


def test_moved_thresholds_are_noticed(monkeypatch):
    """The corpus can fail: with another bound it does."""
    from attn_utils.diagnosis import findings

    for kind, bound in (("rest", 0.4), ("rest", 1e-6), ("uniform", 0.005), ("saturated", 0.99), ("condition", 10)):
        with monkeypatch.context() as changed:
            changed.setitem(findings.THRESHOLDS, kind, findings.THRESHOLDS[kind]._replace(bound=bound))
            wrong = [case for case in load_corpus()
                     if {f.kind for f in judge(*unpack(case)) if f.level == "alarm"} != set(case["truth"])]  # fmt: skip
        assert wrong, (kind, bound)
