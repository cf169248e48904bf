"""Compiled parts of graphs, and how they are called."""

import torch

import fp8
from fp8 import imports
from fp8.torch import graphs, importer, seeds


class _Weights:
    """What a part takes for its weights: codes that one call makes for all until a step ends."""

    def __init__(self, function, ports, arguments):
        """`ports` of the part before, and its function's `arguments`."""
        self._function = function
        self._places = [i for i, port in enumerate(ports) if port.is_saved]
        numbers = {port.name: i for i, port in enumerate(function.results)}
        # For each argument its number before, or among the codes.
        self._order, left = [], [port.name for port in arguments]
        for i, port in enumerate(ports):
            codes = [name for name in left if name.startswith(f"{port.name}.")]
            if not port.is_saved or left and left[0] == port.name:
                self._order.append((False, i))
                left.pop(0)
            else:
                while left and left[0] in numbers and left[0] in codes:
                    self._order.append((True, numbers[left.pop(0)]))
        self.clear()

    def clear(self):
        self._key, self._codes, self._kept = None, (), ()

    def replace(self, arguments, state, reuse):
        """The arguments with codes in them. `reuse`: of an earlier call of the step."""
        weights = [arguments[i] for i in self._places]
        captures = any(value.is_cuda for value in weights) and (
            torch.cuda.is_current_stream_capturing())
        key = captures, *((value.data_ptr(), value._version) for value in weights)
        if not reuse or key != self._key:
            takes_state = self._function.takes_state
            codes = self._function(*weights, state=state if takes_state else None)
            # Kept with the weights, so that no others come to be where they are.
            self._key, self._codes, self._kept = key, codes, weights
        return [self._codes[i] if is_code else arguments[i] for is_code, i in self._order]


class Part:
    """A compiled graph, called with its arguments; `name` says which it is.

    With a recipe that has a state, each call is a step: the scales of the next one follow
    from what this one measured. `ports` are of the arguments; for those that are saved, codes
    are made once in a step.
    """

    def __init__(self, name, program, ports=()):
        self.name, self.program, self.steps = name, program, True
        self._function = program.functions[importer.FUNCTION]
        has_state = any(function.takes_state for function in program.functions.values())
        self.state = fp8.State(program) if has_state else None
        if has_state:
            seeds.seed(self.state)
        quantize = program.functions.get(importer.QUANTIZE)
        self._weights = None
        if quantize is not None and quantize.results:
            self._weights = _Weights(quantize, ports, self._function.arguments)

    def __call__(self, *arguments):
        arguments = [value.contiguous() if isinstance(value, torch.Tensor) else value
                     for value in arguments]
        with torch.no_grad():
            if self._weights:
                arguments = self._weights.replace(arguments, self.state, not self.steps)
            state = self.state if self._function.takes_state else None
            results = self._function(*arguments, state=state)
        if self.steps:
            self.end_step()
        results = results if isinstance(results, tuple) else (results,)
        # Sizes are numbers to PyTorch.
        return tuple(int(value) if port.shape is None else value
                     for port, value in zip(self._function.results, results))

    def end_step(self):
        if self._weights:
            self._weights.clear()
        if self.state is not None:
            self.state.end_step()


def _find_viewed(node):
    """The argument of a graph that a node has in another shape and nothing else, and that
    shape, with -1 for an extent that is not known; None for other nodes."""
    shape = [-1 if isinstance(size, torch.SymInt) else size
             for size in getattr(node.meta.get("val"), "shape", ())]
    while graphs.get_operation(node) in ("view", "_unsafe_view", "reshape"):
        node = node.args[0]
    return (node, shape) if node.op == "placeholder" and shape.count(-1) <= 1 else None


def extract(module):
    """A copy that returns a tuple of tensors, each once, and takes only what it needs; which
    of the arguments these are; and where each output is: ("argument", i), ("view", (i, shape)),
    ("result", i) or ("value", anything else)."""
    nodes, graph = {}, torch.fx.Graph()
    graph.graph_copy(module.graph, nodes)
    placeholders = graphs.get_placeholders(module.graph)
    results, places = [], []
    for output in graphs.get_outputs(module.graph):
        if not isinstance(output, torch.fx.Node):
            places.append(("value", output))
        elif output.op == "placeholder":
            places.append(("argument", placeholders.index(output)))
        elif viewed := _find_viewed(output):
            places.append(("view", (placeholders.index(viewed[0]), viewed[1])))
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
        kept = [arguments[where] if kind == "argument" else
                arguments[where[0]].reshape(where[1]) if kind == "view" else where
                for kind, where in self._places]
        taken = [arguments[i] for i in self._taken]
        arguments.clear()
        results = self._part(*taken) if self._part else ()
        return [results[where] if kind == "result" else value
                for (kind, where), value in zip(self._places, kept)]


def compile_part(name, module, names, compile, caches_weights=False):
    """A caller for all of a graph. Raises UnsupportedProgram and fp8.CompileError."""
    extracted, taken, places = extract(module)
    if not any(kind == "result" for kind, _ in places):
        return Caller(None, taken, places), None
    ports = [names.ports.get(node.name, imports.Port(None))
             for node in graphs.get_placeholders(extracted.graph)]
    if caches_weights:
        ports = [port._replace(is_saved=port.is_weight and not port.is_gradient) for port in ports]
    part = Part(name, compile(importer.convert(extracted, ports, names.layers)), ports)
    return Caller(part, taken, places), part
