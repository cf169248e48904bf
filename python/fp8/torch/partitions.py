"""Which parts of a graph are compiled."""

import operator
import warnings

import torch
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions
from torch.utils.checkpoint import CheckpointPolicy

import fp8
from fp8 import imports
from fp8.torch import graphs, grouped
from fp8.torch.parts import compile_part

# What becomes linalg, of torch-mlir's decompositions. Everything else stays PyTorch's:
# attention, random numbers, communication, and what writes to its arguments.
SUPPORTED = {
    "mm", "bmm", "addmm", "baddbmm", "t", "transpose", "permute", "view", "_unsafe_view", "reshape",
    "expand", "squeeze", "unsqueeze", "slice", "select", "cat", "clone", "alias", "_to_copy",
    "convert_element_type", "split", "split_with_sizes", "getitem", "stack",
    "add", "sub", "rsub", "mul", "div", "neg", "abs", "pow", "square", "sqrt", "rsqrt", "exp", "log",
    "log1p", "expm1", "sigmoid", "tanh", "erf", "relu", "gelu", "silu", "maximum", "minimum", "clamp",
    "clamp_min", "clamp_max", "where", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_not", "sin", "cos", "reciprocal", "fill", "full", "full_like", "ones_like",
    "zeros_like", "zeros", "ones", "scalar_tensor", "arange", "masked_fill", "sum", "mean", "var",
    "amax", "amin", "_softmax", "_softmax_backward_data", "_log_softmax",
    "_log_softmax_backward_data", "native_layer_norm", "embedding", "threshold_backward",
    "var_mean",
}
DTYPES = {torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool}


def _is_supported(node):
    """Whether a node of a graph is an operation that becomes linalg, on tensors."""
    if node.op != "call_function":
        return False
    value = node.meta.get("val")
    if isinstance(value, (torch.SymInt, int)):
        return True
    if _is_beside_groups(node):
        return False
    values = value if isinstance(value, (list, tuple)) else [value]
    return graphs.get_operation(node) in SUPPORTED and all(
        isinstance(v, torch.Tensor) and v.dtype in DTYPES for v in values)


def _is_beside_groups(node):
    """Whether a node is a view of what a product of groups takes or gives, which takes it as it
    lies in memory: in a part it would be a copy."""
    return graphs.get_operation(node) in _VIEWS and any(
        grouped.is_product(other) for other in [*node.users, *node.all_input_nodes])


def _find_levels(graph):
    """Which part each supported node is of: what is left to PyTorch stands between them.

    As early as can be, so that a wgrad is in the part that makes the gradient which it reads,
    and no more than that is kept for a later one; but what begins with what is there anyway,
    such as a norm that is computed again for a backward, where it is first needed.
    """
    supported = set()
    for node in graph.nodes:
        # One of several results stays with what has them.
        is_of_left = node.target is operator.getitem and node.args[0] not in supported
        if _is_supported(node) and not is_of_left:
            supported.add(node)
    earliest, begins = {}, set()

    def is_left(node):
        return node.op == "call_function" and node not in supported and bool(node.all_input_nodes)

    for node in graph.nodes:
        earliest[node] = max((earliest[source] + (node in supported and is_left(source))
                              for source in node.all_input_nodes), default=0)
        if node in supported and graphs.get_operation(node) not in graphs.PRODUCTS and all(
                source in begins or source not in supported for source in node.all_input_nodes):
            begins.add(node)
    levels = {}
    for node in reversed(list(graph.nodes)):
        if node not in supported:
            continue
        levels[node] = earliest[node]
        if node in begins:
            needed = [levels.get(user, earliest[user]) for user in node.users
                      if user.op == "call_function"]
            levels[node] = max(earliest[node], min(needed, default=0))
    return levels


# Other views of the same memory, and of these such as are of a part of it.
_VIEWS = {"t", "transpose", "permute", "view", "expand", "squeeze", "unsqueeze", "alias"}
_PARTIAL_VIEWS = {"slice", "select", "split", "split_with_sizes", "getitem"}


def _is_free_before(node, nodes):
    """Whether what a part takes may as well be this view, as it lies in memory."""
    value = node.meta.get("val")
    return (graphs.get_operation(node) in _VIEWS and not nodes & set(node.all_input_nodes)
            and isinstance(value, torch.Tensor) and value.is_contiguous())


def _is_free_behind(node, nodes):
    """Whether a part may as well return what this is a view of."""
    def is_left(value):
        return not nodes & set(value.users)

    operation = graphs.get_operation(node)
    if operation in _VIEWS:
        return is_left(node)
    return operation in _PARTIAL_VIEWS and is_left(node) and all(
        graphs.get_operation(user) in _PARTIAL_VIEWS and is_left(user)
        for user in node.args[0].users if user in nodes)


def _strip(nodes):
    """A part without the views at its ends: inside of it they would be copies, as of what
    attention takes and gives."""
    nodes = set(nodes)
    while True:
        ends = {node for node in nodes
                if _is_free_before(node, nodes) or _is_free_behind(node, nodes)}
        if not ends:
            return nodes
        nodes -= ends


def keep_unsupported(graph):
    """Marks what stays PyTorch's as results that a forward keeps: in the backward it would be
    computed again beside parts that wait for it."""
    for node in graph.nodes:
        if (node.op == "call_function" and node.all_input_nodes and not _is_supported(node)
                and not graphs.is_move(node)):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def _count_products(nodes):
    return sum(graphs.get_operation(node) in graphs.PRODUCTS for node in nodes)


def _is_worth_it(nodes):
    """A product, or several passes over memory that become one."""
    names = [graphs.get_operation(node) for node in nodes]
    return (_count_products(nodes) > 0
            or sum(name not in graphs.MOVES for name in names) > 2)


def _find_unsupported(graph):
    """The operations that stay PyTorch's, each once."""
    return list(dict.fromkeys(
        str(node.target) for node in graph.nodes
        if node.op == "call_function" and not _is_supported(node) and not graphs.is_move(node)
        and not grouped.is_product(node)))


def compile_graph(name, module, names, compile, caches_weights=False):
    """What runs a graph of AOTAutograd, the Parts of it, and lines that say what of it stays
    PyTorch's, and why.

    `compile` makes a program of text. With `caches_weights` parts quantise their weights once
    in a step.
    """
    products = _count_products(module.graph.nodes)
    left = [f"{name}: {operation} stays PyTorch's"
            for operation in _find_unsupported(module.graph)]
    if not left and not any(map(grouped.is_product, module.graph.nodes)):
        try:
            caller, part = compile_part(name, module, names, compile, caches_weights)
            return caller, [part] if part else [], []
        except (imports.UnsupportedProgram, fp8.CompileError) as error:
            left.append(f"{name}: {error}")
    caller, parts, reasons, compiled = _compile_partitions(name, module, names, compile,
                                                           caches_weights)
    left += reasons
    if compiled < products:
        warnings.warn(f"fp8: {products - compiled} of {products} matrix products of {name} stay "
                      f"PyTorch's: {'; '.join(left)}", stacklevel=2)
    return caller, parts, left


def _compile_partitions(name, module, names, compile, caches_weights):
    """The same for what of the graph is supported, in as few parts as there can be; and how
    many products are in them."""
    levels = _find_levels(module.graph)
    partitions = [_strip(node for node in levels if levels[node] == level)
                  for level in sorted(set(levels.values()))]
    partitions = [dict.fromkeys(node for node in module.graph.nodes if node in nodes)
                  for nodes in partitions if _is_worth_it(nodes)]
    fused = fuse_by_partitions(module, partitions) if partitions else module
    calls = [node for node in fused.graph.nodes if node.op == "call_module"]
    inners = {node.target: fused.get_submodule(node.target) for node in calls}
    parts, left, compiled = [], [], 0
    for number, node in enumerate(calls):
        inner, ports = inners[node.target], dict(names.ports)
        for placeholder, argument in zip(graphs.get_placeholders(inner.graph), node.args):
            placeholder.meta = argument.meta
            port = names.ports.get(_get_origin(inners, argument).name)
            if port:
                ports[placeholder.name] = port
        part_name = f"{name}.{number}"
        try:
            caller, part = compile_part(part_name, _as_tuple(inner),
                                        graphs.Names(ports, names.layers), compile,
                                        caches_weights)
        except (imports.UnsupportedProgram, fp8.CompileError) as error:
            left.append(f"{part_name}: {error}")
            continue
        if part:
            parts.append(part)
        compiled += _count_products(inner.graph.nodes)
        is_single = not isinstance(_get_result(inner), (tuple, list))
        setattr(fused, node.target, _Module(caller, is_single))
    others, products, reasons = grouped.replace_products(
        name, fused, names, lambda node: _get_origin(inners, node), compile)
    return _make_boxed(fused), parts + others, left + reasons, compiled + products


def _make_boxed(module):
    """A function of a list of arguments that lets go of each once it has been read."""
    module.graph.set_codegen(torch.fx.graph._BoxedCodeGen())
    module.recompile()

    def call(arguments):
        return module.forward(arguments)

    call._boxed_call = True
    return call


def _get_origin(inners, node):
    """What a value of a graph of parts was before: the node that one of these returns."""
    number = None
    if node.target is operator.getitem and node.args[0].op == "call_module":
        node, number = node.args
    if node.op != "call_module":
        return node
    result = _get_result(inners[node.target])
    return result if number is None else result[number]


def _get_result(module):
    return next(node for node in reversed(module.graph.nodes) if node.op == "output").args[0]


def _as_tuple(module):
    """The same with a tuple of results where it has one."""
    result = _get_result(module)
    if isinstance(result, (tuple, list)):
        return module
    nodes, graph = {}, torch.fx.Graph()
    graph.graph_copy(module.graph, nodes)
    graph.output((nodes[result],))
    return torch.fx.GraphModule(module, graph)


class _Module(torch.nn.Module):
    def __init__(self, caller, is_single):
        super().__init__()
        self._caller, self._is_single = caller, is_single

    def forward(self, *arguments):
        results = self._caller(list(arguments))
        return results[0] if self._is_single else results
