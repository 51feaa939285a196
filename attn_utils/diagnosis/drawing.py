"""The picture of a Diagnosis: layers by heads, and the states over depth."""

import numpy as np

PANELS = {
    "survives_typically": ("What survives of differences", "cividis"),
    "entropy": ("Entropy (1 = uniform)", "cividis"),
    "sink": ("Weight on the strongest key", "cividis"),
}
LINES = {"survives_typically": ("survives of differences", "o-", "blue"), "entropy": ("entropy", "s-", "orange"),
         "sink": ("strongest key", "^-", "green")}  # fmt: skip
STATES = {"rest": ("outside one direction", "o-", "blue"), "spread": ("differs from the mean", "v-", "purple"),
          "cosine": ("mean cosine", "^-", "green")}  # fmt: skip


def draw(found):
    """Three maps of layers (down) by heads (across), or lines where each layer has one head, and one of the states."""
    import matplotlib.pyplot as plt

    heads = max(layer["n_heads"] for layer in found.layers)
    maps = list(PANELS) if heads > 1 else [None]
    count = len(maps) + bool(found.states)
    heights = [_height(len(found.layers), heads) if name else 2.4 for name in maps] + [2.4] * bool(found.states)
    figure, axes = plt.subplots(count, 1, figsize=(4, sum(heights) + 0.2), constrained_layout=True, squeeze=False,
                                height_ratios=heights)  # fmt: skip
    for ax, name in zip(axes[:, 0], maps, strict=False):
        _draw_map(figure, ax, found, name, heads) if name else _draw_lines(ax, found)
    if found.states:
        _draw_states(axes[-1, 0], found.states, heads > 1)
    return figure


def _height(layers, heads):
    return float(np.clip(0.7 + 3.1 * layers / heads, 1.3, 4.2))


def _grid(found, name, heads):
    grid = np.full((len(found.layers), heads), np.nan)
    for i, layer in enumerate(found.layers):
        grid[i, : layer["n_heads"]] = [head[name] for head in layer["heads"]]
    return grid


def _draw_map(figure, ax, found, name, heads):
    from matplotlib.ticker import MaxNLocator

    title, cmap = PANELS[name]
    grid = np.clip(_grid(found, name, heads), 0, 1)
    extent = (0.5, heads + 0.5, len(grid) + 0.5, 0.5)  # layers and heads counted from 1
    image = ax.imshow(grid, cmap=cmap, vmin=0, vmax=1, aspect="auto", extent=extent, interpolation="nearest")
    ax.set(title=title, xlabel="head", ylabel="layer")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    figure.colorbar(image, ax=ax, ticks=[0, 0.5, 1])


def _draw_lines(ax, found):
    from matplotlib.ticker import MaxNLocator

    from attn_utils.figures import COLORS

    depth = [layer["layer"] for layer in found.layers]
    for name, (label, style, color) in LINES.items():
        ax.plot(depth, np.clip([layer[name] for layer in found.layers], 0, 1), style, color=COLORS[color], label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="layer", ylim=(-0.03, 1.03), title="Weights")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.12), ncols=2)


def _draw_states(ax, states, below_maps):
    from matplotlib.ticker import MaxNLocator

    from attn_utils.figures import COLORS

    for name, (label, style, color) in STATES.items():
        ax.plot([state[name] for state in states], style, ms=4, color=COLORS[color], label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="state (0 = input)", ylim=(min(-0.03, *ax.get_ylim()), 1.03), title="Tokens")
    left = {"loc": "lower left", "bbox_to_anchor": (-0.11, 1.12)}  # maps have their color bars on the right
    ax.legend(**left if below_maps else {"loc": "lower center", "bbox_to_anchor": (0.5, 1.12)}, ncols=2)
