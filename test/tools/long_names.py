# RUN: rm -rf %t && %python %s %t
"""Programs and arguments with a name of a megabyte: errors quote the ends of it."""

import subprocess
import sys
from pathlib import Path

directory, name = Path(sys.argv[1]), "x" * 1_000_000
directory.mkdir(exist_ok=True)
undefined, unknown = directory / "undefined.mlir", directory / "unknown.mlir"
undefined.write_text(f"func.func @f() -> f32 {{\n  return %{name} : f32\n}}\n")
unknown.write_text(f'func.func @f(%x: f32) {{\n  "fp8.{name}"(%x) : (f32) -> ()\n  return\n}}\n')
short = name[:100_000]  # What the system takes as one argument.
for tool, *arguments in (["fp8-compile", undefined, "-o", directory / "out.so"],
                         ["fp8-compile", unknown, "-o", directory / "out.so"],
                         ["fp8-run", unknown],
                         ["fp8-run", f"--{short}"],
                         ["fp8-run", short],
                         ["fp8-compile", unknown, f"--emit={short}"],
                         ["fp8-state", f"/{short}"],
                         ["fp8-tune", f"--shape={short}"]):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode in (1, 2), (tool, done.returncode)
    assert "error: " in done.stderr, (tool, done.stderr[:1000])
    assert len(done.stderr) < 20_000, (tool, len(done.stderr))
