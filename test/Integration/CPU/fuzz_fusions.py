# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# RUN: env OMP_NUM_THREADS=5 %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so --seed=1000 --programs=20
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Random casts, reductions and arithmetic of tensors, formed into fusions, give the
bits that the program gives without: whether they are taken apart again (forming moves
operations, and names what stands together, but computes nothing else), or computed by
tiles, which are small here so that there are many, in several threads.

To look for more: --programs=2000 --seed=100000.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
import lowerings  # noqa: E402

DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
BYTES = ("f8E4M3FN", "f8E5M2", "f8E8M0FNU")
EXTENTS = [1, 2, 3, 8, 16, 17, 32, 64, 77, 128, 130, 160]
BATCH = 30
INDICES = {"i32": np.int32, "i64": np.int64}
TABLE = 9  # Rows of what is read by an index.


class Value:
    """A tensor: of the domain's dimensions (or some of them) in an order, or blocks."""

    def __init__(self, name, dims, shape, element):
        self.name, self.dims, self.shape, self.element = name, dims, shape, element

    @property
    def type(self):
        return f"tensor<{'x'.join([*self.shape, self.element])}>"


class Program:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.name = f"p{seed}"
        rank = self.choice([1, 2, 2, 2, 2, 3])
        self.sizes = [int(self.choice(EXTENTS if rank < 3 else EXTENTS[:8])) for _ in range(rank)]
        if rank == 2 and self.random.random() < 0.3:
            self.sizes[1] = self.sizes[0]
        self.dynamic = self.random.random() < 0.3
        self.domain = ["?" if self.dynamic and self.random.random() < 0.6 else str(size)
                       for size in self.sizes]
        self.whole = tuple(range(rank))
        self.arguments, self.lines, self.values, self.outs = [], [], [], []
        for _ in range(int(self.random.integers(1, 4))):
            self.argument(self.whole, self.choice(list(DTYPES)))
        if rank > 1:
            self.argument(self.whole[-1:], self.choice(list(DTYPES)))
        steps = [self.elementwise] * 4 + [self.cast] * 4 + [self.amax] * 2 + [
            self.row_reduction, self.row_function, self.dequantize, self.transpose, self.gather]
        for _ in range(int(self.random.integers(3, 10))):
            self.choice(steps)()
        self.results = [v for v in self.outs if self.random.random() < 0.6] or self.outs[-1:]
        if not self.results:
            self.cast()
            self.results = self.outs[-1:]

    # Pieces.

    def choice(self, items):
        return items[int(self.random.integers(len(items)))]

    def argument(self, dims, element):
        value = Value(f"%arg{len(self.arguments)}", dims, [self.domain[d] for d in dims], element)
        self.arguments.append(value)
        self.values.append(value)

    def line(self, text):
        self.lines.append(f"  {text}")

    def fresh(self, prefix="v"):
        return f"%{prefix}{len(self.lines)}"

    def make(self, dims, element, shape=None):
        value = Value(self.fresh(), dims, shape or [self.domain[d] for d in dims], element)
        self.outs.append(value)
        return value

    def full(self, elements=tuple(DTYPES)):
        """Recent ones more often, so that there are chains."""
        found = [v for v in self.values if v.dims == self.whole and v.element in elements]
        if not found:
            return None
        return found[-1] if self.random.random() < 0.5 else self.choice(found)

    def empty(self, value):
        sizes = ", ".join(f"%size{d}" for d, s in zip(value.dims, value.shape) if s == "?")
        name = self.fresh("e")
        self.line(f"{name} = tensor.empty({sizes}) : {value.type}")
        return name

    def map(self, dims):
        loops = ", ".join(f"d{d}" for d in self.whole)
        return f"affine_map<({loops}) -> ({', '.join(f'd{d}' for d in dims)})>"

    def generic(self, out, operands, body, init=None, reduces=False):
        init = init or self.empty(out)
        maps = ", ".join(self.map(dims) for _, dims in operands) + f", {self.map(out.dims)}"
        iterators = ", ".join('"reduction"' if reduces and d not in out.dims else '"parallel"'
                              for d in self.whole)
        ins = ", ".join(v.name for v, _ in operands)
        types = ", ".join(v.type for v, _ in operands)
        arguments = ", ".join(f"%a{i}: {v.element}" for i, (v, _) in enumerate(operands))
        # Names follow from the number of lines.
        out.name = self.fresh()
        self.line(f"{out.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
                  f"[{iterators}]}} ins({ins} : {types}) outs({init} : {out.type}) {{\n"
                  f"  ^bb0({arguments}, %o: {out.element}):\n{body}\n  }} -> {out.type}")
        self.values.append(out)

    def expression(self, operands, element):
        """A body on f32; the names of values are local to it."""
        lines, known = [], []
        for i, (value, _) in enumerate(operands):
            name = f"%a{i}"
            if value.element != "f32":
                lines.append(f"%w{i} = arith.extf %a{i} : {value.element} to f32")
                name = f"%w{i}"
            known.append(name)
        known += ["%scalar", "%half"]
        for i in range(int(self.random.integers(1, 6))):
            a = known[-3] if i == 0 else known[-1]
            b = self.choice(known)
            operation = self.choice(["addf", "mulf", "subf", "maximumf", "minnumf", "divf",
                                     "negf", "absf", "sqrt", "select", "round"])
            if operation in ("negf",):
                lines.append(f"%x{i} = arith.negf {a} : f32")
            elif operation in ("absf", "sqrt"):
                lines.append(f"%x{i} = math.{operation} {a} : f32")
            elif operation == "select":
                lines.append(f"%g{i} = arith.cmpf ogt, {a}, {b} : f32")
                lines.append(f"%x{i} = arith.select %g{i}, {a}, {b} : f32")
            elif operation == "round":
                lines.append(f"%r{i} = arith.truncf {a} : f32 to bf16")
                lines.append(f"%x{i} = arith.extf %r{i} : bf16 to f32")
            else:
                lines.append(f"%x{i} = arith.{operation} {a}, {b} : f32")
            known.append(f"%x{i}")
        last = known[-1]
        if element != "f32":
            lines.append(f"%y = arith.truncf {last} : f32 to {element}")
            last = "%y"
        lines.append(f"linalg.yield {last} : {element}")
        return "\n".join(f"    {line}" for line in lines)

    # Steps.

    def elementwise(self):
        operands = [(self.full(), self.whole)]
        for value in self.values:
            if self.random.random() < 0.3:
                operands.append((value, value.dims))
        square = len(self.whole) == 2 and self.domain[0] == self.domain[1] != "?"
        if square and self.random.random() < 0.3:
            operands.append((self.full(), (1, 0)))
        element = self.choice(["f32", "bf16", "bf16", "f16"])
        dims = (1, 0) if len(self.whole) == 2 and self.random.random() < 0.1 else self.whole
        self.generic(self.make(dims, element), operands[:5], self.expression(operands[:5], element))

    def row_reduction(self):
        if len(self.whole) == 1:
            return
        source = self.full()
        out = self.make(self.whole[:-1], "f32")
        empty = self.empty(out)
        init = self.fresh("z")
        self.line(f"{init} = linalg.fill ins(%half : f32) outs({empty} : {out.type}) -> {out.type}")
        widen = "" if source.element == "f32" else f"    %w = arith.extf %a0 : {source.element} to f32\n"
        wide = "%w" if widen else "%a0"
        combine = self.choice(["addf", "maximumf", "maxnumf"])
        body = (f"{widen}    %s = arith.mulf {wide}, {wide} : f32\n"
                f"    %t = arith.{combine} {self.choice(['%o, %s', '%s, %o'])} : f32\n"
                f"    linalg.yield %t : f32")
        self.generic(out, [(source, self.whole)], body, init, reduces=True)

    def row_function(self):
        """A function of a value for each row, alone."""
        rows = [v for v in self.values if v.dims == self.whole[:-1] and v.element == "f32"]
        if not rows or len(self.whole) == 1:
            return
        row = self.choice(rows)
        out = self.make(row.dims, "f32")
        empty = self.empty(out)
        out.name = self.fresh()
        loops = ", ".join(f"d{d}" for d in row.dims)
        identity = f"affine_map<({loops}) -> ({loops})>"
        iterators = ", ".join(['"parallel"'] * len(row.dims))
        self.line(f"{out.name} = linalg.generic {{indexing_maps = [{identity}, {identity}], "
                  f"iterator_types = [{iterators}]}} ins({row.name} : {row.type}) "
                  f"outs({empty} : {out.type}) {{\n  ^bb0(%a: f32, %o: f32):\n"
                  f"    %s = math.sqrt %a : f32\n    %t = arith.addf %s, %half : f32\n"
                  f"    linalg.yield %t : f32\n  }} -> {out.type}")
        self.values.append(out)

    def block(self):
        rank = len(self.whole)
        kinds = [["*"] * rank, ["1"] * (rank - 1) + ["*"], ["1"] * (rank - 1) + ["32"],
                 ["1"] * (rank - 1) + ["128"]]
        if rank > 1:
            kinds += [["1"] * (rank - 2) + pair for pair in
                      (["128", "1"], ["128", "128"], ["16", "16"], ["*", "1"], ["32", "1"])]
        return self.choice(kinds)

    def grid(self, block):
        return [size if b == "1" else "1" if b == "*" else
                "?" if size == "?" else str(-(-int(size) // int(b)))
                for size, b in zip(self.domain, block)]

    def amax(self):
        source, block = self.full(), self.block()
        shape = self.grid(block)
        out = self.make(None, "f32", shape)
        flag = self.choice(["", " propagate_nan"])
        self.line(f"{out.name} = fp8.amax {source.name} block = [{', '.join(block)}]{flag} : {source.type}")
        return source, block, out

    def cast(self):
        """Scaled by the amax of each block, or of the whole as it was given."""
        source, block, amax = self.amax()
        factor = self.choice(["f32", "f32", "f8E8M0FNU"])
        code = self.choice(["f8E4M3FN", "f8E5M2"])
        grid = f"tensor<{'x'.join([*amax.shape, factor])}>"
        s = self.fresh("s")
        rule = self.choice(["", " rule(#fp8.scale_rule<pow2 = true>)"]) if factor == "f32" else ""
        self.line(f"{s}, {s}i = fp8.compute_scale {amax.name} format = {code} scale_type = {factor}{rule} "
                  f": {amax.type}")
        scaled = f"<{'x'.join([*self.domain, code])}, block = [{', '.join(block)}], scale = {factor}>"
        q = self.fresh("q")
        self.line(f"{q} = fp8.quantize {source.name} scale({s}, {s}i : {amax.type}, {grid}) : "
                  f"{source.type} -> {scaled}")
        self.disassemble(q, scaled, self.domain, amax.shape, code, factor)
        if len(self.whole) > 1 and self.random.random() < 0.5:
            order = [*self.whole[:-2], self.whole[-1], self.whole[-2]]
            t = self.fresh("t")
            self.line(f"{t} = fp8.transpose {q} permutation = {order} : {scaled}")
            turned = [self.domain[d] for d in order]
            blocks = ", ".join(block[d] for d in order)
            text = f"<{'x'.join([*turned, code])}, block = [{blocks}], scale = {factor}>"
            self.disassemble(t, text, turned, [amax.shape[d] for d in order], code, factor)
        self.last = (q, scaled)

    def disassemble(self, source, scaled, shape, grid, code, factor):
        p = self.fresh("p")
        self.line(f"{p}, {p}f = fp8.disassemble {source} : {scaled}")
        self.outs += [Value(p, None, shape, code), Value(f"{p}f", None, grid, factor)]

    def dequantize(self):
        """By who reads the numbers, as often as they are read in different fusions."""
        if not hasattr(self, "last"):
            return
        out = self.make(self.whole, self.choice(list(DTYPES)))
        out.name = self.fresh()
        self.line(f"{out.name} = fp8.dequantize {self.last[0]} : {self.last[1]} -> {out.type}")
        self.values.append(out)

    def transpose(self):
        """A transpose of numbers: nor that, unless it comes between."""
        if len(self.whole) != 2:
            return
        source = self.full()
        out = self.make((1, 0), source.element)
        empty = self.empty(out)
        out.name = self.fresh()
        self.line(f"{out.name} = linalg.transpose ins({source.name} : {source.type}) "
                  f"outs({empty} : {out.type}) permutation = [1, 0]")
        if self.domain[0] == self.domain[1] != "?":
            self.values.append(Value(out.name, self.whole, out.shape, out.element))

    def gather(self):
        """A row of a table for each of the domain's, and what is added to it."""
        if len(self.whole) == 1 or self.domain[-1] == "?":
            return
        indices, table = (f"%arg{len(self.arguments) + i}" for i in range(2))
        index, element = self.choice(["i32", "i64"]), self.choice(["f32", "bf16"])
        self.arguments.append(Value(indices, self.whole[:-1], self.domain[:-1], index))
        self.arguments.append(Value(table, (None, self.whole[-1]), [str(TABLE), self.domain[-1]], element))
        source = self.full([element])
        operands = [(self.arguments[-2], self.whole[:-1])] + ([(source, self.whole)] if source else [])
        body = [f"%p = arith.index_cast %a0 : {index} to index",
                f"%c = linalg.index {self.whole[-1]} : index",
                f"%x = tensor.extract {table}[%p, %c] : {self.arguments[-1].type}"]
        if source:
            body += [f"%y = arith.addf %x, %a1 : {element}", f"linalg.yield %y : {element}"]
        else:
            body.append(f"linalg.yield %x : {element}")
        self.generic(self.make(self.whole, element), operands, "\n".join("    " + line for line in body))

    # As text, and called.

    @property
    def text(self):
        arguments = ", ".join([f"{a.name}: {a.type}" for a in self.arguments] + ["%scalar: f32"])
        sizes = "".join(f"  %c{d} = arith.constant {d} : index\n"
                        f"  %size{d} = tensor.dim %arg0, %c{d} : {self.arguments[0].type}\n"
                        for d in self.whole)
        types = ", ".join(r.type for r in self.results)
        values = ", ".join(r.name for r in self.results)
        lines = "\n".join(self.lines)
        return (f"func.func @{self.name}({arguments}) -> ({types}) attributes {{llvm.emit_c_interface}} {{\n"
                f"  %half = arith.constant 0.5 : f32\n{sizes}{lines}\n  return {values} : {types}\n}}\n")

    def inputs(self):
        arrays = []
        for a in self.arguments:
            shape = [TABLE if d is None else self.sizes[d] for d in a.dims]
            if a.element in INDICES:
                arrays.append(self.random.integers(0, TABLE, size=shape).astype(INDICES[a.element]))
                continue
            x = self.random.normal(size=shape)
            kind = self.random.random()
            if kind < 0.3:
                x = x * np.exp2(self.random.integers(-40, 40, size=shape))
            elif kind < 0.5:
                x = np.where(self.random.random(shape) < 0.1, self.choice([np.nan, np.inf, -0.0]), x)
            elif kind < 0.6:
                x = np.zeros(shape)
            arrays.append(x.astype(np.float32).astype(DTYPES[a.element]))
        return arrays

    def call(self, library, inputs):
        results = [(np.uint8 if r.element in BYTES else DTYPES[r.element], len(r.shape))
                   for r in self.results]
        # The program may overwrite its arguments.
        copies = [x.copy() for x in inputs]
        return compiled.call(library, self.name, [*copies, compiled.ctypes.c_float(1.25)], results)


def same(a, b):
    """The same bits, or both NaN."""
    if a.shape != b.shape:
        return False
    if a.dtype == np.uint8:
        return np.array_equal(a, b)
    bits = f"u{a.itemsize}"
    equal = a.view(bits) == b.view(bits)
    return bool((equal | (np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32)))).all())


def count_fusions(text, args):
    formed = subprocess.run([args.fp8_opt, lowerings.FUSION, "--fp8-form-fusions"], input=text, text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    return formed.count("fp8.fusion(")


def check(programs, args):
    text = lowerings.fuse("".join(program.text for program in programs), args.fp8_opt)
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        libraries = {}
        for name, pipeline in lowerings.get_pipelines(args.fp8_opt, elements=64).items():
            folder = Path(directory, name)
            folder.mkdir()
            libraries[name] = compiled.build(text, [f"--pass-pipeline={pipeline}"], args, folder,
                                             [args.runtime], "-O1")
        for program in programs:
            inputs = program.inputs()
            plain, *others = (program.call(library, inputs) for library in libraries.values())
            for name, results in zip(list(libraries)[1:], others):
                for i, (a, b) in enumerate(zip(plain, results)):
                    if not same(a, b):
                        print(f"{program.name}: {name}: result {i} {program.results[i].name} differs",
                              flush=True)
                        failures += 1
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program")
    parser.add_argument("--print", action="store_true", help="print the first program, and stop")
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")
    programs = [Program(args.seed + i) for i in range(args.programs)]
    if args.print:
        print(programs[0].text)
        return 0
    failures, fusions = 0, 0
    for i in range(0, len(programs), BATCH):
        batch = programs[i : i + BATCH]
        fusions += count_fusions("".join(program.text for program in batch), args)
        failures += check(batch, args)
    # A pass that forms nothing would be right always.
    if 2 * fusions < 3 * len(programs):
        print(f"expected three fusions in two programs, but got {fusions} in {len(programs)}")
        failures += 1
    print(f"{len(programs)} programs, {fusions} fusions, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
