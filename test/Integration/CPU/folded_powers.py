# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Powers of two that became part of a scale change no bit: every bf16 and every f16, and
every code, with scales and powers up to the limits that fp8-fold-powers-of-two has, with
the pass and without."""

import argparse
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402

REST = ["--convert-elementwise-to-linalg",
        "--fp8-pipeline=target=cpu recipe=none from=buffers to=host"]
DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
# Exponents of scales, and what is beside them.
SCALES = [(-120, 1.75), (-119, 1.75), (-8, 1.0), (-7, 1.0), (-5, 1.75), (3, 1.75), (115, 1.0),
          (116, 1.75)]
POWERS = [-24, -3, 1, 15]


def constant(value):
    return f"0x{int(np.float32(value).view(np.uint32)):08X}"


def quantize(name, element, code, scale, power):
    x, q = f"tensor<256x256x{element}>", f"!fp8.scaled<256x256x{code}, block = [*, *], scale = f32>"
    return f"""func.func @{name}(%x: {x}) -> tensor<256x256x{code}> attributes {{llvm.emit_c_interface}} {{
  %s = arith.constant dense<{constant(scale)}> : tensor<1x1xf32>
  %c = arith.constant dense<{2.0 ** power:.17e}> : {x}
  %m = arith.mulf %x, %c : {x}
  %q = fp8.quantize %m scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : {x} -> {q}
  %p, %f = fp8.disassemble %q : {q}
  return %p : tensor<256x256x{code}>
}}
"""


def dequantize(name, element, code, scale, power):
    x, q = f"tensor<1x256x{element}>", f"!fp8.scaled<1x256x{code}, block = [*, *], scale = f32>"
    return f"""func.func @{name}(%p: tensor<1x256x{code}>) -> {x} attributes {{llvm.emit_c_interface}} {{
  %s = arith.constant dense<{constant(scale)}> : tensor<1x1xf32>
  %c = arith.constant dense<{2.0 ** power:.17e}> : {x}
  %q = fp8.assemble %p, %s : tensor<1x256x{code}>, tensor<1x1xf32> -> {q}
  %d = fp8.dequantize %q : {q} -> {x}
  %m = arith.mulf %d, %c : {x}
  return %m : {x}
}}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")
    functions, text = [], ""
    for element, code, (exponent, rest), power in itertools.product(
            DTYPES, ("f8E4M3FN", "f8E5M2"), SCALES, POWERS):
        # Others are no numbers of f16.
        if element == "f16" and not -24 <= power <= 15:
            continue
        for write in (quantize, dequantize):
            name = f"{write.__name__}{len(functions)}"
            functions.append((name, write, element))
            text += write(name, element, code, np.float32(rest * 2.0 ** exponent), power)
    fold = ["--fp8-fold-powers-of-two", "--canonicalize"]
    folded = subprocess.run([args.fp8_opt, *fold], input=text, text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    # What cannot be folded is the same in both, and needs no comparison.
    left = {part.split("(")[0] for part in folded.split("func.func @")[1:] if "mulf" in part}
    compared = [f for f in functions if f[0] not in left]
    text = "".join("func.func @" + part for part in text.split("func.func @")[1:]
                   if part.split("(")[0] not in left)
    with tempfile.TemporaryDirectory() as directory:
        libraries = []
        for passes in (REST, [*fold, *REST]):
            folder = Path(directory, str(len(passes)))
            folder.mkdir()
            libraries.append(compiled.build(text, passes, args, folder, [args.runtime], "-O1"))
        failures = 0
        for name, write, element in compared:
            if write is quantize:
                x = np.arange(65536, dtype=np.uint16).view(DTYPES[element]).reshape(256, 256)
                result = (np.uint8, 2)
            else:
                x = np.arange(256, dtype=np.uint8).reshape(1, 256)
                result = (DTYPES[element], 2)
            plain, moved = (compiled.call(library, name, [x.copy()], [result])[0]
                            for library in libraries)
            isnan = np.isnan(plain.astype(np.float32)) & np.isnan(moved.astype(np.float32))
            if write is quantize:
                isnan = False
            equal = plain.view(f"u{plain.itemsize}") == moved.view(f"u{moved.itemsize}")
            if not (equal | isnan).all():
                print(f"{name}: {int((~(equal | isnan)).sum())} of {plain.size} differ")
                failures += 1
    print(f"{len(functions)} functions, {len(compared)} folded, {failures} failures")
    # A pass that folds nothing would be right always.
    return 1 if failures or len(compared) < len(functions) // 4 else 0


if __name__ == "__main__":
    sys.exit(main())
