"""What diagnose() costs on long contexts: seconds and the peak of memory, each case in a process of its own.

Weights of 2,048 tokens, 32 layers and 32 heads in float16 (8.6 GB) are read from a file as .npy, and come from a
generator that makes each layer as it is asked for. Queries and keys of 32,768 tokens are one head each, full and
causal: their matrix of weights would take 4.3 GB. Heads are of several kinds, one after the other: wide and sharp,
with a sink, local.

    python benchmarks/diagnosing.py [--cores 2] [--layers 32] [--heads 32] [--tokens 2048] [--long 32768] [--folder DIR]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from attn_utils import diagnose, softmax


def heads(T, count, causal):
    """(1, count, T, T) in float16: heads of several kinds."""
    rng, far = np.random.default_rng(0), np.abs(np.subtract.outer(np.arange(T), np.arange(T))).astype(np.float32)
    made = np.empty((1, count, T, T), np.float16)
    for i in range(count):
        scores = rng.normal(size=(T, T)).astype(np.float32) * (0.5, 2, 4)[i % 3]
        scores -= (0, 0.05)[i % 2] * far
        scores[:, 0] += (0, 0, 0, 8)[i % 4]
        if causal:
            scores[far.astype(bool) & ~np.tri(T, dtype=bool)] = -np.inf
        made[0, i] = softmax(scores)
    return made


def shifted(base, layer):
    """Another layer out of the same heads, in another order."""
    return np.roll(base, layer, axis=1)


def write(path, options):
    """The file of weights, layer by layer."""
    base = heads(options.tokens, options.heads, causal=True)
    whole = np.lib.format.open_memmap(path, "w+", np.float16, (options.layers, *base.shape))
    for layer in range(options.layers):
        whole[layer] = shifted(base, layer)
    whole.flush()


def passing(base, options, spent):
    for layer in range(options.layers):
        start = time.perf_counter()
        made = shifted(base, layer)
        spent.append(time.perf_counter() - start)
        yield made
        del made


def pair(options):
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, options.long, 64)).astype(np.float32)


def run(case, options):
    """One case in this process."""
    threadpool_limits(options.cores)
    spent, what = [], Path(options.folder) / "weights.npy"
    if case == "file":
        given = {"given": what}
    elif case == "generator":
        given = {"given": passing(heads(options.tokens, options.heads, causal=True), options, spent)}
    else:
        Q, K = pair(options)
        given = {"queries": Q, "keys": K, "causal": case == "causal pair"}
    start, busy = time.perf_counter(), time.process_time()
    found = diagnose(**given, progress=False)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # KB on Linux
    count = sum(layer["n_heads"] for layer in found.layers)
    made = f", {sum(spent):.0f} s of them making layers" if spent else ""
    print(f"{case:12s} {count:5d} heads: {seconds:6.1f} s (CPU {busy:.1f} s){made}, peak {peak:.2f} GB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("cores", 2), ("layers", 32), ("heads", 32), ("tokens", 2048), ("long", 32_768)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", help="where the file of weights is written, and deleted again")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case == "write":
        return write(f"{options.folder}/weights.npy", options)
    if options.case:
        return run(options.case, options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for case in ("write", "file", "generator", "pair", "causal pair"):
            arguments = [*sys.argv[1:], "--folder", folder, "--case", case]
            limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(options.cores))
            subprocess.run([sys.executable, __file__, *arguments], check=True, env=os.environ | limits)


if __name__ == "__main__":
    main()
