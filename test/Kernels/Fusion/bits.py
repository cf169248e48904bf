# RUN: %python %s
# UNSUPPORTED: sanitizers
"""Elementwise bodies may work on the bits of f32 and bf16: on the model of a GPU the bytes are the CPU's."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

SIZES = 40, 264
BODIES = {
    # The nearest bf16, of two the one of larger magnitude.
    ("f32", "f32"): """
    %b = arith.bitcast %v : f32 to i32
    %h = arith.constant 32768 : i32
    %m = arith.constant -65536 : i32
    %s = arith.addi %b, %h : i32
    %a = arith.andi %s, %m : i32
    %r = arith.bitcast %a : i32 to f32""",
    # The lower half of an f32, as a bf16.
    ("f32", "bf16"): """
    %b = arith.bitcast %v : f32 to i32
    %t = arith.trunci %b : i32 to i16
    %r = arith.bitcast %t : i16 to bf16""",
    # A bf16 as the lower half of an f32.
    ("bf16", "f32"): """
    %b = arith.bitcast %v : bf16 to i16
    %w = arith.extui %b : i16 to i32
    %o = arith.constant 1065353216 : i32
    %a = arith.ori %w, %o : i32
    %r = arith.bitcast %a : i32 to f32""",
    ("bf16", "bf16"): """
    %b = arith.bitcast %v : bf16 to i16
    %o = arith.constant 1 : i16
    %a = arith.xori %b, %o : i16
    %r = arith.bitcast %a : i16 to bf16"""}
folder = Path(tempfile.mkdtemp())
generator = np.random.default_rng(1)

for (source, result), body in BODIES.items():
    x, y = (f"tensor<{SIZES[0]}x{SIZES[1]}x{element}>" for element in (source, result))
    (folder / "f.mlir").write_text(f"""
#m = affine_map<(m, n) -> (m, n)>
func.func @f(%x: {x} {{fp8.name = "x"}}) -> {y} {{
  %e = tensor.empty() : {y}
  %y = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}}
      ins(%x : {x}) outs(%e : {y}) {{
  ^bb0(%v: {source}, %old: {result}):{body}
    linalg.yield %r : {result}
  }} -> {y}
  return %y : {y}
}}
""")
    words = generator.integers(0, 1 << 16, SIZES, dtype=np.uint16)
    numbers = words.view(ml_dtypes.bfloat16) if source == "bf16" else generator.integers(
        0, 1 << 32, SIZES, dtype=np.uint32).view(np.float32)
    tensors.save(folder / "inputs", {"x": numbers})
    program = subprocess.run(["fp8-compile", folder / "f.mlir", "--target=sm_90a", "--emit=ptx", "-o", "-"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    if "fp8_fusion_" not in program:
        sys.exit(f"{source} to {result}: expected a streaming kernel, but got\n{program[:300]}")
    done = subprocess.run(
        ["fp8-run", folder / "f.mlir", "--target=sm_90a", "--device=emulator", "--compare=cpu",
         f"--inputs={folder}/inputs"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "FP8_EMULATOR_CHECK": "all"})
    if done.returncode or " 0 of " not in done.stdout:
        sys.exit(f"{source} to {result}: expected the CPU's bytes, but got\n{done.stdout}")
