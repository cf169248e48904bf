# RUN: %python %s
# UNSUPPORTED: sanitizers
"""Blocks of rows end with their batch, also where nothing but numbers leaves the fusion that they
are measured in: on the model of a GPU the bytes are the CPU's."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from fp8 import tensors

CASES = [((3, 1, 3), "1, 128, 1"), ((3, 5, 16), "1, 128, 128"), ((2, 20, 32), "1, 16, 16"),
         ((4, 1, 16), "1, *, 1"), ((3, 7, 64), "1, 1, 32")]
random = np.random.default_rng(1)
folder = Path(tempfile.mkdtemp())

for shape, block in CASES:
    extents = "x".join(map(str, shape))
    grid = "x".join(str(1 if b == "*" else -(-extent // int(b)))
                    for extent, b in zip(shape, block.split(", ")))
    x, amax = f"tensor<{extents}xf32>", f"tensor<{grid}xf32>"
    q = f"!fp8.scaled<{extents}xf8E4M3FN, block = [{block}], scale = f32>"
    (folder / "f.mlir").write_text(f"""
func.func @f(%x: {x} {{fp8.name = "x"}}) -> {x} {{
  %a = fp8.amax %x block = [{block}] : {x}
  %s, %i = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : {amax}
  %q = fp8.quantize %x scale(%s, %i : {amax}, {amax}) : {x} -> {q}
  %v = fp8.dequantize %q : {q} -> {x}
  return %v : {x}
}}
""")
    numbers = random.standard_normal(shape) * np.exp2(2 * np.arange(shape[0])).reshape(-1, 1, 1)
    tensors.save(folder / "inputs", {"x": numbers.astype(np.float32)})
    done = subprocess.run(
        ["fp8-run", folder / "f.mlir", "--target=sm_90a", "--device=emulator", "--compare=cpu",
         f"--inputs={folder}/inputs"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "FP8_EMULATOR_CHECK": "all"})
    if done.returncode or " 0 of " not in done.stdout:
        sys.exit(f"{shape} by [{block}]: expected the CPU's bytes, but got\n{done.stdout}")
