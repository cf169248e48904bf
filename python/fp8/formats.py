"""The number formats of codes and factors: what they hold, and what each code stands for.

    fp8.formats.E4M3.max            # 448.0
    fp8.formats.FORMATS["e8m0"].decode(127)   # 1.0

OFP8 (E4M3, E5M2), OCP MX (E2M1, E8M0); E4M3 and E2M1 are the formats without infinities that
MLIR and ml_dtypes call f8E4M3FN and f4E2M1FN. All are lines of include/fp8/Formats.def.
"""

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path


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
    is_code: bool = False  # scaled tensors may hold it
    is_factor: bool = False  # their factors may have it

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


@dataclass(frozen=True)
class DType:
    """What elements of arguments and results are stored as."""

    name: str  # "F8_E4M3"
    file: str  # in .safetensors files, where each code counts
    numpy: str  # of NumPy, ml_dtypes or PyTorch, which but for packed codes is an element
    bits: int  # of a code
    lanes: int  # codes of an element, which is whole bytes: of 4 bits 2


def _read_tables(path):
    """Lines of fp8/Formats.def, lists of their fields, by the names of their tables."""
    tables = {}
    for table, line in re.findall(r"^FP8_(\w+)\(([^)]*)\)", path.read_text(), re.MULTILINE):
        fields = [field.strip().strip('"') for field in line.split(",")]
        tables.setdefault(table, []).append(fields)
    return tables


def _make_format(is_code, constant, name, kind, mlir, dtype, sign, exponent, mantissa, specials,
                 factor):
    return NumberFormat(name, mlir, DTYPES[dtype].file, int(exponent), int(mantissa),
                        2 ** (int(exponent) - 1) - 1, sign == "1", specials == "Top",
                        specials != "None", is_code, factor == "1")


def _find_tables():
    """Beside this module, or in the source tree that it is in."""
    beside = Path(__file__).with_name("Formats.def")
    return beside if beside.exists() else Path(__file__).parents[2] / "include/fp8/Formats.def"


_tables = _read_tables(_find_tables())
DTYPES = {line[0]: DType(line[0], line[1], line[6], int(line[3]), int(line[4])) for line in _tables["DTYPE"]}
FORMATS = {line[1]: _make_format(table == "CODE_FORMAT", *line)
           for table in ("CODE_FORMAT", "FORMAT") for line in _tables[table]}


def __getattr__(name) -> NumberFormat:
    """E4M3, ...: those of FORMATS."""
    if name.isupper() and name.lower() in FORMATS:
        return FORMATS[name.lower()]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return [*globals(), *(name.upper() for name in FORMATS)]
