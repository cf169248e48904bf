"""Takes a JAX function to linalg, as fp8-run and fp8-compile read it.

usage: from_jax.py MODEL.py:NAME -o OUT.mlir [--name FUNCTION] [--gradient ARGUMENT]...

NAME is a function that returns a function, its parameters, a tree of arrays, and a
tuple of example arguments. OUT.mlir gets a function of the leaves of the parameters,
by their paths there, and then of the arguments; OUT.safetensors gets the values of
the first. Contractions are called after the `jax.named_scope` that they stand in.

Needs jax==0.10.2 and iree-base-compiler==3.13.0.
"""

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


if __name__ == "__main__":
    imports.run_importer(convert, "JAX")
