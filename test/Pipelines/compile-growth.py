# RUN: %python %s %fp8_source cpu
# RUN: %python %s %fp8_source sm_90a
# RUN: %python %s %fp8_source sm_100a
"""Four times the program takes four times the work to compile: in depth, width, arguments,
results, functions and uses, for each target.

Work is what a process uses of its cores less that for a program of few parts, and only its
ratio for each further part counts. That is 1 of linear work, 4 of quadratic, and what doubles
with each part has no end. A ratio above the bound is asked again, since another process may have
been in the way of the caches: the least of three counts.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

source, target = sys.argv[1:]
sys.path.insert(0, str(Path(source) / "benchmarks"))
import growth_programs as programs  # noqa: E402

# Numbers of parts; the smallest has all kernels that the others have.
FEW, FACTOR, BOUND = 2, 4, 2.25
PROGRAMS = {programs.depth: ("current", 20), programs.width: ("current", 25),
            programs.idle_arguments: ("none", 1000), programs.results: ("none", 100),
            programs.calls: ("current", 20), programs.cycle: ("current", 20),
            programs.uses: ("current", 15), programs.fan_out: ("none", 400),
            # Each product is a kernel on a GPU, which takes 14 times as long as a call on a CPU.
            programs.shared_operand: ("none", 400 if target == "cpu" else 100),
            programs.convolutions: ("none", 8)}
# What the smaller program takes at least: less is noise.
LEAST = 0.1


def measure(program, count, recipe, path):
    """What compiling `count` parts takes of a core."""
    path.write_text(program(count))
    # A hang ends by itself; far from what anything takes.
    process = subprocess.Popen(
        ["fp8-compile", path, f"--recipe={recipe}", f"--target={target}", "--kernel-cache=off",
         "--kernel-format=ptx", "--emit=obj", "-o", f"{path}.o"],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{program.__name__} of {count} for {target}: expected it to compile, "
                         f"but got status {process.returncode}")
    return usage.ru_utime


def main():
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.mlir")
        for program, (recipe, count) in PROGRAMS.items():
            best, counts = {}, (FEW, count, FACTOR * count)
            for _ in range(3):
                for n in counts:
                    best[n] = min(measure(program, n, recipe, path), best.get(n, 1e9))
                few, small, large = (best[n] for n in counts)
                ratio = (large - few) / max(small - few, LEAST) * (
                    (count - FEW) / (FACTOR * count - FEW))
                if ratio < BOUND:
                    break
            print(f"{program.__name__:>16} {count:>5} {small - few:7.3f} {large - few:7.3f} "
                  f"{ratio:6.2f}")
            if ratio >= BOUND:
                failures.append(f"{program.__name__} for {target}: expected a part of "
                                f"{FACTOR * count} to take less than {BOUND} times the work of "
                                f"one of {count}, but got {ratio:.1f}")
    print(*failures, sep="\n", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
