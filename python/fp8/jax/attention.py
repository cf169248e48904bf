"""Attention for JAX, forward and backward, by `fp8.attention`: in place of jax.nn.dot_product_attention.

    y = fp8.jax.dot_product_attention(q, k, v, is_causal=True)
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import NamedSharding, PartitionSpec

import fp8
from fp8 import _core
from fp8.errors import ArgumentError
from fp8.jax import compiled, partitioned

_ELEMENTS = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


class Rule(NamedTuple):
    """Scores' factor and what is visible: keys so many before a query's own and after it, None for no limit."""

    scale: float
    left: int | None
    right: int | None


def dot_product_attention(query, key, value, *, scale=None, is_causal=False, local_window_size=None, target="auto"):
    """The softmax of products of queries and keys, times values, as jax.nn.dot_product_attention has it.

    - query: batches x positions x heads x columns; key, value: of the same batches and type (bf16, f16 or f32), with
      positions of their own, and heads that divide the query's;
    - scale: of scores, None for 1 over the root of the columns;
    - is_causal: whether a query sees the keys up to its own number alone;
    - local_window_size: None, or how many keys a query sees before and after its own, a number or two.

    One kernel each forward and backward where the GPU has them (docs/Attention.md), and no scores in memory. Its
    gradient has the same bits in every run. A mesh of devices may share batches and heads. Under jax.vmap it is called for one
    element after the other; there is no second derivative. Raises ArgumentError.
    """
    _check(query, key, value)
    left, right = (None, None) if local_window_size is None else numpy.broadcast_to(local_window_size, 2).tolist()
    if not all(isinstance(side, int) for side in (left, right) if side is not None):
        raise ArgumentError(f"expected a window of whole numbers, but got {local_window_size}")
    if is_causal:
        right = 0
    if min(side for side in (left, right, 0) if side is not None) < 0:
        raise ArgumentError(f"expected a window of numbers from 0 on, but got {local_window_size}")
    scale = query.shape[3] ** -0.5 if scale is None else float(scale)
    if not math.isfinite(scale):
        raise ArgumentError(f"expected a finite scale, but got {scale}")
    return _make(Rule(scale, left, right), target)(query, key, value)


def _check(query, key, value):
    shapes = [tuple(x.shape) for x in (query, key, value)]
    if any(len(shape) != 4 for shape in shapes):
        raise ArgumentError(f"expected query, key and value of four dimensions, but got {shapes}")
    if len({str(x.dtype) for x in (query, key, value)}) > 1 or str(query.dtype) not in _ELEMENTS:
        raise ArgumentError("expected query, key and value in one of bfloat16, float16 and float32, but got "
                            f"{', '.join(str(x.dtype) for x in (query, key, value))}")
    (batches, _, heads, dim), (_, positions, heads_of_k, _), _ = shapes
    if (shapes[1] != (batches, positions, heads_of_k, dim) or shapes[2][:3] != shapes[1][:3]
            or heads_of_k == 0 or heads % heads_of_k):
        raise ArgumentError("expected keys of the query's batches and columns, values of the keys' batches, positions and "
                            f"heads, and a multiple of their heads in the query, but got {shapes}")


def _write_type(array, dtype=None):
    return f"tensor<{'x'.join(map(str, array.shape))}x{_ELEMENTS[str(dtype or array.dtype)]}>"


def _write(rule, operation, arguments, results):
    """A program of one operation, as text."""
    names = ", ".join(f"%arg{number}" for number in range(len(arguments)))
    types, kinds = map(_write_type, arguments), ", ".join(map(_write_type, results))
    sides = ", ".join("*" if side is None else str(side) for side in rule[1:])
    made = ", ".join(f"%result{number}" for number in range(len(results)))
    types = list(types)
    return (f"func.func @main({', '.join(f'%arg{number}: {kind}' for number, kind in enumerate(types))}) -> ({kinds}) {{\n"
            f"  {made} = {operation} {names} scale = {rule.scale:.9e} window = [{sides}] : "
            f"{', '.join(types)} -> {kinds}\n  return {made} : {kinds}\n}}\n")


# What was traced calls a program by its number, as long as it lives.
@functools.lru_cache(maxsize=None)
def _compile(text, target):
    program = fp8.compile(text, target=target)
    return program, _core.ForeignCall(program._core, program["main"]._index, None)


def _call(rule, target, operation, arguments, results):
    """The results of a program that XLA calls."""
    compiled.register()
    _, call = _compile(_write(rule, operation, arguments, results), target)
    run = jax.ffi.ffi_call(compiled.HANDLER, results, vmap_method="sequential")
    return partitioned.vary_with(run(*arguments, number=numpy.int64(call.number)), arguments)


def _run_forward(rule, target, query, key, value):
    batches, queries, heads, _ = query.shape
    return _call(rule, target, "fp8.attention", (query, key, value), (
        jax.ShapeDtypeStruct((*query.shape[:3], value.shape[3]), query.dtype),
        jax.ShapeDtypeStruct((batches, heads, queries), jnp.float32)))


def _run_backward(rule, target, grad, query, key, value, lse, delta):
    results = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (query, key, value))
    return _call(rule, target, "fp8.attention_backward", (grad, query, key, value, lse, delta), results)


def _share(mesh, query, key):
    """How a mesh shares what has batches and heads: arrays, and rows of numbers, of which the second dimension are heads."""
    batches, heads = (partitioned.get_axes(query.sharding, dim) for dim in (0, 2))
    heads = tuple(axis for axis in heads if axis not in batches)
    size = numpy.prod([mesh.shape[axis] for axis in heads], dtype=int)
    if key.shape[2] % size:
        heads = ()
    array = NamedSharding(mesh, PartitionSpec(batches or None, None, heads or None, None))
    return array, NamedSharding(mesh, PartitionSpec(batches or None, heads or None, None))


@functools.lru_cache(maxsize=None)
def _make(rule, target):
    """The function of query, key and value, with its gradient."""
    forward = functools.partial(_run_forward, rule, target)
    backward = functools.partial(_run_backward, rule, target)

    def partition_forward(mesh, arguments, results):
        array, rows = _share(mesh, *arguments[:2])
        return mesh, forward, (array, rows), (array,) * 3

    def partition_backward(mesh, arguments, results):
        array, rows = _share(mesh, *arguments[1:3])
        return mesh, backward, (array,) * 3, (*(array,) * 4, rows, rows)

    shared_forward = partitioned.make(
        forward, partition_forward, sharding_rule="b s h d, b t g d, b t g e -> b s h e, b h s")
    shared_backward = partitioned.make(
        backward, partition_backward,
        sharding_rule="b s h e, b s h d, b t g d, b t g e, b h s, b h s -> b s h d, b t g d, b t g e")

    def choose(shared, function, query):
        return shared if partitioned.shares_arrays() and not partitioned.is_manual() else function

    @jax.custom_vjp
    def attend(query, key, value):
        return run(query, key, value)[0]

    def run(query, key, value):
        output, lse = choose(shared_forward, forward, query)(query, key, value)
        return output, (query, key, value, output, lse)

    def differentiate(saved, grad):
        query, key, value, output, lse = saved
        products = grad.astype(jnp.float32) * output.astype(jnp.float32)
        delta = jnp.moveaxis(products.sum(-1), 1, 2)
        results = choose(shared_backward, backward, query)(grad, query, key, value, lse, delta)
        return tuple(partitioned.add_to_match(result, given)
                     for result, given in zip(results, (query, key, value)))

    attend.defvjp(run, differentiate)

    def call(query, key, value):
        mesh = partitioned.find_mesh(query, key, value)
        if mesh is None or partitioned.is_manual():
            return attend(query, key, value)
        array = PartitionSpec(*(jax.typeof(query).sharding.spec[dim] if dim in (0, 2) else None for dim in range(4)))
        return jax.sharding.auto_axes(attend, out_sharding=array)(query, key, value)

    return jax.jit(call)
