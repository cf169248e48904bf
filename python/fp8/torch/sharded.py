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
from fp8.torch import collectives, modules, one_rank, shard_programs, steps
from fp8.torch.coded_weights import find_owners
from fp8.torch.gathered import BACKWARD, FORWARD, Content, GatheredWeight, is_parallel
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.tensor_parallel import precompute_parts, share

_aten = torch.ops.aten
# Those whose results are weights too: of the same memory, and of other memory.
_VIEWS = {_aten.detach.default, _aten.alias.default, _aten.view.default, _aten.slice.Tensor,
          _aten.split.Tensor, _aten.as_strided.default, _aten.narrow.default}
_COPIES = {_aten.clone.default, _aten._to_copy.default, _aten.new_zeros.default,
           _aten.empty_like.default, _aten._pin_memory.default}
# What codes of both directions at once are known as.
_WHOLE = "whole"


class _Known:
    """Amaxes of the whole weight by direction, and codes of this rank's rows with the inverses of
    their scales, as long as it stays what it is."""

    def __init__(self):
        self.changes, self._key, self._by_direction, self._codes = 0, None, {}, {}
        self.is_compared, self.gather = False, None  # The last _Gather.

    def make_key(self, data):
        # Whoever writes to a weight goes through its class, or to a view that counts by itself.
        return self.changes, data._version, data.data_ptr()

    def get(self, data, direction):
        return self._by_direction.get(direction) if self._key == self.make_key(data) else None

    def set(self, data, by_direction):
        self._key, self._by_direction = self.make_key(data), by_direction

    def get_codes(self, data, direction):
        key, found = self._codes.get(direction, (None, None))
        return found if key == self.make_key(data) else None

    def set_codes(self, data, direction, codes):
        self._codes[direction] = self.make_key(data), codes

    def drop_codes(self):
        self._codes = {}


class ShardedWeight(torch.Tensor):
    """A weight that is a tensor like any other, but FSDP2 gathers codes of it."""

    @staticmethod
    def __new__(cls, data, known=None):
        made = torch.Tensor._make_wrapper_subclass(
            cls, data.shape, strides=data.stride(), storage_offset=data.storage_offset(),
            dtype=data.dtype, layout=data.layout, device=data.device)
        made._data, made._known = data, known or _Known()
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
            weight._known.changes += changes
            return weight._data

        args, kwargs = tree_map_only(cls, unwrap, (args, kwargs or {}))
        results = func(*args, **kwargs)
        if isinstance(first, cls) and results is first._data:
            return first
        if isinstance(first, cls) and (func in _VIEWS or func in _COPIES):
            known = first._known if func in _VIEWS else None
            return tree_map(lambda each: cls(each, known) if isinstance(each, torch.Tensor)
                            else each, results)
        return results

    def fsdp_pre_all_gather(self, mesh, outer_size, outer_stride, module, mp_policy):
        dtype = mp_policy.param_dtype or self.dtype
        gather = _Gather(self, mesh.get_group(), outer_size, module, dtype)
        # A backward gathers for itself, unless the forward has kept what it had gathered.
        is_backward = torch._C._current_graph_task_id() != -1
        direction = BACKWARD if is_backward and not gather.is_shared else FORWARD
        if not self._known.is_compared:
            # Once, before something is gathered that other ranks have in another size.
            steps.check_ranks([f"a weight of {list(outer_size)}: {module.recipe}, {dtype}"],
                              mesh.get_group())
            self._known.is_compared = True
        self._known.gather = gather
        if gather.has_whole:
            whole = gather.quantize_whole()
            return (whole.codes.view(-1)[:1],), (gather, direction, whole.inverse, whole)
        codes, inverse = gather.quantize(direction)
        # What one rank has is all there is: FSDP2 copies a byte, and the layer takes codes as they are.
        own = codes if gather.is_alone else None
        return (codes.view(-1)[:1] if gather.is_alone else codes,), (gather, direction, inverse, own)

    def fsdp_post_all_gather(self, outputs, metadata, param_dtype, *, out=None):
        gather, direction, inverse, own = metadata
        is_new = out is None
        if is_new:
            content = Content(shard_programs.get_dtype(gather.codes), gather.target)
            out = GatheredWeight(gather.sizes, param_dtype, outputs[0].device, content)
        out = getattr(out, "_local_tensor", out)
        if gather.has_whole:
            out._content.fill_whole(own)
        else:
            codes = outputs[0][:gather.sizes[0]] if own is None else own
            out._content.fill(direction, codes, inverse, gather.is_shared, gather.fetch)
        return (out, ()) if is_new else None


class _Gather:
    """What one gather of a weight is of."""

    def __init__(self, weight, group, sizes, module, dtype):
        if dtype not in ELEMENTS:
            raise UnsupportedError(f"expected weights of float32, float16 or bfloat16 in a gather "
                                   f"of codes, but got {dtype}")
        self._weight, self._module = weakref.ref(weight), weakref.ref(module)
        self._group, self.sizes, self._dtype = group, tuple(sizes), dtype
        self.is_alone = group.size() == 1
        self.codes, self.target = shard_programs.find_codes(module.recipe), module._target
        self.is_shared = self.codes.forward == self.codes.backward
        # Whether codes are made both ways at once, by a kernel that knows all of what they have scales of.
        self.has_whole = self.is_alone and has_whole(module, self.codes)

    def _find_shard(self, dtype):
        return _make_shard(self._weight(), self.sizes, self._group, self.codes, self._module(), dtype)

    def _get_block(self, direction):
        return self.codes.forward if direction == FORWARD else self.codes.backward

    def quantize(self, direction):
        """Codes of this rank's rows as bytes, with zeros up to what each rank has, and the inverse
        scales of the whole weight."""
        found = self._weight()._known.get_codes(self._weight()._data, direction)
        if found is not None and not self._has_ended():
            return found
        shard, block = self._find_shard(self._dtype), self._get_block(direction)
        if self._is_delayed():
            scale, inverse = self._get_delayed(shard)
        else:
            scale, inverse = shard.scale(block, self._round(self._get_amax(direction)))
        rows = -(-self.sizes[0] // self._group.size())
        return shard.quantize(block, scale, inverse, rows), inverse

    def keep(self):
        """Quantizes now what the next gathers are of: theirs are short kernels between long ones,
        which they would wait for."""
        known = self._weight()._known
        known.drop_codes()
        if self.has_whole:
            known.set_codes(self._weight()._data, _WHOLE, self.quantize_whole())
            return
        for direction in (FORWARD,) if self.is_shared else (FORWARD, BACKWARD):
            known.set_codes(self._weight()._data, direction, self.quantize(direction))

    def quantize_whole(self):
        """A shard_programs.Whole of what one rank has all of."""
        found = self._weight()._known.get_codes(self._weight()._data, _WHOLE)
        if found is not None and not self._has_ended():
            return found
        shard = self._find_shard(self._dtype)
        if not self._is_delayed():
            return shard_programs.quantize_whole(self.codes, shard.data, self.target)
        own, scales = self._find_rows(shard)
        whole = shard_programs.quantize_whole(self.codes, shard.data, self.target, scales)
        self._record(own, whole.amax)
        return whole

    def _is_delayed(self):
        return self._module().recipe.partition(",")[0] == "delayed"

    def _has_ended(self):
        """Whether the step that codes have the scale of is over."""
        if not self._is_delayed():
            return False
        unit = self._module()._get_unit(self._module().recipe)
        return unit.gathered_key != self._weight()._known.make_key(self._weight()._data)

    def _round(self, amax):
        """That of the rounded weight: rounding keeps the order, what is the largest stays so."""
        amax = amax.to(self._dtype).float()
        # One of all ranks' is a part of what was reduced, which begins anywhere.
        return amax if amax.data_ptr() % 16 == 0 else amax.clone()

    def _get_amax(self, direction):
        weight = self._weight()
        found = weight._known.get(weight._data, direction)
        if found is None:
            _reduce([(weight, self._find_shard(weight.dtype), self._group, self._module()._parallel)])
            found = weight._known.get(weight._data, direction)
        return found

    def _get_delayed(self, shard):
        """The scale that the layer's state has, in which the amax is recorded once in a step."""
        own, scales = self._find_rows(shard)
        if own is not None:
            self._record(own, shard.measure((None, None)))
        return scales

    def _find_rows(self, shard):
        """Where the amax is recorded, None if it is there already, and the scale with its inverse."""
        unit = self._module()._get_unit(self._module().recipe)
        unit.make_state(self.sizes, self._dtype, shard.data.device, self._module().bias is not None)
        place, name = unit.find_weight_slot()
        if unit.is_first_gather:
            slot = unit.state.slots[name]
            unit.is_first_gather = slot.scale == 1 and slot.recorded == 0
            if unit.is_first_gather and shard_programs.begins_with_current(self._module().recipe):
                amax = self._round(self._get_amax(FORWARD)).item()
                unit.state.set_scale(name, shard_programs.make_first_scale(
                    self.codes, self._module().recipe, amax))
        amaxes, scales, inverses = steps.get_rows(unit.state, shard.data.device)
        is_there = unit.gathered_key == self._weight()._known.make_key(self._weight()._data)
        return None if is_there else amaxes[place:place + 1], tuple(
            row[place].clone().view(1, 1) for row in (scales, inverses))

    def _record(self, own, amax):
        if own is not None:
            torch.maximum(own, amax.view(1), out=own)
            unit = self._module()._get_unit(self._module().recipe)
            unit.gathered_key = self._weight()._known.make_key(self._weight()._data)

    def fetch(self, direction):
        """Gathers codes that a layer needs beside those that FSDP2 gathered for it: the forward's
        in a backward that computes it again, or the other way round."""
        codes, inverse = self.quantize(direction)
        if self.is_alone:
            return codes, inverse
        every = codes.new_empty((codes.shape[0] * self._group.size(), codes.shape[1]))
        torch.distributed.all_gather_into_tensor(every, codes, group=self._group)
        return every[:self.sizes[0]], inverse


def has_whole(layer, codes):
    """Whether one rank's codes of a layer's weight are made both ways at once."""
    return codes.forward == codes.backward and layer._parallel is None


def _make_shard(weight, sizes, group, codes, module, dtype):
    rows = -(-sizes[0] // group.size())
    start = min(rows * torch.distributed.get_rank(group), sizes[0])
    return shard_programs.Shard(codes, weight._data.to(dtype), start, sizes[0], module._target)


def _reduce(shards):
    """Measures weights, (ShardedWeight, Shard, group, group of other parts or None) each, and takes
    the maximum over ranks: one all-reduce for each group."""
    groups = {}
    for each in shards:
        groups.setdefault(each[2], []).append(each)
    for group, each in groups.items():
        grids = [{direction: shard.measure(block) for direction, block in (
                     (FORWARD, shard.codes.forward), (BACKWARD, shard.codes.backward))
                  if direction == FORWARD or block != shard.codes.forward}
                 for _, shard, *_ in each]
        flat = torch.cat([grid.view(-1) for by in grids for grid in by.values()])
        collectives.reduce_max(flat, group)
        pieces = iter(flat.split([grid.numel() for by in grids for grid in by.values()]))
        found = [{direction: next(pieces).view(grid.shape) for direction, grid in by.items()}
                 for by in grids]
        _reduce_parts([(shard.codes, parts, by) for (_, shard, _, parts), by in zip(each, found)])
        for (weight, *_), by in zip(each, found):
            weight._known.set(weight._data, by)


def _reduce_parts(found):
    """The same over what tensor parallelism has on other ranks, for what a whole weight has one of.
    Amaxes are changed in place."""
    groups = {}
    for codes, parts, by in found:
        if parts is not None and codes.forward == (None, None):
            groups.setdefault(parts, []).append(by[FORWARD])
    for group, amaxes in groups.items():
        flat = torch.cat([amax.view(-1) for amax in amaxes])
        collectives.reduce_max(flat, group)
        for amax, value in zip(amaxes, flat):
            amax.copy_(value)


def _find_sharded(model):
    """Layers whose weights are gathered as codes, and their DTensors."""
    for layer in model.modules():
        if isinstance(layer, modules.Linear):
            weight = layer._parameters.get("weight")
            if isinstance(getattr(weight, "_local_tensor", None), ShardedWeight):
                yield layer, weight


def precompute_scales(model):
    """Measures all weights that are gathered as codes, with one all-reduce for the whole model.

    It goes behind each step of the optimizer, and behind that of delayed scaling. It also quantizes
    them for all gathers of a step: this rank's part, a byte for each element, or two where the
    backward has other codes. Without it a weight is measured when it is gathered, with an
    all-reduce of its own, and quantized each time. Weights under delayed scaling have their scales
    already.

    Where a model has one rank, gradients are reduced in place from then on, without a copy.

    Weights under `current` that tensor parallelism alone cuts get the scales of their next calls, by one
    all-reduce, too. What writes a weight behind this, through `.data`, has to call it again.
    """
    shards, gathers = [], []
    one_rank.reduce_in_place(model)
    for layer, weight in _find_sharded(model):
        if weight._local_tensor._known.gather is not None:
            gathers.append(weight._local_tensor._known.gather)
        if layer.recipe.partition(",")[0] == "delayed":
            continue
        group, local = _find_group(layer, weight), weight._local_tensor
        codes = shard_programs.find_codes(layer.recipe)
        if group.size() == 1 and has_whole(layer, codes):
            continue
        shard = _make_shard(local, layer._part or weight.shape, group, codes, layer, local.dtype)
        shards.append((local, shard, group, layer._parallel))
    with torch.no_grad():
        if shards:
            _reduce(shards)
        for gather in gathers:
            gather.keep()
        precompute_parts(model)


def _find_group(layer, weight):
    """FSDP2's group that has shards of a weight, or of a rank's part of it."""
    placements = weight.placements[:-1] if layer._parallel is not None else weight.placements
    cut = [dim for dim, placement in enumerate(placements) if not placement.is_replicate()]
    if len(cut) != 1 or placements[cut[0]].dim != 0:
        raise UnsupportedError(f"expected a weight that is sharded once along its rows, but got "
                               f"{weight.placements}")
    return weight.device_mesh.get_group(cut[0])


def find_reason(layer):
    """Why a layer's weight is gathered as it is, or None."""
    if layer.recipe is None:
        return "its recipe is that of autocast"
    codes = shard_programs.find_codes(layer.recipe)
    if codes is None:
        return f"the recipe {layer.recipe} has codes that are not gathered"
    if "recipe_file" in dict(layer._options):
        return "a recipe file may have other recipes for its products"
    outputs, inputs = getattr(layer.weight, "_local_tensor", layer.weight).shape
    if inputs % codes.multiple or outputs % codes.multiple:
        return f"its sizes {inputs} and {outputs} are no multiples of {codes.multiple}"
    return None


def _wrap(weight):
    if not is_parallel(weight):
        return ShardedWeight(weight)
    return type(weight).from_local(ShardedWeight(weight._local_tensor), weight.device_mesh, weight.placements,
                                   run_check=False, shape=weight.shape, stride=weight.stride())


def gather_in_fp8(model):
    """Makes FSDP2 gather the weights of `Linear` layers as codes of 8 bits: goes between
    convert_to_fp8_training and fully_shard, and behind parallelize_module. Returns why other layers' are gathered as they are, by
    name. Their parameters become other objects, of the same values. Raises ArgumentError for
    weights that are sharded already, and where there is none to gather so.
    """
    left, found, owners = {}, 0, find_owners(model)
    is_sharded = any(hasattr(module, "unshard") for module in model.modules())
    for name, layer in model.named_modules():
        if not isinstance(layer, modules.Linear):
            continue
        weight = layer.weight
        if is_parallel(weight) and is_sharded:
            raise ArgumentError(f"expected gather_in_fp8 before fully_shard, but got '{name}' with "
                                f"a weight that is sharded")
        others = [each for each in owners[id(weight)] if each != f"{name}.weight".removeprefix(".")]
        # A parameter of its own would tie it to nothing any more.
        reason = f"it shares its weight with {', '.join(others)}" if others else find_reason(layer)
        if reason is not None:
            left[name] = reason
            continue
        found += 1
        if is_parallel(weight):
            share(layer)
        if not isinstance(getattr(weight, "_local_tensor", weight), ShardedWeight):
            layer.weight = torch.nn.Parameter(_wrap(weight.detach()), weight.requires_grad)
        layer.take_codes()
    if not found:
        raise ArgumentError(f"expected linear layers whose weights are gathered as codes, but got "
                            f"none{''.join(f'; {key}: {left[key]}' for key in list(left)[:3])}")
    return left
