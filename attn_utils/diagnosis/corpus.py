"""The corpus that diagnose() is calibrated on: models whose state is known, what was measured, what is said of them."""

import gzip
import json
from pathlib import Path

import numpy as np

from attn_utils.diagnosis.findings import THRESHOLDS
from attn_utils.diagnosis.verdicts import judge

STORED = Path(__file__).resolve().parent.parent / "data" / "diagnosis.json.gz"  # by tools/make_diagnosis_corpus.py
HELD_OUT = STORED.with_name("diagnosis_held_out.json.gz")  # by tools/make_held_out_corpus.py
HEAD = ("survives", "entropy", "evenness_lost", "sink", "sink_at", "sink_expected")
STATE = ("zero", "rest", "spread", "cosine", "weak_directions")


def pack(name, group, truth, notes, found):
    """One case as what json.dumps takes: the numbers that verdicts hang on, three digits each, one where heads agree.

    truth   the kinds of alarm that have to be raised;  notes   words that have to stand in what is printed
    """
    layers = []
    for layer in found.layers:
        rows = layer["heads"][0]["rows"]
        columns = {key: [_short(head[key]) for head in layer["heads"]] for key in HEAD}
        pattern = {key: layer["pattern"][key] for key in ("kind", "causal")}
        alike = {key: numbers[0] if len(set(numbers)) == 1 else numbers for key, numbers in columns.items()}
        layers.append({"n_heads": len(layer["heads"]), "pattern": pattern, "rows": rows, **alike})
    states = [{key: _short(state[key]) for key in STATE} | {"massive": _massive(state)} for state in found.states]
    text = str(found)
    said = [words for words in notes if words in text]
    return {"name": name, "group": group, "truth": truth, "notes": notes, "said": said, "layers": layers,
            "states": states}  # fmt: skip


def unpack(case):
    """(layers, states) as judge() takes them."""
    layers = []
    for i, layer in enumerate(case["layers"], 1):
        columns = [layer[key] if isinstance(layer[key], list) else [layer[key]] * layer["n_heads"] for key in HEAD]
        heads = [dict(zip(HEAD, numbers, strict=True)) for numbers in zip(*columns, strict=True)]
        for j, head in enumerate(heads, 1):
            head |= {key: np.nan for key in HEAD if head[key] is None}
            head |= {"head": j, "rows": layer["rows"], "rows_say": "", "rows_cure": "", "row_sums": [1, 1]}
            head["empty"] = False
        layers.append({"layer": i, "T": 0, "n_heads": len(heads), "pattern": layer["pattern"], "heads": heads})
    known = {"massive": None, "weak_directions": np.inf}  # what None stands for, where it is not NaN
    states = [{key: known.get(key, np.nan) if value is None else value for key, value in state.items()}
              for state in case["states"]]  # fmt: skip
    return layers, states


def load_corpus(path=STORED):
    """The cases, each a dict with name, group, truth, notes, and the numbers; HELD_OUT: those no threshold has seen."""
    return json.loads(gzip.decompress(path.read_bytes()))["cases"]


def store(cases, torch, path=STORED):
    """Write the file of a corpus, the same bytes for the same cases; torch is the version that made them."""
    text = json.dumps({"torch": torch, "cases": cases}, separators=(",", ":")) + "\n"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def verdicts(path=STORED, with_states=True):
    """For each case (name, group, truth, found): the kinds of alarm expected and raised, sorted."""
    for case in load_corpus(path):
        layers, states = unpack(case)
        alarms = [finding for finding in judge(layers, states if with_states else []) if finding.level == "alarm"]
        yield case["name"], case["group"], sorted(case["truth"]), sorted({finding.kind for finding in alarms})


def tally(path=STORED):
    """For each group: cases, the kinds of alarm expected of some of them, and how many had a false or a missed one."""
    groups = {}
    for _, group, truth, found in verdicts(path):
        one = groups.setdefault(group, {"cases": 0, "expected": set(), "false": 0, "missed": 0, "wrong": 0})
        one["cases"] += 1
        one["expected"] |= set(truth)
        one["false"] += bool(set(found) - set(truth))
        one["missed"] += bool(set(truth) - set(found))
        one["wrong"] += found != truth
    return groups


def table_of_verdicts(path=STORED):
    """Group by group, as columns for table(), few enough for a phone."""
    groups = tally(path)
    return {
        "models": list(groups),
        "alarm expected": [", ".join(sorted(one["expected"])) or "none" for one in groups.values()],
        "judged right": [f"{one['cases'] - one['wrong']} of {one['cases']}" for one in groups.values()],
    }


def _short(number):
    """Three digits; None for NaN and inf."""
    if isinstance(number, (bool, np.bool_, int)):
        return int(number)
    return float(f"{number:.3g}") if np.isfinite(number) else None


def _massive(state):
    """The massive activation, where it is one."""
    one = state["massive"]
    if one is None or not one["times"] > 0.5 * THRESHOLDS["massive"].bound:
        return None
    return one | {"times": _short(one["times"]), "value": _short(one["value"])}
