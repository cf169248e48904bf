"""Parts of graphs as modules of their own, and calls of what computes them in their place."""

import operator

import torch

from fp8.torch import graphs, part_ops


def _find_root(node, nodes):
    """What a node is another view of, as long as that is one of the nodes."""
    while graphs.get_operation(node) in graphs.VIEWS and node in nodes:
        node = node.args[0]
    return node


def get_order(value):
    """The order of the dimensions in which a tensor that is laid out in another one, without
    holes, is contiguous; None for others."""
    if not isinstance(value, torch.Tensor) or not all(
            isinstance(number, int) for number in (*value.shape, *value.stride())):
        return None
    order = sorted(range(value.ndim), key=lambda dim: -value.stride(dim))
    return None if value.is_contiguous() or not value.permute(order).is_contiguous() else order


def permute(graph, node, order):
    result = graph.call_function(torch.ops.aten.permute.default, (node, list(order)))
    result.meta["val"] = node.meta["val"].permute(order)
    return result


def _add_placeholder(graph, source, order):
    """An argument that is what `source` is. A part takes what is contiguous, so that one which is
    laid out in another order, such as the transpose of a weight, is given as it lies."""
    node = graph.placeholder(source.name)
    node.meta = dict(source.meta)
    if order is None:
        return node
    node.meta["val"] = source.meta["val"].permute(order)
    return permute(graph, node, [order.index(dim) for dim in range(len(order))])


class Partition:
    """Nodes of a graph as a module of their own: it takes what `inputs` are in the graph, and
    returns a tuple of what `outputs` are. What is a view of memory that it takes or returns is
    no output: the graph keeps that."""

    def __init__(self, owner, nodes, lays_out=True):
        """With `lays_out` what lies in another order of dimensions is taken as it lies."""
        self.nodes, self._lays_out = set(nodes), lays_out
        roots = [_find_root(node, self.nodes) for node in nodes
                 if not self.nodes.issuperset(node.users)]
        self.outputs = [root for root in dict.fromkeys(roots) if root in self.nodes]
        graph, copies = torch.fx.Graph(), {}
        for node in nodes:
            for source in node.all_input_nodes:
                if source not in self.nodes and source not in copies:
                    copies[source] = _add_placeholder(graph, source, self._get_order(source))
        for node in nodes:
            copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[output] for output in self.outputs))
        graph.eliminate_dead_code()
        sources = {source.name: source for source in copies if source not in self.nodes}
        for placeholder in graphs.get_placeholders(graph):
            if not placeholder.users:
                graph.erase_node(placeholder)
        self.inputs = [sources[node.target] for node in graphs.get_placeholders(graph)]
        self.module = torch.fx.GraphModule(owner, graph)

    def _get_order(self, source):
        return get_order(source.meta.get("val")) if self._lays_out else None

    def call(self, run):
        """Puts a call of what computes the same into the graph, in place of the nodes. Returns
        the part_ops.Call."""
        call = part_ops.Call(run, self.module)
        graph = next(iter(self.nodes)).graph
        last = next(node for node in reversed(list(graph.nodes)) if node in self.nodes)
        with graph.inserting_after(last):
            anchor = graph.call_function(operator.getitem, ((), 0))
        with graph.inserting_before(anchor):
            arguments = []
            for source in self.inputs:
                order = self._get_order(source)
                arguments.append(source if order is None else permute(graph, source, order))
            node = graph.call_function(torch.ops.fp8.part.default,
                                       (call.key, *call.split(arguments)))
            node.meta["val"] = [output.meta["val"].contiguous() for output in self.outputs]
            for i, output in enumerate(self.outputs):
                result = graph.call_function(operator.getitem, (node, i))
                result.meta = {**output.meta, "val": node.meta["val"][i],
                               "fp8.origin": graphs.get_origin(output)}
                output.replace_all_uses_with(result)
        graph.erase_node(anchor)
        return call
