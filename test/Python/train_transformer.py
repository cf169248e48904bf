# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s %fp8_source
"""The tutorial's script: a short training by either way, beside bf16, and one that is resumed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch

SCRIPT = Path(sys.argv.pop(1)) / "examples" / "train_transformer.py"
SIZES = ["--steps", "24", "--width", "128", "--depth", "1", "--batch", "4", "--length", "128",
         "--device", "cpu"]


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def train(self, *options):
        """What the script prints, and its record."""
        out = self.folder / "out.json"
        # Threads of so small a model wait for each other.
        printed = subprocess.run([sys.executable, SCRIPT, *SIZES, *options, "--out", out],
                                 check=True, text=True, stdout=subprocess.PIPE,
                                 env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
        return printed, json.loads(out.read_text())

    def test_losses_beside_bf16(self):
        _, plain = self.train("--recipe", "bf16")
        self.assertEqual(len(plain["losses"]), 24)
        self.assertLess(plain["losses"][-1], 0.8 * plain["losses"][0])
        for way, line in (("layers", r"0\.mlp\.up: delayed\n  3 of 3 matrix products in FP8"),
                          ("backend", r"layers\.0\.mlp\.up\.dgrad +dgrad .* fp8 by delayed")):
            printed, record = self.train("--recipe", "delayed", "--way", way)
            self.assertRegex(printed, line)
            self.assertNotEqual(record["losses"], plain["losses"])
            for loss, expected in zip(record["losses"], plain["losses"]):
                self.assertLess(abs(loss / expected - 1), 0.01)
            self.assertLess(abs(record["validation"] / plain["validation"] - 1), 0.01)

    def test_resumed(self):
        """Bit by bit what a run without a stop is."""
        paths = [self.folder / f"{name}.pt" for name in ("whole", "half", "resumed")]
        for way in ("layers", "backend"):
            options = ["--way", way, "--quiet"]
            self.train(*options, "--save", paths[0])
            self.train(*options, "--stop", "10", "--save", paths[1])
            self.train(*options, "--resume", paths[1], "--save", paths[2])
            expected, _, got = (torch.load(path, weights_only=False) for path in paths)
            self.assertEqual(got["losses"], expected["losses"])
            for name, value in expected["model"].items():
                self.assertTrue(torch.equal(got["model"][name], value), name)


if __name__ == "__main__":
    unittest.main()
