"""Attention by `fp8.attention`."""

import math

import torch

from fp8.errors import ArgumentError
from fp8.torch import attention_dropout, attention_ops, attention_scales, attention_transforms
from fp8.torch.attention_programs import ELEMENTS, FORMATS, MASKS
from fp8.torch.dense import make_dense


def _check_tensors(query, key, value):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise ArgumentError(f"expected {name} to be batches x heads x positions x columns, but got {tensor.dim()} "
                                f"dimensions")
        if tensor.dtype not in ELEMENTS or tensor.dtype != query.dtype:
            raise ArgumentError(f"expected {name} to be bf16, f16 or f32, as query is, but got {tensor.dtype}")
    if key.shape[:3] != value.shape[:3] or key.shape[3] != query.shape[3] or key.shape[0] != query.shape[0]:
        raise ArgumentError(f"expected query, key and value to agree in batches, positions and columns, but got "
                            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}")
    if key.shape[1] == 0 or query.shape[1] % key.shape[1]:
        raise ArgumentError(f"expected the heads of query to be a multiple of those of key, but got {query.shape[1]} and "
                            f"{key.shape[1]}")
    if any(tensor.device != query.device for tensor in (key, value)):
        raise ArgumentError(f"expected query, key and value on one device, but got {query.device}, {key.device} and "
                            f"{value.device}")


def join_format(format_, smooth_k, hadamard, cap=None, sinks=None, block=None):
    """A format with what goes before its codes. Raises ArgumentError for what cannot."""
    reason = attention_transforms.find_reason(cap, sinks) if smooth_k else None
    if reason is not None:
        raise ArgumentError(f"expected no smooth_k here: {reason}")
    return attention_transforms.join(format_, smooth_k, hadamard, block)


def check_settings(format_, accumulate):
    """Raises ArgumentError for what is none."""
    format_ = attention_transforms.split(format_)[0]
    if format_ is not None and format_ not in FORMATS:
        raise ArgumentError(f"expected format to be None or one of {', '.join(FORMATS)}, but got {format_!r}")
    if accumulate not in (None, "fast", "promote"):
        raise ArgumentError(f"expected accumulate to be None, 'fast' or 'promote', but got {accumulate!r}")


def find_window(is_causal, window):
    """How many keys a query sees before its own and after it, None for all. Raises ArgumentError for what is none."""
    if is_causal and window is not None:
        raise ArgumentError("expected is_causal or a window, but got both")
    if window is None:
        return (None, 0) if is_causal else (None, None)
    if len(window) != 2 or any(side is not None and side < 0 for side in window):
        raise ArgumentError(f"expected window to be two numbers that are not negative, or None, but got {window}")
    return window


def _check_mask(mask, query, key):
    """The mask with four dimensions."""
    sizes = (*query.shape[:3], key.shape[2])
    if mask.dtype not in MASKS:
        raise ArgumentError(f"expected attn_mask to be bool, bf16, f16 or f32, but got {mask.dtype}")
    if mask.requires_grad and torch.is_grad_enabled():
        raise ArgumentError("expected attn_mask without a gradient, which fp8.attention has none of")
    if mask.dim() > 4 or any(size not in (1, whole) for size, whole in zip(mask.shape[::-1], sizes[::-1])):
        raise ArgumentError(f"expected attn_mask to be broadcast to {sizes}, but got {tuple(mask.shape)}")
    if mask.device != query.device:
        raise ArgumentError(f"expected attn_mask on {query.device}, as query is, but got {mask.device}")
    return mask[(None,) * (4 - mask.dim())]


def check_cap(cap):
    """A cap as a number, or None. Raises ArgumentError for what is none."""
    if cap is not None and not 0 < cap < math.inf:
        raise ArgumentError(f"expected cap to be finite and positive, but got {cap}")
    return None if cap is None else float(cap)


def find_state(query, rate, state):
    """The seed and the offset of dropout, or None without. Raises ArgumentError for what is none."""
    reason = attention_dropout.find_reason(rate)
    if reason is not None:
        raise ArgumentError(f"expected dropout_p from 0 to less than 1, but got {rate}")
    if rate == 0:
        return None
    if state is None:
        return attention_dropout.make_state(query.device)
    if state.dtype != torch.int64 or tuple(state.shape) != (2,) or state.device != query.device:
        raise ArgumentError(f"expected dropout_state to be int64 (2,) on {query.device}, but got {state.dtype} "
                            f"{tuple(state.shape)} on {state.device}")
    return make_dense(state)


def check_others(query, key_ranges, sinks):
    """Raises ArgumentError for ranges and sinks that are none of this query."""
    expected = (query.shape[0], query.shape[2], 2)
    if key_ranges is not None and (key_ranges.dtype != torch.int32 or key_ranges.shape != expected or (
            key_ranges.device != query.device)):
        raise ArgumentError(f"expected key_ranges to be int32 {expected} on {query.device}, but got {key_ranges.dtype} "
                            f"{tuple(key_ranges.shape)} on {key_ranges.device}")
    if sinks is not None and (sinks.dtype not in ELEMENTS or sinks.shape != query.shape[1:2] or (
            sinks.device != query.device)):
        raise ArgumentError(f"expected sinks to be bf16, f16 or f32 {tuple(query.shape[1:2])} on {query.device}, but got "
                            f"{sinks.dtype} {tuple(sinks.shape)} on {sinks.device}")


def _lies_heads_first(tensors):
    """In which of both ways less has to be copied."""
    copied = [sum(0 if x.transpose(1, 2).is_contiguous() else x.shape[1] * x.shape[3] for x in tensors),
              sum(0 if x.is_contiguous() else x.shape[1] * x.shape[3] for x in tensors)]
    return copied[1] < copied[0]


def scaled_dot_product_attention(query, key, value, attn_mask=None, *, is_causal=False, scale=None, window=None,
                                 bottom_right=False, key_ranges=None, sinks=None, cap=None, dropout_p=0.0,
                                 dropout_state=None, format=None, accumulate=None, invariant=False, scales=None,
                                 smooth_k=False, hadamard=False, block=None):
    """softmax(query key^T * scale) value, as torch.nn.functional's function of that name.

    - query: batches x heads x positions x columns, bf16, f16 or f32; key and value may have fewer heads, of which
      each serves as many of query (enable_gqa), and value other columns. Heads or positions may lie together in
      memory, and so does the result; what lies otherwise than most is copied;
    - attn_mask: of bool, whether a query sees a key, or numbers that are added to scores, without a gradient; beside a
      window, which hides keys as well;
    - is_causal: a query sees the keys up to its own number; window=(left, right) sees so many keys before and after
      that, None for all. `bottom_right` counts from the last key back, as FlashAttention does;
    - key_ranges: int32, batches x positions x 2: a query sees only keys from the first of both numbers up to, but not
      including, the second, of those that it would see otherwise;
    - sinks: of each head of query a score beside those of keys, which has no value: it takes its share of the softmax, and
      has a gradient;
    - scale: 1 / sqrt(columns) if it is None;
    - cap: cap * tanh(score / cap) takes the place of a score, before a mask is added to it; None for none;
    - dropout_p: the rate at which shares of values are left out, rounded to a multiple of 2^-16, whatever the mode; those
      that are kept count by 1 / (1 - dropout_p). Which they are, `dropout_state` says, a seed and an offset, int64 (2,);
      None draws both from torch's generator. The gradient is of the same shares, and nothing of their size is kept;
    - format: "e4m3" or "e5m2" quantizes query, key and value, each by its own largest magnitude, and computes both
      products in 8 bits; None computes in what they are;
    - scales: an AttentionScales, whose recipe says how query, key and value are scaled, in place of a format;
    - smooth_k, hadamard: with a format, what is done to query and key before they are codes, so that less is lost: the mean
      of each head's keys is taken away, which no softmax sees, but a cap and sinks would; columns of both are rotated, by the
      same orthogonal matrix (docs/Attention.md). With `scales` their recipe says so;
    - block: with a format, so many positions of each head share a factor, a multiple of 32, in place of all of the tensor; with
      "fast" value keeps one for the tensor. The gradient is of the numbers that codes stand for;
    - accumulate: with a format, "promote" (None) sums each tile of keys in f32, "fast" leaves it to the tensor core;
    - invariant: the bits of a query's result depend on the keys that it sees alone, not on how many queries and batches
      there are. Not with a format, whose scales are of the whole tensor.

    Its gradient is computed in the type of query, by our kernel or one of PyTorch's where they take such tensors, of the
    codes if there is a format: it goes straight through the quantization. There is no second derivative.

    Raises ArgumentError. On a GPU without a kernel for it, it is two products and a softmax (docs/Attention.md).
    """
    unit = -1
    format = join_format(format, smooth_k, hadamard, cap, sinks, block)
    if scales is not None:
        if format is not None or not isinstance(scales, attention_scales.AttentionScales):
            raise ArgumentError(f"expected an AttentionScales as scales, and no format, but got {type(scales).__name__} and "
                                f"{format!r}")
        format, unit = attention_scales.find_format(scales.recipe), attention_scales.find_unit(scales.number, scales.recipe)
        accumulate = accumulate or attention_scales.find_accumulate(scales.recipe)
    return compute(query, key, value, attn_mask, is_causal, scale, window, bottom_right, key_ranges, sinks, cap, dropout_p,
                   dropout_state, format, accumulate, invariant, unit)


def make_options(query, key, value, is_causal=False, scale=None, window=None, bottom_right=False, cap=None, dropout_p=0.0,
                 format=None, accumulate=None, invariant=False, unit=-1):
    """What operations are told beside tensors. Raises ArgumentError."""
    check_settings(format, accumulate)
    if invariant and format is not None:
        raise ArgumentError(f"expected no format in invariant attention, since scales are of all queries, but got {format!r}")
    _check_tensors(query, key, value)
    left, right = find_window(is_causal, window)
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    if not 0 < scale < math.inf:
        raise ArgumentError(f"expected scale to be finite and positive, but got {scale}")
    return attention_ops.Options(_lies_heads_first((query, key, value)), scale, left, right, bool(bottom_right), format,
                                 accumulate if format else None, check_cap(cap), float(dropout_p), bool(invariant), unit)


def compute(query, key, value, attn_mask=None, is_causal=False, scale=None, window=None, bottom_right=False,
            key_ranges=None, sinks=None, cap=None, dropout_p=0.0, dropout_state=None, format=None, accumulate=None,
            invariant=False, unit=-1, with_lse=False):
    """The same, where the number of an AttentionUnit is given, and maybe logarithms of sums beside the result."""
    options = make_options(query, key, value, is_causal, scale, window, bottom_right, cap, dropout_p, format, accumulate,
                           invariant, unit)
    check_others(query, key_ranges, sinks)
    others = attention_ops.Others(
        None if attn_mask is None else _check_mask(attn_mask, query, key),
        None if key_ranges is None else make_dense(key_ranges), None if sinks is None else make_dense(sinks.float()),
        find_state(query, dropout_p, dropout_state))
    results = attention_ops.attend(query, key, value, others, options)
    if not with_lse:
        return results[0]
    kept = attention_transforms.limit(format, options.cap, sinks)
    if attention_transforms.SMOOTH in attention_transforms.split(kept)[1]:
        return results[0], attention_transforms.correct_sums(results[1], query, key, options.scale)
    return tuple(results[:2])
