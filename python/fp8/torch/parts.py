"""Compiled parts of graphs, and how they are called."""

import torch

import fp8
from fp8 import _core, imports
from fp8.torch import graphs, importer, seeds
from fp8.torch.dense import make_dense
from fp8.torch.kept_codes import KeptFunction
from fp8.torch.written_weights import Places


def _make_dense(values):
    return [make_dense(value) if isinstance(value, torch.Tensor) else value for value in values]


class _Weights:
    """What a part takes for its weights: codes that one call makes for all until a step ends, or that an optimizer
    writes."""

    def __init__(self, program, function, infos, arguments):
        """`infos` of the part before, and its function's `arguments`."""
        self._function = function
        self._places = [i for i, info in enumerate(infos) if info.is_saved]
        self._written, self._was_written = Places(program, function, [infos[i] for i in self._places]), False
        numbers = {info.name: i for i, info in enumerate(function.results)}
        # For each argument its number before, or among the codes.
        self._order, left = [], [info.name for info in arguments]
        for i, info in enumerate(infos):
            codes = [name for name in left if name.startswith(f"{info.name}.")]
            if not info.is_saved or left and left[0] == info.name:
                self._order.append((False, i))
                left.pop(0)
            else:
                while left and left[0] in numbers and left[0] in codes:
                    self._order.append((True, numbers[left.pop(0)]))
        self.clear()

    def clear(self):
        self._key, self._codes, self._kept = None, (), ()

    def replace(self, arguments, state, reuse, written):
        """The arguments with codes in them. `reuse`: of an earlier call of the step. `written` are WrittenWeights, or None."""
        weights = [arguments[i] for i in self._places]
        codes = written and self._written.find(weights, written)
        if codes is not None:
            self._was_written = True
        elif self._was_written:
            codes = self._written.quantize(weights)  # The state has no amaxes of a step before.
        else:
            codes = self._quantize(weights, state, reuse)
        return [codes[i] if is_code else arguments[i] for is_code, i in self._order]

    def _quantize(self, weights, state, reuse):
        captures = any(value.is_cuda for value in weights) and (
            torch.cuda.is_current_stream_capturing())
        key = captures, *((value.data_ptr(), value._version) for value in weights)
        if not reuse or key != self._key:
            takes_state = self._function.takes_state
            codes = self._function(*weights, state=state if takes_state else None)
            # Kept with the weights, so that no others come to be where they are.
            self._key, self._codes, self._kept = key, codes, weights
        return self._codes


class Part:
    """A compiled graph, called with its arguments; `name` says which it is.

    With a recipe that has a state, each call is a step: the scales of the next one follow
    from what this one measured. `infos` are of the arguments; for those that are saved, codes
    are made once in a step.
    """

    def __init__(self, name, program, infos=()):
        self.name, self.program, self.steps = name, program, True
        self._function = program.functions[importer.FUNCTION]
        has_state = any(function.takes_state for function in program.functions.values())
        self.state = fp8.State(program) if has_state else None
        if has_state:
            seeds.seed(self.state)
        self._weights, self._prepared = None, _core.PreparedCalls()
        # By the number of the argument that codes stand for.
        self.kept = {}
        # WrittenWeights, where an optimizer writes codes of weights.
        self.written = None
        infos = self._find_kept(infos)
        quantize = program.functions.get(importer.QUANTIZE)
        if quantize is not None and quantize.results:
            self._weights = _Weights(program, quantize, infos, self._function.arguments)

    def _find_kept(self, infos):
        """The same infos with those of codes in place of activations that are taken so."""
        left = {info.name for info in self._function.arguments}
        taken = []
        for place, info in enumerate(infos):
            if not info.is_saved or info.is_weight:
                taken.append(info)
                continue
            if info.name in left:
                # Codes of weights are what is kept beside it.
                taken.append(info._replace(is_saved=False))
                continue
            function = self.program.functions[importer.KEEP + info.name]
            self.kept[place] = KeptFunction(self, function, len(self.kept))
            taken += [imports.ValueInfo(result.name) for result in function.results]
        return taken

    def call(self, kind, function, arguments, ends_step):
        """Calls a function of the program, by its number among prepared calls."""
        results = self._prepared.run(kind, list(arguments), ends_step)
        if results is not None:
            return tuple(results)
        arguments = _make_dense(arguments)
        results = self._compute(function, arguments)
        function.prepare(self._prepared, kind, arguments, list(range(len(arguments))), self.state)
        if ends_step:
            self.end_step()
        return results

    def _compute(self, function, arguments):
        with torch.no_grad():
            results = function(*arguments, state=self.state if function.takes_state else None)
        results = results if isinstance(results, tuple) else (results,)
        # Sizes are numbers to PyTorch.
        return tuple(int(value) if info.shape is None else value
                     for info, value in zip(function.results, results))

    def __call__(self, *arguments):
        if self._weights is None:
            return self.call(0, self._function, arguments, self.steps)
        with torch.no_grad():
            arguments = self._weights.replace(_make_dense(arguments), self.state, not self.steps, self.written)
        results = self._compute(self._function, arguments)
        if self.steps:
            self.end_step()
        return results

    def end_step(self):
        if self._weights:
            self._weights.clear()
        if self.state is not None:
            self.state.end_step()


def convert_program(module, names, caches_weights=False):
    """The text of a torch.fx.GraphModule that takes and returns tensors, and ValueInfos of its
    arguments. Raises UnsupportedProgram."""
    infos = [names.infos.get(node.name, imports.ValueInfo(None))
             for node in graphs.get_placeholders(module.graph)]
    if caches_weights:
        infos = [info._replace(is_saved=info.is_saved or info.is_weight and not info.is_gradient) for info in infos]
    return importer.convert(module, infos, names.layers), infos
