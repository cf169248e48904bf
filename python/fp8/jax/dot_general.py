"""Matrix products in FP8 where a library of JAX takes its `dot_general` from outside, as flax does.

    nnx.Linear(64, 128, dot_general=fp8.jax.DotGeneral("rowwise"), rngs=rngs)
"""

import math

import jax
from jax import lax

from fp8 import recipes
from fp8.errors import ArgumentError
from fp8.jax import partitioned
from fp8.jax.compiled import compile

# What programs take.
_DTYPES = "float32", "bfloat16", "float16"


def _multiply(weight, x):
    """x of M x K and a weight of K x N. Sums are f32."""
    return lax.dot_general(x, weight, (((1,), (0,)), ((), ())),
                           preferred_element_type=jax.numpy.float32).astype(x.dtype)


class DotGeneral:
    """In place of jax.lax.dot_general, forward and backward: the second operand is the weight.

    - recipe, target, options: as fp8.jax.compile takes them; a recipe with a state is an error, since
      several layers may share this.

    Products with dimensions of a batch, of other dtypes, of two that differ, or with nothing in them are
    jax.lax's. `products` is the compiled function, with remarks and versions.

    Where a mesh of devices shares the arrays, each device multiplies the rows and columns that it has.
    """

    def __init__(self, recipe, *, target="auto", **options):
        if isinstance(recipes.parse(recipe), recipes.DelayedScaling):
            raise ArgumentError("expected a recipe without a state, which layers would share, but got "
                                f"'{recipes.get_text(recipe)}'")
        self.products = compile(_multiply, recipe, weights=["weight"], target=target, **options)
        self._product = partitioned.Product(self.products)

    def __call__(self, lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, *,
                 out_sharding=None, **others):
        (left, right), (left_batch, right_batch) = dimension_numbers
        dtype = str(lhs.dtype)
        if (left_batch or right_batch or out_sharding is not None or dtype not in _DTYPES
                or rhs.dtype != lhs.dtype or not lhs.size or not rhs.size or not left):
            given = {} if out_sharding is None else {"out_sharding": out_sharding}
            return lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type,
                                   **given, **others)
        x, rows = _collect(lhs, left, True)
        weight, columns = _collect(rhs, right, False)
        y = self._multiply(weight, x).reshape(*rows, *columns)
        return y if preferred_element_type is None else y.astype(preferred_element_type)

    def _multiply(self, weight, x):
        if not partitioned.shares_arrays() or partitioned.is_manual():
            return self.products(weight, x)
        if partitioned.find_mesh(weight, x) is not None:
            return partitioned.multiply_explicit(self._product, weight, x)
        return self._product(weight, x)

    def __repr__(self):
        return f"<fp8 products of {self.products._recipe}>"


def _collect(array, contracted, is_last):
    """A matrix with the contracted dimensions at its end or its beginning, and the sizes of others."""
    kept = [dim for dim in range(array.ndim) if dim not in contracted]
    order = [*kept, *contracted] if is_last else [*contracted, *kept]
    sizes = tuple(array.shape[dim] for dim in kept)
    inner = math.prod(array.shape[dim] for dim in contracted)
    matrix = lax.transpose(array, order) if order != list(range(array.ndim)) else array
    shape = (math.prod(sizes), inner) if is_last else (inner, math.prod(sizes))
    return matrix.reshape(shape), sizes
