# RUN: %python %s fp8-run %fp8_source/examples/train.mlir %t
"""50 steps are 25 steps, a saved state, and 25 steps in another process.

The same bytes in every result and in the state, under every compat mode.
"""

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from fp8 import tensors

STEPS = 50
SHAPES = {"x": (64, 128), "w0": (128, 256), "w1": (256, 64), "dy": (64, 64)}
RECIPES = [
    "amax_history_len=16",
    "amax_history_len=1,compat=te_unfused",
    "amax_history_len=3,amax_compute_algo=most_recent,margin=1",
    "amax_history_len=1024,compat=te_unfused,pow2=true",
    "amax_history_len=40,compat=flax,format=e4m3",
]

tool, program, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
folder.mkdir(exist_ok=True)


def make_inputs():
    """A slice for each step; some have Inf, NaN or nothing but zeros."""
    random = np.random.default_rng(8)
    inputs = {}
    for name, shape in SHAPES.items():
        values = random.standard_normal((STEPS, *shape)).astype(np.float32)
        factors = 2.0 ** random.uniform(-8, 8, STEPS) if name in ("x", "dy") else np.full(STEPS, 0.1)
        values *= factors.astype(np.float32).reshape(STEPS, 1, 1)
        inputs[name] = values.astype(ml_dtypes.bfloat16)
    inputs["x"][7, 3, 5], inputs["x"][21, 0, 0] = np.inf, np.nan
    inputs["x"][30], inputs["dy"][33] = 0, 0
    return inputs


def run(recipe, name, inputs, *options):
    tensors.save(folder / "inputs", inputs)
    steps = len(inputs["x"])
    done = subprocess.run(
        [tool, program, f"--recipe=delayed,{recipe}", f"--steps={steps}", "--fp8-require",
         f"--inputs={folder}/inputs", f"--outputs={folder}/outputs",
         f"--state-out={folder}/{name}", *options],
        # Threads that wait for each other on a busy machine take most of the time.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or done.stdout:
        sys.exit(f"{recipe}, {name}: expected success and no output, but got:\n{done.stdout}")
    return tensors.load(folder / "outputs")


def check(recipe, inputs):
    half = STEPS // 2
    whole = run(recipe, "whole", inputs)
    first = run(recipe, "half", {name: values[:half] for name, values in inputs.items()})
    second = run(recipe, "resumed", {name: values[half:] for name, values in inputs.items()},
                 f"--state-in={folder}/half", "--state-strict")
    for name, values in whole.items():
        for step, (got, expected) in enumerate(zip([*first[name], *second[name]], values)):
            if got.tobytes() != expected.tobytes():
                sys.exit(f"{recipe}: step {step} of '{name}' differs")
    states = {name: (folder / name).read_bytes() for name in ("whole", "half", "resumed")}
    if states["whole"] != states["resumed"]:
        sys.exit(f"{recipe}: the states differ")
    # A state that made no difference would be right by accident.
    third = run(recipe, "other", {name: values[half:] for name, values in inputs.items()})
    if states["whole"] == states["half"] or third["y"].tobytes() == second["y"].tobytes():
        sys.exit(f"{recipe}: expected the state to matter")


inputs = make_inputs()
for recipe in RECIPES:
    check(recipe, inputs)
print(f"{len(RECIPES)} recipes resumed")
