"""The measurements."""

import json
import os
import shutil
import sys
import time

from .commands import run


class Skipped(Exception):
    """What keeps a benchmark from running."""


class Failed(Exception):
    """Why it failed; `data` is what it measured all the same."""

    def __init__(self, message, data=None):
        super().__init__(message)
        self.data = data


def measure_launch(root, scratch, limit):
    """The host's time for a launch, after the checks of the runtime."""
    outcome = run([root / "test/Integration/CUDA/runtime-check", "--timed"], limit)
    try:
        data = json.loads(outcome.output)
    except ValueError:
        data = None
    if outcome.code != 0 or data is None:
        raise Failed(outcome.message(limit), data)
    return data


def find_tool(name):
    """One of CUDA's, where our tools look for ptxas."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    places = [f"{home}/bin" for home in homes if home]
    places += [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    return shutil.which(name, path=os.pathsep.join(places))


def make_kernels(root, out, limit):
    """Compiles the kernels that gemm.py takes, once for all of its runs."""
    if (out / "selected.json").exists():
        return
    outcome = run([sys.executable, root / "benchmarks/gemm_kernels.py", "--build-dir", root,
                   "--jobs", len(os.sched_getaffinity(0)), "--out", out], limit)
    if outcome.code != 0:
        raise Failed(outcome.message(limit))


def require_torch(limit):
    torch = run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], limit)
    if torch.code != 0:
        raise Skipped("expected PyTorch with CUDA in this Python, but got none")


def measure_streams(root, scratch, limit):
    """Passes over memory against the CPU, bit by bit, and beside a copy."""
    end = time.monotonic() + limit
    require_torch(limit)
    results = scratch / "fusions.json"
    outcome = run([sys.executable, root / "benchmarks/fusions.py", "--build-dir", root, "--out",
                   results], end - time.monotonic())
    data = json.loads(results.read_text()) if results.exists() else None
    if outcome.code != 0:
        raise Failed(outcome.message(limit), data)
    return data


def run_gemm(name, *options):
    """A benchmark: our matmul kernels in benchmarks/gemm.py with these options."""

    def measure(root, scratch, limit):
        end = time.monotonic() + limit
        require_torch(limit)
        if not find_tool("ptxas"):
            raise Skipped("expected ptxas in CUDA_HOME, PATH or /usr/local/cuda, but got none")
        make_kernels(root, scratch / "kernels", end - time.monotonic())
        out = scratch / name
        out.mkdir()
        outcome = run([sys.executable, root / "benchmarks/gemm.py", "--kernels",
                       scratch / "kernels", "--out", out, *options],
                      end - time.monotonic())
        results = out / "gemm.json"
        data = json.loads(results.read_text()) if results.exists() else None
        if outcome.code != 0:
            raise Failed(outcome.message(limit), data)
        return data

    return measure


def measure_sanitized(root, scratch, limit):
    if not find_tool("compute-sanitizer"):
        raise Skipped("expected compute-sanitizer in CUDA_HOME, PATH or /usr/local/cuda, but got "
                      "none")
    return run_gemm("gemm-sanitize", "--sanitize")(root, scratch, limit)


# Seconds that each may take, in the order in which they run.
BENCHMARKS = {
    "launch": (measure_launch, 30),
    "streams": (measure_streams, 120),
    "gemm-check": (run_gemm("gemm-check", "--check", "--determinism"), 120),
    "gemm-time": (run_gemm("gemm-time", "--time"), 300),
    "gemm-sanitize": (measure_sanitized, 120),
}


def run_benchmark(root, name, scratch, limit):
    """A row of the report."""
    start = time.monotonic()
    row = {"name": name, "kind": "benchmark", "status": "passed"}
    try:
        row["data"] = BENCHMARKS[name][0](root, scratch, limit)
    except Skipped as reason:
        row.update(status="skipped", message=str(reason))
    except Failed as failure:
        row.update(status="failed", message=str(failure), data=failure.data)
    return {**row, "seconds": round(time.monotonic() - start, 3)}
