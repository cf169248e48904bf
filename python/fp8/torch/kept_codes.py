"""Activations that a backward only multiplies, kept for it as the codes that it multiplies with.

The partitioner of PyTorch says what a graph keeps between forward and backward: it computes again what follows from
values that the backward reads anyway, which takes no memory at all. Of what is left, a value that products in FP8 alone
read is as good as its codes. The program of the backward quantizes it in a function of its own then, which the forward
calls: the same bits, with the same state.
"""

import copy
import hashlib
import itertools
import operator
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import torch
from torch._inductor import compile_fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from fp8 import imports
from fp8.formats import DTYPES
from fp8.torch import graphs, part_ops

_DTYPES = {name: getattr(torch, dtype.numpy, None) for name, dtype in DTYPES.items()}
# Views, and those of a part of what they are of.
_VIEWS = graphs.VIEWS | {"_unsafe_view", "reshape"}
_PARTS = {"slice", "select", "split", "split_with_sizes"}
# What numbers of a Part's functions begin with, behind that of the part itself.
_FIRST_KIND = 1


class Partitioner(CustomPartitionerFn):
    """What divides a joint graph, which `prepare` may change before, and lets `keep` change both halves behind it."""

    def __init__(self, keep=None, other=None, prepare=None):
        """`keep(forward, backward, outputs)`, where the forward returns so many of its own; `other` is what divides, PyTorch's
        if None; `prepare(graph)` changes a joint graph before."""
        self._keep, self._other, self._prepare = keep, other, prepare

    def __call__(self, module, inputs, **options):
        if self._prepare is not None:
            self._prepare(module.graph)
            module.recompile()
        divide = self._other or compile_fx.min_cut_rematerialization_partition
        halves = divide(module, inputs, **options)
        if self._keep is not None:
            self._keep(*halves, options["num_fwd_outputs"])
        return halves

    def uuid(self):
        other = self._other and self._other.uuid()
        own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        return None if self._other and other is None else (own, other)

    def __reduce__(self):
        # Keys of Inductor's cache have all of its configuration in them.
        return str, (str(self.uuid()),)


class Kept(NamedTuple):
    """What a graph keeps as codes: for which products, and bytes of the value and of the codes. Bytes are None where
    sizes change."""

    graph: str
    layers: tuple
    value_bytes: int | None
    code_bytes: int | None

    def __str__(self):
        sizes = f"{self.code_bytes} bytes in place of {self.value_bytes}" if self.value_bytes else "fewer bytes, of sizes that change"
        return f"{self.graph} keeps codes for {', '.join(self.layers)}: {sizes}"


class KeptFunction:
    """Quantizes one argument of a Part: what its graph's forward calls."""

    def __init__(self, part, function, number):
        self._part, self._function, self._kind = part, function, _FIRST_KIND + number
        self.results = function.results

    def __call__(self, x):
        return self._part.call(self._kind, self._function, [x], False)


# ===----------------------------------------------------------------------===
# What may be kept so
# ===----------------------------------------------------------------------===


def _find_memory(node):
    """The node whose memory another one is a view of, whole or in part."""
    while True:
        operation = graphs.get_operation(node)
        is_part = operation in _PARTS or node.target is operator.getitem and (
            graphs.get_operation(node.args[0]) in _PARTS)
        if operation not in _VIEWS and not is_part:
            return node
        node = node.args[0]


def list_readers(node):
    """What reads a node, through views."""
    found = []
    for user in node.users:
        found += list_readers(user) if graphs.get_operation(user) in _VIEWS else [user]
    return found


def _is_multiplied(node):
    readers = list_readers(node)
    # Products of three dimensions are those of attention that is written out, which stay in high precision.
    return bool(readers) and all(graphs.get_operation(reader) in ("mm", "addmm", "_grouped_mm") for reader in readers)


def _is_wide(node):
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.element_size() > 1 and value.ndim > 1


def find(forward, backward, outputs, parameters):
    """Names of what a forward graph keeps, beside its `outputs`, for a backward that only multiplies it. Not what is kept by
    others as well: parameters, arguments without a gradient, and what else is returned."""
    own, saved = ([node for node in nodes if isinstance(node, torch.fx.Node)] for nodes in (
        graphs.get_outputs(forward.graph)[:outputs], graphs.get_outputs(forward.graph)[outputs:]))
    held = Counter(map(_find_memory, [*dict.fromkeys(own), *dict.fromkeys(saved)]))
    learned = {node for node, path, gradient in zip(
        graphs.get_placeholders(forward.graph), parameters, graphs.get_outputs(backward.graph))
               if path is None and gradient is not None}
    arguments = {node.name: node for node in graphs.get_placeholders(backward.graph)}
    found = []
    for node in saved:
        memory, argument = _find_memory(node), arguments.get(node.name)
        is_others = memory.op == "placeholder" and memory not in learned
        if argument is not None and held[memory] == 1 and not is_others and _is_wide(node) and _is_multiplied(argument):
            found.append(node.name)
    return found


def name(graph, found, infos):
    """Adds to ValueInfos, by the names of nodes, those of the arguments of a backward that may be kept as codes, and of
    their views."""
    prefix, known = "kept", [info.name for info in infos.values() if info.name]
    # Parameters may be called anything.
    while any(other.startswith(prefix) for other in known):
        prefix += "_"
    numbers = itertools.count()

    def add(node):
        infos[graphs.get_origin(node)] = imports.ValueInfo(f"{prefix}{next(numbers)}", is_saved=True)
        for user in node.users:
            if graphs.get_operation(user) in _VIEWS:
                add(user)

    for node in graphs.get_placeholders(graph):
        if node.name in found:
            add(node)


# ===----------------------------------------------------------------------===
# What is
# ===----------------------------------------------------------------------===


class _Use(NamedTuple):
    """An argument of a call of a part that codes take the place of."""

    call: torch.fx.Node
    place: int
    source: torch.fx.Node
    function: KeptFunction
    values: list


def get_dtype(info):
    """The type of PyTorch of a ValueInfo's."""
    return _DTYPES[info.dtype]


def _make_values(results, source):
    """Tensors such as a KeptFunction returns of a node: None where their sizes are not known."""
    value, values = source.meta["val"], []
    symbols = [size for size in value.shape if not isinstance(size, int)]
    for info in results:
        unknown = [place for place, size in enumerate(info.shape) if size is None]
        if unknown and (len(unknown), len(symbols), value.ndim) != (1, 1, 2) or unknown and not info.name.rpartition(".")[2].startswith("codes"):
            return None
        sizes = [symbols[0] if size is None else size for size in info.shape]
        values.append(value.new_empty(sizes, dtype=_DTYPES[info.dtype]))
    return values


def _find_uses(argument):
    """The _Uses of an argument of a backward whose parts were compiled, or None: something needs the argument itself."""
    uses = {}
    for reader in list_readers(argument):
        if reader.target is not torch.ops.fp8.part.default:
            return None
        call = part_ops.get_call(reader.args[0])
        kept = getattr(call.runs, "kept", {})
        for place, source in enumerate(reader.args[1]):
            if _find_memory(source) is not argument:
                continue
            function = kept.get(call.find_place(place))
            values = function and _make_values(function.results, source)
            if not values:
                return None
            uses[reader, place] = _Use(reader, place, source, function, values)
    return list(uses.values())


def _count(value):
    return value.numel() * value.element_size()


def describe(graph, backward, uses, layers):
    """A Kept for each argument of a backward graph, as it was before, that has _Uses."""
    made = []
    for argument in graphs.get_placeholders(backward.graph):
        if argument.name not in uses:
            continue
        names = dict.fromkeys(layers.get(reader.name, reader.name) for reader in list_readers(argument))
        values = [argument.meta["val"], *(value for use in uses[argument.name] for value in use.values)]
        are_known = all(isinstance(size, int) for value in values for size in value.shape)
        sizes = [_count(value) for value in values] if are_known else [None]
        made.append(Kept(graph, tuple(names), sizes[0], sum(sizes[1:]) if are_known else None))
    return made


def _is_less(uses, argument):
    """Whether codes are fewer bytes; of sizes that change, fewer for an element."""
    value, codes = argument.meta["val"], [each for use in uses for each in use.values]
    if all(isinstance(size, int) for each in [value, *codes] for size in each.shape):
        return sum(map(_count, codes)) < _count(value)
    return sum(use.values[0].element_size() for use in uses) < value.element_size()


def _find_chain(use, argument):
    """The views that lead from an argument to what a part takes of it."""
    chain, node = [], use.source
    while node is not argument:
        chain.insert(0, node)
        node = node.args[0]
    return chain


def _make_module(use):
    """What makes tensors such as codes are of one, for part_ops.Call."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = source = use.source.meta["val"]
    made = []
    for value in use.values:
        if all(isinstance(size, int) for size in value.shape):
            node = graph.call_function(torch.ops.aten.new_empty.default, (x, list(value.shape)), {"dtype": value.dtype})
        else:
            is_turned = isinstance(source.shape[0], int) != isinstance(value.shape[0], int)
            node = graph.call_function(torch.ops.aten.permute.default, (x, [1, 0])) if is_turned else x
            node = graph.call_function(torch.ops.aten.to.dtype, (node, value.dtype))
        node.meta["val"] = value
        made.append(node)
    graph.output(tuple(made))
    return torch.fx.GraphModule({}, graph)


def _quantize(forward, saved, use, argument):
    """Adds a call of what quantizes to the forward, behind the node that it keeps. Returns the part_ops.Call and its
    results' nodes."""
    call = part_ops.Call(use.function, _make_module(use))
    graph, known = forward.graph, {node.name: node for node in forward.graph.nodes}
    after = saved if saved.op != "placeholder" else graphs.get_placeholders(graph)[-1]
    with graph.inserting_after(after):
        anchor = graph.call_function(operator.getitem, ((), 0))
    nodes = {argument: saved}
    with graph.inserting_before(anchor):
        for view in _find_chain(use, argument):
            nodes[view] = graph.node_copy(view, lambda node: nodes.get(node) or known[node.name])
        results = _add_call(graph, call, nodes[use.source], use.values, saved.name)
    graph.erase_node(anchor)
    return call, results


def _add_call(graph, call, source, values, name):
    """Adds a call of what quantizes a node, and returns the nodes of its results."""
    made, results = graph.call_function(torch.ops.fp8.part.default, (call.key, [source], [])), []
    made.meta["val"] = values
    for place, value in enumerate(values):
        result = graph.create_node("call_function", operator.getitem, (made, place), name=f"{name}_codes")
        result.meta["val"] = value
        results.append(result)
    return results


def quantize(graph, source, function):
    """Adds a call of a KeptFunction for a node, where a graph inserts nodes now. Returns the part_ops.Call and its results' nodes."""
    values = _make_values(function.results, source)
    call = part_ops.Call(function, _make_module(_Use(None, 0, source, function, values)))
    return call, _add_call(graph, call, source, values, source.name)


def _take(backward, argument, uses, results):
    """Gives calls of parts the codes, new arguments of a backward, for the argument that it had."""
    graph = backward.graph
    for use, codes in zip(uses, results):
        taken = []
        for code in codes:
            with graph.inserting_before(argument):
                node = graph.placeholder(code.name)
            # A name that another node has would be that of both in code.
            node.target, node.meta["val"] = node.name, code.meta["val"]
            taken.append(node)
        call = part_ops.get_call(use.call.args[0])
        # Later places of the same call are further back by what came in before.
        tensors = list(use.call.args[1])
        place = tensors.index(use.source)
        call.expand(place, use.values, use.source.meta["val"])
        tensors[place:place + 1] = taken
        use.call.update_arg(1, tensors)
    # Views that nothing reads any more.
    for node in reversed(list(graph.nodes)):
        if graphs.get_operation(node) in _VIEWS and not node.users:
            graph.erase_node(node)
    graph.erase_node(argument)


def try_compile(backward, found, compile):
    """Compiles a copy of a backward graph with `compile(module, found)`. Returns the copy, what that returned and, by the
    name of each argument that becomes codes, its _Uses; and whether the copy may stay: it takes codes of no others."""
    module = torch.fx.GraphModule(backward, copy.deepcopy(backward.graph))
    made = compile(module, found)
    uses = {}
    for argument in graphs.get_placeholders(module.graph):
        if argument.name in found:
            own = _find_uses(argument)
            if own and _is_less(own, argument):
                uses[argument.name] = own
    calls = [part_ops.get_call(node.args[0]) for node in module.graph.nodes if node.target is torch.ops.fp8.part.default]
    taken = sum(len(getattr(call.runs, "kept", {})) for call in calls)
    return module, made, uses, taken == sum(map(len, uses.values()))


def replace(forward, backward, uses):
    """Has a forward quantize what it keeps, and a backward, the copy, take the codes. Returns part_ops.Calls that live as
    long as the graphs do."""
    arguments = {node.name: node for node in graphs.get_placeholders(backward.graph)}
    output = next(node for node in reversed(forward.graph.nodes) if node.op == "output")
    calls = []
    for saved in [node for node in graphs.get_outputs(forward.graph) if isinstance(node, torch.fx.Node) and node.name in uses]:
        argument, own = arguments[saved.name], uses[saved.name]
        results = []
        for use in own:
            call, codes = _quantize(forward, saved, use, argument)
            calls.append(call)
            results.append(codes)
        returned = list(output.args[0])
        place = returned.index(saved)
        returned[place:place + 1] = [code for codes in results for code in codes]
        output.args = (tuple(returned),)
        _take(backward, argument, own, results)
    forward.recompile()
    return calls
