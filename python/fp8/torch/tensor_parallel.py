"""Linear layers whose weights are DTensors, as torch's ColwiseParallel and RowwiseParallel make them.

    fp8.torch.convert_to_fp8_training(model, recipe)
    parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})

A rank multiplies what it has. Scales that all elements of a tensor share are those of the whole one, by the maximum of its
parts' amaxes; others are of parts that no two ranks share, or follow from what a rank has.
"""

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import shared_amaxes

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
        part = x.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
        part_of_bias = None if bias is None else bias.to_local()
        placement = Shard(last)
    else:
        part = x.redistribute(placements=[Shard(last)]).to_local()
        part_of_bias = None if bias is None else _Part.apply(bias.to_local(), mesh.size())
        placement = Partial()
    y = layer.compute(part, weight.to_local(), part_of_bias, recipe)
    strides = torch.empty(sizes, device="meta").stride()
    return DTensor.from_local(y, mesh, [placement], run_check=False, shape=torch.Size(sizes), stride=strides)
