"""What of a model is neither quantized nor converted, computed so that the bits of a row depend on that row alone: norms,
linear layers in high precision, and attention of transformers' models. PyTorch's kernels choose by the number of rows."""

import copy
import functools
import inspect
import warnings

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from fp8.compiler import get_default_target
from fp8.torch import converted, expected, linear_programs, norm_programs
from fp8.torch.attention_programs import ELEMENTS
from fp8.torch.dense import make_dense, own

ATTENTION = "fp8_invariant"
_PROBES = (5,), (2, 3)
# What looks along other dimensions than the last one.
_OTHER_NORMS = nn.GroupNorm, nn.LocalResponseNorm, nn.modules.instancenorm._InstanceNorm, nn.modules.batchnorm._BatchNorm
_EMBEDDINGS_AND_CONVOLUTIONS = nn.Embedding, nn.EmbeddingBag, nn.modules.conv._ConvNd
_MATRIX_PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "einsum",
                    "tensordot", "bilinear", "dot", "inner", "scaled_dot_product_attention"}


def make_invariant(model):
    """Has all modules of a model that are not ours, and that look at a whole row, computed by programs of ours. Returns
    the model, which is changed. Those of which no formula is known are a warning. Nothing is left of a call before."""
    undo(model)
    unknown = []
    # Modules within have some of them, as an attention's out_proj.
    multiplied = {id(value) for module in model.modules() if converted.is_converted(module)
                  for value in converted.get_parameters(module).values()}
    for name, module in model.named_modules():
        if any(kind.__module__.startswith("fp8.") for kind in type(module).__mro__):
            continue
        forward = None if "forward" in vars(module) else _find_forward(module)
        if forward is not None:
            module.forward = forward
        elif _may_mix_rows(module, multiplied):
            unknown.append(name or type(module).__name__)
    if unknown:
        warnings.warn(f"fp8: bits of rows may depend on others behind {', '.join(unknown)}, whose formulas are not known",
                      stacklevel=3)
    for module in model.modules():
        # An outer model sets it of those within.
        if hasattr(module, "set_attn_implementation") and module.config._attn_implementation != ATTENTION:
            module._fp8_attention_before = _Before(_find_attention(module.config))
            module.set_attn_implementation(ATTENTION)
    return model


def undo(model):
    """The inverse, of what was not undone before."""
    for module in model.modules():
        forward = vars(module).get("forward")
        if isinstance(forward, functools.partial) and forward.func in (_compute_linear, _compute_norm, _compute_router):
            del module.forward
        before = vars(module).pop("_fp8_attention_before", None)
        if before is not None:
            module.set_attn_implementation(before.implementations)


def _find_forward(module):
    """What takes the place of a module's forward, or None."""
    if type(module) is nn.Linear:
        return functools.partial(_compute_linear, module) if _takes(module.weight) else None
    if _is_norm(module):
        kind = _find_kind(module)
        return None if kind is None else functools.partial(_compute_norm, module, kind)
    return functools.partial(_compute_router, module) if _is_router(module) else None


def _may_mix_rows(module, multiplied):
    """Whether PyTorch's kernels for a module may choose by the number of rows, as far as a name and parameters say that."""
    if any(True for _ in module.children()) or isinstance(module, _EMBEDDINGS_AND_CONVOLUTIONS):
        return False
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None and not module.training:
        return False
    name = type(module).__name__.lower()
    return "norm" in name or "embed" not in name and any(
        value.ndim in (2, 3) and value.is_floating_point() and id(value) not in multiplied
        for value in module.parameters(recurse=False))


def _takes(weight):
    return type(weight.detach()) is torch.Tensor and weight.dtype in ELEMENTS and not weight.is_meta


# ===----------------------------------------------------------------------===
# Attention of transformers' models
# ===----------------------------------------------------------------------===


class _Before:
    """What attention of a model was before. Where it is loaded, as within a model, the invariant one gets its name."""

    def __init__(self, implementations):
        from fp8.torch.transformers_attention import register_attention
        register_attention(ATTENTION, invariant=True)
        self.implementations = implementations

    def __reduce__(self):
        return _Before, (self.implementations,)


def _find_attention(config):
    """The attention of a configuration, and of those within it, as set_attn_implementation takes them."""
    own = {key: getattr(config, key, None) for key in getattr(config, "sub_configs", {})}
    own = {key: value._attn_implementation for key, value in own.items() if value is not None}
    return {"": config._attn_implementation, **own} if own else config._attn_implementation


# ===----------------------------------------------------------------------===
# Which formula a norm is
# ===----------------------------------------------------------------------===


def _is_norm(module):
    parameters = dict(module.named_parameters(recurse=False))
    has_width = "weight" in parameters or len(getattr(module, "normalized_shape", ())) == 1
    return "norm" in type(module).__name__.lower() and not isinstance(module, _OTHER_NORMS) and has_width and (
        not list(module.children()) and not list(module.buffers(recurse=False)) and set(parameters) <= {"weight", "bias"}
        and all(value.ndim == 1 and _takes(value) for value in parameters.values()))


def _find_epsilon(module):
    epsilon = next((value for name in ("variance_epsilon", "eps", "epsilon")
                    if isinstance(value := getattr(module, name, None), float)), None)
    # PyTorch takes that of what it computes in.
    return torch.finfo(torch.float32).eps if epsilon is None and isinstance(module, nn.RMSNorm) else epsilon


def _has_one_argument(module):
    _, *others = inspect.signature(type(module).forward).parameters.values()
    return len(others) == 1 and others[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def _find_kind(module):
    """Which formula a norm's forward is, by what it makes of rows and weights drawn at random, or None."""
    try:
        kinds = [_probe(module, sizes) for sizes in _PROBES] if _has_one_argument(module) else [None]
    except Exception:  # Who wrote the forward did not know of such rows.
        return None
    return kinds[0] if len(set(kinds)) == 1 else None


def _probe(module, sizes):
    generator = torch.Generator().manual_seed(0)
    probe = copy.copy(module)
    probe._parameters = {
        name: None if value is None else nn.Parameter(torch.randn(value.shape, generator=generator).to(value), False)
        for name, value in module._parameters.items()}
    weight, bias = (probe._parameters.get(name) for name in ("weight", "bias"))
    width = module.normalized_shape[0] if weight is None else weight.shape[0]
    x = torch.randn(*sizes, width, generator=generator)
    x = x if weight is None else x.to(weight)
    epsilon = _find_epsilon(module)
    if epsilon is None:
        return None
    with torch.no_grad():
        y = type(module).forward(probe, x)
        if not isinstance(y, torch.Tensor) or y.shape != x.shape or y.dtype != x.dtype:
            return None
        weight = x.new_ones(width) if weight is None else weight
        # Without weights only these are as PyTorch has them.
        kinds = norm_programs.KINDS if probe._parameters.get("weight") is not None else ("rms_wide", "layer")
        differ = {kind: _count_differences(y, norm_programs.compute(kind, x, weight, bias, epsilon)) for kind in kinds}
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


def _compute_norm(module, kind, *arguments, **named):
    x = next(iter((*arguments, *named.values())), None)
    if len(arguments) + len(named) != 1 or not _is_ours(x):
        return type(module).forward(module, *arguments, **named)
    weight, bias, epsilon = module._parameters.get("weight"), module._parameters.get("bias"), _find_epsilon(module)
    weight = x.new_ones(x.shape[-1]) if weight is None else weight
    if kind == "rms" and weight.dtype != x.dtype:
        # Weights in f32 beside activations in bf16, whose product is f32.
        return weight * _Norm.apply(x, torch.ones_like(weight, dtype=x.dtype), None, kind, epsilon)
    if kind in ("layer", "rms_wide") and x.is_cuda and torch.is_autocast_enabled("cuda"):
        x = x.float()  # As torch.autocast has it there.
    return _Norm.apply(x, weight, bias, kind, epsilon)


def _is_ours(x):
    return isinstance(x, torch.Tensor) and x.dtype in ELEMENTS and x.device.type in ("cpu", "cuda") and (
        not torch.compiler.is_compiling())


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, kind, epsilon):
        ctx.save_for_backward(x, weight, bias)
        ctx.kind, ctx.epsilon = kind, epsilon
        function = norm_programs.get_function(kind, x.dtype, weight.dtype, x.shape[-1], epsilon, bias is not None,
                                              _get_target(x))
        rows = make_dense(x).reshape(-1, x.shape[-1])
        return own(function(rows, make_dense(weight), *(() if bias is None else (make_dense(bias),))).reshape(x.shape))

    @staticmethod
    @once_differentiable
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


def _compute_linear(module, *arguments, **named):
    x = next(iter((*arguments, *named.values())), None)
    if len(arguments) + len(named) != 1 or not _is_ours(x):
        return type(module).forward(module, *arguments, **named)
    return _multiply(x, module.weight, module.bias)


def _multiply(x, weight, bias=None):
    """torch.nn.functional.linear of what is ours."""
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight, bias = (None if value is None else value.to(dtype) for value in (x, weight, bias))
    if x.dtype != weight.dtype or weight.dim() != 2 or bias is not None and bias.dtype != x.dtype:
        return nn.functional.linear(x, weight, bias)
    return _Linear.apply(x, weight, bias)


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
        return own(function(rows, make_dense(weight), *(() if bias is None else (make_dense(bias),))).reshape(
            *x.shape[:-1], outputs))

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows = grad.reshape(-1, grad.shape[-1])
        return (grad @ weight if of_x else None, rows.mT @ x.reshape(-1, x.shape[-1]) if of_weight else None,
                rows.sum(0) if of_bias else None)


# ===----------------------------------------------------------------------===
# Routers, and others that call torch.nn.functional.linear with a parameter of their own
# ===----------------------------------------------------------------------===


class _Multiplying(TorchFunctionMode):
    """Has ours in place of torch.nn.functional.linear, and counts products of both kinds."""

    def __init__(self):
        super().__init__()
        self.ours = self.others = 0

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        if function is nn.functional.linear and _is_ours(named.get("input", next(iter(arguments), None))):
            self.ours += 1
            named = {"x" if key == "input" else key: value for key, value in named.items()}
            return _multiply(*arguments, **named)
        self.others += getattr(function, "__name__", "") in _MATRIX_PRODUCTS
        return function(*arguments, **named)


def _is_router(module):
    """Whether all products of a module are of torch.nn.functional.linear, when it is called with rows."""
    weight = module._parameters.get("weight")
    if list(module.children()) or isinstance(module, (*_EMBEDDINGS_AND_CONVOLUTIONS, nn.Linear)) or weight is None or (
            weight.dim() != 2 or not _takes(weight)):
        return False
    x = torch.randn(5, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)
    try:
        with torch.no_grad(), _Multiplying() as products:
            type(module).forward(module, x)
    except Exception:  # Who wrote the forward did not know of such rows.
        return False
    return products.ours > 0 and products.others == 0


def _compute_router(module, *arguments, **named):
    with _Multiplying():
        return type(module).forward(module, *arguments, **named)
