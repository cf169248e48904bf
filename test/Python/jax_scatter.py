# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""Sums, products and choices into rows by index, as the gradient of an embedding has them, beside JAX's."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np

import fp8
import fp8.jax


def draw(*sizes, seed=0):
    return jax.random.normal(jax.random.key(seed), sizes)


class Scatters(unittest.TestCase):
    def check(self, function, *arguments, exact=True):
        want = jax.jit(function)(*arguments)
        got = fp8.jax.compile(function, "none", target="cpu", opt_level=0, cache=False)(*arguments)
        for one, other in zip(jax.tree.leaves(want), jax.tree.leaves(got), strict=True):
            self.assertEqual(one.dtype, other.dtype)
            if exact:
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
            else:
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-5)

    def test_embedding(self):
        ids = jnp.asarray([3, 0, 3, 10, 7, 3, -1])
        self.check(jax.grad(lambda table, ids: (table[ids] ** 2).sum()), draw(11, 6), ids, exact=False)

    def test_training(self):
        def loss(w, ids):
            hidden = jnp.tanh(w["table"][ids] @ w["up"])
            return -jax.nn.log_softmax(hidden @ w["down"])[jnp.arange(len(ids)), ids].mean()
        weights = {"table": draw(19, 16), "up": draw(16, 32, seed=1), "down": draw(32, 19, seed=2)}
        self.check(jax.value_and_grad(loss), weights, jnp.asarray([4, 18, 4, 0, 1]), exact=False)

    def test_segments(self):
        ids = jnp.asarray([0, 0, 1, 3, 3])
        for function in (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod):
            self.check(lambda x, ids, function=function: function(x, ids, 4), draw(5, 3), ids, exact=False)
        self.check(lambda x, ids: jax.ops.segment_max(x, ids, 4), jnp.asarray([3, -8, 5, 2, 9], jnp.int16), ids)

    def test_places(self):
        rows, columns = jnp.asarray([1, 2, 1, 9]), jnp.asarray([5, 0, 5, 3])
        self.check(lambda x, i, j, u: x.at[i, j].add(u), draw(11, 6, 3), rows, columns, draw(4, 3), exact=False)
        self.check(lambda x, i, u: x.at[:, i].max(u), draw(5, 11), rows, draw(5, 4))
        # What is outside is dropped, and negative indices count from the end.
        self.check(lambda x, i: x.at[i].add(2.0), draw(4, 5), jnp.asarray([0, 7, -2, 4, -9]), exact=False)
        self.check(lambda x, i, u: x.at[i].set(u), draw(11, 6), jnp.asarray([8, 2, 5]), draw(3, 6))
        self.check(lambda x, i: x.at[i].set(True), jnp.zeros(9, bool), jnp.asarray([8, 2, 2]))

    def test_batches(self):
        ids = jnp.asarray([[0, 10], [3, 3], [1, 2], [9, 0], [4, 5]])
        self.check(jax.grad(lambda x, ids: (jax.vmap(lambda a, b: a[b])(x, ids) ** 2).sum()), draw(5, 11, 6), ids, exact=False)

    def test_windows(self):
        def sum_windows(x, starts):
            return (jax.vmap(lambda i: jax.lax.dynamic_slice(x, (i, 1), (3, 4)))(starts) ** 2).sum()
        self.check(jax.grad(sum_windows), draw(11, 6), jnp.asarray([2, 8, 3]), exact=False)

    def test_none(self):
        self.check(lambda x, i, u: x.at[i].add(u), draw(4, 5), jnp.zeros(0, int), draw(0, 5))

    def test_refused(self):
        """A function of each place combines with no update, and unsigned integers, as of the gradient of `set`, are none of linalg's."""
        ids = jnp.asarray([1, 3, 0])
        for function, x in ((lambda x, i: x.at[i].apply(lambda y: y * y), draw(5, 3)), (lambda x, i: x.at[i].apply(jnp.sin), draw(5, 3)),
                            (lambda x, i: x.at[i].set(jnp.uint32(7)), jnp.arange(5, dtype=jnp.uint32)),
                            (jax.grad(lambda x, i: (x.at[i].set(2.0) ** 2).sum()), draw(5, 3))):
            with self.assertRaisesRegex(fp8.UnsupportedError, "got 'iree_linalg_ext.scatter'"):
                fp8.jax.compile(function, "none", target="cpu", opt_level=0, cache=False)(x, ids)
        self.check(lambda x, i: x.at[i].power(2), draw(5, 3), ids, exact=False)


if __name__ == "__main__":
    unittest.main()
