# REQUIRES: jax, python-jax
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=89 %import_python %s
"""Functions of JAX with the kernels of a GPU, on the emulator: by themselves and called by XLA."""

import os
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import fp8
import fp8.jax

TARGET = {"89": "sm_89"}.get(os.environ.get("FP8_EMULATOR_ARCH"), "sm_90a")


def product(weights, x):
    return jax.nn.relu(x @ weights["kernel"])


class Call(unittest.TestCase):
    def test_product(self):
        x = jax.random.normal(jax.random.key(0), (64, 128), jnp.bfloat16)
        weights = {"kernel": jax.random.normal(jax.random.key(1), (128, 64), jnp.bfloat16)}
        for recipe in ("current", fp8.DelayedScaling(amax_history_len=2)):
            compiled = fp8.jax.compile(product, recipe, target=TARGET, cache=False)
            compiled(weights, x)  # The scales of a state follow from it.
            y = compiled(weights, x)
            by_xla = jax.jit(compiled)(weights, x)
            np.testing.assert_array_equal(by_xla, y)
            error = jnp.abs(y - product(weights, x)).max() / jnp.abs(y).max()
            self.assertLess(float(error), 0.05)
            state = compiled.versions[0].state
            if state is not None:
                self.assertEqual(state.steps, 3)

    def test_embedding(self):
        table, ids = jax.random.normal(jax.random.key(0), (37, 24)), jnp.asarray([3, 0, 3, 36, -1, 7])
        gradient = jax.grad(lambda table, ids: (table[ids] ** 2).sum())
        y = fp8.jax.compile(gradient, "none", target=TARGET, cache=False)(table, ids)
        np.testing.assert_allclose(y, gradient(table, ids), rtol=1e-6)

    def test_attention(self):
        """Forward and backward by a kernel each."""
        query, key, value = (jax.random.normal(each, (1, 128, heads, 64), jnp.bfloat16)
                             for each, heads in zip(jax.random.split(jax.random.key(0), 3), (2, 1, 1)))

        def run(function, **options):
            return jax.jit(jax.value_and_grad(lambda *tensors: jnp.sum(
                function(*tensors, is_causal=True, **options).astype(jnp.float32) ** 2), (0, 1, 2)))(query, key, value)
        value_of_ours, ours = run(fp8.jax.dot_product_attention, target=TARGET)
        expected, others = run(jax.nn.dot_product_attention)
        self.assertLess(abs(value_of_ours / expected - 1), 0.01)
        for one, other in zip(ours, others):
            error = jnp.linalg.norm((one - other).astype(jnp.float32)) / jnp.linalg.norm(other.astype(jnp.float32))
            self.assertLess(float(error), 0.02)


unittest.main()
