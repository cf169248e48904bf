"""An FP8 matrix product on all cores beside oneDNN's f32 sgemm.

The FP8 product takes e4m3fn operands with one scale each to bf16; sgemm gets
the same values in f32. Goal: 0.6 of sgemm's speed.

usage: gemm_cpu.py [--build-dir build] [--size 2048] [--repeats N]
"""

import argparse
import os
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

import measure
import compiled

GOAL = 0.6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--runtime", help="libfp8rt.so of the build by default")
    compiled.add_arguments(parser)
    args = parser.parse_args()
    if args.fp8_opt == "fp8-opt":
        args.fp8_opt = os.path.join(args.build_dir, "bin", "fp8-opt")
    runtime = Path(args.runtime or Path(args.build_dir, "lib", "libfp8rt.so"))

    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(
            Path(__file__).with_suffix(".mlir").read_text(),
            ["--fp8-pipeline=recipe=none target=cpu to=host"],
            args,
            directory,
            [runtime.resolve()],
        )

    n = args.size
    random = np.random.default_rng(1)
    small = [random.standard_normal((n, n)).astype(ml_dtypes.float8_e4m3fn) for _ in "ab"]
    wide = [matrix.astype(np.float32) for matrix in small]
    codes = [matrix.view(np.uint8) for matrix in small]
    out = np.zeros((n, n), np.uint16)
    product = np.zeros((n, n), np.float32)
    fp8 = compiled.bind(library, "fp8_matmul", *codes, 0.5, out)
    f32 = compiled.bind(library, "f32_matmul", *wide, product)

    # A benchmark of wrong results measures nothing.
    fp8()
    expected = wide[0] @ wide[1].T * 0.25
    error = np.abs(out.view(ml_dtypes.bfloat16).astype(np.float32) - expected)
    if error.max() > 0.01 * np.abs(expected).max():
        raise SystemExit("the FP8 product is wrong")

    fp8_times, f32_times = measure.interleaved([fp8, f32], args.repeats)
    rows = []
    for name, times in (("fp8", fp8_times), ("f32 sgemm", f32_times)):
        middle, worst = measure.middle_and_worst(times)
        rows.append(
            {
                "product": name,
                "ms": round(middle * 1e3, 1),
                "worst ms": round(worst * 1e3, 1),
                "GFLOP/s": round(2 * n**3 / middle / 1e9, 1),
            }
        )
    ratio = rows[1]["ms"] / rows[0]["ms"]
    table = [f"{'product':10} {'ms':>8} {'worst':>8} {'GFLOP/s':>8}   of {n}^3"]
    table += ["{:10} {:8.1f} {:8.1f} {:8.1f}".format(*row.values()) for row in rows]
    table += [f"ratio {ratio:.2f}  {'met' if ratio >= GOAL else 'missed'}"]
    measure.write("gemm_cpu", rows, table, size=n, repeats=args.repeats, ratio=round(ratio, 2))


if __name__ == "__main__":
    main()
