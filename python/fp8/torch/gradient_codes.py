"""Gradients that DistributedDataParallel adds up as codes of 8 bits.

    model = DistributedDataParallel(model)
    fp8.torch.reduce_in_fp8(model)
"""

import torch

from fp8.errors import ArgumentError
from fp8.torch import steps

_BLOCK = 128
_LARGEST = 448.0
_LEAST = 2.0 ** -110


def _pad(size, multiple):
    return -(-size // multiple) * multiple


def quantize(values):
    """E4M3 codes of [rows, 128 x blocks] in f32, as bytes, with the inverse of a block's scale behind each row."""
    blocks = values.view(values.shape[0], -1, _BLOCK)
    amax = blocks.abs().amax(-1)
    # A block of next to nothing has any scale: its own would be rounded where f32 ends. What is no number stays so in all
    # of its block.
    inverse = torch.where(amax < _LEAST, 1.0, amax / _LARGEST)
    # Casts of what is larger differ between versions of PyTorch.
    codes = (blocks / inverse[..., None]).clamp(-_LARGEST, _LARGEST).to(torch.float8_e4m3fn).view(torch.uint8).flatten(1)
    return torch.cat([codes, inverse.contiguous().view(torch.uint8)], 1)


def dequantize(bytes):
    """The values of what `quantize` returned."""
    count = bytes.shape[1] * _BLOCK // (_BLOCK + 4)
    codes, inverse = bytes[:, :count].contiguous(), bytes[:, count:].contiguous()
    values = codes.view(torch.float8_e4m3fn).float().view(bytes.shape[0], -1, _BLOCK)
    return (values * inverse.view(torch.float32)[..., None]).flatten(1)


class _State:
    """What is left of a bucket's gradients when they are rounded, for the next step: of all that a rank gives, and of the part
    that it adds up."""

    def __init__(self, group, keeps_errors):
        self.group, self.keeps_errors, self.errors = group, keeps_errors, {}

    def round(self, key, parameters, values):
        """Bytes of values, of these parameters, and what was left of the last ones."""
        order, left = self.errors.get(key, (None, None))
        # Buckets are made anew behind the first step.
        if self.keeps_errors and order == parameters and left.shape == values.shape:
            values = values + left
        bytes = quantize(values)
        if self.keeps_errors:
            # What is no number is in the gradients already, and not in those of all later steps.
            self.errors[key] = parameters, torch.nan_to_num(values - dequantize(bytes), 0.0, 0.0, 0.0)
        return bytes


def _reduce(state, bucket):
    """The hook: each rank adds up its part of a bucket, of the codes of all ranks, and sends codes of the mean to all."""
    world, buffer, index = torch.distributed.get_world_size(state.group), bucket.buffer(), bucket.index()
    size = _pad(buffer.numel(), world * _BLOCK)
    parts = torch.nn.functional.pad(buffer.float(), (0, size - buffer.numel())).view(world, -1)
    order = tuple((id(parameter), parameter.numel()) for parameter in bucket.parameters())
    given = state.round((index, "given"), order, parts)
    found = torch.empty_like(given)
    torch.distributed.all_to_all_single(found, given, group=state.group)
    mean = state.round((index, "mean"), order, dequantize(found).sum(0, keepdim=True) / world)
    every = mean.new_empty((world, mean.shape[1]))
    work = torch.distributed.all_gather_into_tensor(every, mean, group=state.group, async_op=True)

    def finish(future):
        buffer.copy_(dequantize(every).flatten()[:buffer.numel()])
        return buffer
    return work.get_future().then(finish)


def reduce_in_fp8(model, group=None, keeps_errors=True):
    """Makes a DistributedDataParallel add up gradients as E4M3 codes with a scale for 128 elements: 1.03 bytes for each in
    place of two or four, twice. What rounding leaves is added to the gradients of the next step, unless `keeps_errors` is
    off, which takes five bytes or so of memory for each element. Sums are of f32. It goes before the first backward, and
    losses are no more those of gradients in high precision. Returns the model.
    """
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise ArgumentError(f"expected a DistributedDataParallel, but got {type(model).__name__}")
    group = group or model.process_group
    steps.check_ranks(["gradients as codes"], group)
    model.register_comm_hook(_State(group, keeps_errors), _reduce)
    return model
