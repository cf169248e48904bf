# RUN: %python %s fp8-run fp8-compile %t
"""Functions that are compiled in pieces, exactly: products by signed permutations."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from fp8 import tensors

run, compiler, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
folder.mkdir(exist_ok=True)
random = np.random.default_rng(5)


def chain(widths, kept):
    """Products one after the other, and the sum of those `kept`, which live long."""
    def matrix(width):
        return f"tensor<4x{width}xf32>"

    lines, arguments = ["  %zero = arith.constant 0.0 : f32"], [f"%x0: {matrix(widths[0])} {{fp8.name = \"x\"}}"]
    for i, (k, n) in enumerate(zip(widths, widths[1:])):
        w = f"tensor<{k}x{n}xf32>"
        arguments.append(f"%w{i}: {w} {{fp8.name = \"w{i}\"}}")
        lines += [f"  %e{i} = tensor.empty() : {matrix(n)}",
                  f"  %z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {matrix(n)}) -> {matrix(n)}",
                  f"  %x{i + 1} = linalg.matmul ins(%x{i}, %w{i} : {matrix(k)}, {w})"
                  f" outs(%z{i} : {matrix(n)}) -> {matrix(n)}"]
    y, sum_ = matrix(widths[-1]), f"%x{len(widths) - 1}"
    for i in kept:
        lines += [f"  %s{i} = linalg.add ins({sum_}, %x{i} : {y}, {y}) outs(%e{len(widths) - 2} : {y}) -> {y}"]
        sum_ = f"%s{i}"
    return "\n".join([f"func.func @f({', '.join(arguments)}) -> ({y} {{fp8.name = \"y\"}}) {{",
                      *lines, f"  return {sum_} : {y}", "}"])


def signed_permutation(k, n):
    w = np.zeros((k, n), np.float32)
    for row, column in enumerate(random.permutation(max(k, n))[:k] % n):
        w[row, column] = random.choice([-1, 1])
    return w


def check(name, widths, kept, pattern):
    source = folder / f"{name}.mlir"
    source.write_text(chain(widths, kept))
    x = random.integers(-8, 8, (4, widths[0])).astype(np.float32)
    weights = [signed_permutation(k, n) for k, n in zip(widths, widths[1:])]
    tensors.save(folder / "inputs", {"x": x, **{f"w{i}": w for i, w in enumerate(weights)}})
    subprocess.run([run, source, f"--inputs={folder}/inputs", f"--outputs={folder}/outputs"], check=True)
    values = [x]
    for w in weights:
        values.append(values[-1] @ w)
    expected = values[-1] + sum(values[i] for i in kept)
    got = tensors.load(folder / "outputs")["y"]
    if not np.array_equal(got, expected):
        sys.exit(f"{name}: expected\n{expected}\nbut got\n{got}")

    # Twice the same text, since objects are compared and kept by their bytes.
    texts = [subprocess.run([compiler, source, "--emit=llvm", "-o", "-"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout for _ in range(2)]
    if texts[0] != texts[1]:
        sys.exit(f"{name}: expected equal code for equal programs")
    found = len(re.findall(pattern, texts[0], re.MULTILINE))
    if found < 2:
        sys.exit(f"{name}: expected several functions, but got {found}")


# A straight line of calls, cut where it gets long; with as many arguments, part of what the runtime calls.
check("long", [8] * 701, [10, 300, 699], r"^define .*@long__f_invoke\.part[.0-9]*\(")

# No two products are equal, and each is a function nevertheless.
check("unequal", list(range(8, 8 + 160)), [], r"^define .*@f_(matmul|contract|generic)[_0-9]*\(")
