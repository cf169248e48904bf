"""Programs of norms by themselves, whose rows are added up in an order that follows from their length alone."""

import functools

import torch

from fp8.torch import expected
from fp8.torch.attention_programs import ELEMENTS

# "rms" rounds before the weight, as Llama's and Qwen's; "rms_wide" after it, as torch.nn.RMSNorm; "rms_one" likewise, with
# weights that are one less, as Gemma's; "layer" is torch.nn.LayerNorm.
KINDS = ("rms", "rms_wide", "rms_one", "layer")


def compute(kind, x, weight, bias, epsilon):
    """The same by PyTorch, with a gradient."""
    wide = x.float()
    if kind == "layer":
        wide = wide - wide.mean(-1, keepdim=True)
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    if kind == "rms":
        y = weight * wide.to(x.dtype)
    else:
        y = wide * (1.0 + weight.float() if kind == "rms_one" else weight.float())
    y = y if bias is None else y + bias
    return y.to(x.dtype)


@functools.lru_cache(maxsize=256)
def get_function(kind, dtype, weight_dtype, width, epsilon, has_bias, target):
    """What computes it, of any number of rows, compiled once."""
    text = _write(kind, ELEMENTS[dtype], ELEMENTS[weight_dtype], width, epsilon, has_bias)
    return expected.compile(lambda: f"a norm of {width} columns", [("norm", width)], text, target=target,
                            invariant=True).functions["norm"]


def _widen(name, value, element):
    return [] if element == "f32" else [f"%{name} = arith.extf %{value} : {element} to f32"]


def _write(kind, element, of_weight, width, epsilon, has_bias):
    rows, row, vector = f"tensor<?x{width}x{element}>", "tensor<?xf32>", f"tensor<{width}x{of_weight}>"
    x = "x" if element == "f32" else "x_"
    centered = kind == "layer"
    mean = ["%m_ = arith.divf %m, %count : f32", f"%c = arith.subf %{x}, %m_ : f32"] if centered else []
    value = "c" if centered else x

    def add_up(name, others, body):
        """%name: the sum of %t of each row."""
        inputs = ["x", *others]
        types = ", ".join([rows, *[row] * len(others)])
        maps = ", ".join(["#full", *["#row"] * len(others), "#row"])
        arguments = ", ".join([f"%x: {element}", *(f"%{letter}: f32" for letter in "m"[:len(others)])])
        return [f'%{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}} '
                f"ins({', '.join(f'%{each}_all' for each in inputs)} : {types}) outs(%zeros : {row}) {{",
                f"^bb0({arguments}, %sum: f32):", *_widen(x, "x", element), *body, "  %next = arith.addf %t, %sum : f32",
                "  linalg.yield %next : f32", f"}} -> {row}"]

    lines = ["%c0 = arith.constant 0 : index", "%zero = arith.constant 0.0 : f32",
             f"%count = arith.constant {width}.0 : f32", f"%eps = arith.constant {epsilon:e} : f32",
             "%one = arith.constant 1.0 : f32", f"%n = tensor.dim %x_all, %c0 : {rows}", f"%none = tensor.empty(%n) : {row}",
             f"%zeros = linalg.fill ins(%zero : f32) outs(%none : {row}) -> {row}"]
    if centered:
        lines += add_up("mean_all", [], [f"%t = arith.addf %{x}, %zero : f32"])
    lines += add_up("sum_all", ["mean"] * centered, [*mean, f"%t = arith.mulf %{value}, %{value} : f32"])
    inputs = ["x", "sum", *["mean"] * centered, "w", *["b"] * has_bias]
    types = ", ".join([rows, row, *[row] * centered, vector, *[vector] * has_bias])
    maps = ", ".join(["#full", "#row", *["#row"] * centered, "#column", *["#column"] * has_bias, "#full"])
    arguments = ", ".join([f"%x: {element}", "%s: f32", *["%m: f32"] * centered, f"%w: {of_weight}",
                           *[f"%b: {of_weight}"] * has_bias])
    w = "w" if of_weight == "f32" else "w_"
    body = [*_widen(x, "x", element), *_widen("w_", "w", of_weight), *mean, "%q = arith.divf %s, %count : f32",
            "%e = arith.addf %q, %eps : f32", "%f = math.rsqrt %e : f32", f"%y = arith.mulf %{value}, %f : f32"]
    factor = w
    if kind == "rms_one":
        body.append(f"%w1 = arith.addf %{w}, %one : f32")
        factor = "w1"
    result = "y"
    if kind == "rms" and element != "f32":
        body += [f"%r = arith.truncf %y : f32 to {element}", f"%y_ = arith.extf %r : {element} to f32"]
        result = "y_"
    body.append(f"%z = arith.mulf %{result}, %{factor} : f32")
    result = "z"
    if has_bias:
        body += [*_widen("b_", "b", of_weight), f"%zb = arith.addf %z, %{'b' if of_weight == 'f32' else 'b_'} : f32"]
        result = "zb"
    if element != "f32":
        body.append(f"%o = arith.truncf %{result} : f32 to {element}")
        result = "o"
    given = ", ".join([f"%x_all: {rows}", f"%w_all: {vector}", *[f"%b_all: {vector}"] * has_bias])
    lines += [f"%empty = tensor.empty(%n) : {rows}",
              f'%result = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} '
              f"ins({', '.join(f'%{each}_all' for each in inputs)} : {types}) outs(%empty : {rows}) {{",
              f"^bb0({arguments}, %out: {element}):", *body, f"  linalg.yield %{result} : {element}", f"}} -> {rows}"]
    return ("#full = affine_map<(r, c) -> (r, c)>\n#row = affine_map<(r, c) -> (r)>\n#column = affine_map<(r, c) -> (c)>\n"
            f"func.func @norm({given}) -> {rows} {{\n  " + "\n  ".join(lines) + f"\n  return %result : {rows}\n}}\n")
