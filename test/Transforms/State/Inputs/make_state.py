"""Writes a saved state as docs/Runtime.md describes it, without the library.

usage: make_state.py FILE NAME:FORMAT:SCALE[:RECORDED] ...
"""

import json
import sys

import numpy as np
from safetensors.numpy import save_file

LENGTH = 4


def main():
    path, *arguments = sys.argv[1:]
    slots, scales, recorded = [], [], []
    for argument in arguments:
        name, element, scale, *rest = argument.split(":")
        slots.append({"name": name, "format": element})
        scales.append(float(scale))
        recorded.append(int(rest[0]) if rest else 3)
    count = len(slots)
    tensors = {
        "scale": np.array(scales, np.float32),
        "amax": np.zeros(count, np.float32),
        "amax_history": np.zeros((count, LENGTH - 1), np.float32),
        "last_amax": np.zeros(count, np.float32),
        "recorded": np.array(recorded, np.int64),
        "non_finite": np.zeros(count, np.int64),
        "underflow": np.zeros(count, np.int64),
        "saturated": np.zeros(count, np.int64),
        "steps": np.array(3, np.int64),
    }
    manifest = {"version": 1, "slots": slots, "amax_history_len": LENGTH}
    metadata = {
        "fp8.scaling_state.version": "1",
        "fp8.scaling_state.manifest": json.dumps(manifest),
    }
    save_file(tensors, path, metadata)


if __name__ == "__main__":
    main()
