"""Results of attention as codes in graphs of a Backend, by fp8_mha: parts multiply these in place of numbers that they would
quantize, with the bits that they would make (coded_graphs has layers of ours, coded_results eager mode).

In a joint graph attention gives codes, views are of these, and whatever else reads the result is given the numbers that they
stand for. Where that is a product of a part, the part's program takes codes, as kept_codes has it, and nobody makes numbers.
"""

from collections import Counter

import torch

from fp8 import imports
from fp8.torch import coded_graphs, graphs, kept_codes, part_ops

_WIDEN, _TURN = torch.ops.fp8.widen_codes.default, torch.ops.fp8.turn_codes.default
# What gives the same elements other places, or some of them.
_MOVES = {"view", "_unsafe_view", "reshape", "alias", "detach", "clone", "transpose", "permute", "unsqueeze", "squeeze", "slice",
          "select", "expand"}


# ===----------------------------------------------------------------------===
# Joint graphs
# ===----------------------------------------------------------------------===


def take(graph, is_coded):
    """Has attention of units that give codes do so, in a joint graph or one without a backward, where a product reads them of
    which `is_coded` says that a part will multiply codes. Returns how many do."""
    taken = 0
    for node, saves in coded_graphs.find_attention(graph):
        first = next((user for user in node.users if user.args[1] == 0), None)
        if first is None or not any(map(is_coded, _list_products(first))):
            continue
        codes, factor, dtype = coded_graphs.replace(graph, node, saves)
        backward = coded_graphs.list_backward(graph)
        _Numbers(graph, factor, dtype, backward).give(first, codes)
        _erase(graph, first)
        _erase(graph, node)
        taken += 1
    return taken


def _is_move(node):
    """Whether codes are moved so, and not what a product reads: matrices are turned beside it."""
    return graphs.get_operation(node) in _MOVES and not (
        graphs.get_operation(node) in ("transpose", "permute") and node.args[0].meta["val"].ndim == 2)


def _list_products(node):
    """The products of a forward that read a result as their first operand, through moves."""
    for user in node.users:
        if _is_move(user) and user.args[0] is node:
            yield from _list_products(user)
        elif graphs.get_operation(user) in ("mm", "addmm") and user.args[-2] is node:
            yield user


class _Numbers:
    """Gives the readers of a result numbers, made of codes where they are first read: those of a backward belong to it."""

    def __init__(self, graph, factor, dtype, backward):
        self._graph, self._factor, self._dtype, self._backward = graph, factor, dtype, backward

    def give(self, node, codes):
        """To the readers of a node, which has the place of `codes`; what moves it moves these."""
        readers = [], []
        for user in list(node.users):
            if _is_move(user) and user.args[0] is node and user.all_input_nodes.count(node) == 1:
                self._move(user, codes)
            else:
                readers[user in self._backward].append(user)
        for some in filter(None, readers):
            first = next(each for each in self._graph.nodes if each in some)
            with self._graph.inserting_before(first):
                wide = self._graph.call_function(_WIDEN, (codes, self._factor, self._dtype))
            wide.meta = {**node.meta}
            for user in some:
                user.replace_input_with(node, wide)

    def _move(self, node, codes):
        with self._graph.inserting_before(node):
            moved = self._graph.call_function(node.target, (codes, *node.args[1:]), node.kwargs)
        values = [torch.fx.map_arg(x, lambda each: each.meta["val"]) for x in ((codes, *node.args[1:]), dict(node.kwargs))]
        moved.meta = {**node.meta, "val": node.target(*values[0], **values[1])}
        self.give(node, moved)
        _erase(self._graph, node)


def _erase(graph, node):
    if not node.users:
        graph.erase_node(node)


# ===----------------------------------------------------------------------===
# Parts
# ===----------------------------------------------------------------------===


def _list_wide(graph):
    return [node for node in graph.nodes if node.target is _WIDEN]


def name(graph, infos):
    """Adds to ValueInfos, by the names of nodes, those of numbers that codes of attention stand for, and of their views: what a
    program takes as codes if it only quantizes it."""
    known, made = [info.name for info in infos.values() if info.name], Counter()
    prefix = "attended"
    # Parameters may be called anything.
    while any(other.startswith(prefix) for other in known):
        prefix += "_"

    def add(node):
        infos[graphs.get_origin(node)] = imports.ValueInfo(f"{prefix}{made[prefix]}", is_saved=True)
        made[prefix] += 1
        for user in node.users:
            if graphs.get_operation(user) in graphs.VIEWS:
                add(user)

    for node in _list_wide(graph):
        add(node)


def _find_turned(source, wide):
    """Whether a view of a matrix is it or, True, its transpose; None if it is another view."""
    is_turned, node = False, source
    while node is not wide:
        operation = graphs.get_operation(node)
        shape, before = node.meta["val"].shape, node.args[0].meta["val"].shape
        if operation in ("t", "transpose", "permute"):
            is_turned ^= shape == before[::-1] and (operation != "permute" or list(node.args[1]) == [1, 0])
        elif shape != before:
            return None
        node = node.args[0]
    return is_turned


def _find_order(source, info, turns_squares):
    """Whether a program takes codes of a view of a matrix with its rows beside each other; None if nothing tells."""
    shape, expected = list(source.meta["val"].shape), list(info.shape)
    orders = [turned for turned in (False, True) if len(expected) == len(shape) and all(
        isinstance(own, int) == isinstance(size, int) and (size is None or size == own)
        for size, own in zip(expected, reversed(shape) if turned else shape))]
    if len(orders) == 2:
        return turns_squares
    return orders[0] if orders else None


def _match(function, source, wide, turns_squares):
    """Whether a program takes such codes turned; None if it takes others."""
    codes, infos = wide.args[0].meta["val"], function.results
    is_turned = _find_turned(source, wide) if codes.ndim == 2 else None
    if is_turned is None or len(infos) != 2 or kept_codes.get_dtype(infos[0]) != codes.dtype:
        return None
    if kept_codes.get_dtype(infos[1]) != torch.float32 or list(infos[1].shape) != [1, 1]:
        return None
    order = _find_order(source, infos[0], turns_squares)
    return None if order is None else is_turned ^ order


def _make_codes(graph, wide, is_turned):
    codes, factor = wide.args[:2]
    if is_turned:
        made = graph.call_function(_TURN, (codes,))
        made.meta = {**codes.meta, "val": _TURN(codes.meta["val"])}
        codes = made
    return [codes, factor]


def _replace(reader, place, before, nodes):
    """Gives a part nodes for one of its tensors, which was such as `before`."""
    call = part_ops.get_call(reader.args[0])
    at, kept = call.find_place(place), call.runs.kept
    call.expand(place, [node.meta["val"] for node in nodes], before)
    del kept[at]
    later = {number: function for number, function in kept.items() if number > at}
    for number in later:
        del kept[number]
    kept.update({number + len(nodes) - 1: function for number, function in later.items()})
    tensors = list(reader.args[1])
    tensors[place:place + 1] = nodes
    reader.update_arg(1, tensors)


def give(graph, turns_squares):
    """Gives parts the codes that they take, once they are in a graph. `turns_squares` says whether they take codes of a square
    matrix with its rows beside each other, or None: which is not known. Returns how many take attention's, and part_ops.Calls, which
    quantize for others and live as long as the graph does."""
    given, calls = 0, []
    for wide in _list_wide(graph):
        for reader in list(kept_codes.list_readers(wide)):
            if reader.target is not torch.ops.fp8.part.default:
                continue
            for place, source in reversed(list(enumerate(reader.args[1]))):
                call = part_ops.get_call(reader.args[0])
                function = getattr(call.runs, "kept", {}).get(call.find_place(place))
                if function is None or graphs.find_viewed(source) is not wide:
                    continue
                is_turned = _match(function, source, wide, turns_squares)
                with graph.inserting_before(reader):
                    if is_turned is None:
                        added, nodes = kept_codes.quantize(graph, source, function)
                        calls.append(added)
                    else:
                        nodes = _make_codes(graph, wide, is_turned)
                given += is_turned is not None
                _replace(reader, place, source.meta["val"], nodes)
    for node in reversed(list(graph.nodes)):
        if node.target is _WIDEN or graphs.get_operation(node) in graphs.VIEWS:
            _erase(graph, node)
    return given, calls
