"""What the dialect computes, in numpy and ml_dtypes, one rounding at a time.

An independent second writing of amax, scales and casts: after the definitions
of Transformer Engine, torchao and the OCP MX specification, not after our code.
Codes and E8M0 factors are bytes, a 4-bit code in a byte of its own. NaN is
canonical. `*` in a block is None.
"""

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

F32_MAX = np.finfo(np.float32).max
E4M3_SCALE_MAX = np.float32(448)

INPUTS = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


@dataclass(frozen=True)
class Format:
    dtype: type
    largest: np.float32
    emax: int  # exponent of the largest binade
    mantissa_bits: int
    nan: int  # the code that NaN becomes


FORMATS = {
    "f8E4M3FN": Format(ml_dtypes.float8_e4m3fn, np.float32(448), 8, 3, 0x7F),
    "f8E5M2": Format(ml_dtypes.float8_e5m2, np.float32(57344), 15, 2, 0x7F),
    # There is no NaN in E2M1.
    "f4E2M1FN": Format(ml_dtypes.float4_e2m1fn, np.float32(6), 2, 1, 0x7),
}


@dataclass(frozen=True)
class Rule:
    """Parameters of #fp8.scale_rule."""

    pow2: bool = False
    epsilon: float = 0.0
    style: str = "te"
    overflow: float = float(F32_MAX)
    mode: str = "rceil"
    nonfinite: str = "saturate"


def bits_of(x):
    return x.view(np.uint32)


def to_blocks(x, block):
    """`x` with two dimensions for each: which block, and where in it.

    Padding is zeros, which no amax sees.
    """
    extents = [max(d, 1) if b is None else b for d, b in zip(x.shape, block)]
    pad = [(0, -d % e if b is not None else e - d) for d, e, b in zip(x.shape, extents, block)]
    x = np.pad(x, pad)
    shape = [n for d, e in zip(x.shape, extents) for n in (d // e, e)]
    return x.reshape(shape)


def spread(grid, shape, block):
    """An array of `shape` with its block's entry of `grid` for every element."""
    for axis, (size, extent) in enumerate(zip(shape, block)):
        extent = max(size, 1) if extent is None else extent
        grid = np.repeat(grid, extent, axis=axis).take(np.arange(size), axis=axis)
    return grid


def amax(x, block, propagate_nan=False):
    magnitudes = to_blocks(np.abs(x.astype(np.float32)), block)
    axes = tuple(range(1, magnitudes.ndim, 2))
    if not propagate_nan:
        magnitudes = np.where(np.isnan(magnitudes), np.float32(0), magnitudes)
    return np.maximum.reduce(magnitudes, axis=axes, initial=np.float32(0))


def floor_to_pow2(x):
    """2^floor(log2 x) for x >= 0; 0, Inf and NaN stay."""
    return np.where(np.isfinite(x), (bits_of(x) & np.uint32(0xFF800000)).view(np.float32), x)


def f32_scale(a, fmt, rule):
    if rule.style == "torchao":
        # A maximum like torch.clamp's: NaN stays.
        epsilon = np.float64(np.float32(rule.epsilon)) or 1e-12
        a = np.maximum(a.astype(np.float64), epsilon)
        scale = (np.float64(fmt.largest) / a).astype(np.float32)
        return floor_to_pow2(scale) if rule.pow2 else scale
    epsilon = np.float32(rule.epsilon)
    a = np.where(a < epsilon, epsilon, a)
    scale = fmt.largest / a
    scale = np.where(np.isinf(scale), np.float32(rule.overflow), scale)
    if rule.pow2:
        scale = floor_to_pow2(scale)
    return np.where((a == 0) | ~np.isfinite(a), np.float32(1), scale)


def e8m0_rceil(v):
    """The smallest power of two that is not below v >= 0, by cases."""
    exponent = (bits_of(v) >> np.uint32(23)).astype(np.int32)
    mantissa = bits_of(v) & np.uint32(0x7FFFFF)
    return np.select(
        [
            np.isnan(v),
            np.isinf(v),
            v == 0,
            (exponent == 0) & (mantissa <= 0x400000),
            exponent == 0xFE,
            mantissa == 0,
        ],
        [0xFF, 0xFE, 0, 0, 0xFE, exponent],
        exponent + 1,
    )


def e8m0_byte(a, fmt, rule):
    if rule.mode == "rceil":
        byte = e8m0_rceil(a * (np.float32(1) / fmt.largest))
    else:
        bits = bits_of(a).astype(np.int64)
        if rule.mode == "even":
            bits = bits + (1 << (23 - fmt.mantissa_bits - 1))
        exponent, mantissa = bits >> 23, bits & 0x7FFFFF
        if rule.mode == "ceil":
            exponent = exponent + (mantissa != 0)
        byte = np.clip(exponent - fmt.emax, 0, 255)
        if rule.mode == "even":  # Amaxes that round up to Inf.
            byte = np.where(exponent == 0xFF, 0xFF, byte)
    byte = np.where(np.isinf(a), 0xFF if rule.nonfinite == "nan" else 0xFE, byte)
    return np.where(np.isnan(a), 0xFF, byte).astype(np.uint8)


def e8m0_value(byte):
    value = np.ldexp(np.float32(1), byte.astype(np.int32) - 127)
    return np.where(byte == 0xFF, np.float32(np.nan), value)


def e8m0_reciprocal(byte):
    value = np.ldexp(np.float32(1), 127 - byte.astype(np.int32))
    return np.where(byte == 0xFF, np.float32(np.nan), value)


def encode(x, name):
    """Saturating codes of f32 values."""
    fmt = FORMATS[name]
    codes = np.clip(x, -fmt.largest, fmt.largest).astype(fmt.dtype).view(np.uint8)
    return np.where(np.isnan(x), np.uint8(fmt.nan), codes)


def decode(codes, name):
    return codes.view(FORMATS[name].dtype).astype(np.float32)


def store(codes, name):
    """Codes as they are in memory: of 4 bits two in each byte of a row, the first in the lower
    half, and zero after an odd number."""
    if FORMATS[name].dtype != ml_dtypes.float4_e2m1fn:
        return codes
    even = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)])
    return even[..., ::2] | even[..., 1::2] << np.uint8(4)


def positive_finite(x):
    return (x > 0) & np.isfinite(x)


def compute_scale(a, name, scale_type, rule=Rule(), tensor_amax=None):
    """scale, scale_inv as it is stored, tensor_scale_inv or None."""
    fmt = FORMATS[name]
    one = np.float32(1)
    if scale_type == "f8E8M0FNU":
        byte = e8m0_byte(a, fmt, rule)
        return e8m0_reciprocal(byte), byte, None
    if scale_type == "f32":
        scale = f32_scale(a, fmt, rule)
        return scale, one / scale, None
    # Two levels, in the order of Transformer Engine's reference, which
    # multiplies by reciprocals. The global scale is 1 where the amax gives none.
    largest = np.float32(E4M3_SCALE_MAX * fmt.largest)
    whole = np.where(positive_finite(tensor_amax), tensor_amax, largest)
    encode_scale = np.minimum(largest / whole, F32_MAX)
    block = a * (encode_scale * (one / fmt.largest))
    codes = encode(block, "f8E4M3FN")
    product = decode(codes, "f8E4M3FN") * (one / encode_scale)
    # As Transformer Engine: never Inf, which would turn zeros into NaN.
    scale = np.minimum(one / product, F32_MAX)
    factor = np.maximum(whole / largest, one / F32_MAX)
    return np.where(product == 0, np.float32(0), scale), codes, factor


def factors(scale_inv, scale_type, tensor_scale_inv=None):
    """Dequantization factors of blocks in f32."""
    if scale_type == "f32":
        return scale_inv
    if scale_type == "f8E8M0FNU":
        return e8m0_value(scale_inv)
    return decode(scale_inv, "f8E4M3FN") * tensor_scale_inv


def quantize(x, scale, block, name):
    return encode(x.astype(np.float32) * spread(scale, x.shape, block), name)


@dataclass(frozen=True)
class Scaled:
    """!fp8.scaled: how an operand is quantized."""

    element: str
    block: tuple
    scale: str
    rule: Rule = field(default_factory=Rule)
    propagate_nan: bool = False

    @property
    def has_tensor_scale(self):
        return self.scale == "f8E4M3FN"

    def mlir(self, dims):
        block = ", ".join("*" if b is None else str(b) for b in self.block)
        tensor_scale = ", tensor_scale = f32" if self.has_tensor_scale else ""
        shape = "x".join(map(str, [*dims, self.element]))
        return f"!fp8.scaled<{shape}, block = [{block}], scale = {self.scale}{tensor_scale}>"

    def quantize(self, x):
        """Codes, scale_inv and, with a tensor scale, tensor_scale_inv."""
        a = amax(x, self.block, self.propagate_nan)
        whole = amax(a, (None,) * a.ndim, self.propagate_nan) if self.has_tensor_scale else None
        scale, scale_inv, tensor = compute_scale(a, self.element, self.scale, self.rule, whole)
        parts = [quantize(x, scale, self.block, self.element), scale_inv]
        return parts + [tensor] if self.has_tensor_scale else parts

    def store(self, x):
        """The same as it is in memory."""
        codes, *scale_parts = self.quantize(x)
        return [store(codes, self.element), *scale_parts]

    def value(self, x):
        """`x` as fp8.dequantize gives it back in f32, here in f64 to go on with."""
        codes, *scale_parts = self.quantize(x)
        factor = factors(scale_parts[0], self.scale, *scale_parts[1:])
        values = decode(codes, self.element) * spread(factor, x.shape, self.block)
        return values.astype(np.float64)


def describe(recipe, source="bf16", operand="activation", batch=False):
    """How `recipe`, name[,key=value...], quantizes [batch x] rows x K."""
    name, *settings = recipe.split(",")
    options = dict(setting.split("=") for setting in settings)
    codes = options.get("format", "hybrid" if name == "current" else "e4m3")
    wide = codes == "e5m2" or (codes == "hybrid" and operand == "gradient")
    element = "f8E5M2" if wide else "f8E4M3FN"
    pow2 = options.get("pow2", "false" if name == "current" else "true") == "true"
    style = options.get("style", "te")
    epsilon = float(options.get("amax_epsilon", 0))
    two_d = operand == "weight" and options.get("weight_2d") == "true"
    lead = (1,) if batch else ()
    if name in ("current", "rowwise"):
        rule = Rule(pow2=pow2, epsilon=epsilon, style=style)
        block = (None,) * (2 + batch) if name == "current" else (*lead, 1, None)
        return Scaled(element, block, "f32", rule, style == "torchao")
    if name == "block":
        key, default = {"activation": ("x_dim", 1), "weight": ("w_dim", 2),
                        "gradient": ("grad_dim", 1)}[operand]
        rows = 128 if int(options.get(key, default)) == 2 else 1
        largest = float(ml_dtypes.finfo(INPUTS[source]).max)
        rule = Rule(pow2=pow2, epsilon=epsilon, overflow=largest)
        return Scaled(element, (*lead, rows, 128), "f32", rule)
    if name == "mxfp8":
        nonfinite = options.get("nonfinite", "saturate")
        rule = Rule(mode=options.get("mode", "rceil"), nonfinite=nonfinite)
        rows = 32 if two_d else 1
        return Scaled(element, (*lead, rows, 32), "f8E8M0FNU", rule, nonfinite == "nan")
    assert name == "nvfp4"
    return Scaled("f4E2M1FN", (*lead, 16 if two_d else 1, 16), "f8E4M3FN")


def attribute(recipe):
    """`name,key=value` as an MLIR attribute."""
    name, *settings = recipe.split(",")
    body = ", ".join(s.replace("=", " = ") for s in settings)
    return f"#fp8.{name}" + (f"<{body}>" if body else "")


def same_bits(got, expected):
    """Elementwise, where any NaN equals any other."""
    if expected.dtype == np.float32:
        return (bits_of(got) == bits_of(expected)) | (np.isnan(got) & np.isnan(expected))
    return got == expected
