# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Products of MXFP8 whose sums of 32 a kernel of sm_90a multiplies by their factors, as few rows have them.

On the emulator, with all that it can look for. Bits are those of a CPU that is told how the kernel adds up: of every kind of
config, with tails, parts of K, batches, groups, NaN among codes and factors, and factors as large and small as they come.
Values are those of sums in f64, within what a tensor core cuts off of 32 products.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors
from products import check, config, make_parser, tensor

E4M3, E5M2, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
NAMES = {E4M3: "f8E4M3FN", E5M2: "f8E5M2"}
SWAPPED = {"swap_ab": "true", "store": "direct", "group": 1}
CONFIGS = [config(64, 64, 4, consumers=1, **SWAPPED), config(8, 64, 4, consumers=1, **SWAPPED),
           config(24, 128, 4, consumers=2, **SWAPPED), config(32, 192, 3, consumers=3, **SWAPPED),
           config(16, 64, 5, consumers=1, split_k=3, **SWAPPED), config(40, 64, 3, consumers=1, cluster_m=2, **SWAPPED),
           config(16, 64, 4, consumers=1, cluster_n=2, **SWAPPED), config(56, 128, 3, consumers=2, split_k=2, **SWAPPED),
           # Consumers that share K, in as many parts as there are.
           config(16, 64, 4, consumers=2, **SWAPPED), config(8, 64, 6, consumers=3, **SWAPPED),
           config(40, 64, 4, consumers=2, cluster_m=2, **SWAPPED)]
# A GPU on which products of this size wait for the tensor core.
SMALL_GPU = ('module attributes {fp8_gpu.target = #fp8_gpu.target<chip = "sm_90a", compute_capability = 90, features = "+ptx90", '
             "multiprocessors = 2, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34, "
             "clock = 1830, memory_peak = 4800, launch_time = 2500>}")
# A tensor core keeps 13 bits behind the first one of the largest product, of each of 32 and of their sum.
CUT_OFF = 34 * 2.0**-13


class Operand:
    def __init__(self, name, shape, rng, type_=E4M3, spread=8):
        self.name, self.element = name, NAMES[type_]
        self.codes = (rng.standard_normal(shape) * 8).astype(type_)
        self.factors = rng.integers(127 - spread, 128 + spread, [*shape[:-1], shape[-1] // 32]).astype(np.uint8).view(E8M0)
        self.set_rows(shape[-2])

    def set_rows(self, rows):
        shape, grid = ([*some.shape[:-2], rows, some.shape[-1]] for some in (self.codes, self.factors))
        block = ", ".join(["1"] * (len(shape) - 1) + ["32"])
        self.type = f"!fp8.scaled<{'x'.join(map(str, shape))}x{self.element}, block = [{block}], scale = f8E8M0FNU>"
        types = tensor(shape, self.element), tensor(grid, "f8E8M0FNU")
        self.arguments = [f"%{self.name}_codes: {types[0]}", f"%{self.name}_factors: {types[1]}"]
        self.made = (f"  %{self.name} = fp8.assemble %{self.name}_codes, %{self.name}_factors : {', '.join(types)} -> "
                     f"{self.type}\n")

    @property
    def values(self):
        return self.codes.astype(np.float64) * np.repeat(self.factors.astype(np.float64), 32, -1)


def run(args, label, operands, body, result, more=(), remark=None, module="module"):
    """What the emulator gives, or None where a CPU gives other bits; `more` are other arguments and their arrays. All is
    multiplied in FP8, or there is a remark."""
    arguments = [argument for operand in operands for argument in operand.arguments] + [one for one, _ in more]
    arrays = [array for operand in operands for array in (operand.codes, operand.factors)] + [array for _, array in more]
    text = (f"{module} {{\nfunc.func @main({', '.join(arguments)}) -> {result} {{\n{''.join(one.made for one in operands)}"
            f"{body}  return %r : {result}\n}}\n}}\n")
    with tempfile.TemporaryDirectory() as folder:
        source, given, written = (Path(folder) / name for name in ("p.mlir", "in.safetensors", "out.safetensors"))
        source.write_text(text)
        tensors.save(given, {f"arg{i}": array for i, array in enumerate(arrays)})
        command = [Path(args.tools) / "fp8-run", source, "--target=sm_90a", "--device=emulator", "--compare=cpu", "--recipe=none",
                   "--accumulate=tensor-core", "--tolerance=0", f"--inputs={given}", f"--outputs={written}"]
        done = subprocess.run(command, capture_output=True, text=True)
        is_other = remark not in done.stderr if remark else "multiplied in bf16" in done.stderr
        if done.returncode or is_other or "no kernel" in done.stderr:
            print(f"{label}: {done.stdout[-400:]}{done.stderr[-1200:]}")
            return None
        return next(iter(tensors.load(written).values())).astype(np.float64)


def is_close(label, found, a, b):
    """Whether these are sums of products with an error of each 32 as large as may be."""
    with np.errstate(all="ignore"):
        expected, bound = a.values @ np.swapaxes(b.values, -1, -2), 0
        for first in range(0, a.codes.shape[-1], 32):
            some = slice(first, first + 32)
            bound = bound + np.abs(a.values[..., some]).max(-1)[..., :, None] * np.abs(b.values[..., some]).max(-1)[..., None, :]
        right = np.abs(found - expected) <= CUT_OFF * bound + 1e-6 * np.abs(expected)
    if not right.all():
        print(f"{label}: {(~right).sum()} are too far off, the first at {np.argwhere(~right)[0]}")
    return bool(right.all())


def multiply(a, b, result, pin=""):
    return f"  %r = fp8.matmul %a, %b{pin} : {a.type}, {b.type} -> {result}\n"


def run_configs(args):
    wrong = 0
    for number, text in enumerate(CONFIGS):
        rng = np.random.default_rng(number)
        m, n, k = int(rng.integers(1, 100)), int(rng.integers(40, 300)), 128 * int(rng.integers(3, 8))
        a, b = Operand("a", (m, k), rng, [E4M3, E5M2][number % 2]), Operand("b", (n, k), rng)
        result, label = tensor((m, n), "f32"), f"{m}x{n}x{k} {text}"
        found = run(args, label, [a, b], multiply(a, b, result, f" {{fp8_gpu.config = {text}}}"), result)
        wrong += found is None or not is_close(label, found, a, b)
    return wrong, len(CONFIGS)


def run_shapes(args):
    """As the compiler chooses, whose choice depends on the rows."""
    rng, wrong = np.random.default_rng(1), 0
    for m, n, k in ((1, 200, 128), (7, 136, 384), (33, 328, 640), (64, 96, 1024), (64, 1000, 256)):
        a, b = Operand("a", (m, k), rng), Operand("b", (n, k), rng)
        result = tensor((m, n), "f32")
        found = run(args, f"{m}x{n}x{k}", [a, b], multiply(a, b, result), result)
        wrong += found is None or not is_close(f"{m}x{n}x{k}", found, a, b)
    a, b = Operand("a", (3, 19, 256), rng), Operand("b", (3, 72, 256), rng)
    result = tensor((3, 19, 72), "f32")
    found = run(args, "batches", [a, b], multiply(a, b, result), result)
    return wrong + (found is None or not is_close("batches", found, a, b)), 6


def run_groups(args):
    rng, offsets = np.random.default_rng(2), np.array([0, 5, 5, 30, 41], np.int32)
    a, b = Operand("a", (44, 384), rng), Operand("b", (4, 136, 384), rng)
    result = tensor((44, 136), "f32")
    # Two consumers share K.
    pin = f" {{fp8_gpu.config = {config(16, 64, 4, consumers=2, **SWAPPED)}}}"
    body = f"  %r = fp8.grouped_matmul %a, %b offsets(%o : tensor<5xi32>){pin} : {a.type}, {b.type} -> {result}\n"
    found = run(args, "groups", [a, b], body, result, [("%o: tensor<5xi32>", offsets)])
    if found is None:
        return 1, 1
    wrong = 0
    for i, (first, last) in enumerate(zip(offsets, offsets[1:])):
        one, other = Operand("a", (last - first, 384), rng), Operand("b", (136, 384), rng)
        one.codes, one.factors = a.codes[first:last], a.factors[first:last]
        other.codes, other.factors = b.codes[i], b.factors[i]
        wrong += not is_close(f"group {i}", found[first:last], one, other)
    return int(wrong > 0 or found[41:].any()), 1


def run_unknown_rows(args):
    """How many rows there are shows at run time: bits are those of a program that knows it, of few in FP8 and of many in
    bf16. Two products of one A, of which one reads the other's result, have one branch. K is too short for parts, which kernels
    for few rows and for many would have others of."""
    rng, wrong, (n, k) = np.random.default_rng(4), 0, (264, 384)
    b, c = Operand("b", (n, k), rng), Operand("c", (n, k), rng)
    for m in (1, 16, 17, 64, 65, 200):
        a, found = Operand("a", (m, k), rng), []
        for rows in ("?", m):
            a.set_rows(rows)
            result = tensor((rows, n), "f32")
            pin = " {fp8.invariant}" if rows == m > 64 else ""  # In bf16, which others of so small a product are not.
            body = (f"  %s = fp8.matmul %a, %b{pin} : {a.type}, {b.type} -> {result}\n"
                    f"  %t = fp8.matmul %a, %c{pin} : {a.type}, {c.type} -> {result}\n"
                    f"  %r = arith.addf %s, %t : {result}\n")
            remark = "rows are multiplied as" if rows == "?" else "each sum of 32" if m <= 64 else "multiplied in bf16"
            found.append(run(args, f"{m} of {rows} rows", [a, b, c], body, result, remark=remark))
        if any(one is None for one in found) or not np.array_equal(*found):
            print(f"{m} rows: others than where they are known")
            wrong += 1
    return wrong, 6


def run_many_unknown_rows(args):
    """So many that a pass makes bf16 of weights first, of MXFP8 on both sides and beside activations in bf16."""
    rng, wrong, (m, n, k) = np.random.default_rng(5), 0, (1030, 200, 384)
    remark = "from 1024 rows on a pass makes bf16"
    a, b, result = Operand("a", (m, k), rng), Operand("b", (n, k), rng), tensor(("?", n), "f32")
    a.set_rows("?")
    found = run(args, "many rows", [a, b], multiply(a, b, result), result, remark=remark, module=SMALL_GPU)
    wrong += found is None or not is_close("many rows", found, a, b)
    wide_a, wide_b = tensor(("?", k), "bf16"), tensor((n, k), "bf16")
    body = (f"  %w = fp8.dequantize %b : {b.type} -> {wide_b}\n"
            f"  %r = fp8.matmul %x, %w accumulate = fast : {wide_a}, {wide_b} -> {result}\n")
    x = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
    found = run(args, "many rows in bf16", [b], body, result, [(f"%x: {wide_a}", x)], remark=remark, module=SMALL_GPU)
    return wrong + (found is None), 2


def run_specials(args):
    """Factors over all of their range, 2^-127 and NaN among them, and codes that are NaN."""
    rng, wrong = np.random.default_rng(3), 0
    a, b = Operand("a", (20, 256), rng, spread=60), Operand("b", (72, 256), rng, spread=60)
    for operand in (a, b):
        operand.factors[1] = np.uint8(0).view(E8M0)
    b.factors[5, 3] = a.factors[7, 0] = np.uint8(255).view(E8M0)
    a.codes[9, 77] = b.codes[11, 200] = np.nan
    result = tensor((20, 72), "f32")
    found = run(args, "specials", [a, b], multiply(a, b, result), result)
    if found is None:
        return 1, 1
    expected = np.zeros((20, 72), bool)
    expected[[7, 9]] = expected[:, [5, 11]] = True
    if (np.isnan(found) != expected).any():
        print(f"specials: NaN at {np.argwhere(np.isnan(found) != expected)[:3]}")
        wrong = 1
    return wrong, 1


KINDS = {"configs": run_configs, "shapes": run_shapes, "groups": run_groups, "specials": run_specials,
         "unknown_rows": run_unknown_rows, "many_unknown_rows": run_many_unknown_rows}

if __name__ == "__main__":
    sys.exit(check(KINDS, make_parser().parse_args(), lambda name, kind, args: kind(args)))
