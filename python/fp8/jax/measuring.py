"""What every recipe does to a function of JAX: `fp8.jax.report`."""

from pathlib import Path

import numpy

from fp8 import files, imports, report as reports, report_page
from fp8.errors import FileError, UnsupportedError
from fp8.jax import importer


def report(function, *arguments, path, weights=None, gradients=(), recipes=reports.RECIPES,
           note=lambda text: None):
    """Writes a page of what every recipe does to a function of these arguments, such as what jax.grad
    made of a loss, to `path`, and the recipe file that says which recipe is for which product beside it,
    with the ending .json. Returns fp8.report.Measurements.

    `weights` and `gradients` are as fp8.jax.compile has them, others as fp8.report.measure. Products
    are called after the `jax.named_scope`s around them. Raises UnsupportedError and FileError.
    """
    try:
        program = importer.convert(function, arguments, weights=weights, gradients=gradients)
    except imports.UnsupportedProgram as error:
        raise UnsupportedError(str(error)) from error
    inputs = {name: numpy.asarray(leaf)
              for name, leaf in importer.name_arguments(function, arguments)}
    measured, path = reports.measure(program.text, inputs, "main", recipes, note), Path(path)
    measured.program = getattr(function, "__name__", "function")
    try:
        files.write_text(path, report_page.write_page(measured))
        files.write_text(path.with_suffix(".json"), measured.write_recipe_file())
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    return measured
