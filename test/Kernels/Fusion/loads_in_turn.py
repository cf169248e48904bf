# RUN: %python %s %ptxas
# REQUIRES: ptxas
# UNSUPPORTED: sanitizers
"""A pass that reads more than a thread's registers hold loads its rows in turn: no kernel spills, and on the model of
a GPU the bytes are the CPU's."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

INPUTS = "uvwxy"
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}
random = np.random.default_rng(1)
folder = Path(tempfile.mkdtemp())


def write(rows, columns, element, block):
    """Two results of five inputs, and codes of one of them, both ways."""
    x = f"tensor<{rows}x{columns}x{element}>"
    grid = (1, 1) if block is None else (-(-rows // block), -(-columns // block))
    amax = f"tensor<{grid[0]}x{grid[1]}xf32>"
    size = "[*, *]" if block is None else f"[{block}, {block}]"
    q = f"!fp8.scaled<{rows}x{columns}xf8E4M3FN, block = {size}, scale = f32>"
    turned = f"!fp8.scaled<{columns}x{rows}xf8E4M3FN, block = {size}, scale = f32>"
    lines = [f"  %e0 = tensor.empty() : {x}",
             "  %n:2 = linalg.generic {indexing_maps = [" + ", ".join(["#m"] * 7) + "], iterator_types = "
             f'["parallel", "parallel"]}} ins({", ".join(f"%{i}" for i in INPUTS)} : {", ".join([x] * 5)}) '
             f"outs(%e0, %e0 : {x}, {x}) {{",
             f"  ^bb0({', '.join(f'%v{i}: {element}' for i in INPUTS)}, %o: {element}, %p: {element}):",
             f"    %0 = arith.addf %vu, %vv : {element}", f"    %1 = arith.mulf %0, %vw : {element}",
             f"    %2 = arith.addf %1, %vx : {element}", f"    %3 = arith.mulf %vy, %vu : {element}",
             f"    linalg.yield %2, %3 : {element}, {element}", f"  }} -> ({x}, {x})",
             f"  %m = fp8.amax %n#0 block = {size} : {x}"]
    if block:
        lines.append(f"  %s, %i = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : {amax}")
    else:
        lines += [f"  %s = arith.constant dense<4.0> : {amax}", f"  %i = arith.constant dense<0.25> : {amax}"]
    lines += [f"  %q = fp8.quantize %n#0 scale(%s, %i : {amax}, {amax}) : {x} -> {q[len('!fp8.scaled'):]}",
              f"  %t = fp8.transpose %q permutation = [1, 0] : {q[len('!fp8.scaled'):]}",
              f"  %c, %ci = fp8.disassemble %q : {q}", f"  %d, %di = fp8.disassemble %t : {turned}"]
    codes = f"tensor<{rows}x{columns}xf8E4M3FN>", f"tensor<{columns}x{rows}xf8E4M3FN>"
    arguments = [f'%{i}: {x} {{fp8.name = "{i}"}}' for i in INPUTS]
    return ("#m = affine_map<(m, n) -> (m, n)>\n"
            f"func.func @f({', '.join(arguments)}) -> ({x}, {x}, {amax}, {', '.join(codes)}) {{\n"
            + "\n".join(lines) + f"\n  return %n#0, %n#1, %m, %c, %d : {x}, {x}, {amax}, {', '.join(codes)}\n}}\n")


def check(rows, columns, element, block):
    what = f"{rows}x{columns}x{element} by {block}"
    (folder / "f.mlir").write_text(write(rows, columns, element, block))
    subprocess.run(["fp8-compile", folder / "f.mlir", "--target=sm_90a", "--emit=ptx", "-o", folder / "f.ptx"], check=True,
                   stdout=subprocess.DEVNULL)
    for kernel in re.split(r"\.visible \.entry", (folder / "f.ptx").read_text())[1:]:
        loads, stores = ([m.start() for m in re.finditer(rf"{name}\.global\.(?:nc\.)?v4", kernel)] for name in ("ld", "st"))
        if loads and stores and loads[-1] < stores[0]:
            sys.exit(f"{what}: expected rows to be loaded in turn, but all loads come first")
    done = subprocess.run([sys.argv[1], "-v", "-arch=sm_90a", folder / "f.ptx", "-o", os.devnull], check=True, text=True,
                          stderr=subprocess.PIPE)
    if spilled := [n for n in re.findall(r"(\d+) bytes spill stores", done.stderr) if n != "0"]:
        sys.exit(f"{what}: expected no spills, but got {spilled}")
    values = {i: random.standard_normal((rows, columns)).astype(TYPES[element]) for i in INPUTS}
    tensors.save(folder / "inputs", values)
    done = subprocess.run(
        ["fp8-run", folder / "f.mlir", "--target=sm_90a", "--device=emulator", "--compare=cpu",
         f"--inputs={folder}/inputs"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "FP8_EMULATOR_CHECK": "all"})
    if done.returncode or done.stdout.count(" 0 of ") < 5:
        sys.exit(f"{what}: expected the CPU's bytes, but got\n{done.stdout}")


for element in TYPES:
    for rows, columns, block in ((200, 520, None), (77, 131, None), (256, 256, 128)):
        check(rows, columns, element, block)
