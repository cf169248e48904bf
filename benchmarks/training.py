"""Losses of examples/train_transformer.py: every recipe beside bf16, for several seeds.

Each run is a process of its own, and several run at a time. A run whose file is there is not
repeated, so that what was cut off goes on; with --seconds 0 none is started. Of each recipe: the loss of the last 20 steps and of
validation, the mean over the seeds, and beside bf16's of the same seeds, the mean and the seed
that is farthest off.

usage: training.py [--runs DIR] [--recipes NAMES] [--ways NAMES] [--seeds N] [--jobs N]
                   [--seconds N] [--out FILE] [-- OPTIONS OF THE SCRIPT]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "examples" / "train_transformer.py"
RECIPES = ["delayed", "current", "rowwise", "block", "mxfp8", "nvfp4"]
SHARED = ["steps", "width", "depth", "batch", "length", "device", "torch", "text"]


def run(path, recipe, way, seed, options, deadline):
    """A run's record, or None for one that failed."""
    if not path.exists():
        if time.monotonic() > deadline:
            return None
        command = [sys.executable, SCRIPT, "--recipe", recipe, "--way", way, "--seed", str(seed),
                   "--quiet", "--out", path, *options]
        try:
            result = subprocess.run(command, text=True, capture_output=True,
                                    timeout=max(1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"{recipe} by {way}, seed {seed}: no time left", flush=True)
            return None
        if result.returncode:
            print(f"{recipe} by {way}, seed {seed}: failed\n{result.stderr[-2000:]}", flush=True)
            return None
        print(result.stdout, end="", flush=True)
    return json.loads(path.read_text())


def compare(records):
    """A row of each recipe and way, in the order of the records."""
    groups = {}
    for record in records:
        key = record["recipe"], "" if record["recipe"] == "bf16" else record["way"]
        groups.setdefault(key, {})[record["seed"]] = record
    plain = groups.get(("bf16", ""), {})
    rows = []
    for (recipe, way), seeds in groups.items():
        row = {"recipe": recipe, "way": way, "seeds": len(seeds),
               "ms": 1e3 * statistics.median(record["seconds"] for record in seeds.values())}
        for name in ("last", "validation"):
            row[name] = statistics.mean(record[name] for record in seeds.values())
            ratios = [record[name] / plain[seed][name] - 1 for seed, record in seeds.items()
                      if seed in plain]
            if ratios:
                row[f"{name}_mean"] = statistics.mean(ratios)
                row[f"{name}_worst"] = max(ratios, key=abs)
        rows.append(row)
    return rows


def show(records):
    shared = {name: records[0][name] for name in SHARED}
    print(f"{shared['device']}, torch {shared['torch']}, {shared['steps']} steps of "
          f"{shared['batch']} x {shared['length']} bytes, width {shared['width']}, "
          f"{shared['depth']} layers\n")
    print(f"{'recipe':13}{'way':10}{'seeds':>6}{'loss':>9}{'/bf16':>9}{'worst':>9}"
          f"{'validation':>12}{'/bf16':>9}{'worst':>9}{'ms a step':>11}")
    for row in compare(records):
        print(f"{row['recipe']:13}{row['way']:10}{row['seeds']:>6}", end="")
        for name, width in (("last", 9), ("validation", 12)):
            print(f"{row[name]:>{width}.4f}", end="")
            for kind in ("mean", "worst"):
                ratio = row.get(f"{name}_{kind}")
                print(f"{'' if ratio is None else format(ratio, '+.2%'):>9}", end="")
        print(f"{row['ms']:>11.1f}")


def write(path, records):
    """A line for each run, without what all have in common."""
    shared = {name: records[0][name] for name in SHARED}
    for record in records:
        assert all(record[name] == value for name, value in shared.items()), record["recipe"]
    lines = [json.dumps({name: value for name, value in record.items() if name not in shared})
             for record in records]
    path.write_text(json.dumps({**shared, "runs": 0})[:-2] + "[\n" + ",\n".join(lines) + "\n]}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--ways", default="layers,backend")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    folder = args.runs or Path(tempfile.mkdtemp(prefix="training-"))
    folder.mkdir(parents=True, exist_ok=True)
    runs = [("bf16", "layers"), *((recipe, way) for way in args.ways.split(",")
                                  for recipe in args.recipes.split(","))]
    deadline = time.monotonic() + args.seconds
    with ThreadPoolExecutor(args.jobs) as pool:
        records = list(pool.map(
            lambda entry: run(folder / f"{'_'.join(map(str, entry))}.json", *entry, args.options,
                              deadline),
            [(recipe, way, seed) for recipe, way in runs for seed in range(args.seeds)]))
    done = [record for record in records if record]
    if not done:
        return 1
    print()
    show(done)
    if args.out:
        write(args.out, done)
    return 0 if len(done) == len(records) else 1


if __name__ == "__main__":
    sys.exit(main())
