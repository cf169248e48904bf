"""Makes and shows .safetensors files, through the reference implementation.

make FILE NAME=DTYPE:SHAPE:VALUES ...   SHAPE as 2x3, empty for a scalar; VALUES
                                        separated by commas, repeated to fill
show FILE                               one line for each tensor, by name
raw FILE HEADER [BYTES [LENGTH]]        HEADER and as many bytes of data, with a
                                        header length that may be a lie
"""

import sys

import ml_dtypes
import numpy as np
import safetensors
from fp8.tensors import DTYPES, load, save

DTYPES = {**DTYPES, "F4": ml_dtypes.float4_e2m1fn}


def make(path, *specs):
    tensors = {}
    for spec in specs:
        name, rest = spec.split("=")
        dtype, shape, values = rest.split(":")
        shape = [int(dim) for dim in shape.split("x")] if shape else []
        values = [float(value) for value in values.split(",")]
        tensors[name] = np.resize(values, shape).astype(DTYPES[dtype])
    save(path, tensors)


def show(path):
    with open(path, "rb") as file:
        entries = safetensors.deserialize(file.read())
    for name, entry in sorted(entries):
        dtype = entry["dtype"]
        array = load(path)[name].ravel()
        values = " ".join(str(value) for value in array.tolist())
        print(f"{name}: {dtype} {entry['shape']}: {values}")


def raw(path, header, size="0", length=None):
    length = len(header) if length is None else int(length)
    with open(path, "wb") as file:
        file.write(length.to_bytes(8, "little") + header.encode() + bytes(int(size)))


{"make": make, "show": show, "raw": raw}[sys.argv[1]](*sys.argv[2:])
