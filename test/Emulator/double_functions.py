# RUN: env FP8_CUDA_DRIVER=%emulator_library %python %s %fp8_tools
# UNSUPPORTED: sanitizers
"""Functions of f64 in kernels, which have no device library, are 2 ulp off at most."""

import os
import subprocess
import sys
import tempfile

import numpy as np

from fp8 import tensors

COUNT = 4096
RNG = np.random.default_rng(0)
SPECIALS = [np.nan, np.inf, -np.inf, 0, -0.0, 1e-310, 5e-324, 1, -1, 709.79, 710, -745.1, -746, -720, 2, 0.5]
NEAR_ONE = 1 + RNG.uniform(-0.01, 0.01, 1000)
LARGE = 10.0 ** RNG.uniform(-323, 308, COUNT - 1000 - len(SPECIALS))
FUNCTIONS = {
    "exp": (np.exp, np.concatenate([RNG.uniform(-750, 712, COUNT - len(SPECIALS)), SPECIALS])),
    **{name: (function, np.concatenate([NEAR_ONE, LARGE, SPECIALS]))
       for name, function in (("log", np.log), ("log2", np.log2), ("log10", np.log10))},
}


def main():
    tools, = sys.argv[1:]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, inputs, outputs = (os.path.join(folder, name) for name in ("program.mlir", "inputs", "outputs"))
        for name, (function, values) in FUNCTIONS.items():
            with open(source, "w") as file:
                file.write(f"""func.func @main(%x: tensor<{COUNT}xf64>) -> tensor<{COUNT}xf64> {{
  %0 = math.{name} %x : tensor<{COUNT}xf64>
  return %0 : tensor<{COUNT}xf64>
}}""")
            tensors.save(inputs, {"arg0": values})
            subprocess.run([os.path.join(tools, "fp8-run"), source, f"--inputs={inputs}", f"--outputs={outputs}",
                            "--target=sm_90a"], check=True)
            actual = tensors.load(outputs)["result0"]
            with np.errstate(all="ignore"):
                exact, rounded = function(values.astype(np.longdouble)), function(values)
            finite = np.isfinite(rounded)
            off = np.abs(actual[finite] - exact[finite]) / np.spacing(np.abs(rounded[finite]))
            if off.max() > 2 or not np.array_equal(actual[~finite], rounded[~finite], equal_nan=True):
                print(f"{name}: {off.max()} ulp at {values[finite][off.argmax()]}, {actual[~finite]}")
                failures += 1
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
