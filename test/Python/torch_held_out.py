# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Codes and scales of MXFP8, MXFP4 and NVFP4 beside those of other libraries, which nothing here was fitted to: what
Microsoft's microxcaling (7bc4195) and NVIDIA's ModelOpt 0.47.0 made of the numbers in Inputs/held_out.json, and what torchao
makes where it is installed."""

import base64
import importlib.util
import json
import unittest
import warnings
from pathlib import Path

import numpy as np
import torch

import fp8

ROWS, COLUMNS = 4, 64
VECTORS = json.loads((Path(__file__).parent / "Inputs" / "held_out.json").read_text())
HAS_TORCHAO = importlib.util.find_spec("torchao")


def read(text, dtype=np.uint8):
    return torch.tensor(np.frombuffer(base64.b64decode(text), dtype))


def draw(kind, dtype=torch.float32):
    """Normal numbers, those of very different sizes along a block or between blocks, and those halfway between codes."""
    generator = torch.Generator().manual_seed(5)
    shape = 32, 256
    x = torch.randn(shape, generator=generator)
    if kind == "wide":
        x *= torch.exp2(torch.randint(-40, 40, shape, generator=generator).float())
    elif kind == "blocks":
        x *= torch.exp2(torch.randint(-100, 100, (shape[0], shape[1] // 32), generator=generator).float()).repeat_interleave(32, 1)
    elif kind == "ties":
        x = torch.randint(-64, 65, shape, generator=generator).float() / 16
    return x.to(dtype)


def as_bytes(value):
    return value.contiguous().view(torch.uint8).flatten()


class HeldOut(unittest.TestCase):
    def test_microxcaling(self):
        """Values, of scales that its formula has, `floor`."""
        for entry in VECTORS:
            x = read(entry["x"], np.float32).view(ROWS, COLUMNS)
            for format_, expected in entry["microxcaling"].items():
                with self.subTest(kind=entry["kind"], format=format_):
                    found = fp8.dequantize(fp8.quantize(x, format_, (1, 32), "e8m0", mode="floor"))
                    self.assertTrue(torch.equal(found.flatten(), read(expected, np.float32)))

    def test_modelopt(self):
        """Codes and scales. Its MXFP4 takes numbers halfway between two codes to the smaller one, not to the even one."""
        kinds = {"mxfp8": ("e4m3", 32, "e8m0"), "mxfp4": ("e2m1", 32, "e8m0"), "nvfp4": ("e2m1", 16, "e4m3")}
        for entry in VECTORS:
            x = read(entry["x"], np.float32).view(ROWS, COLUMNS)
            for kind, expected in entry["modelopt"].items():
                with self.subTest(kind=entry["kind"], format=kind):
                    format_, group, scale = kinds[kind]
                    found = fp8.quantize(x, format_, (1, group), scale)
                    self.assertTrue(torch.equal(as_bytes(found.scale_inv), read(expected["scales"])))
                    if "tensor" in expected:
                        self.assertEqual(float(found.tensor_scale_inv), float(read(expected["tensor"], np.float32)))
                    codes = as_bytes(found.codes), read(expected["codes"])
                    if (kind, entry["kind"]) != ("mxfp4", "ties"):
                        self.assertTrue(torch.equal(*codes))
                        continue
                    own, other = (torch.stack([value & 15, value >> 4], -1).flatten().int() for value in codes)
                    powers = torch.exp2(read(expected["scales"]).float() - 127).repeat_interleave(32)
                    is_tie = torch.isin(x.flatten().abs() / powers, torch.tensor([.25, .75, 1.25, 1.75, 2.5, 3.5, 5.]))
                    self.assertTrue(bool((own == other)[~is_tie].all()))
                    self.assertTrue(bool(((own & 7) - (other & 7) <= 1).all()))

    @unittest.skipUnless(HAS_TORCHAO, "takes torchao")
    def test_torchao(self):
        """Codes and scales in all modes. Its NVFP4 divides by what scales are multiplied to, so that single codes are next to ours."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
            from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale
        for kind in ("plain", "wide", "blocks", "ties"):
            for dtype in (torch.float32, torch.bfloat16):
                x = draw(kind, dtype)
                for format_, element in (("e4m3", torch.float8_e4m3fn), ("e2m1", torch.float4_e2m1fn_x2)):
                    for mode in ("floor", "ceil", "even", "rceil"):
                        with self.subTest(kind=kind, format=format_, mode=mode, dtype=dtype):
                            scales, codes = to_mx(x, element, 32, getattr(ScaleCalculationMode, mode.upper()))
                            found = fp8.quantize(x, format_, (1, 32), "e8m0", mode=mode)
                            self.assertTrue(torch.equal(as_bytes(found.scale_inv), as_bytes(scales)))
                            self.assertTrue(torch.equal(as_bytes(found.codes), as_bytes(codes)))
                if kind not in ("plain", "ties") or dtype == torch.bfloat16:
                    continue
                with self.subTest(kind=kind, format="nvfp4", dtype=dtype):
                    tensor = per_tensor_amax_to_scale(x.abs().max().float())
                    scales, codes = nvfp4_quantize(x, 16, tensor)
                    found = fp8.quantize(x, "e2m1", (1, 16), "e4m3")
                    self.assertEqual(float(found.tensor_scale_inv), float(tensor))
                    self.assertTrue(torch.equal(as_bytes(found.scale_inv), as_bytes(scales)))
                    self.assertLess((as_bytes(found.codes) != as_bytes(codes)).float().mean(), 0.02)


if __name__ == "__main__":
    unittest.main()
