# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""fp8.jax.dot_product_attention beside jax.nn's: windows, heads that share keys, gradients, jax.jit, vmap, devices that
share batches and heads, and what is refused."""

import math
import os
import unittest

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402

import fp8  # noqa: E402
import fp8.jax  # noqa: E402


def make(batches=2, queries=24, keys=24, heads=4, heads_of_k=4, dim=32, dtype=jnp.float32):
    sizes = (batches, queries, heads, dim), (batches, keys, heads_of_k, dim), (batches, keys, heads_of_k, dim)
    return [jax.random.normal(key, size, dtype) for key, size in zip(jax.random.split(jax.random.key(0), 3), sizes)]


def attend(*tensors, **options):
    return fp8.jax.dot_product_attention(*tensors, target="cpu", **options)


def run(function, tensors, **options):
    """The result, and the gradients of its weighted sum."""
    weights = numpy.linspace(-1, 1, tensors[0].size, dtype=numpy.float32).reshape(tensors[0].shape)

    def get_loss(*tensors):
        result = function(*tensors, **options)
        return jnp.sum(result.astype(jnp.float32) * weights), result
    (_, result), gradients = jax.value_and_grad(get_loss, (0, 1, 2), has_aux=True)(*tensors)
    return result, *gradients


class Attention(unittest.TestCase):
    def compare(self, values, others, limit):
        for value, other in zip(values, others, strict=True):
            self.assertEqual((value.shape, value.dtype), (other.shape, other.dtype))
            value, other = (numpy.asarray(x, numpy.float32) for x in (value, other))
            self.assertLess(numpy.linalg.norm(value - other) / numpy.linalg.norm(other), limit)

    def test_beside_jax(self):
        for name, sizes, options in (
                ("all", {}, {}), ("causal", {}, {"is_causal": True}), ("scale", {}, {"scale": 0.5}),
                ("groups", {"heads_of_k": 2}, {"is_causal": True}), ("one head", {"heads_of_k": 1}, {}),
                ("window", {}, {"local_window_size": (5, 3)}), ("sliding", {}, {"local_window_size": 4, "is_causal": True}),
                ("keys", {"queries": 8, "keys": 40}, {})):
            for dtype, limit in (jnp.float32, 1e-5), (jnp.bfloat16, 0.02):
                with self.subTest(name, dtype=dtype.__name__):
                    tensors = make(dtype=dtype, **sizes)
                    self.compare(run(attend, tensors, **options),
                                 run(jax.nn.dot_product_attention, tensors, **options), limit)

    def test_gradient_of_jax(self):
        """Its products are of f32 and bf16, with an algorithm that reads both as bf16."""
        def get_loss(*tensors):
            return jnp.sum(jnp.square(jax.nn.dot_product_attention(*tensors, is_causal=True).astype(jnp.float32)))
        differentiate, tensors = jax.grad(get_loss, (0, 1, 2)), make(dtype=jnp.bfloat16, heads_of_k=2)
        compiled = fp8.jax.compile(differentiate, target="cpu", cache=False)
        self.compare(compiled(*tensors), differentiate(*tensors), 0.01)

    def test_products_of_two_types(self):
        def multiply(x, y):
            return jax.lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
        x, y = make()[0][0, :, 0], make(dtype=jnp.bfloat16)[1][0, :, 0].T
        for x in (x, x.astype(jnp.float16)):
            expected = x.astype(jnp.float32) @ y.astype(jnp.float32)
            self.compare([fp8.jax.compile(multiply, target="cpu", cache=False)(x, y)], [expected], 1e-6)

    def test_dropout_of_a_program(self):
        """Its keys are arrays of integers without a sign, or of their own type, and it draws what JAX draws."""
        def drop(q, k, v, key, rate=0.25):
            shares = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5)
            kept = jax.random.bernoulli(key, 1 - rate, shares.shape)
            return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(kept, shares / (1 - rate), 0), v)

        def get_loss(*arguments):
            return jnp.sum(jnp.square(drop(*arguments)))

        tensors = make(queries=8, keys=8, dim=16)
        for key in jax.random.PRNGKey(3), jax.random.key(3):
            for function in drop, jax.grad(get_loss, (0, 1, 2)):
                compiled, expected = fp8.jax.compile(function, target="cpu", cache=False), function(*tensors, key)
                for found in compiled(*tensors, key), jax.jit(compiled)(*tensors, key):
                    self.compare(jax.tree.leaves(found), jax.tree.leaves(expected), 1e-5)
        compiled, key = fp8.jax.compile(jax.random.split, target="cpu", cache=False), jax.random.PRNGKey(3)
        for found in compiled(key), jax.jit(compiled)(key):
            self.assertEqual(found.dtype, jnp.uint32)
            self.assertTrue(jnp.array_equal(found, jax.random.split(key)))

    def test_transformations(self):
        tensors = make()
        expected = run(attend, tensors, is_causal=True)
        self.compare(jax.jit(lambda *tensors: run(attend, tensors, is_causal=True))(*tensors), expected, 1e-6)
        several = [jnp.stack([x, x * 2]) for x in tensors]
        result = jax.vmap(lambda *tensors: attend(*tensors, is_causal=True))(*several)
        self.compare([result[0]], expected[:1], 1e-6)

    def test_devices(self):
        """Batches and heads on devices of their own: the bits of one."""
        tensors = make(batches=4, heads=4, heads_of_k=2)
        expected = run(attend, tensors, is_causal=True)
        for kind in AxisType.Auto, AxisType.Explicit:
            mesh = jax.make_mesh((2, 2), ("data", "heads"), axis_types=(kind, kind))
            shared = [jax.device_put(x, NamedSharding(mesh, P("data", None, "heads"))) for x in tensors]
            step = jax.jit(lambda *tensors: jax.vjp(lambda *tensors: attend(*tensors, is_causal=True), *tensors)[0])
            text = step.lower(*shared).compile().as_text()
            self.assertNotIn("all-gather", text)
            result = step(*shared)
            self.assertEqual(result.sharding.spec[:3], ("data", None, "heads"))
            numpy.testing.assert_array_equal(result, expected[0])
            gradients = jax.jit(jax.grad(lambda *tensors: jnp.sum(attend(*tensors, is_causal=True) ** 2), (0, 1, 2)))
            self.compare(gradients(*shared), gradients(*tensors), 1e-6)
        mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
        parts = jax.jit(jax.shard_map(lambda *tensors: attend(*tensors, is_causal=True), mesh=mesh,
                                      in_specs=(P("data"),) * 3, out_specs=P("data")))
        numpy.testing.assert_array_equal(parts(*tensors), expected[0])

    def test_errors(self):
        query, key, value = make()
        for tensors, options, message in (
                ((query[0], key, value), {}, "four dimensions"), ((query, key.astype(jnp.bfloat16), value), {}, "in one of"),
                ((query, key[:, :, :3], value[:, :, :3]), {}, "a multiple of their heads"),
                ((query, key[:1], value), {}, "of the query's batches"),
                ((query, key, value), {"local_window_size": (-1, 2)}, "from 0 on"),
                ((query, key, value), {"local_window_size": 2.5}, "of whole numbers"),
                ((query, key, value), {"scale": math.inf}, "a finite scale")):
            with self.subTest(message), self.assertRaisesRegex(fp8.ArgumentError, message):
                attend(*tensors, **options)


if __name__ == "__main__":
    unittest.main()
