"""Fits the constants of the model of matmuls to times on a GPU. Needs NumPy and SciPy.

    fit_matmul.py                 what the constants choose on the measured shapes
    fit_matmul.py --validate      the same of shapes that a fit has not seen
    fit_matmul.py --first N       the fastest of the first N, as --tune of the tools has it
    fit_matmul.py --fit           fits, and writes the machine's file

    fit_matmul.py --sources S     of the times of those alone
    fit_matmul.py --machine FILE --times FILE... [--sustained FILE]
                                        of another machine than h200

Sources of scaled kernels: `rest` leave out rows out of bounds where shared memory has zeros, which those
of no other do; `uniform` keep the loop over K in uniform registers; of `widths` tiles cut
blocks of 128x128, too; of `bulk`, moreover, factors come in bulk copies; `older` have none of these.

Times of all configs of a shape were taken in turn, at one clock; energies follow from what
benchmarks/gemm_sustained.py measured, where each ran by itself, and how much they count from the
choices of both.
"""

import argparse
import collections
import math
import pathlib
import random

import measurements
import numpy as np
from fit_power import get_table, load_sustained
from machine_file import KINDS, MACHINE, ROOT, read_constants, write_constants
from matmul_model import TRANSPOSED, Table, get_clocks, get_cost, get_energy, get_power_clocks

TIMES = ROOT / "tuning/data/h200/matmul.csv"
SUSTAINED = ROOT / "benchmarks/results/gemm_sustained_fit.json"
LEAVE_OUT = ("rest",)
CLOCK = 1.7e3  # A microsecond; the model's clocks are of this rate.
ENERGY = ("Power", "EnergyOfCols", "EnergyOfTile", "PingPongEnergy")
PROMOTED = ("Promotion", "ExposedPromotion")
SMALL_ERROR = 0.1
NEAR = 0.02  # How much slower than the fastest a config is that may as well be chosen.
TRANSPOSES = ("NarrowLine", "Contended")  # There are none in 8 bits.


class Times:
    """The times of some rows of one kind: a shape, a layout, and what was measured of it."""

    def __init__(self, kind, rows):
        self.kind, self.rows = kind, rows
        problems, configs, fills, times, index = [], [], [], [], []
        for i, row in enumerate(rows):
            for config in row["configs"]:
                layout = TRANSPOSED[row.get("layout", "nt")]
                problems.append([row["m"], row["n"], row["k"], *layout])
                configs.append(config[:-1])
                fills.append(row.get("source") not in LEAVE_OUT)
                times.append(config[-1])
                index.append(i)
        self.table, self.times = Table(kind, problems, configs, np.array(fills)), np.array(times)
        self.index = np.array(index)
        self.best = np.full(len(rows), np.inf)
        np.minimum.at(self.best, self.index, self.times)
        self.slower = np.log(self.times / self.best[self.index])
        # What is slow is never chosen.
        self.weights = np.exp(-2 * self.slower)
        self.several = np.bincount(self.index) > 3

    def errors(self, constants):
        """Errors of the logarithm of each time, and their mean in each row."""
        clocks = constants["Launch"] + get_clocks(constants, self.table)
        error = np.log(clocks / CLOCK / self.times)
        mean = self.sums(self.weights * error) / self.sums(self.weights)
        return error, mean

    def sums(self, values):
        return np.bincount(self.index, values, len(self.rows))


def load_times(sources=None, paths=()):
    """Rows by kind, of all sources or of some; of the H200's, or of other files."""
    rows = {kind: [] for kind in KINDS}
    for path in paths or [TIMES]:
        for row in measurements.load(path):
            if not sources or row["source"] in sources:
                rows[row["kind"]].append(row)
    return rows


def with_values(constants, names, logarithms):
    return {**constants, **{n: math.exp(v) for n, v in zip(names, logarithms)}}


def get_fitted(kind):
    """The names of the constants that times alone give."""
    left = ENERGY + (TRANSPOSES if kind != "plain" else ())
    left += PROMOTED if kind in ("plain", "fast") else ()
    return [name for name in read_constants()[kind] if name not in left]


def get_huber(errors):
    """Squares up to 0.1, and lines beyond."""
    return 2 * SMALL_ERROR ** 2 * (np.sqrt(1 + (errors / SMALL_ERROR) ** 2) - 1)


def get_loss(times, constants):
    """What choices cost, were each config of a row as likely as the model finds it near the
    fastest; and errors: of times of a row against each other, and of rows a little, which keep
    constants what they stand for."""
    error, mean = times.errors(constants)
    predicted = error + np.log(times.times)
    fastest = np.full(len(times.rows), np.inf)
    np.minimum.at(fastest, times.index, predicted)
    likely = np.exp((fastest[times.index] - predicted) / NEAR)
    chosen = times.sums(likely * times.slower) / times.sums(likely)
    weights = times.weights / times.sums(times.weights)[times.index]
    errors = times.sums(weights * get_huber(error - mean[times.index]))
    return np.sum(times.several * (chosen + 10 * errors) + 0.5 * get_huber(mean))


def fit_times(times, constants, evaluations=150):
    from scipy.optimize import minimize
    names = [name for name in get_fitted(times.kind) if constants[name] > 0]
    start = np.log([constants[name] for name in names])

    def loss(x):
        return (get_loss(times, with_values(constants, names, x))
                + 0.05 * np.sum((x - start) ** 2))
    found = minimize(loss, start, method="L-BFGS-B", options={"maxiter": evaluations,
                                                              "maxfun": 10 ** 6})
    return with_values(constants, names, found.x)


def fit_energy(kind, constants, sustained):
    """With the clock the voltage falls, so that the time is the square root of clocks
    times energy."""
    from scipy.optimize import least_squares
    rows = load_sustained(sustained)[kind]
    table, times = get_table(kind, rows), np.array([row["us"] for row in rows])
    clocks = get_clocks(constants, table)
    names = [name for name in ENERGY if name != "PingPongEnergy" or table.pingpong.any()]

    def residuals(x):
        values = {**constants, **dict(zip(names, x))}
        power = np.maximum(get_power_clocks(values, table), 1)
        return np.log((values["Launch"] + np.sqrt(clocks * power)) / CLOCK / times)
    found = least_squares(residuals, [1.0, 0.5, 0.5, 0.1][:len(names)], loss="soft_l1",
                          f_scale=0.1)
    return {**constants, **dict(zip(names, found.x))}


def get_choices(table, index, times, constants):
    """The best measured beside the chosen of each of the rows that `index` counts."""
    cost = get_cost(constants, table)
    for i in range(index[-1] + 1):
        of_row = np.flatnonzero(index == i)
        yield times[of_row].min() / times[of_row[np.argmin(cost[of_row])]]


def fit_power(kind, rows, constants, path):
    """How much of it counts. A product that runs by itself, for long, takes the board to its
    limit; in a program, and where it was timed in turn with others, less so. Both choices shall
    be good, those of a program twice as much."""
    sustained = load_sustained(path)[kind]
    shapes = [(row["m"], row["n"], row["k"]) for row in sustained]
    number = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    alone = (get_table(kind, sustained), np.array([number[shape] for shape in shapes]),
             np.array([row["us"] for row in sustained]))
    times = Times(kind, [row for row in rows
                         if row["m"] >= 1024 and row.get("source") in LEAVE_OUT])
    in_turn = times.table, times.index, times.times

    def judge(power):
        values = {**constants, "Power": power}
        means = [get_mean(list(get_choices(*each, values))) for each in (alone, in_turn)]
        return math.log(means[0]) + 2 * math.log(means[1])
    return {**constants, "Power": max(constants["Power"] * np.linspace(0.6, 1, 41), key=judge)}


def fit(kind, rows, constants, sustained=None):
    """Without the path of what ran by itself the energies stay as they are."""
    constants = fit_times(Times(kind, rows), constants)
    if sustained and kind in ("fast", "promote", "block"):
        constants = fit_power(kind, rows, fit_energy(kind, constants, sustained), sustained)
    return {n: float(f"{v:.4g}") for n, v in constants.items()}


def choose(times, constants, first=1):
    """(row, best measured / chosen, peer / chosen) of rows with several configs; chosen is the
    fastest of so many that the model puts first."""
    predicted = get_cost(constants, times.table)
    for i, row in enumerate(times.rows):
        if times.several[i]:
            of_row = np.flatnonzero(times.index == i)
            chosen = times.times[of_row[np.argsort(predicted[of_row])[:first]]].min()
            yield row, times.best[i] / chosen, (row["peer"] or math.nan) / chosen


def get_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def report(kind, choices):
    groups = collections.defaultdict(list)
    for row, best, peer in choices:
        size = f"{kind}, M {'>= 1024' if row['m'] >= 1024 else '<= 512'}"
        groups[size].append((best, peer))
        if "layout" in row:
            groups[f"{size} {row['layout']}"].append((best, peer))
    for key in sorted(groups):
        best, peer = zip(*groups[key])
        peer = [p for p in peer if not math.isnan(p)] or [math.nan]
        print(f"{key:24} {len(best):4}  {get_mean(best):6.3f} {min(best):6.3f}  "
              f"{get_mean(peer):6.3f} {min(peer):6.3f} {sum(p < 0.93 for p in peer):4}")


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
    parser.add_argument("--first", type=int, default=1, metavar="N")
    parser.add_argument("--sources", nargs="*", metavar="S")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--machine", type=pathlib.Path, default=MACHINE, metavar="FILE")
    parser.add_argument("--times", type=pathlib.Path, nargs="*", metavar="FILE")
    parser.add_argument("--sustained", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    sustained = args.sustained or (SUSTAINED if args.machine == MACHINE else None)
    rows, constants = load_times(args.sources, args.times), read_constants(args.machine)
    print(f"{'chosen':24} rows  of the best    of the peer   < 0.93 (geometric mean, worst)")
    for kind in args.kinds:
        if not rows[kind]:
            continue
        if args.validate:
            choices = []
            for seen, unseen in folds(rows[kind]):
                fitted = fit_times(Times(kind, seen), constants[kind])
                choices += choose(Times(kind, unseen), fitted, args.first)
            report(kind, choices)
            continue
        if args.fit:
            constants[kind] = fit(kind, rows[kind], constants[kind], sustained)
        report(kind, choose(Times(kind, rows[kind]), constants[kind], args.first))
    if args.fit:
        # What both operands' factors cost in energy is not measured: as one's.
        constants["both"].update({name: constants["block"][name] for name in ENERGY})
        write_constants(constants, args.machine)


if __name__ == "__main__":
    main()
