"""A frozen quantized layer with a low-rank adapter beside it, as one function with a gradient.

y = base(x) + s (x A') B', of which the second term is added where the first one lies, and likewise
the two terms of dx. By themselves each would be a tensor of its own, and with an adapter in f32 one of
f32 beside activations in bf16: passes over memory that take longer than the base's products.
"""

import torch

from fp8.torch import quantized_linear
from fp8.torch.dense import is_plain, make_dense, own


def compute(base, x, dropped, a, b, scaling):
    """base(x) + scaling * (dropped a') b', all in the type of the base's result; a and b keep theirs, as
    do their gradients. `dropped` is x after its dropout, or x itself. Sums are f32, or what PyTorch has
    for products of that type."""
    if x.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        is_same = dropped is x
        x = x.to(dtype)
        dropped = x if is_same else dropped.to(dtype)
    if _is_simple(base, x, dropped, a, b):
        return _Adapted.apply(x, None if dropped is x else dropped, a, b, base, scaling)
    y = base(x)
    low = torch.nn.functional.linear(dropped.to(y.dtype), a.to(y.dtype)) * scaling
    return y + torch.nn.functional.linear(low, b.to(y.dtype))


def _is_simple(base, x, dropped, a, b):
    """Whether the base's result is nobody's but ours, and there is memory to compute on. Graphs of
    torch.compile have the two terms, whose sum is fused with what follows."""
    return (not torch.compiler.is_compiling() and is_plain(x, dropped, a, b)
            and type(base) is quantized_linear.QuantizedLinear and "forward" not in base.__dict__
            and not (base._forward_hooks or base._forward_pre_hooks or base._backward_hooks
                     or base._backward_pre_hooks))


class _Adapted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dropped, a, b, base, scaling):
        y = base(x)
        source = x if dropped is None else dropped
        a16, b16 = a.to(y.dtype), b.to(y.dtype)
        low = _flatten(source) @ a16.t()
        y.view(-1, y.shape[-1]).addmm_(low, b16.t(), alpha=scaling)
        ctx.save_for_backward(source, low, a16, b16)
        ctx.tensors, ctx.scheme, ctx.scaling = base.get_tensors(), base._scheme, scaling
        ctx.types = a.dtype, b.dtype
        return own(y)

    @staticmethod
    def backward(ctx, dy):
        quantized_linear.check_first()
        source, low, a, b = ctx.saved_tensors
        needs_x, needs_dropped, needs_a, needs_b = ctx.needs_input_grad[:4]
        dy = make_dense(dy)
        rows = _flatten(dy)
        dlow = (rows @ b).mul_(ctx.scaling)
        da = (dlow.t() @ _flatten(source)).to(ctx.types[0]) if needs_a else None
        db = (rows.t() @ low).mul_(ctx.scaling).to(ctx.types[1]) if needs_b else None
        dx = quantized_linear.differentiate(dy, ctx.tensors, ctx.scheme) if needs_x else None
        if needs_dropped:
            return dx, (dlow @ a).view(source.shape), da, db, None, None
        if needs_x:
            dx.view(-1, dx.shape[-1]).addmm_(dlow, a)
        return dx, None, da, db, None, None


def _flatten(value):
    return value if value.ndim == 2 else value.reshape(-1, value.shape[-1])
