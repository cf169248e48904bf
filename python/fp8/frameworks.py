"""What modules for a framework ask before they import it."""

import importlib.metadata
import importlib.util
import re

from fp8.errors import UnsupportedError


def _read(version):
    """The numbers that a version begins with."""
    return tuple(int(part) for part in re.match(r"[\d.]*", version)[0].split(".") if part)


def require(package, least, hint=""):
    """Raises UnsupportedError unless a package is there, of a version that these modules know; `hint` says what is without it."""
    module = package.replace("-", "_")
    if importlib.util.find_spec(module) is None:
        raise UnsupportedError(f"expected the package {package}, {least} or newer, but it is not "
                               f"installed{hint}")
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return  # Somebody's own build, which says nothing.
    if _read(version) < _read(least):
        raise UnsupportedError(f"expected {package} {least} or newer, but got {version}")
