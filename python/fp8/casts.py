"""Casts by themselves, computed by programs that are compiled for them, so that codes and
scales are those of every other program, bit by bit."""

import functools
import re
from collections import namedtuple

from fp8 import _core
from fp8.compiler import compile
from fp8.errors import ArgumentError, shorten
from fp8.formats import E2M1, E4M3, FORMATS
from fp8.recipes import Format

# A tensor as codes and factors: value = code * scale_inv of its block, and for NVFP4 *
# tensor_scale_inv, which else is None. `block` is as in quantize, spelled out.
Quantized = namedtuple("Quantized", "codes scale_inv tensor_scale_inv format block scale")

_SCALES = {f.name: f for f in FORMATS.values() if f.is_factor}
_CODES = {f.name: f for f in FORMATS.values() if f.is_code}
_SOURCES = {FORMATS[name].dtype: name for name in ("bf16", "f16", "f32")}


# The largest size of a block.
_LARGEST = 2 ** 31 - 1


def _get(kind, name, known):
    name = name.value if isinstance(name, Format) else name
    if not isinstance(name, str) or name not in known:
        raise ArgumentError(f"expected the {kind} to be {', '.join(known)}, but got "
                            f"{shorten(repr(name))}")
    return name


def _get_block(block, rank):
    if block is None:
        return (None,) * rank
    sizes = tuple(block) if isinstance(block, (tuple, list)) else ()
    if len(sizes) != rank or not all(
            size is None or (isinstance(size, int) and 0 < size <= _LARGEST) for size in sizes):
        raise ArgumentError(f"expected a block with {rank} sizes above 0, or None, but got "
                            f"{shorten(repr(block))}")
    return sizes


def _write_types(rank, element, codes, block, scale):
    dims = "x".join("?" * rank)
    sizes = ", ".join("*" if size is None else str(size) for size in block)
    grid = "x".join("1" if size is None else "?" for size in block)
    tensor_scale = ", tensor_scale = f32" if scale is E4M3 else ""
    return {
        "source": f"tensor<{dims}x{element}>", "codes": f"tensor<{dims}x{codes.mlir}>",
        "factors": f"tensor<{grid}x{scale.mlir}>", "amax": f"tensor<{grid}xf32>",
        "whole": f"tensor<{'x'.join('1' * rank)}xf32>", "block": f"[{sizes}]",
        "all": f"[{', '.join('*' * rank)}]",
        "scaled": f"!fp8.scaled<{dims}x{codes.mlir}, block = [{sizes}], scale = {scale.mlir}"
                  f"{tensor_scale}>"}


@functools.lru_cache(maxsize=256)
def _compile_quantize(rank, element, codes, block, scale, rule, target):
    types = _write_types(rank, element, codes, block, scale)
    nan, types["rule"] = write_rule(rule)
    if scale is E4M3:
        body = """
  %whole = fp8.amax %x block = {all} : {source}
  %scale, %inv, %tensor = fp8.compute_scale %amax tensor_amax(%whole : {whole})
      format = {format} scale_type = {type} : {amax}
  %q = fp8.quantize %x scale(%scale, %inv : {amax}, {factors}) tensor_scale_inv(%tensor : {whole})
      : {source} -> {scaled}
  %codes, %factors, %factor = fp8.disassemble %q : {scaled}
  return %codes, %factors, %factor : {codes}, {factors}, {whole}"""
        results = "({codes}, {factors}, {whole})"
    else:
        body = """
  %scale, %inv = fp8.compute_scale %amax format = {format} scale_type = {type} {rule} : {amax}
  %q = fp8.quantize %x scale(%scale, %inv : {amax}, {factors}) : {source} -> {scaled}
  %codes, %factors = fp8.disassemble %q : {scaled}
  return %codes, %factors : {codes}, {factors}"""
        results = "({codes}, {factors})"
    text = ("func.func @quantize(%x: {source} {{fp8.name = \"x\"}}) -> " + results + " {{\n"
            "  %amax = fp8.amax %x block = {block}{nan} : {source}" + body + "\n}}\n").format(
                **types, nan=nan, format=codes.mlir, type=scale.mlir)
    return compile(text, target=target)


@functools.lru_cache(maxsize=256)
def _compile_dequantize(rank, element, codes, block, scale, target):
    types = _write_types(rank, element, codes, block, scale)
    extra = scale is E4M3
    text = ("func.func @dequantize(%codes: {codes}, %factors: {factors}" +
            (", %factor: {whole}" if extra else "") + ") -> {source} {{\n"
            "  %q = fp8.assemble %codes, %factors" + (", %factor" if extra else "") +
            " : {codes}, {factors}" + (", {whole}" if extra else "") + " -> {scaled}\n"
            "  %x = fp8.dequantize %q : {scaled} -> {source}\n"
            "  return %x : {source}\n}}\n").format(**types)
    return compile(text, target=target)


def write_rule(rule):
    """What fp8.amax and fp8.compute_scale say of a rule, pairs of a key and a value."""
    entries = dict(rule)
    propagates = entries.get("style") == "torchao" or entries.get("nonfinite") == "nan"
    written = ", ".join(f"{key} = {value}" for key, value in rule)
    return (" propagate_nan" if propagates else "",
            f"rule(#fp8.scale_rule<{written}>)" if rule else "")


def make_rule(scale, options):
    """The parts of #fp8.scale_rule that options of `quantize` are for. Raises ArgumentError
    for those that scales of that type do not have."""
    known = {"f32": ("pow2", "epsilon", "style"), "e8m0": ("mode", "nonfinite"), "e4m3": ()}
    rule = []
    for key, value in options.items():
        if value is None:
            continue
        if key not in known[scale]:
            raise ArgumentError(f"expected no '{key}' for scales in {scale}")
        if not isinstance(value, (bool, int, float)) and not (
                isinstance(value, str) and re.fullmatch(r"[\w.+-]+", value)):
            raise ArgumentError(f"expected '{key}' to be a number or a word, but got "
                                f"{shorten(repr(value))}")
        rule.append((key, str(value).lower() if isinstance(value, bool) else
                     f"{value:.9e}" if isinstance(value, float) else str(value)))
    return tuple(rule)


def _make_number(value):
    """None for 0, which is no bound."""
    try:
        return value and float(value)
    except (TypeError, ValueError, OverflowError):
        return value


def quantize(x, format="e4m3", block=None, scale="f32", *, pow2=None, amax_epsilon=None,
             style=None, mode=None, nonfinite=None):
    """Quantizes an array of f32, bf16 or f16 of 1 to 8 dimensions, where it is.

    - format: of the codes, "e4m3", "e5m2" or "e2m1", or a Format;
    - block: how many elements share a scale, along each dimension, None for all: (None, None)
      or None a scale for the tensor, (1, None) for a row, (1, 128), (128, 128), (1, 32), ...;
    - scale: of the factors: "f32", "e8m0" (MX), or "e4m3" with another f32 for the tensor
      (NVFP4, with format "e2m1");
    - pow2, amax_epsilon, style ("te", "torchao"): of scales in f32, as in docs/Recipes/Current.md;
      mode, nonfinite: of scales in E8M0, as in docs/Recipes/MXFP8.md.

    Returns Quantized: codes of x's shape, in the format's dtype, and scale_inv with
    ceil(size / block) factors along each dimension. Of E2M1 two codes share a byte. The last
    size of x has to be even, that of codes is half of it, and their dtype is PyTorch's
    float4_e2m1fn_x2, or uint8 where there is no such dtype (fp8.tensors.unpack). Raises
    ArgumentError.
    """
    codes = _CODES[_get("format", format, _CODES)]
    factors = _SCALES[_get("scale", scale, _SCALES)]
    dtype, rank, on_gpu = _core.inspect_array(x)
    if dtype not in _SOURCES or not 1 <= rank <= 8:
        raise ArgumentError(f"expected an array of F32, BF16 or F16 with 1 to 8 dimensions, but "
                            f"got {dtype} with {rank}")
    if (factors is E4M3) != (codes is E2M1 and scale == "e4m3"):
        raise ArgumentError(f"expected scales in e4m3 to go with codes of e2m1, but got "
                            f"{codes.name}")
    if codes is E2M1 and x.shape[-1] % 2:
        raise ArgumentError(f"expected a last dimension of an even size, of which two codes of "
                            f"e2m1 share a byte, but got {x.shape[-1]}")
    block = _get_block(block, rank)
    rule = make_rule(scale, {"pow2": pow2, "epsilon": _make_number(amax_epsilon),
                               "style": style, "mode": mode, "nonfinite": nonfinite})
    program = _compile_quantize(rank, _SOURCES[dtype], codes, block, factors, rule,
                                "auto" if on_gpu else "cpu")
    results = program(x)
    return Quantized(results[0], results[1], results[2] if len(results) > 2 else None, codes.name,
                     block, scale)


def dequantize(quantized, dtype="f32"):
    """The values of what quantize returned, an array of `dtype`: "f32", "bf16" or "f16"."""
    if not isinstance(quantized, Quantized):
        raise ArgumentError(f"expected what quantize returned, but got {type(quantized).__name__}")
    codes = _CODES[_get("format", quantized.format, _CODES)]
    factors = _SCALES[_get("scale", quantized.scale, _SCALES)]
    element = _get("dtype", dtype, tuple(_SOURCES.values()))
    _, rank, on_gpu = _core.inspect_array(quantized.codes)
    program = _compile_dequantize(rank, element, codes, _get_block(quantized.block, rank),
                                  factors, "auto" if on_gpu else "cpu")
    arrays = [quantized.codes, quantized.scale_inv]
    if factors is E4M3:
        arrays.append(quantized.tensor_scale_inv)
    return program(*arrays)
