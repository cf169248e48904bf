# RUN: %python %s %fp8_source
"""The first line of a source is its name and what it is, 80 columns wide, and
tells editors the language where the name does not. clang-format breaks a line
that is longer, and nothing else would notice."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
LICENSE = """\
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
"""
# An editor takes a `.h` for C, which it may be, and knows no `.td`.
MODES = {".h": ["C++", "C"], ".def": ["C++"], ".td": ["tablegen"], ".cpp": [None], ".c": [None]}


def check(path, text):
    """What is wrong with the banner, or None."""
    first, _, rest = text.partition("\n")
    # A program in C that a document shows, or that stands for a user's.
    if path.suffix == ".c" and not first.startswith("//"):
        return None
    tails = ["===//" if mode is None else f"-*- {mode} -*-===//" for mode in MODES[path.suffix]]
    if len(first) != 80:
        return f"expected a banner of 80 columns, but got {len(first)}"
    if not any(re.fullmatch(rf"//===- {re.escape(path.name)} - \S.*\S -*{re.escape(tail)}", first)
               for tail in tails):
        return f"expected '//===- {path.name} - What it is ---{tails[0]}', but got '{first}'"
    if not rest.startswith(LICENSE):
        return "expected the license below the banner"
    return None


def main():
    paths = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", *(f"*{end}" for end in MODES)],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    errors = []
    for path in filter(None, paths):
        if (SOURCE / path).exists():
            error = check(Path(path), (SOURCE / path).read_text())
            if error:
                errors.append(f"{path}: {error}")
    print(*errors, sep="\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
