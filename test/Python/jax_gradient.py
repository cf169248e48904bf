# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""Derivatives of compiled functions of JAX: beside JAX's own without FP8 and beside the gradient that is compiled as
a whole; with tokens, several results, states; and what has none."""

import functools
import unittest

import jax
import jax.numpy as jnp

import fp8
import fp8.jax


def mlp(weights, x):
    with jax.named_scope("up"):
        y = jax.nn.silu(x @ weights["up"])
    with jax.named_scope("down"):
        return x + y @ weights["down"]


def make(seed=0):
    keys = jax.random.split(jax.random.key(seed), 3)
    weights = {"up": jax.random.normal(keys[0], (64, 128)) / 8, "down": jax.random.normal(keys[1], (128, 64)) / 11}
    return weights, jax.random.normal(keys[2], (32, 64))


def get_error(values, expected):
    pairs = list(zip(jax.tree.leaves(values), jax.tree.leaves(expected), strict=True))
    norm = sum(float(jnp.sum(other ** 2)) for _, other in pairs)
    return (sum(float(jnp.sum((value - other) ** 2)) for value, other in pairs) / norm) ** 0.5


compile = functools.partial(fp8.jax.compile, target="cpu")


class Gradients(unittest.TestCase):
    def test_beside_jax(self):
        weights, x = make()
        for recipe, least, limit in ((None, 0, 1e-5), ("current", 1e-3, 0.1)):
            with self.subTest(recipe):
                compiled = compile(mlp, recipe)
                run = lambda function: jax.value_and_grad(  # noqa: E731
                    lambda weights, x: jnp.sum(function(weights, x) ** 2), (0, 1))
                expected = run(mlp)(weights, x)
                value, gradients = run(compiled)(weights, x)
                self.assertTrue(least <= get_error(gradients, expected[1]) <= limit, get_error(gradients, expected[1]))
                self.assertLess(abs(value / expected[0] - 1), 0.01)
                # Under jax.jit the same bits.
                again = jax.jit(run(compiled))(weights, x)[1]
                self.assertLess(get_error(again, gradients), 1e-6)
        self.assertEqual({remark.name for remark in compiled.gradients[0].remarks},
                         {"up", "up.wgrad", "up.dgrad", "down.wgrad", "down.dgrad"})
        self.assertTrue(all(remark.kind == "fp8" for remark in compiled.gradients[0].remarks))

    def test_beside_the_compiled_gradient(self):
        """One product of a weight: the same rounding."""
        weights, x = make()
        loss = lambda w, x: jnp.mean((x @ w["up"]) ** 2)  # noqa: E731
        compiled = compile(loss, "current")
        gradient = compile(jax.grad(loss, (0, 1)), "current")(weights, x)
        self.assertLess(get_error(jax.grad(compiled, (0, 1))(weights, x)[0]["up"], gradient[0]["up"]), 1e-5)

    def test_tokens_and_several_results(self):
        def embed(weights, tokens):
            y = weights["table"][tokens]
            return {"y": y @ weights["w"], "tokens": tokens + 1}

        keys = jax.random.split(jax.random.key(0), 2)
        weights = {"table": jax.random.normal(keys[0], (48, 32)), "w": jax.random.normal(keys[1], (32, 64))}
        tokens = jnp.arange(16) * 5 % 48
        compiled = compile(embed, "current", weights=["w"])
        run = lambda function: jax.grad(lambda w: jnp.sum(  # noqa: E731
            function({**weights, "w": w}, tokens)["y"] ** 2))(weights["w"])
        self.assertTrue(0 < get_error(run(compiled), run(embed)) < 0.1)
        # Those of a table, which are sums into its rows, nobody had asked for.
        of_all = lambda function: jax.grad(lambda weights: jnp.sum(function(weights, tokens)["y"] ** 2))(weights)  # noqa: E731
        self.assertLess(get_error(of_all(compiled), of_all(embed)), 0.1)
        self.assertEqual(len(compiled.gradients), 2)

    def test_states(self):
        """Forward and gradient have one each, and each call is a step of its own."""
        weights, x = make()
        compiled = compile(mlp, "delayed")
        for steps in (1, 2):
            jax.grad(lambda weights: jnp.sum(compiled(weights, x)))(weights)
            self.assertEqual([version.state.steps for version in (*compiled.versions, *compiled.gradients[0].versions)],
                             [steps, steps])

    def test_chain(self):
        """Compiled functions within others, trained."""
        weights, x = make()
        layer = compile(mlp, "rowwise")
        loss = jax.jit(jax.value_and_grad(lambda w: jnp.mean((layer(w, layer(w, x)) - 1) ** 2)))
        values = []
        for _ in range(4):
            value, gradients = loss(weights)
            values.append(float(value))
            weights = jax.tree.map(lambda weight, gradient: weight - 0.05 * gradient, weights, gradients)
        self.assertEqual(values, sorted(values, reverse=True))

    def test_refused(self):
        weights, x = make()
        with self.assertRaisesRegex(TypeError, "custom_vjp"):  # JAX's own.
            jax.jvp(compile(mlp, "current"), (weights, x), (weights, x))
        compiled = compile(lambda x: jnp.sum(jnp.linalg.eigvalsh(x @ x.T)), "current")
        with self.assertRaises(fp8.UnsupportedError):
            jax.grad(compiled)(x)


if __name__ == "__main__":
    unittest.main()
