"""What every recipe does to a training step of a model: the page of `fp8.torch.report(model, batch, path)`.

The model runs as it is, and what its layers multiply is kept: activations, weights and gradients. Then
each layer's three products run on the CPU under each recipe (fp8.report).
"""

import functools

import ml_dtypes
import torch
from torch import nn

from fp8 import report, report_page
from fp8.errors import ArgumentError
from fp8.torch import converted, inference
from fp8.torch.linear_programs import ELEMENTS, Shape

_ROLES = "fprop", "dgrad", "wgrad"


class _Step:
    """What a layer multiplied in its first call of a step: x, weight and y, which has a gradient."""

    def __init__(self, x, weight, y, is_transposed):
        self.is_transposed, self.y = is_transposed, y
        self.x, self.weight = (_copy(value, y.dtype) for value in (x, weight))
        self.dy = None

    @property
    def shape(self):
        inputs, outputs = self.weight.shape if self.is_transposed else reversed(self.weight.shape)
        return Shape(self.x.shape[0], inputs, outputs, self.x.dtype, False, False, self.is_transposed)


def _copy(tensor, dtype):
    """A matrix of a type on the CPU, of its own."""
    matrix = tensor.detach().reshape(-1, tensor.shape[-1]).to(dtype)
    return matrix.to("cpu", copy=True).contiguous()


def measure(model, batch, loss=None, recipes=report.RECIPES, note=lambda text: None):
    """fp8.report.Measurements of a training step of a model, with products `name`, `name.dgrad` and
    `name.wgrad` for each linear layer that the batch reaches.

    - batch: a tensor, a tuple of arguments or a dictionary of them by name;
    - loss: of what the model returns, a function that makes a scalar; None for `.loss` of that, or for
      itself if it is one;
    - recipes, note: as fp8.report.measure has them.

    The model is as it was before: gradients, buffers and the random state. Of a layer that is called
    more than once the first call counts. Raises ArgumentError.
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"expected a module, but got {type(model).__name__}")
    steps = _run(model, batch, loss)
    if not steps:
        raise ArgumentError("expected a model with linear layers that the batch reaches, but got none")
    result = report.Measurements(type(model).__name__, "training step", tuple(recipes))
    for name, step in steps.items():
        note(name)
        has_gradient = step.dy is not None
        dy = step.dy if has_gradient else step.x.new_zeros(step.x.shape[0], step.shape.outputs)
        found = _plan(step.shape, tuple(recipes)).measure({
            name: _make_array(value)
            for name, value in (("x", step.x), ("weight", step.weight), ("dy", dy))})
        _add(result, name, found, _ROLES if has_gradient else _ROLES[:1])
    for name, module in inference.find_layers(model).items():
        if name not in steps:
            sizes = next((value.shape for value in module.parameters()), ())
            reason = ("the batch does not reach it" if _is_linear(module) else
                      f"a {type(module).__name__} is no nn.Linear")
            result.products[name] = report.Product(
                name, "", "x".join(map(str, sizes)), reasons={"all": (reason, "")})
    return result


def _make_array(tensor):
    """A tensor as NumPy has it, which has no bf16 of its own."""
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


@functools.lru_cache(maxsize=64)
def _plan(shape, recipes):
    return report.Plan(shape.write_step(), "step", recipes, cache=True)


def _add(result, layer, found, roles):
    """Adds a layer's measurements under its name."""
    def rename(name):
        role, _, operand = name.partition(".")
        return f"{layer}.{operand}" if role == "fprop" else f"{layer}.{role}.{operand}"
    for role in roles:
        product = found.products[role]
        product.name = layer if role == "fprop" else f"{layer}.{role}"
        product.operands = tuple(map(rename, product.operands))
        result.products[product.name] = product
    kept = {name for name in found.tensors if name.partition(".")[0] in roles}
    result.tensors.update((rename(name), found.tensors[name]) for name in kept)
    # The first recipe may share what others have of each product.
    histograms = {name.rpartition(".")[2]: value for name, value in found.histograms.items()}
    result.histograms.update((rename(name), histograms[name.rpartition(".")[2]])
                             for name in kept if name.rpartition(".")[2] in histograms)
    result.failures.update(found.failures)


def _is_linear(module):
    return isinstance(module, nn.Linear) or converted.is_conv1d(module)


def _run(model, batch, loss):
    """The _Steps of layers by name."""
    steps, hooks = {}, []

    def keep(name):
        def record(module, arguments, keywords, y):
            x = arguments[0] if arguments else next(iter(keywords.values()))
            if name not in steps and isinstance(y, torch.Tensor) and y.dtype in ELEMENTS and x.numel():
                steps[name] = _Step(x, module.weight, y, converted.is_conv1d(module))
        return record

    buffers = [(value, value.clone()) for value in model.buffers() if value.device.type != "meta"]
    devices = sorted({value.device.index or 0 for value in model.parameters() if value.is_cuda})
    try:
        hooks = [module.register_forward_hook(keep(name), with_kwargs=True)
                 for name, module in model.named_modules()
                 if _is_linear(module) and getattr(module, "weight", None) is not None
                 and not isinstance(module, inference.QuantizedWeight)]
        with torch.random.fork_rng(devices), torch.enable_grad():
            value = _find_loss(_call(model, batch), loss)
            _differentiate(value, steps)
    finally:
        for hook in hooks:
            hook.remove()
        with torch.no_grad():
            for value, saved in buffers:
                value.copy_(saved)
    return steps


def _differentiate(value, steps):
    """Gives the steps their gradients, of those that have one."""
    reached = [step for step in steps.values() if step.y.requires_grad]
    gradients = torch.autograd.grad(value, [step.y for step in reached], allow_unused=True) if (
        reached and value.requires_grad) else ()
    for step, gradient in zip(reached, gradients):
        if gradient is not None:
            step.dy = _copy(gradient, step.x.dtype)
    for step in steps.values():
        step.y = None


def _call(model, batch):
    if isinstance(batch, torch.Tensor):
        return model(batch)
    if isinstance(batch, (tuple, list)):
        return model(*batch)
    try:
        return model(**batch)
    except TypeError as error:
        if hasattr(batch, "keys"):
            raise
        raise ArgumentError(f"expected a batch that is a tensor, a tuple or a dictionary, but got a "
                            f"{type(batch).__name__}") from error


def _find_loss(output, loss):
    value = getattr(output, "loss", None) if loss is None else loss(output)
    if loss is None and value is None:
        value = output
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise ArgumentError(f"expected a loss of one element: loss=, a function of what the model "
                            f"returns, or targets in the batch, but got a {type(value).__name__}")
    return value


def write(model, batch, path, **options):
    """Measurements of a step, whose page is written to `path` and their recipe file beside it, with
    the ending .json. Options are those of `measure`. Raises ArgumentError and FileError."""
    paths = report_page.name_files(path)
    measured = measure(model, batch, **options)
    report_page.write_files(measured, paths)
    return measured
