# RUN: %python %s %fp8_source
"""Files that pages name are there, so that who moves one hears of the pages that know it."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
# What a path begins with: the folders of the repository, but for what is built.
FOLDERS = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "build")
PATH = re.compile(rf"(?:{FOLDERS})(?:/[\w.*-]+)+/?")
# What stands for a name (`lib/Kernels/X`, `fp8-x`, `SMx`, `x-invalid.mlir`, `NAME.py`), and what is built.
PLACEHOLDER = re.compile(r"\b(?:X|NAME)\b|\bSMx|-x\b|\bx[.-]|<|\.so$")


def list_pages():
    names = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", "*.md"],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    # What was is not what is.
    return [SOURCE / name for name in names
            if name and name != "CHANGELOG.md" and (SOURCE / name).exists()]


def find_paths(page):
    """Paths in code spans of a page, with the number of the line."""
    text = page.read_text()
    for span in re.finditer(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", lambda block: re.sub(
            r"[^\n]", " ", block[0]), text, flags=re.MULTILINE | re.DOTALL)):
        for match in PATH.finditer(span[1]):
            before = span[1][:match.start()]
            # The second half of `include/fp8/Runtime/ABI.def` is no path, nor is one of another tree.
            if not re.search(r"[\w./$~-]$", before) and not PLACEHOLDER.search(match[0]):
                yield text.count("\n", 0, span.start()) + 1, match[0]


def find_symbols(page):
    """(path, name) where a page says which function of a file it means: `lib/X.cpp` (`build`)."""
    for path, names in re.findall(r"`((?:[\w-]+/)+[\w.-]+)` \(((?:`\w+`(?:, )?)+)\)", page.read_text()):
        for name in re.findall(r"\w+", names):
            yield path, name


def main():
    errors, count = [], 0
    for page in list_pages():
        for path, name in find_symbols(page):
            file = SOURCE / path
            if file.is_file() and not re.search(rf"\b{name}[(<]|\b(?:class|struct) {name}\b", file.read_text()):
                errors.append(f"{page.relative_to(SOURCE)}: expected '{path}' to have '{name}'")
        for line, path in find_paths(page):
            count += 1
            if not (any(SOURCE.glob(path)) if "*" in path else (SOURCE / path).exists()):
                errors.append(f"{page.relative_to(SOURCE)}:{line}: expected '{path}' to be there")
    print(*errors, sep="\n")
    if count < 100:
        print(f"expected pages to name files, but got {count}")
    return 1 if errors or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
