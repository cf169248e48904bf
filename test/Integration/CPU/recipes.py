# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled programs under every recipe with Inputs/model.py.

Payloads and scales bit by bit; matmuls with an f64 product of the dequantized
model, within what f32 sums may lose. All that follows the sum (rounding, bias,
residual) is monotone, so the bounds are taken through the same steps and the
result must lie between them.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
import model  # noqa: E402

# `require`: a contraction that stays in high precision is an error.
PASSES = ["--fp8-pipeline=target=cpu to=host require"]

RECIPES = [
    "current",
    "current,format=e4m3,pow2=true",
    "current,format=e5m2",
    "current,style=torchao",
    "current,amax_epsilon=64.0",
    "rowwise",
    "rowwise,format=hybrid,pow2=false",
    "rowwise,format=e5m2",
    "rowwise,style=torchao",
    "block",
    "block,format=hybrid,pow2=false",
    "block,format=e5m2",
    "block,x_dim=2,w_dim=1",
    "mxfp8",
    "mxfp8,mode=floor",
    "mxfp8,mode=ceil",
    "mxfp8,mode=even,format=hybrid",
    "mxfp8,mode=floor,format=e5m2",
    "mxfp8,nonfinite=nan",
    "mxfp8,weight_2d=true",
    "nvfp4",
    "nvfp4,weight_2d=true",
]

STORAGE = {"f32": np.float32, "f8E8M0FNU": np.uint8, "f8E4M3FN": np.uint8}


def tensor(dims, element):
    return f"tensor<{'x'.join(map(str, [*dims, element]))}>"


def make_data(random, shape, source, wild):
    """Normal values with loud channels and quiet rows; `wild`, the corners too."""
    x = random.standard_normal(shape).astype(np.float32)
    rows = x.reshape(-1, shape[-1]) if x.size else x.reshape(0, 1)
    if rows.size:
        rows[:, random.integers(0, shape[-1], 1 + shape[-1] // 64)] *= 100
        rows[random.integers(0, len(rows), 1 + len(rows) // 8)] *= 2.0**-12
        rows[random.integers(0, len(rows), len(rows) // 16)] = 0
    if rows.size and wild:
        def corner(value, count):
            row = random.integers(0, len(rows), count)
            column = random.integers(0, shape[-1], count)
            rows[row, column] = value

        tiny = random.integers(0, len(rows), 1 + len(rows) // 16)
        rows[tiny] *= np.float32(2.0**-133 if source != "f16" else 2.0**-16)
        corner(0, rows.size // 8)
        corner(-0.0, 2)
        corner(60000, len(rows) // 8)
        corner(np.inf, len(rows) // 8)
        corner(-np.inf, 1 if wild > 1 else 0)
        corner(np.nan, len(rows) // 8)
    return x.astype(model.INPUTS[source])


#===------------------------------------------------------------------------===#
# Payloads and scales
#===------------------------------------------------------------------------===#


@dataclass
class Quantize:
    """A function that quantizes, and the shapes to call it with."""

    recipe: str
    source: str
    operand: str
    dims: tuple
    shapes: list

    @property
    def scaled(self):
        return model.describe(self.recipe, self.source, self.operand, len(self.dims) == 3)

    @property
    def part_types(self):
        grid = [1 if b is None else "?" if d == "?" else -(-d // b)
                for d, b in zip(self.dims, self.scaled.block)]
        types = [tensor(self.dims, self.scaled.element), tensor(grid, self.scaled.scale)]
        return types + ([tensor([1] * len(grid), "f32")] if self.scaled.has_tensor_scale else [])

    @property
    def part_dtypes(self):
        dtypes = [np.uint8, STORAGE[self.scaled.scale], np.float32]
        return [(d, len(self.dims)) for d in dtypes[: 2 + self.scaled.has_tensor_scale]]

    def function(self, name):
        x, scaled = tensor(self.dims, self.source), self.scaled.mlir(self.dims)
        types = ", ".join(self.part_types)
        parts = ["%codes", "%scale_inv", "%tensor_scale_inv"][: len(self.part_types)]
        parts = ", ".join(parts)
        return f"""
func.func @{name}(%x: {x}) -> ({types}) attributes {{llvm.emit_c_interface}} {{
  %q = fp8.quantize %x recipe({model.attribute(self.recipe)}) : {x} -> {scaled}
  {parts} = fp8.disassemble %q : {scaled}
  return {parts} : {types}
}}
"""

    def check(self, library, name, random):
        """What is wrong, in words; empty if nothing is."""
        for shape in self.shapes:
            for wild in (0, 1, 2):
                x = make_data(random, shape, self.source, wild)
                if wild == 2 and x.size:
                    # All of it tiny, and a zero in it.
                    x = (x.astype(np.float32) * np.float32(2.0**-130)).astype(x.dtype)
                got = compiled.call(library, name, [x], self.part_dtypes)
                for part, g, e in zip(("codes", "scale_inv", "tensor_scale_inv"), got,
                                      self.scaled.store(x)):
                    if g.shape != e.shape:
                        return f"{part} of {shape}: shape {g.shape}, expected {e.shape}"
                    wrong = np.argwhere(~model.same_bits(g, e))
                    if wrong.size:
                        at = tuple(wrong[0])
                        return (f"{part} of {shape}, data {wild}: {len(wrong)} of {g.size} wrong, "
                                f"first at {at}: {g[at]!r}, expected {e[at]!r}")
            text = self.check_rows(library, name, x)
            if text:
                return text
        return ""

    def check_rows(self, library, name, x):
        """Rows that share no factor do not see each other."""
        if self.dims != ("?", "?") or self.scaled.block[0] != 1 or self.scaled.has_tensor_scale:
            return ""
        whole = compiled.call(library, name, [x], self.part_dtypes)
        for row in range(0, len(x), 7):
            part = compiled.call(library, name, [x[row : row + 1].copy()], self.part_dtypes)
            for p, w in zip(part, whole):
                if not model.same_bits(p, w[row : row + 1]).all():
                    return f"row {row} of {x.shape} differs when quantized alone"
        return ""


def quantize_cases():
    static = [[(64, 256)], [(5, 200)], [(1, 96)], [(130, 130)], [(33, 31)]]
    number = 0
    for recipe in RECIPES:
        for source in model.INPUTS:
            for operand in ("activation", "weight", "gradient"):
                if operand == "activation":
                    # Two codes of 4 bits share a byte.
                    odd = 0 if recipe.startswith("nvfp4") else 1
                    yield Quantize(recipe, source, operand, ("?", "?"),
                                   [(1, 2 - odd), (3, 130 - odd), (32, 64), (129, 300), (0, 32)])
                    yield Quantize(recipe, source, operand, ("?", "?", "?"), [(2, 33, 160)])
                else:
                    shape = static[number % len(static)]
                    yield Quantize(recipe, source, operand, shape[0], shape)
                    number += 1


#===------------------------------------------------------------------------===#
# Matmuls
#===------------------------------------------------------------------------===#


@dataclass
class Matmul:
    """A function that multiplies, in one of the spellings of linalg.matmul."""

    recipe: str
    source: str
    result: str
    spelling: str  # subscripts as in einsum
    sizes: dict
    dynamic: str = ""  # subscripts
    bias: bool = False
    residual: bool = False
    a_is_gradient: bool = False

    def dims(self, subscripts):
        return ["?" if s in self.dynamic else self.sizes[s] for s in subscripts]

    def shape(self, subscripts):
        return tuple(self.sizes[s] for s in subscripts)

    def function(self, name):
        a, b, c = self.spelling.replace("->", ",").split(",")
        loops = [s for s in "bmnk" if s in a + b]
        maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>"
                         for dims in (a, b, c))
        a_type, b_type = tensor(self.dims(a), self.source), tensor(self.dims(b), self.source)
        c_type = tensor(self.dims(c), self.result)
        bias_type, op = tensor(self.dims("n"), self.result), "batch_matmul" if "b" in a else "matmul"
        grad = " {fp8.grad}" if self.a_is_gradient else ""
        sizes, lines = [], []
        for s in c:
            if s in self.dynamic:
                operand, dims = ("%a", a) if s in a else ("%b", b)
                lines += [f"%i{s} = arith.constant {dims.index(s)} : index",
                          f"%d{s} = tensor.dim {operand}, %i{s} : "
                          f"{a_type if operand == '%a' else b_type}"]
                sizes.append(f"%d{s}")
        lines += [
            f"%zero = arith.constant 0.0 : {self.result}",
            f"%empty = tensor.empty({', '.join(sizes)}) : {c_type}",
            f"%init = linalg.fill ins(%zero : {self.result}) outs(%empty : {c_type}) -> {c_type}",
            f"%r0 = linalg.{op} indexing_maps = [{maps}] ins(%a, %b : {a_type}, {b_type}) "
            f"outs(%init : {c_type}) -> {c_type}",
        ]
        last = "%r0"
        identity = f"affine_map<({', '.join(c)}) -> ({', '.join(c)})>"
        for used, operand, of_type, dims in ((self.bias, "%bias", bias_type, "n"),
                                             (self.residual, "%residual", c_type, c)):
            if not used:
                continue
            operand_map = f"affine_map<({', '.join(c)}) -> ({', '.join(dims)})>"
            iterators = ", ".join(['"parallel"'] * len(c))
            lines.append(f"""{operand}.sum = linalg.generic
      {{indexing_maps = [{identity}, {operand_map}, {identity}], iterator_types = [{iterators}]}}
      ins({last}, {operand} : {c_type}, {of_type}) outs(%empty : {c_type}) {{
  ^bb0(%x: {self.result}, %y: {self.result}, %z: {self.result}):
    %s = arith.addf %x, %y : {self.result}
    linalg.yield %s : {self.result}
  }} -> {c_type}""")
            last = f"{operand}.sum"
        body = "\n  ".join(lines)
        return f"""
func.func @{name}(%a: {a_type}{grad}, %b: {b_type}, %bias: {bias_type}, %residual: {c_type})
    -> {c_type} attributes {{llvm.emit_c_interface, fp8.recipe = {model.attribute(self.recipe)}}} {{
  {body}
  return {last} : {c_type}
}}
"""

    def operand(self, values, subscripts, rows, kind):
        """The model's values as [batch x] rows x K."""
        batched = "b" in subscripts
        order = [subscripts.index(s) for s in (["b"] if batched else []) + [rows, "k"]]
        scaled = model.describe(self.recipe, self.source, kind, batched)
        return scaled.value(values.transpose(order))

    def check(self, library, name, random):
        a_dims, b_dims, c_dims = self.spelling.replace("->", ",").split(",")
        for wild in (0, 1):
            a = make_data(random, self.shape(a_dims), self.source, wild)
            b = make_data(random, self.shape(b_dims), self.source, 0)
            if wild and b.size:
                # One column with NaN.
                b[(0,) * b.ndim] = np.nan
            bias = make_data(random, self.shape("n"), self.result, 0)
            residual = make_data(random, self.shape(c_dims), self.result, 0)
            got, = compiled.call(library, name, [a, b, bias, residual],
                                 [(model.INPUTS[self.result], len(c_dims))])
            kind = "activation" if "b" in a_dims else "weight"
            left = self.operand(a, a_dims, "m", "gradient" if self.a_is_gradient else "activation")
            right = self.operand(b, b_dims, "n", kind).swapaxes(-1, -2)
            exact = left @ right
            k = self.sizes["k"]
            # Sum, factors, and factors that are subnormal.
            bound = (k + 8) * 2.0**-24 * (abs(left) @ abs(right)) + (k + 1) * 2.0**-116
            bound = np.where(np.isfinite(exact), bound, 0)
            limits = []
            for value in (exact - bound, exact + bound):
                value = value.astype(np.float32).astype(got.dtype)
                if self.bias:
                    value = self.add(value, bias)
                if self.residual:
                    value = self.add(value, residual)
                limits.append(value.astype(np.float32))
            wide = got.astype(np.float32)
            right_nan = np.isnan(wide) & np.isnan(limits[0])
            wrong = np.argwhere(~(right_nan | ((limits[0] <= wide) & (wide <= limits[1]))))
            if wrong.size or got.shape != exact.shape:
                at = tuple(wrong[0]) if wrong.size else ()
                return (f"data {wild}: {len(wrong)} of {got.size} wrong, first at {at}: "
                        f"{wide[at]!r}, expected {limits[0][at]!r} to {limits[1][at]!r}")
        return ""

    @staticmethod
    def add(x, y):
        return (x.astype(np.float32) + y.astype(np.float32)).astype(x.dtype)


def matmul_cases():
    """Every recipe with every variant, and the input types in turn."""
    even = {"b": 2, "m": 32, "n": 48, "k": 256}
    padded = {"b": 3, "m": 5, "n": 130, "k": 250}
    skinny = {"b": 1, "m": 1, "n": 17, "k": 384}
    variants = [
        {"spelling": "mk,kn->mn", "sizes": even, "bias": True},
        {"spelling": "mk,nk->mn", "sizes": padded, "bias": True, "residual": True},
        {"spelling": "km,kn->mn", "sizes": skinny, "residual": True},
        {"spelling": "mk,kn->mn", "sizes": padded, "dynamic": "mk", "bias": True},
        {"spelling": "mk,nk->mn", "sizes": even, "dynamic": "nm", "a_is_gradient": True},
        {"spelling": "bmk,bkn->bmn", "sizes": padded, "residual": True},
        {"spelling": "bmk,bnk->bmn", "sizes": even, "dynamic": "bmnk"},
    ]
    number = 0
    for recipe in RECIPES:
        for variant in variants:
            if "x_dim=2" in recipe and "b" in variant["spelling"]:
                continue  # two activations with 2-D blocks stay as they are
            source = list(model.INPUTS)[number % 3]
            result = source if number % 2 else "f32"
            yield Matmul(recipe=recipe, source=source, result=result, **variant)
            number += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")

    cases = {f"f{i}": case for i, case in enumerate([*quantize_cases(), *matmul_cases()])}
    module = "".join(case.function(name) for name, case in cases.items())
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(module, PASSES, args, directory, [args.runtime], "-O1")
        random = np.random.default_rng(args.seed)
        for name, case in cases.items():
            text = case.check(library, name, random)
            if text:
                print(f"{case}: {text}")
                failures += 1
    print(f"{len(cases) - failures} of {len(cases)} right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
