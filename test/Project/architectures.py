# RUN: %python %s %fp8_source
"""The chips of an architecture are named in one file of the libraries, and its
directory is known to one other: who adds an architecture need look no further.
A generator that is not an architecture's own is named once, for all of them."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
# Where architectures are registered.
REGISTRY = "lib/Kernels/AllKernels.cpp"


def read_code():
    """C++ of the libraries by path, without comments."""
    files = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z",
         *(f"{folder}/*.{end}" for folder in ("include", "lib") for end in ("h", "cpp", "c", "def"))],
        cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    comment = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
    return {path: comment.sub(lambda match: match[1] or "", (SOURCE / path).read_text())
            for path in files if path and (SOURCE / path).exists()}


def main():
    code, errors = read_code(), []
    architectures = sorted({Path(path).parent for path, text in code.items()
                            if re.search(r"registerArchitecture\(\s*std::make_unique", text)})
    if not architectures:
        errors.append("expected an architecture in lib/Kernels, but found none")
    for directory in architectures:
        chips = {(chip, path) for path, text in code.items() if Path(path).is_relative_to(directory)
                 for chip in re.findall(r'"(sm_\w+)"', text)}
        files = {path for _, path in chips}
        if len(files) != 1:
            errors.append(f"{directory}: expected one file that names chips, but got {sorted(chips)}")
            continue
        own, = files
        for create in re.findall(r"addGenerator\(\w+::kKind,\s*(\w+)\(", code[own]):
            errors.append(f"{own}: expected no {create}, which is for any GPU and in {REGISTRY}")
        for path, text in code.items():
            errors.extend(f"{path}: expected no '{chip}', which is named in {own}" for chip, _ in sorted(chips)
                          if re.search(rf"{chip}\b", text) and path != own)
            if (directory.name in text and path != REGISTRY
                    and not Path(path).is_relative_to(directory)):
                errors.append(f"{path}: expected no '{directory.name}', which {REGISTRY} registers")
    print(*errors, sep="\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
