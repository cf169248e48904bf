# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library %python %s
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Bits of attention's gradients where blocks begin in any order, and take turns of any length: the same with
`order = deterministic`, others with `order = any`. With three multiprocessors fewer blocks run at a time than a head has."""

import hashlib
import os
import subprocess
import sys

import numpy as np

import fp8
from attention_gradients import Gradients
from attention_programs import DTYPES

SEEDS = 3
CASES = {
    # Rounded to 11 bits, so that other bits of sums show.
    "full": Gradients("f16", 1, 128, 500, 2, 1, 64, grad="f16"),
    "causal": Gradients("bf16", 1, 400, 400, 1, 1, 64, window=(None, 0)),
    "codes": Gradients("e4m3", 1, 200, 400, 1, 1, 128, window=(300, 30)),
}


def compute(case):
    """Hashes of two calls, one after the other with the same workspaces."""
    rng = np.random.default_rng(2026)
    arguments, values, others = case.make(rng)
    grad = rng.standard_normal(case.shape(case.queries, case.heads, case.dim_of_v)).astype(DTYPES[case.grad])
    output, lse = case.expect(*values, others)
    _, delta = case.differentiate(grad.astype(np.float64), *values, output, lse)
    program = fp8.compile(case.program(), target="sm_90a", cache=False)
    for _ in range(2):
        found = program(grad, *arguments, *(np.ascontiguousarray(x, np.float32) for x in (lse, delta)))
        print(*(hashlib.sha256(np.asarray(x).tobytes()).hexdigest()[:16] for x in found))


def run(name, order, seed, check="none"):
    """Lines of hashes of dQ, dK and dV; or what is reported, if something is."""
    environment = {**os.environ, "FP8_EMULATOR_SEED": str(seed), "FP8_EMULATOR_BLOCKS": "shuffled",
                   "FP8_EMULATOR_SMS": "3", "FP8_EMULATOR_STEPS": "400000000",
                   "FP8_EMULATOR_CHECK": check}
    done = subprocess.run([sys.executable, __file__, name, order], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def main():
    if len(sys.argv) == 3:
        case = CASES[sys.argv[1]]
        case.order = sys.argv[2]
        return compute(case)
    for name in CASES:
        lines = [line for seed in range(1, SEEDS + 1)
                 for line in run(name, "deterministic", seed, "all,sums" if seed == 1 else "none")]
        assert len(lines) == 2 * SEEDS and all(line == lines[0] for line in lines), (name, lines)
    assert "a term of the sum in global memory" in run("full", "any", 1, check="sums")
    others = [line for seed in range(1, SEEDS + 1) for line in run("full", "any", seed)]
    assert len({line[0] for line in others}) > 1, ("every order has the same dQ", others)
    assert len({tuple(line[1:]) for line in others}) == 1, others
    return 0


if __name__ == "__main__":
    sys.exit(main())
