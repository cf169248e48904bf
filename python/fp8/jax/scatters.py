"""Scatters of StableHLO, as the gradient of `table[ids]`, as reductions of linalg: IREE's conversion makes an operation of its own of them.

Each element of the result combines what it was with all updates whose indices are its place. That reads each update for each place
that it may have, and needs neither atomics nor an order.
"""

import re

from fp8.jax import elementwise

# What a scatter combines by: the operation for floats, for integers, and its neutral element.
COMBINES = {
    "add": ("arith.addf", "arith.addi", "-0.0", "0"), "multiply": ("arith.mulf", "arith.muli", "1.0", "1"),
    "maximum": ("arith.maximumf", "arith.maxsi", "-inf", "least"), "minimum": ("arith.minimumf", "arith.minsi", "inf", "most"),
    "and": (None, "arith.andi", None, "-1"), "or": (None, "arith.ori", None, "0"),
}
BITS_OF_INFINITY = {"f16": ("0x7C00", "0xFC00"), "bf16": ("0x7F80", "0xFF80"), "f32": ("0x7F800000", "0xFF800000"),
                     "f64": ("0x7FF0000000000000", "0xFFF0000000000000")}


def write(operation, name):
    """The text of a function that does what a scatter does, or None."""
    if len(operation.operands) != 3:
        return None
    types = [operand.type for operand in operation.operands]
    element, index = str(types[0].element_type), str(types[1].element_type)
    combine = _find_combination(operation, element)
    if combine is None or not re.fullmatch(r"u?i\d+", index) or any(extent < 0 for each in types for extent in each.shape):
        return None
    # Indices without a sign, as the gradient of a sort has, become ones with one, of which negative ones are no place either.
    given, index = str(types[1]), {"ui64": "i64"}.get(index, "i32" if index.startswith("u") else index)
    signed = elementwise.write_type(types[1].shape, index)
    argument, signs = ("%i", []) if given == signed else ("%given", [f"  %i = stablehlo.convert %given : ({given}) -> {signed}"])
    places = _Places(str(operation.attributes["scatter_dimension_numbers"]), types)
    loops, rank = places.loops, len(types[0].shape)
    all_loops = ", ".join(f"d{loop}" for loop in range(len(loops)))
    write_map = lambda results: f"affine_map<({all_loops}) -> ({', '.join(f'd{loop}' for loop in results)})>"  # noqa: E731
    indices = f"tensor<{''.join(f'{extent}x' for extent in places.index_shape)}{index}>"
    count = len(places.scattered)
    slices = [f"  %i{each} = tensor.extract_slice %i[{places.write_slice(each, 'offset')}] [{places.write_slice(each, 'size')}] "
              f"[{places.write_slice(each, 'stride')}] : {signed} to {indices}" for each in range(count)]
    maps = [write_map(places.updates), *[write_map(places.index_loops)] * count, write_map(range(rank))]
    kinds = ", ".join(f'"{"parallel" if loop < rank else "reduction"}"' for loop in range(len(loops)))
    return "\n".join([
        f"func.func private @{name}(%x: {types[0]}, {argument}: {given}, %u: {types[2]}) -> {types[0]} {{", *signs, *slices,
        f"  %r = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}",
        f"      ins({', '.join(['%u', *(f'%i{each}' for each in range(count))])} : {', '.join([str(types[2]), *[indices] * count])})"
        f" outs(%x : {types[0]}) {{",
        f"  ^bb0({''.join(f'%{each}: {kind}, ' for each, kind in [('v', element), *((f'k{j}', index) for j in range(count))])}"
        f"%a: {element}):",
        *places.write_condition(index), *combine, f"    linalg.yield %y : {element}", f"  }} -> {types[0]}", f"  return %r : {types[0]}", "}"])


def _find_combination(operation, element):
    """Lines that make %y of %a and, where %is, the update %v; or None."""
    block = operation.regions[0].blocks[0]
    body, arguments = list(block.operations), list(block.arguments)
    is_float = element in BITS_OF_INFINITY
    if element.startswith("ui"):
        return None
    if len(body) == 1 and body[0].operands[0] == arguments[1]:
        return [f"    %y = arith.select %is, %v, %a : {element}"]
    kind = body[0].operation.name.rpartition(".")[2]
    if len(body) != 2 or kind not in COMBINES or not (is_float or re.fullmatch(r"i\d+", element)):
        return None
    # x * x of `x.at[ids].apply` is a product, but none with the update.
    given = list(body[0].operands)
    if given not in (arguments, arguments[::-1]) or body[1].operands[0] != body[0].results[0]:
        return None
    if element == "i1":
        kind = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(kind, kind)
    neutral = COMBINES[kind][2 if is_float else 3]
    if neutral is None:
        return None
    if neutral.endswith("inf"):
        neutral = BITS_OF_INFINITY[element][neutral == "-inf"]
    elif neutral in ("least", "most"):
        most = 2 ** (int(element[1:]) - 1)
        neutral = str(-most if neutral == "least" else most - 1)
    elif element == "i1":
        neutral = "true" if neutral == "-1" else "false"
    return [f"    %n = arith.constant {neutral}{'' if element == 'i1' else f' : {element}'}",
            f"    %c = arith.select %is, %v, %n : {element}",
            f"    %y = {COMBINES[kind][0 if is_float else 1]} %a, %c : {element}"]


class _Places:
    """Loops of a scatter: the places of the result, then the indices, then those of windows that begin at an index."""

    def __init__(self, numbers, types):
        def read(key):
            found = re.search(rf"\b{key} = \[([\d, ]*)\]", numbers)
            return [int(each) for each in found[1].split(",")] if found and found[1] else []

        operand, indices, updates = (list(each.shape) for each in types)
        windows, inserted, batches = read("update_window_dims"), read("inserted_window_dims"), read("input_batching_dims")
        found = re.search(r"index_vector_dim = (\d+)", numbers)
        self.vector = int(found[1]) if found else 0
        self.scattered, self.operand, self.rank = read("scatter_dims_to_operand_dims"), operand, len(indices)
        self.loops, self.windows = list(operand), {}
        # Dimensions of the indices, by the loops that they have.
        batched = dict(zip(read("scatter_indices_batching_dims"), batches, strict=True))
        self.index_loops, self.index_shape = [], []
        for dimension, extent in enumerate(indices):
            if dimension != self.vector:
                self.index_loops.append(batched[dimension] if dimension in batched else self._add(extent))
                self.index_shape.append(extent)
        self.index_extents = indices
        rest = [dimension for dimension in range(len(operand)) if dimension not in inserted + batches]
        places = iter(self.index_loops)
        self.updates = []
        for dimension, extent in enumerate(updates):
            if dimension not in windows:
                self.updates.append(next(places))
                continue
            place = rest[windows.index(dimension)]
            if place not in self.scattered and extent == operand[place]:
                self.updates.append(place)
            else:
                self.windows[place] = self._add(extent)
                self.updates.append(self.windows[place])
        self.inserted = inserted

    def _add(self, extent):
        self.loops.append(extent)
        return len(self.loops) - 1

    def write_slice(self, component, what):
        """The numbers of the slice of the indices that has one component of all."""
        if self.vector == self.rank:
            return ", ".join({"offset": "0", "size": str(extent), "stride": "1"}[what] for extent in self.index_extents)
        one = {"offset": str(component), "size": "1", "stride": "1"}[what]
        return ", ".join(one if dimension == self.vector else {"offset": "0", "size": str(extent), "stride": "1"}[what]
                         for dimension, extent in enumerate(self.index_extents))

    def write_condition(self, index):
        """Lines that make %is: whether an update has this place, and all of its window is within the operand."""
        lines, conditions = ["    %t = arith.constant true", "    %zero = arith.constant 0 : index"], ["%t"]
        for place in sorted({*self.inserted, *self.windows}):
            start = "%zero"
            if place in self.scattered:
                start = f"%s{place}"
                lines.append(f"    {start} = arith.index_cast %k{self.scattered.index(place)} : {index} to index")
            end = start
            if place in self.windows:
                last = self.operand[place] - self.loops[self.windows[place]]
                end = f"%e{place}"
                lines += [f"    %w{place} = linalg.index {self.windows[place]} : index", f"    {end} = arith.addi {start}, %w{place} : index",
                          f"    %l{place} = arith.constant {last} : index",
                          f"    %b{place} = arith.cmpi ule, {start}, %l{place} : index"]
                conditions.append(f"%b{place}")
            lines += [f"    %o{place} = linalg.index {place} : index", f"    %q{place} = arith.cmpi eq, {end}, %o{place} : index"]
            conditions.append(f"%q{place}")
        for number, condition in enumerate(conditions[1:]):
            before = "%t" if number == 0 else f"%and{number - 1}"
            lines.append(f"    %and{number} = arith.andi {before}, {condition} : i1")
        last = f"%and{len(conditions) - 2}" if len(conditions) > 1 else "%t"
        return [*lines, f"    %is = arith.andi %t, {last} : i1"]
