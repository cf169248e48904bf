# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled f32 contractions of every layout with numpy, exactly.

The values are small integers, whose f32 sums are exact in any order.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402

SIZES = {"b": 3, "h": 4, "m": 5, "s": 2, "n": 6, "o": 3, "k": 7, "l": 2}

CASES = [
    "mk,kn->mn",
    "mk,nk->mn",
    "km,nk->nm",
    "km,kn->nm",
    "bmk,bkn->bmn",
    "mbk,nbk->mnb",
    "kbm,bnk->nbm",
    "mk,k->m",
    "k,kn->n",
    "k,k->",
    # Several dimensions of a kind: one in memory, or loops.
    "bsk,nk->bsn",
    "bmk,nk->mbn",
    "bmhk,bhnk->bmhn",
    "mhk,nhk->mn",
    "mkl,nlk->mn",
    "mk,onk->omn",
    "bshmk,bhnok->bshmno",
]


def function(case, dynamic):
    inputs, result = case.split("->")
    a, b = inputs.split(",")
    loops = sorted(set(a + b + result), key=(result + "klh").index)

    def memref(dims):
        sizes = ["?" if dynamic else str(SIZES[dim]) for dim in dims]
        return f"memref<{'x'.join([*sizes, 'f32'])}>"

    def map_of(dims):
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>"

    kinds = ", ".join('"parallel"' if dim in result else '"reduction"' for dim in loops)
    name = case.replace(",", "_").replace("->", "_") + ("_dynamic" if dynamic else "")
    return name, f"""
func.func @{name}(%a: {memref(a)}, %b: {memref(b)}, %c: {memref(result)})
    attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{indexing_maps = [{map_of(a)}, {map_of(b)}, {map_of(result)}],
                  iterator_types = [{kinds}]}}
      ins(%a, %b : {memref(a)}, {memref(b)}) outs(%c : {memref(result)}) {{
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }}
  return
}}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()

    functions = [(case, *function(case, dynamic)) for case in CASES for dynamic in (False, True)]
    # No linalg to loops: what is not a call is an error.
    passes = ["--fp8-convert-gemms-to-runtime", *compiled.LOOPS_TO_LLVM[1:]]
    assert compiled.LOOPS_TO_LLVM[0] == "--convert-linalg-to-loops"
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(
            "".join(text for _, _, text in functions), passes, args, directory, [args.runtime]
        )
    random = np.random.default_rng(1)
    failures = 0
    for case, name, _ in functions:
        arrays = [
            random.integers(-4, 5, [SIZES[dim] for dim in dims]).astype(np.float32)
            for dims in case.replace("->", ",").split(",")
        ]
        a, b, c = arrays
        expected = c + np.einsum(case, a, b)
        compiled.bind(library, name, a, b, c)()
        if not np.array_equal(c, expected):
            print(f"{name}: wrong")
            failures += 1
    print(f"{len(functions) - failures} of {len(functions)} exact")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
