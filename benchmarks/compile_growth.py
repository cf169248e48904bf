"""How the time to compile grows with the program, through every phase.

Chains of N matmuls under a recipe (`matmuls`, `depth` in bf16) and without one (`plain`), N
elementwise additions, N layers of BERT's encoder, of a Llama and of a transformer's training step,
the first N stages of EfficientNet-B0, and the programs of growth_programs.py, for each target: to
a shared object with PTX (`program`), and of some as far as the llvm dialect (`host`). The time is
what the process uses of its cores in user mode, so that what else the machine does counts little:
the best of a few, or one where that takes long. `growth` is the largest ratio of the time for each
of N, less that of a process that has nothing to do, to the same of a smaller program. Goals: a
growth of 1.3, and seconds for some. `iree` is iree-compile's time for the same program without a
recipe, where it is installed.

usage: compile_growth.py [--build-dir build] [--repeats 3] [--only matmuls,bert]
                         [--targets cpu,sm_90a,sm_100a]
"""

import argparse
import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import bert
import growth_models
import growth_programs
import measure

GOAL_GROWTH = 1.3


def matmuls(count, batch=32, width=128):
    x, w = f"tensor<{batch}x{width}xf32>", f"tensor<{width}x{width}xf32>"
    weights = "".join(f", %w{i}: {w}" for i in range(count))
    lines = [f"func.func @matmuls(%x0: {x}{weights}) -> {x} {{",
             "  %zero = arith.constant 0.0 : f32"]
    for i in range(count):
        lines += [f"  %e{i} = tensor.empty() : {x}",
                  f"  %z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {x}) -> {x}",
                  f"  %x{i + 1} = linalg.matmul ins(%x{i}, %w{i} : {x}, {w}) outs(%z{i} : {x})"
                  f" -> {x}"]
    return "\n".join([*lines, f"  return %x{count} : {x}", "}", ""])


def unequal(count):
    """Matmuls of which no two have the same extents, and all of whose tensors are
    more than two tiles: smaller ones have less code, which is no growth."""
    widths = [1088 + 8 * i for i in range(count + 1)]
    weights = "".join(f", %w{i}: tensor<{widths[i]}x{widths[i + 1]}xf32>" for i in range(count))
    last = f"tensor<32x{widths[count]}xf32>"
    lines = [f"func.func @unequal(%x0: tensor<32x{widths[0]}xf32>{weights}) -> {last} {{",
             "  %zero = arith.constant 0.0 : f32"]
    for i in range(count):
        x, y = (f"tensor<32x{widths[k]}xf32>" for k in (i, i + 1))
        w = f"tensor<{widths[i]}x{widths[i + 1]}xf32>"
        lines += [f"  %e{i} = tensor.empty() : {y}",
                  f"  %z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {y}) -> {y}",
                  f"  %x{i + 1} = linalg.matmul ins(%x{i}, %w{i} : {x}, {w}) outs(%z{i} : {y})"
                  f" -> {y}"]
    return "\n".join([*lines, f"  return %x{count} : {last}", "}", ""])


def additions(count):
    x = "tensor<64x64xf32>"
    lines = [f"func.func @additions(%x0: {x}, %y: {x}) -> {x} {{", f"  %e = tensor.empty() : {x}"]
    lines += [f"  %x{i + 1} = linalg.add ins(%x{i}, %y : {x}, {x}) outs(%e : {x}) -> {x}"
              for i in range(count)]
    return "\n".join([*lines, f"  return %x{count} : {x}", "}", ""])


# What takes longer is measured once.
LONG = 2.5

# Each with its numbers, its recipe and, for some of these, the seconds to stay below.
PROGRAMS = {
    "matmuls": (matmuls, [100, 200, 400, 1000], "current", {400: 6.0}),
    "plain": (matmuls, [200, 400, 800], "none", {}),
    "depth": (growth_programs.depth, [100, 400, 1600], "current", {400: 12.0, 1600: 48.0}),
    "unequal": (unequal, [25, 50], "current", {}),
    "additions": (additions, [1000, 8000], "none", {}),
    "width": (growth_programs.width, [100, 400], "current", {}),
    "shared_operand": (growth_programs.shared_operand, [250, 1000], "none", {}),
    "idle_arguments": (growth_programs.idle_arguments, [1000, 10000], "none", {}),
    "results": (growth_programs.results, [100, 400], "none", {}),
    "calls": (growth_programs.calls, [100, 400], "current", {}),
    "cycle": (growth_programs.cycle, [100, 400, 1000], "current", {}),
    "uses": (growth_programs.uses, [100, 400], "current", {}),
    "fan_out": (growth_programs.fan_out, [100, 400], "none", {}),
    "convolutions": (growth_programs.convolutions, [4, 16], "none", {}),
    "efficient_net": (growth_programs.efficient_net, [7], "none", {}),
    "bert": (bert.module, [3, 12, 32], "current", {12: 8.0, 32: 15.0}),
    "llama": (growth_models.llama, [2, 8, 32], "current", {}),
    "training": (growth_models.training, [3, 12], "current", {12: 30.0}),
}
# Programs of which the part until the llvm dialect is measured alone, too.
WITH_HOST = {"matmuls", "plain", "unequal", "additions", "bert"}


def user_seconds(command):
    """What a process used of its cores, with those that it waited for."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return usage.ru_utime


def commands(tools, name, source, recipe, target, directory):
    if name in WITH_HOST:
        yield "host", [tools / "fp8-opt", source,
                       f"--fp8-pipeline=recipe={recipe} target={target} to=host "
                       "kernel-format=ptx kernel-cache=off", "-o", "/dev/null"]
    yield "program", [tools / "fp8-compile", source, f"--recipe={recipe}", f"--target={target}",
                      "--kernel-cache=off", "--kernel-format=ptx", f"--name={name}",
                      "-o", f"{directory}/{name}.so"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--targets", default="cpu,sm_90a,sm_100a")
    args = parser.parse_args()
    tools = Path(args.build_dir, "bin")
    iree = shutil.which("iree-compile")
    rows, loads = [], []
    table = [f"{'target':>8} {'program':>14} {'until':>8} {'number':>7} {'time':>9} {'of each':>9}"]
    with tempfile.TemporaryDirectory() as directory:
        def best(command):
            loads.append(os.getloadavg()[0])
            seconds = user_seconds(command)
            for _ in range(1, args.repeats if seconds < LONG else 1):
                seconds = min(seconds, user_seconds(command))
            return seconds

        def write(name, text):
            path = Path(directory, f"{name}.mlir")
            path.write_text(text)
            return path

        nothing = write("nothing", "func.func @nothing() {\n  return\n}\n")
        starts = {target: {until: best(command) for until, command in
                           commands(tools, "matmuls", nothing, "none", target, directory)}
                  for target in args.targets.split(",")}
        for target, name in itertools.product(starts, args.only.split(",")):
            make, numbers, recipe, goals = PROGRAMS[name]
            each = {until: [] for until in starts[target]}
            for number in numbers:
                source = write(name, make(number))
                for until, command in commands(tools, name, source, recipe, target,
                                               directory):
                    seconds = best(command)
                    each[until].append((seconds - starts[target][until]) / number)
                    costs = each[until]
                    growth = max((b / a for i, a in enumerate(costs) for b in costs[i:]))
                    text = f"{target:>8} {name:>14} {until:>8} {number:>7} {seconds:>8.2f}s " \
                           f"{1e3 * costs[-1]:>7.2f}ms"
                    if number in goals:
                        goal = goals[number]
                        text += f"   {'met' if seconds <= goal else 'missed'}, {goal:g} s"
                    if number == numbers[-1]:
                        met = "met" if growth <= GOAL_GROWTH else "missed"
                        text += f"   growth {growth:.2f} {met}"
                    rows.append({"target": target, "program": name, "until": until, "number": number,
                                 "seconds": seconds, "growth": growth})
                    table.append(text)
                    print(text, flush=True)
            if iree and target == "cpu":
                command = [iree, source, "--iree-hal-target-backends=llvm-cpu",
                           "--iree-llvmcpu-target-cpu=host", "-o", f"{directory}/{name}.vmfb"]
                try:
                    seconds = best(command)
                except SystemExit as error:  # IREE has operations of another LLVM.
                    print(error)
                    continue
                rows.append({"target": target, "program": name, "until": "iree", "number": numbers[-1],
                             "seconds": seconds})
                table.append(f"{target:>8} {name:>14} {'iree':>8} {numbers[-1]:>7} {seconds:>8.2f}s")
                print(table[-1], flush=True)
    # What else runs takes caches and the clock, so that user time grows with it.
    loads = [round(min(loads), 1), round(max(loads), 1)]
    table.insert(0, f"user time, with {loads[0]} to {loads[1]} processes ready to run\n")
    measure.write("compile_growth", rows, table, repeats=args.repeats, goal_growth=GOAL_GROWTH,
                  loads=loads)


if __name__ == "__main__":
    main()
