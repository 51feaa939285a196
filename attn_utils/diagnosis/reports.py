"""The report: one HTML file that one can send to a colleague, with the findings first and a map of layers by heads.

Nothing in it asks for another address, and its own policy forbids it. Findings and tables are plain HTML; reports.js
draws the map, a head's numbers and its pattern from the JSON in the page. Every word that comes from outside, such as
a token, is escaped.
"""

import base64
import html
from importlib import resources
from pathlib import Path

import numpy as np

from attn_utils.diagnosis.depth import state_lines
from attn_utils.diagnosis.findings import THRESHOLDS
from attn_utils.labs import SITE
from attn_utils.outputs import as_json
from attn_utils.records import write_whole

MAP = {  # what the map can show: name of the number -> (title, what it means)
    "survives_typically": ("Differences that survive", "Of random differences between tokens, the share that gets "
                           "through the head: 1 for a permutation, 0 for plain averaging."),
    "entropy": ("Entropy", "Of the weights of each query, against uniform weights over the keys that it may see: "
                "1 is uniform, 0 is one key."),
    "sink": ("Strongest key", "The share of all weight that goes to the one key that gets most."),
    "to_previous": ("Previous token", "The share of the weight that goes to the token just before."),
    "to_self": ("Itself", "The share of the weight that goes to the query's own token."),
    "to_next": ("Next token", "The share of the weight that goes to the token just after."),
    "distance": ("Distance", "How many tokens away the weight lies, in the mean, against the longest distance."),
}  # fmt: skip
NUMBERS = {  # what is said of one head beside the map's numbers
    "survives": "largest factor for any difference",
    "top": "largest weight of a row (mean)",
    "gap": "spectral gap",
    "value_sink": "strongest key, times the size of its value",
    "value_sink_size": "size of that key's value (1 = median)",
    "survives_values": "differences of its values that survive",
}
SHOWS = {"sink": "sink", "saturated": "entropy", "uniform": "entropy", "same": "survives_typically"}  # kind -> map
STATES = {
    "rest": "outside one direction",
    "spread": "differs from the mean",
    "cosine": "mean cosine",
    "stable_rank": "stable rank",
    "condition": "condition number",
}
ROUND = 4  # decimals of the numbers in the page
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write_report(found, path=None, title=None):
    """The report on a Diagnosis as the text of one HTML page, written to a file where a path is given.

    found  a Diagnosis; made with pictures=24 (or another number of cells) it shows each head's pattern, too
    path   where to write it: the file appears in one step or not at all
    title  what was looked at, such as the name of the model

    Raises ValueError for a title that is no string or is empty, and OSError where the file cannot be written.
    """
    title = "Attention, diagnosed" if title is None else title
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"title is {title!r}, expected a few words that name the model, or None.")
    page = _page(found, title.strip())
    if path is not None:
        write_whole(Path(path), page)
    return page


def _page(found, title):
    parts = [_header(found, title), _findings(found), _map(found), _states(found), _recognized(found)]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{_text(title)}</title>
<style>
{_beside("reports.css")}
</style>
</head>
<body>
<main>
{chr(10).join(part for part in parts if part)}
{_reading()}
</main>
<footer><p>Made by <code>diagnose()</code> of <a href="{SITE}">Attention by Experiment</a>.
This page asks for nothing from elsewhere; the links are for you to follow.</p></footer>
<script type="application/json" id="data">{as_json(_data(found))}</script>
<script>
{_beside("reports.js")}
</script>
</body>
</html>
"""


def _beside(name):
    return (resources.files("attn_utils.diagnosis") / name).read_text("utf8").rstrip("\n")


def _text(words):
    return html.escape(str(words))


def _count(many, what):
    return f"{many:,} {what}" + ("" if many == 1 else "s")


def _header(found, title):
    first = found.layers[0]
    tokens = _count(first["T"], "token")
    if first["T"] != first["n_keys"]:
        tokens = f"{_count(first['T'], 'query').replace('querys', 'queries')}, {_count(first['n_keys'], 'key')}"
    heads = sum(layer["n_heads"] for layer in found.layers)
    given = [_count(len(found.layers), "layer"), _count(heads, "head"), tokens]
    given += [_count(len(found.states), "state")] if found.states else ["no states given"]
    given += [_count(len(found.sequences), "sequence")] if found.sequences else []
    alarms, notes = len(found.alarms), len(found.findings) - len(found.alarms)
    state = "alarm" if alarms else "calm"
    verdict = _count(alarms, "alarm") if alarms else "No alarm"
    more = f" and {_count(notes, 'note')}" if notes else ""
    return f"""<header>
<h1>{_text(title)}</h1>
<p class="given">{_text(" · ".join(given))}</p>
<p class="verdict {state}"><strong>{verdict}</strong>{more}</p>
</header>"""


# ------------------------------------------------------------------------- findings


def _findings(found):
    if not found.findings:
        what = "weights and states" if found.states else "weights (no states were given)"
        return f"""<section aria-labelledby="findings"><h2 id="findings">What stands out</h2>
<p>Nothing stands out in these {what}.</p></section>"""
    cards = "\n".join(_card(finding, number) for number, finding in enumerate(found.findings))
    return f"""<section aria-labelledby="findings"><h2 id="findings">What stands out</h2>
<ol class="cards">
{cards}
</ol></section>"""


def _card(finding, number):
    facts = []
    if finding.number is not None and np.isfinite(finding.number):
        facts.append(("measured", _number(finding.number)))
    if finding.threshold is not None:
        facts.append(("threshold", _number(finding.threshold)))
    if finding.source:
        facts.append(("from", finding.source))
    rows = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts)
    chapter = finding.chapter or ""
    safe = chapter.startswith("https://")
    link = f'<a href="{_text(chapter)}">The chapter on this</a>' if safe else ""
    show = f'<button type="button" class="mark" data-finding="{number}" hidden>Show on the map</button>'
    advice = f'<p class="advice"><b>What to do.</b> {_text(finding.advice)}</p>' if finding.advice else ""
    level = "alarm" if finding.level == "alarm" else "note"
    return f"""<li class="card {level}">
<p class="level">{"Alarm" if level == "alarm" else "Note"} · {_text(finding.kind)}</p>
<p class="what">{_text(finding.text)}</p>
{advice}
{f"<dl>{rows}</dl>" if rows else ""}
<p class="links">{show if finding.heads else ""}{link}</p>
</li>"""


def _number(value):
    """Three digits, as the book writes them; powers of ten where there are many; what rounding makes is only tiny."""
    if 0 < abs(value) < 1e-4:
        return "below 0.0001"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


# ------------------------------------------------------------------------- the map


def _map(found):
    measures = _measures(found)
    choices = "\n".join(
        f'<label><input type="radio" name="measure" value="{name}"{" checked" * (i == 0)}> {_text(title)}</label>'
        for i, (name, title) in enumerate(measures.items())
    )
    note = ""
    if found.sequences:
        many = _count(len(found.sequences), "sequence")
        note = f"<p>Numbers are means over {many}; patterns are those of the first.</p>"
    return f"""<section aria-labelledby="map"><h2 id="map">Layers by heads</h2>
<noscript><p>The map and the patterns need scripts; the findings above and the table below do not.</p></noscript>
{note}
<div id="stage" hidden>
<fieldset id="measures"><legend>Color shows</legend>
{choices}
</fieldset>
<p id="meaning"></p>
<div class="side">
<div class="left">
<div id="grid" role="grid" aria-label="Heads, layers from top to bottom"></div>
<div class="scale" aria-hidden="true"><span id="low">0</span><canvas id="ramp" width="128" height="1"></canvas>
<span id="high">1</span></div>
<p class="hint">Tap a head, or move with the arrow keys.</p>
</div>
<div id="head" role="region" aria-label="The chosen head"></div>
</div>
</div>
<details><summary>The means of each layer</summary>
{_layer_table(found)}
</details>
</section>"""


def _measures(found):
    """What the map can show of this Diagnosis: name -> title."""
    heads = [head for layer in found.layers for head in layer["heads"]]
    there = {name: title for name, (title, _) in MAP.items()
             if any(np.isfinite(head.get(name, np.nan)) for head in heads)}  # fmt: skip
    if all(layer["pattern"]["causal"] for layer in found.layers):
        there.pop("to_next", None)
    return there | ({"pattern": "Patterns"} if found.pictures else {})


def _layer_table(found):
    names = [name for name in ("survives_typically", "entropy", "sink") if name in found.layers[0]]
    titles = ["layer", *(MAP[name][0].lower() for name in names), "pattern"]
    rows = [[layer["layer"], *(_cell(layer[name]) for name in names), layer["pattern"]["kind"]]
            for layer in found.layers]  # fmt: skip
    return _table(titles, rows)


def _table(titles, rows):
    head = "".join(f'<th scope="col">{_text(title)}</th>' for title in titles)
    body = "\n".join(
        f'<tr><th scope="row">{_text(first)}</th>' + "".join(f"<td>{_text(cell)}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return f'<div class="wide" tabindex="0" role="region" aria-label="{_text(", ".join(titles[:3]))} and more"><table>\
<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _cell(value):
    return "–" if value is None or not np.isfinite(value) else _number(value)


# ------------------------------------------------------------------------- states, words, thresholds


def _states(found):
    if not found.states:
        return ""
    names = [name for name in STATES if name in found.states[0]]
    rows = [[number, *(_cell(state[name]) for name in names), _massive(state)]
            for number, state in enumerate(found.states)]  # fmt: skip
    table = _table(["state", *(STATES[name] for name in names), "largest entry, × median"], rows)
    return f"""<section aria-labelledby="states"><h2 id="states">The tokens between the layers</h2>
{state_lines(found.states)}
<details><summary>The numbers of each state</summary>
{table}
</details></section>"""


def _massive(state):
    return _cell(state["massive"]["times"]) if state.get("massive") else "–"


def _recognized(found):
    if not found.notes:
        return ""
    items = "\n".join(f"<li>{_text(note)}</li>" for note in found.notes)
    return f"""<section aria-labelledby="notes"><h2 id="notes">What was recognized</h2>
<ul>
{items}
</ul></section>"""


def _reading():
    rows = [[name, _number(one.bound), one.reason, one.source] for name, one in THRESHOLDS.items()]
    table = _table(["verdict", "bound", "why there", "from"], rows)
    meanings = "\n".join(f"<dt>{_text(title)}</dt><dd>{_text(what)}</dd>" for title, what in MAP.values())
    return f"""<section aria-labelledby="reading"><h2 id="reading">How to read this</h2>
<p>An <b>alarm</b> is something to act on; a <b>note</b> is good to know, and healthy models show it as well. Layers and
heads count from 1; state 0 is the input. Nothing is said about what was not given.</p>
<details><summary>What the numbers mean</summary>
<dl class="meanings">
{meanings}
</dl></details>
<details><summary>The thresholds, and where they come from</summary>
{table}
</details></section>"""


# ------------------------------------------------------------------------- data for the script


def _data(found):
    measures = _measures(found)
    names = [*(name for name in MAP if name in measures), *NUMBERS]
    longest = max(max(layer["n_keys"] for layer in found.layers) - 1, 1)
    return {
        "measures": {name: {"title": title, "meaning": MAP[name][1] if name in MAP else PATTERNS}
                     for name, title in measures.items()},
        "numbers": NUMBERS,
        "longest": longest,
        "layers": [[_head(head, names) for head in layer["heads"]] for layer in found.layers],
        "findings": [{"heads": finding.heads, "shows": SHOWS.get(finding.kind)} for finding in found.findings],
        "pictures": {f"{layer},{head}": _picture(cells) for (layer, head), cells in found.pictures.items()},
        "tokens": _axis_tokens(found),
        "sizes": [[layer["T"], layer["n_keys"]] for layer in found.layers],
        "real": [_real(layer) for layer in found.layers],
    }  # fmt: skip


PATTERNS = (
    "Each square is one head's weights, queries from top to bottom and keys from left to right: the further from the "
    "paper's color, the larger. What is shown is the root, so that small weights can be seen."
)


def _head(head, names):
    """What the page knows of one head: its numbers by name, without those that it does not have."""
    known = {name: round(float(head[name]), ROUND) for name in names if np.isfinite(head.get(name, np.nan))}
    known |= {"at": head["sink_at"], "profile": [[part["from"], part["to"], round(part["weight"], ROUND)]
                                                 for part in head.get("profile", [])]}  # fmt: skip
    if head.get("sink_token") is not None:
        known["token"] = str(head["sink_token"])
    if head.get("rows") not in ("weights", None):
        known["rows"] = str(head["rows_say"])
    if head.get("range"):
        known["range"] = {name: [round(float(end), ROUND) for end in ends] for name, ends in head["range"].items()
                          if name in known and np.isfinite(ends).all()}  # fmt: skip
    return known


def _picture(cells):
    """[rows, columns, largest weight, the roots of the weights as bytes in base64]: small weights stay visible."""
    cells = np.nan_to_num(np.asarray(cells, np.float64)).clip(0)
    largest = float(cells.max(initial=0))
    levels = np.sqrt(cells / largest) * 255 if largest > 0 else cells
    packed = base64.b64encode(levels.round().astype(np.uint8).tobytes()).decode()
    return [*cells.shape, float(f"{largest:.3g}"), packed]


def _axis_tokens(found):
    """The tokens for the axes; none where weights are between two sequences, so that one list cannot name both."""
    return found.tokens if found.tokens and all(layer["T"] == layer["n_keys"] for layer in found.layers) else None


def _real(layer):
    """The numbers of the queries and of the keys that a picture shows, where padding was left out; else None."""
    kept = [layer["pattern"].get(name) for name in ("queries", "keys")]
    if kept == [None, None]:
        return None
    return [numbers or list(range(1, layer[size] + 1)) for numbers, size in zip(kept, ("T", "n_keys"), strict=True)]
