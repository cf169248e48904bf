"""How long the passes take on large modules, through the fusion phase.

A chain of N bf16 linear layers, weights as arguments, under every stateless
recipe; the time is the whole process's, parsing and printing included, and the best
of three. Goals: 2,000 matmuls in less than 10 s, and twice as many in about
twice the time.

usage: compile_time.py [--build-dir build] [--matmuls 2000]
"""

import argparse
import os
import subprocess
import tempfile
import time

import measure

RECIPES = ["current", "rowwise", "block", "mxfp8", "nvfp4"]
GOAL_S = 10.0


def module(matmuls, batch=32, width=128):
    x, w, y = (
        f"tensor<{batch}x{width}xbf16>",
        f"tensor<{width}x{width}xbf16>",
        f"tensor<{batch}x{width}xf32>",
    )
    yield "#id = affine_map<(d0, d1) -> (d0, d1)>\n"
    weights = "".join(f", %w{i}: {w}" for i in range(matmuls))
    yield f"func.func @chain(%x0: {x}{weights}) -> {x} {{\n"
    yield "  %zero = arith.constant 0.0 : f32\n"
    yield f"  %ey = tensor.empty() : {y}\n"
    yield f"  %ex = tensor.empty() : {x}\n"
    yield f"  %init = linalg.fill ins(%zero : f32) outs(%ey : {y}) -> {y}\n"
    for i in range(matmuls):
        yield f"""
  %y{i} = linalg.matmul ins(%x{i}, %w{i} : {x}, {w}) outs(%init : {y}) -> {y}
  %x{i + 1} = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%y{i} : {y}) outs(%ex : {x}) {{
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  }} -> {x}
"""
    yield f"  return %x{matmuls} : {x}\n}}\n"


def seconds(fp8_opt, recipe, matmuls, directory):
    path = os.path.join(directory, f"{matmuls}.mlir")
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.writelines(module(matmuls))
    output = os.path.join(directory, "out.mlir")
    pipeline = f"--fp8-pipeline=recipe={recipe} target=cpu to=fusion"
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([fp8_opt, path, pipeline, "-o", output], check=True)
        times.append(time.perf_counter() - start)
    with open(output) as file:
        found = sum("fp8.matmul" in line for line in file)
    if found != matmuls:
        raise SystemExit(f"{recipe}: expected {matmuls} fp8.matmul, but got {found}")
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--matmuls", type=int, default=2000)
    args = parser.parse_args()
    fp8_opt = os.path.join(args.build_dir, "bin", "fp8-opt")

    small, large = args.matmuls, 2 * args.matmuls
    rows, table = [], [f"{'recipe':10} {small:>8} {large:>8}   ratio"]
    with tempfile.TemporaryDirectory() as directory:
        for recipe in RECIPES:
            a = seconds(fp8_opt, recipe, small, directory)
            b = seconds(fp8_opt, recipe, large, directory)
            met = "met" if a < GOAL_S * small / 2000 and b / a < 2.5 else "missed"
            rows.append({"recipe": recipe, "small_s": a, "large_s": b, "ratio": b / a})
            table.append(f"{recipe:10} {a:7.2f}s {b:7.2f}s   {b / a:5.2f}   {met}")
    measure.write("compile_time", rows, table, matmuls=[small, large], goal_s=GOAL_S)


if __name__ == "__main__":
    main()
