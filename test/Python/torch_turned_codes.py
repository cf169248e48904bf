# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Codes in the other order, which large weights whose moments are codes have from a pass of their own: the same as on the way."""

import copy
import unittest
from unittest import mock

import torch
from torch import nn

import fp8.torch
from fp8.torch import update_text

ALWAYS, NEVER = 0, 1 << 40


def train(model, recipe, least, **options):
    """What there is of weights, both ways, and of an optimizer's states behind some steps; and kinds of calls."""
    kinds = set()

    def write(update):
        kinds.add(update.rule.kind)
        return update_text.write(update)

    model = copy.deepcopy(model)
    with mock.patch.object(update_text, "LEAST_TURNED", least), mock.patch("fp8.torch.update_plan.write", write), mock.patch(
            "fp8.torch.update_plan._compile", fp8.torch.update_plan._compile.__wrapped__):
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu", **options)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2, fused=True)
        fp8.torch.fuse_optimizer(model, optimizer, moments="fp8")
        for i in range(3):
            x = torch.randn(128, 256, generator=torch.Generator().manual_seed(i)).bfloat16()
            model(x).float().square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    found = {}
    for name, layer in fp8.torch.modules.get_layers(model).items():
        unit, = layer.units.values()
        content = getattr(layer.weight, "content", None)
        values = unit.held.get(layer.weight) if content is None else {
            **content.get_values("forward"), **content.get_values("backward")}
        found.update({f"{name} {key}": value for key, value in values.items()})
    for i, state in optimizer.state_dict()["state"].items():
        found.update({f"{i} {key}": value for key, value in state.items()})
    return found, kinds


class Test(unittest.TestCase):
    def check(self, recipe, expected, **options):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(256, 384), nn.Linear(384, 128, bias=False)).bfloat16()
        (turned, kinds), (before, others) = (train(model, recipe, least, **options) for least in (ALWAYS, NEVER))
        self.assertEqual("turn" in kinds, expected)
        self.assertNotIn("turn", others)
        self.assertEqual(list(turned), list(before))
        for name, value in turned.items():
            self.assertTrue(torch.equal(*(each.contiguous().reshape(-1).view(torch.uint8) for each in (value, before[name]))), name)

    def test_turned(self):
        self.check("delayed", True)

    def test_not_turned(self):
        """What has a second pass anyway, factors of blocks or of rows, or one order."""
        for recipe, options in (("current", {}), ("block", {}), ("rowwise", {}), ("current", {"parameters": "fp8"}),
                                ("delayed", {"transposed_codes": "kernel"})):
            with self.subTest(recipe, **options):
                self.check(recipe, False, **options)


if __name__ == "__main__":
    unittest.main()
