"""Parameters and inputs of the models here, the same on every machine: each tensor
depends on its name and shape only, so that no file of weights is needed."""

import math
import zlib

import numpy as np


def make_tensor(name, shape):
    """A parameter in f32: matrices have rows of unit length or so, gains are near 1."""
    values = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
    if len(shape) >= 2:
        values /= math.sqrt(math.prod(shape[1:]))
    else:
        values = 0.1 * values + name.endswith("norm.weight")
    return values.astype(np.float32)


def make_tokens(name, shape, count=100):
    """Token numbers below `count`."""
    return np.random.default_rng(zlib.crc32(name.encode())).integers(0, count, shape)


def make_input(name, shape, dtype):
    """An argument of a model: tokens or values."""
    return make_tokens(name, shape) if dtype == "i64" else (
        make_tensor(name, (1, *shape))[0] * math.sqrt(math.prod(shape)))
