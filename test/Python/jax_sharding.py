# REQUIRES: jax, python-jax
# RUN: %import_python %s
"""Compiled functions and products of JAX on four devices: within jax.shard_map, with arrays that devices share
under jax.jit, by meshes of both kinds, forward and backward, beside one device."""

import os
import re
import unittest

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402

import fp8  # noqa: E402
import fp8.jax  # noqa: E402

LINEAR = (((1,), (0,)), ((), ()))


def mlp(weights, x):
    return x + jax.nn.silu(x @ weights["up"]) @ weights["down"]


def make():
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {"up": jax.random.normal(keys[0], (64, 128)) / 8, "down": jax.random.normal(keys[1], (128, 64)) / 11}
    return jax.tree.map(numpy.asarray, (weights, jax.random.normal(keys[2], (64, 64))))


def get_error(value, expected):
    value, expected = numpy.asarray(value), numpy.asarray(expected)
    return float(numpy.linalg.norm(value - expected) / numpy.linalg.norm(expected))


def make_mesh(kind=AxisType.Auto):
    return jax.make_mesh((2, 2), ("rows", "columns"), axis_types=(kind, kind))


def put(array, mesh, *axes):
    return jax.device_put(array, NamedSharding(mesh, P(*axes)))


class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.weights, cls.x = make()
        cls.mesh = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Auto,))

    def share(self, function, result=P("rows"), **options):
        return jax.jit(jax.shard_map(function, mesh=self.mesh, in_specs=(P(), P("rows")), out_specs=result, **options))

    def test_parts(self):
        """Scales of rows are those of one device, and so are all bits."""
        compiled = fp8.jax.compile(mlp, "rowwise", target="cpu")
        y = self.share(compiled)(self.weights, self.x)
        self.assertEqual(y.sharding.spec[0], "rows")
        numpy.testing.assert_array_equal(y, compiled(self.weights, self.x))

    def test_gradients(self):
        """That of a weight, which all devices have, is the sum of what each of them finds. Scales of columns are
        those of parts."""
        compiled = fp8.jax.compile(mlp, "rowwise", target="cpu")

        def get_loss(weights, x):
            return jnp.sum(compiled(weights, x) ** 2)

        expected, gradients = jax.value_and_grad(get_loss, (0, 1))(self.weights, self.x)
        within = self.share(lambda weights, x: jax.value_and_grad(
            lambda *given: jax.lax.psum(get_loss(*given), "rows"), (0, 1))(weights, x), (P(), (P(), P("rows"))))
        for name, found in (("within", within(self.weights, self.x)), *(
                (f"around, {check}", jax.value_and_grad(self.share(
                    lambda weights, x: jax.lax.psum(get_loss(weights, x), "rows"), P(), check_vma=check), (0, 1))(
                        self.weights, self.x)) for check in (True, False))):
            with self.subTest(name):
                self.assertLess(abs(found[0] / expected - 1), 1e-6)
                for value, other in zip(jax.tree.leaves(found[1]), jax.tree.leaves(gradients), strict=True):
                    self.assertLess(get_error(value, other), 0.05)

    def test_shared_arrays(self):
        """XLA gives each device all of them, within jax.jit and without."""
        compiled = fp8.jax.compile(mlp, "current", target="cpu")
        expected = compiled(self.weights, self.x)
        weights = jax.tree.map(lambda weight: put(weight, self.mesh), self.weights)
        for kind in AxisType.Auto, AxisType.Explicit:
            mesh = jax.make_mesh((4,), ("rows",), axis_types=(kind,))
            weights = jax.tree.map(lambda weight: put(weight, mesh), self.weights)  # noqa: B023
            for run in compiled, jax.jit(compiled):
                numpy.testing.assert_array_equal(run(weights, put(self.x, mesh, "rows")), expected)

    def test_state(self):
        """A step of each device would be four."""
        compiled = fp8.jax.compile(mlp, "delayed", target="cpu")
        self.assertEqual(jax.jit(compiled)(self.weights, self.x).shape, self.x.shape)
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected arrays of one device"):
            self.share(compiled)(self.weights, self.x)
        mesh = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Explicit,))
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected arrays of one device"):
            compiled(jax.tree.map(lambda weight: put(weight, mesh), self.weights), put(self.x, mesh, "rows"))
        # Only XLA knows of these.
        with self.assertRaisesRegex(Exception, "expected arrays of one device"):
            jax.jit(compiled)(self.weights, put(self.x, self.mesh, "rows"))


class Products(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        weights, cls.x = make()
        cls.weight = weights["up"]
        cls.dot = fp8.jax.DotGeneral("rowwise", target="cpu")

    def get_loss(self, weight, x):
        return jnp.sum(self.dot(x, weight, LINEAR) ** 2)

    def check(self, mesh, x, weight, result, gathers, sums):
        """Axes of x, of the weight and of y, and the collectives of a forward."""
        expected = self.dot(self.x, self.weight, LINEAR)
        value, gradients = jax.value_and_grad(self.get_loss, (0, 1))(self.weight, self.x)
        given = put(self.x, mesh, *x), put(self.weight, mesh, *weight)
        run = jax.jit(lambda x, weight: self.dot(x, weight, LINEAR))
        y = run(*given)
        self.assertEqual(y.sharding.spec, P(*result))
        # What is added up in parts has scales of its parts, and another order.
        self.assertLessEqual(get_error(y, expected), 0.05 if sums else 0)
        text = run.lower(*given).compile().as_text()
        self.assertEqual(("all-gather" in text, len(re.findall(r"\ball-reduce(?:-start)?\(", text))), (gathers, sums))
        found, shared = jax.jit(jax.value_and_grad(self.get_loss, (0, 1)))(*reversed(given))
        self.assertLess(abs(found / value - 1), 1e-3)
        for one, other in zip(shared, gradients):
            self.assertLess(get_error(one, other), 0.05)

    def test_meshes(self):
        for kind in AxisType.Auto, AxisType.Explicit:
            mesh = make_mesh(kind)
            for name, case in {
                    "rows": (("rows",), (), ("rows",), False, 0),
                    "rows by all": ((("rows", "columns"),), (), (("rows", "columns"),), False, 0),
                    "columns": ((), (None, "columns"), (None, "columns"), False, 0),
                    "rows and columns": (("rows",), (None, "columns"), ("rows", "columns"), False, 0),
                    "sums": (("rows", "columns"), ("columns",), ("rows",), False, 1),
                    "weights that are gathered": (("rows",), ("rows", "columns"), ("rows", "columns"), True, 0)}.items():
                with self.subTest(kind=str(kind), case=name):
                    self.check(mesh, *case)

    def test_axes(self):
        """One axis of a mesh by jax.shard_map, the other one by jax.jit."""
        mesh = make_mesh()
        run = jax.jit(jax.shard_map(lambda x, weight: self.dot(x, weight, LINEAR), mesh=mesh, axis_names={"rows"},
                                    in_specs=(P("rows"), P()), out_specs=P("rows")))
        y = run(put(self.x, mesh, "rows"), put(self.weight, mesh, None, "columns"))
        numpy.testing.assert_array_equal(y, self.dot(self.x, self.weight, LINEAR))

    def test_vmap(self):
        several = jnp.stack([self.x, self.x + 1])
        y = jax.vmap(lambda x: self.dot(x, self.weight, LINEAR))(several)
        numpy.testing.assert_array_equal(y[1], self.dot(several[1], self.weight, LINEAR))
        nested = jax.jit(jax.vmap(jax.vmap(jax.grad(self.get_loss), (None, 0)), (None, 0)))(
            self.weight, several[None])
        self.assertLess(get_error(nested[0, 0], jax.grad(self.get_loss)(self.weight, self.x)), 1e-6)


if __name__ == "__main__":
    unittest.main()
