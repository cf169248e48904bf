"""Programs whose results are compared bit by bit: matmuls under each recipe, passes over memory,
transposes, and loops that no kind of kernel takes."""

from code_functions import CODE_STREAMS
from gather_functions import GATHER_STREAMS
from fusion_functions import MAPS, STREAMS, get_function, has_whole_bytes

RECIPES = ["none", "current", "current,accumulate=fast", "rowwise", "block", "mxfp8", "nvfp4"]
# M, K, N: tails in each dimension, rings that come round, several tiles of a block, split K,
# swapped operands.
MATMULS = [(32, 256, 64), (32, 1664, 1024), (8, 4096, 128), (512, 256, 512), (200, 400, 264),
           (130, 272, 1032)]
# Even, odd, columns that are summed in parts, rows of a cluster.
STREAMED = [(256, 512), (77, 130), (33, 264), (1500, 520), (3, 40000)]
TRANSPOSED = [("f8E4M3FN", (132, 1000)), ("f8E4M3FN", (3, 36, 260)), ("f8E4M3FN", (5, 33, 64)),
              ("bf16", (130, 998)), ("bf16", (33, 65)), ("f32", (3, 31, 97)), ("f32", (1001, 3)),
              ("i32", (65, 33)), ("f8E5M2", (36, 132))]

LINEAR = """
func.func @linear(%x: tensor<{m}x{k}xbf16> {{fp8.name = "x"}},
                  %w: tensor<{k}x{n}xbf16> {{fp8.name = "w", fp8.weight}})
    -> (tensor<{m}x{n}xbf16> {{fp8.name = "y"}}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %product = linalg.matmul ins(%x, %w : tensor<{m}x{k}xbf16>, tensor<{k}x{n}xbf16>)
                           outs(%zeros : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> loc("linear")
  %y = arith.truncf %product : tensor<{m}x{n}xf32> to tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""

# Arithmetic that loops do, of an f32, a bf16 and an i32.
LOOPS = {
    "arithmetic": ("f32", """
    %wide = arith.extf %b : bf16 to f32
    %whole = arith.sitofp %c : i32 to f32
    %0 = arith.divf %a, %wide : f32
    %1 = math.fma %0, %a, %whole : f32
    %2 = arith.minimumf %1, %whole : f32
    %3 = arith.subf %2, %0 : f32
    %r = math.sqrt %3 : f32"""),
    "integers": ("i32", """
    %bits = arith.bitcast %a : f32 to i32
    %seven = arith.constant 7 : i32
    %0 = arith.muli %bits, %c : i32
    %1 = arith.shrsi %0, %seven : i32
    %2 = arith.xori %1, %bits : i32
    %3 = arith.divsi %2, %seven : i32
    %4 = arith.remui %0, %seven : i32
    %5 = arith.maxsi %3, %4 : i32
    %6 = math.ctpop %5 : i32
    %r = arith.addi %5, %6 : i32"""),
    "functions": ("f32", """
    %0 = math.exp %a : f32
    %1 = math.tanh %a : f32
    %2 = math.erf %a : f32
    %3 = math.rsqrt %0 : f32
    %4 = arith.addf %0, %1 : f32
    %5 = arith.addf %2, %3 : f32
    %r = arith.addf %4, %5 : f32"""),
    "logarithms": ("f32", """
    %0 = math.absf %a : f32
    %1 = math.log %0 : f32
    %2 = math.sin %a : f32
    %3 = math.cos %a : f32
    %4 = arith.addf %1, %2 : f32
    %r = arith.addf %4, %3 : f32"""),
    "casts": ("f8E4M3FN", """
    %wide = arith.extf %b : bf16 to f32
    %0 = arith.mulf %wide, %a : f32
    %1 = arith.truncf %0 : f32 to f16
    %2 = arith.extf %1 : f16 to f32
    %r = arith.truncf %2 : f32 to f8E4M3FN"""),
}


def loop(name, element, body):
    """Over dimensions in another order than the second operand has them."""
    for value in "abc":
        body = body.replace(f"%{value} ", f"%{value}e ").replace(f"%{value},", f"%{value}e,")
    types = "tensor<33x7x50xf32>, tensor<50x7xbf16>, tensor<33xi32>"
    maps = ", ".join(f"affine_map<(i, j, k) -> ({place})>"
                     for place in ("i, j, k", "k, j", "i", "i, j, k"))
    loops = ", ".join(['"parallel"'] * 3)
    result = f"tensor<33x7x50x{element}>"
    return f"""func.func @{name}(%a: tensor<33x7x50xf32>, %b: tensor<50x7xbf16>, %c: tensor<33xi32>)
    -> {result} {{
  %e = tensor.empty() : {result}
  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
      ins(%a, %b, %c : {types}) outs(%e : {result}) {{
  ^bb0(%ae: f32, %be: bf16, %ce: i32, %_: {element}):{body}
    linalg.yield %r : {element}
  }} -> {result}
  return %y : {result}
}}
"""


def transpose(element, extents):
    flipped = (*extents[:-2], extents[-1], extents[-2])
    order = [*range(len(extents) - 2), len(extents) - 1, len(extents) - 2]
    source, target = (f"tensor<{'x'.join(map(str, sizes))}x{element}>"
                      for sizes in (extents, flipped))
    name = f"transpose_{element}_{'x'.join(map(str, extents))}"
    return f"""func.func @{name}(%x: {source}) -> {target} {{
  %e = tensor.empty() : {target}
  %y = linalg.transpose ins(%x : {source}) outs(%e : {target})
      permutation = [{', '.join(map(str, order))}]
  return %y : {target}
}}
"""


def get_programs():
    """The name of each program, its recipe and its text."""
    for m, k, n in MATMULS:
        for recipe in RECIPES:
            name = f"{m}x{k}x{n}-{recipe.replace(',', '-').replace('=', '-')}"
            yield name, recipe, LINEAR.format(m=m, k=k, n=n)
    for extents in STREAMED:
        functions = "".join(get_function(stream, *extents)
                            for stream in (*STREAMS, *CODE_STREAMS, *GATHER_STREAMS)
                            if has_whole_bytes(stream, *extents))
        yield f"streams-{'x'.join(map(str, extents))}", "none", MAPS + functions
    yield "transposes", "none", "".join(transpose(*case) for case in TRANSPOSED)
    yield "loops", "none", "".join(loop(name, *case) for name, case in LOOPS.items())
