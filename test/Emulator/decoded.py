# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Products of MXFP8, MXFP4 and NVFP4 on sm_90a, which multiplies them in bf16, on the emulator, with all that it can look
for. Values that NumPy adds up exactly have its sums, whether kernels read codes and factors of B (fp8.folded) or bf16 that
a pass made of them. What a kernel decodes by itself has ml_dtypes' bits, for each code with each factor.
"""

import sys

import ml_dtypes
import numpy as np

from products import check_target, choose_for, config, run_each, tensor

SWAPPED = {"swap_ab": "true", "store": "direct", "group": 1}
# Those who multiply decode, too.
REGISTERS = SWAPPED | {"lifters": 0}
BULK = {"swap_ab": "true", "store": "tma", "group": 1, "lifters": 0, "staging": 1}
CONFIGS = [config(16, 64, 4, consumers=1, **REGISTERS), config(8, 128, 3, **REGISTERS), config(64, 192, 4, consumers=3, **REGISTERS),
           config(24, 256, 3, **REGISTERS), config(16, 64, 4, consumers=1, split_k=2, **REGISTERS),
           config(72, 128, 2, **REGISTERS), config(16, 64, 4, consumers=1, cluster_n=2, **REGISTERS), config(40, 128, 3, cluster_m=2, **REGISTERS),
           # Parts of K in a block, and of each block's.
           config(16, 64, 4, **REGISTERS), config(64, 64, 6, consumers=3, **REGISTERS), config(24, 64, 4, cluster_n=2, **REGISTERS),
           config(8, 64, 4, split_k=2, **REGISTERS),
           # Results of 16 bits that are transposed in shared memory.
           config(24, 128, 3, **BULK), config(72, 64, 4, consumers=1, **BULK), config(32, 256, 3, **BULK | {"staging": 2}),
           config(16, 64, 4, cluster_n=2, **BULK),
           config(16, 64, 4, consumers=1, **SWAPPED), config(8, 64, 4, consumers=1, lifters=2, **SWAPPED),
           config(64, 128, 3, **SWAPPED), config(24, 192, 3, consumers=3, **SWAPPED), config(32, 256, 3, **SWAPPED),
           config(16, 64, 4, consumers=1, split_k=2, **SWAPPED), config(16, 64, 4, consumers=1, cluster_n=2, **SWAPPED),
           config(16, 64, 4, consumers=1, cluster_m=2, lift_warps=1, **SWAPPED), config(64, 64, 4, consumers=1, pending=1),
           config(32, 64, 8, consumers=1, lifters=2, lift_warps=2, **SWAPPED), config(128, 128),
           config(128, 96, 4, schedule="ping_pong", lifters=2), config(128, 48, schedule="ping_pong"), config(256, 128),
           config(128, 64, cluster_m=2), config(64, 64, consumers=1, cluster_m=2, cluster_n=2), config(128, 200, store="direct")]
E8M0, E4M3 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
# Codes, factors, and elements of K that share one; and whether the tensor has a factor, too.
KINDS = {"mxfp8": ("f8E4M3FN", "f8E8M0FNU", 32, False), "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32, False),
         "nvfp4": ("f4E2M1FN", "f8E4M3FN", 16, True)}
DTYPES = {"f8E4M3FN": E4M3, "f4E2M1FN": ml_dtypes.float4_e2m1fn, "f8E8M0FNU": E8M0}
# M, N and K of kernels that read codes; K of the last one has tails of both kinds of words. With K of 320 and 448, as with
# gpt-oss's 2880, factors of every other row begin within a word.
SHAPES = [(72, 136, 256), (136, 72, 320), (24, 320, 512), (24, 200, 448), (136, 64, 256), (136, 64, 128)]
OFFSETS = [0, 0, 37, 38, 64, 70]


def scaled_type(kind, shape, transposed=False):
    codes, factor, group, has_tensor = kind
    block = ["1"] * (len(shape) - 1) + [str(group)]
    extents = list(map(str, shape))
    if transposed:
        block[-2:], extents[-2:] = block[:-3:-1], extents[:-3:-1]
    more = ", tensor_scale = f32" if has_tensor else ""
    return f"!fp8.scaled<{'x'.join(extents)}x{codes}, block = [{', '.join(block)}], scale = {factor}{more}>"


class Drawn:
    """Codes and factors of an operand, whose products NumPy adds up exactly; its arguments, and what makes it of them."""

    def __init__(self, name, kind, shape, rng):
        codes, factor, group, has_tensor = kind
        grid = [*shape[:-1], shape[-1] // group]
        small = np.array([-2, -1.5, -1, -.5, 0, .5, 1, 1.5, 2], np.float32)
        numbers = rng.choice(small, shape)
        factors = rng.choice(np.array([.25, .5, 1, 2] if factor == "f8E8M0FNU" else [.5, .75, 1, 1.25], np.float32), grid)
        self.arrays = [numbers.astype(DTYPES[codes]), factors.astype(DTYPES[factor])]
        self.values = (numbers * np.repeat(factors, group, -1)).astype(np.float64)
        self.type = scaled_type(kind, shape)
        types = [tensor(shape, codes), tensor(grid, factor)]
        if has_tensor:
            self.arrays.append(rng.choice([.5, 2, 4], [1] * len(shape)).astype(np.float32))
            self.values = self.values * float(self.arrays[2].ravel()[0])
            types.append(tensor([1] * len(shape), "f32"))
        names = [f"%{name}_{i}" for i in range(len(types))]
        self.arguments = [f"{own}: {type_}" for own, type_ in zip(names, types)]
        self.made = f"  %{name} = fp8.assemble {', '.join(names)} : {', '.join(types)} -> {self.type}\n"


def folded(kind, name, shape):
    """B as kernels read it, without its tensor's factor, and as a pass makes it."""
    plain, type_ = tensor(shape, "bf16"), scaled_type(kind, shape)
    parts = [f"%{name}_{i}" for i in range(2)]
    types = [tensor(shape, kind[0]), tensor([*shape[:-1], shape[-1] // kind[2]], kind[1])]
    one = ""
    if kind[3]:
        unit = tensor([1] * len(shape), "f32")
        one = f"  %one = arith.constant dense<1.0> : {unit}\n"
        parts.append("%one")
        types.append(unit)
    return (f"{one}  %w = fp8.assemble {', '.join(parts)} : {', '.join(types)} -> {type_}\n"
            f"  %read = fp8.dequantize %w {{fp8.folded}} : {type_} -> {plain}\n"
            f"  %made = fp8.dequantize %w : {type_} -> {plain}\n")


def report(label, found, expected):
    found, expected = found.astype(np.float32), expected.astype(np.float32)
    wrong = (found != expected) & ~(np.isnan(found) & np.isnan(expected))
    if wrong.any():
        print(f"{label}: {wrong.sum()} differ, the first at {np.argwhere(wrong)[0]}")
    return int(wrong.any())


def run_configs(name, kind, args):
    """Kernels of bf16 that read codes of B."""
    failures, total = 0, 0
    for number, (m, n, k) in enumerate(SHAPES):
        chosen = choose_for(number, SHAPES, CONFIGS, args)
        if not chosen:
            continue
        rng = np.random.default_rng(number)
        b = Drawn("b", kind, (n, k), rng)
        a = rng.integers(-2, 3, (m, k)).astype(ml_dtypes.bfloat16)
        values = b.values / (float(b.arrays[2][0, 0]) if kind[3] else 1)
        types = tensor((m, k), "bf16"), tensor((n, k), "bf16")
        body, results = folded(kind, "b", (n, k)), []
        for i, text in enumerate(chosen):
            result = tensor((m, n), "bf16" if "store = tma" in text else "f32")
            results.append((f"%r{i}", result))
            body += (f"  %r{i} = fp8.matmul %a, %read accumulate = fast {{fp8_gpu.config = {text}}} : {types[0]}, {types[1]} "
                     f"-> {result}\n")
        found = run_each(args.tools, "sm_90a", [f"%a: {types[0]}", *b.arguments[:2]], body, results, [[a, *b.arrays[:2]]])[0]
        expected = a.astype(np.float64) @ values.T
        total += len(chosen)
        failures += sum(report(f"{name} {m}x{n}x{k} {text}", own, expected.astype(own.dtype))
                        for text, own in zip(chosen, found, strict=True))
    return failures, total


def run_products(name, kind, args):
    """Products as programs have them, of which the compiler decides how; groups of rows, some empty. No kernel reads codes
    with K of 352."""
    return sum(run_product(name, kind, args, k) for k in ((384, 448) if kind[0] == "f4E2M1FN" else (352, 320))), 8


def run_product(name, kind, args, k):
    rng, failures = np.random.default_rng(9), 0
    m, n = 72, 136
    groups = len(OFFSETS) - 1
    a, b, w = Drawn("a", kind, (m, k), rng), Drawn("b", kind, (n, k), rng), Drawn("w", kind, (groups, n, k), rng)
    d, offsets = tensor((m, n), "f32"), tensor((groups + 1,), "i32")
    body = a.made + b.made + w.made + (
        f"  %d = fp8.matmul %a, %b : {a.type}, {b.type} -> {d}\n"
        f"  %e = fp8.grouped_matmul %a, %w offsets(%o : {offsets}) : {a.type}, {w.type} -> {d}\n")
    arrays = [*a.arrays, *b.arrays, *w.arrays, np.array(OFFSETS, np.int32)]
    arguments = [*a.arguments, *b.arguments, *w.arguments, f"%o: {offsets}"]
    expected = a.values @ b.values.T
    grouped = np.zeros((m, n))
    for i, (first, last) in enumerate(zip(OFFSETS, OFFSETS[1:])):
        grouped[first:last] = a.values[first:last] @ w.values[i].T
    for target in ("cpu", "sm_90a"):
        found = run_each(args.tools, target, arguments, body, [("%d", d), ("%e", d)], [arrays])[0]
        failures += report(f"{name} {k} {target}", found[0], expected) + report(f"{name} {k} groups {target}", found[1], grouped)
    return failures


def run_unknown_rows(name, kind, args):
    """How many rows there are shows at run time: a program has several kernels, of which one may come back for more rows."""
    rng, (n, k) = np.random.default_rng(10), (136, 384)
    b = Drawn("b", kind, (n, k), rng)
    values = b.values / (float(b.arrays[2][0, 0]) if kind[3] else 1)
    types = tensor(("?", k), "bf16"), tensor((n, k), "bf16"), tensor(("?", n), "f32")
    body = folded(kind, "b", (n, k)) + f"  %d = fp8.matmul %a, %read accumulate = fast : {types[0]}, {types[1]} -> {types[2]}\n"
    given = [rng.integers(-2, 3, (m, k)).astype(ml_dtypes.bfloat16) for m in (0, 1, 8, 9, 24, 65, 130, 300)]
    found = run_each(args.tools, "sm_90a", [f"%a: {types[0]}", *b.arguments[:2]], body, [("%d", types[2])],
                     [[a, *b.arrays[:2]] for a in given])
    return sum(report(f"{name} {len(a)} of unknown rows", own[0], a.astype(np.float64) @ values.T)
               for a, own in zip(given, found, strict=True)), len(given)


def check_codes(name, kind, args):
    """Each code with each factor, by a product with the identity; and those that are NaN or infinite, as a pass has them."""
    codes, factor, group, _ = kind
    count, k = 2 ** (8 if codes == "f8E4M3FN" else 4), 256
    numbers = np.tile(np.arange(count, dtype=np.uint8), (256, k // count)).view(DTYPES[codes])
    bytes_ = np.repeat(np.arange(256, dtype=np.uint8)[:, None], k // group, 1).view(DTYPES[factor])
    with np.errstate(all="ignore"):
        values = numbers.astype(np.float32) * np.repeat(bytes_.astype(np.float32), group, 1)
        expected = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    is_odd = ~np.isfinite(expected)
    finite = numbers.copy()
    finite[is_odd] = 0
    rows = ~np.isnan(bytes_.astype(np.float32)).any(1)
    expected = np.where(is_odd, 0, expected)
    types = tensor((k, k), "bf16"), tensor((256, k), "bf16"), tensor((k, 256), "f32")
    body = folded(kind, "b", (256, k)) + "".join(
        f"  %{value}_d = fp8.matmul %a, %{value} accumulate = fast{pin} : {types[0]}, {types[1]} -> {types[2]}\n"
        for value, pin in (("read", f" {{fp8_gpu.config = {CONFIGS[0]}}}"), ("made", "")))
    arguments = [f"%a: {types[0]}", f"%b_0: {tensor((256, k), codes)}", f"%b_1: {tensor((256, k // group), factor)}"]
    one = np.eye(k).astype(ml_dtypes.bfloat16)
    found = run_each(args.tools, "sm_90a", arguments, body, [("%read_d", types[2]), ("%made_d", types[2])],
                     [[one, finite, bytes_], [one, numbers, bytes_]])
    failures = report(f"{name} codes", found[0][0][:, rows], expected.T[:, rows])
    return failures + sum(report(f"{name} read and made", *both) for both in found)


def run_kind(name, kind, args):
    wrong = [run_configs(name, kind, args), run_products(name, kind, args), run_unknown_rows(name, kind, args),
             (check_codes(name, kind, args), 3)]
    return tuple(map(sum, zip(*wrong)))


if __name__ == "__main__":
    sys.exit(check_target({"sm_90a": KINDS}, run_kind))
