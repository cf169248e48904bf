"""Codes of activations that several layers read, as q, k and v of an attention do: kept for their backwards once.

The first layer that reads a tensor keeps what its backward takes of it. Others of the same programs compute their result
alone, and keep the same memory. Under `current`, where codes are kept in one order, they multiply with these codes, too. Else each has amaxes of its own, and multiplies with its own codes forward; backward the codes
are those of the first, with their scale. These are the same bits where both scales are, as those of layers that have
always read the same. In graphs of Inductor a pass finds such layers, elsewhere the tensor's memory and its version do.
"""

import hashlib
import operator
import threading
import weakref
from pathlib import Path

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from fp8.torch import operations
from fp8.torch.joint_passes import install

_local = threading.local()


class _Read:
    """What the last layer that was the first to read a tensor has kept of it. All references are weak."""

    def __init__(self, key, storage, unit, kind, codes):
        self.key, self.kind, self._programs, self._is_transposed = key, kind, unit.programs, unit.is_transposed
        # While there is one to it, no other storage is where it was.
        self._storage = StorageWeakRef(storage)
        self._codes = [weakref.ref(each) for each in codes]
        self._readers = {unit.number}

    def find(self, key, unit, kind):
        """The codes, if they are what a Unit would keep. One that reads a tensor again is in another forward, before which
        something may have written to its memory that PyTorch does not count."""
        if key != self.key or kind != self.kind or unit.number in self._readers or (
                unit.programs is not self._programs or unit.is_transposed != self._is_transposed):
            return None
        codes = [each() for each in self._codes]
        if self._storage.expired() or any(each is None for each in codes):
            return None
        self._readers.add(unit.number)
        return codes


def identify(x, dtype):
    """What tells a tensor that is rounded to a type, and its values, from others, and its storage; or None."""
    # Modes around it would be asked of each of these.
    with torch._C.DisableTorchFunction():
        if type(x) is not torch.Tensor or x.is_inference() or x.is_neg():
            return None
        storage, place = x.untyped_storage(), None
        if x.is_cuda:
            # What one stream computes another does not wait for, and a graph has memory of its own.
            place = torch._C._cuda_getCurrentRawStream(x.get_device()), torch.cuda.is_current_stream_capturing()
        # The last size is a layer's inputs; how the rows are arranged does not matter where they are contiguous.
        sizes = (x.numel(), x.shape[-1]) if x.is_contiguous() else (x.shape, x.stride())
        return (storage._cdata, x.data_ptr(), sizes, x.dtype, dtype, x._version, place), storage


def forward(identity, unit, x, weight, bias):
    """What unit.forward(x, weight, bias, True) returns, with codes of another layer where it has kept the same."""
    if identity is None or not unit.shares_codes:
        return unit.forward(x, weight, bias, True)
    key, storage = identity
    kind = unit.find_kept(x, weight, bias)
    last = getattr(_local, "read", None)
    codes = last.find(key, unit, kind) if last is not None and kind else None
    if codes is not None:
        return [*unit.reuse(x, codes, weight, bias), *codes]
    results = unit.forward(x, weight, bias, True)
    _local.read = _Read(key, storage, unit, kind, results[1:]) if kind else None
    return results


# ===----------------------------------------------------------------------===
# In graphs
# ===----------------------------------------------------------------------===

# The argument of the operations that says whether they return codes.
_SAVES = 4
_VIEWS = {"view", "_unsafe_view", "reshape", "alias", "detach", "clone", "transpose", "permute"}
_MOVES = {"view", "_unsafe_view", "reshape", "alias", "clone", "convert_element_type", "_to_copy"}


def _describe(node, known):
    """What is equal for nodes that are the same view, or rounded the same, of the same tensor."""
    if not isinstance(node, torch.fx.Node):
        return [_describe(each, known) for each in node] if isinstance(node, (list, tuple)) else node
    if node not in known:
        name = getattr(node.target, "_opname", "") if node.op == "call_function" else ""
        known[node] = repr((name, str(node.target), _describe(node.args, known), sorted(
            (key, _describe(value, known)) for key, value in node.kwargs.items()))) if name in _MOVES else node.name
    return known[node]


def _find_kind(node):
    """What is the same of layers that would keep the same codes, or None."""
    from fp8.torch.linear_ops import find_unit
    unit = find_unit(node.args[3])
    kept = [each for each in node.meta["val"][1:]]
    if unit is None or not unit.shares_codes or not kept or not node.args[_SAVES]:
        return None
    return id(unit.programs), unit.is_transposed, str([(each.shape, each.dtype) for each in kept])


def share(graph):
    """Makes layers of one x in a joint graph of forward and backward keep the codes of the first."""
    names = _list_layers()
    first, known = {}, {}
    for node in list(graph.nodes):
        kind = _find_kind(node) if node.target in names else None
        if kind is None:
            continue
        key = _describe(node.args[0], known), kind
        if key not in first:
            first[key] = node
            continue
        _take(graph, first[key], node)
    encode_again(graph)


def _list_layers():
    return {torch.ops.fp8.linear_forward.default, torch.ops.fp8.coded_linear_forward.default}


def _take(graph, first, node):
    """Gives what reads the codes of a node those of the first."""
    from fp8.torch.linear_ops import find_unit
    kept = {user.args[1]: user for user in first.users}
    for place in range(1, len(first.meta["val"])):
        if place not in kept:
            with graph.inserting_after(first):
                kept[place] = graph.call_function(operator.getitem, (first, place))
                kept[place].meta = {**first.meta, "val": first.meta["val"][place]}
    for user in list(node.users):
        place = user.args[1]
        if place != 0:
            user.replace_all_uses_with(kept[place])
            graph.erase_node(user)
    node.meta["val"] = node.meta["val"][:1]
    x, weight, bias, unit, _ = node.args
    if find_unit(unit).reuses:
        is_coded = node.target is torch.ops.fp8.coded_linear_forward.default
        node.target = (torch.ops.fp8.coded_linear_reuse if is_coded else torch.ops.fp8.linear_reuse).default
        node.args = x, [kept[place] for place in sorted(kept) if place], weight, bias, unit
    else:
        node.update_arg(_SAVES, False)


# ===----------------------------------------------------------------------===
# What a graph keeps anyway
# ===----------------------------------------------------------------------===


def _run_encode(x, dy, unit):
    from fp8.torch.linear_ops import get_unit
    made = get_unit(unit).encode(x)
    return [made.codes, made.scale_inv.reshape(1, 1)]


def _infer_encode(x, dy, unit):
    from fp8.torch.linear_ops import get_unit
    return [x.new_empty(x.shape, dtype=get_unit(unit).find_code_type()), x.new_empty((1, 1), dtype=torch.float32)]


# Codes of x and the inverse of their scale, as layers of codes in one order make them. With dy, which has no part in it, it
# belongs to the backward.
_encode = operations.define("linear_encode(Tensor x, Tensor dy, int unit) -> Tensor[]", _run_encode, _infer_encode)


def _list_backward(graph):
    """The nodes of a joint graph that need a gradient."""
    found = set()
    for node in graph.nodes:
        is_tangent = node.op == "placeholder" and "tangents" in node.name
        if is_tangent or node.op == "call_function" and any(each in found for each in node.all_input_nodes):
            found.add(node)
    return found


def _is_kept(x, backward):
    """Whether the backward takes the memory of x for something else, as attention does its result."""
    while _is_view(x):
        x = x.args[0]
    return x.op == "call_function" and _is_read(x, backward)


def _is_view(node):
    return node.op == "call_function" and getattr(node.target, "_opname", "") in _VIEWS


def _is_read(node, backward):
    return any(user in backward or _is_view(user) and _is_read(user, backward) for user in node.users)


def encode_again(graph):
    """Quantizes x once more in the backward where that has x anyway, in place of keeping its codes beside it."""
    from fp8.torch.linear_ops import find_unit
    names, backward = _list_layers(), _list_backward(graph)
    for node in list(graph.nodes):
        if node.target not in names or not node.args[_SAVES] or not find_unit(node.args[3]).reuses:
            continue
        x, (_, *kept) = node.args[0], node.meta["val"]
        getters = [user for user in node.users if user.args[1] != 0]
        readers = {user for getter in getters for user in getter.users}
        if len(kept) != 2 or kept[0].shape != x.meta["val"].shape or not readers or not readers <= backward or (
                not _is_kept(x, backward)):
            continue
        first = next(each for each in graph.nodes if each in readers)
        with graph.inserting_before(first):
            made = graph.call_function(torch.ops.fp8.linear_encode.default, (x, first.args[0], node.args[3]))
            made.meta = {**first.meta, "val": kept}
            own = [graph.call_function(operator.getitem, (made, place)) for place in range(2)]
        for each, value in zip(own, kept):
            each.meta = {**first.meta, "val": value}
        for getter in getters:
            getter.replace_all_uses_with(own[getter.args[1] - 1])
            graph.erase_node(getter)
        node.update_arg(_SAVES, False)
        node.meta["val"] = node.meta["val"][:1]


def rewrite(graph):
    """A joint graph, or one without a backward: with attention's results as codes, and codes that layers share."""
    from fp8.torch import coded_graphs
    coded_graphs.take(graph)
    share(graph)


def use_in_graphs():
    """Has Inductor do so, from now on, behind what attention gives as codes."""
    # A graph that another process has kept calls its operations, and no pass runs.
    from fp8.torch import coded_graphs
    texts = [Path(path).read_bytes() for path in (__file__, coded_graphs.__file__)]
    install("joint_custom_pre_pass", rewrite, hashlib.sha256(b"".join(texts)).hexdigest())
