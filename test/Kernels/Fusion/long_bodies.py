# RUN: %python %s sm_90a
# RUN: %python %s sm_100a
"""A thread of a fusion has several rows, unless the body is so long that their code would be what takes the time: to
compile, and to fetch."""

import re
import subprocess
import sys

X = "tensor<4096x4096xbf16>"


def get_rows(count):
    """Rows of a thread in the kernel of so many additions."""
    lines = [f"func.func @sums(%s0: {X}, %y: {X}) -> {X} {{"]
    lines += [f"  %s{i + 1} = arith.addf %s{i}, %y : {X}" for i in range(count)]
    text = "\n".join([*lines, f"  return %s{count} : {X}", "}"])
    done = subprocess.run(["fp8-opt", "-", f"--fp8-pipeline=target={sys.argv[1]} to=buffers"],
                          input=text, capture_output=True, text=True, check=True)
    (rows,) = set(re.findall(r"fp8_fusion_sm\w+?_rows_(\d+)x1_", done.stdout))
    return int(rows)


if get_rows(60) < 2:
    sys.exit("expected several rows of a thread in a short body, but got one")
if (rows := get_rows(300)) != 1:
    sys.exit(f"expected one row of a thread in a long body, but got {rows}")
