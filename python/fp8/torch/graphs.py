"""What tensors and matrix products of a graph of AOTAutograd are called.

Parameters are weights and have their paths in the module; a product has the name of the
parameter that it reads, without `.weight`, with `.dgrad` or `.wgrad` in a backward graph.
"""

import operator
import re
from collections import Counter, namedtuple

import torch

from fp8 import imports

# What moves or converts a tensor, or takes a part of it.
MOVES = {"t", "transpose", "permute", "view", "_unsafe_view", "reshape", "expand", "squeeze",
         "unsqueeze", "slice", "select", "split", "split_with_sizes", "clone", "_to_copy",
         "convert_element_type", "alias"}
# Those among them that are other views of the same memory.
VIEWS = {"t", "transpose", "permute", "view", "expand", "squeeze", "unsqueeze", "alias"}
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "_grouped_mm"}

# By the names of nodes: `infos` of what may be an argument of a compiled part, and `layers` of
# products. What is in neither has no name.
Names = namedtuple("Names", "infos layers")


def get_operation(node):
    """The name of the operation of PyTorch that a node calls, without its overload, or ""."""
    if node.op != "call_function":
        return ""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.split("::")[1]
    return getattr(target, "__name__", "")


def get_origin(node):
    """The name that a node had in the graph of AOTAutograd: others stand for the results of
    parts later."""
    return node.meta.get("fp8.origin", node.name)


def is_move(node):
    return node.target is operator.getitem or get_operation(node) in MOVES


def find_source(node):
    """What a node moves or converts, through any number of such nodes."""
    while isinstance(node, torch.fx.Node) and is_move(node):
        node = node.args[0]
    return node


def get_parameter_name(placeholder):
    """The path of the parameter or buffer that an argument of Dynamo's graph is, or None."""
    source = getattr(placeholder, "_dynamo_source", None)
    if source is None:
        return None
    name = source.name() if callable(source.name) else source.name
    path = re.findall(r"(?:_modules|_parameters|_buffers)\['([^']+)'\]|\[(\d+)\]", name)
    if "_parameters[" not in name and "_buffers[" not in name:
        return None
    return ".".join(key or index for key, index in path)


def get_layer(parameter):
    return re.sub(r"(^|[._])weight$", "", parameter) or parameter


def find_viewed(node):
    """What a node is another view of."""
    while get_operation(node) in VIEWS:
        node = node.args[0]
    return node


def get_placeholders(graph):
    return [node for node in graph.nodes if node.op == "placeholder"]


def get_outputs(graph):
    """What a graph returns: nodes, None and numbers."""
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    return list(output.args[0])


def _is_matrix(node):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.ndim >= 2


def _make_info(node, path, copies):
    copies[path] += 1
    name = path if copies[path] == 1 else f"{path}_{copies[path] - 1}"
    return imports.ValueInfo(name, is_weight=_is_matrix(node))


def _name_products(graph, paths, suffix, layers):
    """Those that read a parameter, of which `paths` has some by node."""
    for node in graph.nodes:
        if get_operation(node) in PRODUCTS and node.name not in layers:
            # Without what is added to the product.
            factors = node.args[1:3] if "add" in get_operation(node) else node.args[:2]
            found = (paths.get(find_source(operand)) for operand in factors)
            path = next(filter(None, found), None)
            if path:
                layers[node.name] = get_layer(path) + suffix


def name_forward(graph, parameters):
    """Names in a graph whose arguments are those of the module; `parameters` has the path of
    each, or None."""
    copies, layers = Counter(), {}
    paths = {node: path for node, path in zip(get_placeholders(graph), parameters) if path}
    _name_products(graph, paths, "", layers)
    return Names({node.name: _make_info(node, path, copies) for node, path in paths.items()},
                 layers)


def get_saved_parameters(graph, parameters):
    """The paths of the parameters that a forward graph keeps for the backward one, by the
    names of the nodes that it returns and takes."""
    paths = dict(zip(get_placeholders(graph), parameters))
    nodes = [node for node in get_outputs(graph) if isinstance(node, torch.fx.Node)]
    saved = {node.name: paths.get(find_source(node)) for node in [*nodes, *paths]}
    return {name: path for name, path in saved.items() if path}


def name_backward(graph, parameters, saved):
    """Names in a graph whose arguments are what was saved, of which `saved` knows the
    parameters, and gradients; it returns a gradient for each argument of the forward."""
    copies, layers = Counter(), {}
    paths = {node: saved[node.name] for node in get_placeholders(graph) if node.name in saved}
    for path, output in zip(parameters, get_outputs(graph)):
        source = find_source(output)
        if path and isinstance(source, torch.fx.Node) and get_operation(source) in PRODUCTS:
            layers[source.name] = f"{get_layer(path)}.wgrad"
    _name_products(graph, paths, ".dgrad", layers)
    infos = {node.name: _make_info(node, path, copies) for node, path in paths.items()}
    # Whatever follows from a gradient is one, where it goes into another part.
    gradients = set()
    for node in graph.nodes:
        if (node.op == "placeholder" and node.name.startswith("tangents")
                or gradients.intersection(node.all_input_nodes)):
            gradients.add(node)
            infos[node.name] = imports.ValueInfo(None, is_gradient=True)
    return Names(infos, layers)
