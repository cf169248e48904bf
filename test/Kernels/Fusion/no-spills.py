# RUN: %python %s %fp8_build/bin %ptxas
# REQUIRES: ptxas
# UNSUPPORTED: sanitizers
"""No kernel of a linear layer and its gradients spills registers, whatever the shape and the recipe.

But those that hold 129 to 256 whole rows: 1024 threads have 64 registers each, and without them there is a kernel more.
With a number as third argument: of so many shapes for each recipe and target, by another seed with a fourth.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

RECIPES = "none", "current", "rowwise", "block", "mxfp8", "nvfp4", "delayed"
# Those that spilled once.
CASES = [*((4096, 32768, 512, False, "rowwise", target) for target in ("sm_89", "sm_90a", "sm_100a")),
         (1536, 2048, 32768, True, "block", "sm_89"), (768, 4096, 32768, False, "block", "sm_120a")]
# 76 to 192 bytes, as ptxas says of shapes with 129 to 256 rows.
ALLOWED, ALLOWED_BYTES = re.compile("_rows_256x1_whole_"), 192
EXTENTS = [64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 5120, 8192, 14336, 32768]


def make_product(name, maps, operands, shapes, shape):
    a_map, b_map = (f"affine_map<(m, n, k) -> ({', '.join(dims)})>" for dims in maps)
    a, b = (f"tensor<{rows}x{columns}xbf16>" for rows, columns in shapes)
    result = f"tensor<{shape[0]}x{shape[1]}xf32>"
    return f"""  %{name}_empty = tensor.empty() : {result}
  %{name}_zeros = linalg.fill ins(%zero : f32) outs(%{name}_empty : {result}) -> {result}
  %{name} = linalg.contract indexing_maps = [{a_map}, {b_map}, affine_map<(m, n, k) -> (m, n)>]
      ins(%{operands[0]}, %{operands[1]} : {a}, {b}) outs(%{name}_zeros : {result}) -> {result}
"""


def make_layer(m, n, k, turned):
    """y = x w, dx = dy w^T and dw = x^T dy; `turned`: w is stored as its transpose, as dw is."""
    w, w_map, t_map = ((n, k), "nk", "kn") if turned else ((k, n), "kn", "nk")
    dw, dw_maps, dw_names = ((n, k), ("km", "kn"), ("dy", "x")) if turned else ((k, n), ("km", "kn"), ("x", "dy"))
    shapes = {"x": (m, k), "w": w, "dy": (m, n)}
    argument = {name: f"tensor<{rows}x{columns}xbf16>" for name, (rows, columns) in shapes.items()}
    results = ", ".join(f"tensor<{rows}x{columns}xf32>" for rows, columns in ((m, n), (m, k), dw))
    return f"""func.func @main(%x: {argument["x"]}, %w: {argument["w"]} {{fp8.weight}}, %dy: {argument["dy"]} {{fp8.grad}})
    -> ({results}) {{
  %zero = arith.constant 0.0 : f32
{make_product("y", ("mk", w_map), ("x", "w"), (shapes["x"], w), (m, n))}\
{make_product("dx", ("mk", t_map), ("dy", "w"), (shapes["dy"], w), (m, k))}\
{make_product("dw", dw_maps, dw_names, [shapes[name] for name in dw_names], dw)}\
  return %y, %dx, %dw : {results}
}}
"""


def find_spills(tools, ptxas, folder, number, program, recipe, target):
    """Kernels that spill, with what ptxas says of them."""
    source, ptx = (os.path.join(folder, f"{number}.{kind}") for kind in ("mlir", "ptx"))
    with open(source, "w") as file:
        file.write(program)
    subprocess.run([os.path.join(tools, "fp8-compile"), source, f"--recipe={recipe}", f"--target={target}", "--emit=ptx",
                    "-o", ptx], check=True, capture_output=True)
    log = subprocess.run([ptxas, "-v", "-arch", target, "-O3", ptx, "-o", os.devnull], check=True, capture_output=True,
                         text=True)
    kernel, found = "", []
    for line in (log.stdout + log.stderr).splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            kernel = match[1]
        if (match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and match.groups() != ("0", "0") \
                and not (ALLOWED.search(kernel) and max(map(int, match.groups())) <= ALLOWED_BYTES):
            found.append(f"{kernel}: {match[0]}")
    return found


def main():
    tools, ptxas, *rest = sys.argv[1:]
    count, seed = [int(value) for value in rest + ["1", "0"][len(rest):]]
    rng = np.random.default_rng(seed)
    cases = list(CASES)
    for target in ("sm_89", "sm_90a", "sm_100a"):
        for recipe in RECIPES:
            for _ in range(count):
                m, n, k = (int(extent) for extent in rng.choice(EXTENTS, 3))
                cases.append((m, n, k, bool(rng.integers(2)), recipe, target))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        spills = list(pool.map(
            lambda case: find_spills(tools, ptxas, folder, case[0], make_layer(*case[1][:4]), *case[1][4:]),
            enumerate(cases)))
    for case, found in zip(cases, spills):
        for line in found:
            print(*case, line)
    return int(any(spills))


if __name__ == "__main__":
    sys.exit(main())
