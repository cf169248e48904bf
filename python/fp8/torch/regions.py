"""Norms and MLPs of a model, compiled by themselves: what stands around them stays as it is.

    fp8.torch.quantize_for_inference(model)
    fp8.torch.compile_regions(model)

torch.compile of a whole forward also changes what is not ours, such as the mask that transformers makes for it, of which a
prompt's attention has nothing but more to read.
"""

import inspect

import torch
from torch import nn

from fp8.errors import ArgumentError
from fp8.torch import converted
from fp8.torch.quantized_linear import QuantizedLinear


def compile_regions(model, least_rows=128):
    """Has torch.compile compile a model's MLPs and norms, each kind of them once for all layers, when they are
    first called. Returns the model, which is changed.

    MLPs are modules of one argument whose children are linear layers and functions without weights: of quantized ones by
    the backend "fp8", as one part with the activation between, and of others by Inductor, as are norms. Widths
    are static, and batch and length dynamic, each but for 1. Attention, and what is called with fewer
    than `least_rows` rows, as in decoding, is as it was, and so is what torch.compile captures as a part of more.

    Raises ArgumentError for a model that has none, and for a `least_rows` that is no number of rows.
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"expected a module, but got {type(model).__name__}")
    if isinstance(least_rows, bool) or not isinstance(least_rows, int) or least_rows < 1:
        raise ArgumentError(f"expected least_rows to be a number above 0, but got {least_rows!r}")
    compiled = {}
    for module in model.modules():
        backend = _find_backend(module)
        if backend is None:
            continue
        key = type(module), backend
        if key not in compiled:
            compiled[key] = torch.compile(type(module).forward, backend=backend)
        # torch.nn.Module.compile sets the same, which is neither copied nor pickled.
        module._compiled_call_impl = _Region(module, compiled[key], least_rows)
    if not compiled:
        raise ArgumentError("expected a model with MLPs or norms, but got none")
    return model


class _Region:
    """What a call of a module is in place of its forward."""

    def __init__(self, module, function, least_rows):
        self._module, self._function, self._least_rows = module, function, least_rows

    def __call__(self, *arguments, **keywords):
        if torch.compiler.is_compiling() or not self._takes(arguments, keywords):
            return self._module._call_impl(*arguments, **keywords)
        x, = arguments
        for dim, size in enumerate(x.shape[:-1]):
            if size > 1:
                torch._dynamo.maybe_mark_dynamic(x, dim)
        torch._dynamo.mark_static(x, x.ndim - 1)
        return self._function(self._module, x)

    def _takes(self, arguments, keywords):
        if keywords or len(arguments) != 1 or not isinstance(arguments[0], torch.Tensor):
            return False
        x = arguments[0]
        # Dynamo does not look for hooks that come later.
        return x.ndim > 1 and x.shape[:-1].numel() >= self._least_rows and not any(
            map(_is_watched, self._module.modules()))


def _is_watched(module):
    """Whether a call of a module is more than its class's forward."""
    return "forward" in vars(module) or any(getattr(module, name) for name in (
        "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"))


def _find_backend(module):
    """What compiles a module, or None for one that is no region."""
    if not _has_one_argument(module) or "attention" in type(module).__name__.lower():
        return None
    children = list(module.children())
    if not children:
        is_norm = "norm" in type(module).__name__.lower() and not list(module.buffers(recurse=False))
        return "inductor" if is_norm and all(value.ndim == 1 for value in module.parameters()) else None
    layers = [child for child in children if _is_layer(child)]
    others = [child for child in children if not _is_layer(child)]
    has_others = any(list(child.parameters()) for child in others) or bool(list(module.parameters(recurse=False)))
    if len(layers) < 2 or has_others:
        return None
    return "fp8" if any(isinstance(child, QuantizedLinear) for child in layers) else "inductor"


def _is_layer(module):
    return isinstance(module, (QuantizedLinear, nn.Linear)) or converted.is_conv1d(module)


def _has_one_argument(module):
    parameters = list(inspect.signature(type(module).forward).parameters.values())[1:]
    return len(parameters) == 1 and parameters[0].kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
