# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled fp8.matmul of operands in high precision, in every layout, with
numpy, exactly.

The values are small integers and halves of them, whose f32 sums are exact in any
order; only the rounding to the result's type is not, and is done once.
"""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402

PASSES = ["--fp8-pipeline=recipe=none target=cpu to=host"]
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
SIZES = {"b": 3, "m": 5, "n": 6, "k": 40}

# Each layout of each type, with results and epilogues in turn.
CASES = [
    (element, list(DTYPES)[i // 2 % 3], *flags, i % 2 == 1)
    for i, (element, *flags) in enumerate(
        itertools.product(DTYPES, (False, True), (False, True), (False, True), (False, True)))
]


def function(element, result, transpose_a, transpose_b, batched, dynamic, epilogue):
    batch = "b" if batched else ""
    a = batch + ("km" if transpose_a else "mk")
    b = batch + ("kn" if transpose_b else "nk")

    def tensor(dims, dtype):
        sizes = ["?" if dynamic else str(SIZES[dim]) for dim in dims]
        return f"tensor<{'x'.join([*sizes, dtype])}>"

    flags = [f"transpose_{x}" for x, given in (("a", transpose_a), ("b", transpose_b)) if given]
    name = "_".join(["matmul", element, result, *flags, *(["batch"] if batched else []),
                     *(["dynamic"] if dynamic else []), *(["bias"] if epilogue else [])])
    region = f"""epilogue(%bias : tensor<{SIZES['n']}xf32>) {{
    ^bb0(%acc: f32, %x: f32):
      %sum = arith.addf %acc, %x : f32
      {"%y = arith.truncf %sum : f32 to " + result if result != "f32" else ""}
      fp8.yield {"%y" if result != "f32" else "%sum"} : {result}
    }}""" if epilogue else ""
    types = [tensor(a, element), tensor(b, element), tensor(batch + "mn", result)]
    return name, (a, b, batch + "mn"), f"""
func.func @{name}(%a: {types[0]}, %b: {types[1]}, %bias: tensor<{SIZES['n']}xf32>) -> {types[2]}
    attributes {{llvm.emit_c_interface}} {{
  %0 = fp8.matmul %a, %b {' '.join(flags)} accumulate = fast {region}
    : {types[0]}, {types[1]} -> {types[2]}
  return %0 : {types[2]}
}}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()

    functions = [(case, *function(*case)) for case in CASES]
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build("".join(text for *_, text in functions), PASSES, args,
                                 directory, [args.runtime], "-O1")
    random = np.random.default_rng(1)
    failures = 0
    for (element, result, *_, epilogue), name, (a_dims, b_dims, d_dims), _ in functions:
        a, b = (
            (random.integers(-15, 16, [SIZES[dim] for dim in dims]) / 2).astype(DTYPES[element])
            for dims in (a_dims, b_dims))
        bias = random.integers(-15, 16, SIZES["n"]).astype(np.float32)
        expected = np.einsum(f"{a_dims},{b_dims}->{d_dims}",
                             a.astype(np.float32), b.astype(np.float32))
        if epilogue:
            expected = expected + bias
        expected = expected.astype(DTYPES[result])
        actual, = compiled.call(library, name, [a, b, bias], [(DTYPES[result], expected.ndim)])
        if not np.array_equal(actual, expected):
            print(f"{name}: wrong")
            failures += 1
    print(f"{len(functions) - failures} of {len(functions)} exact")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
