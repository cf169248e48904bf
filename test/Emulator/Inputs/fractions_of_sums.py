"""The rule of the tensor cores' sums, in fractions."""

from fractions import Fraction

import numpy as np

# Bits of exponent and mantissa, whether the top exponent is special; F, and the result's mantissa.
FORMATS = {"e4m3": (4, 3, False), "e5m2": (5, 2, True), "bf16": (8, 7, True), "f16": (5, 10, True)}
RULES = {1: (13, 13), 2: (25, 23)}


def decode(code, ebits, mbits, special=True):
    """Significand and exponent, or a float if it is not finite."""
    field, mantissa = code >> mbits & (1 << ebits) - 1, code & (1 << mbits) - 1
    sign = -1 if code >> ebits + mbits & 1 else 1
    top = (1 << ebits) - 1
    if field == top and (special or mantissa == (1 << mbits) - 1):
        return sign * float("inf") if special and mantissa == 0 else float("nan")
    bias = (1 << ebits - 1) - 1
    return sign * Fraction(mantissa + ((field > 0) << mbits), 1 << mbits), max(field, 1) - bias


def toward_zero(x):
    return x.numerator // x.denominator if x >= 0 else -(-x.numerator // x.denominator)


def step(c, a, b, type_a, type_b, wide=False):
    """A result's word, of sums and codes of operands; `wide` sums of 8 bits are as those of 16."""
    fraction, result = RULES[1 if FORMATS[type_a][1] < 4 and not wide else 2]
    terms, infinite = [], []
    for x, y in [(decode(int(p), *FORMATS[type_a]), decode(int(q), *FORMATS[type_b])) for p, q in zip(a, b)]:
        if isinstance(x, float) or isinstance(y, float):
            x, y = (float(v[0]) if not isinstance(v, float) else v for v in (x, y))
            infinite.append(x * y)
        else:
            terms.append((x[0] * y[0], x[1] + y[1]))
    c = decode(int(c), 8, 23)
    if isinstance(c, float):
        infinite.append(c)
    else:
        terms.append(c)
    if infinite:
        total = np.float32(sum(infinite))
        return 0x7FFFFFFF if np.isnan(total) else int(total.view(np.uint32))
    reference = max([-133] + [e for s, e in terms if s])
    total = sum(toward_zero(s * Fraction(2) ** (fraction + e - reference)) for s, e in terms)
    value = total * Fraction(2) ** (reference - fraction)
    exponent = -126
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    if exponent > 127:
        return 0x7F800000 if value > 0 else 0xFF800000
    quantum = Fraction(2) ** (exponent - result)
    return int(np.float32(float(toward_zero(value / quantum) * quantum)).view(np.uint32))
