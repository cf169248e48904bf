# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools --target=sm_100a
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Runs kernels of fp8.grouped_matmul with counts on the emulator, with all that it can look for, and compares them with
numpy, exactly, as grouped.py does.

A program has a product for each config and some lists of counts, each with an A, and where K is counted a B, of its own.
All that a group has no count for is NaN, codes and factors. Counts that are none are taken for all that there is room for.
"""

import sys

import numpy as np

from products import (FAST, OF_K, PROMOTE, REGISTERS, RESULTS, TENSOR_CORE, Operand, check_target, choose, compare, config,
                      run, spoil, tensor)

GROUPS, M, N, K = 5, 208, 144, 272
MICRO_K = 384  # With factors that tensor cores multiply.
COUNTS = [[64, 128, 1, 0, M], [37, 200, 130, 63, 65], [0] * GROUPS, [M] * GROUPS, [1000, -1, 5, 0, 127]]

# What is counted, elements of A and B, blocks of their factors, accumulation, result, layout,
# configs, and what else: rest and epilogue.
KINDS = {
    "tensor_fast": ("m", "f8E4M3FN", "f8E4M3FN", "*", "*", "fast", "bf16", "nt", FAST),
    "expert_fast": ("m", "f8E4M3FN", "f8E5M2", ("*", "*"), ("*", "*"), "fast", "bf16", "nt", FAST[:3]),
    "tensor_promote": ("m", "f8E5M2", "f8E4M3FN", "*", ("*", "*"), "promote", "f32", "nt", PROMOTE[:3]),
    "row_fast": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "fast", "f32", "nt", FAST),
    "row_promote": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", PROMOTE[:3]),
    "block": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt", PROMOTE),
    # Factors stored with the tokens innermost: bulk copies bring them.
    "block_stored": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt",
                     PROMOTE + [config(256, 64, staging=4), config(192, 48, consumers=3),
                                config(64, 128, consumers=2, swap_ab="true", store="direct", cluster_n=2)]),
    "plain": ("m", "bf16", "bf16", None, None, "fast", "bf16", "nt", FAST[:4]),
    "plain_tn": ("m", "bf16", "bf16", None, None, "fast", "f32", "tn", FAST[:4]),
    "rest": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt", PROMOTE[:2], "rest"),
    "epilogue": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "fast", "f32", "nt", FAST, "epilogue"),
    "k_tensor": ("k", "f8E5M2", "f8E4M3FN", "*", "*", "fast", "f32", "nt", OF_K),
    "k_row": ("k", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", OF_K[:3]),
    "k_block": ("k", "f8E5M2", "f8E4M3FN", ("1", "128"), ("1", "128"), "promote", "f32", "nt", OF_K),
    "k_block_stored": ("k", "f8E4M3FN", "f8E5M2", ("1", "128"), ("1", "128"), "promote", "bf16", "nt", OF_K[:4]),
    "k_plain": ("k", "bf16", "bf16", None, None, "fast", "f32", "nt", OF_K[:3]),
    "k_plain_tn": ("k", "bf16", "bf16", None, None, "fast", "bf16", "tn", OF_K),
}
BLACKWELL = {name: (*KINDS[name][:8], configs, *KINDS[name][9:]) for name, configs in {
    "tensor_fast": TENSOR_CORE, "expert_fast": TENSOR_CORE[:4], "tensor_promote": TENSOR_CORE[:3], "row_fast": TENSOR_CORE,
    "block": REGISTERS, "block_stored": REGISTERS, "plain": TENSOR_CORE[:7], "plain_tn": TENSOR_CORE, "rest": REGISTERS[:2],
    "epilogue": TENSOR_CORE}.items()}
BLACKWELL["tn"] = ("m", "f8E4M3FN", "f8E5M2", "*", ("*", "*"), "fast", "bf16", "tn", TENSOR_CORE)
BLACKWELL["tiles"] = ("m", "f8E4M3FN", "f8E5M2", ("128", "128"), ("1", "128"), "promote", "bf16", "nt", REGISTERS)
BLACKWELL["micro"] = ("m", "f8E4M3FN", "f8E5M2", ("1", "32"), ("1", "32"), "promote", "f32", "nt", TENSOR_CORE)
TARGETS = {"sm_90a": KINDS, "sm_100a": BLACKWELL}


def run_kind(name, kind, args):
    counted, element_a, element_b, block_a, block_b, accumulate, result, layout, configs, *more = kind
    rng = np.random.default_rng(1)
    k = MICRO_K if name == "micro" else K
    shape_a, shape_b, shape_d = (((GROUPS, M, k), (GROUPS, N, k), (GROUPS, M, N)) if counted == "m" else
                                 ((GROUPS, N, M), (GROUPS, K, M), (GROUPS, N, K)))
    # The dimension of a group's that is counted.
    of_a, of_b = (0, None) if counted == "m" else (1, 1)
    is_stored = name.endswith("_stored")
    flags = (" transpose_a" if layout[0] == "t" else "") + (" transpose_b" if layout[1] == "n" else "")
    flags += (" undef_padding" if "rest" in more else "") + (" accumulate = fast" if accumulate == "fast" else "")
    clamped = [[min(count, M) if count >= 0 else M for count in counts] for counts in COUNTS]
    arguments, body, arrays, values = [], "", [], []
    for i, counts in enumerate(clamped):
        types, drawn = [], []
        for operand, shape, dim in (
                (Operand(f"a{i}", shape_a, element_a, block_a, layout[0] == "t", is_stored), shape_a, of_a),
                (Operand(f"b{i}", shape_b, element_b, block_b, layout[1] == "n", is_stored), shape_b, of_b)):
            def spoil_groups(array, blocks, dim=dim, counts=counts):
                for group, count in zip(array if blocks[0] else (), counts):
                    spoil(group, blocks[1:], dim, count)

            given, value = operand.draw(shape, rng, None if dim is None else spoil_groups)
            arguments += operand.arguments
            body += operand.made
            arrays += given
            types.append(operand.type)
            drawn.append(value)
        values.append(drawn)
    # For each expert a bias, and something for each row.
    bias, rows = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((GROUPS, 1, N), (GROUPS, M, 1)))
    type_d, type_c = tensor(shape_d, result), f"tensor<{GROUPS}xi32>"
    arguments += [f"%bias: tensor<{GROUPS}x1x{N}xf32>", f"%rows: tensor<{GROUPS}x{M}x1xf32>"]
    arguments += [f"%c{i}: {type_c}" for i in range(len(COUNTS))]
    arrays += [bias, rows, *(np.array(counts, np.int32) for counts in COUNTS)]
    region = ""
    if "epilogue" in more:
        region = (f" epilogue(%bias, %rows : tensor<{GROUPS}x1x{N}xf32>, tensor<{GROUPS}x{M}x1xf32>) {{\n"
                  "  ^bb0(%acc: f32, %of_expert: f32, %of_row: f32):\n    %s = arith.addf %acc, %of_expert : f32\n"
                  "    %t = arith.addf %s, %of_row : f32\n    fp8.yield %t : f32\n  }")
    cases = [(c, o) for i, c in enumerate(choose(configs, args)) for o in range(len(COUNTS)) if (o - i) % len(COUNTS) < 2]
    for i, (config_text, o) in enumerate(cases):
        body += (f"  %r{i} = fp8.grouped_matmul %a{o}, %b{o} {'counts' if counted == 'm' else 'counts_k'}(%c{o} : {type_c})"
                 f"{flags}{region} {{fp8_gpu.config = {config_text}}} : {', '.join(types)} -> {type_d}\n")
    results = run(args.tools, args.target, arguments, body, [(f"%r{i}", type_d) for i in range(len(cases))], arrays)
    failures = 0
    for (config_text, o), actual in zip(cases, results, strict=True):
        a, b = values[o]
        expected = np.zeros(shape_d, np.float32)
        for group, count in enumerate(clamped[o]):
            if counted == "k":
                expected[group] = a[group, :, :count] @ b[group, :, :count].T
                continue
            expected[group, :count] = a[group, :count] @ b[group].T
            if region:
                expected[group, :count] += bias[group] + rows[group, :count]
            if "rest" in more:  # Rows that may be anything.
                actual[group, count:] = 0
        failures += compare(f"{name} {config_text} {COUNTS[o]}", actual, expected.astype(RESULTS[result]))
    return failures, len(cases)


if __name__ == "__main__":
    sys.exit(check_target(TARGETS, run_kind))
