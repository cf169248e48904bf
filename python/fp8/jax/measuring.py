"""What every recipe does to a function of JAX: `fp8.jax.report`."""

import numpy

from fp8 import imports, report as reports, report_page
from fp8.errors import UnsupportedError
from fp8.jax import importer


def report(function, *arguments, path, weights=None, gradients=(), recipes=reports.RECIPES,
           note=lambda text: None):
    """Writes a page of what every recipe does to a function of these arguments, such as what jax.grad
    made of a loss, to `path`, and the recipe file that says which recipe is for which product beside it,
    with the ending .json. Returns fp8.report.Measurements.

    `weights` and `gradients` are as fp8.jax.compile has them, others as fp8.report.measure. Products
    are called after the `jax.named_scope`s around them. Raises ArgumentError,
    UnsupportedError and FileError.
    """
    paths = report_page.name_files(path)
    try:
        program = importer.convert(function, arguments, weights=weights, gradients=gradients)
    except imports.UnsupportedProgram as error:
        raise UnsupportedError(str(error)) from error
    inputs = {name: numpy.asarray(leaf)
              for name, leaf in importer.name_arguments(function, arguments)}
    measured = reports.measure(program.text, inputs, "main", recipes, note)
    measured.program = getattr(function, "__name__", "function")
    report_page.write_files(measured, paths)
    return measured
