"""Writes in.safetensors, inputs of linear.mlir, to the current directory."""

import ml_dtypes
import numpy as np
from fp8 import tensors

rng = np.random.default_rng(0)
x = rng.standard_normal((32, 256)).astype(ml_dtypes.bfloat16)
w = (rng.standard_normal((256, 64)) / 16).astype(ml_dtypes.bfloat16)
bias = np.zeros(64, ml_dtypes.bfloat16)
tensors.save("in.safetensors", {"x": x, "w": w, "bias": bias})
