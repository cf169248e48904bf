"""Reads and writes .safetensors with the small floats of ml_dtypes.

safetensors.numpy alone cannot read BF16 and floats of 8 and 4 bits.
"""

import json

import ml_dtypes
import numpy as np
import safetensors

from fp8 import files, formats

# NumPy type of every dtype that programs take and give. Elements of several codes are bytes.
DTYPES = {name: np.dtype(dtype.numpy if dtype.lanes == 1 else np.uint8).type
          for name, dtype in formats.DTYPES.items()}
# By dtypes here their names in files; codes that share bytes there have one each here.
_NAMES = {np.dtype(dtype.numpy): dtype.file for dtype in formats.DTYPES.values()}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_PACKED = {dtype.file: dtype for dtype in formats.DTYPES.values() if dtype.lanes > 1}


def _join(codes, dtype):
    """Bytes of codes, uint8 with one in each, of which rows are whole elements of `dtype`: the first
    code of an element in its lowest bits (fp8rt::CodePacking)."""
    size = dtype.bits * dtype.lanes // 8
    number = np.dtype("u1" if size == 1 else "<u4")
    groups = sum(codes[..., lane::dtype.lanes].astype(number) << lane * dtype.bits
                 for lane in range(dtype.lanes))
    data = np.ascontiguousarray(groups, number)[..., None].view(np.uint8)[..., :size]
    return data.reshape(*groups.shape[:-1], groups.shape[-1] * size)


def _split(data, dtype):
    """The converse."""
    size = dtype.bits * dtype.lanes // 8
    number = np.dtype("u1" if size == 1 else "<u4")
    groups = sum(data[..., byte::size].astype(number) << byte * 8 for byte in range(size))
    codes = [groups >> lane * dtype.bits & 2 ** dtype.bits - 1 for lane in range(dtype.lanes)]
    codes = np.stack(codes, -1).astype(np.uint8)
    return codes.reshape(*groups.shape[:-1], groups.shape[-1] * dtype.lanes)


def pack(codes):
    """Codes of E2M1 as programs take them, two in each byte of a row.

    - codes: an array of ml_dtypes.float4_e2m1fn, or of uint8 with a code below 16 in each, of at
      least one dimension, whose last size K is even.

    Returns uint8 with a last size of K / 2: element 2i is the lower half of byte i, element
    2i + 1 the upper one. Raises ValueError.
    """
    codes = np.asarray(codes)
    if codes.dtype not in (ml_dtypes.float4_e2m1fn, np.uint8):
        raise ValueError(f"expected codes of float4_e2m1fn or uint8, but got {codes.dtype}")
    if codes.ndim == 0 or codes.shape[-1] % 2:
        raise ValueError(f"expected a last dimension of an even size, of which two codes of E2M1 "
                         f"share a byte, but got {codes.shape}")
    codes = codes.view(np.uint8)
    if (codes > 15).any():
        raise ValueError(f"expected codes below 16, but got {codes.max()}")
    return _join(codes, formats.DTYPES["F4x2"])


def unpack(packed):
    """The inverse of `pack`: ml_dtypes.float4_e2m1fn, with a last size twice as large."""
    return _split(packed, formats.DTYPES["F4x2"]).view(ml_dtypes.float4_e2m1fn)


def _read(entry):
    if entry["dtype"] not in _PACKED:
        return np.frombuffer(entry["data"], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return unpack(np.frombuffer(entry["data"], np.uint8)).reshape(entry["shape"])


def load(path):
    """The tensors of a file by name, each with its own dtype; F4 as ml_dtypes.float4_e2m1fn,
    which has an element in each byte. Raises OSError, and ValueError for what is no such file or
    has a dtype that programs have not."""
    try:
        entries = safetensors.deserialize(files.read(path))
    except safetensors.SafetensorError as error:
        raise ValueError(f"expected a .safetensors file, but got: {error}") from error
    for name, entry in entries:
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"expected '{name}' of a dtype that programs have, but got "
                             f"{entry['dtype']}")
    return {name: _read(entry) for name, entry in entries}


# What a header says besides its tensors.
_METADATA = "__metadata__"


def _is_name(name):
    """Whether a file may have a tensor of that name: text that is UTF-8."""
    try:
        name.encode()
    except (AttributeError, UnicodeEncodeError):
        return False
    return isinstance(name, str) and name != _METADATA


def save(path, tensors):
    """Writes tensors by name; arrays of any layout. Elements of ml_dtypes.float4_e2m1fn become
    F4, two in each byte of a row, whose size has to be even. The file is replaced whole or not
    at all. Raises ValueError, OSError."""
    for name, tensor in getattr(tensors, "items", lambda: [("the tensors", tensors)])():
        if not _is_name(name):
            raise ValueError(f"expected the name of a tensor to be text other than "
                             f"{_METADATA}, but got {name!r:.100}")
        if not isinstance(tensor, (np.ndarray, np.generic)):
            raise ValueError(f"expected {name!r:.100} to name an array of NumPy, but got "
                             f"{type(tensor).__name__}")
    header, blobs, end = {}, [], 0
    # Each one aligned, as the largest elements come first.
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        if tensor.dtype not in _NAMES:
            raise ValueError(f"expected '{name}' of a dtype that programs have, but got "
                             f"{tensor.dtype}")
        dtype = _NAMES[tensor.dtype]
        blobs.append((pack(tensor) if dtype in _PACKED else tensor).tobytes())
        begin, end = end, end + len(blobs[-1])
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    files.write_bytes(path, len(text).to_bytes(8, "little") + text + b"".join(blobs))
