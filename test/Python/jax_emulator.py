# REQUIRES: jax, python-jax
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Functions of JAX with the kernels of a GPU, on the emulator: by themselves and called by XLA."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np

import fp8
import fp8.jax


def product(weights, x):
    return jax.nn.relu(x @ weights["kernel"])


class Call(unittest.TestCase):
    def test_product(self):
        x = jax.random.normal(jax.random.key(0), (64, 128), jnp.bfloat16)
        weights = {"kernel": jax.random.normal(jax.random.key(1), (128, 64), jnp.bfloat16)}
        for recipe in ("current", fp8.DelayedScaling(amax_history_len=2)):
            compiled = fp8.jax.compile(product, recipe, target="sm_90a", cache=False)
            compiled(weights, x)  # The scales of a state follow from it.
            y = compiled(weights, x)
            by_xla = jax.jit(compiled)(weights, x)
            np.testing.assert_array_equal(by_xla, y)
            error = jnp.abs(y - product(weights, x)).max() / jnp.abs(y).max()
            self.assertLess(float(error), 0.05)
            state = compiled.versions[0].state
            if state is not None:
                self.assertEqual(state.steps, 3)


unittest.main()
