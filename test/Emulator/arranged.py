# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all %python %s %fp8_tools
# REQUIRES: linker
# UNSUPPORTED: sanitizers
"""Kernels that read arranged codes (fp8.arranged) on the emulator, with all that it can look for: each result
has the bits of the same config for plain codes, with bf16 beside NVFP4, MXFP4 and MXFP8, and with E4M3 beside lifted MXFP4."""

import re
import sys

import ml_dtypes
import numpy as np

from arranged_codes import arrange_e4m3, arrange_lifted, arrange_pairs
from products import check, choose, config, make_parser, run, tensor

E2M1, BF16, E4M3 = ml_dtypes.float4_e2m1fn, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
REGISTERS = {"swap_ab": "true", "store": "direct", "group": 1, "lifters": 0}
# One consumer and several, that share K or a tile, subtiles, parts of K, clusters, results in bulk.
CONFIGS = [config(16, 64, 4, consumers=1, **REGISTERS), config(8, 64, 4, consumers=2, **REGISTERS),
           config(24, 128, 3, consumers=2, **REGISTERS), config(24, 256, 3, consumers=2, **REGISTERS | {"store": "tma"}),
           config(16, 64, 4, consumers=1, split_k=2, cluster_n=2, **REGISTERS), config(16, 64, 10, consumers=5, **REGISTERS),
           config(16, 256, 3, consumers=4, **REGISTERS), config(16, 64, 20, consumers=4, **REGISTERS)]
# The same with stages whose rows of codes have 128 bytes, or half of them; the first one has the sums of the one beside it.
WIDE = [config(16, 64, 4, consumers=1, **REGISTERS), config(24, 128, 3, consumers=2, **REGISTERS),
        config(8, 64, 4, consumers=2, **REGISTERS), config(24, 256, 2, consumers=2, **REGISTERS | {"store": "tma"}),
        config(16, 64, 3, consumers=1, split_k=2, cluster_n=2, **REGISTERS), config(16, 256, 2, consumers=4, **REGISTERS),
        config(8, 64, 4, consumers=2, split_k=2, **REGISTERS), config(8, 64, 4, consumers=2, split_k=2, cluster_k="true", **REGISTERS)]
# To E4M3 other warps lift them, too.
LIFTERS = [config(16, 64, 4, consumers=1, swap_ab="true", store="direct"), config(128, 64, 3),
           config(64, 128, 4, consumers=2, swap_ab="true", store="direct", lifters=2),
           config(64, 96, 4, consumers=2, schedule="ping_pong", lift_warps=2)]
GROUPS = 3
# A's type, that of factors, elements that share one, and what arranges codes.
KINDS = {"nvfp4": (BF16, E4M3, 16, arrange_pairs), "mxfp4": (BF16, ml_dtypes.float8_e8m0fnu, 32, arrange_pairs),
         "mxfp8": (BF16, ml_dtypes.float8_e8m0fnu, 32, arrange_e4m3),
         "lifted": (E4M3, None, 32, arrange_lifted), "lifted_promoted": (E4M3, None, 32, arrange_lifted)}
NAMES = {BF16: "bf16", E2M1: "f4E2M1FN", E4M3: "f8E4M3FN", ml_dtypes.float8_e8m0fnu: "f8E8M0FNU"}


class Weight:
    """A weight with its codes twice: plain, and arranged."""

    def __init__(self, name, shape, rng):
        type_, self.factor, each, arrange = KINDS[name]
        self.element, self.shape = NAMES[type_], shape
        self.is_promoted = name == "lifted_promoted"
        self.codes = E4M3 if name == "mxfp8" else E2M1
        if self.codes is E4M3:
            codes = rng.integers(0, 127, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7
            as_codes = arrange(codes)
        else:
            codes = rng.integers(0, 16, shape).astype(np.uint8)
            arranged = arrange(codes)
            as_codes = np.stack([arranged & 15, arranged >> 4], -1).reshape(shape)
        *before, n, k = shape
        self.types = {"p": tensor(shape, NAMES[self.codes]), "q": tensor(shape, NAMES[self.codes])}
        self.arrays = [codes.view(self.codes), as_codes.view(self.codes)]
        if self.factor is None:
            exponents = rng.integers(0, 15, (*before, n, -(-k // 128) * 4)).astype(np.uint8)
            words = np.ascontiguousarray(np.swapaxes(exponents.view(np.int32), -1, -2))
            self.types.update(e=tensor(words.shape, "i32"), f=tensor((*before, n, 1), "f32"))
            self.arrays += [words, rng.uniform(0.5, 2, (*before, n, 1)).astype(np.float32)]
            return
        factors = rng.integers(0, 0x7f, (*before, n, k // each)) if self.factor is E4M3 else rng.integers(
            120, 135, (*before, n, k // each))
        self.types["f"] = tensor(factors.shape, NAMES[self.factor])
        self.arrays.append(factors.astype(np.uint8).view(self.factor))
        self.each = each

    def write(self, codes):
        """Lines that make B of `codes`, and what it is called, with its type."""
        of, b = self.types, f"%b_{codes}"
        wide, ones = tensor(self.shape, self.element), ", ".join("1" for _ in self.shape[:-1])
        sizes = "x".join(map(str, self.shape))
        if self.factor is None:
            scaled = f"!fp8.scaled<{sizes}x{self.element}, block = [{ones}, *], scale = f32>"
            return (f"  %l_{codes} = fp8.lift %{codes}, %e : {of[codes]}, {of['e']} -> {wide}\n"
                    f"  {b} = fp8.assemble %l_{codes}, %f : {wide}, {of['f']} -> {scaled}\n"), b, scaled
        extra, more, one = "", "", ""
        if self.factor is E4M3:
            kind = tensor([1] * len(self.shape), "f32")
            one = f"  %one_{codes} = arith.constant dense<1.0> : {kind}\n"
            extra, more = f", %one_{codes}", f", {kind}"
        scaled = (f"!fp8.scaled<{sizes}x{NAMES[self.codes]}, block = [{ones}, {self.each}], scale = {NAMES[self.factor]}"
                  + ", tensor_scale = f32" * bool(more) + ">")
        return (f"{one}  %s_{codes} = fp8.assemble %{codes}, %f{extra} : {of[codes]}, {of['f']}{more} -> {scaled}\n"
                f"  {b} = fp8.dequantize %s_{codes} {{fp8.folded}} : {scaled} -> {wide}\n"), b, wide


def multiply(args, label, weight, m, texts, offsets=None):
    """How many configs have other bits with arranged codes."""
    rng = np.random.default_rng(len(label))
    n, k = weight.shape[-2:]
    x = (rng.standard_normal((m, k)) * 4).astype(BF16 if weight.factor else E4M3)
    a, a_type, body = "%x", tensor((m, k), weight.element), ""
    arguments, arrays = [f"%x: {a_type}"], [x]
    if weight.factor is None:
        scaled = f"!fp8.scaled<{m}x{k}x{weight.element}, block = [1, *], scale = f32>"
        arguments.append(f"%xs: {tensor((m, 1), 'f32')}")
        arrays.append(rng.uniform(0.5, 2, (m, 1)).astype(np.float32))
        body = f"  %a = fp8.assemble %x, %xs : {a_type}, {tensor((m, 1), 'f32')} -> {scaled}\n"
        a, a_type = "%a", scaled
    arguments += [f"%{name}: {type_}" + " {fp8.arranged = 1}" * (name == "q") for name, type_ in weight.types.items()]
    arrays += weight.arrays
    operation, groups = "fp8.matmul", ""
    if offsets is not None:
        arguments.append(f"%o: {tensor(offsets.shape, 'i32')}")
        arrays.append(offsets)
        operation, groups = "fp8.grouped_matmul", f" offsets(%o : {tensor(offsets.shape, 'i32')})"
    results = []
    for codes in "pq":
        lines, b, b_type = weight.write(codes)
        body += lines
        for i, text in enumerate(texts):
            results.append((f"%{codes}{i}", tensor((m, n), "bf16")))
            body += (f"  %{codes}{i} = {operation} %{a[1:]}, {b}{groups} accumulate = {'promote' if weight.is_promoted else 'fast'} "
                     f"{{fp8_gpu.config = {text}}} : {a_type}, {b_type} -> {results[-1][1]}\n")
    found = run(args.tools, "sm_90a", arguments, body, results, arrays)
    wrong = 0
    for text, plain, arranged in zip(texts, found[:len(texts)], found[len(texts):], strict=True):
        other = plain.view(np.uint16) != arranged.view(np.uint16)
        wrong += bool(other.any())
        if other.any() or not plain.astype(np.float32).any():
            print(f"{label} {text}: {other.sum()} of {other.size} differ")
    for text, plain in zip(texts, found):
        # Without parts of K stages change no bits, and neither does who adds parts up.
        for what, simpler in (("one K block a stage", re.sub(", stage_blocks = .", "", text)),
                              ("parts of K in memory", text.replace(", cluster_k = true", ""))):
            if simpler != text and simpler in texts and (plain.view(np.uint16) != found[texts.index(simpler)].view(np.uint16)).any():
                wrong += 1
                print(f"{label} {text}: other bits than with {what}")
    return wrong


def get_wide(name):
    """Two configs of a stage's one K block, and each of WIDE with as many as codes have room for."""
    numbers = (2, 4) if name in ("nvfp4", "mxfp4") else (2,)
    return WIDE[:2] + [text.replace(">", f", stage_blocks = {blocks}>") for text in WIDE for blocks in numbers]


def run_kind(name, _, args):
    rng, texts = np.random.default_rng(3), choose(CONFIGS + LIFTERS * ("lifted" in name), args)
    # Tails of all dimensions: where codes are lifted to E4M3, K is no multiple of what a word of exponents is of.
    n, k = 136, 544 if KINDS[name][1] is None else 512
    wrong = multiply(args, name, Weight(name, (n, k), rng), 70, texts)
    offsets, grouped = np.array([0, 9, 9, 40], np.int32), Weight(name, (GROUPS, 64, 512), rng)
    wrong += multiply(args, f"{name}, grouped", grouped, 44, texts[:3:2], offsets)
    if args.only is not None or name == "lifted_promoted":  # Promoted sums have one K block a stage.
        return wrong, len(texts) + 2
    wide = get_wide(name)
    # Blocks of the last stage are outside of K, and factors of every other row begin within a word.
    long = Weight(name, (n, {"nvfp4": 1088, "mxfp4": 1088, "mxfp8": 576}.get(name, 1184)), rng)
    wrong += multiply(args, f"{name}, wide", long, 70, wide)
    few = [text for text in wide if "stage_blocks" in text and "split_k" not in text and "tma" not in text]
    wrong += multiply(args, f"{name}, wide, grouped", grouped, 44, few, offsets)
    return wrong, len(texts) + 2 + len(wide) + len(few)


if __name__ == "__main__":
    sys.exit(check(KINDS, make_parser().parse_args(), run_kind))
