"""Stochastic rounding in the steps of optimizers, as lines of a linalg.generic's body.

A random number is a hash of an element's place, of its parameter's number and of the number of the step,
and so the same whenever that step is repeated, on each machine.
"""

# Odd numbers by which places, parameters and steps are told from each other.
_ROWS, _GROUPS, _COLUMNS, _NUMBER, _COUNT = 0x9E3779B1, 0x85EBCA6B, 0x9E3779B2, 0xC2B2AE35, 0x27D4EB2F
# Columns beside each other whose words are products of one.
GROUP = 8
# Shifts and factors of a hash of 32 bits whose output bits depend on all input bits (Wellons' lowbias32).
_ROUNDS = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None))
# Bits of an f32 that a bf16, or E4M3 in its range, has not.
_BF16_BITS, _E4M3_BITS = 16, 20
_EXPONENT, _SIGN = 0x7F800000, 1 << 31
# What takes E4M3's smallest normal number to that of f32.
DOWN = 2.0 ** -120
# E4M3's largest number is 1.75 * 2^8.
_LARGEST_EXPONENT, _BELOW_LARGEST = 8, 0x1FFFFF


def draw(body, row, group, column, number, count):
    """32 random bits of an element, of numbers that are integers in f32: a hash of its row and of its group of columns,
    times an odd number of its column's own. So a kernel hashes once for a group."""
    def scale(value, factor):
        return body.combine("muli", body.emit(f"arith.fptosi {value}", "f32 to i32"), factor)
    place = body.combine("addi", scale(row, _ROWS), scale(group, _GROUPS))
    seed = body.combine("addi", scale(number, _NUMBER), scale(count, _COUNT))
    word = body.combine("xori", place, seed)
    for shift, factor in _ROUNDS:
        word = body.combine("xori", word, body.combine("shrui", word, shift))
        word = word if factor is None else body.combine("muli", word, factor)
    return body.combine("muli", word, body.combine("ori", scale(column, _COLUMNS), 1))


def write_bf16(body, value, word):
    """An f32 rounded to one of the two bf16 around it, to the upper one with the probability of what is cut off. NaN
    and Inf stay."""
    bits = body.bits(value)
    # The middle of the word, whose ends others take.
    random = body.combine("andi", body.combine("shrui", word, 8), (1 << _BF16_BITS) - 1)
    exponent = body.integer(_EXPONENT)
    is_finite = body.emit(f"arith.cmpi ne, {body.emit(f'arith.andi {bits}, {exponent}', 'i32')}, {exponent}", "i32")
    moved = body.select(is_finite, body.combine("addi", bits, random), bits, "i32")
    return write_upper(body, moved)


def write_upper(body, bits):
    """The bf16 of the upper half of some bits."""
    half = body.emit(f"arith.trunci {body.combine('shrui', bits, _BF16_BITS)}", "i32 to i16")
    return body.emit(f"arith.bitcast {half}", "i16 to bf16")


def join(body, high, low):
    """The f32 of a bf16 near it and of what lies between both, as write_halves makes them."""
    upper = body.emit(f"arith.extui {body.emit(f'arith.bitcast {high}', 'bf16 to i16')}", "i16 to i32")
    lower = body.emit(f"arith.extsi {body.emit(f'arith.bitcast {low}', 'bf16 to i16')}", "i16 to i32")
    return body.unbits(body.combine("addi", body.combine("shli", upper, _BF16_BITS), lower))


def write_halves(body, value):
    """The bf16 that is nearest to an f32, of two the greater, and the distance in bits, as a bf16 of these."""
    bits = body.bits(value)
    # All bits of a NaN may be set: then the next would be a zero.
    bits = body.select(body.compare("uno", value, value), body.integer(0x7FC00000), bits, "i32")
    high = write_upper(body, body.combine("addi", bits, 1 << _BF16_BITS - 1))
    low = body.emit(f"arith.trunci {bits}", "i32 to i16")
    return high, body.emit(f"arith.bitcast {low}", "i16 to bf16")


def write_powers(body, amax):
    """The largest power of two by which an amax is no more than E4M3's largest number, and its inverse: of exponents,
    without a division. Both are normal numbers, and still by 2^-120 the first is none that is rounded."""
    exponent = body.combine("andi", body.combine("addi", body.bits(amax), _BELOW_LARGEST), _EXPONENT)
    exponent = body.combine("maxsi", exponent, _LARGEST_EXPONENT + 1 << 23)
    exponent = body.combine("minsi", exponent, 127 + 29 + _LARGEST_EXPONENT << 23)
    scale = body.combine("subi", body.integer(254 + _LARGEST_EXPONENT << 23), exponent)
    return body.unbits(scale), body.unbits(body.combine("subi", exponent, _LARGEST_EXPONENT << 23))


def dither(body, value, scale, word, shift, keeps_positive=False):
    """A number by its scale and by 2^-120, moved to one of the two of E4M3 by that around it, to the one farther from zero
    with the probability of what is cut off, by the bits of a word from `shift` on. With `keeps_positive` no number above
    zero becomes one.

    By 2^-120 E4M3's subnormal numbers are those of f32, so that steps of all codes are one step in the bits."""
    bits = body.bits(body.mul(value, body.mul(scale, body.number(DOWN))))
    step = 1 << _E4M3_BITS
    random = body.combine("shrui", word, shift) if shift else word
    if shift + _E4M3_BITS < 32:
        random = body.combine("andi", random, step - 1)
    moved = body.combine("andi", body.combine("addi", bits, random), -step & 0xFFFFFFFF)
    if keeps_positive:
        # The number before the product decides, as the product of the smallest ones is zero.
        is_above = body.emit(f"arith.cmpi ne, {body.bits(value)}, {body.integer(0)}", "i32")
        is_small = body.emit(f"arith.cmpi ult, {bits}, {body.integer(step)}", "i32")
        smallest = body.select(is_above, body.integer(step), body.integer(0), "i32")
        moved = body.select(is_small, smallest, moved, "i32")
    moved = body.unbits(moved)
    # NaN, whose bits may have wrapped around, and Inf become NaN.
    return body.fma(value, body.number(0.0), moved)
