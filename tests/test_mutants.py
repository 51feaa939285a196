"""Faults put into attention, its inputs and weightings on purpose: the checks have to notice every one of them."""

import re
import types
from pathlib import Path

import attention_checks
import pytest

import attn_utils

ROOMS = ("inputs.py", "weightings.py", "scaled_dot_product.py")  # downwards: one module of all three can be broken
TEXTS = [(Path(attn_utils.__file__).parent / room).read_text("utf8") for room in ROOMS]
SOURCE = re.sub(r"^from attn_utils\.[^(\n]*(\([^)]*\))?\n", "", "\n".join(TEXTS), flags=re.M)

MUTANTS = {
    "no scale": ("scale = 1 / np.sqrt(Q.shape[-1]) if scale is None", "scale = 1.0 if scale is None"),
    "divides by d_k": ("1 / np.sqrt(Q.shape[-1])", "1 / Q.shape[-1]"),
    "multiplies by the root": ("1 / np.sqrt(Q.shape[-1])", "np.sqrt(Q.shape[-1])"),
    "root of the number of queries": ("1 / np.sqrt(Q.shape[-1])", "1 / np.sqrt(Q.shape[-2])"),
    "root of the number of keys": ("1 / np.sqrt(Q.shape[-1])", "1 / np.sqrt(K.shape[-2])"),
    "root of d_v": ("1 / np.sqrt(Q.shape[-1])", "1 / np.sqrt(V.shape[-1])"),
    "ignores the given scale": ("if scale is None else check_scale(scale)", "if True else check_scale(scale)"),
    "K not transposed": ("np.swapaxes(K, -1, -2)", "np.resize(K, np.swapaxes(K, -1, -2).shape)"),
    "transposes all axes": ("np.swapaxes(K, -1, -2)", "K.T"),
    "queries and keys swapped": ("scores = Q @ np.swapaxes(K, -1, -2)", "scores = K @ np.swapaxes(Q, -1, -2)"),
    "mask inverted": (
        "np.where(check_mask(mask, scores.shape), scores, ",
        "np.where(~check_mask(mask, scores.shape), scores, ",
    ),
    "mask dropped": ("if mask is not None:", "if False:"),
    "mask after the softmax": (
        'as_floating(weighting(scores), "the result of weighting")',
        "weighting(Q @ np.swapaxes(K, -1, -2) * Q.dtype.type(scale)) * np.isfinite(scores)",
    ),
    "mask of finite -1e9": ("scores.dtype.type(-np.inf)", "scores.dtype.type(-1e9)"),
    "mask of zero": ("scores.dtype.type(-np.inf)", "scores.dtype.type(0)"),
    "softmax over the queries": ("as_floating(weighting(scores),", "as_floating(softmax(scores, axis=-2),"),
    "weighting ignored": ("as_floating(weighting(scores),", "as_floating(softmax(scores),"),
    "weights of the wrong side": ('return in_type(output, kinds[0], "outputs of weighting"), in_type(weights, kinds[1], "results of weighting")', "return output, np.swapaxes(weights, -1, -2)"),
    "returned in the wrong order": ('return in_type(output, kinds[0], "outputs of weighting"), in_type(weights, kinds[1], "results of weighting")', "return weights, output"),
    "output is not mixed": ('return in_type(output, kinds[0], "outputs of weighting"), in_type(weights, kinds[1], "results of weighting")', "return V[..., : Q.shape[-2], :], weights"),
    "softmax over all axes": ("np.sum(exps, axis=axis, keepdims=True)", "np.sum(exps)"),
    "softmax over the first axis": ("np.sum(exps, axis=axis, keepdims=True)", "np.sum(exps, axis=0, keepdims=True)"),
    "maximum of the wrong axis": ("np.max(scores, axis, keepdims=True)", "np.max(scores, 0, keepdims=True)"),
    "maximum over everything": ("np.max(scores, axis, keepdims=True)", "np.max(scores)"),
    "no maximum": ("np.exp(scores - highest)", "np.exp(scores)"),
    "base two": ("np.exp(scores - highest)", "np.exp2(scores - highest)"),
    "fully masked row not handled": ("np.where(np.isneginf(highest), 0, highest)", "highest"),
    "division by zero not handled": ("np.where(total == 0, 1, total)", "total"),
    "wrong default axis": ("def softmax(scores, axis=-1):", "def softmax(scores, axis=0):"),
    "NaN accepted by attention": ("if not np.isfinite(array).all():", "if False:"),
    "mask without the diagonal": ("dtype=bool), n_keys - n_queries)", "dtype=bool), n_keys - n_queries - 1)"),
    "mask looks one ahead": ("dtype=bool), n_keys - n_queries)", "dtype=bool), n_keys - n_queries + 1)"),
    "mask looks forward": ("np.tril(", "np.triu("),
    "mask is not boolean": ("np.ones((n_queries, n_keys), dtype=bool)", "np.ones((n_queries, n_keys))"),
    "mask aligned upper left": ("dtype=bool), n_keys - n_queries)", "dtype=bool))"),
    "mask aligned the wrong way": ("dtype=bool), n_keys - n_queries)", "dtype=bool), n_queries - n_keys)"),
    "mask of keys by queries": ("np.ones((n_queries, n_keys), dtype=bool)", "np.ones((n_keys, n_queries), dtype=bool)"),
    "mask square whatever the keys": ("n_keys = n_queries if n_keys is None else n_keys", "n_keys = n_queries"),
    "more queries than keys accepted": ("if n_queries > n_keys:", "if False:"),
    "as many queries as keys refused": ("if n_queries > n_keys:", "if n_queries >= n_keys:"),
    "any number of keys accepted": ('whole_number(n_keys, "n_keys", fix=fix)', "n_keys"),
    "float64 inside": ("* Q.dtype.type(scale)", "* np.float64(scale)"),
    "no sink": ("(np.sum(terms, axis, keepdims=True) + np.exp(sink - top))", "np.sum(terms, axis, keepdims=True)"),
    "sink of the wrong size": ("+ np.exp(sink - top))", "+ np.exp(-top))"),
    "sink over the last axis": ("np.sum(terms, axis, keepdims=True)", "np.sum(terms, -1, keepdims=True)"),
    "maximum without the sink": ("top = np.maximum(top, sink)", "top = np.where(np.isneginf(top), 0, top)"),
    "no maximum with a sink": ("top = np.maximum(top, sink)", "top = np.zeros_like(top)"),
    "softmax1 adds e": ("return sink_softmax(scores, 0.0, axis)", "return sink_softmax(scores, 1.0, axis)"),
    "softmax1 over the last axis": ("return sink_softmax(scores, 0.0, axis)", "return sink_softmax(scores, 0.0)"),
    "relu without its count": ("np.maximum(scores, 0) / count_visible(scores, axis, uncounted)", "np.maximum(scores, 0)"),
    "relu keeps what is negative": ("np.maximum(scores, 0) /", "np.abs(np.where(np.isneginf(scores), 0, scores)) /"),
    "sigmoid without its count": ("(1 + exps) / count_visible(scores, axis, uncounted)", "(1 + exps)"),
    "sigmoid turned round": ("np.where(scores >= 0, 1, exps)", "np.where(scores < 0, 1, exps)"),
    "sigmoid overflows": ("exps = np.exp(-np.abs(scores))", "exps = np.exp(np.abs(scores))"),
    "count of masked places": ("seen = np.sum(~np.isneginf(scores),", "seen = np.sum(np.isneginf(scores),"),
    "count of all places": ("seen = np.sum(~np.isneginf(scores),", "seen = np.sum(np.ones_like(scores),"),
    "count over the last axis": ("(~np.isneginf(scores), axis=axis,", "(~np.isneginf(scores), axis=-1,"),
    "uncounted ignored": ("np.maximum(seen - uncounted, 1)", "np.maximum(seen, 1)"),
    "count of zero": ("np.maximum(seen - uncounted, 1)", "(seen - uncounted)"),
    "half precision summed in itself": ("return at_least_single(scores), at_least_single(top),", "return scores, top,"),
    "half precision multiplied in itself": (
        "Q, K, V = at_least_single(Q), at_least_single(K), at_least_single(V)",
        "Q, K, V = Q, K, V",
    ),
    "half precision handed back as single": ("return (exps / np.where(total == 0, 1, total)).astype(kind, copy=False)", "return exps / np.where(total == 0, 1, total)"),
    "weights handed back in the type of the output": ("in_type(weights, kinds[1]", "in_type(weights, kinds[0]"),
    "NaN accepted by softmax and its alternatives": ("if not (top < np.inf).all():", "if False:"),
    "any sink accepted": (
        'if not fits:\n        raise ValueError(\n            f"sink',
        'if False:\n        raise ValueError(\n            f"sink',
    ),
    "NaN accepted as a sink": ("if not np.isfinite(sink).all():", "if False:"),
}


def mutant(old, new):
    assert SOURCE.count(old) == 1, f"{old!r} stands {SOURCE.count(old)} times in these rooms: update this list"
    module = types.ModuleType("mutant")
    exec(compile(SOURCE.replace(old, new), "mutant", "exec"), module.__dict__)
    return module


def noticed(module):
    for check in attention_checks.CHECKS:
        try:
            check(module)
        except Exception:
            return check.__name__
    return None


def test_the_original_passes_all_checks():
    module = types.ModuleType("original")
    exec(compile(SOURCE, "original", "exec"), module.__dict__)
    assert noticed(module) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_noticed(name):
    assert noticed(mutant(*MUTANTS[name])), f"no check notices the fault: {name}"
