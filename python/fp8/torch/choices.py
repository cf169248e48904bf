"""Which products of a graph are expected to be faster in FP8 on a GPU than Inductor's."""

import math
import operator

import torch

from fp8 import machines
from fp8.remarks import Remark
from fp8.torch import graphs, speed


def _get_sizes(node):
    """Batches, rows, columns and K of a product of 16 bits, or None where one is not known."""
    if any(operand.meta["val"].element_size() != 2 for operand in get_operands(node)):
        return None
    a, b = (operand.meta["val"].shape for operand in get_operands(node))
    sizes = (a[0] if len(a) == 3 else 1, a[-2], b[-1], a[-1])
    return sizes if all(isinstance(size, int) for size in sizes) else None


def get_operands(node):
    return node.args[1:3] if "add" in graphs.get_operation(node) else node.args[:2]


def _get_kind(info):
    """Which tensor of y = x @ w an operand is one of."""
    if info is None:
        return "x"
    return "y" if info.is_gradient else "w" if info.is_weight else "x"


class _Product:
    """A product of a graph: what it is expected to take in high precision and in FP8."""

    def __init__(self, node, recipe, infos, uses):
        """`infos` of arguments by their names; `uses`: how many products take what an operand is
        made of, by its source."""
        batches, rows, columns, depth = _get_sizes(node)
        self.node, self.sources = node, [graphs.find_source(value) for value in get_operands(node)]
        kinds = [_get_kind(infos.get(graphs.get_origin(source))) for source in self.sources]
        elements = (batches * rows * depth, batches * depth * columns)
        work = batches * rows * columns * depth
        self.high, self.fp8 = (
            self._estimate(name, work, kinds, elements, uses) for name in (None, recipe))
        # A cast of each operand, which others share.
        self.casts = sum(1 / uses[source] for source in self.sources)

    def _estimate(self, recipe, work, kinds, elements, uses):
        """A third of a layer's launches and products; of the passes over a tensor half, those of
        its forward or its backward, which the products that take it share."""
        launch, product, x, w, y = speed.get_constants(recipe)
        passes = {"x": x / 2, "w": w / 2, "y": y / 2}
        return launch / 3 + 1e-9 * product / 3 * work + sum(
            1e-6 * passes[kind] * count / uses[source]
            for kind, count, source in zip(kinds, elements, self.sources))

    @property
    def gain(self):
        return self.high - self.fp8


def _get_layer_sizes(node):
    """Rows, outputs and inputs of a product of 16 bits in Dynamo's graph, or None."""
    if node.target not in (torch.nn.functional.linear, torch.matmul, operator.matmul, torch.mm,
                           torch.bmm, torch.addmm):
        return None
    tensors = [value.meta.get("example_value") for value in node.all_input_nodes]
    result = node.meta.get("example_value")
    if not all(isinstance(value, torch.Tensor) and value.ndim and value.element_size() == 2
               and all(isinstance(size, int) for size in value.shape)
               for value in (result, *tensors)):
        return None
    x = tensors[-2] if node.target is torch.addmm and len(tensors) > 1 else tensors[0]
    return math.prod(result.shape[:-1]), result.shape[-1], x.shape[-1]


def expects_faster(graph, recipe, is_replayed):
    """Whether some product of a graph of Dynamo's is expected to be worth FP8, before AOTAutograd
    makes forward and backward of it. With `is_replayed` in CUDA graphs, where the host does not
    count."""
    sizes = [found for found in map(_get_layer_sizes, graph.nodes) if found is not None]
    if not speed.is_known(recipe):
        return True
    # A third of a layer's products are its forward's.
    host = machines.get_own().host
    gpu = host["share"] * sum(speed.estimate(None, *each) for each in sizes) / 3
    return (is_replayed or gpu > host["product"] * len(sizes)) and any(
        speed.is_faster(recipe, *each) for each in sizes)


def find_slower(names, recipe, products, is_replayed=False):
    """The nodes of `products` that are to stay in high precision, each with a Remark.

    A step takes as long as the GPU or the host does, which launches kernels: so those products
    that gain most for each cast which they add are in FP8, as long as that makes the longer of
    both shorter. With `is_replayed` in CUDA graphs, where the host does not count.
    """
    name = recipe.partition(",")[0]
    known = [node for node in products if _get_sizes(node) is not None]
    if not known or not speed.is_known(name):
        return {}
    uses = {}
    for node in known:
        for source in set(map(graphs.find_source, get_operands(node))):
            uses[source] = uses.get(source, 0) + 1
    candidates = [_Product(node, name, names.infos, uses) for node in known]
    numbers = machines.get_own().host
    gpu = numbers["share"] * sum(candidate.high for candidate in candidates)
    host = 0 if is_replayed else numbers["product"] * len(candidates)
    best, chosen, taken = max(gpu, host), set(), []
    reasons = {candidate.node: f"expected {candidate.fp8:.0f} us in FP8 with its casts, and "
                               f"{candidate.high:.0f} us without" for candidate in candidates}
    candidates = [candidate for candidate in candidates if candidate.gain > 0]
    for candidate in sorted(candidates, key=lambda one: -one.gain / one.casts):
        gpu -= candidate.gain
        host += 0 if is_replayed else numbers["cast"] * candidate.casts
        taken.append(candidate.node)
        reasons[candidate.node] = (
            f"expected the host to be the limit: {numbers['product']:.0f} us for a product, and "
            f"more in FP8, where the GPU takes {numbers['share'] * candidate.high:.0f} us")
        if max(gpu, host) < best:
            best, chosen = max(gpu, host), set(taken)
    return {node: _make_remark(node, names.layers.get(node.name, node.name), recipe, reason)
            for node, reason in reasons.items() if node not in chosen}


def _make_remark(node, layer, recipe, reason):
    """What is said of a product that is left to Inductor."""
    batches, rows, columns, depth = _get_sizes(node)
    shape = f"M={rows} N={columns} K={depth}" + (f" batch={batches}" if batches > 1 else "")
    role = layer.rsplit(".", 1)[-1]
    suggestion = "only_faster=False computes it in FP8"
    text = f"{layer}: high precision: {reason}; {suggestion}"
    return Remark("high precision", layer, "", "", role if role in ("dgrad", "wgrad") else "fprop",
                  shape, recipe, reason, suggestion, text, {})
