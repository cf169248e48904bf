"""FP8 casts on one core in bytes/s, beside memcpy of the same buffers.

Bytes are those read and those written, for casts and memcpy alike; memcpy
copies the wider of the two buffers. Goal: half of memcpy's bytes/s.

usage: casts.py [--build-dir build] [--elements N] [--repeats N]
"""

import argparse
import ctypes
import os
import tempfile
from pathlib import Path

import numpy as np

import measure
import compiled

GOAL = 0.5
WIDE = ["f32", "bf16"]
SMALL = ["f8E4M3FN", "f8E5M2"]


def buffers(wide, elements):
    """Normally distributed values, their payload's place, a place to copy to."""
    values = np.random.default_rng(1).standard_normal((1, elements), np.float32)
    if wide == "bf16":
        values = (values.view(np.uint32) >> 16).astype(np.uint16)
    return values, np.zeros(values.shape, np.uint8), np.zeros_like(values)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--repeats", type=int, default=15)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    if args.fp8_opt == "fp8-opt":
        args.fp8_opt = os.path.join(args.build_dir, "bin", "fp8-opt")

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    module = Path(__file__).with_suffix(".mlir").read_text()
    passes = ["--fp8-pipeline=recipe=none target=cpu to=host"]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(module, passes, args, directory)
    for wide in WIDE:
        values, payload, target = buffers(wide, args.elements)
        cases = []
        for small in SMALL:
            cases.append((f"{wide}_to_{small}", values, payload, 16.0))
        for small in SMALL:
            cases.append((f"{small}_to_{wide}", payload, values, 0.0625))
        for name, source, result, scale in cases:
            cast = compiled.bind(library, name, source, result, scale)
            copy = lambda: ctypes.memmove(
                target.ctypes.data, values.ctypes.data, values.nbytes
            )
            cast_times, copy_times = measure.interleaved([cast, copy], args.repeats)
            rate = lambda count, seconds: round(count / seconds / 1e9, 2)
            moved, copied = source.nbytes + result.nbytes, 2 * values.nbytes
            cast_middle, cast_worst = measure.middle_and_worst(cast_times)
            copy_middle, copy_worst = measure.middle_and_worst(copy_times)
            rows.append(
                {
                    "cast": name,
                    "GB/s": rate(moved, cast_middle),
                    "worst GB/s": rate(moved, cast_worst),
                    "memcpy GB/s": rate(copied, copy_middle),
                    "worst memcpy GB/s": rate(copied, copy_worst),
                    "ratio": round(moved / cast_middle / (copied / copy_middle), 2),
                }
            )

    table = [f"{'cast':18} {'GB/s':>7} {'worst':>7} {'memcpy':>7} {'worst':>7} {'ratio':>7}"]
    for row in rows:
        cast, *numbers = row.values()
        met = "met" if row["ratio"] >= GOAL else "missed"
        table.append(f"{cast:18} " + " ".join(f"{n:7.2f}" for n in numbers) + f"  {met}")
    measure.write("casts", rows, table, elements=args.elements, repeats=args.repeats)


if __name__ == "__main__":
    main()
