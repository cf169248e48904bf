# RUN: %python %s
# UNSUPPORTED: sanitizers
"""Fusions that write and read a factor of 8 bits for each element, in either order, on the model of
a GPU with all its checks: their bytes are the CPU's."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

DTYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
          "f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "f4E2M1FN": ml_dtypes.float4_e2m1fn}
# The extents, of vectors of 8, 4, 2 and 1 elements, and codes and factors.
CASES = [((64, 128), "f8E4M3FN", "f8E8M0FNU"), ((5, 12), "f8E5M2", "f8E8M0FNU"),
         ((34,), "f8E4M3FN", "f8E8M0FNU"), ((3, 7), "f8E4M3FN", "f8E8M0FNU"),
         ((32, 64), "f4E2M1FN", "f8E4M3FN"), ((6, 18), "f4E2M1FN", "f8E4M3FN")]
random = np.random.default_rng(1)
folder = Path(tempfile.mkdtemp())


def make_program(shape, code, factor):
    """A function that takes numbers apart, and one that reads what it gives."""
    extents = "x".join(map(str, shape))
    x, amax, inverse, codes = (f"tensor<{extents}x{t}>" for t in ("bf16", "f32", factor, code))
    one = f"tensor<{'1x' * len(shape)}f32>"
    ones, rank = ", ".join("1" * len(shape)), len(shape)
    has_whole = code == "f4E2M1FN"
    q = (f"!fp8.scaled<{extents}x{code}, block = [{ones}], scale = {factor}"
         f"{', tensor_scale = f32' if has_whole else ''}>")
    whole = f" tensor_amax(%all : {one})" if has_whole else ""
    body = f"""
  %all = fp8.amax %x block = [{', '.join('*' * rank)}] : {x}
  %a = fp8.amax %x block = [{ones}] : {x}
  %s, %i{', %t' if has_whole else ''} = fp8.compute_scale %a{whole} format = {code}
      scale_type = {factor} : {amax}
  %q = fp8.quantize %x scale(%s, %i : {amax}, {inverse})
      {f'tensor_scale_inv(%t : {one})' if has_whole else ''} : {x} -> {q}
  %c:{2 + has_whole} = fp8.disassemble %q : {q}
  %v = fp8.dequantize %q : {q} -> {x}
"""
    results = [("%c#0", codes), ("%c#1", inverse), ("%v", x)]
    if rank == 2:
        turned = "x".join(map(str, shape[::-1]))
        t = q.replace(extents, turned)
        body += (f"  %turned = fp8.transpose %q permutation = [1, 0] : {q}\n"
                 f"  %d:{2 + has_whole} = fp8.disassemble %turned : {t}\n")
        results.append(("%d#1", f"tensor<{turned}x{factor}>"))
    # Another function, so that the factors are read from memory.
    parts = f"{codes}, {inverse}{f', {one}' if has_whole else ''}"
    back = f"""
func.func @read(%c: {codes} {{fp8.name = "c"}}, %i: {inverse} {{fp8.name = "i"}}
    {f', %t: {one} {{fp8.name = "t"}}' if has_whole else ''}) -> {x} {{
  %q = fp8.assemble %c, %i{', %t' if has_whole else ''} : {parts} -> {q}
  %v = fp8.dequantize %q : {q} -> {x}
  return %v : {x}
}}
"""
    values, types = (", ".join(part) for part in zip(*results))
    return (f"func.func @write(%x: {x} {{fp8.name = \"x\"}}) -> ({types}) {{{body}"
            f"  return {values} : {types}\n}}\n{back}", len(results))


def check(chip, entry, results):
    environment = {**os.environ, "FP8_EMULATOR_ARCH": chip[3:-1], "FP8_EMULATOR_CHECK": "all"}
    done = subprocess.run(
        ["fp8-run", folder / "f.mlir", f"--target={chip}", "--device=emulator", "--compare=cpu",
         f"--entry={entry}", f"--inputs={folder}/{entry}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if "largest difference" in line]
    is_same = len(lines) == results and all(" 0 of " in line for line in lines)
    if done.returncode or not is_same or "no kernel" in done.stdout:
        sys.exit(f"{chip}, {entry}: expected the CPU's bytes, but got\n{done.stdout}\n"
                 f"{(folder / 'f.mlir').read_text()}")


for shape, code, factor in CASES:
    text, results = make_program(shape, code, factor)
    (folder / "f.mlir").write_text(text)
    x = random.standard_normal(shape) * np.exp2(random.integers(-20, 20, shape))
    tensors.save(folder / "write", {"x": x.astype(ml_dtypes.bfloat16)})
    numbers = np.exp2(random.integers(-6, 6, shape))
    parts = {"c": random.standard_normal(shape).astype(DTYPES[code]),
             "i": numbers.astype(DTYPES[factor])}
    if code == "f4E2M1FN":
        parts["t"] = np.full([1] * len(shape), 3, np.float32)
    tensors.save(folder / "read", parts)
    for chip in ("sm_90a", "sm_100a"):
        check(chip, "write", results)
        check(chip, "read", 1)
