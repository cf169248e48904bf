# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Weights that are constants, quantized while compiling and in every call.

Every program is compiled both ways and must give the same bytes; codes and
factors are those of Inputs/model.py, too. What is compiled to an object holds
the codes of a weight once, and the weight not at all.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
sys.path.insert(0, str(Path(__file__).parent))
import compiled  # noqa: E402
import model  # noqa: E402
import recipes  # noqa: E402
from recipes import tensor  # noqa: E402

PASSES = "--fp8-pipeline=target=cpu to=host require evaluate-constants="
SHAPES = [(64, 256), (130, 250), (17, 384), (1, 128)]
MAPS = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
"""


class Constants:
    """Constants of a module: dense, or the data of a resource."""

    def __init__(self):
        self.resources = []

    def add(self, x, source, as_resource):
        of_type = tensor(x.shape, source)
        if x.size == 0:
            return f"arith.constant dense<> : {of_type}"
        if not as_resource:
            # The bytes of one element are a splat.
            data, first = x.tobytes(), x[:1, :1].tobytes()
            data = first if data == first * x.size else data
            return f'arith.constant dense<"0x{data.hex()}"> : {of_type}'
        name = f"w{len(self.resources)}"
        # Aligned for the type, and not for vectors.
        self.resources.append(f'{name}: "0x{x.itemsize:02x}000000{x.tobytes().hex()}"')
        return f"arith.constant dense_resource<{name}> : {of_type}"

    def section(self):
        return "{-# dialect_resources: { builtin: { " + ", ".join(self.resources) + " } } #-}\n"


@dataclass
class Parts:
    """Codes and factors of a constant."""

    recipe: str
    source: str
    weight: np.ndarray

    @property
    def quantize(self):
        return recipes.Quantize(self.recipe, self.source, "weight", self.weight.shape, [])

    def function(self, name, constant):
        text = self.quantize.function(name)
        argument = f"%x: {tensor(self.weight.shape, self.source)}"
        return text.replace(argument, "").replace("{\n", f"{{\n  %x = {constant}\n", 1)

    def call(self, library, name, random):
        return compiled.call(library, name, [], self.quantize.part_dtypes)

    def check(self, got):
        for part, g, e in zip(("codes", "scale_inv", "tensor_scale_inv"), got,
                              self.quantize.scaled.store(self.weight)):
            if g.shape != e.shape or not model.same_bits(g, e).all():
                return f"{part} are not the model's"
        return ""


@dataclass
class Matmuls:
    """y = x @ w.T, as in a forward pass, and y @ w, as in a backward one."""

    recipe: str
    source: str
    weight: np.ndarray
    m: int = 5

    def function(self, name, constant):
        n, k = self.weight.shape
        x, w, y = (tensor(d, self.source) for d in ((self.m, k), (n, k), (self.m, n)))
        return f"""
func.func @{name}(%x: {x}) -> ({y}, {x})
    attributes {{llvm.emit_c_interface, fp8.recipe = {model.attribute(self.recipe)}}} {{
  %w = {constant}
  %zero = arith.constant 0.0 : {self.source}
  %e0 = tensor.empty() : {y}
  %z0 = linalg.fill ins(%zero : {self.source}) outs(%e0 : {y}) -> {y}
  %y = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %w : {x}, {w}) outs(%z0 : {y}) -> {y}
  %e1 = tensor.empty() : {x}
  %z1 = linalg.fill ins(%zero : {self.source}) outs(%e1 : {x}) -> {x}
  %dx = linalg.matmul {{fp8.recipe = {self.backward}}}
      ins(%y, %w : {y}, {w}) outs(%z1 : {x}) -> {x}
  return %y, %dx : {y}, {x}
}}
"""

    @property
    def backward(self):
        # What K of the backward product allows: `require` is on.
        n = self.weight.shape[0]
        fits = -(-n // 16) * 16 <= 1.25 * n and "block" not in self.recipe
        return model.attribute(self.recipe) if fits else "#fp8.none"

    def call(self, library, name, random):
        x = recipes.make_data(random, (self.m, self.weight.shape[1]), self.source, 0)
        return compiled.call(library, name, [x], [(model.INPUTS[self.source], 2)] * 2)

    def check(self, got):
        return ""


def make_cases(random):
    sources = list(model.INPUTS)
    for number, recipe in enumerate(recipes.RECIPES):
        for kind, wild in ((Parts, 1), (Parts, 2), (Matmuls, number % 3)):
            source = sources[(number + wild) % 3]
            shape = SHAPES[(number + wild) % len(SHAPES)]
            yield kind(recipe, source, recipes.make_data(random, shape, source, wild))
    for recipe in ("current", "mxfp8", "nvfp4"):
        splat = np.full((32, 128), 1.7, model.INPUTS["bf16"])
        yield Parts(recipe, "bf16", splat)
        yield Matmuls(recipe, "bf16", splat)
        yield Parts(recipe, "f32", np.zeros((0, 128), np.float32))


def compare(args, cases, random):
    constants, module = Constants(), MAPS
    for number, (name, case) in enumerate(cases.items()):
        module += case.function(name, constants.add(case.weight, case.source, number % 2 == 1))
    module += constants.section()
    results = []
    for evaluate in ("true", "false"):
        with tempfile.TemporaryDirectory() as directory:
            library = compiled.build(module, [PASSES + evaluate], args, directory,
                                     [args.runtime], "-O1")
            again = np.random.default_rng(args.seed)
            results.append({n: c.call(library, n, again) for n, c in cases.items()})
    failures = 0
    for name, case in cases.items():
        text = case.check(results[0][name])
        for g, e in zip(results[0][name], results[1][name]):
            if g.shape != e.shape or g.tobytes() != e.tobytes():
                text = "other bytes than in a call"
        if text:
            print(f"{type(case).__name__} {case.recipe} {case.source} {case.weight.shape}: {text}")
            failures += 1
    return failures


def check_object(args, recipe, random):
    """Looks for a row of the weight, and of its codes, in the object."""
    weight = recipes.make_data(random, (256, 256), "bf16", 0)
    case, constants = Matmuls(recipe, "bf16", weight), Constants()
    text = MAPS + case.function("f", constants.add(weight, "bf16", True)) + constants.section()
    with tempfile.TemporaryDirectory() as directory:
        source, binary = Path(directory, "f.mlir"), Path(directory, "f.o")
        source.write_text(text)
        found = []
        for flags in ([], ["--no-evaluate-constants"]):
            subprocess.run(["fp8-compile", source, "--emit=obj", "-o", binary, *flags], check=True)
            data = binary.read_bytes()
            codes = model.describe(recipe, "bf16", "weight", False).store(weight)[0]
            found.append((data.count(weight[7].tobytes()), data.count(codes[7].tobytes())))
    if found != [(0, 1), (1, 0)]:
        print(f"object under {recipe}: expected 0 weights and 1 payload, and without evaluation 1 "
              f"and 0, but got {found}")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")
    random = np.random.default_rng(args.seed)
    cases = {f"f{i}": case for i, case in enumerate(make_cases(random))}
    failures = compare(args, cases, random)
    for recipe in ("current", "nvfp4,weight_2d=true"):
        failures += check_object(args, recipe, random)
    print(f"{len(cases) + 2 - failures} of {len(cases) + 2} right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
