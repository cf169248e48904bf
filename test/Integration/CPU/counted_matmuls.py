# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled fp8.grouped_matmul with counts, forward and both gradients, with the same of sorted tokens bit by bit
where scales are of rows or of blocks of them, and with numpy.

What the operands hold of tokens that are not there is NaN where no scale spans tokens, and else zeros.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
from fp8 import tensors  # noqa: E402

GROUPS, T, N, K = 4, 96, 160, 256
COUNTS = [[32, 7, 64, T], [0, 50, 0, 96], [T] * GROUPS, [0] * GROUPS, [1, 0, 95, 33]]
BF16 = ml_dtypes.bfloat16

# Recipes whose scales a group's rows have as they have them elsewhere, and others; how far results may be from those in
# f32, in the norm.
EXACT = {"none": 0.004, "rowwise": 0.045, "block": 0.045, "mxfp8": 0.05}
CLOSE = {"current": 0.07, "nvfp4": 0.2}
ROLES = "fprop", "dgrad", "wgrad"


def programs(role):
    """Of groups with counts, and of sorted tokens."""
    flags = {"fprop": "", "dgrad": "transpose_b", "wgrad": "transpose_a transpose_b"}[role]
    gradient = " {fp8.grad}" if role != "fprop" else ""
    weight = " {fp8.weight}" if role != "wgrad" else ""
    text = ""
    for form, tokens, bounds in (("counted", f"{GROUPS}x{T}", GROUPS), ("sorted", "?", GROUPS + 1)):
        x, dy, w = f"tensor<{tokens}x{K}xbf16>", f"tensor<{tokens}x{N}xbf16>", f"tensor<{GROUPS}x{N}x{K}xbf16>"
        a, b, result = {"fprop": (x, w, dy), "dgrad": (dy, w, x), "wgrad": (dy, x, w)}[role]
        keyword = "offsets" if form == "sorted" else "counts_k" if role == "wgrad" else "counts"
        text += f"""
func.func @{role}_{form}(%a: {a}{gradient}, %b: {b}{weight}, %bounds: tensor<{bounds}xi32>) -> {result}
    attributes {{llvm.emit_c_interface}} {{
  %0 = fp8.grouped_matmul %a, %b {keyword}(%bounds : tensor<{bounds}xi32>) {flags} accumulate = fast : {a}, {b} -> {result}
  return %0 : {result}
}}
"""
    return text


def is_accepted(counts):
    """Whether a program does not end with a message for counts that are none."""
    with tempfile.TemporaryDirectory() as directory:
        source, inputs = Path(directory) / "program.mlir", Path(directory) / "inputs.safetensors"
        source.write_text("func.func" + programs("fprop").split("func.func")[1])
        tensors.save(inputs, {"arg0": np.ones((GROUPS, T, K), BF16), "arg1": np.ones((GROUPS, N, K), BF16),
                              "arg2": np.array(counts, np.int32)})
        done = subprocess.run(["fp8-run", source, "--recipe=none", f"--inputs={inputs}"], capture_output=True, text=True)
    is_refused = done.returncode == 1 and "expected counts of groups that are not negative" in done.stderr
    print(f"{counts}: {'refused' if is_refused else (done.returncode, done.stderr)}")
    return not is_refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    text = "".join(map(programs, ROLES))
    failures = total = 0
    for recipe, tolerance in {**EXACT, **CLOSE}.items():
        with tempfile.TemporaryDirectory() as directory:
            library = compiled.build(text, [f"--fp8-pipeline=recipe={recipe} target=cpu to=host"], args, directory,
                                     [args.runtime], "-O1")
        rng = np.random.default_rng(1)
        for role in ROLES:
            for counts in COUNTS:
                x, w, dy = (rng.standard_normal(shape).astype(BF16)
                            for shape in ((GROUPS, T, K), (GROUPS, N, K), (GROUPS, T, N)))
                is_exact = recipe == "none" or (recipe in EXACT and role != "wgrad")
                for group, count in enumerate(counts):
                    x[group, count:] = dy[group, count:] = np.nan if is_exact else 0
                a, b = {"fprop": (x, w), "dgrad": (dy, w), "wgrad": (dy, x)}[role]
                actual, = compiled.call(library, f"{role}_counted", [a, b, np.array(counts, np.int32)], [(BF16, 3)])
                wanted = np.zeros(actual.shape, np.float32)
                for group, count in enumerate(counts):
                    of_a, of_b = a[group, :count].astype(np.float32), b[group].astype(np.float32)
                    if role == "wgrad":
                        wanted[group] = of_a.T @ of_b[:count]
                    else:
                        wanted[group, :count] = of_a @ (of_b.T if role == "fprop" else of_b)
                error = np.linalg.norm(actual.astype(np.float32) - wanted) / (np.linalg.norm(wanted) or 1.0)
                is_right = bool(error <= tolerance)
                if is_exact:  # As of sorted tokens, and zeros behind them.
                    def pack(tensor):
                        return np.concatenate([tensor[group, :count] for group, count in enumerate(counts)])

                    offsets = np.array([0, *np.cumsum(counts)], np.int32)
                    of_sorted, = compiled.call(library, f"{role}_sorted",
                                               [pack(a), pack(b) if role == "wgrad" else b, offsets],
                                               [(BF16, 3 if role == "wgrad" else 2)])
                    part = actual if role == "wgrad" else pack(actual)
                    is_right &= np.array_equal(part.view(np.uint16), of_sorted.view(np.uint16))
                    for group, count in enumerate(counts):
                        is_right &= role == "wgrad" or not actual[group, count:].view(np.uint16).any()
                total += 1
                if not is_right:
                    print(f"{recipe} {role} {counts}: wrong, error {error:.4f}")
                    failures += 1
    print(f"{total - failures} of {total} right")
    return 1 if failures + sum(map(is_accepted, ([97, 0, 0, 0], [0, -1, 0, 0]))) else 0


if __name__ == "__main__":
    sys.exit(main())
