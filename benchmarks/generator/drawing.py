"""The arguments of random programs, drawn by their bits: the same on every machine, without
NumPy."""

import math
import random
import struct

from matmul.tables import TABLES

# Bytes and names of types, as programs and as .safetensors files have them.
WIDTHS = {"f32": 4, "bf16": 2, "f16": 2, "f8E4M3FN": 1, "f8E5M2": 1, "f8E8M0FNU": 1, "i32": 4, "index": 8,
          "f4E2M1FN": 1}
TABLE_ROWS = 9  # Rows of what is read by an index.


def encode(value, element):
    if element == "bf16":
        return struct.pack("<f", value)[2:]
    return struct.pack("<f" if element == "f32" else "<e", value)


SPECIAL = {
    "f32": [b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\x00\x00\x80\xff", b"\x00\x00\x00\x80",
            b"\xff\xff\x7f\x7f", b"\x01\x00\x00\x00"],
    "bf16": [b"\xc0\x7f", b"\x80\x7f", b"\x80\xff", b"\x00\x80", b"\x7f\x7f", b"\x01\x00"],
    "f16": [b"\x00\x7e", b"\x00\x7c", b"\x00\xfc", b"\x00\x80", b"\xff\x7b", b"\x01\x00"],
}
# The byte with the sign, where exponents are of many binades.
WIDE = {"f32": lambda b: b & 0x80 | 0x34 + b % 20, "bf16": lambda b: b & 0x80 | 0x34 + b % 20,
        "f16": lambda b: b & 0xFB}


def draw_numbers(rng, element, count, kind):
    width = WIDTHS[element]
    if kind == "grid":
        palette = [encode(i % 7 - 3, element) for i in range(256)]
        return b"".join(palette[byte] for byte in rng.randbytes(count))
    if kind == "zeros":
        return bytes(width * count)
    data = bytearray(rng.randbytes(width * count))
    top = slice(width - 1, None, width)
    data[top] = bytes(data[top]).translate(
        bytes(map(WIDE[element], range(256))) if kind == "wide" else TABLES[element])
    if kind == "special":
        for _ in range(min(count, 1 + rng.randrange(6))):
            at = rng.randrange(count) * width
            data[at:at + width] = rng.choice(SPECIAL[element])
    return bytes(data)


def draw_argument(rng, shape, element, kind):
    """The bytes of an argument; of two codes of 4 bits a byte, which `shape` counts."""
    count = math.prod(shape)
    if kind == "codes":
        data = rng.randbytes(count)
        if element == "f4E2M1FN":
            return data
        return data.translate(TABLES["e4m3" if element == "f8E4M3FN" else "e5m2"])
    if kind == "factors":
        if element == "f32":
            data = bytearray(rng.randbytes(4 * count))
            data[3::4] = bytes(data[3::4]).translate(TABLES["factor"])
            return bytes(data)
        low, high = (110, 140) if element == "f8E8M0FNU" else (0x20, 0x50)
        return bytes(low + byte % (high - low) for byte in rng.randbytes(count))
    if kind == "index":
        return b"".join(struct.pack("<i", byte % TABLE_ROWS) for byte in rng.randbytes(count))
    if kind.startswith("size"):
        return struct.pack("<q", int(kind.split()[1]))
    if kind == "words":
        return rng.randbytes(4 * count)
    if kind.startswith("offsets"):  # Up to what the kind says; some groups are empty.
        limit = int(kind.split()[1])
        inner = sorted(rng.choice([0, limit, rng.randrange(limit + 1), rng.randrange(limit + 1)])
                       for _ in range(count - 1))
        return struct.pack(f"<{count}i", 0, *inner)
    if kind.startswith("counts"):
        limit = int(kind.split()[1])
        return struct.pack(f"<{count}i", *(rng.choice([0, limit, rng.randrange(limit + 1)])
                                           for _ in range(count)))
    return draw_numbers(rng, element, count, kind)


def draw_arguments(seed, arguments):
    """`arguments` as (shape, element, kind)."""
    return [draw_argument(random.Random(f"{seed} {i}"), *argument)
            for i, argument in enumerate(arguments)]


def make_canonical(data, element):
    """The bytes of a result, of which NaNs are one: how they are encoded nobody promises, but of
    codes."""
    if element not in SPECIAL:
        return data
    code, infinity, magnitude = {"f32": ("I", 0x7F800000, 0x7FFFFFFF), "bf16": ("H", 0x7F80, 0x7FFF),
                                 "f16": ("H", 0x7C00, 0x7FFF)}[element]
    words = struct.unpack(f"<{len(data) // WIDTHS[element]}{code}", data)
    return struct.pack(f"<{len(words)}{code}",
                       *(infinity | 1 if word & magnitude > infinity else word for word in words))


def decode(data, element):
    """The numbers of a result that is one of floats."""
    if element == "bf16":
        data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
    code, width = ("e", 2) if element == "f16" else ("f", 4)
    return struct.unpack(f"<{len(data) // width}{code}", data)


def is_near(share, of_largest, expected, found):
    """Whether numbers differ by no more than a share of each and of the largest one."""
    largest = max((abs(x) for x in expected if math.isfinite(x)), default=0.0)
    return all(x == y or x != x and y != y
               or abs(x - y) <= share * abs(x) + of_largest * largest + 2.0**-20
               for x, y in zip(expected, found))
