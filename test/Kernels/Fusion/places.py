# RUN: %python %s
# UNSUPPORTED: sanitizers
"""Fusions with what goes by an element's place, rotations of 16 and codes that are rounded by a
seed, in either order, on the model of a GPU with all its checks. Their bytes are the CPU's."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "f16": np.float16}
# Extents, those that show at run time marked, elements, and ways of the tensor that are quantized:
# rows (r) and columns (c), rotated before (R, C), with a seed (+), by the tensor's amax or one that
# is given (*). What has no kernel is marked (!).
CASES = [
    ((64, 128), "bf16", "R+"), ((48, 80), "f32", "R+"), ((33, 48), "f16", "R"),
    ((300, 16), "bf16", "R+"), (("?37", 64), "bf16", "R+"), ((3, 5, 32), "bf16", "R+"),
    ((32,), "f32", "R+"),
    ((64, 128), "bf16", "C+"), ((48, 80), "f32", "C+"), ((32, 33), "f16", "C"),
    ((16, 300), "bf16", "C+"), ((64, "?37"), "bf16", "C+"), ((3, 32, 7), "bf16", "C+"),
    ((2, 48, 130), "bf16", "C+"), ((1040, 264), "bf16", "C+"),
    ((64, 128), "bf16", "r+"), ((35, 34), "f32", "r+"), (("?9", 36), "bf16", "r+"),
    ((2, 3, 40), "f16", "r+"), ((64, 128), "bf16", "c+"), ((34, 50), "f32", "c+"),
    ((64, 128), "bf16", "r+ C+"), ((80, 48), "bf16", "r+ C"), ((96, 64), "f32", "R+ C+"),
    ((64, 128), "bf16", "r+*"), ((48, 80), "f32", "R+*"), ((64, 128), "bf16", "C+*"),
    ((48, 40), "f16", "C*"), ((2, 48, 130), "bf16", "C+*"), ((64, "?37"), "f32", "C+*"),
    ((128, 64), "bf16", "R+* C+*"),
    ((16, 2, 2, 32), "bf16", "R+!"), (("?32", 32), "bf16", "C+!"),
]
random = np.random.default_rng(1)
folder = Path(tempfile.mkdtemp())


def get_extent(extent):
    """A number as it is, or as a pair of a type's and a tensor's."""
    return ("?", int(extent[1:])) if isinstance(extent, str) else (extent, extent)


def make_way(name, extents, element, way):
    """The text of one cast of %x, [..., rows, columns], and its results with their types."""
    shape, source, body = list(extents), "%x", ""

    def get_type(of):
        return "tensor<" + "x".join(str(extent) for extent in shape) + f"x{of}>"

    columns = way[0] in "cC"
    if columns:
        before = get_type(element)
        order = list(range(len(shape)))
        order[-2:] = order[:-3:-1]
        shape[-2:] = shape[:-3:-1]
        sizes = "".join(
            f"  %{name}n{i} = arith.constant {order[i]} : index\n"
            f"  %{name}s{i} = tensor.dim %x, %{name}n{i} : {before}\n"
            for i, extent in enumerate(shape) if extent == "?")
        dynamic = ", ".join(f"%{name}s{i}" for i, extent in enumerate(shape) if extent == "?")
        body += (f"{sizes}  %{name}e = tensor.empty({dynamic}) : {get_type(element)}\n"
                 f"  %{name}t = linalg.transpose ins(%x : {before}) "
                 f"outs(%{name}e : {get_type(element)}) permutation = {order}\n")
        source = f"%{name}t"
    tensor = get_type(element)
    if way[0] in "RC":
        body += f"  %{name}r = fp8.hadamard {source} signs = 55272 : {tensor}\n"
        source = f"%{name}r"
    block = [1] * (len(shape) - 1) + [16]
    scaled = ("!fp8.scaled<" + get_type("f4E2M1FN")[7:-1] +
              f", block = {block}, scale = f8E4M3FN, tensor_scale = f32>")
    codes = get_type("f4E2M1FN")
    shape[-1] = "?" if shape[-1] == "?" else -(-shape[-1] // 16)
    amaxes, factors = get_type("f32"), get_type("f8E4M3FN")
    one, whole = "tensor<" + "1x" * len(shape) + "f32>", "[" + ", ".join("*" * len(shape)) + "]"
    seed = " seed(%seed : tensor<4xi32>)" if "+" in way else ""
    amax = "%all" if "*" in way else f"%{name}w"
    body += f"""  %{name}a = fp8.amax {source} block = {block} : {tensor}
  %{name}w = fp8.amax %{name}a block = {whole} : {amaxes}
  %{name}c, %{name}i, %{name}o = fp8.compute_scale %{name}a tensor_amax({amax} : {one})
      format = f4E2M1FN scale_type = f8E4M3FN : {amaxes}
  %{name}q = fp8.quantize {source} scale(%{name}c, %{name}i : {amaxes}, {factors})
      tensor_scale_inv(%{name}o : {one}) {seed} : {tensor} -> {scaled}
  %{name}d:3 = fp8.disassemble %{name}q : {scaled}
"""
    return body, [(f"%{name}d#0", codes), (f"%{name}d#1", factors)]


def make_program(extents, element, ways):
    x = "tensor<" + "x".join(str(extent) for extent in extents) + f"x{element}>"
    body, results = "", []
    for i, way in enumerate(ways.split()):
        text, more = make_way("v" + str(i), extents, element, way)
        body, results = body + text, results + more
    names = [f"{type} {{fp8.name = \"r{i}\"}}" for i, (_, type) in enumerate(results)]
    values, types = (", ".join(part) for part in zip(*results))
    return (f"func.func @f(%x: {x} {{fp8.name = \"x\"}},\n"
            "             %seed: tensor<4xi32> {fp8.name = \"seed\"},\n"
            f"             %all: tensor<{'1x' * len(extents)}f32> {{fp8.name = \"all\"}})\n"
            f"    -> ({', '.join(names)}) {{\n{body}  return {values} : {types}\n}}\n",
            len(results))


for chip, arch in (("sm_90a", "90"), ("sm_100a", "100")):
    environment = {**os.environ, "FP8_EMULATOR_ARCH": arch, "FP8_EMULATOR_CHECK": "all"}
    for extents, element, ways in CASES:
        types, shape = zip(*map(get_extent, extents))
        x = random.standard_normal(shape) * np.exp2(random.integers(-6, 6, (*shape[:-1], 1)))
        x.flat[::97] = 0
        if "*" in ways:
            x.flat[5::53], x.flat[7::61], x.flat[9::67] = np.nan, np.inf, -np.inf
        program, count = make_program(types, element, ways)
        (folder / "f.mlir").write_text(program)
        tensors.save(folder / "inputs", {
            "x": x.astype(DTYPES[element]), "all": np.full((1,) * len(shape), 37.0, np.float32),
            "seed": random.integers(-2**31, 2**31, 4).astype(np.int32)})
        done = subprocess.run(
            ["fp8-run", folder / "f.mlir", f"--target={chip}", "--device=emulator",
             "--compare=cpu", f"--inputs={folder}/inputs"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        lines = [line for line in done.stdout.splitlines() if "largest difference" in line]
        case = f"{chip}, {' x '.join(map(str, extents))} of {element}, {ways}"
        if done.returncode or len(lines) != count or not all(" 0 of " in line for line in lines):
            sys.exit(f"{case}: expected the CPU's bytes, but got\n{program}\n{done.stdout}")
        if ("no kernel" in done.stdout) != ("!" in ways):
            sys.exit(f"{case}: expected {'no' if '!' in ways else 'a'} kernel, but got\n"
                     f"{done.stdout}")
