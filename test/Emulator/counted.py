# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Runs kernels of fp8.grouped_matmul with counts on the emulator, with all that it can look for, and compares them with
numpy, exactly, as grouped.py does.

A program has a product for each config and some lists of counts, each with an A, and where K is counted a B, of its own:
all that a group has no count for is NaN, codes and factors. Counts that are none are taken for all that there is room for.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

from fp8 import tensors
from grouped import CODES, FAST, OF_K, PROMOTE, RESULTS, config

GROUPS, M, N, K = 5, 208, 144, 272
COUNTS = [[64, 128, 1, 0, M], [37, 200, 130, 63, 65], [0] * GROUPS, [M] * GROUPS, [1000, -1, 5, 0, 127]]

# What is counted, elements of A and B, blocks of a group's factors ("*": of all groups), accumulation, result, layout,
# configs, and what else: rest and epilogue.
KINDS = {
    "tensor_fast": ("m", "f8E4M3FN", "f8E4M3FN", "**", "**", "fast", "bf16", "nt", FAST),
    "expert_fast": ("m", "f8E4M3FN", "f8E5M2", ("*", "*"), ("*", "*"), "fast", "bf16", "nt", FAST[:3]),
    "tensor_promote": ("m", "f8E5M2", "f8E4M3FN", "**", ("*", "*"), "promote", "f32", "nt", PROMOTE[:3]),
    "row_fast": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "fast", "f32", "nt", FAST),
    "row_promote": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", PROMOTE[:3]),
    "block": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt", PROMOTE),
    # Factors stored with the tokens innermost: bulk copies bring them.
    "block_stored": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt",
                     PROMOTE + [config(256, 64, staging=4), config(192, 48, consumers=3),
                                config(64, 128, consumers=2, swap_ab="true", store="direct", cluster=2)]),
    "plain": ("m", "bf16", "bf16", None, None, "fast", "bf16", "nt", FAST[:4]),
    "plain_tn": ("m", "bf16", "bf16", None, None, "fast", "f32", "tn", FAST[:4]),
    "rest": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt", PROMOTE[:2], "rest"),
    "epilogue": ("m", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "fast", "f32", "nt", FAST, "epilogue"),
    "k_tensor": ("k", "f8E5M2", "f8E4M3FN", "**", "**", "fast", "f32", "nt", OF_K),
    "k_row": ("k", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", OF_K[:3]),
    "k_block": ("k", "f8E5M2", "f8E4M3FN", ("1", "128"), ("1", "128"), "promote", "f32", "nt", OF_K),
    "k_block_stored": ("k", "f8E4M3FN", "f8E5M2", ("1", "128"), ("1", "128"), "promote", "bf16", "nt", OF_K[:4]),
    "k_plain": ("k", "bf16", "bf16", None, None, "fast", "f32", "nt", OF_K[:3]),
    "k_plain_tn": ("k", "bf16", "bf16", None, None, "fast", "bf16", "tn", OF_K),
}


class Operand:
    """One of a program: its arguments' types, its own, what makes it, and arrays."""

    def __init__(self, name, shape, element, block, is_transposed, is_stored):
        self.name, self.shape, self.element, self.is_transposed = name, shape, element, is_transposed
        given = shape[:1] + shape[:0:-1] if is_transposed else shape
        text = "x".join(map(str, given))
        self.codes, self.block, self.is_stored = f"tensor<{text}x{element}>", block, is_stored
        if block is None:
            self.type, self.arguments, self.made = self.codes, [f"%{name}: {self.codes}"], ""
            return
        self.block = ["*", "*", "*"] if block == "**" else ["1", *block]
        self.grid = [1 if b == "*" else -(-n // int(b)) for n, b in zip(shape, self.block)]
        factors = f"tensor<{'x'.join(map(str, self.grid))}xf32>"
        self.type = f"!fp8.scaled<{text}x{element}, block = [{', '.join(self.block)}], scale = f32>"
        self.made = f"  %{name} = fp8.assemble %{name}_codes, %{name}_factors : {self.codes}, {factors} -> {self.type}\n"
        self.arguments = [f"%{name}_codes: {self.codes}", f"%{name}_factors: {factors}"]
        self.is_stored = is_stored and self.block[1:] == ["1", "128"]
        if self.is_stored:
            stored = f"tensor<{self.grid[0]}x{self.grid[2]}x{self.grid[1]}xf32>"
            self.arguments[1] = f"%{name}_stored: {stored}"
            self.made = (f"  %{name}_empty = tensor.empty() : {factors}\n  %{name}_factors = linalg.transpose "
                         f"ins(%{name}_stored : {stored}) outs(%{name}_empty : {factors}) permutation = [0, 2, 1]\n"
                         f"{self.made}")

    def draw(self, counts, dim, rng):
        """The arguments' arrays, NaN beyond the counts of `dim` unless it is None, and the values in f32."""
        codes = rng.integers(-2, 3, self.shape).astype(np.float32)
        factors = None if self.block is None else (2.0 ** rng.integers(-2, 3, self.grid)).astype(np.float32)
        for group, count in enumerate(counts if dim is not None else ()):
            codes[group].swapaxes(0, dim - 1)[count:] = np.nan
            if factors is not None and self.block[dim] != "*":
                factors[group].swapaxes(0, dim - 1)[-(-count // int(self.block[dim])):] = np.nan
        given = np.ascontiguousarray(codes.swapaxes(1, 2)) if self.is_transposed else codes
        arrays = [given.astype(CODES[self.element])]
        if factors is None:
            return arrays, codes
        arrays.append(np.ascontiguousarray(factors.swapaxes(1, 2)) if self.is_stored else factors)
        for axis, (extent, block) in enumerate(zip(self.shape, self.block)):
            if block not in ("1", "*"):
                factors = np.repeat(factors, int(block), axis).take(range(extent), axis)
        return arrays, codes * factors


def run(kind, tools, only):
    counted, element_a, element_b, block_a, block_b, accumulate, result, layout, configs, *more = KINDS[kind]
    rng = np.random.default_rng(1)
    shape_a, shape_b, shape_d = (((GROUPS, M, K), (GROUPS, N, K), (GROUPS, M, N)) if counted == "m" else
                                 ((GROUPS, N, M), (GROUPS, K, M), (GROUPS, N, K)))
    is_stored = kind.endswith("_stored")
    flags = (" transpose_a" if layout[0] == "t" else "") + (" transpose_b" if layout[1] == "n" else "")
    clamped = [[min(count, M) if count >= 0 else M for count in counts] for counts in COUNTS]
    operands, arrays, values = [], [], []
    for i, counts in enumerate(clamped):
        drawn = []
        for name, shape, element, block, is_transposed, dim in (
                (f"a{i}", shape_a, element_a, block_a, layout[0] == "t", 1 if counted == "m" else 2),
                (f"b{i}", shape_b, element_b, block_b, layout[1] == "n", None if counted == "m" else 2)):
            operands.append(Operand(name, shape, element, block, is_transposed, is_stored))
            given, value = operands[-1].draw(counts, dim, rng)
            arrays += given
            drawn.append(value)
        values.append(drawn)
    # For each expert a bias, and something for each row.
    bias, rows = rng.integers(-4, 5, (GROUPS, 1, N)).astype(np.float32), rng.integers(-4, 5, (GROUPS, M, 1)).astype(np.float32)
    type_d = f"tensor<{'x'.join(map(str, shape_d))}x{result}>"
    type_c = f"tensor<{GROUPS}xi32>"
    chosen = [c for i, c in enumerate(configs) if only is None or i == only]
    cases = [(c, o) for i, c in enumerate(chosen) for o in range(len(COUNTS)) if (o - i) % len(COUNTS) < 2]
    body = "".join(operand.made for operand in operands)
    region = ""
    if "epilogue" in more:
        region = (f" epilogue(%bias, %rows : tensor<{GROUPS}x1x{N}xf32>, tensor<{GROUPS}x{M}x1xf32>) {{\n"
                  "  ^bb0(%acc: f32, %of_expert: f32, %of_row: f32):\n    %s = arith.addf %acc, %of_expert : f32\n"
                  "    %t = arith.addf %s, %of_row : f32\n    fp8.yield %t : f32\n  }")
    for i, (config_text, o) in enumerate(cases):
        body += (f"  %r{i} = fp8.grouped_matmul %a{o}, %b{o} {'counts' if counted == 'm' else 'counts_k'}(%c{o} : {type_c})"
                 f"{flags}{' unspecified_rest' if 'rest' in more else ''}"
                 f"{' accumulate = fast' if accumulate == 'fast' else ''}{region} {{fp8_gpu.config = {config_text}}}"
                 f" : {operands[0].type}, {operands[1].type} -> {type_d}\n")
    arguments = [argument for operand in operands for argument in operand.arguments]
    arguments += [f"%bias: tensor<{GROUPS}x1x{N}xf32>", f"%rows: tensor<{GROUPS}x{M}x1xf32>"]
    arguments += [f"%c{i}: {type_c}" for i in range(len(COUNTS))]
    types = ", ".join([type_d] * len(cases))
    program = (f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n{body}"
               f"  return {', '.join(f'%r{i}' for i in range(len(cases)))} : {types}\n}}\n")
    given = [*arrays, bias, rows, *(np.array(counts, np.int32) for counts in COUNTS)]
    with tempfile.TemporaryDirectory() as folder:
        source, inputs, outputs = (os.path.join(folder, name) for name in ("p.mlir", "in.safetensors", "out.safetensors"))
        with open(source, "w") as file:
            file.write(program)
        tensors.save(inputs, {f"arg{i}": array for i, array in enumerate(given)})
        done = subprocess.run([os.path.join(tools, "fp8-run"), source, "--target=sm_90a", f"--inputs={inputs}",
                               f"--outputs={outputs}"], capture_output=True, text=True)
        if done.returncode or "no kernel" in done.stderr:
            print(f"{kind}: {done.stderr[-3000:]}")
            return 1
        written = tensors.load(outputs)
        results = [np.array(written[key]) for key in sorted(written, key=lambda key: int("".join(
            c for c in key if c.isdigit()) or 0))]
    failures = 0
    for (config_text, o), actual in zip(cases, results, strict=True):
        a, b = values[o]
        expected, actual = np.zeros(shape_d, np.float32), actual.astype(np.float32)
        for group, count in enumerate(clamped[o]):
            if counted == "k":
                expected[group] = a[group, :, :count] @ b[group, :, :count].T
                continue
            expected[group, :count] = a[group, :count] @ b[group].T
            if region:
                expected[group, :count] += bias[group] + rows[group, :count]
            if "rest" in more:  # Rows that may be anything.
                actual[group, count:] = 0
        expected = expected.astype(RESULTS[result]).astype(np.float32)
        if not np.array_equal(actual, expected):
            wrong = np.argwhere(actual != expected)
            print(f"{kind} {config_text} {COUNTS[o]}: {len(wrong)} wrong, the first at {wrong[0]}, the last at {wrong[-1]}")
            failures += 1
    print(f"{kind}: {len(cases) - failures} of {len(cases)} right", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--only", type=int, help="of the configs, this one")
    args = parser.parse_args()
    return int(sum(run(kind, args.tools, args.only) for kind in args.kinds) > 0)


if __name__ == "__main__":
    sys.exit(main())
