"""What stands between the products of a graph, compiled once where layers repeat it.

Each layer of a model has the same operations there: rotary embeddings, what a cache is given, attention. To
Inductor they are one graph, which takes the longer the deeper the model is. Here those of a layer become one
operation, and Inductor compiles the graph of the first for all.
"""

import operator

import torch
from torch._guards import TracingContext
from torch._inductor.utils import BoxedBool
from torch.fx.passes.tools_common import stable_topological_sort

from fp8.errors import ArgumentError
from fp8.torch import extraction, graphs, operations, part_ops

# Fewer are not worth an operation.
_LEAST_NODES = 4
_PRODUCTS = {"fp8::part", "fp8::quantized_linear", "fp8::merged_linears"}
_copy = torch.ops.aten.copy_.default


def _is_product(node):
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.name in _PRODUCTS


def _is_copy(node):
    """Whether a node stores what an argument of the graph becomes."""
    return node.target is _copy and node.args[0].op == "placeholder"


def _is_free(node):
    """Whether a node may be part of an operation of several."""
    if node.op != "call_function" or not isinstance(node.meta.get("val"), (torch.Tensor, tuple, list)):
        return False
    if node.target is operator.getitem:
        return _is_free(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload) or _is_product(node):
        return False
    return _is_copy(node) or not (node.target._schema.is_mutable or _is_random(node))


def _is_random(node):
    """Whether an operation draws numbers. Attention that drops nothing does not."""
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[i] if i < len(node.args) else node.kwargs.get("dropout_p", argument.default_value)
            return given != 0.0
    return True


def _find_levels(graph):
    """How many operations that stay there are before a node, on the longest way, and which nodes wait for no product."""
    levels, early = {}, set()
    for node in graph.nodes:
        stays = {source for source in node.all_input_nodes
                 if source.op == "call_function" and source.target is not operator.getitem and not _is_free(source)}
        levels[node] = max((levels[source] + (source in stays) for source in node.all_input_nodes), default=0)
        if not any(_is_product(source) or source not in early for source in node.all_input_nodes):
            early.add(node)
    return levels, early


def _place(graph):
    """The level that each free node is computed in. What waits for no product is computed where all that reads it is, if
    that is one level, and what becomes of an argument is stored where the argument is read."""
    nodes = list(graph.nodes)
    levels, early = _find_levels(graph)
    copies = [node for node in nodes if _is_copy(node)]
    placed, stored = {}, set()  # The second are read by nothing but copies.

    def place(node):
        found = {placed.get(user) for user in node.users} if node in early else set()
        placed[node] = found.pop() if len(found) == 1 and None not in found else levels[node]

    free = [node for node in reversed(nodes) if _is_free(node) and not _is_copy(node)]
    for node in free:
        if node.users and all(user in stored or _is_copy(user) for user in node.users):
            stored.add(node)
        else:
            place(node)
    for node in copies:
        found = {placed.get(user) for user in node.args[0].users if user is not node and user not in stored}
        source = node.args[1]
        if len(found) == 1 and None not in found and (source in stored or placed.get(source) in found):
            placed[node], = found
    for node in free:
        if node in stored:
            place(node)
    return placed


def _is_whole(nodes):
    """Whether nothing else sees what they store, or the values before."""
    for node in nodes:
        if not _is_copy(node):
            continue
        seen = list(node.args[:2])
        for value in seen:
            if (value is node.args[0] or value.op != "placeholder") and not nodes.issuperset(value.users):
                return False
            seen += [user for user in value.users if graphs.get_operation(user) in graphs.VIEWS]
    return not any(_is_copy(user) for node in nodes for user in node.users if user not in nodes)


class _Segment:
    """The nodes of a level as a graph of their own, which takes what it changes before all else."""

    def __init__(self, owner, nodes):
        self.nodes = nodes
        partition = extraction.Partition(owner, nodes, False)
        self.module, self.outputs = partition.module, partition.outputs
        graph = self.module.graph
        given = dict(zip(graphs.get_placeholders(graph), partition.inputs))
        stored = {node.args[0] for node in nodes if _is_copy(node)}
        changed = [place for place, source in given.items() if source in stored]
        for place in reversed(changed):
            next(iter(graph.nodes)).prepend(place)
        self.inputs, self.changes = [given[place] for place in graphs.get_placeholders(graph)], len(changed)
        self._lay_out()
        self.module.recompile()
        self.text = self._describe()

    def _lay_out(self):
        """Makes the results contiguous: each is returned in the order of its dimensions in memory."""
        graph, self.orders, laid = self.module.graph, [], []
        end = next(node for node in reversed(graph.nodes) if node.op == "output")
        with graph.inserting_before(end):
            for output in end.args[0]:
                value = output.meta["val"]
                order = extraction.get_order(value)
                if order is not None:
                    output = extraction.permute(graph, output, order)
                elif not value.is_contiguous():
                    output = graph.call_function(
                        torch.ops.aten.clone.default, (output,), {"memory_format": torch.contiguous_format})
                    output.meta["val"] = value.contiguous()
                self.orders.append(order)
                laid.append(output)
        end.args = tuple(laid),

    def _describe(self):
        """What it computes, without names of nodes: those of layers are alike."""
        numbers, lines = {}, [str(self.changes)]
        for number, node in enumerate(self.module.graph.nodes):
            numbers[node] = number
            arguments = torch.fx.node.map_arg((node.args, node.kwargs), lambda source: f"%{numbers[source]}")
            target = "" if node.op in ("placeholder", "output") else node.target
            lines.append(f"{node.op} {target} {arguments} {part_ops.describe(node.meta.get('val'))}")
        return "\n".join(lines)

    def can_call(self):
        """Whether it is an operation: of tensors and sizes, contiguous as operations of ours want them."""
        kinds = torch.Tensor, torch.SymInt, int
        values = [node.meta.get("val") for node in self.inputs]
        return (all(isinstance(value, kinds) for value in values) and len(set(self.inputs)) == len(self.inputs)
                and all(value.is_contiguous() for value in values if isinstance(value, torch.Tensor))
                and all(isinstance(node.meta.get("val"), torch.Tensor) for node in self.outputs)
                and any(isinstance(value, torch.Tensor) for value in values))

    def replace(self, call):
        """Calls an operation in place of the nodes, of which only those stay that something reads."""
        graph = self.nodes[0].graph
        tensors, sizes = call.split(self.inputs)
        last = [node for node in self.nodes if not _is_copy(node)][-1]
        with graph.inserting_after(last):
            node = graph.call_function(
                _repeated, (call.key, tensors[:self.changes], tensors[self.changes:], sizes))
        node.meta["val"] = call.infer(*([value.meta["val"] for value in values] for values in (tensors, sizes)))
        for i, (output, order) in enumerate(zip(self.outputs, self.orders)):
            with graph.inserting_after(node):
                result = graph.call_function(operator.getitem, (node, i))
            result.meta = {**output.meta, "val": node.meta["val"][i]}
            if order is not None:
                with graph.inserting_after(result):
                    result = extraction.permute(graph, result, [order.index(dim) for dim in range(len(order))])
            result.meta["fp8.origin"] = graphs.get_origin(output)
            output.replace_all_uses_with(result)
        for each in self.nodes:
            if _is_copy(each):
                graph.erase_node(each)


def _run(key, changed, tensors, sizes):
    return part_ops.get_call(key).run([*changed, *tensors], sizes)


def _infer(key, changed, tensors, sizes):
    return part_ops.get_call(key).infer([*changed, *tensors], sizes)


_repeated = operations.define(
    "repeated(str key, Tensor(a!)[] changed, Tensor[] tensors, SymInt[] sizes) -> Tensor[]", _run, _infer)


@_repeated.py_impl(torch._C.DispatchKey.Functionalize)
def _refuse(*arguments, **keywords):
    """Inductor asks for such an implementation of whatever changes its arguments. Graphs get these operations behind it."""
    raise ArgumentError("expected fp8::repeated in a compiled graph alone")


def _find_segments(module):
    placed = _place(module.graph)
    found = {}
    for node in module.graph.nodes:
        if node in placed:
            found.setdefault(placed[node], []).append(node)
    for nodes in found.values():
        if len(nodes) >= _LEAST_NODES and _is_whole(set(nodes)):
            segment = _Segment(module, nodes)
            if segment.can_call():
                yield segment


def share(module, compile):
    """Makes one operation of all that is between two products of a graph of AOTAutograd, where that is there several times.
    `compile` is Inductor's for a graph and its arguments. Returns the Calls of what was compiled."""
    graph = module.graph
    # Whatever else changes a tensor says nothing of who may read it when.
    if not any(map(_is_product, graph.nodes)) or any(
            isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable and not _is_copy(node)
            for node in graph.nodes):
        return []
    alike = {}
    for segment in list(_find_segments(module)):
        alike.setdefault(segment.text, []).append(segment)
    calls = []
    for first, *others in alike.values():
        if not others:
            continue
        # Inductor changes the graph that it compiles.
        call = part_ops.Call(_compile(first.module, compile), others[0].module)
        calls.append(call)
        for segment in (first, *others):
            segment.replace(call)
    if calls:
        stable_topological_sort(module)  # Into another graph.
        module.graph.eliminate_dead_code()
        module.recompile()
    return calls


def _compile(module, compile):
    """What computes a segment: a function of its arguments."""
    end = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    end.meta["user_visible_output_idxs"] = list(range(len(end.args[0])))
    inputs = [node.meta["val"] for node in graphs.get_placeholders(module.graph)]
    # What a graph's results are like is told of the whole one.
    with TracingContext.report_output_strides():
        made = compile(module, inputs, cudagraphs=BoxedBool(False), is_inference=True)
    return lambda *arguments: made(list(arguments))
