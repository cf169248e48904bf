# RUN: rm -rf %t && %python %s %t 2>&1 | FileCheck %s
"""What importers tell of a wrong command line, and that they write nothing then."""

import sys
from pathlib import Path

import numpy as np
from fp8 import imports

directory = Path(sys.argv[1])
directory.mkdir(exist_ok=True)
model = directory / "model.py"
model.write_text("def model():\n    return (1,)\n")


def convert(number, name, gradients):
    if gradients:
        raise imports.UnsupportedProgram("expected no gradient")
    return f"func.func private @{name}()", {"w": np.full(2, number, np.float32)}


def run(*arguments):
    sys.argv = ["from_test.py", *map(str, arguments)]
    try:
        imports.run_importer(convert, "Test")
    except SystemExit as error:
        print(f"exit {error.code}", file=sys.stderr)


out = directory / "out.mlir"
# CHECK: error: argument MODEL.py:NAME: expected FILE.py:NAME, but got 'model.py'
run("model.py", "-o", out)
# CHECK: error: argument MODEL.py:NAME: 'missing.py': no such file
run("missing.py:model", "-o", out)
# CHECK: error: argument MODEL.py:NAME: '{{.*}}model.py' has no 'other'
run(f"{model}:other", "-o", out)
# CHECK: from_test.py: error: expected no gradient
# CHECK-NEXT: exit 1
run(f"{model}:model", "-o", out, "--gradient=x")
assert not out.exists() and not list(directory.glob(".out*"))

# CHECK-NOT: error
run(f"{model}:model", "-o", out, "--name=f")
assert out.read_text() == "func.func private @f()"
assert (imports.tensors.load(directory / "out.safetensors")["w"] == 1).all()

# CHECK: expected one argument or parameter 'w', but got 2
try:
    imports.make_arguments([imports.ValueInfo("w"), imports.ValueInfo("w")], [])
except imports.UnsupportedProgram as error:
    print(error, file=sys.stderr)
