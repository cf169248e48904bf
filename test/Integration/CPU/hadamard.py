# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""fp8.hadamard against Inputs/training.py, bit by bit, and weight gradients whose operands
went through it.

Rotated operands have the product of those that are not, up to rounding; under nvfp4 the
product is that of the rotated operands' codes, and as near to the exact one as without.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
import model  # noqa: E402
import training  # noqa: E402

F32, BF16 = np.float32, ml_dtypes.bfloat16
CASES = [("a", (16,), ("?",), "f32"), ("b", (7, 48), (7, 48), "bf16"), ("c", (2, 3, 32), ("?", 3, "?"), "f16"),
         ("d", (130, 256), ("?", 256), "bf16"), ("e", (2, 9, 64), (2, 9, 64), "f32")]
TOKENS, OUTPUTS, INPUTS = 96, 48, 64


def write_rotation(name, dims, element, signs=0xD7E8):
    tensor = f"tensor<{'x'.join(map(str, dims))}x{element}>"
    return f"""
func.func @{name}(%x: {tensor}) -> {tensor} attributes {{llvm.emit_c_interface}} {{
  %y = fp8.hadamard %x signs = {signs} : {tensor}
  return %y : {tensor}
}}"""


def write_wgrad(element, tokens="?"):
    x, dy, dw = (f"tensor<{tokens}x{INPUTS}x{element}>", f"tensor<{tokens}x{OUTPUTS}x{element}>",
                 f"tensor<{OUTPUTS}x{INPUTS}xf32>")
    return f"""
func.func @wgrad(%dy: {dy} {{fp8.grad}}, %x: {x}) -> {dw} attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant dense<0.0> : {dw}
  %dw = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>] {{fp8.name = "mm", fp8.role = #fp8.role<wgrad>}}
      ins(%dy, %x : {dy}, {x}) outs(%zero : {dw}) -> {dw}
  return %dw : {dw}
}}"""


def build(args, text, directory, name, *options):
    Path(directory, name).mkdir()
    passes = [f"--fp8-pipeline=target=cpu to=host require {' '.join(options)}"]
    return compiled.build(text, passes, args, Path(directory, name), [args.runtime])


def check_rotations(args, directory, random):
    texts = [write_rotation(name, dims, element) for name, _, dims, element in CASES]
    texts.append(write_rotation("signs", (4, 32), "f32", signs=0x8001))
    library = build(args, "\n".join(texts), directory, "rotations")
    cases = [(name, shape, element, training.SIGNS) for name, shape, _, element in CASES]
    cases.append(("signs", (4, 32), "f32", np.array([-1, *[1] * 14, -1], F32)))
    for name, shape, element, signs in cases:
        dtype = model.INPUTS[element]
        x = (random.standard_normal(shape) * 2.0 ** random.integers(-6, 7, shape)).astype(dtype)
        if x.size > 64:
            x.reshape(-1)[[3, 40]] = np.nan, np.inf
        ours, = compiled.call(library, name, [x.copy()], [(dtype, x.ndim)])
        expected = training.hadamard(x, signs)
        wrong = (ours.astype(F32) != expected.astype(F32)) & ~(np.isnan(ours.astype(F32)) &
                                                              np.isnan(expected.astype(F32)))
        if wrong.any() or np.isnan(expected.astype(F32)).all():
            raise SystemExit(f"{name}: {wrong.sum()} of {x.size} elements differ")
    # Both rotated alike, their product is what it was.
    a, b = random.standard_normal((8, 64)).astype(F32), random.standard_normal((5, 64)).astype(F32)
    product, exact = (left.astype(np.float64) @ right.astype(np.float64).T for left, right in
                      ((training.hadamard(a), training.hadamard(b)), (a, b)))
    if np.abs(product - exact).max() > 1e-5:
        raise SystemExit(f"a rotated product is {np.abs(product - exact).max()} from that of before")


def get_operands(dy, x, rotates):
    scaled = model.describe("nvfp4")
    operands = []
    for tensor in (dy, x):
        tensor = np.ascontiguousarray(tensor.T)
        tensor = np.pad(tensor, [(0, 0), (0, -tensor.shape[1] % 16)])
        operands.append(scaled.value(training.hadamard(tensor) if rotates else tensor))
    return operands


def check_wgrad(args, directory, random):
    errors = {}
    for element in ("bf16", "f32"):
        for option in ("hadamard=true", "hadamard=false"):
            library = build(args, write_wgrad(element), directory, f"{element}.{option}", f"recipe=nvfp4,{option}",
                            "max-padding=1")
            for tokens in (TOKENS, TOKENS + 5):
                dy = random.standard_normal((tokens, OUTPUTS))
                x = random.standard_normal((tokens, INPUTS))
                dy, x = dy.astype(model.INPUTS[element]), x.astype(model.INPUTS[element])
                dw, = compiled.call(library, "wgrad", [dy.copy(), x.copy()], [(F32, 2)])
                a, b = get_operands(dy, x, option == "hadamard=true")
                if np.abs(dw - a @ b.T).max() > 1e-5 * np.abs(a @ b.T).max():
                    raise SystemExit(f"{element}, {option}, {tokens} tokens: not the product of the codes")
                exact = dy.astype(np.float64).T @ x.astype(np.float64)
                errors.setdefault(option, []).append(np.linalg.norm(dw - exact) / np.linalg.norm(exact))
                if element == "bf16" and tokens == TOKENS:
                    check_outlier(library, option, dy, x, errors)
    for option, values in errors.items():
        if max(values) > 0.2:
            raise SystemExit(f"{option}: weight gradients are {max(values)} from the exact ones")
    return errors


def check_outlier(library, option, dy, x, errors):
    """One token 50 times as large in both: a scale of its own serves it better than a rotation."""
    dy, x = dy.copy(), x.copy()
    dy[7] *= 50
    x[7] *= 50
    dw, = compiled.call(library, "wgrad", [dy.copy(), x.copy()], [(F32, 2)])
    a, b = get_operands(dy, x, option == "hadamard=true")
    if np.abs(dw - a @ b.T).max() > 1e-5 * np.abs(a @ b.T).max():
        raise SystemExit(f"{option}, a large token: not the product of the codes")
    exact = dy.astype(np.float64).T @ x.astype(np.float64)
    errors[f"{option}, a large token"] = [np.linalg.norm(dw - exact) / np.linalg.norm(exact)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    training.check_hadamard()
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as directory:
        check_rotations(args, directory, np.random.default_rng(0))
        errors = check_wgrad(args, directory, np.random.default_rng(1))
    for option, values in errors.items():
        print(f"{option}: weight gradients are", ", ".join(f"{value:.3f}" for value in values), "from the exact ones")


if __name__ == "__main__":
    main()
