"""Programs that multiply with stored weights, as text: their operands, and what becomes of a sum.

A weight is codes and scales as schemes.Scheme has them, one or one for each of some groups.
"""

from collections import namedtuple

from fp8 import casts
from fp8.formats import E2M1, E4M3, E8M0, F32
from fp8.torch import packed

SCALES = {"f32": F32, "e8m0": E8M0, "e4m3": E4M3}
# What NVFP4 maps a tensor's largest magnitude to: the largest of E4M3 times that of E2M1.
NVFP4_MAX = E4M3.max * E2M1.max
ONE = "tensor<1x1xf32>"

# An operand: the arguments of a function that it is made of, its lines, and the value's name and type. With `steps`, what
# a sum of its products is multiplied with first, as write_epilogue takes it.
Operand = namedtuple("Operand", "arguments lines name type steps", defaults=((),))


def write_block(block):
    return "[" + ", ".join("*" if size is None else str(size) for size in block) + "]"


def _write_scaled(scheme, sizes, block):
    extra = ", tensor_scale = f32" if scheme.scale == "e4m3" else ""
    return (f"<{sizes}x{scheme.codes.mlir}, block = {write_block(block)}, "
            f"scale = {SCALES[scheme.scale].mlir}{extra}>")


def write_input(scheme, x, k, element, rows="?", suffix="", per_row=False):
    """Activations of rows x K, the value `x`, as a product takes them. With scales that stay, the program has %xs of
    one, or, `per_row`, %xs and its inverse %xr of each row."""
    source = f"tensor<{rows}x{k}x{element}>"
    if scheme.input_block is None:
        return Operand([], [], x, source)
    is_nvfp4 = scheme.scale == "e4m3"
    row_block, k_block = scheme.input_block
    row_scales = 1 if row_block is None else rows
    grid = f"{row_scales}x{1 if k_block is None else -(-k // k_block)}"
    amax, factors = f"tensor<{grid}xf32>", f"tensor<{grid}x{SCALES[scheme.scale].mlir}>"
    block, (nan, rule) = write_block(scheme.input_block), casts.write_rule(scheme.rule)
    scale, inverse, amaxes, all_, tensor, codes = (f"%{name}{suffix}" for name in ("s", "i", "amax", "all", "t", "q"))
    static, reciprocal = f"%xs{suffix}", f"%xr{suffix}"
    arguments, lines = [], []
    if not scheme.dynamic:
        arguments.append(f"{static}: {amax if per_row else ONE}")
    if is_nvfp4 or scheme.dynamic:
        lines.append(f"{amaxes} = fp8.amax {x} block = {block}{nan} : {source}")
    if is_nvfp4:
        if scheme.dynamic:
            lines.append(f"{all_} = fp8.amax {x} block = [*, *] : {source}")
        else:
            lines += [f"%max{suffix} = arith.constant dense<{NVFP4_MAX:e}> : {ONE}",
                      f"{all_} = arith.divf %max{suffix}, {static} : {ONE}"]
        lines.append(f"{scale}, {inverse}, {tensor} = fp8.compute_scale {amaxes} tensor_amax({all_} : {ONE}) "
                     f"format = {scheme.codes.mlir} scale_type = {SCALES[scheme.scale].mlir} : {amax}")
    elif scheme.dynamic:
        lines.append(f"{scale}, {inverse} = fp8.compute_scale {amaxes} format = {scheme.codes.mlir} "
                     f"scale_type = {SCALES[scheme.scale].mlir} {rule} : {amax}")
    elif per_row:
        arguments.append(f"{reciprocal}: {amax}")
        scale, inverse = reciprocal, static
    else:
        inverse = static
        lines += [f"%c1{suffix} = arith.constant dense<1.0> : {ONE}",
                  f"{scale} = arith.divf %c1{suffix}, {static} : {ONE}"]
    scaled = _write_scaled(scheme, f"{rows}x{k}", scheme.input_block)
    lines.append(f"{codes} = fp8.quantize {x} scale({scale}, {inverse} : {amax}, {factors})"
                 + f" tensor_scale_inv({tensor} : {ONE})" * is_nvfp4 + f" : {source} -> {scaled}")
    return Operand(arguments, lines, codes, "!fp8.scaled" + scaled)


def write_weight(scheme, n, k, element, groups=None, suffix=""):
    """A weight of N x K, or one for each of some groups. Where activations are in high precision, it is what it is
    rounded to their type. NVFP4's scale for the tensor is %wg, and of groups 1: results are multiplied with theirs. So
    are sums in high precision with %wg, since kernels read codes and factors, which are a bf16 without it, and sums of
    E4M3 with %ws where that is one for each row, or one for all. Of groups these take %units in place of %ws, factors that
    are 1, and their results are multiplied, too."""
    is_nvfp4, scale = scheme.scale == "e4m3", SCALES[scheme.scale].mlir
    first = "" if groups is None else f"{groups}x"
    sizes = f"{first}{n}x{k}"
    codes = f"tensor<{sizes}x{E4M3.mlir if scheme.packed else scheme.codes.mlir}>"
    grid = "x".join(map(str, scheme.get_grid(scheme.weight_block, n, k)))
    factors = f"tensor<{first}{grid}x{scale}>"
    block = scheme.weight_block if groups is None else (1, *scheme.weight_block)
    rank = 2 if groups is None else 3
    w, ws, wg, wq = (f"%{name}{suffix}" for name in ("w", "ws", "wg", "wq"))
    marks = "{fp8.weight, fp8.arranged = 1}" if scheme.arranged else "{fp8.weight}"
    arguments, lines = [f"{w}: {codes} {marks}", f"{ws}: {factors}"], []
    if scheme.packed:
        stored = f"tensor<{sizes}x{E2M1.mlir}>"
        exponents = f"tensor<{first}{-(-k // packed.WORD)}x{n}xi32>"
        arguments[:1] = [f"%p{suffix}: {stored} {marks}", f"%e{suffix}: {exponents}"]
        lines.append(f"{w} = fp8.lift %p{suffix}, %e{suffix} : {stored}, {exponents} -> {codes}")
    if scheme.multiplies_sums(n, k):
        return (_write_unscaled(scheme, n, k, element, arguments, suffix) if groups is None else
                _write_unscaled_groups(groups, n, k, element, arguments[0], suffix))
    one = f"tensor<{'x'.join('1' * rank)}xf32>"
    if is_nvfp4:
        lines.append(f"%one{suffix} = arith.constant dense<1.0> : {one}")
    tensor = f"%one{suffix}"
    if is_nvfp4 and groups is None:
        arguments.append(f"{wg}: {one}")
        lines.append(f"%wt{suffix} = arith.divf %one{suffix}, {wg} : {one}")
        if scheme.input_block is not None:
            tensor = f"%wt{suffix}"
    scaled = _write_scaled(scheme, sizes, block)
    lines.append(f"{wq} = fp8.assemble {w}, {ws}" + f", {tensor}" * is_nvfp4 + f" : {codes}, {factors}"
                 + f", {one}" * is_nvfp4 + f" -> {scaled}")
    if scheme.input_block is not None:
        return Operand(arguments, lines, wq, "!fp8.scaled" + scaled)
    wide = f"tensor<{sizes}x{element}>"
    lines.append(f"%dense{suffix} = fp8.dequantize {wq} : !fp8.scaled{scaled} -> {wide}")
    steps = (("mulf", f"%wt{suffix}", ONE),) if is_nvfp4 and groups is None else ()
    return Operand(arguments, lines, f"%dense{suffix}", wide, steps)


def _write_units(n, k, first=()):
    """The type of factors that are 1, and what block and type they are of: one for 128x128, which takes fewest loads."""
    ones = ", ".join("1" for _ in first)
    sizes = "x".join(map(str, (*first, -(-n // 128), -(-k // 128))))
    return f"tensor<{sizes}x{F32.mlir}>", f"block = [{ones}{', ' * bool(first)}128, 128], scale = {F32.mlir}"


def _write_unscaled(scheme, n, k, element, arguments, suffix):
    """A weight of E4M3 without its scale, with factors that are 1, of which kernels read codes."""
    codes, (units, blocks) = f"tensor<{n}x{k}x{E4M3.mlir}>", _write_units(n, k)
    scaled = f"!fp8.scaled<{n}x{k}x{E4M3.mlir}, {blocks}>"
    wide, scale = f"tensor<{n}x{k}x{element}>", f"%ws{suffix}"
    lines = [f"%units{suffix} = arith.constant dense<1.0> : {units}",
             f"%wq{suffix} = fp8.assemble %w{suffix}, %units{suffix} : {codes}, {units} -> {scaled}",
             f"%dense{suffix} = fp8.dequantize %wq{suffix} : {scaled} -> {wide}"]
    if scheme.weight_block[0] is None:
        return Operand(arguments, lines, f"%dense{suffix}", wide, (("mulf", scale, ONE),))
    lines.append(f"%wr{suffix} = tensor.collapse_shape {scale} [[0, 1]] : tensor<{n}x1xf32> into tensor<{n}xf32>")
    return Operand(arguments, lines, f"%dense{suffix}", wide, (("mulf", f"%wr{suffix}", f"tensor<{n}xf32>"),))


def _write_unscaled_groups(groups, n, k, element, codes, suffix):
    """The same of groups: as a constant, factors that are 1 would be up to a thirtieth of all weights."""
    sizes, (units, blocks) = f"{groups}x{n}x{k}", _write_units(n, k, (groups,))
    of_codes, wide = f"tensor<{sizes}x{E4M3.mlir}>", f"tensor<{sizes}x{element}>"
    scaled = f"!fp8.scaled<{sizes}x{E4M3.mlir}, {blocks}>"
    lines = [f"%wq{suffix} = fp8.assemble %w{suffix}, %units{suffix} : {of_codes}, {units} -> {scaled}",
             f"%dense{suffix} = fp8.dequantize %wq{suffix} : {scaled} -> {wide}"]
    return Operand([codes, f"%units{suffix}: {units}"], lines, f"%dense{suffix}", wide)


def write_epilogue(element, steps):
    """What becomes of a sum, by `steps` in turn: the operation, "mulf" or "addf", with an operand, and its type. Without
    any it is "", and the sum is rounded."""
    if not steps:
        return ""
    operands, types = ", ".join(name for _, name, _ in steps), ", ".join(type for _, _, type in steps)
    kinds = [type.rpartition("x")[2].removesuffix(">") for _, _, type in steps]
    arguments = "".join(f", %o{i}: {kind}" for i, kind in enumerate(kinds))
    lines, value = [f" epilogue({operands} : {types}) {{", f"^bb0(%acc: f32{arguments}):"], "%acc"
    for i, ((operation, _, _), kind) in enumerate(zip(steps, kinds)):
        operand = f"%o{i}"
        if kind != "f32":
            lines.append(f"  %wide{i} = arith.extf {operand} : {kind} to f32")
            operand = f"%wide{i}"
        lines.append(f"  %r{i} = arith.{operation} {value}, {operand} : f32")
        value = f"%r{i}"
    if element != "f32":
        lines.append(f"  %out = arith.truncf {value} : f32 to {element}")
        value = "%out"
    return "\n  ".join([*lines, f"  fp8.yield {value} : {element}", "  }"])
