"""Custom operations of PyTorch for products of groups of rows with a matrix each, as those of a
mixture of experts whose weights are one parameter."""

from collections import namedtuple

import torch

from fp8.errors import UnsupportedError
from fp8.torch import flops, operations
from fp8.torch.dense import make_dense, wait
from fp8.torch.linear_ops import Unit, get_unit
from fp8.torch.linear_programs import ELEMENTS


class GroupedShape(namedtuple("GroupedShape", "rows groups inputs outputs dtype is_transposed")):
    """What a program is of: sizes and dtype; the rows of x, None for any number; and whether
    weights are [groups, inputs, outputs] in place of [groups, outputs, inputs]."""

    __slots__ = ()

    def describe(self):
        return (f"product of {self.groups} groups with {self.inputs} inputs and {self.outputs} "
                f"outputs with {self.rows or 'any number of'} rows")

    def write(self):
        """The text of its functions:

        - `forward(x, weight, ends) -> y`, where `ends` has where each group of rows ends;
        - `backward(dy, x, weight, ends) -> (dx, dweight)`;
        - `dgrad(dy, weight, ends)` and `wgrad(dy, x, ends)`, which are halves of it.
        """
        return (self._write("forward", ["fprop"]) + self._write("backward", ["dgrad", "wgrad"])
                + self._write("dgrad", ["dgrad"]) + self._write("wgrad", ["wgrad"]))

    def _write(self, name, products):
        element = ELEMENTS[self.dtype]

        def type(*sizes):
            sizes = "".join("?x" if size is None else f"{size}x" for size in sizes)
            return f"tensor<{sizes}{element}>"

        groups, rows = self.groups, self.rows
        order = [self.outputs, self.inputs]
        if self.is_transposed:
            order.reverse()
        types = {"x": type(rows, self.inputs), "dy": type(rows, self.outputs),
                 "w": type(groups, *order)}
        infos = {"x": 'fp8.name = "x"', "dy": 'fp8.name = "dy", fp8.grad',
                 "w": 'fp8.name = "weight", fp8.weight'}
        # The second has K in front where it is called transposed, as the first has of a wgrad.
        both = ("x", "dy") if self.is_transposed else ("dy", "x")
        forms = {"fprop": ("x", "w", " transpose_b" * self.is_transposed, "dy"),
                 "dgrad": ("dy", "w", " transpose_b" * (not self.is_transposed), "x"),
                 "wgrad": (*both, " transpose_a transpose_b", "w")}
        used = {operand for product in products for operand in forms[product][:2]}
        arguments = [f"%{operand}: {types[operand]} {{{infos[operand]}}}"
                     for operand in ("dy", "x", "w") if operand in used]
        kinds = ", ".join(types[forms[product][3]] for product in products)
        body = ""
        for product in products:
            a, b, flags, result = forms[product]
            body += f"""\
  %{product} = fp8.grouped_matmul %{a}, %{b} offsets(%offsets : tensor<{groups + 1}xi32>){flags}
      accumulate = fast {{fp8.name = "{product}", fp8.role = #fp8.role<{product}>}}
      : {types[a]}, {types[b]} -> {types[result]}
"""
        return f"""
func.func @{name}({", ".join(arguments)},
    %ends: tensor<{groups}xi32> {{fp8.name = "ends"}}) -> ({kinds}) {{
  %zero = arith.constant dense<0> : tensor<1xi32>
  %offsets = tensor.concat dim(0) %zero, %ends
      : (tensor<1xi32>, tensor<{groups}xi32>) -> tensor<{groups + 1}xi32>
{body}  return {", ".join(f"%{product}" for product in products)} : {kinds}
}}
"""


class GroupedUnit(Unit):
    """What computes the products with one parameter of three dimensions under one recipe."""

    # Whether numbers of rows are others in each call, as of tokens that come from other ranks: then programs are for any.
    rows_vary = False

    def _get(self, name, rows, *others, **options):
        return super()._get(name, None if GroupedUnit.rows_vary else rows, *others, **options)

    def _make_shape(self, rows, weight_sizes, dtype, has_bias):
        return GroupedShape(rows, weight_sizes[0], *self.get_sizes(weight_sizes[1:]), dtype,
                            self.is_transposed)

    def multiply(self, x, weight, ends):
        with torch.no_grad():
            function = self._get("forward", x.shape[0], weight, False)
            return function({"x": x, "weight": weight, "ends": ends}, self.state)[0]

    def differentiate(self, dy, x, weight, ends, needs_x, needs_weight):
        """Those of dx and dweight that are needed, in this order."""
        name = "backward" if needs_x and needs_weight else "dgrad" if needs_x else "wgrad"
        with torch.no_grad():
            function = self._get(name, dy.shape[0], weight, False)
            results = function({"dy": dy, "x": x, "weight": weight, "ends": ends}, self.state)
        if self.steps:
            self.end_step()
        return results


def _infer(x, weight, ends, unit):
    return x.new_empty((x.shape[0], get_unit(unit).get_sizes(weight.shape[1:])[1]))


def _infer_backward(dy, x, weight, ends, unit, needs_x, needs_weight):
    return [value.new_empty(value.shape)
            for value, is_needed in ((x, needs_x), (weight, needs_weight)) if is_needed]


# Each group of rows of x times the transpose of its matrix, or the matrix where the Unit
# is_transposed; all contiguous. Groups end where `ends`, of int32, says.
_forward = operations.define(
    "grouped_linear_forward(Tensor x, Tensor weight, Tensor ends, int unit) -> Tensor",
    lambda x, weight, ends, unit: get_unit(unit).multiply(x, weight, ends), _infer, flops=flops.count_grouped)
# Those of dx and dweight that are needed, in this order.
_backward = operations.define(
    "grouped_linear_backward(Tensor dy, Tensor x, Tensor weight, Tensor ends, int unit, "
    "bool needs_x, bool needs_weight) -> Tensor[]",
    lambda dy, x, weight, ends, unit, *needs: get_unit(unit).differentiate(
        dy, x, weight, ends, *needs), _infer_backward, flops=flops.count_grouped_backward)


def _save(ctx, inputs, output):
    x, weight, ends, ctx.unit = inputs
    ctx.save_for_backward(x, weight, ends)


def _differentiate(ctx, backward, dy):
    needs_x, needs_weight, *_ = ctx.needs_input_grad
    results = list(backward(make_dense(wait(dy)), *ctx.saved_tensors, ctx.unit, needs_x, needs_weight))
    dx = results.pop(0) if needs_x else None
    return dx, results.pop(0) if needs_weight else None, None, None


class _Traced(torch.autograd.Function):
    """What graphs record: the operations of both directions."""

    @staticmethod
    def forward(ctx, x, weight, ends, unit):
        _save(ctx, (x, weight, ends, unit), None)
        return _forward(x, weight, ends, unit)

    @staticmethod
    def backward(ctx, dy):
        return _differentiate(ctx, _backward, dy)


# As grouped_linear_forward, with a gradient.
grouped_linear = operations.define_composite(
    "grouped_linear(Tensor x, Tensor weight, Tensor ends, int unit) -> Tensor",
    _Traced.apply)


class GroupedLinear(torch.autograd.Function):
    """The same for eager mode, as linear_ops.Linear is."""

    @staticmethod
    def forward(ctx, x, weight, ends, unit):
        _save(ctx, (x, weight, ends, unit), None)
        return unit.multiply(x, weight, ends)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise UnsupportedError("expected a backward without create_graph, since a layer in FP8 "
                                   "has no second derivative")
        return _differentiate(ctx, lambda *arguments: arguments[4].differentiate(
            *arguments[:4], *arguments[5:]), dy)
