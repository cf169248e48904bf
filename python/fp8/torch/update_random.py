"""Stochastic rounding in the steps of optimizers, as lines of a linalg.generic's body.

A random number is a hash of an element's place, of its parameter's number and of the number of the step,
and so the same whenever that step is repeated, on each machine.
"""

# Odd numbers by which places, parameters and steps are told from each other.
_ROWS, _COLUMNS, _NUMBER, _COUNT = 0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F
# Shifts and factors of a hash of 32 bits whose output bits depend on all input bits (Wellons' lowbias32).
_ROUNDS = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None))
# Bits of an f32 that a bf16, or E4M3 in its range, has not.
_BF16_BITS, _E4M3_BITS = 16, 20
_EXPONENT, _SIGN = 0x7F800000, 1 << 31
# Below it E4M3's steps are all of one size, which is also that of the octave above.
_LEAST_NORMAL, _STEP = 2.0 ** -6, 2.0 ** -9


def draw(body, row, column, number, count):
    """32 random bits of an element, of numbers that are integers in f32."""
    def scale(value, factor):
        return body.combine("muli", body.emit(f"arith.fptosi {value}", "f32 to i32"), factor)
    place = body.combine("addi", scale(row, _ROWS), scale(column, _COLUMNS))
    seed = body.combine("addi", scale(number, _NUMBER), scale(count, _COUNT))
    word = body.combine("xori", place, seed)
    for shift, factor in _ROUNDS:
        word = body.combine("xori", word, body.combine("shrui", word, shift))
        word = word if factor is None else body.combine("muli", word, factor)
    return word


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


def dither(body, value, word, shift, keeps_positive=False):
    """A number moved to one of the two of E4M3 around it, to the one farther from zero with the probability of what is cut
    off, by the bits of a word from `shift` on. With `keeps_positive` no number that is no zero becomes one."""
    bits = body.bits(value)
    sign = body.combine("andi", bits, _SIGN)
    size = body.unbits(body.combine("andi", bits, _SIGN - 1))
    least = body.number(_LEAST_NORMAL)
    is_small = body.compare("olt", size, least)
    moved = body.bits(body.select(is_small, body.add(size, least), size))
    random = body.combine("andi", body.combine("shrui", word, shift) if shift else word, (1 << _E4M3_BITS) - 1)
    moved = body.combine("andi", body.combine("addi", moved, random), -(1 << _E4M3_BITS) & 0xFFFFFFFF)
    moved = body.unbits(moved)
    moved = body.select(is_small, body.sub(moved, least), moved)
    if keeps_positive:
        is_some = body.compare("ogt", size, body.number(0.0))
        moved = body.select(is_some, body.max(moved, body.number(_STEP)), moved)
    moved = body.unbits(body.combine("ori", body.bits(moved), sign))
    return body.select(body.compare("uno", value, value), value, moved)
