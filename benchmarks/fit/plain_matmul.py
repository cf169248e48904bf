"""Fits the constants of the model of matmuls in high precision to times on a
GPU. Needs NumPy and SciPy.

    plain_matmul.py                 what the constants choose on the measured shapes
    plain_matmul.py --validate      the same of shapes that a fit has not seen
    plain_matmul.py --fit           fits, and writes plain_matmul_constants.json
"""

import argparse
import collections
import json
import math
import pathlib
import random

import numpy as np
from plain_matmul_model import CONFIG, TRANSPOSED, Table, get_clocks

HERE = pathlib.Path(__file__).parent
TIMES = HERE / "plain_matmul_times.json"
CONSTANTS = HERE / "plain_matmul_constants.json"
CLOCK = 1.7e3  # A microsecond; the model's clocks are of this rate.


class Times:
    """The times of some rows: a shape, a layout, and what was measured of it."""

    def __init__(self, rows):
        self.rows = rows
        problems, configs, times, index = [], [], [], []
        for i, row in enumerate(rows):
            for config in row["configs"]:
                problems.append([row["m"], row["n"], row["k"], *TRANSPOSED[row["layout"]]])
                configs.append(config[:len(CONFIG)])
                times.append(config[-1])
                index.append(i)
        self.table, self.times = Table(problems, configs), np.array(times)
        self.index = np.array(index)
        self.best = np.full(len(rows), np.inf)
        np.minimum.at(self.best, self.index, self.times)
        self.slower = np.log(self.times / self.best[self.index])
        # What is slow is never chosen.
        self.weights = np.exp(-2 * self.slower)
        self.several = np.bincount(self.index) > 3

    def errors(self, constants):
        """Of the logarithm of each time, and their mean in each row."""
        error = np.log(get_clocks(constants, self.table) / CLOCK / self.times)
        mean = self.sums(self.weights * error) / self.sums(self.weights)
        return error, mean

    def sums(self, values):
        return np.bincount(self.index, values, len(self.rows))


def with_values(constants, names, logarithms):
    return {**constants, **{n: math.exp(v) for n, v in zip(names, logarithms)}}


def fit_times(times, constants, evaluations=60):
    """Times of a row against each other first, absolute ones a little: a choice
    needs the former, and the latter keep constants what they stand for."""
    from scipy.optimize import least_squares
    names = list(constants)
    start = np.log([constants[n] for n in names])
    scale = np.sqrt(10 / np.maximum(times.sums(times.weights), 3))[times.index] * times.weights

    def residuals(x):
        error, mean = times.errors(with_values(constants, names, x))
        return np.concatenate([(error - mean[times.index]) * scale, 0.3 * error * scale,
                               0.02 * (x - start)])
    found = least_squares(residuals, start, loss="soft_l1", f_scale=0.1, max_nfev=evaluations)
    return with_values(constants, names, found.x)


def round_values(constants):
    return {n: float(f"{v:.4g}") for n, v in constants.items()}


def choose(times, constants):
    """(row, best measured / chosen, peer / chosen) of rows with several configs."""
    error, _ = times.errors(constants)
    predicted = error + np.log(times.times)
    for i, row in enumerate(times.rows):
        if times.several[i]:
            of_row = np.flatnonzero(times.index == i)
            chosen = times.times[of_row[np.argmin(predicted[of_row])]]
            yield row, times.best[i] / chosen, row["peer"] / chosen


def report(choices):
    def add(name, values):
        mean = lambda v: math.exp(sum(map(math.log, v)) / len(v))
        best, peer = zip(*values)
        print(f"{name:24} {len(values):4}  {mean(best):6.3f} {min(best):6.3f}  "
              f"{mean(peer):6.3f} {min(peer):6.3f} {sum(p < 0.93 for p in peer):4}")
    groups = collections.defaultdict(list)
    for row, best, peer in choices:
        size = "M >= 1024" if row["m"] >= 1024 else "M <= 512"
        for key in (size, f"{size} {row['layout']}", f"{size} {row['source']}"):
            groups[key].append((best, peer))
    print(f"{'chosen':24} rows  of the best    of the peer   < 0.93 (geometric mean, worst)")
    for key in sorted(groups, key=lambda k: (k[:5], k)):
        add(key, groups[key])


def folds(rows, count=3):
    """The layouts of a shape stay together."""
    shapes = sorted({(r["m"], r["n"], r["k"]) for r in rows})
    random.Random(5).shuffle(shapes)
    fold = {shape: i % count for i, shape in enumerate(shapes)}
    for i in range(count):
        parts = [], []
        for row in rows:
            parts[fold[row["m"], row["n"], row["k"]] == i].append(row)
        yield parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--validate", action="store_true")
    args = parser.parse_args()
    rows = json.loads(TIMES.read_text())["rows"]
    constants = json.loads(CONSTANTS.read_text())
    if args.validate:
        choices = []
        for seen, unseen in folds(rows):
            seen = Times(seen)
            fitted = round_values(fit_times(seen, constants))
            choices += choose(Times(unseen), fitted)
        report(choices)
        return
    times = Times(rows)
    if args.fit:
        constants = round_values(fit_times(times, constants))
        CONSTANTS.write_text(json.dumps(constants, indent=2) + "\n")
    report(choose(times, constants))


if __name__ == "__main__":
    main()
