# RUN: rm -rf %t && mkdir %t
# RUN: env PYTHONPATH=%fp8_source/tuning PYTHONDONTWRITEBYTECODE=1 %python %s %t
# RUN: FileCheck %s --check-prefix=COUNT --input-file %t/count
"""The model that is fitted is the compiler's: it gives the candidates of matmuls the same
order, of every kind of operands."""

import pathlib
import re
import subprocess
import sys

from fit_power import parse_config
from machine_file import read_constants
from matmul_model import TRANSPOSED, Table, get_cost
from measurements import CONFIG

out = pathlib.Path(sys.argv[1])
constants = read_constants()
SHAPES = [(4096, 4096, 4096), (1160, 1264, 528), (1024, 776, 1008), (280, 4160, 512),
          (40, 2688, 1920), (8, 12288, 1104), (128, 512, 32768), (24, 7600, 2368),
          (152, 5632, 13040), (6784, 544, 8768), (1000, 777, 1040)]
BLOCKS = {"fast": ("[*, *]", "[*, *]"), "promote": ("[*, *]", "[*, *]"),
          "block": ("[1, 128]", "[128, 128]"), "both": ("[1, 128]", "[1, 128]")}


def get_matmul(name, a, b, flags, m, n):
    return (f"func.func @m_{name}(%a: {a}, %b: {b}) -> tensor<{m}x{n}xbf16> {{\n"
            f"  %0 = fp8.matmul %a, %b {flags} : {a}, {b} -> tensor<{m}x{n}xbf16>\n"
            f"  return %0 : tensor<{m}x{n}xbf16>\n}}\n")


def get_program():
    for m, n, k in SHAPES:
        for layout, (ta, tb) in TRANSPOSED.items():
            if tb and n % 8:
                continue
            a = f"tensor<{k}x{m}xbf16>" if ta else f"tensor<{m}x{k}xbf16>"
            b = f"tensor<{k}x{n}xbf16>" if tb else f"tensor<{n}x{k}xbf16>"
            flags = "transpose_a " * ta + "transpose_b " * tb + "accumulate = fast"
            yield get_matmul(f"plain_{m}_{n}_{k}_{layout}", a, b, flags, m, n)
        for kind, blocks in BLOCKS.items():
            a, b = (f"!fp8.scaled<{rows}x{k}xf8E4M3FN, block = {block}, scale = f32>"
                    for rows, block in zip((m, n), blocks))
            flags = "accumulate = fast" if kind == "fast" else ""
            yield get_matmul(f"{kind}_{m}_{n}_{k}_nt", a, b, flags, m, n)


(out / "program.mlir").write_text("".join(get_program()))
candidates = subprocess.run(
    ["fp8-opt", "--fp8-set-target=chip=sm_90a", "--fp8-select-kernels=every-candidate",
     str(out / "program.mlir")], capture_output=True, text=True, check=True).stdout
count = 0
for function in candidates.split("func.func @m_")[1:]:
    kind, m, n, k, layout = re.match(r"(\w+?)_(\d+)_(\d+)_(\d+)_(\w+)", function).groups()
    configs = [parse_config(c) for c in re.findall(r"#fp8_sm90\.gemm<([^>]*)>", function)]
    configs = configs[-1:] + configs[:-1]  # The operation itself has the best.
    if kind == "plain":
        configs = [config[:len(CONFIG)] for config in configs]
    problem = (int(m), int(n), int(k), *TRANSPOSED[layout])
    cost = get_cost(constants[kind], Table(kind, [problem] * len(configs), configs))
    for i, (one, next_one) in enumerate(zip(cost, cost[1:])):
        assert one <= next_one * (1 + 1e-9), (kind, problem, configs[i], one, configs[i + 1],
                                              next_one)
    count += len(configs)
# COUNT: {{[0-9][0-9][0-9][0-9]}} candidates
(out / "count").write_text(f"{count} candidates\n")
