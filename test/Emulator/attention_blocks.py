# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=1 %python %s sm_90a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs %python %s cpu
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Attention in codes whose factors are of blocks of positions, against f64. On an sm_90a it is one kernel, where tiles of keys
have one factor each; else products and a softmax."""

import sys

import numpy as np

import fp8
from attention_programs import Attention

TARGET = sys.argv[1]
CASES = [
    Attention("e4m3", 1, 128, 256, 1, 1, 128, accumulate="promote", blocks=(128, 128, 128)),
    Attention("e4m3", 2, 200, 333, 4, 2, 64, accumulate="promote", blocks=(64, 64, 64), window=(None, 0), bottom_right=True),
    Attention("e4m3", 2, 200, 333, 2, 1, 128, accumulate="fast", blocks=(128, 128, 0), layout="bhsd"),
    Attention("e4m3", 1, 150, 500, 2, 1, 128, accumulate="promote", blocks=(1, 256, 128), window=(100, 0), bottom_right=True),
    Attention("e5m2", 1, 70, 200, 2, 2, 64, accumulate="promote", blocks=(0, 32, 64), of_heads=True, layout="bhsd"),
    Attention("e4m3", 1, 130, 300, 2, 1, 192, dim_of_v=128, accumulate="promote", blocks=(48, 0, 128)),
    Attention("e4m3", 2, 130, 400, 2, 1, 64, accumulate="promote", blocks=(64, 128, 128), lengths=[400, 129], starts=[0, 100]),
    # What makes exponents of scores, or hides some.
    Attention("e4m3", 1, 130, 300, 2, 1, 64, accumulate="promote", blocks=(64, 64, 64), cap=2.0, data="peaked"),
    Attention("e4m3", 1, 130, 300, 2, 1, 128, accumulate="fast", blocks=(64, 64, 0), mask="f32", mask_of="qk"),
    Attention("e4m3", 2, 70, 300, 2, 1, 64, accumulate="promote", blocks=(64, 64, 64), mask="i1", mask_of="bk", sinks=0.0),
    Attention("e4m3", 1, 300, 300, 2, 1, 64, accumulate="promote", blocks=(64, 64, 64), ranges="packed", dropout=0.1),
    # Few queries, whose keys blocks share.
    Attention("e4m3", 2, 1, 900, 8, 2, 128, accumulate="promote", blocks=(1, 128, 128), lengths=[900, 300]),
    Attention("e4m3", 1, 3, 700, 8, 1, 64, accumulate="fast", blocks=(2, 64, 0), layout="bhsd"),
    Attention("e4m3", 1, 5, 0, 2, 1, 64, accumulate="promote", blocks=(64, 64, 64)),
    Attention("e4m3", 1, 65, 128, 2, 1, 64, accumulate="promote", blocks=(64, 64, 64), window=(None, 0)),
]
# What a kernel's tiles of keys do not divide.
WITHOUT_KERNEL = [
    Attention("e4m3", 1, 40, 70, 2, 1, 64, accumulate="promote", blocks=(1, 1, 1)),
    Attention("e4m3", 2, 40, 70, 2, 1, 64, accumulate="promote", blocks=(7, 16, 48), layout="bhsd"),
]


def repeat(case, arguments):
    """As many factors as blocks have, of one for each head."""
    made = list(arguments)
    for place, (name, _, factors) in zip((1, 3, 5), case.operands()):
        made[place] = np.ascontiguousarray(np.broadcast_to(made[place], factors))
    return made


def check_equal(rng):
    """Equal factors change little: scores are compared as exponents, so that powers may be rounded otherwise."""
    for accumulate, dim, blocks in (("promote", 128, (64, 128, 128)), ("fast", 64, (128, 160, 0))):
        one = Attention("e4m3", 2, 200, 333, 2, 1, dim, accumulate=accumulate, of_heads=True, window=(None, 0))
        each = Attention("e4m3", 2, 200, 333, 2, 1, dim, accumulate=accumulate, of_heads=True, window=(None, 0), blocks=blocks)
        arguments, _, _ = one.make(rng)
        found = [np.asarray(fp8.compile(case.program(), target=TARGET, cache=False)(*given)[0]).astype(np.float64)
                 for case, given in ((one, arguments), (each, repeat(each, arguments)))]
        assert np.linalg.norm(found[0] - found[1]) <= 4e-3 * np.linalg.norm(found[0]), (accumulate, dim)


def check_range(rng):
    """Blocks whose numbers are far apart keep their bits, where one factor for all would lose them."""
    case = Attention("e4m3", 1, 64, 256, 1, 1, 64, accumulate="promote", blocks=(64, 64, 64))
    arguments, values, others = case.make(rng)
    for place in (3, 5):
        arguments[place][:, 1] *= 1e-4
        values[place // 2][:, 64:128] *= 1e-4
    output, _ = case.expect(*values, others)
    found = np.asarray(fp8.compile(case.program(), target=TARGET, cache=False)(*arguments)[0]).astype(np.float64)
    assert np.linalg.norm(found - output) <= 4e-2 * np.linalg.norm(output)


def main():
    rng = np.random.default_rng(37)
    for case in CASES + WITHOUT_KERNEL * (TARGET == "cpu"):
        case.check(TARGET, rng)
    check_range(rng)
    if TARGET == "sm_90a":
        check_equal(rng)


if __name__ == "__main__":
    main()
