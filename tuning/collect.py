"""Times of matmul kernels on random shapes, for the fit: of each shape the candidates that
make_kernels.py made, in turn. Made for a machine that has a GPU and PyTorch and nothing of this
project but benchmarks/, tuning/, the Python package's abi and the kernels.

usage: collect.py --kernels DIR --out FILE [--source NAME] [--seconds S] [--rounds N]
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]

import measurements  # noqa: E402
from gemm import machine  # noqa: E402
from matmul.kernel import load  # noqa: E402
from matmul.kinds import KINDS  # noqa: E402
from matmul.problem import DTYPES, Operands, Problem  # noqa: E402
from matmul.timing import buffer_sets, launches_per_graph, measure  # noqa: E402


def time_shape(kind, shape, configs, kernels, rounds):
    """What the kernels of some configs take, in microseconds."""
    width = DTYPES[KINDS[kind]["a"]].itemsize
    sets = buffer_sets(*shape, width)
    problems = [Problem(KINDS[kind], Operands(KINDS[kind], *shape, seed)) for seed in range(sets)]
    contenders = {config: [kernels[config].bind(problem) for problem in problems]
                  for config in configs if kernels[config].fits(problems[0])}
    times = measure(contenders, launches_per_graph(*shape, width, sets), rounds)
    return [[*measurements.parse_config(config), round(seconds * 1e6, 3)]
            for config, seconds in times.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--source", default="new")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    candidates = json.loads((args.kernels / "candidates.json").read_text())
    kernels = {kind: {kernel.config: kernel for kernel in found}
               for kind, found in load(args.kernels, candidates).items()}
    rows, end = [], time.monotonic() + args.seconds
    # Kinds in turn, so that each has its share where time runs out.
    pairs = sorted((i, kind, text) for kind, shapes in candidates.items()
                   for i, text in enumerate(shapes))
    for i, kind, text in pairs:
        if time.monotonic() > end:
            print(f"no time was left from shape {i} of {kind} on", flush=True)
            break
        m, n, k = map(int, text.split("x"))
        found = time_shape(kind, (m, n, k), candidates[kind][text], kernels[kind], args.rounds)
        # High precision is one model for all layouts.
        layout = KINDS[kind].get("layout")
        model = "plain" if layout else measurements.MODELS[kind]
        rows.append({"m": m, "n": n, "k": k, "kind": model,
                     **({"layout": layout} if layout else {}),
                     "source": args.source, "peer": None, "configs": found})
        torch.cuda.empty_cache()
        if len(rows) % 20 == 0:
            measurements.save(args.out, rows)
            print(len(rows), kind, text, flush=True)
    measurements.save(args.out, rows)
    print(json.dumps(machine()))


if __name__ == "__main__":
    sys.exit(main())
