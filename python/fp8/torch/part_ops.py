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
        self._module, self._stand_ins = module, []
        self._are_sizes = [not isinstance(node.meta["val"], torch.Tensor)
                           for node in module.graph.nodes if node.op == "placeholder"]
        self._module_sizes = list(self._are_sizes)
        self.key = _find_key(module)
        _calls[self.key] = self

    @property
    def runs(self):
        return self._run

    def find_place(self, place):
        """Which argument of all a tensor is, by its number among tensors."""
        return [i for i, is_size in enumerate(self._are_sizes) if not is_size][place]

    def expand(self, place, values, before):
        """From now on takes tensors such as `values` for one, by its number among tensors, which was such as `before`."""
        at = self.find_place(place)
        self._are_sizes[at:at + 1] = [False] * len(values)
        # Take from the first one the sizes that are not known.
        known = [str(size) for size in values[0].shape]
        sizes = [size if isinstance(size, int) else known.index(str(size)) for size in before.shape]
        are_known = [isinstance(size, int) for size in before.shape]
        self._stand_ins.append((place, len(values), sizes, are_known, before.dtype))

    def _restore(self, tensors):
        """What has the sizes that `module` takes, of tensors that stand for others."""
        tensors = list(tensors)
        for place, count, sizes, are_known, dtype in reversed(self._stand_ins):
            codes = tensors[place]
            own = [size if is_known else codes.shape[size] for size, is_known in zip(sizes, are_known)]
            tensors[place:place + count] = [codes.new_empty(own, dtype=dtype)]
        return tensors

    def _merge(self, tensors, sizes, are_sizes=None):
        tensors, sizes = iter(tensors), iter(sizes)
        return [next(sizes if is_size else tensors) for is_size in are_sizes or self._are_sizes]

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
            values = torch.fx.Interpreter(self._module).run(*self._merge(self._restore(tensors), sizes, self._module_sizes))
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
