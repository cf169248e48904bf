"""Prints what this machine can do, and checks that programs of every recipe compile and
compute: `python -m fp8`. The exit status is 0 if they do.

`python -m fp8 report program.mlir --inputs FILE` writes what every recipe does to the tensors
of a program (docs/Report.md)."""

import argparse
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import fp8
from fp8 import files, report, report_page

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


def check():
    """Prints it all; the number of what is wrong."""
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


def write_report(options):
    is_shown = sys.stderr.isatty()
    measured = report.measure(
        options.program, load(options.inputs), options.function, options.recipes.split(","),
        (lambda text: print(text, file=sys.stderr)) if is_shown else lambda text: None)
    written = {options.output or Path(options.program).with_suffix(".html").name:
               report_page.write_page(measured)}
    if options.recipe_file:
        written[options.recipe_file] = measured.write_recipe_file()
    for output, text in written.items():
        try:
            files.write_text(output, text)
        except OSError as error:
            raise fp8.FileError(f"{output}: {error.strerror}") from error
    for product in measured.products.values():
        recipe, why = product.choose()
        print(f"{product.name}: {recipe}, {why}")
    return 0


def load(path):
    try:
        return fp8.tensors.load(path)
    except OSError as error:
        raise fp8.FileError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise fp8.FileError(f"{path}: {error}") from error


def main():
    parser = argparse.ArgumentParser(prog="python -m fp8", description=__doc__.partition(":")[0])
    commands = parser.add_subparsers(dest="command")
    command = commands.add_parser(
        "report", help="write what every recipe does to the tensors of a program")
    command.add_argument("program", metavar="PROGRAM.mlir")
    command.add_argument("--inputs", metavar="FILE.safetensors", required=True,
                         help="tensors by the names of the function's arguments")
    command.add_argument("-o", dest="output", metavar="REPORT.html",
                         help="the page (PROGRAM.html, here)")
    command.add_argument("--recipe-file", metavar="RECIPES.json",
                         help="also writes which recipe is for which layer, as a recipe file")
    command.add_argument("--function", metavar="NAME", help="needed where there are several")
    command.add_argument("--recipes", default=",".join(report.RECIPES),
                         metavar="NAME,...", help="(%(default)s)")
    options = parser.parse_args()
    try:
        return check() if options.command is None else write_report(options)
    except fp8.Error as error:
        parser.exit(1, f"{parser.prog}: error: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
