"""The update of delayed scaling's state on one core, beside memcpy.

A state of 10,000 slots with histories of 1,024. An update has to read a history
only when its maximum leaves. `falling` amaxes, each below all before, make that
so for every slot and step, and all 41 MB are read; `random` ones, for one slot
in a thousand. Bytes are those read and written: of `falling`, the histories
alone; of memcpy, which copies as much, both sides. Goal: `falling` at half of
memcpy's bytes/s.

usage: state_update.py [--build-dir build] [--slots N] [--history N] [--repeats N]
"""

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

import numpy as np

import measure

sys.path.insert(0, str(Path(__file__).parent.parent / "test/Runtime/Inputs"))
import libfp8rt  # noqa: E402

GOAL = 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--slots", type=int, default=10_000)
    parser.add_argument("--history", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=50)
    args = parser.parse_args()

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    library = libfp8rt.Library(os.path.join(args.build_dir, "lib", "libfp8rt.so"))
    names = [f"slot{i}" for i in range(args.slots)]
    make = lambda: library.create(names, ["e4m3"] * args.slots, args.history)
    falling, random = make(), make()
    generator = np.random.default_rng(1)

    # Histories are full before the clock runs.
    level = 2.0**100
    for _ in range(args.history):
        level *= 0.99
        falling.amax[:] = level
        falling.call("update")
        random.amax[:] = generator.random(args.slots, np.float32)
        random.call("update")

    size = args.slots * args.history * 4
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)

    def update_falling():
        falling.call("update")

    def update_random():
        random.call("update")

    def copy():
        ctypes.memmove(target.ctypes.data, source.ctypes.data, size)

    calls, seconds = (update_falling, update_random, copy), ([], [], [])
    for _ in range(args.repeats):
        level *= 0.99
        falling.amax[:] = level
        random.amax[:] = generator.random(args.slots, np.float32)
        for call, times in zip(calls, seconds):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    # A benchmark of wrong results measures nothing. The window of the last update
    # had the amax that it dropped, the one before the oldest that is left.
    dropped = falling.histories()[1] / 0.99
    if not np.allclose(falling.scale * dropped, 448):
        raise SystemExit("the scales are wrong")

    rows, table = [], [f"{'case':8} {'ms':>8} {'worst':>8} {'GB/s':>7}"]
    for name, times, moved in zip(("falling", "random", "memcpy"), seconds, (size, 0, 2 * size)):
        middle, worst = measure.middle_and_worst(times)
        row = {"case": name, "ms": round(middle * 1e3, 3), "worst ms": round(worst * 1e3, 3)}
        if moved:
            row["GB/s"] = round(moved / middle / 1e9, 2)
        rows.append(row)
        table.append(f"{name:8} {row['ms']:8.3f} {row['worst ms']:8.3f} {row.get('GB/s', ''):>7}")
    ratio = rows[0]["GB/s"] / rows[2]["GB/s"]
    table.append(f"ratio {ratio:.2f}  {'met' if ratio >= GOAL else 'missed'}")
    facts = dict(slots=args.slots, history=args.history, repeats=args.repeats)
    measure.write("state_update", rows, table, **facts, ratio=round(ratio, 2))


if __name__ == "__main__":
    main()
