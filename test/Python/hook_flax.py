# REQUIRES: jax, python-jax, python-flax
# RUN: %import_python %s
"""flax with products in FP8: a Dense of linen, layers of NNX, a small model that learns, and the example on two
devices."""

import subprocess
import sys
import unittest
from pathlib import Path

import jax
import jax.numpy as jnp
from flax import linen, nnx

import fp8.jax


class Model(nnx.Module):
    def __init__(self, dot_general, rngs):
        self.up = nnx.Linear(32, 64, dot_general=dot_general, rngs=rngs)
        self.down = nnx.Linear(64, 32, dot_general=dot_general, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.silu(self.up(x)))


class Flax(unittest.TestCase):
    def setUp(self):
        self.dot = fp8.jax.DotGeneral("rowwise", target="cpu")
        self.x = jax.random.normal(jax.random.key(0), (2, 16, 32))

    def compare(self, value, expected):
        error = jnp.linalg.norm(value - expected) / jnp.linalg.norm(expected)
        self.assertTrue(1e-3 < error < 0.1, error)

    def test_linen(self):
        layer, plain = linen.Dense(64, dot_general=self.dot), linen.Dense(64)
        parameters = plain.init(jax.random.key(1), self.x)
        self.compare(layer.apply(parameters, self.x), plain.apply(parameters, self.x))
        run = lambda layer: jax.grad(lambda p: jnp.sum(  # noqa: E731
            layer.apply(p, self.x) ** 2))(parameters)["params"]["kernel"]
        self.compare(run(layer), run(plain))
        self.assertTrue(all(remark.kind == "fp8" for remark in self.dot.products.remarks))

    def test_nnx(self):
        model, plain = Model(self.dot, nnx.Rngs(0)), Model(jax.lax.dot_general, nnx.Rngs(0))
        self.compare(model(self.x), plain(self.x))
        target = jnp.roll(self.x, 1, -1)

        @nnx.jit
        def step(model):
            loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(self.x) - target) ** 2))(model)
            nnx.update(model, jax.tree.map(lambda value, gradient: value - 0.5 * gradient,
                                           nnx.state(model, nnx.Param), gradients))
            return loss
        losses = [float(step(model)) for _ in range(5)]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertLess(losses[-1], losses[0])
        self.assertTrue(self.dot.products.gradients)

    def test_example(self):
        example = Path(__file__).parents[2] / "examples" / "train_flax.py"
        said = subprocess.run([sys.executable, str(example), "--devices", "2", "--steps", "31"],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr[-2000:])
        lines = said.stdout.splitlines()
        self.assertEqual(lines[0], "2 devices of cpu")
        plain, ours = map(float, lines[5].split()[1:])
        self.assertLess(plain, 2)
        self.assertLess(abs(ours / plain - 1), 0.05)


if __name__ == "__main__":
    unittest.main()
