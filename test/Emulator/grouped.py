# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Runs kernels of fp8.grouped_matmul on the emulator, with all that it can look for, and compares them with numpy,
exactly: values are small integers, factors powers of two, so that every sum is one number in any order.

A program has a product for each config and some lists of offsets. Groups are empty, begin and end anywhere, and leave
tokens over, of which the last ones are NaN: nothing of them may reach a result.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

GROUPS, T, N, K = 5, 224, 144, 272
USED = 208  # Tokens, at most.
OFFSETS = [[0, 64, 64, 192, 193, USED], [0, 0, 37, 100, 101, 190], [0, 0, 0, 0, 0, 0], [0, *[USED] * 5],
           [0, 1, 130, 131, 140, USED]]
CODES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16}
RESULTS = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def config(tile_m, tile_n, stages=3, **more):
    text = ", ".join([f"tile_m = {tile_m}", f"tile_n = {tile_n}", f"stages = {stages}",
                      *(f"{key} = {value}" for key, value in more.items())])
    return f"#fp8_sm90.gemm<{text}>"


# Of every schedule, with stores in bulk and element by element, in clusters either way.
FAST = [config(128, 128), config(64, 64, consumers=1, pending=1), config(128, 144, schedule="ping_pong", group=4),
        config(64, 48, schedule="ping_pong", pending=1, staging=1), config(128, 64, cluster=2),
        config(64, 64, consumers=1, cluster=2, cluster_cols=2), config(128, 64, store="direct"),
        config(16, 64, consumers=1, swap_ab="true", store="direct", group=1),
        config(64, 128, consumers=2, swap_ab="true", store="direct", cluster=2), config(256, 64)]
PROMOTE = [config(128, 128), config(64, 64, consumers=1, overlap="true"),
           config(64, 64, schedule="ping_pong", overlap="true"), config(64, 64, consumers=1, cluster_cols=2),
           config(16, 64, consumers=1, swap_ab="true", store="direct"), config(128, 64, store="direct", cluster=2)]
OF_K = [config(128, 128), config(64, 64, consumers=1), config(128, 48, cluster=2), config(64, 48, cluster_cols=2, consumers=1),
        config(128, 64, store="direct"), config(16, 128, consumers=2, swap_ab="true", store="direct"),
        config(192, 48, consumers=3)]

# What is grouped, elements of A and B, blocks of their factors, accumulation, result, layout, configs.
KINDS = {
    "tensor_fast": ("rows", "f8E4M3FN", "f8E4M3FN", ("*", "*"), ("*", "*"), "fast", "bf16", "nt", FAST),
    "tensor_promote": ("rows", "f8E5M2", "f8E4M3FN", ("*", "*"), ("*", "*"), "promote", "bf16", "nt", PROMOTE),
    "expert_fast": ("rows", "f8E4M3FN", "f8E4M3FN", ("*", "*"), ("1", "*", "*"), "fast", "bf16", "nt", FAST[:3]),
    "row_fast": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "fast", "f32", "nt", FAST),
    "row_promote": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", PROMOTE[:3]),
    "block": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt", PROMOTE),
    # Factors stored with the tokens innermost: bulk copies bring them, which begin up to three tokens before a tile.
    "block_stored": ("rows", "f8E4M3FN", "f8E4M3FN", ("1", "128"), ("128", "128"), "promote", "bf16", "nt",
                     PROMOTE + [config(256, 64, staging=4), config(192, 48, consumers=3),
                                config(64, 128, consumers=2, swap_ab="true", store="direct", cluster=2)]),
    "plain": ("rows", "bf16", "bf16", None, None, "fast", "bf16", "nt", FAST[:4]),
    "plain_nn": ("rows", "bf16", "bf16", None, None, "fast", "f32", "nn", FAST[:4]),
    "k_tensor": ("k", "f8E5M2", "f8E4M3FN", ("*", "*"), ("*", "*"), "fast", "f32", "nt", OF_K),
    "k_row": ("k", "f8E4M3FN", "f8E4M3FN", ("1", "*"), ("1", "*"), "promote", "bf16", "nt", OF_K),
    "k_block": ("k", "f8E5M2", "f8E4M3FN", ("1", "128"), ("1", "128"), "promote", "f32", "nt", OF_K),
    "k_block_stored": ("k", "f8E4M3FN", "f8E5M2", ("1", "128"), ("1", "128"), "promote", "bf16", "nt", OF_K[:4]),
    "k_plain": ("k", "bf16", "bf16", None, None, "fast", "f32", "nt", OF_K),
    "k_plain_tn": ("k", "bf16", "bf16", None, None, "fast", "bf16", "tn", OF_K),
}


def operand_types(name, shape, element, block, is_stored=False):
    """Arguments of the program, what makes the operand of them, its type, and the arrays' shapes. Factors along K
    `is_stored` has with their rows innermost."""
    extents = "x".join(map(str, shape))
    if block is None:
        type_ = f"tensor<{extents}x{element}>"
        return [f"%{name}: {type_}"], "", type_, None
    block = ["*" if set(block) == {"*"} and len(block) < 3 else "1"] * (len(shape) - len(block)) + list(block)
    grid = [1 if b == "*" else -(-n // int(b)) for n, b in zip(shape, block)]
    type_ = f"!fp8.scaled<{extents}x{element}, block = [{', '.join(block)}], scale = f32>"
    codes, factors = f"tensor<{extents}x{element}>", f"tensor<{'x'.join(map(str, grid))}xf32>"
    made = f"  %{name} = fp8.assemble %{name}_codes, %{name}_factors : {codes}, {factors} -> {type_}\n"
    if is_stored and block[-2:] == ["1", "128"]:
        stored = f"tensor<{grid[1]}x{grid[0]}xf32>"
        made = (f"  %{name}_empty = tensor.empty() : {factors}\n"
                f"  %{name}_factors = linalg.transpose ins(%{name}_stored : {stored}) outs(%{name}_empty : {factors})"
                f" permutation = [1, 0]\n{made}")
        return [f"%{name}_codes: {codes}", f"%{name}_stored: {stored}"], made, type_, (grid, block)
    return [f"%{name}_codes: {codes}", f"%{name}_factors: {factors}"], made, type_, (grid, block)


def values(shape, element, grid, tokens, rng):
    """Codes, and f32 with the factors; `tokens` is their dimension, if there is one."""
    codes = rng.integers(-2, 3, shape).astype(np.float32)
    if tokens is not None:
        codes.swapaxes(0, tokens)[USED:] = np.nan
    if grid is None:
        return [codes.astype(CODES[element])], codes
    counts, block = grid
    factors = (2.0 ** rng.integers(-2, 3, counts)).astype(np.float32)
    spread = factors
    for dim, extent in enumerate(block):
        if extent not in ("1", "*"):
            spread = np.repeat(spread, int(extent), dim)
        spread = spread.take(range(min(codes.shape[dim], spread.shape[dim])), dim)
    return [codes.astype(CODES[element]), factors], codes * spread


def run(name, tools, only):
    what, element_a, element_b, block_a, block_b, accumulate, result, layout, configs = KINDS[name]
    rng = np.random.default_rng(1)
    if what == "rows":
        shape_a, shape_b, shape_d = (T, K), (GROUPS, N, K), (T, N)
    else:
        shape_a, shape_b, shape_d = (N, T), (K, T), (GROUPS, N, K)
    flags, given_a, given_b = "", shape_a, shape_b
    if layout[0] == "t":
        flags, given_a = flags + " transpose_a", shape_a[:-2] + (shape_a[-1], shape_a[-2])
    if layout[1] == "n":
        flags, given_b = flags + " transpose_b", shape_b[:-2] + (shape_b[-1], shape_b[-2])
    is_stored = name.endswith("_stored")
    declared_a, made_a, type_a, grid_a = operand_types("a", given_a, element_a, block_a, is_stored)
    declared_b, made_b, type_b, grid_b = operand_types("b", given_b, element_b, block_b, is_stored)
    arrays_a, a = values(given_a, element_a, grid_a, int((what == "k") != (layout[0] == "t")), rng)
    arrays_b, b = values(given_b, element_b, grid_b, int(given_b == shape_b) if what == "k" else None, rng)
    for declared, arrays in ((declared_a, arrays_a), (declared_b, arrays_b)):
        if "_stored" in declared[-1]:
            arrays[1] = np.ascontiguousarray(arrays[1].T)
    if given_a != shape_a:
        a = a.swapaxes(-1, -2)
    if given_b != shape_b:
        b = b.swapaxes(-1, -2)

    type_d = f"tensor<{'x'.join(map(str, shape_d))}x{result}>"
    type_o = f"tensor<{GROUPS + 1}xi32>"
    chosen = [c for i, c in enumerate(configs) if only is None or i == only]
    # The offsets differ from config to config where not all are wanted: each config sees two lists, each list all
    # kinds.
    cases = [(c, o) for i, c in enumerate(chosen) for o in range(len(OFFSETS)) if (o - i) % len(OFFSETS) < 2]
    body = made_a + made_b
    for i, (config_text, offsets) in enumerate(cases):
        body += (f"  %r{i} = fp8.grouped_matmul %a, %b offsets(%o{offsets} : {type_o}){flags}"
                 f"{' accumulate = fast' if accumulate == 'fast' else ''} {{fp8_gpu.config = {config_text}}}"
                 f" : {type_a}, {type_b} -> {type_d}\n")
    arguments = ", ".join(declared_a + declared_b + [f"%o{i}: {type_o}" for i in range(len(OFFSETS))])
    types = ", ".join([type_d] * len(cases))
    program = (f"func.func @main({arguments}) -> ({types}) {{\n{body}"
               f"  return {', '.join(f'%r{i}' for i in range(len(cases)))} : {types}\n}}\n")
    with tempfile.TemporaryDirectory() as folder:
        source, inputs, outputs = (os.path.join(folder, name) for name in ("p.mlir", "in.safetensors", "out.safetensors"))
        with open(source, "w") as file:
            file.write(program)
        offsets = [np.array(o, np.int32) for o in OFFSETS]
        tensors.save(inputs, {f"arg{i}": array for i, array in enumerate(arrays_a + arrays_b + offsets)})
        done = subprocess.run([os.path.join(tools, "fp8-run"), source, "--target=sm_90a", f"--inputs={inputs}",
                               f"--outputs={outputs}"], capture_output=True, text=True)
        if done.returncode or "no kernel" in done.stderr:
            print(f"{name}: {done.stderr[-3000:]}")
            return 1
        written = tensors.load(outputs)
        results = [np.array(written[key]) for key in sorted(written, key=lambda key: int("".join(
            c for c in key if c.isdigit()) or 0))]
    failures = 0
    for (config_text, o), actual in zip(cases, results, strict=True):
        expected = np.zeros(shape_d, np.float32)
        for group, (begin, end) in enumerate(zip(OFFSETS[o], OFFSETS[o][1:])):
            if what == "rows":
                expected[begin:end] = a[begin:end] @ b[group].T
            else:
                expected[group] = a[:, begin:end] @ b[:, begin:end].T
        expected = expected.astype(RESULTS[result])
        if not np.array_equal(actual.astype(np.float32), expected.astype(np.float32)):
            wrong = np.argwhere(actual.astype(np.float32) != expected.astype(np.float32))
            print(f"{name} {config_text} {OFFSETS[o]}: {len(wrong)} wrong, the first at {wrong[0]}, the last at "
                  f"{wrong[-1]}")
            failures += 1
    print(f"{name}: {len(cases) - failures} of {len(cases)} right", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--only", type=int, help="of the configs, this one")
    args = parser.parse_args()
    return int(sum(run(name, args.tools, args.only) for name in args.kinds) > 0)


if __name__ == "__main__":
    sys.exit(main())
