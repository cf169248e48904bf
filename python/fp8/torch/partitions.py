"""Which parts of a graph are compiled."""

import operator
import warnings
from collections import namedtuple

import torch
from torch.fx.passes.tools_common import stable_topological_sort

import fp8
from fp8 import imports
from fp8.torch import graphs, grouped, importer
from fp8.torch.extraction import Partition
from fp8.torch.part_compiler import PartCompiler, join_same

# What becomes linalg by torch-mlir. Everything else is Inductor's: attention, random numbers,
# communication, and what writes to its arguments.
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


# For tests of what parts compute: takes each operation that can be imported, products in high
# precision and graphs without one among them, where it would be Inductor's.
takes_all = False

# What reads more than the elements at its own place. Inductor fuses it with what is around, and
# its pass over rows, such as a norm's, costs a cast behind it no more than ours would.
REDUCTIONS = {"sum", "mean", "var", "var_mean", "amax", "amin", "_softmax", "_log_softmax",
              "native_layer_norm", "_softmax_backward_data", "_log_softmax_backward_data"}
GATHERS = {"embedding", "arange", "cat", "stack"}
TRANSPOSES = {"t", "transpose", "permute"}
CONSTANTS = {"full", "ones", "zeros", "scalar_tensor", "fill", "full_like", "ones_like", "zeros_like"}
CONVERSIONS = {"_to_copy", "convert_element_type"}


def _is_importable(value):
    # Where there is nothing, torch-mlir divides by zero.
    return isinstance(value, torch.Tensor) and value.dtype in DTYPES and not any(
        isinstance(size, int) and size == 0 for size in value.shape)


def _is_supported(node):
    """Whether a node of a graph is an operation that becomes linalg, on tensors of one device."""
    if node.op != "call_function" or graphs.get_operation(node) not in SUPPORTED:
        return False
    if _is_beside_groups(node):
        return False
    values = [value for other in [node, *node.all_input_nodes]
              for value in _get_values(other) if not isinstance(value, (torch.SymInt, int))]
    devices = {value.device for value in values if isinstance(value, torch.Tensor)}
    return all(map(_is_importable, values)) and len(devices) <= 1 and any(
        isinstance(value, torch.Tensor) for value in _get_values(node))


def _get_values(node):
    value = node.meta.get("val")
    return value if isinstance(value, (list, tuple)) else [value]


def _is_product(node):
    return graphs.get_operation(node) in graphs.PRODUCTS


def _get_tensors(node):
    """What a node takes that is a tensor."""
    return [source for source in node.all_input_nodes
            if any(isinstance(value, torch.Tensor) for value in _get_values(source))]


def _is_in_order(node):
    """Whether what a node computes depends, element by element, on what it takes, in the order in
    which that lies in memory. A pass over it may be one with a cast, or a product's epilogue. Of
    transposes only those of matrices that go into products."""
    operation = graphs.get_operation(node)
    if operation in REDUCTIONS or operation in GATHERS:
        return False
    if operation in TRANSPOSES:
        return node.meta["val"].ndim == 2 and all(map(_is_product, node.users))
    if operation == "clone":
        return node.args[0].meta["val"].is_contiguous()
    return True


def _is_in_memory(node):
    """Whether a value is in memory anyway: what Inductor computes element by element need not
    be, where it is fused with what takes it."""
    source = graphs.find_viewed(node)
    if source.target is operator.getitem:
        source = source.args[0]
    operation = graphs.get_operation(source)
    return source.op == "placeholder" or is_any_product(source) or (
        "attention" in operation or "convolution" in operation)


def _find_costly(graph, nodes):
    """Those of `nodes` that are computed for a product alone, without another before, of values
    that would have to be brought to memory for it: the product's operand itself is less."""
    costly = set()
    for node in graph.nodes:
        # Views cost nothing, and with them a part takes what two of its products read but once.
        if node not in nodes or _is_product(node) or graphs.get_operation(node) in graphs.VIEWS:
            continue
        size = _get_size(node)
        for source in map(graphs.find_viewed, _get_tensors(node)):
            if source in costly or source not in nodes and not (
                    _is_in_memory(source) or _is_small(source, size)):
                costly.add(node)
    # What follows from a product is in the part in any case.
    following = set()
    for node in graph.nodes:
        if node in nodes and any(source in following or source in nodes and _is_product(source)
                                 for source in node.all_input_nodes):
            following.add(node)
    return costly - following


def _get_size(node):
    value = node.meta.get("val")
    return value.numel() if isinstance(value, torch.Tensor) else 0


def _is_small(node, size):
    return isinstance(_get_size(node), int) and isinstance(size, int) and 16 * _get_size(node) <= size


def _is_epilogue(node, nodes):
    """Whether a node that leads to no other product costs less behind one in `nodes` than by
    Inductor: a bias, and a conversion of what the graph returns. All else Inductor fuses with
    what follows."""
    before = [source for source in _get_tensors(node) if source in nodes]
    if len(before) != 1 or len(before[0].users) != 1:
        return False
    if graphs.get_operation(node) in graphs.VIEWS:
        return graphs.get_operation(node) not in TRANSPOSES
    if graphs.get_operation(node) in CONVERSIONS:
        return all(user.op == "output" for user in node.users)
    others = [source for source in _get_tensors(node) if source is not before[0]]
    return graphs.get_operation(node) == "add" and bool(others) and all(
        source.meta["val"].ndim <= 1 for source in others)


def _is_sum_of_rows(node):
    if graphs.get_operation(node) != "sum" or len(node.args) < 2 or not node.args[1]:
        return False
    ndim = node.args[0].meta["val"].ndim
    return ndim > 1 and all(dim % ndim != ndim - 1 for dim in node.args[1])


def _find_between(nodes, levels):
    """The products, and what follows from one and leads to another in the same part."""
    products = set(filter(_is_product, levels))

    def find(order, get_neighbors):
        found = set(products)
        for node in order:
            if node in levels and any(other in found and levels[other] == levels[node]
                                      for other in get_neighbors(node)):
                found.add(node)
        return found

    return (find(reversed(list(nodes)), lambda node: node.users)
            & find(nodes, lambda node: node.all_input_nodes))


def _find_islands(graph, refused):
    """The products, what is between two of them element by element, what is computed so for
    a product alone, and their epilogues. The rest is Inductor's, as are `refused`, nodes that
    could not be imported."""
    nodes = {}
    for node in graph.nodes:
        # One of several results stays with what has them.
        is_of_left = node.target is operator.getitem and node.args[0] not in nodes
        if node not in refused and _is_supported(node) and not is_of_left and (
                takes_all or _is_product(node) or _is_in_order(node)):
            nodes[node] = None
    if takes_all:
        return set(nodes)
    islands = set(nodes)
    while True:
        levels = _find_levels(graph, islands)
        between = _find_between(nodes, levels)
        for node in reversed(list(nodes)):
            if node in islands and between.issuperset(node.users) and node.users:
                between.add(node)
        between -= _find_costly(graph, between)
        if between == islands:
            break
        islands = between
    for node in nodes:
        if _is_epilogue(node, islands):
            islands.add(node)
    # Gradients of biases: the pass that casts a gradient sums it up.
    sums = {node for node in graph.nodes if node not in refused and _is_sum_of_rows(node)
            and _is_supported(node) and any(islands.intersection([source, *source.users])
                                            for source in node.all_input_nodes)}
    return islands | sums


def _separate(graph):
    """Gives each user of a constant, and of what is there in fewer bits, a copy of its own: shared
    with others it would be an argument of a part."""
    for node in list(graph.nodes):
        operation = graphs.get_operation(node)
        if operation in CONSTANTS and not node.all_input_nodes or operation in CONVERSIONS and (
                _is_in_memory(node.args[0]) and _is_wider(node, node.args[0])):
            for user in list(node.users)[1:]:
                with graph.inserting_before(user):
                    copy = graph.node_copy(node)
                user.replace_input_with(node, copy)


def _is_wider(node, other):
    return node.meta["val"].element_size() > other.meta["val"].element_size()


def _is_beside_groups(node):
    """Whether a node is a view of what a product of groups takes or gives, which takes it as it
    lies in memory: in a part it would be a copy."""
    return graphs.get_operation(node) in graphs.VIEWS and any(
        grouped.is_product(other) for other in [*node.users, *node.all_input_nodes])


def _find_levels(graph, supported):
    """Which part each of the `supported` nodes is of: what is left stands between them.

    As early as can be, so that a wgrad is in the part that makes the gradient which it reads,
    and no more than that is kept for a later one. But what products of later parts alone take,
    such as a norm that is computed again for a backward, where it is first needed.
    """
    earliest, levels = {}, {}
    for node in graph.nodes:
        # What is left and takes nothing of a part waits for none.
        earliest[node] = max((earliest[source] + (source in supported and node not in supported)
                              for source in node.all_input_nodes), default=0)
    for node in reversed(list(graph.nodes)):
        if node not in supported:
            continue
        levels[node] = earliest[node]
        if not _is_product(node) and node.users and supported.issuperset(node.users):
            levels[node] = min(levels[user] for user in node.users)
    return levels


# Views of a part of memory.
_PARTIAL_VIEWS = {"slice", "select", "split", "split_with_sizes", "getitem"}


def _is_free_before(node, nodes):
    """Whether what a part takes may as well be this view, as it lies in memory."""
    value = node.meta.get("val")
    return (graphs.get_operation(node) in graphs.VIEWS and not nodes & set(node.all_input_nodes)
            and isinstance(value, torch.Tensor) and value.is_contiguous())


def _is_free_behind(node, nodes):
    """Whether a part may as well return what this is a view of."""
    def is_left(value):
        return not nodes & set(value.users)

    operation = graphs.get_operation(node)
    if operation in graphs.VIEWS:
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


def is_any_product(node):
    return _is_product(node) or grouped.is_product(node)


def _is_ours(node):
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "fp8"


def _find_unsupported(graph):
    """The operations that no part has, each once."""
    return list(dict.fromkeys(
        str(node.target) for node in graph.nodes
        if node.op == "call_function" and not _is_supported(node) and not graphs.is_move(node)
        and not grouped.is_product(node) and not _is_ours(node)
        and any(isinstance(value, torch.Tensor) for value in _get_values(node))))


def _find_partitions(module, refused):
    """As few as there can be."""
    levels = _find_levels(module.graph, _find_islands(module.graph, refused))
    groups = [_strip(node for node in levels if levels[node] == level)
              for level in sorted(set(levels.values()))]
    return [Partition(module, [node for node in module.graph.nodes if node in group])
            for group in groups if group and (takes_all or any(map(_is_product, group)))]


def _find_refused(partition):
    """The nodes of a partition that could not be imported, each alone."""
    refused, known = set(), {}
    for node in partition.nodes:
        alone = Partition(node.graph.owning_module, [node])
        key = str(node.target), str([other.meta.get("val") for other in alone.inputs]), str(
            [value for value in (*node.args, *node.kwargs.values())
             if not isinstance(value, torch.fx.Node)])
        if key not in known:
            known[key] = importer.can_convert(alone.module)
        if not known[key]:
            refused.add(node)
    return refused


def _find_own_products(graph, names):
    """Products of two matrices that are computed, neither of which is a parameter: attention that
    is written out, which no recipe is meant for."""
    return set() if takes_all else {
        node for node in graph.nodes if graphs.get_operation(node) in ("bmm", "baddbmm")
        and node.name not in names.layers}


# What is compiled of a graph: its Parts, what its operations call, what was decided of each
# product, and lines that say what is not compiled by us.
Compiled = namedtuple("Compiled", "parts calls remarks left")


def compile_graph(name, module, names, compile, caches_weights=False, find_slower=None):
    """Puts calls of compiled parts into a graph of AOTAutograd: what is left is for Inductor.

    `compile` makes a program of text. With `caches_weights` parts quantize their weights once
    in a step. `find_slower(names, products)` has reasons, by their nodes, for products that
    are better left. Returns a Compiled.
    """
    result = Compiled([], [], [], [f"{name}: {operation} is Inductor's"
                                   for operation in _find_unsupported(module.graph)])
    compiler = PartCompiler(name, names, compile, caches_weights)
    refused, failed, remarks, found = _find_own_products(module.graph, names), set(), {}, None
    candidates = [node for node in module.graph.nodes
                  if _is_product(node) and node not in refused and _is_supported(node)]
    if find_slower is not None:
        slower = find_slower(names, candidates)
        remarks.update(slower)
        refused |= slower.keys()
    if not refused.issuperset(candidates):
        join_same(module.graph)
        _separate(module.graph)
    while found is None:
        found, added = [], set()
        partitions = _find_partitions(module, refused)
        compiler.start(partitions)
        for number, partition in enumerate(partitions):
            suffix = f".{number}" if len(partitions) > 1 else ""
            try:
                part, decided = compiler.get(partition, suffix)
            except (imports.UnsupportedProgram, fp8.CompileError) as error:
                result.left.append(f"{name}: {error}")
                unknown = _find_refused(partition) or set(filter(_is_product, partition.nodes))
                failed.update(filter(_is_product, unknown))
                added |= unknown
                continue
            remarks.update(decided)
            found.append((partition, part))
            # Inductor's products in high precision are as good, and are fused with what is its.
            added |= {node for node, remark in decided.items()
                      if remark.kind != "fp8" and not takes_all}
        if added:
            refused, found = refused | added, None
    result.remarks.extend(remarks.values())
    for partition, part in found:
        result.parts.append(part)
        result.calls.append(partition.call(part))
    others = sum(graphs.get_operation(node) == "_grouped_mm" for node in module.graph.nodes)
    missing = len(failed) + others - grouped.replace_products(name, module, names, compile, result)
    stable_topological_sort(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    if missing:
        warnings.warn(f"fp8: {missing} matrix products of {name} that have a recipe stay "
                      f"Inductor's: {'; '.join(result.left)}", stacklevel=2)
    return result
