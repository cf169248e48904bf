# RUN: %python %s
# UNSUPPORTED: sanitizers
"""Fusions that read and write codes of f4E2M1FN, of which two share a byte, in either order, on
the model of a GPU with all its checks: their bytes are the CPU's."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "f16": np.float16}
# Rows, columns, elements, block; and what is kept: codes, codes of the transpose, values. Rows of
# a tile, and vectors of 8, 4 and 2 codes, that end in the tensor or beyond.
CASES = [
    (64, 128, "bf16", (1, 16), "c"), (64, 128, "f32", (1, 16), "cv"),
    (128, 256, "bf16", (16, 16), "ctv"), (40, 96, "bf16", (1, 16), "ctv"),
    (36, 52, "f16", (1, 16), "ctv"), (48, 30, "bf16", (1, 16), "ctv"),
    (34, 50, "bf16", (16, 16), "ctv"), (34, 50, "f32", (16, 1), "ct"),
    (1, 2, "f32", (1, 16), "cv"),
    # Simple kernels take what no fusion does.
    (33, 31, "bf16", (1, 16), "v"), (32, 31, "bf16", (16, 1), "t"),
]
random = np.random.default_rng(1)
folder = Path(tempfile.mkdtemp())


def make_program(m, k, element, block, kept):
    x, one = f"tensor<{m}x{k}x{element}>", "tensor<1x1xf32>"
    gm, gk = -(-m // block[0]), -(-k // block[1])
    tail = "scale = f8E4M3FN, tensor_scale = f32>"
    q = f"<{m}x{k}xf4E2M1FN, block = [{block[0]}, {block[1]}], {tail}"
    t = f"<{k}x{m}xf4E2M1FN, block = [{block[1]}, {block[0]}], {tail}"
    body, results = f"""
  %all = fp8.amax %x block = [*, *] : {x}
  %a = fp8.amax %x block = [{block[0]}, {block[1]}] : {x}
  %s, %i, %one = fp8.compute_scale %a tensor_amax(%all : {one}) format = f4E2M1FN
      scale_type = f8E4M3FN : tensor<{gm}x{gk}xf32>
  %q = fp8.quantize %x scale(%s, %i : tensor<{gm}x{gk}xf32>, tensor<{gm}x{gk}xf8E4M3FN>)
      tensor_scale_inv(%one : {one}) : {x} -> {q}
""", []
    if "c" in kept:
        body += f"  %c:3 = fp8.disassemble %q : {q}\n"
        results.append(("%c#0", f"tensor<{m}x{k}xf4E2M1FN>"))
    if "t" in kept:
        body += (f"  %t = fp8.transpose %q permutation = [1, 0] : {q}\n"
                 f"  %d:3 = fp8.disassemble %t : {t}\n")
        results.append(("%d#0", f"tensor<{k}x{m}xf4E2M1FN>"))
    if "v" in kept:
        body += f"  %v = fp8.dequantize %q : {q} -> {x}\n"
        results.append(("%v", x))
    names = [f"{type} {{fp8.name = \"r{i}\"}}" for i, (_, type) in enumerate(results)]
    values, types = (", ".join(part) for part in zip(*results))
    return (f"func.func @f(%x: {x} {{fp8.name = \"x\"}}) -> ({', '.join(names)}) {{{body}"
            f"  return {values} : {types}\n}}\n")


for chip, arch in (("sm_90a", "90"), ("sm_100a", "100")):
    environment = {**os.environ, "FP8_EMULATOR_ARCH": arch, "FP8_EMULATOR_CHECK": "all"}
    for m, k, element, block, kept in CASES:
        x = random.standard_normal((m, k)) * np.exp2(random.integers(-6, 6, (m, 1)))
        (folder / "f.mlir").write_text(make_program(m, k, element, block, kept))
        tensors.save(folder / "inputs", {"x": x.astype(DTYPES[element])})
        done = subprocess.run(
            ["fp8-run", folder / "f.mlir", f"--target={chip}", "--device=emulator",
             "--compare=cpu", f"--inputs={folder}/inputs"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        lines = [line for line in done.stdout.splitlines() if "largest difference" in line]
        if done.returncode or len(lines) != len(kept) or not all(" 0 of " in x for x in lines):
            sys.exit(f"{chip}, {m} x {k} of {element} by {block}: expected the CPU's bytes, but "
                     f"got\n{done.stdout}")
