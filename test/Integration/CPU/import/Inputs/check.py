"""Runs an imported program with fp8-run and compares it with NumPy.

usage: check.py PROGRAM.mlir --recipe=R --max-error=E

E bounds the relative error |y - reference| / |reference| in the Frobenius norm.
"""

import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from fp8 import tensors

BF16 = ml_dtypes.bfloat16


def weight(shape, seed, scale):
    """The constants inside the programs: a short integer sequence."""
    i = np.arange(np.prod(shape), dtype=np.int64)
    values = ((i * 37 + seed * 11) % 101 - 50) / 50.0 * scale
    return values.astype(np.float32).astype(BF16).reshape(shape)


def bf16(x):
    return x.astype(np.float32).astype(BF16).astype(np.float64)


erf = np.vectorize(math.erf)


def torch_mlp(x):
    w0, b0, w1 = weight((32, 16), 1, 0.25), weight((32,), 2, 0.5), weight((16, 32), 3, 0.25)
    h = bf16(bf16(x.astype(np.float64) @ w0.T.astype(np.float64)) + b0.astype(np.float64))
    g = bf16(h * bf16(bf16(bf16(erf(bf16(h / 1.4140625))) + 1) * 0.5))
    return g @ w1.T.astype(np.float64)


def torch_attention(q, k, v):
    q, k, v = (t.astype(np.float64).reshape(2, 8, 2, 16).transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * 0.25
    p = np.exp(scores - scores.max(-1, keepdims=True))
    context = p / p.sum(-1, keepdims=True) @ v
    return context.transpose(0, 2, 1, 3).reshape(2, 8, 32)


def torch_layernorm(x, gamma, beta, w):
    x = x.astype(np.float64)
    c = x - x.mean(-1, keepdims=True)
    n = c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * gamma + beta
    return n.astype(np.float32).astype(np.float16).astype(np.float64) @ w.T.astype(np.float64)


def iree_tosa(a, b, bias):
    return np.clip(a.astype(np.float64) @ b + bias, 0, 6)


def tosa_control(x, w):
    h = x.astype(np.float64)
    for _ in range(3):
        h = np.tanh(h @ w)
    return h + x.astype(np.float64) @ w


def iree_conv(image, filters, classes):
    padded = np.pad(image.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = sum(
        padded[:, i : i + 6, j : j + 6] @ filters[i, j] for i in range(3) for j in range(3)
    )
    bias = [0.5, -0.5, 0.25, -0.25, 1.0, -1.0, 2.0, -2.0]
    return out.mean((1, 2)) @ classes + bias


def iree_data_tiling(a, b):
    return a.astype(np.float64) @ b


def iree_loop(x, weights):
    h = x.astype(np.float64) @ weights[0]
    return np.maximum(np.maximum(h @ weights[1], 0) @ weights[2], 0)


def tpp_mlp(x, bias, init):
    return np.maximum(x.astype(np.float64) @ np.full((64, 32), 0.125) + init + bias, 0)


def tpp_memref(a, b, init):
    return a.astype(np.float64) @ b + init


def tpp_packed(a, b, init):
    return np.einsum("mkab,nkbc->mnac", a.astype(np.float64), b) + init


# Program: entry, reference, dtype and shape of each argument.
PROGRAMS = {
    "torch-mlp": ("forward", torch_mlp, [(BF16, (5, 16))]),
    "torch-attention": ("forward", torch_attention, [(np.float32, (2, 8, 32))] * 3),
    "torch-layernorm": (
        "forward",
        torch_layernorm,
        [
            (np.float16, (2, 4, 32)),
            (np.float32, (32,)),
            (np.float32, (32,)),
            (np.float16, (48, 32)),
        ],
    ),
    "iree-tosa": (
        "main",
        iree_tosa,
        [(np.float32, (1, 8, 32)), (np.float32, (1, 32, 16)), (np.float32, (1, 1, 16))],
    ),
    "tosa-control": ("main", tosa_control, [(np.float32, (1, 8, 32)), (np.float32, (1, 32, 32))]),
    "iree-conv": (
        "main",
        iree_conv,
        [(np.float32, (2, 6, 6, 4)), (np.float32, (3, 3, 4, 16)), (np.float32, (16, 8))],
    ),
    "iree-data-tiling": (
        "main",
        iree_data_tiling,
        [(np.float32, (12, 20)), (np.float32, (20, 30))],
    ),
    "iree-loop": ("main", iree_loop, [(np.float32, (8, 32)), (np.float32, (3, 32, 32))]),
    "tpp-mlp": (
        "entry",
        tpp_mlp,
        [(np.float32, (16, 64)), (np.float32, (32,)), (np.float32, (16, 32))],
    ),
    "tpp-memref": (
        "entry",
        tpp_memref,
        [(np.float32, (8, 32)), (np.float32, (32, 16)), (np.float32, (8, 16))],
    ),
    "tpp-packed": (
        "entry",
        tpp_packed,
        [
            (np.float32, (2, 4, 8, 16)),
            (np.float32, (3, 4, 16, 8)),
            (np.float32, (2, 3, 8, 8)),
        ],
    ),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--max-error", type=float, required=True)
    args = parser.parse_args()

    entry, reference, signature = PROGRAMS[args.program.stem]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(dtype) for dtype, shape in signature]
    with tempfile.TemporaryDirectory() as directory:
        in_file = os.path.join(directory, "in.safetensors")
        out_file = os.path.join(directory, "out.safetensors")
        tensors.save(in_file, {f"arg{i}": t for i, t in enumerate(inputs)})
        subprocess.run(
            [
                "fp8-run",
                args.program,
                f"--entry={entry}",
                f"--recipe={args.recipe}",
                "--target=cpu",
                f"--inputs={in_file}",
                f"--outputs={out_file}",
            ],
            check=True,
        )
        outputs = tensors.load(out_file)
    # A program on buffers returns nothing and writes its last argument.
    last = f"arg{len(inputs) - 1}"
    result = outputs["result0" if "result0" in outputs else last].astype(np.float64)

    expected = reference(*inputs)
    if result.shape != expected.shape:
        sys.exit(f"expected shape {expected.shape}, but got {result.shape}")
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    print(f"{args.program.stem} {args.recipe}: relative error {error:.2e}")
    # Written so that a NaN fails.
    if not error <= args.max_error:
        sys.exit(f"expected a relative error of at most {args.max_error}, but got {error}")


if __name__ == "__main__":
    main()
