"""What benchmarks/gemm_sustained.py measured: how far what the model chooses of the configs is
from the best of them, and from cuBLASLt's best.

At the board's limit, which all configs reach, the clock is what the energy leaves: with the
voltage, which falls with the clock, energy a product is time / MHz, but for a constant
(docs/KernelMeasurements.md, "Large products"); `--energies` says it beside the best config's. `--exponent`
fits the power of the clocks that the time goes with, by least squares with a constant for each
config and shape. Needs NumPy.

usage: fit_power.py [--energies | --exponent] FILE...
"""

import argparse
import collections
import json
import math
import re
import statistics
from pathlib import Path

import numpy as np
from machine_file import read_constants
from matmul_model import Table, get_cost

# What kinds of benchmarks/matmul/kinds.py are to the model.
MODELS = {"tensor_fast": "fast", "tensor_promote": "promote", "block": "block"}


def load_sustained(*paths):
    """Rows of configs, by the model's kinds."""
    kinds = collections.defaultdict(list)
    for path in paths:
        for row in json.loads(path.read_text())["rows"]:
            if row["name"].startswith("#") and row["kind"] in MODELS:
                kinds[MODELS[row["kind"]]].append(row)
    return kinds


def parse_config(text):
    """The columns of SCALED_CONFIG from a #fp8_sm90.gemm."""
    def value(key, otherwise):
        found = re.search(rf"\b{key} = (\d+)", text)
        return int(found[1]) if found else otherwise
    swapped = "swap_ab = true" in text
    tile = value("tile_m", 0), value("tile_n", 0)
    rows, cols = tile[::-1] if swapped else tile
    return (rows, cols, int("ping_pong" in text), value("consumers", 2), int(swapped),
            value("cluster", 1), value("cluster_cols", 1), value("split_k", 1),
            value("stages", 0), int("overlap = true" in text), value("staging", 2))


def get_table(kind, rows):
    return Table(kind, [[row["m"], row["n"], row["k"], 0, 0] for row in rows],
                 [parse_config(row["name"]) for row in rows])


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


def judge(kind, rows):
    constants, shapes = read_constants()[MODELS[kind]], collections.defaultdict(list)
    for row in rows:
        shapes[row["m"], row["n"], row["k"]].append(row)
    losses, ratios = [], []
    for shape, of_shape in shapes.items():
        configs = [row for row in of_shape if row["name"].startswith("#")]
        peer = min(row["us"] for row in of_shape if not row["name"].startswith("#"))
        costs = get_cost(constants, get_table(MODELS[kind], configs))
        chosen = configs[np.argmin(costs)]
        losses.append(chosen["us"] / min(row["us"] for row in configs))
        ratios.append(peer / chosen["us"])
        print(f"  {shape}: {chosen['us']:.1f} us, {losses[-1]:.3f} of the best config's, "
              f"{ratios[-1]:.3f} of cuBLASLt's speed  {chosen['name']}")
    print(f"{kind}: {statistics.geometric_mean(losses):.3f} of the best config's time, "
          f"at most {max(losses):.3f}; {statistics.geometric_mean(ratios):.3f} of the speed "
          f"of cuBLASLt's best proposal, at least {min(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--energies", action="store_true")
    parser.add_argument("--exponent", action="store_true")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    kinds = {}
    for path in args.files:
        for row in json.loads(path.read_text())["rows"]:
            # The clock is not always known.
            if row["kind"] in MODELS and row["mhz"] is not None:
                kinds.setdefault(row["kind"], []).append(row)
    for kind, rows in kinds.items():
        if args.energies:
            show_energies(kind, rows)
        elif args.exponent:
            show_exponent(kind, rows)
        else:
            judge(kind, rows)


if __name__ == "__main__":
    main()
