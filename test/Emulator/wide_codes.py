# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Kernels of sm_90a that read codes of B which they multiply in f32 and round (E4M3 with a factor for 128x128, or any beside
f16), plain and arranged, on the emulator, with all that it can look for. What a kernel decodes has NumPy's bits, for each
code with factors of all magnitudes, and products that NumPy adds up exactly have its sums, dense and grouped.
"""

import sys

import ml_dtypes
import numpy as np

from arranged_codes import arrange_e4m3, arrange_pairs
from products import check, choose, config, make_parser, run_each, tensor

REGISTERS = {"swap_ab": "true", "store": "direct", "group": 1, "lifters": 0}
BULK = REGISTERS | {"store": "tma", "staging": 1}
# One consumer and several, that share K or a tile, subtiles, parts of K, clusters, results in bulk.
CONFIGS = [config(16, 64, 4, consumers=1, **REGISTERS), config(8, 64, 4, consumers=2, **REGISTERS),
           config(24, 128, 3, consumers=2, **REGISTERS), config(24, 256, 3, consumers=2, **BULK | {"staging": 2}),
           config(64, 192, 4, consumers=3, **REGISTERS), config(16, 64, 4, consumers=1, split_k=2, cluster_n=2, **REGISTERS),
           config(16, 64, 10, consumers=5, **REGISTERS), config(16, 256, 3, consumers=4, **REGISTERS),
           config(72, 128, 2, **REGISTERS)]
DTYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f4E2M1FN": ml_dtypes.float4_e2m1fn, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
          "f32": np.dtype(np.float32), "bf16": ml_dtypes.bfloat16, "f16": np.dtype(np.float16)}
# Codes, factors, rows and elements of K that share one, whether the tensor has a factor of 1, and the type beside them.
KINDS = {"blocks_bf16": ("f8E4M3FN", "f32", (128, 128), False, "bf16"), "blocks_f16": ("f8E4M3FN", "f32", (128, 128), False, "f16"),
         "mxfp8_f16": ("f8E4M3FN", "f8E8M0FNU", (1, 32), False, "f16"), "mxfp4_f16": ("f4E2M1FN", "f8E8M0FNU", (1, 32), False, "f16"),
         "nvfp4_f16": ("f4E2M1FN", "f8E4M3FN", (1, 16), True, "f16")}
# M, N and K; rows that end within a block, and K that is no multiple of what a word of factors is of.
SHAPES = [(70, 200, 512), (24, 264, 576)]
OFFSETS = np.array([0, 0, 37, 38, 64, 70], np.int32)


class Weight:
    """B as a kernel reads it: its codes, one in a byte, and its factors; and what they are."""

    def __init__(self, kind, codes, factors):
        self.kind, self.codes, self.factors, self.shape = kind, codes, factors, codes.shape
        of_codes, of_factors, block, has_tensor, element = kind
        wide = factors.astype(np.float32)
        for dim, size in zip((-2, -1), block):
            wide = np.repeat(wide, size, dim)
        values = codes.view(DTYPES[of_codes]).astype(np.float32)
        with np.errstate(all="ignore"):
            self.values = (values * wide[..., :codes.shape[-2], :codes.shape[-1]]).astype(DTYPES[element])
        sizes = "x".join(map(str, self.shape))
        before = [1] * (codes.ndim - 2)
        extra = ", tensor_scale = f32" if has_tensor else ""
        self.type = f"!fp8.scaled<{sizes}x{of_codes}, block = {[*before, *block]}, scale = {of_factors}{extra}>"
        self.types = tensor(self.shape, of_codes), tensor(factors.shape, of_factors)
        self.wide = tensor(self.shape, element)

    def get_arrays(self, is_arranged):
        codes = self.codes
        if is_arranged and self.kind[0] == "f8E4M3FN":
            codes = arrange_e4m3(codes)
        elif is_arranged:
            packed = arrange_pairs(codes)
            codes = np.stack([packed & 15, packed >> 4], -1).reshape(self.shape)
        return [codes.view(DTYPES[self.kind[0]]), self.factors]

    def write(self, is_arranged):
        """The arguments, and lines that make %b of them."""
        mark = " {fp8.arranged = 1}" * is_arranged
        arguments = [f"%w: {self.types[0]}{mark}", f"%f: {self.types[1]}"]
        one, more, kind = "", "", tensor([1] * len(self.shape), "f32")
        if self.kind[3]:
            one, more = f"  %one = arith.constant dense<1.0> : {kind}\n", ", %one"
        return arguments, (f"{one}  %s = fp8.assemble %w, %f{more} : {', '.join(self.types)}{(', ' + kind) * bool(more)} -> "
                           f"{self.type}\n  %b = fp8.dequantize %s {{fp8.folded}} : {self.type} -> {self.wide}\n")


def multiply(args, label, weight, a, texts, expected, offsets=None):
    """How many configs have other results than those expected, with plain codes or arranged ones."""
    element, wrong = weight.kind[4], 0
    m, n = a.shape[0], weight.shape[-2]
    a_type, operation, groups = tensor(a.shape, element), "fp8.matmul", ""
    more, arrays = [], []
    if offsets is not None:
        more, arrays = [f"%o: {tensor(offsets.shape, 'i32')}"], [offsets]
        operation, groups = "fp8.grouped_matmul", f" offsets(%o : {tensor(offsets.shape, 'i32')})"
    for is_arranged in (False, True):
        arguments, body = weight.write(is_arranged)
        results = []
        for i, text in enumerate(texts):
            kind = tensor((m, n), element if "store = tma" in text else "f32")
            results.append((f"%r{i}", kind))
            body += (f"  %r{i} = {operation} %a, %b{groups} accumulate = fast {{fp8_gpu.config = {text}}} : {a_type}, "
                     f"{weight.wide} -> {kind}\n")
        found = run_each(args.tools, "sm_90a", [f"%a: {a_type}", *arguments, *more], body, results,
                         [[a, *weight.get_arrays(is_arranged), *arrays]])[0]
        for text, own in zip(texts, found, strict=True):
            with np.errstate(all="ignore"):
                other = own.astype(np.float32) != expected.astype(own.dtype).astype(np.float32)
            wrong += bool(other.any())
            if other.any():
                print(f"{label}{', arranged' * is_arranged} {text}: {other.sum()} of {other.size} differ, the first at "
                      f"{np.argwhere(other)[0]}")
    return wrong


def draw(kind, shape, rng):
    """A weight whose products NumPy adds up exactly."""
    codes, factors, block, *_ = kind
    small = np.array([-2, -1.5, -1, -.5, 0, .5, 1, 1.5, 2], np.float32)
    grid = [*shape[:-2], -(-shape[-2] // block[0]), -(-shape[-1] // block[1])]
    return Weight(kind, rng.choice(small, shape).astype(DTYPES[codes]).view(np.uint8),
                  rng.choice(np.array([.25, .5, 1, 2], np.float32), grid).astype(DTYPES[factors]))


def check_codes(name, kind, args, powers=False):
    """Each code with factors of all magnitudes, and odd ones, by a product with the identity. Of f32 those that are powers of two
    may be multiplied otherwise, within limits."""
    codes, factors, block, _, element = kind
    rng, n, k = np.random.default_rng(7), 256, 256
    numbers = np.tile(np.arange(256 if codes == "f8E4M3FN" else 16, dtype=np.uint8), 4096)[:n * k].reshape(n, k).copy()
    grid = (n // block[0], k // block[1])
    # What arranged codes take: E8M0 and f32 of up to 2^7, E4M3 without signs.
    if factors == "f32":
        scales = np.array([[2**-100, 2**-101], [2**7, 1]] if powers else [[1.0625e-2, 3.3], [-1e-7, 97.0]], np.float32)
    elif factors == "f8E8M0FNU":
        scales = rng.integers(90, 135, grid).astype(np.uint8).view(DTYPES[factors])
    else:
        scales = rng.integers(0, 127, grid).astype(np.uint8).view(DTYPES[factors])
    if codes == "f8E4M3FN":
        numbers[(numbers & 127) == 127] = 1
    weight = Weight(kind, numbers, scales)
    # An infinite f16 makes sums of all zeros NaN.
    odd = ~np.isfinite(weight.values.astype(np.float32))
    numbers[odd] = 0
    weight = Weight(kind, numbers, scales)
    identity = np.eye(k).astype(DTYPES[element])
    return multiply(args, f"{name} codes", weight, identity, [CONFIGS[0]], weight.values.T.astype(np.float64))


def run_kind(name, kind, args):
    rng, wrong, total = np.random.default_rng(3), check_codes(name, kind, args), 2
    if kind[1] == "f32":
        wrong, total = wrong + check_codes(name, kind, args, powers=True), 4
    for number, (m, n, k) in enumerate(SHAPES):
        texts = choose(CONFIGS[number::len(SHAPES)], args)
        weight = draw(kind, (n, k), rng)
        a = rng.integers(-2, 3, (m, k)).astype(DTYPES[kind[4]])
        expected = a.astype(np.float64) @ weight.values.astype(np.float64).T
        wrong += multiply(args, f"{name} {m}x{n}x{k}", weight, a, texts, expected)
        total += 2 * len(texts)
    weight = draw(kind, (len(OFFSETS) - 1, 136, 320), rng)
    a = rng.integers(-2, 3, (OFFSETS[-1], 320)).astype(DTYPES[kind[4]])
    expected = np.concatenate([a[first:last].astype(np.float64) @ of_group.astype(np.float64).T for first, last, of_group in zip(
        OFFSETS, OFFSETS[1:], weight.values)])
    texts = [CONFIGS[0], CONFIGS[2]]
    return wrong + multiply(args, f"{name}, grouped", weight, a, texts, expected, OFFSETS), total + 2 * len(texts)


if __name__ == "__main__":
    sys.exit(check(KINDS, make_parser().parse_args(), run_kind))
