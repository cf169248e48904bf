"""Attention of transformers' models by fp8.attention: `attn_implementation="fp8"`."""

import functools
import warnings

import torch

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import attention_calls, attention_scales, attention_transforms, key_ranges
from fp8.torch.attention_callers import calls_attention
from fp8.torch.attention_programs import ELEMENTS
from fp8.torch.cached_attention import attend_to_cache
from fp8.torch.dense import is_plain
from fp8.torch.scaled_dot_product import compute, scaled_dot_product_attention


def _repeat(x, count):
    return x if count == 1 else x.repeat_interleave(count, 1)


def _compute_plainly(query, key, value, mask, scale, is_causal, softcap, sinks, dropout):
    """Attention with what PyTorch's function has not, a cap of scores, and sinks, one more score for each head."""
    key, value = (_repeat(x, query.shape[1] // key.shape[1]) for x in (key, value))
    scores = torch.matmul(query, key.mT) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is None and is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, lowest) if mask.dtype == torch.bool else scores + mask
    if sinks is not None:
        added = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1).to(scores.dtype)
        scores = torch.cat([scores, added], -1)
    p = torch.softmax(scores.float(), -1).to(query.dtype)
    p = p if sinks is None else p[..., :-1]
    p = torch.nn.functional.dropout(p, dropout) if dropout else p
    return torch.matmul(p, value)


# What was registered, by name.
_registered = {}


def attach_registered(model):
    """Gives modules of a model that call attention which has scales of earlier steps what their first call would."""
    for name, module in model.named_modules():
        settings = _registered.get(getattr(getattr(module, "config", None), "_attn_implementation", None))
        if settings is not None and settings.recipe is not None and attention_scales.find(module) is None and (
                not getattr(module, "_fp8_keeps_attention", False)
                and not (settings.ends and _is_at_end(settings.ends, module)) and calls_attention(module)):
            attention_scales.make(module, settings.recipe, name)


@torch.compiler.assume_constant_result
def _warn_of_graph():
    warnings.warn("fp8: attention that is compiled before its first call has current scales, not the recipe's; "
                  "fp8.torch.make_states(model) before torch.compile keeps these", stacklevel=2)


def _find_unit(settings, module):
    """The number of what keeps the scales of a layer's attention, or -1."""
    if settings.recipe is None:
        return -1
    scales = module._modules.get(attention_scales.CHILD)
    if scales is None:
        if torch.compiler.is_compiling():
            _warn_of_graph()
            return -1
        scales = attention_scales.make(module, settings.recipe)
    return attention_scales.find_unit(scales.number, settings.recipe)


def _attend_to_ranges(settings, query, key, value, ranges, dropout, scale, sinks, cap, unit):
    """Attention of queries that see the keys of their ranges, as a padded prompt's do; None for what is PyTorch's."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)):
        return None
    reason = attention_calls.find_reason(settings, query, key, value, None, dropout, scale)
    if reason is not None:
        attention_calls.note(settings.number, "{}", reason)
        return None
    y = compute(query, key, value, scale=scale, key_ranges=ranges, sinks=sinks, cap=cap, dropout_p=dropout,
                format=settings.format, accumulate=settings.accumulate, unit=unit)
    attention_calls.note_taken(settings.number, "{} heads over {} of {} columns, ranges of keys{}{}{} in {}{}", query.shape[1],
                               key.shape[1], query.shape[3], "" if sinks is None else ", sinks",
                               "" if cap is None else f", cap {cap:g}", f", dropout {dropout:g}" if dropout else "",
                               attention_transforms.describe(settings.format, cap, sinks) or ELEMENTS[query.dtype], attention_calls.describe_scales(settings, unit))
    return y


def _is_causal(mask, otherwise):
    """Whether no query of a mask sees a key behind its own, where the queries' own are the last keys; `otherwise` where
    nobody may look."""
    if mask.shape[2] == 1:
        return True
    if torch.compiler.is_compiling() or not is_plain(mask) or mask.is_cuda and torch.cuda.is_current_stream_capturing():
        return otherwise
    found = getattr(mask, "_fp8_is_causal", None)
    if found is None:
        found = not bool(mask.triu(mask.shape[3] - mask.shape[2] + 1).any())
        if getattr(mask, "_fp8_is_constant", False):
            mask._fp8_is_causal = found
    return found


def _sees_as_cached(query, mask, window, causal):
    """Whether queries see what those of attend_to_cache do: no key behind their own, and the same for each head."""
    if window is not None or mask is None:
        return window is not None or causal or query.shape[2] == 1
    return (mask.shape[1] == 1 or mask.stride(1) == 0) and _is_causal(mask, causal)


def _attend_invariantly(settings, query, key, value, mask, dropout, scale, causal, window, ranges, sinks, cap):
    """Attention of which a query's bits depend on the keys that it sees alone. Raises UnsupportedError for what has none:
    PyTorch's would go unnoticed."""
    reason = attention_calls.find_reason(settings, query, key, value, None, dropout, scale)
    if reason is None and mask is not None and (mask.dtype != torch.bool or mask.dim() != 4):
        reason = f"a mask of {mask.dtype} of {mask.dim()} dimensions"
    if reason is not None:
        raise UnsupportedError(f"expected attention with an invariant kernel, but got {reason}")
    attention_calls.note_taken(settings.number, "{} heads over {} of {} columns, invariant, in {}", query.shape[1],
                               key.shape[1], query.shape[3], ELEMENTS[query.dtype])
    starts = None if mask is None or window is not None else getattr(mask, "_fp8_starts", None)
    if window is not None:
        mask = ranges = None
    if dropout or torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)) or (
            not _sees_as_cached(query, mask, window, causal)):
        window = window or ((None, 0) if causal and mask is None else None)
        return scaled_dot_product_attention(
            query, key, value, None if ranges is not None else mask, window=window, bottom_right=window is not None,
            key_ranges=ranges, sinks=sinks, cap=cap, scale=scale, dropout_p=dropout, invariant=True)
    lengths = torch.full(query.shape[:1], key.shape[2], dtype=torch.int32, device=query.device)
    if mask is not None:
        mask = mask[:, :1].expand(query.shape[0], 1, *mask.shape[2:])
        first, end = key_ranges.find_ends(mask if mask.shape[2] == 1 else mask.any(2, keepdim=True))
        starts = first if starts is None else starts
        # Nothing is read behind what one query sees.
        lengths = end if mask.shape[2] == 1 else lengths
    options = {"starts": starts, "sinks": sinks, "scale": scale, "cap": cap, "invariant": True,
               "window": None if window is None else window[0],
               **({"mask": mask} if ranges is None else {"key_ranges": ranges})}
    if not key.is_contiguous() and key.transpose(1, 2).is_contiguous():
        return attend_to_cache(query, key.transpose(1, 2), value.transpose(1, 2), lengths, layout="bshd", **options)
    return attend_to_cache(query, key, value, lengths, **options)


def _is_at_end(count, module):
    """Whether a layer's attention is of so many layers at either end of its model."""
    number, config = getattr(module, "layer_idx", None), getattr(module, "config", None)
    layers = getattr(config, "num_hidden_layers", None)
    return number is not None and layers is not None and not count <= number < layers - count


def _compute(settings, module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, softcap=None,
             s_aux=None, position_bias=None, **others):
    """What transformers calls: the result as batches x positions x heads x columns, and None."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    is_module_causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    causal = query.shape[2] > 1 and attention_mask is None and is_module_causal
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    window, ranges = (getattr(attention_mask, name, None) for name in ("_fp8_window", "_fp8_key_ranges"))
    if settings.invariant:
        if position_bias is not None or getattr(key, "_fp8_layer", None) is not None:
            raise UnsupportedError("expected invariant attention without a bias of positions, over keys in 16 bits")
        y = _attend_invariantly(settings, query, key, value, attention_mask, dropout, scale, is_module_causal, window,
                                ranges, s_aux, softcap)
        return y.transpose(1, 2).contiguous(), None
    layer = getattr(key, "_fp8_layer", None)
    if layer is None and (settings.ends and _is_at_end(settings.ends, module)
                          or settings.format is not None and getattr(module, "_fp8_keeps_attention", False)):
        settings = settings.plain
    if layer is not None:
        y = None
        if position_bias is None:
            y = layer.attend(settings, query, attention_mask, dropout, causal, scale, window, s_aux, softcap)
        if y is not None:
            return y.transpose(1, 2).contiguous(), None
        key, value = layer.widen(query.dtype)

    def compute_plainly():
        y = _compute_plainly(query, key, value, attention_mask, scale, causal, softcap, s_aux, dropout)
        return y.transpose(1, 2).contiguous(), None

    y = None
    if ranges is not None and window is None and position_bias is None and others.get("cache") is None:
        y = _attend_to_ranges(settings, query, key, value, ranges, dropout, scale, s_aux, softcap,
                              _find_unit(settings, module))
        if y is not None:
            return y.transpose(1, 2).contiguous(), None
    if position_bias is not None or others.get("cache") is not None:
        attention_calls.note(settings.number, "a bias of positions" if position_bias is not None else "pages")
    else:
        mask = None if window is not None else attention_mask
        y = attention_calls.attend(settings, query, key, value, mask, dropout, bool(causal), scale=scale, enable_gqa=True,
                                   window=window, bottom_right=window is not None, sinks=s_aux, cap=softcap,
                                   unit=_find_unit(settings, module))
    if y is not None:
        return y.transpose(1, 2).contiguous(), None
    if s_aux is not None or softcap is not None:
        return compute_plainly()
    given = {} if position_bias is None else {"position_bias": position_bias}
    return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling,
                                  is_causal=is_causal, **given, **others)


def _see_all(attention_mask):
    """Whether a mask of padding is known to hide nothing."""
    if attention_mask is None:
        return True
    return not torch.compiler.is_compiling() and attention_mask.device.type != "meta" and bool(attention_mask.all())


def _find_ranges(mask):
    """What the queries of a mask see, batches x queries x 2, if they see keys beside each other: where `generate` makes
    a mask before it calls a model, for a prompt."""
    if mask.dim() != 4 or mask.device.type == "meta":
        return None
    return key_ranges.find(mask, mask.new_empty((mask.shape[0], 1, mask.shape[2], 0)))


def _find_starts(mask, options):
    """The first key of each batch that is no padding, whatever a window hides of it. Of a cache that has dropped
    keys, numbers begin with those that it has."""
    padding = options.get("attention_mask")
    if padding is None or padding.dim() != 2:
        return torch.zeros(mask.shape[0], dtype=torch.int32, device=mask.device)
    return (padding.to(torch.int32).argmax(-1) - options.get("kv_offset", 0)).clamp(min=0).to(torch.int32)


def _make_mask(settings, *arguments, **options):
    """The mask that transformers makes for PyTorch's function. One that is a window, and no more, says so as
    `_fp8_window`, and one whose queries see keys beside each other, as `_fp8_key_ranges`: a view of it
    does not, and is a mask as others are. That of one query is not looked at, which the host would wait for at each
    token: a kernel reads it as it is."""
    from transformers.masking_utils import sdpa_mask
    mask = sdpa_mask(*arguments, **options)
    if mask is not None:
        # `generate` makes it so, and what it then is says nothing more.
        mask = mask.contiguous()
        # Layers only read it.
        mask._fp8_is_constant = True
        if settings.invariant:
            mask._fp8_starts = _find_starts(mask, options)
        if settings.format is None and mask.dim() == 4 and mask.shape[2] == 1:
            return mask
        ranges = _find_ranges(mask)
        if ranges is not None:
            mask._fp8_key_ranges = ranges
    if mask is None or arguments or not options.get("allow_is_causal_skip", True):
        return mask
    config, local = options.get("config"), options.get("local_size")
    is_chunked = getattr(config, "attention_chunk_size", None) is not None
    if local is not None and (is_chunked or getattr(config, "sliding_window", None) != local):
        return mask
    ends = [options.get(f"{name}_offset", 0) + options[f"{name}_length"] for name in ("q", "kv")]
    # A cache may have room behind the last key.
    if not all(isinstance(end, int) for end in ends) or ends[0] != ends[1] or not _see_all(options.get("attention_mask")):
        return mask
    mask._fp8_window = (None if local is None else local - 1, 0)
    return mask


def register_attention(name="fp8", *, format=None, accumulate=None, recipe=None, invariant=False, first_last_bf16=0,
                       smooth_k=False, hadamard=False, block=None, untimed=False):
    """Registers fp8.attention with transformers, for `attn_implementation=name`, and returns its Attention, whose
    `reasons` say which calls are PyTorch's instead: on a GPU what has no kernel.

    - format, accumulate, smooth_k, hadamard, block: as fp8.torch.scaled_dot_product_attention has them. Layers with a cap or sinks
      have keys as they are, which `taken` says;
    - recipe: in place of a format; with `fp8_dpa` it is E4M3, and with delayed scaling modules have their histories as
      `fp8_attention`, an AttentionScales that the first call makes, or convert_to_fp8_training;
    - invariant: a query's bits depend on the keys that it sees alone, not on padding, the batch, and how many queries there
      are; what has no such kernel is an UnsupportedError;
    - first_last_bf16: in how many layers at either end of a model it is computed in what it is of, but for those whose
      keys and values a cache of make_cache has;
    - untimed: on GPUs where nobody has timed our kernels calls are ours, too.

    Models have the results that they have with "sdpa", whose masks they make. Raises UnsupportedError without
    transformers.
    """
    try:
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError as error:
        raise UnsupportedError("expected transformers with AttentionInterface and AttentionMaskInterface, as "
                               "versions since 4.53 have them") from error
    if format is not None and recipe is not None:
        raise ArgumentError("expected a format or a recipe, but got both")
    settings = attention_calls.Attention(format, accumulate, invariant, recipe, smooth_k=smooth_k, hadamard=hadamard, block=block,
                                         untimed=untimed)
    if first_last_bf16 < 0:
        raise ArgumentError(f"expected first_last_bf16 to be 0 or more, but got {first_last_bf16}")
    if first_last_bf16 and settings.format is not None:
        settings.keep_ends(first_last_bf16)
    _registered[name] = settings
    AttentionInterface.register(name, functools.partial(_compute, settings))
    AttentionMaskInterface.register(name, functools.partial(_make_mask, settings))
    return settings
