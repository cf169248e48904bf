"""fp8-run on the example MLP from a cold start: parse, compile, run, write.

The whole process's time, under every stateless recipe. "Cold" is a new
process; the first row of runs also finds the libraries' pages cached or not as
the machine happens to have them. Goal: less than 1.5 s.

usage: startup.py [--build-dir build] [--repeats 7]
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import measure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from fp8 import tensors  # noqa: E402
import ml_dtypes  # noqa: E402

RECIPES = ["none", "current", "rowwise", "block", "mxfp8", "nvfp4"]
GOAL_S = 1.5
SHAPES = {
    "x": (32, 768),
    "w1": (768, 3072),
    "b1": (3072,),
    "w2": (3072, 768),
    "b2": (768,),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()

    random = np.random.default_rng(1)
    rows, table = [], ["recipe      middle     worst"]
    with tempfile.TemporaryDirectory() as directory:
        inputs, outputs = Path(directory, "in"), Path(directory, "out")
        tensors.save(
            inputs,
            {
                name: (random.standard_normal(shape) * 0.05).astype(ml_dtypes.bfloat16)
                for name, shape in SHAPES.items()
            },
        )
        for recipe in RECIPES:
            command = [
                Path(args.build_dir, "bin", "fp8-run"),
                ROOT / "examples/mlp.mlir",
                f"--recipe={recipe}",
                f"--inputs={inputs}",
                f"--outputs={outputs}",
            ]
            seconds = []
            for _ in range(args.repeats):
                start = time.perf_counter()
                subprocess.run(command, check=True)
                seconds.append(time.perf_counter() - start)
            middle, worst = measure.middle_and_worst(seconds)
            met = worst < GOAL_S
            rows.append({"recipe": recipe, "middle_s": middle, "worst_s": worst, "met": met})
            table.append(
                f"{recipe:8} {middle:7.2f} s {worst:7.2f} s  {'met' if met else 'missed'}"
            )
    measure.write("startup", rows, table, goal_s=GOAL_S)


if __name__ == "__main__":
    main()
