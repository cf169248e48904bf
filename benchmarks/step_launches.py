"""Launches of a training step of small MLPs with a fused AdamW, counted in its compiled programs.

For each way the functions that a step calls: forward and backward of both layers, the ends of their scaling steps,
the optimizer's pass, and copies behind it. A launch takes a GPU some 2 us whatever it does, of which a step of 32 rows
through 768-3072-768 has 60 to 70. Needs no GPU.

usage: step_launches.py [--build-dir build] [--out FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from fp8.torch import moments, shard_programs, update_plan
from fp8.torch.linear_programs import Shape
from fp8.torch.update_text import CODES, Part, Rule, Target, Update, write

# Widths of an MLP, outer and inner, and its rows.
SIZES = ((768, 3072, 32), (1024, 4096, 64), (1024, 1024, 64))
# Ways: a recipe, whether weights are codes, and whether moments are.
WAYS = {"block, codes": ("block", True, False), "block": ("block", False, False), "delayed": ("delayed", False, False),
        "delayed, fp8 moments": ("delayed", False, True)}


def count(build, folder, text, recipe=None):
    """Launches of each function of a program."""
    source, report = folder / "program.mlir", folder / "report.json"
    source.write_text(text)
    command = [build / "bin" / "fp8-compile", source, "--target=sm_90a", "--emit=mlir", "--compile-to=kernels", "-o",
               folder / "out.mlir", f"--fp8-fusion-report={report}"]
    if recipe:
        command += [f"--recipe={recipe}", "--no-keep-peak"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return {function["name"]: len(function["kernels"]) for function in json.loads(report.read_text())["functions"]}


def count_step(build, folder, way, sizes):
    """The same of a step, by what calls them."""
    (recipe, are_codes, codes_moments), (outer, inner, rows) = WAYS[way], sizes
    launches = dict.fromkeys(("forward", "backward", "scales", "optimizer", "copies"), 0)
    target = Target(shard_programs.find_codes(recipe), "f32" if are_codes else "bf16", recipe == "delayed")
    parts = []
    for inputs, outputs in ((outer, inner), (inner, outer)):
        shape = Shape(rows, inputs, outputs, torch.bfloat16, True, True)
        functions = count(build, folder, shape.write(), recipe)
        launches["forward"] += functions["train"]
        # The input of the model needs no gradient.
        launches["backward"] += functions["backward" if parts else "wgrad"]
        launches["scales"] += functions.get("fp8_update_state", 0)
        for sizes_of, is_weight in (((outputs, inputs), True), ((1, outputs), False)):
            coded = codes_moments and is_weight and moments.is_worth(torch.empty(sizes_of, device="meta"))
            parts.append((Part(*sizes_of, "bf16", target if is_weight else None, CODES if are_codes and is_weight else None, coded),))
    for drawn in (False, True):
        same = [part for part in parts if drawn == (part[0].master == CODES or part[0].coded)]
        # Numbers of the step are one launch for those that have the same.
        launches["optimizer"] += len(same) > 0
        rule = Rule("adamw", (*["drawn"] * drawn, "decay"))
        for chunk in update_plan.divide(same):
            launches["optimizer"] += count(build, folder, write(Update(rule, tuple(part for part, in chunk)))[0])["update"]
    # Factors that a pass still reads are copied behind it, those of all parameters at once.
    launches["copies"] += are_codes or codes_moments
    return launches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=Path, default=Path("build"))
    parser.add_argument("--out")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for sizes in SIZES:
            for way in WAYS:
                launches = count_step(args.build_dir, Path(folder), way, sizes)
                rows.append({"sizes": sizes, "way": way, **launches})
                print(f"{f'{sizes[0]}-{sizes[1]}-{sizes[0]} x {sizes[2]}':20} {way:22}" + "".join(
                    f"{name:>10} {each}" for name, each in launches.items()) + f"{'together':>10} {sum(launches.values())}", flush=True)
    if args.out:
        Path(args.out).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
