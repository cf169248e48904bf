# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=1 %python %s
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Warpgroups that give their turn once products are issued, once scores are there, or with maxima, and those that take
none, compute the same bits: of several tiles of queries in a block, whichever warp runs first."""

import os

import numpy as np

import fp8
from attention_programs import Attention

ORDERS = {"issued": "random", "raised": "lazy", "scored": "eager", "none": "random"}
# With the tiles that have their turn with the maxima by default, and others. The first has every turn.
CASES = [
    (Attention("bf16", 1, 200, 700, 2, 1, 64), (192, 128)),
    (Attention("bf16", 1, 150, 260, 1, 1, 64, window=(None, 0), data="outliers"), (192, 128)),
    (Attention("f16", 1, 130, 300, 2, 1, 64, ranges="packed", sinks=1.0, layout="bhsd"), (192, 128)),
    (Attention("e4m3", 1, 200, 500, 1, 1, 64, accumulate="fast", window=(200, 0), data="peaked"), (192, 160)),
    (Attention("bf16", 1, 129, 200, 1, 1, 256, lse=False), (128, 80)),
    (Attention("bf16", 1, 129, 330, 1, 1, 192, dim_of_v=128, window=(None, 0), bottom_right=True), (128, 112)),
    (Attention("e4m3", 1, 150, 300, 1, 1, 64, accumulate="promote", mask="i1", mask_of="qk", cap=3.0), (128, 128)),
]


def write(case, tile, turn):
    return case.program("#fp8_sm90.attention<tile_q = {}, tile_k = {}, stages = 2, turn = {}>".format(*tile, turn))


def main():
    rng = np.random.default_rng(41)
    for number, (case, tile) in enumerate(CASES):
        arguments, _, _ = case.make(rng)
        found = {}
        for turn, order in list(ORDERS.items())[: 2 if number else 4]:
            os.environ["FP8_EMULATOR_ORDER"] = order
            program = fp8.compile(write(case, tile, turn), target="sm_90a", cache=False)
            results = program(*arguments)
            results = results if isinstance(results, (tuple, list)) else [results]
            found[turn] = b"".join(np.asarray(result).tobytes() for result in results)
        assert len(set(found.values())) == 1, (case.__dict__, [turn for turn in found if found[turn] != found["issued"]])


if __name__ == "__main__":
    main()
