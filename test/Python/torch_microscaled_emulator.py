# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Layers for inference in MXFP8 and NVFP4 by the kernels of a GPU that multiplies neither, on the emulator, beside the
CPU: the way that their products take is chosen by the number of rows, when the program runs."""

import copy
import re
import tempfile
import unittest
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import expert_programs, schemes

N, K = 264, 1024
KINDS = {"mxfp8": ("mxfp8", {}), "mxfp8 in bf16": ("rowwise", {"weights": "mxfp8", "activations": "bf16"}),
         "nvfp4": ("nvfp4", {}), "nvfp4 in bf16": ("rowwise", {"weights": "nvfp4", "activations": "bf16"})}


def quantize(kind, k=K, n=N):
    torch.manual_seed(2)
    recipe, options = KINDS[kind]
    return fp8.torch.quantize_for_inference(nn.Linear(k, n).bfloat16().eval(), recipe, **options)


class Layers(unittest.TestCase):
    def run_on_gpu(self, layer, x):
        """What the layer's program for a GPU makes of x."""
        real, given = schemes.compile_linear, []

        def compile(scheme, n, k, element, bias, target):
            given.append(target)
            return real(scheme, n, k, element, bias, "sm_90a")

        # Calls keep the program that an earlier one took.
        layer = copy.deepcopy(layer)
        with mock.patch.object(schemes, "compile_linear", compile):
            y = layer(x)
        self.assertEqual(set(given), {"cpu"})
        return y

    @torch.no_grad()
    def check(self, layer, rows):
        generator = torch.Generator().manual_seed(rows)
        x = torch.randn(rows, K, generator=generator).bfloat16()
        y, other = self.run_on_gpu(layer, x).float(), layer(x).float()
        # Results are rounded to bf16.
        self.assertLess(((y - other).norm() / other.norm()).item(), 3e-3, rows)

    def test_rows(self):
        for kind in KINDS:
            with self.subTest(kind):
                layer = quantize(kind)
                for rows in (1, 40, 70):
                    self.check(layer, rows)

    def list_products(self, text):
        """The kernels of a program's products, each as what A and B are."""
        program = fp8.emit(text, "mlir", target="sm_90a", to="kernels").decode()
        return [f"{a} {b}" for a, b in re.findall(r"fp8_gpu.launch @\w+::@fp8_matmul_sm90a_([a-z0-9]+)_([a-z0-9]+)_", program)]

    def test_ways(self):
        """Few rows of MXFP8 are multiplied in FP8, others by kernels that read codes, and many in bf16 that a pass makes.
        The scale of a tensor in NVFP4 multiplies sums."""
        for kind, ways in (("mxfp8", ["e4m3 e4m3", "bf16 mxfp8", "bf16 bf16"]), ("mxfp8 in bf16", ["bf16 mxfp8", "bf16 bf16"]),
                           ("nvfp4", ["bf16 nvfp4", "bf16 bf16"]), ("nvfp4 in bf16", ["bf16 nvfp4", "bf16 bf16"])):
            recipe, options = KINDS[kind]
            scheme = schemes.make_scheme(recipe, False, **options)
            products = self.list_products(schemes.write_linear(scheme, 4096, 4096, "bf16", "bf16"))
            with self.subTest(kind):
                self.assertEqual(list(dict.fromkeys(products)), ways)

    def test_checkpoints(self):
        """What is saved and loaded again takes the same way."""
        for kind in ("mxfp8", "nvfp4 in bf16"):
            model = nn.Sequential(quantize(kind))
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                fp8.torch.save_quantized(model, folder, layout="compressed-tensors")
                with torch.device("meta"):
                    other = nn.Sequential(nn.Linear(K, N).bfloat16())
                other = fp8.torch.load_quantized(other, folder)
                x = torch.randn(9, K).bfloat16()
                with torch.no_grad():
                    self.assertTrue(torch.equal(self.run_on_gpu(other[0], x), self.run_on_gpu(model[0], x)))

    def test_experts(self):
        """Programs of experts are for numbers of rows that they know: few for each are multiplied in FP8, many in bf16 that a pass makes."""
        scheme = str(schemes.make_scheme("mxfp8", False))
        shapes = (expert_programs.Shape(scheme, 8, 2048, 2048, None),)
        for rows, way in ((64, "e4m3 e4m3"), (2048, "bf16 mxfp8"), (16384, "bf16 bf16")):
            self.assertEqual(self.list_products(expert_programs.write(shapes, None, "bf16", rows)), [way])


if __name__ == "__main__":
    unittest.main()
