# REQUIRES: pytorch, python-pytorch
# UNSUPPORTED: sanitizers
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Layers whose codes Hopper's kernels transpose, on the emulator: the bits of those with transposed copies."""

import re
import unittest
import warnings

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import linear_programs


def make(recipe, way, **options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(192, 256), nn.GELU(), nn.Linear(256, 160, bias=False)).bfloat16()
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="sm_90a", only_faster=False,
                                             transposed_codes=way, cache=False, **options)


def step(model, optimizer=None):
    x = torch.randn(256, 192, generator=torch.Generator().manual_seed(3)).bfloat16().requires_grad_()
    y = model(x)
    model.zero_grad()
    y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype))
    results = [y.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]
    if optimizer is not None:
        optimizer.step()
    return results


class Pair(nn.Module):
    """Two layers that read one x."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)

    def forward(self, x):
        return self.first(x), self.second(x)


def make_pair(way, dtype, **options):
    torch.manual_seed(1)
    return fp8.torch.convert_to_fp8_training(Pair().to(dtype), "current", first_last_bf16=0, target="sm_90a", only_faster=False,
                                             transposed_codes=way, cache=False, **options)


def step_pair(model, x, casts):
    x = x.clone().requires_grad_()
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=casts):
        results = model(x)
    sum(each.float().square().sum() for each in results).backward()
    return [*(each.detach() for each in results), x.grad, *(each.grad.clone() for each in model.parameters())]


class OneOrder(unittest.TestCase):
    def check_equal(self, values, expected):
        for value, other in zip(values, expected, strict=True):
            self.assertTrue(torch.equal(value, other))

    def test_has_the_bits_of_copies(self):
        warnings.simplefilter("ignore")
        for recipe in ("current", "delayed", "current,accumulate=fast"):
            expected, results = ([step(model) for _ in range(2)] for model in map(lambda way: make(recipe, way), ("copy", "kernel")))
            for result, other in zip(results, expected):
                self.check_equal(result, other)

    def test_weights_of_one_order(self):
        warnings.simplefilter("ignore")
        for recipe, options in (("current", {}), ("delayed", {}), ("current", {"parameters": "fp8"})):
            results = []
            for way in ("copy", "kernel"):
                model = make(recipe, way, **options)
                optimizer = fp8.torch.fuse_optimizer(model, torch.optim.AdamW(model.parameters(), 1e-2, fused=True))
                results.append([value for _ in range(2) for value in step(model, optimizer)])
            self.check_equal(*results)

    def test_shared_codes_of_other_types(self):
        """Codes of x have one type, of whatever type x is: calls that were prepared for one are none for another."""
        warnings.simplefilter("ignore")
        x = torch.randn(128, 64, generator=torch.Generator().manual_seed(3))
        autocast, f32, f16 = (torch.float32, True), (torch.float32, False), (torch.float16, False)
        for dtype, options, calls in ((torch.float32, {}, (autocast, autocast, f32)),
                                      (torch.bfloat16, {"parameters": "fp8"}, ((torch.bfloat16, False), f32, f16))):
            results = []
            for way in ("copy", "kernel"):
                model = make_pair(way, dtype, **options)
                results.append([value for given, casts in calls for value in step_pair(model, x.to(given), casts)])
            self.assertEqual([value.dtype for value in results[0]], [value.dtype for value in results[1]])
            self.check_equal(*results)

    def test_kernels_transpose(self):
        """The weight in the gradient of x, and one operand of the gradient of the weight."""
        shape = linear_programs.Shape(256, 192, 256, torch.bfloat16, False, True)
        for way, count in (("copy", 0), ("kernel", 2)):
            text = fp8.emit(shape.write(), "mlir", "current", target="sm_90a", transposed_codes=way, to="buffers").decode()
            backward = text.partition("func.func @backward(")[2].partition("func.func")[0]
            self.assertEqual(len(re.findall(r"@fp8_matmul_sm90a_\w*registers", backward)), count)


if __name__ == "__main__":
    unittest.main()
