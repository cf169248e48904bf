"""Programs whose rows should not depend on each other: products of linear layers and what surrounds them, as text.

Each has the function `main` of x, [rows, K], weights, and offsets if it has groups. Rows are a number, or None for any."""

from dataclasses import dataclass
from typing import Callable

MAPS = """#full = affine_map<(m, n) -> (m, n)>
#rows = affine_map<(m, n) -> (m)>
#columns = affine_map<(m, n) -> (n)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#d = affine_map<(m, n, k) -> (m, n)>
"""
GROUPS = 4


class _Body:
    """Lines of a function of `rows` rows."""

    def __init__(self, rows):
        self.rows, self.lines = rows, ["%zero = arith.constant 0.0 : f32"]

    def kind(self, columns, element):
        rows = "?" if self.rows is None else self.rows
        return f"tensor<{rows}x{columns}x{element}>" if columns else f"tensor<{rows}x{element}>"

    def begin(self, columns):
        if self.rows is None:
            self.lines += ["%c0 = arith.constant 0 : index",
                           f"%rows = tensor.dim %x, %c0 : {self.kind(columns, 'bf16')}"]

    def empty(self, name, columns, element):
        rows = "%rows" if self.rows is None else ""
        self.lines.append(f"%{name} = tensor.empty({rows}) : {self.kind(columns, element)}")

    def zeros(self, name, columns):
        kind = self.kind(columns, "f32")
        self.empty(f"{name}_e", columns, "f32")
        self.lines.append(f"%{name}_z = linalg.fill ins(%zero : f32) outs(%{name}_e : {kind}) -> {kind}")

    def product(self, name, a, w, n, k):
        """%name of f32: a w^T."""
        self.zeros(name, n)
        kind = self.kind(n, "f32")
        self.lines.append(
            f'%{name} = linalg.matmul indexing_maps = [#a, #b, #d] {{fp8.name = "{name}"}} '
            f"ins(%{a}, %{w} : {self.kind(k, 'bf16')}, tensor<{n}x{k}xbf16>) outs(%{name}_z : {kind}) -> {kind}")

    def each(self, name, inputs, columns, element, body, result):
        """%name of elements; `inputs` are (value, columns, element, map), arguments of the body %a, %b, ..."""
        self.empty(f"{name}_e", columns, element)
        values = ", ".join(f"%{value}" for value, *_ in inputs)
        types = ", ".join(self.kind(own, of) if key != "#columns" else f"tensor<{own}x{of}>"
                          for _, own, of, key in inputs)
        arguments = ", ".join(f"%{letter}: {of}" for letter, (_, _, of, _) in zip("abc", inputs))
        kind = self.kind(columns, element)
        maps = ", ".join([*(key for *_, key in inputs), "#full"])
        self.lines += [
            f'%{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} '
            f"ins({values} : {types}) outs(%{name}_e : {kind}) {{", f"^bb0({arguments}, %o: {element}):",
            *(f"  {line}" for line in body), f"  linalg.yield {result} : {element}", f"}} -> {kind}"]

    def round(self, name, value, columns):
        self.each(name, [(value, columns, "f32", "#full")], columns, "bf16",
                  ["%r = arith.truncf %a : f32 to bf16"], "%r")

    def normalize(self, name, value, columns):
        """%name, an RMS norm of bf16."""
        self.zeros(f"{name}_s", None)
        kind, full = self.kind(None, "f32"), self.kind(columns, "bf16")
        self.lines += [
            f'%{name}_s = linalg.generic {{indexing_maps = [#full, #rows], iterator_types = ["parallel", "reduction"]}} '
            f"ins(%{value} : {full}) outs(%{name}_s_z : {kind}) {{", "^bb0(%a: bf16, %o: f32):",
            "  %w_ = arith.extf %a : bf16 to f32", "  %q_ = arith.mulf %w_, %w_ : f32",
            "  %t_ = arith.addf %q_, %o : f32", "  linalg.yield %t_ : f32", f"}} -> {kind}"]
        self.each(name, [(value, columns, "bf16", "#full"), (f"{name}_s", None, "f32", "#rows")], columns, "bf16", [
            f"%i = arith.constant {1 / columns:e} : f32", "%eps = arith.constant 1.0e-5 : f32",
            "%mean = arith.mulf %b, %i : f32", "%sum = arith.addf %mean, %eps : f32", "%f = math.rsqrt %sum : f32",
            "%w_ = arith.extf %a : bf16 to f32", "%y_ = arith.mulf %w_, %f : f32",
            "%r = arith.truncf %y_ : f32 to bf16"], "%r")


def _finish(body, arguments, result, columns, element):
    declared = ", ".join(f'%{name}: {kind} {{fp8.name = "{name}"{", fp8.weight" if name[0] == "w" else ""}}}'
                         for name, kind in arguments)
    y = body.kind(columns, element)
    return (f'{MAPS}func.func @main({declared}) -> ({y} {{fp8.name = "y"}}) {{\n  ' + "\n  ".join(body.lines)
            + f"\n  return %{result} : {y}\n}}\n")


def _write_linear(rows, n, k):
    body = _Body(rows)
    body.begin(k)
    body.product("y", "x", "w", n, k)
    return _finish(body, [("x", body.kind(k, "bf16")), ("w", f"tensor<{n}x{k}xbf16>")], "y", n, "f32")


def _write_norm(rows, n, k):
    body = _Body(rows)
    body.begin(k)
    body.normalize("h", "x", k)
    body.product("y", "h", "w", n, k)
    return _finish(body, [("x", body.kind(k, "bf16")), ("w", f"tensor<{n}x{k}xbf16>")], "y", n, "f32")


def _write_mlp(rows, n, k):
    """A gated MLP, of which both halves read the same and meet."""
    body = _Body(rows)
    body.begin(k)
    body.product("g", "x", "wg", n, k)
    body.round("gr", "g", n)
    body.product("u", "x", "wu", n, k)
    body.round("ur", "u", n)
    body.each("h", [("gr", n, "bf16", "#full"), ("ur", n, "bf16", "#full")], n, "bf16", [
        "%one = arith.constant 1.0 : f32", "%ga = arith.extf %a : bf16 to f32", "%ub = arith.extf %b : bf16 to f32",
        "%ng = arith.negf %ga : f32", "%ex = math.exp %ng : f32", "%dv = arith.addf %ex, %one : f32",
        "%si = arith.divf %ga, %dv : f32", "%pr = arith.mulf %si, %ub : f32", "%r = arith.truncf %pr : f32 to bf16"],
        "%r")
    body.product("y", "h", "wd", k, n)
    return _finish(body, [("x", body.kind(k, "bf16")), ("wg", f"tensor<{n}x{k}xbf16>"),
                          ("wu", f"tensor<{n}x{k}xbf16>"), ("wd", f"tensor<{k}x{n}xbf16>")], "y", k, "f32")


def _write_grouped(rows, n, k):
    body = _Body(rows)
    x, w, offsets = body.kind(k, "bf16"), f"tensor<{GROUPS}x{n}x{k}xbf16>", f"tensor<{GROUPS + 1}xi32>"
    body.lines = [f"%y = fp8.grouped_matmul %x, %w offsets(%offsets : {offsets}) accumulate = fast : {x}, {w} -> "
                  f"{body.kind(n, 'f32')}"]
    return _finish(body, [("x", x), ("w", w), ("offsets", offsets)], "y", n, "f32")


@dataclass(frozen=True)
class Kind:
    """`write(rows, n, k)` is the text; weights have the shapes `weights(n, k)`."""

    write: Callable
    weights: Callable
    recipes: tuple
    is_grouped: bool = False


KINDS = {
    "linear": Kind(_write_linear, lambda n, k: [(n, k)], ("rowwise", "rowwise,accumulate=fast", "block", "mxfp8", "none")),
    "norm": Kind(_write_norm, lambda n, k: [(n, k)], ("rowwise", "block", "none")),
    "mlp": Kind(_write_mlp, lambda n, k: [(n, k), (n, k), (k, n)], ("rowwise", "block", "none")),
    "grouped": Kind(_write_grouped, lambda n, k: [(GROUPS, n, k)], ("rowwise", "block", "none"), True),
}


# ===----------------------------------------------------------------------===
# One product of codes, as a served layer has it
# ===----------------------------------------------------------------------===

# What shares a factor of a row of activations and of the weight, and how products add up.
SERVED = {
    "row": ("rowwise", "[1, *]", "[1, *]", "promote"),
    "row_fast": ("rowwise", "[1, *]", "[1, *]", "fast"),
    "block": ("block", "[1, 128]", "[128, 128]", "promote"),
}


def write_served(m, n, k, kind, config="", element="bf16"):
    """`main` of x in bf16 and of codes and factors of a weight; `config` is the matmul's, where it is pinned."""
    recipe, of_x, of_w, accumulate = SERVED[kind]
    grid = f"{-(-n // 128)}x{-(-k // 128)}" if kind == "block" else f"{n}x1"
    x = f"!fp8.scaled<{m}x{k}xf8E4M3FN, block = {of_x}, scale = f32>"
    w = f"!fp8.scaled<{n}x{k}xf8E4M3FN, block = {of_w}, scale = f32>"
    codes, factors, y = f"tensor<{n}x{k}xf8E4M3FN>", f"tensor<{grid}xf32>", f"tensor<{m}x{n}x{element}>"
    pinned = f" {{fp8_gpu.config = {config}}}" if config else ""
    return (f'func.func @main(%x: tensor<{m}x{k}xbf16> {{fp8.name = "x"}}, %c: {codes}, %f: {factors}) -> {y} {{\n'
            f"  %p = fp8.quantize %x recipe(#fp8.{recipe}) : tensor<{m}x{k}xbf16> -> {x}\n"
            f"  %w = fp8.assemble %c, %f : {codes}, {factors} -> {w}\n"
            f"  %y = fp8.matmul %p, %w accumulate = {accumulate}{pinned} : {x}, {w} -> {y}\n"
            f"  return %y : {y}\n}}\n")
