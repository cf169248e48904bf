"""What the file of a machine says of matmuls (lib/Kernels/Machines), read and written."""

import pathlib
import re

KINDS = ("plain", "fast", "promote", "block", "both")
ROOT = pathlib.Path(__file__).resolve().parents[1]
MACHINE = ROOT / "lib/Kernels/Machines/h200.mlir"
BLOCK = re.compile(r"^#(\w+) = #fp8_machine\.wgmma_costs<\n(.*?)^>", re.M | re.S)
# Not in comments.
NUMBER = re.compile(r"(?<![\w/])(?P<key>[a-z_0-9]+) = (?P<number>-?\d[\d.e+-]*)")


def get_name(key):
    """What the model calls a number of the file."""
    return key.title().replace("_", "")


def read_constants(path=MACHINE):
    """A dictionary for each of KINDS."""
    blocks = dict(BLOCK.findall(path.read_text()))
    return {kind: {get_name(key): float(number) for key, number in NUMBER.findall(blocks[kind])}
            for kind in KINDS}


def write_constants(constants, path=MACHINE):
    """In place of those that the file has; all else stays."""
    def rewrite(block):
        values = constants[block[1]]
        return NUMBER.sub(lambda found: f"{found['key']} = {values[get_name(found['key'])]:.4g}",
                          block[0])
    path.write_text(BLOCK.sub(rewrite, path.read_text()))
