"""diagnose(): your own model's attention, and the tokens between its layers, in plain language.

    from attn_utils import diagnose
    found = diagnose(model(**inputs, output_attentions=True, output_hidden_states=True))
    print(found)                  # findings: alarms first, then what is good to know

What a Diagnosis offers, and what a report, a command or a page builds on:

    found.findings     list of Finding, alarms first. Each has kind, level ("alarm" or "note"), text, layer, head, heads
                       ([layer, head] pairs), state, number, threshold, source, advice, chapter (an address), sequences.
                       str(finding) is its text and its advice. Layers and heads count from 1; state 0 is the input
    found.alarms       those of level "alarm": what to act on; an empty list for a healthy model
    found.notes        list of str: what was recognized (causal, padding, a window) and what was left out
    found.collapsed, found.saturated    the short answers, True or False
    found.layers       a dict for each layer: layer, pattern {kind, causal, words, and where padding is left out the
                       numbers of the queries and keys that are not}, heads (list of dicts), and the means over heads of
                       entropy, survives, gap, sink
    found.layers[i]["heads"][j]    a dict: head, entropy, survives, survives_typically, sink, sink_at, to_previous,
                       distance, profile, rows ... (measures.py says what each number is). With sequence="all" the
                       numbers are means over sequences, and "range" holds {name: [least, largest]}
    found.states       a dict for each state (states.py)
    found.tokens       strings, or None
    found.pictures     {(layer, head): (n, n) array}: weights averaged into few cells, where pictures=n was asked for
    found.sequences    a Diagnosis for each sequence of a batch; [] where one was looked at
    found.to_dict()    all of that, without pictures, as what json.dumps takes (NaN and inf as None); with them after
                       to_dict(pictures=True), which the live figure of chapters 7 and 8 opens
    found.plot()       a matplotlib Figure
    found.report(path) one HTML page to send to a colleague (reports.py); made with pictures=24 it shows every pattern

The rooms: arrays (anything as NumPy), files, axes, reading (batches, states), patterns (masks, padding), rows (what
rows sum to), measures and survival (one head), states (one state), findings (thresholds), verdicts, looking (the pass
over everything), diagnosis (the result), drawing, depth and reports (pages), command (attn-diagnose), watch (for
training loops). Imports run from the last to the first.
"""

from attn_utils.diagnosis.diagnosis import Diagnosis
from attn_utils.diagnosis.findings import THRESHOLDS, Finding, Threshold
from attn_utils.diagnosis.looking import diagnose

__all__ = ["THRESHOLDS", "Diagnosis", "Finding", "Threshold", "diagnose"]
