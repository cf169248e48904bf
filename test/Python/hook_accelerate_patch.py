# REQUIRES: pytorch, python-pytorch, python-accelerate
# RUN: %import_python %s %fp8_source/examples/patches/accelerate.patch
"""The patch that adds a backend to accelerate: it applies to the one that is installed, and what comes of it
trains in FP8 by mixed_precision="fp8"."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PATCH = Path(sys.argv.pop(1)).resolve()

SCRIPT = """
import accelerate
import torch
from accelerate.utils import MLIRRecipeKwargs
from torch import nn

import fp8.accelerate
import fp8.torch


def train(precision, handlers, prepare):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
    accelerate.state.AcceleratorState._reset_state(True)
    accelerator = accelerate.Accelerator(mixed_precision=precision, cpu=True, kwargs_handlers=handlers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model, optimizer = prepare(accelerator, model, optimizer)
    losses = []
    for _ in range(3):
        loss = (model(torch.randn(16, 32)) ** 2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    layers = fp8.torch.modules.get_layers(accelerator.unwrap_model(model))
    return losses, {name: unit.state.steps for name, layer in layers.items() for unit in layer.units.values()}


options = {"first_last_bf16": 0}
expected = train("bf16", [], lambda accelerator, *objects: fp8.accelerate.prepare(
    accelerator, *objects, recipe="delayed", **options))
assert list(expected[1].values()) == [3, 3], expected
got = train("fp8", [MLIRRecipeKwargs(options=options)], accelerate.Accelerator.prepare)
assert got == expected, (got, expected)
chosen = accelerate.Accelerator(mixed_precision="fp8", cpu=True).fp8_backend
assert chosen == "MLIR", chosen
print("as fp8.accelerate.prepare")
"""


class Patch(unittest.TestCase):
    def test_patch(self):
        source = Path(importlib.util.find_spec("accelerate").origin).parent
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(source, Path(folder) / "accelerate", ignore=shutil.ignore_patterns("__pycache__"))
            done = subprocess.run(["patch", "-p1", "--fuzz=0", "-i", PATCH], cwd=folder, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env={
                **os.environ, "PYTHONPATH": path, "ACCELERATE_FP8_BACKEND": "MLIR"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("as fp8.accelerate.prepare", done.stdout)


if __name__ == "__main__":
    unittest.main()
