"""What benchmarks/gemm_sustained.py measured: the energy of each config's products, and how far
what the selection chooses is from the best config, and from cuBLASLt's best.

At the board's limit, which all configs reach, the clock is what the energy leaves: with the
voltage, which falls with the clock, energy a product is time / MHz, but for a constant
(docs/Kernels.md, "Large products"). The table of lib/Kernels/SM90/MatmulHeuristics.cpp has it
beside the best config's. `--exponent` fits the power of the clocks that the time goes with, by
least squares with a constant for each config and shape; it needs NumPy.

usage: sustained.py [--energies | --exponent] [--build-dir build] FILE...
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from gemm_kernels import select  # noqa: E402
from matmul.kinds import KINDS  # noqa: E402


def get_products(row):
    return row["m"] * row["n"] * row["k"]


def get_energy(row):
    return row["us"] / row["mhz"] / get_products(row)


def show_energies(kind, rows):
    energies = {}
    for row in rows:
        if row["name"].startswith("#"):
            energies.setdefault(row["name"], []).append(get_energy(row))
    best = min(map(statistics.mean, energies.values()))
    print(f"{kind}: energy of a product beside the best config's, and its deviation")
    for name, values in sorted(energies.items(), key=lambda item: statistics.mean(item[1])):
        print(f"  {statistics.mean(values) / best:6.3f} "
              f"{statistics.pstdev(values) / statistics.mean(values):6.3f}  {name}")


def show_exponent(kind, rows):
    import numpy as np
    rows = [row for row in rows if row["name"].startswith("#")]
    groups = sorted({("name", row["name"]) for row in rows}
                    | {("shape", (row["m"], row["n"], row["k"])) for row in rows})
    number = {group: i for i, group in enumerate(groups)}
    terms, times = np.zeros((len(rows), len(groups) + 1)), []
    for term, row in zip(terms, rows):
        term[number["name", row["name"]]] = 1
        term[number["shape", (row["m"], row["n"], row["k"])]] = 1
        term[-1] = math.log(row["us"] * row["mhz"] / get_products(row))
        times.append(math.log(row["us"] / get_products(row)))
    constants = np.linalg.lstsq(terms, np.array(times), rcond=None)[0]
    error = np.std(terms @ constants - times)
    print(f"{kind}: time goes with clocks^{constants[-1]:.2f}, error {error:.4f}, "
          f"{len(rows)} times")


def judge(kind, rows, tools):
    shapes = {}
    for row in rows:
        shapes.setdefault((row["m"], row["n"], row["k"]), {})[row["name"]] = row["us"]
    selected = select(KINDS[kind], list(shapes), tools)
    losses, ratios = [], []
    for shape, times in shapes.items():
        config = selected["x".join(map(str, shape))]
        ours = times.get(config)
        if ours is None:
            print(f"  {shape}: {config} was not measured")
            continue
        best = min(us for name, us in times.items() if name.startswith("#"))
        peer = min(us for name, us in times.items() if not name.startswith("#"))
        losses.append(ours / best)
        ratios.append(peer / ours)
        print(f"  {shape}: {ours:.1f} us, {losses[-1]:.3f} of the best config's, "
              f"{ratios[-1]:.3f} of cuBLASLt's speed  {config}")
    if losses:
        print(f"{kind}: {statistics.geometric_mean(losses):.3f} of the best config's time, "
              f"at most {max(losses):.3f}; {statistics.geometric_mean(ratios):.3f} of the speed "
              f"of cuBLASLt's best proposal, at least {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--energies", action="store_true")
    parser.add_argument("--exponent", action="store_true")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    kinds = {}
    for path in args.files:
        for row in json.loads(path.read_text())["rows"]:
            if row["mhz"] is not None:  # What nvidia-smi did not say.
                kinds.setdefault(row["kind"], []).append(row)
    for kind, rows in kinds.items():
        if args.energies:
            show_energies(kind, rows)
        elif args.exponent:
            show_exponent(kind, rows)
        else:
            judge(kind, rows, args.build_dir / "bin")


if __name__ == "__main__":
    main()
