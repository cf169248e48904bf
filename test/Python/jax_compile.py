# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""Functions of JAX, compiled whole, beside JAX itself."""

import functools
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import fp8
import fp8.jax

WIDTH, WIDE = 64, 128


def mlp(weights, x):
    with jax.named_scope("norm"):
        y = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * weights["gain"]
    with jax.named_scope("up"):
        y = jax.nn.silu(y @ weights["up"]["kernel"])
    with jax.named_scope("down"):
        return x + y @ weights["down"]["kernel"]


def loss(weights, x, targets):
    return jnp.mean((mlp(weights, x) - targets) ** 2)


def make_weights(dtype=jnp.float32):
    up, down = jax.random.split(jax.random.key(0))
    return {"gain": jnp.ones(WIDTH, dtype),
            "up": {"kernel": (jax.random.normal(up, (WIDTH, WIDE)) / 8).astype(dtype)},
            "down": {"kernel": (jax.random.normal(down, (WIDE, WIDTH)) / 11).astype(dtype)}}


def make_input(*shape, seed=1):
    return jax.random.normal(jax.random.key(seed), shape)


def get_error(values, expected):
    error = norm = 0.0
    for value, other in zip(jax.tree.leaves(values), jax.tree.leaves(expected), strict=True):
        error += float(jnp.sum((value - other).astype(jnp.float32) ** 2))
        norm += float(jnp.sum(other.astype(jnp.float32) ** 2))
    return (error / norm) ** 0.5


def compile(function, recipe=None, **options):
    return fp8.jax.compile(function, recipe, target="cpu", cache=False, **options)


class Compile(unittest.TestCase):
    def test_recipes(self):
        weights, x = make_weights(), make_input(2, 16, WIDTH)
        expected = mlp(weights, x)
        for recipe, least, limit in ((None, 0, 1e-6), (fp8.Float8CurrentScaling(), 1e-3, 0.05),
                                     ("rowwise", 1e-3, 0.05), ("mxfp8", 1e-3, 0.05)):
            y = compile(mlp, recipe)(weights, x)
            self.assertIsInstance(y, jax.Array)
            self.assertEqual((y.dtype, y.shape), (expected.dtype, expected.shape))
            self.assertTrue(least <= get_error(y, expected) <= limit, recipe)

    def test_bfloat16(self):
        weights, x = make_weights(jnp.bfloat16), make_input(16, WIDTH).astype(jnp.bfloat16)
        y = compile(mlp, "current")(weights, x)
        self.assertEqual(y.dtype, jnp.bfloat16)
        self.assertLess(get_error(y, mlp(weights, x)), 0.05)

    def test_gradients(self):
        weights, x, targets = make_weights(), make_input(16, WIDTH), make_input(16, WIDTH, seed=2)
        function = jax.value_and_grad(loss)
        expected = function(weights, x, targets)
        for recipe, limit in ((None, 1e-5), ("current", 0.12), ("rowwise", 0.08)):
            compiled = compile(function, recipe)
            value, gradients = compiled(weights, x, targets)
            self.assertEqual(jax.tree.structure(gradients), jax.tree.structure(weights))
            self.assertEqual(value.shape, ())
            self.assertLess(get_error(gradients, expected[1]), limit)
            self.assertAlmostEqual(float(value / expected[0]), 1, delta=limit)
        layers = {remark.name: remark for remark in compiled.remarks if remark.kind != "copy"}
        self.assertEqual({name: layer.role for name, layer in layers.items()}, {
            "up": "fprop", "down": "fprop", "down.wgrad": "wgrad", "down.dgrad": "dgrad",
            "up.wgrad": "wgrad", "up.dgrad": "dgrad"})
        # Gradients are E5M2 under current.
        remark = next(remark for remark in compile_remarks(function, weights, x, targets)
                      if remark.name == "down.wgrad")
        self.assertIn("f8E5M2", remark.details["a"])

    def test_scan(self):
        def function(weights, x):
            def body(x, w):
                with jax.named_scope("layer"):
                    return jnp.tanh(x @ w), None
            return jax.lax.scan(body, x, weights)[0]
        weights, x = make_input(3, 64, 64) / 8, make_input(16, 64)
        compiled = compile(function, "current")
        self.assertLess(get_error(compiled(weights, x), function(weights, x)), 0.1)
        self.assertEqual([(remark.name, remark.kind) for remark in compiled.remarks],
                         [("layer", "fp8")])

    def test_checkpoints(self):
        """Layers that the backward computes again, as jax.checkpoint and flax's remat have it, also in a scan."""
        weights, x, targets = make_weights(), make_input(4, WIDTH), make_input(4, WIDTH, seed=2)

        def scanned(weights, x, targets):
            y, _ = jax.lax.scan(lambda y, _: (jax.checkpoint(mlp)(weights, y), None), x, length=3)
            return jnp.mean((y - targets) ** 2)
        for function in (jax.checkpoint(loss), scanned):
            step = jax.value_and_grad(function)
            got = compile(step)(weights, x, targets)
            self.assertLess(get_error(got, step(weights, x, targets)), 1e-5)

    def test_weights_by_name(self):
        def function(x, w):
            with jax.named_scope("layer"):
                return x @ w
        x, w = make_input(16, 64), make_input(64, 32)
        for weights, expected in ((None, 0), (["w"], 1), (["*"], 2), (["x.*"], 0)):
            compiled = compile(function, "block", weights=weights)
            compiled(x, w)
            text = fp8.jax.importer.convert(function, (x, w), weights=weights).text
            self.assertEqual(text.count("fp8.weight"), expected)

    def test_names(self):
        def function(weights, batch, *rest):
            return batch["a"] @ weights[0] + rest[0] + rest[1]
        compiled = compile(function)
        compiled([jnp.ones((8, 4))], {"a": jnp.ones((2, 8))}, jnp.ones(4), 3.0)
        self.assertEqual([info.name for info in compiled.versions[0].function.arguments],
                         ["0", "batch.a", "rest.2", "rest.3"])

    def test_arguments(self):
        def function(x, scale, index):
            return {"y": x * scale, "n": index + 1, "flags": x > 0}
        compiled = compile(function)
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        for scale, index in ((2.0, 3), (np.float32(2), np.int32(3)), (jnp.float32(2), 3)):
            results, expected = compiled(x, scale, index), function(jnp.asarray(x), scale, index)
            for name, value in expected.items():
                self.assertEqual(results[name].dtype, jnp.asarray(value).dtype, name)
                np.testing.assert_array_equal(results[name], value)
        # Numbers do not decide dtypes.
        y = compile(lambda x: x * 2.0)(jnp.ones(4, jnp.bfloat16))
        self.assertEqual(y.dtype, jnp.bfloat16)

    def test_one_version_for_each_kind(self):
        compiled, weights = compile(mlp), make_weights()
        for rows in (8, 8, 16):
            compiled(weights, make_input(rows, WIDTH))
        self.assertEqual(len(compiled.versions), 2)
        shapes = jax.eval_shape(lambda: (weights, make_input(16, WIDTH)))
        self.assertIs(compiled.compile(*shapes), compiled.versions[1])

    def test_under_jit_and_vmap(self):
        weights, x = make_weights(), make_input(4, 8, WIDTH)
        compiled = compile(mlp, "current")
        y = compiled(weights, x[0])
        with_jit = jax.jit(lambda w, x: compiled(w, x) * 2)(weights, x[0])
        np.testing.assert_array_equal(with_jit, y * 2)
        each = jax.vmap(compiled, in_axes=(None, 0))(weights, x)
        np.testing.assert_allclose(each[0], y, rtol=1e-6)
        self.assertEqual(jax.grad(lambda x: compiled(weights, x).sum())(x[0]).shape, x[0].shape)

    def test_calls_by_xla(self):
        weights, x = make_weights(), make_input(8, WIDTH)
        compiled = compile(mlp, "current")
        function = jax.jit(lambda w, x: compiled(w, x) * 2)
        text = function.lower(weights, x).as_text()
        self.assertIn("fp8_program", text)
        self.assertNotIn("callback", text)
        y = function(weights, x)
        # Numbers, and results of several dtypes.
        several = compile(lambda x, n: (x * 2, n + 1, x > 0))
        for result, expected in zip(jax.jit(several)(x, 3), several(x, 3)):
            np.testing.assert_array_equal(result, expected)
            self.assertEqual(result.dtype, expected.dtype)
        # A loop of calls.
        looped = jax.jit(lambda w, x: jax.lax.fori_loop(0, 3, lambda i, x: compiled(w, x), x))
        expected = x
        for _ in range(3):
            expected = compiled(weights, expected)
        np.testing.assert_allclose(looped(weights, x), expected, rtol=1e-6)
        # What is gone cannot be called, and says so.
        np.testing.assert_array_equal(function(weights, x), y)
        lowered = jax.jit(lambda w, x: compile(mlp, "current")(w, x)).lower(weights, x).compile()
        with self.assertRaisesRegex(Exception, "to be alive, but it is gone"):
            jax.block_until_ready(lowered(weights, x))

    def test_states(self):
        weights, x = make_weights(), make_input(16, WIDTH)
        compiled = compile(mlp, fp8.DelayedScaling(amax_history_len=4))
        for _ in range(2):
            y = compiled(weights, x)
        self.assertLess(get_error(y, mlp(weights, x)), 0.05)
        state = compiled.versions[0].state
        self.assertEqual(state.steps, 2)
        jax.block_until_ready(jax.jit(compiled)(weights, x))
        jax.effects_barrier()
        self.assertEqual(state.steps, 3)

    def test_decorator(self):
        @functools.partial(fp8.jax.compile, recipe="current", target="cpu")
        def product(x, w):
            """Documented."""
            return x @ w
        self.assertEqual((product.__name__, product.__doc__), ("product", "Documented."))
        self.assertEqual(product(make_input(16, 32), make_input(32, 16)).shape, (16, 16))
        self.assertIn("product", repr(product))

    def test_keys_of_random_numbers(self):
        """A function of keys may give keys, alone and under jax.jit."""
        key = jax.random.key(3)
        for function in (jax.random.split, lambda key: {"next": jax.random.fold_in(key, 5), "numbers": jax.random.bits(key, (4,))}):
            compiled = fp8.jax.compile(function, target="cpu", cache=False)
            for call in compiled, jax.jit(lambda key: compiled(key)):
                found, expected = call(key), function(key)
                self.assertEqual(jax.tree.structure(found), jax.tree.structure(expected))
                for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
                    self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
                    self.assertTrue((one == other).all())

    def test_what_is_not_supported(self):
        x = make_input(8, 8)
        with self.assertRaisesRegex(fp8.UnsupportedError, "iree_linalg_ext.sort"):
            compile(lambda x: jnp.sort(x))(make_input(1, 1025))
        with self.assertRaisesRegex(fp8.UnsupportedError, "custom_call' of .*callback"):
            compile(lambda x: jax.pure_callback(np.sin, x, x))(x)
        with self.assertRaisesRegex(fp8.UnsupportedError, "custom_call' of lapack_ssyevd"):
            compile(jnp.linalg.eigvalsh)(x)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected trees of arrays and numbers"):
            compile(lambda x: x)("text")
        with self.assertRaisesRegex(fp8.ArgumentError, "by their places, but got x by name"):
            compile(lambda x: x)(x=x)
        with self.assertRaisesRegex(fp8.ArgumentError, "got no argument"):
            compile(lambda: jnp.ones(3))()
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected a gradient to be one of x"):
            compile(lambda x: x, gradients=["dy"])(x)
        with self.assertRaisesRegex(fp8.Error, "expected a recipe"):
            compile(lambda x: x, "fancy")
        with self.assertRaisesRegex(fp8.Error, "unknown option 'colour'"):
            compile(lambda x: x, colour=3)
        with self.assertRaisesRegex(fp8.CompileError, "multiple of 128"):
            compile(lambda x: x @ x, "block", require=True)(make_input(36, 36))


def compile_remarks(function, *arguments):
    compiled = compile(function, "current")
    compiled(*arguments)
    return compiled.remarks


if __name__ == "__main__":
    unittest.main()
