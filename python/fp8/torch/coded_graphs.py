"""Results of attention as codes in graphs of torch.compile, by fp8_mha: where a layer reads one, through views, both become
operations of codes (coded_results has what eager mode does). All else is given the numbers that the codes stand for."""

import operator
import types

import torch

from fp8.torch import attention_ops, attention_scales, coded_results, flops, linear_ops, operations
from fp8.torch.coded_results import CodedResult
from fp8.torch.linear_programs import ELEMENTS

_VIEWS = {"view", "_unsafe_view", "reshape", "alias", "detach", "clone", "transpose", "permute", "unsqueeze", "squeeze", "slice",
          "select", "expand"}


# ===----------------------------------------------------------------------===
# Operations
# ===----------------------------------------------------------------------===


def _run_attention(query, key, value, mask, ranges, sinks, state, saves, *options):
    y, *others = attention_ops.compute(query, key, value, attention_ops.Others(mask, ranges, sinks, state),
                                       attention_ops.Options(*options), saves, codes=True)
    return [y.codes, y.factor, *others]


def _infer_attention(query, key, value, mask, ranges, sinks, state, saves, *options):
    infer = attention_ops._infer_saving if saves else attention_ops._infer_forward
    y, *others = infer(query, key, value, mask, ranges, sinks, state, *options)
    codes = attention_ops.find_code_type(attention_ops.Options(*options))
    return [y.new_empty(y.shape, dtype=codes), y.new_empty((1, 1), dtype=torch.float32), *others]


def _count_attention(query, key, value, mask, ranges, sinks, state, saves, *options, **others):
    return flops.count_attention(query, key, value, mask, ranges, sinks, state, *options)


# As attention_forward and, with `saves`, attention_forward_saving: codes and their factor in place of the result.
_attention = operations.define(
    f"attention_forward_coded(Tensor query, Tensor key, Tensor value, {attention_ops._OTHERS}, bool saves, "
    f"{attention_ops._SCHEMA}) -> Tensor[]", _run_attention, _infer_attention, flops=_count_attention)


def _run_linear(codes, factor, dtype, weight, bias, unit):
    return linear_ops.get_unit(unit).forward_coded(CodedResult(codes, factor, dtype), weight, bias, False)[0]


def _infer_linear(codes, factor, dtype, weight, bias, unit):
    return linear_ops._infer_forward(codes.new_empty(codes.shape, dtype=dtype), weight, bias, unit, False)[0]


# As linear_forward, of codes of a type of numbers, of which it keeps none.
_linear = operations.define(
    "linear_forward_coded(Tensor codes, Tensor factor, ScalarType dtype, Tensor weight, Tensor? bias, int unit) -> Tensor",
    _run_linear, _infer_linear,
    flops=lambda codes, factor, dtype, weight, *_, **others: linear_ops._count_forward(codes, weight))
# Codes of a matrix with its rows beside each other.
_turn = operations.define("turn_codes(Tensor codes) -> Tensor", coded_results.turn,
                          lambda codes: codes.new_empty(codes.shape[::-1]))
# The numbers that codes stand for.
_widen = operations.define(
    "widen_codes(Tensor codes, Tensor factor, ScalarType dtype) -> Tensor", coded_results.widen,
    lambda codes, factor, dtype: codes.new_empty(codes.shape, dtype=dtype))


# ===----------------------------------------------------------------------===
# Graphs
# ===----------------------------------------------------------------------===


def take(graph):
    """Has attention of units that give codes do so, in a joint graph or one without a backward, where a layer reads them."""
    for node, saves in find_attention(graph):
        _take(graph, node, saves)


def find_attention(graph):
    """Attention of a graph whose unit gives codes, and whether it keeps codes of its operands."""
    saving, forward = torch.ops.fp8.attention_forward_saving.default, torch.ops.fp8.attention_forward.default
    return [(node, node.target is saving) for node in graph.nodes
            if node.op == "call_function" and node.target in (saving, forward) and _gives_codes(node)]


def _gives_codes(node):
    unit = linear_ops.find_unit(node.args[-1]) if len(node.args) == 7 + len(attention_ops.Options._fields) else None
    return isinstance(unit, attention_scales.AttentionUnit) and unit.gives_codes and (
        node.meta["val"][0].dtype in ELEMENTS and node.meta["val"][0].dtype != torch.float32)


def _is_view(node):
    return node.op == "call_function" and getattr(node.target, "_opname", "") in _VIEWS


def _list_layers(result, path=()):
    """Layers that read a result, each with the views between."""
    for user in result.users:
        if _is_view(user) and user.args[0] is result:
            yield from _list_layers(user, (*path, user))
        elif user.target is torch.ops.fp8.linear_forward.default and user.args[0] is result and (
                result not in user.all_input_nodes[1:]):
            yield user, path


def _find_coded(layer, codes):
    """What a layer's unit says of such codes: linear_ops.Unit.find_coded."""
    x, weight, bias, unit, _ = layer.args
    unit, value = linear_ops.find_unit(unit), x.meta["val"]
    if type(unit) is not linear_ops.Unit or value.dim() != 2 or not all(isinstance(size, int) for size in value.shape):
        return None
    given = types.SimpleNamespace(shape=tuple(value.shape), dtype=value.dtype, device=value.device, codes=codes)
    return unit.find_coded(given, weight.meta["val"], bias is not None)


def _infer_values(node, saves):
    """Tensors such as attention gives with codes."""
    given = [x.meta["val"] if isinstance(x, torch.fx.Node) else x for x in node.args]
    return _infer_attention(*given[:7], saves, *given[7:])


def replace(graph, node, saves):
    """Puts attention that gives codes beside one whose result, but for the first, it takes over. Returns nodes of codes and
    their factor, and the type of numbers."""
    query, key, value, *others = node.args
    values = _infer_values(node, saves)
    with graph.inserting_before(node):
        made = graph.call_function(_attention, (query, key, value, *others[:4], saves, *others[4:]))
        made.meta = {**node.meta, "val": values}
        parts = [graph.call_function(operator.getitem, (made, i)) for i in range(len(values))]
    for part, each in zip(parts, values):
        part.meta = {**node.meta, "val": each}
    for user in list(node.users):
        if user.args[1] != 0:
            user.replace_all_uses_with(parts[user.args[1] + 1])
            graph.erase_node(user)
    return parts[0], parts[1], node.meta["val"][0].dtype


def _take(graph, node, saves):
    first = next((user for user in node.users if user.args[1] == 0), None)
    if first is None:
        return
    codes = _infer_values(node, saves)[0]
    layers = [(layer, path) for layer, path in _list_layers(first) if _find_coded(layer, codes)]
    if not layers:
        return
    *parts, dtype = replace(graph, node, saves)
    for layer, path in layers:
        _take_layer(graph, layer, path, parts, dtype)
    _drop_unused(graph, [each for _, path in layers for each in reversed(path)])
    _widen_for_others(graph, first, parts, dtype)
    graph.erase_node(first)
    graph.erase_node(node)


def _take_layer(graph, layer, path, parts, dtype):
    """Gives a layer the codes, by the same views of them."""
    codes, factor = parts
    with graph.inserting_before(layer):
        for view in path:
            value = view.target(codes.meta["val"], *view.args[1:], **view.kwargs)
            codes = graph.call_function(view.target, (codes, *view.args[1:]), view.kwargs)
            codes.meta = {**view.meta, "val": value}
    _, weight, bias, unit, _ = layer.args
    *_, is_turned = _find_coded(layer, codes.meta["val"])
    with graph.inserting_before(layer):
        made = graph.call_function(_linear, (codes, factor, dtype, weight, bias, unit))
        made.meta = {**layer.meta, "val": layer.meta["val"][0]}
        kept = codes
        if is_turned and any(user.args[1] == 1 for user in layer.users):
            kept = graph.call_function(_turn, (codes,))
            kept.meta = {**layer.meta, "val": layer.meta["val"][1]}
    for user in list(layer.users):
        user.replace_all_uses_with((made, kept, factor)[user.args[1]])
        graph.erase_node(user)
    graph.erase_node(layer)


def _drop_unused(graph, nodes):
    for node in nodes:
        if not node.users and node in graph.nodes:
            graph.erase_node(node)


def _widen_for_others(graph, result, parts, dtype):
    """Gives what else reads the result numbers, made where they are first read: those of a backward belong to it."""
    users = set(result.users)
    backward = list_backward(graph)
    for some in ({user for user in users if user not in backward}, {user for user in users if user in backward}):
        if not some:
            continue
        first = next(each for each in graph.nodes if each in some)
        with graph.inserting_before(first):
            wide = graph.call_function(_widen, (*parts, dtype))
            wide.meta = {**first.meta, "val": result.meta["val"]}
        for user in some:
            user.replace_input_with(result, wide)


def list_backward(graph):
    """The nodes of a joint graph that need a gradient."""
    found = set()
    for node in graph.nodes:
        is_tangent = node.op == "placeholder" and "tangents" in node.name
        if is_tangent or node.op == "call_function" and any(each in found for each in node.all_input_nodes):
            found.add(node)
    return found
