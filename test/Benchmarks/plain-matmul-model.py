# RUN: rm -rf %t && mkdir %t
# RUN: env PYTHONPATH=%fp8_source/benchmarks/fit PYTHONDONTWRITEBYTECODE=1 %python %s %fp8_source %t
# RUN: FileCheck %s --check-prefix=COUNT --input-file %t/count
"""The model that is fitted is the compiler's: both have the same constants, and
give the candidates of matmuls the same order."""

import json
import pathlib
import re
import subprocess
import sys

from plain_matmul_model import TRANSPOSED, Table, get_clocks

source, out = map(pathlib.Path, sys.argv[1:])
constants = json.loads((source / "benchmarks/fit/plain_matmul_constants.json").read_text())
cost = (source / "lib/Kernels/SM90/PlainMatmulCost.cpp").read_text()
compiled = {name: float(value) for name, value in re.findall(r"\bk(\w+) = ([0-9.]+)[,;]", cost)}
# Of the target, of memory's model, and of epilogues, which the fit does not see.
others = {"Reached4", "Reached8", "MostRepeated", "Issue", "IssueDisturbance"}
assert {n: v for n, v in compiled.items() if n not in others} == constants, compiled

SHAPES = [(4096, 4096, 4096), (1160, 1264, 520), (1024, 777, 1000), (280, 4160, 512),
          (40, 2688, 1920), (8, 12288, 1104), (128, 512, 32768), (24, 7600, 2360)]


def get_program():
    for m, n, k in SHAPES:
        for layout, (ta, tb) in TRANSPOSED.items():
            if tb and n % 8:
                continue
            a = f"tensor<{k}x{m}xbf16>" if ta else f"tensor<{m}x{k}xbf16>"
            b = f"tensor<{k}x{n}xbf16>" if tb else f"tensor<{n}x{k}xbf16>"
            flags = "transpose_a " * ta + "transpose_b " * tb
            yield (f"func.func @m{m}_{n}_{k}_{layout}(%a: {a}, %b: {b}) -> tensor<{m}x{n}xbf16> {{\n"
                   f"  %0 = fp8.matmul %a, %b {flags}accumulate = fast : {a}, {b} -> tensor<{m}x{n}xbf16>\n"
                   f"  return %0 : tensor<{m}x{n}xbf16>\n}}\n")


def parse(config):
    value = lambda key, otherwise: int((re.search(rf"\b{key} = (\d+)", config) or [0, otherwise])[1])
    swapped = "swap_ab = true" in config
    tile = value("tile_m", 0), value("tile_n", 0)
    rows, cols = tile[::-1] if swapped else tile
    return (rows, cols, "ping_pong" in config, value("consumers", 2), swapped, value("cluster", 1),
            value("cluster_cols", 1), value("split_k", 1))


(out / "program.mlir").write_text("".join(get_program()))
candidates = subprocess.run(
    ["fp8-opt", "--fp8-set-target=chip=sm_90a", "--fp8-select-kernels=every-candidate",
     str(out / "program.mlir")], capture_output=True, text=True, check=True).stdout
count = 0
for function in candidates.split("func.func @m")[1:]:
    m, n, k, layout = re.match(r"(\d+)_(\d+)_(\d+)_(\w+)", function).groups()
    configs = [parse(c) for c in re.findall(r"#fp8_sm90\.gemm<([^>]*)>", function)]
    problem = (int(m), int(n), int(k), *TRANSPOSED[layout])
    configs = configs[-1:] + configs[:-1]  # The operation itself has the best.
    clocks = get_clocks(constants, Table([problem] * len(configs), configs))
    for i, (one, next_one) in enumerate(zip(clocks, clocks[1:])):
        assert one <= next_one * (1 + 1e-9), (problem, configs[i], one, configs[i + 1], next_one)
    count += len(configs)
# COUNT: {{[0-9][0-9][0-9]+}} candidates
(out / "count").write_text(f"{count} candidates\n")
