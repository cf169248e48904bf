"""Keys and values in 8 bits for transformers' `generate`."""

from types import SimpleNamespace

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from fp8.errors import ArgumentError
from fp8.torch import attention_calls, attention_transforms, key_ranges
from fp8.torch.attention_programs import ELEMENTS
from fp8.torch.key_value_cache import KeyValueCache


class Layer(CacheLayerMixin):
    """What one layer of a model keeps. Batches grow together."""

    is_sliding = False

    def __init__(self, positions, format, k_scale, v_scale, smooth_k=False, hadamard=False):
        super().__init__()
        self.positions, self.format, self.scales = positions, format, (k_scale, v_scale)
        self.transforms = {"smooth_k": smooth_k, "hadamard": hadamard}
        self.cache, self.count = None, 0

    def lazy_initialization(self, key_states, value_states):
        batches, heads, _, columns = key_states.shape
        self.dtype, self.device = key_states.dtype, key_states.device
        self.cache = KeyValueCache(
            batches, heads, self.positions, columns, columns_of_values=value_states.shape[3], format=self.format,
            k_scale=self.scales[0], v_scale=self.scales[1], dtype=self.dtype, device=self.device, **self.transforms)
        self.keys, self.values, self.is_initialized = self.cache.keys, self.cache.values, True

    def update(self, key_states, value_states, *arguments, **options):
        """Appends, and returns codes, which only attention of register_attention takes."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        count = self.count + key_states.shape[2]
        if count > self.positions:
            raise ArgumentError(f"expected up to {self.positions} positions in the cache, but got {count}")
        self.cache.append(key_states.detach(), value_states.detach())
        self.count = count
        keys, values = (x[:, :, :count] for x in (self.keys, self.values))
        keys._fp8_layer = self
        return keys, values

    def get_mask_sizes(self, query_length):
        return self.count + query_length, 0

    def get_seq_length(self):
        return self.count

    def get_max_length(self):
        return self.positions

    def reset(self):
        self.count = 0
        if self.is_initialized:
            self.cache.reset()

    def reorder_cache(self, beam_idx):
        if self.is_initialized:
            for stored in (self.keys, self.values):
                # Bytes, which there are all operations for.
                rows = stored.view(torch.uint8)
                rows.copy_(rows.index_select(0, beam_idx.to(stored.device)))
            if self.cache.k_mean is not None:
                self.cache.k_mean = self.cache.k_mean.index_select(0, beam_idx.to(self.device))

    def widen(self, dtype):
        """Keys and values as numbers, for attention that is PyTorch's."""
        scales = (self.cache.k_scale, self.cache.v_scale) if self.format else (1.0, 1.0)
        keys, values = (x[:, :, :self.count].to(torch.float32) * scale
                        for x, scale in zip((self.keys, self.values), scales))
        return self.cache.restore_keys(keys).to(dtype), values.to(dtype)

    def find_reason(self, settings, query, mask, dropout, is_causal):
        """Why attention to it is not ours, or None; and what queries see of the keys up to their own, or None for all."""
        if torch.is_grad_enabled() and query.requires_grad:
            return "a cache with a gradient", None
        if dropout > 0:
            return "dropout", None
        if query.dtype not in ELEMENTS or query.dtype != self.dtype:
            return f"queries of {query.dtype} for a cache of {self.dtype}", None
        if query.is_cuda:
            own = SimpleNamespace(format=self.format, accumulate=settings.accumulate)
            reason = attention_calls.find_reason_on_gpu(query, self.values, own)
            if reason is not None:
                return reason, None
        if mask is None:
            hides = is_causal or query.shape[2] == 1
            return (None if hides else "a cache that all queries see"), None
        if self._find_seen(query, mask) is not None:
            return None, None
        ranges = key_ranges.find(mask, query) if mask.dim() == 4 else None
        return (None if ranges is not None else "a mask with gaps for a cache"), ranges

    def _find_seen(self, query, mask):
        """What one query sees, of all that the cache has room for, or None; nobody looks at it."""
        if mask is None or query.shape[2] != 1 or mask.dtype != torch.bool or tuple(mask.shape) != (
                query.shape[0], 1, 1, self.count):
            return None
        kept = getattr(mask, "_fp8_padded", None)
        if kept is not None and kept.shape[3] == self.positions:
            return kept
        padded = torch.nn.functional.pad(mask, (0, self.positions - self.count))
        # One that nobody changes is that of all layers.
        if getattr(mask, "_fp8_is_constant", False):
            mask._fp8_padded = padded
        return padded

    def attend(self, settings, query, mask, dropout, is_causal, scale, window, sinks, cap):
        """The result, or None for what is PyTorch's. `window` takes the place of the mask."""
        mask = None if window else mask
        reason, ranges = self.find_reason(settings, query, mask, dropout, is_causal or window is not None)
        if reason is None and self.cache.k_mean is not None:
            reason = attention_transforms.find_reason(cap, sinks)
        if reason is not None:
            attention_calls.note(settings.number, "{}", reason)
            return None
        seen = self._find_seen(query, mask)
        y = self.cache.attend(query, key_ranges=ranges, mask=seen, sinks=sinks, scale=scale,
                              window=window[0] if window else None, cap=cap,
                              accumulate=settings.accumulate if self.format else None)
        attention_calls.note_taken(
            settings.number, "{} heads over {} of {} columns{}{}{}, a cache in {}", query.shape[1], self.keys.shape[1],
            query.shape[3], ", ranges of keys" if ranges is not None else "" if seen is None else ", mask",
            "" if sinks is None else ", sinks", "" if cap is None else f", cap {cap:g}",
            ", ".join([self.format or ELEMENTS[self.dtype], *self.cache.transforms]))
        return y


def make_cache(model, positions, *, format="e4m3", k_scale=1.0, v_scale=1.0, smooth_k=False, hadamard=False):
    """What `generate` takes as past_key_values of a model with attention of register_attention.

    - model: of transformers, or its config; one whose layers all have attention;
    - positions: how many there is room for, of prompts and what is generated;
    - format, k_scale, v_scale, smooth_k, hadamard: those of KeyValueCache; scales are of all layers, or lists of one for
      each. Layers with a cap or sinks are PyTorch's with `smooth_k`.

    A cache keeps all positions of layers with windows, too. Raises ArgumentError.
    """
    config = getattr(model, "config", model)
    config = config.get_text_config(decoder=True)
    layers = config.num_hidden_layers
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds - {"full_attention", "sliding_attention"}:
        raise ArgumentError(f"expected layers of full or sliding attention, but got {', '.join(sorted(kinds))}")
    scales = []
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        each = list(scale) if isinstance(scale, (list, tuple)) else [scale] * layers
        if len(each) != layers:
            raise ArgumentError(f"expected {name} of {layers} layers, but got {len(each)}")
        scales.append(each)
    return Cache(layers=[Layer(positions, format, *each, smooth_k, hadamard) for each in zip(*scales)])
