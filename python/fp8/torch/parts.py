"""Compiled parts of graphs, and how they are called."""

import torch

import fp8
from fp8 import imports
from fp8.torch import graphs, importer


class Part:
    """A compiled graph, called with its arguments; `name` says which it is.

    With a recipe that has a state, each call is a step: the scales of the next one follow
    from what this one measured.
    """

    def __init__(self, name, program):
        self.name, self.program, self.steps = name, program, True
        self._function = program.functions[importer.FUNCTION]
        self.state = fp8.State(program) if self._function.takes_state else None

    def __call__(self, *arguments):
        arguments = [value.contiguous() if isinstance(value, torch.Tensor) else value
                     for value in arguments]
        with torch.no_grad():
            results = self._function(*arguments, state=self.state)
        if self.steps:
            self.end_step()
        results = results if isinstance(results, tuple) else (results,)
        # Sizes are numbers to PyTorch.
        return tuple(int(value) if port.shape is None else value
                     for port, value in zip(self._function.results, results))

    def end_step(self):
        if self.state is not None:
            self.state.end_step()


def extract(module):
    """A copy that returns a tuple of tensors, each once, and takes only what it needs; which
    of the arguments these are; and where each output is: ("argument", i), ("result", i) or
    ("value", anything else)."""
    nodes, graph = {}, torch.fx.Graph()
    graph.graph_copy(module.graph, nodes)
    placeholders = graphs.get_placeholders(module.graph)
    results, places = [], []
    for output in graphs.get_outputs(module.graph):
        if not isinstance(output, torch.fx.Node):
            places.append(("value", output))
        elif output.op == "placeholder":
            places.append(("argument", placeholders.index(output)))
        else:
            if output not in results:
                results.append(output)
            places.append(("result", results.index(output)))
    graph.output(tuple(nodes[result] for result in results))
    graph.eliminate_dead_code()
    taken = []
    for index, placeholder in enumerate(placeholders):
        if nodes[placeholder].users:
            taken.append(index)
        else:
            graph.erase_node(nodes[placeholder])
    return torch.fx.GraphModule(module, graph), taken, places


class Caller:
    """Calls a part as the graph that it was extracted from: with a list of arguments, which it
    empties, so that nobody keeps what has been read."""

    def __init__(self, part, taken, places):
        self._part, self._taken, self._places = part, taken, places
        # AOTAutograd's word for that. Of the instance, as what wraps functions copies it.
        self._boxed_call = True

    def __call__(self, arguments):
        kept = {where: arguments[where] for kind, where in self._places if kind == "argument"}
        taken = [arguments[i] for i in self._taken]
        arguments.clear()
        results = self._part(*taken) if self._part else ()
        return [results[where] if kind == "result" else kept[where] if kind == "argument"
                else where for kind, where in self._places]


def compile_part(name, module, names, compile):
    """A caller for all of a graph. Raises UnsupportedProgram and fp8.CompileError."""
    extracted, taken, places = extract(module)
    if not any(kind == "result" for kind, _ in places):
        return Caller(None, taken, places), None
    ports = [names.ports.get(node.name, imports.Port(None))
             for node in graphs.get_placeholders(extracted.graph)]
    part = Part(name, compile(importer.convert(extracted, ports, names.layers)))
    return Caller(part, taken, places), part
