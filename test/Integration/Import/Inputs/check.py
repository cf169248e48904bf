"""Runs an imported program on parameters and inputs made of its arguments' names, as
examples/models/weights.py does, and compares what it returns with the framework.

usage: check.py PROGRAM.mlir RECIPE FP8_RUN EXAMPLES OUT TOLERANCE
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from fp8 import tensors

program, recipe, fp8_run, examples, out, tolerance = sys.argv[1:]
sys.path.insert(0, str(Path(examples) / "models"))
from weights import make_input, make_tensor

# Arguments that a framework's function has, after the parameters.
INPUTS = {"tokens", "images", "x"}

arguments = {}
for shape, dtype, name in re.findall(
        r'%arg\d+: tensor<((?:\d+x)*)(\w+)> {fp8.name = "([^"]+)"', Path(program).read_text()):
    shape = tuple(int(extent) for extent in shape.split("x")[:-1])
    arguments[name] = (make_input(name, shape, dtype) if name in INPUTS
                       else make_tensor(name, shape))
tensors.save(f"{out}.inputs", arguments)
subprocess.run([fp8_run, program, f"--recipe={recipe}", f"--inputs={out}.inputs",
                f"--outputs={out}.outputs"], check=True)
result = tensors.load(f"{out}.outputs")["result0"].ravel().astype(np.float64)
# Some of the values that PyTorch 2.15 and JAX 0.10 compute.
expected = np.array(json.loads((Path(__file__).parent / "expected.json").read_text())[
    Path(program).stem])
error = result[:: result.size // 32][:32] - expected
relative = np.linalg.norm(error) / np.linalg.norm(expected)
if not relative <= float(tolerance):
    sys.exit(f"expected an error of at most {tolerance}, but got {relative:.2e}")
print(f"{Path(program).stem} {recipe}: near the framework")
