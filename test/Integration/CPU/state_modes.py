# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""One program with the runtime's state and with tensors as state: the same bits.

It has layers in a loop, each with its own slots, a function that is called twice,
branches and a scf.while.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path[:0] = [
    str(Path(__file__).parent / "Inputs"),
    str(Path(__file__).parents[2] / "Runtime" / "Inputs"),
]
import compiled  # noqa: E402
import libfp8rt  # noqa: E402

F32, BF16 = np.float32, ml_dtypes.bfloat16
STEPS, LENGTH = 8, 3
NAMES = [f"layers.{i}.layer.mm.{t}" for i in range(3) for t in "xw"] + [
    "first.mm.x", "first.mm.w", "second.mm.x", "second.mm.w", "big.x", "big.w",
    "tail.x", "tail.w"]

PROGRAM = """
func.func private @layer(%x: tensor<8x32xf32>, %w: tensor<32x32xf32> {fp8.weight})
    -> tensor<8x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x32xf32>
  %y = linalg.matmul {fp8.name = "mm"} ins(%x, %w : tensor<8x32xf32>, tensor<32x32xf32>)
      outs(%zero : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
func.func @train(%x: tensor<8x32xf32>, %ws: tensor<3x32x32xf32>, %n: tensor<1xi64>)
    -> tensor<8x32xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %count = tensor.extract %n[%c0] : tensor<1xi64>
  %end = arith.index_cast %count : i64 to index
  %w0 = tensor.extract_slice %ws[0, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<3x32x32xf32> to tensor<32x32xf32>
  %zero = arith.constant dense<0.0> : tensor<8x32xf32>
  %a = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %x) -> tensor<8x32xf32> {
    %w = tensor.extract_slice %ws[%i, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<3x32x32xf32> to tensor<32x32xf32>
    %next = func.call @layer(%h, %w) : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    scf.yield %next : tensor<8x32xf32>
  } {fp8.slots = "separate", fp8.name = "layers"}
  %b = func.call @layer(%a, %w0) {fp8.name = "first"} : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  %c = func.call @layer(%b, %w0) {fp8.name = "second"} : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  %is_big = arith.cmpi sgt, %end, %c1 : index
  %d = scf.if %is_big -> tensor<8x32xf32> {
    %y = linalg.matmul {fp8.name = "big"} ins(%c, %w0 : tensor<8x32xf32>, tensor<32x32xf32>)
        outs(%zero : tensor<8x32xf32>) -> tensor<8x32xf32>
    scf.yield %y : tensor<8x32xf32>
  } else {
    scf.yield %c : tensor<8x32xf32>
  }
  %e:2 = scf.while (%h = %d, %i = %c0) : (tensor<8x32xf32>, index) -> (tensor<8x32xf32>, index) {
    %more = arith.cmpi slt, %i, %end : index
    scf.condition(%more) %h, %i : tensor<8x32xf32>, index
  } do {
  ^bb0(%h: tensor<8x32xf32>, %i: index):
    %y = linalg.matmul {fp8.name = "tail"} ins(%h, %w0 : tensor<8x32xf32>, tensor<32x32xf32>)
        outs(%zero : tensor<8x32xf32>) -> tensor<8x32xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %y, %next : tensor<8x32xf32>, index
  }
  return %e#0 : tensor<8x32xf32>
}
"""


def build(args, directory, name, *options):
    recipe = f"recipe=delayed,format=e4m3,amax_history_len={LENGTH},compat={args.compat}"
    passes = [f"--fp8-pipeline={recipe} target=cpu to=host {' '.join(options)}"]
    Path(directory, name).mkdir()
    return compiled.build(PROGRAM, passes, args, Path(directory, name), [args.runtime])


def check(args, directory):
    opaque = build(args, directory, "opaque")
    tensors = build(args, directory, "tensors", "functional-state")
    slots = len(NAMES)
    state = libfp8rt.Library(str(args.runtime)).create(
        NAMES, ["e4m3"] * slots, LENGTH, compat=args.compat)
    scale = np.ones(slots, F32)
    history = np.zeros((LENGTH, slots), F32)
    random = np.random.default_rng(11)
    weights = random.standard_normal((3, 32, 32)).astype(F32) / 6
    for step in range(STEPS):
        x = random.standard_normal((8, 32)).astype(F32) * F32(2.0 ** random.integers(-8, 9))
        count = np.array([step % 4], np.int64)
        used = state.scale.copy()
        y, = compiled.call(opaque, "train", [x.copy(), weights.copy(), count, state.rows], [(F32, 2)])
        state.call("update")
        z, scale, history = compiled.call(
            tensors, "train", [x.copy(), weights.copy(), count, scale, history],
            [(F32, 2), (F32, 1), (F32, 2)])
        for what, ours, theirs in (
            ("result", z, y), ("scale", scale, state.scale),
            ("history", history, state.histories())):
            if ours.tobytes() != theirs.tobytes():
                raise SystemExit(f"{args.compat}, step {step}: {what} differs: {ours} and {theirs}")
        if step and np.array_equal(used, state.scale):
            raise SystemExit(f"{args.compat}, step {step}: expected scales to move")
    amaxes = state.histories().max(axis=0)
    if not (amaxes > 0).all():
        raise SystemExit(f"expected every slot to be used, but got {amaxes}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    for args.compat in ("te_fused", "te_unfused", "flax"):
        with tempfile.TemporaryDirectory() as directory:
            check(args, directory)
    print(f"{STEPS} steps, {len(NAMES)} slots, the same with state and with tensors")


if __name__ == "__main__":
    main()
