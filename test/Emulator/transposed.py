# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Runs kernels that read codes with rows innermost on the emulator, with all that it can look for. Each result has the
bits that a kernel has of a transposed copy.
"""

import re
import sys

import numpy as np

from products import CODES, check_target, choose_for, config, run_each, tensor

# Tails in each dimension: of K within an instruction, and less than the ring has stages.
SHAPES = [(80, 144, 272), (32, 336, 528), (144, 64, 384), (144, 64, 144)]
B = {"swap_ab": "true", "lifters": 0, "group": 1}
DIRECT = B | {"store": "direct"}
# A's rows, and B's with swapped operands: one warpgroup's subtiles that share lines, two and three warpgroups, both stores.
OF_B_FAST = [config(16, 64, 4, consumers=1, **DIRECT), config(64, 64, 3, consumers=1, **B), config(8, 128, 4, **DIRECT),
             config(72, 128, 3, **B), config(256, 128, 3, staging=1, **B), config(24, 256, 3, **B), config(64, 192, 3, consumers=3, **B),
             config(32, 128, 3, consumers=1, **B), config(64, 256, 3, cluster_n=2, **B), config(64, 128, 3, cluster_m=2, **B),
             config(16, 64, 4, consumers=1, split_k=2, **DIRECT), config(32, 64, 4, consumers=1, cluster_m=2, cluster_n=2, **B)]
# Products that wait until those before are added, and those that do not.
OF_B_PROMOTE = [config(16, 64, 4, consumers=1, **DIRECT), config(64, 128, 3, overlap="true", **B), config(144, 128, 3, **B),
                config(24, 256, 3, **B)]
A = {"lifters": 0}
OF_A_FAST = [config(64, 64, 4, consumers=1, **A), config(128, 128, 3, **A), config(128, 256, 3, **A), config(256, 48, 3, **A),
             config(192, 64, 3, consumers=3, **A), config(128, 64, 3, consumers=1, store="direct", **A),
             config(128, 64, 3, cluster_m=2, **A), config(256, 64, 3, cluster_n=2, **A), config(64, 48, 4, consumers=1, split_k=2, **A)]
OF_A_PROMOTE = [config(64, 64, 4, consumers=1, overlap="true", **A), config(128, 96, 3, **A), config(256, 32, 3, **A)]
# Which operand is transposed, both elements, the block of factors, accumulation, the result, configs.
KINDS = {"b_fast": ("b", "f8E4M3FN", "f8E4M3FN", "*", "fast", "bf16", OF_B_FAST),
         "b_row_fast": ("b", "f8E5M2", "f8E4M3FN", "1", "fast", "bf16", OF_B_FAST[::3]),
         "b_promote": ("b", "f8E5M2", "f8E4M3FN", "*", "promote", "bf16", OF_B_PROMOTE),
         "b_f32": ("b", "f8E4M3FN", "f8E5M2", "*", "fast", "f32", [OF_B_FAST[0], OF_B_FAST[2], config(40, 128, 3, **DIRECT)]),
         "a_fast": ("a", "f8E5M2", "f8E4M3FN", "*", "fast", "bf16", OF_A_FAST),
         "a_row_f32": ("a", "f8E4M3FN", "f8E4M3FN", "1", "fast", "f32", OF_A_FAST[::3]),
         "a_promote": ("a", "f8E5M2", "f8E4M3FN", "*", "promote", "bf16", OF_A_PROMOTE)}


def get_plain(text):
    """The config of a copy, with as many parts of K."""
    return re.sub(", lifters = 0", "", text).replace("swap_ab = true, ", "swap_ab = true, store = direct, " * ("store" not in text)
                                                     or "swap_ab = true, ")


def run_kind(name, kind, args):
    transposed, element_a, element_b, block, accumulate, result, configs = kind
    failures, total = 0, 0
    for number, (m, n, k) in enumerate(SHAPES):
        chosen = choose_for(number, SHAPES, configs, args, parts=1 if accumulate == "promote" else 2)
        if not chosen:
            continue
        rng = np.random.default_rng(number)
        arguments, arrays, body, types = [], [], "", {}
        for operand, rows, element in (("a", m, element_a), ("b", n, element_b)):
            codes = (rng.standard_normal((rows, k)) * 8).astype(CODES[element])
            factors = rng.uniform(0.5, 2, (1 if block == "*" else rows, 1)).astype(np.float32)
            for copy, order in ((operand, (0, 1)), (operand + "_t", (1, 0))):
                shape = [(rows, k)[dim] for dim in order]
                blocks = [(block, "*")[dim] for dim in order]
                of_factors = factors.transpose(order)
                given = [(copy + "_codes", tensor(shape, element), codes.transpose(order)),
                         (copy + "_factors", tensor(of_factors.shape, "f32"), of_factors)]
                arguments += [f"%{label}: {type_}" for label, type_, _ in given]
                arrays += [np.ascontiguousarray(array) for _, _, array in given]
                types[copy] = f"!fp8.scaled<{'x'.join(map(str, shape))}x{element}, block = [{', '.join(blocks)}], scale = f32>"
                body += (f"  %{copy} = fp8.assemble %{given[0][0]}, %{given[1][0]} : {given[0][1]}, {given[1][1]} -> "
                         f"{types[copy]}\n")
        results, type_d = [], tensor((m, n), result)
        for i, text in enumerate(chosen):
            for side, own, turned in (("t", text, transposed), ("c", get_plain(text), "")):
                a, b = ("a_t" if turned == "a" else "a"), ("b_t" if turned == "b" else "b")
                flag = f" transpose_{turned}" if turned else ""
                results.append((f"%{side}{i}", type_d))
                body += (f"  %{side}{i} = fp8.matmul %{a}, %{b}{flag} accumulate = {accumulate} "
                         f"{{fp8_gpu.config = {own}}} : {types[a]}, {types[b]} -> {type_d}\n")
        found = run_each(args.tools, "sm_90a", arguments, body, results, [arrays])[0]
        for text, own, expected in zip(chosen, found[::2], found[1::2], strict=True):
            wrong = own.view(np.uint8) != expected.view(np.uint8)
            total += 1
            failures += bool(wrong.any() or not own.astype(np.float32).any())
            if wrong.any():
                print(f"{name} {(m, n, k)} {text}: {wrong.sum()} differ, the first at {np.argwhere(wrong)[0]}")
    return failures, total


if __name__ == "__main__":
    sys.exit(check_target({"sm_90a": KINDS}, run_kind))
