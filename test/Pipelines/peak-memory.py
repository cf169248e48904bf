# RUN: %python %s %fp8_source
"""An MLP's forward and backward in FP8 has no more in memory than in bf16, less for a price,
and the passes that see to that are worth something without one: by the fusion report."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]) / "benchmarks"))
import layers  # noqa: E402

ROWS, WIDE, NARROW = 8192, 14336, 4096


def measure(source, folder, *options):
    report = Path(folder, "report.json")
    pipeline = " ".join(["target=sm_90a to=buffers", f"fusion-report={report}", *options])
    subprocess.run(["fp8-opt", source, f"--fp8-pipeline={pipeline}", "-o", "/dev/null"],
                   stderr=subprocess.DEVNULL, check=True)
    functions = json.loads(report.read_text())["functions"]
    return next(f for f in functions if f["name"] == "step")["peak_memory_bytes"]


def main():
    failures = []

    def expect(what, value, limit):
        if not value <= limit:
            failures.append(f"{what}: expected at most {limit / 1e6:.2f} MB, but got {value / 1e6:.2f}")

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "step.mlir")
        source.write_text(layers.MAPS + layers.norm_mlp_step("step", ROWS, WIDE, NARROW))
        wide = measure(source, folder, "recipe=none")
        # Six tensors of all rows are there at once, and the normed input.
        expect("none", wide, (6 * ROWS * WIDE + 2 * ROWS * NARROW) * 2)
        for recipe in ("delayed", "current", "block"):
            plain = measure(source, folder, f"recipe={recipe}", "keep-peak=false")
            kept = measure(source, folder, f"recipe={recipe}")
            saved = measure(source, folder, f"recipe={recipe}", "memory-price=100")
            expect(recipe, kept, wide)
            expect(f"{recipe} with a price", saved, kept)
            expect(f"{recipe} by default", kept, plain)
            # Each weight in one other order on top, and what of x and dy.
            copies = 3 * WIDE * NARROW + 2 * ROWS * NARROW
            expect(f"{recipe} without a price", plain, wide + 1.1 * copies)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
