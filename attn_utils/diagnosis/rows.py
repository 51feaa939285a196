"""What rows of weights sum to, and what it means where that is not one: dropout, a hidden sink, a gate, no weights."""

from dataclasses import dataclass

import numpy as np

from attn_utils.spectra import ROW_SUM

SCALED = "the numbers are those of the rows divided by their sums"


NO_WEIGHTS = ("transposed", "logarithms", "centered", "not weights")  # kinds whose numbers are not those of weights


@dataclass
class Rows:
    """What a head's rows are.

    kind     "weights", "dropout", "less than one", "scaled", "transposed", "logarithms", "centered", "not weights"
    words    what is said of it, "" for plain weights
    cure     what to do, "" where nothing
    usable   whether the numbers of weights can be taken, of rows divided by their sums where they are not one
    range    (least, largest) sum of a row
    """

    kind: str
    words: str = ""
    cure: str = ""
    usable: bool = True
    range: tuple = (1.0, 1.0)


def examine_rows(A, see):
    """What the rows of one head are: A (n, m) without padding, see (n, m) booleans or None."""
    sums = A.sum(-1, dtype=np.float64)  # (n,)
    span = float(sums.min()), float(sums.max())
    if A.min() < 0:
        return _negative(A, sums, span)
    live = sums > 0
    if not live.any():
        return Rows("weights", "every row is zero", range=span)
    off = np.abs(sums[live] - 1).max()
    if off < ROW_SUM:
        empty = int((~live).sum())
        return Rows("weights", f"{empty} rows of zeros, fully masked, are left out" if empty else "", range=span)
    return _positive(A, see, sums, live, span)


def _negative(A, sums, span):
    if np.abs(np.exp(np.minimum(A, 0)).sum(-1) - 1).max() < 0.02 and A.max() < 1e-6:
        cure = "Pass np.exp of them."
        return Rows("logarithms", "they are logarithms of weights", cure, False, span)
    if np.abs(sums).max() < ROW_SUM * max(1.0, np.abs(A).sum(-1).max()):
        cure = "Pass the weights as they come from the softmax."
        return Rows("centered", "their rows sum to zero: their mean was subtracted (remove_outlier)", cure, False, span)
    cure = "Pass what the softmax returns. If these are scores, apply it first."
    return Rows("not weights", f"they reach down to {A.min():.3g}, which weights never do", cure, False, span)


def _positive(A, see, sums, live, span):
    """Rows without negative numbers that do not sum to one."""
    columns = A.sum(0, dtype=np.float64)
    if A.shape[0] == A.shape[1] and np.abs(columns - 1).max() < ROW_SUM:
        cure = "Take the softmax over the last axis, or pass the transposed array: weights.swapaxes(-1, -2)."
        return Rows("transposed", "their columns sum to one, and not their rows", cure, False, span)
    off = sums[live]
    places = np.ones(A.shape, bool) if see is None else see
    zeros = float((A[places] == 0).mean())
    if 0.005 < zeros < 0.9 and off.min() < 1 < off.max() and 0.8 < off.mean() < 1.25 and _cut_at_random(A, places):
        words = f"{zeros:.0%} of the weights are zero here and there, and rows sum to between {_span(off)}"
        return Rows("dropout", words, "The model is in train mode. Call model.eval() and run it again.", True, span)
    if np.ptp(off) < ROW_SUM * off.mean():
        cure = "Were heads added up, or weights multiplied by a constant? Divide by it; " + SCALED + "."
        return Rows("scaled", f"each row sums to {off.mean():.3g}", cure, True, span)
    if off.max() <= 1 + ROW_SUM:
        words = (
            f"rows sum to between {_span(off)}, on average {off.mean():.2g}, and the rest goes to a place that is not "
            "in the matrix: a sink logit or softmax1 (x / (1 + sum)), or a gate on each token, which weights alone do "
            "not tell apart"
        )
        return Rows("less than one", words, SCALED[0].upper() + SCALED[1:] + ".", True, span)
    kind = "numbers between 0 and 1, as sigmoid attention has" if A.max() <= 1 else "positive numbers of any size"
    cure = "If these are scores, apply the softmax first; attention that divides by no sum has no weights to judge."
    return Rows("not weights", f"{kind}, with rows that sum to between {_span(off)}", cure, False, span)


def _cut_at_random(A, places):
    """Zeros of dropout fall into most rows and most columns, and not on one edge."""
    hit = (A == 0) & places
    return bool((hit.any(-1).mean() > 0.2) and (hit.any(0).mean() > 0.2) and not (A[places] < 0).any())


def _span(sums):
    return f"{sums.min():.3g} and {sums.max():.3g}"
