"""The clean side of grading: a process of its own, started by grade.py, that knows the answers and runs none."""

import json
import sys

import numpy as np

from attn_utils import checks


def serve(names):
    """For each check: send each case as a line, read a line of reply, end with the verdict. The seed is secret."""
    for name in names:
        verdict = checks.CHECKS[name].judge(ask, np.random.default_rng())
        print(json.dumps({"kind": verdict.kind, "text": str(verdict)}), flush=True)


def ask(line):
    print(line, flush=True)
    return sys.stdin.readline()
