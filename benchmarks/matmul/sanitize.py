"""compute-sanitizer on one kernel of each kind and family of configs."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from gemm_shapes import SANITIZED_SHAPES

TOOLS = ("memcheck", "racecheck", "synccheck")
KERNEL = r"fp8_matmul_\w+"


def launch_all(kernels):
    """What runs under the sanitizer."""
    import torch
    from matmul.determinism import families
    from matmul.kinds import KINDS
    from matmul.problem import Operands, Problem
    launches = 0
    for name, list_ in kernels.items():
        for kernel in families(list_):
            for shape in SANITIZED_SHAPES:
                problem = Problem(KINDS[name], Operands(KINDS[name], *shape))
                if not kernel.fits(problem) or kernel.swapped and shape[0] > 64:
                    continue
                problem.poison()
                kernel.bind(problem)()
                torch.cuda.synchronize()
                launches += 1
    print(f"{launches} launches", flush=True)


def parse(text):
    """Counts from a sanitizer's report, and those of each kernel."""
    errors = [int(n) for n in re.findall(r"ERROR SUMMARY: (\d+) error", text)]
    races = re.findall(r"RACECHECK SUMMARY: \d+ hazards? displayed "
                       r"\((\d+) errors?, (\d+) warnings?\)", text)
    launches = re.search(r"^(\d+) launches$", text, re.MULTILINE)
    reports = re.findall(r"^=+ (?:Error|Warning|Invalid|Barrier)[^\n]*(?:\n=+ {4}[^\n]*)*",
                         text, re.MULTILINE)
    named = Counter(name.group(0) for report in reports
                    if (name := re.search(KERNEL, report)))
    return {"errors": int(races[0][0]) if races else sum(errors),
            "warnings": int(races[0][1]) if races else 0,
            "launches": int(launches.group(1)) if launches else 0,
            "kernels": dict(named)}


def run(folder, kinds, out):
    """All tools at once, each in a process of its own; their logs go to `out`."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    script = Path(__file__).parent.parent / "gemm.py"
    command = [sys.executable, str(script), "--kernels", str(folder), "--launch-each",
               "--kinds", *kinds]
    started = {tool: subprocess.Popen(
        [program, "--tool", tool, "--kernel-name", "kernel_substring=fp8_matmul",
         *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}) for tool in TOOLS}
    found = {}
    for tool, process in started.items():
        text, _ = process.communicate()
        (out / f"sanitizer-{tool}.log").write_text(text)
        found[tool] = {**parse(text), "status": process.returncode}
        print(tool, found[tool], flush=True)
    return found
