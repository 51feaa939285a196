"""Make attn_utils/data/full_scale/heads-of-pytorch.json: what PyTorch's MultiheadAttention finds, to compare with.

    make reference-test                                         sets up .venv-reference, which has PyTorch
    .venv-reference/bin/python tools/make_heads_reference.py

The book's own environment has no PyTorch, so inputs and outputs travel with the package: the evidence of chapter 1
compares its two heads with them, and tests/test_heads.py runs PyTorch on them again. All in float64, without biases
and dropout. Inputs are multiples of 1/64, and what was found is rounded to 7 decimals, so that the file is small.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attn_utils.full_scale import keep  # noqa: E402

CASES = ((2, 8, 3, False), (2, 12, 9, True), (3, 12, 8, False), (4, 16, 6, True), (1, 8, 5, False))
NAME = "heads-of-pytorch"


def inputs(seed, d, n_tokens):
    """Tokens X (n_tokens, d) and the matrices W_Q, W_K, W_V, W_O, (d, d) each: multiples of 1/64."""
    rng = np.random.default_rng(seed)
    drawn = {"X": rng.normal(size=(n_tokens, d))}
    drawn |= {name: rng.normal(size=(d, d)) / np.sqrt(d) for name in ("W_Q", "W_K", "W_V", "W_O")}
    return {name: np.round(64 * value) / 64 for name, value in drawn.items()}


def by_pytorch(n_heads, causal, X, W_Q, W_K, W_V, W_O):
    """(output (n_tokens, d), weights (n_heads, n_tokens, n_tokens)) of torch.nn.MultiheadAttention in float64.

    PyTorch multiplies by the transposed matrices, keeps the first three in one, and forbids where its mask is True.
    """
    n_tokens, d = X.shape
    layer = torch.nn.MultiheadAttention(d, n_heads, bias=False, batch_first=True, dtype=torch.float64)
    forbidden = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1) if causal else None
    X, *matrices = (torch.tensor(array) for array in (X, W_Q, W_K, W_V, W_O))
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([W.T for W in matrices[:3]]))
        layer.out_proj.weight.copy_(matrices[3].T)
        output, weights = layer(X[None], X[None], X[None], attn_mask=forbidden, average_attn_weights=False)
    return output[0].numpy(), weights[0].numpy()


def main():
    start, cases = time.perf_counter(), []
    for seed, (n_heads, d, n_tokens, causal) in enumerate(CASES):
        drawn = inputs(seed, d, n_tokens)
        output, weights = by_pytorch(n_heads, causal, **drawn)
        found = {"output": output.round(7), "weights": weights.round(7)}
        cases.append({"n_heads": n_heads, "causal": causal, **drawn, **found})
    engine = f"torch.nn.MultiheadAttention of PyTorch {torch.__version__.split('+')[0]}"
    settings = {"cases": len(CASES), "dtype": "float64", "script": "tools/make_heads_reference.py"}
    print(keep(NAME, cases, settings, time.perf_counter() - start, engine))


if __name__ == "__main__":
    main()
