"""Compiled programs on disk.

An entry is a directory, named after all that a program depends on, with the shared object
and what the compiler said. It appears by being renamed, whole, so that any number of
processes may look for it and make it at the same time. What does not fit its checksum is
made anew. Entries hold code that is run: only the user may write to the directory.
"""

import functools
import hashlib
import json
import os
import platform
import shutil
import stat
import tempfile
from pathlib import Path

from fp8 import _core
from fp8.errors import Error


def get_directory():
    """Where compile(cache=True) keeps programs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "fp8" / "programs"


def clear(directory=None):
    """Removes all entries."""
    shutil.rmtree(directory or get_directory(), ignore_errors=True)


@functools.lru_cache(maxsize=None)
def _describe_machine():
    """The compiler, by the files that it is in, and the processor that it compiles for."""
    files = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.partition("/")[2] and "/" + line.partition("/")[2].rstrip("\n")
            if os.path.basename(path).startswith(("libfp8", "libMLIR.so", "libLLVM.so", "_core.")):
                files.add(path)
    compiler = []
    for path in sorted(files):
        status = os.stat(path)
        compiler.append((os.path.basename(path), status.st_size, status.st_mtime_ns))
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        cpu = sorted({line for line in file if line.startswith(("model name", "flags"))})
    return [compiler, cpu, platform.machine(), shutil.which("ptxas"), os.environ.get("CUDA_HOME")]


def _make_key(text, name, options):
    digest = hashlib.sha256()
    files = {key for key, value, _ in _core.get_options() if value == "FILE"}
    # The emulator runs kernels as PTX.
    described = [_describe_machine(), name, os.environ.get("FP8_CUDA_DRIVER")]
    for key, value in options:
        described.append((key, value))
        paths = [value] if key in files else []
        if key == "recipe":  # Of `static`, a saved state.
            paths = [part.partition("=")[2] for part in value.split(",")
                     if part.startswith("state=")]
        for path in paths:
            described.append(hashlib.sha256(Path(path).read_bytes()).hexdigest())
    digest.update(json.dumps(described).encode() + b"\0" + text)
    return digest.hexdigest()


class Entry:
    """Where a program is, or will be."""

    def __init__(self, path):
        self._path = path

    def load(self):
        """(program, remarks, diagnostics) as fp8._core has them, or None."""
        if not self._path.exists():
            return None
        try:
            notes = json.loads((self._path / "notes.json").read_bytes())
            code = self._path / "program.so"
            if hashlib.sha256(code.read_bytes()).hexdigest() != notes["checksum"]:
                raise ValueError
            return _core.load_program(str(code)), notes["remarks"], notes["diagnostics"]
        except (OSError, ValueError, KeyError, TypeError, Error):
            shutil.rmtree(self._path, ignore_errors=True)
            return None

    def save(self, program, remarks, diagnostics):
        """Keeps a program, or does not: without a linker, space or the right to."""
        draft = None
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self._path.parent))
            program.save(str(draft / "program.so"), None)
            checksum = hashlib.sha256((draft / "program.so").read_bytes()).hexdigest()
            (draft / "notes.json").write_text(json.dumps(
                {"checksum": checksum, "remarks": remarks, "diagnostics": diagnostics}))
            draft.rename(self._path)
        except (OSError, Error):
            pass  # Also if another process was faster.
        finally:
            if draft is not None:
                shutil.rmtree(draft, ignore_errors=True)


def find(cache, text, name, options):
    """The Entry of a compilation, or None where it is not to be kept: `cache` is what
    compile takes."""
    if cache is False or cache is None:
        return None
    directory = get_directory() if cache is True else Path(cache)
    try:
        if any(key in ("fusion-report", "stats", "tune") for key, _ in options):
            return None  # It writes a file; or slots that belong to this process.
        if directory.exists():
            status = os.stat(directory)
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
        return Entry(directory / _make_key(text, name, options))
    except OSError:
        return None  # A file that cannot be read: the compiler says so.
