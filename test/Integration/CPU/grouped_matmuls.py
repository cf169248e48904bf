# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled fp8.grouped_matmul with an fp8.matmul, or a linalg.matmul, of each group's slices, bit by bit, and
with numpy.

Under recipes whose scales are of rows or of blocks of them a group's codes are those of its slice, so that the results
are; under the others they are close to those in f32.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
from experts import BF16, EXACT, GROUPS, K, N, ROLES, T, check, is_close, multiply  # noqa: E402

# Empty ones, at the ends as well; none at all; rows of no group.
OFFSETS = [[0, 32, 64, 80, 96], [0, 0, 50, 50, 96], [0, 96, 96, 96, 96], [0, 0, 0, 0, 96], [0, 0, 0, 0, 0],
           [0, 7, 20, 33, 60]]


def grouped(role):
    types = {"fprop": f"tensor<?x{K}xbf16>, tensor<{GROUPS}x{N}x{K}xbf16> -> tensor<?x{N}xbf16>",
             "dgrad": f"tensor<?x{N}xbf16>, tensor<{GROUPS}x{N}x{K}xbf16> -> tensor<?x{K}xbf16>",
             "wgrad": f"tensor<?x{N}xbf16>, tensor<?x{K}xbf16> -> tensor<{GROUPS}x{N}x{K}xbf16>"}[role]
    a, rest = types.split(", ")
    b, result = rest.split(" -> ")
    flags, of_a, of_b = ROLES[role]
    return f"""
func.func @{role}(%a: {a}{of_a}, %b: {b}{of_b}, %offsets: tensor<{GROUPS + 1}xi32>) -> {result}
    attributes {{llvm.emit_c_interface}} {{
  %0 = fp8.grouped_matmul %a, %b offsets(%offsets : tensor<{GROUPS + 1}xi32>) {flags} accumulate = fast : {types}
  return %0 : {result}
}}
"""


def single(role):
    """The product of a group, as a program has it that knows of one."""
    extents = {"fprop": ("?", N, K), "dgrad": ("?", K, N), "wgrad": (N, K, "?")}[role]
    m, n, k = extents
    a = f"tensor<{k}x{m}xbf16>" if role == "wgrad" else f"tensor<{m}x{k}xbf16>"
    b = f"tensor<{n}x{k}xbf16>" if role == "fprop" else f"tensor<{k}x{n}xbf16>"
    maps = {"fprop": "(m, k)>, affine_map<(m, n, k) -> (n, k)>", "dgrad": "(m, k)>, affine_map<(m, n, k) -> (k, n)>",
            "wgrad": "(k, m)>, affine_map<(m, n, k) -> (k, n)>"}[role]
    _, of_a, of_b = ROLES[role]
    size = "" if m != "?" else "%m"
    return f"""
func.func @{role}_slice(%a: {a}{of_a}, %b: {b}{of_b}) -> tensor<{m}x{n}xbf16>
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  {"%m = tensor.dim %a, %c0 : " + a if m == "?" else ""}
  %empty = tensor.empty({size}) : tensor<{m}x{n}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> {maps}, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : {a}, {b}) outs(%zeros : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %1 = arith.truncf %0 : tensor<{m}x{n}xf32> to tensor<{m}x{n}xbf16>
  return %1 : tensor<{m}x{n}xbf16>
}}
"""


def operands(role, rng):
    x, w, dy = (rng.standard_normal(shape).astype(BF16) for shape in ((T, K), (GROUPS, N, K), (T, N)))
    return {"fprop": (x, w), "dgrad": (dy, w), "wgrad": (dy, x)}[role]


def sliced(role, a, b, group, begin, end):
    return a[begin:end], (b[begin:end] if role == "wgrad" else b[group])


def is_right(recipe, role, offsets, library, rng):
    a, b = operands(role, rng)
    actual, = compiled.call(library, role, [a, b, np.array(offsets, np.int32)], [(BF16, 3 if role == "wgrad" else 2)])
    wanted = np.zeros({"fprop": (T, N), "dgrad": (T, K), "wgrad": (GROUPS, N, K)}[role], np.float32)
    for group in range(GROUPS):
        begin, end = offsets[group:group + 2]
        wanted[group if role == "wgrad" else slice(begin, end)] = multiply(role, *sliced(role, a, b, group, begin, end))
    right, error = is_close(recipe, actual, wanted)
    # Blocks along the tokens begin with the tensor, not with the group.
    is_exact = recipe in EXACT and not (role == "wgrad" and recipe != "none")
    for group in range(GROUPS) if is_exact else ():
        begin, end = offsets[group:group + 2]
        if begin == end:
            continue
        of_group, = compiled.call(library, f"{role}_slice", [np.ascontiguousarray(part) for part in
                                                             sliced(role, a, b, group, begin, end)], [(BF16, 2)])
        part = actual[group] if role == "wgrad" else actual[begin:end]
        right &= np.array_equal(part.view(np.uint16), of_group.view(np.uint16))
    return right, error


if __name__ == "__main__":
    sys.exit(check("".join(grouped(role) + single(role) for role in ROLES), OFFSETS, is_right) > 0)
