# UNSUPPORTED: sanitizers
# RUN: rm -rf %t && mkdir %t
# RUN: env CUDA_HOME=%t-none FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip %python %s %fp8_source/examples/linear.mlir %t
"""fp8.compile measures kernels where it is asked to, and remembers them."""

import json
import sys
from pathlib import Path

import fp8

program, folder = sys.argv[1], Path(sys.argv[2])
table = folder / "table.json"


def compile(**options):
    return fp8.compile(program, "current", cache=folder / "programs", **options)


compile(target="sm_90a", tune=str(table))
kernels = json.loads(table.read_text())["kernels"]
assert any(entry["kernel"].startswith("matmul") for entry in kernels), kernels

# Then it is as it was, and what it says is taken: the program is not from the cache.
pinned = "#fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5, overlap = true>"
for entry in kernels:
    if entry["kernel"].startswith("matmul"):
        entry["config"] = pinned
text = json.dumps({**json.loads(table.read_text()), "kernels": kernels})
table.write_text(text)
compile(target="sm_90a", tune=str(table))
assert table.read_text() == text
ptx = fp8.emit(program, "ptx", "current", target="sm_90a", tune=str(table))
assert b"promote_128x128_s5c2_overlap" in ptx

# Nothing is measured for a CPU, and nothing where one says so.
compile(target="cpu", tune=str(folder / "no.json"))
compile(target="sm_90a", tune=False)
assert not (folder / "no.json").exists()

try:
    compile(target="sm_90a", tune=True, kernel_table=str(table))
    raise SystemExit("expected an error")
except fp8.ArgumentError as error:
    assert "expected 'kernel-table' or 'tune', but got both" in str(error), error
