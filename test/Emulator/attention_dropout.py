# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Which shares of attention are left out: the same ones forward and backward, on the emulator and on a CPU, as the rule says;
and no others for another offset or head. With the identity as values, results are shares, and so are gradients of values."""

import numpy as np

import fp8
from attention_gradients import Gradients
from attention_programs import DTYPES, Attention
from dropout import kept

RATE = 0.25


def find_shares(case, target, arguments):
    """What is there of batches x heads x queries x keys, by results that have a column for each key."""
    found = np.asarray(fp8.compile(case.program(), target=target, cache=False)(*arguments)).astype(np.float32)
    return found.transpose(0, 2, 1, 3) != 0 if case.layout == "bshd" else found != 0


def find_shares_of_gradients(case, target, arguments):
    """The same by the gradient of values: the gradient of the result has a column for each query."""
    found = fp8.compile(case.program(), target=target, cache=False)(*arguments)
    return np.asarray(found[2]).astype(np.float32).transpose(0, 2, 3, 1) != 0


def main():
    rng = np.random.default_rng(2026)
    forward = Attention("bf16", 2, 130, 64, 3, 3, 64, lse=False, dropout=RATE)
    backward = Gradients("bf16", 2, 64, 200, 3, 3, 64, dropout=RATE)
    for state in ([1, 0], [1, 4], [-5, 2**40], list(rng.integers(-2**63, 2**63 - 1, 2))):
        state = np.array(state, np.int64)
        arguments, _, _ = forward.make(rng)
        arguments[2][:] = np.eye(64, dtype=np.float32)[None, :, None].astype(DTYPES["bf16"])
        arguments[-1] = state
        expected, _ = kept(state, RATE, 2, 3, 130, 64)
        for target in ("cpu", "sm_90a"):
            assert (find_shares(forward, target, arguments) == expected).all(), (target, state)
        arguments, _, _ = backward.make(rng)
        arguments[-1:] = [np.zeros((2, 3, 64), np.float32), np.zeros((2, 3, 64), np.float32), state]
        grad = np.zeros((2, 64, 3, 64), DTYPES["bf16"])
        grad[:] = np.eye(64)[None, :, None]
        expected, _ = kept(state, RATE, 2, 3, 64, 200)
        for target in ("cpu", "sm_90a"):
            assert (find_shares_of_gradients(backward, target, [grad, *arguments]) == expected).all(), (target, state)
    many, factor = kept(np.array([7, 3]), 0.1, 4, 8, 256, 256)
    assert abs(many.mean() - 1 / factor) < 1e-3
    # Neighbours in any direction, other heads and other offsets know nothing of each other.
    dropped = (~many - 0.1).reshape(32, 256, 256)
    others = (~kept(np.array([7, 4]), 0.1, 4, 8, 256, 256)[0] - 0.1).reshape(32, 256, 256)
    for first, second in ((dropped[:-1], dropped[1:]), (dropped, others), *(
            (dropped[:, :-step], dropped[:, step:]) for step in (1, 8, 16)), *(
            (dropped[..., :-step], dropped[..., step:]) for step in (1, 2, 8, 16))):
        assert abs((first * second).mean()) < 3e-4, (first * second).mean()


if __name__ == "__main__":
    main()
