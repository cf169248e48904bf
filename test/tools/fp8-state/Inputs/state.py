"""Writes a saved state, independently of the runtime.

state.py FILE [KEY=VALUE ...] [TENSOR.INDEX=VALUE ...] [slots=NAME,...]

The state has up to three slots after 4 steps; KEY is one of the recipe, or `version`
of the file, and TENSOR.INDEX names one of its values, e.g. scale.1=nan.
"""

import json
import sys

import numpy as np
from safetensors.numpy import save_file

path, *changes = sys.argv[1:]
recipe = {"amax_history_len": 4, "compat": "te_fused"}
names, version, values = ["l0.x", "l0.w", "l0.dy"], "1", []
for change in changes:
    key, value = change.split("=", 1)
    if key == "slots":
        names = value.split(",")
    elif key == "version":
        version = value
    elif "." in key:
        tensor, index = key.split(".")
        values.append((tensor, int(index), float(value)))
    else:
        recipe[key] = int(value) if value.lstrip("-").isdigit() else value

past = recipe["amax_history_len"] - (recipe["compat"] != "flax")
slots = [
    {
        "name": name,
        "format": "e5m2" if name.endswith("dy") else "e4m3",
        "role": "dgrad" if name.endswith("dy") else "fprop",
        "operand": {"x": "activation", "w": "weight", "dy": "gradient"}.get(name.split(".")[-1], ""),
    }
    for name in names
]
count = len(names)
history = np.float32([[0, 1, 3, 4], [0, 2, 2, 2], [0, 8, np.inf, 16]])[:count]
f32 = lambda *v: np.resize(np.float32(v), count)
i64 = lambda *v: np.resize(np.int64(v), count)
tensors = {
    "amax": f32(5, 0, 0),
    "amax_history": np.ascontiguousarray(history[:, 4 - past :]),
    "last_amax": f32(4, 2, 16),
    "non_finite": i64(0, 0, 1),
    "recorded": i64(3, 4, 4),
    "saturated": i64(0, 12, 1),
    "scale": f32(112, 224, 57344),
    "steps": np.array(4),
    "underflow": i64(7, 0, 0),
}
for tensor, index, value in values:
    tensors[tensor].flat[index] = value
manifest = {"version": 1, "slots": slots, **recipe}
metadata = {
    "fp8.scaling_state.version": version,
    "fp8.scaling_state.manifest": json.dumps(manifest),
}
save_file(tensors, path, metadata)
