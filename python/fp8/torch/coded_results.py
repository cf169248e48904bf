"""Results of attention as codes, which the layer behind it multiplies as they are.

Transformer Engine's `fp8_mha`: what an attention computes leaves its kernel in 8 bits. To PyTorch it is a tensor of
numbers. Views of it are of its codes, a `Linear` of ours takes these, and all else has the numbers that they stand for.
"""

import torch

from fp8.errors import UnsupportedError
from fp8.torch import attention_programs
from fp8.torch.dense import is_on_gpu

_aten = torch.ops.aten
# What gives the same elements other places, or other memory.
_MOVES = {_aten.view.default, _aten._unsafe_view.default, _aten.transpose.int, _aten.permute.default, _aten.t.default,
          _aten.alias.default, _aten.detach.default, _aten.clone.default, _aten.unsqueeze.default, _aten.squeeze.dim,
          _aten.squeeze.default, _aten.slice.Tensor, _aten.select.int, _aten.expand.default}


def _writes(func, args, kwargs):
    """Whether an operation writes to a CodedResult; others' memory may be written from one."""
    schema = func._schema
    if not schema.is_mutable:
        return False
    given = {**dict(zip((argument.name for argument in schema.arguments), args)), **kwargs}
    written = [given.get(argument.name) for argument in schema.arguments
               if argument.alias_info is not None and argument.alias_info.is_write]
    return any(isinstance(x, CodedResult) for x in torch.utils._pytree.tree_leaves(written))


def _refuse(func):
    return UnsupportedError(f"expected an attention's result in codes, by fp8_mha, to stay as it is, but {func} writes to it, "
                            f"as dropout with inplace=True does: make it numbers first, x + 0")


class CodedResult(torch.Tensor):
    """Numbers of a 16-bit type, or f32, that are `codes`, of a type of 8 bits, times a `factor`, f32 1 x 1."""

    @staticmethod
    def __new__(cls, codes, factor, dtype):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, codes.stride(), codes.storage_offset(), dtype=dtype,
                                                   device=codes.device)

    def __init__(self, codes, factor, dtype):
        self.codes, self.factor = codes, factor

    def widen(self):
        """The numbers, as a tensor without a gradient."""
        return widen(self.codes, self.factor, self.dtype)

    def __repr__(self, **_):
        return f"CodedResult({self.widen()!r})"

    def tolist(self):
        return self.widen().tolist()

    def __dlpack__(self, **options):
        # PyTorch says what is wrong where there is a gradient.
        return super().__dlpack__(**options) if self.requires_grad else self.widen().__dlpack__(**options)

    def share_memory_(self):
        raise UnsupportedError("expected numbers to share, but got an attention's result in codes, by fp8_mha, which has no "
                               "memory of its own: make it numbers first, x + 0")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _MOVES:
            x = args[0]
            return cls(func(x.codes, *args[1:], **kwargs), x.factor, x.dtype)
        if _writes(func, args, kwargs):
            raise _refuse(func)
        args, kwargs = torch.utils._pytree.tree_map_only(cls, cls.widen, (args, kwargs))
        return func(*args, **kwargs)


def widen(codes, factor, dtype):
    """Numbers of codes, a factor for all."""
    if not is_on_gpu(codes) or codes.dim() != 4 or dtype == torch.float32 or not codes.is_contiguous() or codes.numel() == 0:
        return (codes.float() * factor.reshape(())).to(dtype)
    return attention_programs.widen(codes, factor, dtype)


def turn(codes):
    """Codes of a matrix with its rows beside each other."""
    return attention_programs.turn(codes)
