"""The number formats of codes and factors: what they hold, and what each code stands for.

    fp8.formats.E4M3.max            # 448.0
    fp8.formats.FORMATS["e8m0"].decode(127)   # 1.0

OFP8 (E4M3, E5M2), OCP MX (E2M1, E8M0); E4M3 and E2M1 are the formats without infinities that
MLIR and ml_dtypes call f8E4M3FN and f4E2M1FN.
"""

import functools
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class NumberFormat:
    """A sign bit (but for E8M0), exponent and mantissa."""

    name: str  # "e4m3"
    mlir: str  # "f8E4M3FN"
    dtype: str  # in .safetensors files; of E2M1, "F4", two codes share a byte
    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool
    infinities: bool  # the codes of the largest exponent are Inf (mantissa 0) and NaN
    nans: bool

    @property
    def bits(self):
        return self.signed + self.exponent_bits + self.mantissa_bits

    def decode(self, code):
        """The value of a code from 0 to 2^bits - 1, as a float, which holds it exactly."""
        if not 0 <= code < 2 ** self.bits:
            raise ValueError(f"expected a code of {self.name} from 0 to {2 ** self.bits - 1}, but "
                             f"got {code}")
        m = self.mantissa_bits
        mantissa = code & (2 ** m - 1)
        exponent = (code >> m) & (2 ** self.exponent_bits - 1)
        sign = -1.0 if self.signed and code >> (self.bits - 1) else 1.0
        is_last = exponent == 2 ** self.exponent_bits - 1
        if self.infinities and is_last:
            return math.nan if mantissa else sign * math.inf
        if self.nans and is_last and mantissa == 2 ** m - 1:
            return math.nan
        if exponent == 0 and self.signed:
            return sign * math.ldexp(mantissa, 1 - self.bias - m)
        return sign * math.ldexp(2 ** m + mantissa, exponent - self.bias - m)

    @property
    def max(self):
        """The largest finite value."""
        code = 2 ** (self.exponent_bits + self.mantissa_bits) - 1
        if self.infinities:
            code = (2 ** self.exponent_bits - 1 << self.mantissa_bits) - 1
        elif self.nans:
            code -= 1
        return self.decode(code)

    @property
    def min_normal(self):
        """The smallest positive value with all its mantissa bits."""
        return self.decode(1 << self.mantissa_bits if self.signed else 0)

    @property
    def min_subnormal(self):
        """The smallest positive value; None in a format without subnormals."""
        return self.decode(1) if self.signed else None

    @functools.cached_property
    def special_codes(self):
        """The codes of Inf, -Inf and NaN, by what they stand for: "inf", "-inf", "nan". Only of
        formats of up to 8 bits."""
        found = {}
        for code, value in enumerate(self.values()):
            if not math.isfinite(value):
                found.setdefault(str(value), []).append(code)
        return {name: tuple(codes) for name, codes in found.items()}

    def values(self):
        """The values of all codes, in their order. Only of formats of up to 8 bits."""
        if self.bits > 8:
            raise ValueError(f"expected a format of up to 8 bits, but got {self.name}")
        return [self.decode(code) for code in range(2 ** self.bits)]


def _ieee(name, mlir, dtype, exponent_bits, mantissa_bits):
    return NumberFormat(name, mlir, dtype, exponent_bits, mantissa_bits,
                        2 ** (exponent_bits - 1) - 1, True, True, True)


E4M3 = NumberFormat("e4m3", "f8E4M3FN", "F8_E4M3", 4, 3, 7, True, False, True)
E5M2 = _ieee("e5m2", "f8E5M2", "F8_E5M2", 5, 2)
E2M1 = NumberFormat("e2m1", "f4E2M1FN", "F4", 2, 1, 1, True, False, False)
E8M0 = NumberFormat("e8m0", "f8E8M0FNU", "F8_E8M0", 8, 0, 127, False, False, True)
BF16 = _ieee("bf16", "bf16", "BF16", 8, 7)
F16 = _ieee("f16", "f16", "F16", 5, 10)
F32 = _ieee("f32", "f32", "F32", 8, 23)

FORMATS = {f.name: f for f in (E4M3, E5M2, E2M1, E8M0, BF16, F16, F32)}
