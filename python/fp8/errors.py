"""Exceptions. Messages are the compiler's and the runtime's, in one line; `status` is the
name that include/fp8/Runtime/Status.h has for the kind of error, e.g. "MISMATCH"."""

from collections import namedtuple

# From the compiler, of a place in a source: `severity` is "note", "warning", "error" or
# "remark". `line` and `column` count from 1 and are 0 where they are not known; `text` is
# what a terminal would show, with the line of the source.
Diagnostic = namedtuple("Diagnostic", "severity line column file message text")
_SEVERITIES = ("note", "warning", "error", "remark")


class Error(Exception):
    """Every exception of this package."""

    status = "INTERNAL"


class CompileError(Error):
    """A program with mistakes, or one that the recipe or the target does not fit.
    `diagnostics` has all that was said of it."""

    diagnostics = ()

    def __str__(self):
        texts = [d.text.rstrip() for d in self.diagnostics if d.severity in ("error", "note")]
        return "\n".join([super().__str__(), *texts]) if texts else super().__str__()


class ArgumentError(Error, ValueError):
    """A value, an array or a number of them that a function does not take."""


class NotFoundError(Error, LookupError):
    """A name that there is not."""


class FileError(Error, OSError):
    """A file that cannot be read or written, or is not what it should be."""


class MismatchError(Error, ValueError):
    """A state, or a saved one, of another program or another version."""


class BusyError(Error, RuntimeError):
    """An object that another thread, or a call that was interrupted, is using."""


class DeviceError(Error, RuntimeError):
    """Memory in the wrong place, or what went wrong on a GPU."""


class UnsupportedError(Error, RuntimeError):
    """What this machine cannot do."""


class OutOfMemoryError(Error, MemoryError):
    """Memory, of the host or of a device, that is not there."""


# In the order of the statuses.
_KINDS = (
    ("OK", Error), ("INVALID_ARGUMENT", ArgumentError), ("INVALID_HANDLE", ArgumentError),
    ("BUSY", BusyError), ("NOT_FOUND", NotFoundError), ("INVALID_MANIFEST", FileError),
    ("FILE", FileError), ("VERSION", MismatchError), ("MISMATCH", MismatchError),
    ("OUT_OF_MEMORY", OutOfMemoryError), ("INTERNAL", Error), ("NO_DRIVER", UnsupportedError),
    ("DRIVER_TOO_OLD", UnsupportedError), ("UNSUPPORTED_ARCH", UnsupportedError),
    ("INVALID_IMAGE", FileError), ("WRONG_DEVICE", DeviceError), ("DEVICE_LOST", DeviceError),
    ("CUDA", DeviceError), ("INVALID_PROGRAM", CompileError), ("ON_DEVICE", DeviceError),
    ("STOPPED", Error),
)


# The longest text that a message quotes.
_LONGEST = 200


def shorten(text):
    """A text for a message: cut in the middle where it is long, and without what is no text,
    such as halves of surrogates."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2 - 10
    return f"{text[:half]} ... {text[-half:]} ({len(text)} characters)"


def make_diagnostics(entries):
    """Diagnostics of what fp8._core has of them."""
    return tuple(Diagnostic(_SEVERITIES[entry[0]], *entry[1:]) for entry in entries)


def make_error(status, message, diagnostics=()):
    """The exception for a status of the C API."""
    name, kind = _KINDS[status] if status < len(_KINDS) else (str(status), Error)
    error = kind(message)
    error.status = name
    if diagnostics:
        error.diagnostics = make_diagnostics(diagnostics)
    return error
