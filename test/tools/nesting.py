# RUN: %python %s %fp8_build/bin %t
"""Sources that are nested deeper than MLIR's parser has stack for are one error of every tool that reads them; those
that are nested as deep as the limit says are read."""

import os
import subprocess
import sys

MOST = 256
READERS = [["fp8-opt"], ["fp8-run"], ["fp8-compile", "--emit=obj", "-o", os.devnull], ["fp8-translate", "--mlir-to-llvmir"],
           ["fp8-reduce", "--reduction-tree=traversal-mode=0"]]


def write(path, opening, closing, depth, inner=""):
    with open(path, "w") as file:
        file.write("func.func @f(%c: i1) {\n" + opening * depth + inner + closing * depth + "  return\n}\n")


def main():
    tools, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "nested.mlir")
    failures = []

    def run(reader):
        return subprocess.run([os.path.join(tools, reader[0]), path, *reader[1:]], capture_output=True, text=True,
                              errors="replace")

    for name, opening, closing, inner in (
            ("regions", "scf.if %c {\n", "}\n", ""),
            ("lists", "[", "]", ""), ("types", "tuple<", ">", "i32"), ("parentheses", "(", ")", "")):
        depths = [5000, 100000]
        for depth in depths:
            write(path, opening, closing, depth, inner)
            for reader in READERS:
                done = run(reader)
                if done.returncode != 1 or done.stderr.count("error:") != 1 or \
                        f"expected up to {MOST} regions, lists and types in each other" not in done.stderr:
                    failures.append(f"{depth} {name}: {reader[0]}: {done.returncode} {done.stderr[:300]}")
    # Not counted: texts and comments.
    write(path, "scf.if %c {\n", "}\n", MOST - 2, '"test.op"() {x = "' + "{" * 1000 + '"} : () -> () // ' + "(" * 1000 + "\n")
    for reader in (["fp8-opt", "--allow-unregistered-dialect"],):
        done = run(reader)
        if done.returncode:
            failures.append(f"{reader[0]}: {done.returncode} {done.stderr[:300]}")
    write(path, "scf.if %c {\n", "}\n", MOST - 2)
    done = run(["fp8-compile", "--emit=obj", "-o", os.devnull])
    if done.returncode:
        failures.append(f"at the limit: {done.returncode} {done.stderr[:300]}")
    # What an earlier run wrote where this one writes is not read.
    written = os.path.join(folder, "written")
    with open(written, "w") as file:
        file.write("(" * 1000)
    write(path, "", "", 0)
    done = run(["fp8-translate", "--mlir-to-llvmir", "-o", written])
    if f"expected up to {MOST}" in done.stderr:
        failures.append(f"a file that is written: {done.returncode} {done.stderr[:300]}")
    print("\n".join(failures))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
