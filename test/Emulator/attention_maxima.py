# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=1 %python %s
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Rows that raise their maxima only where a power is too large are right, whatever keys come first, and a row's bits do not
depend on what others of its warp have seen."""

import os

import numpy as np

import fp8
from attention_programs import Attention

# With queries, keys and the turn of a tile.
CASES = [
    (Attention("e4m3", 1, 200, 700, 1, 1, 128, accumulate="fast"), (128, 160, "scored")),
    (Attention("e4m3", 1, 300, 700, 2, 1, 128, accumulate="fast", window=(None, 0), data="peaked", of_heads=True),
     (128, 192, "scored")),
    (Attention("e4m3", 1, 150, 500, 1, 1, 64, accumulate="fast", window=(100, 50), data="outliers"), (192, 128, "issued")),
    (Attention("e4m3", 2, 130, 400, 2, 1, 64, accumulate="promote", ranges="random", data="peaked", sinks=1.0),
     (128, 64, "none")),
    (Attention("e5m2", 1, 130, 400, 1, 1, 64, accumulate="fast", data="peaked", lengths=[333]), (128, 96, "issued")),
    (Attention("bf16", 1, 200, 700, 2, 1, 128, data="peaked", window=(None, 0), bottom_right=True), (128, 128, "issued")),
    (Attention("bf16", 1, 200, 500, 1, 1, 64, mask="f32", mask_of="qk", cap=20.0, data="peaked"), (192, 96, "scored")),
    (Attention("f16", 1, 130, 333, 1, 1, 96, data="outliers", layout="bhsd", starts=[40]), (64, 64, "none")),
    (Attention("e4m3", 1, 100, 320, 1, 1, 64, accumulate="fast", page=32, p_scale=16.0), (128, 64, "scored")),
]


def write_config(queries, keys, turn, polynomials=0):
    return (f"#fp8_sm90.attention<tile_q = {queries}, tile_k = {keys}, stages = 2, polynomials = {polynomials}, "
            f"turn = {turn}, maxima = overflow>")


def grow(rng, keys, columns):
    """Keys whose scores with a query of ones are larger and larger from the last to the first, as tiles come, or NaN."""
    return (np.linspace(40, -40, keys)[:, None] + rng.standard_normal((keys, columns))).astype(np.float32)


def check_rows(rng, element):
    """Every other query has scores that outgrow each tile's before; the others are as if alone."""
    are_codes = element == "e4m3"
    case = Attention(element, 1, 32, 640, 1, 1, 64, accumulate="fast" if are_codes else None)
    program = fp8.compile(case.program(write_config(64, 64, "none")), target="sm_90a", cache=False)
    arguments, values, others = case.make(rng)
    one = np.full((1, 1, 1, 1), 0.05, np.float32)
    keys = grow(rng, 640, 64)
    factor, at = (0.05, 2) if are_codes else (1.0, 1)
    alone = arguments[0].copy()
    grown = alone.copy()
    grown[0, ::2] = 1
    found = []
    for queries in (alone, grown):
        arguments[0], arguments[at] = queries, keys[None, :, None].astype(arguments[at].dtype)
        if are_codes:
            arguments[1] = arguments[3] = one
        values[0], values[1] = (arguments[i].astype(np.float64) * factor for i in (0, at))
        output, lse = (np.asarray(x).astype(np.float64) for x in program(*arguments))
        expected, wanted = case.expect(*values, others)
        assert np.linalg.norm(output - expected) <= (0.04 if are_codes else 0.01) * np.linalg.norm(expected)
        assert np.allclose(lse, wanted, rtol=1e-5, atol=0.01 if are_codes else 1e-4)
        found.append((output, lse))
    for a, b in zip(*found):
        assert np.array_equal(a.reshape(32, -1)[1::2], b.reshape(32, -1)[1::2])


def check_nan(rng):
    """A key that is NaN makes all queries NaN that see it, in whichever tile it is, and no others."""
    for element, sums in (("e4m3", "fast"), ("bf16", None)):
        case = Attention(element, 1, 70, 90, 1, 1, 64, accumulate=sums, window=(None, 0))
        program = fp8.compile(case.program(write_config(64, 32, "none", 4)), target="sm_90a", cache=False)
        for key in (0, 31, 32, 69):
            arguments, _, _ = case.make(rng)
            arguments[2 if sums else 1][0, key] = np.nan
            for result in program(*arguments):
                result = np.asarray(result).astype(np.float32).reshape(70, -1)
                assert np.isnan(result[key:]).all() and np.isfinite(result[:key]).all(), (element, key)


def main():
    rng = np.random.default_rng(43)
    for element in ("e4m3", "bf16"):
        check_rows(rng, element)
    check_nan(rng)
    for number, (case, tile) in enumerate(CASES):
        os.environ["FP8_EMULATOR_ORDER"] = ("random", "lazy", "eager")[number % 3]
        case.check("sm_90a", rng, write_config(*tile, polynomials=4 * (number % 2)))


if __name__ == "__main__":
    main()
