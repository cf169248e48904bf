# RUN: %import_python %s
# REQUIRES: jax, python-jax
"""The page of a function of JAX, and its recipe file, which fp8.jax.compile takes."""

import tempfile
import unittest
from pathlib import Path

import jax
import numpy as np

import fp8
import fp8.jax


def find_loss(weights, x):
    with jax.named_scope("up"):
        hidden = jax.nn.relu(x @ weights["up"])
    with jax.named_scope("down"):
        return (hidden @ weights["down"]).var()


class Report(unittest.TestCase):
    def test_gradient(self):
        random = np.random.default_rng(0)
        weights = {name: random.standard_normal(sizes, np.float32)
                   for name, sizes in (("up", (64, 128)), ("down", (128, 32)))}
        x = random.standard_normal((32, 64), np.float32)
        x[3] *= 1e5
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "step.html"
            measured = fp8.jax.report(jax.grad(find_loss), weights, x, path=path,
                                      recipes=("current", "rowwise"))
            self.assertIn("find_loss", path.read_text())
            step = fp8.jax.compile(jax.grad(find_loss), recipe_file=str(path.with_suffix(".json")))
            step(weights, x)
        self.assertEqual(measured.tensors["up.x"]["rowwise"].amax, np.abs(x).max())
        self.assertEqual(set(measured.products), {"up", "down", "up.wgrad", "down.wgrad", "down.dgrad"})
        self.assertTrue(measured.products["up"].decibels)
        layers = measured.choose_layers()
        for remark in step.remarks:
            self.assertEqual(remark.recipe, layers[remark.name.partition(".")[0]])

    def test_refused(self):
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected what becomes operations of linalg"):
            fp8.jax.report(lambda x: jax.numpy.linalg.qr(x)[0], np.ones((16, 16), np.float32), path="p")
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a page with another ending"):
            fp8.jax.report(lambda x: x @ x, np.ones((16, 16), np.float32), path="p.json")


if __name__ == "__main__":
    unittest.main()
