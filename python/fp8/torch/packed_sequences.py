"""Attention of sequences that are packed one after the other."""

import functools
import math

import torch

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import attention_backward, attention_ops, attention_transforms, key_ranges, scaled_dot_product
from fp8.torch.attention_programs import ELEMENTS
from fp8.torch.dense import is_plain, is_recorded, make_dense


def _clear_behind(x, cu_seqlens):
    """1 x positions x heads x columns with zeros behind the last sequence, where a kernel has written nothing."""
    is_there = torch.arange(x.shape[1], device=x.device) < cu_seqlens[-1]
    return torch.where(is_there[:, None, None], x, 0)


def _can_use_flash(query, value, right):
    return (query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and value.shape[3] == query.shape[3]
            and right in (None, 0)
            and torch.backends.cuda.is_flash_attention_available() and 0 not in (query.numel(), value.numel()))


def _run_backward(packed, grad, query, key, value, factors, output, lse, mask, ranges, state, sinks, *options):
    """By our kernel, where codes, a cap or dropout ask for it, by PyTorch's FlashAttention, which knows packed sequences, or
    the formula."""
    settings = attention_ops.Options(*options)
    cu_seqlens_q, cu_seqlens_k, most_q, most_k, left, right = packed
    is_consistent = bool(factors) and attention_backward.is_consistent(settings.accumulate)
    is_ours = is_consistent and attention_backward.takes_codes(query, value, output.dtype, False)
    if is_ours or settings.cap is not None or settings.dropout or not _can_use_flash(output, value, right):
        return attention_ops.run_backward(grad, query, key, value, factors, output, lse, mask, ranges, state, sinks,
                                          *options)
    query, key, value = attention_ops.widen(query, key, value, factors, output.dtype)
    if is_consistent:
        rule = attention_backward.Rule(settings.scale)
        lse = attention_backward.find_sums(*(x.transpose(1, 2) for x in (query, key, value)), rule, ranges, sinks)
    results = attention_backward.run_packed_flash(
        grad, query, key, value, output, lse, cu_seqlens_q, cu_seqlens_k, most_q, most_k, settings.scale, left, right)
    results = attention_transforms.differentiate(results, settings.format)
    return tuple(_clear_behind(x, cu_seqlens)
                 for x, cu_seqlens in zip(results, (cu_seqlens_q, cu_seqlens_k, cu_seqlens_k)))


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, mask, ranges, sinks, state, packed, *options):
        options, others = attention_ops.Options(*options), attention_ops.Others(mask, ranges, sinks, state)
        results = attention_ops.compute(query, key, value, others, options, options.format is not None)
        attention_ops.save(ctx, (query, key, value, *others, *options), results)
        ctx.packed = packed
        return tuple(results)

    @staticmethod
    def backward(ctx, grad, *others):
        if torch.is_grad_enabled():
            raise UnsupportedError("expected a backward without create_graph, since attention in FP8 has no second "
                                   "derivative")
        ctx.backward = functools.partial(_run_backward, ctx.packed)
        grads = attention_ops.differentiate(ctx, grad, *others)
        return (*grads[:7], None, *grads[7:])


def _check(query, key, value, cu_seqlens_q, cu_seqlens_k):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 3:
            raise ArgumentError(f"expected {name} to be positions x heads x columns, but got {tensor.dim()} dimensions")
        if tensor.dtype not in ELEMENTS or tensor.dtype != query.dtype or tensor.device != query.device:
            raise ArgumentError(f"expected {name} to be bf16, f16 or f32 on {query.device}, as query is, but got "
                                f"{tensor.dtype} on {tensor.device}")
    if key.shape[:2] != value.shape[:2] or key.shape[2] != query.shape[2]:
        raise ArgumentError(f"expected query, key and value to agree in positions and columns, but got "
                            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}")
    if key.shape[1] == 0 or query.shape[1] % key.shape[1]:
        raise ArgumentError(f"expected the heads of query to be a multiple of those of key, but got {query.shape[1]} and "
                            f"{key.shape[1]}")
    for name, tensor in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        fits = tensor.dtype == torch.int32 and tensor.dim() == 1 and tensor.shape[0] > 1
        if not fits or tensor.shape != cu_seqlens_q.shape or tensor.device != query.device:
            raise ArgumentError(f"expected {name} to be int32, sequences + 1, on {query.device}, but got {tensor.dtype} "
                                f"{tuple(tensor.shape)} on {tensor.device}")


def packed_attention(query, key, value, cu_seqlens_q, cu_seqlens_k, *, max_seqlen_q=None, max_seqlen_k=None,
                     is_causal=False, window=None, scale=None, sinks=None, cap=None, dropout_p=0.0, dropout_state=None,
                     format=None, accumulate=None, smooth_k=False, hadamard=False):
    """Attention of sequences that lie one after the other, as flash_attn_varlen_func has it.

    - query: positions of all sequences x heads x columns, bf16, f16 or f32; key and value may have fewer heads, and
      value other columns;
    - cu_seqlens_q, cu_seqlens_k: int32, sequence i has the positions from entry i up to entry i + 1 of query, and of key
      and value. The first is 0. A sequence's last query is at its last key;
    - max_seqlen_q, max_seqlen_k: no sequence is longer, for a GPU's backward; None for all positions;
    - is_causal: a query sees the keys up to its own; window=(left, right) sees so many before and after that, None for all;
    - scale, sinks, cap, dropout_p, dropout_state, format, accumulate, smooth_k, hadamard: those of
      fp8.torch.scaled_dot_product_attention; queries and keys count from the first of all. The mean of `smooth_k` is that of
      all sequences: whatever is taken from all keys, no softmax sees it.

    Returns positions x heads x columns of value; 0 for queries that see no key, as those behind the last sequence. Nothing
    waits for a GPU. Has a gradient, by PyTorch's FlashAttention on a GPU where that takes such tensors. Raises
    ArgumentError.
    """
    format = scaled_dot_product.join_format(format, smooth_k, hadamard, cap, sinks)
    scaled_dot_product.check_settings(format, accumulate)
    _check(query, key, value, cu_seqlens_q, cu_seqlens_k)
    left, right = scaled_dot_product.find_window(is_causal, window)
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    if not 0 < scale < math.inf:
        raise ArgumentError(f"expected scale to be finite and positive, but got {scale}")
    scaled_dot_product.check_others(query.transpose(0, 1)[None], None, sinks)
    ranges = key_ranges.of_sequences(make_dense(cu_seqlens_q), make_dense(cu_seqlens_k), query.shape[0], left, right)
    others = attention_ops.Others(None, make_dense(ranges), None if sinks is None else make_dense(sinks.float()),
                                  scaled_dot_product.find_state(query, dropout_p, dropout_state))
    # The ranges have the window.
    options = attention_ops.Options(False, scale, None, None, False, format, accumulate if format else None,
                                    scaled_dot_product.check_cap(cap), float(dropout_p))
    tensors = [make_dense(x)[None] for x in (query, key, value)]
    differentiable = [*tensors, *(x for x in (others.sinks,) if x is not None)]
    if is_recorded() or not is_plain(*tensors) or not (
            torch.is_grad_enabled() and any(x.requires_grad for x in differentiable)):
        return attention_ops.attend(*(x.transpose(1, 2) for x in tensors), others, options)[0].transpose(1, 2)[0]
    packed = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q or query.shape[0], max_seqlen_k or key.shape[0])
    return _Packed.apply(*tensors, *others, (*packed, left, right), *options)[0][0]
