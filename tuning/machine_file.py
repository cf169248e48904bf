"""What the file of a machine says of matmuls and of linear layers (lib/Kernels/Machines), read
and written."""

import pathlib
import re

KINDS = ("plain", "fast", "promote", "block", "both")
ROOT = pathlib.Path(__file__).resolve().parents[1]
MACHINE = ROOT / "lib/Kernels/Machines/h200.mlir"
BLOCK = re.compile(r"^#(\w+) = #fp8_machine\.wgmma_costs<\n(.*?)^>", re.M | re.S)
LAYER = re.compile(r"\b(\w+) = #fp8_machine\.layer<(.*?)>", re.S)
# What a layer's model multiplies with its terms, in their order (fp8.torch.speed).
LAYER_KEYS = ("launch", "product", "x", "weight", "y")
# Not in comments.
NUMBER = re.compile(r"(?<![\w/])(?P<key>[a-z_0-9]+) = (?P<number>-?\d[\d.e+-]*)")


def get_name(key):
    """What the model calls a number of the file."""
    return key.title().replace("_", "")


def format_number(value, digits=4):
    """As MLIR reads it: with a point where there is an exponent."""
    text = f"{value:.{digits}g}"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def read_constants(path=MACHINE):
    """A dictionary for each of KINDS."""
    blocks = dict(BLOCK.findall(path.read_text()))
    return {kind: {get_name(key): float(number) for key, number in NUMBER.findall(blocks[kind])}
            for kind in KINDS}


def with_numbers(text, values, digits):
    """With those of `values` in place of the text's own; what is the same keeps its spelling."""
    def rewrite(found):
        number = format_number(values[found["key"]], digits)
        same = float(number) == float(found["number"])
        return found[0] if same else f"{found['key']} = {number}"
    return NUMBER.sub(rewrite, text)


def with_constants(text, constants, digits=4):
    """The text of a file with those of some kinds in place of its own; all else stays."""
    def rewrite(block):
        kind, body = block.groups()
        if kind not in constants:
            return block[0]
        values = {key: constants[kind][get_name(key)] for key, _ in NUMBER.findall(body)}
        return block[0].replace(body, with_numbers(body, values, digits))
    return BLOCK.sub(rewrite, text)


def write_constants(constants, path=MACHINE):
    """In place of those that the file has."""
    path.write_text(with_constants(path.read_text(), constants))


def read_layers(path=MACHINE):
    """By recipe, and of bf16, the numbers of LAYER_KEYS."""
    layers = {}
    for name, body in LAYER.findall(path.read_text()):
        numbers = {key: float(number) for key, number in NUMBER.findall(body)}
        layers["bf16" if name == "none" else name] = tuple(map(numbers.get, LAYER_KEYS))
    return layers


def write_layers(layers, path=MACHINE):
    """In place of those of recipes that the file has."""
    def rewrite(layer):
        name, body = layer.groups()
        values = layers.get("bf16" if name == "none" else name)
        return layer[0] if values is None else layer[0].replace(
            body, with_numbers(body, dict(zip(LAYER_KEYS, values)), digits=4))
    path.write_text(LAYER.sub(rewrite, path.read_text()))
