# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled fp8.grouped_matmul with counts, forward and both gradients, with the same of sorted tokens bit by bit
where scales are of rows or of blocks of them, and with numpy.

What the operands hold of tokens that are not there is NaN where no scale spans tokens, and else zeros.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
from experts import BF16, EXACT, GROUPS, K, N, ROLES, T, check, is_close, multiply  # noqa: E402
from fp8 import tensors  # noqa: E402

COUNTS = [[32, 7, 64, T], [0, 50, 0, 96], [T] * GROUPS, [0] * GROUPS, [1, 0, 95, 33]]


def programs(role):
    """Programs of groups with counts, and of sorted tokens."""
    flags, of_a, of_b = ROLES[role]
    text = ""
    for form, tokens, bounds in (("masked", f"{GROUPS}x{T}", GROUPS), ("sorted", "?", GROUPS + 1)):
        x, dy, w = f"tensor<{tokens}x{K}xbf16>", f"tensor<{tokens}x{N}xbf16>", f"tensor<{GROUPS}x{N}x{K}xbf16>"
        a, b, result = {"fprop": (x, w, dy), "dgrad": (dy, w, x), "wgrad": (dy, x, w)}[role]
        keyword = "offsets" if form == "sorted" else "counts_k" if role == "wgrad" else "counts"
        text += f"""
func.func @{role}_{form}(%a: {a}{of_a}, %b: {b}{of_b}, %bounds: tensor<{bounds}xi32>) -> {result}
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


def is_right(recipe, role, counts, library, rng):
    x, w, dy = (rng.standard_normal(shape).astype(BF16) for shape in ((GROUPS, T, K), (GROUPS, N, K), (GROUPS, T, N)))
    is_exact = recipe == "none" or (recipe in EXACT and role != "wgrad")
    for group, count in enumerate(counts):
        x[group, count:] = dy[group, count:] = np.nan if is_exact else 0
    a, b = {"fprop": (x, w), "dgrad": (dy, w), "wgrad": (dy, x)}[role]
    actual, = compiled.call(library, f"{role}_masked", [a, b, np.array(counts, np.int32)], [(BF16, 3)])
    wanted = np.zeros({"fprop": (GROUPS, T, N), "dgrad": (GROUPS, T, K), "wgrad": (GROUPS, N, K)}[role], np.float32)
    for group, count in enumerate(counts):
        product = multiply(role, a[group, :count], b[group, :count] if role == "wgrad" else b[group])
        wanted[group, :len(product)] = product
    right, error = is_close(recipe, actual, wanted)
    if not is_exact:
        return right, error

    # As of sorted tokens, and zeros behind them.
    def pack(tensor):
        return np.concatenate([tensor[group, :count] for group, count in enumerate(counts)])

    offsets = np.array([0, *np.cumsum(counts)], np.int32)
    of_sorted, = compiled.call(library, f"{role}_sorted", [pack(a), pack(b) if role == "wgrad" else b, offsets],
                               [(BF16, 3 if role == "wgrad" else 2)])
    part = actual if role == "wgrad" else pack(actual)
    right &= np.array_equal(part.view(np.uint16), of_sorted.view(np.uint16))
    for group, count in enumerate(counts):
        right &= role == "wgrad" or not actual[group, count:].view(np.uint16).any()
    return right, error


if __name__ == "__main__":
    failures = check("".join(map(programs, ROLES)), COUNTS, is_right)
    sys.exit(1 if failures + sum(map(is_accepted, ([97, 0, 0, 0], [0, -1, 0, 0]))) else 0)
