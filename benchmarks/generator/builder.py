"""A function as it grows: its arguments, its lines, and which values it has."""

import random

from generator.values import BITS, Argument, Dim, Value, count, spell

EXTENTS = [0, 1, 2, 3, 7, 16, 17, 129]
# Zero is one of them, but a program of nothing else shows little.
WEIGHTS = [1, 4, 2, 3, 3, 4, 4, 3]
ELEMENTS = 20000  # A tensor has no more.


class Builder:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.arguments, self.lines, self.values, self.scaled, self.results = [], [], [], [], []
        self.dims, self.number, self.contractions = [], 0, 0
        self.has_open = self.rng.random() < 0.4
        # Results that are near the CPU's alone: by which share of each number, and of the largest.
        self.near = {}

    # ===------------------------------------------------------------------===
    # Choices
    # ===------------------------------------------------------------------===

    def choice(self, items):
        return items[self.rng.randrange(len(items))]

    def chance(self, share):
        return self.rng.random() < share

    def shuffled(self, items):
        return self.rng.sample(items, len(items))

    def make_dim(self, size=None, is_open=None):
        if size is None:
            size = self.rng.choices(EXTENTS, WEIGHTS)[0]
        if is_open is None:
            is_open = self.has_open and self.chance(0.6)
        dim = Dim(f"d{len(self.dims)}", size, is_open)
        self.dims.append(dim)
        return dim

    def pick_dims(self, rank, others=(), limit=ELEMENTS):
        """Distinct dimensions that are not among `others`, of few elements."""
        dims = self.shuffled([dim for dim in self.dims[:6] if dim not in others])[:rank]
        while len(dims) < rank:
            dims.append(self.make_dim())
        while count(dims) > limit:
            dims.pop()
        return dims

    def pick(self, predicate=lambda value: True):
        """A value, recent ones more often, so that there are chains."""
        found = [value for value in self.values if predicate(value)]
        if not found:
            return None
        return found[-1] if self.chance(0.5) else self.choice(found)

    # ===------------------------------------------------------------------===
    # Text
    # ===------------------------------------------------------------------===

    def line(self, text):
        self.lines.append(text)

    def fresh(self, prefix="v"):
        self.number += 1
        return f"%{prefix}{self.number}"

    def argue(self, shape, element, type_, kind):
        name = f"%arg{len(self.arguments)}"
        self.arguments.append(Argument(name, shape, element, type_, kind))
        return name

    def argument(self, dims, element=None, kind=None):
        """A new tensor of numbers."""
        element = element or self.choice(["f32", "bf16", "bf16", "f16"])
        kind = kind or self.choice(["grid"] * 3 + ["normal"] * 4 + ["wide", "special", "zeros"])
        name = self.argue([dim.size for dim in dims], element, spell(dims, element), kind)
        value = Value(name, list(dims), element, (0, 2) if kind == "grid" else None)
        if kind != "grid" and self.chance(0.15):
            self.arguments[-1].attributes.append(self.choice(["fp8.weight", "fp8.grad"]))
        self.values.append(value)
        return value

    def new(self, dims, element, grid=None, prefix="v"):
        """A value that the next line gives."""
        if grid and grid[1] - grid[0] > BITS[element]:
            grid = None
        return Value(self.fresh(prefix), list(dims), element, grid)

    def keep(self, value):
        self.values.append(value)
        return value

    def keep_product(self, value, dims):
        """A product's result, of which `dims` are innermost in memory somewhere. Where rows turn
        out to be no multiples of 16 bytes, loops do at run time what a kernel was chosen for, and
        add up in another order (docs/Kernels.md). Then nothing else is made of it."""
        if not self.is_loose(dims):
            return self.keep(value)
        self.results.append(value)
        self.near[value.name] = 2.0**-7, 2.0**-7
        return value

    def is_loose(self, dims):
        return any(dim.is_open and dim.size % 16 for dim in dims)

    def size(self, dim):
        """An extent, as an operand; that of an open one is `%size_...` (program.py)."""
        return f"%size_{dim.name}"

    def empty(self, dims, element):
        name = self.fresh("e")
        sizes = ", ".join(self.size(dim) for dim in dims if dim.is_open)
        self.line(f"{name} = tensor.empty({sizes}) : {spell(dims, element)}")
        return name

    def filled(self, dims, element, constant="zero"):
        kind, empty, name = spell(dims, element), self.empty(dims, element), self.fresh("z")
        self.line(f"{name} = linalg.fill ins(%{constant}_{element} : {element}) "
                  f"outs({empty} : {kind}) -> {kind}")
        return name

    def generic(self, operands, dims, out, body, init=None, reduced=(), domain=None):
        """A linalg.generic over `dims` and `reduced`, of `operands`, values whose dimensions are
        among these, or are 1 and stay so."""
        loops = domain or [*dims, *reduced]
        names = {dim: f"i{i}" for i, dim in enumerate(loops)}
        maps = [f"affine_map<({', '.join(names.values())}) -> "
                f"({', '.join(names.get(dim, '0') for dim in value)})>"
                for value in [*(operand.dims for operand in operands), dims]]
        iterators = ", ".join('"reduction"' if dim in reduced else '"parallel"' for dim in loops)
        init = init or self.empty(dims, out.element)
        arguments = ", ".join(f"%a{i}: {value.element}" for i, value in enumerate(operands))
        ins = (f"ins({', '.join(value.name for value in operands)} : "
               f"{', '.join(value.type for value in operands)}) " if operands else "")
        self.line(f"{out.name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
                  f"iterator_types = [{iterators}]}} {ins}outs({init} : {out.type}) {{\n"
                  f"  ^bb0({arguments}{', ' if operands else ''}%o: {out.element}):\n{body}\n  }}"
                  f" -> {out.type}")
        return out

    # ===------------------------------------------------------------------===
    # Bodies
    # ===------------------------------------------------------------------===

    def widen(self, operands):
        """Lines that make f32 of the operands of a body, and what they are called then."""
        lines, names = [], []
        for i, value in enumerate(operands):
            names.append(f"%a{i}")
            if value.element != "f32":
                lines.append(f"%w{i} = arith.extf %a{i} : {value.element} to f32")
                names[-1] = f"%w{i}"
        return lines, names

    def expression(self, operands, element, steps=None):
        """Lines of a body in f32, the last value rounded to `element`, its name and its grid.

        All functions are those that a GPU has exactly. `maxnumf` is of magnitudes, since of zeros
        with two signs it may take either; signs of NaNs, which copysign and bitcasts would show,
        nobody promises."""
        lines, names = self.widen(operands)
        known = [(name, value.grid) for name, value in zip(names, operands)]
        known += [("%half_f32", (-1, -1)), ("%one_f32", (0, 0))]
        current = known[0]
        for i in range(steps or self.rng.randrange(1, 6)):
            (a, grid_a), (b, grid_b) = current, self.choice(known)
            grids = grid_a and grid_b
            kind = self.choice(["addf", "addf", "mulf", "mulf", "subf", "maximumf", "minimumf", "divf",
                                "negf", "absf", "sqrt", "select", "round", "maxnumf", "floor", "fma"])
            name, grid = f"%x{i}", None
            low = high = 0
            if grids:
                low, high = min(grid_a[0], grid_b[0]), max(grid_a[1], grid_b[1])
            if kind in ("addf", "subf"):
                lines.append(f"{name} = arith.{kind} {a}, {b} : f32")
                grid = grids and (low, high + 1)
            elif kind == "mulf":
                lines.append(f"{name} = arith.mulf {a}, {b} : f32")
                grid = grids and (grid_a[0] + grid_b[0], grid_a[1] + grid_b[1])
            elif kind in ("maximumf", "minimumf"):
                lines.append(f"{name} = arith.{kind} {a}, {b} : f32")
                grid = grids and (low, high)
            elif kind == "divf":
                lines.append(f"{name} = arith.divf {a}, {b} : f32")
            elif kind == "negf":
                lines.append(f"{name} = arith.negf {a} : f32")
                grid = grid_a
            elif kind in ("absf", "sqrt", "floor"):
                lines.append(f"{name} = math.{kind} {a} : f32")
                grid = grid_a if kind == "absf" else None
            elif kind == "select":
                lines += [f"%g{i} = arith.cmpf {self.choice(['ogt', 'ult', 'oeq', 'une'])}, {a}, {b} : f32",
                          f"{name} = arith.select %g{i}, {a}, {b} : f32"]
                grid = grids and (low, high)
            elif kind == "round":
                to = self.choice(["bf16", "f16"])
                lines += [f"%r{i} = arith.truncf {a} : f32 to {to}",
                          f"{name} = arith.extf %r{i} : {to} to f32"]
                grid = grid_a if grid_a and grid_a[1] - grid_a[0] <= BITS[to] - 1 else None
            elif kind == "maxnumf":
                lines += [f"%m{i} = math.absf {a} : f32", f"%n{i} = math.absf {b} : f32",
                          f"{name} = arith.maxnumf %m{i}, %n{i} : f32"]
                grid = grids and (low, high)
            else:
                c = self.choice(known)[0]
                lines.append(f"{name} = math.fma {a}, {b}, {c} : f32")
            if grid and grid[1] - grid[0] >= BITS["f32"]:
                grid = None
            current = (name, grid)
            known.append(current)
        name, grid = current
        if element != "f32":
            lines.append(f"%y = arith.truncf {name} : f32 to {element}")
            name = "%y"
            if grid and grid[1] - grid[0] >= BITS[element]:
                grid = None
        return lines, name, grid


def indent(lines):
    return "\n".join(f"    {line}" for line in lines)
