"""Makes the kernels that collect.py times: of random shapes those that the selection thinks of,
in its order, and how many of each shape is told. The order is that of a machine's costs; of
several machines each has its first.

usage: make_kernels.py [--build-dir build] [--machine NAME-OR-FILE]... [--first N]
                      --sample SEED,COUNT [--rows LEAST,MOST] --out DIR KIND...
"""

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]

from gemm_kernels import build, get_target  # noqa: E402
from gemm_shapes import parse_sample, random_shapes  # noqa: E402
from matmul.kinds import KINDS  # noqa: E402
from matmul.program import program  # noqa: E402


def get_candidates(spec, shapes, first, tools, machines):
    """By shape, the configs that the selection puts first by any of the machines."""
    candidates = {}
    for machine in machines:
        for shape, configs in get_order(spec, shapes, tools, get_target(machine)).items():
            candidates.setdefault(shape, []).extend(configs[:first])
    return {shape: list(dict.fromkeys(configs)) for shape, configs in candidates.items()}


def get_order(spec, shapes, tools, target):
    """By shape, all configs that the selection thinks of, in its order."""
    order = {}
    for m, n, k in shapes:
        text = subprocess.run(
            [tools / "fp8-opt", target, "--fp8-select-kernels=every-candidate"],
            input=program(spec, m, n, k), text=True, capture_output=True, check=True).stdout
        # The operation itself, which takes the first, follows those that repeat it.
        *others, chosen = re.findall(r"#fp8_sm90.gemm<[^>]*>", text) or [None]
        if chosen:
            order[f"{m}x{n}x{k}"] = list(dict.fromkeys([chosen, *others]))
    return order


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--machine", action="append", help="whose costs order the kernels, as "
                        "--machine= of the compiler has it; an H200 otherwise")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--first", type=int, default=16)
    parser.add_argument("--sample", type=parse_sample, required=True, metavar="SEED,COUNT")
    parser.add_argument("--rows", type=parse_sample, default=(1, 1 << 20), metavar="LEAST,MOST")
    parser.add_argument("kinds", nargs="+")
    args = parser.parse_args()
    tools = Path(args.build_dir) / "bin"
    machines = args.machine or [None]
    args.out.mkdir(parents=True, exist_ok=True)
    least, most = args.rows
    shapes = [shape[:3] for shape in random_shapes(*args.sample) if least <= shape[0] <= most]
    path = args.out / "candidates.json"
    candidates = json.loads(path.read_text()) if path.exists() else {}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(
            lambda kind: get_candidates(KINDS[kind], shapes, args.first, tools, machines), args.kinds)
        candidates.update(zip(args.kinds, found))
        path.write_text(json.dumps(candidates))

        def make(kind):
            configs = sorted({config for each in candidates[kind].values() for config in each})
            build(kind, {**KINDS[kind], "configs": configs}, tools, args.out,
                  target=get_target(machines[0]))
            print(kind, len(configs), flush=True)
        list(pool.map(make, args.kinds))


if __name__ == "__main__":
    sys.exit(main())
