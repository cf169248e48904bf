"""Products of arrays that a mesh of devices shares: each device multiplies its part, under jax.jit.

XLA knows nothing of a program, and would give each device all of its arguments. Here it is told which
dimensions are the same ones, so that rows and columns stay where they are. What a product sums over is
multiplied in parts, and the parts are added up.
"""

import functools

import jax
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from fp8.errors import UnsupportedError


def find_mesh(*arrays):
    """The mesh of arrays whose types say how they are shared, or None."""
    for array in arrays:
        sharding = getattr(jax.typeof(array), "sharding", None)
        if sharding is not None and any(axes is not None for axes in sharding.spec):
            return sharding.mesh
    return None


def _get_varying(array):
    """The axes of the mesh along which a jax.shard_map has other values, a frozenset."""
    kind = jax.typeof(array)
    # JAX 0.10.1 and before call them vma.
    return kind.vma if hasattr(kind, "vma") else kind.manual_axis_type.varying


def is_manual():
    """Whether what is traced is what one device does, within a jax.shard_map."""
    return bool(jax.sharding.get_abstract_mesh().manual_axes)


def vary_with(results, arguments):
    """Results of a call by XLA, of which JAX takes it that all devices have the same: as its arguments do."""
    axes = tuple(sorted(frozenset().union(*map(_get_varying, arguments))))
    return tuple(lax.pcast(result, axes, to="varying") for result in results) if axes else tuple(results)


def add_to_match(value, given):
    """A sum over the devices that have parts of `value`, where all of them had the same `given`: what a
    jax.shard_map asks of the gradient of an array that is the same on all devices."""
    axes = _get_varying(value) - _get_varying(given)
    return lax.psum(value, tuple(sorted(axes))) if axes else value


def get_axes(sharding, dim):
    """The axes of the mesh that share a dimension, a tuple."""
    axes = sharding.spec[dim] if dim < len(sharding.spec) else None
    return () if axes is None else axes if isinstance(axes, tuple) else (axes,)


def _without(axes, *others):
    used = {axis for other in others for axis in other}
    return tuple(axis for axis in axes if axis not in used)


def _shard(mesh, *dims):
    return NamedSharding(mesh, PartitionSpec(*(axes or None for axes in dims)))


def _add(value, axes):
    return lax.psum(value, axes) if axes else value


def make(function, partition, **rule):
    """`function` for whoever shares its arguments, one call after the other under jax.vmap."""
    partitioned = custom_partitioning(function)
    partitioned.def_partition(partition, **rule)
    batched = custom_vmap(partitioned)

    @batched.def_vmap
    def _(size, is_batched, *arguments):
        def run(index):
            return batched(*(lax.dynamic_index_in_dim(argument, index, keepdims=False) if has else argument
                             for argument, has in zip(arguments, is_batched)))
        results = lax.map(run, jax.numpy.arange(size))
        return results, jax.tree_util.tree_map(lambda _: True, results)

    return batched


def keep_on_one_device(function, *arguments):
    """`function`, which has a state, where no other device shares its arguments.

    Raises UnsupportedError if one does, or has XLA say so, if only it knows.
    """
    def refuse(*_):
        raise UnsupportedError("expected arrays of one device, but got some that several devices share: a recipe "
                               "with a state would take a step on each; take one without, such as 'current'")

    if not shares_arrays():
        return function
    if is_manual() or find_mesh(*arguments) is not None:
        refuse()
    return make(function, lambda mesh, given, results: refuse() if mesh.size > 1 else (
        mesh, function, _get_shardings(results), _get_shardings(given)))


def _get_shardings(shapes):
    return jax.tree_util.tree_map(lambda shape: shape.sharding, shapes)


class Product:
    """y [M, N] of a weight [K, N] and x [M, K], by a Compiled function of both, and its gradients."""

    def __init__(self, compiled):
        self._compiled, self._gradients = compiled, {}
        self._forward = make(
            lambda weight, x: compiled(weight, x), self._partition,
            sharding_rule="k n, m k -> m n", reduction_factors=("k",))
        self._call = jax.custom_vjp(self._forward)
        self._call.defvjp(self._run, self._differentiate, symbolic_zeros=True)

    def __call__(self, weight, x):
        return self._call(weight, x)

    def _partition(self, mesh, arguments, result):
        rows, columns = get_axes(result.sharding, 0), get_axes(result.sharding, 1)
        summed = _without(get_axes(arguments[1].sharding, 1), rows, columns)
        return (mesh, lambda weight, x: _add(self._compiled(weight, x), summed), _shard(mesh, rows, columns),
                (_shard(mesh, summed, columns), _shard(mesh, rows, summed)))

    def _run(self, weight, x):
        asked = tuple(place for place, primal in enumerate((weight, x)) if primal.perturbed)
        return self._forward(weight.value, x.value), (weight.value, x.value, asked)

    def _differentiate(self, saved, cotangent):
        weight, x, asked = saved
        if isinstance(cotangent, jax.custom_derivatives.SymbolicZero):
            cotangent = jax.numpy.zeros(cotangent.shape, cotangent.dtype)
        if asked not in self._gradients:
            self._gradients[asked] = self._make_gradient(asked)
        found = dict(zip(asked, self._gradients[asked](weight, x, cotangent)))
        return found.get(0), found.get(1)

    def _make_gradient(self, asked):
        """A function of the weight, x and the gradient of y, that has the gradients that are asked for."""
        gradient = self._compiled.find_gradient(2, asked)

        def partition(mesh, arguments, results):
            given = arguments[2].sharding
            rows, columns = get_axes(given, 0), get_axes(given, 1)
            inner = _without(get_axes(arguments[1].sharding, 1), rows, columns)

            def run(weight, x, cotangent):
                values = gradient(weight, x, (cotangent,))
                return tuple(_add(value, columns if place else rows) for place, value in zip(asked, values))

            kinds = _shard(mesh, inner, columns), _shard(mesh, rows, inner)
            return mesh, run, tuple(kinds[place] for place in asked), (*kinds, _shard(mesh, rows, columns))

        results = ", ".join(("k n", "m k")[place] for place in asked)
        return make(lambda weight, x, cotangent: tuple(gradient(weight, x, (cotangent,))), partition,
                     sharding_rule=f"k n, m k, m n -> {results}")


def _name(axes):
    """An entry of a PartitionSpec."""
    return axes if len(axes) > 1 else axes[0] if axes else None


def multiply_explicit(product, weight, x):
    """`product` where the types of arrays say how they are shared: y is shared as its rows are in x and its
    columns in the weight, as far as no axis is in both."""
    rows = get_axes(jax.typeof(x).sharding, 0)
    columns = _without(get_axes(jax.typeof(weight).sharding, 1), rows)
    return jax.sharding.auto_axes(product, out_sharding=PartitionSpec(_name(rows), _name(columns)))(weight, x)


@functools.cache
def shares_arrays():
    """Whether this process sees several devices, so that an array may be on more than one."""
    return jax.device_count() > 1
