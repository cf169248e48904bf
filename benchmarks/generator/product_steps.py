"""Steps with the dialect's products: fp8.matmul, its groups, and fp8.grouped_matmul."""

from generator.builder import ELEMENTS, indent
from generator.scaled_steps import assemble, permute, quantize
from generator.tensor_steps import PRODUCTS
from generator.values import Scaled, Value, count, spell

# How A and B are scaled: blocks of rows and of K, of each; the type of factors, the codes.
STYLES = {
    "plain": None,
    "tensor": (("*", "*"), ("*", "*"), "f32"),
    "row": (("1", "*"), ("1", "*"), "f32"),
    "row_tensor": (("1", "*"), ("*", "*"), "f32"),
    "block": (("1", "128"), ("128", "128"), "f32"),
    "both": (("1", "128"), ("1", "128"), "f32"),
    "mxfp8": (("1", "32"), ("1", "32"), "f8E8M0FNU"),
    "nvfp4": (("1", "16"), ("1", "16"), "f8E4M3FN"),
}


def make_operand(b, batch, rows, k, style, side, groups=False, element="bf16", turned=None):
    """A tensor of `batch` x `rows` x `k`, or turned in its last two dimensions, and whether it is;
    the factors of `groups` are not shared by them."""
    turned = b.chance(0.3) if turned is None else turned
    dims = [*batch, *([k, rows] if turned else [rows, k])]
    if style == "plain":
        found = b.pick(lambda v: v.dims == dims and v.element == element) if b.chance(0.3) else None
        return found or b.argument(dims, element), turned
    block, scale = STYLES[style][side == "b"], STYLES[style][2]
    lead = "*" if block == ("*", "*") and not groups else "1"
    block = [lead] * len(batch) + list(block[::-1] if turned else block)
    code = "f4E2M1FN" if style == "nvfp4" else b.choice(["f8E4M3FN", "f8E4M3FN", "f8E5M2"])
    if b.chance(0.4) and (code != "f4E2M1FN" or not (dims[-1].is_open or dims[-1].size % 2)):
        return assemble(b, dims, code, block, scale), turned
    x = b.pick(lambda v: v.dims == dims)
    if x is None or b.chance(0.5):
        x = b.argument(dims, b.choice(["bf16", "f16", "f32"]))
    q = quantize(b, x, code, block, scale)
    if b.chance(0.2):  # Transposed after it was quantized.
        order = [*range(len(batch)), len(dims) - 1, len(dims) - 2]
        return permute(b, q, order), not turned
    return q, turned


def make_flags(turned_a, turned_b, accumulate):
    return ((" transpose_a" if turned_a else "") + (" transpose_b" if turned_b else "")
            + (" accumulate = fast" if accumulate == "fast" else ""))


def make_epilogue(b, dims, element, operands=None):
    """Its text, of an f32 and of operands that are broadcast to `dims`."""
    if operands is None:
        operands = []
        for _ in range(b.choice([0, 1, 1, 2])):
            shapes = [dims[-1:], dims] + ([[*dims[:-1], ONE]] if len(dims) > 1 else [])
            shape = b.choice(shapes)
            names = [dim for dim in shape if dim is not ONE]
            found = b.pick(lambda v: v.dims == shape)
            if found is None:
                found = b.argument(names) if shape == names else b.argument_of(shape)
            operands.append(found)
    acc = Value("%acc", [], "f32")
    lines, name, _ = b.expression([acc, *operands], element, steps=b.rng.randrange(1, 4))
    arguments = ", ".join(f"%a{i}: {value.element}" for i, value in enumerate([acc, *operands]))
    listed = ""
    if operands:
        listed = (f"({', '.join(value.name for value in operands)} : "
                  f"{', '.join(value.type for value in operands)})")
    return (f" epilogue{listed} {{\n  ^bb0({arguments}):\n"
            f"{indent([*lines, f'fp8.yield {name} : {element}'])}\n  }}")


class One:
    """A dimension of one element that is no other tensor's."""

    size, is_open, name = 1, False, "one"

    def __str__(self):
        return "1"


ONE = One()


def choose_accumulate(b, style):
    if style == "plain":
        return "fast"
    return "promote" if style not in ("tensor", "row", "row_tensor") else b.choice(["promote", "fast"])


def fits(dims, k):
    return count(dims) <= ELEMENTS and count([*dims, k]) <= PRODUCTS


def draw_extents(b):
    """Distinct dimensions for M, N and K, and sometimes a batch. K is often one that kernels take."""
    found = b.pick_dims(3)
    while len(found) < 3:
        found.append(b.make_dim(b.choice([1, 2, 3, 7, 16])))
    if b.chance(0.4):
        found[2] = b.make_dim(b.choice([16, 32, 128, 144, 272]))
    batch = [b.make_dim(b.choice([0, 1, 2, 3]))] if b.chance(0.3) else []
    return batch, found


def get_innermost(m, n, k, turned_a, turned_b):
    """The dimensions that are innermost in A, in B and in the result."""
    return [m if turned_a else k, n if turned_b else k, n]


def matmul(b):
    batch, (m, n, k) = draw_extents(b)
    dims = [*batch, m, n]
    if not fits(dims, k):
        return
    style, element = b.choice(list(STYLES)), b.choice(["bf16", "f16", "f32"])
    left, turned_a = make_operand(b, batch, m, k, style, "a", element=element)
    right, turned_b = make_operand(b, batch, n, k, style, "b", element=element)
    flags = make_flags(turned_a, turned_b, choose_accumulate(b, style))
    innermost = get_innermost(m, n, k, turned_a, turned_b)
    is_loose = b.is_loose(innermost)
    if not is_loose and b.chance(0.15):
        return quantized(b, left, right, flags, dims)
    out = b.new(dims, b.choice(["f32", "bf16", "f16"]))
    epilogue = make_epilogue(b, dims, out.element) if not is_loose and b.chance(0.6) else ""
    b.line(f"{out.name} = fp8.matmul {left.name}, {right.name}{flags}{epilogue} : {left.type}, "
           f"{right.type} -> {out.type} loc(\"m{b.number}\")")
    b.keep_product(out, innermost)


def quantized(b, left, right, flags, dims):
    """To codes, with a scale that the caller has, and the amax."""
    code, limit = b.choice([("f8E4M3FN", "448.0"), ("f8E5M2", "57344.0")])
    scale = b.argue([], "f32", "f32", "factors")
    ones, codes, amax = spell(["1"] * len(dims), "f32"), spell(dims, code), b.fresh("r")
    b.line(f"""{amax}:2 = fp8.matmul {left.name}, {right.name}{flags} epilogue {{
  ^bb0(%acc: f32):
    %high = arith.constant {limit} : f32
    %low = arith.constant -{limit} : f32
    %scaled = arith.mulf %acc, {scale} : f32
    %above = arith.cmpf ogt, %scaled, %high : f32
    %s1 = arith.select %above, %high, %scaled : f32
    %below = arith.cmpf olt, %s1, %low : f32
    %s2 = arith.select %below, %low, %s1 : f32
    %code = arith.truncf %s2 : f32 to {code}
    fp8.yield %code, %acc : {code}, f32
  }} : {left.type}, {right.type} -> {codes}, {ones}""")
    b.results += [Value(f"{amax}#0", dims, code), Value(f"{amax}#1", [ONE] * len(dims), "f32")]


def group(b):
    """Products of one A or of one B, or a pair of which the second reads the first one's result."""
    batch, (m, n, k) = draw_extents(b)
    if not fits([*batch, m, n], k):
        return
    style, element = b.choice(list(STYLES)), b.choice(["bf16", "f16"])
    accumulate = choose_accumulate(b, style)
    is_pair = b.chance(0.3) and not b.is_loose([m, n, k])
    share = "a" if is_pair else b.choice("ab")
    shared, turned = make_operand(b, batch, m if share == "a" else n, k, style, share, element=element)
    lines, outs, innermost = [], [], []
    number = 2 if is_pair else b.choice([2, 2, 3])
    for i in range(number):
        if is_pair:
            rows = n
        else:
            rows = b.choice([n if share == "a" else m, b.make_dim(b.choice([1, 7, 16, 17]))])
        other, turned_other = make_operand(b, batch, rows, k, style, "b" if share == "a" else "a",
                                           element=element)
        a, c = (shared, other) if share == "a" else (other, shared)
        turns = (turned, turned_other) if share == "a" else (turned_other, turned)
        dims = [*batch, m, rows] if share == "a" else [*batch, rows, n]
        innermost += get_innermost(*dims[-2:], k, *turns)
        out = Value(f"%in{i}", dims, b.choice(["bf16", "f32"]))
        epilogue = ""
        if is_pair and i == 1:
            epilogue = make_epilogue(b, dims, out.element, [outs[0]])
        elif b.chance(0.3) and not is_pair and not b.is_loose(innermost):
            epilogue = make_epilogue(b, dims, out.element)
        lines.append(f"    {out.name} = fp8.matmul {a.name}, {c.name}"
                     f"{make_flags(*turns, accumulate)}{epilogue} : {a.type}, {c.type} -> {out.type}")
        outs.append(out)
    if is_pair:
        outs = outs[1:]
    types = ", ".join(out.type for out in outs)
    name = b.fresh("g")
    lines.append(f"    fp8.yield {', '.join(out.name for out in outs)} : {types}")
    b.line(f"{name}{f':{len(outs)}' if len(outs) > 1 else ''} = fp8.sibling_matmuls {{\n"
           + "\n".join(lines) + f"\n  }} : {types}")
    for i, out in enumerate(outs):
        b.keep_product(Value(f"{name}#{i}" if len(outs) > 1 else name, out.dims, out.element),
                       innermost)


def grouped(b):
    """Products of groups of rows, or of K, that offsets or counts tell."""
    _, (m, n, k) = draw_extents(b)
    groups, form = b.make_dim(b.choice([1, 2, 3])), b.choice(["rows", "k", "counts", "counts_k"])
    lead = [groups] if form.startswith("counts") else []
    dims = [m, n] if form == "rows" else [groups, m, n]
    if not fits(dims, k) or not fits([groups, n, k], ONE) or not fits([*lead, m, k], ONE):
        return
    styles = ["plain", "plain", "tensor", "row"] + (["block", "both", "mxfp8", "nvfp4"] if form in (
        "rows", "counts") else [])
    style, element = b.choice(styles), b.choice(["bf16", "f16"])
    # Groups are slices, and of rows that turn out to be odd there is none in whole bytes.
    if style == "nvfp4" and any(dim.is_open and dim.size % 2 for dim in (m, n, k)):
        return
    left, turned_a = make_operand(b, lead, m, k, style, "a", groups=True, element=element)
    # Nor are there counts of columns in whole bytes.
    if style == "nvfp4" and turned_a:
        return
    right, turned_b = make_operand(b, [] if form == "k" else [groups], n, k, style, "b", groups=True,
                                   element=element)
    flags = make_flags(turned_a, turned_b, choose_accumulate(b, style))
    limit = (k if form in ("k", "counts_k") else m).size
    extra = int(form in ("rows", "k"))
    bound = b.make_dim(groups.size + 1, groups.is_open) if extra else groups
    if bound is not groups and bound.is_open:
        b.line(f"%size_{bound.name} = arith.addi {b.size(groups)}, %c1 : index")
    type_ = spell([bound], "i32")
    bounds = b.argue([groups.size + extra], "i32", type_, f"{'offsets' if extra else 'counts'} {limit}")
    word = {"rows": "offsets", "k": "offsets"}.get(form, form)
    out = b.new(dims, b.choice(["f32", "bf16"]))
    innermost = get_innermost(m, n, k, turned_a, turned_b)
    has_epilogue = form != "k" and not b.is_loose(innermost) and b.chance(0.4)
    epilogue = make_epilogue(b, dims, out.element) if has_epilogue else ""
    b.line(f"{out.name} = fp8.grouped_matmul {left.name}, {right.name} {word}({bounds} : {type_})"
           f"{flags}{epilogue} : {left.type}, {right.type} -> {out.type} loc(\"m{b.number}\")")
    b.keep_product(out, innermost)


STEPS = [matmul] * 4 + [group, group, grouped, grouped, grouped]
