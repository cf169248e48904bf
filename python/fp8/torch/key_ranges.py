"""Ranges of keys that queries see, as `fp8.attention` has them: of masks whose rows see keys beside each other, and of
sequences that are packed one after the other. And the first and the last key that one query sees, whatever lies between."""

import numpy
import torch

from fp8.torch.dense import is_plain, make_dense


def _find(mask):
    """The ranges of a mask, batches x queries x keys, and whether (one bool on the device) they say all."""
    keys, counts = mask.shape[2], mask.sum(-1, dtype=torch.int32)
    if keys == 0:
        return torch.stack([counts, counts], -1), torch.ones((), dtype=torch.bool, device=mask.device)
    # Numbers from 1 on, as narrow as they can be: a reduction takes as long as it reads. PyTorch's argmax takes longer.
    number = torch.arange(1, keys + 1, dtype=torch.int16 if keys < 32767 else torch.int32, device=mask.device)
    end = (mask * number).amax(-1).to(torch.int32)
    first = torch.where(mask, number, keys + 1).amin(-1).to(torch.int32) - 1
    says_all = ((counts == 0) | (end - first == counts)).all()
    return torch.stack([end - counts, end], -1), says_all


# Masks of so many elements are looked at by the host, which takes two copies where a GPU takes a dozen launches.
_MOST_ON_HOST = 1 << 16


def _find_on_host(mask):
    """The same, by the host."""
    seen = mask.cpu().numpy()
    counts, keys = seen.sum(-1, dtype=numpy.int32), seen.shape[2]
    if keys == 0:
        return torch.from_numpy(numpy.stack([counts, counts], -1)).to(mask.device), True
    end = numpy.where(counts, keys - seen[..., ::-1].argmax(-1), 0).astype(numpy.int32)
    says_all = bool(((counts == 0) | (end - seen.argmax(-1) == counts)).all())
    return torch.from_numpy(numpy.stack([end - counts, end], -1)).to(mask.device), says_all


def find(mask, query):
    """The ranges that a bool mask, of four dimensions, means for query, batches x heads x positions x columns: int32,
    batches x positions x 2. None if its rows have gaps, or differ between heads, or nobody may look.

    Looks at the mask, which has to wait for a GPU, once: a mask keeps what was found. In CUDA graphs and graphs of
    torch.compile nobody may."""
    if mask.dtype != torch.bool or (mask.shape[1] != 1 and mask.stride(1) != 0) or torch.compiler.is_compiling() or (
            not is_plain(mask)):
        return None
    if mask.is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    # Who changes it in place changes its version. Masks made in inference mode have none: only of those that nobody changes
    # (`_fp8_is_constant`) something is kept.
    version = getattr(mask, "_fp8_is_constant", None) if mask.is_inference() else mask._version
    kept = getattr(mask, "_fp8_ranges", None)
    if kept is None or version is None or kept[0] != version:
        one = mask[:, 0]
        for dim in range(2):
            if one.shape[dim] != 1 and one.stride(dim) == 0:
                one = one.narrow(dim, 0, 1)
        ranges, says_all = (_find_on_host if one.numel() <= _MOST_ON_HOST else _find)(one)
        kept = version, (ranges if bool(says_all) else None)
        mask._fp8_ranges = kept
    ranges = kept[1]
    if ranges is None:
        return None
    if ranges.is_inference() and not torch.is_inference_mode_enabled():
        ranges = ranges.clone()
    return make_dense(ranges.expand(query.shape[0], query.shape[2], 2))


def find_ends(mask):
    """The first key of each batch that a bool mask, batches x 1 x 1 x keys, lets its query see, and the number behind the
    last, both int32; all keys, where a backend traces a graph of any number of them. Nothing waits for a GPU. A mask that
    nobody changes (`_fp8_is_constant`) keeps both, but not in graphs of torch.compile, whose compiler finds what layers
    compute alike."""
    keeps = not torch.compiler.is_compiling() and is_plain(mask) and getattr(mask, "_fp8_is_constant", False)
    if keeps and hasattr(mask, "_fp8_ends"):
        return mask._fp8_ends
    seen, keys = mask[:, 0, 0], mask.shape[3]
    if keys == 0:
        return seen.sum(-1, dtype=torch.int32), seen.sum(-1, dtype=torch.int32)
    if not isinstance(keys, int):
        # Any number, in a graph: of a cache that has room for no more than it has, and Inductor's kernel for the GPU failed.
        return seen.new_zeros(seen.shape[0], dtype=torch.int32), seen.new_full(seen.shape[:1], keys, dtype=torch.int32)
    number = torch.arange(keys, dtype=torch.int32, device=mask.device)
    ends = torch.where(seen, number, keys).amin(-1), torch.where(seen, number + 1, 0).amax(-1)
    if keeps:
        mask._fp8_ends = ends
    return ends


def of_sequences(cu_seqlens_q, cu_seqlens_k, queries, left, right):
    """The ranges of `queries` queries of packed sequences, 1 x queries x 2: sequence i has those from cu_seqlens_q[i] up to
    cu_seqlens_q[i + 1], and such keys. The last query of a sequence is at its last key, and sees `left` keys before its own
    and `right` after that, None for all. Queries behind the last sequence see none. Nothing waits for a GPU."""
    number = torch.arange(queries, dtype=torch.int32, device=cu_seqlens_q.device)
    count = cu_seqlens_q.shape[0] - 1
    sequence = torch.searchsorted(cu_seqlens_q, number, right=True) - 1
    is_there = (sequence >= 0) & (sequence < count)
    sequence = sequence.clamp(0, max(count - 1, 0))
    first, end = cu_seqlens_k[sequence], cu_seqlens_k[sequence + 1]
    own = number + end - cu_seqlens_q[sequence + 1]
    first, end = torch.where(is_there, first, 0), torch.where(is_there, end, 0)
    if right is not None:
        end = torch.minimum(end, own + right + 1)
    if left is not None:
        first = torch.maximum(first, own - left)
    return torch.stack([first, end], -1)[None]
