"""diagnose(): a model's attention, and the tokens between its layers, described in plain language."""

import numpy as np

from attn_utils.inputs import as_floating, finite_matrix
from attn_utils.leading import singular_values
from attn_utils.spectra import (
    ROW_SUM,
    condition_number,
    entropy,
    spectral_gap,
    stable_rank,
    stable_rank_gram,
    token_cosine,
    token_spread,
)

THRESHOLDS = {
    "gap": (0.9, "above .9, differences between tokens leave the layer at most a tenth as large, relative to the mean"),
    "entropy_high": (0.95, "above .95 of ln T, the weights are close to plain averaging"),
    "entropy_low": (0.1, "below .1 of ln T, nearly every query looks at one key: next to no gradient passes"),
    "cosine": (0.9, "above .9, the tokens lie within about 26 degrees of each other"),
    "rank": (1.1, "below 1.1 for X X^T, all other directions together weigh a tenth of the first, in fourth powers"),
    "condition": (1e4, "above 10^4, float32 keeps three of its seven digits in the weakest direction"),
}


def diagnose(weights_or_model_fn, X=None):
    """Look at attention weights, and the tokens between them, for rank collapse and its opposite.

    weights_or_model_fn  weights (T, T), or a stack (n_layers, T, T) or (n_layers, n_heads, T, T), or a list with one
                         array for each layer; or a function model(X) that returns such weights, or a tuple
                         (weights, states) with states a list of token matrices (T, d), states[0] being the input
    X                    with weights: tokens (T, d), or a list of them; with a function: its input

    Returns a Diagnosis: print it for findings in plain language. `.layers` holds a dict of numbers for each layer's
    weights (means over heads, and each head's), `.states` one for each token matrix, `.findings` the sentences,
    `.collapsed` (of the last tokens; of the weights where none are given) and `.frozen` the short answers, and
    `.plot()` draws it all over depth.
    The thresholds stand in THRESHOLDS with their reasons.
    Causal weights, rows that do not sum to one and a single token are recognised and said so. Entropy is that of the
    rows that sum to one, against ln T (of what each row may see in a causal layer; other masks are not recognised).
    Raises ValueError for NaN (naming layer and head), weights that are not square or of differing T, an empty stack,
    tokens that do not fit, or a function that returns something else.

    Source: chapter 4 derives each measure.
    """
    weights, states = _run_model(weights_or_model_fn, X)
    layers = [_describe_weights(layer, i) for i, layer in enumerate(_as_layers(weights), 1)]
    states = [_as_tokens(state, i) for i, state in enumerate(states)]
    if any(len(state) != layers[0]["T"] for state in states):
        raise ValueError(
            f"the weights are for {layers[0]['T']} tokens, the token matrices have {[len(state) for state in states]}, "
            "expected the same number. Pass tokens as (T, d), one row a token."
        )
    return Diagnosis(layers, [_describe_tokens(state) for state in states])


class Diagnosis:
    """What diagnose() found: numbers for each layer and state, sentences, and a plot."""

    def __init__(self, layers, states):
        self.layers, self.states = layers, states
        self.findings = [*_about_form(layers), *_about_weights(layers), *_about_tokens(states)]
        self.collapsed = _is_collapsed(states[-1]) if states else any(map(_has_gap, layers))
        self.frozen = any(map(_is_frozen, layers))

    def __str__(self):
        found = self.findings or [
            "Nothing stands out: the tokens stay distinct and the weights neither flat nor frozen."
        ]
        return "\n".join("- " + finding for finding in found)

    __repr__ = __str__

    def plot(self):
        """Draw gap and entropy for each layer, cosine and stable ranks for each state; returns the Figure."""
        return _plot(self)


def _run_model(given, X):
    if not callable(given):
        return given, [] if X is None else _as_states(X)
    result = given(X)
    if not isinstance(result, tuple):
        return result, [] if X is None else _as_states(X)
    if len(result) != 2 or not isinstance(result[1], (list, tuple, np.ndarray)) or _looks_like_weights(result[1]):
        shapes = ", ".join(str(getattr(part, "shape", type(part).__name__)) for part in result)
        raise ValueError(
            f"the function returned a tuple of ({shapes}), expected the weights alone or (weights, states) with states "
            "a list of token matrices. For attention(), which returns (output, weights), return the second: "
            "lambda X: attention(X, X, X)[1]. Put the weights of several layers into a list."
        )
    return result[0], _as_states(result[1])


def _looks_like_weights(part):
    """Whether what should be tokens is square, nowhere negative and has rows summing to one."""
    part = np.asarray(part) if isinstance(part, np.ndarray) else np.empty(0)
    square = part.ndim >= 2 and part.shape[-1] == part.shape[-2] and part.shape[-1] > 1 and part.dtype.kind in "biuf"
    return bool(square and (part >= 0).all() and np.abs(part.sum(-1) - 1).max() < 1e-3)


def _as_states(X):
    """A list of token matrices from one, a stack or a list."""
    X = _from_rows(X)
    if isinstance(X, (list, tuple)):
        return list(X)
    X = np.asarray(X)
    return list(X) if X.ndim == 3 else [X]


def _as_tokens(state, number):
    """One token matrix (T, d), checked."""
    state = as_floating(state, f"the token matrix of state {number}")
    if state.ndim != 2:
        raise ValueError(
            f"the token matrix of state {number} has shape {state.shape}, expected (T, d). Pass one sequence at a time."
        )
    return finite_matrix(state, f"the token matrix of state {number}")


def _from_rows(given):
    """A matrix written as a list of rows of numbers, as an array; anything else as it is."""
    rows = isinstance(given, (list, tuple)) and len(given) and all(isinstance(row, (list, tuple)) for row in given)
    if not rows or any(np.ndim(cell) for row in given for cell in row):
        return given
    if len({len(row) for row in given}) > 1:
        raise ValueError(f"rows of {sorted({len(row) for row in given})} numbers, expected rows of equal length.")
    return np.array(given)


def _as_layers(weights):
    """Weights as a list with an array (n_heads, T, T) for each layer."""
    weights = _from_rows(weights)
    if not isinstance(weights, (list, tuple)):
        weights = np.asarray(weights)
        weights = [weights] if weights.ndim == 2 else list(weights) if weights.ndim in (3, 4) else [weights]
    layers = [_as_layer(layer, i) for i, layer in enumerate(weights, 1)]
    layers = [layer[None] if layer.ndim == 2 else layer for layer in layers]
    if not layers or any(layer.ndim != 3 or layer.shape[1] != layer.shape[2] or not layer.size for layer in layers):
        raise ValueError(
            f"the weights have the shapes {[layer.shape for layer in layers]}, expected (T, T), (n_layers, T, T), "
            "(n_layers, n_heads, T, T) or a list of layers. Take one sequence out of a batch first: weights[:, 0]."
        )
    if len({layer.shape[-1] for layer in layers}) > 1:
        raise ValueError(
            f"the layers have T = {[layer.shape[-1] for layer in layers]}, expected the same number of tokens in all. "
            "Diagnose layers of differing T one by one."
        )
    return layers


def _as_layer(layer, number):
    if layer is None or isinstance(layer, dict) or np.ndim(np.asarray(layer, dtype=object)) == 0:
        raise ValueError(
            f"the weights of layer {number} are of type {type(np.asarray(layer)[()]).__name__}, expected an array "
            "(T, T) or (n_heads, T, T), or a list of such arrays. Does the model function return its weights?"
        )
    return as_floating(layer, f"the array of weights of layer {number}")


def _describe_weights(weights, number):
    """Numbers of one layer's weights (n_heads, T, T), averaged over heads where not said otherwise."""
    _no_nan(weights, number)
    weights = weights.astype(np.float64)
    T = weights.shape[-1]
    causal = bool(np.tril(weights, -1).any() and not np.triu(weights, 1).any())  # a diagonal matrix is not causal
    values = singular_values(weights, min(2, T))  # (n_heads, 1 or 2)
    mask = np.tril(np.ones((T, T), bool)) if causal else None
    first, second = values[:, 0].mean(), values[:, 1].mean() if T > 1 else np.nan
    gaps = spectral_gap(weights) if T > 1 else np.full(len(weights), np.nan)  # (n_heads,)
    evenness = np.array([_mean_entropy(head, mask) for head in weights])  # (n_heads,)
    return {
        "layer": number,
        "T": T,
        "heads": len(weights),
        "causal": causal,
        "row_sums": (float(weights.sum(-1).min()), float(weights.sum(-1).max())),
        "s1": float(first),
        "s2": float(second),
        "gap": float(gaps.mean()),
        "entropy": float(evenness.mean()),
        "gap_by_head": gaps.tolist(),
        "entropy_by_head": evenness.tolist(),
    }


def _mean_entropy(weights, mask):
    """Mean over those rows of one head that sum to one and have a choice; nan where there are none."""
    rows = (weights >= 0).all(-1) & (np.abs(weights.sum(-1) - 1) < ROW_SUM)  # (T,)
    if mask is not None:
        rows[0] = False  # the first token of a causal head sees itself only
    if len(weights) == 1 or not rows.any():
        return np.nan
    return entropy(weights[rows], None if mask is None else mask[rows]).mean()


def _no_nan(weights, number):
    bad = ~np.isfinite(weights.astype(float)).all((-2, -1))  # (n_heads,)
    if bad.any():
        raise ValueError(
            f"the weights of layer {number} contain NaN or inf (heads {', '.join(map(str, np.flatnonzero(bad)))}), "
            "expected finite numbers. A row with every place masked often turns into NaN: look at the mask first."
        )


def _describe_tokens(X):
    """Numbers of one token matrix (T, d)."""
    one = len(X) == 1
    return {
        "zero": not X.any(),
        "stable_rank": stable_rank(X),
        "stable_rank_gram": stable_rank_gram(X),
        "condition": condition_number(X),
        "cosine": np.nan if one else token_cosine(X),
        "spread": np.nan if one else token_spread(X),
    }


def _has_gap(layer):
    return layer["gap"] > THRESHOLDS["gap"][0]


def _is_frozen(layer):
    return layer["entropy"] < THRESHOLDS["entropy_low"][0]


def _has_low_rank(state):
    return not (np.isnan(state["cosine"]) or state["zero"]) and state["stable_rank_gram"] < THRESHOLDS["rank"][0]


def _is_collapsed(state):
    return bool(state["zero"] or _has_low_rank(state) or state["cosine"] > THRESHOLDS["cosine"][0])


def _about_form(layers):
    """Sentences on what the weights are: a single token, causal, not summing to one."""
    if layers[0]["T"] == 1:
        yield "One token: there is nothing to mix, so nothing can collapse. Use a context of at least two tokens."
    causal = [layer["layer"] for layer in layers if layer["causal"]]
    if causal:
        yield (
            f"Causal weights in {_layers(causal)}: their eigenvalues are the diagonal, and the theory of random Markov "
            "matrices does not cover them. Read the singular values and the tokens, and do not subtract 1/T."
        )
    low, high = min(layer["row_sums"][0] for layer in layers), max(layer["row_sums"][1] for layer in layers)
    if max(abs(low - 1), abs(high - 1)) > ROW_SUM:
        where = _layers([layer["layer"] for layer in layers if max(abs(np.array(layer["row_sums"]) - 1)) > ROW_SUM])
        yield (
            f"Rows sum to between {low:.3g} and {high:.3g}, not to one, in {where}: these are not softmax weights (or "
            "rows are fully masked), and no singular value is tied to 1. Thresholds on the gap are only a hint here; "
            "such rows are left out of the entropy. Are these scores? Then apply the softmax first."
        )


def _about_weights(layers):
    """Sentences on gap and entropy."""
    high, low = THRESHOLDS["entropy_high"][0], THRESHOLDS["entropy_low"][0]
    wide = list(filter(_has_gap, layers))
    if wide:
        worst = max(wide, key=lambda layer: layer["gap"])
        where, share = _layers([layer["layer"] for layer in wide]), _small(1 - worst["gap"])
        yield (
            f"Spectral gap in {where}: the second singular value is {share} of the "
            f"first (T = {worst['T']}), so that differences between tokens nearly vanish beside their mean. "
            "A skip connection keeps them in the sum."
        )
    flat = [layer["layer"] for layer in layers if layer["entropy"] > high]
    if flat:
        yield f"Nearly uniform weights in {_layers(flat)} (entropy above {high:.0%} of ln T): the scores hardly vary."
    frozen = [layer["layer"] for layer in layers if _is_frozen(layer)]
    if frozen:
        yield (
            f"Frozen weights in {_layers(frozen)} (entropy below {low:.0%} of ln T): each query looks at one key, and "
            "the softmax passes hardly any gradient. Make the scores smaller."
        )
    yield from _about_heads(layers)


def _about_heads(layers):
    """A sentence on frozen heads, and one on heads with a gap, that the mean over heads does not show."""
    for name, is_bad, what in (("entropy", _is_frozen, "Frozen"), ("gap", _has_gap, "A spectral gap in")):
        quiet = [layer for layer in layers if layer["heads"] > 1 and not is_bad(layer)]
        found = [(layer["layer"], i) for layer in quiet for i, value in enumerate(layer[f"{name}_by_head"])
                 if is_bad({name: value})]  # fmt: skip
        if found:
            shown = ", ".join(f"layer {layer} head {head}" for layer, head in found[:6])
            more = f" and {len(found) - 6} more" if len(found) > 6 else ""
            yield f"{what} single heads (counted from 0), though not their layer's mean: {shown}{more}."


def _about_tokens(states):
    """Sentences on cosine, stable rank and condition number."""
    if not states:
        return
    last, first = states[-1], states[0]
    if last["zero"]:
        yield "The last tokens are all zero: nothing is left to measure. Look for an underflow, or rescale each layer."
        return
    if _has_low_rank(last):
        yield (
            f"Rank collapse: the tokens end with a stable rank of {last['stable_rank_gram']:.3g} for X X^T"
            + (f", having started at {first['stable_rank_gram']:.3g}" if len(states) > 1 else "")
            + f" (stable rank of X: {last['stable_rank']:.3g}). One direction is left."
        )
    same = next((i for i, state in enumerate(states) if state["cosine"] > THRESHOLDS["cosine"][0]), None)
    if same is not None:
        yield (
            f"Tokens collapse onto one direction: mean cosine {states[same]['cosine']:.2g} at state {same} "
            f"(0 is the input); {_small(states[-1]['spread'])} of the last state still differs between tokens."
        )
    if last["condition"] > THRESHOLDS["condition"][0]:
        size = f"about 10^{np.log10(last['condition']):.0f}" if last["condition"] < 1e6 else "above 10^6"
        yield (
            f"Ill-conditioned tokens: condition number {size} at the last state. float32 carries about seven digits; "
            "the weakest directions are left with few."
        )


def _small(share):
    """A share as text; where rounding may decide, only that it is tiny."""
    return f"{share:.2g}" if share > 1e-4 else "less than 0.0001"


def _layers(numbers):
    """'layer 3', 'layers 1 to 4' or 'layers 1, 3'."""
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    run = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    return "layers " + (f"{numbers[0]} to {numbers[-1]}" if run else ", ".join(map(str, numbers)))


def _plot(found):
    import matplotlib.pyplot as plt

    from attn_utils.figures import COLORS

    figure, axes = plt.subplots(2, 1, figsize=(4, 4.8), constrained_layout=True)
    depth = [layer["layer"] for layer in found.layers]
    for name, color, marker in (("gap", "blue", "o"), ("entropy", "orange", "s")):
        axes[0].plot(depth, [layer[name] for layer in found.layers], marker + "-", color=COLORS[color], label=name)
    axes[0].axhline(THRESHOLDS["gap"][0], color=COLORS["grey"], lw=0.8, ls=":")
    axes[0].axhline(THRESHOLDS["entropy_low"][0], color=COLORS["grey"], lw=0.8, ls=":")
    axes[0].plot(depth, [np.nan] * len(depth), color=COLORS["grey"], lw=0.8, ls=":", label="thresholds")
    axes[0].xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    axes[0].set(xlabel="layer", ylim=(-0.03, 1.03), title="Weights")
    names = ("cosine", "spread") if found.states else ()
    for name, color, marker in zip(names, ("green", "purple"), ("^", "v"), strict=False):
        axes[1].plot([state[name] for state in found.states], marker + "-", color=COLORS[color], label=name)
    if found.states:
        T = found.layers[0]["T"]
        rank = [state["stable_rank_gram"] / T for state in found.states]
        axes[1].plot(rank, "D--", color=COLORS["black"], label="stable rank of X X$^T$ / T")
    axes[1].set(xlabel="state (0 = input)", ylim=(-0.03, 1.03), title="Tokens" if found.states else "Tokens: not given")
    for ax in axes[: 1 + bool(found.states)]:
        ax.legend(loc="center right")
    return figure
