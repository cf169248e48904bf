"""Whether a program that was imported computes what its framework does, on an example."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from fp8 import imports, tensors
from fp8.errors import Error, shorten

# Errors that the order of sums makes, in the 2-norm and as shares of the largest element, by the
# coarsest floating-point type of arguments and results.
_LIMITS = {"float64": 1e-5, "float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}
_LARGEST = 10


class Unchecked(Exception):
    """Why a program could not be compared; it may be right."""


def check(text, name, arguments, expected):
    """Runs function `name` of a program on arrays by the names of its arguments, and compares.

    - expected: arrays by the names of results, `result0`, ... where they have none.

    Raises UnsupportedProgram for a result that is another one, and Unchecked.
    """
    got = _run(text, name, arguments)
    if got.keys() != expected.keys():
        raise Unchecked(f"it returns {', '.join(got) or 'nothing'}, and the framework "
                        f"{', '.join(expected) or 'nothing'}")
    limit = max((_LIMITS.get(str(array.dtype), 0) for array in [*arguments.values(),
                                                                *expected.values()]), default=0)
    for key, result in got.items():
        problem = _compare(result, expected[key], limit)
        if problem:
            raise imports.UnsupportedProgram(
                f"expected what becomes a program of the same results, but of '{key}' {problem}; "
                f"--no-check writes the program all the same")


def _compare(result, expected, limit):
    """What is wrong with a result, or None."""
    if result.shape != expected.shape:
        return f"the shape is {list(result.shape)} for {list(expected.shape)}"
    if expected.dtype.kind in "biu":
        differ = int((result != expected).sum())
        return f"{differ} of {expected.size} elements differ" if differ else None
    result, expected = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not (np.isfinite(result) == finite).all():
        return "elements that are not finite are others"
    error, size = np.abs(result - expected)[finite], np.abs(expected)[finite]
    norm, largest = np.linalg.norm(size), size.max(initial=0)
    if np.linalg.norm(error) <= limit * norm and (
            error.max(initial=0) <= _LARGEST * limit * largest):
        return None
    return f"the error is {np.linalg.norm(error) / max(norm, 1e-300):.2g} of its norm"


def _run(text, name, arguments):
    """The results by name."""
    try:
        import fp8
        compile = fp8.compile
    except ImportError:
        return _run_tool(text, name, arguments)
    try:
        function = compile(text, target="cpu", cache=False).functions[name]
        results = function(*[arguments[info.name] for info in function.arguments])
    except Error as error:
        raise Unchecked(shorten(str(error).partition("\n")[0])) from error
    results = results if isinstance(results, tuple) else (results,)
    return {info.name: np.asarray(result) for info, result in zip(function.results, results)}


def _run_tool(text, name, arguments):
    """The same by fp8-run, where the package has no extension for this Python."""
    built = Path(__file__).resolve().parents[2] / "build" / "bin" / "fp8-run"
    tool = shutil.which("fp8-run") or (built if built.exists() else None)
    if tool is None:
        raise Unchecked("it takes fp8-run, which is not on the PATH")
    with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
        source, inputs, outputs = (Path(folder, file) for file in ("a.mlir", "in", "out"))
        source.write_text(text)
        tensors.save(inputs, arguments)
        done = subprocess.run([tool, source, f"--entry={name}", f"--inputs={inputs}",
                               f"--outputs={outputs}"], capture_output=True, text=True)
        if done.returncode:
            raise Unchecked(shorten((done.stderr.strip() or "fp8-run fails").split("\n")[0]))
        return tensors.load(outputs)
