# RUN: %python %s %fp8_source
"""A comment begins with a verb or with the name of what it is about. One that begins with "Of" has
lost its head: a reader has to guess whether "Of a tile, at most." is a size, a count or a time."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
NAMES = [f"*.{end}" for end in "h cpp c cu def td mlir py pyi sh cmake test".split()] + ["*CMakeLists.txt"]
SLASHES = r"(?P<before>.*?)//[/!]?<?\s*(?P<text>.*)"
HASHES = r"(?P<before>.*?)#\s*(?P<text>.*)"


def find_headless(path, text):
    """Lines on which a comment, or a description of a module, class or function, begins so."""
    is_hashed = Path(path).suffix in (".py", ".pyi", ".sh", ".cmake", ".txt")
    comment = re.compile(HASHES if is_hashed else SLASHES)
    # A line of nothing but a comment goes on with the one above it, but for an empty one.
    goes_on = False
    for number, line in enumerate(text.splitlines(), 1):
        match = comment.fullmatch(line)
        is_whole = bool(match) and not match["before"].strip()
        if match and match["text"].startswith("Of ") and not (is_whole and goes_on):
            yield number
        elif re.match(r'\s*r?"""Of |\s*let (summary|description) = .*["{]Of ', line):
            yield number
        goes_on = is_whole and bool(match["text"])


def main():
    paths = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", *NAMES],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    paths = [path for path in paths if path and (SOURCE / path).exists()]
    errors = [f"{path}:{number}: expected a comment to begin with a verb or a name, but got 'Of'"
              for path in paths
              for number in find_headless(path, (SOURCE / path).read_text(errors="replace"))]
    print(*errors, sep="\n")
    # Without a source there would be nothing to find.
    return 1 if errors or len(paths) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
