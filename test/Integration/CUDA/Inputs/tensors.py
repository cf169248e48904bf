"""Writes random tensors to a .safetensors file, with nothing but Python.

usage: tensors.py FILE NAME=TYPE:SIZExSIZE[/DIVISOR]...

TYPE is bf16 or f32; elements are normally distributed around 0, divided by
DIVISOR. The same command line writes the same bytes.
"""

import array
import json
import math
import random
import re
import struct
import sys

DTYPES = {"bf16": ("BF16", "H"), "f32": ("F32", "I")}
VALUES = 1 << 16  # As many different ones as a tensor has at most.


def bits(value, type_):
    """The bits of an f32, or of the nearest bf16."""
    word, = struct.unpack("<I", struct.pack("<f", value))
    if type_ == "f32":
        return word
    return (word + 0x7FFF + (word >> 16 & 1)) >> 16


def make(spec, rng):
    """Name, header entry and bytes of a tensor."""
    match = re.fullmatch(r"(\w+)=(bf16|f32):(\d+(?:x\d+)*)(?:/(\d+))?", spec)
    if not match:
        sys.exit(f"error: expected NAME=TYPE:SIZExSIZE[/DIVISOR], but got '{spec}'")
    name, type_, sizes, divisor = match.groups()
    dtype, code = DTYPES[type_]
    shape = [int(size) for size in sizes.split("x")]
    table = [bits(rng.gauss(0, 1) / int(divisor or 1), type_) for _ in range(VALUES)]
    data = array.array(code, rng.choices(table, k=math.prod(shape)))
    return name, {"dtype": dtype, "shape": shape}, data.tobytes()


def main(path, specs):
    rng = random.Random(0)
    header, blobs, offset = {}, [], 0
    for spec in specs:
        name, entry, blob = make(spec, rng)
        header[name] = {**entry, "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
