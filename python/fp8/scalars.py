"""Numbers of Python as the scalars of a program."""

import numpy as np

from fp8.errors import make_error, shorten
from fp8.tensors import DTYPES

_INVALID_ARGUMENT = 1


def make_scalar(value, dtype, description):
    """An array of rank 0, of a dtype such as "BF16", for an argument that errors call by
    `description`. Raises ArgumentError unless the number is one of the dtype's kind, and
    in its range."""
    target = np.dtype(DTYPES[dtype])
    whole = target.kind in "iu"
    try:
        if isinstance(value, complex) or (whole and value != int(value)):
            raise ValueError
        if whole and not np.iinfo(target).min <= value <= np.iinfo(target).max:
            raise ValueError
        return np.array(int(value) if whole else value, target)
    except Exception:  # Its type may make anything of a conversion.
        raise make_error(_INVALID_ARGUMENT, f"expected {description} to be {dtype}, but got "
                                            f"{_write(value)}") from None


def _write(value):
    try:
        return shorten(repr(value))
    except Exception:  # An int that has too many digits, or a repr of its own.
        return f"a number of the type {type(value).__name__}"
