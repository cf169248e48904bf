# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Weights are quantized in the first micro-batch of a step, and only then."""

import argparse
import ctypes
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path[:0] = [
    str(Path(__file__).parent / "Inputs"),
    str(Path(__file__).parents[2] / "Runtime" / "Inputs"),
]
import compiled  # noqa: E402
import libfp8rt  # noqa: E402

F32 = np.float32
STEPS, MICROBATCHES = 4, 3
SHAPES = {"l0.x": (8, 30), "l0.w": (30, 18), "l1.x": (8, 18), "l1.w": (18, 32)}

# Shapes that are padded, a layer whose weight goes through a call, and a transposed
# use of the weight.
PROGRAM = """
func.func private @layer(%x: tensor<8x30xf32>, %w: tensor<30x18xf32> {fp8.weight},
                         %first: i1 {fp8.first_microbatch}) -> tensor<8x18xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x18xf32>
  %y = linalg.matmul {fp8.name = "mm"} ins(%x, %w : tensor<8x30xf32>, tensor<30x18xf32>)
      outs(%zero : tensor<8x18xf32>) -> tensor<8x18xf32>
  return %y : tensor<8x18xf32>
}
func.func @forward(%x: tensor<8x30xf32>, %w0: tensor<30x18xf32>, %w1: tensor<18x32xf32> {fp8.weight},
                   %first: i1 {fp8.first_microbatch}) -> tensor<8x32xf32>
    attributes {llvm.emit_c_interface} {
  %h = func.call @layer(%x, %w0, %first) {fp8.name = "l0"}
      : (tensor<8x30xf32>, tensor<30x18xf32>, i1) -> tensor<8x18xf32>
  %zero = arith.constant dense<0.0> : tensor<8x32xf32>
  %y = linalg.matmul {fp8.name = "l1"} ins(%h, %w1 : tensor<8x18xf32>, tensor<18x32xf32>)
      outs(%zero : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    random = np.random.default_rng(2)
    runtime = libfp8rt.Library(str(args.runtime))
    names = ["l0.mm.x", "l0.mm.w", "l1.x", "l1.w"]

    def create(**caches):
        slots = [{"name": n, "format": "e4m3", "cache": caches.get(n[:2] if n[-1] == "w" else "", 0)}
                 for n in names]
        return runtime.create_from({"version": 1, "slots": slots, "amax_history_len": 2})

    passes = ["--fp8-pipeline=recipe=delayed,amax_history_len=2,format=e4m3 target=cpu "
              "max-padding=1 to=host"]
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(PROGRAM, passes, args, directory, [args.runtime])
        # K is padded to 32 in both layers; the codes are of the padded or the bare weight.
        cached, plain = (create(l0=32 * 32 + 4, l1=32 * 32 + 4) for _ in range(2))

        def run(state, x, weights, first):
            y, = compiled.call(library, "forward",
                               [x.copy(), *(w.copy() for w in weights),
                                ctypes.c_bool(first), state.rows], [(F32, 2)])
            return y

        for step in range(STEPS):
            weights = [random.standard_normal(SHAPES[n]).astype(F32) for n in ("l0.w", "l1.w")]
            for batch in range(MICROBATCHES):
                x = random.standard_normal(SHAPES["l0.x"]).astype(F32)
                # Whatever is passed as a weight later in the step is not looked at.
                seen = weights if batch == 0 else [np.full_like(w, np.nan) for w in weights]
                ours = run(cached, x, seen, batch == 0)
                # The same with every micro-batch quantizing for itself.
                theirs = run(plain, x, weights, True)
                if ours.tobytes() != theirs.tobytes() or not np.isfinite(ours).all():
                    raise SystemExit(f"step {step}, micro-batch {batch}: {ours} and {theirs}")
            cached.call("update")
            plain.call("update")
            if cached.scale.tobytes() != plain.scale.tobytes():
                raise SystemExit(f"step {step}: scales {cached.scale} and {plain.scale}")
    print(f"{STEPS} steps of {MICROBATCHES} micro-batches")


if __name__ == "__main__":
    main()
