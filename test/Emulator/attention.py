# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=1 %python %s sm_90a few
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a caps
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a masks
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s sm_90a dropout
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=100 %python %s sm_100a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=100 FP8_EMULATOR_SMS=1 %python %s sm_100a some few
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=100 %python %s sm_100a caps masks
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=100 %python %s sm_100a dropout
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=89 FP8_EMULATOR_SMS=1 %python %s sm_89 some
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=89 %python %s sm_89 ada
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=120 %python %s sm_120a ada
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=80 %python %s sm_80 some
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs %python %s cpu
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Attention against f64: every element type, head dimensions, groups of heads, windows, both layouts, factors of tensors
and of heads, queries that see no key, sequences of no positions, masks, sinks. On a GPU it is one kernel."""

import sys

import numpy as np

import fp8
from attention_programs import Attention

RANDOM = 12
CASES = [
    Attention("bf16", 1, 128, 128, 1, 1, 64),
    Attention("bf16", 2, 200, 330, 2, 1, 128, window=(None, 0), bottom_right=True),
    Attention("f16", 1, 70, 40, 2, 2, 64, window=(None, 0), bottom_right=True),
    Attention("bf16", 1, 150, 310, 1, 1, 64, dim_of_v=128, window=(20, 25), lse=False),
    Attention("bf16", 1, 65, 64, 1, 1, 256, layout="bhsd"),
    Attention("e4m3", 1, 128, 256, 1, 1, 128, accumulate="fast"),
    Attention("e4m3", 2, 65, 97, 2, 1, 64, accumulate="promote", of_heads=True, layout="bhsd", window=(None, 0)),
    Attention("e4m3", 1, 130, 400, 1, 1, 128, accumulate="fast", window=(100, None), bottom_right=True),
    Attention("e5m2", 1, 64, 64, 1, 1, 256, dim_of_v=64, accumulate="fast", p_scale=4096.0),
    Attention("bf16", 1, 5, 0, 2, 1, 64),
    Attention("bf16", 1, 0, 5, 2, 1, 64),
    Attention("bf16", 1, 1, 1, 4, 1, 64, window=(None, 0)),
    # Few queries and, on sm_90a and sm_100a, blocks that share their keys.
    Attention("bf16", 1, 1, 700, 8, 2, 128),
    Attention("bf16", 2, 1, 1030, 6, 2, 64, layout="bhsd", lse=False),
    Attention("f16", 1, 7, 900, 3, 1, 64, window=(None, 0), bottom_right=True),
    Attention("bf16", 1, 1, 640, 70, 1, 64),
    Attention("bf16", 1, 2, 500, 10, 2, 256, window=(200, 0), bottom_right=True),
    Attention("bf16", 3, 4, 3, 4, 2, 64, window=(None, 0), bottom_right=True),
    Attention("e4m3", 1, 1, 900, 8, 1, 128, accumulate="fast", of_heads=True),
    Attention("e4m3", 2, 3, 515, 14, 2, 64, accumulate="promote", layout="bhsd", window=(None, 0), bottom_right=True),
    Attention("e5m2", 1, 1, 0, 8, 2, 64, accumulate="fast"),
    # Batches with numbers of keys of their own, beyond which there is NaN.
    Attention("bf16", 3, 140, 300, 2, 1, 64, lengths=[0, 131, 300], window=(None, 0), bottom_right=True),
    Attention("bf16", 3, 1, 900, 8, 2, 128, lengths=[1, 577, 900]),
    Attention("f16", 2, 3, 700, 2, 2, 256, lengths=[600, 65], window=(100, 0), bottom_right=True, layout="bhsd"),
    Attention("e4m3", 4, 1, 800, 8, 2, 128, accumulate="fast", lengths=[9, 800, 321, 0]),
    Attention("e4m3", 2, 130, 333, 2, 1, 64, accumulate="promote", of_heads=True, lengths=[200, 47]),
    Attention("bf16", 2, 9, 20, 2, 2, 32, mask="i1", lengths=[7, 20]),
    # And with first keys of their own, before which there is NaN, too.
    Attention("bf16", 3, 140, 300, 2, 1, 64, starts=[0, 131, 300], window=(None, 0), bottom_right=True),
    Attention("bf16", 3, 300, 300, 2, 1, 64, starts=[7, 0, 250], window=(None, 0)),
    Attention("bf16", 4, 1, 900, 8, 2, 128, starts=[899, 577, 0, 128]),
    Attention("f16", 3, 3, 700, 2, 2, 256, starts=[600, 65, 690], lengths=[650, 700, 60], window=(100, 0),
              bottom_right=True, layout="bhsd"),
    Attention("e4m3", 4, 1, 800, 8, 2, 128, accumulate="fast", starts=[9, 800, 321, 0], lengths=[800, 800, 400, 64]),
    Attention("e4m3", 2, 130, 333, 2, 1, 64, accumulate="promote", of_heads=True, starts=[200, 47]),
    Attention("bf16", 2, 9, 20, 2, 2, 32, mask="i1", lengths=[7, 20], starts=[3, 11]),
    Attention("bf16", 2, 100, 640, 2, 1, 64, page=32, lengths=[500, 640], starts=[35, 600], window=(None, 0),
              bottom_right=True),
    Attention("e4m3", 3, 1, 480, 8, 2, 128, page=16, accumulate="fast", lengths=[480, 33, 256], starts=[470, 20, 16]),
    Attention("bf16", 1, 1, 128, 4, 2, 64, page=64, starts=[100]),
    Attention("e4m3", 2, 70, 64, 2, 2, 64, page=64, starts=[33, 64], accumulate="promote"),
    # Queries with ranges of keys.
    Attention("bf16", 1, 400, 400, 2, 1, 64, ranges="packed", window=(None, 0)),
    Attention("bf16", 2, 200, 330, 2, 1, 128, ranges="random"),
    Attention("f16", 1, 150, 310, 1, 1, 64, ranges="packed", window=(20, 25), layout="bhsd"),
    Attention("e4m3", 1, 300, 400, 2, 1, 128, accumulate="fast", ranges="packed"),
    Attention("e4m3", 2, 65, 97, 2, 1, 64, accumulate="promote", ranges="random", starts=[3, 40], lengths=[97, 60]),
    Attention("bf16", 2, 3, 700, 8, 2, 64, ranges="random"),
    Attention("bf16", 2, 9, 20, 2, 2, 32, mask="f32", ranges="random"),
    # A score of each head that is no key's.
    Attention("bf16", 1, 140, 300, 4, 2, 64, sinks=0.0, window=(127, 0)),
    Attention("bf16", 2, 5, 0, 2, 1, 64, sinks=2.0),
    Attention("f16", 2, 3, 700, 6, 2, 64, sinks=3.0, lengths=[0, 650], layout="bhsd", lse=False),
    Attention("e4m3", 2, 1, 900, 8, 1, 128, accumulate="fast", of_heads=True, sinks=-30.0),
    Attention("e4m3", 1, 130, 200, 2, 1, 64, accumulate="promote", sinks=5.0),
    Attention("bf16", 1, 33, 47, 4, 2, 64, mask="f32", sinks=1.0),
    # Stages that are no multiple of a group of lines.
    Attention("f16", 2, 2, 700, 2, 2, 64, dim_of_v=80),
    # Keys in pages.
    Attention("bf16", 2, 1, 320, 8, 2, 128, page=16),
    Attention("bf16", 2, 100, 640, 2, 1, 64, page=32, lengths=[500, 640], window=(None, 0), bottom_right=True),
    Attention("f16", 2, 2, 768, 4, 2, 64, page=256, lengths=[0, 700], layout="bhsd"),
    Attention("e4m3", 3, 1, 480, 8, 2, 128, page=16, accumulate="fast", lengths=[480, 33, 256]),
    Attention("e4m3", 1, 70, 256, 2, 2, 64, page=64, accumulate="promote", layout="bhsd"),
    Attention("bf16", 2, 9, 15, 2, 2, 32, page=5, lengths=[7, 15]),
    Attention("bf16", 1, 33, 47, 4, 2, 64, mask="f32"),
    Attention("bf16", 2, 16, 20, 2, 2, 32, mask="i1", layout="bhsd"),
]

# Scores with a cap, and masks, which some queries see nothing by.
CAPS = [
    Attention("bf16", 1, 140, 300, 4, 2, 64, window=(None, 0), bottom_right=True, cap=1.0),
    Attention("bf16", 2, 200, 330, 2, 1, 128, cap=30.0, data="peaked"),
    Attention("f16", 1, 150, 310, 1, 1, 256, cap=50.0, data="outliers", layout="bhsd", sinks=1.0),
    Attention("e4m3", 1, 130, 200, 2, 1, 64, accumulate="promote", of_heads=True, cap=2.0),
    Attention("e4m3", 1, 200, 300, 2, 1, 128, accumulate="fast", cap=30.0, data="peaked", ranges="packed"),
    Attention("bf16", 2, 1, 700, 8, 2, 128, cap=20.0, lengths=[700, 0], data="peaked"),
    Attention("e4m3", 2, 3, 515, 14, 2, 64, accumulate="promote", layout="bhsd", of_heads=True, cap=5.0, starts=[7, 0]),
    Attention("bf16", 1, 5, 0, 2, 1, 64, cap=1.0),
]
# Shares that are left out; those of few queries have a kernel with whole tiles.
DROPOUT = [
    Attention("bf16", 2, 200, 330, 4, 2, 128, window=(None, 0), bottom_right=True, dropout=0.1),
    Attention("f16", 1, 150, 310, 1, 1, 64, dropout=0.5, layout="bhsd", lse=False),
    Attention("e4m3", 2, 130, 333, 2, 1, 64, accumulate="promote", of_heads=True, dropout=0.1, data="peaked"),
    Attention("e4m3", 1, 70, 400, 2, 2, 128, accumulate="fast", dropout=0.2, window=(100, 0)),
    Attention("bf16", 2, 1, 700, 8, 2, 64, dropout=0.3, lengths=[700, 30]),
    Attention("bf16", 1, 140, 300, 4, 2, 64, sinks=0.0, cap=2.0, ranges="packed", dropout=0.9),
    Attention("bf16", 2, 70, 129, 4, 2, 256, mask="i1", mask_of="bqk", dropout=0.1),
    Attention("bf16", 1, 65, 64, 1, 1, 64, dropout=1e-6),
    Attention("bf16", 1, 5, 0, 2, 1, 64, dropout=0.1),
]
MASKS = [
    Attention("bf16", 2, 140, 301, 2, 1, 64, mask="i1", mask_of="bqk", window=(None, 0), bottom_right=True),
    Attention("bf16", 2, 70, 129, 4, 2, 128, mask="bf16", mask_of="bhqk", layout="bhsd"),
    Attention("f16", 2, 130, 160, 2, 2, 64, mask="f32", mask_of="k", data="peaked"),
    Attention("bf16", 3, 100, 75, 2, 1, 64, mask="i1", mask_of="bk"),
    Attention("bf16", 1, 100, 140, 2, 1, 256, mask="f16", mask_of="hq"),
    Attention("e4m3", 1, 130, 333, 2, 1, 64, accumulate="promote", of_heads=True, mask="f32", mask_of="hqk", cap=3.0),
    Attention("e4m3", 2, 65, 97, 2, 1, 128, accumulate="fast", mask="i1", mask_of="qk", lengths=[97, 60]),
    Attention("bf16", 2, 3, 700, 8, 2, 64, mask="bf16", mask_of="bhqk"),
    Attention("bf16", 2, 1, 900, 6, 2, 128, mask="i1", mask_of="bk", lengths=[900, 400], starts=[0, 30]),
    Attention("e4m3", 3, 2, 515, 8, 1, 128, accumulate="fast", of_heads=True, mask="f32", mask_of="hk", sinks=0.0),
    Attention("bf16", 2, 5, 0, 2, 1, 64, mask="i1", mask_of="bqk"),
    Attention("bf16", 1, 40, 33, 2, 2, 32, mask="i1", mask_of=""),
]

# On a chip that runs fewer blocks than there are heads, each block has some of several.
FEW = [
    Attention("bf16", 1, 1, 700, 24, 12, 64),
    Attention("bf16", 2, 1, 300, 33, 33, 64, lengths=[300, 9]),
    Attention("e4m3", 2, 2, 200, 16, 8, 64, accumulate="fast", lengths=[50, 200]),
    Attention("bf16", 3, 1, 500, 10, 5, 64, layout="bhsd"),
    Attention("bf16", 4, 2, 500, 12, 6, 64, starts=[499, 0, 260, 130], sinks=1.0),
    Attention("e4m3", 2, 1, 700, 16, 8, 64, accumulate="fast", ranges="random", lengths=[650, 40]),
]

# On a chip of one multiprocessor a block has all tiles of queries, one after the other; values of other columns, and halves of
# a tile that are beyond the queries.
SOME = [
    Attention("bf16", 2, 300, 500, 2, 1, 128, window=(None, 0), bottom_right=True),
    Attention("bf16", 1, 130, 200, 3, 1, 64, dim_of_v=32),
    Attention("f16", 1, 257, 129, 2, 2, 192, dim_of_v=128, layout="bhsd"),
    Attention("e4m3", 2, 270, 600, 2, 1, 128, accumulate="promote", of_heads=True, window=(200, 0)),
    Attention("e5m2", 1, 100, 300, 3, 3, 96, dim_of_v=64, accumulate="fast"),
    Attention("bf16", 3, 140, 300, 2, 1, 64, lengths=[0, 131, 300], starts=[0, 40, 290], window=(None, 0), bottom_right=True),
    Attention("bf16", 2, 300, 300, 2, 2, 128, data="peaked", ranges="packed"),
]

# One of each way to find rows and scores, where kernels are those of another chip but for that.
ADA = [CASES[i] for i in (2, 4, 6, 8, 9, 10, 16)] + CASES[21:60:6] + CAPS[::3] + MASKS[::5] + DROPOUT[::4]
CHOICES = {"few": FEW, "ada": ADA, "caps": CAPS, "masks": MASKS, "dropout": DROPOUT, "some": SOME}


def check_nan(target, rng):
    """A key that is NaN makes all queries NaN that see it, wherever in a tile it is."""
    case = Attention("e4m3", 1, 16 if target == "cpu" else 70, 90, 1, 1, 64, accumulate="promote", window=(None, 0))
    program = fp8.compile(case.program(), target=target, cache=False)
    for key in rng.integers(0, case.queries, 6):
        arguments, _, _ = case.make(rng)
        arguments[2][0, key] = np.nan
        for result in program(*arguments):
            result = np.asarray(result).astype(np.float32).reshape(case.queries, -1)
            assert np.isnan(result[key:]).all() and np.isfinite(result[:key]).all(), key


def main():
    target = sys.argv[1]
    rng = np.random.default_rng(2026)
    if sys.argv[2:]:
        cases = [case for name in sys.argv[2:] for case in CHOICES[name]]
    else:
        check_nan(target, rng)
        cases = CASES + (CAPS + MASKS + DROPOUT) * (target == "cpu") + [Attention.random(rng) for _ in range(RANDOM)]
    for case in cases:
        case.check(target, rng)


if __name__ == "__main__":
    sys.exit(main())
