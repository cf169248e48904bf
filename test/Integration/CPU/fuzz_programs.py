# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Random programs, compiled without a recipe and with one, against numpy.

Without FP8 every element may differ by the roundings on the way to it. In FP8
numpy quantizes too (Inputs/model.py), where and how the remarks say: what is
left are values that fall on the other side of a rounding. Every contraction has
exactly one remark.

To look for more: --programs=5000 --seed=100000.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
import model  # noqa: E402
import programs  # noqa: E402

RECIPES = ["current", "rowwise", "block", "mxfp8", "nvfp4", "current,pow2=true",
           "rowwise,pow2=false", "block,pow2=false", "mxfp8,mode=floor", "mxfp8,weight_2d=true",
           "nvfp4,weight_2d=true"]
PASSES = ["--fp8-pipeline=target=cpu to=host"]
# Programs are compiled together, for the sake of time.
BATCH = 25
UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


class Case:
    def __init__(self, program, recipe):
        self.program, self.recipe = program, recipe
        self.name = f"p{program.seed}_{recipe.split(',')[0]}"

    @property
    def text(self):
        return self.program.function(self.name, self.recipe)

    def check(self, library, remarks):
        """What is wrong, in words; empty if nothing is."""
        mine = [r for r in remarks if r["function"] == self.name]
        names = {f"{self.name}.c{i}" for i in range(self.program.contractions)}
        if len(mine) != len(names) or {r["gemm"] for r in mine} != names:
            return f"expected remarks on {sorted(names)}, but got {[r['gemm'] for r in mine]}"
        by_name = {r["gemm"]: {**r, "source": self.program.element} for r in mine}
        inputs = self.program.inputs()
        run = programs.Run(self.program, self.name, self.recipe, by_name)
        results = [(model.INPUTS[v.element], len(v.dims)) for v in self.program.results]
        # The program may overwrite its arguments.
        copies = [x.copy() for x in inputs]
        got = compiled.call(library, self.name, copies, results)
        for i, (g, (expected, magnitude)) in enumerate(zip(got, run.run(inputs))):
            if g.shape != expected.shape:
                return f"result {i}: shape {g.shape}, expected {expected.shape}"
            text = self.compare(g.astype(np.float64), expected, magnitude)
            if text:
                return f"result {i}: {text}"
        return ""

    def compare(self, got, expected, magnitude):
        if not np.isfinite(expected).all():
            return ""  # overflow of f16
        elements = {v.element for v, *_ in self.program.steps} | {self.program.element}
        tolerance = 16 * max(UNIT[e] for e in elements) * magnitude + 1e-30
        if "f16" in elements:
            tolerance = tolerance + 2.0**-20
        error = abs(got - expected)
        if self.recipe == "none":
            wrong = np.argwhere(~(error <= tolerance))
            if wrong.size:
                at = tuple(wrong[0])
                return (f"{len(wrong)} of {got.size} wrong, first at {at}: {got[at]!r}, "
                        f"expected {expected[at]!r} +- {tolerance[at]:.3}")
            return ""
        allowed = 0.02 * np.linalg.norm(expected) + np.linalg.norm(tolerance)
        if not np.linalg.norm(error) <= allowed:
            return f"norm of the error {np.linalg.norm(error):.3}, allowed {allowed:.3}"
        return ""


def run_cases(cases, args):
    """How many failed. Where compilation fails, cases are compiled one by one."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "remarks.json")
        try:
            library = compiled.build(
                "".join(case.text for case in cases), [*PASSES, f"--fp8-remarks=json:{file}"],
                args, directory, [args.runtime], "-O1",
            )
        except subprocess.CalledProcessError as error:
            if len(cases) == 1:
                print(f"{cases[0].name} ({cases[0].recipe}): {error}")
                return 1
            return sum(run_cases([case], args) for case in cases)
        remarks = json.loads(file.read_text())["remarks"]
        failures = 0
        for case in cases:
            text = case.check(library, remarks)
            if text:
                print(f"{case.name} ({case.recipe}): {text}", flush=True)
                failures += 1
        return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--programs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program")
    parser.add_argument("--print", metavar="RECIPE", help="print the first program, and stop")
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")

    cases = []
    for seed in range(args.seed, args.seed + args.programs):
        program = programs.Program(seed)
        recipe = RECIPES[seed % len(RECIPES)]
        if args.print:
            print(Case(program, args.print).text)
            return 0
        cases += [Case(program, "none"), Case(program, recipe)]
    failures = sum(run_cases(cases[i : i + BATCH], args) for i in range(0, len(cases), BATCH))
    print(f"{len(cases) - failures} of {len(cases)} right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
