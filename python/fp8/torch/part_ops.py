"""The operation of PyTorch that calls a compiled part: what stands for it in a graph that
Inductor compiles."""

import hashlib
import itertools
import weakref

import torch

from fp8.errors import ArgumentError
from fp8.torch import operations

_calls = weakref.WeakValueDictionary()


def _find_key(module):
    """What a part is called in the text of graphs, by which Inductor's cache finds them: the same in each process, whatever
    that has compiled before. Of several that are alike and alive each has a number."""
    text = "".join(f"{node.format_node()} {describe(node.meta.get('val'))}\n" for node in module.graph.nodes)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return next(key for number in itertools.count() if (key := f"{digest}/{number}") not in _calls)


def describe(value):
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device}"
    return [describe(one) for one in value] if isinstance(value, (list, tuple)) else value


class Call:
    """A part as an operation: what runs it, and what its results are like.

    `run` is called with the arguments of `module`, a torch.fx.GraphModule that computes the same
    with PyTorch, and returns its results, contiguous tensors that are memory of their own. Its `prepare`,
    if it has one, makes what later calls are (FusedPart.prepare).
    """

    def __init__(self, run, module):
        self._run, self._prepared = run, None
        self._module = module
        self._are_sizes = [not isinstance(node.meta["val"], torch.Tensor)
                           for node in module.graph.nodes if node.op == "placeholder"]
        self.key = _find_key(module)
        _calls[self.key] = self

    def _merge(self, tensors, sizes):
        tensors, sizes = iter(tensors), iter(sizes)
        return [next(sizes if is_size else tensors) for is_size in self._are_sizes]

    def split(self, arguments):
        """The tensors and the sizes of a list of arguments."""
        both = [], []
        for is_size, argument in zip(self._are_sizes, arguments):
            both[is_size].append(argument)
        return both

    def run(self, tensors, sizes):
        if self._prepared is not None:
            results = self._prepared.call(tensors)
            if results is not None:
                return results
        arguments = self._merge(tensors, sizes)
        results = list(self._run(*arguments))
        prepare = getattr(self._run, "prepare", None)
        if prepare is not None:
            numbers = itertools.count()
            self._prepared = prepare(arguments, [None if is_size else next(numbers) for is_size in self._are_sizes])
        return results

    def infer(self, tensors, sizes):
        """Tensors such as the results are, without values: of fake arguments."""
        outputs = next(iter(reversed(self._module.graph.nodes))).args[0]
        values = [output.meta["val"] for output in outputs]
        if any(isinstance(size, torch.SymInt) for value in values for size in value.shape):
            values = torch.fx.Interpreter(self._module).run(*self._merge(tensors, sizes))
        return [torch.empty(value.shape, dtype=value.dtype, device=value.device)
                for value in values]


def get_call(key):
    """The Call of a key that a graph has. Raises ArgumentError where nothing holds it any more."""
    call = _calls.get(key)
    if call is None:
        raise ArgumentError(f"expected the part '{key}' of a compiled graph to be alive, but it is "
                            "gone")
    return call


def _run(key, tensors, sizes):
    return get_call(key).run(tensors, sizes)


def _infer(key, tensors, sizes):
    return get_call(key).infer(tensors, sizes)


part = operations.define("part(str key, Tensor[] tensors, SymInt[] sizes) -> Tensor[]", _run,
                         _infer)
