"""Programs of attention: `fp8.attention` on tensors as PyTorch has them, and its gradient."""

import functools
from typing import NamedTuple

import torch

import fp8
from fp8.compiler import get_default_target
from fp8.torch import attention_dropout, attention_ready, attention_transforms, expected
from fp8.torch.dense import is_on_gpu, make_dense

ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
MASKS = {torch.bool: "i1", **ELEMENTS}
FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
CODES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


class Shape(NamedTuple):
    """What a program is of; batches and positions are known when it runs.

    - element, heads, heads_of_k, dim, dim_of_v: of query, key and value;
    - heads_first: whether heads lie outside of positions in memory;
    - scale, left, right, bottom_right: as the operation has them, None for no limit;
    - format, accumulate: of the codes that both products are of, and how they are summed, or None;
    - cap: what scores bend towards, or None;
    - dropout: the rate of shares that are left out;
    - invariant: whether a query's bits depend on the keys that it sees alone;
    - mask: None, or the element type and, for each of four dimensions, whether it has one entry;
    - saves: whether codes and factors of query, key and value are results, too;
    - ranges, sinks: whether queries have ranges of keys, and heads a score that is no key's;
    - queries: None, or how many positions query has, which few are compiled for;
    - cache: None, or of what key and value are: as `Cache`;
    - recipe: how codes are scaled, as an attribute: by their present amax, if it is None;
    - prefix: of the names of their slots;
    - transforms: what goes before the codes of query and key (attention_transforms);
    - result: "codes" if the result is quantized by the recipe, too, "slot" if others' results are, so that all have the
      same slots, else None.
    """

    element: str
    heads: int
    heads_of_k: int
    dim: int
    dim_of_v: int
    heads_first: bool
    scale: float
    left: int | None = None
    right: int | None = None
    bottom_right: bool = False
    format: str | None = None
    accumulate: str | None = None
    cap: float | None = None
    dropout: float = 0.0
    invariant: bool = False
    mask: tuple | None = None
    saves: bool = False
    ranges: bool = False
    sinks: bool = False
    queries: int | None = None
    cache: "Cache | None" = None
    recipe: str | None = None
    prefix: str = ""
    result: str | None = None
    transforms: tuple = ()


class Cache(NamedTuple):
    """Keys and values that were computed before, of batches with numbers of their own.

    - format: None if they are numbers, else codes that come with a factor each;
    - page: None, or the positions of a page;
    - starts: whether batches have first keys of their own;
    - mask: whether a mask of bool says which keys queries see of those.
    """

    format: str | None = None
    page: int | None = None
    starts: bool = False
    mask: bool = False


# Programs for any number of queries are for more than these.
FEW = 16


def find_queries(shape, queries):
    """How many positions of query a program is compiled for: few, of heads that share keys, fit into one tile
    (lib/Kernels/SM90/AttentionTiles.h)."""
    group = 1 << (shape.heads // max(shape.heads_of_k, 1) - 1).bit_length()
    return queries if 0 < queries * min(group, 64) <= 64 and queries <= FEW else None


def _write_type(shape, heads, dim, element=None, positions=None):
    positions = "?" if positions is None else positions
    sizes = f"{heads}x{positions}" if shape.heads_first else f"{positions}x{heads}"
    return f"tensor<?x{sizes}x{dim}x{element or shape.element}>"


def _write_scaled(codes):
    return f"!fp8.scaled<{codes.removeprefix('tensor<').removesuffix('>')}, block = [*, *, *, *], scale = f32>"


def _transform(shape, name, heads, dim):
    """What goes before the codes of an operand: text, what these are made of, the sizes of that, and how they become four
    dimensions."""
    rows = f"?x{dim}", "[[0, 1, 2], [3]]"
    smooths = name == "k" and attention_transforms.SMOOTH in shape.transforms
    rotates = name != "v" and attention_transforms.ROTATE in shape.transforms
    sizes = heads, dim, shape.element, shape.heads_first
    text, source = "", f"%{name}_rows"
    if smooths:
        text = attention_transforms.write_smoothing(name, *sizes)
        if not rotates:
            last, groups = attention_transforms.find_three(heads, dim, shape.heads_first)
            return text, f"%{name}_smooth", f"?x?x{last}", groups
        text, source = text + attention_transforms.write_rows(name, *sizes), f"%{name}_less"
    if rotates:
        more, source = attention_transforms.write_rotation(name, source, dim, shape.element, name == "q")
        text += more
    return text, source, *rows


def _write_factors(shape, heads, positions=None, block=1):
    """The type of factors of blocks of positions."""
    count = "?" if positions is None else -(-positions // block)
    return f"tensor<?x{f'{heads}x{count}' if shape.heads_first else f'{count}x{heads}'}x1xf32>"


def find_block(shape, name):
    """How many positions of an operand share a factor, 0 if all do. Products with values of other factors are added one by one,
    which `fast` leaves to the tensor core: these have one for the tensor then."""
    return 0 if name == "v" and shape.accumulate == "fast" else attention_transforms.find_block(shape.transforms)


def _write_scales_of_blocks(shape, name, heads, block):
    """Text that makes scales of blocks, %name_up, their inverses, %name_scale, and a scale for each row, %name_each, of rows' largest
    magnitudes, %name_amax."""
    def order(second, third):
        return (second, third) if shape.heads_first else (third, second)

    def write_type(*sizes):
        return f"tensor<?x{'x'.join(map(str, sizes))}xf32>"

    def write_sizes(*sizes):
        return f"[%{name}_b, {', '.join(map(str, sizes))}]"

    flat, cut = write_type(*order(heads, "?")), write_type(*order(heads, f"?x{block}"))
    factors, rows, four = _write_factors(shape, heads), "tensor<?x1xf32>", write_type(*order(heads, "?"), 1)
    groups = "[[0], [1], [2, 3]]"
    parts, high = ("[[0], [1], [2, 3]]", f"0, 0, %{name}_block_rest") if shape.heads_first else ("[[0], [1, 2], [3]]", f"0, %{name}_block_rest, 0")
    places, kept = ("b, h, n, j", "b, h, n") if shape.heads_first else ("b, n, j, h", "b, n, h")
    source, target = (f"b, h, s floordiv {block}, d", "b, h, s, d") if shape.heads_first else (
        f"b, s floordiv {block}, h, d", "b, s, h, d")
    parallel = '"parallel", "parallel", "parallel"'
    size = f"%{name}_blocks"
    return (
        f"  %{name}_block_size = arith.constant {block} : index\n"
        f"  {size} = arith.ceildivsi %{name}_s, %{name}_block_size : index\n"
        f"  %{name}_block_all = arith.muli {size}, %{name}_block_size : index\n"
        f"  %{name}_block_rest = arith.subi %{name}_block_all, %{name}_s : index\n"
        f"  %{name}_block_none = arith.constant 0.0 : f32\n"
        f"  %{name}_block_four = tensor.expand_shape %{name}_amax [[0, 1, 2], [3]] output_shape {write_sizes(*order(heads, f'%{name}_s'), 1)} : "
        f"{rows} into {four}\n"
        f"  %{name}_block_flat = tensor.collapse_shape %{name}_block_four {groups} : {four} into {flat}\n"
        f"  %{name}_block_padded = tensor.pad %{name}_block_flat low[0, 0, 0] high[{high}] {{\n"
        f"  ^bb0(%i0: index, %i1: index, %i2: index):\n"
        f"    tensor.yield %{name}_block_none : f32\n  }} : {flat} to {flat}\n"
        f"  %{name}_block_cut = tensor.expand_shape %{name}_block_padded {parts} output_shape {write_sizes(*order(heads, f'{size}, {block}'))} : "
        f"{flat} into {cut}\n"
        f"  %{name}_block_room = tensor.empty(%{name}_b, {size}) : {flat}\n"
        f"  %{name}_block_least = linalg.fill ins(%{name}_block_none : f32) outs(%{name}_block_room : {flat}) -> {flat}\n"
        f"  %{name}_block_most = linalg.generic {{indexing_maps = [affine_map<({kept}, j) -> ({places})>, affine_map<({kept}, j) -> ({kept})>], "
        f'iterator_types = [{parallel}, "reduction"]}} ins(%{name}_block_cut : {cut}) outs(%{name}_block_least : {flat}) {{\n'
        f"  ^bb0(%one: f32, %other: f32):\n"
        f"    %larger = arith.maximumf %one, %other : f32\n"
        f"    linalg.yield %larger : f32\n  }} -> {flat}\n"
        f"  %{name}_block_amaxes = tensor.expand_shape %{name}_block_most {groups} output_shape {write_sizes(*order(heads, size), 1)} : "
        f"{flat} into {factors}\n"
        f"  %{name}_up, %{name}_down = fp8.compute_scale %{name}_block_amaxes format = {FORMATS[shape.format]} scale_type = f32 : {factors}\n"
        f"  %{name}_block_places = tensor.empty(%{name}_b, %{name}_s) : {four}\n"
        f"  %{name}_block_spread = linalg.generic {{indexing_maps = [affine_map<({target}) -> ({source})>, affine_map<({target}) -> ({target})>], "
        f'iterator_types = [{parallel}, "parallel"]}} ins(%{name}_up : {factors}) outs(%{name}_block_places : {four}) {{\n'
        f"  ^bb0(%one: f32, %other: f32):\n"
        f"    linalg.yield %one : f32\n  }} -> {four}\n"
        f"  %{name}_each = tensor.collapse_shape %{name}_block_spread [[0, 1, 2], [3]] : {four} into {rows}\n")


def _quantize_blocks(shape, name, heads, dim, positions, block):
    """The same with a factor for each head's blocks of so many positions, by their present largest magnitude. Rows are measured and
    quantized as those of a matrix, which have kernels; of rows' magnitudes the largest of each block is taken between."""
    kind, codes = (_write_type(shape, heads, dim, code, positions) for code in (None, FORMATS[shape.format]))
    before, source, sizes, _ = _transform(shape, name, heads, dim)
    if sizes.count("x") == 2:
        before += attention_transforms.write_rows(name, heads, dim, shape.element, shape.heads_first)
        source = f"%{name}_less"
    extents = f"[1, 1, {block}, *]" if shape.heads_first else f"[1, {block}, 1, *]"
    scaled = f"!fp8.scaled<{codes.removeprefix('tensor<').removesuffix('>')}, block = {extents}, scale = f32>"
    rows, code = f"tensor<?x{dim}x{shape.element}>", FORMATS[shape.format]
    quantized = f"!fp8.scaled<?x{dim}x{code}, block = [1, *], scale = f32>"
    factors = _write_factors(shape, heads, positions, block)
    sequence = f"%{name}_s" if positions is None else positions
    order = f"{heads}, {sequence}" if shape.heads_first else f"{sequence}, {heads}"
    return codes, scaled, (
        f"  %{name}_b = tensor.dim %{name}, %c0 : {kind}\n"
        f"  %{name}_s = tensor.dim %{name}, %c{2 if shape.heads_first else 1} : {kind}\n"
        f"  %{name}_rows = tensor.collapse_shape %{name} [[0, 1, 2], [3]] : {kind} into {rows}\n{before}"
        f"  %{name}_amax = fp8.amax {source} block = [1, *] : {rows}\n{_write_scales_of_blocks(shape, name, heads, block)}"
        # Their own inverses are those of blocks, below.
        f"  %{name}_of_rows = fp8.quantize {source} scale(%{name}_each, %{name}_each : tensor<?x1xf32>, tensor<?x1xf32>) : "
        f"{rows} -> {quantized}\n"
        f"  %{name}_codes, %{name}_unused = fp8.disassemble %{name}_of_rows : {quantized}\n"
        f"  %{name}_wide = tensor.expand_shape %{name}_codes [[0, 1, 2], [3]] output_shape [%{name}_b, {order}, {dim}] : "
        f"tensor<?x{dim}x{code}> into {codes}\n"
        f"  %{name}_scale = tensor.cast %{name}_down : {_write_factors(shape, heads)} to {factors}\n"
        f"  %{name}_scaled = fp8.assemble %{name}_wide, %{name}_scale : {codes}, {factors} -> {scaled}\n")


def _quantize(shape, name, heads, dim, positions=None):
    """As a matrix of rows of heads, or as it is smooth: one factor for the tensor. Returns the type of the codes, that of the
    scaled tensor, and text."""
    block = find_block(shape, name)
    if block:
        return _quantize_blocks(shape, name, heads, dim, positions, block)
    code, kind = FORMATS[shape.format], _write_type(shape, heads, dim, None, positions)
    codes = _write_type(shape, heads, dim, code, positions)
    rows, scaled = f"tensor<?x{dim}x{shape.element}>", _write_scaled(codes)
    before, source, sizes, groups = _transform(shape, name, heads, dim)
    rank = sizes.count("x") + 1
    quantized = f"!fp8.scaled<{sizes}x{code}, block = [{', '.join('*' * rank)}], scale = f32>"
    factor = f"tensor<{'1x' * rank}f32>"
    position = 2 if shape.heads_first else 1
    sequence = f"%{name}_s" if positions is None else positions
    order = f"[%{name}_b, {heads}, {sequence}, {dim}]" if shape.heads_first else f"[%{name}_b, {sequence}, {heads}, {dim}]"
    text = (f"  %{name}_b = tensor.dim %{name}, %c0 : {kind}\n"
            f"  %{name}_s = tensor.dim %{name}, %c{position} : {kind}\n"
            f"  %{name}_rows = tensor.collapse_shape %{name} [[0, 1, 2], [3]] : {kind} into {rows}\n{before}"
            f"  %{name}_quantized = fp8.quantize {source} recipe({shape.recipe or '#fp8.current'}) "
            f'{{fp8.name = "{shape.prefix}{name}"}} : tensor<{sizes}x{shape.element}> -> {quantized}\n'
            f"  %{name}_codes, %{name}_{'scale' if rank == 2 else 'factor'} = fp8.disassemble %{name}_quantized : {quantized}\n"
            f"  %{name}_wide = tensor.expand_shape %{name}_codes {groups} output_shape {order} : "
            f"tensor<{sizes}x{code}> into {codes}\n")
    if rank == 3:
        text += f"  %{name}_scale = tensor.collapse_shape %{name}_factor [[0, 1], [2]] : {factor} into tensor<1x1xf32>\n"
    return codes, scaled, text + (
        f"  %{name}_one = tensor.expand_shape %{name}_scale [[0, 1, 2], [3]] output_shape [1, 1, 1, 1] : "
        f"tensor<1x1xf32> into tensor<1x1x1x1xf32>\n"
        f"  %{name}_scaled = fp8.assemble %{name}_wide, %{name}_one : {codes}, tensor<1x1x1x1xf32> -> {scaled}\n")


def _quantize_result(shape):
    """The same of the result: the type of its codes, and text."""
    code, kind = FORMATS[shape.format], _write_type(shape, shape.heads, shape.dim_of_v, None, shape.queries)
    codes = _write_type(shape, shape.heads, shape.dim_of_v, code, shape.queries)
    rows, sizes = f"tensor<?x{shape.dim_of_v}x{shape.element}>", f"?x{shape.dim_of_v}x{code}, block = [*, *], scale = f32>"
    sequence = "%q_s" if shape.queries is None else shape.queries
    order = f"{shape.heads}, {sequence}" if shape.heads_first else f"{sequence}, {shape.heads}"
    return codes, (
        f"  %o_rows = tensor.collapse_shape %o [[0, 1, 2], [3]] : {kind} into {rows}\n"
        f"  %o_quantized = fp8.quantize %o_rows recipe({shape.recipe}) "
        f'{{fp8.name = "{shape.prefix}o"}} : {rows} -> !fp8.scaled<{sizes}\n'
        f"  %o_codes, %o_scale = fp8.disassemble %o_quantized : !fp8.scaled<{sizes}\n"
        f"  %o_wide = tensor.expand_shape %o_codes [[0, 1, 2], [3]] output_shape [%q_b, {order}, {shape.dim_of_v}] : "
        f"tensor<?x{shape.dim_of_v}x{code}> into {codes}\n")


def _write_slot(shape):
    """A function that nobody calls, with the slot of a result's codes."""
    rows, code = f"tensor<?x{shape.dim_of_v}x{shape.element}>", FORMATS[shape.format]
    scaled = f"!fp8.scaled<?x{shape.dim_of_v}x{code}, block = [*, *], scale = f32>"
    return (f"func.func @quantize_result(%o: {rows}) -> tensor<?x{shape.dim_of_v}x{code}> {{\n"
            f"  %y = fp8.quantize %o recipe({shape.recipe}) {{fp8.name = \"{shape.prefix}o\"}} : {rows} -> {scaled}\n"
            f"  %codes, %factor = fp8.disassemble %y : {scaled}\n"
            f"  return %codes : tensor<?x{shape.dim_of_v}x{code}>\n}}\n")


def _write_attributes(shape):
    attributes = f"scale = {shape.scale:e}" + ("" if shape.cap is None else f" cap = {shape.cap:e}")
    if (shape.left, shape.right) != (None, None):
        sides = ("*" if side is None else str(side) for side in (shape.left, shape.right))
        attributes += f" window = [{', '.join(sides)}]"
    attributes += " bottom_right" * shape.bottom_right + f" layout = {'bhsd' if shape.heads_first else 'bshd'}"
    return attributes + (f" accumulate = {shape.accumulate}" if shape.accumulate else "")


def _write_cached(shape):
    """Arguments, text, operands and their types, and what the operation is told of the cache."""
    code = FORMATS.get(shape.cache.format)
    arguments = [f"%q: {_write_type(shape, shape.heads, shape.dim, None, shape.queries)}"]
    names, types, body = ["%q"], [arguments[0].removeprefix("%q: ")], ""
    if code:
        body = "".join(f"  %c{i} = arith.constant {i} : index\n" for i in range(3))
        _, scaled, text = _quantize(shape._replace(format=shape.cache.format), "q", shape.heads, shape.dim, shape.queries)
        names, types, body = ["%q_scaled"], [scaled], body + text
    one = "tensor<1x1x1x1xf32>"
    for name, dim in (("k", shape.dim), ("v", shape.dim_of_v)):
        kind = _write_type(shape, shape.heads_of_k, dim, code, shape.cache.page)
        arguments.append(f"%{name}: {kind}")
        if code:
            arguments.append(f"%{name}_scale: {one}")
            body += f"  %{name}_scaled = fp8.assemble %{name}, %{name}_scale : {kind}, {one} -> {_write_scaled(kind)}\n"
        names.append(f"%{name}_scaled" if code else f"%{name}")
        types.append(_write_scaled(kind) if code else kind)
    arguments.append("%lengths: tensor<?xi32>")
    told = " key_lengths(%lengths : tensor<?xi32>)"
    if shape.cache.page:
        arguments.append("%pages: tensor<?x?xi32>")
        told += " page_table(%pages : tensor<?x?xi32>)"
    if shape.cache.starts:
        arguments.append("%starts: tensor<?xi32>")
        told += " key_starts(%starts : tensor<?xi32>)"
    told += _write_ranges(shape, arguments)
    if shape.cache.mask:
        kind = f"tensor<?x1x{'?' if shape.queries is None else shape.queries}x?xi1>"
        arguments.append(f"%mask: {kind}")
        told = f" mask(%mask : {kind}){told}"
    return arguments, body, names, types, told + _write_sinks(shape, arguments)


def _write_ranges(shape, arguments):
    if not shape.ranges:
        return ""
    kind = f"tensor<?x{'?' if shape.queries is None else shape.queries}x2xi32>"
    arguments.append(f"%ranges: {kind}")
    return f" key_ranges(%ranges : {kind})"


def _write_sinks(shape, arguments):
    if not shape.sinks:
        return ""
    kind = f"tensor<{shape.heads}xf32>"
    arguments.append(f"%sinks: {kind}")
    return f" sinks(%sinks : {kind})"


def _write_dropout(shape, arguments):
    if not shape.dropout:
        return ""
    kind = "tensor<2xi64>"
    arguments.append(f"%state: {kind}")
    return f" dropout(%state : {kind}) rate = {attention_dropout.write_rate(shape.dropout)}"


def write_cached(shape):
    """The program as text. Its function `attention` takes query, key, value, each of these two followed by its factor if
    it has codes, the numbers of keys, page numbers if there are pages, first keys, ranges, a mask and sinks, if there are;
    and returns the result."""
    arguments, body, names, types, told = _write_cached(shape)
    result = _write_type(shape, shape.heads, shape.dim_of_v, None, shape.queries)
    return (f"func.func @attention({', '.join(arguments)}) -> {result} {{\n{body}"
            f"  %o = fp8.attention {', '.join(names)}{told} {_write_attributes(shape)} : {', '.join(types)} -> {result}\n"
            f"  return %o : {result}\n}}\n")


def write(shape):
    """The program as text. Its function `attention` takes query, key, value, the mask, ranges, sinks and the state of
    dropout, and returns the result, the logarithms of sums, with `saves` three times codes and their factor, and of a result
    in codes its factor."""
    operands = {"q": (shape.heads, shape.dim), "k": (shape.heads_of_k, shape.dim),
                "v": (shape.heads_of_k, shape.dim_of_v)}
    positions = {"q": shape.queries, "k": None, "v": None}
    names = [f"%{name}" for name in operands]
    types = [_write_type(shape, *sizes, None, positions[name]) for name, sizes in operands.items()]
    arguments = [f"{name}: {kind}" for name, kind in zip(names, types)]
    queries = "?" if shape.queries is None else shape.queries
    results = [("%o", _write_type(shape, shape.heads, shape.dim_of_v, None, shape.queries)),
               ("%lse", f"tensor<?x{shape.heads}x{queries}xf32>")]
    body = mask = ""
    if shape.format:
        body = "".join(f"  %c{i} = arith.constant {i} : index\n" for i in range(3))
        made = {name: _quantize(shape, name, *sizes, positions[name]) for name, sizes in operands.items()}
        body += "".join(text for _, _, text in made.values())
        names, types = [f"%{name}_scaled" for name in operands], [scaled for _, scaled, _ in made.values()]
        if shape.saves:
            for name, (codes, _, _) in made.items():
                block = find_block(shape, name)
                factors = _write_factors(shape, operands[name][0], positions[name], block) if block else "tensor<1x1xf32>"
                results += [(f"%{name}_wide", codes), (f"%{name}_scale", factors)]
    if shape.mask:
        element, ones = shape.mask
        sizes = ("1" if is_one else str(size) for is_one, size in zip(ones, ("?", shape.heads, "?", "?")))
        kind = f"tensor<{'x'.join(sizes)}x{element}>"
        arguments.append(f"%mask: {kind}")
        mask = f" mask(%mask : {kind})"
    mask += _write_ranges(shape, arguments) + _write_sinks(shape, arguments) + _write_dropout(shape, arguments)
    output, casts = results[0][1], ""
    if shape.result == "codes":
        codes, casts = _quantize_result(shape)
        results = [("%o_wide", codes), *results[1:], ("%o_scale", "tensor<1x1xf32>")]
    kinds = ", ".join(kind for _, kind in results)
    return (f"func.func @attention({', '.join(arguments)}) -> ({kinds}) {{\n{body}"
            f"  %o, %lse = fp8.attention {', '.join(names)}{mask} {_write_attributes(shape)} : {', '.join(types)} -> "
            f"{output}, {results[1][1]}\n{casts}"
            f"  return {', '.join(name for name, _ in results)} : {kinds}\n}}\n"
            + (_write_slot(shape) if shape.result == "slot" else ""))


def write_backward(shape, order):
    """The program as text. Its function `gradients` takes the gradient of the result, query, key, value, with a format each of
    these followed by its factor, the result and the logarithms of sums, and returns those of query, key and value, that of
    query summed in this order. The sums of the gradient times the result are made in one pass over both. Ranges and the state
    of dropout come last."""
    query, key = (_write_type(shape, heads, shape.dim) for heads in (shape.heads, shape.heads_of_k))
    rows, wide = f"tensor<?x{shape.dim}x{shape.element}>", f"tensor<?x{shape.dim}xf32>"
    lse, group = f"tensor<?x{shape.heads}x?xf32>", "[[0, 1, 2]]"
    sizes = f"[%b, {shape.heads}, %s]" if shape.heads_first else f"[%b, %s, {shape.heads}]"
    apart = lse if shape.heads_first else f"tensor<?x?x{shape.heads}xf32>"
    # The operation does not say how products are summed.
    attributes = f"{_write_attributes(shape._replace(accumulate=None))} order = {order}"
    arguments, operands, types, made = [f"%grad: {query}"], [], [], ""
    for name, heads in (("q", shape.heads), ("k", shape.heads_of_k), ("v", shape.heads_of_k)):
        kind = _write_type(shape, heads, shape.dim, FORMATS.get(shape.format))
        arguments.append(f"%{name}: {kind}")
        if shape.format:
            one, scaled = "tensor<1x1x1x1xf32>", _write_scaled(kind)
            arguments.append(f"%{name}_scale: {one}")
            made += f"  %{name}_scaled = fp8.assemble %{name}, %{name}_scale : {kind}, {one} -> {scaled}\n"
        operands.append(f"%{name}_scaled" if shape.format else f"%{name}")
        types.append(scaled if shape.format else kind)
    arguments += [f"%o: {query}", f"%lse: {lse}"]
    ranges = _write_ranges(shape, arguments) + _write_dropout(shape, arguments)
    text = (f"#rows = affine_map<(r, d) -> (r, d)>\n#sums = affine_map<(r, d) -> (r)>\n"
            f"func.func @gradients({', '.join(arguments)}) -> "
            f"({query}, {key}, {key}) {{\n{made}"
            f"  %c0 = arith.constant 0 : index\n"
            f"  %place = arith.constant {2 if shape.heads_first else 1} : index\n"
            f"  %zero = arith.constant 0.0 : f32\n"
            f"  %b = tensor.dim %o, %c0 : {query}\n"
            f"  %s = tensor.dim %o, %place : {query}\n")
    for name in ("grad", "o"):
        text += f"  %{name}_rows = tensor.collapse_shape %{name} [[0, 1, 2], [3]] : {query} into {rows}\n"
        text += f"  %{name}_wide = arith.extf %{name}_rows : {rows} to {wide}\n"
    text += (f"  %n = tensor.dim %o_rows, %c0 : {rows}\n"
             f"  %empty = tensor.empty(%n) : tensor<?xf32>\n"
             f"  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>\n"
             f"  %products = arith.mulf %grad_wide, %o_wide : {wide}\n"
             f"  %sums = linalg.generic {{indexing_maps = [#rows, #sums], iterator_types = [\"parallel\", \"reduction\"]}} "
             f"ins(%products : {wide}) outs(%start : tensor<?xf32>) {{\n"
             f"  ^bb0(%product: f32, %sum: f32):\n"
             f"    %more = arith.addf %sum, %product : f32\n"
             f"    linalg.yield %more : f32\n  }} -> tensor<?xf32>\n"
             f"  %delta{'' if shape.heads_first else '_apart'} = tensor.expand_shape %sums {group} output_shape {sizes} : "
             f"tensor<?xf32> into {apart}\n")
    if not shape.heads_first:
        text += (f"  %turned = tensor.empty(%b, %s) : {lse}\n"
                 f"  %delta = linalg.transpose ins(%delta_apart : {apart}) outs(%turned : {lse}) permutation = [0, 2, 1]\n")
    return text + (f"  %dq, %dk, %dv = fp8.attention_backward %grad, {', '.join(operands)}, %lse, %delta{ranges} {attributes} : "
                   f"{query}, {', '.join(types)}, {lse}, {lse} -> {query}, {key}, {key}\n"
                   f"  return %dq, %dk, %dv : {query}, {key}, {key}\n}}\n")


@functools.lru_cache(maxsize=64)
def get_backward(shape, order, target):
    """What computes the gradient, compiled once."""
    return fp8.compile(write_backward(shape, order), target=target).functions["gradients"]


@functools.lru_cache(maxsize=64)
def get_dequantize(element, format_, dim, target):
    """A function of rows of codes and their factor, which gives numbers."""
    codes, one = f"tensor<?x{dim}x{FORMATS[format_]}>", "tensor<1x1xf32>"
    scaled, result = f"!fp8.scaled<?x{dim}x{FORMATS[format_]}, block = [*, *], scale = f32>", f"tensor<?x{dim}x{element}>"
    text = (f"func.func @dequantize(%codes: {codes}, %factor: {one}) -> {result} {{\n"
            f"  %scaled = fp8.assemble %codes, %factor : {codes}, {one} -> {scaled}\n"
            f"  %numbers = fp8.dequantize %scaled : {scaled} -> {result}\n"
            f"  return %numbers : {result}\n}}\n")
    return expected.compile(lambda: f"numbers of {format_} of {dim} columns", [("attention", dim)], text,
                            target=target).functions["dequantize"]


def _widen_blocks(codes, factors, block, dtype):
    """The same with a factor for each head's blocks of positions; dimensions of both are the same."""
    place = next((dim for dim in (1, 2) if codes.shape[dim] != factors.shape[dim]), None)
    # A single position has as many factors as codes have heads.
    if place is not None:
        factors = factors.repeat_interleave(block, place).narrow(place, 0, codes.shape[place])
    return (codes.float() * factors).to(dtype)


def _find_format(codes):
    return next(name for name, kind in CODES.items() if kind == codes.dtype)


def _call(told, find, *tensors):
    """The one result of the function that `find` finds, of tensors in row-major order; `told` tells those on a GPU apart."""
    results = attention_ready.shared.run(told, list(tensors)) if is_on_gpu(tensors[0]) else None
    if results is None:
        function = find()
        results = [function(*tensors)]
        attention_ready.shared.add(told, function, tensors)
    return results[0]


def widen(codes, factor, dtype, block=0):
    """Numbers of a 16-bit type by one kernel: PyTorch's operations are three. With blocks of positions they have factors, where
    dimensions of both are the same."""
    if block and factor.dim() == 4:
        return _widen_blocks(codes, factor, block, dtype)

    def find():
        return get_dequantize(ELEMENTS[dtype], _find_format(codes), codes.shape[3], get_default_target())

    tensors = make_dense(codes).reshape(-1, codes.shape[3]), factor.reshape(1, 1)
    return _call(("widen", dtype, codes.dtype, codes.shape[3]), find, *tensors).reshape(codes.shape)


def turn(codes):
    """Codes of a matrix with its rows beside each other, which the gradient of a weight takes."""
    def find():
        return _get_turn(_find_format(codes), codes.shape[1], get_default_target() if is_on_gpu(codes) else "cpu")

    return _call(("turn", codes.dtype, codes.shape[1]), find, codes)


@functools.lru_cache(maxsize=64)
def _get_turn(format_, columns, target):
    codes, turned = f"?x{columns}x{FORMATS[format_]}", f"{columns}x?x{FORMATS[format_]}"
    text = (f"func.func @turn(%codes: tensor<{codes}>) -> tensor<{turned}> {{\n"
            f"  %one = arith.constant dense<1.0> : tensor<1x1xf32>\n"
            f"  %x = fp8.assemble %codes, %one : tensor<{codes}>, tensor<1x1xf32> -> "
            f"!fp8.scaled<{codes}, block = [*, *], scale = f32>\n"
            f"  %t = fp8.transpose %x permutation = [1, 0] : !fp8.scaled<{codes}, block = [*, *], scale = f32>\n"
            f"  %turned, %factor = fp8.disassemble %t : !fp8.scaled<{turned}, block = [*, *], scale = f32>\n"
            f"  return %turned : tensor<{turned}>\n}}\n")
    return fp8.compile(text, target=target).functions["turn"]


@functools.lru_cache(maxsize=256)
def get_program(shape, target):
    """The program with what computes it, compiled once."""
    text = write_cached(shape) if shape.cache else write(shape)
    return expected.compile(lambda: _describe(shape), [("attention", shape.heads, shape.dim)], text, target=target,
                            **({"invariant": True} if shape.invariant else {}))


def get_function(shape, target):
    """What computes it."""
    return get_program(shape, target).functions["attention"]


def _describe(shape):
    """What a program is of, for a warning."""
    queries = "any number of" if shape.queries is None else shape.queries
    cache = "" if shape.cache is None else f", a cache in {shape.cache.format or shape.element}"
    has_mask = shape.mask is not None or (shape.cache is not None and shape.cache.mask)
    mask = (", a cap" * (shape.cap is not None) + ", a mask" * has_mask + ", ranges of keys" * shape.ranges
            + ", sinks" * shape.sinks + ", dropout" * bool(shape.dropout))
    return (f"attention of {shape.heads} heads over {shape.heads_of_k} of {shape.dim} columns, {queries} queries in "
            f"{shape.format or shape.element}{cache}{mask}")
