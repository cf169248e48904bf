# RUN: %python %s %fp8_source
"""The words of docs/Glossary.md: what has got the field's name is not called by the former one
again, but where former names are read; and every name in the glossary exists."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
# Where former names are said or read, or where the word has another sense.
SPOKEN = re.compile(r"^(CHANGELOG\.md|docs/Glossary\.md|benchmarks/results/|test/Project/words\.py"
                    r"|lib/(IR|Pipelines)/Former\w+\.(cpp|h)|test/(\w+/)+former-names\.mlir"
                    r"|lib/Kernels/TuningTable\.cpp|test/Kernels/tuning-table\.mlir"
                    r"|include/fp8/IR/TensorCoreAccumulation\.h|include/fp8/Pipelines/PipelineOptions\.td"
                    r"|tools/fp8-(run|compile)/Options\.td)")
FORMER = re.compile(
    r"fp8\.stream\b|fp8_stream\b|\bStream(Op|Spec|Layouts?|Generator|Kernel|Clusters|Tile)\b"
    r"|matmul_group\b|MatmulGroup|unspecified_rest|expected_count|[Tt]ensor_?[Cc]ore_?[Ss]ums"
    r"|\bsums[-_]of\b|goesByPlace|by-place\b|\bfinishers\b|describeHindrance|kMaxOfBox|kManyOfElement"
    r"|fp8-(form|tile|split)-streams|fp8-(fit|order)-factors|fp8-save-codes|fp8-select-by-rows"
    r"|fp8-share-computations|fp8-protect-arguments|fp8-select-sums")


def read_files():
    names = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT,
                           stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        try:
            yield name, (ROOT / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


errors, code = [], []
for name, text in read_files():
    if name.endswith((".td", ".h", ".cpp", ".py", ".def")):
        code.append(text)
    if not SPOKEN.match(name):
        for number, line in enumerate(text.splitlines(), 1):
            if found := FORMER.search(line):
                errors.append(f"{name}:{number}: expected the word of today for '{found[0]}'")
code = "\n".join(code)
glossary = (ROOT / "docs/Glossary.md").read_text().split("## Former words")[0]
for row in re.findall(r"^\| (.+?) \|", glossary, re.MULTILINE):
    for name in re.findall(r"`([^`]+)`", row):
        # Operations are defined by their mnemonic.
        if not re.search(r"\b" + re.escape(name.split()[0].removeprefix("fp8.")) + r"\b", code):
            errors.append(f"docs/Glossary.md: expected '{name}' to be a name of the project")
print(*errors[:40], sep="\n")
sys.exit(1 if errors else 0)
