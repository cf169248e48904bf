"""Steps with the dialect's operations on scaled tensors, but for products."""

from generator.builder import ELEMENTS
from generator.values import Scaled, Value, count, get_grid, get_grid_shape, spell

CODES = ["f8E4M3FN", "f8E4M3FN", "f8E5M2"]
# Blocks of the last two dimensions: their extents and the type of their factor.
BLOCKS = [("*", "*", "f32"), ("1", "*", "f32"), ("1", "128", "f32"), ("128", "128", "f32"),
          ("128", "1", "f32"), ("*", "1", "f32"), ("16", "16", "f32"), ("1", "32", "f8E8M0FNU"),
          ("32", "1", "f8E8M0FNU"), ("1", "16", "f8E4M3FN"), ("16", "16", "f8E4M3FN")]
RULES = ["", "", " rule(#fp8.scale_rule<pow2 = true>)", " rule(#fp8.scale_rule<epsilon = 0.125>)",
         " rule(#fp8.scale_rule<style = torchao>)"]


def make_block(rank, rows, columns):
    """The blocks of a tensor; "*" in both is one factor for all of it."""
    if rank == 1:
        return [columns]
    return ["*" if (rows, columns) == ("*", "*") else "1"] * (rank - 2) + [rows, columns]


def quantize(b, x, code, block, scale):
    """With amaxes and scales of each block, spelled out."""
    grid = get_grid(x.dims, block)
    amaxes = spell(grid, "f32")
    nan = b.choice(["", "", " propagate_nan"])
    amax, s, si, q = (b.fresh(prefix) for prefix in ("amax", "scale", "inv", "q"))
    b.line(f"{amax} = fp8.amax {x.name} block = [{', '.join(block)}]{nan} : {x.type}")
    if b.chance(0.2):
        b.results.append(named(amax, x, block, "f32"))
    out = Scaled(q, x.dims, code, block, scale)
    if code == "f4E2M1FN":
        ones = spell(["1"] * len(x.dims), "f32")
        whole, t = b.fresh("amax"), b.fresh("inv")
        b.line(f"{whole} = fp8.amax {x.name} block = [{', '.join('*' * len(x.dims))}] : {x.type}")
        b.line(f"{s}, {si}, {t} = fp8.compute_scale {amax} tensor_amax({whole} : {ones}) "
               f"format = {code} scale_type = {scale} : {amaxes}")
        seed = ""
        if b.chance(0.3):
            words = b.argue([4], "i32", "tensor<4xi32>", "words")
            seed = f" seed({words} : tensor<4xi32>)"
        b.line(f"{q} = fp8.quantize {x.name} scale({s}, {si} : {amaxes}, {spell(grid, scale)}) "
               f"tensor_scale_inv({t} : {ones}){seed} : {x.type} -> {out.type}")
        return out
    rule = b.choice(RULES) if scale == "f32" else ""
    b.line(f"{s}, {si} = fp8.compute_scale {amax} format = {code} scale_type = {scale}{rule} : {amaxes}")
    b.line(f"{q} = fp8.quantize {x.name} scale({s}, {si} : {amaxes}, {spell(grid, scale)}) : "
           f"{x.type} -> {out.type}")
    return out


def quantize_by_recipe(b, x, code, block, scale, recipe):
    out = Scaled(b.fresh("q"), x.dims, code, block, scale)
    b.line(f"{out.name} = fp8.quantize {x.name} recipe(#fp8.{recipe}) : {x.type} -> {out.type}")
    return out


def named(name, x, block, element):
    """A grid of factors, which nothing but results is made of."""
    return Value(name, [GridDim(extent) for extent in get_grid(x.dims, block)], element)


class GridDim:
    def __init__(self, text):
        self.text, self.is_open = text, text == "?"
        self.size = 0 if self.is_open else int(text)

    def __str__(self):
        return self.text


RECIPES = {("*", "*"): "current", ("1", "*"): "rowwise", ("1", "128"): "block", ("128", "128"): "block",
           ("1", "32"): "mxfp8"}


def cast(b):
    x = b.pick(lambda v: v.dims)
    if x is None:
        return
    rows, columns, scale = b.choice(BLOCKS)
    code = "f4E2M1FN" if scale == "f8E4M3FN" else b.choice(CODES)
    block = make_block(len(x.dims), rows, columns)
    recipe = RECIPES.get((rows, columns))
    if recipe and len(x.dims) > 1 and b.chance(0.4):
        out = quantize_by_recipe(b, x, "f8E4M3FN", block, scale, recipe)
    else:
        out = quantize(b, x, code, block, scale)
    b.scaled.append(out)
    if b.chance(0.7):
        take_apart(b, out)
    if b.chance(0.3):
        dequantize(b, out)
    if len(x.dims) > 1 and b.chance(0.4):
        turn(b, out)


def take_apart(b, q):
    """To results; codes of 4 bits leave in pairs alone."""
    if q.code == "f4E2M1FN" and q.dims[-1].size % 2:
        return dequantize(b, q)
    p, f, t = b.fresh("p"), b.fresh("f"), b.fresh("t")
    has_whole = q.code == "f4E2M1FN"
    b.line(f"{p}, {f}{', ' + t if has_whole else ''} = fp8.disassemble {q.name} : {q.type}")
    b.results += [Value(p, q.dims, q.code), named(f, q, q.block, q.scale)]
    if has_whole:
        b.results.append(Value(t, [GridDim("1")] * len(q.dims), "f32"))


def dequantize(b, q):
    out = b.new(q.dims, b.choice(["f32", "bf16", "f16"]))
    b.line(f"{out.name} = fp8.dequantize {q.name} : {q.type} -> {out.type}")
    b.keep(out)


def permute(b, q, order):
    out = Scaled(b.fresh("t"), [q.dims[i] for i in order], q.code, [q.block[i] for i in order], q.scale)
    b.line(f"{out.name} = fp8.transpose {q.name} permutation = {order} : {q.type}")
    return out


def turn(b, q):
    rank = len(q.dims)
    order = [*range(rank - 2), rank - 1, rank - 2] if b.chance(0.7) else b.shuffled(range(rank))
    out = permute(b, q, order)
    b.scaled.append(out)
    take_apart(b, out)


def assemble(b, dims, code, block, scale):
    """A scaled tensor of arguments."""
    grid, shape = get_grid(dims, block), get_grid_shape(dims, block)
    sizes = [dim.size for dim in dims]
    if code == "f4E2M1FN":
        sizes = [*sizes[:-1], sizes[-1] // 2]
    codes = b.argue(sizes, code, spell(dims, code), "codes")
    factors = b.argue(shape, scale, spell(grid, scale), "factors")
    out, more, types = Scaled(b.fresh("q"), dims, code, block, scale), "", ""
    if code == "f4E2M1FN":
        ones = spell(["1"] * len(dims), "f32")
        more = ", " + b.argue([1] * len(dims), "f32", ones, "factors")
        types = f", {ones}"
    b.line(f"{out.name} = fp8.assemble {codes}, {factors}{more} : {spell(dims, code)}, "
           f"{spell(grid, scale)}{types} -> {out.type}")
    return out


def arrive(b):
    """Scaled tensors that the caller has."""
    dims = b.pick_dims(b.choice([1, 2, 2, 3, 4]))
    rows, columns, scale = b.choice(BLOCKS)
    code = "f4E2M1FN" if scale == "f8E4M3FN" else b.choice(CODES)
    if not dims or (code == "f4E2M1FN" and (dims[-1].size % 2 or dims[-1].is_open)):
        return
    q = assemble(b, dims, code, make_block(len(dims), rows, columns), scale)
    b.scaled.append(q)
    dequantize(b, q)
    if len(dims) > 1 and b.chance(0.5):
        turn(b, q)


def again(b):
    """Numbers of codes that something else reads, too."""
    if b.scaled:
        dequantize(b, b.choice(b.scaled))


def rotate(b):
    """Blocks of 16 neighbours; of extents that show at run time the last one may not be whole."""
    x = b.pick(lambda v: v.dims and (v.dims[-1].is_open or v.dims[-1].size % 16 == 0))
    if x is None:
        dims = [*b.pick_dims(b.choice([0, 1, 2]), limit=ELEMENTS // 32), b.make_dim(b.choice([16, 32]), False)]
        x = b.argument(dims)
    out = b.new(x.dims, x.element)
    b.line(f"{out.name} = fp8.hadamard {x.name} signs = {b.rng.randrange(1 << 16)} : {x.type}")
    b.keep(out)


def copy_rows(b):
    """Codes with a dimension more or less than the dialect has blocks for are reshaped as codes:
    a batch, of which each factor is a row's, to rows."""
    x = b.pick(lambda v: len(v.dims) == 3 and not any(dim.is_open for dim in v.dims))
    if x is None or count(x.dims) == 0:
        return
    q = quantize(b, x, "f8E4M3FN", ["1", "1", "*"], "f32")
    p, f = b.fresh("p"), b.fresh("f")
    b.line(f"{p}, {f} = fp8.disassemble {q.name} : {q.type}")
    rows = b.make_dim(x.dims[0].size * x.dims[1].size, False)
    codes, factors = b.new([rows, x.dims[2]], "f32"), b.new([rows], "f32")
    merged, ones = spell([rows, x.dims[2]], q.code), spell([rows, 1], "f32")
    b.line(f"{codes.name} = tensor.collapse_shape {p} [[0, 1], [2]] : {spell(x.dims, q.code)} into {merged}")
    b.line(f"{factors.name} = tensor.collapse_shape {f} [[0, 1], [2]] : "
           f"{spell([*x.dims[:2], 1], 'f32')} into {ones}")
    out = Scaled(b.fresh("q"), [rows, x.dims[2]], q.code, ["1", "*"], "f32")
    b.line(f"{out.name} = fp8.assemble {codes.name}, {factors.name} : {merged}, {ones} -> {out.type}")
    b.scaled.append(out)
    take_apart(b, out)


STEPS = [cast] * 5 + [arrive, again, rotate, copy_rows]
