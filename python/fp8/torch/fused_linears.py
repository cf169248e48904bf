"""Quantized layers of a graph with what stands between them, as compiled parts.

A part has products with weights that are stored in FP8, the casts of their activations, and all that leads
from one to another, or to the first, and is computed row by row: norms, activations, gating, residuals. A
cast is then the same pass over memory as the norm or the activation before it.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch.fx.passes.tools_common import stable_topological_sort

import fp8
from fp8.torch import expected, fused_groups, fused_text, graphs, merged_linears, quantized_linear
from fp8.torch.dense import make_dense
from fp8.torch.extraction import Partition

_MOST_THREADS = 8


class _Shape(NamedTuple):
    """How a result is laid out: the argument whose leading dimensions it has, or None, and those."""

    argument: int | None
    sizes: tuple
    width: int


class Unfused(Exception):
    """Why nodes become no part."""


class FusedPart:
    """A compiled part, called with its arguments: activations, weights of norms and stored tensors.

    Where stored tensors of layers that are one product no longer lie side by side, it computes them by
    themselves, operation by operation.
    """

    def __init__(self, name, partition, rows):
        """Raises Unfused."""
        self.name, self.module, self.program, self._is_apart = name, partition.module, None, False
        placeholders = graphs.get_placeholders(self.module.graph)
        numbers = {node: i for i, node in enumerate(placeholders)}
        kinds = _find_kinds(self.module.graph, rows)
        written = fused_text.write(self.module.graph, kinds)
        self.text, self._values, self._products = written.text, [], []
        # What it is compiled from; rows are invariant with those of any layer.
        self.source = self.text, any(
            isinstance(argument, fused_text.Product) and argument.scheme.invariant for argument in written.arguments)
        for argument in written.arguments:
            if isinstance(argument, fused_text.Product):
                self._products.append(([[numbers[node] for node in layer] for layer in argument.layers],
                                       [numbers[node] for node in argument.biases], str(argument.scheme)))
            else:
                node, kind = argument
                self._values.append((numbers[node], kind))
        # What of a model it is of: layers that fp8.torch.prepare may know.
        self.kinds = {("layer", scheme, *placeholders[layer[0]].meta["val"].shape)
                      for layers, _, scheme in self._products for layer in layers}
        self._shapes = [_find_shape(output, placeholders, kinds)
                        for output in next(iter(reversed(self.module.graph.nodes))).args[0]]

    def compile(self, target):
        self.program = _compile(self, target)
        self._function = self.program.functions[fused_text.FUNCTION]

    def __call__(self, *arguments):
        stored = self._arrange(arguments)
        if stored is None:
            if not self._is_apart:
                self._is_apart = True
                warnings.warn(f"fp8: the layers of {self.name} are computed by themselves, which is slow: the "
                              "weights of some that are one product do not lie side by side", stacklevel=2)
            with torch.no_grad():
                return tuple(make_dense(value) for value in torch.fx.Interpreter(self.module).run(*arguments))
        given = [_flatten(arguments[number], kind) for number, kind in self._values]
        results = self._function(*given, *stored)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(
            result.view(*(arguments[shape.argument].shape[:-1] if shape.argument is not None else shape.sizes),
                        shape.width) for shape, result in zip(self._shapes, results))

    def prepare(self, arguments, places):
        """What calls like this one are in C, from the tensors of the operation to its results, or None:
        `places` are the arguments' numbers among those tensors, None of numbers."""
        stored = self._arrange(arguments) if self._function.runs_on_gpu else None
        if stored is None:
            return None
        given = [(places[number], kind) for number, kind in self._values]
        values = iter(stored)
        for layers, biases, scheme in self._products:
            names = zip(*layers, strict=True)
            given += [([places[number] for number in own], next(values)) for own in names]
            if biases:
                given.append(([places[number] for number in biases], next(values)))
        return self._function.make_part_call(
            [value for value, place in zip(arguments, places) if place is not None], given,
            [(None if shape.argument is None else places[shape.argument], list(shape.sizes)) for shape in self._shapes])

    def _arrange(self, arguments):
        """The stored tensors as the program takes them, or None where they lie otherwise."""
        stored = []
        for layers, biases, scheme in self._products:
            parts = [[arguments[i] for i in layer] for layer in layers]
            bias = [arguments[i] for i in biases]
            if len(parts) > 1:
                parts = [[merged_linears.join(values) for values in zip(*parts)]]
                bias = bias and [merged_linears.join(bias)]
            if any(value is None for value in [*parts[0], *bias]):
                return None
            stored += [*quantized_linear.arrange(parts[0], scheme)[2], *map(make_dense, bias)]
        return stored


def _flatten(value, kind):
    value = make_dense(value)
    if kind == "full":
        return value if value.ndim == 2 else value.view(-1, value.shape[-1])
    return value.view(()) if kind == "scalar" else value.view(-1)


_programs = {}


def _compile(part, target):
    """A program; equal layers have the same text."""
    text, invariant = part.source
    key = text, invariant, target
    if key not in _programs:
        _programs[key] = expected.compile(lambda: f"the part {part.name} of torch.compile's graph", part.kinds, text,
                                          target=target, **({"invariant": True} if invariant else {}))
    return _programs[key]


def _find_kinds(graph, rows):
    """What the values of a part's graph are, by nodes; stored tensors have no kind."""
    stored = set()
    for node in graph.nodes:
        if fused_groups.is_product(node):
            stored.update(source for source in node.all_input_nodes if source is not node.args[0])
    return {node: kind for node in graph.nodes if node.op != "output" and node not in stored
            and (kind := fused_groups.find_kind(fused_groups.get_value(node), rows)) is not None}


def _find_shape(output, placeholders, kinds):
    value = output.meta["val"]
    width = value.shape[-1]
    if all(isinstance(size, int) for size in value.shape):
        return _Shape(None, tuple(value.shape[:-1]), width)
    for i, node in enumerate(placeholders):
        if kinds.get(node) == "full" and [*map(str, node.meta["val"].shape[:-1])] == [
                *map(str, value.shape[:-1])]:
            return _Shape(i, (), width)
    if value.ndim == 2:
        return _Shape(None, (-1,), width)
    raise Unfused("its results have other dimensions than what it takes")


# What was made of a graph's quantized layers: FusedParts, the Calls that run them, and lines about each layer.
class Fused(NamedTuple):
    parts: list
    calls: list
    lines: list


def has_layers(graph):
    return any(fused_groups.is_product(node) for node in graph.nodes)


def _describe_layers(node, names):
    """The layers that a product is of, as they are called in the model."""
    found = []
    for layer in fused_text.read_product(node).layers:
        info = names.infos.get(graphs.get_origin(layer[0]))
        path = info.name if info is not None and info.name else node.name
        found.append(path.removesuffix(".weight").removesuffix(".weight_packed"))
    return " + ".join(found)


def _describe_source(node, nodes):
    """What an operation of Inductor's it is that a product's activations come from, or ""."""
    source = node.args[0]
    while source not in nodes and (graphs.is_move(source) and graphs.get_operation(source) != "_to_copy"):
        source = source.args[0]
    is_left = source not in nodes and source.op == "call_function" and not fused_groups.is_product(source)
    return str(source.target) if is_left else ""


def fuse(name, module, names, target):
    """Puts calls of compiled parts in place of a graph's quantized layers and of what is between them. Returns
    a Fused."""
    merged_linears.merge(module.graph)
    result, made = Fused([], [], []), []
    products = [node for node in module.graph.nodes if fused_groups.is_product(node)]
    called = {node: _describe_layers(node, names) for node in products}
    reasons = {node: fused_groups.find_reason(node) for node in products}
    for number, (nodes, rows) in enumerate(list(fused_groups.find_groups(module.graph))):
        ordered = [node for node in module.graph.nodes if node in nodes]
        own = [node for node in ordered if fused_groups.is_product(node)]
        try:
            if not fused_groups.is_worth(nodes):
                source = _describe_source(own[0], nodes)
                raise Unfused("nothing beside it is computed by rows"
                              + (f", its activations by {source}" if source else ""))
            made.append((ordered, FusedPart(f"{name}.fused{number}", Partition(module, ordered, False), rows)))
        except Unfused as reason:
            reasons.update((node, str(reason)) for node in own)
    errors = _compile_all({part.source: part for _, part in made}, target)
    for ordered, part in made:
        own = [node for node in ordered if fused_groups.is_product(node)]
        if part.source in errors:
            reasons.update((node, f"the compiler says: {errors[part.source]}") for node in own)
            continue
        part.compile(target)
        result.parts.append(part)
        result.lines.append(f"{part.name}: {', '.join(called[node] for node in own)}")
        # With the results of parts before in place of what they computed.
        partition = Partition(module, ordered, False)
        part.module = partition.module
        result.calls.append(partition.call(part))
    result.lines.extend(f"{name}: {called[node]} is by itself: {reason}" for node, reason in reasons.items() if reason)
    stable_topological_sort(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    return result


def _compile_all(parts, target):
    """Compiles several at a time, by their sources. Returns the errors of those that could not be."""
    errors = {}

    def compile(source):
        try:
            _compile(parts[source], target)
        except fp8.CompileError as error:
            errors[source] = str(error).splitlines()[0]

    with ThreadPoolExecutor(_MOST_THREADS) as pool:
        list(pool.map(compile, parts))
    return errors
