"""A part of a graph with quantized layers as the text of a program: its products, and all that is between
them and computed row by row.

Values are one of four kinds: "full", rows of some elements; "row", an element for each row; "vector", the
same elements for all rows; and "scalar". Each operation rounds to the type that PyTorch's does.
"""

import math
from collections import namedtuple

import torch

from fp8.torch import graphs, program_text, schemes

FUNCTION = "main"
_BINARY = {"add": "addf", "sub": "subf", "mul": "mulf", "div": "divf", "maximum": "maximumf",
           "minimum": "minimumf", "clamp_min": "maximumf", "clamp_max": "minimumf"}
_UNARY = {"neg": "arith.negf", "abs": "math.absf", "sqrt": "math.sqrt", "rsqrt": "math.rsqrt", "exp": "math.exp",
          "log": "math.log", "tanh": "math.tanh", "erf": "math.erf"}
_CONVERSIONS = {"convert_element_type", "_to_copy"}
_OTHERS = {"sigmoid", "relu", "reciprocal", "pow", "square", "silu"}
_EXPONENTS = 2, 3
ELEMENTWISE = {*_BINARY, *_UNARY, *_CONVERSIONS, *_OTHERS}
REDUCTIONS = {"sum", "mean", "var_mean", "var"}
# The same rows in another shape.
VIEWS = {"view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "alias", "clone"}
SPLITS = {"split", "split_with_sizes"}
PRODUCTS = {"quantized_linear", "merged_linears"}
_MAPS = {"full": "affine_map<(d0, d1) -> (d0, d1)>", "row": "affine_map<(d0, d1) -> (d0)>",
         "vector": "affine_map<(d0, d1) -> (d1)>", "scalar": "affine_map<(d0, d1) -> ()>"}
_ROW_MAPS = {"row": "affine_map<(d0) -> (d0)>", "scalar": "affine_map<(d0) -> ()>"}

# A tensor of the program: its name in the text, its kind, type of elements and how many there are in a row.
_Value = namedtuple("_Value", "name kind element size")
# A product: for each of its layers the placeholders of its stored tensors, those of the biases, and its scheme.
Product = namedtuple("Product", "layers biases scheme")
# What is written: the text, and what its arguments are, each a placeholder with its kind or a Product.
Written = namedtuple("Written", "text arguments")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def has_known_meaning(node):
    """Whether what an elementwise node does, beside the types of its operands, can be written."""
    operation, operands = graphs.get_operation(node), node.args
    if operation not in ELEMENTWISE:
        return False
    if operation in _CONVERSIONS:
        return operation == "convert_element_type" or set(node.kwargs) <= {"dtype"}
    if node.kwargs or "rounding_mode" in node.target._schema.overload_name:
        return False
    if operation == "pow":
        return len(operands) == 2 and operands[1] in _EXPONENTS and isinstance(operands[0], torch.fx.Node)
    count = 2 if operation in _BINARY else 1
    return len(operands) == count and all(
        isinstance(operand, torch.fx.Node) or is_number(operand) for operand in operands)


def read_slice(node):
    """What a node takes of the rows of another: (source, first, end), or None."""
    operation = graphs.get_operation(node)
    if operation == "slice":
        source, dim, first, end, step = (*node.args, *(0, 0, None, 1)[len(node.args) - 1:])[:5]
        first = first or 0
    elif operation == "getitem" and graphs.get_operation(node.args[0]) in SPLITS:
        source, sizes, dim = (*node.args[0].args, 0)[:3]
        value, step = source.meta["val"], 1
        width, index = value.shape[dim], node.args[1]
        if graphs.get_operation(node.args[0]) == "split":
            if not isinstance(sizes, int) or not isinstance(width, int):
                return None
            first, end = index * sizes, min((index + 1) * sizes, width)
        else:
            first, end = sum(sizes[:index]), sum(sizes[:index + 1])
    else:
        return None
    value = source.meta["val"]
    width = value.shape[-1] if value.ndim else None
    if not all(isinstance(number, int) for number in (width, first, step, dim)) or step != 1 or (
            dim not in (-1, value.ndim - 1)):
        return None
    end = width if end is None else end
    if not isinstance(end, int):
        return None
    first, end = (max(0, min(width, at + width if at < 0 else at)) for at in (first, end))
    return source, first, end


def find_source(node):
    """What a node has the rows of, in whatever shape."""
    while graphs.get_operation(node) in VIEWS:
        node = node.args[0]
    return node


def get_element(node):
    return schemes.ELEMENTS[node.meta["val"].dtype]


def _is_widening(node):
    return graphs.get_operation(node) in _CONVERSIONS and (
        node.meta["val"].element_size() > node.args[0].meta["val"].element_size())


def _find_kept(graph, kinds):
    """The elementwise nodes that are tensors in the program: what a product or the caller takes, and what
    several others compute with. All else is computed where it is needed."""
    outputs = set(next(iter(reversed(graph.nodes))).args[0])
    kept, readers = set(), {}
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function" or graphs.get_operation(node) in VIEWS:
            readers.setdefault(node, set()).update(*(readers.get(user, ()) for user in node.users))
            continue
        own = set()
        for user in node.users:
            own |= readers.get(user, set())
        is_elementwise = graphs.get_operation(node) in ELEMENTWISE
        if node in outputs and kinds.get(node) == "row":
            kept.add(node)
        if is_elementwise and (node in outputs or _is_multiplied(node) or (
                len(own) > 1 and kinds.get(node) == "full" and not _is_widening(node))):
            kept.add(node)
        readers[node] = own if is_elementwise and node not in kept else {node}
    return kept


def _is_multiplied(node):
    """Whether a product or a slice reads a node, in whatever shape."""
    return any(_is_multiplied(user) if graphs.get_operation(user) in VIEWS
               else graphs.get_operation(user) in PRODUCTS or read_slice(user) is not None
               or graphs.get_operation(user) in SPLITS for user in node.users)


class _Body:
    """The arithmetic of one pass over rows: it reads tensors of the program and computes the rest."""

    def __init__(self, writer):
        self._writer, self.lines, self.operands, self._known = writer, [], {}, {}
        self._count = 0

    def add(self, text):
        """A value, the result of an operation."""
        name = f"%b{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, number):
        return self.add(f"arith.constant {float(number):.16e} : f32")

    def widen(self, name, element):
        return name if element == "f32" else self.add(f"arith.extf {name} : {element} to f32")

    def narrow(self, name, element):
        return name if element == "f32" else self.add(f"arith.truncf {name} : f32 to {element}")

    def read(self, value):
        """A tensor's element as f32."""
        if value not in self.operands:
            self.operands[value] = f"%e{len(self.operands)}"
        return self.widen(self.operands[value], value.element)

    def evaluate(self, node):
        """An operand, a node or a number, as f32."""
        if not isinstance(node, torch.fx.Node):
            return self.constant(node)
        node = find_source(node)
        if node not in self._known:
            values = self._writer.values
            self._known[node] = self.read(values[node]) if node in values else self._compute(node)
        return self._known[node]

    def _compute(self, node):
        result = self.widen(self.narrow(self.compute(node), get_element(node)), get_element(node))
        return result

    def compute(self, node):
        """What a node computes, before it is rounded."""
        operation = graphs.get_operation(node)
        if operation in ("mean", "var", "getitem"):
            return self._divide_sum(node)
        first, *others = (self.evaluate(operand) for operand in node.args[:2]
                          if isinstance(operand, torch.fx.Node) or operation in _BINARY)
        if operation in _CONVERSIONS:
            return first
        if operation in _BINARY:
            return self.add(f"arith.{_BINARY[operation]} {first}, {others[0]} : f32")
        if operation in _UNARY:
            return self.add(f"{_UNARY[operation]} {first} : f32")
        if operation in ("pow", "square"):
            power = self.add(f"arith.mulf {first}, {first} : f32")
            is_cube = operation == "pow" and node.args[1] == 3
            return self.add(f"arith.mulf {power}, {first} : f32") if is_cube else power
        if operation == "relu":
            return self.add(f"arith.maximumf {first}, {self.constant(0)} : f32")
        if operation == "reciprocal":
            return self.add(f"arith.divf {self.constant(1)}, {first} : f32")
        negative = self.add(f"arith.negf {first} : f32")
        exponential = self.add(f"math.exp {negative} : f32")
        divisor = self.add(f"arith.addf {exponential}, {self.constant(1)} : f32")
        return self.add(f"arith.divf {first if operation == 'silu' else self.constant(1)}, {divisor} : f32")

    def _divide_sum(self, node):
        """A mean or a variance, of the sums that it takes."""
        reduction = node.args[0] if graphs.get_operation(node) == "getitem" else node
        is_var = reduction is not node and node.args[1] == 0 or graphs.get_operation(node) == "var"
        sums, count = self._writer.sums[reduction], reduction.args[0].meta["val"].shape[-1]
        correction = reduction.kwargs.get("correction", 1) if is_var else 0
        return self.add(f"arith.divf {self.read(sums[is_var])}, {self.constant(count - correction)} : f32")


class _Writer:
    def __init__(self, graph, kinds):
        self._graph, self._kinds = graph, kinds
        self.values, self.sums, self._lines, self._written = {}, {}, [], []
        self._declared, self._quantized, self._count = [], {}, 0

    def write(self):
        self._declare()
        kept = _find_kept(self._graph, self._kinds)
        for node in self._graph.nodes:
            operation = graphs.get_operation(node)
            if operation in PRODUCTS:
                self._write_product(node)
            elif operation in REDUCTIONS:
                self._write_reduction(node)
                if node in kept and node not in self.values:
                    self.values[node] = self._write_pass(node)
            elif (piece := read_slice(node)) is not None:
                self._write_slice(node, *piece)
            elif node in kept:
                self.values[node] = self._write_pass(node)
        outputs = [self.values[find_source(node)] for node in next(iter(reversed(self._graph.nodes))).args[0]]
        types = ", ".join(map(self._write_type, outputs))
        names = ", ".join(value.name for value in outputs)
        lines = "\n  ".join([*self._lines, f"return {names} : {types}"])
        return Written(f"func.func @{FUNCTION}({', '.join(self._declared)}) -> ({types}) {{\n  {lines}\n}}\n",
                       self._written)

    def _declare(self):
        """Arguments of all but products."""
        for node in graphs.get_placeholders(self._graph):
            kind = self._kinds.get(node)
            if kind is None:
                continue
            value = _Value(f"%a{len(self._declared)}", kind, get_element(node),
                           node.meta["val"].shape[-1] if kind in ("full", "vector") else 1)
            self.values[node] = value
            self._declared.append(f"{value.name}: {self._write_type(value)}")
            self._written.append((node, kind))
        first = next(value for value in self.values.values() if value.kind in ("full", "row"))
        self._lines += ["%first = arith.constant 0 : index",
                        f"%rows = tensor.dim {first.name}, %first : {self._write_type(first)}"]

    @staticmethod
    def _write_type(value):
        shape = {"full": f"?x{value.size}x", "row": "?x", "vector": f"{value.size}x", "scalar": ""}[value.kind]
        return f"tensor<{shape}{value.element}>"

    def _make(self, kind, element, size):
        self._count += 1
        return _Value(f"%v{self._count}", kind, element, size)

    def _make_empty(self, value):
        name, kind = f"%empty{self._count}", self._write_type(value)
        self._lines.append(f"{name} = tensor.empty(%rows) : {kind}")
        return name

    def _write_generic(self, body, result, value, into, iterators):
        """A pass whose body's `result` becomes `value`, in the tensor `into`."""
        maps = _ROW_MAPS if len(iterators) == 1 else _MAPS
        operands = list(body.operands)
        types = ", ".join(map(self._write_type, operands))
        inputs = f" ins({', '.join(operand.name for operand in operands)} : {types})" if operands else ""
        indexing = ", ".join(maps[operand.kind] for operand in [*operands, value])
        arguments = "".join(f"{body.operands[operand]}: {operand.element}, " for operand in operands)
        kind = self._write_type(value)
        quoted = ", ".join(f'"{iterator}"' for iterator in iterators)
        self._lines += [f"{value.name} = linalg.generic {{indexing_maps = [{indexing}], iterator_types = [{quoted}]}}"
                        f"{inputs} outs({into} : {kind}) {{", f"^bb0({arguments}%out: {value.element}):",
                        *(f"  {line}" for line in body.lines),
                        f"  linalg.yield {result} : {value.element}", f"}} -> {kind}"]

    def _write_pass(self, node):
        kind, element = self._kinds[node], get_element(node)
        body = _Body(self)
        result = body.narrow(body.compute(node), element)
        value = self._make(kind, element, node.meta["val"].shape[-1])
        self._write_generic(body, result, value, self._make_empty(value),
                            ["parallel"] * (2 if kind == "full" else 1))
        return value

    def _write_reduction(self, node):
        """The sum of each row, and for a variance that of the squared distances from the mean."""
        total = self._write_sum(lambda body: body.evaluate(node.args[0]))
        operation, count = graphs.get_operation(node), node.args[0].meta["val"].shape[-1]
        if operation == "sum":
            self.sums[node] = (total,)
            self.values[node] = self._round(total, get_element(node))
            return
        squares = None
        if operation in ("var", "var_mean"):
            def compute(body):
                mean = body.add(f"arith.divf {body.read(total)}, {body.constant(count)} : f32")
                distance = body.add(f"arith.subf {body.evaluate(node.args[0])}, {mean} : f32")
                return body.add(f"arith.mulf {distance}, {distance} : f32")
            squares = self._write_sum(compute)
        self.sums[node] = total, squares

    def _round(self, value, element):
        if value.element == element:
            return value
        body, result = _Body(self), self._make(value.kind, element, 1)
        self._write_generic(body, body.narrow(body.read(value), element), result, self._make_empty(result),
                            ["parallel"])
        return result

    def _write_sum(self, compute):
        body, value = _Body(self), self._make("row", "f32", 1)
        result = body.add(f"arith.addf %out, {compute(body)} : f32")
        empty, zero, kind = self._make_empty(value), f"%zero{self._count}", self._write_type(value)
        self._lines += [f"{zero} = arith.constant 0.0 : f32",
                        f"{zero}s = linalg.fill ins({zero} : f32) outs({empty} : {kind}) -> {kind}"]
        self._write_generic(body, result, value, f"{zero}s", ["parallel", "reduction"])
        return value

    def _write_slice(self, node, source, first, end):
        source = self.values[find_source(source)]
        value = self._make("full", source.element, end - first)
        self._lines.append(f"{value.name} = tensor.extract_slice {source.name}[0, {first}] [%rows, {end - first}] "
                           f"[1, 1] : {self._write_type(source)} to {self._write_type(value)}")
        self.values[node] = value

    def _write_product(self, node):
        product = read_product(node)
        x, scheme = self.values[find_source(node.args[0])], product.scheme
        n, suffix = node.meta["val"].shape[-1], f"_{self._count}"
        weight = program_text.write_weight(scheme, n, x.size, x.element, suffix=suffix)
        # Products of the same activations share their codes, but for scales of each layer's own.
        key = (x, str(scheme)) if scheme.dynamic else node
        codes = self._quantized.get(key)
        static = []
        if codes is None:
            codes = program_text.write_input(scheme, x.name, x.size, x.element, suffix=suffix)
            self._quantized[key] = codes
            self._lines += codes.lines
            static = codes.arguments
        self._declared += [*weight.arguments, *static]
        steps = list(weight.steps)
        if product.biases:
            kind = f"tensor<{n}x{get_element(product.biases[0])}>"
            steps.append(("addf", f"%bias{suffix}", kind))
            self._declared.append(f"%bias{suffix}: {kind}")
        value = self._make("full", x.element, n)
        self._lines += [*weight.lines, f"{value.name} = fp8.matmul {codes.name}, {weight.name} accumulate = "
                        f"{scheme.sums}{program_text.write_epilogue(x.element, steps)} : {codes.type}, "
                        f"{weight.type} -> {self._write_type(value)}"]
        self.values[node] = value
        self._written.append(product)


def read_product(node):
    """The Product that a node is."""
    if graphs.get_operation(node) == "quantized_linear":
        _, tensors, bias, scheme = node.args
        layers, biases = [list(tensors)], [] if bias is None else [bias]
    else:
        _, tensors, biases, count, scheme = node.args
        each = len(tensors) // count
        layers = [list(tensors[i * each:(i + 1) * each]) for i in range(count)]
    return Product(layers, list(biases), schemes.Scheme.read(scheme))


def write(graph, kinds):
    """The Written of a part's graph, whose values have `kinds` by their nodes; stored tensors of layers,
    and sizes, have none."""
    return _Writer(graph, kinds).write()
