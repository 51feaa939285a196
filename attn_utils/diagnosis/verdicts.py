"""From numbers to findings: what stands out, how bad it is, and what people do about it."""

import numpy as np

from attn_utils.diagnosis.findings import THRESHOLDS, make_finding

SKIP = "A skip connection around each part keeps the differences in the sum."
SHOWN = 6  # heads that a sentence names
TINY = 1e-4  # below, rounding may decide
FEW = 8  # of fewer queries than this, some key gets much by chance: a sink has to take nearly all, of four or more
ALL_AT_ONE = 0.9  # a head of low entropy with more on one key rests there; with less, its other queries look elsewhere


def is_sink(head):
    """Whether one key takes more than the threshold, and more than uniform weights would explain."""
    if head.get("queries", FEW) < FEW:
        return bool(head["queries"] >= FEW // 2 and head["sink"] > ALL_AT_ONE)
    bound, expected = THRESHOLDS["sink"].bound, head["sink_expected"]
    return bool(head["sink"] > bound and (head["sink"] - expected) > bound * (1 - expected))


def is_uniform(head):
    """Whether the scores behind a head hardly vary within a row."""
    return bool(np.sqrt(2 * head["evenness_lost"]) < THRESHOLDS["uniform"].bound)


def is_saturated(head):
    """Whether nearly every query looks at one key, and not all at the same one.

    Sharp scores may send a third of all queries to the same key, by chance: that makes a sink of no saturated head.
    """
    return bool(head["entropy"] < THRESHOLDS["saturated"].bound and head["sink"] <= ALL_AT_ONE)


def is_same(head):
    """Whether all queries get the same answer, though the weights are not uniform and no sink takes them."""
    low = head["survives"] < THRESHOLDS["same"].bound
    return bool(low and not is_sink(head) and not is_uniform(head))


def is_collapsed(state):
    """Whether the differences between tokens are gone: all zero, or all on one line."""
    return bool(state["zero"] or state["rest"] < THRESHOLDS["rest"].bound)


def judge(layers, states):
    """The findings of one sequence, alarms first."""
    collapsed = bool(states) and is_collapsed(states[-1])
    found = [*_about_rows(layers), *_about_states(states), *_about_uniform(layers, bool(states), collapsed)]
    found += [*_about_saturation(layers), *_about_dead(layers), *_about_sinks(layers), *_about_same(layers)]
    return sorted(found, key=_order)


def _order(finding):
    return finding.level != "alarm"


# ------------------------------------------------------------------------- weights


def _about_rows(layers):
    """Rows that do not sum to one, grouped by what they are."""
    groups = {}
    dropped = [head["row_sums"][1] for _, head in _heads(layers) if head["rows"] == "dropout"]
    for layer, head in _heads(layers):
        if head["rows"] not in ("weights", None):
            kind = "dropout" if dropped and _spared(head, max(dropped)) else head["rows"]
            groups.setdefault(kind, []).append((layer, head))
    for kind, members in groups.items():
        head = next(head for _, head in members if head["rows"] == kind)
        where = _where(members)
        name = "dropout" if kind == "dropout" else "rows"
        level = "note" if kind in ("less than one", "scaled") else "alarm"
        what = "Dropout is on" if kind == "dropout" else "Rows that do not sum to one"
        text = f"{what} in {where}: {head['rows_say']}."
        yield make_finding(name, level, text, **_places(members), number=head["row_sums"][1], advice=head["rows_cure"])


def _spared(head, most):
    """Whether sums are as dropout leaves them where it hit few weights of a head, or none: 1 / (1 - rate) or less."""
    low, high = head["row_sums"]
    return head["rows"] in ("scaled", "not weights", "less than one") and 0 <= low and high <= most * 1.001


def _about_uniform(layers, with_states, collapsed):
    whole, single = _split(layers, is_uniform, 1.0)
    most = 2 * len({layer["layer"] for layer, _ in whole}) > len(layers)  # a single such layer is often just fresh
    for members, all_heads in ((whole, True), (single, False)):
        if not members:
            continue
        alarm = all_heads and (collapsed if with_states else most) and layers[0]["T"] != 1  # nothing to differ from
        worst = max(head["survives"] for _, head in members)
        text = f"Uniform weights in {_where(members)}: the scores hardly vary"
        if all_heads and not layers[0]["pattern"]["causal"] and np.isfinite(worst):
            text += f", and {'at most ' * (worst > TINY)}{_small(worst)} of the differences between tokens gets through"
        advice = ""
        if alarm and not with_states:
            advice = f"Without a skip connection tokens are alike after such a layer; pass the states to see. {SKIP}"
        yield make_finding("uniform", "alarm" if alarm else "note", text + ".", "uniform", **_places(members),
                           number=_spread(members), advice=advice)  # fmt: skip


def _about_saturation(layers):
    whole, single = _split(layers, is_saturated, 0.5)
    low = THRESHOLDS["saturated"].bound
    if whole:
        entropy = min(head["entropy"] for _, head in whole)
        text = (
            f"Saturated weights (entropy collapse) in {_where(whole)}: each query looks at one key (entropy "
            f"{_small(entropy)} of the largest possible, where {low:g} is the bound), and the softmax passes hardly "
            "any gradient."
        )
        advice = "Make the scores smaller: scale by 1/sqrt(d_k), normalize queries and keys, or lower the rate."
        yield make_finding("saturated", "alarm", text, "saturated", **_places(whole), number=entropy, advice=advice)
    if single:
        text = f"Single heads look at one key per query: {_where(single, jobs=True)}."
        yield make_finding("saturated", "note", text, "saturated", **_places(single),
                           number=min(head["entropy"] for _, head in single))  # fmt: skip


def _about_sinks(layers):
    saturated, _ = _split(layers, is_saturated, 0.5)  # a favorite key of a saturated layer is no place to rest
    sharp = {(layer["layer"], head["head"]) for layer, head in saturated}
    members = [(layer, head) for layer, head in _heads(layers)
               if is_sink(head) and (layer["layer"], head["head"]) not in sharp]  # fmt: skip
    keys = {}
    for layer, head in members:
        keys.setdefault(head["sink_at"], []).append((layer, head))
    for at, group in sorted(keys.items(), key=lambda item: -len(item[1]))[:3]:
        mass = float(np.median([head["sink"] for _, head in group]))
        total = sum(len(layer["heads"]) for layer in layers)
        text = f"Attention sink: {_give(group, total, mass)} to {_token(group[0][1], at)}: {_where(group)}."
        light = [head["value_sink_size"] for _, head in group if np.isfinite(head.get("value_sink_size", np.nan))]
        if light:
            text += f" Its value is {np.median(light):.2g} times as long as the median one."
        advice = (
            "This is no collapse. Keep that token in a cache or a window; train with a sink logit or a gate to go "
            "without."
        )
        yield make_finding("sink", "note", text, "sink", **_places(group), number=mass, advice=advice)


def _about_dead(layers):
    members = []
    for layer in layers:
        sizes = [head.get("output_size", np.nan) for head in layer["heads"]]
        typical = np.nanmedian(sizes) if np.isfinite(sizes).any() else np.nan
        for head, size in zip(layer["heads"], sizes, strict=True):
            if head["empty"] or size < THRESHOLDS["dead"].bound * typical:
                members.append((layer, head))
    if members:
        text = f"Dead heads, that write next to nothing: {_where(members)}."
        advice = "Look for a mask that hides everything, or a gate or value matrix at zero; such heads can be pruned."
        yield make_finding("dead", "alarm", text, "dead", **_places(members), advice=advice)


def _about_same(layers):
    members = [(layer, head) for layer, head in _heads(layers) if is_same(head)]
    if members:
        worst = min(head["survives"] for _, head in members)
        text = f"All queries get the same answer in {_where(members)}: {_small(worst)} of the differences gets through."
        yield make_finding("same", "note", text, "same", **_places(members), number=worst)


# ------------------------------------------------------------------------- states


def _about_states(states):
    if not states:
        return
    last, first = states[-1], states[0]
    if last["zero"]:
        yield make_finding("zero", "alarm", "The last tokens are all zero: nothing is left to measure.",
                           state=len(states) - 1, advice="Look for an underflow, or rescale each layer.")  # fmt: skip
        return
    gone = [i for i, state in enumerate(states) if is_collapsed(state)]
    if gone:
        yield _collapse(states, gone)
    elif last["cosine"] > THRESHOLDS["alike"].bound:
        text = (
            f"The last tokens point the same way (mean cosine {last['cosine']:.2f}), yet they differ: "
            f"{last['spread']:.2g} of them is not their mean."
        )
        yield make_finding("alike", "note", text, "alike", state=len(states) - 1, number=last["cosine"])
    if last["weak_directions"] > THRESHOLDS["condition"].bound and not gone:
        yield _ill_conditioned(last, first, states)
    yield from _about_massive(states)


def _collapse(states, gone):
    worst = states[gone[-1]]
    since = "already at the input" if gone[0] == 0 else f"from state {gone[0]} on (0 is the input)"
    text = (
        f"Rank collapse {since}: of the tokens, each scaled to length 1, {_small(worst['rest'])} lies outside one "
        f"direction, and {_small(worst['spread'])} differs from their mean."
    )
    if gone[-1] < len(states) - 1:
        text = text.replace(" on (0", f" to {gone[-1]} (0") + " Later states differ again."
    cause = "The tokens that enter are all alike; look at the embedding." if gone[0] == 0 else SKIP
    return make_finding("collapse", "alarm", text, "rest", state=gone[0], number=worst["rest"], advice=cause)


def _ill_conditioned(last, first, states):
    text = (
        f"Ill-conditioned tokens: at the last state a tenth of the directions are {_power(last['weak_directions'])} "
        f"times weaker than the first (at the input: {_power(first['weak_directions'])}). float32 carries about seven "
        "digits."
    )
    advice = "Keep the skip around attention, normalize, or precondition the tokens (Token Graying)."
    return make_finding("condition", "alarm", text, "condition", state=len(states) - 1, number=last["weak_directions"],
                        advice=advice)  # fmt: skip


def _about_massive(states):
    where = [i for i, state in enumerate(states) if state["massive"] and _is_massive(state)]
    if where:
        top = max(where, key=lambda i: states[i]["massive"]["times"])
        one = states[top]["massive"]
        text = (
            f"Massive activations in states {where[0]} to {where[-1]}: at state {top}, feature {one['feature']} of "
            f"token {one['token']} is {one['value']:.3g}, {one['times']:.2g} times the median entry."
        )
        advice = "They come with attention sinks; quantize per token, or leave these features in higher precision."
        yield make_finding("massive", "note", text, "massive", state=top, number=one["times"], advice=advice)


def _is_massive(state):
    return THRESHOLDS["massive"].bound < state["massive"]["times"] < np.inf


# ------------------------------------------------------------------------- words


def _heads(layers):
    return [(layer, head) for layer in layers for head in layer["heads"]]


def _split(layers, is_so, share):
    """(heads of layers where at least, or more than, so large a share of heads is so; single ones elsewhere)."""
    whole, single = [], []
    for layer in layers:
        members = [(layer, head) for head in layer["heads"] if is_so(head)]
        many = len(members) / len(layer["heads"])
        (whole if many > share or many == 1 else single).extend(members)
    return whole, single


def _spread(members):
    return max(float(np.sqrt(2 * head["evenness_lost"])) for _, head in members)


def _places(members):
    pairs = [[layer["layer"], head["head"]] for layer, head in members]
    layers = {layer for layer, _ in pairs}
    return {
        "heads": pairs,
        "layer": pairs[0][0] if len(layers) == 1 else None,
        "head": pairs[0][1] if len(pairs) == 1 else None,
    }


def _where(members, jobs=False):
    """'layer 2', 'layers 1 to 4', or 'heads 1.3, 2.9 and 5 more' (layer.head)."""
    numbers = {}
    for layer, head in members:
        numbers.setdefault(layer["layer"], [layer, []])[1].append(head)
    if all(len(heads) == len(layer["heads"]) for layer, heads in numbers.values()):
        return name_layers(list(numbers))
    shown = [f"{layer['layer']}.{head['head']}" + (_job(head) if jobs else "") for layer, head in members[:SHOWN]]
    more = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return f"{'head' if len(members) == 1 else 'heads'} {', '.join(shown)}{more}"


def _job(head):
    jobs = {"to_previous": "the previous token", "to_self": "itself", "to_next": "the next token"}
    return next((f" ({name})" for key, name in jobs.items() if head.get(key, 0) > 0.8), "")


def name_layers(numbers):
    """'layer 3', 'layers 1 to 4' or 'layers 1, 3'."""
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    run = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    return "layers " + (f"{numbers[0]} to {numbers[-1]}" if run else ", ".join(map(str, numbers)))


def _give(group, total, mass):
    if len(group) > 1:
        return f"{len(group)} of {total} heads give {mass:.0%} of their weight (median)"
    return f"{'the only head' if total == 1 else f'1 of {total} heads'} gives {mass:.0%} of its weight"


def _token(head, at):
    return f"token {at}" + (f" ({head['sink_token']!r})" if head.get("sink_token") else "")


def _small(share):
    """A share as text; where rounding may decide, only that it is tiny."""
    return f"{share:.2g}" if share > TINY else "less than 0.0001"


def _power(number):
    return f"about 10^{np.log10(number):.0f}" if number < 1e6 else "above 10^6"
