"""Regions of StableHLO that work on scalars, as text that works on tensors."""

import re

_KNOWN = {"compare", "select", "constant", "and", "or", "not", "xor", "convert", "bitcast_convert", "negate", "abs", "return",
          "add", "subtract", "multiply", "maximum", "minimum"}


def write_type(shape, element):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def write_region(operation, number, shape, names):
    """Lines of a region with `names` for its arguments and tensors of `shape` for its scalars, and the name of its one result,
    or None for a region of other operations. Names of values begin with those of the first argument."""
    block = operation.regions[number].blocks[0]
    if any(op.operation.name.rpartition(".")[2] not in _KNOWN or len(op.operation.regions) for op in block.operations):
        return None
    # Printed as a whole, values have the same names in all lines.
    found = re.findall(r"\^bb0\((.*?)\):\n(.*?)stablehlo\.return (%[\w#]+)", str(operation), re.DOTALL)
    if len(found) != len(operation.regions):
        return None
    arguments, body, result = found[number]
    known = dict(zip(re.findall(r"%\w+", arguments), names, strict=True))
    rename = lambda text: re.sub(  # noqa: E731
        r"%[\w#]+", lambda name: known.get(name[0], f"{names[0]}_{name[0][1:]}"), text)
    body = re.sub(r"tensor<(\w+)>", lambda kind: write_type(shape, kind[1]), body)
    return [f"  {rename(line.strip())}" for line in body.splitlines() if line.strip()], rename(result)


def is_combination(operation, number, kinds):
    """Which of operations of two scalars, such as "add", a region is, or None."""
    block = operation.regions[number].blocks[0]
    body, arguments = list(block.operations), list(block.arguments)
    kind = body[0].operation.name.rpartition(".")[2]
    is_one = len(body) == 2 and list(body[0].operands) in (arguments, arguments[::-1]) and body[1].operands[0] == body[0].results[0]
    return kind if is_one and kind in kinds else None
