# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""Sorts, the largest elements, running sums and gradients of pooling, of which IREE's conversion makes no linalg, beside JAX's."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import fp8
import fp8.jax


def draw(*sizes, seed=0):
    return jax.random.normal(jax.random.key(seed), sizes)


def pool(x, kind=lax.max, size=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="VALID"):
    return lax.reduce_window(x, -jnp.inf if kind is lax.max else jnp.inf, kind, size, strides, padding)


class Orders(unittest.TestCase):
    def check(self, function, *arguments, exact=True):
        want = jax.jit(function)(*arguments)
        got = fp8.jax.compile(function, "none", target="cpu", opt_level=0, cache=False)(*arguments)
        for one, other in zip(jax.tree.leaves(want), jax.tree.leaves(got), strict=True):
            self.assertEqual(one.dtype, other.dtype)
            compare = np.testing.assert_array_equal if exact else lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
            compare(np.asarray(one.astype(jnp.float32)), np.asarray(other.astype(jnp.float32)))

    def test_largest(self):
        x = draw(5, 11).at[1, 3].set(jnp.inf).at[2, 4].set(-jnp.inf).at[3].set(2.0).at[4, 5].set(jnp.nan)
        self.check(lambda x: lax.top_k(x, 3), x)
        self.check(lambda x: (lax.top_k(x, 4), lax.top_k(x[0], 7)), jnp.asarray([[3, -8, 3, 2, 9, 0, 9]], jnp.int16))
        self.check(lambda x: lax.top_k(x, 1), draw(2, 3, 4).astype(jnp.bfloat16))

    def test_sorts(self):
        x = draw(5, 7).at[1, 3].set(jnp.inf).at[2, 4].set(jnp.nan).at[3].set(0.0).at[3, 2].set(-0.0).at[0, 1].set(x0 := -1.5).at[0, 5].set(x0)
        self.check(lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.argsort(x, 1, descending=True)), x)
        self.check(lambda k, x: lax.sort((k, k * x, x > 0), dimension=0, num_keys=2), jnp.asarray([2, 1, 2, 0, 1]), jnp.asarray([4, 3, 1, 9, -3]))

    def test_running(self):
        x = draw(5, 7)
        self.check(lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cumsum(x, 1, reverse=True)), x, exact=False)
        self.check(lambda x: (lax.cummax(x, 0), lax.cummin(x, 1, reverse=True), jnp.cumsum((x > 0).astype(jnp.int32), 1)), x)
        self.check(jax.grad(lambda x: (jnp.cumsum(x, 1) ** 2).sum()), draw(3, 9), exact=False)
        self.check(lambda x: (lax.cummax(x), lax.cummin(x)), jnp.asarray([3, 2**32 - 1, 7], jnp.uint32))
        # Refused as what it is, and no error of ours.
        with self.assertRaisesRegex(fp8.UnsupportedError, "scan"):
            fp8.jax.compile(lambda x: jnp.abs(jnp.cumsum(x * 1j)), "none", target="cpu", cache=False)(x)

    def test_gradients(self):
        """Indices of a sort's gradient have no sign."""
        self.check(jax.grad(lambda x: (jnp.sort(x, 0) * jnp.arange(18).reshape(6, 3)).sum()), draw(6, 3))
        self.check(jax.grad(lambda x: (lax.top_k(x, 2)[0] * jnp.arange(12).reshape(6, 2)).sum()), draw(6, 3))

    def test_names(self):
        """Functions of a program have the names of their operations, and numbers, as JAX gives them."""
        def add(x, number):
            inner = lambda x: x + number  # noqa: E731
            inner.__name__ = f"sort_{number}"
            return jax.jit(inner)(x)

        def function(x):
            for number in range(8, 24):
                x = add(x, number)
            return lax.sort(x)

        self.check(function, jnp.asarray([3.0, 1.0, 2.0]))

    def test_pooling(self):
        x = draw(2, 6, 8, 3)
        # The first of equal ones has the gradient.
        for x in (x, jnp.round(x)):
            self.check(jax.grad(lambda x: (pool(x) ** 2).sum()), x, exact=False)
        self.check(jax.grad(lambda x: (pool(x, size=(1, 3, 3, 1), padding="SAME") ** 2).sum()), x, exact=False)
        self.check(jax.grad(lambda x: (pool(x, lax.min, (1, 3, 2, 1), (1, 1, 3, 1)) ** 2).sum()), x, exact=False)

    def test_experts_and_their_gradients(self):
        """A mixture of experts with places in their buffers: top_k, cumsum and a scatter."""
        def route(w, x):
            gates, chosen = lax.top_k(jax.nn.softmax(x @ w["gate"]), 2)
            taken = jax.nn.one_hot(chosen, 4).reshape(-1, 4)
            places = ((jnp.cumsum(taken, 0) - 1) * taken).sum(-1).astype(jnp.int32)
            rows = jnp.repeat(x, 2, 0)
            buffers = jnp.zeros((4, 8, 16)).at[chosen.reshape(-1), places].set(rows, mode="drop")
            results = jnp.einsum("ecd,edf->ecf", buffers, w["experts"])[chosen.reshape(-1), places]
            return (jnp.where(places[:, None] < 8, results, 0).reshape(-1, 2, 16) * gates[..., None]).sum(1)

        weights = {"gate": draw(16, 4), "experts": draw(4, 16, 16, seed=1) / 4}
        self.check(route, weights, draw(12, 16, seed=2), exact=False)
        self.check(jax.grad(lambda w, x: (route(w, x) ** 2).mean()), weights, draw(12, 16, seed=2), exact=False)


if __name__ == "__main__":
    unittest.main()
