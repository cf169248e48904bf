"""What benchmarks/gemm_sustained.py measured: how far what the model chooses of the configs is
from the best of them, and from cuBLASLt's best.

At the board's limit, which all configs reach, the clock is what the energy leaves: with the
voltage, which falls with the clock, energy a product is time / MHz, but for a constant
(docs/KernelMeasurements.md, "Large products"); `--energies` says it beside the best config's. `--exponent`
fits the power of the clocks that the time goes with, by least squares with a constant for each
config and shape. Needs NumPy.

usage: fit_power.py [--energies | --exponent] [--machine FILE] FILE...
"""

import argparse
import collections
import math
import statistics
from pathlib import Path

import measurements
import numpy as np
from costs import Costs
from machine_file import MACHINE, read_constants
from measurements import MODELS


def load_sustained(*paths):
    """Rows of configs, by the model's kinds."""
    kinds = collections.defaultdict(list)
    for path in paths:
        for row in measurements.load_sustained(path):
            if row["config"].startswith("#") and row["kind"] in MODELS:
                kinds[MODELS[row["kind"]]].append(row)
    return kinds


def get_rows(rows):
    """As Costs has them."""
    return [(row["m"], row["n"], row["k"], "nt", row["config"]) for row in rows]


def get_products(row):
    return row["m"] * row["n"] * row["k"]


def get_energy(row):
    return row["microseconds"] / row["mhz"] / get_products(row)


def show_energies(kind, rows):
    energies = {}
    for row in rows:
        if row["config"].startswith("#"):
            energies.setdefault(row["config"], []).append(get_energy(row))
    best = min(map(statistics.mean, energies.values()))
    print(f"{kind}: energy of a product beside the best config's, and its deviation")
    for name, values in sorted(energies.items(), key=lambda item: statistics.mean(item[1])):
        print(f"  {statistics.mean(values) / best:6.3f} "
              f"{statistics.pstdev(values) / statistics.mean(values):6.3f}  {name}")


def show_exponent(kind, rows):
    rows = [row for row in rows if row["config"].startswith("#")]
    groups = sorted({("name", row["config"]) for row in rows}
                    | {("shape", (row["m"], row["n"], row["k"])) for row in rows})
    number = {group: i for i, group in enumerate(groups)}
    terms, times = np.zeros((len(rows), len(groups) + 1)), []
    for term, row in zip(terms, rows):
        term[number["name", row["config"]]] = 1
        term[number["shape", (row["m"], row["n"], row["k"])]] = 1
        term[-1] = math.log(row["microseconds"] * row["mhz"] / get_products(row))
        times.append(math.log(row["microseconds"] / get_products(row)))
    constants = np.linalg.lstsq(terms, np.array(times), rcond=None)[0]
    error = np.std(terms @ constants - times)
    print(f"{kind}: time goes with clocks^{constants[-1]:.2f}, error {error:.4f}, "
          f"{len(rows)} times")


def judge(kind, rows, machine):
    shapes = collections.defaultdict(list)
    for row in rows:
        shapes[row["m"], row["n"], row["k"]].append(row)
    own = [row for row in rows if row["config"].startswith("#")]
    model = MODELS[kind]
    costs = Costs(model, get_rows(own), machine)(read_constants(machine)[model])
    costs = {id(row): cost for row, cost in zip(own, costs)}
    losses, ratios = [], []
    for shape, of_shape in shapes.items():
        configs = [row for row in of_shape if row["config"].startswith("#")]
        peer = min(row["microseconds"] for row in of_shape if not row["config"].startswith("#"))
        chosen = min(configs, key=lambda row: costs[id(row)])
        losses.append(chosen["microseconds"] / min(row["microseconds"] for row in configs))
        ratios.append(peer / chosen["microseconds"])
        print(f"  {shape}: {chosen['microseconds']:.1f} us, {losses[-1]:.3f} of the best config's, "
              f"{ratios[-1]:.3f} of cuBLASLt's speed  {chosen['config']}")
    print(f"{kind}: {statistics.geometric_mean(losses):.3f} of the best config's time, "
          f"at most {max(losses):.3f}; {statistics.geometric_mean(ratios):.3f} of the speed "
          f"of cuBLASLt's best proposal, at least {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--energies", action="store_true")
    parser.add_argument("--exponent", action="store_true")
    parser.add_argument("--machine", type=Path, default=MACHINE, metavar="FILE")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    kinds = {}
    for path in args.files:
        for row in measurements.load_sustained(path):
            # The clock is not always known.
            if row["kind"] in MODELS and row["mhz"] is not None:
                kinds.setdefault(row["kind"], []).append(row)
    for kind, rows in kinds.items():
        if args.energies:
            show_energies(kind, rows)
        elif args.exponent:
            show_exponent(kind, rows)
        else:
            judge(kind, rows, args.machine)


if __name__ == "__main__":
    main()
