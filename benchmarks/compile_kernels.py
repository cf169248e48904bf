"""How long fp8-compile takes for programs of many kernels, from MLIR to a shared object.

A chain of linear layers with bias and SiLU for sm_90a, each layer of other extents and
under the next recipe, so that hardly two kernels are equal; the time is the whole
process's, the best of a few, on as many threads as there are cores. `cold` finds
nothing in the cache of kernels, `warm` everything. Goals: 1.5 s for a program of 30
kernels, cold, and twice as many layers in at most 2.3 times the time.

usage: compile_kernels.py [--build-dir build] [--layers 1,2,4,...] [--repeats 5]
"""

import argparse
import itertools
import os
import shutil
import subprocess
import tempfile

import measure

GOAL_KERNELS, GOAL_S, GOAL_GROWTH = 30, 1.5, 2.3
RECIPES = ["current", "delayed", "rowwise", "block", "none"]
ROWS = 2048
OPTIONS = ["--target=sm_90a", "--name=program"]


def width(i):
    """The width of layer i's input: multiples of 128, no two equal."""
    return 1024 + 384 * i


def module(layers):
    yield """
#row = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
"""
    weights = "".join(
        f",\n    %w{i}: tensor<{width(i)}x{width(i + 1)}xbf16> {{fp8.weight}}, "
        f"%b{i}: tensor<{width(i + 1)}xbf16>" for i in range(layers))
    yield (f"func.func @layers(%x0: tensor<{ROWS}x{width(0)}xbf16>{weights}) -> "
           f"tensor<{ROWS}x{width(layers)}xbf16> {{\n  %zero = arith.constant 0.0 : f32\n")
    for i, recipe in zip(range(layers), itertools.cycle(RECIPES)):
        x, w, y = (f"tensor<{ROWS}x{width(i)}xbf16>", f"tensor<{width(i)}x{width(i + 1)}xbf16>",
                   f"tensor<{ROWS}x{width(i + 1)}x")
        yield f"""
  %e{i} = tensor.empty() : {y}f32>
  %z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {y}f32>) -> {y}f32>
  %y{i} = linalg.matmul {{fp8.recipe = #fp8.{recipe}}} ins(%x{i}, %w{i} : {x}, {w})
      outs(%z{i} : {y}f32>) -> {y}f32>
  %o{i} = tensor.empty() : {y}bf16>
  %x{i + 1} = linalg.generic {{indexing_maps = [#row, #column, #row],
                               iterator_types = ["parallel", "parallel"]}}
      ins(%y{i}, %b{i} : {y}f32>, tensor<{width(i + 1)}xbf16>) outs(%o{i} : {y}bf16>) {{
  ^bb0(%in: f32, %bias: bf16, %out: bf16):
    %one = arith.constant 1.0 : f32
    %wide = arith.extf %bias : bf16 to f32
    %sum = arith.addf %in, %wide : f32
    %negative = arith.negf %sum : f32
    %exp = math.exp %negative : f32
    %divisor = arith.addf %exp, %one : f32
    %silu = arith.divf %sum, %divisor : f32
    %rounded = arith.truncf %silu : f32 to bf16
    linalg.yield %rounded : bf16
  }} -> {y}bf16>
"""
    yield f"  return %x{layers} : tensor<{ROWS}x{width(layers)}xbf16>\n}}\n"


def count_kernels(fp8_compile, source):
    """Kernels of the program, in which equal ones are one."""
    text = subprocess.run([fp8_compile, source, "--emit=mlir", "--kernel-format=ptx", OPTIONS[0]],
                          check=True, text=True, capture_output=True).stdout
    return text.count("_image_data(")


def seconds(fp8_compile, source, directory, repeats):
    """The best times without and with what the cache has."""
    cache = os.path.join(directory, "cache")
    command = [fp8_compile, source, *OPTIONS, f"--kernel-cache={cache}",
               "-o", os.path.join(directory, "program.so")]

    def cold():
        shutil.rmtree(cache, ignore_errors=True)
        warm()

    def warm():
        subprocess.run(command, check=True)

    return map(min, measure.interleaved([cold, warm], repeats))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--layers", default="1,2,3,4,8,16")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    fp8_compile = os.path.join(args.build_dir, "bin", "fp8-compile")
    rows, times = [], {}
    table = [f"{'layers':>6} {'kernels':>8} {'cold':>8} {'warm':>8} {'growth':>8}"]
    with tempfile.TemporaryDirectory() as directory:
        for layers in map(int, args.layers.split(",")):
            source = os.path.join(directory, f"{layers}.mlir")
            with open(source, "w") as file:
                file.writelines(module(layers))
            kernels = count_kernels(fp8_compile, source)
            cold, warm = seconds(fp8_compile, source, directory, args.repeats)
            times[layers] = cold
            growth = cold / times[layers // 2] if layers % 2 == 0 and layers // 2 in times else None
            met = (growth is None or growth <= GOAL_GROWTH) and (
                kernels > GOAL_KERNELS or cold <= GOAL_S)
            rows.append({"layers": layers, "kernels": kernels, "cold_s": cold, "warm_s": warm,
                         "growth": growth})
            table.append(f"{layers:>6} {kernels:>8} {cold:>7.2f}s {warm:>7.2f}s "
                         f"{'' if growth is None else f'{growth:.2f}':>8}"
                         f"   {'met' if met else 'missed'}")
    measure.write("compile_kernels", rows, table, repeats=args.repeats, rows_of_x=ROWS,
                  goal_kernels=GOAL_KERNELS, goal_s=GOAL_S, goal_growth=GOAL_GROWTH)


if __name__ == "__main__":
    main()
