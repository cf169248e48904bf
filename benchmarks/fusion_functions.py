"""Functions that pass over memory: what the casts of a training step are made of.

Each takes its tensors as a program's recipe would leave them, scales included, so that
the pipeline has nothing to decide but the passes. `bytes` is what has to move for each
element of the m x n tensor, bf16 in; what is as small as a row or a factor is left out.
"""

from dataclasses import dataclass

E4M3 = "f8E4M3FN"


@dataclass(frozen=True)
class Fusion:
    name: str
    bytes: float
    inputs: tuple  # Each is "x", "scale", "row", "column" or "grid".
    body: str  # With {m} and {n}; returns what it says.
    results: tuple  # Types.
    goal: float  # The share of a copy of these bytes that it is to have.
    approximate: bool = False  # Functions such as exp: not the CPU's bits.
    sums: int = None  # The result that is sums of x along columns, in any order.
    any_nan: bool = False  # A number that is a NaN may be any.
    rotates: str = None  # The extent, m or n, that is to be a known multiple of 16.


def scaled(shape, block, scale="f32"):
    return f"!fp8.scaled<{shape}x{E4M3}, block = {block}, scale = {scale}>"


def quantize(name, source, shape, block, element="bf16"):
    """With a given scale for the tensor."""
    return (f"  %{name} = fp8.quantize %{source} scale(%s, %si : tensor<1x1xf32>, "
            f"tensor<1x1xf32>) : tensor<{shape}x{element}> -> {scaled(shape, block)}\n")


def measured(name, source, shape, block, grid, scale="f32", rule="", element="bf16"):
    """With the scale of each block's amax."""
    return (
        f"  %{name}_a = fp8.amax %{source} block = {block} : tensor<{shape}x{element}>\n"
        f"  %{name}_s, %{name}_i = fp8.compute_scale %{name}_a format = {E4M3} "
        f"scale_type = {scale}{rule} : tensor<{grid}xf32>\n"
        f"  %{name} = fp8.quantize %{source} scale(%{name}_s, %{name}_i : tensor<{grid}xf32>, "
        f"tensor<{grid}x{scale}>) : tensor<{shape}x{element}> -> {scaled(shape, block, scale)}\n")


def transpose(name, source, shape, block, scale="f32"):
    return (f"  %{name} = fp8.transpose %{source} permutation = [1, 0] : "
            f"{scaled(shape, block, scale)}\n")


def parts(name, shape, block, scale="f32"):
    return f"  %{name}_p, %{name}_f = fp8.disassemble %{name} : {scaled(shape, block, scale)}\n"


AMAX = "  %amax = fp8.amax %{source} block = [*, *] : tensor<{m}x{n}xbf16>\n"
POW2 = " rule(#fp8.scale_rule<pow2 = true, overflow = 3.38953139E+38>)"
MAPS = ("#full = affine_map<(i, j) -> (i, j)>\n#rows = affine_map<(i, j) -> (i)>\n"
        "#columns = affine_map<(i, j) -> (j)>\n")


def elementwise(name, operands, body, element="bf16"):
    """`operands` as (value, map, type); the body yields %out."""
    maps = ", ".join(f"#{place}" for _, place, _ in operands)
    values = ", ".join(f"%{value}" for value, _, _ in operands)
    types = ", ".join(kind for _, _, kind in operands)
    arguments = ", ".join(f"%{value}_e: {kind.rsplit('x', 1)[-1].rstrip('>')}"
                          for value, _, kind in operands)
    return (f"  %{name}_o = tensor.empty({{dims}}) : tensor<{{m}}x{{n}}x{element}>\n"
            f"  %{name} = linalg.generic {{{{indexing_maps = [{maps}, #full], "
            f'iterator_types = ["parallel", "parallel"]}}}} ins({values} : {types}) '
            f"outs(%{name}_o : tensor<{{m}}x{{n}}x{element}>) {{{{\n"
            f"  ^bb0({arguments}, %_: {element}):\n{body}"
            f"    linalg.yield %out : {element}\n  }}}} -> tensor<{{m}}x{{n}}x{element}>\n")


def row_reduction(name, source, element, start, body):
    return (f"  %{name}_z = arith.constant {start} : f32\n"
            f"  %{name}_empty = tensor.empty({{rowdims}}) : tensor<{{m}}xf32>\n"
            f"  %{name}_n = linalg.fill ins(%{name}_z : f32) outs(%{name}_empty : tensor<{{m}}xf32>)"
            f" -> tensor<{{m}}xf32>\n"
            f"  %{name} = linalg.generic {{{{indexing_maps = [#full, #rows], "
            f'iterator_types = ["parallel", "reduction"]}}}} '
            f"ins(%{source} : tensor<{{m}}x{{n}}x{element}>) "
            f"outs(%{name}_n : tensor<{{m}}xf32>) {{{{\n"
            f"  ^bb0(%x_e: {element}, %acc: f32):\n{body}"
            f"    linalg.yield %sum : f32\n  }}}} -> tensor<{{m}}xf32>\n")


def column_sums(name, source):
    """In f32, rounded to bf16."""
    return (f"  %{name}_z = arith.constant 0.0 : f32\n"
            f"  %{name}_empty = tensor.empty({{columndims}}) : tensor<{{n}}xf32>\n"
            f"  %{name}_n = linalg.fill ins(%{name}_z : f32) outs(%{name}_empty : tensor<{{n}}xf32>)"
            f" -> tensor<{{n}}xf32>\n"
            f"  %{name}_w = linalg.generic {{{{indexing_maps = [#full, #columns], "
            f'iterator_types = ["reduction", "parallel"]}}}} '
            f"ins(%{source} : tensor<{{m}}x{{n}}xbf16>) "
            f"outs(%{name}_n : tensor<{{n}}xf32>) {{{{\n"
            f"  ^bb0(%x_e: bf16, %acc: f32):\n    %wide = arith.extf %x_e : bf16 to f32\n"
            f"    %sum = arith.addf %acc, %wide : f32\n    linalg.yield %sum : f32\n"
            f"  }}}} -> tensor<{{n}}xf32>\n"
            f"  %{name} = arith.truncf %{name}_w : tensor<{{n}}xf32> to tensor<{{n}}xbf16>\n")


FULL = "tensor<{m}x{n}xbf16>"
SILU = """    %gate = arith.extf %x_e : bf16 to f32
    %up = arith.extf %u_e : bf16 to f32
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %gate : f32
    %exp = math.exp %neg : f32
    %div = arith.addf %exp, %one : f32
    %silu = arith.divf %gate, %div : f32
    %prod = arith.mulf %silu, %up : f32
    %out = arith.truncf %prod : f32 to bf16
"""
CODES, TURNED, ONE = "tensor<{m}x{n}x" + E4M3 + ">", "tensor<{n}x{m}x" + E4M3 + ">", "tensor<1x1xf32>"


def returns(values, types):
    return f"  return {', '.join(values)} : {', '.join(types)}\n"


def make(name, bytes_, goal, inputs, body, values, types, **facts):
    return Fusion(name, bytes_, inputs, body + returns(values, types), tuple(types), goal, **facts)


def blocks(rows, columns):
    """The text of the extents of a grid of blocks."""
    return "{m" + (f"/{rows}" if rows != 1 else "") + "}x{n" + (
        f"/{columns}" if columns != 1 else "") + "}"


MN, NM, WHOLE = "{m}x{n}", "{n}x{m}", "[*, *]"
DELAYED = quantize("q", "x", MN, WHOLE) + parts("q", MN, WHOLE)
DELAYED_BOTH = DELAYED + transpose("t", "q", MN, WHOLE) + parts("t", NM, WHOLE)
CURRENT = measured("q", "x", MN, WHOLE, "1x1") + parts("q", MN, WHOLE)


def amax_of(source):
    return AMAX.replace("{source}", source)


SWIGLU = elementwise("h", [("x", "full", FULL), ("u", "full", FULL)], SILU)
SQUARES = row_reduction("ss", "x", "bf16", "0.0", """    %wide = arith.extf %x_e : bf16 to f32
    %sq = arith.mulf %wide, %wide : f32
    %sum = arith.addf %acc, %sq : f32
""")
NORM = elementwise("h", [("x", "full", FULL), ("ss", "rows", "tensor<{m}xf32>"),
                         ("w", "columns", "tensor<{n}xbf16>")], """    %v = arith.extf %x_e : bf16 to f32
    %g = arith.extf %w_e : bf16 to f32
    %n = arith.constant 2.44140625e-04 : f32
    %eps = arith.constant 1.0e-05 : f32
    %mean = arith.mulf %ss_e, %n : f32
    %var = arith.addf %mean, %eps : f32
    %r = math.rsqrt %var : f32
    %a = arith.mulf %v, %r : f32
    %b = arith.mulf %a, %g : f32
    %out = arith.truncf %b : f32 to bf16
""")
SOFTMAX = (row_reduction("mx", "x", "bf16", "0xFF800000", """    %wide = arith.extf %x_e : bf16 to f32
    %sum = arith.maximumf %acc, %wide : f32
""") + elementwise("ex", [("x", "full", FULL), ("mx", "rows", "tensor<{m}xf32>")],
                   """    %v = arith.extf %x_e : bf16 to f32
    %d = arith.subf %v, %mx_e : f32
    %out = math.exp %d : f32
""", "f32") + row_reduction("sm", "ex", "f32", "0.0", """    %sum = arith.addf %acc, %x_e : f32
""") + elementwise("h", [("ex", "full", "tensor<{m}x{n}xf32>"), ("sm", "rows", "tensor<{m}xf32>")],
                   """    %d = arith.divf %ex_e, %sm_e : f32
    %out = arith.truncf %d : f32 to bf16
"""))
DSILU = """    %grad = arith.extf %d_e : bf16 to f32
    %gate = arith.extf %x_e : bf16 to f32
    %up = arith.extf %u_e : bf16 to f32
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %gate : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
"""
DSWIGLU = elementwise("dg", [("d", "full", FULL), ("x", "full", FULL), ("u", "full", FULL)],
                      DSILU + """    %rest = arith.subf %one, %sig : f32
    %gr = arith.mulf %gate, %rest : f32
    %gr1 = arith.addf %gr, %one : f32
    %ds = arith.mulf %sig, %gr1 : f32
    %gu = arith.mulf %grad, %up : f32
    %r = arith.mulf %gu, %ds : f32
    %out = arith.truncf %r : f32 to bf16
""") + elementwise("du", [("d", "full", FULL), ("x", "full", FULL), ("u", "full", FULL)],
                   DSILU + """    %gs = arith.mulf %gate, %sig : f32
    %r = arith.mulf %grad, %gs : f32
    %out = arith.truncf %r : f32 to bf16
""")


def both(name, source):
    return (quantize(name, source, MN, WHOLE) + parts(name, MN, WHOLE) +
            transpose(name + "t", name, MN, WHOLE) + parts(name + "t", NM, WHOLE))


GRID1, GRID2 = "tensor<" + blocks(1, 128) + "xf32>", "tensor<{n}x{m/128}xf32>"
STREAMS = [
    make("delayed", 3, 0.98, ("x", "scale"), DELAYED + amax_of("x"), ["%q_p", "%amax"], [CODES, ONE]),
    make("delayed_both", 4, 0.94, ("x", "scale"), DELAYED_BOTH + amax_of("x"),
         ["%q_p", "%t_p", "%amax"], [CODES, TURNED, ONE]),
    make("current", 5, 0.98, ("x",), CURRENT, ["%q_p", "%q_f"], [CODES, ONE]),
    make("current_both", 6, 0.93, ("x",),
         CURRENT + transpose("t", "q", MN, WHOLE) + parts("t", NM, WHOLE),
         ["%q_p", "%t_p", "%q_f"], [CODES, TURNED, ONE]),
    make("block_1x128", 3, 0.95, ("x",), measured("q", "x", MN, "[1, 128]", blocks(1, 128), rule=POW2) +
         parts("q", MN, "[1, 128]"), ["%q_p", "%q_f"], [CODES, GRID1]),
    make("mx_1x32", 3, 0.95, ("x",),
         measured("q", "x", MN, "[1, 32]", blocks(1, 32), scale="f8E8M0FNU") +
         parts("q", MN, "[1, 32]", "f8E8M0FNU"), ["%q_p", "%q_f"],
         [CODES, "tensor<" + blocks(1, 32) + "xf8E8M0FNU>"]),
    make("row_wise", 3, 0.95, ("x",), measured("q", "x", MN, "[1, *]", "{m}x1") +
         parts("q", MN, "[1, *]"), ["%q_p", "%q_f"], [CODES, "tensor<{m}x1xf32>"]),
    make("block_1x128_both", 4, 0.91, ("x",),
         measured("q", "x", MN, "[1, 128]", blocks(1, 128), rule=POW2) +
         parts("q", MN, "[1, 128]") +
         measured("c", "x", MN, "[128, 1]", blocks(128, 1), rule=POW2) +
         transpose("t", "c", MN, "[128, 1]") + parts("t", NM, "[1, 128]"),
         ["%q_p", "%q_f", "%t_p", "%t_f"], [CODES, GRID1, TURNED, GRID2]),
    # As `fp8-choose-scale-layout` has it in programs.
    make("block_1x128_stored", 4, 0.91, ("x",),
         measured("q", "x", MN, "[1, 128]", blocks(1, 128), rule=POW2) +
         parts("q", MN, "[1, 128]") +
         transpose("r", "q", MN, "[1, 128]") + parts("r", NM, "[128, 1]") +
         measured("c", "x", MN, "[128, 1]", blocks(128, 1), rule=POW2) + parts("c", MN, "[128, 1]") +
         transpose("t", "c", MN, "[128, 1]") + parts("t", NM, "[1, 128]"),
         ["%q_p", "%r_f", "%t_p", "%c_f"],
         [CODES, "tensor<{n/128}x{m}xf32>", TURNED, "tensor<" + blocks(128, 1) + "xf32>"]),
    make("block_128x128_both", 4, 0.93, ("x",),
         measured("q", "x", MN, "[128, 128]", blocks(128, 128), rule=POW2) +
         parts("q", MN, "[128, 128]") + transpose("t", "q", MN, "[128, 128]") +
         parts("t", NM, "[128, 128]"), ["%q_p", "%q_f", "%t_p", "%t_f"],
         [CODES, "tensor<" + blocks(128, 128) + "xf32>", TURNED, "tensor<{n/128}x{m/128}xf32>"]),
    make("swiglu_both", 6, 0.92, ("x", "u", "scale"), SWIGLU + both("q", "h") + amax_of("h"),
         ["%q_p", "%qt_p", "%amax"], [CODES, TURNED, ONE], approximate=True),
    make("rmsnorm_both", 4, 0.85, ("x", "w", "scale"), SQUARES + NORM + both("q", "h") + amax_of("h"),
         ["%q_p", "%qt_p", "%amax"], [CODES, TURNED, ONE], approximate=True),
    make("softmax", 4, 0.92, ("x",), SOFTMAX, ["%h"], [FULL], approximate=True),
    make("dswiglu_both", 10, 0.90, ("x", "u", "d", "scale"),
         DSWIGLU + both("a", "dg") + both("b", "du") + amax_of("dg") +
         amax_of("du").replace("%amax", "%amax2"),
         ["%a_p", "%at_p", "%b_p", "%bt_p", "%amax", "%amax2"],
         [CODES, TURNED, CODES, TURNED, ONE, ONE], approximate=True),
    make("bias_grad_both", 4, 0.88, ("x", "scale"),
         column_sums("cs", "x") + both("q", "x") + amax_of("x"),
         ["%q_p", "%qt_p", "%cs", "%amax"], [CODES, TURNED, "tensor<{n}xbf16>", ONE], sums=2),
]
TYPES = {"x": FULL, "u": FULL, "d": FULL, "w": "tensor<{n}xbf16>"}


def fill(text, m, n):
    """The text with extents; `?` for what is not known."""
    values = {"m": m, "n": n}
    for block in (16, 24, 32, 128):
        for key, extent in (("m", m), ("n", n)):
            values[f"{key}/{block}"] = "?" if extent == "?" else -(-extent // block)
    dims = [f"%d{i}" for i, extent in enumerate((m, n)) if extent == "?"]
    values["dims"] = ", ".join(dims)
    values["rowdims"] = "%d0" if m == "?" else ""
    values["columndims"] = "%d1" if n == "?" else ""
    values["turneddims"] = ", ".join(reversed(dims))
    for key, value in values.items():
        text = text.replace("{" + key + "}", str(value))
    return text.replace("{{", "{").replace("}}", "}")


def get_arguments(fusion):
    """(name, type) of the function, in order."""
    arguments = []
    for name in fusion.inputs:
        if name == "scale":
            arguments += [("s", ONE), ("si", ONE)]
        else:
            arguments.append((name, TYPES[name]))
    return arguments


def get_extent(fusion, value, extent):
    """The extent of the first argument that has it."""
    name, kind, place = next(
        (name, kind, kind[len("tensor<"):].split("x").index(f"{{{extent}}}"))
        for name, kind in get_arguments(fusion) if f"{{{extent}}}" in kind)
    return (f"  {value}_at = arith.constant {place} : index\n"
            f"  {value} = tensor.dim %{name}, {value}_at : {kind}\n")


def get_function(fusion, m, n):
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in get_arguments(fusion))
    dims = "".join(get_extent(fusion, f"%d{i}", "mn"[i])
                   for i, extent in enumerate((m, n)) if extent == "?")
    text = (f"func.func @{get_name(fusion, m, n)}({arguments})\n"
            f"    -> ({', '.join(fusion.results)}) {{{{\n{dims}{fusion.body}}}}}\n")
    return fill(text, m, n)


def has_whole_bytes(fusion, m, n):
    """Whether rows of its codes of 4 bits, of which two share a byte, have none left over, and
    what it rotates is whole blocks of 16, known to be."""
    rotated = {"m": m, "n": n, None: 0}[fusion.rotates]
    if rotated == "?" or rotated % 16:
        return False
    kinds = [kind for _, kind in get_arguments(fusion)] + list(fusion.results)
    rows = [fill(kind, m, n).split("x")[-2] for kind in kinds if kind.endswith("xf4E2M1FN>")]
    return all(row == "?" or int(row) % 2 == 0 for row in rows)


def get_name(fusion, m, n):
    return f"{fusion.name}_{m}x{n}".replace("?", "n")
