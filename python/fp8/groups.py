"""Ranks that share the amaxes of tensors of which each has a part.

A program with `fp8.all_reduce_amax`, or with `fp8.amax_group` on a function, names a group. What
reduces over it is set here, before the program is called.
"""

import ctypes

from fp8 import _core
from fp8.errors import ArgumentError, DeviceError


def set_group(name, reduce):
    """Makes `reduce(amaxes)` what programs call for a group. It gets an array of NumPy, of f32 that
    are not negative, and replaces each by the largest that a rank has in its place; all ranks call
    it as often, and in the same order. None removes it.

    Amaxes are to be compared as integers of their bits, so that NaN is the largest. Those of a
    program on a GPU are reduced by `fp8.torch.set_group` or `create_nccl_group`.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise ArgumentError(f"expected the name of a group, but got {name!r}")
    if reduce is not None and not callable(reduce):
        raise ArgumentError(f"expected something to call, or None, but got {type(reduce).__name__}")

    def call(address, count, device, stream):
        if device >= 0:
            raise DeviceError("expected amaxes of the host, but got some of a GPU: "
                              "fp8.torch.set_group and fp8.create_nccl_group reduce these")
        reduce(_view(address, count))

    _core.set_group(name, None if reduce is None else call)


def _view(address, count):
    import numpy as np
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def create_nccl_id():
    """Bytes that the ranks of a new group share: one makes them, and sends them to the others.
    Raises NotFoundError without NCCL."""
    return _core.create_nccl_id()


def create_nccl_group(name, id, size, rank, device):
    """Has NCCL reduce over a group of so many ranks, of which this process is one, on a GPU. Waits
    for the others. Raises NotFoundError without NCCL."""
    _core.create_nccl_group(name, id, size, rank, device)
