# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Amaxes of NaN, Inf, zeros and subnormal numbers, and codes by them, have the CPU's bits on the emulator."""

import torch

import fp8

GRIDS = {"*, *": "1x1", "1, 128": "256x3", "1, *": "256x1", "128, 128": "2x3", "*, 1": "1x384", "128, 1": "2x384"}


def write(block, element):
    grid, full = f"tensor<{GRIDS[block]}xf32>", f"tensor<256x384x{element}>"
    return f"""func.func @quantize(%x: {full}) -> ({grid}, tensor<256x384xf8E4M3FN>) {{
  %amax = fp8.amax %x block = [{block}] : {full}
  %scale, %inverse = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : {grid}
  %q = fp8.quantize %x scale(%scale, %inverse : {grid}, {grid}) : {full} -> <256x384xf8E4M3FN, block = [{block}], scale = f32>
  %codes, %own = fp8.disassemble %q : !fp8.scaled<256x384xf8E4M3FN, block = [{block}], scale = f32>
  return %amax, %codes : {grid}, tensor<256x384xf8E4M3FN>
}}"""


torch.manual_seed(0)
x = torch.randn(256, 384)
# A row and a block with nothing else, and each beside numbers.
x[3], x[128:, :128], x[5, 7] = float("nan"), float("nan"), float("nan")
x[9, 200], x[11], x[12], x[13], x[14] = float("inf"), 0, -0.0, 1e-40, -3
for block in GRIDS:
    for element, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        own, cpu = (fp8.compile(write(block, element), target=target)(x.to(dtype)) for target in ("sm_90a", "cpu"))
        for mine, its in zip(own, cpu, strict=True):
            bits, expected = (torch.as_tensor(each).contiguous().view(torch.uint8) for each in (mine, its))
            assert torch.equal(bits, expected), (block, element)
