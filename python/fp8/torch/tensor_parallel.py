"""Linear layers whose weights are DTensors, as torch's ColwiseParallel and RowwiseParallel make them.

    fp8.torch.convert_to_fp8_training(model, recipe)
    parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})

A rank multiplies what it has. Scales that all elements of a tensor share are those of the whole one, by the maximum of its
parts' amaxes; others are of parts that no two ranks share, or follow from what a rank has.
"""

import weakref
from collections import namedtuple

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, parallel

import fp8
from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import collectives, shard_programs, shared_amaxes, steps
from fp8.torch.linear_programs import ELEMENTS

# Operands of which a rank has a part, by the dimension along which the weight is cut.
_PARTS = {0: ("weight", "gradient"), 1: ("activation", "weight")}


# What was gathered of a tensor: how, the version it had, its Scale and the values.
_Gathered = namedtuple("_Gathered", "key version scale values")
# Keeps the last one of each group, and a weak reference to what layers were called with, for others that are called with the
# same. Its gradient is the last that needs it.
_gathered = {}


def _find_gathered(group, source):
    last, found = _gathered.get(group, (None, None))
    return found if last is not None and last() is source else None


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
    codes, by layers under `current` and `delayed`; by others as they are. Layers that are called with the same tensor, one
    after the other, gather it once, and add up its gradients before ranks do. Between layers there are plain tensors:
    DTensors cost the host more than a layer does."""

    @staticmethod
    def _prepare_input_fn(input_layouts, desired_input_layouts, mod, inputs, device_mesh):
        part = _take_plain(mod, inputs[0], input_layouts[0])
        return part if part is not None else parallel.ColwiseParallel._prepare_input_fn(
            input_layouts, desired_input_layouts, mod, inputs, device_mesh)

    @staticmethod
    def _prepare_output_fn(output_layouts, use_local_output, mod, outputs, device_mesh):
        if not isinstance(outputs, DTensor):
            if use_local_output and output_layouts[0] in (Shard(-1), Shard(outputs.ndim - 1)):
                return outputs
            outputs = DTensor.from_local(outputs, device_mesh, [Shard(outputs.ndim - 1)], run_check=False)
        return parallel.ColwiseParallel._prepare_output_fn(output_layouts, use_local_output, mod, outputs, device_mesh)


class RowwiseParallel(parallel.RowwiseParallel):
    """As torch's, for less of the host's time."""

    @staticmethod
    def _prepare_input_fn(input_layouts, desired_input_layouts, mod, inputs, device_mesh):
        part = _take_plain(mod, inputs[0], input_layouts[0])
        return part if part is not None else parallel.RowwiseParallel._prepare_input_fn(
            input_layouts, desired_input_layouts, mod, inputs, device_mesh)

    @staticmethod
    def _prepare_output_fn(output_layouts, use_local_output, mod, outputs, device_mesh):
        if not isinstance(outputs, DTensor):
            placement, group = output_layouts[0], device_mesh.get_group()
            if use_local_output and isinstance(placement, Replicate):
                return _Sum.apply(outputs, group)
            if use_local_output and isinstance(placement, Shard) and outputs.shape[placement.dim] % device_mesh.size() == 0:
                return _Scatter.apply(outputs, placement.dim % outputs.ndim, group)
            outputs = DTensor.from_local(outputs, device_mesh, [Partial()], run_check=False)
        return parallel.RowwiseParallel._prepare_output_fn(output_layouts, use_local_output, mod, outputs, device_mesh)


def _take_plain(layer, x, placement):
    """What a rank has of what a layer is called with, a plain tensor, for `forward`; None where DTensors are needed."""
    weight = getattr(layer, "weight", None)
    if not hasattr(layer, "_parallel") or not isinstance(weight, DTensor) or not isinstance(x, torch.Tensor) or x.ndim == 0:
        return None
    count = weight.device_mesh.size()
    if isinstance(x, DTensor):
        placement = x.placements[0]
        if x.device_mesh != weight.device_mesh or isinstance(placement, Shard) and x.shape[placement.dim] % count:
            return None
    is_last = isinstance(placement, Shard) and placement.dim % x.ndim == x.ndim - 1
    size = x.shape[-1] * (count if is_last and not isinstance(x, DTensor) else 1)
    suits = is_last if find_dim(layer) == 1 else not is_last and isinstance(placement, (Shard, Replicate))
    if not suits or size != layer.in_features:
        return None
    layer.__dict__["_given"] = placement, x
    return x.to_local() if isinstance(x, DTensor) else x


class _Sum(torch.autograd.Function):
    """A sum over ranks, on all of them, whose gradient all have."""

    @staticmethod
    def forward(ctx, part, group):
        y = part.clone()
        torch.distributed.all_reduce(y, group=group)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class _Copy(torch.autograd.Function):
    """What all ranks have, whose gradient is a sum over them."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        _gathered.pop(ctx.group, None)
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        torch.distributed.all_reduce(gradient, group=ctx.group)
        return gradient, None


def _join(x, dim, group):
    """What ranks have of a dimension, one behind the other."""
    part = x.movedim(dim, 0).contiguous()
    every = part.new_empty((part.shape[0] * torch.distributed.get_world_size(group), *part.shape[1:]))
    torch.distributed.all_gather_into_tensor(every, part, group=group)
    return every.movedim(0, dim).contiguous()


def _scatter(x, dim, group):
    """The sum over ranks, of which each has its part."""
    whole = x.movedim(dim, 0).contiguous()
    part = whole.new_empty((whole.shape[0] // torch.distributed.get_world_size(group), *whole.shape[1:]))
    torch.distributed.reduce_scatter_tensor(part, whole, group=group)
    return part.movedim(0, dim)


class _Scatter(torch.autograd.Function):
    """A sum over ranks, of which each has a part of a dimension."""

    @staticmethod
    def forward(ctx, part, dim, group):
        ctx.dim, ctx.group = dim, group
        return _scatter(part, dim, group).contiguous()

    @staticmethod
    def backward(ctx, gradient):
        return _join(gradient, ctx.dim, ctx.group), None, None


class _Join(torch.autograd.Function):
    """The other way round."""

    @staticmethod
    def forward(ctx, x, dim, group):
        ctx.dim, ctx.group = dim, group
        return _join(x, dim, group)

    @staticmethod
    def backward(ctx, gradient):
        _gathered.pop(ctx.group, None)
        return _scatter(gradient, ctx.dim, ctx.group), None, None


def _flatten(tensor, dim):
    """Rows, those of the first part of a dimension first: [parts of the dimension, others, features]."""
    return tensor.movedim(dim, 0).reshape(-1, tensor.shape[-1])


class _Gather(torch.autograd.Function):
    """What all ranks have of x along a dimension, with the values of its codes; the gradient is a sum over ranks, of
    which each has its part."""

    @staticmethod
    def forward(ctx, x, dim, unit, group):
        ctx.dim, ctx.group, count = dim, group, torch.distributed.get_world_size(group)
        codes, unit.part_scale = unit.quantize_part(_flatten(x, dim).contiguous(), group)
        every = codes.new_empty((codes.shape[0] * count, codes.shape[1]))
        torch.distributed.all_gather_into_tensor(every, codes, group=group)
        sizes = list(x.movedim(dim, 0).shape)
        sizes[0] *= count
        format = shard_programs.find_codes(unit.recipe, "activation")
        values = fp8.dequantize(fp8.casts.Quantized(every.view(shard_programs.get_dtype(format)), unit.part_scale.inverse, None,
                                                    format.format, (None, None), "f32"), ELEMENTS[x.dtype])
        return values.view(sizes).movedim(0, dim).contiguous()

    @staticmethod
    def backward(ctx, gradient):
        _gathered.pop(ctx.group, None)
        return _scatter(gradient, ctx.dim, ctx.group), None, None, None


def _gather(layer, x, given, recipe):
    """The whole of a plain x on all ranks; its gradient there is a part of a sum. `given` is how it is cut, and what
    the layer was called with."""
    placement, source = given
    group, unit = layer._parallel, layer._get_unit(recipe)
    dim = placement.dim % x.ndim if isinstance(placement, Shard) else None
    has_codes = dim is not None and hasattr(unit, "quantize_part") and x.dtype == layer.weight.dtype
    key = dim, group, (unit.recipe, layer._target) if has_codes else None, torch.is_grad_enabled()
    # What is made in inference mode has no version, and what nobody sends and has no gradient is there already.
    is_there = dim is None and not (torch.is_grad_enabled() and x.requires_grad)
    version = None if source.is_inference() or is_there else source._version
    found = _find_gathered(group, source)
    is_new = found is None or version is None or (found.key, found.version) != (key, version)
    if has_codes and unit.state is None:
        rows = x.numel() // x.shape[-1] * torch.distributed.get_world_size(group)
        unit.make_state(layer._part, x.dtype, x.device, layer.bias is not None, rows)
    if not is_new:
        if has_codes:
            unit.take_part(found.scale, x.device)
        return found.values
    if dim is None:
        values = _Copy.apply(x, group)
    else:
        values = _Gather.apply(x, dim, unit, group) if has_codes else _Join.apply(x, dim, group)
    if version is not None:
        _gathered[group] = weakref.ref(source), _Gathered(key, version, unit.part_scale if has_codes else None, values)
    return values


def _take_local(layer, x, given, dim, recipe):
    """What a rank multiplies of a plain x, of which it has what a placement says."""
    if dim == 1 or layer.weight.device_mesh.size() == 1:
        return x
    return _gather(layer, x, given, recipe)


def _take_part(layer, x, dim):
    """The same of a DTensor."""
    if x.device_mesh != layer.weight.device_mesh:
        raise ArgumentError("expected x to be a DTensor on the mesh of the weight, but got one on another")
    if x.shape[-1] != layer.in_features:
        raise ArgumentError(f"expected x of [..., {layer.in_features}], but got {list(x.shape)}")
    if dim == 0:
        return x.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
    return x.redistribute(placements=[Shard(x.ndim - 1)]).to_local()


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
        group, dim = layer.weight.device_mesh.get_group(), find_dim(layer)
        # Before ranks wait for what others do not send.
        steps.check_ranks([f"a weight of {list(layer.weight.shape)}, cut along {dim}: {layer.recipe}"], group)
        layer._parallel, layer._part = group, tuple(layer.weight._local_tensor.shape)
        if shared_amaxes.has_shared(layer.recipe):
            layer.share_amaxes(layer._parallel, _PARTS[dim])


def forward(layer, x, recipe):
    """x w^T + b, a DTensor, as torch.nn.functional.linear has it; of a plain x, which a style of ours leaves, what this rank
    has of it."""
    weight, bias, dim = layer.weight, layer.bias, find_dim(layer)
    mesh, given = weight.device_mesh, layer.__dict__.pop("_given", None)
    is_whole = isinstance(x, DTensor)
    if not is_whole and given is None:
        raise ArgumentError(f"expected x to be a DTensor on the mesh of the weight, but got "
                            f"{type(x).__name__}")
    share(layer)
    part = _take_part(layer, x, dim) if is_whole else _take_local(layer, x, given, dim, recipe)
    part_of_bias = None if bias is None else bias.to_local()
    if dim == 1 and bias is not None:
        part_of_bias = _Part.apply(part_of_bias, mesh.size())
    unit = layer._get_unit(recipe)
    if hasattr(unit, "weight_key"):
        unit.weight_key = _make_key(weight)
    try:
        y = layer.compute(part, weight.to_local(), part_of_bias, recipe)
    finally:
        # Where the layer is left to PyTorch nobody has taken the scale of what was gathered.
        if hasattr(unit, "quantize_part"):
            unit.has_scale = False
    if not is_whole:
        return y
    sizes, placement = (*x.shape[:-1], layer.out_features), Shard(x.ndim - 1) if dim == 0 else Partial()
    strides = torch.empty(sizes, device="meta").stride()
    return DTensor.from_local(y, mesh, [placement], run_check=False, shape=torch.Size(sizes), stride=strides)


def _make_key(weight):
    """What a weight is: whoever writes to it counts on itself, or on the part that a rank has."""
    local = weight._local_tensor
    return weight._version, local._version, local.data_ptr()


def precompute_parts(model):
    """Gives weights that are cut, and not gathered, the scales of their next calls: one all-reduce for each group. Those
    of layers that were called."""
    groups = {}
    for layer in model.modules():
        group, recipe = getattr(layer, "_parallel", None), getattr(layer, "recipe", None)
        weight = getattr(layer, "weight", None)
        if group is None or not isinstance(weight, DTensor) or type(weight._local_tensor) is not torch.Tensor:
            continue
        unit = layer.units.get(recipe)
        shard = unit.find_weight(weight._local_tensor) if hasattr(unit, "give_weight") else None
        if shard is not None and weight.device_mesh.ndim == 1:
            groups.setdefault(group, []).append((unit, shard, _make_key(weight)))
    for group, found in groups.items():
        amaxes = torch.cat([shard.measure((None, None)).view(-1) for _, shard, _ in found])
        collectives.reduce_max(amaxes, group)
        # Programs take what is aligned: one amax of many is not.
        for (unit, shard, key), amax in zip(found, amaxes.view(-1, 1, 1)):
            unit.give_weight(shard, amax.clone(), key)
