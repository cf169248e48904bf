"""Matmul kernels that run for long: their time, the board's power and its clock.

A large product in FP8 draws more than the board may. The clock falls until it does not, so
that what a program takes is decided by the energy of its kernels as much as by their clocks.
gemm.py times contenders in turn, all at one clock; here each runs by itself, and what counts
is its last part. Made for a machine that has a GPU and PyTorch and nothing of this project
but this folder and the kernels that gemm_kernels.py made (`gemm_kernels.py --large SEED,COUNT`).

usage: gemm_sustained.py --kernels DIR [--kinds KIND...] [--seconds S] [--rounds N]
                         [--out FILE] [--sample SEED,COUNT] [MxNxK...]
"""

import argparse
import csv
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch

from gemm import machine
from gemm_shapes import large_shapes, parse_sample
from matmul import cublaslt
from matmul.kernel import load
from matmul.kinds import KINDS
from matmul.problem import Operands, Problem
from matmul.timing import graph_of

# Which of cuBLASLt's accumulators a kind is compared with, and how many of its proposals.
FAST = {"tensor_fast": True, "row_fast": True, "tensor_promote": False, "block": False}
PROPOSALS = 4
LAUNCHES, REPLAYS = 4, 6  # In a graph, and between two looks at the clock.


class Board:
    """What nvidia-smi says of the board, 50 times a second: watts and MHz."""

    def __init__(self):
        self.samples = []
        query = "--query-gpu=power.draw.instant,clocks.sm"
        self.process = subprocess.Popen(
            ["nvidia-smi", query, "--format=csv,noheader,nounits", "-lms", "20"],
            stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                self.samples.append((time.monotonic(), *map(float, line.split(","))))
            except ValueError:  # Not supported, or an error's text.
                return

    def get_means(self, begin, end):
        """None where it does not say."""
        found = [sample[1:] for sample in self.samples if begin < sample[0] < end]
        return [sum(values) / len(found) for values in zip(*found)] or [None, None]


def sustain(graph, seconds, board):
    """The seconds of a launch in the second half, and the board's means."""
    begin, spent, launches = time.monotonic(), 0.0, 0
    while (now := time.monotonic()) < begin + seconds or not launches:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        if now > begin + seconds / 2:
            spent += start.elapsed_time(end) * 1e-3
            launches += REPLAYS * LAUNCHES
    return [spent / launches, *board.get_means(begin + seconds / 2, time.monotonic())]


def is_large(kernel):
    """Whether a config may be the best of a large product."""
    return not kernel.swapped and kernel.number["tile_m"] * kernel.number["tile_n"] >= 128 * 112


def make_contenders(kind, kernels, m, n, k):
    problems = [Problem(KINDS[kind], Operands(KINDS[kind], m, n, k, seed)) for seed in range(2)]
    launches = {kernel.config: [kernel.bind(problem) for problem in problems]
                for kernel in kernels if is_large(kernel) and kernel.fits(problems[0])}
    proposals = cublaslt.proposals(problems, FAST[kind])[:PROPOSALS]
    return {**launches, **{f"cublaslt.{i}": each for i, each in enumerate(proposals)}}


def measure(kind, kernels, shape, seconds, rounds, board):
    m, n, k = shape
    graphs = {}
    for name, launches in make_contenders(kind, kernels, m, n, k).items():
        try:
            graphs[name] = graph_of(launches, LAUNCHES)
        except Exception as error:  # A peer may not take a shape.
            print(f"  {name}: {str(error).splitlines()[0][:120]}", flush=True)
    taken = {name: [] for name in graphs}
    for round_ in range(rounds):
        for name in list(graphs)[:: -1 if round_ % 2 else 1]:
            taken[name].append(sustain(graphs[name], seconds, board))
    rows = []
    for name, values in taken.items():
        us, watts, mhz = (None if None in column else sum(column) / rounds
                          for column in zip(*values))
        rows.append({"kind": kind, "m": m, "n": n, "k": k, "config": name,
                     "microseconds": us * 1e6, "watts": watts, "mhz": mhz})
    return rows


def save(path, rows):
    """As tuning/measurements.py reads them."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(rows):
    first = rows[0]
    print(f"{first['kind']} {first['m']}x{first['n']}x{first['k']}")
    for row in sorted(rows, key=lambda row: row["microseconds"])[:6]:
        rate = 2e-6 * row["m"] * row["n"] * row["k"] / row["microseconds"]
        print(f"  {row['microseconds']:8.1f} us {rate:6.0f} TFLOP/s {row['watts'] or 0:5.0f} W "
              f"{row['mhz'] or 0:5.0f} MHz  {row['config']}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True, type=Path)
    parser.add_argument("--kinds", nargs="+", choices=FAST, default=list(FAST))
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", default="sustained.csv", type=Path)
    parser.add_argument("--sample", type=parse_sample, default=(1, 0), metavar="SEED,COUNT")
    parser.add_argument("shapes", nargs="*", metavar="MxNxK")
    args = parser.parse_args()
    kinds = [kind for kind in args.kinds if (args.kernels / f"{kind}.cubin").exists()]
    kernels, board = load(args.kernels, kinds), Board()
    shapes = [tuple(map(int, shape.split("x"))) for shape in args.shapes]
    shapes += [shape[:3] for shape in large_shapes(*args.sample)]
    print(json.dumps(machine()))
    measured = []
    for shape in shapes:
        for kind in kinds:
            rows = measure(kind, kernels[kind], shape, args.seconds, args.rounds, board)
            show(rows)
            measured += rows
            save(args.out, measured)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
