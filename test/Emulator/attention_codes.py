# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_CHECK=all FP8_EMULATOR_SMS=3 %python %s sm_90a
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=89 %python %s sm_89
# RUN: env PYTHONPATH=%fp8_package:%S/Inputs %python %s cpu
# REQUIRES: python-package, linker
# UNSUPPORTED: sanitizers
"""Attention whose kernel stores codes: these and the amax have the bits of a program that also returns the numbers, where
a pass quantizes them. Elsewhere the operation is that pass."""

import sys

import numpy as np

import fp8
from attention_programs import Attention, tensor

TARGET = sys.argv[1]
CASES = [
    (Attention("e4m3", 1, 65, 97, 2, 1, 64, accumulate="promote", window=(None, 0)), "f8E4M3FN"),
    (Attention("e4m3", 2, 130, 200, 2, 1, 128, accumulate="fast", lse=False), "f8E4M3FN"),
    (Attention("e4m3", 1, 200, 100, 2, 2, 64, accumulate="fast", layout="bhsd", sinks=1.0), "f8E5M2"),
    # Queries that see no key.
    (Attention("e5m2", 1, 150, 40, 1, 1, 96, accumulate="fast", dim_of_v=32, window=(None, 0), bottom_right=True), "f8E4M3FN"),
    (Attention("bf16", 1, 129, 70, 2, 1, 64, dim_of_v=128, dropout=0.25), "f8E4M3FN"),
    (Attention("f16", 2, 70, 130, 2, 2, 128, window=(30, 5), data="outliers", layout="bhsd"), "f8E5M2"),
    (Attention("bf16", 1, 90, 80, 1, 1, 256, lse=False), "f8E4M3FN"),
    # Codes go where queries of other warps were.
    (Attention("bf16", 1, 256, 256, 1, 1, 160, lse=False, window=(None, 0)), "f8E4M3FN"),
    (Attention("bf16", 1, 256, 256, 1, 1, 192, lse=False, window=(None, 0)), "f8E4M3FN"),
    (Attention("f16", 1, 256, 256, 1, 1, 224, lse=False, window=(None, 0)), "f8E5M2"),
    # What it has no kernel for stays two.
    (Attention("bf16", 1, 1, 300, 8, 2, 128), "f8E4M3FN"),
    (Attention("bf16", 1, 40, 30, 1, 1, 48), "f8E4M3FN"),
]


def write(case, codes, is_one):
    """The program of an attention whose result is quantized, of one operation, or of several, where the result is read."""
    text = case.program().replace("@attention(", "@attention(%scale: tensor<1x1xf32>, ")
    shape = case.shape(case.queries, case.heads, case.dim_of_v)
    numbers, payload, one = tensor(shape, "bf16"), tensor(shape, codes), "tensor<1x1xf32>"
    lse = [tensor((case.batch, case.heads, case.queries), "f32")] * case.lse
    begin, end = text.index("  %o"), text.index("  return")
    yields = ", ".join(["%o"] + ["%lse"] * case.lse), ", ".join([numbers, *lse])
    if is_one:
        results = ", ".join(["%codes", "%amax"] + ["%logarithms"] * case.lse)
        made = (f"  {results} = fp8.quantized_attention scale(%scale : {one}) {{\n{text[begin:end]}"
                f"  fp8.attention_yield {yields[0]} : {yields[1]}\n"
                f"  }} : {payload} amax {one}{' lse ' + lse[0] if lse else ''}\n")
    else:
        results = ", ".join(["%codes", "%amax"] + ["%lse"] * case.lse)
        four, scaled = "tensor<1x1x1x1xf32>", f"<{'x'.join(map(str, shape))}x{codes}, block = [*, *, *, *], scale = f32>"
        made = (f"{text[begin:end]}"
                f"  %s = tensor.expand_shape %scale [[0], [1, 2, 3]] output_shape [1, 1, 1, 1] : {one} into {four}\n"
                f"  %y = fp8.quantize %o scale(%s, %s : {four}, {four}) : {numbers} -> {scaled}\n"
                f"  %a = fp8.amax %o block = [*, *, *, *] : {numbers}\n"
                f"  %amax = tensor.collapse_shape %a [[0], [1, 2, 3]] : {four} into {one}\n"
                f"  %codes, %inverse = fp8.disassemble %y : {scaled}\n")
        results += ", %o"
    types = [payload, one, *lse] + [numbers] * (not is_one)
    head = text[:begin].split("\n", 1)
    head[0] = head[0][:head[0].index(" -> ")] + f" -> ({', '.join(types)}) {{"
    return "\n".join(head) + made + f"  return {results} : {', '.join(types)}\n}}\n"


def main():
    rng = np.random.default_rng(37)
    # Elsewhere both programs are the same in the end.
    for case, codes in CASES if TARGET == "sm_90a" else CASES[::6]:
        arguments, _, _ = case.make(rng)
        scale = np.array([[float(rng.choice([3.3, 170.0, 4096.0]))]], np.float32)
        found = [fp8.compile(write(case, codes, is_one), target=TARGET, cache=False)(scale, *arguments)
                 for is_one in (True, False)]
        for one, apart in zip(*found):
            one, apart = np.asarray(one), np.asarray(apart)
            assert one.tobytes() == apart.tobytes(), (case.__dict__, np.argwhere(one != apart)[:9])
        largest = np.abs(np.asarray(found[1][-1]).astype(np.float32)).max()
        assert found[0][1][0, 0] == largest, (found[0][1], largest)


if __name__ == "__main__":
    main()
