"""Which nodes of a graph are parts with quantized layers.

A part has products and all that leads from one to another, or to the first, and is computed row by row. What
is computed otherwise, such as attention, stands between parts and is Inductor's.
"""

import math
import operator

import sympy
import torch

from fp8.torch import fused_text, graphs, schemes


def _count_rows(value):
    """How many rows a tensor has, as text, the same for numbers that are known to be equal."""
    sizes = value.shape[:-1]
    return str(math.prod((size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
                          for size in sizes), start=sympy.Integer(1)))


def _is_empty(value):
    return any(isinstance(size, int) and size == 0 for size in value.shape)


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.dtype in schemes.ELEMENTS


def find_kind(value, rows):
    """What a tensor is to a part of so many rows (fused_text), or None."""
    if not _is_float(value) or value.ndim and not isinstance(value.shape[-1], int) or (
            _is_empty(value)):
        return None
    width = value.shape[-1] if value.ndim else 1
    if value.ndim > 1 and _count_rows(value) == rows:
        return "row" if width == 1 else "full"
    if value.ndim > 1 and _count_rows(value) != "1":
        return None
    return "scalar" if width == 1 else "vector"


def _get_tensors(node):
    return [source for source in node.all_input_nodes if isinstance(source.meta.get("val"), torch.Tensor)]


def _fits(node, rows):
    """Whether an elementwise node computes rows of those that it takes."""
    width = node.meta["val"].shape[-1] if node.meta["val"].ndim else 1
    values = [source.meta["val"] for source in _get_tensors(node)]
    kinds = [find_kind(value, rows) for value in values]
    return None not in kinds and all(
        kind in ("row", "scalar") or value.shape[-1] == width for kind, value in zip(kinds, values)) and (
            {value.device for value in values} == {node.meta["val"].device})


def _reduces_rows(node):
    operation, (source, dims, *others) = graphs.get_operation(node), (*node.args, None)[:max(2, len(node.args))]
    keywords = {"correction", "keepdim"} if operation in ("var", "var_mean") else set()
    keeps = node.kwargs.get("keepdim", False) if keywords else others and others[0]
    return (isinstance(dims, (list, tuple)) and len(dims) == 1 and dims[0] in (-1, source.meta["val"].ndim - 1)
            and bool(keeps) and set(node.kwargs) <= keywords
            and fused_text.is_number(node.kwargs.get("correction", 1)))


def get_value(node):
    """What a node computes, or the first of several tensors."""
    value = node.meta.get("val")
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _find_rows(node):
    """How many rows a node computes, from rows alone, or None if it is for Inductor."""
    value, operation = get_value(node), graphs.get_operation(node)
    if node.op != "call_function" or not _is_float(value) or value.ndim < 2 or _is_empty(value) or (
            not isinstance(value.shape[-1], int)):
        return None
    rows = _count_rows(value)
    if operation in fused_text.PRODUCTS:
        return rows if not find_reason(node) else None
    if operation in fused_text.ELEMENTWISE:
        return rows if fused_text.has_known_meaning(node) and _fits(node, rows) else None
    source = node.args[0] if node.args else None
    source = source if isinstance(source, torch.fx.Node) else None
    taken = None if source is None else get_value(source)
    if taken is None or operation in fused_text.VIEWS and not _is_float(taken):
        return None
    if operation in fused_text.VIEWS:
        same = taken.ndim > 1 and isinstance(taken.shape[-1], int) and taken.shape[-1] == value.shape[-1] and _count_rows(taken) == rows
        return rows if same and (operation != "clone" or taken.is_contiguous()) else None
    if operation in fused_text.REDUCTIONS:
        is_known = find_kind(taken, rows) == "full" and taken.ndim == value.ndim and _reduces_rows(node)
        return rows if is_known else None
    if operation in fused_text.SPLITS:
        return rows if find_kind(taken, rows) == "full" and node.users and all(
            fused_text.read_slice(user) for user in node.users) else None
    if operation == "getitem" and graphs.get_operation(source) == "var_mean":
        return _find_rows(source)
    piece = fused_text.read_slice(node)
    is_known = piece and find_kind(piece[0].meta["val"], rows) == "full" and value.shape[-1] > 1
    return rows if is_known else None


def find_reason(node):
    """Why a quantized layer is in no part, or ""."""
    product = fused_text.read_product(node)
    scheme, x = product.scheme, node.args[0].meta["val"]
    if scheme.packed:
        return "its weight is packed"
    if scheme.input_block is None:
        return "its activations stay in high precision"
    if scheme.scale != "f32":
        return f"its scales are in {scheme.scale}"
    if x.ndim < 2 or _is_empty(x):
        return "its activations have no rows"
    if not isinstance(x.shape[-1], int):
        return "how wide its activations are is not known"
    if node.meta["val"].shape[-1] == 1:
        return "it has one output"
    return ""


def is_product(node):
    return graphs.get_operation(node) in fused_text.PRODUCTS


def _find_levels(graph, rows):
    """Which part each node that computes `rows` is of: what is left stands between them. What products of
    later parts alone take is where it is first needed."""
    earliest, levels = {}, {}
    for node in graph.nodes:
        earliest[node] = max((earliest[source] + (source in rows and node not in rows)
                              for source in node.all_input_nodes), default=0)
    for node in reversed(list(graph.nodes)):
        if node in rows:
            levels[node] = earliest[node]
            if not is_product(node) and node.users and all(user in rows for user in node.users):
                levels[node] = min(levels[user] for user in node.users)
    return levels


def _is_free_before(node, nodes):
    """Whether what a part takes may as well be this view: as it lies in memory, or of what Inductor computes."""
    operation = graphs.get_operation(node)
    if not nodes.isdisjoint(node.all_input_nodes):
        return False
    if operation in fused_text.VIEWS:
        return True
    is_piece = operation in fused_text.SPLITS or fused_text.read_slice(node) is not None
    source = graphs.find_viewed(node.args[0]) if is_piece else None
    return is_piece and not is_product(source) and source.op != "placeholder"


def _find_constants(nodes, rows):
    """What nodes compute with that is the same for all rows, and follows from arguments alone."""
    found = set()

    def is_constant(node):
        value = node.meta.get("val")
        if node.op in ("placeholder", "get_attr"):
            return _is_float(value)
        is_known = node.op == "call_function" and graphs.get_operation(node) in fused_text.ELEMENTWISE
        return is_known and find_kind(value, rows) in ("vector", "scalar") and (
            fused_text.has_known_meaning(node) and _fits(node, rows)
            and all(map(is_constant, node.all_input_nodes)))

    def add(node):
        if node.op == "call_function" and node not in found and node not in nodes and is_constant(node):
            found.add(node)
            for source in node.all_input_nodes:
                add(source)

    for node in nodes:
        if not is_product(node):
            for source in node.all_input_nodes:
                add(source)
    return found


def _separate(nodes, constants):
    """Gives a part copies of its own of `constants` that others need, too. Returns those that it has then."""
    own = set(constants)
    for node in sorted(constants):
        if (nodes | own).issuperset(node.users):
            continue
        with node.graph.inserting_before(node):
            copy = node.graph.node_copy(node)
        for user in list(node.users):
            if user in nodes or user in own:
                user.replace_input_with(node, copy)
        own.remove(node)
        own.add(copy)
    return own


def find_groups(graph):
    """Sets of nodes, each of a part, with how many rows it has."""
    rows = {node: count for node in graph.nodes if (count := _find_rows(node)) is not None}
    # Pieces that no part takes apart are a tensor's own.
    for node in list(rows):
        if node.target is operator.getitem and node.args[0] not in rows:
            del rows[node]
    levels, groups = _find_levels(graph, rows), {}
    for node, level in levels.items():
        groups.setdefault((level, rows[node]), set()).add(node)
    for (_, count), nodes in sorted(groups.items(), key=lambda entry: entry[0][0]):
        leading = set()
        for node in reversed(list(graph.nodes)):
            if node in nodes and (is_product(node) or not leading.isdisjoint(node.users)):
                leading.add(node)
        while ends := {node for node in leading if _is_free_before(node, leading)}:
            leading -= ends
        # One of several results stays with what has them.
        for node in list(leading):
            if graphs.get_operation(node) in (*fused_text.SPLITS, "var_mean"):
                leading.update(node.users)
        if leading:
            yield leading | _separate(leading, _find_constants(leading, count)), count


def is_worth(nodes):
    """Whether a part computes more than one product."""
    others = [node for node in nodes if graphs.get_operation(node) not in fused_text.VIEWS]
    return len(others) > 1
