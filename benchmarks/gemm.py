"""Our matmul kernels on a GPU: checked against f64, and timed beside cuBLASLt
(through PyTorch, and the best of its eight proposals), Triton and bf16.

Made for a machine that has a GPU and PyTorch and nothing of this project but
this folder and the kernels that gemm_kernels.py made. Every contender of a
shape is a CUDA graph of launches that rotate among buffers that together exceed
the L2 cache; the graphs are replayed in turn and the median of each is kept.

usage: gemm.py --kernels DIR [--out DIR] [--check] [--perturb] [--time]
               [--determinism] [--sanitize] [--every-config] [--quick]
               [--sample SEED,COUNT [--only-sample]]
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

import torch

from gemm_shapes import DECODE_SHAPES, SHAPES, parse_sample, random_shapes
from matmul import check, compare, determinism, report, sanitize
from matmul.kernel import load
from matmul.kinds import KINDS


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True, type=Path)
    parser.add_argument("--out", default=".", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--perturb", action="store_true",
                        help="with --check: damage results, which must be noticed")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--determinism", action="store_true")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--every-config", action="store_true",
                        help="time all that were made, not only what is selected")
    parser.add_argument("--quick", action="store_true", help="few shapes")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=3600,
                        help="for --time, that no shape is begun after")
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--classes", nargs="*", default=list(compare.CLASSES))
    parser.add_argument("--shapes", nargs="*", default=[])
    parser.add_argument("--sample", type=parse_sample, metavar="SEED,COUNT",
                        help="time random shapes, too")
    parser.add_argument("--only-sample", action="store_true", help="but not the listed ones")
    parser.add_argument("--launch-each", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def machine():
    query = "--query-gpu=name,driver_version,power.limit,clocks.max.sm"
    gpu = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.strip()
    return {"command": " ".join(["python3", *sys.argv]), "gpu": gpu,
            "date": datetime.date.today().isoformat(), "torch": torch.__version__}


def times(args, kernels):
    shapes = [] if args.only_sample else [
        s for s in SHAPES + DECODE_SHAPES if not args.shapes or s[3] in args.shapes]
    if args.sample:
        shapes += random_shapes(*args.sample)
    selected = json.loads((args.kernels / "selected.json").read_text())
    return compare.run(kernels, shapes[::8] if args.quick else shapes, selected,
                       args.classes, args.rounds, args.every_config, args.seconds)


def failed(record):
    return (any(kind["failures"] for kind in record.get("checks", {}).values())
            or any(row["changed"] for row in record.get("determinism", []))
            or any(found["errors"] or found["status"]
                   for found in record.get("sanitizer", {}).values()))


def main():
    args = arguments()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")
    names = args.kinds or [n for n in KINDS if (args.kernels / f"{n}.cubin").exists()]
    kernels = load(args.kernels, names)
    if args.launch_each:
        return sanitize.launch_all(kernels)
    record = machine()
    print(record["gpu"], flush=True)
    steps = {
        "checks": (args.check, lambda: check.run(kernels, args.quick, args.perturb)),
        "determinism": (args.determinism, lambda: determinism.run(kernels)),
        "rows": (args.time, lambda: times(args, kernels)),
        "sanitizer": (args.sanitize,
                      lambda: sanitize.run(args.kernels, names, args.out)),
    }
    for name, (wanted, step) in steps.items():
        if wanted:  # What is done is kept, should a later step fail.
            record[name] = step()
            record["goals"] = report.judge(record.get("rows", []))
            (args.out / "gemm.json").write_text(json.dumps(record, indent=1))
            (args.out / "gemm.txt").write_text("\n".join(report.text(record)) + "\n")
    print("\n".join([*report.check_lines(record), *report.judgement_lines(record["goals"])]
                    if args.time else report.check_lines(record)))
    return failed(record)


if __name__ == "__main__":
    sys.exit(main())
