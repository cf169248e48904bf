"""Quantized layers that read the same activations, as one product in graphs of torch.compile.

Q, K and V of an attention and the gate and up of an MLP quantize the same activations, and alone
are too small for a GPU at few rows. Where their tensors lie side by side, they are one layer
whose rows are those of all: quantized once, multiplied in one launch, with the same bits.
"""

import hashlib
from pathlib import Path

import torch
import torch._inductor.config
from torch import nn
from torch._inductor.custom_graph_pass import CustomGraphPass

from fp8.torch import operations, quantized_linear, schemes

# Bytes that the tensors of each layer begin at a multiple of, as bulk copies want them.
_ALIGNMENT = 16
# Layers of a row of which any neighbours may be one product.
_MOST_RUNS = 4


def _find_first_rows(scheme, sizes, k):
    """For each stored tensor, by name, the first row of each layer in those of all, of `sizes` rows
    and K columns; None where layers do not become one by lying side by side."""
    block = scheme.weight_block[0]
    if not scheme.dynamic or any(size % (block or 1) for size in sizes[:-1]):
        return None
    parts = [scheme.get_tensors(n, k) for n in sizes]
    firsts = {}
    for name, (shape, dtype) in scheme.get_tensors(sum(sizes), k).items():
        rows = [part[name][0][0] for part in parts]
        same = all(part[name][0][1:] == shape[1:] for part in parts)
        if not same or sum(rows) != shape[0]:
            return None
        width = dtype.itemsize * (shape[1] if len(shape) > 1 else 1)
        firsts[name] = [sum(rows[:i]) for i in range(len(rows))]
        if any(first * width % _ALIGNMENT for first in firsts[name]):
            return None
    return firsts


class Row:
    """Layers whose tensors lie side by side wherever they are: `lay` says whether they do now."""

    def __init__(self, layers):
        self.layers = layers

    def find_sizes(self):
        """How many rows products can have that are several of the layers: those of all, and of few
        any that are beside each other."""
        count = len(self.layers)
        runs = [(first, end) for first in range(count) for end in range(first + 2, count + 1)]
        if count > _MOST_RUNS:
            runs = [(0, count)]
        return sorted({sum(layer.out_features for layer in self.layers[first:end])
                       for first, end in runs})

    def lay(self):
        """Moves what the layers store into one tensor for each name, of which they keep views."""
        first = self.layers[0]
        parameters = [dict(layer.named_parameters(recurse=False)) for layer in self.layers]
        devices = {value.device for values in parameters for value in values.values()}
        types = {tuple((name, value.dtype) for name, value in values.items())
                 for values in parameters}
        # In the midst of a move there are several; of those on meta nothing lies anywhere.
        if len(devices) > 1 or len(types) > 1 or devices.pop().type == "meta":
            return False
        sizes = [layer.out_features for layer in self.layers]
        width = 0 if first.bias is None else first.bias.element_size()
        firsts = _find_first_rows(first.scheme, sizes, first.in_features)
        if firsts is None or any(sum(sizes[:i]) * width % _ALIGNMENT for i in range(len(sizes))):
            return False
        for name in parameters[0]:
            values = [own[name].detach() for own in parameters]
            if join(values) is not None:
                continue
            # Not all types of codes can be concatenated.
            together = torch.cat([value.view(torch.uint8) for value in values])
            pieces = together.view(values[0].dtype).split([value.shape[0] for value in values])
            for layer, piece in zip(self.layers, pieces):
                setattr(layer, name, nn.Parameter(piece, requires_grad=False))
                layer._forget()
        return True


def prepare(model):
    """Lays the layers of each module that could read the same activations side by side, and has
    Inductor make one product of those that do."""
    for module in model.modules():
        # Each layer of a sequence reads what the one before has written.
        if isinstance(module, nn.Sequential):
            continue
        groups = {}
        for layer in dict.fromkeys(module.children()):
            if type(layer) is quantized_linear.QuantizedLinear:
                key = layer._scheme, layer.in_features, layer.bias is None
                groups.setdefault(key, []).append(layer)
        for layers in groups.values():
            row = Row(tuple(layers))
            if len(layers) > 1 and row.lay():
                for layer in layers:
                    layer._row = row
    install()


def join(values):
    """Tensors that lie side by side as one, or None. All are contiguous."""
    first, end = values[0], values[0].data_ptr()
    for value in values:
        if value.data_ptr() != end or value.shape[1:] != first.shape[1:]:
            return None
        end += value.numel() * value.element_size()
    storage = first.untyped_storage()
    # Neighbours in memory by chance are none.
    if end > storage.data_ptr() + storage.nbytes():
        return None
    rows = sum(value.shape[0] for value in values)
    return first.as_strided((rows, *first.shape[1:]), first.stride())


def _split(tensors, layers):
    count = len(tensors) // layers
    return [tensors[i * count:(i + 1) * count] for i in range(layers)]


def _compute_joined(x, parts, biases, scheme):
    """The same for layers in the order in which they lie, or None if they do not."""
    joined = [join(values) for values in zip(*parts)]
    bias = join(biases) if biases else None
    if any(value is None for value in joined) or biases and bias is None:
        return None
    return quantized_linear.compute(x, joined, bias, scheme)


def compute(x, tensors, biases, layers, scheme):
    """The results of layers beside each other, for the tensors of one after those of the other."""
    parts = _split(tensors, layers)
    y = _compute_joined(x, parts, biases, scheme)
    if y is not None:
        return y
    # A module may call its layers in another order than it has them.
    order = sorted(range(layers), key=lambda i: parts[i][0].data_ptr())
    y = _compute_joined(x, [parts[i] for i in order], [biases[i] for i in order] if biases else [],
                        scheme)
    if y is None:
        pieces = [quantized_linear.compute(x, part, bias, scheme)
                  for part, bias in zip(parts, biases or [None] * layers)]
    else:
        ordered = dict(zip(order, y.split([parts[i][0].shape[0] for i in order], -1)))
        pieces = [ordered[i] for i in range(layers)]
    return torch.cat(pieces, -1)


def _infer(x, tensors, biases, layers, scheme):
    return x.new_empty(*x.shape[:-1], sum(part[0].shape[0] for part in _split(tensors, layers)))


_merged = operations.define(
    "merged_linears(Tensor x, Tensor[] tensors, Tensor[] biases, int layers, str scheme) -> Tensor",
    compute, _infer)


def _can_merge(nodes):
    _, tensors, _, scheme = nodes[0].args
    sources = [source for node in nodes for source in node.all_input_nodes
               if source is not node.args[0]]
    sizes = [node.args[1][0].meta["val"].shape[0] for node in nodes]
    k = nodes[0].args[0].meta["val"].shape[-1]
    return (all(source.op in ("placeholder", "get_attr") for source in sources)
            and len(set(sources)) == len(sources) and isinstance(k, int)
            and _find_first_rows(schemes.Scheme.read(scheme), sizes, k) is not None)


def _replace(graph, nodes):
    order = {node: i for i, node in enumerate(graph.nodes)}
    first = min(nodes, key=order.get)
    # As their weights are given, which is most often how they lie in memory.
    nodes = sorted(nodes, key=lambda node: order[node.args[1][0]])
    x, _, bias, scheme = first.args
    sizes = [node.args[1][0].meta["val"].shape[0] for node in nodes]
    with graph.inserting_before(first):
        merged = graph.call_function(_merged, (
            x, [tensor for node in nodes for tensor in node.args[1]],
            [] if bias is None else [node.args[2] for node in nodes], len(nodes), scheme))
        value = first.meta["val"]
        merged.meta = {**first.meta, "val": value.new_empty(*value.shape[:-1], sum(sizes))}
        begin = 0
        for node, size in zip(nodes, sizes):
            dim = value.ndim - 1
            piece = graph.call_function(torch.ops.aten.slice.Tensor,
                                        (merged, dim, begin, begin + size))
            piece.meta = {**node.meta, "val": merged.meta["val"].narrow(dim, begin, size)}
            begin += size
            node.replace_all_uses_with(piece)
    for node in nodes:
        graph.erase_node(node)


def _find_owner(node):
    """The path of the module whose layer a node is a call of, or None where the graph does not say."""
    path, kind = next(reversed((node.meta.get("nn_module_stack") or {"": ("", None)}).values()))
    is_layer = isinstance(kind, type) and issubclass(kind, quantized_linear.QuantizedLinear)
    return path.rpartition(".")[0] if is_layer else None


def merge(graph):
    """Makes one operation of quantized layers of the same activations in a graph, a
    torch.fx.Graph of ATen's operations with "val". Those of two modules do not lie side by side."""
    groups = {}
    for node in graph.nodes:
        if node.target is torch.ops.fp8.quantized_linear.default:
            x, _, bias, scheme = node.args
            kind = None if bias is None else bias.meta["val"].dtype
            groups.setdefault((x, scheme, kind, _find_owner(node)), []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1 and _can_merge(nodes):
            _replace(graph, nodes)


class _Pass(CustomGraphPass):
    """`merge` after what Inductor has been given before, or None."""

    def __init__(self, other):
        self.other = other

    def __call__(self, graph):
        if self.other is not None:
            self.other(graph)
        merge(graph)

    def uuid(self):
        own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        if self.other is None:
            return own
        other = self.other.uuid() if isinstance(self.other, CustomGraphPass) else None
        return None if other is None else (own, other)


def install():
    """Gives Inductor the pass, once, beside one that it has."""
    config = torch._inductor.config
    if not isinstance(config.post_grad_custom_pre_pass, _Pass):
        config.post_grad_custom_pre_pass = _Pass(config.post_grad_custom_pre_pass)
