"""Calls of attention that are like earlier ones: of these Python looks at what tells them apart, and no more.

Two things are kept. `Functions` are those of programs, by what they are of: from tensors to launches a call is then one of
C. `Call` is what a call of PyTorch's function means, by its sizes, strides and options, so that nothing of it is checked or
chosen again."""

import itertools

import torch

from fp8 import _core
from fp8.errors import UnsupportedError
from fp8.torch import attention_transforms
from fp8.torch.dense import is_on_gpu, is_recorded, make_dense

# What more calls would be kept of begins again.
_MOST = 256


class Functions:
    """Functions that were called with tensors on a GPU, by keys of who calls."""

    def __init__(self):
        self._clear()

    def _clear(self):
        # Other threads, as those of a backward on several GPUs, find all three or none, and no number twice.
        self._made = _core.PreparedCalls(), {}, itertools.count()

    def run(self, key, tensors, ends=False):
        """The results, a list, or None where no such call was added; with `ends` the step of the state ends behind it."""
        prepared, kinds, _ = self._made
        kind = kinds.get(key)
        return None if kind is None else prepared.run(kind, tensors, ends)

    def add(self, key, function, tensors, state=None):
        """An fp8.Function that has been called with such tensors, and its State or None."""
        if not function.runs_on_gpu:
            return
        if len(self._made[1]) >= _MOST:
            self._clear()
        prepared, kinds, numbers = self._made
        function.prepare(prepared, kinds.setdefault(key, next(numbers)), list(tensors), list(range(len(tensors))), state)

    def __reduce__(self):
        return Functions, ()


# Those of programs without a state.
shared = Functions()


class Calls(dict):
    """Calls by what `describe` says. A copy finds its own."""

    def keep(self, told, call):
        if len(self) >= _MOST:
            self.clear()
        self[told] = call

    def __reduce__(self):
        return Calls, ()


def _is_number(value):
    return value is None or type(value) in (int, float)


def describe(number, query, key, value, is_causal, scale, enable_gqa, window, bottom_right, cap):
    """What tells calls of an Attention of that number apart, of tensors alone, first whether there is a gradient; or None where
    more has to be looked at: what is no plain tensor, or seen by modes and transforms, or converted."""
    plain = torch.Tensor
    if type(query) is not plain or type(key) is not plain or type(value) is not plain or is_recorded() or (
            torch._C._functorch.peek_interpreter_stack() is not None):
        return None
    if not _is_number(scale) or not _is_number(cap) or type(is_causal) is not bool:
        return None
    kind, dtype = query.device.type, query.dtype
    if kind not in ("cpu", "cuda") or torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) != dtype:
        return None
    # Autocast makes them of one type, and what comes here again would be as it was given.
    if key.dtype != dtype or value.dtype != dtype:
        return None
    saves = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    return (saves, number, query.shape, key.shape, value.shape, query.stride(), key.stride(), value.stride(), dtype, query.device,
            key.device, value.device, is_causal, scale, enable_gqa, window if window is None else tuple(window), bottom_right,
            cap)


class Call:
    """What a call means: `options` of attention_ops, and whether its result `saves` tensors for a gradient."""

    def __init__(self, options, saves, query, value):
        from fp8.torch import attention_backward, attention_ops
        self.ops, self.backward = attention_ops, attention_backward
        self.options, self.saves, self.heads_first = options, saves, options.heads_first
        self.saves_codes = saves and options.format is not None
        # Whether the gradient is that of codes, by our kernel.
        self.is_ours = self.saves_codes and is_on_gpu(query) and query.numel() > 0 and value.numel() > 0 and (
            attention_backward.is_consistent(options.accumulate)
            and not attention_transforms.find_block(attention_transforms.split(options.format)[1]) and attention_backward.takes_codes(query, value, query.dtype, False))
        self.rule = attention_backward.Rule(options.scale, options.left, options.right, options.bottom_right, options.cap,
                                            options.dropout)

    def attend(self, query, key, value):
        """The result, of batches x heads x positions x columns, as they are."""
        # What is kept for the gradient has to be what whoever changes the result changes: a view of it is made outside.
        output = Attend.apply(query, key, value, self) if self.saves else self.compute(self.arrange((query, key, value)))[0]
        return output if self.heads_first else output.transpose(1, 2)

    def arrange(self, tensors):
        """Tensors as programs take them: dense, and turned if positions lie outside of heads."""
        if not self.heads_first:
            tensors = [x.transpose(1, 2) for x in tensors]
        return [x if x.is_contiguous() and not x.is_neg() else make_dense(x) for x in tensors]

    def compute(self, tensors):
        return self.ops.compute(*tensors, self.ops.NO_OTHERS, self.options, self.saves_codes, codes=True)

    def find_unit(self):
        """The AttentionUnit that has its scales, or None. A Call, which that keeps, has its number alone."""
        return self.ops.linear_ops.get_unit(self.options.unit) if self.options.unit >= 0 else None

    def differentiate(self, unit, grad, query, key, value, factors, output, lse):
        """The gradients of tensors as programs take them."""
        if not self.is_ours or grad.dtype != output.dtype:
            return self.ops.run_backward(grad, query, key, value, factors, output, lse, None, None, None, None, *self.options)
        results = self.backward.run_codes(grad, (query, key, value), factors, output, lse, self.rule, self.heads_first, unit)
        return attention_transforms.differentiate(results, self.options.format)


class Attend(torch.autograd.Function):
    """A Call with a gradient. The result is as programs have it."""

    @staticmethod
    def forward(ctx, query, key, value, call):
        # The unit lives as long as the graph.
        ctx.unit, tensors = call.find_unit(), call.arrange((query, key, value))
        output, lse, *codes = call.compute(tensors)
        ctx.call, factors, kept = call, codes[1::2], output
        ctx.coded = None if type(output) is torch.Tensor else query.dtype
        if ctx.coded is not None:
            kept, factors = output.codes, [*factors, output.factor]
        # As attention_ops does, since checkpointing compares both.
        ctx.save_for_backward(*(codes[::2] or tensors), kept, lse, *factors)
        return output

    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise UnsupportedError("expected a backward without create_graph, since attention in FP8 has no second "
                                   "derivative")
        query, key, value, output, lse, *factors = ctx.saved_tensors
        call = ctx.call
        if ctx.coded is not None:
            from fp8.torch import coded_results
            output = coded_results.widen(output, factors.pop(), ctx.coded)
        grads = call.differentiate(ctx.unit, make_dense(grad), query, key, value, factors, output, lse)
        if not call.heads_first:
            grads = [x.transpose(1, 2) for x in grads]
        return *(x if needs else None for x, needs in zip(grads, ctx.needs_input_grad)), None
