"""A linear layer in FP8 from Python: PYTHONPATH=build/python .venv/bin/python examples/linear.py"""

from pathlib import Path

import ml_dtypes
import numpy as np

import fp8

rng = np.random.default_rng(0)
x = rng.standard_normal((32, 256)).astype(ml_dtypes.bfloat16)
w = (rng.standard_normal((256, 64)) / 16).astype(ml_dtypes.bfloat16)
bias = np.zeros(64, ml_dtypes.bfloat16)

program = fp8.compile(Path(__file__).parent / "linear.mlir", recipe=fp8.MXFP8BlockScaling(),
                      target="cpu")
y = program(x, w, bias)
print(y.dtype, y.shape, y[0, :4])
program.explain()
