"""Attention by `fp8.attention`, forward."""

import functools
import math

import torch

import fp8
from fp8.compiler import get_default_target
from fp8.errors import ArgumentError

_ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
_FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


class _Shape:
    """What a program of an attention is of: element type, heads of Q and of K, head dimensions of these and of V,
    and how it is laid out and computed; batches and positions are known when it runs."""

    def __init__(self, element, heads, heads_of_k, dim, dim_of_v, heads_first):
        self.element, self.heads, self.heads_of_k = element, heads, heads_of_k
        self.dim, self.dim_of_v, self.heads_first = dim, dim_of_v, heads_first

    def type(self, heads, dim, element=None):
        sizes = f"{heads}x?" if self.heads_first else f"?x{heads}"
        return f"tensor<?x{sizes}x{dim}x{element or self.element}>"

    def quantize(self, name, heads, dim, format_):
        """As a matrix of rows of heads: one factor for the tensor. Returns the type of the codes, too."""
        code, kind = _FORMATS[format_], self.type(heads, dim)
        codes = self.type(heads, dim, code)
        rows, sizes = f"tensor<?x{dim}x{self.element}>", f"?x{dim}x{code}, block = [*, *], scale = f32>"
        scaled = f"!fp8.scaled<{codes.removeprefix('tensor<').removesuffix('>')}, block = [*, *, *, *], scale = f32>"
        position = 2 if self.heads_first else 1
        order = f"[%{name}_b, {heads}, %{name}_s, {dim}]" if self.heads_first else f"[%{name}_b, %{name}_s, {heads}, {dim}]"
        return scaled, (
            f"  %{name}_b = tensor.dim %{name}, %c0 : {kind}\n"
            f"  %{name}_s = tensor.dim %{name}, %c{position} : {kind}\n"
            f"  %{name}_rows = tensor.collapse_shape %{name} [[0, 1, 2], [3]] : {kind} into {rows}\n"
            f"  %{name}_quantized = fp8.quantize %{name}_rows recipe(#fp8.current) : {rows} -> !fp8.scaled<{sizes}\n"
            f"  %{name}_codes, %{name}_scale = fp8.disassemble %{name}_quantized : !fp8.scaled<{sizes}\n"
            f"  %{name}_wide = tensor.expand_shape %{name}_codes [[0, 1, 2], [3]] output_shape {order} : "
            f"tensor<?x{dim}x{code}> into {codes}\n"
            f"  %{name}_one = tensor.expand_shape %{name}_scale [[0, 1, 2], [3]] output_shape [1, 1, 1, 1] : "
            f"tensor<1x1xf32> into tensor<1x1x1x1xf32>\n"
            f"  %{name}_scaled = fp8.assemble %{name}_wide, %{name}_one : {codes}, tensor<1x1x1x1xf32> -> {scaled}\n")

    def write(self, scale, window, bottom_right, format_, accumulate):
        operands = {"q": (self.heads, self.dim), "k": (self.heads_of_k, self.dim),
                    "v": (self.heads_of_k, self.dim_of_v)}
        result = self.type(self.heads, self.dim_of_v)
        arguments = ", ".join(f"%{name}: {self.type(*sizes)}" for name, sizes in operands.items())
        body, names, types = "", [f"%{name}" for name in operands], [self.type(*sizes) for sizes in operands.values()]
        if format_:
            body = "".join(f"  %c{i} = arith.constant {i} : index\n" for i in range(3))
            made = [self.quantize(name, *sizes, format_) for name, sizes in operands.items()]
            body += "".join(text for _, text in made)
            names, types = [f"%{name}_scaled" for name in operands], [kind for kind, _ in made]
        attributes = f"scale = {scale:e}"
        if window:
            attributes += f" window = [{', '.join('*' if side is None else str(side) for side in window)}]"
        attributes += " bottom_right" * bottom_right + f" layout = {'bhsd' if self.heads_first else 'bshd'}"
        attributes += f" accumulate = {accumulate}" if accumulate else ""
        return (f"func.func @attention({arguments}) -> {result} {{\n{body}"
                f"  %o = fp8.attention {', '.join(names)} {attributes} : {', '.join(types)} -> {result}\n"
                f"  return %o : {result}\n}}\n")


@functools.lru_cache(maxsize=256)
def _compile(element, heads, heads_of_k, dim, dim_of_v, heads_first, scale, window, bottom_right, format_, accumulate,
             target):
    shape = _Shape(element, heads, heads_of_k, dim, dim_of_v, heads_first)
    return fp8.compile(shape.write(scale, window, bottom_right, format_, accumulate), target=target).functions["attention"]


def _check(query, key, value, format_, accumulate):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise ArgumentError(f"expected {name} to be batches x heads x positions x columns, but got {tensor.dim()} "
                                f"dimensions")
        if tensor.dtype not in _ELEMENTS or tensor.dtype != query.dtype:
            raise ArgumentError(f"expected {name} to be bf16, f16 or f32, as query is, but got {tensor.dtype}")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ArgumentError(f"expected {name} without a gradient, or torch.no_grad(): fp8.attention has none yet")
    if key.shape[:3] != value.shape[:3] or key.shape[3] != query.shape[3] or key.shape[0] != query.shape[0]:
        raise ArgumentError(f"expected query, key and value to agree in batches, positions and columns, but got "
                            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}")
    if key.shape[1] == 0 or query.shape[1] % key.shape[1]:
        raise ArgumentError(f"expected the heads of query to be a multiple of those of key, but got {query.shape[1]} and "
                            f"{key.shape[1]}")
    if format_ is not None and format_ not in _FORMATS:
        raise ArgumentError(f"expected format to be None or one of {', '.join(_FORMATS)}, but got {format_!r}")
    if accumulate not in (None, "fast", "promote"):
        raise ArgumentError(f"expected accumulate to be None, 'fast' or 'promote', but got {accumulate!r}")


def scaled_dot_product_attention(query, key, value, *, is_causal=False, scale=None, window=None, bottom_right=False,
                                 format=None, accumulate=None):
    """softmax(query key^T * scale) value, as torch.nn.functional's function of that name, without a gradient.

    - query: batches x heads x positions x columns, bf16, f16 or f32; key and value may have fewer heads, of which
      each serves as many of query (enable_gqa), and value other columns. Whether heads or positions lie together
      in memory is taken as it is, if it is the same in all; else they are copied;
    - is_causal: a query sees the keys up to its own number; window=(left, right) sees so many keys before and after
      that, None for all. `bottom_right` counts from the last key back, as FlashAttention does;
    - scale: 1 / sqrt(columns) if it is None;
    - format: "e4m3" or "e5m2" quantises query, key and value, each by its own largest magnitude, and computes both
      products in 8 bits; None computes in what they are;
    - accumulate: with a format, "promote" (None) sums each tile of keys in f32, "fast" leaves it to the tensor core.

    Raises ArgumentError. On a GPU without a kernel for it, it is two products and a softmax (docs/Attention.md).
    """
    _check(query, key, value, format, accumulate)
    if is_causal and window is not None:
        raise ArgumentError("expected is_causal or a window, but got both")
    window = (None, 0) if is_causal else window
    if window is not None and (len(window) != 2 or any(side is not None and side < 0 for side in window)):
        raise ArgumentError(f"expected window to be two numbers that are not negative, or None, but got {window}")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    tensors = query, key, value
    if not 0 < scale < math.inf:
        raise ArgumentError(f"expected scale to be finite and positive, but got {scale}")
    if any(tensor.device != query.device for tensor in (key, value)):
        raise ArgumentError(f"expected query, key and value on one device, but got {query.device}, {key.device} and "
                            f"{value.device}")
    heads_first = not all(tensor.transpose(1, 2).is_contiguous() for tensor in tensors)
    target = get_default_target() if query.is_cuda else "cpu"
    run = _compile(_ELEMENTS[query.dtype], query.shape[1], key.shape[1], query.shape[3], value.shape[3], heads_first,
                   scale, None if window is None else tuple(window), bool(bottom_right), format,
                   accumulate if format else None, target)
    with torch.no_grad():
        if heads_first:
            return run(*(tensor.contiguous() for tensor in tensors))
        return run(*(tensor.transpose(1, 2) for tensor in tensors)).transpose(1, 2)
