"""flex_attention in graphs: an operation that reads the functions of a call when it runs, of the tensors that they use then, and
computes `fp8.attention`, with its gradient."""

import itertools
import re
import weakref
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import _disable_current_modes

from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import attention_ops, attention_transforms, flex, flex_plans, flops, operations
from fp8.torch.dense import make_dense

# What torch.vmap is made of.
_VMAP_KEYS = ("FuncTorchBatched", "FuncTorchBatchedDecomposition", "FuncTorchVmapMode", "FuncTorchDynamicLayerFrontMode",
              "FuncTorchDynamicLayerBackMode")
_numbers = itertools.count()
_calls = weakref.WeakValueDictionary()
_families = weakref.WeakValueDictionary()


class Blocks(NamedTuple):
    """What a plan reads of a BlockMask."""

    mask_mod: object
    kv_num_blocks: torch.Tensor
    kv_indices: torch.Tensor
    full_kv_num_blocks: torch.Tensor | None
    full_kv_indices: torch.Tensor | None
    BLOCK_SIZE: tuple


class _Kept(NamedTuple):
    """A plan, the tensors that it was made of, which keep their addresses while it is there, their versions, and copies of
    those that nobody says the changes of."""

    place: tuple
    tensors: list
    versions: list
    copies: list
    plan: flex.Plan


class _Family:
    """Plans of all calls with the same functions, as a model's layers have them."""

    def __init__(self):
        self.kept = []

    def find(self, place, tensors, watched):
        """What was kept for this place, sizes and a device, and these tensors, or None. Of those that are `watched` and on a
        GPU whoever writes changes the version; others are compared, which waits for it."""
        for kept in self.kept:
            if kept.place == place and all(map(_is_same, kept.tensors, kept.versions, kept.copies, tensors, watched)):
                return kept.plan
        return None

    def keep(self, place, tensors, plan):
        copies = [None] * len(tensors)
        if sum(x.numel() * x.element_size() for x in tensors) <= flex_plans.MOST_COPIED:
            copies = [x.clone() for x in tensors]
        self.kept.append(_Kept(place, list(tensors), [_get_version(x) for x in tensors], copies, plan))
        while len(self.kept) > 1 and (len(self.kept) > flex_plans._MOST_PLANS or sum(
                flex_plans._count_bytes(x.plan) for x in self.kept) > flex_plans._MOST_BYTES):
            del self.kept[0]


def _get_version(tensor):
    return None if tensor.is_inference() else tensor._version


def _allow_vmap():
    """AOTAutograd looks at what operations do by a mode, within which torch.vmap does nothing."""
    hidden = torch._C._dispatch_tls_local_exclude_set()
    for name in _VMAP_KEYS:
        hidden = hidden - torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), hidden)


def _is_same(kept, version, copy, tensor, is_watched):
    # Another tensor may have the same memory and version, and yet other numbers there, as one of NumPy's.
    counts = is_watched and not flex_plans.hides_writes(tensor) and (copy is None or tensor.device.type != "cpu")
    if counts and kept is tensor and version is not None and _get_version(tensor) == version:
        return True
    return copy is not None and copy.shape == tensor.shape and copy.dtype == tensor.dtype and torch.equal(copy, tensor)


class Call:
    """A call of a graph: its functions, of which `score_mod` and `mask_mod` take scores and numbers, and then tensors.

    - tensors: five lists: those of score_mod, those of mask_mod, and those of blocks, each the place of one among the
      operands of the call, or a constant; None for what is not there;
    - watched: of each operand whether its changes are known by its version;
    - block_size: of queries and keys;
    - text: the same for calls whose plans are the same for the same operands.
    """

    def __init__(self, score_mod, mask_mod, tensors, watched, block_size, text):
        self.score_mod, self.mask_mod, self.tensors, self.watched = score_mod, mask_mod, tensors, watched
        self.block_size, self.number = block_size, next(_numbers)
        self.family = _families.setdefault(text, _Family()) if text is not None else _Family()
        _calls[self.number] = self

    def _get(self, name, operands):
        return [operands[x] if isinstance(x, int) else x for x in self.tensors[name]]

    def make_functions(self, operands):
        """The functions and the blocks as flex_attention takes them."""
        def close(function, name):
            given = self._get(name, operands)
            return lambda *arguments: function(*arguments, *given)

        score_mod = None if self.score_mod is None else close(self.score_mod, "score_mod")
        if self.mask_mod is None:
            return score_mod, None
        return score_mod, Blocks(close(self.mask_mod, "mask_mod"), *self._get("blocks", operands), self.block_size)

    def find_plan(self, sizes, device, operands):
        if operands and device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            raise UnsupportedError("expected no capture of a CUDA graph around flex_attention whose functions use tensors, "
                                   "since replays would not look at these, but got one")
        place = sizes, device
        plan = self.family.find(place, operands, self.watched)
        if plan is None:
            # Those of a forward in inference mode are none of autograd's.
            with torch.inference_mode(False), torch.no_grad(), _disable_current_modes(), _allow_vmap():
                plan = flex._make_plan(*place, *self.make_functions(operands))
                self.family.keep(place, operands, plan)
        return plan


def get(number):
    """The Call of that number. Raises ArgumentError if it is gone."""
    call = _calls.get(number)
    if call is None:
        raise ArgumentError("expected the Backend of a compiled graph to be alive, but it is gone")
    return call


def _find(query, key, operands, number, options):
    """The plan of a call, whose tensors lie as the options say, and what `fp8.attention` is told by it."""
    heads, positions = (1, 2) if options.heads_first else (2, 1)
    sizes = query.shape[0], query.shape[heads], query.shape[positions], key.shape[positions]
    plan = get(number).find_plan(tuple(sizes), query.device, operands)
    mask = None if plan.mask is None else attention_ops._drop_repeated(plan.mask)
    ranges = None if plan.ranges is None else make_dense(plan.ranges)
    left, right = plan.window
    return plan, attention_ops.Others(mask, ranges), options._replace(
        scale=options.scale * plan.scale, cap=plan.cap, left=left, right=right)


def _run(query, key, value, operands, number, with_sums, options, saves):
    options = attention_ops.Options(*options)
    plan, others, options = _find(query, key, operands, number, options)
    output, lse, *codes = attention_ops.compute(query, key, value, others, options, saves)
    sums = lse.new_empty(0)
    if with_sums:
        sums = lse.clone() if plan.rows is None else lse + plan.rows
        kept = attention_transforms.limit(options.format, options.cap, None)
        if attention_transforms.SMOOTH in attention_transforms.split(kept)[1]:
            numbers = attention_ops._transpose(options, query, key)
            sums = attention_transforms.correct_sums(sums, *numbers, options.scale)
    return output, lse, sums, *codes


def _run_forward(query, key, value, operands, number, with_sums, *options):
    return _run(query, key, value, operands, number, with_sums, options, False)


def _infer_forward(query, key, value, operands, number, with_sums, *options):
    output, lse = attention_ops._infer(query, value, options[0])
    return output, lse, lse.new_empty(lse.shape if with_sums else 0)


def _run_saving(query, key, value, operands, number, with_sums, *options):
    return _run(query, key, value, operands, number, with_sums, options, True)


def _infer_saving(query, key, value, operands, number, with_sums, *options):
    codes = attention_ops._infer_saving(query, key, value, None, None, None, None, *options)[2:]
    return *_infer_forward(query, key, value, operands, number, with_sums, *options), *codes


def _run_backward(grad, query, key, value, factors, output, lse, operands, number, *options):
    _, others, found = _find(query, key, operands, number, attention_ops.Options(*options))
    return attention_ops.run_backward(grad, query, key, value, factors, output, lse, others.mask, others.ranges, None, None, *found)


def _infer_backward(grad, query, key, value, factors, output, *others):
    return tuple(output.new_empty(x.shape) for x in (query, key, value))


# Without defaults, which PyTorch 2.11 leaves out where it counts gradients of lists.
_OPTIONS = re.sub(r"=[^,]+", "", attention_ops._SCHEMA)
_SCHEMA = f"Tensor[] operands, int number, bool with_sums, {_OPTIONS}"
_backward = operations.define(
    "flex_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor[] factors, Tensor output, "
    f"Tensor lse, Tensor[] operands, int number, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    _run_backward, _infer_backward, flops=flops.count_flex_backward)


def _save(ctx, inputs, output):
    query, key, value, operands, ctx.number, _, *ctx.options = inputs
    result, lse, sums, *codes = output
    ctx.mark_non_differentiable(lse, sums, *codes)
    ctx.set_materialize_grads(False)
    ctx.counts = len(operands), len(codes) // 2
    ctx.save_for_backward(*(codes[::2] or (query, key, value)), result, lse, *operands, *codes[1::2])


def _differentiate(ctx, grad, *others):
    empty = (None,) * (3 + len(ctx.options))
    operands = [None] * ctx.counts[0]
    if grad is None:
        return (None, None, None, operands, *empty[:2], *empty[3:])
    query, key, value, output, lse, *saved = ctx.saved_tensors
    grads = _backward(make_dense(grad), query, key, value, saved[ctx.counts[0]:], output, lse, saved[:ctx.counts[0]], ctx.number,
                      *ctx.options)
    needed = (x if needs else None for x, needs in zip(grads, ctx.needs_input_grad))
    return (*needed, operands, *empty[:2], *empty[3:])


_forward = operations.define(f"flex_attention(Tensor query, Tensor key, Tensor value, {_SCHEMA}) -> (Tensor, Tensor, Tensor)",
                             _run_forward, _infer_forward, (_differentiate, _save), flops.count_flex)
# With codes and factors of query, key and value, of which a backward is then.
_saving = operations.define(
    f"flex_attention_saving(Tensor query, Tensor key, Tensor value, {_SCHEMA}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, "
    "Tensor, Tensor, Tensor, Tensor)", _run_saving, _infer_saving, (_differentiate, _save), flops.count_flex)


def attend(query, key, value, operands, number, with_sums, options):
    """The result and the logarithms of sums, of tensors of batches x heads x positions x columns."""
    saves = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
    tensors = [make_dense(x) for x in attention_ops._transpose(options, query, key, value)]
    operation = _saving if saves and options.format else _forward
    output, _, sums, *_ = operation(*tensors, list(operands), number, with_sums, *options)
    return attention_ops._transpose(options, output)[0], sums
