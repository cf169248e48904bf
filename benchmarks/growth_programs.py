"""Programs of a number of equal parts, each along one way to grow: by depth, width,
arguments, functions or uses of a value, as test/Pipelines/compile-growth.py and
compile_growth.py compile them.
"""

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


# Channels of a block of convolutions, and of its squeeze.
CHANNELS, WIDE, SQUEEZED, SIZE = 16, 64, 4, 8


def convolutions(count):
    """Blocks of EfficientNet: 1x1 to more channels, depthwise 3x3, squeeze and
    excitation, 1x1 back, with norms of an inference and the sum with what came in."""
    small, large = (f"tensor<1x{SIZE}x{SIZE}x{c}xf32>" for c in (CHANNELS, WIDE))
    padded = f"tensor<1x{SIZE + 2}x{SIZE + 2}x{WIDE}xf32>"
    expand, project = (f"tensor<1x1x{a}x{b}xf32>" for a, b in ((CHANNELS, WIDE), (WIDE, CHANNELS)))
    depthwise, pooled = f"tensor<3x3x{WIDE}xf32>", f"tensor<1x{WIDE}xf32>"
    down, up, few = (f"tensor<{WIDE}x{SQUEEZED}xf32>", f"tensor<{SQUEEZED}x{WIDE}xf32>",
                     f"tensor<1x{SQUEEZED}xf32>")
    same = "affine_map<(n, h, w, c) -> (n, h, w, c)>"
    by_channel = "affine_map<(n, h, w, c) -> (n, c)>"
    kinds = {"e": expand, "d": depthwise, "q": down, "u": up, "p": project, "g": pooled,
             "o": pooled}
    weights = "".join(f", %{k}{i}: {t}" for i in range(count) for k, t in kinds.items())
    lines = [f"func.func @convolutions(%x0: {small}{weights}) -> {small} {{", ZERO]

    def zeros(name, type_):
        return [f"  %{name}_e = tensor.empty() : {type_}",
                f"  %{name}_z = linalg.fill ins(%zero : f32) outs(%{name}_e : {type_}) -> {type_}"]

    def generic(name, inputs, maps, type_, body, kinds="parallel"):
        names = ", ".join(value for value, _ in inputs)
        types = ", ".join(t for _, t in inputs)
        iterators = ", ".join(f'"{k}"' for k in kinds.split())
        arguments = ", ".join(f"%i{k}: f32" for k in range(len(inputs)))
        return [f"  %{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
                f"iterator_types = [{iterators}]}} ins({names} : {types}) "
                f"outs(%{name}_z : {type_}) {{",
                f"  ^bb0({arguments}, %out: f32):", *body, f"  }} -> {type_}"]

    parallel = "parallel parallel parallel parallel"
    norm = ["    %m = arith.mulf %i0, %i1 : f32", "    %a = arith.addf %m, %i2 : f32"]
    swish = ["    %one = arith.constant 1.0 : f32", "    %n = arith.negf %a : f32",
             "    %x = math.exp %n : f32", "    %s = arith.addf %x, %one : f32",
             "    %y = arith.divf %a, %s : f32", "    linalg.yield %y : f32"]
    gate = ["    %one = arith.constant 1.0 : f32", "    %n = arith.negf %i1 : f32",
            "    %x = math.exp %n : f32", "    %s = arith.addf %x, %one : f32",
            "    %y = arith.divf %i0, %s : f32", "    linalg.yield %y : f32"]
    for i in range(count):
        def convolve(name, op, x, x_type, w, w_type, type_):
            return [*zeros(name, type_),
                    f"  %{name} = linalg.{op} ins({x}, {w} : {x_type}, {w_type}) "
                    f"outs(%{name}_z : {type_}) -> {type_}"]

        def normed(name, x, i=i):
            return [*zeros(name, large),
                    *generic(name, [(x, large), (f"%g{i}", pooled), (f"%o{i}", pooled)],
                             [same, by_channel, by_channel, same], large, norm + swish, parallel)]

        lines += [
            *convolve(f"c{i}", "conv_2d_nhwc_hwcf", f"%x{i}", small, f"%e{i}", expand, large),
            *normed(f"n{i}", f"%c{i}"),
            f"  %pad{i} = tensor.pad %n{i} low[0, 1, 1, 0] high[0, 1, 1, 0] {{",
            "  ^bb0(%j0: index, %j1: index, %j2: index, %j3: index):",
            "    tensor.yield %zero : f32", f"  }} : {large} to {padded}",
            *convolve(f"k{i}", "depthwise_conv_2d_nhwc_hwc", f"%pad{i}", padded, f"%d{i}",
                      depthwise, large),
            *normed(f"h{i}", f"%k{i}"),
            *zeros(f"a{i}", pooled),
            *generic(f"a{i}", [(f"%h{i}", large)], [same, by_channel], pooled,
                     ["    %y = arith.addf %i0, %out : f32", "    linalg.yield %y : f32"],
                     "parallel reduction reduction parallel"),
            *convolve(f"b{i}", "matmul", f"%a{i}", pooled, f"%q{i}", down, few),
            *convolve(f"t{i}", "matmul", f"%b{i}", few, f"%u{i}", up, pooled),
            *zeros(f"v{i}", large),
            *generic(f"v{i}", [(f"%h{i}", large), (f"%t{i}", pooled)], [same, by_channel, same],
                     large, gate, parallel),
            *convolve(f"y{i}", "conv_2d_nhwc_hwcf", f"%v{i}", large, f"%p{i}", project, small),
            f"  %x{i + 1} = arith.addf %x{i}, %y{i} : {small}"]
    return join([*lines, f"  return %x{count} : {small}", "}"])
