# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""fp8.jax.DotGeneral beside jax.lax.dot_general: dimensions, gradients, jax.jit, and what is not for it."""

import unittest

import jax
import jax.numpy as jnp
from jax import lax

import fp8
import fp8.jax

LINEAR = (((1,), (0,)), ((), ()))


def make(*sizes, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(0), len(sizes))
    return [jax.random.normal(key, size, dtype) for key, size in zip(keys, sizes)]


def get_error(value, expected):
    return float(jnp.linalg.norm(value - expected) / jnp.linalg.norm(expected))


class Products(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dot = fp8.jax.DotGeneral("current", target="cpu")

    def check(self, dot, x, w, numbers, least=1e-3, limit=0.1):
        run = lambda dot: jax.value_and_grad(  # noqa: E731
            lambda x, w: jnp.sum(dot(x, w, numbers).astype(jnp.float32) ** 2), (0, 1))
        self.assertEqual(dot(x, w, numbers).dtype, x.dtype)
        (_, expected), (_, gradients) = run(lax.dot_general)(x, w), run(dot)(x, w)
        for value, other in zip((dot(x, w, numbers), *gradients),
                                (lax.dot_general(x, w, numbers), *expected)):
            self.assertEqual(value.shape, other.shape)
            self.assertTrue(least <= get_error(value, other) <= limit, get_error(value, other))

    def test_linear(self):
        self.check(self.dot, *make((32, 64), (64, 48)), LINEAR)
        self.check(self.dot, *make((32, 64), (64, 48), dtype=jnp.bfloat16), LINEAR)
        self.assertTrue(all(remark.kind == "fp8" for remark in self.dot.products.remarks))
        roles = {remark.role for one in self.dot.products.gradients for remark in one.remarks}
        self.assertEqual(roles, {"dgrad", "wgrad"})

    def test_no_recipe(self):
        """Without FP8 they are equal, whatever the dimensions."""
        dot = fp8.jax.DotGeneral(None, target="cpu")
        for sizes, numbers in ((((4, 8, 64), (64, 48)), (((2,), (0,)), ((), ()))),
                               (((16, 4, 64), (2, 64, 4, 3)), (((2, 1), (1, 2)), ((), ()))),
                               (((64, 16), (48, 64)), (((0,), (1,)), ((), ())))):
            self.check(dot, *make(*sizes), numbers, 0, 1e-5)

    def test_jit(self):
        x, w = make((32, 64), (64, 48))
        run = jax.grad(lambda w: jnp.sum(self.dot(x, w, LINEAR) ** 2))
        self.assertLess(get_error(jax.jit(run)(w), run(w)), 1e-6)

    def test_left(self):
        """What is jax.lax's has its bits."""
        count = len(self.dot.products.versions)
        x, w = make((3, 16, 32), (3, 32, 8))
        numbers = (((2,), (1,)), ((0,), (0,)))
        self.assertTrue((self.dot(x, w, numbers) == lax.dot_general(x, w, numbers)).all())
        x, w = jnp.ones((4, 8), jnp.int32), jnp.ones((8, 4), jnp.int32)
        self.assertTrue((self.dot(x, w, LINEAR) == 8).all())
        self.assertEqual(self.dot(jnp.ones((0, 8)), jnp.ones((8, 4)), LINEAR).shape, (0, 4))
        self.assertEqual(len(self.dot.products.versions), count)
        x, w = make((32, 64), (64, 48))
        self.assertEqual(self.dot(x, w, LINEAR, preferred_element_type=jnp.bfloat16).dtype, jnp.bfloat16)

    def test_refused(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a recipe without a state"):
            fp8.jax.DotGeneral("delayed")
        with self.assertRaises(fp8.Error):
            fp8.jax.DotGeneral("curent")


if __name__ == "__main__":
    unittest.main()
