"""Prints what this machine can do, and checks that programs of every recipe compile and
compute: `python -m fp8`. The exit status is 0 if they do."""

import argparse
import sys

import ml_dtypes
import numpy as np

import fp8

PROGRAM = """
func.func @matmul(%x: tensor<128x256xf32> {fp8.name = "x"},
                  %w: tensor<256x128xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<128x128xf32> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<128x256xf32>, tensor<256x128xf32>)
                     outs(%init : tensor<128x128xf32>) -> tensor<128x128xf32> loc("matmul")
  return %y : tensor<128x128xf32>
}
"""

# With the largest error that rounding may make, as a share of the result's norm: two operands
# that are off by 2^-4 at most, or 2^-2 in E2M1, evenly spread.
RECIPES = [(None, 1e-5), (fp8.Float8CurrentScaling(), 0.06), (fp8.RowwiseScaling(), 0.06),
           (fp8.Float8BlockScaling(), 0.06), (fp8.MXFP8BlockScaling(), 0.06),
           (fp8.NVFP4BlockScaling(), 0.25), (fp8.DelayedScaling(), 0.06)]


def check_recipe(recipe, limit, x, w):
    """None, or what is wrong."""
    program = fp8.compile(PROGRAM, recipe, target="cpu", cache=False)
    state = fp8.State(program) if program.matmul.takes_state else None
    for _ in range(2):  # The second step has the scales of the first one's amaxes.
        y = program(x, w, state=state)
        if state is not None:
            state.end_step()
    if recipe is not None and program.remarks[0].kind != "fp8":
        return program.remarks[0].text
    expected = x.astype(np.float64) @ w
    error = np.linalg.norm(y - expected) / np.linalg.norm(expected)
    return None if error <= limit else f"expected an error up to {limit}, but got {error:.3g}"


def check_cast(x):
    """None, or what is wrong: codes against those of ml_dtypes."""
    scale = np.float32(448) / np.abs(x).max()
    codes = fp8.quantize(x).codes
    expected = (x * scale).astype(ml_dtypes.float8_e4m3fn)
    return None if np.array_equal(codes.view(np.uint8), expected.view(np.uint8)) else (
        "expected the codes of ml_dtypes, but got others")


def main():
    parser = argparse.ArgumentParser(prog="python -m fp8", description=__doc__.partition(":")[0])
    parser.parse_args()
    print(fp8.check_support())
    random = np.random.default_rng(0)
    x = random.standard_normal((128, 256), np.float32)
    w = random.standard_normal((256, 128), np.float32)
    failures = 0
    checks = [(str(recipe or "none"), lambda r=recipe, l=limit: check_recipe(r, l, x, w))
              for recipe, limit in RECIPES] + [("quantize", lambda: check_cast(x))]
    for name, check in checks:
        try:
            problem = check()
        except fp8.Error as error:
            problem = str(error)
        failures += problem is not None
        print(f"{name:12} {'ok' if problem is None else problem}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
