"""Linear layers whose weights are DTensors, as torch's ColwiseParallel and RowwiseParallel make them.

    fp8.torch.convert_to_fp8_training(model, recipe)
    parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})

A rank multiplies what it has. Scales that all elements of a tensor share are those of the whole one, by the maximum of its
parts' amaxes; others are of parts that no two ranks share, or follow from what a rank has.
"""

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, parallel

import fp8
from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import shard_programs, shared_amaxes
from fp8.torch.linear_programs import ELEMENTS

# Operands of which a rank has a part, by the dimension along which the weight is cut.
_PARTS = {0: ("weight", "gradient"), 1: ("activation", "weight")}


class _Part(torch.autograd.Function):
    """What each of `count` ranks adds to a sum that has a bias once. Its gradient is the bias's."""

    @staticmethod
    def forward(ctx, bias, count):
        return bias / count

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class ColwiseParallel(parallel.ColwiseParallel):
    """As torch's, but activations that are cut along a dimension of rows (`input_layouts=Shard(1)`) are gathered as
    codes, by layers under `current` and `delayed`; by others as they are."""

    @staticmethod
    def _prepare_input_fn(input_layouts, desired_input_layouts, mod, inputs, device_mesh):
        x = inputs[0]
        return x if isinstance(x, DTensor) else DTensor.from_local(x, device_mesh, input_layouts, run_check=False)


def _flatten(tensor, dim):
    """Rows, those of the first part of a dimension first: [parts of the dimension, others, features]."""
    return tensor.movedim(dim, 0).reshape(-1, tensor.shape[-1])


class _Gather(torch.autograd.Function):
    """What all ranks have of x along a dimension, with the values of its codes; the gradient is a sum over ranks, of
    which each has its part."""

    @staticmethod
    def forward(ctx, x, dim, unit, group):
        ctx.dim, ctx.group, count = dim, group, torch.distributed.get_world_size(group)
        codes, inverse = unit.quantize_part(_flatten(x, dim).contiguous(), group)
        every = codes.new_empty((codes.shape[0] * count, codes.shape[1]))
        torch.distributed.all_gather_into_tensor(every, codes, group=group)
        sizes = list(x.movedim(dim, 0).shape)
        sizes[0] *= count
        format = shard_programs.find_codes(unit.recipe, "activation")
        values = fp8.dequantize(fp8.casts.Quantized(every.view(shard_programs.get_dtype(format)), inverse, None,
                                                    format.format, (None, None), "f32"), ELEMENTS[x.dtype])
        return values.view(sizes).movedim(0, dim).contiguous()

    @staticmethod
    def backward(ctx, gradient):
        whole = gradient.movedim(ctx.dim, 0).contiguous()
        part = whole.new_empty((whole.shape[0] // torch.distributed.get_world_size(ctx.group), *whole.shape[1:]))
        torch.distributed.reduce_scatter_tensor(part, whole, group=ctx.group)
        return part.movedim(0, ctx.dim), None, None, None


def _gather(layer, x, recipe):
    """The whole of x, on all ranks; its gradient there is a part of a sum."""
    placement, group, unit = x.placements[0], layer._parallel, layer._get_unit(recipe)
    if (not isinstance(placement, Shard) or placement.dim == x.ndim - 1 or x.device_mesh.size() == 1
            or x.shape[placement.dim] % x.device_mesh.size() or not hasattr(unit, "quantize_part")
            or x.dtype != layer.weight.dtype):
        return x.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
    unit.make_state(layer._part, x.dtype, x.device, layer.bias is not None)
    return _Gather.apply(x.to_local(), placement.dim, unit, group)


def find_dim(layer):
    """Along which dimension the weight is cut."""
    weight = layer.weight
    if weight.device_mesh.ndim != 1 or not isinstance(weight.placements[0], Shard):
        raise UnsupportedError(f"expected a weight that is cut along one dimension of a mesh, but got "
                               f"{weight.placements} on a mesh of {weight.device_mesh.ndim}")
    return weight.placements[0].dim


def share(layer):
    """Notes that a layer has a part of a weight, and lets it have the scales of whole tensors, once."""
    if layer._parallel is None:
        layer._parallel, layer._part = layer.weight.device_mesh.get_group(), tuple(layer.weight._local_tensor.shape)
        if shared_amaxes.has_shared(layer.recipe):
            layer.share_amaxes(layer._parallel, _PARTS[find_dim(layer)])


def forward(layer, x, recipe):
    """x w^T + b, a DTensor, as torch.nn.functional.linear has it."""
    weight, bias, dim = layer.weight, layer.bias, find_dim(layer)
    mesh = weight.device_mesh
    if not isinstance(x, DTensor) or x.device_mesh != mesh:
        raise ArgumentError(f"expected x to be a DTensor on the mesh of the weight, but got "
                            f"{type(x).__name__}")
    if x.shape[-1] != layer.in_features:
        raise ArgumentError(f"expected x of [..., {layer.in_features}], but got {list(x.shape)}")
    share(layer)
    sizes = *x.shape[:-1], layer.out_features
    last = x.ndim - 1
    if dim == 0:
        part = _gather(layer, x, recipe)
        part_of_bias = None if bias is None else bias.to_local()
        placement = Shard(last)
    else:
        part = x.redistribute(placements=[Shard(last)]).to_local()
        part_of_bias = None if bias is None else _Part.apply(bias.to_local(), mesh.size())
        placement = Partial()
    try:
        y = layer.compute(part, weight.to_local(), part_of_bias, recipe)
    finally:
        # Where the layer is left to PyTorch nobody has taken the scale of what was gathered.
        unit = layer._get_unit(recipe)
        if hasattr(unit, "quantize_part"):
            unit.has_scale = False
    strides = torch.empty(sizes, device="meta").stride()
    return DTensor.from_local(y, mesh, [placement], run_check=False, shape=torch.Size(sizes), stride=strides)
