"""Checks an installed package: what it loads, and what it has."""

import subprocess
import sys
from pathlib import Path

import fp8
import programs

site = Path(sys.argv[1]).resolve()
x, w = programs.make_inputs()
for _ in range(2):  # The second time from the disk.
    program = fp8.compile(programs.LINEAR, "current", target="cpu", cache="cache")
    assert program(x, w).shape == (32, 64)
entries = list(Path("cache").iterdir())
assert len(entries) == 1, entries

loaded = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
ours = {Path(path).name for path in loaded if path.startswith(str(site / "fp8"))}
assert {"libfp8c.so", "libfp8rt.so", "libfp8tools.so", "libdnnl.so.2"} <= ours, ours
foreign = [path for path in loaded if "LLVM" in path or "MLIR" in path]
assert not foreign, foreign

package = site / "fp8"
for name in ("py.typed", "_core.pyi", "licenses/llvm-22-dev.txt"):
    assert (package / name).exists(), name
assert not (package / "abi.py").exists()
source = str(Path(__file__).parents[3]).encode()
for path in package.rglob("*"):
    # What pip compiles names where it is.
    assert path.is_dir() or path.suffix == ".pyc" or source + b"/" not in path.read_bytes(), path
header = subprocess.run(["readelf", "-d", next(package.glob("_core*.so"))], text=True,
                        capture_output=True).stdout
assert "$ORIGIN/lib" in header, header
