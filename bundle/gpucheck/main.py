"""What to run, in which order, and the report."""

import argparse
import contextlib
import datetime
import fnmatch
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from . import benchmarks, tests
from .device import NoDevice, describe


def parse(doc):
    parser = argparse.ArgumentParser(
        prog="check_gpu", description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("check_gpu.json"), metavar="FILE",
                        help="where to write the report (check_gpu.json)")
    parser.add_argument("--only", action="append", metavar="PATTERN",
                        help="run what has a name like this; may be repeated")
    parser.add_argument("--limit", type=float, default=470, metavar="SECONDS",
                        help="for everything together (470)")
    parser.add_argument("--keep", type=Path, metavar="DIR",
                        help="leave there what tests and benchmarks write; a new directory")
    parser.add_argument("--list", action="store_true", help="print what there is to run")
    return parser.parse_args()


def plan(root, patterns):
    """(name, seconds it may take, function to run it), tests first."""
    steps = []
    for test in tests.discover(root):
        name = str(test.relative_to(root / "test"))
        steps.append((name, tests.LIMIT, lambda scratch, limit, test=test: tests.run_test(
            root, test, scratch, limit)))
    for name, (_, limit) in benchmarks.BENCHMARKS.items():
        steps.append((name, limit, lambda scratch, limit, name=name: benchmarks.run_benchmark(
            root, name, scratch, limit)))
    return [step for step in steps
            if not patterns or any(fnmatch.fnmatch(step[0], p) for p in patterns)]


def run_all(steps, scratch, seconds):
    """Rows of the report; what fails does not stop what follows."""
    end = time.monotonic() + seconds
    for name, limit, step in steps:
        limit = min(limit, end - time.monotonic())
        if limit > 0:
            yield step(scratch, limit)
        else:
            yield {"name": name, "status": "failed", "seconds": 0.0,
                   "message": f"no time was left of {seconds:.0f} s"}


def show(row):
    print(f"{row['status']:8s} {row['seconds']:7.1f} s  {row['name']}", flush=True)
    if row["status"] != "passed" and row.get("message"):
        print("    " + row["message"].replace("\n", "\n    "), flush=True)


def main(root, doc):
    args = parse(doc)
    steps = plan(root, args.only)
    if args.keep and args.keep.exists():
        sys.exit(f"error: expected a new directory for --keep, but {args.keep} exists")
    if args.list:
        print("\n".join(name for name, *_ in steps))
        return 0
    if not steps:
        sys.exit("error: nothing to run has a name like those of --only")
    if args.keep:
        args.keep.mkdir(parents=True)
    report = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
              "version": (root / "VERSION").read_text().strip()}
    try:
        report.update(describe(root))
    except NoDevice as reason:
        report.update(error=str(reason), rows=[])
        args.out.write_text(json.dumps(report, indent=1) + "\n")
        print(f"error: no GPU to check on: {reason}", file=sys.stderr)
        return 2
    print(f"{report['gpu']}, driver {report['driver']}, CUDA {report['cuda']}", flush=True)
    os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    rows = report["rows"] = []
    with contextlib.ExitStack() as stack:
        scratch = args.keep or Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="fp8-check-")))
        for row in run_all(steps, scratch.resolve(), args.limit):
            rows.append(row)
            show(row)
            # Whatever happens next, this is kept.
            args.out.write_text(json.dumps(report, indent=1) + "\n")
    counts = {status: sum(row["status"] == status for row in rows)
              for status in ("passed", "failed", "skipped")}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["failed"] else 0
