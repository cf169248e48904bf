"""flex_attention of PyTorch by `fp8.attention`: functions over scores and masks as its cap, its mask, its window and its ranges
of keys."""

import math
from typing import NamedTuple

import torch
from torch.nn.attention.flex_attention import BlockMask

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import flex_plans, key_ranges
from fp8.torch.dense import is_on_gpu
from fp8.torch.flex_scores import INDICES, Reading, Scores
from fp8.torch.scaled_dot_product import compute, join_format

# Elements of a mask that are looked at together.
_MOST_ELEMENTS = 1 << 26
_BATCH, _HEAD, _QUERY, _KEY = range(INDICES)


class Plan(NamedTuple):
    """What `fp8.attention` is told.

    - scale: what scores are multiplied by beside the softmax's scale; cap: as the operation has it;
    - window: how many keys a query sees before and after its own; ranges: those that each query sees, or None;
    - mask: what is added to scores, or which are seen, or None;
    - rows: what is missing in logarithms of sums, since it is the same for all keys, or None.
    """

    scale: float
    cap: float | None
    window: tuple
    ranges: torch.Tensor | None
    mask: torch.Tensor | None
    rows: torch.Tensor | None


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, *,
                   format=None, accumulate=None, smooth_k=False, hadamard=False):
    """torch.nn.attention.flex_attention.flex_attention by `fp8.attention`, for what that can say.

    - score_mod: a function of a score and the numbers of its batch, head, query and key. It may multiply scores by a number,
      bend them by a tanh (softcap), add what it computes of the numbers (ALiBi, biases of positions), and hide keys by -inf;
    - block_mask: any; rows that see keys beside each other, as of causal, sliding, packed or prefixed sequences, become
      ranges, of which kernels skip the rest;
    - format, accumulate, smooth_k, hadamard: as scaled_dot_product_attention has them.

    What is added is a tensor, with a dimension only for what it depends on. Of ALiBi it has none of queries: what all keys
    have alike changes no softmax, and is added to the logarithms of sums alone. Functions are read again when numbers or
    tensors that they use are others, or were changed in place.

    Raises UnsupportedError with a reason for other functions, and for tensors of them that need a gradient. Raises ArgumentError
    for a block_mask of other sizes.
    """
    _check(query, key, score_mod, block_mask)
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise UnsupportedError(f"expected as many heads of keys as of queries without enable_gqa, but got {key.shape[1]} and "
                               f"{query.shape[1]}")
    if return_lse and torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)):
        raise UnsupportedError("expected logarithms of sums without a gradient, but got tensors that need one")
    plan = find_plan(query, key, score_mod, block_mask)
    format = join_format(format, smooth_k, hadamard, plan.cap)
    scale = (query.shape[-1] ** -0.5 if scale is None else scale) * plan.scale
    output, lse = compute(query, key, value, plan.mask, scale=scale, window=plan.window, key_ranges=plan.ranges, cap=plan.cap,
                          format=format, accumulate=accumulate, with_lse=True)
    if not return_lse:
        return output
    return output, lse if plan.rows is None else lse + plan.rows


def _check(query, key, score_mod, block_mask):
    if score_mod is not None and not callable(score_mod):
        raise ArgumentError(f"expected a function as score_mod, but got {type(score_mod).__name__}")
    if block_mask is None:
        return
    if not isinstance(block_mask, BlockMask):
        raise ArgumentError(f"expected a BlockMask as block_mask, but got {type(block_mask).__name__}")
    if block_mask.kv_num_blocks.device != query.device:
        raise ArgumentError(f"expected block_mask on {query.device}, but got it on {block_mask.kv_num_blocks.device}")
    wanted = query.shape[2], key.shape[2]
    if tuple(block_mask.seq_lengths) != wanted:
        raise ArgumentError(f"expected a block_mask of {wanted[0]} queries and {wanted[1]} keys, but got one of "
                            f"{block_mask.seq_lengths[0]} and {block_mask.seq_lengths[1]}")
    for what, size, own in zip(("batches", "heads"), query.shape, block_mask.kv_num_blocks.shape):
        if own not in (1, size):
            raise ArgumentError(f"expected a block_mask of 1 or {size} {what}, but got one of {own}")


@torch.compiler.disable
def find_plan(query, key, score_mod, block_mask):
    sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    is_captured = is_on_gpu(query) and torch.cuda.is_current_stream_capturing()
    if is_captured and flex_plans.uses_tensors(score_mod, block_mask):
        raise UnsupportedError("expected no capture of a CUDA graph around flex_attention with a block_mask, or functions that use "
                               "tensors, since replays would not look at these, but got one")

    def make():
        # What it computes waits for the GPU.
        if is_captured and 0 not in sizes:
            raise UnsupportedError("expected flex_attention to be called once with these functions and sizes before a CUDA graph "
                                   "of it is captured")
        return _make_plan(sizes, query.device, score_mod, block_mask)

    return flex_plans.find(score_mod, block_mask, (sizes, query.device), make)


def _make_plan(sizes, device, score_mod, block_mask):
    if 0 in sizes:
        return Plan(1.0, None, (None, None), None, None, None)
    numbers = [torch.arange(size, dtype=torch.int32, device=device) for size in sizes]
    scores = None if score_mod is None else Scores(score_mod, device)
    seen = _Seen(sizes, numbers, scores, block_mask)
    window, ranges, mask = seen.find()
    added, rows = _find_added(scores, sizes, numbers)
    if added is not None and mask is not None:
        mask = torch.where(mask, added, -math.inf)
    elif added is not None:
        mask = added
    return Plan(1.0 if scores is None else scores.scale, None if scores is None else scores.cap, window, ranges, mask, rows)


def _find_added(scores, sizes, numbers):
    """What is added to scores, and what all keys of a query have alike, or None."""
    if scores is None or not scores.added:
        return None, None
    reading = scores.reading
    by_key, rows = [], []
    for term in scores.added:
        (by_key if term.nodes and _KEY in reading.find_indices(term.nodes) else rows).append(term)

    def total(terms):
        if not terms:
            return None
        indices = reading.find_indices([node for term in terms for node in term.nodes])
        return reading.compute(terms, indices, numbers).float()

    added, rows = total(by_key), total(rows)
    hidden = None if rows is None or bool(rows.isfinite().all()) else torch.where(rows.isfinite(), 0, rows)
    if hidden is not None:
        rows = torch.where(rows.isfinite(), rows, 0)
    if added is not None and added.shape[2] == 1:
        # Small numbers keep more bits of scores; the last keys have those that matter to most queries.
        last = added[..., -1:]
        last = torch.where(last.isfinite(), last, 0)
        added, rows = added - last, last if rows is None else rows + last
    if hidden is not None:
        # Alike for all keys, and yet no softmax is the same: it has nothing left to see.
        added = hidden if added is None else added + hidden
    return added, None if rows is None else rows[..., 0].expand(*sizes[:3])


class _Seen:
    """Which keys are seen: by conditions of scores, and by a BlockMask."""

    def __init__(self, sizes, numbers, scores, block_mask):
        self.sizes, self.numbers, self.scores, self.block_mask = sizes, numbers, scores, block_mask
        self.reading, self.indices = None, set()
        if scores is not None:
            for node, _ in scores.seen:
                self.indices |= set(scores.reading.find_indices([node]))
        if block_mask is not None:
            self.reading = Reading(block_mask.mask_mod, numbers[0].device)
            self.indices |= set(self.reading.find_indices([self.reading.result])) | {_QUERY, _KEY}
            self.blocks = _find_blocks(block_mask)
            self.indices |= {place for place in (_BATCH, _HEAD) if self.blocks[0].shape[place] != 1}

    def find(self):
        """The window, ranges and a mask of bool, each None for none."""
        if not self.indices and (self.scores is None or not self.scores.seen):
            return (None, None), None, None
        batches, heads, queries, keys = self.sizes
        size = (batches if _BATCH in self.indices else 1) * keys
        if _HEAD not in self.indices:
            step = max(1, _MOST_ELEMENTS // size)
            found = [key_ranges._find(self._compute(first, min(queries, first + step))[:, 0].expand(-1, -1, keys))
                     for first in range(0, queries, step)]
            if bool(torch.stack([says_all for _, says_all in found]).all()):
                ranges = torch.cat([part for part, _ in found], 1)
                ranges = ranges.expand(ranges.shape[0], queries, 2)
                window = self._find_window(ranges)
                if window is not None:
                    return window, None, None
                return (None, None), ranges.expand(batches, -1, -1).contiguous(), None
        return (None, None), None, self._compute(0, queries)

    def _compute(self, first, end):
        numbers = list(self.numbers)
        numbers[_QUERY] = numbers[_QUERY][first:end]
        seen = torch.ones((1, 1, end - first, 1), dtype=torch.bool, device=numbers[0].device)
        if self.scores is not None and self.scores.seen:
            seen = seen & self.scores.is_seen(list(range(INDICES)), numbers)
        if self.reading is not None:
            own = self.reading.compute([self.reading.result], self.reading.find_indices([self.reading.result]), numbers)
            rows, columns = (numbers[place].long() // size for place, size in zip((_QUERY, _KEY), self.block_mask.BLOCK_SIZE))
            partial, full = (blocks[:, :, rows][..., columns] for blocks in self.blocks)
            seen = seen & (own.bool() & partial | full)
        return seen

    def _find_window(self, ranges):
        """A window that shows the same, or None."""
        if ranges.shape[0] != 1:
            return None
        keys, number = self.sizes[_KEY], torch.arange(self.sizes[_QUERY], device=ranges.device)
        first, end = ranges[0].long().unbind(-1)
        reach = int((number - first).max()), int((end - 1 - number).max())
        for left, right in ((None, None), (None, 0), (max(reach[0], 0), 0), (max(reach[0], 0), max(reach[1], 0))):
            lowest = torch.zeros_like(number) if left is None else (number - left).clamp(0, keys)
            highest = torch.full_like(number, keys) if right is None else (number + right + 1).clamp(0, keys)
            sees = (end > first) == (highest > lowest)
            if bool((sees & ((first == lowest) & (end == highest) | (end == first))).all()):
                return left, right
        return None


def _find_blocks(mask):
    """Whether blocks of queries and keys are looked at by the function of a mask, and whether they are seen as a whole."""
    def widen(counts, columns):
        if counts is None:
            return None
        kept = torch.arange(columns.shape[-1], device=columns.device) < counts[..., None]
        dense = torch.zeros(*columns.shape[:-1], columns.shape[-1] + 1, dtype=torch.bool, device=columns.device)
        dense.scatter_(-1, torch.where(kept, columns, columns.shape[-1]).long(), True)
        return dense[..., :-1]

    partial = widen(mask.kv_num_blocks, mask.kv_indices)
    full = widen(mask.full_kv_num_blocks, mask.full_kv_indices)
    blocks = partial, torch.zeros_like(partial) if full is None else full
    # A mask is often made for all batches and heads, and the same for each.
    for dim in (_BATCH, _HEAD):
        one = [x.narrow(dim, 0, 1) for x in blocks]
        if all(torch.equal(x, y.expand_as(x)) for x, y in zip(blocks, one)):
            blocks = one
    return blocks
