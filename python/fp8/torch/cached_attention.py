"""Attention to keys and values that were computed before, as decoding has it."""

import functools
import math

import torch

from fp8.compiler import get_default_target
from fp8.errors import ArgumentError
from fp8.torch import attention_programs, attention_ready, flops, operations
from fp8.torch.dense import is_on_gpu, is_plain, is_recorded, make_dense
from fp8.torch.scaled_dot_product import check_cap, check_others

_FORMATS = {dtype: name for name, dtype in attention_programs.CODES.items()}
_LAYOUTS = ("bhsd", "bshd")


def _run(query, keys, values, lengths, page_table, starts, ranges, mask, sinks, k_scale, v_scale, heads_first, scale, left,
         accumulate, cap=None, invariant=False):
    place, gpu = 1 if heads_first else 2, is_on_gpu(query)
    format_, queries = _FORMATS.get(keys.dtype), query.shape[3 - place]
    page = None if page_table is None else keys.shape[3 - place]
    factors = (k_scale, v_scale) if format_ else (None, None)
    arguments = (query, keys, factors[0], values, factors[1], lengths, page_table, starts, ranges, mask, sinks)
    tensors = [x for x in arguments if x is not None]
    told = ("cached", query.dtype, keys.dtype, query.shape[place], keys.shape[place], query.shape[3], values.shape[3],
            queries if queries <= attention_programs.FEW else None, page, starts is None, ranges is None, mask is None,
            sinks is None, heads_first, scale, left, accumulate, cap, invariant)
    results = attention_ready.shared.run(told, tensors) if gpu else None
    if results is not None:
        return results[0]
    shape = attention_programs.Shape(
        attention_programs.ELEMENTS[query.dtype], query.shape[place], keys.shape[place], query.shape[3], values.shape[3],
        heads_first, scale, left, 0, True, None, accumulate, cap, invariant=invariant, ranges=ranges is not None,
        sinks=sinks is not None, cache=attention_programs.Cache(format_, page, starts is not None, mask is not None))
    shape = shape._replace(queries=attention_programs.find_queries(shape, queries))
    with torch.no_grad():
        function = attention_programs.get_function(shape, get_default_target() if gpu else "cpu")
        result = function(*tensors)
        attention_ready.shared.add(told, function, tensors)
        return result


def _infer(query, keys, values, *others):
    return query.new_empty((*query.shape[:3], values.shape[3]))


_attend = operations.define(
    "cached_attention(Tensor query, Tensor keys, Tensor values, Tensor lengths, Tensor? page_table, Tensor? starts, "
    "Tensor? ranges, Tensor? mask, Tensor? sinks, Tensor? k_scale, Tensor? v_scale, bool heads_first, float scale, int? left, "
    "str? accumulate, float? cap=None, bool invariant=False) -> Tensor", _run, _infer,
    flops=flops.count_cached_attention)


@functools.lru_cache(maxsize=256)
def _make_factor(value, device):
    return torch.full((1, 1, 1, 1), value, dtype=torch.float32, device=device)


def make_factor(value, name, device):
    """A number, or a tensor of one, as programs take it."""
    if not isinstance(value, torch.Tensor):
        if not 0 < value < math.inf:
            raise ArgumentError(f"expected {name} to be finite and positive, but got {value}")
        # What is made within a CUDA graph has its number once that runs.
        is_captured = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        return (_make_factor.__wrapped__ if is_captured else _make_factor)(float(value), device)
    if value.numel() != 1 or value.device != device:
        raise ArgumentError(f"expected {name} to be a number, or a tensor of one element on {device}, but got "
                            f"{tuple(value.shape)} on {value.device}")
    return value.detach().to(torch.float32).reshape(1, 1, 1, 1)


def _check_cache(query, keys, values, layout, page_table):
    sizes = [list(keys.shape), list(values.shape)]
    if layout == "bshd":
        sizes = [[a, c, b, d] for a, b, c, d in sizes]
    (batches, heads, _, dim), of_values = sizes
    fits = sizes[0][:3] == of_values[:3] and dim == query.shape[3]
    if not fits or (page_table is None and batches != query.shape[0]):
        raise ArgumentError(f"expected query, keys and values to agree in batches, positions and columns, but got "
                            f"{tuple(query.shape)}, {tuple(keys.shape)} and {tuple(values.shape)} of {layout}")
    if heads == 0 or query.shape[1] % heads:
        raise ArgumentError(f"expected the heads of query to be a multiple of those of keys, but got {query.shape[1]} and "
                            f"{heads}")
    if keys.dtype != values.dtype or keys.dtype not in (query.dtype, *_FORMATS):
        raise ArgumentError(f"expected keys and values of {query.dtype}, as query is, float8_e4m3fn or float8_e5m2, but "
                            f"got {keys.dtype} and {values.dtype}")


def _check_mask(mask, query, keys, layout, page_table):
    if page_table is not None:
        raise ArgumentError("expected a mask or a page_table, but got both")
    expected = (query.shape[0], 1, query.shape[2], keys.shape[2 if layout == "bhsd" else 1])
    if mask.dtype != torch.bool or mask.shape != expected:
        raise ArgumentError(f"expected mask to be bool {expected}, but got {mask.dtype} {tuple(mask.shape)}")


def _check(query, keys, values, lengths, layout, page_table, starts, key_ranges, mask, sinks):
    for name, tensor in (("query", query), ("keys", keys), ("values", values)):
        if tensor.dim() != 4:
            raise ArgumentError(f"expected {name} to have four dimensions, but got {tensor.dim()}")
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise ArgumentError(f"expected {name} without a gradient, or torch.no_grad()")
    if query.dtype not in attention_programs.ELEMENTS:
        raise ArgumentError(f"expected query to be bf16, f16 or f32, but got {query.dtype}")
    if layout not in _LAYOUTS:
        raise ArgumentError(f"expected layout to be one of {', '.join(_LAYOUTS)}, but got {layout!r}")
    _check_cache(query, keys, values, layout, page_table)
    tables = [(name, tensor, rank) for name, tensor, rank in (
        ("lengths", lengths, 1), ("page_table", page_table, 2), ("starts", starts, 1)) if tensor is not None]
    for name, tensor, rank in tables:
        if tensor.dtype != torch.int32 or tensor.dim() != rank or tensor.shape[0] != query.shape[0]:
            raise ArgumentError(f"expected {name} to be int32 with {rank} dimension{'s' * (rank > 1)}, the first of "
                                f"{query.shape[0]}, but got {tensor.dtype} {tuple(tensor.shape)}")
    check_others(query, key_ranges, sinks)
    if mask is not None:
        _check_mask(mask, query, keys, layout, page_table)
    others = keys, values, lengths, page_table, starts, mask, sinks
    if any(tensor is not None and tensor.device != query.device for tensor in others):
        raise ArgumentError(f"expected all tensors on {query.device}, as query is")


def attend_to_cache(query, keys, values, lengths, *, page_table=None, starts=None, key_ranges=None, mask=None,
                    sinks=None, layout="bhsd", k_scale=1.0, v_scale=1.0, scale=None, window=None, cap=None,
                    accumulate=None, invariant=False):
    """Attention of new positions to keys and values that end with their own, as decoding and chunks of a prompt have it.

    - query: batches x heads x new positions x columns, bf16, f16 or f32;
    - keys, values: batches x heads x positions x columns with layout "bhsd", batches x positions x heads x columns with
      "bshd", contiguous; of the type of query, or codes, float8_e4m3fn or float8_e5m2, of which value / k_scale is one;
    - lengths: int32, how many of the positions each batch has, the new ones included; what lies beyond is not looked at;
    - page_table: None, or int32, batches x pages: keys and values are pages in place of batches, each of as many
      positions, of which these are the numbers;
    - starts: None, or int32, the first position of each batch, as where prompts are padded on the left; what lies before
      is not looked at either;
    - key_ranges: None, or int32, batches x new positions x 2: a query sees only keys from the first of both numbers up to,
      but not including, the second, of those that it would see otherwise;
    - mask: None, or bool, batches x 1 x new positions x positions: whether a query sees a key, of those that it would see
      otherwise; not with pages;
    - sinks: None, or of each head of query a score beside those of keys, which has no value;
    - k_scale, v_scale: what codes are multiplied by, numbers or tensors of one f32, as checkpoints have them;
    - scale: 1 / sqrt(columns) if it is None;
    - cap: cap * tanh(score / cap) takes the place of a score, None for none;
    - window: how many positions a query sees before its own, all if it is None; it sees none after that;
    - accumulate: with codes, "promote" (None) sums each tile of keys in f32, "fast" leaves it to the tensor core;
    - invariant: the bits of a query's result depend on the keys that it sees alone (docs/Attention.md).

    Returns batches x heads x new positions x columns of values, of the type of query. Without a gradient. With codes the
    query is quantized by its own largest magnitude. Nothing waits for the GPU, so that it can be part of a CUDA graph.
    Raises ArgumentError.
    """
    _check(query, keys, values, lengths, layout, page_table, starts, key_ranges, mask, sinks)
    if accumulate not in (None, "fast", "promote"):
        raise ArgumentError(f"expected accumulate to be None, 'fast' or 'promote', but got {accumulate!r}")
    if window is not None and window < 0:
        raise ArgumentError(f"expected window not to be negative, but got {window}")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    if not 0 < scale < math.inf:
        raise ArgumentError(f"expected scale to be finite and positive, but got {scale}")
    cap = check_cap(cap)
    heads_first, has_codes = layout == "bhsd", keys.dtype in _FORMATS
    factors = [make_factor(value, name, query.device) if has_codes else None
               for name, value in (("k_scale", k_scale), ("v_scale", v_scale))]
    run = _run if not is_recorded() and is_plain(query, keys, values) else _attend
    with torch.no_grad():
        query = make_dense(query if heads_first else query.transpose(1, 2))
        sinks = None if sinks is None else sinks.float()
        others = (None if x is None else make_dense(x) for x in (page_table, starts, key_ranges, mask, sinks))
        result = run(query, make_dense(keys), make_dense(values), make_dense(lengths), *others, *factors, heads_first,
                     scale, window, accumulate if has_codes else None, cap, bool(invariant))
    return result if heads_first else result.transpose(1, 2)
