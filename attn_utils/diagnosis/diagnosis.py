"""What diagnose() found: numbers, findings in plain language, a plot."""

import numpy as np

from attn_utils.diagnosis.rows import NO_WEIGHTS
from attn_utils.diagnosis.verdicts import is_collapsed, judge, name_layers


class Diagnosis:
    """What diagnose() found; attn_utils.diagnosis says what each part holds."""

    def __init__(self, layers, states, tokens=None, pictures=None, sequences=()):
        self.layers, self.states, self.tokens = layers, states, None if tokens is None else list(map(str, tokens))
        self.pictures, self.sequences = pictures or {}, list(sequences)
        self.findings = [] if sequences else judge(layers, states)
        self.notes = [] if sequences else list(_notes(layers))
        self.collapsed = self._has("collapse", "zero", "uniform") if not states else is_collapsed(states[-1])
        self.saturated = self._has("saturated")

    @property
    def alarms(self):
        """The findings to act on."""
        return [finding for finding in self.findings if finding.level == "alarm"]

    def _has(self, *kinds):
        return any(finding.kind in kinds and finding.level == "alarm" for finding in self.findings)

    def __str__(self):
        lines = [f"- {finding}" for finding in self.findings]
        if not self.alarms:
            calm = f"No alarm: nothing stands out in what was given ({self._given()})."
            told = f"No alarm in what was given ({self._given()}). {_count(len(self.findings), 'thing')} to know:"
            lines.insert(0, f"- {told if self.findings else calm}")
        return "\n".join(lines + [f"- {note}" for note in self.notes])

    __repr__ = __str__

    def _given(self):
        heads = sum(layer["n_heads"] for layer in self.layers)
        weights = f"weights of {_count(heads, 'head')} in {_count(len(self.layers), 'layer')}"
        states = f", {_count(len(self.states), 'state')}" if self.states else "; no states"
        return weights + states + (f"; {len(self.sequences)} sequences" if self.sequences else "")

    def to_dict(self, pictures=False):
        """Everything as what json.dumps takes; the pictures only when asked for, {"layer,head": rows}."""
        shown = {f"{layer},{head}": np.round(cells.astype(float), 4).tolist()
                 for (layer, head), cells in self.pictures.items()}  # fmt: skip
        return _plain({
            **({"pictures": shown} if pictures else {}),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": self.notes, "collapsed": self.collapsed, "saturated": self.saturated, "tokens": self.tokens,
            "layers": self.layers, "states": self.states,
            "sequences": [one.to_dict(pictures) for one in self.sequences],
        })  # fmt: skip

    def plot(self):
        """Draw layers by heads, and the states over depth; returns a matplotlib Figure."""
        from attn_utils.diagnosis.drawing import draw

        return draw(self)

    def report(self, path=None, title=None):
        """One HTML page to send to a colleague, as text, and as a file where a path is given: write_report()."""
        from attn_utils.diagnosis.reports import write_report

        return write_report(self, path, title)


def _count(many, what):
    return f"{many} {what}" + ("" if many == 1 else "s")


def gather(results, numbers):
    """One Diagnosis over the sequences of a batch: means and ranges, and findings with the sequences that show them."""
    layers = [_mean_of([one.layers[i] for one in results]) for i in range(len(results[0].layers))]
    states = [_mean_of([one.states[i] for one in results]) for i in range(len(results[0].states))]
    found = Diagnosis(layers, states, results[0].tokens, results[0].pictures, results)
    groups = {}
    for number, one in zip(numbers, results, strict=True):
        for finding in one.findings:
            groups.setdefault((finding.level, finding.kind), []).append((number, finding))
    for (_, _), members in sorted(groups.items(), key=lambda item: item[0][0] != "alarm"):
        finding = members[0][1]
        finding.sequences = sorted({number for number, _ in members})
        few = len(finding.sequences) < len(results)
        where = f"In {len(finding.sequences)} of {len(results)} sequences, first in sequence {finding.sequences[0]}: "
        every = "both" if len(results) == 2 else f"all {len(results)}"
        finding.text = (where if few else f"In {every} sequences, such as the first: ") + finding.text
        found.findings.append(finding)
    found.notes = list(_notes_of_batch(results, numbers))
    found.collapsed = any(one.collapsed for one in results)
    found.saturated = any(one.saturated for one in results)
    return found


def _notes_of_batch(results, numbers):
    """The notes of all sequences, with those that they hold for, where it is not all."""
    groups = {}
    for number, one in zip(numbers, results, strict=True):
        for note in one.notes:
            groups.setdefault(note, []).append(number)
    for note, places in groups.items():
        few = len(places) < len(results)
        shown = ", ".join(map(str, places[:6])) + (" and more" if len(places) > 6 else "")
        yield (f"In sequence{'s' * (len(places) > 1)} {shown}: " if few else "") + note


def _mean_of(parts):
    """One dict out of those of several sequences: floats become means, with their range beside them."""
    first, found, span = parts[0], {}, {}
    for name, value in first.items():
        each = [part.get(name, value) for part in parts]
        if isinstance(value, float):
            numbers = np.array(each, float)
            known = numbers[np.isfinite(numbers)]
            found[name] = float(known.mean()) if len(known) else value
            span[name] = [float(known.min()), float(known.max())] if len(known) else [np.nan, np.nan]
        elif name == "heads":
            found[name] = [_mean_of([part["heads"][h] for part in parts]) for h in range(len(value))]
        else:
            found[name] = value
    return found | {"range": span}


def _notes(layers):
    """What was recognized, in words."""
    if layers[0]["T"] == layers[0]["n_keys"] == 1:
        yield "One token: there is nothing to mix, so nothing can collapse. Use a context of at least two tokens."
    elif layers[0]["T"] == 1:
        yield (
            "One query: there is no other output that it could differ from, so nothing is said of collapse. That is so "
            "in a step of decoding with a cache; run the model on the whole text."
        )
    layers = [layer for layer in layers if any(head["rows"] not in NO_WEIGHTS for head in layer["heads"])]
    causal = [layer["layer"] for layer in layers if layer["pattern"]["causal"] and layer["T"] > 1]
    if causal:
        yield (
            f"Causal weights in {name_layers(causal)}: entropy is measured against what each token may see. Their "
            "eigenvalues are the diagonal, and the theory of random Markov matrices does not cover them; do not "
            "subtract 1/T."
        )
    groups = {}
    for layer in layers:
        for words in layer["pattern"]["words"]:
            groups.setdefault(words, []).append(layer["layer"])
    for words, numbers in groups.items():
        yield f"Recognized in {name_layers(numbers)}: {words}."


def _plain(thing):
    """Lists, dicts, strings and Python numbers only; NaN and inf become None."""
    if isinstance(thing, dict):
        return {str(name): _plain(value) for name, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_plain(value) for value in thing]
    if isinstance(thing, (bool, np.bool_)):
        return bool(thing)
    if isinstance(thing, np.integer):
        return int(thing)
    if isinstance(thing, (float, np.floating)):
        return float(thing) if np.isfinite(thing) else None
    return thing
