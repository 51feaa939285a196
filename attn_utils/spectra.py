"""Spectra of attention: singular values, stable ranks, the outlier and its removal, and diagnose().

Attention weights are written (..., n_queries, n_keys), tokens X (..., n_tokens, d). A number of the whole matrix comes
back for every leading axis: a float for one matrix, an array (...) for a stack.
"""

import numpy as np

from attn_utils.attention import _check_scale, _finite


def singular_values(A, k=None):
    """Singular values of a matrix, largest first; with k, only the k leading ones, without a full decomposition.

    A  (..., m, n), or a scipy LinearOperator (m, n), which is never turned into a matrix
    k  how many, from 1 to min(m, n); all when None (not possible for a LinearOperator)

    Returns (..., k). float32 in, float32 out. The leading ones come from scipy's svds (Lanczos iterations with a fixed
    starting vector, so that a second call gives the same digits); where k is no small part of min(m, n), the full
    decomposition is quicker and is used instead.
    Raises ValueError for NaN, an input that is not a matrix, or a k outside its range.

    Source: Golub and Kahan (1965); scipy.sparse.linalg.svds. Chapter 4 compares both.
    """
    if not hasattr(A, "matvec"):
        A = _finite(A, "A")
    smallest = min(A.shape[-2:])
    _check_k(k, smallest, required=hasattr(A, "matvec"))
    if hasattr(A, "matvec"):
        return _leading(A, k) if 8 * k < smallest else _dense(A)[:k]
    if k is None or 8 * k >= smallest:
        return np.linalg.svd(A, compute_uv=False)[..., :k]
    values = [_leading(matrix, k) for matrix in A.reshape(-1, *A.shape[-2:])]
    return np.array(values, dtype=A.dtype).reshape(*A.shape[:-2], k)


def attention_singular_values(Q, K, k=2, scale=None, causal=False, block=128, tol=1e-3, max_passes=30):
    """The k leading singular values of softmax(scale Q K^T) without ever holding the (n_queries, n_keys) matrix.

    Q, K        (n_queries, d_k) and (n_keys, d_k), one head
    k           how many, at least 1
    scale       1/sqrt(d_k) when None
    causal      True: query i looks at keys 0 to i only
    block       rows of the matrix that exist at a time: memory is block * n_keys numbers
    tol         stop when a pass changes no value by more than this fraction
    max_passes  give up after so many passes over the matrix (RuntimeError)

    Returns (k,). Each pass makes every block of rows once and applies it and its transpose to a few vectors, the basis
    of a block Krylov space, in which the values are then read off. They are approached from below.
    Raises ValueError for shapes that do not fit, NaN, or a k out of range.

    Source: Musco and Musco (2015), algorithm 2. Chapter 4 checks it against the full decomposition.
    """
    Q, K = _check_pair(Q, K, causal)
    _check_k(k, min(len(Q), len(K)), required=True)
    if block < 1:
        raise ValueError(f"block is {block!r}, expected at least one row at a time, such as 128.")
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else _check_scale(scale)
    apply = _gram_of_attention(Q * Q.dtype.type(scale), K, causal, block)
    return _block_krylov(apply, len(K), k, Q.dtype, tol, max_passes)


def spectral_gap(A):
    """How far the largest singular value stands out: 1 - s2 / s1.

    A  (..., m, n) with at least two rows and columns

    Returns a number from 0 (no gap) to 1 (a single direction is left) for each matrix; 0 for a matrix of zeros.
    Raises ValueError for a single row or column, which has no second singular value, and for NaN.

    Source: Nait Saada, Naderi and Tanner (2025) study the gap between the two; the ratio is our choice of units.
    """
    A = _finite(A, "A")
    if min(A.shape[-2:]) < 2:
        raise ValueError(
            f"A has shape {A.shape}: a single row or column has no second singular value, so no gap. "
            "Use at least two tokens."
        )
    values = singular_values(A, 2)  # (..., 2)
    first, second = values[..., 0], values[..., 1]
    return _plain(np.where(first > 0, 1 - second / np.where(first > 0, first, 1), 0))


def stable_rank(X):
    """Stable rank of X itself: ||X||_F^2 / ||X||_2^2, the sum of s_i^2 over s_1^2.

    X  (..., n_tokens, d)

    Returns a number from 1 to the rank for each matrix; 0 for a matrix of zeros.
    Not the one that "Mind the Gap" reports: that is stable_rank_gram. Raises ValueError for NaN or a wrong shape.

    Source: Rudelson and Vershynin (2007).
    """
    X = _unit_scale(_finite(X, "X"))
    return _over_first((X**2).sum((-2, -1)), singular_values(X, 1)[..., 0] ** 2)


def stable_rank_gram(X):
    """Stable rank of the token covariance X X^T: ||X X^T||_F^2 / ||X X^T||_2^2, the sum of s_i^4 over s_1^4.

    X  (..., n_tokens, d); s_i are the singular values of X

    Returns a number from 1 to the rank for each matrix, never above stable_rank(X); 0 for a matrix of zeros.
    The fourth powers count a direction half as large as the first one as a sixteenth: this one falls to 1 where
    stable_rank(X) stays near 2. Raises ValueError for NaN or a wrong shape.

    Source: Nait Saada, Naderi and Tanner (2025), official code. Chapter 4 shows why the width statement needs it.
    """
    X = _unit_scale(_finite(X, "X"))
    tall = X if X.shape[-2] >= X.shape[-1] else np.swapaxes(X, -1, -2)  # (..., larger, smaller)
    gram = np.swapaxes(tall, -1, -2) @ tall  # (..., smaller, smaller), the same non-zero spectrum as X X^T
    return _over_first((gram**2).sum((-2, -1)), singular_values(X, 1)[..., 0] ** 4)


def condition_number(X):
    """Largest over smallest singular value: 1 for an orthogonal matrix, inf for a singular one.

    X  (..., m, n)

    Returns a number for each matrix. Below s_1 * max(m, n) * machine epsilon a singular value is rounding noise; then,
    and for a matrix of zeros, the result is inf. Raises ValueError for NaN or a wrong shape.

    Source: as in Ji et al. (2025), footnote on kappa.
    """
    X = _finite(X, "X")
    values = np.linalg.svd(X, compute_uv=False)  # (..., min(m, n))
    first, last = values[..., 0], values[..., -1]
    sound = last > first * max(X.shape[-2:]) * np.finfo(X.dtype).eps
    return _plain(np.where(sound, first / np.where(sound, last, 1), np.inf))


def remove_outlier(A):
    """Attention weights without their outlier: A - 1/n_keys in every place, for square weights A - 11^T / T.

    A  (..., n_queries, n_keys), rows summing to one

    Returns an array of the same shape and type, rows summing to zero. The same as centring the values:
    remove_outlier(A) @ V == A @ (V - mean over tokens of V) == A @ V - mean over tokens of V.
    Not for causal weights: it would put -1/n_keys on the future.
    Raises ValueError where rows do not sum to one, for NaN or a wrong shape.

    Source: Nait Saada, Naderi and Tanner (2025); Ali et al. (2023). Derived in chapter 4.
    """
    A = _finite(A, "A")
    off = np.abs(A.sum(-1) - 1).max()
    if off > _row_tolerance(A):
        raise ValueError(
            f"the rows of A sum to one only within {off:.2g}, expected softmax weights. "
            "Without row sums of one there is no outlier at 1 to remove; apply a softmax first."
        )
    return A - A.dtype.type(1 / A.shape[-1])


def center_tokens(X):
    """Tokens minus their mean token: what is left of X when all that the tokens share is taken away.

    X  (..., n_tokens, d). Returns the same shape and type. Source: res(X) of Dong et al. (2021), in the 2-norm.
    """
    X = _finite(X, "X")
    return X - X.mean(-2, keepdims=True)


def token_spread(X):
    """Share of X that differs between tokens: ||X - mean token||_F / ||X||_F.

    X  (..., n_tokens, d)

    Returns a number from 0 (all tokens equal: rank collapse) to 1 (their mean is zero); 0 for a matrix of zeros.
    Raises ValueError for NaN or a wrong shape. Source: relative residual of Dong et al. (2021), in the 2-norm.
    """
    X = _unit_scale(_finite(X, "X"))
    size, rest = np.linalg.norm(X, axis=(-2, -1)), np.linalg.norm(center_tokens(X), axis=(-2, -1))
    return _plain(rest / np.where(size > 0, size, 1))


def token_cosine(X):
    """Mean cosine similarity over all pairs of different tokens: 0 when unrelated, 1 when all point the same way.

    X  (..., n_tokens, d) with at least two tokens

    Returns a number from -1 / (n_tokens - 1) to 1 for each matrix. A token of zeros counts as cosine 0 with all others.
    Raises ValueError for a single token, NaN or a wrong shape.

    Source: Noci et al. (2022), section 3. Chapter 4 derives its law under uniform attention.
    """
    X = _unit_scale(_finite(X, "X"))
    n = X.shape[-2]
    if n < 2:
        raise ValueError(f"X has shape {X.shape}: one token has no pair to compare. Use at least two tokens.")
    size = np.linalg.norm(X, axis=-1, keepdims=True)  # (..., n, 1)
    units = X / np.where(size > 0, size, 1)  # (..., n, d)
    total = (units.sum(-2) ** 2).sum(-1) - (size > 0).sum((-2, -1))
    return _plain(total / (n * (n - 1)))


def entropy(weights, mask=None):
    """Entropy of each row of weights as a share of the largest possible: 0 = one key takes all, 1 = uniform.

    weights  (..., n_queries, n_keys), not negative, rows summing to one (or to zero: fully masked, entropy 0)
    mask     boolean, True where a query may look; with it the largest possible is ln(number of such places)

    Returns (..., n_queries). A row with a single place to look has no choice to make and gives 1.
    Raises ValueError for negative weights, NaN or a wrong shape.

    Source: Zhai et al. (2023), who call its fall entropy collapse; the division by ln T is ours.
    """
    weights = _finite(weights, "weights")
    if (weights < 0).any():
        raise ValueError(
            f"weights contain {weights.min():.3g}: entropy needs weights of at least 0. "
            "Pass the weights after the softmax, before remove_outlier."
        )
    logs = np.log(np.where(weights > 0, weights, 1))  # 0 ln 0 = 0
    n = weights.shape[-1] if mask is None else np.broadcast_to(mask, weights.shape).sum(-1)
    most = np.log(np.maximum(n, 1))  # what uniform weights would have
    return np.where(most > 0, -(weights * logs).sum(-1) / np.where(most > 0, most, 1), 1.0).astype(weights.dtype)


# ------------------------------------------------------------------ diagnose

THRESHOLDS = {
    "gap": (0.9, "above .9, differences between tokens leave the layer at most a tenth as large, relative to the mean"),
    "entropy_high": (0.95, "above .95 of ln T, the weights are close to plain averaging"),
    "entropy_low": (0.1, "below .1 of ln T, nearly every query looks at one key, and the softmax passes no gradient"),
    "cosine": (0.9, "above .9, the tokens lie within about 26 degrees of each other"),
    "rank": (1.1, "below 1.1 for X X^T, all other directions together weigh a tenth of the first, in fourth powers"),
    "condition": (1e4, "above 10^4, float32 keeps three of its seven digits in the weakest direction"),
}


def diagnose(weights_or_model_fn, X=None):
    """Look at attention weights, and the tokens between them, for rank collapse and its opposite.

    weights_or_model_fn  weights (T, T), or a stack (n_layers, T, T) or (n_layers, n_heads, T, T), or a list with one
                         array for each layer; or a function model(X) that returns such weights, or a pair
                         (weights, states) with states a list of token matrices (T, d), states[0] being the input
    X                    with weights: tokens (T, d), or a list of them; with a function: its input

    Returns a Diagnosis: print it for findings in plain language. `.layers` holds a dict of numbers for each layer's
    weights (means over heads, and each head's), `.states` one for each token matrix, `.findings` the sentences,
    `.collapsed` (of the last tokens; of the weights where none are given) and `.frozen` the short answers, and
    `.plot()` draws it all over depth.
    The thresholds stand in THRESHOLDS with their reasons.
    Causal weights, rows that do not sum to one and a single token are recognised and said so.
    Raises ValueError for NaN (naming layer and head), weights that are not square, or an empty stack.

    Source: chapter 4 derives each measure.
    """
    weights, states = _run_model(weights_or_model_fn, X)
    layers = [_describe_weights(layer, i) for i, layer in enumerate(_as_layers(weights), 1)]
    tokens = [_describe_tokens(_finite(state, f"the tokens of state {i}")) for i, state in enumerate(states)]
    if any(len(state) != layers[0]["T"] for state in states):
        raise ValueError(
            f"the weights are for {layers[0]['T']} tokens, the token matrices have {[len(state) for state in states]}, "
            "expected the same number. Pass tokens as (T, d), one row a token."
        )
    return Diagnosis(layers, tokens)


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
    if isinstance(result, tuple) and len(result) == 2:
        return result[0], _as_states(result[1])
    return result, [] if X is None else _as_states(X)


def _as_states(X):
    """A list of token matrices from one, a stack or a list."""
    if isinstance(X, (list, tuple)):
        return list(X)
    X = np.asarray(X)
    return list(X) if X.ndim == 3 else [X]


def _as_layers(weights):
    """Weights as a list with an array (n_heads, T, T) for each layer."""
    if not isinstance(weights, (list, tuple)):
        weights = np.asarray(weights)
        weights = [weights] if weights.ndim == 2 else list(weights) if weights.ndim in (3, 4) else [weights]
    layers = [np.asarray(layer) for layer in weights]
    layers = [layer[None] if layer.ndim == 2 else layer for layer in layers]
    if not layers or any(layer.ndim != 3 or layer.shape[1] != layer.shape[2] or not layer.size for layer in layers):
        raise ValueError(
            f"the weights have the shapes {[layer.shape for layer in layers]}, expected (T, T), (n_layers, T, T), "
            "(n_layers, n_heads, T, T) or a list of layers. Take one sequence out of a batch first: weights[:, 0]."
        )
    return layers


def _describe_weights(weights, number):
    """Numbers of one layer's weights (n_heads, T, T), averaged over heads where not said otherwise."""
    _no_nan(weights, number)
    weights = weights.astype(np.float64)
    T = weights.shape[-1]
    causal = T > 1 and not np.triu(weights, 1).any()
    values = singular_values(weights, min(2, T))  # (n_heads, 1 or 2)
    mask = np.tril(np.ones((T, T), bool)) if causal else None
    first, second = values[:, 0].mean(), values[:, 1].mean() if T > 1 else np.nan
    gaps = 1 - values[:, -1] / np.where(values[:, 0] > 0, values[:, 0], 1)  # (n_heads,)
    known = T > 1 and (weights >= 0).all()  # row 0 of a causal head has no choice: left out of the entropy
    evenness = entropy(weights, mask)[:, int(causal) :].mean(-1) if known else np.full(len(weights), np.nan)
    return {
        "layer": number,
        "T": T,
        "heads": len(weights),
        "causal": causal,
        "row_sums": (float(weights.sum(-1).min()), float(weights.sum(-1).max())),
        "s1": float(first),
        "s2": float(second),
        "gap": float(gaps.mean()) if T > 1 else np.nan,
        "entropy": float(evenness.mean()),
        "gap_by_head": gaps.tolist() if T > 1 else [np.nan] * len(weights),
        "entropy_by_head": evenness.tolist(),
    }


def _no_nan(weights, number):
    bad = ~np.isfinite(weights.astype(float)).all((-2, -1))  # (n_heads,)
    if bad.any():
        raise ValueError(
            f"the weights of layer {number} contain NaN or inf (heads {', '.join(map(str, np.flatnonzero(bad)))}), "
            "expected finite numbers. A row with every place masked often turns into NaN: look at the mask first."
        )


def _describe_tokens(X):
    """Numbers of one token matrix (T, d)."""
    if X.ndim != 2:
        raise ValueError(f"a token matrix has shape {X.shape}, expected (T, d). Pass one sequence at a time.")
    one = len(X) == 1
    return {
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
    return not np.isnan(state["cosine"]) and state["stable_rank_gram"] < THRESHOLDS["rank"][0]


def _is_collapsed(state):
    return bool(_has_low_rank(state) or state["cosine"] > THRESHOLDS["cosine"][0])


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
    if max(abs(low - 1), abs(high - 1)) > 1e-3:
        yield (
            f"Rows sum to between {low:.3g} and {high:.3g}, not to one: these are not softmax weights, "
            "and no singular value is tied to 1. Thresholds on the gap are only a hint here."
        )


def _about_weights(layers):
    """Sentences on gap and entropy."""
    high, low = THRESHOLDS["entropy_high"][0], THRESHOLDS["entropy_low"][0]
    wide = list(filter(_has_gap, layers))
    if wide:
        worst = max(wide, key=lambda layer: layer["gap"])
        where, share = _layers([layer["layer"] for layer in wide]), _small(worst["s2"] / worst["s1"])
        yield (
            f"Spectral gap, the root of collapse in width, in {where}: the second singular value is {share} of the "
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

    from attn_utils.explore import COLORS

    figure, axes = plt.subplots(1, 2, figsize=(6, 2.4), constrained_layout=True)
    depth = [layer["layer"] for layer in found.layers]
    for name, color, marker in (("gap", "blue", "o"), ("entropy", "orange", "s")):
        axes[0].plot(depth, [layer[name] for layer in found.layers], marker + "-", color=COLORS[color], label=name)
    axes[0].axhline(THRESHOLDS["gap"][0], color=COLORS["grey"], lw=0.8, ls=":")
    axes[0].axhline(THRESHOLDS["entropy_low"][0], color=COLORS["grey"], lw=0.8, ls=":")
    axes[0].plot(depth, [np.nan] * len(depth), color=COLORS["grey"], lw=0.8, ls=":", label="thresholds")
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
        ax.legend(loc="center right", fontsize=8)
    return figure


# ------------------------------------------------------------------- helpers


def _leading(A, k):
    """The k leading singular values of one matrix or LinearOperator, largest first."""
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).normal(size=min(A.shape)).astype(A.dtype)  # our own generator: repeatable
    if not hasattr(A, "matvec"):
        scale = np.abs(A).max()
        if scale == 0:
            return np.zeros(k, A.dtype)
        A = A / scale
    else:
        scale = 1
    return np.sort(svds(A, k=k, v0=start, return_singular_vectors=False, tol=1e-6))[::-1] * scale


def _dense(operator):
    """All singular values of a small LinearOperator."""
    return np.linalg.svd(operator @ np.eye(operator.shape[1], dtype=operator.dtype), compute_uv=False)


def _gram_of_attention(Q, K, causal, block):
    """A function from vectors (n_keys, b) to A^T A of them, made block by block; each weight is made once a call."""
    rows = [slice(start, min(start + block, len(Q))) for start in range(0, len(Q), block)]
    future = np.arange(len(K)) if causal else None
    totals = np.concatenate([_log_total(_scores(Q[part], K, future, part)) for part in rows])  # (n_queries,)
    Q = np.hstack([Q, -totals[:, None]])  # one more product, with a key of ones, divides each row by its sum
    K = np.hstack([K, np.ones_like(K[:, :1])])

    def apply(vectors):
        total = np.zeros_like(vectors)
        for part in rows:
            weights = _scores(Q[part], K, future, part)
            np.exp(weights, out=weights)  # (block, n_keys), rows summing to one
            total += weights.T @ (weights @ vectors)
        return total

    return apply


def _scores(Q, K, future, part):
    scores = Q @ K.T  # (block, n_keys)
    if future is not None:
        scores[future > np.arange(part.start, part.stop)[:, None]] = -np.inf
    return scores


def _log_total(scores):
    """ln of the sum of exp over each row."""
    highest = scores.max(-1)
    scores -= highest[:, None]
    return highest + np.log(np.exp(scores, out=scores).sum(-1))


def _block_krylov(apply, n, k, dtype, tol, max_passes):
    """Square roots of the k largest eigenvalues of a positive map, from a growing block Krylov space."""
    rng = np.random.default_rng(0)
    width = min(n, k + 6)
    new = np.linalg.qr(rng.normal(size=(n, width)).astype(dtype))[0]  # (n, width)
    basis, images, before = np.empty((n, 0), dtype), np.empty((n, 0), dtype), None
    for _ in range(max_passes):
        basis, images = np.hstack([basis, new]), np.hstack([images, apply(new)])  # (n, passes * width) each
        small = basis.T.astype(np.float64) @ images  # (p, p): the map seen from inside the space
        values = np.sqrt(np.maximum(np.linalg.eigvalsh((small + small.T) / 2)[::-1][:k], 0))  # (k,)
        done = before is not None and np.all(np.abs(values - before) <= tol * values)
        if done or basis.shape[1] == n:
            return values.astype(dtype)
        before, new = values, _fresh(basis, images[:, -new.shape[1] :])
        if new.shape[1] == 0:
            return values.astype(dtype)
    raise RuntimeError(f"no convergence to {tol:g} in {max_passes} passes. Raise max_passes or tol.")


def _fresh(basis, images):
    """An orthonormal basis of what the images add to the basis, as far as there is room."""
    room = basis.shape[0] - basis.shape[1]
    for _ in range(2):  # twice is enough (Kahan and Parlett)
        images = images - basis @ (basis.T @ images)
        images, triangle = np.linalg.qr(images)
    size = np.abs(np.diag(triangle))
    return images[:, size > 0.5][:, :room]


def _check_pair(Q, K, causal):
    Q, K = _finite(Q, "Q"), _finite(K, "K")
    if Q.ndim != 2 or K.ndim != 2 or Q.shape[1] != K.shape[1]:
        raise ValueError(
            f"Q has shape {Q.shape} and K {K.shape}, expected (n_queries, d_k) and (n_keys, d_k) of one head. "
            "Choose a head first, such as Q[0]."
        )
    if causal and len(Q) != len(K):
        raise ValueError(f"causal weights need as many queries as keys, given {len(Q)} and {len(K)}.")
    return Q, K


def _check_k(k, most, required):
    if k is None and not required:
        return
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= most:
        raise ValueError(f"k is {k!r}, expected a whole number from 1 to {most}, the smaller side of the matrix.")


def _unit_scale(X):
    """X divided by its largest entry, so that squares and fourth powers neither overflow nor vanish."""
    largest = np.abs(X).max((-2, -1), keepdims=True)
    return X / np.where(largest > 0, largest, 1)


def _over_first(total, first):
    return _plain(total / np.where(first > 0, first, 1))


def _plain(value):
    """A float for one matrix, an array for a stack."""
    return float(value) if np.ndim(value) == 0 else value


def _row_tolerance(A):
    return 10 * np.finfo(A.dtype).eps * max(A.shape[-1], 100)
