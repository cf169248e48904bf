# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools sm_90a
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all %python %s %fp8_tools sm_100a
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""A linear layer with its gradients under every recipe, whose extents show when it runs, where one of them is zero. Casts,
transposed copies, products, epilogues and sums over rows have the CPU's bytes on the emulator."""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

RECIPES = "none", "current", "rowwise", "block", "mxfp8", "nvfp4", "delayed"
EXTENTS = [(128, 96, 0), (0, 96, 256), (128, 0, 256)]
BF16, F32 = "tensor<?x?xbf16>", "tensor<?x?xf32>"


def make_product(name, maps, a, b, rows, cols):
    """Into %name, in f32, whose extents are those of `rows` and `cols`."""
    a_map, b_map = (f"affine_map<(m, n, k) -> ({', '.join(dims)})>" for dims in maps)
    return f"""  %{name}_empty = tensor.empty(%{rows}, %{cols}) : {F32}
  %{name}_zeros = linalg.fill ins(%zero : f32) outs(%{name}_empty : {F32}) -> {F32}
  %{name} = linalg.contract indexing_maps = [{a_map}, {b_map}, affine_map<(m, n, k) -> (m, n)>]
      ins(%{a}, %{b} : {BF16}, {BF16}) outs(%{name}_zeros : {F32}) -> {F32}
"""


PROGRAM = f"""
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: {BF16} {{fp8.name = "x"}}, %w: {BF16} {{fp8.name = "w", fp8.weight}},
                %bias: tensor<?xf32> {{fp8.name = "bias"}}, %dy: {BF16} {{fp8.name = "dy", fp8.grad}})
    -> ({BF16} {{fp8.name = "y"}}, {F32} {{fp8.name = "dx"}}, {F32} {{fp8.name = "dw"}},
        tensor<?xf32> {{fp8.name = "db"}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : {BF16}
  %k = tensor.dim %x, %c1 : {BF16}
  %n = tensor.dim %w, %c0 : {BF16}
{make_product("product", ("mk", "nk"), "x", "w", "m", "n")}{make_product("dx", ("mk", "kn"), "dy", "w", "m", "k")}\
{make_product("dw", ("km", "kn"), "dy", "x", "n", "k")}  %y_empty = tensor.empty(%m, %n) : {BF16}
  %y = linalg.generic {{indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%product, %bias : {F32}, tensor<?xf32>) outs(%y_empty : {BF16}) {{
  ^bb0(%p: f32, %b: f32, %o: bf16):
    %sum = arith.addf %p, %b : f32
    %rounded = arith.truncf %sum : f32 to bf16
    linalg.yield %rounded : bf16
  }} -> {BF16}
  %db_empty = tensor.empty(%n) : tensor<?xf32>
  %db_zeros = linalg.fill ins(%zero : f32) outs(%db_empty : tensor<?xf32>) -> tensor<?xf32>
  %db = linalg.generic {{indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}}
      ins(%dy : {BF16}) outs(%db_zeros : tensor<?xf32>) {{
  ^bb0(%g: bf16, %o: f32):
    %wide = arith.extf %g : bf16 to f32
    %sum = arith.addf %o, %wide : f32
    linalg.yield %sum : f32
  }} -> tensor<?xf32>
  return %y, %dx, %dw, %db : {BF16}, {F32}, {F32}, tensor<?xf32>
}}
"""


def main():
    tools, target = sys.argv[1:]
    rng = np.random.default_rng(0)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, inputs, outputs = (os.path.join(folder, name) for name in ("linear.mlir", "in", "out"))
        with open(source, "w") as file:
            file.write(PROGRAM)

        def call(tool, *arguments):
            done = subprocess.run([os.path.join(tools, tool), *arguments], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{tool} {' '.join(arguments)}: {done.stderr[-3000:]}")

        def run(library):
            call("fp8-run", library, f"--inputs={inputs}", f"--outputs={outputs}")
            return {name: (tensor.shape, tensor.tobytes()) for name, tensor in tensors.load(outputs).items()}

        for recipe in RECIPES:
            libraries = [os.path.join(folder, f"{recipe}_{where}.so") for where in ("cpu", target)]
            for library, where in zip(libraries, ("cpu", target)):
                call("fp8-compile", source, f"--recipe={recipe}", f"--target={where}", "-o", library)
            for m, n, k in EXTENTS:
                values = {name: rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
                          for name, shape in (("x", (m, k)), ("w", (n, k)), ("dy", (m, n)))}
                # Sums of integers are exact: their order is each target's own.
                values["dy"] = rng.integers(-8, 9, (m, n)).astype(ml_dtypes.bfloat16)
                tensors.save(inputs, {**values, "bias": rng.standard_normal(n).astype(np.float32)})
                expected, actual = map(run, libraries)
                if actual != expected:
                    print(f"{recipe} {m}x{n}x{k}: {[name for name in expected if actual[name] != expected[name]]}")
                    failures += 1
    print(f"{failures} wrong")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
