"""Programs of a mixture of experts with quantized weights: one for the product of each, and one for both products with
what is between them."""

import functools
import json
import weakref
from collections import namedtuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from fp8.torch import code_order, expected, operations, program_text, schemes
from fp8.torch.dense import make_dense
from fp8.torch.schemes import ELEMENTS, Scheme

FUNCTION = "experts"
# On a GPU programs of few rows are for that many, with kernels for it, and rows are added; above, for any number.
ROWS = (16, 64, 256, 1024, 4096)


class Gate(namedtuple("Gate", "alpha limit offset interleaved")):
    """What becomes of a gate g and of u, both limited: (u + offset) * g * sigmoid(alpha * g). A limit of None is none;
    `interleaved` is whether columns of g and u take turns, in a checkpoint: they never do in a program."""

    __slots__ = ()

    def compute(self, gate_up):
        """The same by PyTorch."""
        halves = (gate_up[..., ::2], gate_up[..., 1::2]) if self.interleaved else gate_up.chunk(2, -1)
        g, u = halves
        if self.limit is not None:
            g, u = g.clamp(max=self.limit), u.clamp(-self.limit, self.limit)
        return (u + self.offset) * g * torch.sigmoid(self.alpha * g)


class Shape(namedtuple("Shape", "scheme groups n k bias is_whole has_ratio", defaults=(False, False))):
    """What a product is of: the str of a Scheme, how many weights of N x K there are, the type of their biases, and whether
    all of a weight has one factor that results are multiplied with. With `has_ratio` that is the gate's, and what goes with
    the gate is multiplied with its own over that where both meet: a factor for each element would be twice the result."""

    __slots__ = ()


def make_grouped(scheme):
    """The Scheme with which many weights are multiplied at once: a scale for a tensor is one for each of its rows."""
    weight_block = (1 if scheme.weight_block[0] is None else scheme.weight_block[0], scheme.weight_block[1])
    input_block = scheme.input_block
    if not scheme.dynamic and scheme.scale == "f32":
        input_block = (1, input_block[1])
    return schemes.replace(scheme, weight_block=weight_block, input_block=input_block)


def count_rows(rows, is_on_gpu):
    """How many rows a program is for, None for any number."""
    return next((count for count in ROWS if rows <= count), None) if is_on_gpu else None


def _write_product(shape, x, element, rows, suffix, more=()):
    """Lines of a product, %y and a suffix, its arguments, and what they are called."""
    scheme = Scheme.read(shape.scheme)
    y = f"tensor<{rows}x{shape.n}x{element}>"
    per_row = scheme.scale == "f32"
    a = program_text.write_input(scheme, x, shape.k, element, rows, suffix, per_row)
    w = program_text.write_weight(scheme, shape.n, shape.k, element, shape.groups, suffix)
    steps, arguments = [], [*w.arguments, *a.arguments]
    if scheme.scale == "e4m3" or scheme.multiplies_sums(shape.n, shape.k):
        each = 1 if shape.is_whole or shape.has_ratio else shape.n
        steps.append(("mulf", f"%factor{suffix}", f"tensor<{rows}x{each}xf32>"))
    if shape.bias:
        steps.append(("addf", f"%bias{suffix}", f"tensor<{rows}x{shape.n}x{shape.bias}>"))
    steps += more
    arguments += [f"{name}: {type}" for _, name, type in steps]
    offsets = f"tensor<{shape.groups + 1}xi32>"
    line = (f"%y{suffix} = fp8.grouped_matmul {a.name}, {w.name} offsets(%offsets : {offsets}) "
            f"accumulate = {scheme.sums}{program_text.write_epilogue(element, steps)} : {a.type}, {w.type} -> {y}")
    return arguments, [*a.lines, *w.lines, line]


def _write_gate(gate, n, element, rows, has_ratio):
    """From %y0 of rows x 2N to %z of rows x N, with one rounding; with `has_ratio` the other half is multiplied with %ratio of
    its row first."""
    half, whole = f"tensor<{rows}x{n}x{element}>", f"tensor<{rows}x{2 * n}x{element}>"
    is_open = rows == "?"
    lines = ["%c0 = arith.constant 0 : index", f"%rows = tensor.dim %y0, %c0 : {whole}"] if is_open else []
    count = "%rows" if is_open else rows
    lines += [f"%{name} = tensor.extract_slice %y0[0, {begin}] [{count}, {n}] [1, 1] : {whole} to {half}"
              for name, begin in (("gate", 0), ("up", n))]
    lines.append(f"%room = tensor.empty({'%rows' * is_open}) : {half}")
    of_all, of_rows = "affine_map<(m, n) -> (m, n)>", "affine_map<(m, n) -> (m)>"
    maps = ", ".join([of_all, of_all, *[of_rows] * has_ratio, of_all])
    ratio, of_ratio = ", %ratio" * has_ratio, f", tensor<{rows}xf32>" * has_ratio
    lines += [f"%z = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\"]}}",
              f"    ins(%gate, %up{ratio} : {half}, {half}{of_ratio}) outs(%room : {half}) {{",
              f"^bb0(%g_: {element}, %u_: {element}{', %ur: f32' * has_ratio}, %o: {element}):"]
    g, u, body = "%g_", "%u_", []
    if element != "f32":
        body += [f"%g = arith.extf {g} : {element} to f32", f"%u = arith.extf {u} : {element} to f32"]
        g, u = "%g", "%u"
    if has_ratio:
        body.append(f"%us = arith.mulf {u}, %ur : f32")
        u = "%us"
    constants = {"alpha": gate.alpha, "offset": gate.offset, "one": 1.0}
    if gate.limit is not None:
        constants.update(high=gate.limit, low=-gate.limit)
    body += [f"%{name} = arith.constant {float(value):e} : f32" for name, value in constants.items()]
    if gate.limit is not None:
        body += [f"%gl = arith.minimumf {g}, %high : f32", f"%um = arith.minimumf {u}, %high : f32",
                 "%ul = arith.maximumf %um, %low : f32"]
        g, u = "%gl", "%ul"
    body += [f"%ag = arith.mulf {g}, %alpha : f32", "%n = arith.negf %ag : f32", "%e = math.exp %n : f32",
             "%d = arith.addf %e, %one : f32", f"%s_ = arith.divf {g}, %d : f32",
             f"%uo = arith.addf {u}, %offset : f32", "%r = arith.mulf %uo, %s_ : f32"]
    result = "%r"
    if element != "f32":
        body.append(f"%rounded = arith.truncf %r : f32 to {element}")
        result = "%rounded"
    return [*lines, *(f"  {line}" for line in body), f"  linalg.yield {result} : {element}", f"}} -> {half}"]


def write(shapes, gate, element, rows):
    """A program of x, rows x K sorted by expert; what is stored of each weight; where experts end; and, of both products,
    the weight of each row in the result, rows x 1 in f32. `shapes` has one product, or two with a Gate between them."""
    rows = "?" if rows is None else rows
    first = shapes[0]
    ends = f"tensor<{first.groups}xi32>"
    arguments = [f"%x: tensor<{rows}x{first.k}x{element}> {{fp8.name = \"x\"}}", f"%ends: {ends}"]
    offsets = f"tensor<{first.groups + 1}xi32>"
    body = ["%zero = arith.constant dense<0> : tensor<1xi32>",
            f"%offsets = tensor.concat dim(0) %zero, %ends : (tensor<1xi32>, {ends}) -> {offsets}"]
    more, lines = _write_product(first, "%x", element, rows, "0")
    arguments, body, result = arguments + more, body + lines, "%y0"
    if len(shapes) > 1:
        if first.has_ratio:
            arguments.append(f"%ratio: tensor<{rows}xf32>")
        body += _write_gate(gate, first.n // 2, element, rows, first.has_ratio)
        more, lines = _write_product(shapes[1], "%z", element, rows, "1",
                                     [("mulf", "%share", f"tensor<{rows}x1xf32>")])
        arguments, body, result = arguments + more, body + lines, "%y1"
    y = f"tensor<{rows}x{shapes[-1].n}x{element}>"
    return (f"func.func @{FUNCTION}({', '.join(arguments)}) -> {y} {{\n  " + "\n  ".join(body)
            + f"\n  return {result} : {y}\n}}\n")


@functools.lru_cache(maxsize=None)
def compile(shapes, gate, element, rows, target):
    """The fp8.Function of `write`'s program."""
    options = Scheme.read(shapes[0].scheme).options
    return expected.compile(
        lambda: f"experts of {shapes[0].k} inputs for {'any number of' if rows is None else rows} rows of {element}",
        [("experts", shapes)], write(shapes, gate, element, rows), target=target, **options).functions[FUNCTION]


# Factors that are 1, by weights' own factors, which keep them; and by their sizes and devices, so that weights have them
# in common.
_units_of, _units = WeakTensorKeyDictionary(), weakref.WeakValueDictionary()


def _make_units(scale, *sizes):
    """Factors that are 1, of all weights of a shape, whose own factors are `scale`."""
    units = _units_of.get(scale)
    if units is not None and units.shape == sizes and units.device == scale.device:
        return units
    units = _units.get((sizes, scale.device))
    if units is None:
        units = torch.ones(sizes, device=scale.device)
        # Where a graph is captured they are in its memory, and have no values before it runs.
        if scale.is_cuda and torch.cuda.is_current_stream_capturing():
            return units
        _units[sizes, scale.device] = units
    _units_of[scale] = units
    return units


def _gather(shape, tensors, bias, owners, rows):
    """What a product takes behind x and ends; `owners` are the experts of the rows."""
    scheme = Scheme.read(shape.scheme)
    values = dict(zip(scheme.get_tensors(shape.n, shape.k), tensors))
    given = []
    for name in ("weight", "weight_packed", "weight_arranged", "weight_exponents"):
        given += [values[name]] if name in values else []
    scale = values["weight_scale"]
    if scheme.multiplies_sums(shape.n, shape.k):
        # A scale for each row of a weight, or one for the weight.
        factors = scale.flatten(1)[owners]
        units = _make_units(scale, shape.groups, -(-shape.n // 128), -(-shape.k // 128))
        given += [units, factors if shape.is_whole else factors.expand(-1, shape.n)]
    else:
        given.append(scale.view(torch.float8_e8m0fnu) if scheme.scale == "e8m0" else scale)
    if not scheme.dynamic:
        if scheme.scale == "e4m3":
            given.append(values["input_global_scale"].min().view(1, 1))
        else:
            scales = values["input_scale"].flatten()[owners][:, None]
            given += [scales, scales.reciprocal()]
    if scheme.scale == "e4m3":
        # A scale for the weight, or one for each of its parts.
        factors = values["weight_global_scale"].reciprocal()[owners]
        given.append(factors if shape.is_whole else factors[:, :1] if shape.has_ratio
                     else factors.repeat_interleave(shape.n // factors.shape[1], 1))
    if bias is not None:
        given.append(bias[owners])
    if shape.has_ratio:
        given.append(factors[:, 1] / factors[:, 0])
    return given


def read(shapes, gate):
    """Shapes and the Gate, or None, of their texts."""
    return (tuple(Shape(*entry) for entry in json.loads(shapes)),
            Gate(*json.loads(gate)) if gate else None)


def compute(x, ends, owners, share, tensors, biases, shapes, gate):
    """The result of the products of rows of x, sorted by expert, of which expert e's end at ends[e].

    - owners: the expert of each row, in 0 to groups - 1;
    - share: f32 that each row of the last of two products is multiplied with, or None for one product;
    - tensors: what is stored of the weights, one after the other;
    - biases: of those that have one;
    - shapes, gate: as `write` has them, as JSON.
    """
    shapes, gate = read(shapes, gate)
    count = x.shape[0]
    rows = count_rows(count, x.is_cuda)
    if rows is not None and rows != count:
        x = torch.nn.functional.pad(x, (0, 0, 0, rows - count))
        owners = torch.nn.functional.pad(owners, (0, rows - count))
        share = share if share is None else torch.nn.functional.pad(share, (0, rows - count))
    given, tensors, biases, settled = [], list(tensors), list(biases), []
    for shape in shapes:
        own = len(Scheme.read(shape.scheme).get_tensors(shape.n, shape.k))
        first, scheme = code_order.settle(tensors[:own], shape.scheme, x.dtype)
        settled.append(shape._replace(scheme=scheme))
        given += _gather(settled[-1], first, biases.pop(0) if shape.bias else None, owners, rows)
        tensors = tensors[own:]
    shapes = tuple(settled)
    if share is not None:
        given.append(share.view(-1, 1))
    function = compile(shapes, gate, ELEMENTS[x.dtype], rows, "auto" if x.is_cuda else "cpu")
    y = function(make_dense(x), ends, *(make_dense(value) for value in given))
    return y[:count]


def _infer(x, ends, owners, share, tensors, biases, shapes, gate):
    return x.new_empty(x.shape[0], json.loads(shapes)[-1][2])


# For graphs of torch.compile and torch.export.
operation = operations.define(
    "quantized_experts(Tensor x, Tensor ends, Tensor owners, Tensor? share, Tensor[] tensors, Tensor[] biases, "
    "str shapes, str gate) -> Tensor", compute, _infer)
