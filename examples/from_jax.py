"""Takes a JAX function to linalg, as fp8-run and fp8-compile read it.

usage: from_jax.py MODEL.py:NAME -o OUT.mlir [--name FUNCTION] [--gradient ARGUMENT]...
                   [--no-check]

NAME is a function that returns a function, its parameters, a tree of arrays, and a
tuple of example arguments. OUT.mlir gets a function of the leaves of the parameters,
by their paths there, and then of the arguments; OUT.safetensors gets the values of
the first. Contractions are called after the `jax.named_scope` that they stand in.
Unless --no-check is given, the program is run on the example's arguments and has to
compute what the function does.

Needs jax==0.10.2 and iree-base-compiler==3.13.0.
"""

import jax
import numpy as np
from fp8 import imports
from fp8.jax import importer


def convert(function, parameters, arguments, name="main", gradients=()):
    """The program of a function as text, and its parameters by name.

    Raises UnsupportedProgram, and what JAX raises.
    """
    program = importer.convert(function, (parameters, *arguments), name=name, gradients=gradients)
    return program.text, {path: np.asarray(leaf)
                          for path, leaf in importer.name_arguments(function, (parameters,))}


def compute(function, parameters, arguments):
    """A function's arguments, and what it makes of them, by the names in its program."""
    named = importer.name_arguments(function, (parameters, *arguments))
    count = len(importer.name_arguments(function, (parameters,)))
    results = importer.name_leaves(jax.jit(function)(parameters, *arguments))
    return ({path: np.asarray(leaf) for path, leaf in named[count:]},
            {path if path[:1].isalpha() else f"result{number}": np.asarray(leaf)
             for number, (path, leaf) in enumerate(results)})


if __name__ == "__main__":
    imports.run_importer(convert, "JAX", compute)
