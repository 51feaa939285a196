"""Time one training step of chapter 5's model: this package on autograd against PyTorch, one thread each.

Both train the same Vision Transformer in miniature (pre-norm, 16 tokens, d = 32, d_ff = 64, one head, 4 layers) from
the same parameters on the same batches, in turns, so that what else the machine does meets both. Prints the median
of each and of their ratio, checks that the losses agree, and says where the time of our step goes.

    python benchmarks/training_step.py [--batch 32] [--layers 4] [--rounds 15] [--steps 20]
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from attn_utils.gradients import cross_entropy, rms_norm
from attn_utils.tasks import digits_as_patches
from attn_utils.training import fit
from attn_utils.vision_transformer import classifier, init_classifier

SIZES = {"d_patch": 4, "n_tokens": 16, "n_classes": 10, "n_heads": 1, "d": 32, "d_ff": 64}
RATE = 1e-3


def our_loss(params, X, y):
    return cross_entropy(classifier(params, X, norm=rms_norm)[0], y)


def ours(params, batches):
    """The losses of one training and the seconds of each of its steps."""
    times, draws = [time.perf_counter()], iter(batches)
    _, losses = fit(
        our_loss,
        params,
        lambda rng: next(draws),
        len(batches),
        rng=np.random.default_rng(0),
        lr=RATE,
        on_step=lambda step, params: times.append(time.perf_counter()),
        progress=False,
    )
    return losses, np.diff(times)


def theirs(params, batches):
    """The same with PyTorch, as one would write it there: modules' functions, torch.optim.Adam, no compilation."""
    import torch

    torch.set_num_threads(1)
    params = {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}
    optimizer = torch.optim.Adam(params.values(), lr=RATE)
    batches = [(torch.from_numpy(X), torch.from_numpy(y)) for X, y in batches]
    losses, times = [], [time.perf_counter()]
    for X, y in batches:
        loss = torch.nn.functional.cross_entropy(torch_classifier(params, X), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter())
    return np.array(losses), np.diff(times)


def torch_classifier(params, X):
    """The forward pass of classifier() with rms_norm, one head and all skips."""
    from torch.nn.functional import gelu, linear, rms_norm

    p = params
    X = X @ p["embed.W"] + p["embed.position"]  # (batch, n_tokens, d)
    d, n_layers = X.shape[-1], sum(name.endswith("W_Q") for name in p)
    for i in range(n_layers):
        x = rms_norm(X, (d,), eps=1e-6)
        Q, K, V = (x @ p[f"{i}.{name}"][0] for name in ("W_Q", "W_K", "W_V"))
        weights = (Q @ K.transpose(-1, -2) / d**0.5).softmax(-1)  # (batch, n_tokens, n_tokens)
        X = X + weights @ V @ p[f"{i}.W_O"][0]
        hidden = gelu(linear(rms_norm(X, (d,), eps=1e-6), p[f"{i}.W_1"].T, p[f"{i}.b_1"][0]), approximate="tanh")
        X = X + linear(hidden, p[f"{i}.W_2"].T, p[f"{i}.b_2"][0])
    return linear(X.mean(-2), p["head.W"].T, p["head.b"][0])  # (batch, n_classes)


def forward(params, batches):
    """The seconds of each forward pass, without a tape for gradients."""
    times = [time.perf_counter()]
    for X, y in batches:
        our_loss(params, X, y)
        times.append(time.perf_counter())
    return np.diff(times)


def draw_batches(n, size):
    (X, y), _ = digits_as_patches()
    chosen = np.random.default_rng(0).integers(len(X), size=(n, size))
    return [(X[rows], y[rows]) for rows in chosen]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("batch", 32), ("layers", 4), ("rounds", 15), ("steps", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    params = init_classifier(np.random.default_rng(0), n_layers=options.layers, **SIZES)
    batches = draw_batches(options.steps, options.batch)
    found = []
    threadpool_limits(1)
    for _ in range(options.rounds):
        (our_losses, our_times), (their_losses, their_times) = ours(params, batches), theirs(params, batches)
        np.testing.assert_allclose(our_losses, their_losses, rtol=1e-3)
        found.append([np.median(times) for times in (our_times, their_times, forward(params, batches))])
    we, they, plain = np.array(found[1:]).T  # (rounds,) each: the first round warms up
    rows = {"ours, ms": we * 1e3, "PyTorch, ms": they * 1e3, "ratio": we / they, "forward share": plain / we}
    for name, values in rows.items():
        low, middle, high = np.percentile(values, (10, 50, 90))
        print(f"{name:14s} median {middle:.2f}   from {low:.2f} to {high:.2f} (10th to 90th percentile)")


if __name__ == "__main__":
    main()
