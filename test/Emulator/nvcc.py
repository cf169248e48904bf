# REQUIRES: nvcc
# RUN: %nvcc -ptx -arch=sm_90a %S/Inputs/kernels.cu -o %t.ptx
# RUN: %python %s %t.ptx

import sys

import numpy as np

from emulator import Buffer, Device

device = Device()
with open(sys.argv[1]) as file:
    text = file.read()
rng = np.random.default_rng(0)

values, total = rng.integers(-99, 99, 3001).astype(np.float32), Buffer(device, np.zeros(1, np.float32))
device.launch(device.load(text, "sum"), [total, Buffer(device, values), values.size], block=(128, 1, 1))
assert total.array[0] == values.sum(), total.array

matrix = rng.standard_normal((50, 70)).astype(np.float32)
out = Buffer(device, np.zeros((70, 50), np.float32))
device.launch(device.load(text, "transpose"), [out, Buffer(device, matrix), 50, 70], grid=(3, 2, 1), block=(32, 8, 1))
np.testing.assert_array_equal(out.array, matrix.T)
