"""FSDP2 of one rank, which copies what it need not."""

import torch
from torch.distributed.fsdp import FSDPModule


class _InPlace:
    """What FSDP2 asks for memory to reduce in: the same for what goes in and what comes out. Of one
    rank these are equal, and PyTorch copies no tensor to itself."""

    def __init__(self):
        self._given = None

    def allocate(self, size, *, dtype, device):
        given, self._given = self._given, None
        if given is not None and (given.shape, given.dtype, given.device) == (torch.Size(size), dtype, device):
            return given
        self._given = torch.empty(*size, dtype=dtype, device=device)
        return self._given

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        return torch.distributed.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=async_op)


def _get_groups(module):
    state = module._get_fsdp_state()
    return getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]


def reduce_in_place(model):
    """Spares one rank a copy of each gradient, where nobody has another way to reduce them."""
    meshes = {value.device_mesh for value in model.parameters() if hasattr(value, "device_mesh")}
    if not meshes or any(mesh.size() > 1 for mesh in meshes):
        return
    for module in model.modules():
        if not isinstance(module, FSDPModule) or not hasattr(module, "set_custom_reduce_scatter"):
            continue
        found = [getattr(each, "_reduce_scatter_comm", None) for each in _get_groups(module) if each is not None]
        if len(found) == 1 and type(found[0]).__name__ == "DefaultReduceScatter":
            module.set_custom_reduce_scatter(_InPlace())
