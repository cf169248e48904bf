"""Calls of PyTorch's attention in graphs that torch.compile captures, before these have a backward: what takes their
place has one of its own."""

import contextlib
import operator

import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from fp8.errors import ArgumentError
from fp8.torch import attention_calls, attention_masks
from fp8.torch.attention_calls import Attention
from fp8.torch.dense import make_dense

CHOICES = ("torch", "fp8", "auto")

_aten = torch.ops.aten
_FUNCTION = F.scaled_dot_product_attention
# What that may become, of which the first result is its own.
_VARIANTS = {_aten._scaled_dot_product_flash_attention.default, _aten._scaled_dot_product_efficient_attention.default,
             _aten._scaled_dot_product_cudnn_attention.default,
             _aten._scaled_dot_product_flash_attention_for_cpu.default,
             _aten._scaled_dot_product_fused_attention_overrideable.default}
# What a Backend takes if nothing is said: of graphs of quantized layers, and of those with products in FP8.
DECODING, SLOW = "decoding", "slow"
# Kernels of so many queries and keys have been measured, and are no slower than cuDNN's in 16 bits
# (benchmarks/results/attention.txt).
_LEAST = 2048
# Fewer scores than these, of a head, are not worth a call.
_LEAST_SCORES = 1 << 16


def make(choice, recipe):
    """The Attention that a Backend's `attention` means, or None, and which of CHOICES. Raises ArgumentError."""
    if isinstance(choice, Attention):
        return choice, "fp8"
    format_ = attention_calls.describe(recipe)[0]
    if choice is None:
        choice = "torch" if format_ is None else "fp8"
    if choice not in CHOICES:
        raise ArgumentError(f"expected attention to be one of {', '.join(CHOICES)}, or an Attention, but got {choice!r}")
    return (None if choice == "torch" else Attention(recipe=recipe)), choice


def _get_target(node):
    """What a node calls: of an operation its overload, where it is written without."""
    target = node.target if node.op == "call_function" else None
    return target.default if isinstance(target, torch._ops.OpOverloadPacket) and "default" in target.overloads() else target


def _is_variant(node):
    return _get_target(node) in _VARIANTS


def _bind(node):
    """The arguments of a call by the names of PyTorch's function."""
    if _is_variant(node):
        names = [argument.name for argument in _get_target(node)._schema.arguments]
    else:
        names = ["query", "key", "value", "attn_mask", "dropout_p", "is_causal"]
    given = {**dict(zip(names, node.args)), **node.kwargs}
    if "attn_bias" in given:
        given["attn_mask"] = given.pop("attn_bias")
    kept = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    bound = {name: given[name] for name in kept if name in given}
    return bound if not _is_variant(node) else {**bound, "enable_gqa": True}


def _get_value(value):
    """What a node stands for, as far as it is known."""
    if not isinstance(value, torch.fx.Node):
        return value
    return value.meta.get("val", value.meta.get("example_value"))


def has_kernels(device):
    return device.type == "cuda"


def _find_slower(settings, query, key):
    """Why PyTorch's is expected to be no slower, or None."""
    if not has_kernels(query.device):
        return "a CPU has no kernel of attention"
    if settings.format is not None:
        return "8 bits have not been measured with their quantization"
    for size in (query.shape[2], key.shape[2]):
        if not isinstance(size, int) or size < _LEAST:
            return f"fewer than {_LEAST} queries or keys, or any number"
    return None


class _Kernels(TorchDispatchMode):
    """Notes whether PyTorch calls a kernel of attention."""

    def __init__(self):
        super().__init__()
        self.are_called = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.are_called |= func in _VARIANTS
        return func(*args, **(kwargs or {}))


def _is_in_memory(bound):
    """Whether PyTorch computes a call as products in f32, with scores in memory, for none of its kernels takes it; not
    where its user wants no other."""
    enabled = torch.backends.cuda
    if not (enabled.flash_sdp_enabled() or enabled.mem_efficient_sdp_enabled() or enabled.cudnn_sdp_enabled()):
        return False
    try:
        # `torch._fused_sdp_choice` of tensors without values says so of all calls.
        # That of Dynamo's values: what PyTorch detects within a backend is the one of the graph that follows.
        mode = getattr(bound["query"], "fake_mode", None)
        with mode or contextlib.nullcontext(), _Kernels() as kernels:
            _FUNCTION(bound["query"], bound["key"], bound["value"], attn_mask=bound.get("attn_mask"),
                      dropout_p=bound.get("dropout_p", 0.0), is_causal=bound.get("is_causal", False), scale=bound.get("scale"),
                      enable_gqa=bound.get("enable_gqa", False))
    except RuntimeError:
        return False  # A build of PyTorch without such a device.
    return not kernels.are_called


def _find_fast(settings, ours, theirs):
    """Why PyTorch is not slow with a call, which it has as `theirs`, or None. Its kernels read all scores of a mask, those
    outside of a window, too."""
    query, key = ours["query"], ours["key"]
    if "window" in ours:
        return _find_slower(settings, query, key)
    if not has_kernels(query.device):
        return "a CPU has no kernel of attention"
    scores = query.shape[2] * key.shape[2]
    if not isinstance(scores, int) or scores < _LEAST_SCORES:
        return "few scores, or any number"
    return None if _is_in_memory(theirs) else "PyTorch has a kernel of it"


def _find_slower_decoding(settings, query, key, value, mask):
    """The same where one query sees what a mask says of a cache. PyTorch's reads all that the cache has room for, and each
    head's keys for itself (benchmarks/results/generation.txt)."""
    if not has_kernels(query.device):
        return "a CPU has no kernel of attention"
    is_decoding = attention_calls.find_seen(settings, query, key, value, mask) is not None
    return None if is_decoding else "more queries than one, or no mask of what one sees"


def _get_values(bound):
    return {name: _get_value(value) for name, value in bound.items()}


def _find_reason(node, bound, plain, settings, choice):
    """Why a call is left to PyTorch, or None; there it has the arguments `plain`."""
    values = _get_values(bound)
    names = "query", "key", "value"
    if not all(isinstance(values.get(name), torch.Tensor) for name in names):
        return "operands that are not known"
    if _is_variant(node) and not all(user.target is operator.getitem and user.args[1] == 0
                                       for user in node.users):
        return "other results than the first are used"
    dropout, is_causal = values.get("dropout_p", 0.0), values.get("is_causal", False)
    if not isinstance(dropout, (int, float)) or not isinstance(is_causal, bool):
        return "dropout or a causal mask that a graph computes"
    reason = attention_calls.find_reason(settings, *(values[name] for name in names), values.get("attn_mask"), dropout,
                                         values.get("scale"))
    if reason is None and choice == DECODING:
        return _find_slower_decoding(settings, *(values[name] for name in names), values.get("attn_mask"))
    if reason is None and choice == SLOW:
        return _find_fast(settings, values, _get_values(plain))
    return reason or (_find_slower(settings, values["query"], values["key"]) if choice == "auto" else None)


def compute(number, is_transposed, query, key, value, window=None, bottom_right=False, unit=-1, **options):
    """A call that `replace` has put into a graph. With `is_transposed` positions lie outside of heads in the result, as
    PyTorch's had them: views of it may take that for granted."""
    y = attention_calls.attend(attention_calls.get(number), query, key, value, window=window, bottom_right=bottom_right,
                               unit=unit, **options)
    if y is None:
        if window is not None:
            options["attn_mask"] = attention_masks.make_mask(window, bottom_right, query.shape[2], key.shape[2], query.device)
        y = _FUNCTION(query, key, value, **options)
    if is_transposed is None:
        return y
    return make_dense(y.transpose(1, 2)).transpose(1, 2) if is_transposed else make_dense(y)


def _is_transposed(node):
    """Whether the result of a call lies with positions outside of heads, or None if it does otherwise, or both ways."""
    value = _get_value(node)
    value = value[0] if isinstance(value, (tuple, list)) else value
    if not isinstance(value, torch.Tensor) or value.dim() != 4:
        return None
    lies = value.is_contiguous(), value.transpose(1, 2).is_contiguous()
    return lies[1] if lies[0] != lies[1] else None


def _find_band(graph, bound):
    """What a mask is that the graph makes of nothing it is given, or None."""
    mask = bound.get("attn_mask")
    if not isinstance(mask, torch.fx.Node) or bound.get("is_causal") not in (None, False):
        return None
    return graph.find_band(mask)


def _drop_mask(bound, band):
    """The arguments without a mask that PyTorch's function has another word for, or needs none; else as they are."""
    if band is None or not (band.is_all or band.is_causal):
        return bound
    return {**{name: value for name, value in bound.items() if name != "attn_mask"}, "is_causal": band.is_causal}


def _give_window(bound, band):
    """The arguments with a mask as a window, if it is one."""
    shapes = [getattr(_get_value(bound.get(name)), "shape", None) for name in ("query", "key")]
    if band is None or "attn_mask" not in bound or None in shapes or any(len(shape) != 4 for shape in shapes):
        return bound
    found = band.get_window(shapes[0][2], shapes[1][2])
    if found is None:
        return bound
    without = {name: value for name, value in bound.items() if name not in ("attn_mask", "is_causal")}
    return {**without, "window": found[0], "bottom_right": found[1]}


def _share_heads(graph, node, bound):
    """The arguments with keys and values as they were before the graph repeated their heads, if it did."""
    found = [graph.find_repeated(bound[name], node) if isinstance(bound.get(name), torch.fx.Node) else None
             for name in ("key", "value")]
    if None in found or found[0][1] != found[1][1]:
        return bound
    return {**bound, "key": found[0][0], "value": found[1][0], "enable_gqa": True}


def _rewrite(node, bound):
    """Gives PyTorch's function these arguments."""
    node.args = tuple(bound[name] for name in ("query", "key", "value"))
    node.kwargs = {name: value for name, value in bound.items() if name not in ("query", "key", "value")}


def _take(module, node, bound, settings, make_unit):
    """Puts a call of ours in a node's place."""
    bound = dict(bound)
    operands = [bound.pop(name) for name in ("query", "key", "value")]
    if settings.recipe is not None:
        bound["unit"] = make_unit(settings.recipe).number
    with module.graph.inserting_before(node):
        made = module.graph.call_function(compute, (settings.number, _is_transposed(node), *operands), bound)
    value = _get_value(node)
    key = "val" if "val" in node.meta else "example_value"
    made.meta = {**node.meta, key: value[0] if isinstance(value, (tuple, list)) else value}
    for user in list(node.users) if _is_variant(node) else [node]:
        user.replace_all_uses_with(made)
        module.graph.erase_node(user)
    if _is_variant(node):
        module.graph.erase_node(node)


def replace(module, settings, choice, make_unit=None):
    """Puts calls of ours in the place of PyTorch's into a graph of Dynamo, and causal masks that the graph makes itself in
    the words of PyTorch's function, whose kernels then compute half. Returns reasons for those that stay; with "auto"
    where ours is expected to be slower. With DECODING only calls with one query and a mask are ours, all else stays as it
    is; with SLOW those that PyTorch has no kernel of, or none that skips what a window hides. Neither needs a reason.
    Without settings all calls stay. `make_unit` makes what keeps the scales of one call under a recipe."""
    reasons, graph = [], attention_masks.Graph(module)
    for node in list(module.graph.nodes):
        if _get_target(node) not in {_FUNCTION, _aten.scaled_dot_product_attention.default, *_VARIANTS}:
            continue
        bound = _bind(node)
        band = _find_band(graph, bound)
        plain = _drop_mask(bound, band)
        ours = _share_heads(graph, node, _give_window(plain, band))
        reason = _find_reason(node, ours, plain, settings, choice) if settings else None
        if settings and reason is None:
            _take(module, node, ours, settings, make_unit)
            continue
        if choice == DECODING:
            continue
        if plain is not bound and not _is_variant(node):
            _rewrite(node, plain)
        if settings and choice != SLOW:
            attention_calls.note(settings.number, "{}", reason)
            reasons.append(reason)
    module.graph.lint()
    module.recompile()
    return reasons
