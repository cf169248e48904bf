"""Gradients of the activations of layers whose weights are codes and scales: dx = dy W.

The weight stays what it is. Where a scale is that of a row or of the tensor it is multiplied into
dy, which is then quantized for each row, and the codes themselves are the other factor. Blocks of
128x128 are scales of the transposed weight as they are. Other scales change along the sum: there
the program computes the weight's values for the product, which nobody keeps.
"""

import functools

from fp8 import casts
from fp8.formats import E2M1, E4M3, E8M0, F32
from fp8.torch import expected, packed
from fp8.torch.schemes import Scheme

FUNCTION = "input_gradient"
_F8 = E4M3.mlir
_SCALES = {"f32": F32.mlir, "e8m0": E8M0.mlir, "e4m3": E4M3.mlir}


def find_way(scheme, n):
    """How the product is computed: "rows", "blocks" or "values"."""
    if scheme.input_block is None:  # Gradients stay as they are, too.
        return "values"
    if scheme.weight_block[1] is None and n % 16 == 0:
        return "rows"
    if scheme.weight_block == (128, 128) and n % 128 == 0:
        return "blocks"
    return "values"


@functools.lru_cache(maxsize=None)
def compile_gradient(scheme, n, k, element, target):
    """A fp8.Function of dy, M x N for any M, and the stored tensors that `select` leaves: dx of
    dy's type, M x K. `scheme` is the str of one."""
    known = Scheme.read(scheme)
    text = write_gradient(known, n, k, element)
    return expected.compile(None, (), text, target=target, **known.options).functions[FUNCTION]


def select(scheme, tensors):
    """Those of the stored tensors of a layer that the gradient reads."""
    return tensors if scheme.dynamic else tensors[:-1]


def write_gradient(scheme, n, k, element):
    """The program of compile_gradient as text."""
    way = find_way(scheme, n)
    is_nvfp4 = scheme.scale == "e4m3"
    grid = "x".join(map(str, scheme.get_grid(scheme.weight_block, n, k)))
    dy, dx, w = f"tensor<?x{n}x{element}>", f"tensor<?x{k}x{element}>", f"tensor<{n}x{k}x{_F8}>"
    factors = f"tensor<{grid}x{_SCALES[scheme.scale]}>"
    arguments, body = [f'%dy: {dy} {{fp8.name = "dy", fp8.grad}}'], []
    if scheme.packed:
        codes = f"tensor<{n}x{k}x{E2M1.mlir}>"
        exponents = f"tensor<{-(-k // packed.WORD)}x{n}xi32>"
        arguments += [f"%p: {codes} {{fp8.weight}}", f"%e: {exponents}"]
        body.append(f"%w = fp8.lift %p, %e : {codes}, {exponents} -> {w}")
    else:
        w = f"tensor<{n}x{k}x{scheme.codes.mlir}>"
        arguments.append(f"%w: {w} {{fp8.weight}}")
    arguments.append(f"%ws: {factors}")
    if is_nvfp4:
        arguments.append("%wg: tensor<1x1xf32>")
    if way == "values":
        body += _write_values(scheme, n, k, element, w, factors)
    else:
        body += _write_codes(scheme, n, k, element, w, factors, way)
    return (_MAPS + f"func.func @{FUNCTION}({', '.join(arguments)}) -> {dx} {{\n  "
            + "\n  ".join(body) + f"\n  return %dx : {dx}\n}}\n")


_MAPS = """#full = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n, 0)>
#one = affine_map<(m, n) -> (0, 0)>
#a = affine_map<(m, k, n) -> (m, n)>
#b = affine_map<(m, k, n) -> (n, k)>
#d = affine_map<(m, k, n) -> (m, k)>
#out = affine_map<(m, k) -> (m, k)>
"""


def _write_sizes(source):
    return ["%c0 = arith.constant 0 : index", f"%m = tensor.dim %dy, %c0 : {source}"]


def _write_codes(scheme, n, k, element, w, factors, way):
    """The product of codes."""
    nan, rule = casts.write_rule(scheme.rule)
    dy, dx = f"tensor<?x{n}x{element}>", f"tensor<?x{k}x{element}>"
    if way == "rows":
        source = f"tensor<?x{n}xf32>"
        ones = f"tensor<1x{k}xf32>"
        extend = "" if element == "f32" else f"%w32 = arith.extf %g : {element} to f32\n  "
        value = "%g" if element == "f32" else "%w32"
        scale_map = "#one" if scheme.weight_block[0] is None else "#row"
        body = [*_write_sizes(dy), f"%empty = tensor.empty(%m) : {source}",
                f"%g2 = linalg.generic {{indexing_maps = [#full, {scale_map}, #full], "
                f'iterator_types = ["parallel", "parallel"]}} ins(%dy, %ws : {dy}, {factors}) '
                f"outs(%empty : {source}) {{",
                f"^bb0(%g: {element}, %s: f32, %o: f32):",
                f"  {extend}%r = arith.mulf {value}, %s : f32", "  linalg.yield %r : f32",
                f"}} -> {source}",
                f"%ones = arith.constant dense<1.0> : {ones}"]
        block, weight_block, columns, weight_factors = "[1, *]", "[*, 1]", "1", ones
        gradient, weight_scales = "%g2", "%ones"
    else:
        source, body = dy, []
        block, weight_block, columns, weight_factors = "[1, 128]", "[128, 128]", str(n // 128), factors
        gradient, weight_scales = "%dy", "%ws"
    amax = f"tensor<?x{columns}xf32>"
    scaled = f"!fp8.scaled<?x{n}x{_F8}, block = {block}, scale = f32>"
    weight = f"!fp8.scaled<{n}x{k}x{_F8}, block = {weight_block}, scale = f32>"
    turned_block = "[1, *]" if way == "rows" else weight_block
    turned = f"!fp8.scaled<{k}x{n}x{_F8}, block = {turned_block}, scale = f32>"
    return body + [
        f"%amax = fp8.amax {gradient} block = {block}{nan} : {source}",
        f"%scale, %inv = fp8.compute_scale %amax format = {_F8} scale_type = f32 {rule} : {amax}",
        f"%q = fp8.quantize {gradient} scale(%scale, %inv : {amax}, {amax}) : {source} -> "
        f"{scaled.removeprefix('!fp8.scaled')}",
        f"%wq = fp8.assemble %w, {weight_scales} : {w}, {weight_factors} -> "
        f"{weight.removeprefix('!fp8.scaled')}",
        f"%t = fp8.transpose %wq permutation = [1, 0] : {weight.removeprefix('!fp8.scaled')}",
        f"%dx = fp8.matmul %q, %t accumulate = {scheme.accumulate} : {scaled}, {turned} -> {dx}"]


def _write_values(scheme, n, k, element, w, factors):
    """The product with the weight's values."""
    scale = _SCALES[scheme.scale]
    dy, dx, sum_ = (f"tensor<?x{n}x{element}>", f"tensor<?x{k}x{element}>", f"tensor<?x{k}xf32>")
    values = f"tensor<{n}x{k}x{element}>"
    block = "[" + ", ".join("*" if size is None else str(size) for size in scheme.weight_block) + "]"
    is_nvfp4 = scheme.scale == "e4m3"
    extra = ", tensor_scale = f32" if is_nvfp4 else ""
    one = "tensor<1x1xf32>"
    codes = E4M3 if scheme.packed else scheme.codes
    scaled = f"<{n}x{k}x{codes.mlir}, block = {block}, scale = {scale}{extra}>"
    body = _write_sizes(dy)
    if is_nvfp4:
        body += [f"%c1 = arith.constant dense<1.0> : {one}", f"%wt = arith.divf %c1, %wg : {one}"]
    body += ["%wq = fp8.assemble %w, %ws" + ", %wt" * is_nvfp4 + f" : {w}, {factors}"
             + f", {one}" * is_nvfp4 + f" -> {scaled}",
             f"%values = fp8.dequantize %wq : {scaled} -> {values}",
             "%zero = arith.constant 0.0 : f32",
             f"%empty = tensor.empty(%m) : {sum_}",
             f"%zeros = linalg.fill ins(%zero : f32) outs(%empty : {sum_}) -> {sum_}",
             f"%{'dx' if element == 'f32' else 'sum'} = linalg.generic {{indexing_maps = [#a, #b, #d], "
             f'iterator_types = ["parallel", "parallel", "reduction"]}} ins(%dy, %values : {dy}, '
             f"{values}) outs(%zeros : {sum_}) {{",
             f"^bb0(%g: {element}, %v: {element}, %o: f32):"]
    if element == "f32":
        return body + ["  %gv = arith.mulf %g, %v : f32", "  %r = arith.addf %o, %gv : f32",
                       "  linalg.yield %r : f32", f"}} -> {sum_}"]
    return body + [f"  %g32 = arith.extf %g : {element} to f32",
                   f"  %v32 = arith.extf %v : {element} to f32", "  %gv = arith.mulf %g32, %v32 : f32",
                   "  %r = arith.addf %o, %gv : f32", "  linalg.yield %r : f32", f"}} -> {sum_}",
                   f"%outs = tensor.empty(%m) : {dx}",
                   "%dx = linalg.generic {indexing_maps = [#out, #out], "
                   f'iterator_types = ["parallel", "parallel"]}} ins(%sum : {sum_}) '
                   f"outs(%outs : {dx}) {{", f"^bb0(%s: f32, %o: {element}):",
                   f"  %r = arith.truncf %s : f32 to {element}", f"  linalg.yield %r : {element}",
                   f"}} -> {dx}"]
