# RUN: %python %s %fp8_tools %emulator_library
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""The first step of delayed scaling: what it computes is what `current` does, and a CPU that adds up as the tensor core does has
the bytes of sm_90a and of sm_100a, in that step, in the next ones, and in the states that are saved."""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

BF16 = ml_dtypes.bfloat16
RUNS, MICROBATCHES = 6, 2
SHAPES = {"x": (64, 128), "w0": (128, 256), "w1": (256, 64), "dy": (64, 64)}
RECIPE = "delayed,amax_history_len=4"
# Target, and what the CPU is told to add up as.
TARGETS = (("sm_90a", "90"), ("sm_100a", "100"))
# A program of one row for all sizes: rows are only known when it runs.
DYNAMIC = """
func.func @main(%x: tensor<?x128xbf16> {fp8.name = "x"}, %w: tensor<128x64xbf16> {fp8.name = "w", fp8.weight},
                %zero: tensor<?x64xf32> {fp8.name = "zero"}) -> (tensor<?x64xf32> {fp8.name = "y"}) {
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<?x128xbf16>, tensor<128x64xbf16>)
                     outs(%zero : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
"""


class Checker:
    def __init__(self, tools, emulator, folder):
        self.tools, self.emulator, self.folder = tools, emulator, folder

    def get_path(self, name):
        return os.path.join(self.folder, name)

    def make_inputs(self, name, calls):
        """Magnitudes differ from call to call, and gradients are far below what E5M2 has with a scale of 1."""
        random = np.random.default_rng(calls)
        sizes = 2.0 ** random.uniform(-3, 3, (calls, 1, 1))
        values = {key: (random.standard_normal((calls, *shape)) * (1e-6 if key == "dy" else 0.25) * sizes).astype(BF16)
                  for key, shape in SHAPES.items()}
        for key in ("w0", "w1"):
            values[key] = values[key][0]
        tensors.save(self.get_path(name), values if calls > 1 else
                     {key: value.reshape(SHAPES[key]) for key, value in values.items()})

    def run(self, inputs, recipe, target, *options, source, arch="90"):
        """The results' bytes, and those of the state, empty without one."""
        outputs, state = self.get_path("out"), self.get_path("state")
        arguments = [source, f"--recipe={recipe}", f"--target={target}", f"--inputs={self.get_path(inputs)}",
                     f"--outputs={outputs}", *options]
        if recipe.startswith("delayed"):
            arguments.append(f"--state-out={state}")
        done = subprocess.run(
            [os.path.join(self.tools, "fp8-run"), *arguments], capture_output=True, text=True,
            env={**os.environ, "FP8_CUDA_DRIVER": self.emulator, "FP8_EMULATOR_ARCH": arch,
                 "FP8_EMULATOR_CHECK": "all"})
        if done.returncode:
            raise SystemExit(f"fp8-run {' '.join(arguments)}: {done.stdout}{done.stderr[-3000:]}")
        saved = b""
        if recipe.startswith("delayed"):
            with open(state, "rb") as file:
                saved = file.read()
        return {key: value.tobytes() for key, value in tensors.load(outputs).items()}, saved

    def compare(self, source, first, steps, count):
        cpu = self.run(first, RECIPE, "cpu", source=source)
        expected, _ = self.run(first, "current", "cpu", source=source)
        if cpu[0] != expected:
            raise SystemExit(f"{source}: expected the results of current in the first step")
        one, _ = self.run(first, f"{RECIPE},initial=one", "cpu", source=source)
        if one == expected:
            raise SystemExit(f"{source}: expected other results with scales of 1")
        for target, arch in TARGETS:
            sums = ["--accumulate=tensor-core", f"--accumulation-of={target}"]
            for inputs, options, recipe in ((first, (), RECIPE), (first, ("--freeze",), RECIPE), (steps, count, RECIPE),
                                            (first, (), f"{RECIPE},initial=one")):
                cpu = self.run(inputs, recipe, "cpu", *sums, *options, source=source)
                gpu = self.run(inputs, recipe, target, *options, source=source, arch=arch)
                for what, ours, theirs in zip(("results", "state"), cpu, gpu):
                    if ours != theirs:
                        raise SystemExit(f"{source}, {target}, {recipe} {' '.join(options)}: expected the {what} to be "
                                         f"the CPU's")


def main():
    tools, emulator = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(tools, emulator, folder)
        checker.make_inputs("first", 1)
        checker.make_inputs("steps", RUNS)
        train = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "train.mlir")
        checker.compare(train, "first", "steps", (f"--steps={RUNS}", f"--microbatches={MICROBATCHES}"))

        source = checker.get_path("dynamic.mlir")
        with open(source, "w") as file:
            file.write(DYNAMIC)
        random = np.random.default_rng(2)
        tensors.save(checker.get_path("rows"), {
            "x": (random.standard_normal((48, 128)) * 1e-3).astype(BF16),
            "w": random.standard_normal((128, 64)).astype(BF16), "zero": np.zeros((48, 64), np.float32)})
        checker.compare(source, "rows", "rows", ())


if __name__ == "__main__":
    main()
