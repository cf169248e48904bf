# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools --target=sm_100a
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools --target=sm_89
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Runs kernels of fp8.grouped_matmul on the emulator, with all that it can look for, and compares them with numpy,
exactly. Values are small integers, factors powers of two, so that every sum is one number in any order.

A program has a product for each config and some lists of offsets. Groups are empty, begin and end anywhere, and leave
tokens over, of which the last ones are NaN: nothing of them may reach a result.
"""

import sys

import numpy as np

from products import (FAST, MMA, OF_K, PROMOTE, REGISTERS, RESULTS, TENSOR_CORE, Operand, check_target, choose, compare, config,
                      run, spoil, tensor)

GROUPS, T, N, K = 5, 224, 144, 272
MICRO_K = 384  # With factors that tensor cores multiply.
USED = 208  # Tokens, at most.
OFFSETS = [[0, 64, 64, 192, 193, USED], [0, 0, 37, 100, 101, 190], [0, 0, 0, 0, 0, 0], [0, *[USED] * 5],
           [0, 1, 130, 131, 140, USED]]

# What is grouped, elements of A and B, blocks of their factors, accumulation, result, layout, configs.
KINDS = {
    "tensor_fast": ("rows", "f8E4M3FN", "f8E4M3FN", "*", "*", "fast", "bf16", "nt", FAST),
    "tensor_promote": ("rows", "f8E5M2", "f8E4M3FN", "*", "*", "promote", "bf16", "nt", PROMOTE),
    "expert_fast": ("rows", "f8E4M3FN", "f8E4M3FN", "*", ("*", "*"), "fast", "bf16", "nt", FAST[:3]),
    "row_fast": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "fast", "f32", "nt", FAST),
    "row_promote": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", PROMOTE[:3]),
    "block": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt", PROMOTE),
    # Factors stored with the tokens innermost: bulk copies bring them, which begin up to three tokens before a tile.
    "block_stored": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt",
                     PROMOTE + [config(256, 64, staging=4), config(192, 48, consumers=3),
                                config(64, 128, consumers=2, swap_ab="true", store="direct", cluster_n=2)]),
    "plain": ("rows", "bf16", "bf16", None, None, "fast", "bf16", "nt", FAST[:4]),
    "plain_nn": ("rows", "bf16", "bf16", None, None, "fast", "f32", "nn", FAST[:4]),
    "k_tensor": ("k", "f8E5M2", "f8E4M3FN", "*", "*", "fast", "f32", "nt", OF_K),
    "k_row": ("k", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", OF_K),
    "k_block": ("k", "f8E5M2", "f8E4M3FN", ("1", "128"), ("1", "128"), "promote", "f32", "nt", OF_K),
    "k_block_stored": ("k", "f8E4M3FN", "f8E5M2", ("1", "128"), ("1", "128"), "promote", "bf16", "nt", OF_K[:4]),
    "k_plain": ("k", "bf16", "bf16", None, None, "fast", "f32", "nt", OF_K),
    "k_plain_tn": ("k", "bf16", "bf16", None, None, "fast", "bf16", "tn", OF_K),
}
BLACKWELL = {name: (*KINDS[name][:-1], configs) for name, configs in {
    "tensor_fast": TENSOR_CORE, "tensor_promote": TENSOR_CORE[:1], "expert_fast": TENSOR_CORE[:4], "row_fast": TENSOR_CORE,
    "row_promote": TENSOR_CORE[3:7], "block": REGISTERS, "block_stored": REGISTERS, "plain": TENSOR_CORE,
    "plain_nn": TENSOR_CORE[:4]}.items()}
BLACKWELL["nn"] = ("rows", "f8E4M3FN", "f8E5M2", ("1", "*"), ("*", "*"), "fast", "bf16", "nn", TENSOR_CORE[:7])
BLACKWELL["micro"] = ("rows", "f8E4M3FN", "f8E5M2", ("1", "32"), ("1", "32"), "promote", "bf16", "nt", TENSOR_CORE)
BLACKWELL["plain_f16"] = ("rows", "f16", "f16", None, None, "fast", "f32", "nt", TENSOR_CORE[1:7])
ADA = {name: (*KINDS[name][:-1], MMA) for name in (
    "expert_fast", "row_promote", "block", "block_stored", "plain_nn", "k_row", "k_block", "k_block_stored", "k_plain_tn")}
TARGETS = {"sm_89": ADA, "sm_90a": KINDS, "sm_100a": BLACKWELL}


def run_kind(name, kind, args):
    what, element_a, element_b, block_a, block_b, accumulate, result, layout, configs = kind
    rng = np.random.default_rng(1)
    # With the dimension of tokens.
    if what == "rows":
        k = MICRO_K if name == "micro" else K
        shape_a, tokens_a, shape_b, tokens_b, shape_d = (T, k), 0, (GROUPS, N, k), None, (T, N)
    else:
        shape_a, tokens_a, shape_b, tokens_b, shape_d = (N, T), 1, (K, T), 1, (GROUPS, N, K)
    flags = (" transpose_a" if layout[0] == "t" else "") + (" transpose_b" if layout[1] == "n" else "")
    flags += " accumulate = fast" if accumulate == "fast" else ""
    arguments, body, arrays, types, values = [], "", [], [], []
    for operand, shape, tokens in (
            (Operand("a", shape_a, element_a, block_a, layout[0] == "t", name.endswith("_stored")), shape_a, tokens_a),
            (Operand("b", shape_b, element_b, block_b, layout[1] == "n", name.endswith("_stored")), shape_b, tokens_b)):
        given, value = operand.draw(
            shape, rng, None if tokens is None else lambda array, blocks, dim=tokens: spoil(array, blocks, dim, USED))
        arguments += operand.arguments
        body += operand.made
        arrays += given
        types.append(operand.type)
        values.append(value)
    a, b = values

    type_d, type_o = tensor(shape_d, result), f"tensor<{GROUPS + 1}xi32>"
    arguments += [f"%o{i}: {type_o}" for i in range(len(OFFSETS))]
    arrays += [np.array(offsets, np.int32) for offsets in OFFSETS]
    # The offsets differ from config to config where not all are wanted: each config sees two lists, each list all
    # kinds.
    cases = [(c, o) for i, c in enumerate(choose(configs, args)) for o in range(len(OFFSETS)) if (o - i) % len(OFFSETS) < 2]
    for i, (config_text, o) in enumerate(cases):
        body += (f"  %r{i} = fp8.grouped_matmul %a, %b offsets(%o{o} : {type_o}){flags} {{fp8_gpu.config = {config_text}}}"
                 f" : {', '.join(types)} -> {type_d}\n")
    results = run(args.tools, args.target, arguments, body, [(f"%r{i}", type_d) for i in range(len(cases))], arrays)
    failures = 0
    for (config_text, o), actual in zip(cases, results, strict=True):
        expected = np.zeros(shape_d, np.float32)
        for group, (begin, end) in enumerate(zip(OFFSETS[o], OFFSETS[o][1:])):
            if what == "rows":
                expected[begin:end] = a[begin:end] @ b[group].T
            else:
                expected[group] = a[:, begin:end] @ b[:, begin:end].T
        failures += compare(f"{name} {config_text} {OFFSETS[o]}", actual, expected.astype(RESULTS[result]))
    return failures, len(cases)


if __name__ == "__main__":
    sys.exit(check_target(TARGETS, run_kind))
