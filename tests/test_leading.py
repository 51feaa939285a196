"""attn_utils.leading: singular values against full decompositions and closed forms, formed and never formed."""

import subprocess
import sys

import numpy as np
import pytest
from drawn import gauss, matrices
from hypothesis import given, settings
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from attn_utils import attention, causal_mask, softmax
from attn_utils.leading import attention_singular_values, singular_values
from attn_utils.spectra import (
    condition_number,
    spectral_gap,
    stable_rank,
    stable_rank_gram,
    token_cosine,
    token_spread,
)

# ---------------------------------------------------------------- singular values


@pytest.mark.parametrize("shape", [(60, 60), (200, 50), (50, 200), (3, 40, 40), (2, 3, 30, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_leading_singular_values_equal_the_full_decomposition(shape, dtype):
    A = gauss(*shape).astype(dtype)
    full = np.linalg.svd(A.astype(float), compute_uv=False)
    for k in (1, 2, 5, min(shape[-2:])):
        found = singular_values(A, k)
        assert found.dtype == dtype and found.shape == (*shape[:-2], k)
        np.testing.assert_allclose(found, full[..., :k], rtol=1e-4 if dtype == "float32" else 1e-6)
    np.testing.assert_allclose(singular_values(A), full, rtol=1e-3, atol=1e-4 if dtype == "float32" else 1e-12)


def test_a_linear_operator_is_enough():
    A, B = gauss(60, 60), gauss(60, 60, seed=1)
    product = aslinearoperator(A) @ aslinearoperator(B)
    np.testing.assert_allclose(singular_values(product, 3), np.linalg.svd(A @ B, compute_uv=False)[:3], rtol=1e-8)
    np.testing.assert_allclose(singular_values(aslinearoperator(A[:5, :5]), 3), singular_values(A[:5, :5])[:3])


def test_a_second_call_gives_the_same_digits():
    A = gauss(80, 80)
    assert np.array_equal(singular_values(A, 2), singular_values(A, 2))
    Q, K = gauss(2, 70, 5)
    assert np.array_equal(attention_singular_values(Q, K), attention_singular_values(Q, K))


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_scale_does_not_matter(scale):
    A = gauss(40, 40)
    np.testing.assert_allclose(singular_values(scale * A, 2), scale * singular_values(A, 2), rtol=1e-7)
    for measure in (stable_rank, stable_rank_gram, token_cosine, token_spread, condition_number, spectral_gap):
        np.testing.assert_allclose(measure(scale * A), measure(A), rtol=1e-6)


def test_zeros_are_answered():
    zeros = np.zeros((30, 20))
    assert np.array_equal(singular_values(zeros, 2), [0, 0])
    assert spectral_gap(zeros) == stable_rank(zeros) == stable_rank_gram(zeros) == token_spread(zeros) == 0
    assert token_cosine(zeros) == 0 and condition_number(zeros) == np.inf


@given(matrices())
@settings(max_examples=100, deadline=None)
def test_singular_values_are_ordered_and_hold_the_frobenius_norm(A):
    values = singular_values(A)
    assert (np.diff(values) <= 1e-12).all() and (values >= 0).all()
    np.testing.assert_allclose((values**2).sum(), (A**2).sum(), atol=1e-9)
    np.testing.assert_allclose(singular_values(A.T), values, atol=1e-9)


# ---------------------------------------------------- matrix-free, for attention


@pytest.mark.parametrize("shape", [(90, 90, 6), (120, 70, 3), (70, 120, 8), (64, 64, 64), (5, 5, 2), (9, 4, 3)])
@pytest.mark.parametrize("block", [1, 17, 1000])
def test_matrix_free_equals_the_full_decomposition(shape, block):
    n, m, d = shape
    Q, K = gauss(n, d), gauss(m, d, seed=1)
    full = np.linalg.svd(attention(Q, K, K)[1], compute_uv=False)
    found = attention_singular_values(Q, K, 3, block=block, tol=1e-6, max_passes=60)
    np.testing.assert_allclose(found, full[:3], rtol=1e-4)


def test_matrix_free_with_a_causal_mask_a_scale_and_float32():
    Q, K = gauss(2, 100, 8).astype(np.float32)
    weights = attention(Q, K, K, mask=causal_mask(100), scale=0.7)[1]
    found = attention_singular_values(Q, K, 2, scale=0.7, causal=True, block=30)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.svd(weights, compute_uv=False)[:2], rtol=2e-3)


def test_matrix_free_survives_large_scores():
    Q, K = 40 * gauss(2, 60, 4)
    full = np.linalg.svd(attention(Q, K, K)[1], compute_uv=False)
    np.testing.assert_allclose(attention_singular_values(Q, K, 2, tol=1e-6, max_passes=60), full[:2], rtol=1e-4)


def test_matrix_free_never_holds_the_matrix():
    """At T = 4,096 the weights alone would be 67 MB in float32; the peak stays far below."""
    import tracemalloc

    Q, K = gauss(2, 4096, 4).astype(np.float32)
    tracemalloc.start()
    attention_singular_values(Q, K, 2, block=64, tol=1e-2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15e6


def test_no_convergence_is_said():
    Q, K = gauss(2, 300, 300)
    with pytest.raises(RuntimeError, match="Raise max_passes or tol"):
        attention_singular_values(Q, K, 2, tol=1e-12, max_passes=3)


# ---------------------------------------------- values that repeat, cluster or vanish


def orthogonal(n, m, seed):
    return np.linalg.qr(gauss(n, m, seed=seed))[0]


def repeated(values, n=100, m=100):
    """A matrix with these singular values, and zeros."""
    values = np.r_[values, np.zeros(min(n, m))][: min(n, m)]
    return orthogonal(n, min(n, m), 1) * values @ orthogonal(m, min(n, m), 2).T


EYE, SHUFFLE = np.eye(100), np.random.default_rng(0).permutation(100)
DEGENERATE = {
    "identity": EYE,
    "permutation": EYE[SHUFFLE],
    "previous token": np.vstack([EYE[:1], EYE[:-1]]),
    "one-hot": EYE[np.random.default_rng(1).integers(0, 100, 100)],
    "all to one": np.repeat(EYE[:1], 100, axis=0),
    "half on itself, half on one": (EYE + np.repeat(EYE[:1], 100, axis=0)) / 2,
    "uniform": np.full((100, 100), 0.01),
    "blocks": np.kron(np.eye(10), np.full((10, 10), 0.1)),
    "cycles of a permutation": (EYE + EYE[SHUFFLE] + EYE[SHUFFLE].T) / 3,  # each has a singular value of one
    "one row": EYE * (np.arange(100) == 0),
    "one value, fifty times": repeated(np.ones(50)),
    "in pairs": repeated([3, 3, 2, 2, 1, 1]),
    "clustered": repeated(1 + 1e-9 * np.arange(10)[::-1]),
    "tall": np.eye(200, 100),
    "wide": np.eye(100, 200),
    "almost the identity": EYE + 1e-8 * gauss(100, 100),
    "tiny": 1e-30 * EYE,
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_degenerate_spectra_have_their_values(name, dtype):
    """Iterations from one start give up on these, or find one of several equal values."""
    A = DEGENERATE[name].astype(dtype)
    full = np.linalg.svd(A.astype(float), compute_uv=False)
    wrapped = [A] if dtype == "float16" else [A, aslinearoperator(A)]
    for k in (1, 2, 5):
        for each in wrapped:
            found = singular_values(each, k)
            assert found.dtype == dtype and found.shape == (k,)
            tolerance = {"float16": 1e-3, "float32": 2e-5, "float64": 1e-7}[dtype]
            np.testing.assert_allclose(found, full[:k], rtol=tolerance, atol=tolerance * full[0])


@pytest.mark.parametrize("name", ["identity", "permutation", "previous token", "one-hot", "cycles of a permutation"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_measure_takes_a_degenerate_spectrum(name, dtype):
    A = DEGENERATE[name].astype(dtype)
    s = np.linalg.svd(A.astype(float), compute_uv=False)
    assert np.isclose(spectral_gap(A), 1 - s[1] / s[0], atol=1e-4)
    assert np.isclose(stable_rank(A), (s**2).sum() / s[0] ** 2, rtol=1e-4)
    assert np.isclose(stable_rank_gram(A), (s**4).sum() / s[0] ** 4, rtol=1e-4)


def test_an_operator_of_any_size_is_not_taken_for_zero():
    for scale in (1e-300, 1e-200, 1e200):
        found = singular_values(aslinearoperator(scale * np.diag(np.arange(1.0, 41))), 2)
        np.testing.assert_allclose(found, [40 * scale, 39 * scale], rtol=1e-9)


LOOKS_AT = {  # scores of 1,000 and 0: each query looks at one key, or at ten alike
    "itself": (EYE, EYE),
    "another": (EYE, EYE[SHUFFLE]),
    "the one before": (EYE, np.roll(EYE, -1, axis=0)),
    "the same": (np.ones((100, 1)), np.eye(100, 1)),
    "its own ten": (np.repeat(np.eye(10), 10, axis=0), np.repeat(np.eye(10), 10, axis=0)),
    "all": (0 * EYE, EYE),
}


@pytest.mark.parametrize("name", LOOKS_AT)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
def test_matrix_free_takes_degenerate_attention(name, dtype, causal):
    Q, K = (array.astype(dtype) for array in LOOKS_AT[name])
    mask = causal_mask(100) if causal else None
    weights = attention(*(array.astype(float) for array in (Q, K, K)), mask=mask, scale=1000)[1]
    full = np.linalg.svd(weights, compute_uv=False)
    for k in (1, 2, 5):
        found = attention_singular_values(Q, K, k, scale=1000, causal=causal, tol=1e-4)
        np.testing.assert_allclose(found, full[:k], rtol=2e-3, atol=1e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-3), ("float64", 1e-10)])
def test_matrix_free_sees_far_below_the_first_value(dtype, tolerance):
    """The sixth to eighth values are 3e-5 of the first; from the squares, float32 gave more than double."""
    Q, K = (0.1 * gauss(2, 400, 4)).astype(dtype)
    full = np.linalg.svd(attention(*(array.astype(float) for array in (Q, K, K)))[1], compute_uv=False)
    assert full[7] < 1e-4
    np.testing.assert_allclose(attention_singular_values(Q, K, 8), full[:8], rtol=tolerance)


def test_matrix_free_ends_where_the_rest_is_rounding():
    for scale in (0, 1e-7, 1e-5):
        for seed in range(5):
            Q, K = scale * gauss(2, 150, 3, seed=seed)
            assert np.isclose(attention_singular_values(Q, K, 8)[0], 1, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_the_ends_of_a_type_are_answered_or_refused_in_words(dtype):
    info = np.finfo(dtype)
    for n, k in ((5, 2), (40, 2)):
        top = np.full((n, n), info.max)
        with np.errstate(over="raise"), pytest.raises(ValueError, match=f"values overflow {np.dtype(dtype)}, expected"):
            singular_values(top, k)
        for eye in (np.eye(n, dtype=dtype) * size for size in (info.smallest_normal, info.max / 2)):
            np.testing.assert_allclose((singular_values(eye, k) / eye[0, 0]).astype(float), 1, rtol=1e-6)


def test_an_operator_of_subnormal_numbers_is_not_taken_for_zero():
    tiny = np.diag(np.arange(1.0, 41)) * 1e-315
    np.testing.assert_allclose(singular_values(aslinearoperator(tiny), 2) / 1e-315, [40, 39], rtol=1e-6)


def test_an_operator_that_cannot_be_worked_with_is_refused_in_words():
    A = gauss(40, 40)
    for n in (5, 40):
        lame = LinearOperator((n, n), matvec=lambda v, n=n: A[:n, :n] @ v, dtype=float)
        with pytest.raises(ValueError, match="no rmatvec, expected"):
            singular_values(lame, 2)
        lame = LinearOperator((n, n), matvec=lambda v: v, rmatvec=lambda v: np.nan * v, dtype=float)
        with pytest.raises(ValueError, match="NaN or inf"):
            singular_values(lame, 2)
    with pytest.raises(ValueError, match="type float.*Give it dtype=float"):
        singular_values(aslinearoperator(A.astype(np.longdouble)), 2)


def test_a_k_of_a_small_type_does_not_overflow():
    A = gauss(260, 260)
    for small in (np.int8, np.uint8):
        np.testing.assert_allclose(singular_values(A, small(16)), singular_values(A, 16))
        np.testing.assert_allclose(singular_values(A, small(127)), singular_values(A, 127))
        assert len(attention_singular_values(A[:, :3], A[:, :3], small(2), block=small(100))) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_takes_no_full_decomposition(dtype, monkeypatch):
    """Neither the second look nor its tolerance may send every matrix to the decomposition that k is there to avoid."""
    from attn_utils import leading

    Q, K, mask = *gauss(2, 200, 8), causal_mask(200)
    causal = [attention(Q, K, K, mask, scale)[1].astype(dtype) for scale in (0, 0.35, 2)]
    expected = [np.linalg.svd(A.astype(float), compute_uv=False)[:3] for A in causal]
    full = np.linalg.svd

    def small(A, **options):
        assert min(A.shape) < 100
        return full(A, **options)

    monkeypatch.setattr(leading.np.linalg, "svd", small)
    for A, values in zip(causal, expected, strict=True):
        for k in (1, 2, 3):
            tolerance = 1e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(singular_values(A, k), values[:k], rtol=tolerance)


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.full((3, 3), np.nan), "NaN or inf"),
        (np.full((3, 3), np.inf), "NaN or inf"),
        (np.ones(3), "expected"),
        (np.ones((0, 3)), "empty"),
        (np.ones((3, 3), complex), "real numbers"),
        (np.array([["a", "b"]]), "real numbers"),
    ],
)
def test_bad_matrices_are_refused_with_words(bad, words):
    with pytest.raises(ValueError, match=words):
        singular_values(bad)


@pytest.mark.parametrize("k", [0, -1, 6, 2.0, True, "two"])
def test_a_bad_k_is_refused(k):
    with pytest.raises(ValueError, match="whole number from 1 to 5"):
        singular_values(gauss(5, 8), k)
    with pytest.raises(ValueError, match="whole number from 1 to 5"):
        attention_singular_values(gauss(5, 2), gauss(8, 2), k)


def test_float16_and_operators_of_any_real_kind_work():
    A = softmax(gauss(40, 40)).astype(np.float16)
    assert singular_values(A, 2).dtype == singular_values(A).dtype == np.float16
    Q, K = gauss(2, 40, 3)
    found = attention_singular_values(Q.astype(np.float16), K.astype(np.float16))
    assert found.dtype == np.float16 and np.allclose(found, attention_singular_values(Q, K), atol=0.01)
    whole = aslinearoperator(np.diag(np.arange(40)))
    assert np.allclose(singular_values(whole, 2), [39, 38])
    for n in (5, 40):
        assert np.array_equal(singular_values(aslinearoperator(np.zeros((n, n))), 2), [0, 0])
        with pytest.raises(ValueError, match="NaN or inf"):
            singular_values(aslinearoperator(np.full((n, n), np.nan)), 2)
    with pytest.raises(ValueError, match="real numbers"):
        singular_values(aslinearoperator(1j * gauss(40, 40)), 2)


@pytest.mark.parametrize(
    ("option", "values"),
    [("block", [0, -1, 2.5, "a", True]), ("max_passes", [0, 1.5, None]), ("tol", [0, -1, 1, np.nan, "a", True])],
)
def test_efforts_out_of_range_are_refused(option, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{option} is"):
            attention_singular_values(gauss(5, 3), gauss(5, 3), 2, **{option: value})


def test_scores_that_overflow_are_said():
    for Q in (1e200 * gauss(5, 3), (1e25 * gauss(5, 3)).astype(np.float32)):
        with pytest.raises(ValueError, match="overflow"):
            attention_singular_values(Q, Q, 2)


def test_a_linear_operator_needs_k():
    with pytest.raises(ValueError, match="k is None"):
        singular_values(aslinearoperator(gauss(30, 30)))


def test_other_mistakes_are_explained():
    with pytest.raises(ValueError, match="d_k|expected .n_queries, d_k."):
        attention_singular_values(gauss(5, 2), gauss(5, 3))
    with pytest.raises(ValueError, match="Choose a head"):
        attention_singular_values(gauss(2, 5, 3), gauss(2, 5, 3))
    with pytest.raises(ValueError, match="as many queries as keys"):
        attention_singular_values(gauss(5, 2), gauss(6, 2), causal=True)
    with pytest.raises(ValueError, match="NaN"):
        attention_singular_values(np.full((5, 2), np.nan), gauss(5, 2))
    with pytest.raises(ValueError, match="scale"):
        attention_singular_values(gauss(5, 2), gauss(5, 2), scale=np.nan)
    with pytest.raises(ValueError, match="block"):
        attention_singular_values(gauss(5, 2), gauss(5, 2), block=0)


def test_importing_stays_light():
    code = "import sys, attn_utils.leading; print('scipy' in sys.modules, 'matplotlib' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["False", "False"]
