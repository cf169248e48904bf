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
                    r"|include/fp8/Runtime/Program\.h|python/fp8/__init__\.py|test/Python/compile\.py"
                    r"|lib/GPU/IR/FP8GPUAttrs\.cpp"
                    r"|lib/(IR|Pipelines)/Former\w+\.(cpp|h)|test/(\w+/)+former-names\.mlir"
                    r"|lib/Kernels/TuningTable\.cpp|test/Kernels/tuning-table\.mlir"
                    r"|include/fp8/IR/TensorCoreAccumulation\.h|include/fp8/Pipelines/PipelineOptions\.td"
                    r"|tools/fp8-(run|compile)/Options\.td)")
FORMER = re.compile(
    r"fp8\.stream\b|fp8_stream\b|\bStream(Op|Spec|Layouts?|Generator|Kernel|Clusters|Tile)\b"
    r"|matmul_group\b|MatmulGroup|unspecified_rest|expected_count|[Tt]ensor_?[Cc]ore_?[Ss]ums"
    r"|\bsums[-_]of\b|goesByPlace|by-place\b|\bfinishers\b|describeHindrance|kManyOfElement"
    r"|fp8-(form|tile|split)-streams|fp8-(fit|order)-factors|fp8-save-codes|fp8-select-by-rows"
    r"|fp8-share-computations|fp8-protect-arguments|fp8-select-sums|fp8-separate-buffers|SeparateBuffers"
    # Kernels have stages of a ring, tail boxes, clusters by M and N, and what a machine knows.
    r"|RingSlot|[Ss]lots? of (the|a) ring|ring of (\w+ )*slots|ring, its slots"
    r"|RestMap|canTakeRest|getRest\b|\bl2 = \d+, rest\b|cluster_cols = \d|gemm<[^>]*\b(blocks|cluster) = "
    r"|\bcut_sectors\b|\b[Cc]ontended\b|CutSectors|\bbeyond_(all|bytes)\b|[Ff]inishers?\b|CutFunctions"
    # Programs have inputs and outputs, code limits.
    r"|\bPorts?\b|PortNames|\bname_ports\b|program_port\b|\bk(Most|Fewest)[A-Z]|\b[Qq]uantis|[a-z]quantis"
    r"|rounded by chance|rounds by chance|[Rr]andom numbers by place|source is not put together")


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
