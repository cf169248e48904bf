# RUN: rm -rf %t && mkdir %t
# RUN: %python %s %fp8_build/bin %fp8_source/examples %t
"""Calls that cannot succeed: one clear error each, a status, and no file."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
from fp8 import tensors

bin_, examples, folder = map(Path, sys.argv[1:])
os.chdir(folder)
LINEAR = str(examples / "linear.mlir")
PIPELINE = "--fp8-pipeline=recipe=current to=recipe"
failures = 0


def run(command, **options):
    tool, *arguments = command
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([bin_ / tool, *arguments], text=True, timeout=120, **options)


def refuse(command, message, outputs=(), status=1, **options):
    """`command` ends with `status` and the one line `message`, and writes none of `outputs`."""
    global failures
    done = run(command, **options)
    lines = done.stderr.strip().splitlines()
    errors = [line for line in lines if "error" in line or "cannot" in line]
    problem = None
    if done.returncode != status:
        problem = f"expected status {status}, but got {done.returncode}"
    elif len(errors) != 1 or message not in errors[0] or "Stack dump" in done.stderr:
        problem = f"expected one error with '{message}'"
    elif left := [path for path in outputs if Path(path).exists()]:
        problem = f"expected no file, but got {left}"
    if problem:
        failures += 1
        print(f"{' '.join(command)}: {problem}:\n{done.stderr[:2000]}")


# JSON that is nested deeper than a stack is.
for depth in (65, 50_000, 300_000):
    Path("deep.json").write_text("[" * depth)
    refuse(["fp8-compile", LINEAR, "--recipe-file=deep.json", "-o", "x.so"],
           "recipe file 'deep.json': expected JSON that nests at most 64 levels deep", ["x.so"])
    Path("deep.json").write_text('{"version":' * depth)
    refuse(["fp8-compile", LINEAR, "--recipe=current", "--target=sm_90a", "-o", "x.so",
            "--kernel-table=deep.json"],
           "tuning table 'deep.json': expected JSON that nests at most 64 levels deep", ["x.so"])
# Brackets in strings do not nest.
Path("flat.json").write_text(json.dumps({"version": 1, "rules": [{"match": "\\[" * 100 + '"', "recipe": "none"}]}))
if run(["fp8-opt", LINEAR, "--fp8-pipeline=recipe-file=flat.json to=recipe", "-o", os.devnull]).returncode:
    sys.exit("expected brackets in a string to be text")

# Remarks that cannot be written.
Path("directory").mkdir(exist_ok=True)
for tool, *arguments in (["fp8-opt", PIPELINE, "-o", "x.out"],
                         ["fp8-compile", "--recipe=current", "-o", "x.out"]):
    refuse([tool, LINEAR, *arguments, "--fp8-remarks=json:directory"],
           "remarks file 'directory': expected a file, but got a directory", ["x.out"])
refuse(["fp8-opt", LINEAR, PIPELINE, "-o", "x.out", "--fp8-remarks=json:/dev/full"],
       "remarks file '/dev/full': No space left on device", ["x.out"])
refuse(["fp8-compile", LINEAR, "--recipe=current", "-o", "x.so", "--fp8-remarks=text:/dev/full"],
       "remarks file '/dev/full': No space left on device")
Path("x.so").unlink()

# A linker that links nothing.
refuse(["fp8-compile", LINEAR, "--recipe=current", "--linker=/bin/true", "-o", "x.so"],
       "expected the linker /bin/true to write a shared object, but got an empty file", ["x.so"])

# Recipes that end too early.
for recipe in ("current,", ",", "current,,format=e4m3", "current, "):
    refuse(["fp8-compile", LINEAR, f"--recipe={recipe}", "-o", "x.so"],
           "expected", ["x.so"])
refuse(["fp8-compile", LINEAR, "--recipe=current,", "-o", "x.so"],
       "expected key=value after a comma in recipe 'current,', but got nothing", ["x.so"])

# A pipeline of modules on functions.
refuse(["fp8-opt", LINEAR, "--pass-pipeline=builtin.module(func.func(fp8-pipeline{recipe=current}))"],
       "expected fp8-pipeline to run on builtin.module, but got func.func")

# A standard output that takes nothing.
CALLS = [["fp8-opt", LINEAR], ["fp8-opt", "--help"], ["fp8-compile", "--help"], ["fp8-run", "--help"],
         ["fp8-tune", "--help"], ["fp8-state", "--help"],
         ["fp8-compile", LINEAR, "--recipe=current", "--emit=llvm", "-o", "-"],
         ["fp8-run", LINEAR, "--recipe=current", "--compile-to=recipe"]]
for call in CALLS:
    with open("/dev/full", "w") as full:
        refuse(call, "No space left on device", stdout=full)
    refuse(call, "Bad file descriptor", stdout=None, preexec_fn=lambda: os.close(1))

# Nothing to read.
refuse(["fp8-translate"], "expected a translation, e.g. --mlir-to-llvmir, but got none; see --help")
refuse(["fp8-translate", "missing.mlir"], "expected a translation")
refuse(["fp8-translate", "--mlir-to-llvmir", "missing.mlir"],
       "cannot open input file 'missing.mlir': No such file or directory")
refuse(["fp8-reduce"], "expected one input file, but got 0; see --help")
refuse(["fp8-reduce", "missing.mlir"], "cannot open input file 'missing.mlir': No such file")

# Tensors that no argument asks for, unless told so.
program = ("func.func @f(%x: tensor<2xf32> {fp8.name = \"x\"}) -> (tensor<2xf32> {fp8.name = \"y\"}) {\n"
           "  return %x : tensor<2xf32>\n}")
Path("identity.mlir").write_text(program)
tensors.save("more", {"x": np.float32([1, 2]), "z": np.float32([3])})
refuse(["fp8-run", "identity.mlir", "--inputs=more", "--outputs=y"], "found no argument for 'z'", ["y"])
if run(["fp8-run", "identity.mlir", "--inputs=more", "--outputs=y", "--ignore-extra-inputs"]).returncode:
    sys.exit("expected an extra tensor to be ignored")
assert list(tensors.load("y")["y"]) == [1, 2]
tensors.save("less", {"z": np.float32([3])})
refuse(["fp8-run", "identity.mlir", "--inputs=less", "--ignore-extra-inputs"], "got none for 'x'")

# Every bit of a state file counts, but for those of names that nobody looks for.
step = {"x": np.ones((32, 256)), "w": np.ones((256, 64)), "bias": np.zeros(64)}
import ml_dtypes  # noqa: E402

tensors.save("in", {name: value.astype(ml_dtypes.bfloat16) for name, value in step.items()})
made = run(["fp8-run", LINEAR, "--recipe=delayed,amax_history_len=4", "--inputs=in", "--state-out=state",
            "--outputs=out"])
if made.returncode:
    sys.exit(made.stderr)
whole = Path("state").read_bytes()
size = 8 + struct.unpack("<Q", whole[:8])[0]
random = np.random.default_rng(0)
for place in [*range(size, len(whole)), *random.integers(8, size, 40)]:
    damaged = bytearray(whole)
    damaged[place] ^= 1 << int(random.integers(8))
    Path("damaged").write_bytes(damaged)
    done = run(["fp8-state", "print", "damaged"])
    same = done.returncode == 0 and done.stdout.replace("damaged", "state") == run(
        ["fp8-state", "print", "state"]).stdout
    if done.returncode == 0 and (place >= size or not same):
        failures += 1
        print(f"byte {place} of {size}: expected an error:\n{done.stdout}")

sys.exit(1 if failures else 0)
