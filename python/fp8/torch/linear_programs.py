"""Programs of linear layers: y = x w^T + b and its gradients, under a recipe."""

import threading
import warnings
from collections import namedtuple

import torch

import fp8
from fp8.errors import ArgumentError
from fp8.torch import expected


class Shape(namedtuple("Shape", "rows inputs outputs dtype has_bias caches_weight is_transposed takes_codes",
                       defaults=(False, False, False))):
    """What a program is of: sizes and dtype of a layer, whether it has a bias, the rows of x, None
    for any number, whether codes of the weight are arguments, whether it is [inputs, outputs]
    in place of [outputs, inputs], and whether codes of x are arguments."""

    __slots__ = ()

    def write(self, reuses=False):
        return write(self, reuses)

    def write_forward(self):
        """The text of y = x w^T + b alone."""
        return _MAPS + _Writer(self).forward("forward", False)

    def write_step(self):
        """The text of `step(x, weight, dy) -> (y, dx, dweight)`, which has the three products of a
        training step, each with its own operands, and no bias."""
        return _MAPS + _Writer(self).step("step")

    def describe(self):
        return (f"linear layer of {self.inputs} inputs and {self.outputs} outputs with "
                f"{self.rows or 'any number of'} rows")


ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def settle_only_faster(only_faster, options):
    """What `only_faster` is with options of fp8.compile: an invariant layer computes any number of
    rows alike. Raises ArgumentError."""
    if not dict(options).get("invariant"):
        return only_faster
    if only_faster:
        raise ArgumentError("expected no only_faster with invariant, since few rows would be "
                            "computed otherwise than many")
    return False


def reuses_activations(recipe, options):
    """Whether a layer may multiply with codes of x that another one has made: all would make the same, record nothing, and
    keep them in the order in which they multiply."""
    options = dict(options)
    return recipe.partition(",")[0] == "current" and options.get("transposed_codes") not in (None, "copy") and not {
        "stats", "recipe_file", "functional_state"} & options.keys()


_MAPS = """#full = affine_map<(m, n) -> (m, n)>
#columns = affine_map<(m, n) -> (n)>
#a = affine_map<(m, n, k) -> (m, k)>
#a_columns = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#b_columns = affine_map<(m, n, k) -> (n, k)>
#d = affine_map<(m, n, k) -> (m, n)>
"""


class _Writer:
    """The bodies of the functions of a shape. Sums are f32, as in PyTorch's linear layers,
    and rounded once."""

    def __init__(self, shape):
        self.shape, self.element = shape, ELEMENTS[shape.dtype]

    def type(self, *sizes, element=None):
        sizes = "".join("?x" if size is None else f"{size}x" for size in sizes)
        return f"tensor<{sizes}{element or self.element}>"

    def empty(self, name, *sizes, element=None):
        rows = "%rows" if None in sizes else ""
        return f"    %{name} = tensor.empty({rows}) : {self.type(*sizes, element=element)}\n"

    def product(self, name, role, a, b, maps, types, sizes):
        kind = self.type(*sizes, element="f32")
        return (self.empty(f"{name}_e", *sizes, element="f32")
                + f"    %{name}_z = linalg.fill ins(%zero : f32) outs(%{name}_e : {kind}) -> {kind}\n"
                + f"    %{name}_f = linalg.matmul indexing_maps = [{maps}, #d] "
                  f'{{fp8.name = "{name}", fp8.role = #fp8.role<{role}>}} ins({a}, {b} : {types}) '
                  f"outs(%{name}_z : {kind}) -> {kind}\n")

    def round(self, name, sizes, added=""):
        """`added` is a line that makes %sum of %in, with a bias among the inputs."""
        wide, kind = self.type(*sizes, element="f32"), self.type(*sizes)
        if not added and self.element == "f32":
            return f"    %{name} = tensor.cast %{name}_f : {wide} to {kind}\n"
        bias = self.type(sizes[-1])
        inputs = f"%{name}_f, %b : {wide}, {bias}" if added else f"%{name}_f : {wide}"
        maps = "#full, #columns, #full" if added else "#full, #full"
        arguments = f"%in: f32, %in_b: {self.element}" if added else "%in: f32"
        last = "%sum" if added else "%in"
        lines = added
        if self.element != "f32":
            lines += f"      %rounded = arith.truncf {last} : f32 to {self.element}\n"
            last = "%rounded"
        return (self.empty(f"{name}_r", *sizes)
                + f"    %{name} = linalg.generic {{indexing_maps = [{maps}], "
                  f'iterator_types = ["parallel", "parallel"]}} ins({inputs}) '
                  f"outs(%{name}_r : {kind}) {{\n    ^bb0({arguments}, %out: {self.element}):\n"
                + lines + f"      linalg.yield {last} : {self.element}\n    }} -> {kind}\n")

    def start(self, argument, kind):
        lines = "    %zero = arith.constant 0.0 : f32\n"
        if self.shape.rows is None:
            lines += (f"    %c0 = arith.constant 0 : index\n"
                      f"    %rows = tensor.dim %{argument}, %c0 : {kind}\n")
        return lines

    def weight_type(self):
        sizes = self.shape.outputs, self.shape.inputs
        return self.type(*(reversed(sizes) if self.shape.is_transposed else sizes))

    def weight(self):
        """The argument."""
        saved = ', fp8.saved = "weight"' if self.shape.caches_weight else ""
        return f'%w: {self.weight_type()} {{fp8.name = "weight", fp8.weight{saved}}}'

    def quantize_weight(self):
        kind = self.weight_type()
        return (f'  func.func @quantize_weight(%w: {kind} {{fp8.name = "weight", fp8.weight, '
                f'fp8.save = "weight"}}) {{\n    return\n  }}\n')

    def quantize_input(self):
        kind = self.type(self.shape.rows, self.shape.inputs)
        return (f'  func.func @quantize_input(%x: {kind} {{fp8.name = "x", fp8.save = "input"}}) {{\n'
                f'    return\n  }}\n')

    def forward(self, name, saves_x, reuses=False):
        m, k, n = self.shape.rows, self.shape.inputs, self.shape.outputs
        x, w, y = self.type(m, k), self.weight_type(), self.type(m, n)
        maps = "#a, #b" if self.shape.is_transposed else "#a, #b_columns"
        save = (', fp8.save = "x"' if saves_x else ', fp8.saved = "x"' if reuses
                else ', fp8.saved = "input"' if self.shape.takes_codes else "")
        arguments = f'%x: {x} {{fp8.name = "x"{save}}}, {self.weight()}'
        added = ""
        if self.shape.has_bias:
            arguments += f', %b: {self.type(n)} {{fp8.name = "bias"}}'
            wide = "%in_b"
            if self.element != "f32":
                added = f"      %wide = arith.extf %in_b : {self.element} to f32\n"
                wide = "%wide"
            added += f"      %sum = arith.addf %in, {wide} : f32\n"
        return (f'  func.func @{name}({arguments}) -> ({y} {{fp8.name = "y"}}) {{\n'
                + self.start("x", x)
                + self.product("fprop", "fprop", "%x", "%w", maps, f"{x}, {w}", (m, n))
                + self.round("fprop", (m, n), added)
                + f"    return %fprop : {y}\n  }}\n")

    def bias_gradient(self):
        m, n = self.shape.rows, self.shape.outputs
        dy, wide, narrow = self.type(m, n), self.type(n, element="f32"), self.type(n)
        body = "      %s = arith.addf %in, %out : f32\n"
        if self.element != "f32":
            body = (f"      %g = arith.extf %in : {self.element} to f32\n"
                    f"      %s = arith.addf %g, %out : f32\n")
        text = (self.empty("db_e", n, element="f32")
                + f"    %db_z = linalg.fill ins(%zero : f32) outs(%db_e : {wide}) -> {wide}\n"
                  f"    %db_f = linalg.generic {{indexing_maps = [#full, #columns], "
                  f'iterator_types = ["reduction", "parallel"]}} ins(%dy : {dy}) '
                  f"outs(%db_z : {wide}) {{\n    ^bb0(%in: {self.element}, %out: f32):\n{body}"
                  f"      linalg.yield %s : f32\n    }} -> {wide}\n")
        if self.element == "f32":
            return text.replace("%db_f", "%db")
        return text + f"    %db = arith.truncf %db_f : {wide} to {narrow}\n"

    def step(self, name):
        m, k, n = self.shape.rows, self.shape.inputs, self.shape.outputs
        x, w, dy = self.type(m, k), self.weight_type(), self.type(m, n)
        is_transposed = self.shape.is_transposed
        body = self.start("x", x)
        body += self.product("fprop", "fprop", "%x", "%w", "#a, #b" if is_transposed else
                             "#a, #b_columns", f"{x}, {w}", (m, n)) + self.round("fprop", (m, n))
        body += self.product("dgrad", "dgrad", "%dy", "%w", "#a, #b_columns" if is_transposed else
                             "#a, #b", f"{dy}, {w}", (m, k)) + self.round("dgrad", (m, k))
        operands, types, sizes = ("%dy", "%x"), (dy, x), (n, k)
        if is_transposed:
            operands, types, sizes = operands[::-1], types[::-1], (k, n)
        body += self.product("wgrad", "wgrad", *operands, "#a_columns, #b", ", ".join(types),
                             sizes) + self.round("wgrad", sizes)
        return (f'  func.func @{name}(%x: {x} {{fp8.name = "x"}}, {self.weight()}, '
                f'%dy: {dy} {{fp8.name = "dy", fp8.grad}}) -> ({dy}, {x}, {w}) {{\n{body}'
                f"    return %fprop, %dgrad, %wgrad : {dy}, {x}, {w}\n  }}\n")

    def backward(self, name, needs_x, needs_weight):
        m, k, n = self.shape.rows, self.shape.inputs, self.shape.outputs
        x, w, dy = self.type(m, k), self.weight_type(), self.type(m, n)
        is_transposed = self.shape.is_transposed
        arguments = [f'%dy: {dy} {{fp8.name = "dy", fp8.grad}}']
        results, body = [], self.start("dy", dy)
        if needs_weight:
            saved = "input" if self.shape.takes_codes else "x"
            arguments.append(f'%x: {x} {{fp8.name = "x", fp8.saved = "{saved}"}}')
        if needs_x:
            arguments.append(self.weight())
            maps = "#a, #b_columns" if is_transposed else "#a, #b"
            body += self.product("dgrad", "dgrad", "%dy", "%w", maps, f"{dy}, {w}", (m, k))
            body += self.round("dgrad", (m, k))
            results.append(("%dgrad", x))
        if needs_weight:
            operands, types, sizes = ("%dy", "%x"), (dy, x), (n, k)
            if is_transposed:
                operands, types, sizes = operands[::-1], types[::-1], (k, n)
            body += self.product("wgrad", "wgrad", *operands, "#a_columns, #b", ", ".join(types),
                                 sizes)
            body += self.round("wgrad", sizes)
            results.append(("%wgrad", w))
            if self.shape.has_bias:
                body += self.bias_gradient()
                results.append(("%db", self.type(n)))
        names, types = zip(*results)
        return (f"  func.func @{name}({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{body}"
                f"    return {', '.join(names)} : {', '.join(types)}\n  }}\n")


def write(shape, reuses=False):
    """The text of a layer's functions, with names for arguments and results:

    - `forward(x, weight[, bias]) -> y`;
    - `train`, the same, which also returns what a backward takes in place of x: `x.codes` and
      `x.scale_inv`, where its recipe quantizes x in bytes;
    - `backward(dy, x, weight) -> (dx, dweight[, dbias])`;
    - `dgrad(dy, weight)` and `wgrad(dy, x)`, which are halves of it;
    - with `reuses`, `reuse`: a forward that takes what a backward takes in place of x.

    With `caches_weight` all take what `quantize_weight(weight)` returns in place of it:
    `weight.codes`, `weight.scale_inv`, and with `_1` behind those other codes of it.

    With `takes_codes` there is no `train`, and what takes x takes `input.codes` and `input.scale_inv`,
    a backward such with `_1`.
    """
    writer = _Writer(shape)
    text = _MAPS + (writer.quantize_weight() if shape.caches_weight else "")
    if shape.takes_codes:
        return (text + writer.quantize_input() + writer.forward("forward", False)
                + writer.backward("backward", True, True) + writer.backward("wgrad", False, True))
    text += writer.forward("reuse", False, True) if reuses else ""
    return (text + writer.forward("forward", False) + writer.forward("train", True)
            + writer.backward("backward", True, True)
            + writer.backward("dgrad", True, False) + writer.backward("wgrad", False, True))


def compile_shape(shape, recipe, target, **options):
    """The program of a Shape, as layers have it; options of fp8.compile."""
    # What a model keeps is less than in high precision already, and what one layer needs beside
    # it meanwhile counts for little.
    reuses = isinstance(shape, Shape) and reuses_activations(recipe, options)
    text = shape.write(True) if reuses else shape.write()
    return expected.compile(None, (), text, recipe=recipe, target=target, **{"keep_peak": False, **options})


class Programs:
    """The programs of a recipe, which all layers of it share.

    The first sizes that come have programs of their own; later ones share one for any number
    of rows, so that lengths that change do not compile without end.
    """

    MOST_ROWS = 4

    def __init__(self, recipe, target, options):
        self.recipe, self.target, self.options = recipe, target, options
        self._programs, self._lock = {}, threading.Lock()
        self._prepared = set()

    def prepare(self, shape, device):
        """Compiles the program of a shape, beside other threads that do so for others. From then
        on `get` warns where it compiles one for such a layer."""
        known = self._programs.get((shape, device))
        program = known or self._make(shape, device)
        with self._lock:
            self._programs.setdefault((shape, device), program)
            self._prepared.add((shape._replace(rows=None), device))

    def get(self, shape, device):
        found = self._programs.get((shape, device))
        return found or self._find(shape, device)

    def find_rows(self, shape, device):
        """The number of rows of a program that there is of a shape, whatever its rows; else None."""
        return next((known.rows for known, where in list(self._programs) if where == device
                     and type(known) is type(shape) and known._replace(rows=shape.rows) == shape), None)

    def _find(self, shape, device):
        with self._lock:
            same = [known for known, where in self._programs
                    if where == device and known._replace(rows=shape.rows) == shape
                    and known.rows is not None]
            if len(same) >= self.MOST_ROWS:
                shape = shape._replace(rows=None)
            if (shape, device) not in self._programs:
                # Products of groups have shapes of another kind.
                if any(type(known) is type(shape)
                       and known._replace(dtype=shape.dtype, has_bias=shape.has_bias)
                       == shape._replace(rows=None) for known, _ in self._prepared):
                    warnings.warn(f"fp8: a call compiles a {shape.describe()} of {shape.dtype} on "
                                  f"{device}, which fp8.torch.prepare was not told of",
                                  stacklevel=6)
                self._programs[shape, device] = self._make(shape, device)
            return self._programs[shape, device]

    def _make(self, shape, device):
        program, left = self._compile(shape, device)
        if left and shape.rows is not None and _has_state(program):
            # A layer has one state: the slots of all its programs are the same, so that rows
            # that do not suit FP8 are computed as any number of them is.
            every = shape._replace(rows=None)
            if (every, device) not in self._programs:
                self._programs[every, device], _ = self._compile(every, device)
            if _get_slots(self._programs[every, device]) != _get_slots(program):
                return self._programs[every, device]
        if left:
            reasons = "; ".join(f"{name}: {remark.reason}" for name, remark in left.items())
            warnings.warn(f"fp8: a {shape.describe()} is not all in FP8: {reasons}", stacklevel=5)
        return program

    def _compile(self, shape, device):
        """A program, and its remarks of what is not in FP8 by name."""
        target = self.target
        if target == "auto":
            target = "auto" if device == "cuda" else "cpu"
        program = compile_shape(shape, self.recipe, target, **self.options)
        return program, {remark.name: remark for remark in program.remarks
                         if remark.kind == "high precision"}


def _has_state(program):
    return any(function.takes_state for function in program.functions.values())


def _get_slots(program):
    return set(fp8.State(program).slots)


_known = {}


def get_programs(recipe, target="auto", options=()):
    """Those of a recipe's text, which all layers share."""
    key = recipe, target, options
    if key not in _known:
        _known[key] = Programs(recipe, target, dict(options))
    return _known[key]
