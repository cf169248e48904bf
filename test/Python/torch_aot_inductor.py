# REQUIRES: pytorch, python-pytorch, cxx
# RUN: %import_python %s
"""A quantized model that torch.export and AOTInductor make a package of, for any number of rows, has its bits."""

import os
import tempfile
import unittest

import torch
from torch import nn

import fp8.torch


class Package(unittest.TestCase):
    def test_package(self):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 64)).bfloat16().eval()
        fp8.torch.quantize_for_inference(model, "rowwise")
        x = torch.randn(8, 64).bfloat16()
        rows = torch.export.Dim("rows", min=2, max=4096)
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            exported = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
            self.assertTrue(torch.equal(exported.module()(x), model(x)))
            path = torch._inductor.aoti_compile_and_package(
                exported, package_path=os.path.join(folder, "model.pt2"))
            run = torch._inductor.aoti_load_package(path)
            for count in (8, 5):
                self.assertTrue(torch.equal(run(x[:count]), model(x[:count])), count)


if __name__ == "__main__":
    unittest.main()
