"""Runs every benchmark of this folder, one after the other.

usage: run.py [--build-dir build]
"""

import argparse
import subprocess
import sys
from pathlib import Path

BENCHMARKS = ["casts", "fusions_cpu", "gemm_cpu", "startup", "compile_time", "compile_program",
              "compile_kernels", "compile_growth"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    args = parser.parse_args()
    folder = Path(__file__).parent
    failed = []
    for name in BENCHMARKS:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, folder / f"{name}.py", "--build-dir", args.build_dir]
        if subprocess.run(command).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
