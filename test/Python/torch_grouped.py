# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""A mixture of experts, whose products are torch's grouped_mm, compiled: beside a loop over experts."""

import unittest

import torch
from torch import nn
from torch.nn import functional

import fp8.torch

GROUPS, WIDTH, HIDDEN = 4, 128, 256


def multiply(x, w, ends):
    return torch._grouped_mm(x, w, offs=ends)


def multiply_each(x, w, ends):
    """The same, one expert after the other, in f32."""
    parts, begin = [], 0
    for expert, end in enumerate(ends.tolist()):
        parts.append(x[begin:end].float() @ w[expert].float())
        begin = end
    return torch.cat(parts).to(x.dtype)


class Experts(nn.Module):
    """gate, up and down; the weights of down lie the other way round."""

    def __init__(self, multiply):
        super().__init__()
        generator = torch.Generator().manual_seed(1)

        def make(*shape):
            values = torch.randn(GROUPS, *shape, generator=generator) / 12
            return nn.Parameter(values.bfloat16())

        self.gate, self.up, self.down = make(HIDDEN, WIDTH), make(HIDDEN, WIDTH), make(HIDDEN, WIDTH)
        self.multiply = multiply

    def forward(self, x, ends):
        gate = self.multiply(x, self.gate.mT, ends)
        up = self.multiply(x, self.up.mT, ends)
        return self.multiply(functional.silu(gate) * up, self.down, ends)


def make_tokens(count):
    """Tokens, and where the groups end, of which the third is empty."""
    generator = torch.Generator().manual_seed(count)
    x = torch.randn(count, WIDTH, generator=generator).bfloat16().requires_grad_()
    ends = [count // 4, count // 2 + 3, count // 2 + 3, count]
    return x, torch.tensor(ends, dtype=torch.int32)


def run(model, call, x, ends):
    """The result and all gradients."""
    model.zero_grad(set_to_none=True)
    x.grad = None
    y = call(x, ends)
    y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype))
    return [y.detach(), x.grad.clone(), *(p.grad.clone() for p in model.parameters())]


def get_errors(results, expected):
    return [float((a.float() - b.float()).norm() / b.float().norm())
            for a, b in zip(results, expected, strict=True)]


def compile(model, recipe, **options):
    torch._dynamo.reset()
    backend = fp8.torch.Backend(recipe, target="cpu", rest="eager")
    return backend, torch.compile(model, backend=backend, fullgraph=True, **options)


class Grouped(unittest.TestCase):
    def check(self, recipe, tolerance, **options):
        model, reference = Experts(multiply), Experts(multiply_each)
        backend, call = compile(model, recipe, **options)
        for count in (256, 384) if options else (256,):
            x, ends = make_tokens(count)
            errors = get_errors(run(model, call, x, ends), run(reference, reference, x, ends))
            self.assertLess(max(errors), tolerance, errors)
        return backend

    def test_high_precision(self):
        self.check(None, 0.01)

    def test_recipes(self):
        for recipe, tolerance in (("current", 0.12), ("delayed", 0.12), ("rowwise", 0.1),
                                  ("block", 0.1), ("mxfp8", 0.1), ("nvfp4", 0.4)):
            with self.subTest(recipe=recipe):
                backend = self.check(recipe, tolerance)
                decided = {remark.name: remark for remark in backend.remarks}
                self.assertEqual(sorted(decided), sorted(
                    f"{name}{role}" for name in ("gate", "up", "down")
                    for role in ("", ".dgrad", ".wgrad")))
                self.assertTrue(all(remark.kind == "fp8" for remark in decided.values()), decided)

    def test_unknown_number_of_tokens(self):
        self.check("current", 0.12, dynamic=True)

    def test_products_of_the_same_tokens_are_one_part(self):
        backend = self.check("current", 0.12)
        names = [part.name for part in backend.parts if "grouped" in part.name]
        # Forward: gate and up, down. Backward: both gradients of down; those of gate and up.
        forward = [name for name in names if "forward" in name]
        self.assertEqual(len(forward), 2, names)
        self.assertLess(len(names) - len(forward), 6, names)

    def test_what_has_no_form_stays(self):
        """Groups of columns of the second matrix."""
        class Columns(nn.Module):
            def forward(self, x, w, ends):
                return torch._grouped_mm(x, w, offs=ends)

        x = torch.randn(GROUPS, 32, 64).bfloat16()
        w = torch.randn(64, 96).bfloat16()
        ends = torch.tensor([16, 32, 64, 96], dtype=torch.int32)
        backend, call = compile(Columns(), "current")
        with self.assertWarnsRegex(UserWarning, "_grouped_mm.default is Inductor's"):
            call(x, w, ends)
        self.assertEqual(backend.parts, [])


if __name__ == "__main__":
    unittest.main()
