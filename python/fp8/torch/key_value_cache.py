"""Keys and values of past positions, in 8 bits."""

import functools

import torch

import fp8
from fp8.compiler import get_default_target
from fp8.errors import ArgumentError
from fp8.torch import attention_transforms
from fp8.torch.append_programs import get_append
from fp8.torch.attention_programs import CODES, ELEMENTS, FORMATS
from fp8.torch.cached_attention import attend_to_cache, make_factor
from fp8.torch.dense import make_dense


@functools.lru_cache(maxsize=64)
def _compile_quantize(element, dim, format_):
    """A function of rows, and of what they, and then their codes, are multiplied by."""
    kind, one = f"tensor<?x{dim}x{element}>", "tensor<1x1xf32>"
    codes = f"tensor<?x{dim}x{FORMATS[format_]}>"
    scaled = f"!fp8.scaled<?x{dim}x{FORMATS[format_]}, block = [*, *], scale = f32>"
    text = (f"func.func @quantize(%x: {kind}, %scale: {one}, %scale_inv: {one}) -> {codes} {{\n"
            f"  %q = fp8.quantize %x scale(%scale, %scale_inv : {one}, {one}) : {kind} -> {scaled}\n"
            f"  %codes, %factor = fp8.disassemble %q : {scaled}\n"
            f"  return %codes : {codes}\n}}\n")
    return fp8.compile(text, target="cpu").functions["quantize"]


class KeyValueCache:
    """Keys and values of one attention layer, for batches that grow on their own.

        cache = fp8.torch.KeyValueCache(batch, heads_of_k, 4096, 128, device="cuda")
        cache.append(key, value)
        output = cache.attend(query)

    - batches, heads, positions, columns: how many there is room for; `columns_of_values` if values have others;
    - format: "e4m3" or "e5m2", or None for numbers of `dtype`;
    - k_scale, v_scale: what codes are multiplied by, numbers or tensors of one f32 (as checkpoints have them: a value
      that is 448 times as large is the largest of E4M3, and what is larger saturates);
    - smooth_k, hadamard: of codes, as fp8.torch.scaled_dot_product_attention has them. The mean that is taken away from a
      batch's keys is that of those which are appended first, `k_mean`, as later ones cannot change codes that are there;
      whatever it is, no softmax sees it. `k_scale` is of keys as they are then, not of a checkpoint's own.

    `keys` and `values` are batches x heads x positions x columns, `lengths` int32, how many positions each batch has.
    """

    def __init__(self, batches, heads, positions, columns, *, columns_of_values=None, format="e4m3", k_scale=1.0,
                 v_scale=1.0, dtype=torch.bfloat16, device=None, smooth_k=False, hadamard=False):
        if format is not None and format not in FORMATS:
            raise ArgumentError(f"expected format to be None or one of {', '.join(FORMATS)}, but got {format!r}")
        if dtype not in ELEMENTS:
            raise ArgumentError(f"expected dtype to be bf16, f16 or f32, but got {dtype}")
        self.transforms = attention_transforms.split(attention_transforms.join(format, smooth_k, hadamard))[1]
        self.format, self.dtype = format, dtype
        stored = CODES[format] if format else dtype
        sizes = (batches, heads, positions)
        self.keys = torch.zeros((*sizes, columns), dtype=stored, device=device)
        self.values = torch.zeros((*sizes, columns_of_values or columns), dtype=stored, device=device)
        self.lengths = torch.zeros(batches, dtype=torch.int32, device=device)
        self.k_scale = make_factor(k_scale, "k_scale", self.keys.device)
        self.v_scale = make_factor(v_scale, "v_scale", self.keys.device)
        self.k_mean = torch.zeros((batches, heads, 1, columns), device=device) if smooth_k else None
        self._inverses = tuple(scale.reciprocal().reshape(1, 1) for scale in (self.k_scale, self.v_scale))

    def reset(self):
        """Forgets all positions."""
        self.lengths.zero_()

    def _check(self, key, value):
        for name, tensor, room in (("key", key, self.keys), ("value", value, self.values)):
            expected = (room.shape[0], room.shape[1], key.shape[2], room.shape[3])
            if tensor.shape != expected or tensor.dtype != self.dtype or tensor.device != room.device:
                raise ArgumentError(f"expected {name} to be {self.dtype} {expected} on {room.device}, but got "
                                    f"{tensor.dtype} {tuple(tensor.shape)} on {tensor.device}")
        if key.shape[2] > self.keys.shape[2]:
            raise ArgumentError(f"expected up to {self.keys.shape[2]} new positions, but got {key.shape[2]}")
        # A GPU would have to be waited for.
        if not key.is_cuda and self.lengths.numel() and int(self.lengths.max()) + key.shape[2] > self.keys.shape[2]:
            raise ArgumentError(f"expected room for {key.shape[2]} new positions, but got {self.keys.shape[2]} positions, "
                                f"of which {int(self.lengths.max())} are taken")

    def _transform(self, key):
        """Keys as codes are made of them; those of a batch without any say what its mean is."""
        if self.k_mean is not None:
            is_first = (self.lengths == 0)[:, None, None, None]
            self.k_mean.copy_(torch.where(is_first, key.float().mean(2, keepdim=True), self.k_mean))
            key = (key.float() - self.k_mean).to(self.dtype)
        return attention_transforms.rotate(key, False) if attention_transforms.ROTATE in self.transforms else key

    def restore_keys(self, keys):
        """Numbers of stored keys, f32, as they were appended."""
        if attention_transforms.ROTATE in self.transforms:
            # The matrix of queries is the inverse of that of keys.
            keys = attention_transforms.rotate(keys, True)
        return keys if self.k_mean is None else keys + self.k_mean

    def _append_on_cpu(self, key, value):
        """As the program of a GPU does it; its loops run element by element on a CPU."""
        batches, heads, room, _ = self.keys.shape
        first = torch.arange(batches * heads).reshape(batches, heads, 1) * room
        rows = (first + self.lengths[:, None, None] + torch.arange(key.shape[2])).reshape(-1)
        tensors = (self.keys, self.values), (key, value), (self.k_scale, self.v_scale)
        for stored, numbers, scale, inverse in zip(*tensors, self._inverses):
            size = numbers.shape[3]
            codes = make_dense(numbers).reshape(-1, size)
            if self.format:
                quantize = _compile_quantize(ELEMENTS[codes.dtype], size, self.format)
                codes = quantize(codes, inverse, scale.reshape(1, 1))
            # Bytes, which there are all operations for.
            kind = torch.uint8 if self.format else self.dtype
            stored.view(kind).reshape(-1, size).index_copy_(0, rows, codes.view(kind))
        self.lengths.add_(key.shape[2])

    @torch.no_grad()
    def append(self, key, value):
        """Adds new positions, batches x heads x positions x columns, to each batch.

        Raises ArgumentError, and then leaves the cache as it was. Nothing waits for a GPU, on which a caller has to know
        that there is room: what there is none for is written over the last position. There it is one kernel, if keys and
        values have as many columns, and one for the lengths."""
        self._check(key, value)
        key = self._transform(key)
        if not key.is_cuda:
            return self._append_on_cpu(key, value)
        run = get_append(ELEMENTS[self.dtype], key.shape[1], (key.shape[3], value.shape[3]), self.format,
                         get_default_target())
        run(make_dense(key), make_dense(value), *(self._inverses if self.format else ()), self.lengths, self.keys,
            self.values)

    def attend(self, query, *, starts=None, key_ranges=None, mask=None, sinks=None, scale=None, window=None, cap=None,
               accumulate=None):
        """Attention of the positions that were appended last, batches x heads x positions x columns, to all up to their
        own: attend_to_cache. Raises ArgumentError for a cap or sinks with `smooth_k`, which they would see."""
        reason = attention_transforms.find_reason(cap, sinks) if self.k_mean is not None else None
        if reason is not None:
            raise ArgumentError(f"expected no cap and no sinks for a cache with smooth_k: {reason}")
        if attention_transforms.ROTATE in self.transforms:
            query = attention_transforms.rotate(query, True)
        return attend_to_cache(query, self.keys, self.values, self.lengths, starts=starts, key_ranges=key_ranges,
                               mask=mask, sinks=sinks, k_scale=self.k_scale, v_scale=self.v_scale, scale=scale,
                               window=window, cap=cap, accumulate=accumulate)
