"""What fp8.torch compiles for models: what was expected, by fp8.torch.prepare, and what was not."""

import contextlib
import threading
import warnings

import fp8
from fp8 import programs

# What was compiled ahead, in whatever form: layers, and attention of some heads, by what there is of them.
_kinds = set()
_lock = threading.Lock()
_preparing, _compiled = 0, 0


@contextlib.contextmanager
def preparing():
    """Within it all is expected. Yields a function that says how many programs were compiled, rather than found."""
    global _preparing
    with _lock:
        _preparing += 1
        before = _compiled
    try:
        yield lambda: _compiled - before
    finally:
        with _lock:
            _preparing -= 1


def add(*kinds):
    """Expects what is of these kinds."""
    with _lock:
        _kinds.update(kinds)


def clear():
    """Forgets all, for tests."""
    _kinds.clear()


def compile(describe, kinds, text, **options):
    """fp8.compile of a program that is of some `kinds`. Once one of them was prepared, and only where something has to
    be compiled, it is a warning, with what `describe()` says that it is."""
    def note():
        global _compiled
        with _lock:
            _compiled += 1
            is_expected = _preparing or _kinds.isdisjoint(kinds)
        if not is_expected:
            warnings.warn(f"fp8: a call compiles {describe()}, which fp8.torch.prepare was not told of: its calls= are "
                          f"what it is to do ahead", stacklevel=8)

    if _preparing:
        add(*kinds)
    with programs.noting(note):
        return fp8.compile(text, **options)
