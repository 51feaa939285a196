"""Matrices for the tests of spectra: drawn at random, and Hypothesis strategies for small ones."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def gauss(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# entries of whole sixteenths: no subnormal numbers, and still ties, zeros and cancellations
SIXTEENTHS = st.integers(-160, 160).map(lambda n: n / 16)


def matrices(min_side=1, max_side=7):
    return hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=min_side, max_side=max_side),
                      elements=SIXTEENTHS)  # fmt: skip


SQUARE_SCORES = st.integers(2, 7).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=SIXTEENTHS))
