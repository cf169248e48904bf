"""FSDP2 of one rank, which copies what it need not."""

import itertools
import weakref

import torch
from torch.distributed.fsdp import FSDPModule
from torch.utils._pytree import tree_map_only


class _Content:
    """Gradients that lie where a backward has left them, by where they begin in one that has them all; or that one."""

    def __init__(self, size, dtype, device):
        self.size, self.dtype, self.device = size, dtype, device
        self.gradients, self.data = {}, None

    def keep(self, gradients):
        """Whether there is nothing to copy."""
        if self.data is not None or any(each.dtype != self.dtype or not each.is_contiguous() for each in gradients):
            return False
        # What is two parameters' gradient is changed twice by what changes each.
        if len({each.untyped_storage().data_ptr() for each in gradients}) < len(gradients):
            return False
        begins = itertools.accumulate((each.numel() for each in gradients), initial=0)
        self.gradients = dict(zip(begins, gradients))
        return True

    def get_data(self):
        if self.data is None:
            self.data = torch.empty(self.size, dtype=self.dtype, device=self.device)
            if self.gradients:
                torch.cat([each.view(-1) for each in self.gradients.values()], out=self.data)
            self.gradients = {}
        return self.data


class _Buffer(torch.Tensor):
    """What FSDP2 copies gradients to, reduces, and takes parts of. It copies when something else is done with it."""

    @staticmethod
    def __new__(cls, sizes, content):
        made = torch.Tensor._make_wrapper_subclass(cls, sizes, dtype=content.dtype, device=content.device)
        made._content = content
        return made

    def __repr__(self):
        return f"_Buffer({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        kwargs, aten = kwargs or {}, torch.ops.aten
        first, name = args[0] if args else None, func._schema.name
        content = getattr(first, "_content", None)
        if name == "fsdp::record_grad_output_stream":
            return None  # On streams of a GPU it does nothing.
        if name.startswith("fsdp::chunk_cat") and kwargs["out"]._content.keep(args[0]):
            return None
        if func is aten.view.default and len(args[1]) == 2:
            return cls((1, first.numel()), content)
        if func is aten.copy_.default and content is getattr(args[1], "_content", None):
            return first
        if func is aten.as_strided.default and args[3:] and args[3] in content.gradients:
            found = content.gradients[args[3]]
            if found.shape == torch.Size(args[1]):
                return found.detach()
        args, kwargs = tree_map_only(cls, lambda each: each._content.get_data().view(each.shape), (args, kwargs))
        return func(*args, **kwargs)


def _suits(group):
    """Whether what a backward leaves can be the gradients: nothing is done with them on another stream, behind which a
    GPU would have their memory for others."""
    def is_plain(each):
        parameter = each.sharded_param
        return parameter.grad is None and not each.offload_to_cpu and not getattr(
            parameter, "_post_accumulate_grad_hooks", None)
    return group is not None and getattr(group, "_all_reduce_hook", None) is None and all(map(is_plain, group.fsdp_params))


class _InPlace:
    """What FSDP2 asks for memory to reduce in: the same for what goes in and what comes out. Of one
    rank these are equal, and gradients are that memory where they can be."""

    def __init__(self, group):
        self._group, self._given = weakref.ref(group), None

    def allocate(self, size, *, dtype, device):
        size, given = torch.Size(size), self._given
        self._given = None
        if given is not None and (given.shape, given.dtype, given.device) == (size, dtype, torch.device(device)):
            return given
        if _suits(self._group()):
            self._given = _Buffer(size, _Content(size, dtype, torch.device(device)))
        else:
            self._given = torch.empty(size, dtype=dtype, device=device)
        return self._given

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        return torch.distributed.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=async_op)


# Models that were seen once: a walk through one takes a host longer than a small kernel.
_seen = weakref.WeakSet()


def _get_groups(module):
    state = module._get_fsdp_state()
    return getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]


def reduce_in_place(model):
    """Spares one rank the copies of each gradient, where nobody has another way to reduce them."""
    if model in _seen:
        return
    meshes = {value.device_mesh for value in model.parameters() if hasattr(value, "device_mesh")}
    if not meshes:
        return
    _seen.add(model)
    if any(mesh.size() > 1 for mesh in meshes):
        return
    for module in model.modules():
        if not isinstance(module, FSDPModule) or not hasattr(module, "set_custom_reduce_scatter"):
            continue
        groups = [each for each in _get_groups(module) if each is not None]
        if len(groups) == 1 and type(getattr(groups[0], "_reduce_scatter_comm", None)).__name__ == "DefaultReduceScatter":
            module.set_custom_reduce_scatter(_InPlace(groups[0]))
