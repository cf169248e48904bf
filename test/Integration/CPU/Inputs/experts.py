"""What tests of fp8.grouped_matmul on the CPU share: recipes, forward and gradients, and the loop over them."""

import argparse
import tempfile
from pathlib import Path

import compiled
import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
GROUPS, T, N, K = 4, 96, 160, 256

# Recipes whose scales a group's rows have as they have them elsewhere, and others; how far results may be from those in
# f32, in the norm.
EXACT = {"none": 0.004, "rowwise": 0.045, "block": 0.045, "mxfp8": 0.05}
CLOSE = {"current": 0.07, "nvfp4": 0.2}
# What the flags of a product are, and the attributes of A and of B.
ROLES = {"fprop": ("", "", " {fp8.weight}"), "dgrad": ("transpose_b", " {fp8.grad}", " {fp8.weight}"),
         "wgrad": ("transpose_a transpose_b", " {fp8.grad}", "")}


def multiply(role, a, b):
    """The product of a group in f32, of the arrays as a program has them."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    return a.T @ b if role == "wgrad" else a @ (b.T if role == "fprop" else b)


def is_close(recipe, actual, wanted):
    """Whether a result is as far from f32 as the recipe may be, and how far it is."""
    if actual.shape != wanted.shape:
        return False, np.inf
    error = np.linalg.norm(actual.astype(np.float32) - wanted) / (np.linalg.norm(wanted) or 1.0)
    return bool(error <= {**EXACT, **CLOSE}[recipe]), error


def check(text, bounds, is_right):
    """How many products are wrong, for every recipe, role and bounds of groups. `is_right` is called with these, the library
    compiled from `text` and a generator, and also says how far the result is from f32."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    failures = total = 0
    for recipe in {**EXACT, **CLOSE}:
        with tempfile.TemporaryDirectory() as directory:
            library = compiled.build(text, [f"--fp8-pipeline=recipe={recipe} target=cpu to=host"], args, directory,
                                     [args.runtime], "-O1")
        rng = np.random.default_rng(1)
        for role in ROLES:
            for of_groups in bounds:
                right, error = is_right(recipe, role, of_groups, library, rng)
                total += 1
                if not right:
                    print(f"{recipe} {role} {of_groups}: wrong, error {error:.4f}")
                    failures += 1
    print(f"{total - failures} of {total} right")
    return failures
