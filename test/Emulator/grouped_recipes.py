# RUN: env FP8_CUDA_DRIVER=%emulator_library %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Forward and both gradients of a mixture of experts under some recipes, from bf16 to the results, beside the CPU's:
what has a kernel, and what is a loop over groups."""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

GROUPS, T, N, K = 3, 256, 128, 384
OFFSETS = [0, 70, 70, 230]
COUNTS = [70, 0, 96]
PROGRAM = f"""
func.func @main(%x: tensor<{T}x{K}xbf16> {{fp8.name = "x"}},
                %w: tensor<{GROUPS}x{N}x{K}xbf16> {{fp8.name = "w", fp8.weight}},
                %dy: tensor<{T}x{N}xbf16> {{fp8.name = "dy", fp8.grad}},
                %offsets: tensor<{GROUPS + 1}xi32> {{fp8.name = "offsets"}})
    -> (tensor<{T}x{N}xbf16>, tensor<{T}x{K}xbf16>, tensor<{GROUPS}x{N}x{K}xf32>) {{
  %y = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<{GROUPS + 1}xi32>) accumulate = fast
      : tensor<{T}x{K}xbf16>, tensor<{GROUPS}x{N}x{K}xbf16> -> tensor<{T}x{N}xbf16>
  %dx = fp8.grouped_matmul %dy, %w offsets(%offsets : tensor<{GROUPS + 1}xi32>) transpose_b accumulate = fast
      : tensor<{T}x{N}xbf16>, tensor<{GROUPS}x{N}x{K}xbf16> -> tensor<{T}x{K}xbf16>
  %dw = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<{GROUPS + 1}xi32>) transpose_a transpose_b
      accumulate = fast : tensor<{T}x{N}xbf16>, tensor<{T}x{K}xbf16> -> tensor<{GROUPS}x{N}x{K}xf32>
  return %y, %dx, %dw : tensor<{T}x{N}xbf16>, tensor<{T}x{K}xbf16>, tensor<{GROUPS}x{N}x{K}xf32>
}}
"""
# Each group with room for as many tokens as all of them have.
COUNTED = (PROGRAM.replace("offsets(", "counts(").replace("%offsets", "%counts").replace('"offsets"', '"counts"')
           .replace(f"tensor<{GROUPS + 1}xi32>", f"tensor<{GROUPS}xi32>").replace(f"tensor<{T}x", f"tensor<{GROUPS}x{T}x")
           .replace("%dy, %x counts(", "%dy, %x counts_k("))
# Products without a kernel.
WITHOUT = {"sm_89": {"none": 0, "current": 0, "rowwise": 0, "block": 0, "mxfp8": 0},
           "sm_90a": {"none": 0, "current": 0, "rowwise": 0, "block": 0, "mxfp8": 0},
           # Groups of K are loops there.
           "sm_100a": {"none": 1, "current": 1, "rowwise": 1, "block": 1, "mxfp8": 1, "nvfp4": 1}}


def main():
    tool = os.path.join(sys.argv[1], "fp8-run")
    rng = np.random.default_rng(0)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, inputs = os.path.join(folder, "experts.mlir"), os.path.join(folder, "inputs.safetensors")
        for form, target, recipe in ((form, target, recipe) for form in (PROGRAM, COUNTED) for target, recipes in
                                     WITHOUT.items() for recipe in recipes):
            without = WITHOUT[target][recipe]
            tokens = (T,) if form is PROGRAM else (GROUPS, T)
            with open(source, "w") as file:
                file.write(form)
            values = {name: rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
                      for name, shape in (("x", (*tokens, K)), ("w", (GROUPS, N, K)), ("dy", (*tokens, N)))}
            if form is PROGRAM:
                values["offsets"] = np.array(OFFSETS, np.int32)
            else:
                values["counts"] = np.array(COUNTS, np.int32)
            tensors.save(inputs, values)
            environment = {**os.environ, "FP8_EMULATOR_ARCH": target[3:].rstrip("a")}
            done = subprocess.run([tool, source, f"--recipe={recipe}", f"--target={target}", f"--inputs={inputs}",
                                   "--compare=cpu", "--tolerance=0.01"], env=environment, capture_output=True,
                                  text=True)
            found = done.stderr.count("remark: no kernel:")
            if done.returncode or found != without:
                print(done.stdout, done.stderr[-3000:], f"{target} {recipe}: status {done.returncode}, {found} "
                      f"products without a kernel, but expected {without}")
                failures += 1
            else:
                print(f"{target} {recipe} {'offsets' if form is PROGRAM else 'counts'}: right", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
