"""Makes the kernels that collect.py times: of random shapes those that the selection thinks of,
in its order, and how many of each shape is told. The order is that of a machine's costs.

usage: make_kernels.py [--build-dir build] [--machine NAME-OR-FILE] [--first N]
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

from gemm_kernels import TARGET, build  # noqa: E402
from gemm_shapes import parse_sample, random_shapes  # noqa: E402
from matmul.kinds import KINDS  # noqa: E402
from matmul.program import program  # noqa: E402


def get_candidates(spec, shapes, first, tools, target):
    """By shape, the configs that the selection puts first."""
    candidates = {}
    for m, n, k in shapes:
        text = subprocess.run(
            [tools / "fp8-opt", target, "--fp8-select-kernels=every-candidate"],
            input=program(spec, m, n, k), text=True, capture_output=True, check=True).stdout
        # The operation itself, which takes the first, follows those that repeat it.
        *others, chosen = re.findall(r"#fp8_sm90.gemm<[^>]*>", text) or [None]
        if chosen:
            candidates[f"{m}x{n}x{k}"] = list(dict.fromkeys([chosen, *others]))[:first]
    return candidates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--machine", help="whose costs order the kernels, as --machine= of the "
                        "compiler has it; an H200 otherwise")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--first", type=int, default=16)
    parser.add_argument("--sample", type=parse_sample, required=True, metavar="SEED,COUNT")
    parser.add_argument("--rows", type=parse_sample, default=(1, 1 << 20), metavar="LEAST,MOST")
    parser.add_argument("kinds", nargs="+")
    args = parser.parse_args()
    tools = Path(args.build_dir) / "bin"
    target = f"{TARGET} machine={args.machine}" if args.machine else TARGET
    args.out.mkdir(parents=True, exist_ok=True)
    least, most = args.rows
    shapes = [shape[:3] for shape in random_shapes(*args.sample) if least <= shape[0] <= most]
    path = args.out / "candidates.json"
    candidates = json.loads(path.read_text()) if path.exists() else {}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(
            lambda kind: get_candidates(KINDS[kind], shapes, args.first, tools, target), args.kinds)
        candidates.update(zip(args.kinds, found))
        path.write_text(json.dumps(candidates))

        def make(kind):
            configs = sorted({config for each in candidates[kind].values() for config in each})
            build(kind, {**KINDS[kind], "configs": configs}, tools, args.out,
                  target=target)
            print(kind, len(configs), flush=True)
        list(pool.map(make, args.kinds))


if __name__ == "__main__":
    sys.exit(main())
