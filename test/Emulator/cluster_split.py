# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Parts of K that a cluster adds up in shared memory, on the emulator, with all that it can look for: each result has the bits
of the same config whose parts go through memory. There are more tiles than clusters, parts of each block's consumers,
subtiles, and numbers of K blocks that parts do not divide."""

import sys

import numpy as np

from products import CODES, FACTORS, check, choose, config, make_parser, run, tensor

SWAPPED = {"swap_ab": "true", "store": "direct", "group": 1}
CONFIGS = [config(8, 64, 4, consumers=1, split_k=2, **SWAPPED), config(16, 128, 3, consumers=2, split_k=4, **SWAPPED),
           config(24, 128, 3, consumers=1, split_k=2, **SWAPPED), config(8, 64, 3, consumers=1, split_k=8, **SWAPPED),
           config(128, 64, 3, consumers=2, split_k=2, store="direct"), config(64, 64, 3, consumers=1, split_k=2, staging=1)]
# What has factors for each 32: consumers with parts of K.
PARTS = [config(8, 64, 8, consumers=2, split_k=2, **SWAPPED), config(16, 64, 4, consumers=1, split_k=4, **SWAPPED)]
# Types of A and B, the block of their factors, accumulation, K and configs.
KINDS = {"bf16": ("bf16", None, "fast", 64 * 19, CONFIGS), "fast": ("f8E4M3FN", ("1", "*"), "fast", 128 * 11, CONFIGS),
         "promote": ("f8E4M3FN", ("*", "*"), "promote", 128 * 11, CONFIGS[:3]),
         "mxfp8": ("f8E4M3FN", ("1", "32"), "promote", 128 * 11, PARTS)}
# The emulator's GPU has 132 multiprocessors: with 8 rows a tile there are more tiles than 66 clusters.
M, N = 72, 1096


def run_kind(name, kind, args):
    element, block, accumulate, k, configs = kind
    chosen, rng = choose(configs, args), np.random.default_rng(4)
    m, n = (M, N) if name == "fast" else (40, 136)
    arguments, arrays, body, types = [], [], "", []
    for operand, rows in (("a", m), ("b", n)):
        values = rng.standard_normal((rows, k)) * 4
        arguments.append(f"%{operand}{'0' * (block is not None)}: {tensor((rows, k), element)}")
        arrays.append(values.astype(CODES[element]))
        if block is None:
            types.append(tensor((rows, k), element))
            continue
        grid = (1 if block[0] == "*" else rows, k // 32 if block[1] == "32" else 1)
        factor = "f8E8M0FNU" if block[1] == "32" else "f32"
        exact = (2.0 ** rng.integers(-3, 4, grid)).astype(np.float32)
        arguments.append(f"%{operand}1: {tensor(grid, factor)}")
        arrays.append(exact.astype(FACTORS[factor]))
        types.append(f"!fp8.scaled<{rows}x{k}x{element}, block = [{', '.join(block)}], scale = {factor}>")
        body += (f"  %{operand} = fp8.assemble %{operand}0, %{operand}1 : {tensor((rows, k), element)}, {tensor(grid, factor)} "
                 f"-> {types[-1]}\n")
    results = []
    for i, text in enumerate(chosen):
        for way, pinned in (("m", text), ("c", text.replace(">", ", cluster_k = true>"))):
            results.append((f"%{way}{i}", tensor((m, n), "bf16")))
            body += (f"  %{way}{i} = fp8.matmul %a, %b accumulate = {accumulate} {{fp8_gpu.config = {pinned}}} : {types[0]}, "
                     f"{types[1]} -> {results[-1][1]}\n")
    found, wrong = run(args.tools, "sm_90a", arguments, body, results, arrays), 0
    for i, text in enumerate(chosen):
        memory, cluster = (result.view(np.uint16) for result in found[2 * i:2 * i + 2])
        other = memory != cluster
        wrong += bool(other.any())
        if other.any() or not memory.any():
            print(f"{name} {text}: {other.sum()} of {other.size} differ")
    return wrong, len(chosen)


if __name__ == "__main__":
    sys.exit(check(KINDS, make_parser().parse_args(), run_kind))
