"""Compiled programs on disk.

An entry is a directory, named after all that a program depends on, with the shared object
and what the compiler said. It appears by being renamed, whole, so that any number of
processes may look for it and make it at the same time; one alone does where files can be locked,
and the others wait for it. What does not fit its checksum is made anew. Entries hold code that is run: only the user may have written them, or be able to
put others in their place. include/fp8/Support/CacheDirectory.h asks the same for kernels.
"""

import contextlib
import fcntl
import functools
import grp
import hashlib
import json
import os
import platform
import pwd
import shutil
import stat
import tempfile
import time
import warnings
from pathlib import Path

from fp8 import _core
from fp8.errors import ArgumentError, Error, shorten


# Seconds. Who has a file may not be gone with its process: a child of it that was forked meanwhile has it, too.
_LONGEST_WAIT, _LONGEST_PAUSE = 240, 0.1


def get_directory():
    """Where compile(cache=True) keeps programs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "fp8" / "programs"


class Refusal(Exception):
    """Why something in a cache is not used."""


def _check_owner(path, status, kind):
    """Raises Refusal for what somebody else has made, or can change."""
    if status.st_uid != os.geteuid():
        raise Refusal(f"'{path}': expected a {kind} of user {os.geteuid()}, but got one of user "
                       f"{status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Refusal(f"'{path}': expected a {kind} that nobody else may write to, but got one of "
                       f"mode {stat.S_IMODE(status.st_mode):04o}")


def _is_private_group(group):
    """Whether nobody but the user is in it."""
    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and (
        set(found.gr_mem) <= {user.pw_name})


def check_directory(directory):
    """Raises Refusal unless a directory, or what there is of the way to it, is safe."""
    path = Path(os.path.realpath(directory))
    if path.exists():
        _check_owner(path, os.stat(path), "directory")
    for folder in path.parents:
        try:
            status = os.stat(folder)
        except FileNotFoundError:
            continue  # The user's, when it is made.
        if status.st_uid not in (os.geteuid(), 0):
            raise Refusal(f"'{path}': expected it in folders of user {os.geteuid()} or root, but "
                           f"'{folder}' is one of user {status.st_uid}")
        others = status.st_mode & stat.S_IWOTH or (
            status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid))
        if others and not status.st_mode & stat.S_ISVTX:
            raise Refusal(f"'{path}': expected it in folders that nobody else may write to, but "
                           f"'{folder}' is none")


def read(path):
    """The bytes of a file of an entry; raises Refusal, OSError."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refusal(f"'{path}': expected a regular file")
        _check_owner(path, status, "file")
        return file.read()


@functools.lru_cache(maxsize=None)
def _warn(reason):
    """Once in a process."""
    warnings.warn(f"the cache of programs is not used: {reason}", RuntimeWarning, stacklevel=5)


def clear(directory=None):
    """Removes all entries."""
    shutil.rmtree(directory or get_directory(), ignore_errors=True)


def _find_libraries(*names):
    """The files whose names begin so that are loaded."""
    files = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.partition("/")[2] and "/" + line.partition("/")[2].rstrip("\n")
            if os.path.basename(path).startswith(names):
                files.add(path)
    return sorted(files)


@functools.lru_cache(maxsize=None)
def describe_compiler():
    """The compiler, the same on each machine that has it: what is in its own files, and which LLVM it has."""
    digest = hashlib.sha256()
    for path in _find_libraries("libfp8c", "libfp8tools", "libfp8rt"):
        digest.update(os.path.basename(path).encode() + Path(path).read_bytes())
    for path in _find_libraries("libMLIR.so", "libLLVM.so"):
        digest.update(f"{os.path.basename(path)} {os.stat(path).st_size}".encode())
    return digest.hexdigest()


@functools.lru_cache(maxsize=None)
def _describe_machine():
    """The compiler, by the files that it is in, and the processor that it compiles for."""
    compiler = []
    for path in _find_libraries("libfp8", "libMLIR.so", "libLLVM.so", "_core."):
        status = os.stat(path)
        compiler.append((os.path.basename(path), status.st_size, status.st_mtime_ns))
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        cpu = sorted({line for line in file if line.startswith(("model name", "flags"))})
    return [compiler, cpu, platform.machine(), shutil.which("ptxas"), os.environ.get("CUDA_HOME")]


def make_key(text, name, options, machine=None):
    """What a program is called by: `machine` is what of this one it depends on. Raises OSError for a file
    that an option names, and that cannot be read."""
    digest = hashlib.sha256()
    files = {key for key, value, _ in _core.get_options() if value == "FILE"}
    # The emulator runs kernels as PTX.
    described = [machine, name, os.environ.get("FP8_CUDA_DRIVER")]
    for key, value in options:
        described.append((key, value))
        paths = [value] if key in files else []
        if key == "recipe":  # `static` has a saved state.
            paths = [part.partition("=")[2] for part in value.split(",")
                     if part.startswith("state=")]
        for path in paths:
            if not os.path.isfile(path):
                raise OSError  # A pipe can be read only once, by the compiler.
            described.append(hashlib.sha256(Path(path).read_bytes()).hexdigest())
    digest.update(json.dumps(described).encode() + b"\0" + text)
    return digest.hexdigest()


def writes_files(options):
    """Whether a compilation has another result than its program: a file, or slots that belong to this process."""
    return any(key in ("fusion-report", "stats", "tune") for key, _ in options)


def _lock(descriptor):
    """Whether a file is this one's at once; otherwise waits until it could be. Raises OSError where files cannot be locked."""
    start, pause = time.monotonic(), 0.01
    while time.monotonic() - start < _LONGEST_WAIT:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            continue
        if pause == 0.01:
            return True
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        break
    return False


class Entry:
    """Where a program is, or will be."""

    @property
    def path(self):
        """Its file, or None where there is none."""
        path = self._path / "program.so"
        return path if not self._is_refused and path.exists() else None

    def __init__(self, path):
        self._path = path
        self._is_refused = False

    def load(self):
        """(program, remarks, diagnostics) as fp8._core has them, or None."""
        try:
            status = os.lstat(self._path)
        except OSError:
            return None  # Nothing is there, or can be.
        try:
            _check_owner(self._path, status, "directory")
            notes = json.loads(read(self._path / "notes.json"))
            code = self._path / "program.so"
            if hashlib.sha256(read(code)).hexdigest() != notes["checksum"]:
                raise ValueError
            return _core.load_program(str(code)), notes["remarks"], notes["diagnostics"]
        except Refusal as refusal:
            _warn(str(refusal))
            self._is_refused = True
            return None
        except (OSError, ValueError, KeyError, TypeError, Error):
            shutil.rmtree(self._path, ignore_errors=True)
            return None

    @contextlib.contextmanager
    def claim(self):
        """Within it, who claims it in another process or thread waits. Who has waited has nobody wait: where the program is not
        there then, as without a linker, all compile at once. It saves work, and nothing depends on it."""
        path, descriptor, is_ours = self._path.parent / f".lock-{self._path.name}", None, False
        try:
            try:
                if not self._is_refused:
                    self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                is_ours = descriptor is not None and _lock(descriptor)
            except OSError:
                pass  # Not a place to write to, or none whose files can be locked.
            yield
        finally:
            if is_ours:
                # Others that have opened it look whether the program is there.
                with contextlib.suppress(OSError):
                    os.unlink(path)
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)

    def save(self, program, remarks, diagnostics):
        """Keeps a program, or does not: without a linker, space or the right to."""
        if self._is_refused:
            return  # It is not ours to remove.
        draft = None
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self._path.parent))
            program.save(str(draft / "program.so"), None)
            checksum = hashlib.sha256((draft / "program.so").read_bytes()).hexdigest()
            (draft / "notes.json").write_text(json.dumps(
                {"checksum": checksum, "remarks": remarks, "diagnostics": diagnostics}))
            for name in ("program.so", "notes.json"):  # Whatever the umask lets others do.
                (draft / name).chmod(0o600)
            draft.rename(self._path)
        except (OSError, Error):
            pass  # Also if another process was faster.
        finally:
            if draft is not None:
                shutil.rmtree(draft, ignore_errors=True)


def _get_path(cache):
    """The directory that compile(cache=...) names."""
    try:
        path = os.fspath(cache)
    except TypeError:
        path = b""
    if not isinstance(path, str) or "\0" in path:
        raise ArgumentError(f"expected cache to be True, False or a path without null characters, "
                            f"but got {shorten(repr(cache))}")
    return Path(path)


def find(cache, text, name, options):
    """The Entry of a compilation, or None where it is not to be kept: `cache` is what
    compile takes."""
    if cache is False or cache is None:
        return None
    directory = get_directory() if cache is True else _get_path(cache)
    try:
        if writes_files(options):
            return None
        check_directory(directory)
        return Entry(directory / make_key(text, name, options, _describe_machine()))
    except Refusal as refusal:
        _warn(str(refusal))
        return None
    except OSError:
        return None  # A file that cannot be read: the compiler says so.
