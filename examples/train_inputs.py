import ml_dtypes
import numpy as np
from fp8 import tensors

rng = np.random.default_rng(0)
shapes = {"x": (64, 128), "w0": (128, 256), "w1": (256, 64), "dy": (64, 64)}
tensors.save("train.safetensors", {
    name: (rng.standard_normal((10, *shape)) / 8).astype(ml_dtypes.bfloat16)
    for name, shape in shapes.items()
})
