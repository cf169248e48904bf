"""Custom operations of PyTorch that call programs of linear layers."""

import itertools
import os
import tempfile
import weakref

import torch

import fp8

_numbers = itertools.count()
_units = weakref.WeakValueDictionary()


class Unit:
    """What computes one layer under one recipe: programs, and a state if the recipe has one.

    Each backward ends a step, unless `steps` is off; a forward that activation checkpointing
    repeats before it so has the scales of the first one.
    """

    def __init__(self, programs, saved=None):
        self.programs, self.steps, self.state = programs, True, None
        self.number, self._saved = next(_numbers), saved
        self.used, self._functions = {}, {}
        _units[self.number] = self

    def _call(self, name, arguments, rows, weight_sizes, has_bias):
        first = arguments[0]
        key = name, rows, first.dtype, first.device.type
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._find(
                name, rows, weight_sizes, first.dtype, has_bias, first.device.type)
        with torch.no_grad():
            return function(*arguments, state=self.state if function.takes_state else None)

    def _find(self, name, rows, weight_sizes, dtype, has_bias, device):
        outputs, inputs = weight_sizes
        program = self.programs.get(rows, inputs, outputs, dtype, has_bias, device)
        function = program.functions[name]
        if function.takes_state and self.state is None:
            self._make_state(program)
        self.used[id(program)] = program
        return function

    def _make_state(self, program):
        self.state = fp8.State(program)
        if self._saved is not None:
            with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
                path = os.path.join(folder, "state.safetensors")
                with open(path, "wb") as file:
                    file.write(self._saved)
                self.state.load(path)
            self._saved = None

    def get_saved(self):
        """The state as the bytes of a file, or None: nothing has been computed."""
        if self.state is None:
            return self._saved
        with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
            path = os.path.join(folder, "state.safetensors")
            self.state.save(path)
            with open(path, "rb") as file:
                return file.read()

    def set_saved(self, saved):
        self.state, self._saved = None, saved
        self._functions = {}

    def forward(self, x, weight, bias):
        arguments = (x, weight) if bias is None else (x, weight, bias)
        return self._call("forward", arguments, x.shape[0], weight.shape, bias is not None)

    def backward(self, dy, x, weight, has_bias, needs_x, needs_weight):
        """dx, dweight and dbias, None for what is not needed."""
        sizes = x.shape[0], weight.shape, has_bias
        dx = dw = db = None
        if needs_x and needs_weight:
            dx, dw, *rest = self._call("backward", (dy, x, weight), *sizes)
        elif needs_x:
            dx, rest = self._call("dgrad", (dy, weight), *sizes), ()
        else:
            results = self._call("wgrad", (dy, x), *sizes)
            dw, *rest = results if isinstance(results, tuple) else (results,)
        if rest:
            db = rest[0]
        if self.steps and self.state is not None:
            self.state.end_step()
        return dx, dw, db


def _get_unit(number):
    unit = _units.get(number)
    if unit is None:
        raise fp8.ArgumentError("expected the layer of a compiled function to be alive, but it "
                                "is gone")
    return unit


@torch.library.custom_op("fp8::linear", mutates_args=())
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
           unit: int) -> torch.Tensor:
    """x w^T + b of a matrix x, all contiguous and of one dtype; `unit` is a Unit's number."""
    return _get_unit(unit).forward(x, weight, bias)


@linear.register_fake
def _(x, weight, bias, unit):
    return x.new_empty((x.shape[0], weight.shape[0]))


@torch.library.custom_op("fp8::linear_backward", mutates_args=())
def linear_backward(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, has_bias: bool,
                    unit: int, needs_x: bool, needs_weight: bool) -> list[torch.Tensor]:
    """Those of dx, dweight and dbias that are needed, in this order."""
    results = _get_unit(unit).backward(dy, x, weight, has_bias, needs_x, needs_weight)
    return [result for result in results if result is not None]


@linear_backward.register_fake
def _(dy, x, weight, has_bias, unit, needs_x, needs_weight):
    results = [x.new_empty(x.shape)] if needs_x else []
    if needs_weight:
        results.append(weight.new_empty(weight.shape))
        if has_bias:
            results.append(weight.new_empty(weight.shape[:1]))
    return results


def _save(ctx, inputs, output):
    x, weight, bias, ctx.unit = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight)


def _differentiate(ctx, dy):
    x, weight = ctx.saved_tensors
    needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
    # The gradient of a bias comes with that of the weight.
    computes_weight = needs_weight or needs_bias
    results = linear_backward(dy.contiguous(), x, weight, ctx.has_bias, ctx.unit, needs_x,
                              computes_weight)
    dx = results.pop(0) if needs_x else None
    dw = results.pop(0) if computes_weight else None
    db = results.pop(0) if computes_weight and ctx.has_bias else None
    return dx, dw if needs_weight else None, db if needs_bias else None, None


linear.register_autograd(_differentiate, setup_context=_save)


class Linear(torch.autograd.Function):
    """The same without what PyTorch does around custom operations, which takes the host longer
    than the launches: for eager mode."""

    @staticmethod
    def forward(ctx, x, weight, bias, unit):
        _save(ctx, (x, weight, bias, unit), None)
        return unit.forward(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        dx, dw, db = ctx.unit.backward(dy.contiguous(), x, weight, ctx.has_bias, needs_x,
                                       needs_weight or needs_bias)
        return dx, dw if needs_weight else None, db if needs_bias else None, None
