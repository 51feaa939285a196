"""Lines over depth as SVG, for a page without scripts: what remains of the differences between tokens."""

import html

import numpy as np

LINES = {  # name of the number -> (title, class, mark)
    "rest": ("outside one direction", "one", "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0"),
    "spread": ("differs from the mean", "two", "M-4,-4h8v8h-8z"),
    "cosine": ("mean cosine", "three", "M0,-5l5,9h-10z"),
}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 340, 200, 30, 28, 10
MARKS = 20  # states; of more, the marks would run into one another


def state_lines(states):
    """An SVG figure with a caption and a legend: rest, spread and mean cosine of each state."""
    drawn = {name: [state.get(name, np.nan) for state in states] for name in LINES}
    drawn = {name: values for name, values in drawn.items() if np.isfinite(values).any()}
    if len(states) < 2 or not drawn:
        return ""
    low = min(0.0, *(np.nanmin(values) for values in drawn.values()))
    lines = "\n".join(_line(values, name, low) for name, values in drawn.items())
    legend = "".join(
        f'<li><svg width="22" height="12" viewBox="-11 -6 22 12" aria-hidden="true"><path class="line {style}" '
        f'd="M-11,0H11"/><path class="{style}" d="{mark}"/></svg>{html.escape(title)}</li>'
        for title, style, mark in (LINES[name] for name in drawn)
    )
    words = "; ".join(f"{LINES[name][0]} from {_ends(values)}" for name, values in drawn.items())
    return f"""<figure class="lines"><ul class="legend">{legend}</ul>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Lines over {len(states)} states: {html.escape(words)}">
{_axes(len(states), low)}
{lines}
</svg>
<figcaption>From the input (0) to the last state: {html.escape(words)}.</figcaption></figure>"""


def _ends(values):
    known = [value for value in values if np.isfinite(value)]
    return f"{known[0]:.2g} to {known[-1]:.2g}"


def _x(i, count):
    return LEFT + 12 + (WIDTH - LEFT - 24) * i / (count - 1)


def _y(value, low):
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (min(value, 1) - low) / (1 - low))


def _line(values, name, low):
    _, style, mark = LINES[name]
    known = [(_x(i, len(values)), _y(value, low)) for i, value in enumerate(values) if np.isfinite(value)]
    path = "L".join(f"{x:.1f},{y:.1f}" for x, y in known)
    every = -(-len(known) // MARKS)
    places = (f"translate({x:.1f} {y:.1f})" for x, y in known[::every])
    marks = "".join(f'<path class="{style}" transform="{place}" d="{mark}"/>' for place in places)
    return f'<path class="line {style}" d="M{path}"/>{marks}'


def _axes(count, low):
    step = next(step for step in (1, 2, 4, 5, 10, 20, 50, 100, 1000) if count / step <= 9)
    parts = [f'<path class="axis" d="M{LEFT},{_y(level, low):.1f}H{WIDTH}"/><text x="{LEFT - 6}" '
             f'y="{_y(level, low) + 4:.1f}" text-anchor="end">{level:g}</text>' for level in (0, 0.5, 1)]  # fmt: skip
    parts += [f'<text x="{_x(i, count):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{i}</text>'
              for i in range(0, count, step)]  # fmt: skip
    return "\n".join(parts)
