# RUN: env PYTHONPATH=%fp8_source/benchmarks PYTHONDONTWRITEBYTECODE=1 %python %s
"""What benchmarks take for a rounding: neighbours in the order of a type's numbers, and
nothing beyond them. Sums are compared with what f32 lets them be, and any damage that is
larger is found."""

import ml_dtypes
import numpy as np

from ordinals import compare_bits, compare_sums, compare_values, get_distances

TYPES = {"F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
         "BF16": ml_dtypes.bfloat16}


def all_values(dtype):
    """All values of a type in order, but for NaNs, as bits; of two zeros both."""
    width = np.dtype(TYPES[dtype]).itemsize
    bits = np.arange(256**width, dtype=f"u{width}")
    values = bits.view(TYPES[dtype]).astype(np.float32)
    bits, values = bits[~np.isnan(values)], values[~np.isnan(values)]
    return bits[np.argsort(values, kind="stable")]


def check_neighbours(dtype):
    bits = all_values(dtype)
    bits = bits[bits != 1 << 8 * bits.itemsize - 1]  # One zero will do.
    steps = get_distances(dtype, bits[1:], bits[:-1])
    doubled = get_distances(dtype, bits[2:], bits[:-2])
    subnormal = np.abs(bits.view(TYPES[dtype]).astype(np.float32)) <= 2.0**-126
    if dtype == "BF16":  # Below the smallest normal number all are equal.
        assert (steps[subnormal[1:] & subnormal[:-1]] == 0).all()
        assert (steps[~(subnormal[1:] & subnormal[:-1])] == 1).all()
        far = ~(subnormal[1:-1] & (subnormal[2:] | subnormal[:-2]))
    else:
        assert (steps == 1).all()
        far = np.full(len(doubled), True)
    assert (doubled[far] == 2).all()
    assert not compare_values(dtype, bits[1:], bits[:-1])
    assert compare_values(dtype, bits[2:], bits[:-2])


def check_special(dtype, zeros, nans, number):
    width = np.dtype(TYPES.get(dtype, np.float32)).itemsize
    zeros, nans = (np.array(bits, f"u{width}") for bits in (zeros, nans))
    assert not compare_values(dtype, zeros, zeros[::-1].copy())
    assert not compare_values(dtype, nans, np.roll(nans, 1))
    for nan in nans:
        for pair in ((nan, number), (number, nan)):
            ours, theirs = (np.array([bits], nans.dtype) for bits in pair)
            assert "1 of 1 are more than a rounding away" in compare_values(dtype, ours, theirs)


for dtype in TYPES:
    check_neighbours(dtype)
check_special("F8_E4M3", [0x00, 0x80], [0x7F, 0xFF], 0x7E)
check_special("F8_E5M2", [0x00, 0x80], [0x7D, 0x7E, 0x7F, 0xFD], 0x7C)
check_special("BF16", [0x0000, 0x8000], [0x7F81, 0x7FC0, 0xFFFF], 0x7F80)
check_special("F32", [0, 0x80000000], [0x7F800001, 0x7FC00000, 0xFF800001], 0x7F800000)

# An f32 is as near as its upper half.
one = np.array([1.0], np.float32).view(np.uint32)
assert not compare_values("F32", one + 0x1FFFF, one)
assert compare_values("F32", one + 0x20000, one)
assert compare_values("F32", one | 0x80000000, one)

# Exact results are so in every bit, a zero's sign too.
assert compare_bits(np.int8([0]), np.int8([-128])) == \
    "1 of 1 have other bits, the first at 0: 0x00 for 0x80"
assert compare_bits(np.zeros((2, 3), np.int8), np.zeros((3, 2), np.int8)) == \
    "expected the extents (3, 2), but got (2, 3)"

# ===----------------------------------------------------------------------===
# Sums
# ===----------------------------------------------------------------------===

generator = np.random.default_rng(1)
terms = generator.standard_normal((256, 512)).astype(ml_dtypes.bfloat16)


def sum_of(terms, order):
    """Column sums in f32, one term after the other."""
    total = np.zeros(terms.shape[1], np.float32)
    with np.errstate(invalid="ignore"):
        for row in order:
            total += terms[row].astype(np.float32)
    return total.astype(ml_dtypes.bfloat16).view(np.int16)


expected = sum_of(terms, range(256))
bits = terms.view(np.int16)
for _ in range(20):
    assert not compare_sums(sum_of(terms, generator.permutation(256)), expected, bits)
# Without one term of them, or with one twice.
assert "are other sums" in compare_sums(sum_of(terms, range(255)), expected, bits)
assert "are other sums" in compare_sums(sum_of(terms, [*range(256), 3]), expected, bits)

special = terms.copy()
special[5, 0], special[6, 1] = np.inf, np.nan
special[7, 2], special[8, 2] = np.inf, -np.inf
bits, sums = special.view(np.int16), sum_of(special, range(256))
assert not compare_sums(sum_of(special, generator.permutation(256)), sums, bits)
for column in range(3):
    changed = sums.copy()
    changed[column] = expected[column]
    assert "1 of 512 are other sums" in compare_sums(changed, sums, bits)
