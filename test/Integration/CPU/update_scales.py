# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares 100 steps of fp8.update_scales with a model of each compat mode, bit by bit."""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path[:0] = [
    str(Path(__file__).parent / "Inputs"),
    str(Path(__file__).parents[2] / "Runtime" / "Inputs"),
]
import compiled  # noqa: E402
from scaling_models import F32, MODELS, STEPS, amaxes, same  # noqa: E402

SLOTS = 48
FORMATS = ["f8E4M3FN" if i % 8 < 4 else "f8E5M2" for i in range(SLOTS)]
FP8_MAX = np.array([448 if f == "f8E4M3FN" else 57344 for f in FORMATS], F32)


def cases():
    number = 0
    for length, compat in itertools.product((1, 2, 3, 8, 33), MODELS):
        for algo, margin in (("max", 0), ("most_recent", -2), ("max", 4)):
            if compat != "flax" or (algo == "max" and margin == 0):
                yield compat, length, algo, margin, number % 3 == 0
                number += 1
    # A scale that becomes subnormal, or zero.
    yield "te_unfused", 2, "max", 64, True


def function(name, compat, length, algo, margin, pow2):
    """All steps in a loop; the scales after each, and the last history."""
    recipe = (
        f"#fp8.delayed<amax_history_len = {length}, amax_compute_algo = {algo}, "
        f"margin = {margin}, compat = {compat}, pow2 = {str(pow2).lower()}>"
    )
    slots = ", ".join(
        f'#fp8.slot<"s{i}" : {f}, fprop activation>' for i, f in enumerate(FORMATS)
    )
    row, history = f"tensor<{SLOTS}xf32>", f"tensor<{length}x{SLOTS}xf32>"
    log = f"tensor<{STEPS}x{SLOTS}xf32>"
    return f"""
func.func @{name}(%amaxes: {log}) -> ({log}, {history})
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant {STEPS} : index
  %scale = arith.constant dense<1.0> : {row}
  %history = arith.constant dense<0.0> : {history}
  %log = arith.constant dense<0.0> : {log}
  %results:3 = scf.for %i = %c0 to %end step %c1
      iter_args(%s = %scale, %h = %history, %l = %log) -> ({row}, {history}, {log}) {{
    %amax = tensor.extract_slice %amaxes[%i, 0] [1, {SLOTS}] [1, 1] : {log} to {row}
    %new_s, %new_h = fp8.update_scales %s, %amax, %h
        table(#fp8.state_table<{recipe}, [{slots}]>) : {row}, {history}
    %new_l = tensor.insert_slice %new_s into %l[%i, 0] [1, {SLOTS}] [1, 1] : {row} into {log}
    scf.yield %new_s, %new_h, %new_l : {row}, {history}, {log}
  }}
  return %results#2, %results#1 : {log}, {history}
}}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")

    functions = {f"case{i}": case for i, case in enumerate(cases())}
    module = "".join(function(name, *case) for name, case in functions.items())
    passes = ["--fp8-pipeline=recipe=none target=cpu to=host"]
    random = np.random.default_rng(5)
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(module, passes, args, directory, [args.runtime], "-O1")
        for name, (compat, length, algo, margin, pow2) in functions.items():
            rows = amaxes(random, SLOTS)
            scales, history = compiled.call(library, name, [rows], [(F32, 2), (F32, 2)])
            model = MODELS[compat](FP8_MAX, length, algo, margin, pow2)
            for step, row in enumerate(rows):
                model.step(row)
                if not same(scales[step], model.scale):
                    bad = np.argwhere(scales[step].view("u4") != model.scale.view("u4"))[0, 0]
                    print(f"{functions[name]}, step {step}, slot {bad}: expected scale "
                          f"{model.scale[bad]!r}, but got {scales[step][bad]!r}")
                    failures += 1
                    break
            if not same(history, model.history):
                print(f"{functions[name]}: history differs")
                failures += 1
    print(f"{len(functions)} recipes, {STEPS} steps each, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
