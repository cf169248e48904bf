"""Models for inference under tensor parallelism: a rank has rows or columns of the weights, wherever they are cut.

    fp8.torch.load_quantized(model, directory)
    fp8.torch.cut_for_inference(model)

Scales of blocks are those of the whole weight, whose blocks begin where the whole does: of rows that a block is cut between,
each gets its scale; of columns a rank has all that share a block with its own, of which others are zeros.
"""

import dataclasses
import fnmatch

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from fp8.errors import ArgumentError, MismatchError, UnsupportedError
from fp8.torch import arranged, code_order, inference, packed, schemes
from fp8.torch.quantized_linear import QuantizedLinear, QuantizedWeight

ROWS, COLUMNS = "colwise", "rowwise"  # Torch's names are of the transposed weight.
# Layers that are the same on all ranks, whose results transformers' plans gather or share.
_WHOLE = {"colwise_gather_output", "colwise_rep", "replicated_with_grad_allreduce", "replicate"}


class Columns(nn.Module):
    """A linear layer of some columns of a weight, whose results are a sum over ranks, to which a bias is added once."""

    def __init__(self, layer, bias, begin, end, group):
        super().__init__()
        self.layer, self.group, self.padding = layer, group, (begin, end)
        self.register_parameter("bias", bias)

    def forward(self, input):
        if self.padding != (0, 0):
            input = F.pad(input, self.padding)
        y = self.layer(input)
        if dist.is_initialized() and dist.get_world_size(self.group) > 1:
            from torch.distributed import _functional_collectives as collectives
            y = collectives.wait_tensor(collectives.all_reduce(y, "sum", self.group or dist.group.WORLD))
        return y if self.bias is None else y + self.bias.to(y.dtype)


def _take_rows(name, tensor, scheme, n, begin, end):
    """What is stored of rows of a weight."""
    if name == "weight_exponents":
        return tensor[:, begin:end]
    if tensor.ndim < 2 or name == "weight_scale" and tensor.shape[0] == 1 and scheme.weight_block[0] is None:
        return tensor
    rows = scheme.weight_block[0]
    if name == "weight_scale" and rows not in (None, 1):
        if begin % rows == 0 and (end % rows == 0 or end == n):
            return tensor[begin // rows:-(-end // rows)]
        return tensor[torch.arange(begin, end, device=tensor.device) // rows]
    return tensor[begin:end]


def take_rows(layer, begin, end):
    """The QuantizedLinear of rows of a QuantizedLinear's weight, with their codes and scales."""
    scheme, n, rows = layer.scheme, layer.out_features, layer.scheme.weight_block[0]
    tensors = {name: _take_rows(name, value.data, scheme, n, begin, end).contiguous()
               for name, value in layer.named_parameters() if name != "bias"}
    if rows not in (None, 1) and (begin % rows or end % rows and end != n):
        scheme = dataclasses.replace(scheme, weight_block=(1, scheme.weight_block[1]))
    bias = None if layer.bias is None else layer.bias[begin:end].clone()
    return _settle(QuantizedLinear(layer.in_features, end - begin, scheme, tensors, bias))


def _settle(part):
    """A part, of whose sizes kernels may not read codes as they lie in the whole."""
    scheme = part.scheme
    if scheme.arranged and arranged.find_reason_of_sizes(scheme, part.out_features, part.in_features):
        arranged.set_arranged(part, False)
    return part


def _find_unit(scheme):
    """Columns that share something stored, so that what begins with them is a weight of its own."""
    if scheme.packed:
        return packed.WORD
    return max(code_order.BLOCK if scheme.arranged else 16, scheme.weight_block[1] or 1)


def _take_columns(name, tensor, scheme, begin, end):
    if name == "weight_exponents":
        return tensor[begin // packed.WORD:-(-end // packed.WORD)]
    if name == "weight_scale":
        columns = scheme.weight_block[1]
        return tensor if columns is None or scheme.packed else tensor[:, begin // columns:-(-end // columns)]
    if name not in ("weight", "weight_packed", "weight_arranged"):
        return tensor
    return tensor[:, begin // 2:end // 2] if scheme.shares_bytes else tensor[:, begin:end]


def take_columns(layer, begin, end):
    """The QuantizedLinear of columns of a weight without its bias, and how many columns of zeros are before and behind those:
    activations have to have as many zeros there."""
    scheme, k, unit = layer.scheme, layer.in_features, _find_unit(layer.scheme)
    first, last = begin // unit * unit, min(-(-end // unit) * unit, k)
    tensors = {name: _take_columns(name, value.data, scheme, first, last).clone(memory_format=torch.contiguous_format)
               for name, value in layer.named_parameters() if name != "bias"}
    if "weight" in tensors:
        # A NaN of other ranks' would be one of all.
        codes = tensors["weight"].view(torch.uint8)
        codes[:, :begin - first] = 0
        codes[:, codes.shape[1] - (last - end):] = 0
    return _settle(QuantizedLinear(last - first, layer.out_features, scheme, tensors)), begin - first, last - end


def _take_plain(layer, dim, begin, end):
    weight = layer.weight.narrow(dim, begin, end - begin)
    part = nn.Linear(weight.shape[1], weight.shape[0], layer.bias is not None and dim == 0, device="meta")
    part.weight = nn.Parameter(weight.clone(memory_format=torch.contiguous_format), layer.weight.requires_grad)
    if part.bias is not None:
        part.bias = nn.Parameter(layer.bias[begin:end].clone(), layer.bias.requires_grad)
    return part


def cut(layer, style, rank, degree, group=None):
    """The part of a linear layer, quantized or not, that one of `degree` ranks has: of torch.chunk's sizes. "colwise" takes
    rows of the weight, and has a part of the result; "rowwise" takes columns, of which activations have a part. Raises
    ArgumentError."""
    size = layer.out_features if style == ROWS else layer.in_features
    if not 0 <= rank < degree:
        raise ArgumentError(f"expected a rank of {degree}, from 0 on, but got {rank}")
    each = -(-size // degree)
    begin, end = min(rank * each, size), min((rank + 1) * each, size)
    if begin == end:
        raise ArgumentError(f"expected a part for each of {degree} ranks, but {size} are too few")
    is_quantized = isinstance(layer, QuantizedLinear)
    if style == ROWS:
        return take_rows(layer, begin, end) if is_quantized else _take_plain(layer, 0, begin, end)
    made = take_columns(layer, begin, end) if is_quantized else (_take_plain(layer, 1, begin, end), 0, 0)
    return Columns(made[0], layer.bias, *made[1:], group)


def _find_plan(model):
    """transformers' plan of a model, by names of modules of it."""
    plan = getattr(getattr(model, "config", None), "base_model_tp_plan", None)
    if not plan:
        raise ArgumentError(f"expected a plan for a {type(model).__name__}, which brings none")
    prefix = getattr(model, "base_model_prefix", "")
    return {f"{prefix}.{name}" if prefix and hasattr(model, prefix) else name: style for name, style in plan.items()}


def _check_heads(model, degree):
    config = getattr(model, "config", None)
    for name in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(config, name, None)
        if heads is not None and heads % degree:
            raise MismatchError(f"expected {name} to be a multiple of the ranks, but got {heads} of {degree}")


def cut_for_inference(model, plan=None, group=None):
    """Leaves a model on each rank of a group of processes its part of the linear layers, quantized or not. Results are whole
    on all ranks. Returns the model, which is changed.

    - plan: {glob of names: "colwise" or "rowwise"}; None is what a model of transformers brings;
    - group: of torch.distributed; None is all processes.

    Raises ArgumentError, MismatchError for a number of ranks that does not divide heads, and UnsupportedError for experts and
    other styles, with the model as it was.
    """
    rank, degree = dist.get_rank(group), dist.get_world_size(group)
    plan = _find_plan(model) if plan is None else plan
    _check_heads(model, degree)
    replacements, used = {}, set()
    for name, module in model.named_modules():
        pattern = next((pattern for pattern in plan if fnmatch.fnmatchcase(name, pattern)), None)
        if pattern is None:
            continue
        used.add(pattern)
        is_linear = isinstance(module, (QuantizedLinear, nn.Linear))
        if plan[pattern] in _WHOLE:
            continue
        if plan[pattern] not in (ROWS, COLUMNS) or not is_linear or getattr(module, "is_transposed", False):
            raise UnsupportedError(f"expected a linear layer that is {ROWS} or {COLUMNS}, but got '{name}', a "
                                   f"{type(module).__name__} that is {plan[pattern]}")
        replacements[module] = cut(module, plan[pattern], rank, degree, group)
    for name, _ in model.named_parameters():
        pattern = next((pattern for pattern in plan if pattern not in used and fnmatch.fnmatchcase(name, pattern)), None)
        if pattern is not None:
            raise UnsupportedError(f"expected layers in a plan, but got '{name}', a parameter, which is {plan[pattern]}")
    if not replacements:
        raise MismatchError(f"expected layers that a plan names, but got none for {', '.join(plan)}")
    inference.replace(model, replacements)
    model._fp8_cut = rank, degree
    if any(isinstance(module, QuantizedWeight) for module in model.modules()):
        inference.finish(model)
    model._fp8_report = inference.make_report(inference.find_layers(model), {})
    return model
