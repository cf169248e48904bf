"""FSDP2 whose all-gathers carry weights in 8 bits.

    fp8.torch.convert_to_fp8_training(model, recipe)
    fp8.torch.gather_in_fp8(model)
    fully_shard(model)
"""

import functools
import weakref

import torch
from torch.utils._pytree import tree_map, tree_map_only

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import modules, shard_programs, steps
from fp8.torch.gathered import BACKWARD, FORWARD, Content, GatheredWeight
from fp8.torch.linear_programs import ELEMENTS

_aten = torch.ops.aten
# Those whose results are weights too: of the same memory, and of other memory.
_VIEWS = {_aten.detach.default, _aten.alias.default, _aten.view.default, _aten.slice.Tensor,
          _aten.split.Tensor, _aten.as_strided.default, _aten.narrow.default}
_COPIES = {_aten.clone.default, _aten._to_copy.default, _aten.new_zeros.default,
           _aten.empty_like.default, _aten._pin_memory.default}


class _Amaxes:
    """Those of the whole weight by direction, as long as it stays what it is."""

    def __init__(self):
        self.changes, self._key, self._by_direction = 0, None, {}
        self.is_compared = False

    def _make_key(self, data):
        # Whoever writes to a weight goes through its class, or to a view that counts by itself.
        return self.changes, data._version, data.data_ptr()

    def get(self, data, direction):
        return self._by_direction.get(direction) if self._key == self._make_key(data) else None

    def set(self, data, by_direction):
        self._key, self._by_direction = self._make_key(data), by_direction


class ShardedWeight(torch.Tensor):
    """A weight that is a tensor like any other, but FSDP2 gathers codes of it."""

    @staticmethod
    def __new__(cls, data, amaxes=None):
        made = torch.Tensor._make_wrapper_subclass(
            cls, data.shape, strides=data.stride(), storage_offset=data.storage_offset(),
            dtype=data.dtype, layout=data.layout, device=data.device)
        made._data, made._amaxes = data, amaxes or _Amaxes()
        return made

    def __repr__(self):
        return f"ShardedWeight({self._data!r})"

    def __reduce_ex__(self, protocol):
        return ShardedWeight, (self._data,)

    def __tensor_flatten__(self):
        return ["_data"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
        return ShardedWeight(inner["_data"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        first = args[0] if args else None
        changes = func._schema.is_mutable

        def unwrap(weight):
            weight._amaxes.changes += changes
            return weight._data

        args, kwargs = tree_map_only(cls, unwrap, (args, kwargs or {}))
        results = func(*args, **kwargs)
        if isinstance(first, cls) and results is first._data:
            return first
        if isinstance(first, cls) and (func in _VIEWS or func in _COPIES):
            amaxes = first._amaxes if func in _VIEWS else None
            return tree_map(lambda each: cls(each, amaxes) if isinstance(each, torch.Tensor)
                            else each, results)
        return results

    def fsdp_pre_all_gather(self, mesh, outer_size, outer_stride, module, mp_policy):
        dtype = mp_policy.param_dtype or self.dtype
        gather = _Gather(self, mesh.get_group(), outer_size, module, dtype)
        # A backward gathers for itself, unless the forward has kept what it had gathered.
        is_backward = torch._C._current_graph_task_id() != -1
        direction = BACKWARD if is_backward and not gather.is_shared else FORWARD
        if not self._amaxes.is_compared:
            # Once, before something is gathered that other ranks have in another size.
            steps.check_ranks([f"a weight of {list(outer_size)}: {module.recipe}, {dtype}"],
                              mesh.get_group())
            self._amaxes.is_compared = True
        codes, inverse = gather.quantize(direction)
        return (codes,), (gather, direction, inverse)

    def fsdp_post_all_gather(self, outputs, metadata, param_dtype, *, out=None):
        gather, direction, inverse = metadata
        is_new = out is None
        if is_new:
            content = Content(shard_programs.get_dtype(gather.codes))
            out = GatheredWeight(gather.sizes, param_dtype, outputs[0].device, content)
        out = getattr(out, "_local_tensor", out)
        out._content.fill(direction, outputs[0][:gather.sizes[0]], inverse, gather.is_shared,
                          gather.fetch)
        return (out, ()) if is_new else None


class _Gather:
    """What one gather of a weight is of."""

    def __init__(self, weight, group, sizes, module, dtype):
        if dtype not in ELEMENTS:
            raise UnsupportedError(f"expected weights of float32, float16 or bfloat16 in a gather "
                                   f"of codes, but got {dtype}")
        self._weight, self._module = weakref.ref(weight), weakref.ref(module)
        self._group, self.sizes, self._dtype = group, tuple(sizes), dtype
        self.codes = shard_programs.find_codes(module.recipe)
        self.is_shared = self.codes.forward == self.codes.backward

    def _find_shard(self, dtype):
        return _make_shard(self._weight(), self.sizes, self._group, self.codes, self._module(), dtype)

    def _get_block(self, direction):
        return self.codes.forward if direction == FORWARD else self.codes.backward

    def quantize(self, direction):
        """Codes of this rank's rows as bytes, with zeros up to what each rank has, and the inverse
        scales of the whole weight."""
        shard, block = self._find_shard(self._dtype), self._get_block(direction)
        if self._module().recipe.partition(",")[0] == "delayed":
            scale, inverse = self._get_delayed(shard)
        else:
            # Rounding keeps the order: what is the largest stays so.
            amax = self._get_amax(direction).to(self._dtype).float()
            scale, inverse = shard.scale(block, amax)
        rows = -(-self.sizes[0] // self._group.size())
        return shard.quantize(block, scale, inverse, rows), inverse

    def _get_amax(self, direction):
        weight = self._weight()
        found = weight._amaxes.get(weight._data, direction)
        if found is None:
            _reduce([(weight, self._find_shard(weight.dtype), self._group)])
            found = weight._amaxes.get(weight._data, direction)
        return found

    def _get_delayed(self, shard):
        """The scale that the layer's state has, in which the amax is recorded."""
        unit = self._module()._get_unit(self._module().recipe)
        unit.make_state(self.sizes, self._dtype, shard.data.device, self._module().bias is not None)
        place, name = unit.find_weight_slot()
        if unit.is_first_gather:
            slot = unit.state.slots[name]
            unit.is_first_gather = slot.scale == 1 and slot.recorded == 0
            if unit.is_first_gather and shard_programs.begins_with_current(self._module().recipe):
                amax = self._get_amax(FORWARD).to(self._dtype).float().item()
                unit.state.set_scale(name, shard_programs.make_first_scale(
                    self.codes, self._module().recipe, amax))
        amaxes, scales, inverses = steps.get_rows(unit.state, shard.data.device)
        amaxes[place:place + 1].copy_(torch.maximum(
            amaxes[place], shard.measure((None, None)).view(())))
        return tuple(row[place].clone().view(1, 1) for row in (scales, inverses))

    def fetch(self, direction):
        """Gathers codes that a layer needs beside those that FSDP2 gathered for it: the forward's
        in a backward that computes it again, or the other way round."""
        codes, inverse = self.quantize(direction)
        every = codes.new_empty((codes.shape[0] * self._group.size(), codes.shape[1]))
        torch.distributed.all_gather_into_tensor(every, codes, group=self._group)
        return every[:self.sizes[0]], inverse


def _make_shard(weight, sizes, group, codes, module, dtype):
    rows = -(-sizes[0] // group.size())
    start = min(rows * torch.distributed.get_rank(group), sizes[0])
    return shard_programs.Shard(codes, weight._data.to(dtype), start, sizes[0], module._target)


def _reduce(shards):
    """Measures weights, (ShardedWeight, Shard, group) each, and takes the maximum over ranks: one
    all-reduce for each group."""
    groups = {}
    for each in shards:
        groups.setdefault(each[2], []).append(each)
    for group, each in groups.items():
        grids = [{direction: shard.measure(block) for direction, block in (
                     (FORWARD, shard.codes.forward), (BACKWARD, shard.codes.backward))
                  if direction == FORWARD or block != shard.codes.forward}
                 for _, shard, _ in each]
        # As integers: then a NaN, where a recipe keeps one, is above all.
        flat = torch.cat([grid.abs().view(-1) for by in grids for grid in by.values()])
        bits = flat.view(torch.int32)
        torch.distributed.all_reduce(bits, torch.distributed.ReduceOp.MAX, group=group)
        pieces = iter(flat.split([grid.numel() for by in grids for grid in by.values()]))
        for (weight, _, _), by in zip(each, grids):
            weight._amaxes.set(weight._data, {
                direction: next(pieces).view(grid.shape) for direction, grid in by.items()})


def _find_sharded(model):
    """Layers whose weights are gathered as codes, and their DTensors."""
    for layer in model.modules():
        if isinstance(layer, modules.Linear):
            weight = layer._parameters.get("weight")
            if isinstance(getattr(weight, "_local_tensor", None), ShardedWeight):
                yield layer, weight


def precompute_scales(model):
    """Measures all weights that are gathered as codes, with one all-reduce for the whole model.

    It goes behind each step of the optimizer. Without it a weight is measured when it is gathered,
    with an all-reduce of its own. Weights under delayed scaling have their scales already.
    """
    shards = []
    for layer, weight in _find_sharded(model):
        if layer.recipe.partition(",")[0] == "delayed":
            continue
        group, local = _find_group(weight), weight._local_tensor
        shards.append((local, _make_shard(local, weight.shape, group,
                                          shard_programs.find_codes(layer.recipe), layer,
                                          local.dtype), group))
    if shards:
        with torch.no_grad():
            _reduce(shards)


def _find_group(weight):
    sharded = [dim for dim, placement in enumerate(weight.placements) if placement.is_shard(0)]
    if len(sharded) != 1:
        raise UnsupportedError(f"expected a weight that is sharded once along its rows, but got "
                               f"{weight.placements}")
    return weight.device_mesh.get_group(sharded[0])


def find_reason(layer):
    """Why a layer's weight is gathered as it is, or None."""
    if layer.recipe is None:
        return "its recipe is that of autocast"
    codes = shard_programs.find_codes(layer.recipe)
    if codes is None:
        return f"the recipe {layer.recipe} has codes that are not gathered"
    if "recipe_file" in dict(layer._options):
        return "a recipe file may have other recipes for its products"
    if layer.in_features % codes.multiple or layer.out_features % codes.multiple:
        return (f"its sizes {layer.in_features} and {layer.out_features} are no multiples of "
                f"{codes.multiple}")
    return None


def gather_in_fp8(model):
    """Makes FSDP2 gather the weights of `Linear` layers as codes of 8 bits: goes between
    convert_to_fp8_training and fully_shard. Returns why other layers' are gathered as they are, by
    name. Their parameters become other objects, of the same values. Raises ArgumentError for
    weights that are sharded already, and where there is none to gather so.
    """
    left, found = {}, 0
    for name, layer in model.named_modules():
        if not isinstance(layer, modules.Linear):
            continue
        weight = layer.weight
        if hasattr(weight, "_local_tensor"):
            raise ArgumentError(f"expected gather_in_fp8 before fully_shard, but got '{name}' with "
                                f"a weight that is sharded")
        reason = find_reason(layer)
        if reason is not None:
            left[name] = reason
            continue
        found += 1
        if not isinstance(weight, ShardedWeight):
            layer.weight = torch.nn.Parameter(ShardedWeight(weight.detach()), weight.requires_grad)
        layer.take_codes()
    if not found:
        raise ArgumentError(f"expected linear layers whose weights are gathered as codes, but got "
                            f"none{''.join(f'; {key}: {left[key]}' for key in list(left)[:3])}")
    return left
