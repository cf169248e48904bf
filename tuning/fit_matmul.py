"""Fits the constants of the model of matmuls to times on a GPU. Needs NumPy and SciPy.

    fit_matmul.py                 what the constants choose on the measured shapes
    fit_matmul.py --validate      the same of shapes that a fit has not seen
    fit_matmul.py --first N       the fastest of the first N, as --tune of the tools has it
    fit_matmul.py --fit           fits, and writes the machine's file
    fit_matmul.py --again FILE    what is chosen beside the best, without the luck of the best

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
from costs import Costs
from fit_power import get_rows, load_sustained
from machine_file import KINDS, MACHINE, ROOT, read_constants, write_constants

TIMES = ROOT / "tuning/data/h200/matmul.csv"
SUSTAINED = ROOT / "tuning/data/h200/sustained_fit.csv"
LEAVE_OUT = ("rest",)
CLOCK = 1.7e3  # A microsecond; the model's clocks are of this rate.
ENERGY = ("Power", "EnergyOfCols", "EnergyOfTile", "PingPongEnergy")
PROMOTED = ("Promotion", "ExposedPromotion")
SMALL_ERROR = 0.1
NEAR = 0.02  # How much slower than the fastest a config is that may as well be chosen.
MUCH = 1e6
ITERATIONS = 150
TRANSPOSES = ("NarrowLine", "L2Contention")  # There are none in 8 bits.


class Times:
    """The times of some rows of one kind: a shape, a layout, and what was measured of it."""

    def __init__(self, kind, rows, machine=MACHINE):
        self.kind, self.rows = kind, rows
        asked, fills, times, index = [], [], [], []
        for i, row in enumerate(rows):
            for *config, microseconds in row["configs"]:
                asked.append((row["m"], row["n"], row["k"], row.get("layout", "nt"),
                              measurements.get_config(config, row["n"])))
                fills.append(row.get("source") not in LEAVE_OUT)
                times.append(microseconds)
                index.append(i)
        self.parts = []
        for filled in set(fills):
            of_part = np.flatnonzero(np.array(fills) == filled)
            costs = Costs(kind, [asked[at] for at in of_part], machine, filled)
            self.parts.append((of_part, costs))
        self.times, self.index = np.array(times), np.array(index)
        self.best = np.full(len(rows), np.inf)
        np.minimum.at(self.best, self.index, self.times)
        self.slower = np.log(self.times / self.best[self.index])
        # What is slow is never chosen.
        self.weights = np.exp(-2 * self.slower)
        self.several = np.bincount(self.index) > 3

    def get_costs(self, constants):
        """The clocks of each."""
        costs = np.empty(len(self.times))
        for of_part, ask in self.parts:
            costs[of_part] = ask(constants)
        return costs

    def errors(self, constants):
        """Errors of the logarithm of each time, and their mean in each row."""
        clocks = self.get_costs(without_power(constants))
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


def without_power(constants):
    """Numbers of a board without bounds to its power."""
    return {**constants, "Power": 0}


def get_fitted(kind, constants):
    """The names of the constants that times alone give."""
    left = ENERGY + (TRANSPOSES if kind != "plain" else ())
    left += PROMOTED if kind in ("plain", "fast") else ()
    return [name for name in constants if name not in left]


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


def fit_times(times, constants, iterations=ITERATIONS):
    from scipy.optimize import minimize
    names = [name for name in get_fitted(times.kind, constants)
             if constants[name] > 0]
    start = np.log([constants[name] for name in names])

    def loss(x):
        return (get_loss(times, with_values(constants, names, x))
                + 0.05 * np.sum((x - start) ** 2))
    found = minimize(loss, start, method="L-BFGS-B", options={"maxiter": iterations,
                                                              "maxfun": 10 ** 6})
    return with_values(constants, names, found.x)


def fit_energy(costs, constants, rows):
    """With the clock the voltage falls, so that the time is the square root of clocks
    times energy."""
    from scipy.optimize import least_squares
    times = np.array([row["microseconds"] for row in rows])
    has_ping_pong = any("ping_pong" in row["config"] for row in rows)
    names = [name for name in ENERGY if name != "PingPongEnergy" or has_ping_pong]

    def residuals(x):
        values = {**constants, **dict(zip(names, x))}
        # All of these are bounded by energy, which so much of it is sure to say.
        values["Power"] *= MUCH
        clocks = (costs(values) - values["Launch"]) / math.sqrt(MUCH) + values["Launch"]
        return np.log(clocks / CLOCK / times)
    # Machines have no negative ones, but of columns.
    least = [-np.inf if name == "EnergyOfCols" else 0.0 for name in names]
    found = least_squares(residuals, [1.0, 0.5, 0.5, 0.1][:len(names)], loss="soft_l1",
                          f_scale=0.1, bounds=(least, np.inf))
    return {**constants, **dict(zip(names, found.x))}


def get_choices(costs, index, times, constants):
    """The best measured beside the chosen of each of the rows that `index` counts."""
    cost = costs(constants)
    for i in range(index[-1] + 1):
        of_row = np.flatnonzero(index == i)
        yield times[of_row].min() / times[of_row[np.argmin(cost[of_row])]]


def fit_power(costs, times, constants, rows):
    """How much of it counts. A product that runs by itself, for long, takes the board to its
    limit; in a program, and where it was timed in turn with others, less so. Both choices shall
    be good, those of a program twice as much."""
    shapes = [(row["m"], row["n"], row["k"]) for row in rows]
    number = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    alone = (costs, np.array([number[shape] for shape in shapes]),
             np.array([row["microseconds"] for row in rows]))
    in_turn = times.get_costs, times.index, times.times

    def judge(power):
        values = {**constants, "Power": power}
        means = [get_mean(list(get_choices(*each, values))) for each in (alone, in_turn)]
        return math.log(means[0]) + 2 * math.log(means[1])
    return {**constants, "Power": max(constants["Power"] * np.linspace(0.6, 1, 41), key=judge)}


def fit(kind, rows, constants, args, sustained=None):
    """Without the path of what ran by itself the energies stay as they are."""
    machine = args.machine
    constants = fit_times(Times(kind, rows, machine), constants, args.iterations)
    alone = load_sustained(sustained)[kind] if sustained else []
    if alone:
        costs = Costs(kind, get_rows(alone), machine)
        constants = fit_energy(costs, constants, alone)
        large = [row for row in rows if row["m"] >= 1024 and row.get("source") in LEAVE_OUT]
        constants = fit_power(costs, Times(kind, large, machine), constants, alone)
    return {n: float(f"{v:.4g}") for n, v in constants.items()}


def choose(times, constants, first=1):
    """(row, best measured / chosen, peer / chosen) of rows with several configs; chosen is the
    fastest of so many that the model puts first."""
    predicted = times.get_costs(constants)
    for i, row in enumerate(times.rows):
        if times.several[i]:
            of_row = np.flatnonzero(times.index == i)
            chosen = times.times[of_row[np.argsort(predicted[of_row])[:first]]].min()
            yield row, times.best[i] / chosen, (row["peer"] or math.nan) / chosen


def choose_again(times, again, constants):
    """As `choose`, of kernels that were timed twice: the best by either times is judged by the
    others, since the best of many is best by luck, too. And the errors of single times: their
    differences' share in logarithms."""
    def get_key(row):
        return row["m"], row["n"], row["k"], row.get("layout")
    others = {get_key(row): {tuple(config): time for *config, time in row["configs"]}
              for row in again}
    predicted = times.get_costs(constants)
    choices, differences = [], []
    for i, row in enumerate(times.rows):
        of_row = np.flatnonzero(times.index == i)
        found = others.get(get_key(row), {})
        pairs = [(time, found[tuple(config)], predicted[at])
                 for (*config, time), at in zip(row["configs"], of_row) if tuple(config) in found]
        if len(pairs) <= 3:
            continue
        first, second, costs = np.array(pairs).T
        chosen = np.argmin(costs)
        ratios = (second[np.argmin(first)] / second[chosen],
                  first[np.argmin(second)] / first[chosen])
        choices.append((row, get_mean(ratios), math.nan))
        change = np.log(second / first)
        differences.append(change - np.mean(change))
    error = np.std(np.concatenate(differences)) / math.sqrt(2) if differences else math.nan
    return choices, error


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
    parser.add_argument("--iterations", type=int, default=ITERATIONS, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="N")
    parser.add_argument("--sources", nargs="*", metavar="S")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--machine", type=pathlib.Path, default=MACHINE, metavar="FILE")
    parser.add_argument("--times", type=pathlib.Path, nargs="*", metavar="FILE")
    parser.add_argument("--again", type=pathlib.Path, nargs="+", metavar="FILE")
    parser.add_argument("--sustained", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    sustained = args.sustained or (SUSTAINED if args.machine.resolve() == MACHINE else None)
    rows, constants = load_times(args.sources, args.times), read_constants(args.machine)
    again = load_times(args.sources, args.again) if args.again else None
    print(f"{'chosen':24} rows  of the best    of the peer   < 0.93 (geometric mean, worst)")
    for kind in args.kinds:
        if not rows[kind]:
            continue
        if args.validate:
            choices = []
            for seen, unseen in folds(rows[kind]):
                fitted = fit_times(Times(kind, seen, args.machine), constants[kind],
                                   args.iterations)
                choices += choose(Times(kind, unseen, args.machine), fitted, args.first)
            report(kind, choices)
            continue
        if args.fit:
            constants[kind] = fit(kind, rows[kind], constants[kind], args, sustained)
        times = Times(kind, rows[kind], args.machine)
        if again:
            choices, error = choose_again(times, again[kind], constants[kind])
            report(kind, choices)
            print(f"{kind}, error of a time {error:.4f}")
        else:
            report(kind, choose(times, constants[kind], args.first))
    if args.fit:
        # What both operands' factors cost in energy is not measured: as one's.
        constants["both"].update({name: constants["block"][name] for name in ENERGY})
        write_constants(constants, args.machine)


if __name__ == "__main__":
    main()
