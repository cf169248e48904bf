"""Calls of PyTorch's attention that fp8.attention computes in its place, and why others are PyTorch's."""

import itertools
import math
import weakref

import torch

from fp8.compiler import get_default_target
from fp8.errors import ArgumentError
from fp8.torch import (attention_backward, attention_dropout, attention_ready, attention_scales, attention_transforms, key_ranges,
                       linear_ops)
from fp8.torch.attention_programs import ELEMENTS, MASKS
from fp8.torch.cached_attention import attend_to_cache
from fp8.torch.dense import is_on_gpu
from fp8.torch.scaled_dot_product import check_settings, compute, make_options

_numbers = itertools.count()
_settings = weakref.WeakValueDictionary()


class Attention:
    """How attention is computed: in 8 bits of `format`, or in what it is of, with sums as `accumulate` says
    (fp8.torch.scaled_dot_product_attention, which has `smooth_k`, `hadamard` and `block`, too); with `invariant` a query's bits depend on the keys that it sees alone.

    With a `recipe` that has fp8_dpa format and sums are the recipe's, and so are scales where a module keeps them
    (fp8.torch.AttentionScales).

    With `untimed` it is so on any GPU that has kernels, also where nobody has timed them: all but sm_90a.

    `reasons` say why calls were left to PyTorch, each once; `taken` how many different calls were not: of heads, columns
    and windows.
    """

    def __init__(self, format=None, accumulate=None, invariant=False, recipe=None, *, smooth_k=False, hadamard=False,
                 block=None, untimed=False):
        format = attention_transforms.join(format, smooth_k, hadamard, block)
        check_settings(format, accumulate)
        if recipe is not None:
            # The text of one with scales of other steps, or None.
            format, accumulate, recipe = describe(recipe, accumulate)
        self.recipe = recipe
        if invariant and format is not None:
            raise ArgumentError(f"expected no format of invariant attention, but got {format!r}")
        self.format, self.accumulate, self._reasons, self._taken = format, accumulate, {}, {}
        self.invariant, self.untimed = bool(invariant), bool(untimed)
        self.number = next(_numbers)
        self.ends, self._plain = 0, None
        self.calls = attention_ready.Calls()
        _settings[self.number] = self

    def keep_ends(self, count):
        """So many layers at either end of a model are computed in what they are of."""
        self.ends = count

    @property
    def plain(self):
        """That of layers which are computed in what they are of."""
        if self._plain is None:
            self._plain = Attention(accumulate=None, untimed=self.untimed)
            self._plain._reasons, self._plain._taken = self._reasons, self._taken
        return self._plain

    @property
    def reasons(self):
        return tuple(self._reasons)

    @property
    def taken(self):
        return tuple(self._taken)

    def explain(self):
        """Prints both."""
        for text in self._taken:
            print(f"attention of {text}: fp8.attention")
        for reason in self._reasons:
            print(f"attention: PyTorch's: {reason}")


def describe(recipe, accumulate=None):
    """The format of a recipe's attention, how its sums are added up, and its text, where scales are no present ones;
    three times None without fp8_dpa."""
    text = attention_scales.find_text(recipe)
    if text is None:
        return None, None, None
    return (attention_scales.find_format(text), accumulate or attention_scales.find_accumulate(text),
            text if attention_scales.has_scales(text) else None)


# Those that converted modules and autocast share, by what they are of.
_shared = {}


def share(key):
    """What `get_shared` takes for what `describe` says: None without a format."""
    if key is None or key[0] is None:
        return None
    if isinstance(key, str):  # A module that was pickled before there were recipes.
        key = key, None, None
    if key not in _shared:
        _shared[key] = Attention(*key[:2])
        _shared[key].recipe = key[2]
    return key


def get_shared(key):
    return _shared.get(key)


def get(number):
    """The Attention of that number. Raises ArgumentError if it is gone."""
    settings = _settings.get(number)
    if settings is None:
        raise ArgumentError("expected the Backend of a compiled graph to be alive, but it is gone")
    return settings


# Dynamo asks what follows once for a graph.

@torch.compiler.assume_constant_result
def note(number, text, *values):
    """Notes why a call is PyTorch's, or None."""
    _settings[number]._reasons[text.format(*values)] = None


@torch.compiler.assume_constant_result
def note_taken(number, text, *values):
    _settings[number]._taken[text.format(*values)] = None


@torch.compiler.assume_constant_result
def _find_target():
    return get_default_target()


def find_reason_on_gpu(query, value, settings):
    """Why there is no kernel, or None: scores would be in memory."""
    target = _find_target()
    if target != "sm_90a" and not settings.untimed:
        is_emulated = target in ("sm_100a", "sm_120a", "sm_121a")
        return f"the kernel for {target} has {'run on the emulator alone' if is_emulated else 'been timed on no such GPU'}: untimed=True takes it"
    if query.dtype == torch.float32:
        return "f32 has no kernel on a GPU"
    columns, step = (query.shape[3], value.shape[3]), 32 if settings.format else 16
    most = 192 if settings.format and settings.accumulate != "fast" else 256
    if any(count % step or count > most for count in columns):
        return f"a kernel has multiples of {step} columns up to {most}, but there are {columns[0]} and {columns[1]}"
    return None


def _needs_gradient(*tensors):
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _find_reason_of_mask(mask, sizes):
    if mask.requires_grad and torch.is_grad_enabled():
        return "a mask with a gradient"
    if mask.dtype not in MASKS:
        return f"a mask of {mask.dtype}"
    if mask.dim() > 4 or any(size not in (1, whole) for size, whole in zip(reversed(mask.shape), reversed(sizes))):
        return f"a mask of {tuple(mask.shape)} for scores of {tuple(sizes)}"
    return None


def find_seen(settings, query, key, value, mask, sinks=None):
    """A mask of one query in the form that kernels take it in, bool, batches x 1 x 1 x keys, or None if it has another, or
    something has a gradient. Nobody looks at what it says: it may have gaps."""
    if mask is None or settings.format is not None or mask.dtype != torch.bool or mask.dim() != 4:
        return None
    if _needs_gradient(*(x for x in (query, key, value, sinks) if x is not None)):
        return None
    if mask.shape[1] != 1 and mask.stride(1) == 0:
        mask = mask.narrow(1, 0, 1)
    batches, keys = query.shape[0], key.shape[2]
    if query.shape[2] != 1 or tuple(mask.shape[1:]) != (1, 1, keys) or mask.shape[0] not in (1, batches):
        return None
    return mask if mask.shape[0] == batches else mask.expand(batches, 1, 1, keys)


def _attend_to_seen(query, key, value, seen, sinks, scale, cap):
    """Attention of one query to what it sees of keys: nothing before the first or behind the last of these is read, as
    what else a static cache has room for."""
    first, end = key_ranges.find_ends(seen)
    options = {"starts": first, "mask": seen, "sinks": sinks, "scale": scale, "cap": cap}
    if not key.is_contiguous() and key.transpose(1, 2).is_contiguous():
        return attend_to_cache(query, key.transpose(1, 2), value.transpose(1, 2), end, layout="bshd", **options)
    return attend_to_cache(query, key, value, end, **options)


def find_reason(settings, query, key, value, mask=None, dropout=0.0, scale=None):
    """Why an Attention does not take a call, or None."""
    tensors = query, key, value
    if not all(isinstance(x, torch.Tensor) and x.layout is torch.strided and not x.is_nested for x in tensors):
        return "operands that are no dense tensors"
    if any(x.dim() != 4 for x in tensors):
        return f"operands of {query.dim()} dimensions"
    if any(x.dtype != query.dtype or x.dtype not in ELEMENTS for x in tensors):
        return f"operands of {', '.join(str(x.dtype) for x in tensors)}"
    if any(x.device != query.device for x in tensors) or query.device.type not in ("cpu", "cuda"):
        return f"operands on {query.device}"
    if key.shape[:3] != value.shape[:3] or key.shape[0] != query.shape[0] or key.shape[3] != query.shape[3]:
        return "operands that are broadcast"
    if key.shape[1] == 0 or query.shape[1] % key.shape[1] or query.shape[3] == 0 or value.shape[3] == 0:
        return "no heads, or no columns"
    if scale is not None and not 0 < scale < math.inf:
        return f"a scale of {scale}"
    reason = attention_dropout.find_reason(dropout)
    if reason is not None:
        return reason
    if mask is not None:
        reason = _find_reason_of_mask(mask, (*query.shape[:3], key.shape[2]))
        if reason:
            return reason
        if is_on_gpu(query) and _needs_gradient(*tensors):
            return "a mask has no kernel of a gradient on a GPU, unless its rows are ranges of keys"
    if not is_on_gpu(query):
        return None
    missing = attention_backward.find_missing(query, value, True) if dropout and _needs_gradient(*tensors) else None
    if missing is not None:
        return f"dropout has no kernel of a gradient: {missing}"
    return find_reason_on_gpu(query, value, settings)


def _find_ranges(query, key, value, mask):
    """What a GPU's kernel takes in place of a mask, or None. Where ours has no gradient, PyTorch's kernels with masks are
    faster than the formula."""
    if mask is None or not is_on_gpu(query) or mask.dim() != 4 or mask.shape[3] != key.shape[2] or _find_reason_of_mask(
            mask, (*query.shape[:3], key.shape[2])):
        return None
    if _needs_gradient(query, key, value) and not attention_backward.has_kernel(query, value):
        return None
    return key_ranges.find(mask, query)


def attend(settings, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False,
           window=None, bottom_right=False, sinks=None, cap=None, unit=-1):
    """What F.scaled_dot_product_attention returns for these, by an Attention; None for what is PyTorch's. `window`,
    `bottom_right`, `sinks` and `cap` are those of fp8.torch.scaled_dot_product_attention; `unit` is the number of the
    AttentionUnit with the call's scales."""
    told = None
    if attn_mask is None and sinks is None and not dropout_p:
        told = attention_ready.describe(settings.number, query, key, value, is_causal, scale, enable_gqa, window, bottom_right,
                                        cap)
    if told is not None:
        owner = settings if unit < 0 else linear_ops.get_unit(unit)
        call = owner.calls.get(told)
        if call is not None:
            return call.attend(query, key, value)
    # Mistakes are PyTorch's to say.
    if is_causal and attn_mask is not None:
        return None
    if not enable_gqa and isinstance(query, torch.Tensor) and isinstance(key, torch.Tensor) and (
            query.dim() != key.dim() or query.dim() == 4 and key.shape[1] not in (1, query.shape[1])):
        return None
    tensors = [query, key, value]
    kind = query.device.type if isinstance(query, torch.Tensor) else ""
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        tensors = [x.to(dtype) if isinstance(x, torch.Tensor) and x.dtype in ELEMENTS else x for x in tensors]
    reason, ranges = find_reason(settings, *tensors, None, dropout_p, scale), None
    seen = find_seen(settings, *tensors, attn_mask, sinks) if reason is None and window is None and not dropout_p else None
    if reason is None and attn_mask is not None and seen is None:
        ranges = _find_ranges(*tensors, attn_mask)
        attn_mask = attn_mask if ranges is None else None
        reason = find_reason(settings, *tensors, attn_mask, dropout_p, scale)
    if reason is not None:
        note(settings.number, "{}", reason)
        return None
    y = _attend_to_seen(*tensors, seen, sinks, scale, cap) if seen is not None else compute(
        *tensors, attn_mask, is_causal=is_causal, scale=scale, window=window, bottom_right=bottom_right, key_ranges=ranges,
        sinks=sinks, cap=cap, dropout_p=dropout_p, format=settings.format, accumulate=settings.accumulate, unit=unit)
    note_taken(settings.number, "{} heads over {} of {} columns{}{}{}{}{} in {}{}", query.shape[1], key.shape[1], query.shape[3],
               ", causal" if is_causal else "" if window is None else f", window {window}",
               ", ranges of keys" if ranges is not None else "" if attn_mask is None else ", mask",
               "" if sinks is None else ", sinks", "" if cap is None else f", cap {cap:g}",
               f", dropout {dropout_p:g}" if dropout_p else "",
               attention_transforms.describe(settings.format, cap, sinks) or ELEMENTS[tensors[0].dtype], describe_scales(settings, unit))
    if told is not None:
        options = make_options(*tensors, is_causal, scale, window, bottom_right, cap, 0.0, settings.format, settings.accumulate,
                               unit=unit)
        owner.calls.keep(told, attention_ready.Call(options, told[0], query, value))
    return y


def describe_scales(settings, unit):
    """What is said of the scales of a call, where its recipe's are no present ones."""
    if settings.recipe is None:
        return ""
    name = settings.recipe.partition(",")[0]
    return f", {name} scales" if unit >= 0 else f", current scales, since no module keeps {name} ones of it"
