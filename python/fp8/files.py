"""Reading and writing files: the one way that everything here does it."""

import errno
import os
import stat
import tempfile
from pathlib import Path


def read(path):
    """All of a file, or of a pipe that somebody writes to. Nothing that might never end is waited
    for, as lib/Support/InputFile.cpp says. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb", buffering=0) as file:
        mode = os.fstat(descriptor).st_mode
        start = b""
        if not stat.S_ISREG(mode):
            start = file.read(1 << 14)  # None if there is a writer who is not ready.
            if stat.S_ISCHR(mode) and start == b"":
                return start
            if not stat.S_ISFIFO(mode):
                raise OSError(errno.EINVAL, "expected a regular file or a pipe")
            if start == b"":
                raise OSError(errno.EINVAL,
                              "expected a regular file, but got a pipe without a writer")
            os.set_blocking(descriptor, True)
        return (start or b"") + file.readall()


def replace(path, write):
    """Lets `write(draft)` write a file, and puts it into the place of `path`: whole or not at
    all. Of a link, what it leads to is replaced. What is no regular file, a device or a pipe,
    cannot be replaced: it is written to. Raises OSError, and what `write` raises."""
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        is_regular = True
    if not is_regular:  # A folder, too, which is an error.
        write(path)
        return
    target = Path(os.path.realpath(path))
    # A folder of its own: the name of the draft may matter to who writes it.
    with tempfile.TemporaryDirectory(prefix=".fp8-", dir=target.parent) as folder:
        draft = os.path.join(folder, target.name)
        write(draft)
        os.replace(draft, target)


def write_bytes(path, contents):
    """The same of bytes."""
    replace(path, lambda draft: Path(draft).write_bytes(contents))


def write_text(path, text):
    """The same of text, in UTF-8."""
    write_bytes(path, text.encode())
