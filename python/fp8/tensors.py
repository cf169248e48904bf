"""Reads and writes .safetensors with the small floats of ml_dtypes.

safetensors.numpy alone cannot read BF16 and the 8-bit floats.
"""

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

# NumPy type of every dtype that fp8-run reads and writes.
DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


def load(path):
    """The tensors of a file by name, each with its own dtype."""
    with open(path, "rb") as file:
        entries = safetensors.deserialize(file.read())
    return {
        name: np.frombuffer(entry["data"], DTYPES[entry["dtype"]]).reshape(
            entry["shape"]
        )
        for name, entry in entries
    }


def save(path, tensors):
    """Writes tensors by name; arrays of any layout."""
    contiguous = {name: np.ascontiguousarray(t).reshape(t.shape) for name, t in tensors.items()}
    safetensors.numpy.save_file(contiguous, path)
