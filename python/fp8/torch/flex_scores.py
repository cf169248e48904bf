"""What a function over a score says, as flex_attention of PyTorch takes one: a factor, a cap, what is added, and which keys are
seen."""

import math
from typing import NamedTuple

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.fx.experimental.proxy_tensor import make_fx

from fp8.errors import UnsupportedError

aten = torch.ops.aten
# Batch, head, query and key.
INDICES = 4
_QUERY, _KEY = 2, 3
# Products of sums are taken apart up to so many terms.
_MOST_TERMS = 16
# Whose results are numbers of no operand.
_FRESH = (aten.new_ones, aten.new_zeros, aten.new_full, aten.ones_like, aten.zeros_like, aten.full_like)
_SAME = (aten.clone, aten.alias, aten.detach, aten._to_copy, aten.to, aten.view, aten.lift_fresh)


def _trace(function, device, *scores):
    """Its graph of operations on numbers."""
    given = [torch.zeros((), dtype=torch.int32, device=device) for _ in range(INDICES)]
    with torch.no_grad(), TransformGetItemToIndex():
        try:
            # Methods, and what has defaults, have other numbers of arguments than those that are given.
            return make_fx(lambda *arguments: function(*arguments))(*scores, *given)
        except Exception as error:
            raise UnsupportedError(f"expected a function of operations on numbers, but got {error}") from error


class Term(NamedTuple):
    """A product of what nodes compute, times a number."""

    nodes: tuple
    factor: float = 1.0

    def __mul__(self, other):
        return Term(self.nodes + other.nodes, self.factor * other.factor)


class Reading:
    """A function's graph, and what its nodes compute for all indices."""

    def __init__(self, function, device, *scores):
        self.module = _trace(function, device, *scores)
        places = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        self.score = places[0] if scores else None
        self.places = places[-INDICES:]
        self.result = next(node for node in self.module.graph.nodes if node.op == "output").args[0]
        self.uses = {}
        for node in self.module.graph.nodes:
            self.uses[node] = {node} & {self.score, *self.places}
            for operand in () if getattr(node.target, "overloadpacket", None) in _FRESH else node.all_input_nodes:
                self.uses[node] |= self.uses[operand]
            if node.op == "get_attr" and getattr(self.module, node.target).requires_grad and torch.is_grad_enabled():
                raise UnsupportedError("expected no tensor with a gradient in a function over scores, but got one")

    def find_indices(self, nodes):
        """The indices that some of these nodes depend on, by number."""
        used = set().union(*(self.uses[node] for node in nodes))
        return [i for i, place in enumerate(self.places) if place in used]

    def compute(self, terms, indices, numbers):
        """The sum of terms, or of one node the value, with a dimension for each of four indices: of one entry, where it
        is not in `indices`, else of these `numbers`, by index."""
        def one(*given):
            known = dict(zip(indices, given))
            values = {place: known.get(i, torch.zeros((), dtype=torch.int32, device=numbers[i].device))
                      for i, place in enumerate(self.places)}
            parts = [self._run(term, values) for term in terms]
            return sum(parts[1:], parts[0])

        call = one
        for place in reversed(range(len(indices))):
            call = torch.vmap(call, in_dims=tuple(0 if i == place else None for i in range(len(indices))))
        with torch.no_grad(), TransformGetItemToIndex():
            result = torch.as_tensor(call(*(numbers[i] for i in indices)), device=numbers[0].device)
        return result.reshape([len(numbers[i]) if i in indices else 1 for i in range(INDICES)])

    def _run(self, term, values):
        if isinstance(term, Term):
            product = term.factor
            for node in term.nodes:
                product = product * self._get(node, values)
            return product
        return self._get(term, values)

    def _get(self, node, values):
        if not isinstance(node, torch.fx.Node):
            return node
        if node not in values:
            if node.op == "get_attr":
                values[node] = getattr(self.module, node.target)
            else:
                arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), lambda x: self._get(x, values))
                values[node] = node.target(*arguments, **options)
        return values[node]

    def split(self, node):
        """A number as terms that add up to it, those apart which depend on the key, and on the query."""
        if not isinstance(node, torch.fx.Node):
            return [Term((), float(node))]
        terms = self._split(node) if {self.places[_QUERY], self.places[_KEY]} <= self.uses[node] else None
        return [Term((node,))] if terms is None or len(terms) > _MOST_TERMS else terms

    def _split(self, node):
        packet = getattr(node.target, "overloadpacket", None)
        if any(_get_type(x) in (torch.float16, torch.bfloat16) for x in (node, *node.all_input_nodes)):
            # Its sums are rounded as a whole, and what becomes of them has more bits.
            return None
        if _is_same(node, (None, torch.float32, torch.float64)):
            return self.split(node.args[0])
        if packet is aten.neg:
            return [Term((), -1.0) * term for term in self.split(node.args[0])]
        if packet in (aten.add, aten.sub) and len(node.args) == 2 and not node.kwargs:
            sign = Term((), -1.0 if packet is aten.sub else 1.0)
            return self.split(node.args[0]) + [sign * term for term in self.split(node.args[1])]
        if packet is aten.mul:
            return [one * other for one in self.split(node.args[0]) for other in self.split(node.args[1])]
        if packet is aten.div and len(node.args) == 2 and not node.kwargs and _is_number(node.args[1]) and node.args[1] != 0:
            return [Term((), 1 / node.args[1]) * term for term in self.split(node.args[0])]
        return None


def _is_same(node, types):
    """Whether it hands on its operand, as one of these types. What becomes an integer is cut off, and of 16 bits rounded."""
    packet = getattr(node.target, "overloadpacket", None)
    return packet in _SAME and node.target is not aten.view.dtype and node.kwargs.get("dtype") in types


def _get_type(node):
    known = node.meta.get("tensor_meta")
    return None if known is None else known.dtype


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Scores:
    """What becomes of a score s: cap * tanh(scale * s / cap), or scale * s, plus `added`, where all of `seen` hold: pairs of
    a condition and what it has to be. Raises UnsupportedError with a reason if it is anything else."""

    def __init__(self, function, device):
        self.reading = Reading(function, device, torch.zeros((), device=device))
        self.scale, self.cap, self.added, self.seen = 1.0, None, [], []
        node = self.reading.result
        while node is not self.reading.score:
            node = self._step(node)
        if not 0 < self.scale < math.inf:
            raise UnsupportedError(f"expected scores times a positive number, but got {self.scale}")
        if self.cap is not None:
            self.scale *= self.cap

    def _has_score(self, node):
        return isinstance(node, torch.fx.Node) and self.reading.score in self.reading.uses[node]

    def _get_constant(self, node):
        """A number that depends on no index, or None."""
        if _is_number(node):
            return float(node)
        if not isinstance(node, torch.fx.Node) or self.reading.uses[node]:
            return None
        value = self.reading._get(node, {})
        return value.item() if value.numel() == 1 else None

    def _step(self, node):
        """The operand that has the score."""
        if not self._has_score(node):
            raise UnsupportedError("expected a function of the score, but got one that forgets it")
        packet, arguments = getattr(node.target, "overloadpacket", None), node.args
        having = [i for i, operand in enumerate(arguments) if self._has_score(operand)]
        if len(having) != 1:
            raise UnsupportedError("expected one use of the score, but got several")
        place = having[0]
        if packet in _SAME:
            if not _is_same(node, (None, torch.float32)):
                raise UnsupportedError("expected scores in f32, but got another type")
        elif packet is aten.neg or packet in (aten.add, aten.sub, aten.rsub) and node.kwargs:
            raise UnsupportedError(f"expected a factor, a cap, something added or a condition, but got {node.target}")
        elif packet in (aten.mul, aten.div):
            factor = self._get_constant(arguments[1 - place])
            if factor is None or packet is aten.div and (place != 0 or node.kwargs):
                raise UnsupportedError("expected scores times a number that is the same for all, but got others")
            if factor == 0:
                # What is not known yet is a zero, too.
                raise UnsupportedError("expected scores times a positive number, but got 0")
            self.scale *= 1 / factor if packet is aten.div else factor
        elif packet in (aten.add, aten.sub):
            self._add(arguments[1 - place], packet is aten.sub, place)
        elif packet is aten.tanh:
            self._bend()
        elif packet is aten.where:
            self._hide(arguments[0], place == 1, arguments[3 - place] if place in (1, 2) else None)
        elif packet is aten.masked_fill and place == 0:
            self._hide(arguments[1], False, arguments[2])
        else:
            raise UnsupportedError(f"expected a factor, a cap, something added or a condition, but got {node.target}")
        return arguments[place]

    def _add(self, other, is_minus, place):
        if self.cap is not None:
            raise UnsupportedError("expected something added to scores behind their cap, but got it before")
        if is_minus and place == 1:
            raise UnsupportedError("expected something less from scores, but got scores less from something")
        factor = Term((), -self.scale if is_minus else self.scale)
        self.added += [factor * term for term in self.reading.split(other)]

    def _bend(self):
        if self.cap is not None:
            raise UnsupportedError("expected one cap of scores, but got several")
        if not 0 < self.scale < math.inf:
            raise UnsupportedError(f"expected a positive cap of scores, but got {self.scale}")
        self.cap, self.scale = self.scale, 1.0

    def _hide(self, condition, wanted, other):
        hidden = self._get_constant(other)
        if hidden is None or hidden * self.scale != -math.inf:
            raise UnsupportedError("expected scores of hidden keys to be -inf, but got others")
        if self.cap is not None:
            raise UnsupportedError("expected keys hidden behind the cap of scores, but got it before")
        self.seen.append((condition, wanted))

    def is_seen(self, indices, numbers):
        """Whether the conditions hold, for each key and query."""
        seen = None
        for node, wanted in self.seen:
            own = [i for i in self.reading.find_indices([node]) if i in indices]
            held = self.reading.compute([node], own, numbers).bool() == wanted
            seen = held if seen is None else seen & held
        return seen
