"""What has to hold of softmax, causal_mask and attention: functions of a module, so that mutants can be checked too.

test_attention.py runs each check on the rooms; test_mutants.py breaks the module on purpose and
expects at least one check to notice.
"""

import warnings

import numpy as np

RNG = np.random.default_rng(0)
Q, K, V = RNG.normal(size=(2, 3, 5, 8)), RNG.normal(size=(2, 3, 7, 8)), RNG.normal(size=(2, 3, 7, 4))


def reference(Q, K, V, allowed, scale):
    """Attention of one head, spelled out number by number."""
    output, weights = np.zeros((len(Q), V.shape[1])), np.zeros((len(Q), len(K)))
    for i, query in enumerate(Q):
        scores = {j: scale * sum(q * k for q, k in zip(query, K[j], strict=True)) for j in np.flatnonzero(allowed[i])}
        exps = {j: np.exp(score) for j, score in scores.items()}
        for j, value in exps.items():
            weights[i, j] = value / sum(exps.values())
            output[i] += weights[i, j] * V[j]
    return output, weights


def raises(call, *words):
    try:
        call()
    except ValueError as error:
        assert all(word in str(error) for word in words), f"{error} does not mention {words}"
    else:
        raise AssertionError(f"no ValueError mentioning {words}")


def equals_the_reference(m):
    output, weights = m.attention(Q[0, 0], K[0, 0], V[0, 0])
    expected = reference(Q[0, 0], K[0, 0], V[0, 0], np.ones((5, 7), bool), 1 / np.sqrt(8))
    np.testing.assert_allclose(output, expected[0], rtol=1e-12)
    np.testing.assert_allclose(weights, expected[1], rtol=1e-12)


def equals_the_reference_under_a_mask(m):
    allowed = RNG.random((5, 7)) < 0.5
    allowed[2] = False
    output, weights = m.attention(Q[0, 0], K[0, 0], V[0, 0], mask=allowed)
    expected = reference(Q[0, 0], K[0, 0], V[0, 0], allowed, 1 / np.sqrt(8))
    np.testing.assert_allclose(output, expected[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(weights, expected[1], rtol=1e-12, atol=1e-15)
    assert (weights[~allowed] == 0).all()


def leading_axes_are_independent_heads(m):
    mask = RNG.random((5, 7)) < 0.7
    output, weights = m.attention(Q, K, V, mask=mask)
    assert output.shape == (2, 3, 5, 4) and weights.shape == (2, 3, 5, 7)
    for b in range(2):
        for h in range(3):
            one = m.attention(Q[b, h], K[b, h], V[b, h], mask=mask)
            np.testing.assert_allclose(output[b, h], one[0], rtol=1e-12)
            np.testing.assert_allclose(weights[b, h], one[1], rtol=1e-12)


def leading_axes_broadcast(m):
    output, weights = m.attention(Q, K[:, :1], V[0, 0])  # one key head for three query heads
    assert output.shape == (2, 3, 5, 4)
    np.testing.assert_allclose(output[1, 2], m.attention(Q[1, 2], K[1, 0], V[0, 0])[0], rtol=1e-12)


def a_mask_for_each_head(m):
    mask = RNG.random((3, 5, 7)) < 0.6
    weights = m.attention(Q, K, V, mask=mask)[1]
    assert (weights[:, ~mask] == 0).all()


def rows_sum_to_one(m):
    np.testing.assert_allclose(m.attention(Q, K, V)[1].sum(axis=-1), 1, rtol=1e-12)
    assert (m.attention(Q, K, V)[1] > 0).all()


def scale_is_one_over_the_root_of_d_k(m):
    for d_k in (1, 4, 8, 64):
        Q, K = RNG.normal(size=(5, d_k)), RNG.normal(size=(3, d_k))
        given = m.attention(Q, K, np.eye(3), scale=1 / np.sqrt(d_k))[1]
        np.testing.assert_allclose(m.attention(Q, K, np.eye(3))[1], given, rtol=1e-12)
        assert d_k == 1 or not np.allclose(m.attention(Q, K, np.eye(3), scale=1)[1], given)


def scale_zero_is_the_mean(m):
    np.testing.assert_allclose(m.attention(Q, K, V, scale=0)[0], V.mean(axis=-2, keepdims=True) + np.zeros((5, 1)))


def fully_masked_rows_give_zeros(m):
    output, weights = m.attention(Q, K, V, mask=np.zeros((5, 7), bool))
    assert (output == 0).all() and (weights == 0).all()
    assert (m.softmax(np.full((2, 3), -np.inf)) == 0).all()


def huge_scores_stay_finite_without_a_warning(m):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (np.float32, np.float64):
            for scores in ([[1e4, -1e4, 0.0]], [[-1e4, -1e4, -1e4]], [[1e4, 1e4, -np.inf]], [[3e38, -3e38, 0]]):
                weights = m.softmax(np.array(scores, dtype))
                assert weights.dtype == dtype and np.isfinite(weights).all()
                np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
        big = (100 * np.eye(3)).astype(np.float32)
        assert np.isfinite(m.attention(big, big, big, scale=1)[0]).all()


def types_are_kept(m):
    for dtype in (np.float16, np.float32, np.float64):
        output, weights = m.attention(*(a.astype(dtype) for a in (Q, K, V)), mask=m.causal_mask(7)[:5])
        assert output.dtype == weights.dtype == dtype
        assert m.softmax(Q.astype(dtype)).dtype == dtype
    assert m.softmax([1, 2, 3]).dtype == np.float64


def softmax_normalises_the_axis_it_is_given(m):
    scores = RNG.normal(size=(3, 4, 5))
    for axis in (0, 1, 2, -1):
        exps = np.exp(scores)
        np.testing.assert_allclose(m.softmax(scores, axis), exps / exps.sum(axis=axis, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(m.softmax(scores), m.softmax(scores, -1))


def softmax_ignores_a_shift(m):
    scores = RNG.normal(size=(4, 6))
    np.testing.assert_allclose(m.softmax(scores + 5), m.softmax(scores), rtol=1e-12)


def inputs_are_not_changed(m):
    copies = [a.copy() for a in (Q, K, V)]
    m.attention(Q, K, V, mask=m.causal_mask(7)[:5])
    scores = np.array([1.0, -np.inf, 2.0])
    m.softmax(scores)
    assert all((a == b).all() for a, b in zip((Q, K, V), copies, strict=True)) and np.isneginf(scores[1])


def causal_mask_looks_back_and_at_itself(m):
    mask = m.causal_mask(4)
    assert mask.dtype == bool
    assert mask.tolist() == [[j <= i for j in range(4)] for i in range(4)]
    assert m.causal_mask(1).tolist() == [[True]] and m.causal_mask(np.int64(2)).shape == (2, 2)


def a_causal_mask_with_more_keys_is_aligned_for_a_cache(m):
    assert m.causal_mask(2, 5).tolist() == [[True, True, True, True, False], [True] * 5]
    assert m.causal_mask(1, 4).tolist() == [[True] * 4]
    for n_keys in range(1, 8):
        for n_queries in range(1, n_keys + 1):
            mask = m.causal_mask(n_queries, np.int64(n_keys))
            assert mask.dtype == bool and mask.shape == (n_queries, n_keys)
            assert (mask == m.causal_mask(n_keys)[n_keys - n_queries :]).all()  # the last rows of the square mask


def new_tokens_behind_a_cache_get_the_rows_of_the_full_pass(m):
    X = RNG.normal(size=(7, 8))
    full = m.attention(X, X, X, mask=m.causal_mask(7))[0]
    for new in range(1, 8):
        output = m.attention(X[7 - new :], X, X, mask=m.causal_mask(new, 7))[0]
        np.testing.assert_allclose(output, full[7 - new :], rtol=1e-12)


def a_causal_mask_lets_nothing_leak(m):
    X = RNG.normal(size=(6, 8))
    for j in range(6):
        changed = X.copy()
        changed[j] += 10
        before, after = (m.attention(x, x, x, mask=m.causal_mask(6))[0] for x in (X, changed))
        assert (before[:j] == after[:j]).all() and not np.allclose(before[j], after[j])


def another_weighting_takes_the_softmax_place(m):
    seen = {}

    def relu(scores):
        seen["scores"] = scores
        return np.maximum(scores, 0)

    output, weights = m.attention(Q, K, V, mask=m.causal_mask(7)[:5], weighting=relu)
    assert np.isneginf(seen["scores"][..., ~m.causal_mask(7)[:5]]).all()
    np.testing.assert_allclose(output, np.maximum(seen["scores"], 0) @ V, rtol=1e-12)
    assert (weights >= 0).all() and not np.allclose(weights.sum(axis=-1), 1)


def overflow_is_no_mask(m):
    with np.errstate(over="ignore"):
        big = np.full((2, 100), 1e20, np.float32)
        raises(lambda: m.attention(big, -big / 20, np.eye(2, dtype=np.float32)), "overflows float32")


def half_precision_is_summed_in_single(m):
    """Sums of many float16 numbers stop growing: rows must sum to one along any axis, over any number of keys."""
    zeros, few = np.zeros((5000, 3), np.float16), np.zeros((2, 4), np.float16)
    for weights in (m.softmax(zeros, axis=0).T, m.softmax(zeros.T), m.softmax1(zeros, axis=0).T):
        assert weights.dtype == np.float16
        np.testing.assert_allclose(weights.astype(float).sum(-1), 1, atol=0.01)
    output, weights = m.attention(few, np.zeros((70_000, 4), np.float16), np.ones((70_000, 1), np.float16))
    assert output.dtype == weights.dtype == np.float16
    np.testing.assert_allclose(weights.astype(float).sum(-1), 1, atol=0.02)
    np.testing.assert_allclose(output.astype(float), 1, atol=0.002)
    output, weights = m.attention(few, few, np.ones((2, 3), np.float32))
    assert output.dtype == np.float32 and weights.dtype == np.float16
    large = np.full((2, 100), 200, np.float16)  # scores of 400,000 fit into float32, not into float16
    np.testing.assert_allclose(m.attention(large, large, few)[1], 0.5)
    for counted in (m.relu(zeros + 1, axis=0), m.sigmoid(zeros, axis=0)):
        assert counted.dtype == np.float16 and np.isfinite(counted).all()
    assert (m.relu(np.ones((1, 70_000), np.float16)) > 0).all()  # the count is larger than any float16


def bad_input_is_named(m):
    q, k, v = Q[0, 0], K[0, 0], V[0, 0]
    raises(lambda: m.attention(q[:, :4], k, v), "d_k = 4", "d_k = 8")
    raises(lambda: m.attention(q, k, v[:3]), "7 keys", "3 values")
    raises(lambda: m.attention(q[0], k, v), "Q", "(8,)")
    raises(lambda: m.attention(q[:0], k, v), "Q", "empty")
    raises(lambda: m.attention(q, k[:0], v[:0]), "K", "empty")
    raises(lambda: m.attention(q, np.where(k > 2, np.nan, k) * np.nan, v), "K", "NaN")
    raises(lambda: m.attention(q, k, v + np.inf), "V", "inf")
    raises(lambda: m.attention(Q, K[:, :2], V), "broadcast")
    raises(lambda: m.attention(q, k, v, mask=np.ones((5, 7))), "mask", "bool")
    raises(lambda: m.attention(q, k, v, mask=np.ones((7, 5), bool)), "mask", "(7, 5)")
    raises(lambda: m.attention(q, k, v, mask=np.ones((2, 5, 7), bool)), "mask", "(2, 5, 7)")
    raises(lambda: m.attention(q, k, v, scale=np.nan), "scale")
    raises(lambda: m.attention(q, k, v, scale=[1, 2]), "scale")
    raises(lambda: m.attention(np.array([["a"]]), k, v), "Q")
    raises(lambda: m.softmax([]), "at least one")
    raises(lambda: m.softmax(1.0), "at least one")
    raises(lambda: m.softmax([1, np.nan]), "NaN")
    raises(lambda: m.softmax([1, np.inf]), "inf")
    for function in (m.softmax, m.softmax1, m.relu, m.sigmoid):
        for axis in (2, -3, None, 1.0, True, (0, 1)):
            raises(lambda f=function, a=axis: f(np.ones((2, 2)), axis=a), f"axis is {axis!r}", "from -2 to 1")
    raises(lambda: m.attention(q, k, v, weighting="softmax"), "weighting is 'softmax'", "function")
    raises(lambda: m.attention(q, k, v, weighting=lambda s: s[:1]), "weighting gave", "(1, 7)", "(5, 7)")
    raises(lambda: m.attention(q, [[1.0], [1.0, 2.0]], v), "K has rows of several lengths")
    raises(lambda: m.attention(q, np.ma.masked_array(k, k > 0), v), "K is a masked array", "K.filled")
    raises(lambda: m.attention(q, k, v, mask=np.ma.masked_array([True] * 7, [True] * 7)), "mask is a masked array")
    for n in (0, -1, 2.5, True, "3", (2, 5), None):
        raises(lambda n=n: m.causal_mask(n), "n_queries is", "causal_mask(4)")
    for n in (0, -1, 5.0, True, "5"):
        raises(lambda n=n: m.causal_mask(1, n), "n_keys is")
    raises(lambda: m.causal_mask(5, 2), "n_queries is 5", "n_keys is 2", "first 3 would look nowhere", "cached + new")


def a_sink_is_one_more_key_without_a_token(m):
    scores = np.where(RNG.random((2, 3, 4, 5)) < 0.8, RNG.normal(size=(2, 3, 4, 5)), -np.inf)
    for axis in (1, -1):
        shape = list(scores.shape)
        shape[axis] = 1
        for sink in (0.7, RNG.normal(size=shape)):
            wider = np.concatenate([scores, np.broadcast_to(sink, shape)], axis=axis)
            expected = np.delete(m.softmax(wider, axis), -1, axis=axis)
            np.testing.assert_allclose(m.sink_softmax(scores, sink, axis), expected, rtol=1e-12, atol=1e-15)
    a_head = RNG.normal(size=(3, 1, 1))
    np.testing.assert_allclose(m.sink_softmax(scores, a_head)[1, 2], m.sink_softmax(scores[1, 2], a_head[2, 0, 0]))


def softmax1_can_look_nowhere(m):
    scores = RNG.normal(size=(4, 6))
    exps = np.exp(scores)
    np.testing.assert_allclose(m.softmax1(scores), exps / (1 + exps.sum(axis=-1, keepdims=True)), rtol=1e-12)
    np.testing.assert_allclose(m.softmax1(scores, axis=0), exps / (1 + exps.sum(axis=0)), rtol=1e-12)
    assert m.softmax1(scores - 50).sum() < 1e-15 and (m.softmax1(np.full((2, 3), -np.inf)) == 0).all()


def relu_and_sigmoid_divide_by_a_count(m):
    scores = np.where(m.causal_mask(5), RNG.normal(size=(3, 5, 5)), -np.inf)
    for uncounted in (0, 1):
        relu, sigmoid = m.relu(scores, uncounted=uncounted), m.sigmoid(scores, uncounted=uncounted)
        for row, column in np.argwhere(m.causal_mask(5)):
            s, count = scores[:, row, column], max(row + 1 - uncounted, 1)
            np.testing.assert_allclose(relu[:, row, column], np.where(s > 0, s, 0) / count, rtol=1e-12)
            np.testing.assert_allclose(sigmoid[:, row, column], 1 / (1 + np.exp(-s)) / count, rtol=1e-12)
        assert (relu[:, ~m.causal_mask(5)] == 0).all() and (sigmoid[:, ~m.causal_mask(5)] == 0).all()
    for function in (m.relu, m.sigmoid):
        np.testing.assert_allclose(function(scores, axis=1), np.swapaxes(function(np.swapaxes(scores, 1, 2)), 1, 2))
        np.testing.assert_allclose(function(scores), function(scores, uncounted=0))
        assert (function(np.full((2, 3), -np.inf)) == 0).all()


def alternatives_stay_finite_and_keep_their_type(m):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (np.float16, np.float32, np.float64):
            big = np.array([[6e4, -6e4, 0.0], [-6e4, -6e4, -np.inf], [-np.inf, -np.inf, -np.inf]], dtype)
            for weights in (m.softmax1(big), m.sink_softmax(big, -6e4), m.sink_softmax(big, 6e4), m.sigmoid(big)):
                assert weights.dtype == dtype and np.isfinite(weights).all() and (weights[2] == 0).all()
            assert m.relu(big).dtype == dtype and m.relu(big)[0, 0] == dtype(6e4) / dtype(3)
            np.testing.assert_allclose(m.softmax1(big)[0], [1, 0, 0])
            np.testing.assert_allclose(m.sink_softmax(big, -6e4)[1], [1 / 3, 1 / 3, 0], rtol=2e-3)
            np.testing.assert_allclose(m.sink_softmax(big, 6e4)[0], [1 / 2, 0, 0])
    for function in m.WEIGHTINGS.values():
        assert function([1, 2, 3]).dtype == np.float64


def alternatives_fit_into_attention(m):
    for weighting in (*m.WEIGHTINGS.values(), lambda s: m.sink_softmax(s, 0.3)):
        output, weights = m.attention(Q, K, V, mask=m.causal_mask(7)[:5], weighting=weighting)
        scores = np.where(m.causal_mask(7)[:5], Q @ np.swapaxes(K, -1, -2) / np.sqrt(8), -np.inf)
        np.testing.assert_allclose(weights, weighting(scores), rtol=1e-12)
        np.testing.assert_allclose(output, weighting(scores) @ V, rtol=1e-12)


def bad_input_of_alternatives_is_named(m):
    for function in (*m.WEIGHTINGS.values(), lambda s: m.sink_softmax(s, 0.0)):
        raises(lambda f=function: f(np.zeros((2, 0))), "at least one")
        raises(lambda f=function: f(1.0), "at least one")
        raises(lambda f=function: f([1, np.nan]), "NaN")
        raises(lambda f=function: f([1, np.inf]), "inf")
        raises(lambda f=function: f(np.ma.masked_array([1.0, 2.0], [True, False])), "scores is a masked array")
    for function in (m.relu, m.sigmoid):
        for uncounted in (-1, 0.5, True):
            raises(lambda f=function, u=uncounted: f([1.0], uncounted=u), "uncounted")
    scores = np.zeros((2, 3, 4))
    for sink in (np.zeros(3), np.zeros(4), np.zeros((5, 2, 3, 1))):
        raises(lambda sink=sink: m.sink_softmax(scores, sink), "sink", str(sink.shape))
    raises(lambda: m.sink_softmax(scores, np.nan), "sink")
    raises(lambda: m.sink_softmax(scores, -np.inf), "sink")
    raises(lambda: m.sink_softmax(scores, 1j), "sink has type complex")
    raises(lambda: m.sink_softmax(scores, "a"), "sink has type")
    raises(lambda: m.sink_softmax(np.float32(scores), 1e300), "sink contains NaN or inf in float32")


def every_weighting_keeps_what_is_promised(m):
    """Masked places get nothing, half precision stays what it is, a constant added to no axis but its own counts."""
    scores = RNG.normal(size=(3, 6))
    scores[:, 4:] = -np.inf
    scores[2] = -np.inf
    for function in (*m.WEIGHTINGS.values(), lambda s, axis=-1: m.sink_softmax(s, 0.3, axis)):
        weights = function(scores)
        assert (weights[:, 4:] == 0).all() and (weights[2] == 0).all() and np.isfinite(weights).all()
        np.testing.assert_allclose(function(scores.T, axis=0), weights.T, rtol=1e-12)
        for dtype in (np.float16, np.float32, np.float64):
            assert function(scores.astype(dtype)).dtype == dtype
        half = function(np.zeros((1, 70_000), np.float16)).astype(float)
        np.testing.assert_allclose(half, function(np.zeros((1, 70_000))), atol=6e-8)  # a step of float16's smallest


CHECKS = [check for name, check in list(globals().items()) if callable(check) and name not in ("reference", "raises")]
