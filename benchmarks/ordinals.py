"""How many values of a type lie between two of its values, and what that says of results.

A value's ordinal is its magnitude as an integer, with its sign: neighbours differ by 1,
both zeros are 0, and the infinity follows on the greatest number. f32 are looked at as
bf16, cut off, for what the amaxes and factors of 8-bit values are good for.
"""

try:
    import numpy as np
except ImportError:  # Programs are made without it.
    np = None

SIGN = {1: 0x80, 2: 0x8000}
LARGEST = {"F8_E4M3": 0x7E, "F8_E5M2": 0x7C, "BF16": 0x7F80}  # What is above is a NaN.
# The smallest normal bf16. The GPU's approximations have 0 for what is below.
SMALLEST_NORMAL = 0x0080
FAR = 1 << 20  # Between a NaN and a number.


def get_ordinals(dtype, bits):
    """The ordinals, and where there is a NaN. `bits` are unsigned."""
    if dtype == "F32":
        is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
        return get_ordinals("BF16", (bits >> 16).astype(np.uint16))[0], is_nan
    sign = SIGN[bits.dtype.itemsize]
    magnitudes = (bits & (sign - 1)).astype(np.int32)
    return np.where(bits & sign, -magnitudes, magnitudes), magnitudes > LARGEST[dtype]


def get_distances(dtype, ours, theirs):
    """Distances of values by their bits. A NaN is as far from a NaN as any number from itself."""
    (ours, our_nan), (theirs, their_nan) = (get_ordinals(dtype, bits) for bits in (ours, theirs))
    distances = np.abs(ours - theirs)
    if dtype in ("BF16", "F32"):
        tiny = np.maximum(np.abs(ours), np.abs(theirs)) <= SMALLEST_NORMAL
        distances = np.where(tiny, 0, distances)
    return np.where(our_nan | their_nan, np.where(our_nan & their_nan, 0, FAR), distances)


def as_unsigned(bits):
    return bits.view(f"u{bits.dtype.itemsize}").reshape(-1)


def report(differs, ours, theirs, what):
    """What is wrong where `differs`, in one line."""
    at = np.flatnonzero(differs)
    if not len(at):
        return ""
    digits = 2 * ours.dtype.itemsize
    return (f"{len(at)} of {len(ours)} {what}, the first at {at[0]}: "
            f"0x{ours[at[0]]:0{digits}x} for 0x{theirs[at[0]]:0{digits}x}")


def compare_bits(ours, theirs):
    """What is wrong with `ours`; both are arrays of integers."""
    if ours.shape != theirs.shape:
        return f"expected the extents {theirs.shape}, but got {ours.shape}"
    ours, theirs = as_unsigned(ours), as_unsigned(theirs)
    return report(ours != theirs, ours, theirs, "have other bits")


def compare_numbers(dtype, ours, theirs):
    """The same, for numbers of which any NaN is as good as another."""
    if ours.shape != theirs.shape:
        return f"expected the extents {theirs.shape}, but got {ours.shape}"
    ours, theirs = as_unsigned(ours), as_unsigned(theirs)
    both_nan = get_ordinals(dtype, ours)[1] & get_ordinals(dtype, theirs)[1]
    return report((ours != theirs) & ~both_nan, ours, theirs, "have other bits")


def compare_values(dtype, ours, theirs):
    """The same, for values that may be a rounding apart."""
    if ours.shape != theirs.shape:
        return f"expected the extents {theirs.shape}, but got {ours.shape}"
    ours, theirs = as_unsigned(ours), as_unsigned(theirs)
    return report(get_distances(dtype, ours, theirs) > 1, ours, theirs,
                  "are more than a rounding away")


def widen(bits):
    """The numbers that bf16 are."""
    return (as_unsigned(bits).astype(np.uint32) << 16).view(np.float32).reshape(bits.shape)


def compare_sums(ours, theirs, terms):
    """The same for sums along columns in f32, rounded to bf16, whose order is free: both are
    as far off as f32 sums of such terms, all bf16, may be."""
    if ours.shape != theirs.shape:
        return f"expected the extents {theirs.shape}, but got {ours.shape}"
    sums, others = (widen(bits).reshape(-1).astype(np.float64) for bits in (ours, theirs))
    terms = widen(terms).astype(np.float64)
    total = np.abs(np.where(np.isfinite(terms), terms, 0)).sum(axis=0)
    with np.errstate(invalid="ignore"):
        slack = 2.0**-8 * np.maximum(abs(sums), abs(others)) + 2.0**-23 * len(terms) * total
        near = abs(sums - others) <= slack
    same = (sums == others) | (np.isnan(sums) & np.isnan(others))
    # Where sums overflow on the way, the order decides.
    overflows = total >= 2.0**127
    return report(~(near & np.isfinite(slack) | same | overflows), as_unsigned(ours),
                  as_unsigned(theirs), "are other sums")
