"""Steps of programs that the dialect has no operation for: elementwise code, reductions, what
moves tensors, and contractions."""

from generator.builder import ELEMENTS, indent
from generator.values import BITS, Value, count, spell

PRODUCTS = 600_000  # A contraction has no more.


def bits(size):
    return max(size - 1, 0).bit_length()


def elementwise(b):
    """A function of values of one domain, of some dimensions, or of others of one element."""
    first = b.pick()
    operands = [first]
    for value in b.values:
        if b.chance(0.3) and all(dim in first.dims or (dim.size == 1 and not dim.is_open)
                                 for dim in value.dims):
            operands.append(value)
    operands = operands[:5]
    element = b.choice(["f32", "bf16", "bf16", "f16", first.element])
    lines, name, grid = b.expression(operands, element)
    dims = b.shuffled(first.dims) if b.chance(0.15) else first.dims
    out = b.new(dims, element, grid)
    domain = b.shuffled(dims) if b.chance(0.2) else None
    b.keep(b.generic(operands, dims, out, indent([*lines, f"linalg.yield {name} : {element}"]),
                     domain=domain))


def native(b):
    """Arithmetic of the tensor's own element."""
    x = b.pick()
    y = b.pick(lambda v: v.element == x.element and set(v.dims) <= set(x.dims))
    kind = b.choice(["addf", "mulf", "subf", "divf", "maximumf"])
    out = b.new(x.dims, x.element)
    b.keep(b.generic([x, y], x.dims, out, f"    %r = arith.{kind} %a0, %a1 : {x.element}\n"
                                          f"    linalg.yield %r : {x.element}"))


def cast(b):
    x = b.pick()
    to = b.choice([element for element in BITS if element != x.element])
    lines, (name,) = b.widen([x])
    if to != "f32":
        lines.append(f"%y = arith.truncf {name} : f32 to {to}")
        name = "%y"
    grid = x.grid if x.grid and x.grid[1] - x.grid[0] < BITS[to] else None
    out = b.new(x.dims, to, grid)
    b.keep(b.generic([x], x.dims, out, indent([*lines, f"linalg.yield {name} : {to}"])))


def transpose(b):
    x = b.pick(lambda v: len(v.dims) > 1)
    if x is None:
        return
    order = b.shuffled(range(len(x.dims)))
    dims = [x.dims[i] for i in order]
    init, out = b.empty(dims, x.element), b.new(dims, x.element, x.grid)
    b.line(f"{out.name} = linalg.transpose ins({x.name} : {x.type}) outs({init} : {out.type}) "
           f"permutation = {order}")
    b.keep(out)


def extract(b):
    """A part of a tensor, every element or every second one of it."""
    x = b.pick(lambda v: v.dims and v.elements)  # MLIR knows no slice of nothing.
    if x is None:
        return
    axis = b.rng.randrange(len(x.dims))
    dim = x.dims[axis]
    stride = 2 if dim.size > 2 and b.chance(0.3) else 1
    length = b.rng.randrange(1, -(-dim.size // stride) + 1)
    offset = b.rng.randrange(dim.size - (length - 1) * stride)
    part = b.make_dim(length, dim.is_open and b.chance(0.7))
    if part.is_open:  # What is left of the whole.
        rest = dim.size - length
        b.line(f"%rest_{part.name} = arith.constant {rest} : index")
        b.line(f"%size_{part.name} = arith.subi {b.size(dim)}, %rest_{part.name} : index")
    dims = [part if i == axis else d for i, d in enumerate(x.dims)]
    offsets = [offset if i == axis else 0 for i in range(len(dims))]
    strides = [stride if i == axis else 1 for i in range(len(dims))]
    sizes = ", ".join(b.size(d) if d.is_open else str(d.size) for d in dims)
    out = b.new(dims, x.element, x.grid)
    b.line(f"{out.name} = tensor.extract_slice {x.name}{offsets} [{sizes}] {strides} : {x.type} to "
           f"{out.type}")
    b.keep(out)


def pad(b):
    x = b.pick(lambda v: v.dims and not any(dim.is_open for dim in v.dims))
    if x is None:
        return
    low, high = ([b.choice([0, 0, 1, 2]) for _ in x.dims] for _ in range(2))
    dims = [b.make_dim(dim.size + a + z, False) for dim, a, z in zip(x.dims, low, high)]
    if count(dims) > ELEMENTS:
        return
    out = b.new(dims, x.element, x.grid)
    indices = ", ".join(f"%i{i}: index" for i in range(len(dims)))
    b.line(f"{out.name} = tensor.pad {x.name} low{low} high{high} {{\n  ^bb0({indices}):\n"
           f"    tensor.yield %zero_{x.element} : {x.element}\n  }} : {x.type} to {out.type}")
    b.keep(out)


def join(b):
    x = b.pick(lambda v: v.dims and not any(dim.is_open for dim in v.dims))
    if x is None or 2 * x.elements > ELEMENTS:
        return
    y = b.pick(lambda v: v.dims == x.dims and v.element == x.element)
    axis = b.rng.randrange(len(x.dims))
    dims = [b.make_dim(2 * dim.size, False) if i == axis else dim for i, dim in enumerate(x.dims)]
    grid = x.grid and y.grid and (min(x.grid[0], y.grid[0]), max(x.grid[1], y.grid[1]))
    out = b.new(dims, x.element, grid)
    b.line(f"{out.name} = tensor.concat dim({axis}) {x.name}, {y.name} : ({x.type}, {y.type}) -> "
           f"{out.type}")
    b.keep(out)


def broadcast(b):
    x = b.pick(lambda v: len(v.dims) < 4)
    if x is None:
        return
    dim = b.pick_dims(1, x.dims)[0]
    if x.elements * dim.size > ELEMENTS:
        return
    axis = b.rng.randrange(len(x.dims) + 1)
    dims = [*x.dims[:axis], dim, *x.dims[axis:]]
    init, out = b.empty(dims, x.element), b.new(dims, x.element, x.grid)
    b.line(f"{out.name} = linalg.broadcast ins({x.name} : {x.type}) outs({init} : {out.type}) "
           f"dimensions = [{axis}]")
    b.keep(out)


def reshape(b):
    """Two dimensions to one, or one of 16 to two."""
    x = b.pick(lambda v: len(v.dims) > 1 and not any(dim.is_open for dim in v.dims))
    if x is None:
        return
    axis = b.rng.randrange(len(x.dims) - 1)
    merged = b.make_dim(x.dims[axis].size * x.dims[axis + 1].size, False)
    dims = [*x.dims[:axis], merged, *x.dims[axis + 2:]]
    groups, at = [], 0
    for i in range(len(dims)):
        groups.append([at, at + 1] if i == axis else [at])
        at += len(groups[-1])
    out = b.new(dims, x.element, x.grid)
    b.line(f"{out.name} = tensor.collapse_shape {x.name} {groups} : {x.type} into {out.type}")
    b.keep(out)
    if merged.size != 16 or b.chance(0.5):
        return
    wide = [*dims[:axis], b.make_dim(b.choice([1, 2, 16]), False)]
    wide += [b.make_dim(16 // wide[-1].size, False), *dims[axis + 1:]]
    back = b.new(wide, x.element, x.grid)
    b.line(f"{back.name} = tensor.expand_shape {out.name} {groups} output_shape "
           f"[{', '.join(map(str, wide))}] : {out.type} into {back.type}")
    b.keep(back)


# Sums of rows and columns have another order on a GPU: here they are of what has a grid, and then
# of one value in any order.


def reduce_to(b, x, dims, kind, body=()):
    """Reduces %w0, or %a0 of f32, to the last name of `body` if there is one."""
    reduced = [dim for dim in x.dims if dim not in dims]
    lines, (name,) = b.widen([x])
    grid = x.grid
    if body:
        lines += [line.format(x=name) for line in body]
        name, grid = "%t", grid and (2 * grid[0], 2 * grid[1])
    if kind == "addf":
        grid = grid and (grid[0], grid[1] + bits(count(reduced)))
    out = b.new(dims, "f32", grid)
    lines += [f"%r = arith.{kind} {b.choice(['%o, ' + name, name + ', %o'])} : f32",
              "linalg.yield %r : f32"]
    init = b.filled(dims, "f32", "zero" if kind == "addf" else "low")
    return b.generic([x], dims, out, indent(lines), init, reduced, list(x.dims))


def can_sum(value, terms, squares=False):
    if not value.grid:
        return False
    low, high = (2 * value.grid[0], 2 * value.grid[1]) if squares else value.grid
    return high + bits(terms) - low < 24


def reduction(b):
    """Over rows, columns or any others."""
    x = b.pick(lambda v: v.dims)
    if x is None:
        return
    dims = [dim for dim in x.dims if b.chance(0.5)]
    if len(dims) == len(x.dims):
        dims = dims[:-1]
    terms = count(x.dims)
    if can_sum(x, terms, squares=True) and b.chance(0.4):
        return b.keep(reduce_to(b, x, dims, "addf", ["%t = arith.mulf {x}, {x} : f32"]))
    kind = "addf" if can_sum(x, terms) and b.chance(0.7) else "maximumf"
    b.keep(reduce_to(b, x, dims, kind))


def norm(b):
    """Each row by the root of its sum of squares, with a weight for each column."""
    x = b.pick(lambda v: len(v.dims) > 1 and can_sum(v, v.dims[-1].size, squares=True))
    if x is None:
        return
    rows = reduce_to(b, x, x.dims[:-1], "addf", ["%t = arith.mulf {x}, {x} : f32"])
    weight = b.argument(x.dims[-1:])
    element = b.choice(["f32", "bf16", "f16"])
    operands = [x, rows, weight]
    lines, names = b.widen(operands)
    lines += [f"%p = arith.addf {names[1]}, %one_f32 : f32", "%q = math.sqrt %p : f32",
              f"%s = arith.divf {names[0]}, %q : f32", f"%t = arith.mulf %s, {names[2]} : f32"]
    finish(b, operands, x.dims, lines, "%t", element)


def finish(b, operands, dims, lines, name, element):
    if element != "f32":
        lines.append(f"%y = arith.truncf {name} : f32 to {element}")
        name = "%y"
    b.keep(b.generic(operands, dims, b.new(dims, element),
                     indent([*lines, f"linalg.yield {name} : {element}"])))


def softmax(b):
    """Rows that are divided by the sum of what their maximum leaves of them, with a parabola in
    place of the exponential, which kernels approximate."""
    x = b.pick(lambda v: len(v.dims) > 1 and can_sum(v, v.dims[-1].size, squares=True)
               and v.grid[0] >= -1)
    if x is None:
        return
    most = reduce_to(b, x, x.dims[:-1], "maximumf")
    lines, names = b.widen([x, most])
    lines += [f"%d = arith.subf {names[0]}, {names[1]} : f32", "%p = arith.addf %d, %one_f32 : f32",
              "%q = arith.maximumf %p, %zero_f32 : f32", "%t = arith.mulf %q, %q : f32",
              "linalg.yield %t : f32"]
    weights = b.generic([x, most], x.dims, b.new(x.dims, "f32", (-2, 0)), indent(lines))
    total = reduce_to(b, weights, x.dims[:-1], "addf")
    element = b.choice(["f32", "bf16", "f16"])
    finish(b, [weights, total], x.dims, ["%t = arith.divf %a0, %a1 : f32"], "%t", element)


def gather(b):
    """A row of a table for each element of some indices."""
    rows, (column,) = b.pick_dims(b.choice([1, 1, 2])), b.pick_dims(1)
    if column in rows or column.is_open or count([*rows, column]) > ELEMENTS:
        return
    element = b.choice(list(BITS))
    table_type = spell(["9", column], element)
    table = b.argue([9, column.size], element, table_type, "normal")
    index = Value(b.argue([dim.size for dim in rows], "i32", spell(rows, "i32"), "index"), rows, "i32")
    body = indent(["%p = arith.index_cast %a0 : i32 to index",
                   f"%c = linalg.index {len(rows)} : index",
                   f"%x = tensor.extract {table}[%p, %c] : {table_type}",
                   f"linalg.yield %x : {element}"])
    b.keep(b.generic([index], [*rows, column], b.new([*rows, column], element), body))


def contract(b):
    """A product of what there is and, mostly, of a new argument."""
    a = b.pick(lambda v: 1 <= len(v.dims) <= 4)
    if a is None:
        return
    k = b.choice(a.dims)
    others = [dim for dim in a.dims if dim is not k]
    batch = [dim for dim in others if b.chance(0.6)][:2] if len(others) > 1 else []
    second = None
    if b.chance(0.3):
        second = b.pick(lambda v: v is not a and v.element == a.element
                        and set(v.dims) & set(a.dims) == {k, *batch})
    if second is None:
        new = b.pick_dims(b.choice([1, 1, 1, 1, 0, 2]) if not batch else 1, a.dims)
        dims = [*batch, *new, k] if b.chance(0.5) else [*batch, k, *new]
        if b.chance(0.15):
            dims = b.shuffled(dims)
        if count(dims) > ELEMENTS:
            return
        second = b.argument(dims, a.element)
    rows, columns = ([dim for dim in value.dims if dim is not k and dim not in batch]
                     for value in (a, second))
    dims = [*batch, *rows, *columns]
    if len(dims) > 4 or count(dims) > ELEMENTS or count([*dims, k]) > PRODUCTS:
        return
    if b.chance(0.15):
        dims = b.shuffled(dims)
    multiply(b, a, second, dims, [k], b.choice(["f32", "f32", a.element]))


def get_named(a, second, dims, k):
    """The named operation that a product is; None if it is none."""
    shapes = a.dims, second.dims, dims
    if len(dims) == 2 and shapes == ([dims[0], k], [k, dims[1]], dims):
        return "matmul"
    if len(dims) == 3 and shapes == ([dims[0], dims[1], k], [dims[0], k, dims[2]], dims):
        return "batch_matmul"
    if len(dims) == 1 and shapes == ([dims[0], k], [k], dims):
        return "matvec"
    if len(dims) == 1 and shapes == ([k], [k, dims[0]], dims):
        return "vecmat"
    return "dot" if not dims and shapes == ([k], [k], []) else None


def multiply(b, a, second, dims, ks, element):
    addend = b.pick(lambda v: v.dims == dims and v.element == element and v is not a)
    init = addend.name if addend and b.chance(0.4) else b.filled(dims, element)
    out = b.new(dims, element)
    tail = (f"ins({a.name}, {second.name} : {a.type}, {second.type}) outs({init} : {out.type}) -> "
            f"{out.type} loc(\"c{b.contractions}\")")
    b.contractions += 1
    named = get_named(a, second, dims, ks[0])
    if named and b.chance(0.7):
        b.line(f"{out.name} = linalg.{named} {tail}")
    else:
        loops = b.shuffled([*dims, *ks]) if b.chance(0.3) else [*dims, *ks]
        names = {dim: f"i{i}" for i, dim in enumerate(loops)}
        maps = ", ".join(f"affine_map<({', '.join(names.values())}) -> "
                         f"({', '.join(names[dim] for dim in value)})>"
                         for value in (a.dims, second.dims, dims))
        b.line(f"{out.name} = linalg.contract indexing_maps = [{maps}] {tail}")
    return b.keep_product(out, {*a.dims, *second.dims})


def layers(b):
    """x <- x w, twice, in a loop."""
    x = b.pick(lambda v: len(v.dims) == 2 and not v.dims[1].is_open and v.dims[1].size < 20)
    if x is None or x.elements * x.dims[1].size > PRODUCTS or b.is_loose(x.dims[1:]):
        return
    again = b.make_dim(x.dims[1].size, False)
    w = b.argument([x.dims[1], again], x.element)
    zeros, out = b.filled(x.dims, x.element), b.new(x.dims, x.element)
    b.line(f"{out.name} = scf.for %iv = %c0 to %c2 step %c1 iter_args(%it = {x.name}) -> ({x.type}) {{\n"
           f"    %product = linalg.matmul ins(%it, {w.name} : {x.type}, {w.type}) outs({zeros} : "
           f"{x.type}) -> {x.type} loc(\"c{b.contractions}\")\n    scf.yield %product : {x.type}\n  }}")
    b.contractions += 1
    b.keep(out)


def approximate(b):
    """A function that kernels approximate: its results are near the CPU's, and nothing else is
    made of them."""
    x = b.pick()
    function = b.choice(["exp", "tanh", "erf", "rsqrt"])
    lines, (name,) = b.widen([x])
    lines += [f"%l = arith.maximumf {name}, {'%one_f32' if function == 'rsqrt' else '%minus_f32'} : f32",
              "%h = arith.minimumf %l, %eight_f32 : f32", f"%f = math.{function} %h : f32",
              "linalg.yield %f : f32"]
    out = b.generic([x], x.dims, b.new(x.dims, "f32"), indent(lines))
    b.results.append(out)
    b.near[out.name] = 2.0**-9, 0.0


STEPS = ([elementwise] * 5 + [contract] * 4 + [reduction] * 3 + [transpose, extract] * 2
         + [native, cast, pad, join, broadcast, reshape, norm, softmax, gather, layers, approximate])
