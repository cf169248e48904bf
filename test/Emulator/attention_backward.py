# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a f16
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a empty
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=1 %python %s sm_90a one
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a any
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=3 FP8_EMULATOR_BLOCKS=shuffled %python %s sm_90a ranges
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a caps
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a dropout
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=3 FP8_EMULATOR_BLOCKS=shuffled %python %s sm_90a random
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=89 FP8_EMULATOR_SMS=3 FP8_EMULATOR_BLOCKS=shuffled %python %s sm_89 mma some
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=120 %python %s sm_120a some empty
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=80 %python %s sm_80 codes
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=100 FP8_EMULATOR_SMS=3 FP8_EMULATOR_BLOCKS=shuffled %python %s sm_100a blackwell some
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=100 FP8_EMULATOR_SMS=1 %python %s sm_100a one empty
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library %python %s sm_90a wild
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=89 %python %s sm_89 wild
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=80 %python %s sm_80 wild
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Gradients of attention against f64: every element type, both head dimensions of the kernels for sm_90a and sm_100a, and others of the one
by mma.sync, windows, groups of heads, both layouts, queries that see no key and keys that no query sees; on a CPU other dimensions and types, too."""

import sys

import numpy as np

import fp8
from attention_gradients import Gradients
from attention_programs import DTYPES

RANDOM = 6
CASES = {
    "bf16": [
        Gradients("bf16", 1, 64, 128, 1, 1, 128),
        Gradients("bf16", 1, 128, 128, 1, 1, 64),
        Gradients("bf16", 1, 200, 300, 2, 1, 128, window=(None, 0), bottom_right=True),
        # The first hundred queries see no key.
        Gradients("bf16", 2, 300, 200, 2, 1, 64, window=(None, 0), bottom_right=True, layout="bhsd"),
        # The last keys are seen by no query.
        Gradients("bf16", 1, 70, 300, 2, 2, 128, window=(None, 0)),
    ],
    "empty": [
        Gradients("bf16", 1, 1, 1, 4, 1, 64),
        Gradients("bf16", 1, 5, 0, 2, 1, 64),
        Gradients("e4m3", 1, 5, 0, 2, 1, 64, window=(None, 0)),
        Gradients("bf16", 1, 0, 5, 2, 1, 64),
    ],
    "f16": [
        Gradients("f16", 1, 150, 310, 2, 2, 128, window=(20, 25), grad="f16"),
        Gradients("f16", 1, 65, 129, 2, 1, 64, window=(30, None), grad="f16"),
    ],
    "e4m3": [
        Gradients("e4m3", 1, 64, 128, 1, 1, 128),
        Gradients("e4m3", 1, 200, 300, 2, 1, 128, window=(None, 0)),
        Gradients("e4m3", 1, 130, 200, 2, 1, 64, layout="bhsd", grad="f16"),
    ],
    "e5m2": [
        Gradients("e5m2", 1, 200, 300, 4, 2, 64, window=(None, 0), grad="f16"),
        Gradients("e5m2", 1, 64, 100, 1, 1, 128, layout="bhsd"),
    ],
    "one": [Gradients("bf16", 2, 130, 400, 2, 1, 128)],
    "any": [
        Gradients("bf16", 1, 200, 300, 2, 1, 128, window=(None, 0), bottom_right=True, order="any"),
        Gradients("e4m3", 1, 130, 200, 2, 1, 64, layout="bhsd", grad="f16", order="any"),
    ],
    "ranges": [
        Gradients("bf16", 1, 400, 400, 2, 1, 64, ranges="packed", window=(None, 0)),
        Gradients("bf16", 2, 200, 330, 2, 1, 128, ranges="random"),
        Gradients("f16", 1, 150, 310, 1, 1, 64, ranges="packed", window=(20, 25), layout="bhsd", grad="f16", order="any"),
        Gradients("e4m3", 2, 200, 300, 2, 1, 128, ranges="packed"),
        Gradients("bf16", 2, 300, 500, 1, 1, 64, ranges="random", cap=2.0, order="any"),
        Gradients("bf16", 2, 5, 0, 2, 1, 64, ranges="random"),
    ],
    "dropout": [
        Gradients("bf16", 1, 64, 128, 1, 1, 128, dropout=0.5),
        Gradients("bf16", 2, 200, 300, 2, 1, 64, window=(None, 0), bottom_right=True, dropout=0.1),
        Gradients("f16", 1, 150, 310, 2, 2, 128, window=(20, 25), grad="f16", dropout=0.3),
        Gradients("e4m3", 1, 130, 200, 2, 1, 64, layout="bhsd", grad="f16", dropout=0.1),
        Gradients("e4m3", 1, 200, 300, 2, 1, 128, window=(None, 0), dropout=0.2, ranges="packed", order="any"),
        Gradients("bf16", 1, 130, 200, 2, 1, 64, cap=2.0, dropout=0.9),
    ],
    "caps": [
        Gradients("bf16", 1, 200, 300, 2, 1, 128, window=(None, 0), bottom_right=True, cap=1.0),
        Gradients("f16", 1, 150, 200, 2, 2, 64, cap=30.0, grad="f16", data="peaked"),
        Gradients("e4m3", 1, 130, 200, 2, 1, 128, cap=2.0),
        Gradients("e5m2", 1, 130, 200, 2, 1, 64, cap=50.0, grad="f16", layout="bhsd"),
    ],
}
# One of each way to find rows and scores of the kernel by mma.sync, and sums that a thread has no registers for at once.
CASES["mma"] = [
    Gradients("bf16", 1, 70, 90, 2, 1, 32, dim_of_v=48, window=(None, 0), bottom_right=True),
    Gradients("f16", 1, 65, 130, 1, 1, 256, grad="f16", window=(40, 5)),
    Gradients("bf16", 2, 40, 70, 2, 2, 192, dim_of_v=128, layout="bhsd", ranges="random", cap=2.0, dropout=0.2),
    Gradients("e4m3", 1, 60, 50, 4, 1, 80, dim_of_v=64, dropout=0.5),
    Gradients("bf16", 2, 200, 140, 2, 1, 128, ranges="packed", window=(None, 0), dropout=0.1, order="any"),
]
CASES["some"] = [
    Gradients("bf16", 2, 300, 200, 2, 1, 64, window=(None, 0), bottom_right=True, layout="bhsd"),
    Gradients("f16", 1, 70, 300, 1, 1, 128, grad="f16", cap=1.0),
]
# The kernel for sm_100a: windows, ranges and caps; the last two are products and a softmax there.
CASES["blackwell"] = [
    Gradients("bf16", 1, 200, 300, 2, 1, 128, window=(None, 0), bottom_right=True),
    Gradients("f16", 1, 150, 310, 2, 2, 64, window=(20, 25), grad="f16", layout="bhsd"),
    Gradients("bf16", 2, 200, 330, 2, 1, 128, ranges="random", cap=2.0),
    Gradients("bf16", 1, 400, 400, 2, 1, 64, ranges="packed", window=(None, 0), order="any"),
    Gradients("e4m3", 1, 64, 100, 1, 1, 64),
    Gradients("bf16", 1, 64, 70, 1, 1, 64, dropout=0.3),
]
CASES["codes"] = [
    Gradients("e4m3", 1, 100, 150, 2, 1, 128, window=(None, 0)),
    Gradients("e5m2", 1, 64, 100, 1, 1, 64, layout="bhsd", grad="f16", dropout=0.3),
]
CPU = [
    Gradients("bf16", 1, 33, 47, 4, 2, 32, dim_of_v=48, window=(9, 3), bottom_right=True),
    Gradients("f32", 1, 20, 9, 2, 1, 5, window=(None, 0), bottom_right=True, layout="bhsd", grad="f32"),
    Gradients("e4m3", 2, 17, 40, 2, 1, 16, of_heads=True),
]


def check_wild(target, rng):
    """A code that is NaN, or an infinity of E5M2, leaves no number in any gradient that it is a part of."""
    for element, grad, code in (("e4m3", "bf16", 0x7F), ("e4m3", "f16", 0xFF), ("e5m2", "bf16", 0xFC), ("e5m2", "bf16", 0x7E)):
        case = Gradients(element, 1, 70, 90, 1, 1, 64, window=(None, 0), grad=grad)
        program = fp8.compile(case.program(), target=target, cache=False)
        rows = np.zeros((1, 1, case.queries), np.float32)
        # An infinite score may have a power of 0, which is one.
        for name in "v" if code == 0xFC else "qkv":
            (q, scale_q, k, scale_k, v, scale_v), _, _ = case.make(rng)
            dy = rng.standard_normal(q.shape).astype(np.float32).astype(DTYPES[grad])
            place = int(rng.integers(0, case.queries))
            {"q": q, "k": k, "v": v}[name][0, place, 0, 3:7].view(np.uint8)[:] = code
            found = [np.asarray(x).astype(np.float32)[0, :, 0] for x in program(dy, q, scale_q, k, scale_k, v, scale_v, rows, rows)]
            dq, dk, dv = (~np.isfinite(x).all(1) for x in found)
            number = np.arange(case.keys)
            # Which rows of dQ, dK and dV; a query sees keys up to its own.
            one = number == place
            wanted = {"q": (one[:case.queries], number <= place, number <= place),
                      "k": (number[:case.queries] >= place, one, one),
                      "v": (number[:case.queries] >= place, one, False)}[name]
            for result, got, expected in zip(("dq", "dk", "dv"), (dq, dk, dv), wanted):
                assert (got >= expected).all(), (element, grad, hex(code), name, place, result, np.nonzero(expected & ~got))


def main():
    target, names = sys.argv[1], sys.argv[2:] or [name for name in CASES if name not in ("one", "any", "mma", "some", "codes", "blackwell")]
    rng = np.random.default_rng(2026)
    if names == ["wild"]:
        return check_wild(target, rng)
    cases = [Gradients.random(rng) for _ in range(RANDOM)] if names == ["random"] else [
        case for name in names for case in CASES[name]] + CPU * (target == "cpu")
    for case in cases:
        case.check(target, rng)


if __name__ == "__main__":
    sys.exit(main())
