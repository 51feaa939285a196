"""The numbers of one state: the tokens (T, d) as they stand between two layers."""

import numpy as np

from attn_utils.spectra import token_cosine, token_spread

MOST = 1024  # tokens that ranks and condition are measured on; of more, so many evenly spaced ones
HEAVY = 10  # a token this many times as long as the median one is left out of the spread
SINGLE = 4_000_000  # numbers; a larger state is measured in float32


def measure_state(X):
    """What of a state differs between tokens, and how evenly it fills its directions, as a dict.

    zero             whether all of it is zero
    spread           share that differs between tokens, ||X - mean|| / ||X||
    cosine           mean cosine over pairs of tokens
    rest             share of the tokens, each scaled to length 1, outside the one direction that they share most:
                     0 where all lie on one line. Norms inside the model scale tokens so. Heavy tokens are left out
    stable_rank, stable_rank_gram, condition    as in attn_utils.spectra
    weak_directions  largest singular value over the one that 90 % of the directions reach, of different tokens scaled
                     to length 1: one direction that a LayerNorm empties, or a token that occurs twice, does not count
    massive          the entry that is most above the median size: token and feature (from 1), value, times
    heavy_tokens     tokens (from 1) more than 10 times as long as the median one
    outlier_features features (from 1) whose root mean square over the other tokens is above 6 times the median one's
    """
    X = np.asarray(X, np.float64 if X.size <= SINGLE else np.float32)
    scale = float(np.abs(X).max())
    if scale == 0:
        return _nothing()
    X = X / scale
    size = np.linalg.norm(X, axis=-1)  # (T,)
    heavy = size > HEAVY * np.median(size)
    units = X / np.where(size > 0, size, 1)[:, None]  # (T, d)
    found = {"zero": False, "scale": scale, "tokens": len(X), "features": X.shape[1]}
    if len(X) > 1:
        found |= {"spread": float(token_spread(X)), "cosine": float(token_cosine(X))}
    else:
        found |= {"spread": np.nan, "cosine": np.nan}
    found |= _ranks(X, units, units[~heavy] if len(X) - heavy.sum() > 1 else units)
    found |= {"massive": _massive(X, scale), "heavy_tokens": (np.flatnonzero(heavy) + 1).tolist()}
    found["outlier_features"] = _outlier_features(X[~heavy])
    return found


def _nothing():
    names = ("spread", "cosine", "rest", "stable_rank", "stable_rank_gram", "condition", "weak_directions")
    return {"zero": True, "massive": None, "heavy_tokens": [], "outlier_features": []} | dict.fromkeys(names, np.nan)


def _ranks(X, units, light):
    """What the singular values say."""
    X, units, light = (A[np.linspace(0, len(A) - 1, min(len(A), MOST)).astype(int)] for A in (X, units, light))
    values = np.linalg.svd(X, compute_uv=False)
    first, last = values[0], values[-1]
    sound = last > first * max(X.shape) * np.finfo(X.dtype).eps
    distinct = np.unique(units.round(12), axis=0)
    own = np.linalg.svd(distinct, compute_uv=False)
    first_of_light = np.linalg.svd(light, compute_uv=False)[0] ** 2 / max((light**2).sum(), 1e-300)
    weak = own[max(int(np.ceil(0.9 * len(own))) - 1, 0)]
    return {
        "rest": float(np.sqrt(max(1 - first_of_light, 0))) if len(X) > 1 else np.nan,
        "stable_rank": float((values**2).sum() / first**2),
        "stable_rank_gram": float((values**4).sum() / first**4),
        "condition": float(first / last) if sound else np.inf,
        "weak_directions": float(own[0] / weak) if weak > own[0] * 1e-15 else np.inf,
    }


def _massive(X, scale):
    typical = float(np.median(np.abs(X)))
    token, feature = np.unravel_index(np.abs(X).argmax(), X.shape)
    times = float(np.abs(X[token, feature]) / typical) if typical > 0 else np.inf
    return {"token": int(token) + 1, "feature": int(feature) + 1, "value": float(X[token, feature] * scale),
            "times": times}  # fmt: skip


def _outlier_features(X):
    if not len(X):
        return []
    size = np.sqrt((X**2).mean(0))  # (d,)
    typical = np.median(size)
    return (np.flatnonzero(size > 6 * typical) + 1).tolist() if typical > 0 else []
