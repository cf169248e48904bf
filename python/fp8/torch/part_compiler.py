"""Compiles parts of a graph, several at a time."""

import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import torch

from fp8 import imports
from fp8.torch import graphs
from fp8.torch.parts import Part, convert_program

# Each has a compiler's memory, and its passes several threads of their own.
_MOST_THREADS = 8


def _find_same(node):
    """The argument that a node is, seen twice transposed, or the node."""
    source = graphs.find_viewed(node)
    values = node.meta.get("val"), source.meta.get("val")
    is_same = source.op == "placeholder" and all(
        isinstance(value, torch.Tensor) and value.is_contiguous() for value in values) and (
            values[0].shape == values[1].shape)
    return source if is_same else node


def join_same(graph):
    """Has operations take an argument itself where they take it seen twice transposed: a part that took both would have two
    arguments of one name."""
    for node in graph.nodes:
        if node.op == "call_function" and graphs.get_operation(node) not in graphs.VIEWS:
            for source in node.all_input_nodes:
                same = _find_same(source)
                if same is not source:
                    node.replace_input_with(source, same)


class _Converted(NamedTuple):
    """A partition as text: what compiles it, and what its Part is told."""

    program: Future
    infos: list | None
    layers: dict | None
    part: Part | None = None


def _call(function, *arguments):
    """A Future that has what a function returns or raises."""
    future = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


def _name_products(partition, layers):
    """What the products of a partition are called, each otherwise, by the names of nodes."""
    names, seen = {}, Counter()
    for node in partition.module.graph.nodes:
        if graphs.get_operation(node) in graphs.PRODUCTS:
            name = layers.get(node.name, node.name)
            seen[name] += 1
            names[node.name] = name if seen[name] == 1 else f"{name}_{seen[name] - 1}"
    return names


class PartCompiler:
    """Compiles partitions of a graph, each once."""

    def __init__(self, name, names, compile, caches_weights):
        self._name, self._names, self._caches_weights = name, names, caches_weights
        self._compile, self._known = compile, {}

    def start(self, partitions):
        """Compiles all that are not known, at the same time: a model of many layers has as many."""
        texts = {}
        for partition in partitions:
            key = frozenset(partition.nodes)
            if key in self._known:
                continue
            future = Future()
            try:
                texts[key], infos, layers = self._convert(partition)
                self._known[key] = _Converted(future, infos, layers)
            except imports.UnsupportedProgram as error:
                future.set_exception(error)
                self._known[key] = _Converted(future, None, None)
        if len(texts) < 2:
            for key, text in texts.items():
                self._known[key] = self._known[key]._replace(program=_call(self._compile, text))
            return
        pool = ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1))
        try:
            for key, text in texts.items():
                self._known[key] = self._known[key]._replace(program=pool.submit(self._compile, text))
            wait([self._known[key].program for key in texts])
        finally:
            # Whoever presses Ctrl-C does not wait for the rest.
            pool.shutdown(wait=False, cancel_futures=True)

    def get(self, partition, suffix):
        """The Part of a partition that was started, and the remark of each product by its node.
        Raises UnsupportedProgram and fp8.CompileError."""
        known = self._known[frozenset(partition.nodes)]
        program = known.program.result()
        if known.part is None:
            known = known._replace(part=Part(self._name + suffix, program, known.infos))
            self._known[frozenset(partition.nodes)] = known
        # Leave out remarks on copies, which are beside those of their products.
        remarks = {remark.name: remark for remark in program.remarks if remark.kind != "copy"}
        layers = known.layers
        return known.part, {node: remarks[layers[node.name]] for node in partition.nodes
                            if layers.get(node.name) in remarks}

    def _convert(self, partition):
        """The text of a partition, ValueInfos of its arguments, and names of its products."""
        placeholders = graphs.get_placeholders(partition.module.graph)
        infos = {placeholder.name: self._names.infos[known]
                 for placeholder, source in zip(placeholders, partition.inputs)
                 if (known := graphs.get_origin(_find_same(source))) in self._names.infos}
        layers = _name_products(partition, self._names.layers)
        return *convert_program(partition.module, graphs.Names(infos, layers),
                                self._caches_weights), layers
