# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Casts that were moved through data movement give the bits that they give where they
stood: fp8-simplify-casts before scales are inferred, against scales that are inferred
first, which keeps every quantize in its place. Inputs are random, and extreme: of many
magnitudes, with infinities, NaN, zeros, subnormal numbers."""

import argparse
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402

STAND = ["--fp8-infer-scales", "--cse"]
MOVE = ["--fp8-simplify-casts", "--cse", *STAND]
REST = "--fp8-pipeline=target=cpu recipe=none from=fusion to=host"
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i32": np.int32,
          "f8E4M3FN": np.uint8, "f8E8M0FNU": np.uint8}


class Program:
    def __init__(self, name, arguments, body, results):
        """`arguments` as (name, shape, element), `results` as (value, type)."""
        self.name, self.arguments, self.body, self.results = name, arguments, body, results

    @property
    def text(self):
        arguments = ", ".join(f"%{name}: {tensor(shape, element)}"
                              for name, shape, element in self.arguments)
        values = ", ".join(value for value, _, _ in self.results)
        types = ", ".join(tensor(shape, element) for _, shape, element in self.results)
        return (f"func.func @{self.name}({arguments}) -> ({types}) "
                f"attributes {{llvm.emit_c_interface}} {{\n{self.body}"
                f"  return {values} : {types}\n}}\n")

    def call(self, library, inputs):
        results = [(DTYPES[element], len(shape)) for _, shape, element in self.results]
        return compiled.call(library, self.name, [x.copy() for x in inputs], results)


def tensor(shape, element):
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def scaled(shape, block, factor):
    blocks = ", ".join("*" if extent == 0 else str(extent) for extent in block)
    return (f"!fp8.scaled<{'x'.join(map(str, shape))}xf8E4M3FN, block = [{blocks}], "
            f"scale = {factor}>")


def grid(shape, block):
    return [1 if e == 0 else -(-n // e) for n, e in zip(shape, block)]


KINDS = {"current": ("f32", "#fp8.current"), "rowwise": ("f32", "#fp8.rowwise"),
         "mxfp8": ("f8E8M0FNU", "#fp8.mxfp8"), "block": ("f32", "#fp8.block")}


def quantized(name, arguments, moves, shape, element, block, kind):
    """A program that quantizes %m, which `moves` makes."""
    factor, recipe = KINDS[kind]
    source = tensor(shape, element)
    body = moves + (
        f"  %q = fp8.quantize %m recipe({recipe}) : {source} -> {scaled(shape, block, factor)}\n"
        f"  %p, %s = fp8.disassemble %q : {scaled(shape, block, factor)}\n")
    return Program(name, arguments, body,
                   [("%p", shape, "f8E4M3FN"), ("%s", grid(shape, block), factor)])


def dequantized(name, count, shape, block, kind, moves, arguments, result):
    """A program that moves what is dequantized from `count` arguments: %d0, ..."""
    factor, _ = KINDS[kind]
    all_arguments, body = [], ""
    for i in range(count):
        all_arguments += [(f"p{i}", shape, "f8E4M3FN"), (f"s{i}", grid(shape, block), factor)]
        body += (
            f"  %q{i} = fp8.assemble %p{i}, %s{i} : {tensor(shape, 'f8E4M3FN')}, "
            f"{tensor(grid(shape, block), factor)} -> {scaled(shape, block, factor)}\n"
            f"  %d{i} = fp8.dequantize %q{i} : {scaled(shape, block, factor)} -> "
            f"{tensor(shape, 'bf16')}\n")
    return Program(name, all_arguments + arguments, body + moves, [result])


def pad(source, target, element):
    high = ", ".join(str(b - a) for a, b in zip(source, target))
    low = ", ".join("0" for _ in source)
    places = ", ".join(f"%i{d}: index" for d in range(len(source)))
    return (f"  %zero = arith.constant 0.0 : {element}\n"
            f"  %m = tensor.pad %x low[{low}] high[{high}] {{\n  ^bb0({places}):\n"
            f"    tensor.yield %zero : {element}\n"
            f"  }} : {tensor(source, element)} to {tensor(target, element)}\n")


def insert(values, shape, target, dim, element):
    lines = f"  %c0 = tensor.empty() : {tensor(target, element)}\n"
    for i, value in enumerate(values):
        offsets = [i * shape[dim] if d == dim else 0 for d in range(len(shape))]
        name = "%m" if i == len(values) - 1 else f"%c{i + 1}"
        lines += (f"  {name} = tensor.insert_slice {value} into %c{i}{offsets} {list(shape)} "
                  f"{[1] * len(shape)} : {tensor(shape, element)} into {tensor(target, element)}\n")
    return lines


def heads(element):
    return (f"  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [6, 4, 64] : "
            f"{tensor([6, 256], element)} into {tensor([6, 4, 64], element)}\n"
            f"  %e = tensor.empty() : {tensor([4, 6, 64], element)}\n"
            f"  %m = linalg.transpose ins(%h : {tensor([6, 4, 64], element)}) "
            f"outs(%e : {tensor([4, 6, 64], element)}) permutation = [1, 0, 2]\n")


def broadcast(value, source, target, dim, element):
    return (f"  %e = tensor.empty() : {tensor(target, element)}\n"
            f"  %m = linalg.broadcast ins({value} : {tensor(source, element)}) "
            f"outs(%e : {tensor(target, element)}) dimensions = [{dim}]\n")


GATHER = """  %e = tensor.empty() : tensor<9x64xbf16>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<9xi32>) outs(%e : tensor<9x64xbf16>) {
  ^bb0(%id: i32, %out: bf16):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %d0[%row, %column] : tensor<33x64xbf16>
    linalg.yield %v : bf16
  } -> tensor<9x64xbf16>
"""
PRODUCT = """  %f = tensor.empty() : tensor<8x2x64xf32>
  %z = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%z : f32) outs(%f : tensor<8x2x64xf32>) -> tensor<8x2x64xf32>
  %y = linalg.batch_matmul ins(%a, %m : tensor<8x2x5xbf16>, tensor<8x5x64xbf16>) outs(%zeros : tensor<8x2x64xf32>) -> tensor<8x2x64xf32>
"""


def make_programs():
    programs = []
    for element in ("f32", "bf16"):
        wide = [("x", [6, 256], element)]
        programs += [
            quantized(f"heads_{kind}_{element}", wide, heads(element), [4, 6, 64], element, block,
                      kind)
            for kind, block in (("current", [0, 0, 0]), ("mxfp8", [1, 1, 32]))]
        programs += [
            quantized(f"pad_{kind}_{element}", [("x", [5, 60], element)],
                      pad([5, 60], [5, 64], element), [5, 64], element, block, kind)
            for kind, block in (("current", [0, 0]), ("rowwise", [1, 0]), ("mxfp8", [1, 32]),
                                ("block", [1, 128]))]
        programs += [
            quantized(f"broadcast_{kind}_{element}", [("x", [5, 64], element)],
                      broadcast("%x", [5, 64], [5, 3, 64], 1, element), [5, 3, 64], element, block,
                      kind)
            for kind, block in (("current", [0, 0, 0]), ("mxfp8", [1, 1, 32]))]
        parts = [("x", [5, 128], element), ("y", [5, 128], element)]
        programs += [
            quantized(f"concat_{kind}_{element}", parts,
                      insert(["%x", "%y"], [5, 128], [5, 256], 1, element), [5, 256], element,
                      block, kind)
            for kind, block in (("current", [0, 0]), ("mxfp8", [1, 32]), ("block", [1, 128]))]
        programs.append(quantized(
            f"rows_{element}", parts, insert(["%x", "%y"], [5, 128], [10, 128], 0, element),
            [10, 128], element, [1, 0], "rowwise"))
    ids = [("ids", [9], "i32")]
    for kind, block in (("current", [0, 0]), ("rowwise", [1, 0]), ("mxfp8", [1, 32])):
        programs.append(dequantized(f"gather_{kind}", 1, [33, 64], block, kind, GATHER, ids,
                                    ("%m", [9, 64], "bf16")))
    programs.append(dequantized(
        "deconcat", 2, [5, 64], [1, 32], "mxfp8",
        insert(["%d0", "%d1"], [5, 64], [10, 64], 0, "bf16"), [], ("%m", [10, 64], "bf16")))
    programs.append(dequantized(
        "product", 1, [5, 64], [0, 0], "current",
        broadcast("%d0", [5, 64], [8, 5, 64], 0, "bf16") + PRODUCT, [("a", [8, 2, 5], "bf16")],
        ("%y", [8, 2, 64], "f32")))
    return programs


def make_inputs(program, random, kind):
    arrays = []
    for name, shape, element in program.arguments:
        x = random.normal(size=shape)
        if kind == "wide":
            x = x * np.exp2(random.integers(-140, 120, size=shape))
        elif kind == "special":
            x = np.where(random.random(shape) < 0.1, random.choice([np.nan, np.inf, -np.inf, -0.0]), x)
        elif kind == "zero":
            x = np.zeros(shape)
        elif kind == "huge":
            x = x * 3e38
        if element == "i32":
            arrays.append(random.integers(0, 33, size=shape).astype(np.int32))
        elif DTYPES[element] is np.uint8:
            arrays.append(random.integers(0, 256, size=shape).astype(np.uint8))
        else:
            if name.startswith("s"):
                x = np.abs(x)
            arrays.append(x.astype(np.float32).astype(DTYPES[element]))
    return arrays


def same(a, b):
    """The same bits, or both NaN."""
    if a.shape != b.shape or a.dtype == np.uint8:
        return np.array_equal(a, b)
    bits = f"u{a.itemsize}"
    equal = a.view(bits) == b.view(bits)
    return bool((equal | (np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32)))).all())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=8)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")
    programs = make_programs()
    text = "".join(program.text for program in programs)
    with tempfile.TemporaryDirectory() as directory:
        libraries = []
        for passes in (STAND, MOVE):
            folder = Path(directory, str(len(passes)))
            folder.mkdir()
            libraries.append(compiled.build(text, [*passes, REST], args, folder, [args.runtime],
                                            "-O1"))
    failures = 0
    random = np.random.default_rng(0)
    for program in programs:
        for i in range(args.rounds):
            kind = ["normal", "wide", "special", "zero", "huge"][i % 5]
            inputs = make_inputs(program, random, kind)
            stood, went = (program.call(library, inputs) for library in libraries)
            for (value, _, _), a, b in zip(program.results, stood, went):
                if not same(a, b):
                    print(f"{program.name}: {value} differs, inputs {kind}", flush=True)
                    failures += 1
    print(f"{len(programs)} programs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
