# RUN: env FP8_CUDA_DRIVER=%emulator_library PYTHONDONTWRITEBYTECODE=1 %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Layers of benchmarks/mlp.py with all gradients, small, under recipes that sm_90a multiplies in bf16, on the emulator and
the CPU. Beside the same in bf16 both have the same errors, which the benchmark calls correct, and hardly differ."""

import os
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks"))
from layers import MAPS
from mlp import LAYERS, is_correct

EXTENTS = {"linear": (128, 192, 256), "mlp_step": (64, 256, 128), "small": (32, 256, 128)}
RECIPES = ("mxfp8", "nvfp4")
# Sums in another order round to another bf16 now and then, and few of these to another code.
MOST_APART = 2e-2


def draw(text, seed=0):
    """Arguments by their names; weights so that results have the magnitudes of what they multiply."""
    rng, values = np.random.default_rng(seed), {}
    for shape, name in re.findall(r'%arg_\w+: tensor<([\dx]+)x\w+> \{fp8.name = "(\w+)"', text):
        extents = tuple(map(int, shape.split("x")))
        value = rng.standard_normal(extents)
        if name.startswith("w") and len(extents) == 2:
            value /= extents[1] ** 0.5
        values[name] = value.astype(ml_dtypes.bfloat16)
    return values


def run(tool, folder, text, recipe, target):
    source, inputs, outputs = (os.path.join(folder, f"layer.{end}") for end in ("mlir", "in", "out"))
    with open(source, "w") as file:
        file.write(text)
    tensors.save(inputs, draw(text))
    done = subprocess.run([tool, source, f"--recipe={recipe}", f"--target={target}", f"--inputs={inputs}",
                           f"--outputs={outputs}"], env={**os.environ, "FP8_EMULATOR_ARCH": "90"},
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{recipe} on {target}: {done.stdout}{done.stderr[-3000:]}")
    return {name: value.astype(np.float64) for name, value in tensors.load(outputs).items()}


def get_errors(values, exact):
    return {name: {"norm": np.linalg.norm(value - exact[name]) / np.linalg.norm(exact[name])}
            for name, value in values.items()}


def main():
    tool, wrong = os.path.join(sys.argv[1], "fp8-run"), []
    with tempfile.TemporaryDirectory() as folder:
        for name, extents in EXTENTS.items():
            text = MAPS + LAYERS[name].write("main", *extents)
            exact = run(tool, folder, text, "none", "cpu")  # But for roundings to bf16.
            for recipe in RECIPES:
                cpu, gpu = (run(tool, folder, text, recipe, target) for target in ("cpu", "sm_90a"))
                apart = get_errors(gpu, cpu)
                for target, values in (("cpu", cpu), ("sm_90a", gpu)):
                    errors = get_errors(values, exact)
                    print(f"{name} {recipe} {target}: " + ", ".join(
                        f"{result} {error['norm']:.3f} ({apart[result]['norm']:.4f})" for result, error in errors.items()))
                    if not is_correct(recipe, errors, {}, LAYERS[name].max_error):
                        wrong.append(f"{name} {recipe} {target}: errors")
                if not all(error["norm"] <= MOST_APART for error in apart.values()):
                    wrong.append(f"{name} {recipe}: targets differ")
    return "\n".join(wrong) or 0


if __name__ == "__main__":
    sys.exit(main())
