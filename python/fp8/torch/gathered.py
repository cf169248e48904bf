"""Weights that FSDP2 gathered as codes, as their layers take them."""

import torch
from torch.utils._pytree import tree_map_only

from fp8.torch import shard_programs

FORWARD, BACKWARD = "forward", "backward"


class Content:
    """Codes of a whole weight, [outputs, inputs], and the inverses of their scales, by direction.

    Where both directions have the same, BACKWARD is not there. `fetch` gathers those of a
    direction that are missing, on all ranks.
    """

    def __init__(self, dtype, target="auto"):
        self.dtype, self.target, self.codes, self.inverses = dtype, target, {}, {}
        self.fetch = self.is_shared = self.whole = None

    def fill(self, direction, codes, inverse, is_shared, fetch):
        """What was gathered last; what else there was is of other values, or freed."""
        self.codes, self.inverses = {direction: codes}, {direction: inverse}
        self.is_shared, self.fetch, self.whole = is_shared, fetch, None

    def fill_whole(self, whole):
        """The same of a shard_programs.Whole."""
        self.fill(FORWARD, whole.codes, whole.inverse, True, None)
        self.whole = whole

    def get(self, direction):
        """(codes, inverses) of a direction."""
        direction = FORWARD if self.is_shared else direction
        if direction not in self.codes:
            self.codes[direction], self.inverses[direction] = self.fetch(direction)
        return self.codes[direction].view(self.dtype), self.inverses[direction]

    def get_values(self, direction, has_one_order=False):
        """The same as programs that take a weight's codes name it; with one order all take the forward's."""
        direction = FORWARD if has_one_order else direction
        codes, inverse = self.get(direction)
        if direction == FORWARD:
            return {"weight.codes": codes, "weight.scale_inv": inverse}
        if self.whole is not None:
            return {"weight.codes_1": self.whole.turned, "weight.scale_inv_1": self.whole.turned_inverse}
        # The other way round in memory: that is no other value, as their scales are of columns.
        turned = shard_programs.turn(codes, self.target)
        return {"weight.codes_1": turned, "weight.scale_inv_1": inverse.t().contiguous()}

    def dequantize(self, dtype):
        """The values of the forward's codes."""
        codes, inverse = self.get(FORWARD)
        for dim, (size, count) in enumerate(zip(codes.shape, inverse.shape)):
            if count not in (1, size):
                inverse = inverse.repeat_interleave(128, dim).narrow(dim, 0, size)
        return (codes.float() * inverse).to(dtype)


class GatheredWeight(torch.Tensor):
    """A parameter whose values are codes and scales, which fp8.torch.Linear takes as they are. All
    else that is computed of it is of their values."""

    @staticmethod
    def __new__(cls, sizes, dtype, device, content):
        made = torch.Tensor._make_wrapper_subclass(cls, sizes, dtype=dtype, device=device)
        made._content = content
        return made

    def __repr__(self):
        return f"GatheredWeight({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        aten = torch.ops.aten
        if func in (aten.detach.default, aten.as_strided.default, aten.alias.default) or (
                func is aten.view.default and tuple(args[1]) == tuple(args[0].shape)):
            return cls(args[0].shape, args[0].dtype, args[0].device, args[0]._content)
        args, kwargs = tree_map_only(cls, lambda each: each._content.dequantize(each.dtype),
                                     (args, kwargs or {}))
        return func(*args, **kwargs)


def is_gathered(tensor):
    return isinstance(tensor, GatheredWeight)


def is_parallel(tensor):
    """Whether it is a DTensor: a part of one whose others are elsewhere."""
    return hasattr(tensor, "device_mesh")


def get_plain(weight):
    """What a state_dict has for a weight that is gathered as codes: the same memory, as a tensor of
    no class of ours."""
    local = getattr(weight, "_local_tensor", weight)
    if not hasattr(local, "fsdp_pre_all_gather"):
        return weight
    if local is weight:
        return weight._data
    return type(weight).from_local(local._data, weight.device_mesh, weight.placements, run_check=False,
                                   shape=weight.shape, stride=weight.stride())
