# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools sm_90a
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all %python %s %fp8_tools sm_100a
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Products whose extents show when the program runs, where rows turn out not to be multiples of the 16 bytes that a
kernel's bulk copies ask for. Each is computed, and so are the same programs' products whose rows are.

Operands are small integers, so that sums are the same in any order.
"""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

# Extents M, N and K; the last ones fit.
EXTENTS = [(8, 8, 13), (13, 16, 32), (16, 13, 32), (5, 3, 1), (24, 40, 32)]
GROUPS = 3


def contract(dims_a, dims_b, batch, element, bias):
    """A product of operands with these dimensions, innermost last."""
    front = "b" if batch else ""
    dims_a, dims_b, dims_d = front + dims_a, front + dims_b, front + "mn"

    def tensor(dims, element):
        return f"tensor<{'?x' * len(dims)}{element}>"

    def map_of(dims, domain):
        return f"affine_map<({', '.join(domain)}) -> ({', '.join(dims)})>"

    a, b, d = tensor(dims_a, element), tensor(dims_b, element), tensor(dims_d, "f32")
    maps = ", ".join(map_of(dims, front + "mnk") for dims in (dims_a, dims_b, dims_d))
    lines = [f"func.func @main(%a: {a}, %b: {b}, %bias: tensor<?xf32>) -> {d} {{"]
    for dim in dims_d:
        name, dims = ("a", dims_a) if dim in dims_a else ("b", dims_b)
        lines += [f"  %at_{dim} = arith.constant {dims.index(dim)} : index",
                  f"  %size_{dim} = tensor.dim %{name}, %at_{dim} : {tensor(dims, element)}"]
    sizes = ", ".join(f"%size_{dim}" for dim in dims_d)
    lines += ["  %zero = arith.constant 0.0 : f32", f"  %empty = tensor.empty({sizes}) : {d}",
              f"  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {d}) -> {d}",
              f"  %product = linalg.contract indexing_maps = [{maps}] ins(%a, %b : {a}, {b}) outs(%zeros : {d}) -> {d}"]
    if bias:
        iterators = ", ".join(['"parallel"'] * len(dims_d))
        lines += [f"  %sum = linalg.generic {{indexing_maps = [{map_of(dims_d, dims_d)}, {map_of('n', dims_d)}, "
                  f"{map_of(dims_d, dims_d)}], iterator_types = [{iterators}]}}",
                  f"      ins(%product, %bias : {d}, tensor<?xf32>) outs(%empty : {d}) {{",
                  "  ^bb0(%p: f32, %q: f32, %o: f32):", "    %s = arith.addf %p, %q : f32",
                  "    linalg.yield %s : f32", f"  }} -> {d}"]
    lines += [f"  return %{'sum' if bias else 'product'} : {d}", "}"]
    return "\n".join(lines)


def grouped(element):
    """Rows of A by groups, each with a matrix of its own."""
    return f"""
func.func @main(%a: tensor<?x?x{element}>, %b: tensor<{GROUPS}x?x?x{element}>, %offsets: tensor<{GROUPS + 1}xi32>)
    -> tensor<?x?xf32> {{
  %y = fp8.grouped_matmul %a, %b offsets(%offsets : tensor<{GROUPS + 1}xi32>) accumulate = fast
    : tensor<?x?x{element}>, tensor<{GROUPS}x?x?x{element}> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}}"""


PROGRAMS = {
    "rows": (contract("mk", "kn", False, "bf16", False), "mk", "kn", "ij,jk->ik"),
    "columns": (contract("km", "nk", False, "f16", True), "km", "nk", "ji,kj->ik"),
    "batch": (contract("mk", "nk", True, "bf16", True), "bmk", "bnk", "bij,bkj->bik"),
    "groups": (grouped("bf16"), "mk", "gnk", None),
}


def main():
    tools, target = sys.argv[1:]
    rng = np.random.default_rng(0)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, library, inputs, outputs = (os.path.join(folder, name) for name in ("x.mlir", "x.so", "in", "out"))

        def call(tool, *arguments):
            done = subprocess.run([os.path.join(tools, tool), *arguments], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{tool} {' '.join(arguments)}: {done.stderr[-3000:]}")

        for name, (program, dims_a, dims_b, product) in PROGRAMS.items():
            with open(source, "w") as file:
                file.write(program)
            call("fp8-compile", source, f"--target={target}", "-o", library)
            for m, n, k in EXTENTS:
                size = {"b": 2, "g": GROUPS, "m": m, "n": n, "k": k}
                element = ml_dtypes.bfloat16 if "bf16" in program else np.float16
                a, b = (rng.integers(-4, 5, [size[dim] for dim in dims]).astype(element) for dims in (dims_a, dims_b))
                bias = rng.integers(-4, 5, n).astype(np.float32)
                wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
                if product:
                    third = bias
                    expected = np.einsum(product, wide_a, wide_b) + ("%sum" in program) * bias
                else:
                    third = np.array([0, m // 3, m // 2, m], np.int32)
                    which = np.searchsorted(third[1:], np.arange(m), side="right")
                    expected = np.einsum("ij,ikj->ik", wide_a, wide_b[which])
                tensors.save(inputs, {"arg0": a, "arg1": b, "arg2": third})
                call("fp8-run", library, f"--inputs={inputs}", f"--outputs={outputs}")
                if not np.array_equal(tensors.load(outputs)["result0"], expected):
                    print(f"{name} {m}x{n}x{k}: other results")
                    failures += 1
    print(f"{failures} wrong")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
