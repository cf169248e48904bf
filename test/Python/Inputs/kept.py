"""What layers keep for a backward, and whether they share it."""

from unittest import mock

import torch

from fp8.torch import linear_ops


def count_saved(call):
    """Bytes of the memory that autograd keeps besides parameters, and what is computed."""
    sizes, kept = {}, []

    def pack(tensor):
        if not isinstance(tensor, torch.nn.Parameter):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = call()
    return sum(sizes.values()), result


def alone():
    """Within it, each layer keeps codes of its own."""
    return mock.patch.object(linear_ops.Unit, "shares_codes", False)
