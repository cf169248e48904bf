# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Gated pairs of MXFP8 and NVFP4 on sm_100a, two products in a tile with factors of their own, beside a CPU that adds up
as the tensor core does, bit by bit: the config that is selected on some shapes, with tails, and every width of a tile."""

import os
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

BF16 = ml_dtypes.bfloat16
SHAPES = [(130, 104, 256), (200, 328, 384), (129, 1000, 128)]
WIDTHS = (256, 224, 192, 160, 128, 96, 64, 32)


def make_program(m, n, k):
    """y = (round(x w^T) + bias) * (x v^T), m x n, of K k."""
    y, x, w = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{k}xbf16>", f"tensor<{n}x{k}xbf16>"

    def get_product(result, name, weight):
        return f"""  %{result} = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] {{fp8.name = "{name}"}}
      ins(%x, %{weight} : {x}, {w}) outs(%zero : {y}) -> {y}
"""

    return f"""
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: {x} {{fp8.name = "x"}}, %w: {w} {{fp8.name = "w", fp8.weight}},
                %v: {w} {{fp8.name = "v", fp8.weight}}, %bias: tensor<{n}xbf16> {{fp8.name = "bias"}})
    -> (tensor<{m}x{n}xbf16> {{fp8.name = "y"}}) {{
  %zero = arith.constant dense<0.0> : {y}
  %empty = tensor.empty() : tensor<{m}x{n}xbf16>
{get_product("gate", "gate", "w")}{get_product("up", "up", "v")}  %y = linalg.generic {{
      indexing_maps = [#id, #id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%gate, %up, %bias : {y}, {y}, tensor<{n}xbf16>) outs(%empty : tensor<{m}x{n}xbf16>) {{
  ^bb0(%g: f32, %u: f32, %b: bf16, %o: bf16):
    %rounded = arith.truncf %g : f32 to bf16
    %wide = arith.extf %rounded : bf16 to f32
    %added = arith.extf %b : bf16 to f32
    %sum = arith.addf %wide, %added : f32
    %product = arith.mulf %sum, %u : f32
    %r = arith.truncf %product : f32 to bf16
    linalg.yield %r : bf16
  }} -> tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""


class Checker:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.inputs = self.get_path("in")

    def get_path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.get_path(name), "w") as file:
            file.write(text)
        return self.get_path(name)

    def call(self, tool, *arguments):
        done = subprocess.run([os.path.join(self.tools, tool), *arguments], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{tool} {' '.join(arguments)}: {done.stdout}{done.stderr[-3000:]}")
        return done.stdout

    def run(self, source, recipe, target, *options):
        outputs = self.get_path("out")
        self.call("fp8-run", source, f"--recipe={recipe}", f"--target={target}", f"--inputs={self.inputs}",
                  f"--outputs={outputs}", *options)
        return tensors.load(outputs)["y"].tobytes()

    def check(self, recipe, shape, widths):
        m, n, k = shape
        random = np.random.default_rng(m)
        tensors.save(self.inputs, {name: random.standard_normal(extents).astype(BF16) for name, extents in
                                   (("x", (m, k)), ("w", (n, k)), ("v", (n, k)), ("bias", (n,)))})
        source = self.write("f.mlir", make_program(m, n, k))
        expected = self.run(source, recipe, "cpu", "--accumulate=tensor-core", "--accumulation-of=sm_100a")
        formed = self.write("formed.mlir", self.call(
            "fp8-opt", source, f"--fp8-pipeline=recipe={recipe} target=sm_100a to=fusion"))
        paired = self.call("fp8-opt", formed, "--fp8-set-target=chip=sm_100a", "--fp8-select-kernels",
                           "--fp8-group-matmuls")
        if "fp8.sibling_matmuls" not in paired:
            raise SystemExit(f"{recipe}, {shape}: expected a pair, but got\n{paired}")
        config = re.search(r"#fp8_sm100.gemm<[^>]*>", paired[paired.index("fp8.sibling_matmuls"):])[0]
        for width in widths:
            text = config
            if width:
                text = re.sub("tile_n = [0-9]+", f"tile_n = {width}", re.sub("stages = [0-9]+", "stages = 3", config))
            source = self.write("paired.mlir", paired.replace(config, text))
            if self.run(source, "none", "sm_100a") != expected:
                raise SystemExit(f"{recipe}, {shape}, {text}: expected the CPU's bytes, but got others")


def main():
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(sys.argv[1], folder)
        for recipe in ("mxfp8", "nvfp4"):
            for shape in SHAPES:
                checker.check(recipe, shape, [None])
            # Halves that begin within the 32 rows of factors that lanes copy together.
            checker.check(recipe, (144, 360, 640), WIDTHS)


if __name__ == "__main__":
    main()
