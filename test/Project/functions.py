# RUN: %python %s %fp8_source
"""A function does one thing that has a name: none is longer than 80 lines. Of
C++ these are the functions that begin and end at the left margin."""

import ast
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
MOST_LINES = 80
TYPE = re.compile(r'(namespace|class|struct|enum|union|template|extern "C")\b')
# Begins a declaration: a body has nothing at the left margin but directives.
MARGIN = re.compile(r"[^\s#/]")


def find_cpp(text):
    """The first line of each function, from 1, and how many lines it has."""
    lines = text.split("\n")
    for end, line in enumerate(lines):
        if line != "}":
            continue
        start = end - 1
        while start >= 0 and not MARGIN.match(lines[start]):
            start -= 1
        # What it returns may be on a line of its own.
        if start > 0 and MARGIN.match(lines[start - 1]) and lines[start - 1][-1] not in ";}:":
            start -= 1
        if start >= 0 and not TYPE.match(lines[start]) and lines[start][0] != "}":
            yield start + 1, end - start + 1


def find_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


FINDERS = {".cpp": find_cpp, ".h": find_cpp, ".py": find_python}


def main():
    paths = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", "lib", "tools", "python"],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    errors = []
    for path in map(Path, filter(None, paths)):
        if path.suffix not in FINDERS or not (SOURCE / path).exists():
            continue
        text = (SOURCE / path).read_text()
        for line, count in FINDERS[path.suffix](text):
            if count > MOST_LINES:
                errors.append(f"{path}:{line}: expected a function of at most {MOST_LINES} lines, "
                              f"but got {count}")
    print(*errors, sep="\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
