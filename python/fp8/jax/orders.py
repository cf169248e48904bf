"""Sorts of StableHLO, and the largest elements, by ranks: how many others come before each element.

All pairs are compared, by the comparison that the sort has, so this is for some hundred elements at a time, such as experts.
What has a rank goes to that place by a sum of it and of zeros.
"""

import math
import re

from fp8.jax import elementwise

_MOST, _MOST_PAIRS = 1024, 1 << 28


def write_sort(operation, name):
    """The function of a stable sort, or None."""
    shape, dim = list(operation.operands[0].type.shape), int(re.match(r"-?\d+", str(operation.attributes["dimension"]))[0])
    if not _is_small(shape, dim % len(shape)):
        return None
    ordering = _Ordering([value.type for value in operation.operands], dim % len(shape), shape[dim])
    names = [f"%{side}{each}" for each in range(len(operation.operands)) for side in "ab"]
    region = elementwise.write_region(operation, 0, ordering.pairs, names)
    return region and ordering.write(name, list(range(len(operation.operands))), *region)


def write_largest(operation, name):
    """The function of chlo.top_k, whose second result has places, or None."""
    x = operation.operands[0].type
    shape, element = list(x.shape), str(x.element_type)
    count = int(re.match(r"\d+", str(operation.attributes["k"]))[0])
    if not shape or not _is_small(shape, len(shape) - 1) or not re.fullmatch(r"b?f\d+|u?i\d+", element):
        return None
    ordering = _Ordering([x], len(shape) - 1, count)
    how = "TOTALORDER" if "f" in element else "UNSIGNED" if element[0] == "u" or element == "i1" else "SIGNED"
    pairs, truth = ordering.get_pairs(element), ordering.get_pairs("i1")
    line = f"  %c = stablehlo.compare GT, %a0, %b0, {how} : ({pairs}, {pairs}) -> {truth}"
    return ordering.write(name, [0, None], [line], "%c")


def _is_small(shape, dim):
    return min(shape, default=0) > 0 and shape[dim] <= _MOST and math.prod(shape) * shape[dim] <= _MOST_PAIRS


class _Ordering:
    """Pairs of elements of a dimension: the first at its place, the second behind it."""

    def __init__(self, types, dim, count):
        self.types, self.dim, self.count = types, dim, count
        self.shape = list(types[0].shape)
        self.pairs = [*self.shape[:dim + 1], *self.shape[dim:]]
        self.firsts = [each for each in range(len(self.pairs)) if each != dim + 1]
        self.seconds = [each for each in range(len(self.pairs)) if each != dim]

    def get_pairs(self, element):
        return elementwise.write_type(self.pairs, element)

    def write(self, name, results, comparison, compared):
        """A function that has `results`, numbers of operands or None for places, in order; `comparison` makes `compared` of
        %a0, %b0, and so on: whether the first of a pair comes before the second."""
        dim, ints, truth, places = self.dim, self.get_pairs("i32"), self.get_pairs("i1"), elementwise.write_type(self.shape, "i32")
        arguments = ", ".join(f"%x{number}: {each}" for number, each in enumerate(self.types))
        swapped = [{dim: dim + 1, dim + 1: dim}.get(each, each) for each in range(len(self.pairs))]
        lines = []
        for number, each in enumerate(self.types):
            pairs = self.get_pairs(each.element_type)
            lines += [f"  %a{number} = stablehlo.broadcast_in_dim %x{number}, dims = {self.firsts} : ({each}) -> {pairs}",
                      f"  %b{number} = stablehlo.broadcast_in_dim %x{number}, dims = {self.seconds} : ({each}) -> {pairs}"]
        lines += [*comparison, f"  %other = stablehlo.transpose {compared}, dims = {swapped} : ({truth}) -> {truth}",
                  f"  %i = stablehlo.iota dim = {dim} : {ints}", f"  %j = stablehlo.iota dim = {dim + 1} : {ints}",
                  f"  %left = stablehlo.compare LT, %j, %i, SIGNED : ({ints}, {ints}) -> {truth}",
                  f"  %not = stablehlo.not {compared} : {truth}", f"  %tie = stablehlo.and %not, %left : {truth}",
                  f"  %before = stablehlo.or %other, %tie : {truth}", f"  %one = stablehlo.convert %before : ({truth}) -> {ints}",
                  "  %none = stablehlo.constant dense<0> : tensor<i32>",
                  f"  %rank = stablehlo.reduce(%one init: %none) applies stablehlo.add across dimensions = [{dim + 1}] : "
                  f"({ints}, tensor<i32>) -> {places}"]
        taken = [*self.pairs[:dim], self.count, *self.pairs[dim + 1:]]
        wide, is_here = elementwise.write_type(taken, "i32"), elementwise.write_type(taken, "i1")
        lines += [f"  %ranks = stablehlo.broadcast_in_dim %rank, dims = {self.seconds} : ({places}) -> {wide}",
                  f"  %at = stablehlo.iota dim = {dim} : {wide}",
                  f"  %is = stablehlo.compare EQ, %ranks, %at, SIGNED : ({wide}, {wide}) -> {is_here}"]
        kinds = []
        for number, result in enumerate(results):
            made, kind = self._take(number, result, taken, is_here)
            lines += made
            kinds.append(kind)
        names = ", ".join(f"%r{number}" for number in range(len(results)))
        return "\n".join([f"func.func private @{name}({arguments}) -> ({', '.join(kinds)}) {{", *lines,
                          f"  return {names} : {', '.join(kinds)}", "}"])

    def _take(self, number, result, taken, is_here):
        """Lines that make a result, and its type."""
        element = "i32" if result is None else str(self.types[result].element_type)
        wide = elementwise.write_type(taken, element)
        made = elementwise.write_type([*self.shape[:self.dim], self.count, *self.shape[self.dim + 1:]], element)
        first = (f"stablehlo.iota dim = {self.dim + 1} : {wide}" if result is None else
                 f"stablehlo.broadcast_in_dim %x{result}, dims = {self.seconds} : ({self.types[result]}) -> {wide}")
        # A sum of the one and of these is the one, a zero's sign included.
        neutral, combine = ("false", "or") if element == "i1" else ("-0.0" if "f" in element else "0", "add")
        return [f"  %g{number} = {first}", f"  %z{number} = stablehlo.constant dense<{neutral}> : {wide}",
                f"  %s{number} = stablehlo.select %is, %g{number}, %z{number} : {is_here}, {wide}",
                f"  %n{number} = stablehlo.constant dense<{neutral}> : tensor<{element}>",
                f"  %r{number} = stablehlo.reduce(%s{number} init: %n{number}) applies stablehlo.{combine} across dimensions = "
                f"[{self.dim + 1}] : ({wide}, tensor<{element}>) -> {made}"], made
