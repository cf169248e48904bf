# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=89 %python %s sm_89
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=120 %python %s sm_120a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 %python %s sm_100a
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Gradients of attention by mma.sync, and those of a step of queries and a block of keys on sm_100a, have the bits of products on
a CPU with that tensor core's sums. Exponentials are not a CPU's, so that queries or keys are zeros here, whose powers are 1."""

import sys

import numpy as np

import fp8
from attention_gradients import Gradients

# Queries, keys and columns: tails of tiles, and sums of several steps.
SHAPES = [(70, 90, 64), (150, 50, 128)]


def draw(rng, *shape):
    """Values of several binades, so that sums lose bits."""
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-3, 3, shape))).astype(np.float16)


def multiply(a, b, **options):
    """The product in f32."""
    (m, k), n = a.shape, b.shape[1]
    kinds = [f"tensor<{x}x{y}x{t}>" for x, y, t in ((m, k, "f16"), (k, n, "f16"), (m, n, "f32"))]
    program = fp8.compile(f"""
func.func @main(%a: {kinds[0]}, %b: {kinds[1]}) -> {kinds[2]} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {kinds[2]}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {kinds[2]}) -> {kinds[2]}
  %y = linalg.matmul ins(%a, %b : {kinds[0]}, {kinds[1]}) outs(%zeros : {kinds[2]}) -> {kinds[2]}
  return %y : {kinds[2]}
}}
""", "none", target="cpu", cache=False, **options)
    return np.asarray(program(np.ascontiguousarray(a), np.ascontiguousarray(b)))


def expect(grad, q, k, v, **options):
    g = multiply(grad, v.T, **options).astype(np.float16)
    return [multiply(x, y, **options).astype(np.float16)
            for x, y in ((g, k), (g.T, q), (np.ones_like(g).T, grad))]


def main():
    target, differ = sys.argv[1], 0
    rng = np.random.default_rng(2026)
    for queries, keys, columns in SHAPES:
        # On sm_100a steps of 128 queries begin with the last.
        queries = min(queries, 128) if target == "sm_100a" else queries
        case = Gradients("f16", 1, queries, keys, 1, 1, columns, grad="f16")
        case.scale = 1.0
        program = fp8.compile(case.program(), target=target, cache=False)
        rows = np.zeros((1, 1, queries), np.float32)
        for zeros in "q", "k":
            grad, q, k, v = (draw(rng, count, columns) for count in (queries, queries, keys, keys))
            (q if zeros == "q" else k)[:] = 0
            found = program(*(x[None, :, None] for x in (grad, q, k, v)), rows, rows)
            same = expect(grad, q, k, v, accumulate="tensor-core", accumulation_of=target)
            plain = expect(grad, q, k, v)
            for name, got, wanted, other in zip(("dq", "dk", "dv"), found, same, plain):
                got = np.asarray(got).reshape(wanted.shape)
                assert got.tobytes() == wanted.tobytes() or not (got.any() or wanted.any()), (name, zeros, queries)
                differ += (got != other).sum()
    # Sums in f32 have others: bits are compared that would show.
    assert differ > 0 or target == "sm_100a"


if __name__ == "__main__":
    sys.exit(main())
