# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools sm_90a
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all %python %s %fp8_tools sm_100a
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Batches of matrices of which some extent is one, known or not: products, passes over memory, sums, copies and parts of
larger tensors have the CPU's bytes on the emulator under every recipe. A pass counts on in all rows of all batches, for
which one row has no stride of its own."""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

RECIPES = "none", "rowwise", "block"
# Batches and rows, of programs that know them and of one that does not; 256 columns into 32.
STATIC, DYNAMIC = [(3, 1), (1, 1)], [(3, 1), (7, 1), (1, 3), (2, 3)]
HEADS, K, N = 2, 256, 32


def make_program(batch, rows):
    """In which extents may be "?"."""
    sizes = "".join(f", %{name}" for name, extent in (("b", batch), ("m", rows)) if extent == "?").removeprefix(", ")
    x, part = f"tensor<{batch}x{rows}x{K}xbf16>", f"tensor<{batch}x{rows}x{K}xf32>"
    y, w, all_ = f"tensor<{batch}x{rows}x{N}xf32>", f"tensor<{batch}x{K}x{N}xbf16>", f"tensor<?x?x{K + 64}xbf16>"
    turned, row, heads = f"tensor<{batch}x{K}x{rows}xbf16>", f"tensor<{batch}x{rows}xf32>", f"tensor<{HEADS}x{x[7:]}"
    swapped = ", ".join(f"%{name}" for name, extent in (("b", batch), ("m", rows)) if extent == "?")
    batch_only = "%b" if batch == "?" else ""
    sizes_of = [extent if extent != "?" else f"%{name}" for name, extent in (("b", batch), ("m", rows))]
    parallel = '"parallel", "parallel", "parallel"'
    return f"""
#id = affine_map<(b, m, k) -> (b, m, k)>
#row = affine_map<(b, m, k) -> (b, m)>
#column = affine_map<(b, m, k) -> (k)>
#id4 = affine_map<(h, b, m, k) -> (h, b, m, k)>
#column4 = affine_map<(h, b, m, k) -> (k)>
func.func @main(%x: {x} {{fp8.name = "x"}}, %w: {w} {{fp8.name = "w"}}, %bias: tensor<{K}xf32> {{fp8.name = "bias"}},
                %all: {all_} {{fp8.name = "all"}}, %heads: {heads} {{fp8.name = "heads"}},
                %counts: tensor<{batch}xi32> {{fp8.name = "counts"}})
    -> ({y} {{fp8.name = "product"}}, {part} {{fp8.name = "added"}}, {turned} {{fp8.name = "turned"}},
        {row} {{fp8.name = "rows"}}, tensor<{K}xf32> {{fp8.name = "columns"}}, {part} {{fp8.name = "part"}},
        {y} {{fp8.name = "part_product"}}, {heads} {{fp8.name = "scaled"}}, {y} {{fp8.name = "counted"}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : {x}
  %m = tensor.dim %x, %c1 : {x}
  %y_empty = tensor.empty({sizes}) : {y}
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : {y}) -> {y}
  %product = linalg.batch_matmul {{fp8.name = "product"}} ins(%x, %w : {x}, {w}) outs(%y_zeros : {y}) -> {y}
  %added_empty = tensor.empty({sizes}) : {part}
  %added = linalg.generic {{indexing_maps = [#id, #column, #id], iterator_types = [{parallel}]}}
      ins(%x, %bias : {x}, tensor<{K}xf32>) outs(%added_empty : {part}) {{
  ^bb0(%v: bf16, %c: f32, %o: f32):
    %wide = arith.extf %v : bf16 to f32
    %sum = arith.addf %wide, %c : f32
    linalg.yield %sum : f32
  }} -> {part}
  %turned_empty = tensor.empty({swapped}) : {turned}
  %turned = linalg.transpose ins(%x : {x}) outs(%turned_empty : {turned}) permutation = [0, 2, 1]
  %row_empty = tensor.empty({sizes}) : {row}
  %row_zeros = linalg.fill ins(%zero : f32) outs(%row_empty : {row}) -> {row}
  %rows = linalg.generic {{indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x : {x}) outs(%row_zeros : {row}) {{
  ^bb0(%v: bf16, %o: f32):
    %wide = arith.extf %v : bf16 to f32
    %sum = arith.addf %o, %wide : f32
    linalg.yield %sum : f32
  }} -> {row}
  %column_empty = tensor.empty() : tensor<{K}xf32>
  %column_zeros = linalg.fill ins(%zero : f32) outs(%column_empty : tensor<{K}xf32>) -> tensor<{K}xf32>
  %columns = linalg.generic {{indexing_maps = [#id, #column], iterator_types = ["reduction", "reduction", "parallel"]}}
      ins(%x : {x}) outs(%column_zeros : tensor<{K}xf32>) {{
  ^bb0(%v: bf16, %o: f32):
    %wide = arith.extf %v : bf16 to f32
    %sum = arith.addf %o, %wide : f32
    linalg.yield %sum : f32
  }} -> tensor<{K}xf32>
  %sliced = tensor.extract_slice %all[0, 0, 64] [{sizes_of[0]}, {sizes_of[1]}, {K}] [1, 1, 1] : {all_} to {x}
  %part = linalg.generic {{indexing_maps = [#id, #column, #id], iterator_types = [{parallel}]}}
      ins(%sliced, %bias : {x}, tensor<{K}xf32>) outs(%added_empty : {part}) {{
  ^bb0(%v: bf16, %c: f32, %o: f32):
    %wide = arith.extf %v : bf16 to f32
    %less = arith.subf %wide, %c : f32
    linalg.yield %less : f32
  }} -> {part}
  %part_product = linalg.batch_matmul {{fp8.name = "part"}} ins(%sliced, %w : {x}, {w}) outs(%y_zeros : {y}) -> {y}
  %heads_empty = tensor.empty({sizes}) : {heads}
  %scaled = linalg.generic {{indexing_maps = [#id4, #column4, #id4], iterator_types = ["parallel", {parallel}]}}
      ins(%heads, %bias : {heads}, tensor<{K}xf32>) outs(%heads_empty : {heads}) {{
  ^bb0(%v: bf16, %c: f32, %o: bf16):
    %wide = arith.extf %v : bf16 to f32
    %times = arith.mulf %wide, %c : f32
    %rounded = arith.truncf %times : f32 to bf16
    linalg.yield %rounded : bf16
  }} -> {heads}
  %counted = fp8.grouped_matmul %x, %w counts(%counts : tensor<{batch}xi32>) transpose_b accumulate = fast
      {{fp8.name = "counted"}}
      : {x}, {w} -> {y}
  return %product, %added, %turned, %rows, %columns, %part, %part_product, %scaled, %counted
      : {y}, {part}, {turned}, {row}, tensor<{K}xf32>, {part}, {y}, {heads}, {y}
}}
"""


def draw(rng, *shape):
    """Numbers whose sums are the same in any order."""
    return rng.integers(-8, 9, shape).astype(np.float32).astype(ml_dtypes.bfloat16)


def main():
    tools, target = sys.argv[1:]
    rng = np.random.default_rng(0)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, inputs, outputs = (os.path.join(folder, name) for name in ("program.mlir", "in", "out"))

        def call(tool, *arguments):
            done = subprocess.run([os.path.join(tools, tool), *arguments], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{tool} {' '.join(arguments)}: {done.stderr[-3000:]}")

        def compile_(recipe, batch, rows):
            with open(source, "w") as file:
                file.write(make_program(batch, rows))
            libraries = [os.path.join(folder, f"{where}.so") for where in ("cpu", target)]
            for library, where in zip(libraries, ("cpu", target)):
                options = ["--accumulate=tensor-core", f"--accumulation-of={target}"] if where == "cpu" else []
                call("fp8-compile", source, f"--recipe={recipe}", f"--target={where}", "-o", library, *options)
            return libraries

        def run(library):
            call("fp8-run", library, f"--inputs={inputs}", f"--outputs={outputs}")
            return {name: (tensor.shape, tensor.tobytes()) for name, tensor in tensors.load(outputs).items()}

        for recipe in RECIPES:
            for known, extents in [*((known, [known]) for known in STATIC), (("?", "?"), DYNAMIC)]:
                libraries = compile_(recipe, *known)
                for batch, rows in extents:
                    tensors.save(inputs, {
                        "x": draw(rng, batch, rows, K), "w": draw(rng, batch, K, N), "all": draw(rng, batch, rows, K + 64),
                        "bias": draw(rng, K).astype(np.float32), "heads": draw(rng, HEADS, batch, rows, K),
                        "counts": rng.integers(0, rows + 1, batch).astype(np.int32)})
                    expected, actual = map(run, libraries)
                    if actual != expected:
                        print(f"{recipe}, {batch} of {rows} rows, compiled for {known}: "
                              f"{[name for name in expected if actual[name] != expected[name]]}")
                        failures += 1
    print(f"{failures} wrong")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
