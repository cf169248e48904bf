"""Compiling."""

import contextlib
import os
import sys
import threading
import time

from fp8 import _core, cache as caches, files, programs
from fp8.errors import ArgumentError, Diagnostic, Error, make_diagnostics, make_error, shorten
from fp8.program import Program
from fp8.recipes import Recipe, get_attention_text, get_text, write_transforms
from fp8.remarks import make_remarks

_FILE_ERROR = 6
_line = threading.Lock()  # Who has it says progress on the terminal.
# What a GPU of a compute capability runs.
_TARGETS = {(8, 0): "sm_80", (8, 9): "sm_89", (9, 0): "sm_90a", (10, 0): "sm_100a", (12, 0): "sm_120a", (12, 1): "sm_121a"}
# What the driver of any other GPU assembles PTX of, from that compute capability on.
_PORTABLE = (((8, 9), "sm_89"), ((8, 0), "sm_80"))


def get_target(capability):
    """What a GPU of that compute capability runs, or "cpu" if that is nothing; and whether it is code of another one,
    which the driver assembles from PTX."""
    if capability in _TARGETS:
        return _TARGETS[capability], False
    for first, target in _PORTABLE:
        if capability is not None and capability >= first:
            return target, True
    return "cpu", False


def _get_first_gpu():
    """(its name, its compute capability), ("", None) if there is none."""
    try:
        devices = _core.get_devices()
    except Error:
        devices = []
    return devices[0] if devices else ("", None)


def find_default():
    """The target of the first GPU if it has one, else "cpu"; and its name."""
    name, capability = _get_first_gpu()
    return get_target(capability)[0], name


def get_default_target():
    """The target of the first GPU if it has one, else "cpu"."""
    return find_default()[0]


class _Progress:
    """A line on a terminal, after two seconds, that says what the compiler is at."""

    def __init__(self, name):
        self._name, self._start, self._width = name, time.monotonic(), 0

    def __call__(self, step):
        seconds = time.monotonic() - self._start
        if seconds >= 2:
            line = f"fp8: {self._name}: {step} ({seconds:.0f} s)"[:79]
            sys.stderr.write(f"\r{line:{self._width}}")
            sys.stderr.flush()
            self._width = max(self._width, len(line))

    def close(self):
        if self._width:
            sys.stderr.write(f"\r{'':{self._width}}\r")
            sys.stderr.flush()


def _read(source):
    """(text as bytes, the name that diagnostics call it by)."""
    if isinstance(source, (bytes, bytearray)):
        return bytes(source), "source"
    if isinstance(source, str) and ("\n" in source or "{" in source):
        try:
            return source.encode(), "source"
        except UnicodeEncodeError as error:
            raise ArgumentError(f"expected MLIR in UTF-8, but got: {error.reason}") from None
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(f"expected MLIR as text or bytecode, or a path, but got "
                            f"{type(source).__name__}")
    path = os.fspath(source)
    try:
        return files.read(path), path
    except OSError as error:
        raise make_error(_FILE_ERROR, f"{shorten(str(path))}: {error.strerror}") from error
    except ValueError:  # A null character, or half of a surrogate.
        raise ArgumentError(f"expected the path of a source without null characters, but got "
                            f"{shorten(repr(path))}") from None


def _write_option(value):
    if isinstance(value, Recipe):
        return get_text(value)
    return str(value).lower() if isinstance(value, bool) else os.fspath(value) if isinstance(
        value, os.PathLike) else str(value)


def _make_options(recipe, target, options):
    name, is_portable = "", False
    if isinstance(target, (list, tuple)):
        target = ",".join(target)
    if target == "auto":
        name, capability = _get_first_gpu()
        target, is_portable = get_target(capability)
    pairs = [("recipe", get_text(recipe)), ("target", target)]
    attention = get_attention_text(recipe)
    if attention is not None and options.get("attention_recipe") is None:
        pairs.append(("attention-recipe", attention))
    if is_portable:  # Machine code for another chip does not run.
        if options.get("kernel_format") is None:
            pairs.append(("kernel-format", "ptx"))
    elif name and target != "cpu" and options.get("machine") is None:
        pairs.append(("machine", f"device:{name}"))
    level = os.environ.get("FP8_OPT_LEVEL")
    if level and options.get("opt_level") is None:
        if level not in ("0", "1", "2", "3"):
            raise ArgumentError("expected FP8_OPT_LEVEL in the environment to be 0, 1, 2 or 3, but got "
                                f"{shorten(repr(level))}")
        pairs.append(("opt-level", level))
    given = options.get("attention_recipe")
    if isinstance(given, Recipe):
        options = {**options, "attention_recipe": write_transforms(get_text(given), given)}
    return pairs + [(key.replace("_", "-"), _write_option(value))
                    for key, value in options.items() if value is not None]


def _run(name, action):
    """What `action` returns of a function for progress, if a terminal is there, whose line one has of all that compile."""
    if not (sys.stderr and sys.stderr.isatty() and _line.acquire(blocking=False)):
        return action(None)
    progress = _Progress(name)
    try:
        return action(progress)
    finally:
        progress.close()
        _line.release()


def compile(source, recipe=None, *, target="auto", cache=True, **options):
    """Compiles MLIR to a Program for this process.

    - source: MLIR of func, linalg, tosa, arith, ... on tensors, or the fp8 dialect: text,
      bytecode as bytes, or the path of a file (a str without line breaks and braces is a path);
    - recipe: of fp8.recipes, or its text such as "mxfp8,mode=floor"; None computes what is
      written, in high precision. Attributes of the program and `recipe_file` go first.
      Products of attention are left to `attention_recipe`, of which `fp8_dpa` makes this recipe's;
    - target: "cpu", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a", "sm_121a", or "auto":
      what the first GPU is, else "cpu"; "portable" is
      sm_89 for any later GPU, and a list of these, or text with commas, one program for several GPUs;
    - cache: keep the program on disk and take it from there next time: True for
      `$XDG_CACHE_HOME/fp8/programs`, a path for another directory, False for none. Takes a
      linker; without one, every process compiles;
    - options: those of the compiler, e.g. recipe_file=PATH, require=True, stats=True,
      kernel_table=PATH, machine="h100", whose numbers kernels are chosen by in place of the
      first GPU's; fp8.get_options() lists them. FP8_OPT_LEVEL in the environment is what
      opt_level is where it is not given.

    Raises CompileError, with the compiler's diagnostics, for a program with mistakes;
    ArgumentError for an unknown option; FileError for a source that cannot be read.
    KeyboardInterrupt ends the wait at once, and the compilation soon after.
    """
    text, name = _read(source)
    pairs = _make_options(recipe, target, options)
    (core, remarks, diagnostics), is_new = _find(text, name, pairs, cache)
    compile_again = None if is_new else lambda: _compile(text, name, pairs)[0]
    said = _describe_portable(name) if target == "auto" else ()
    return Program(core, make_remarks(remarks), said + make_diagnostics(diagnostics), compile_again)


def _compile(text, name, pairs):
    return _run(name, lambda progress: _core.compile(text, name, pairs, progress))


def _describe_portable(file):
    """A remark where the first GPU runs another one's kernels."""
    gpu, capability = _get_first_gpu()
    target, is_portable = get_target(capability)
    if not is_portable:
        return ()
    message = (f"portable: '{gpu}' has no kernels of its own, and runs those of {target}, which the driver assembles "
               "when the program is loaded")
    return (Diagnostic("remark", 0, 0, file, message, f"{file}: remark: {message}\n"),)


def _make(text, name, pairs, entry):
    """Compiles what an Entry, or None, has not, and whether it did: another process may have been faster."""
    with contextlib.ExitStack() as stack:
        if entry is not None:
            stack.enter_context(entry.claim())
            found = entry.load()
            if found is not None:
                return found, False
        programs.note()
        found = _compile(text, name, pairs)
        if entry is not None:
            entry.save(*found)
    return found, True


def _find(text, name, pairs, cache):
    """What fp8._core has of a program: beside a checkpoint, in the cache, or compiled; and whether it was the last."""
    key = None
    if cache not in (False, None) and not caches.writes_files(pairs):
        try:
            key = caches.make_key(text, name, pairs)
        except OSError:
            pass  # A file that cannot be read: the compiler says so.
    found = programs.find(key)
    if found is not None:
        programs.keep(key, programs.get_place(key), pairs)
        return found, False
    entry = caches.find(cache, text, name, pairs)
    found = None if entry is None else entry.load()
    is_new = False
    if found is None:
        found, is_new = _make(text, name, pairs, entry)
    if entry is not None and key is not None and entry.path is not None:
        programs.keep(key, entry.path, pairs)
    return found, is_new


def emit(source, kind="mlir", recipe=None, *, target="auto", **options):
    """What comes before a program, as bytes: "mlir" (after the phase `to`, e.g.
    to="fusion"), "llvm", "ptx" or "cubin". Otherwise as compile."""
    text, name = _read(source)
    pairs = _make_options(recipe, target, options)
    return _run(name, lambda progress: _core.emit(text, name, kind, pairs, progress))[0]


def get_options():
    """(key, what its value is or "" for a flag, help) of each option of the compiler."""
    return [tuple(option) for option in _core.get_options()]
