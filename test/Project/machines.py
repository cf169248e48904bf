# RUN: %python %s %fp8_source
"""Numbers that were fitted to a GPU are in its machine's file and nowhere else: a GPU is a
file, and no code."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(sys.argv[1])
MACHINES = SOURCE / "lib/Kernels/Machines"
# What weighs configs against each other.
MODELS = ("lib/Kernels/SM90/MatmulCost.cpp", "lib/Kernels/SM90/MatmulHeuristics.cpp",
          "lib/Kernels/SM100/MatmulHeuristics.cpp", "lib/Kernels/Fusion/FusionGenerator.cpp",
          "lib/Kernels/Transpose/TransposeGenerator.cpp",
          "lib/Kernels/SM90/AttentionGenerator.cpp")
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:[eE][-+]?\d+)?(?!\w)")
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/|#[^\n]*', re.DOTALL)


def read(path):
    return COMMENT.sub(lambda found: found[1] or "", path.read_text())


def list_sources():
    files = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z", "include", "lib", "tools",
         "python"], cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    return [path for path in files if re.search(r"\.(h|cpp|c|def|td|py)$", path)
            and (SOURCE / path).exists()]


def find_errors():
    fitted = set()
    for path in MACHINES.glob("*.mlir"):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        # Three digits and more: others stand for something else now and then.
        fitted.update(number for number in NUMBER.findall(text)
                      if len(number.replace(".", "").strip("0")) > 2)
    if len(fitted) < 100:
        yield f"expected more than 100 fitted numbers in {MACHINES}, but got {len(fitted)}"
    for path in list_sources():
        for number in sorted(set(NUMBER.findall(read(SOURCE / path))) & fitted):
            yield f"{path}: {number} is of a machine"
    for path in MODELS:
        text = read(SOURCE / path)
        if re.search(r"constexpr double (?!kTie\b)", text):
            yield f"{path}: expected a model's numbers to be the machine's, but got a constant"
        # Halves, and those that turn integers into floats.
        for number in NUMBER.findall(text):
            if float(number) != int(float(number)) and number != "0.5":
                yield f"{path}: expected no number of a model, but got {number}"


errors = [*find_errors()]
print(*errors, sep="\n")
sys.exit(bool(errors))
