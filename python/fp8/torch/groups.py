"""Groups of torch.distributed that share the amaxes of programs."""

import contextlib

import torch

from fp8 import _core
from fp8.errors import ArgumentError
from fp8.torch import steps


def set_group(name, group=None):
    """Has a group of torch.distributed (None: the default one) reduce the amaxes of programs over
    the group that they call so: gloo those of the host, NCCL those of a GPU."""
    if not torch.distributed.is_initialized():
        raise ArgumentError("expected torch.distributed to be initialized, but it is not")

    def reduce(address, count, device, stream):
        with torch.inference_mode(False), _in_stream(device, stream):
            amaxes = steps.make_row(address, count, device if device >= 0 else None)
            torch.distributed.all_reduce(amaxes.view(torch.int32), torch.distributed.ReduceOp.MAX, group=group)

    _core.set_group(name, reduce)


def _in_stream(device, stream):
    if device < 0:
        return contextlib.nullcontext()
    if stream == 0:
        return torch.cuda.stream(torch.cuda.default_stream(device))
    return torch.cuda.stream(torch.cuda.ExternalStream(stream, device=f"cuda:{device}"))
