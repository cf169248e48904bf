"""Masks of attention that a graph makes of nothing that it is given: causal ones and windows, as PyTorch's function and
fp8.attention know them without a mask; and heads of keys that a graph repeats.

transformers makes such masks for all graphs that torch.compile captures, and repeats heads wherever there is a mask."""

import operator
import typing

import torch
from torch.utils._python_dispatch import _disable_current_modes

# Operations of which masks are made, each the same for the same operands, and none of which changes one: those whose results
# are memory of their own, and those that may return a view.
_FRESH = {"arange", "full", "ones", "zeros", "new_ones", "new_zeros", "new_full", "ones_like", "zeros_like", "full_like",
          "tensor", "scalar_tensor", "add", "sub", "mul", "neg", "floordiv", "le", "lt", "ge", "gt", "eq", "ne", "and_", "or_",
          "xor", "inv", "invert", "bitwise_and", "bitwise_or", "bitwise_not", "logical_and", "logical_or", "logical_not",
          "__and__", "__or__", "__invert__", "abs", "where", "masked_fill", "tril", "triu", "clone", "repeat"}
_VIEWS = {"getitem", "select", "slice", "expand", "expand_as", "view", "reshape", "unsqueeze", "squeeze", "flatten",
          "unflatten", "transpose", "permute", "t", "contiguous", "to", "type", "bool", "float", "int", "long", "half",
          "bfloat16"}
_NAMES = _FRESH | _VIEWS
# What else never returns memory of its operands.
_COMPUTING = _FRESH | {"scaled_dot_product_attention", "linear", "matmul", "bmm", "mm", "addmm", "embedding", "softmax", "cat",
                       "silu", "gelu", "layer_norm", "rms_norm"}
_IN_PLACE = {f"i{name}" for name in ("add", "and", "concat", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow",
                                     "rshift", "sub", "truediv", "xor")} | {"setitem", "delitem"}
# Operations with graphs of their own that write into nothing.
_PURE = {torch.ops.higher_order.flex_attention}
_ELEMENTS = 1 << 24  # That are looked at at a time: a mask of long sequences is large enough itself.


class Band(typing.NamedTuple):
    """Which keys queries see: those with lowest <= number of the key - number of the query <= highest, None for all."""

    lowest: int | None
    highest: int | None

    @property
    def is_all(self):
        return self.lowest is None and self.highest is None

    @property
    def is_causal(self):
        return self.lowest is None and self.highest == 0

    def get_window(self, queries, keys):
        """How many keys before and after its own a query sees, and whether its own is counted from the last key; or None
        if the band leaves its own out."""
        # Where both will do, in the words in which a query's own key is the last that it sees.
        counts_from_last = self.highest == keys - queries != 0
        for is_last in (counts_from_last, not counts_from_last):
            moved = keys - queries if is_last else 0
            left = None if self.lowest is None else moved - self.lowest
            right = None if self.highest is None else self.highest - moved
            if all(side is None or side >= 0 for side in (left, right)):
                return (left, right), is_last
        return None


def _get_name(node):
    """What an operation is called in all its forms."""
    if node.op == "call_method":
        return node.target
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.split("::")[1]
    return getattr(node.target, "__name__", "")


def _find_ancestors(nodes, ends=()):
    """These nodes and all that they are computed from, but for the operands of operations of `ends`."""
    found, pending = set(), list(nodes)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(() if _get_name(node) in ends else node.all_input_nodes)
    return found


def _changes(node):
    """Whether an operation may write into what it is given."""
    if node.op not in ("call_function", "call_method"):
        return node.op == "call_module"
    if "out" in node.kwargs:
        return True
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return node.target not in _PURE
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.is_mutable
    if isinstance(node.target, torch._ops.OpOverloadPacket):
        return any(getattr(node.target, name)._schema.is_mutable for name in node.target.overloads())
    name = _get_name(node)
    if name in _IN_PLACE:
        return True
    if name.startswith("__"):
        return name.strip("_") in _IN_PLACE
    return name.endswith("_") and name not in _NAMES


class Graph:
    """A graph, and what of it is written into."""

    def __init__(self, module):
        self.module = module
        self._places = {node: place for place, node in enumerate(module.graph.nodes)}
        self._writes = [(self._places[node], _find_ancestors(node.all_input_nodes, _COMPUTING))
                        for node in module.graph.nodes if _changes(node)]
        self._written = set().union(*(nodes for _, nodes in self._writes))

    def _evaluate(self, node):
        """The tensor that a node is whatever the graph is given, or None."""
        needed = _find_ancestors([node])
        if needed & self._written or any(
                one.op not in ("call_function", "call_method") or _get_name(one) not in _NAMES for one in needed):
            return None
        values, order = {}, [one for one in self.module.graph.nodes if one in needed]
        last = {source: one for one in order for source in one.all_input_nodes}
        with _disable_current_modes(), torch.no_grad():
            for one in order:
                arguments = torch.fx.map_arg((one.args, one.kwargs), values.__getitem__)
                try:
                    values[one] = _call(one, *arguments)
                except torch.OutOfMemoryError:
                    raise
                except (RuntimeError, TypeError, ValueError):
                    return None
                del arguments
                for source in one.all_input_nodes:
                    if last[source] is one:
                        values.pop(source, None)
        value = values[node]
        return value if isinstance(value, torch.Tensor) else None

    def find_band(self, node):
        """The band that a mask is, or None: of bool, or of numbers that are added."""
        try:
            mask = self._evaluate(node)
            return None if mask is None else find_band(mask)
        except torch.OutOfMemoryError:
            # It stays a mask, for which there may be room when it is needed.
            return None

    def find_repeated(self, node, reader):
        """What a node repeats each head of, and how many times, or None if `reader` would find something else there: a
        cache is written into before its heads are repeated."""
        found = _find_expanded(node) or _find_interleaved(node)
        if found is None:
            return None
        read = _find_ancestors([found[0], node], _COMPUTING)
        first, last = self._places[node], self._places.get(reader, len(self._places))
        is_changed = any(first < place < last and nodes & read for place, nodes in self._writes)
        return None if is_changed else found


def _call(node, arguments, options):
    if node.op == "call_method":
        return getattr(arguments[0], node.target)(*arguments[1:], **options)
    return node.target(*arguments, **options)


def _as_allowed(mask):
    """Which keys a mask lets queries see, or None if it does more than that."""
    if mask.dtype == torch.bool:
        return mask
    if mask.dtype not in (torch.bfloat16, torch.float32, torch.float16):
        return None
    allowed = mask == 0
    # The least number of 16 bits is none that all scores vanish beside.
    hidden = mask == -torch.inf
    if mask.dtype != torch.float16:
        hidden = hidden | (mask == torch.finfo(mask.dtype).min)
    return allowed if bool((allowed | hidden).all()) else None


def find_band(mask):
    """The band that a mask is in all batches and heads, and in which each query sees a key, or None."""
    if mask.dim() < 2 or mask.numel() == 0:
        return None
    for _ in range(mask.dim() - 2):
        first = mask[0]
        # What is broadcast has the same numbers.
        if mask.shape[0] > 1 and mask.stride(0) != 0 and not bool((mask == first).all()):
            return None
        mask = first
    queries, keys = mask.shape
    step = max(1, _ELEMENTS // keys)
    numbers, columns = (torch.arange(count, device=mask.device, dtype=torch.int32) for count in mask.shape)
    begins, ends = [], []
    for start in range(0, queries, step):
        allowed, rows = _as_allowed(mask[start:start + step]), numbers[start:start + step]
        if allowed is None or not bool(allowed.any(-1).all()):
            return None
        first, last = (x.to(torch.uint8).argmax(-1) for x in (allowed, allowed.flip(-1)))
        begins.append((first - rows)[first > 0])
        ends.append((keys - 1 - last - rows)[last > 0])
    begins, ends = torch.cat(begins), torch.cat(ends)
    band = Band(int(begins.min()) if begins.numel() else None, int(ends.max()) if ends.numel() else None)
    for start in range(0, queries, step):
        distances = columns - numbers[start:start + step, None]
        expected = torch.ones_like(distances, dtype=torch.bool)
        if band.lowest is not None:
            expected &= distances >= band.lowest
        if band.highest is not None:
            expected &= distances <= band.highest
        if not torch.equal(_as_allowed(mask[start:start + step]), expected):
            return None
    return band


def make_mask(window, is_last, queries, keys, device):
    """The mask of a window, as Band.get_window has it."""
    moved = keys - queries if is_last else 0
    distances = (torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None]) - moved
    left, right = window
    mask = torch.ones_like(distances, dtype=torch.bool)
    if left is not None:
        mask = mask & (distances >= -left)
    return mask if right is None else mask & (distances <= right)


def _get_shape(node):
    value = node.meta.get("val", node.meta.get("example_value")) if isinstance(node, torch.fx.Node) else None
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def _adds_dimension(node):
    """Whether a node is its first operand with one more dimension, of 1, behind the heads."""
    name = _get_name(node)
    if name == "unsqueeze":
        return tuple(node.args[1:]) == (2,) or not node.args[1:] and node.kwargs == {"dim": 2}
    index = node.args[1] if name == "getitem" and len(node.args) == 2 else ()
    if not isinstance(index, tuple) or len(index) < 3 or index[2] is not None:
        return False
    return all(part == slice(None) for place, part in enumerate(index) if place != 2) and ... not in index


def _find_expanded(node):
    """k and the count where a node is `k[:, :, None].expand(..., count, ...).reshape(...)`, or None."""
    if _get_name(node) not in ("reshape", "view", "flatten"):
        return None
    expanded = node.args[0]
    if not isinstance(expanded, torch.fx.Node) or _get_name(expanded) != "expand":
        return None
    added = expanded.args[0]
    if not isinstance(added, torch.fx.Node) or not _adds_dimension(added):
        return None
    source = added.args[0]
    shapes = _get_shape(source), _get_shape(expanded), _get_shape(node)
    if None in shapes or len(shapes[0]) != 4 or len(shapes[1]) != 5:
        return None
    batches, heads, positions, columns = shapes[0]
    count = shapes[1][2]
    is_repeated = shapes[1] == (batches, heads, count, positions, columns) and shapes[2] == (
        batches, heads * count, positions, columns)
    return (source, count) if is_repeated else None


def _find_interleaved(node):
    """k and the count where a node is `k.repeat_interleave(count, dim=1)`, or None."""
    if _get_name(node) != "repeat_interleave":
        return None
    given = {**dict(zip(("self", "repeats", "dim"), node.args)), **node.kwargs}
    source, count = given.get("self", given.get("input")), given.get("repeats")
    shape = _get_shape(source)
    is_repeated = isinstance(count, int) and shape is not None and len(shape) == 4 and given.get("dim") in (1, -3)
    return (source, count) if is_repeated and not set(given) - {"self", "input", "repeats", "dim"} else None
