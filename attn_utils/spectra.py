"""Spectra of attention: singular values, stable ranks, the outlier and its removal, and diagnose().

Attention weights are written (..., n_queries, n_keys), tokens X (..., n_tokens, d). A number of the whole matrix comes
back for every leading axis: a float for one matrix, an array (...) for a stack.
"""

import numpy as np

from attn_utils.attention import _check_mask, _check_scale, _finite, _floating


def singular_values(A, k=None):
    """Singular values of a matrix, largest first; with k, only the k leading ones, without a full decomposition.

    A  (..., m, n), or a scipy LinearOperator (m, n), which is never turned into a matrix
    k  how many, from 1 to min(m, n); all when None (not possible for a LinearOperator)

    Returns (..., k) of the type of A (float16 is decomposed in float32). The leading ones come from scipy's svds
    (Lanczos iterations with a fixed starting vector, so that a second call gives the same digits); where k is no small
    part of min(m, n), the full decomposition is quicker and is used instead.
    Raises ValueError for NaN, an input that is not a matrix of real numbers, or a k outside its range.

    Source: Golub and Kahan (1965); scipy.sparse.linalg.svds. Chapter 4 compares both.
    """
    A = _check_operator(A) if hasattr(A, "matvec") else _finite(A, "A")
    smallest = min(A.shape[-2:])
    _check_k(k, smallest, required=hasattr(A, "matvec"))
    if hasattr(A, "matvec"):
        return _leading(A, k) if 8 * k < smallest else _dense(A)[:k]
    wide = _at_least_single(A)
    if k is None or 8 * k >= smallest:
        return np.linalg.svd(wide, compute_uv=False)[..., :k].astype(A.dtype)
    values = [_leading(matrix, k) for matrix in wide.reshape(-1, *A.shape[-2:])]
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
    Raises ValueError for shapes that do not fit, NaN, scores that overflow, or a k, block, tol or max_passes out of
    range.

    Source: Musco and Musco (2015), algorithm 2. Chapter 4 checks it against the full decomposition.
    """
    Q, K = _check_pair(Q, K, causal)
    _check_k(k, min(len(Q), len(K)), required=True)
    _check_effort(block, tol, max_passes)
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else _check_scale(scale)
    dtype, Q, K = np.result_type(Q, K), _at_least_single(Q), _at_least_single(K)
    apply = _gram_of_attention(Q * Q.dtype.type(scale), K, causal, block)
    return _block_krylov(apply, len(K), k, np.result_type(Q, K), tol, max_passes).astype(dtype)


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
    values = np.linalg.svd(_at_least_single(X), compute_uv=False)  # (..., min(m, n))
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
    Raises ValueError for negative weights, rows with other sums, weights where the mask forbids them, a mask that is
    not boolean or does not fit, NaN or a wrong shape.

    Source: Zhai et al. (2023), who call its fall entropy collapse; the division by ln T is ours.
    """
    weights = _finite(weights, "weights")
    if (weights < 0).any():
        raise ValueError(
            f"weights contain {weights.min():.3g}: entropy needs weights of at least 0. "
            "Pass the weights after the softmax, before remove_outlier."
        )
    sums = weights.sum(-1)  # (..., n_queries)
    off = np.where(sums > 0, np.abs(sums - 1), 0)
    if off.max() > _loose_tolerance(weights):
        raise ValueError(
            f"a row of the weights sums to {sums.flat[off.argmax()]:.3g}, expected 1 (or 0 where all is masked): "
            "entropy needs a probability distribution. Pass the weights after the softmax."
        )
    if mask is not None and (weights * ~_check_mask(mask, weights.shape)).any():
        raise ValueError("some weight lies where the mask is False, expected none. True means: the query may look.")
    logs = np.log(np.where(weights > 0, weights, 1))  # 0 ln 0 = 0
    n = weights.shape[-1] if mask is None else np.broadcast_to(mask, weights.shape).sum(-1)
    most = np.log(np.maximum(n, 1))  # what uniform weights would have
    return np.where(most > 0, -(weights * logs).sum(-1) / np.where(most > 0, most, 1), 1.0).astype(weights.dtype)


# ------------------------------------------------------------------ diagnose

THRESHOLDS = {
    "gap": (0.9, "above .9, differences between tokens leave the layer at most a tenth as large, relative to the mean"),
    "entropy_high": (0.95, "above .95 of ln T, the weights are close to plain averaging"),
    "entropy_low": (0.1, "below .1 of ln T, nearly every query looks at one key: next to no gradient passes"),
    "cosine": (0.9, "above .9, the tokens lie within about 26 degrees of each other"),
    "rank": (1.1, "below 1.1 for X X^T, all other directions together weigh a tenth of the first, in fourth powers"),
    "condition": (1e4, "above 10^4, float32 keeps three of its seven digits in the weakest direction"),
}


ROW_SUM = 5e-3  # rows this close to one count as softmax weights: room for float16 and bfloat16


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
    state = _floating(state, f"the token matrix of state {number}")
    if state.ndim != 2:
        raise ValueError(
            f"the token matrix of state {number} has shape {state.shape}, expected (T, d). Pass one sequence at a time."
        )
    return _finite(state, f"the token matrix of state {number}")


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
    return _floating(layer, f"the array of weights of layer {number}")


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

    kind = np.result_type(A.dtype, np.float32)  # an operator of whole numbers works in float64
    start = np.random.default_rng(0).normal(size=min(A.shape)).astype(kind)  # our own generator: repeatable
    if not hasattr(A, "matvec"):
        scale = np.abs(A).max()
        if scale == 0:
            return np.zeros(k, A.dtype)
        A = A / scale
    else:
        small = A.rmatvec if A.shape[0] >= A.shape[1] else A.matvec
        image = small((A.matvec if A.shape[0] >= A.shape[1] else A.rmatvec)(start))  # A^T A or A A^T, once
        if not np.isfinite(image).all():
            raise ValueError("the operator A gives NaN or inf, expected finite numbers. Look for where they arise.")
        if not image.any():  # a random vector is in the null space: A is zero
            return np.zeros(k, kind)
        scale = 1
    return np.sort(svds(A, k=k, v0=start, return_singular_vectors=False, tol=1e-6))[::-1] * scale


def _dense(operator):
    """All singular values of a small LinearOperator."""
    kind = np.result_type(operator.dtype, np.float32)
    matrix = _finite(operator @ np.eye(operator.shape[1], dtype=kind), "the operator A")
    return np.linalg.svd(_at_least_single(matrix), compute_uv=False)


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
    with np.errstate(over="ignore", invalid="ignore"):
        scores = Q @ K.T  # (block, n_keys)
    if not np.isfinite(scores).all():
        raise ValueError("the scores of Q and K overflow, expected finite ones. Make Q, K or the scale smaller.")
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


def _check_operator(A):
    if np.dtype(A.dtype).kind not in "biuf":
        raise ValueError(f"the operator A has type {A.dtype}, expected real numbers. Give it a float dtype.")
    return A


def _check_effort(block, tol, max_passes):
    for name, value in (("block", block), ("max_passes", max_passes)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1, such as block=128.")
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.number)) or not 0 < tol < 1:
        raise ValueError(f"tol is {tol!r}, expected a number between 0 and 1, such as 1e-3.")


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


def _at_least_single(X):
    """float16 as float32: LAPACK has no half precision."""
    return X.astype(np.float32) if X.dtype == np.float16 else X


def _loose_tolerance(A):
    return max(ROW_SUM, _row_tolerance(A))


def _row_tolerance(A):
    return 10 * np.finfo(A.dtype).eps * max(A.shape[-1], 100)
