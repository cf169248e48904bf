"""Random small programs of linalg on tensors, with their meaning in numpy.

A program is a list of steps; each has its MLIR and a function of arrays. Two
meanings run side by side: the values, rounded to the element type after every
step as the program says, and their magnitudes (every operation on absolute
values), which bound what another order of sums may change.
"""

from dataclasses import dataclass

import model
import numpy as np

DTYPES = model.INPUTS
EXTENTS = [1, 2, 3, 5, 8, 16, 17, 32, 48, 64, 100, 128]


@dataclass
class Value:
    name: str
    dims: tuple  # names of dimensions
    element: str


@dataclass
class Contraction:
    """What a quantized contraction needs to know of its loops."""

    name: str
    a: str
    b: str
    c: str

    def groups(self, loops):
        batch = [s for s in loops if s in self.a and s in self.b and s in self.c]
        m = [s for s in loops if s in self.a and s not in self.b]
        n = [s for s in loops if s in self.b and s not in self.a]
        k = [s for s in loops if s not in self.c]
        return batch, m, n, k


class Program:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.seed = seed
        self.sizes, self.dynamic = {}, set()
        self.steps, self.text, self.arguments, self.values = [], [], [], []
        self.contractions = 0
        self.number = 0
        self.has_dynamic = self.random.random() < 0.4
        self.element = self.choice(["f32", "f32", "bf16", "f16"])
        for _ in range(5):
            self.new_dim(int(self.choice(EXTENTS)), self.has_dynamic and self.random.random() < 0.6)
        for _ in range(int(self.random.integers(2, 4))):
            self.argument(self.pick_dims(int(self.choice([2, 2, 2, 3]))))
        for _ in range(int(self.random.integers(3, 9))):
            self.grow()
        if self.contractions == 0:
            self.product()
        for dim in sorted(self.dynamic):
            if not any(dim in v.dims for v in self.arguments):
                self.argument((dim,))
        # Everything that nothing else uses: there is no dead code.
        used = {v.name for _, inputs, *_ in self.steps for v in inputs}
        made = [value for value, *_ in self.steps]
        self.results = [v for v in made if v.name not in used]
        self.results += [v for v in made if v.name in used and self.random.random() < 0.1]

    # Pieces.

    def choice(self, items):
        return items[int(self.random.integers(len(items)))]

    def new_dim(self, size, dynamic=False):
        dim = chr(ord("a") + len(self.sizes))
        self.sizes[dim] = size
        if dynamic:
            self.dynamic.add(dim)
        return dim

    def pick_dims(self, rank):
        """Distinct dimensions, not too many elements."""
        dims = tuple(self.random.permutation(list("abcde"))[:rank])
        while np.prod(self.shape(dims)) > 40000:
            dims = dims[1:]
        return dims

    def type_of(self, dims, element):
        shape = ["?" if d in self.dynamic else self.sizes[d] for d in dims]
        return f"tensor<{'x'.join(map(str, [*shape, element]))}>"

    def type(self, value):
        return self.type_of(value.dims, value.element)

    def shape(self, dims):
        return tuple(self.sizes[d] for d in dims)

    def argument(self, dims, element=None):
        value = Value(f"%arg{len(self.arguments)}", tuple(dims), element or self.element)
        self.arguments.append(value)
        self.values.append(value)
        return value

    def add(self, dims, element, inputs, line, function, magnitude=None, loc=""):
        """A step: `line` may use {out} and {type}; functions take arrays."""
        value = Value(f"%v{self.number}", tuple(dims), element)
        self.number += 1
        self.text.append(line.format(out=value.name, type=self.type(value)) + loc)
        self.steps.append((value, inputs, function, magnitude or function))
        self.values.append(value)
        return value

    def empty(self, dims, element):
        name = f"%e{self.number}_{len(self.text)}"
        sizes = ", ".join(f"%size_{d}" for d in dims if d in self.dynamic)
        self.text.append(f"{name} = tensor.empty({sizes}) : {self.type_of(dims, element)}")
        return name

    def filled(self, dims, element):
        kind = self.type_of(dims, element)
        empty = self.empty(dims, element)
        name = empty.replace("%e", "%z")
        self.text.append(f"{name} = linalg.fill ins(%zero_{element} : {element}) "
                         f"outs({empty} : {kind}) -> {kind}")
        return name

    def some(self, predicate=lambda value: True):
        found = [v for v in self.values if predicate(v)]
        # Recent values more often, so that there are chains.
        if len(found) > 1 and self.random.random() < 0.5:
            return found[-1]
        return self.choice(found) if found else None

    # Steps.

    def grow(self):
        step = self.choice([self.contract] * 4 + [self.elementwise] * 3 + [self.binary] * 2
                           + [self.transpose, self.cast, self.slice, self.pad, self.reduce,
                              self.broadcast, self.collapse, self.softmax, self.loop])
        step()

    def contract(self):
        a = self.some(lambda v: 1 <= len(v.dims) <= 3 and len(set(v.dims)) == len(v.dims))
        k = self.choice(a.dims)
        batch = [d for d in a.dims if d != k and len(a.dims) == 3 and self.random.random() < 0.5][:1]
        if len(a.dims) == 3 and self.random.random() < 0.2:
            ks = [d for d in a.dims if d not in batch][:2]
        else:
            ks = [k]
        b = None
        if self.random.random() < 0.4:
            b = self.some(lambda v: v is not a and v.element == a.element and len(v.dims) <= 3
                          and len(set(v.dims)) == len(v.dims)
                          and set(v.dims) & set(a.dims) >= set(ks + batch)
                          and not (set(v.dims) & set(a.dims)) - set(ks + batch))
        if b is None:
            ns = [d for d in self.pick_dims(int(self.choice([1, 1, 1, 2, 0]) if not batch else 1))
                  if d not in a.dims][: 1 if len(ks + batch) > 1 else 2]
            dims = list(self.random.permutation(batch + ns + ks))
            if np.prod(self.shape(dims)) > 40000:
                return
            b = self.argument(dims, a.element)
        ms = [d for d in a.dims if d not in ks + batch]
        ns = [d for d in b.dims if d not in ks + batch]
        c = batch + ms + ns
        if self.random.random() < 0.3:
            c = list(self.random.permutation(c))
        if np.prod(self.shape(c)) > 40000 or np.prod(self.shape(set(c + ks))) > 4e6:
            return
        element = self.choice([a.element, a.element, "f32"])
        init = self.some(lambda v: list(v.dims) == c and v.element == element and v is not a)
        if init is not None and self.random.random() < 0.5:
            init_name = init.name
        else:
            init, init_name = None, self.filled(c, element)
        self.emit_contract(a, b, c, element, init, init_name, ks)

    def product(self):
        """A plain matmul of two new arguments."""
        m, k, n = self.random.permutation(list("abcde"))[:3]
        a, b = self.argument((m, k)), self.argument((k, n))
        self.emit_contract(a, b, [m, n], "f32", None, self.filled([m, n], "f32"), [k])

    def emit_contract(self, a, b, c, element, init, init_name, ks):
        loops = sorted(set(c) | set(ks), key=(list(c) + list(ks)).index)
        if self.random.random() < 0.3:
            loops = list(self.random.permutation(loops))
        name = f"c{self.contractions}"
        self.contractions += 1
        out_type = self.type_of(c, element)
        operands = f"{a.name}, {b.name} : {self.type(a)}, {self.type(b)}"
        tail = f" ins({operands}) outs({init_name} : {out_type})"
        maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(d)})>"
                for d in (a.dims, b.dims, c)]
        named = self.named(a, b, c, ks)
        if named and self.random.random() < 0.6:
            line = f"{{out}} = linalg.{named}{tail} -> {{type}}"
            # The loops of the named operation, in its order.
            loops = [d for d in c] + [d for d in ks]
        elif self.random.random() < 0.5:
            line = f"{{out}} = linalg.contract indexing_maps = [{', '.join(maps)}]{tail} -> {{type}}"
        else:
            kinds = ", ".join('"parallel"' if d in c else '"reduction"' for d in loops)
            widen = (f"%xw = arith.extf %x : {a.element} to {element}\n"
                     f"    %yw = arith.extf %y : {a.element} to {element}\n    "
                     if element != a.element else "")
            x, y = ("%xw", "%yw") if widen else ("%x", "%y")
            add = "%s, %p" if self.random.random() < 0.5 else "%p, %s"
            line = (f"{{out}} = linalg.generic {{{{indexing_maps = [{', '.join(maps)}], "
                    f"iterator_types = [{kinds}]}}}}{tail} {{{{\n"
                    f"  ^bb0(%x: {a.element}, %y: {a.element}, %s: {element}):\n    {widen}"
                    f"%p = arith.mulf {x}, {y} : {element}\n"
                    f"    %t = arith.addf {add} : {element}\n"
                    f"    linalg.yield %t : {element}\n  }}}} -> {{type}}")
        what = Contraction(name, "".join(a.dims), "".join(b.dims), "".join(c))
        what.loops = "".join(loops)
        spec = f"{what.a},{what.b}->{what.c}"

        def product(run, x, y, *rest):
            x, y = run.operands(what, x, y)
            result = np.einsum(spec, x, y)
            return result + rest[0] if rest else result

        inputs = [a, b] + ([init] if init is not None else [])
        product.wants_run = True
        self.add(c, element, inputs, line, product, loc=f' loc("{{name}}.{name}")')

    def named(self, a, b, c, ks):
        """The named operation that this is; empty if it is none."""
        if len(ks) != 1:
            return ""
        k, = ks
        shape = (tuple(a.dims), tuple(b.dims), tuple(c))
        if len(c) == 2 and shape == ((c[0], k), (k, c[1]), tuple(c)):
            return "matmul"
        if len(c) == 3 and shape == ((c[0], c[1], k), (c[0], k, c[2]), tuple(c)):
            return "batch_matmul"
        if len(c) == 1 and shape == ((c[0], k), (k,), tuple(c)):
            return "matvec"
        if len(c) == 1 and shape == ((k,), (k, c[0]), tuple(c)):
            return "vecmat"
        return "dot" if not c and shape == ((k,), (k,), ()) else ""

    def generic(self, inputs, dims, element, body, function, magnitude=None, maps=None):
        """An elementwise generic; `body` computes %r."""
        maps = maps or [v.dims for v in inputs]
        order = ", ".join(dims)
        texts = [f"affine_map<({order}) -> ({', '.join(m)})>" for m in [*maps, dims]]
        iterators = ", ".join(['"parallel"'] * len(dims))
        args = ", ".join(f"%x{i}: {v.element}" for i, v in enumerate(inputs))
        init = self.empty(dims, element)
        line = (f"{{out}} = linalg.generic {{{{indexing_maps = [{', '.join(texts)}], "
                f"iterator_types = [{iterators}]}}}} ins({', '.join(v.name for v in inputs)} : "
                f"{', '.join(self.type(v) for v in inputs)}) outs({init} : {{type}}) {{{{\n"
                f"  ^bb0({args}, %o: {element}):\n    {body}\n"
                f"    linalg.yield %r : {element}\n  }}}} -> {{type}}")
        return self.add(dims, element, inputs, line, function, magnitude)

    def elementwise(self):
        x = self.some()
        e = x.element
        body, function, magnitude = self.choice([
            (f"%r = arith.maximumf %x0, %zero_{e} : {e}", lambda v: np.maximum(v, 0), np.abs),
            (f"%r = arith.negf %x0 : {e}", lambda v: -v, np.abs),
            (f"%r = arith.mulf %x0, %half_{e} : {e}", lambda v: v * 0.5, None),
            (f"%r = math.tanh %x0 : {e}", np.tanh, np.abs),
            (f"%r = math.absf %x0 : {e}", np.abs, None),
        ])
        self.generic([x], x.dims, e, body, function, magnitude)

    def binary(self):
        x = self.some()
        y = self.some(lambda v: v.element == x.element and set(v.dims) <= set(x.dims)
                      and len(set(v.dims)) == len(v.dims))
        if y is None or len(set(x.dims)) != len(x.dims):
            return
        op, function, magnitude = self.choice([
            ("addf", np.add, None), ("subf", np.subtract, np.add), ("mulf", np.multiply, None),
            ("maximumf", np.maximum, np.add)])
        if op == "mulf" and x.element == "f16":
            op, function, magnitude = "addf", np.add, None

        def aligned(f):
            def run(v, w):
                order = sorted(range(len(y.dims)), key=lambda i: x.dims.index(y.dims[i]))
                shape = [self.sizes[d] if d in y.dims else 1 for d in x.dims]
                return f(v, w.transpose(order).reshape(shape))
            return run

        self.generic([x, y], x.dims, x.element, f"%r = arith.{op} %x0, %x1 : {x.element}",
                     aligned(function), aligned(magnitude or function))

    def cast(self):
        x = self.some()
        if x.element == "f32":
            element = self.choice(["bf16", "f16"])
            body = f"%r = arith.truncf %x0 : f32 to {element}"
        else:
            element = "f32"
            body = f"%r = arith.extf %x0 : {x.element} to f32"
        self.generic([x], x.dims, element, body, lambda v: v)

    def transpose(self):
        x = self.some(lambda v: len(v.dims) > 1)
        if x is None:
            return
        order = [int(i) for i in self.random.permutation(len(x.dims))]
        dims = [x.dims[i] for i in order]
        init = self.empty(dims, x.element)
        self.add(dims, x.element, [x],
                 f"{{out}} = linalg.transpose ins({x.name} : {self.type(x)}) "
                 f"outs({init} : {{type}}) permutation = {order}",
                 lambda v: v.transpose(order))

    def slice(self):
        x = self.some(lambda v: len(v.dims) > 0)
        if x is None:
            return
        axis = int(self.random.integers(len(x.dims)))
        size = self.sizes[x.dims[axis]]
        length = int(self.random.integers(1, size + 1))
        stride = 2 if 2 * length - 1 <= size and self.random.random() < 0.3 else 1
        offset = int(self.random.integers(0, size - (length - 1) * stride))
        dims = list(x.dims)
        dims[axis] = self.new_dim(length)
        offsets = [offset if i == axis else 0 for i in range(len(dims))]
        strides = [stride if i == axis else 1 for i in range(len(dims))]
        sizes = [f"%size_{d}" if d in self.dynamic else str(self.sizes[d]) for d in dims]
        index = tuple(slice(o, o + (self.sizes[d] - 1) * s + 1, s)
                      for o, d, s in zip(offsets, dims, strides))
        self.add(dims, x.element, [x],
                 f"{{out}} = tensor.extract_slice {x.name}{offsets} [{', '.join(sizes)}] "
                 f"{strides} : {self.type(x)} to {{type}}",
                 lambda v: v[index])

    def pad(self):
        x = self.some(lambda v: len(v.dims) > 0 and not set(v.dims) & self.dynamic)
        if x is None:
            return
        low = [int(self.random.integers(0, 3)) for _ in x.dims]
        high = [int(self.random.integers(0, 4)) for _ in x.dims]
        dims = [self.new_dim(self.sizes[d] + lo + hi) for d, lo, hi in zip(x.dims, low, high)]
        indices = ", ".join(f"%i{i}: index" for i in range(len(dims)))
        self.add(dims, x.element, [x],
                 f"{{out}} = tensor.pad {x.name} low{low} high{high} {{{{\n  ^bb0({indices}):\n"
                 f"    tensor.yield %zero_{x.element} : {x.element}\n  }}}} : "
                 f"{self.type(x)} to {{type}}",
                 lambda v: np.pad(v, list(zip(low, high))))

    def reduce(self):
        x = self.some(lambda v: len(v.dims) > 1)
        if x is None:
            return
        axis = int(self.random.integers(len(x.dims)))
        dims = [d for i, d in enumerate(x.dims) if i != axis]
        # In f32: a sum in bf16 rounds at every step.
        op, function = self.choice([("addf", np.add.reduce), ("maximumf", None)])
        if x.element != "f32":
            op, function = "maximumf", None
        init = self.filled(dims, x.element)
        self.add(dims, x.element, [x],
                 f"{{out}} = linalg.reduce {{{{ arith.{op} }}}} ins({x.name} : {self.type(x)}) "
                 f"outs({init} : {{type}}) dimensions = [{axis}]",
                 (lambda v: np.add.reduce(v, axis=axis)) if function else
                 (lambda v: np.maximum(v.max(axis=axis), 0)))

    def broadcast(self):
        x = self.some(lambda v: len(v.dims) < 3)
        dim = self.choice(list("abcde"))
        if x is None or dim in x.dims or np.prod(self.shape(x.dims)) * self.sizes[dim] > 40000:
            return
        axis = int(self.random.integers(len(x.dims) + 1))
        dims = list(x.dims)
        dims.insert(axis, dim)
        init = self.empty(dims, x.element)
        self.add(dims, x.element, [x],
                 f"{{out}} = linalg.broadcast ins({x.name} : {self.type(x)}) "
                 f"outs({init} : {{type}}) dimensions = [{axis}]",
                 lambda v: np.broadcast_to(np.expand_dims(v, axis), self.shape(dims)))

    def collapse(self):
        """Two dimensions to one, and sometimes back, in another shape."""
        x = self.some(lambda v: len(v.dims) > 1 and not set(v.dims) & self.dynamic)
        if x is None:
            return
        axis = int(self.random.integers(len(x.dims) - 1))
        size = self.sizes[x.dims[axis]] * self.sizes[x.dims[axis + 1]]
        if size > 1024:
            return
        dims = [*x.dims[:axis], self.new_dim(size), *x.dims[axis + 2 :]]
        groups = [[i] for i in range(len(x.dims))]
        groups[axis : axis + 2] = [[axis, axis + 1]]
        groups = [[i for i in g] for g in groups]
        y = self.add(dims, x.element, [x],
                     f"{{out}} = tensor.collapse_shape {x.name} {groups} : "
                     f"{self.type(x)} into {{type}}",
                     lambda v: v.reshape(self.shape(dims)))
        factor = self.choice([2, 4, 1])
        if size % factor or self.random.random() < 0.5:
            return
        wide = list(y.dims)
        wide[axis : axis + 1] = [self.new_dim(factor), self.new_dim(size // factor)]
        self.add(wide, x.element, [y],
                 f"{{out}} = tensor.expand_shape {y.name} {groups} "
                 f"output_shape {list(self.shape(wide))} : {self.type(y)} into {{type}}",
                 lambda v: v.reshape(self.shape(wide)))

    def softmax(self):
        x = self.some(lambda v: len(v.dims) > 1 and v.element == "f32")
        if x is None:
            return
        axis = len(x.dims) - 1
        init = self.empty(x.dims, "f32")

        def function(v):
            e = np.exp(v - v.max(axis=axis, keepdims=True))
            return e / e.sum(axis=axis, keepdims=True)

        self.add(x.dims, "f32", [x],
                 f"{{out}} = linalg.softmax dimension({axis}) ins({x.name} : {self.type(x)}) "
                 f"outs({init} : {{type}}) -> {{type}}",
                 function, lambda v: 1 + v)

    def loop(self):
        """x <- (x w) / 2, three times, in an scf.for."""
        x = self.some(lambda v: len(v.dims) == 2 and v.element == self.element
                      and v.dims[1] in "abcde" and self.sizes[v.dims[1]] <= 64)
        if x is None or x.dims[0] == x.dims[1]:
            return
        m, k = x.dims
        other = self.new_dim(self.sizes[k])
        if k in self.dynamic:
            return
        w = self.argument((k, other))
        name = f"c{self.contractions}"
        self.contractions += 1
        kind, w_kind = self.type(x), self.type(w)
        zeros = self.filled(x.dims, x.element)
        what = Contraction(name, m + k, k + other, m + other)
        what.loops = m + other + k
        line = (f"{{out}} = scf.for %iv = %c0 to %c3 step %c1 iter_args(%it = {x.name}) -> ({kind}) {{{{\n"
                f"    %prod = linalg.matmul ins(%it, {w.name} : {kind}, {w_kind}) "
                f"outs({zeros} : {kind}) -> {kind} loc(\"{{{{name}}}}.{name}\")\n"
                f"    scf.yield %prod : {kind}\n  }}}}")

        def function(run, v, weight):
            for _ in range(3):
                left, right = run.operands(what, v, weight)
                v = run.round(left @ right, x.element)
            return v

        function.wants_run = True
        self.add(x.dims, x.element, [x, w], line, function)

    # Results.

    def function(self, name, recipe):
        arguments = ", ".join(f"{v.name}: {self.type(v)}" for v in self.arguments)
        kinds = ", ".join(self.type(v) for v in self.results)
        head = [f"%zero_{e} = arith.constant 0.0 : {e}" for e in DTYPES]
        head += [f"%half_{e} = arith.constant 0.5 : {e}" for e in DTYPES]
        head += [f"%c{i} = arith.constant {i} : index" for i in range(4)]
        for dim in sorted(self.dynamic):
            for v in self.arguments:
                if dim in v.dims:
                    head.append(f"%size_{dim} = tensor.dim {v.name}, %c{v.dims.index(dim)} "
                                f": {self.type(v)}")
                    break
        body = "\n  ".join(head + [t.replace("{name}", name) for t in self.text])
        return f"""
func.func @{name}({arguments}) -> ({kinds})
    attributes {{llvm.emit_c_interface, fp8.recipe = {model.attribute(recipe)}}} {{
  {body}
  return {', '.join(v.name for v in self.results)} : {kinds}
}}
"""

    def inputs(self):
        """Weights about as large as keeps a product's size, and a loud column."""
        random = np.random.default_rng([self.seed, 7])
        arrays = []
        for v in self.arguments:
            shape = self.shape(v.dims)
            x = random.standard_normal(shape) * max(1, np.prod(shape) ** 0.5) ** -0.5
            if x.ndim and random.random() < 0.5:
                x[..., int(random.integers(shape[-1]))] *= 8
            arrays.append(x.astype(np.float32).astype(DTYPES[v.element]))
        return arrays


class Run:
    """A run of a program in numpy; `remarks` say how contractions are quantized."""

    def __init__(self, program, name, recipe, remarks):
        self.program, self.name, self.recipe, self.remarks = program, name, recipe, remarks
        self.magnitudes = False

    def round(self, x, element):
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(np.float32).astype(DTYPES[element]).astype(np.float64)

    def operands(self, what, a, b):
        remark = self.remarks[f"{self.name}.{what.name}"]
        if remark["kind"] != "passed" or self.magnitudes:
            return a, b
        batch, m, n, k = what.groups(what.loops)
        source = remark["source"]
        return (self.quantized(a, what.a, batch, m, k, remark["a"], source),
                self.quantized(b, what.b, batch, n, k, remark["b"], source))

    def quantized(self, x, dims, batch, rows, k, text, source):
        """`x` through its codes; `text` is as in the remark, "f8E4M3FN[1x128]f32"."""
        element, rest = text.split("[")
        block, scale = rest.split("]")
        block = tuple(None if b == "*" else int(b) for b in block.split("x"))
        order = [dims.index(d) for d in [*batch, *rows, *k]]
        canonical = x.transpose(order)
        shape = [[canonical.shape[i] for i in range(s, e)] for s, e in (
            (0, len(batch)), (len(batch), len(batch) + len(rows)),
            (len(batch) + len(rows), len(order)))]
        flat = [int(np.prod(s)) for s in shape]
        lead = (None,) if block == (None, None) else (1,)
        base = model.describe(self.recipe, source)
        scaled = model.Scaled(element, lead + block, scale.split("+")[0], base.rule,
                              base.propagate_nan)
        values = scaled.value(canonical.reshape(flat).astype(np.float32))
        return values.reshape(canonical.shape).transpose(np.argsort(order))

    def run(self, inputs):
        """The results and their magnitudes, in f64."""
        values = {}
        for v, x in zip(self.program.arguments, inputs):
            wide = x.astype(np.float64)
            values[v.name] = (wide, abs(wide))
        for value, sources, function, magnitude in self.program.steps:
            first = [self] if hasattr(function, "wants_run") else []
            exact = function(*first, *(values[s.name][0] for s in sources))
            self.magnitudes = True
            large = magnitude(*first, *(values[s.name][1] for s in sources))
            self.magnitudes = False
            values[value.name] = (self.round(exact, value.element), abs(np.asarray(large)))
        return [values[v.name] for v in self.program.results]
