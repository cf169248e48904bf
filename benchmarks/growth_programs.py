"""Programs of a number of equal parts, each along one way to grow: by depth, width,
arguments, functions or uses of a value, as test/Pipelines/compile-growth.py and
compile_growth.py compile them.
"""

from typing import NamedTuple

X, W, SUMS = "tensor<64x256xbf16>", "tensor<256x256xbf16>", "tensor<64x256xf32>"
ZERO = "  %zero = arith.constant 0.0 : f32"


def product(name, x, w):
    """`%name` is `x` times `w`, rounded to bf16."""
    return [f"  %e_{name} = tensor.empty() : {SUMS}",
            f"  %z_{name} = linalg.fill ins(%zero : f32) outs(%e_{name} : {SUMS}) -> {SUMS}",
            f"  %p_{name} = linalg.matmul ins({x}, {w} : {X}, {W}) outs(%z_{name} : {SUMS})"
            f" -> {SUMS}",
            f"  %{name} = arith.truncf %p_{name} : {SUMS} to {X}"]


def join(lines):
    return "\n".join([*lines, ""])


def arguments(count, type_, letter="w"):
    return "".join(f", %{letter}{i}: {type_}" for i in range(count))


def depth(count):
    """Products, each of what the one before makes."""
    lines = [f"func.func @depth(%x0: {X}{arguments(count, W)}) -> {X} {{", ZERO]
    for i in range(count):
        lines += product(f"x{i + 1}", f"%x{i}", f"%w{i}")
    return join([*lines, f"  return %x{count} : {X}", "}"])


def width(count):
    """Products of one operand, and their sum."""
    lines = [f"func.func @width(%x: {X}{arguments(count, W)}) -> {X} {{", ZERO]
    for i in range(count):
        lines += product(f"y{i}", "%x", f"%w{i}")
        lines += [f"  %s{i} = arith.addf {f'%s{i - 1}' if i else '%x'}, %y{i} : {X}"]
    return join([*lines, f"  return %s{count - 1} : {X}", "}"])


def idle_arguments(count):
    """Arguments that nothing is done with."""
    return join([f"func.func @idle_arguments(%x: {X}{arguments(count, W)}) -> {X} {{",
                 f"  return %x : {X}", "}"])


def functions(count, last):
    """Functions that each call the next, until `last`, which is called under a condition."""
    lines = []
    for i in range(count):
        lines += [f"func.func {'private ' if i else ''}@f{i}(%x: {X}, %w: {W}) -> {X} {{", ZERO,
                  *product("y", "%x", "%w")]
        callee = i + 1 if i + 1 < count else last
        if callee is None:
            lines += [f"  return %y : {X}", "}"]
        elif i + 1 == count:
            lines += ["  %i = arith.constant 0 : index", f"  %e = tensor.extract %y[%i, %i] : {X}",
                      "  %n = arith.constant 0.0 : bf16", "  %c = arith.cmpf one, %e, %n : bf16",
                      f"  %r = scf.if %c -> {X} {{",
                      f"    %s = func.call @f{callee}(%y, %w) : ({X}, {W}) -> {X}",
                      f"    scf.yield %s : {X}", "  } else {", f"    scf.yield %y : {X}", "  }",
                      f"  return %r : {X}", "}"]
        else:
            lines += [f"  %r = func.call @f{callee}(%y, %w) : ({X}, {W}) -> {X}",
                      f"  return %r : {X}", "}"]
    return join(lines)


def calls(count):
    """Functions in a chain of calls."""
    return functions(count, None)


def cycle(count):
    """Functions in a cycle of calls."""
    return functions(count, 0)


def uses(count):
    """Products of which each is used by all kinds of users, and so by many paths."""
    lines = [f"func.func @uses(%x0: {X}, %w: {W}) -> {X} {{", ZERO]
    for i in range(count):
        lines += [*product(f"y{i}", f"%x{i}", "%w"),
                  f"  %a{i} = math.absf %y{i} : {X}", f"  %b{i} = arith.negf %y{i} : {X}",
                  f"  %c{i} = arith.mulf %a{i}, %b{i} : {X}",
                  f"  %x{i + 1} = arith.addf %c{i}, %y{i} : {X}"]
    return join([*lines, f"  return %x{count} : {X}", "}"])


def fan_out(count):
    """One value that so many elementwise operations use."""
    lines = [f"func.func @fan_out(%s0: {X}, %w: {W}) -> {X} {{", ZERO,
             *product("y", "%s0", "%w")]
    lines += [f"  %s{i + 1} = arith.addf %s{i}, %y : {X}" for i in range(count)]
    return join([*lines, f"  return %s{count} : {X}", "}"])


def results(count):
    """Sums, all of which are returned."""
    lines = [f"func.func @results(%s0: {X}, %w: {W}) -> ({', '.join([X] * count)}) {{", ZERO,
             *product("y", "%s0", "%w")]
    lines += [f"  %s{i + 1} = arith.addf %s{i}, %y : {X}" for i in range(count)]
    names = ", ".join(f"%s{i + 1}" for i in range(count))
    return join([*lines, f"  return {names} : {', '.join([X] * count)}", "}"])


def shared_operand(count):
    """Products in a row by one and the same matrix."""
    x, w = "tensor<32x128xf32>", "tensor<128x128xf32>"
    lines = [f"func.func @shared_operand(%x0: {x}, %w: {w}) -> {x} {{", ZERO]
    for i in range(count):
        lines += [f"  %e{i} = tensor.empty() : {x}",
                  f"  %z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {x}) -> {x}",
                  f"  %x{i + 1} = linalg.matmul ins(%x{i}, %w : {x}, {w}) outs(%z{i} : {x})"
                  f" -> {x}"]
    return join([*lines, f"  return %x{count} : {x}", "}"])


class Block(NamedTuple):
    """One of EfficientNet: 1x1 to more channels, depthwise, squeeze and excitation, 1x1 back,
    with norms of an inference and, where the shapes agree, the sum with what came in."""
    size: int
    channels: int
    wide: int
    squeezed: int
    out: int
    kernel: int
    stride: int


def convolutions(count):
    """Equal blocks of EfficientNet."""
    return mobile_net([Block(8, 16, 64, 4, 16, 3, 1)] * count)


def efficient_net(stages):
    """The blocks of the first stages of EfficientNet-B0, for images of 224 x 224."""
    blocks, size, channels = [], 112, 32
    for expansion, out, repeats, kernel, stride in (
            (1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2),
            (6, 112, 3, 5, 1), (6, 192, 4, 5, 2), (6, 320, 1, 3, 1))[:stages]:
        for i in range(repeats):
            blocks.append(Block(size, channels, channels * expansion, channels // 4, out, kernel,
                                1 if i else stride))
            size, channels = size // blocks[-1].stride, out
    return mobile_net(blocks)


def image(size, channels):
    return f"tensor<1x{size}x{size}x{channels}xf32>"


def zeros(name, type_):
    return [f"  %{name}_e = tensor.empty() : {type_}",
            f"  %{name}_z = linalg.fill ins(%zero : f32) outs(%{name}_e : {type_}) -> {type_}"]


def convolve(name, op, x, x_type, w, w_type, type_, attributes=""):
    return [*zeros(name, type_),
            f"  %{name} = linalg.{op} {attributes}ins({x}, {w} : {x_type}, {w_type}) "
            f"outs(%{name}_z : {type_}) -> {type_}"]


def generic(name, inputs, maps, type_, body, kinds="parallel parallel parallel parallel"):
    names = ", ".join(value for value, _ in inputs)
    types = ", ".join(t for _, t in inputs)
    iterators = ", ".join(f'"{k}"' for k in kinds.split())
    block = ", ".join(f"%i{k}: f32" for k in range(len(inputs)))
    return [*zeros(name, type_),
            f"  %{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{iterators}]}} ins({names} : {types}) "
            f"outs(%{name}_z : {type_}) {{",
            f"  ^bb0({block}, %out: f32):", *body, f"  }} -> {type_}"]


SAME = "affine_map<(n, h, w, c) -> (n, h, w, c)>"
BY_CHANNEL = "affine_map<(n, h, w, c) -> (n, c)>"


def gate(x, by):
    """`x` times the sigmoid of `by`."""
    return ["    %one = arith.constant 1.0 : f32", f"    %n = arith.negf {by} : f32",
            "    %power = math.exp %n : f32", "    %s = arith.addf %power, %one : f32",
            f"    %y = arith.divf {x}, %s : f32", "    linalg.yield %y : f32"]


def mobile_net(blocks):
    arguments, lines, value = "", [], "%x"
    for i, b in enumerate(blocks):
        small = image(b.size, b.channels)
        large, padded = image(b.size, b.wide), image(b.size + b.kernel - b.stride, b.wide)
        less, last = image(b.size // b.stride, b.wide), image(b.size // b.stride, b.out)
        pooled, few = f"tensor<1x{b.wide}xf32>", f"tensor<1x{b.squeezed}xf32>"
        weights = {"e": f"tensor<1x1x{b.channels}x{b.wide}xf32>",
                   "d": f"tensor<{b.kernel}x{b.kernel}x{b.wide}xf32>",
                   "q": f"tensor<{b.wide}x{b.squeezed}xf32>",
                   "u": f"tensor<{b.squeezed}x{b.wide}xf32>",
                   "p": f"tensor<1x1x{b.wide}x{b.out}xf32>", "g": pooled, "o": pooled}
        arguments += "".join(f", %{k}{i}: {t}" for k, t in weights.items())

        def normed(name, x, type_, i=i, pooled=pooled):
            return generic(name, [(x, type_), (f"%g{i}", pooled), (f"%o{i}", pooled)],
                           [SAME, BY_CHANNEL, BY_CHANNEL, SAME], type_,
                           ["    %m = arith.mulf %i0, %i1 : f32", "    %a = arith.addf %m, %i2 : f32",
                            *gate("%a", "%a")])

        low = (b.kernel - b.stride) // 2
        high = b.kernel - b.stride - low
        lines += [
            *convolve(f"c{i}", "conv_2d_nhwc_hwcf", value, small, f"%e{i}", weights["e"], large),
            *normed(f"n{i}", f"%c{i}", large),
            f"  %pad{i} = tensor.pad %n{i} low[0, {low}, {low}, 0] high[0, {high}, {high}, 0] {{",
            "  ^bb0(%j0: index, %j1: index, %j2: index, %j3: index):",
            "    tensor.yield %zero : f32", f"  }} : {large} to {padded}",
            *convolve(f"k{i}", "depthwise_conv_2d_nhwc_hwc", f"%pad{i}", padded, f"%d{i}",
                      weights["d"], less, f"{{strides = dense<{b.stride}> : tensor<2xi64>}} "),
            *normed(f"h{i}", f"%k{i}", less),
            *generic(f"a{i}", [(f"%h{i}", less)], [SAME, BY_CHANNEL], pooled,
                     ["    %y = arith.addf %i0, %out : f32", "    linalg.yield %y : f32"],
                     "parallel reduction reduction parallel"),
            *convolve(f"b{i}", "matmul", f"%a{i}", pooled, f"%q{i}", weights["q"], few),
            *convolve(f"t{i}", "matmul", f"%b{i}", few, f"%u{i}", weights["u"], pooled),
            *generic(f"v{i}", [(f"%h{i}", less), (f"%t{i}", pooled)], [SAME, BY_CHANNEL, SAME],
                     less, gate("%i0", "%i1")),
            *convolve(f"y{i}", "conv_2d_nhwc_hwcf", f"%v{i}", less, f"%p{i}", weights["p"], last)]
        if small == last:
            lines.append(f"  %x{i} = arith.addf {value}, %y{i} : {small}")
        value = f"%x{i}" if small == last else f"%y{i}"
    first = image(blocks[0].size, blocks[0].channels)
    return join([f"func.func @net(%x: {first}{arguments}) -> {last} {{", ZERO, *lines,
                 f"  return {value} : {last}", "}"])
