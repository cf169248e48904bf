"""Running sums, and gradients of pooling's maxima, of StableHLO as slices and pads.

A running sum of n is log2(n) sums of what there is and what is as far away. The gradient of a maximum finds which element of
its window each was, and adds up what each place of the windows was chosen for.
"""

import itertools
import math
import re

from fp8.jax import elementwise, scatters

# More places of a window than this would be as many operations.
_MOST_PLACES = 64


def write_scan(operation, name):
    """The function of a reduce_window that is a running sum, product, maximum or minimum of a dimension, or None."""
    if len(operation.operands) != 2:
        return None
    x, init = (value.type for value in operation.operands)
    shape, element = list(x.shape), str(x.element_type)
    sizes, padding = _read(operation, "window_dimensions"), _read(operation, "padding")
    ones = [_read(operation, key) for key in ("window_strides", "base_dilations", "window_dilations")]
    scanned = [each for each, size in enumerate(sizes) if size != 1]
    kind = elementwise.is_combination(operation, 0, scatters.COMBINES)
    is_number = re.fullmatch(r"b?f\d+|u?i\d+", element)
    if len(scanned) != 1 or kind is None or not is_number or any(set(each) - {1} for each in ones) or any(extent < 0 for extent in shape):
        return None
    dim = scanned[0]
    extent, pads = shape[dim], [padding[2 * each:2 * each + 2] or [0, 0] for each in range(len(shape))]
    is_reverse = pads[dim] == [0, extent - 1]
    if sizes[dim] != extent or not (is_reverse or pads[dim] == [extent - 1, 0]) or any(
            any(each) for place, each in enumerate(pads) if place != dim) or not _is_neutral(operation.operands[1], kind, element):
        return None
    lines, last = [f"func.func private @{name}(%x: {x}, %z: {init}) -> {x} {{"], "%x"
    for step in range(math.ceil(math.log2(extent))):
        distance = (-1 if is_reverse else 1) << step
        low = [distance if each == dim else 0 for each in range(len(shape))]
        lines += [f"  %p{step} = stablehlo.pad {last}, %z, low = {low}, high = {[-each for each in low]}, "
                  f"interior = {[0] * len(shape)} : ({x}, {init}) -> {x}",
                  f"  %y{step} = stablehlo.{kind} {last}, %p{step} : {x}"]
        last = f"%y{step}"
    return "\n".join([*lines, f"  return {last} : {x}", "}"])


def _read(operation, key):
    """Numbers of an attribute, or none; of tensors with equal ones, each."""
    if key not in operation.attributes:
        return []
    text = str(operation.attributes[key])
    count = math.prod(int(extent) for extent in re.findall(r"(\d+)x", text))
    numbers = [int(each) for each in re.findall(r"-?\d+", re.sub(r"^array<i64|:.*tensor.*|^dense", "", text))]
    return numbers * count if len(numbers) == 1 and "tensor<" in text else numbers


def _is_neutral(value, kind, element):
    """Whether a scalar is a constant that changes nothing it is combined with."""
    while hasattr(value, "owner") and hasattr(value.owner, "name") and value.owner.name == "stablehlo.broadcast_in_dim":
        value = value.owner.operands[0]
    owner = getattr(value, "owner", None)
    if getattr(owner, "name", None) != "stablehlo.constant":
        return False
    text = re.match(r"dense<(.*)> :", str(owner.attributes["value"]))[1]
    bits = scatters.BITS_OF_INFINITY.get(element, ())
    if text in bits:
        return bits.index(text) == {"minimum": 0, "maximum": 1}.get(kind)
    if text in ("true", "false"):
        return (text == "true") == (kind in ("and", "multiply", "minimum"))
    number = float(text) if not text.startswith("0x") else math.nan
    if kind in ("maximum", "minimum"):
        width = re.fullmatch(r"(u?)i(\d+)", element)
        if width is None:
            return False
        least = 0 if width[1] else -2 ** (int(width[2]) - 1)
        return int(text) == (least if kind == "maximum" else least + 2 ** int(width[2]) - 1)
    return number == {"add": 0, "or": 0, "multiply": 1, "and": -1}[kind]


def write_choice(operation, name):
    """The function of a select_and_scatter that adds up, as the gradient of a maximum is, or None."""
    x, source, init = (value.type for value in operation.operands)
    shape, small, element = list(x.shape), list(source.shape), str(x.element_type)
    sizes, rank = _read(operation, "window_dimensions"), len(shape)
    strides = _read(operation, "window_strides") or [1] * rank
    padding = _read(operation, "padding") or [0] * 2 * rank
    direction = re.search(r"stablehlo\.compare +(GE|GT|LE|LT),", str(operation))
    if element not in scatters.BITS_OF_INFINITY or direction is None or any(extent < 0 for extent in shape) or math.prod(sizes) > (
            _MOST_PLACES) or elementwise.is_combination(operation, 1, {"add"}) is None or not _is_neutral(operation.operands[2], "add", element):
        return None
    lows, highs = padding[::2], padding[1::2]
    padded = [extent + low + high for extent, low, high in zip(shape, lows, highs)]
    wide, narrow = elementwise.write_type(padded, element), elementwise.write_type(small, "i32")
    nowhere = scatters.BITS_OF_INFINITY[element][direction[1][0] == "G"]
    lines = [f"func.func private @{name}(%x: {x}, %s: {source}, %z: {init}) -> {x} {{",
             f"  %n = stablehlo.constant dense<{nowhere}> : {init}", f"  %zeros = stablehlo.constant dense<0.0> : {source}",
             f"  %p = stablehlo.pad %x, %n, low = {lows}, high = {highs}, interior = {[0] * rank} : ({x}, {init}) -> {wide}"]
    places = list(itertools.product(*map(range, sizes)))
    for number, place in enumerate(places):
        ranges = ", ".join(f"{first}:{first + (extent - 1) * stride + 1}:{stride}"
                           for first, extent, stride in zip(place, small, strides))
        lines += [f"  %c{number} = stablehlo.slice %p [{ranges}] : ({wide}) -> {source}",
                  f"  %o{number} = stablehlo.constant dense<{number}> : {narrow}"]
    best, chosen = "%c0", "%o0"
    for number in range(1, len(places)):
        region = elementwise.write_region(operation, 0, small, [best, f"%c{number}"])
        if region is None:
            return None
        lines += [*region[0],
                  f"  %m{number} = stablehlo.select {region[1]}, {best}, %c{number} : {elementwise.write_type(small, 'i1')}, {source}",
                  f"  %i{number} = stablehlo.select {region[1]}, {chosen}, %o{number} : {elementwise.write_type(small, 'i1')}, {narrow}"]
        best, chosen = f"%m{number}", f"%i{number}"
    return "\n".join([*lines, *_add_up(places, chosen, padded, small, strides, x, element, lows), "}"])


def _add_up(places, chosen, padded, small, strides, x, element, lows):
    """Lines that put what each place was chosen for there."""
    source, narrow, wide = (elementwise.write_type(*each) for each in ((small, element), (small, "i32"), (padded, element)))
    lines = []
    for number, place in enumerate(places):
        high = [extent - first - (count - 1) * stride - 1 for extent, first, count, stride in zip(padded, place, small, strides)]
        lines += [f"  %e{number} = stablehlo.compare EQ, {chosen}, %o{number}, SIGNED : ({narrow}, {narrow}) -> "
                  f"{elementwise.write_type(small, 'i1')}",
                  f"  %v{number} = stablehlo.select %e{number}, %s, %zeros : {elementwise.write_type(small, 'i1')}, {source}",
                  f"  %w{number} = stablehlo.pad %v{number}, %z, low = {list(place)}, high = {high}, "
                  f"interior = {[stride - 1 for stride in strides]} : ({source}, tensor<{element}>) -> {wide}"]
        if number:
            before = "%w0" if number == 1 else f"%t{number - 1}"
            lines.append(f"  %t{number} = stablehlo.add {before}, %w{number} : {wide}")
    last = f"%t{len(places) - 1}" if len(places) > 1 else "%w0"
    ranges = ", ".join(f"{low}:{low + extent}:1" for low, extent in zip(lows, x.shape))
    return [*lines, f"  %r = stablehlo.slice {last} [{ranges}] : ({wide}) -> {x}", f"  return %r : {x}"]
