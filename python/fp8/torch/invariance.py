"""What of a model is neither quantized nor converted, computed so that the bits of a row depend on that row alone: norms,
linear layers in high precision, and attention of transformers' models. PyTorch's kernels choose by the number of rows."""

import copy
import functools
import warnings

import torch
from torch import nn

from fp8.compiler import get_default_target
from fp8.torch import expected, linear_programs, norm_programs
from fp8.torch.attention_programs import ELEMENTS
from fp8.torch.dense import make_dense

ATTENTION = "fp8_invariant"
_PROBE_ROWS = 5


def make_invariant(model):
    """Has all modules of a model that are not ours, and that look at a whole row, computed by programs of ours. Returns
    the model, which is changed. A norm of which no formula is known is a warning."""
    unknown = []
    for name, module in model.named_modules():
        if "forward" in vars(module):
            continue
        if type(module) is nn.Linear and _takes(module.weight):
            module.forward = functools.partial(_compute_linear, module)
        elif _is_norm(module):
            kind = _find_kind(module)
            if kind is None:
                unknown.append(name)
            else:
                module.forward = functools.partial(_compute_norm, module, kind)
    if unknown:
        warnings.warn(f"fp8: bits of rows may depend on others behind {', '.join(unknown)}, whose formulas are not known",
                      stacklevel=3)
    if hasattr(model, "set_attn_implementation"):
        from fp8.torch.transformers_attention import register_attention
        register_attention(ATTENTION, invariant=True)
        model.set_attn_implementation(ATTENTION)
    return model


def undo(module):
    """The inverse, of one module."""
    forward = vars(module).get("forward")
    if isinstance(forward, functools.partial) and forward.func in (_compute_linear, _compute_norm):
        del module.forward


def _takes(weight):
    return type(weight.detach()) is torch.Tensor and weight.dtype in ELEMENTS and not weight.is_meta


def _is_norm(module):
    parameters = dict(module.named_parameters(recurse=False))
    return "norm" in type(module).__name__.lower() and not list(module.children()) and (
        not list(module.buffers(recurse=False)) and "weight" in parameters and set(parameters) <= {"weight", "bias"}
        and all(value.ndim == 1 and _takes(value) for value in parameters.values()))


def _find_epsilon(module):
    return next((value for name in ("variance_epsilon", "eps", "epsilon")
                 if isinstance(value := getattr(module, name, None), float)), None)


def _find_kind(module):
    """Which formula a norm's forward is, by what it makes of rows and weights drawn at random, or None."""
    epsilon = _find_epsilon(module)
    if epsilon is None:
        return None
    generator = torch.Generator().manual_seed(0)
    probe = copy.copy(module)
    probe._parameters = {
        name: None if value is None else nn.Parameter(torch.randn(value.shape, generator=generator).to(value), False)
        for name, value in module._parameters.items()}
    width = module.weight.shape[0]
    x = torch.randn(_PROBE_ROWS, width, generator=generator).to(module.weight)
    with torch.no_grad():
        y = type(module).forward(probe, x)
        if not isinstance(y, torch.Tensor) or y.shape != x.shape or y.dtype != x.dtype:
            return None
        weights = probe._parameters["weight"], probe._parameters.get("bias")
        differ = {kind: _count_differences(y, norm_programs.compute(kind, x, *weights, epsilon)) for kind in norm_programs.KINDS}
    kind = min(differ, key=differ.get)
    return kind if differ[kind] < 0.1 else None


def _count_differences(y, other):
    """The share of elements that differ; 1 if some do by more than roundings. In f32, where formulas that round elsewhere
    are the same, none counts."""
    far = (y - other).abs().float() > 8 * torch.finfo(y.dtype).eps * torch.maximum(y.abs(), other.abs()).float() + 1e-6
    if bool(far.any()) or y.dtype == torch.float32:
        return float(far.any())
    return (y != other).float().mean().item()


def _get_target(x):
    return get_default_target() if x.is_cuda else "cpu"


# ===----------------------------------------------------------------------===
# Norms
# ===----------------------------------------------------------------------===


def _compute_norm(module, kind, x):
    if torch.compiler.is_compiling() or x.dtype not in ELEMENTS or x.device.type not in ("cpu", "cuda"):
        return type(module).forward(module, x)
    weight, bias, epsilon = module.weight, module._parameters.get("bias"), _find_epsilon(module)
    if kind == "rms" and weight.dtype != x.dtype:
        # Weights in f32 beside activations in bf16, whose product is f32.
        return weight * _Norm.apply(x, torch.ones_like(weight, dtype=x.dtype), None, kind, epsilon)
    if kind in ("layer", "rms_wide") and x.is_cuda and torch.is_autocast_enabled("cuda"):
        x = x.float()  # As torch.autocast has it there.
    return _Norm.apply(x, weight, bias, kind, epsilon)


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, kind, epsilon):
        ctx.save_for_backward(x, weight, bias)
        ctx.kind, ctx.epsilon = kind, epsilon
        function = norm_programs.get_function(kind, x.dtype, weight.dtype, x.shape[-1], epsilon, bias is not None,
                                              _get_target(x))
        rows = make_dense(x).reshape(-1, x.shape[-1])
        return function(rows, make_dense(weight), *(() if bias is None else (make_dense(bias),))).reshape(x.shape)

    @staticmethod
    def backward(ctx, grad):
        tensors = [None if value is None else value.detach().requires_grad_(needs)
                   for value, needs in zip(ctx.saved_tensors, ctx.needs_input_grad)]
        with torch.enable_grad():
            y = norm_programs.compute(ctx.kind, *tensors, ctx.epsilon)
        needed = [value for value in tensors if value is not None and value.requires_grad]
        found = iter(torch.autograd.grad(y, needed, grad))
        return *(next(found) if value is not None and value.requires_grad else None for value in tensors), None, None


# ===----------------------------------------------------------------------===
# Linear layers in high precision
# ===----------------------------------------------------------------------===


def _compute_linear(module, x):
    if torch.compiler.is_compiling() or x.dtype != module.weight.dtype or x.device.type not in ("cpu", "cuda"):
        return nn.functional.linear(x, module.weight, module.bias)
    return _Linear.apply(x, module.weight, module.bias)


@functools.lru_cache(maxsize=256)
def _get_linear(inputs, outputs, dtype, has_bias, target):
    shape = linear_programs.Shape(None, inputs, outputs, dtype, has_bias)
    return expected.compile(shape.describe, [("linear", outputs, inputs)], shape.write_forward(), target=target,
                            invariant=True).functions["forward"]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        outputs, inputs = weight.shape
        function = _get_linear(inputs, outputs, weight.dtype, bias is not None, _get_target(x))
        rows = make_dense(x).reshape(-1, inputs)
        if rows.shape[0] == 0:
            return x.new_empty((*x.shape[:-1], outputs))
        return function(rows, make_dense(weight), *(() if bias is None else (make_dense(bias),))).reshape(
            *x.shape[:-1], outputs)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows = grad.reshape(-1, grad.shape[-1])
        return (grad @ weight if of_x else None, rows.mT @ x.reshape(-1, x.shape[-1]) if of_weight else None,
                rows.sum(0) if of_bias else None)
