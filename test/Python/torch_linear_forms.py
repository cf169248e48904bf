# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Subclasses of torch.nn.Linear: those that compute the same are layers, in training and inference."""

import copy
import pickle
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import fp8.torch
from fp8.torch import modules
from fp8.torch.linear_forms import computes_linear


class Spelled(nn.Linear):
    """As transformers' FalconLinear is."""

    def forward(self, input):
        product = input @ self.weight.T
        return product if self.bias is None else product + self.bias


class Rows(nn.Linear):
    def forward(self, x):
        return F.linear(x.reshape(-1, x.shape[-1]), self.weight, self.bias).view(*x.shape[:-1], -1)


class Scaled(nn.Linear):
    def forward(self, input):
        return 2 * super().forward(input)


class Rounded(nn.Linear):
    def forward(self, input):
        return super().forward(input.round())


class Dropping(nn.Linear):
    def forward(self, input):
        return super().forward(F.dropout(input, 0.1))


class Adapted(nn.Linear):
    """Its adapter is zero, but is trained."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.adapter = nn.Parameter(torch.zeros(sizes[::-1]))

    def forward(self, input):
        return F.linear(input, self.weight + self.adapter, self.bias)


class Stepping(nn.Linear):
    def forward(self, input, step):
        return super().forward(input)


class Evaluated(nn.Linear):
    """One in evaluation."""

    def forward(self, input):
        return F.dropout(super().forward(input), 0.5, self.training)


class Casting(nn.Linear):
    """As Whisper's."""

    def forward(self, input):
        return F.linear(input, self.weight.to(input.dtype),
                        None if self.bias is None else self.bias.to(input.dtype))


class Optional(nn.Linear):
    """As diffusers' that LoRA is set to later."""

    adapter = None

    def forward(self, x, scale=1.0):
        return super().forward(x) if self.adapter is None else scale * self.adapter(x)


class Keeping(nn.Linear):
    def forward(self, input):
        self.last = input
        return super().forward(input)


class Listing(nn.Linear):
    def __init__(self, *sizes, **others):
        super().__init__(*sizes, **others)
        self.seen = []

    def forward(self, input):
        self.seen.append(input.shape)
        return super().forward(input)


class LinearForms(unittest.TestCase):
    def test_which_compute_the_same(self):
        for cls, expected in ((nn.Linear, True), (Spelled, True), (Rows, True), (Scaled, False),
                              (Rounded, False), (Dropping, False), (Adapted, False),
                              (Stepping, False), (Evaluated, False), (Casting, True),
                              (Optional, False), (Keeping, False), (Listing, False)):
            for others in ({}, {"bias": False}, {"dtype": torch.bfloat16}, {"device": "meta"}):
                if cls is not Adapted or not others:
                    with self.subTest(cls.__name__, **others):
                        layer = cls(64, 32, **others)
                        self.assertEqual(computes_linear(layer, cls), expected)
                        self.assertEqual(computes_linear(layer.eval(), cls), expected)
                        self.assertFalse(getattr(layer, "seen", []))

    def test_asking_changes_nothing(self):
        layer = Spelled(64, 32)
        layer.register_forward_hook(lambda *_: self.fail("a hook ran"))
        before, weight = torch.random.get_rng_state(), layer.weight
        self.assertTrue(computes_linear(layer, Spelled))
        self.assertTrue(torch.equal(torch.random.get_rng_state(), before))
        self.assertIs(layer.weight, weight)
        self.assertEqual((layer.in_features, layer.out_features), (64, 32))

    def make(self):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(32, 64), Spelled(64, 64), nn.ReLU(),
                             Spelled(64, 32, bias=False), nn.Linear(32, 16)).bfloat16()

    def test_training(self):
        """As layers of nn.Linear with the same weights are, bit by bit."""
        x, results = torch.randn(16, 32).bfloat16(), []
        for plain in (False, True):
            model = self.make()
            if plain:
                for layer in (model[1], model[3]):
                    layer.__class__ = nn.Linear
            fp8.torch.convert_to_fp8_training(model, "current", target="cpu")
            y = model(x)
            y.float().square().sum().backward()
            self.assertEqual({name: {remark.kind for remark in layer.remarks} for name, layer
                              in modules.get_layers(model).items()}, {"1": {"fp8"}, "3": {"fp8"}})
            results.append([y, *(value.grad for value in model.parameters())])
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)

    def test_compiled(self):
        model = self.make()
        fp8.torch.convert_to_fp8_training(model, "current", target="cpu")
        x = torch.randn(16, 32).bfloat16()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=0)

    def test_casting(self):
        """Another type than the weight's is the forward's to know, and so are keywords."""
        model = nn.Sequential(*[Casting(64, 64) for _ in range(3)])
        fp8.torch.convert_to_fp8_training(model, "current", target="cpu", first_last_bf16=0)
        self.assertEqual(model(torch.randn(16, 64).bfloat16()).dtype, torch.bfloat16)
        self.assertEqual(model(torch.randn(16, 64)).dtype, torch.float32)
        self.assertEqual(model[0](input=torch.randn(16, 64)).shape, (16, 64))

    def test_copies_and_back(self):
        model = self.make()
        fp8.torch.convert_to_fp8_training(model, "current", target="cpu")
        x = torch.randn(16, 32).bfloat16()
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            self.assertTrue(torch.equal(other(x), model(x)))
        fp8.torch.convert_from_fp8(model)
        self.assertIs(type(model[1]), Spelled)
        self.assertTrue(torch.equal(model(x), self.make()(x)))

    def test_parts_of_attention(self):
        """They are the attention's, which multiplies with their weights itself."""
        model = nn.Sequential(nn.MultiheadAttention(64, 2), nn.Linear(64, 64))
        fp8.torch.convert_to_fp8_training(model, "current", target="cpu", first_last_bf16=0)
        self.assertIs(type(model[0].out_proj).forward, nn.Linear.forward)
        self.assertEqual(sorted(modules.get_layers(model)), ["0.in_proj_weight", "0.out_proj", "1"])

    def test_inference(self):
        model = self.make()
        model[4] = Scaled(32, 16).bfloat16()
        fp8.torch.quantize_for_inference(model)
        report = {layer.name: layer for layer in fp8.torch.report(model)}
        self.assertEqual([layer.kind for layer in report.values()],
                         ["fp8", "fp8", "fp8", "high precision"])
        self.assertIn("forward of its own", report["4"].reason)


if __name__ == "__main__":
    unittest.main()
