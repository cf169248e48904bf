# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library %python %s sm_90a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=89 %python %s sm_89
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 %python %s sm_100a
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Attention has the bits of products on a CPU with that tensor core's sums. Exponentials are not a CPU's, so that queries are
zeros here, whose powers are 1, and numbers of keys are powers of 2, which are divided by exactly."""

import sys

import numpy as np

import fp8
from attention_programs import DTYPES, ELEMENTS, Attention

# Element, queries, keys, columns: several tiles of keys, and less than one.
CASES = [("f16", 70, 512, 64), ("f16", 130, 256, 128), ("e4m3", 70, 512, 64), ("e4m3", 130, 64, 128), ("e5m2", 40, 256, 64)]


def draw(rng, dtype, *shape):
    """Values of several binades, so that sums lose bits."""
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-3, 3, shape))).astype(dtype)


def multiply(a, b, element, **options):
    """The product in f32."""
    (m, k), n = a.shape, b.shape[1]
    element = ELEMENTS.get(element, element)
    kinds = [f"tensor<{x}x{y}x{element}>" for x, y in ((m, k), (n, k))]
    scaled = [kind.replace("tensor", "!fp8.scaled").replace(">", ", block = [*, *], scale = f32>") for kind in kinds]
    result, factor, codes = f"tensor<{m}x{n}xf32>", "tensor<1x1xf32>", element in ELEMENTS.values()
    operands, arguments, made = scaled if codes else kinds, [f"%a: {kinds[0]}", f"%b: {kinds[1]}"], ""
    if codes:
        arguments = [f"%{x}_codes: {kind}" for x, kind in zip("ab", kinds)] + [f"%factor: {factor}"]
        made = "".join(f"  %{x} = fp8.assemble %{x}_codes, %factor : {kind}, {factor} -> {to}\n"
                       for x, kind, to in zip("ab", kinds, scaled))
    program = fp8.compile(f"""
func.func @main({', '.join(arguments)}) -> {result} {{
{made}  %y = fp8.matmul %a, %b accumulate = fast : {operands[0]}, {operands[1]} -> {result}
  return %y : {result}
}}
""", "none", target="cpu", cache=False, **options)
    return np.asarray(program(a, np.ascontiguousarray(b.T), *[np.ones((1, 1), np.float32)] * codes))


def main():
    target, differ = sys.argv[1], 0
    rng = np.random.default_rng(2026)
    for element, queries, keys, columns in CASES:
        codes = element in ELEMENTS
        case = Attention(element, 1, queries, keys, 1, 1, columns, accumulate="fast" if codes else None)
        # Rounded to 16 bits few sums would differ.
        program = fp8.compile(case.program().replace("xbf16", "xf32"), target=target, cache=False)
        dtype, one = DTYPES[element], np.ones((1, 1, 1, 1), np.float32)
        q, k, v = np.zeros((queries, columns), dtype), *(draw(rng, dtype, keys, columns) for _ in range(2))
        given = [y for x in (q, k, v) for y in ((x[None, :, None], one) if codes else (x[None, :, None],))]
        found, lse = (np.asarray(x) for x in program(*given))
        shares = np.full((queries, keys), 256 if codes else 1, dtype)
        wanted, plain = (multiply(shares, v, element, **options) / (keys * shares[0, 0].astype(np.float32))
                         for options in ({"accumulate": "tensor-core", "accumulation_of": target}, {}))
        found = found.reshape(wanted.shape)
        # Sums that are 0 may have either sign.
        assert np.array_equal(found, wanted), (element, queries, keys, columns, (found != wanted).sum())
        assert np.allclose(lse, np.log(keys), rtol=1e-6), (element, queries)
        differ += (wanted != plain).sum()
    # Sums in f32 have others: bits are compared that would show.
    assert differ > 0 or target == "sm_100a", differ


if __name__ == "__main__":
    sys.exit(main())
