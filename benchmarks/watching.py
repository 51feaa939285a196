"""What watch() costs: its share of the time of chapter 5's training steps, one thread.

Each call is timed inside the training that it watches, so that what else the machine does meets both alike. Prints the
median time of a step, and what watching adds to it, with its 10th to 90th percentile over trainings; and checks that
the losses are those of a training that nobody watches.

    python benchmarks/watching.py [--batch 32] [--layers 4] [--rounds 15] [--steps 40] [--every 10 1]
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn
from training_step import RATE, SIZES, draw_batches, our_loss

from attn_utils.diagnosis.watch import watch
from attn_utils.gradients import rms_norm
from attn_utils.training import fit
from attn_utils.vision_transformer import classifier, init_classifier


def train(params, batches, on_step=None):
    """The losses of one training."""
    draws = iter(batches)
    return fit(
        our_loss,
        params,
        lambda rng: next(draws),
        len(batches),
        rng=np.random.default_rng(0),
        lr=RATE,
        on_step=on_step,
        progress=False,
    )[1]


def measure(params, batches, every):
    """(seconds of a step without watching, share that watching adds) of one training, and its losses."""
    one, spent = batches[0][0][:1], []
    seen = watch(lambda params: classifier(params, one, norm=rms_norm)[1], every=every)

    def timed(step, params):
        start = time.perf_counter()
        seen(step, params)
        spent.append(time.perf_counter() - start)

    start = time.perf_counter()
    losses = train(params, batches, timed)
    own = time.perf_counter() - start - sum(spent)
    return own / len(batches), sum(spent) / own, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("batch", 32), ("layers", 4), ("rounds", 15), ("steps", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--every", type=int, nargs="+", default=[10, 1])
    options = parser.parse_args()
    params = init_classifier(np.random.default_rng(0), n_layers=options.layers, **SIZES)
    batches = draw_batches(options.steps, options.batch)
    threadpool_limits(1)
    alone = train(params, batches)
    for every in options.every:
        steps, shares = [], []
        for _ in range(options.rounds):
            step, share, losses = measure(params, batches, every)
            np.testing.assert_array_equal(losses, alone)  # looking changes nothing
            steps.append(step * 1e3)
            shares.append(share)
        low, middle, high = np.percentile(shares, (10, 50, 90))
        added = f"{middle:.1%} ({low:.1%} to {high:.1%})"
        print(f"every {every:3d}: a step of {np.median(steps):.1f} ms, watching adds {added}")


if __name__ == "__main__":
    main()
