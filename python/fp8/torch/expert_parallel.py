"""Tokens that go to experts on other ranks as codes, and come back in high precision.

    rows, ends, exchange = fp8.torch.dispatch(x, chosen, num_experts, group)
    y = fp8.torch.combine(experts(rows, ends), exchange)
    y = (y * weights[..., None]).sum(1)
"""

import weakref

import torch

import fp8
from fp8.errors import ArgumentError
from fp8.torch import steps
from fp8.torch.grouped_ops import GroupedUnit
from fp8.torch.linear_programs import ELEMENTS

_BLOCK = 128
# What ranks of groups were seen to agree on.
_compared = weakref.WeakKeyDictionary()


class Exchange:
    """Which rows of all ranks are multiplied where: what `dispatch` found, for `combine`.

    Rows that leave are sorted by expert, those of a token one for each of its experts. Rows that
    come are sorted by expert, then by rank. An expert so has the order of one process with all
    tokens, one rank's behind the other's.
    """

    def __init__(self, chosen, num_experts, group):
        self.group, self.sizes = group, tuple(chosen.shape)
        world = torch.distributed.get_world_size(group)
        chosen = chosen.flatten()
        self.order = torch.argsort(chosen, stable=True)
        leaving = torch.bincount(chosen, minlength=num_experts).view(world, -1)
        coming = torch.empty_like(leaving)
        torch.distributed.all_to_all_single(coming, leaving, group=group)
        # The host has to know how many rows there are: one wait for the GPU.
        self.leaving, self.coming = torch.stack([leaving.sum(1), coming.sum(1)]).tolist()
        experts = torch.arange(coming.shape[1], device=chosen.device).repeat(world)
        self.sorting = torch.argsort(experts.repeat_interleave(coming.flatten()), stable=True)
        self.ends = coming.sum(0).cumsum(0).to(torch.int32)

    def send(self, rows):
        """Rows that are sorted by expert go to where these are, and are sorted again."""
        come = rows.new_empty((sum(self.coming), *rows.shape[1:]))
        torch.distributed.all_to_all_single(come, rows.contiguous(), self.coming, self.leaving, group=self.group)
        return come[self.sorting]

    def send_back(self, rows):
        """The inverse."""
        unsorted = torch.empty_like(rows)
        unsorted[self.sorting] = rows
        come = rows.new_empty((sum(self.leaving), *rows.shape[1:]))
        torch.distributed.all_to_all_single(come, unsorted, self.leaving, self.coming, group=self.group)
        found = torch.empty_like(come)
        found[self.order] = come
        return found.view(*self.sizes, *rows.shape[1:])

    def find_rows(self, x):
        """Those of tokens that leave."""
        return x[self.order // self.sizes[1]]


def _send_codes(x, exchange):
    """The same values as x.to(codes) has, with one collective for codes and scales."""
    if not x.shape[0]:
        # Nothing leaves, but others' rows may come.
        codes, factors = (x.new_empty((0, size), dtype=dtype) for size, dtype in (
            (x.shape[1], torch.uint8), (-(-x.shape[1] // _BLOCK), torch.float32)))
    else:
        codes, factors, *_ = fp8.quantize(x, block=(1, _BLOCK), pow2=True)
    # Scales that are powers of two: what is multiplied has the same values, however it is quantized.
    parts = [each.contiguous().view(torch.uint8) for each in (codes, factors)]
    come = exchange.send(exchange.find_rows(torch.cat(parts, 1)))
    if not come.shape[0]:
        return x.new_empty((0, x.shape[1]))
    codes, factors = (part.contiguous().view(dtype) for part, dtype in zip(
        come.split([part.shape[1] for part in parts], 1), (torch.float8_e4m3fn, torch.float32)))
    return fp8.dequantize(fp8.casts.Quantized(codes, factors, None, "e4m3", (1, _BLOCK), "f32"),
                          ELEMENTS[x.dtype])


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exchange, codes):
        ctx.exchange = exchange
        return _send_codes(x.detach(), exchange) if codes else exchange.send(exchange.find_rows(x))

    @staticmethod
    def backward(ctx, gradient):
        return ctx.exchange.send_back(gradient.contiguous()).sum(1, dtype=torch.float32).to(gradient.dtype), None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, exchange):
        ctx.exchange = exchange
        return exchange.send_back(y)

    @staticmethod
    def backward(ctx, gradient):
        rows = gradient.reshape(-1, *gradient.shape[2:])[ctx.exchange.order]
        return ctx.exchange.send(rows), None


def _compare(line, group):
    """Before ranks wait for what others send otherwise."""
    known = _compared.setdefault(group or torch.distributed.group.WORLD, set())
    if line not in known:
        steps.check_ranks([line], group)
        known.add(line)


def dispatch(x, chosen, num_experts, group=None, codes=True):
    """Sends tokens to the ranks that have their experts.

    - x: of this rank, tokens x features of float32, float16 or bfloat16;
    - chosen: the experts of each token, tokens x experts of a token, integers;
    - num_experts: of all ranks, which have as many each, in order;
    - group: of torch.distributed, None for the default one;
    - codes: rows travel as E4M3 with a scale for 128 elements, a power of two: 1.03 bytes for an
      element. Without it as they are.

    Returns the rows for this rank's experts, sorted by these; where each expert's end, of int32, as
    torch.nn.functional.grouped_mm takes it; and what `combine` takes. Rows have the values of their
    codes, so that a recipe with such scales quantizes them to the same. Their gradient travels in
    high precision. Raises ArgumentError, and MismatchError on all ranks where their first calls differ.
    """
    world = torch.distributed.get_world_size(group)
    if x.ndim != 2 or x.dtype not in ELEMENTS:
        raise ArgumentError(f"expected x of tokens x features of float32, float16 or bfloat16, but got "
                            f"{list(x.shape)} of {x.dtype}")
    if chosen.ndim != 2 or chosen.shape[0] != x.shape[0] or chosen.is_floating_point():
        raise ArgumentError(f"expected integers, {x.shape[0]} x experts of a token, but got "
                            f"{list(chosen.shape)} of {chosen.dtype}")
    if num_experts % world:
        raise ArgumentError(f"expected a multiple of {world} experts, as many for each rank, but got {num_experts}")
    _compare(f"{num_experts} experts, {chosen.shape[1]} of a token of {x.shape[1]} x {x.dtype}, {'' if codes else 'no '}codes", group)
    GroupedUnit.rows_vary |= world > 1
    exchange = Exchange(chosen, num_experts, group)
    return _Dispatch.apply(x, exchange, codes), exchange.ends, exchange


def combine(y, exchange):
    """Sends what experts made of `dispatch`'s rows back: tokens x experts of a token x features."""
    if y.shape[0] != sum(exchange.coming):
        raise ArgumentError(f"expected y of {sum(exchange.coming)} rows, as dispatch returned, but got "
                            f"{list(y.shape)}")
    return _Combine.apply(y, exchange)
