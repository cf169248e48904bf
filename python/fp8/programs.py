"""Compiled programs beside a checkpoint, so that a process which loads it compiles nothing.

The folder has shared objects, and an index that says what each was compiled of, for which GPU and by
which compiler; maybe what another compiler, such as Inductor, made of graphs around them, too. They are code that runs: without being told to, a process takes only what its own user
has compiled, which a secret of the user's says of the index.
"""

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import threading
import warnings
from pathlib import Path

from fp8 import _core, cache, files
from fp8.errors import Error, FileError

FOLDER, INDEX, GRAPHS = "fp8_programs", "programs.json", "graphs.bin"
_VERSION = 1
_FIELDS = {"key": str, "file": str, "checksum": str, "remarks": list, "diagnostics": list, "target": str, "machine": str}

_lock = threading.Lock()
# What this process has compiled or found on disk: where it is, and its options, by key.
_known = {}
# What folders have of what fits, by key.
_attached = {}
_local = threading.local()


#===----------------------------------------------------------------------===//
# What compile does
#===----------------------------------------------------------------------===//

def find(key):
    """(program, remarks, diagnostics) of a folder, or None."""
    found = _attached.get(key)
    if found is None:
        return None
    path, entry = found
    try:
        _check_program(path, entry)  # Since the folder was looked at, somebody may have written there.
        return _core.load_program(str(path)), entry["remarks"], entry["diagnostics"]
    except (Error, cache.Refusal) as error:
        _attached.pop(key, None)
        _warn(path.parent, str(error))
        return None


def keep(key, path, options):
    """Remembers where a program is on disk."""
    with _lock:
        _known[key] = path, dict(options)


def get_place(key):
    """Where a folder has the program of a key."""
    return _attached[key][0]


@contextlib.contextmanager
def noting(note):
    """Within it, `note` is called where a program is neither in a folder nor in the cache."""
    before, _local.note = getattr(_local, "note", None), note
    try:
        yield
    finally:
        _local.note = before


def note():
    """Says that a program is being compiled."""
    if getattr(_local, "note", None) is not None:
        _local.note()


#===----------------------------------------------------------------------===//
# Whose they are
#===----------------------------------------------------------------------===//

def _get_secret(makes=False):
    """What only this user knows, None where there is nothing that nobody else can read."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    path = Path(base) / "fp8" / "key"
    try:
        if makes and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(32))
        status = os.lstat(path)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return None
        secret = cache.read(path)
        return secret if len(secret) == 32 else None
    except (OSError, cache.Refusal):
        return None


def _sign(index, secret):
    text = json.dumps({key: value for key, value in index.items() if key != "signature"}, sort_keys=True)
    return hmac.new(secret, text.encode(), "sha256").hexdigest()


def _is_own(index):
    secret = _get_secret()
    return secret is not None and hmac.compare_digest(_sign(index, secret).encode(),
                                                      str(index.get("signature")).encode("utf-8", "replace"))


#===----------------------------------------------------------------------===//
# Reading
#===----------------------------------------------------------------------===//

def _warn(folder, reason):
    warnings.warn(f"fp8: programs of '{folder}' are compiled where they are needed: {reason}", RuntimeWarning,
                  stacklevel=3)


def _read_index(path):
    """Raises FileError."""
    try:
        index = json.loads(cache.read(path))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error
    if not isinstance(index, dict) or not isinstance(index.get("version"), int):
        raise FileError(f"{path}: expected an object with a version")
    if index["version"] != _VERSION:
        return index
    entries = index.get("programs")
    if not isinstance(entries, list) or not all(
            isinstance(entry, dict) and all(isinstance(entry.get(name), kind) for name, kind in _FIELDS.items())
            for entry in entries):
        raise FileError(f"{path}: expected a list of programs, each with {', '.join(_FIELDS)}")
    for entry in entries:
        if os.path.basename(entry["file"]) != entry["file"]:
            raise FileError(f"{path}: expected the name of a file beside it, but got '{entry['file']}'")
    graphs = index.get("graphs")
    if graphs is not None and not (isinstance(graphs, dict) and isinstance(graphs.get("maker"), str)
                                   and isinstance(graphs.get("checksum"), str)):
        raise FileError(f"{path}: expected graphs with a maker and a checksum")
    return index


def _describe(target, machine):
    return machine.removeprefix("device:") or target


def _find_reason(index, here):
    """Why the programs of an index are not for this process, or None."""
    if index["version"] != _VERSION:
        return f"expected version {_VERSION}, but got {index['version']}"
    if index.get("compiler") != cache.describe_compiler():
        return (f"expected those of this compiler, fp8 {_get_version()}, but got those of another build, "
                f"{index.get('release')}")
    others = sorted({_describe(entry["target"], entry["machine"]) for entry in index["programs"]
                     if not _is_for(entry, here)})
    fit = any(_is_for(entry, here) for entry in index["programs"])
    on_gpu = any(_is_for(entry, here) and entry["target"] != "cpu" for entry in index["programs"])
    if others and (not fit or here[1] and not on_gpu):
        return f"expected those for {_describe(*here)}, but got those for {', '.join(others)}"
    return None


def _is_for(entry, here):
    return entry["target"] == "cpu" or entry["machine"] in ("", here[1])


def _get_version():
    return ".".join(map(str, _core.get_versions()))


def attach_own(directory, take_graphs=None):
    """The same of a checkpoint that may have no programs, and loads without: what is wrong is a warning."""
    if not (Path(directory) / FOLDER / INDEX).exists():
        return 0
    try:
        return attach(directory, take_graphs=take_graphs)
    except FileError as error:
        _warn(Path(directory) / FOLDER, str(error))
        return 0


def attach(directory, trusts=False, take_graphs=None):
    """Has compile take programs of a checkpoint's folder. Returns how many there are for this process; others
    are a warning that says why. With `trusts` they may be anybody's. `take_graphs` is called with the maker and
    the bytes of graphs, if there are any.

    Raises FileError for a folder that is not there, or whose files are not what they were.
    """
    from fp8 import compiler
    # What is checked is what is read, also if a link on the way there changes.
    folder = Path(os.path.realpath(Path(directory) / FOLDER))
    try:
        cache.check_directory(folder)
        index = _read_index(folder / INDEX)
        if not trusts and not _is_own(index):
            _warn(folder, "they are code that another user may have compiled; fp8.torch.prepare(model, programs=...) "
                          "takes them")
            return 0
        target, name = compiler.find_default()
        here = target, f"device:{name}" if name else ""
        reason = _find_reason(index, here)
        if reason is not None:
            _warn(folder, reason)
            return 0
        found = {}
        for entry in index["programs"]:
            path = folder / entry["file"]
            if not _is_for(entry, here):
                continue
            _check_program(path, entry)
            found[entry["key"]] = path, entry
        if take_graphs is not None and index.get("graphs") is not None:
            take_graphs(index["graphs"]["maker"], _read_graphs(folder / GRAPHS, index["graphs"]))
    except cache.Refusal as refusal:
        _warn(folder, str(refusal))
        return 0
    with _lock:
        _attached.update(found)
    return len(found)


def _check_program(path, entry):
    """Raises FileError for a file that is not what its index says."""
    if _hash(path) != entry["checksum"]:
        raise FileError(f"{path}: expected the program that {INDEX} has the checksum of, but got something else")


def _read_graphs(path, entry):
    """Raises FileError for a file that is not what its index says."""
    content = _read(path)
    if hashlib.sha256(content).hexdigest() != entry["checksum"]:
        raise FileError(f"{path}: expected the graphs that {INDEX} has the checksum of, but got something else")
    return content


def _hash(path):
    return hashlib.sha256(_read(path)).hexdigest()


def _read(path):
    try:
        return cache.read(path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error


#===----------------------------------------------------------------------===//
# Writing
#===----------------------------------------------------------------------===//

def save(directory, maker=None, graphs=None):
    """Writes what this process has compiled, or found in the cache, beside a checkpoint, in place of what is
    there, and with a `maker` the bytes of its graphs. Returns how many programs that are. Raises FileError."""
    folder = Path(directory) / FOLDER
    with _lock:
        known = dict(_known)
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        entries = []
        for key, (path, options) in sorted(known.items()):
            notes = _read_notes(path)
            if notes is None:
                continue  # The cache was cleared.
            file = f"{key[:32]}.so"
            if not _is_same(path, folder / file):
                files.replace(folder / file, lambda draft, path=path: shutil.copyfile(path, draft))
            entries.append({"key": key, "file": file, "checksum": _hash(folder / file), **notes,
                            "target": options.get("target", "cpu"), "machine": options.get("machine", "")})
        index = {"version": _VERSION, "compiler": cache.describe_compiler(), "release": _get_version(),
                 "programs": entries}
        if maker is None:
            (folder / GRAPHS).unlink(missing_ok=True)
        else:
            files.write_bytes(folder / GRAPHS, graphs)
            index["graphs"] = {"maker": maker, "checksum": hashlib.sha256(graphs).hexdigest()}
        secret = _get_secret(makes=True)
        if secret is not None:
            index["signature"] = _sign(index, secret)
        files.write_text(folder / INDEX, json.dumps(index, indent=1))
        kept = {entry["file"] for entry in entries}
        for path in folder.glob("*.so"):
            if path.name not in kept and re.fullmatch(r"[0-9a-f]{32}\.so", path.name):
                path.unlink()
    except (OSError, cache.Refusal) as error:
        raise error if isinstance(error, FileError) else FileError(f"{folder}: {error}") from error
    return len(entries)


def _is_same(path, other):
    return other.exists() and os.path.samefile(path, other)


def _read_notes(path):
    """What the compiler said of a program on disk, None if that is gone."""
    for found, entry in _attached.values():
        if found == path:
            return {name: entry[name] for name in ("remarks", "diagnostics")} if path.exists() else None
    try:
        notes = json.loads(cache.read(path.parent / "notes.json"))
        return {name: notes[name] for name in ("remarks", "diagnostics")} if path.exists() else None
    except (OSError, ValueError, KeyError, cache.Refusal):
        return None
