# RUN: %import_python %s
# REQUIRES: pytorch, python-pytorch
"""The page of a model's training step: what layers multiply, the recipe that each should have, and the
recipe file, which torch.compile's backend takes."""

import json
import tempfile
import unittest
from pathlib import Path

import torch
from torch import nn

import fp8
import fp8.torch

RECIPES = "current", "rowwise"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 64), nn.Linear(64, 64)
        self.norm, self.drop = nn.BatchNorm1d(64), nn.Dropout(0.5)
        self.unused, self.conv = nn.Linear(16, 16), nn.Conv1d(1, 1, 3)

    def forward(self, x):
        return self.down(self.drop(torch.relu(self.norm(self.up(x)))))


def find_loss(y):
    return y.square().mean()


def measure(model, x, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.html"
        measured = fp8.torch.report(model, x, path, recipes=RECIPES, **options)
        return measured, path.read_text(), path.with_suffix(".json").read_text()


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.model = Model()
        cls.x = torch.randn(32, 64)
        cls.x[3] *= 1e6  # A loud row.
        cls.state = {name: value.clone() for name, value in cls.model.state_dict().items()}
        random = torch.get_rng_state()
        cls.measured, cls.page, cls.rules = measure(cls.model, cls.x, loss=find_loss)
        cls.kept_random = torch.equal(random, torch.get_rng_state())

    def test_step(self):
        products = self.measured.products
        self.assertEqual([name for name in products if products[name].decibels], [
            "up", "up.dgrad", "up.wgrad", "down", "down.dgrad", "down.wgrad"])
        self.assertEqual(products["up.wgrad"].shape, "M=64 N=64 K=32")
        self.assertEqual(products["up"].operands, ("up.x", "up.w"))
        stats = self.measured.tensors["up.x"]["current"]
        self.assertEqual(stats.amax, self.x.abs().max().item())
        self.assertGreater(stats.underflow, 0.9)
        self.assertEqual(set(self.measured.tensors), set(self.measured.histograms))

    def test_text(self):
        lines = str(self.measured).split("\n")
        self.assertRegex(lines[0], "^dB +shape +" + " +".join(self.measured.recipes) + " +recipe$")
        self.assertRegex(lines[1], r"^up +M=32 N=64 K=64 +\d+\.\d .* (" + "|".join(self.measured.recipes) + ")$")
        self.assertEqual(len({len(line) for line in lines[:len(self.measured.products) + 1]}), 1)

    def test_gradient(self):
        kept = {}

        def record(module, inputs, y):
            y.register_hook(lambda dy: kept.update(dy=dy))
        hook = self.model.down.register_forward_hook(record)
        model = self.model.eval()
        find_loss(model(self.x)).backward()
        hook.remove()
        measured, *_ = measure(model, (self.x,), loss=find_loss)
        model.train().zero_grad(set_to_none=True)
        self.assertEqual(measured.tensors["down.dgrad.dy"]["rowwise"].amax, kept["dy"].abs().max().item())

    def test_model_is_as_it_was(self):
        for name, value in self.model.state_dict().items():
            self.assertTrue(torch.equal(value, self.state[name]), name)
        self.assertTrue(all(value.grad is None for value in self.model.parameters()))
        self.assertTrue(self.kept_random)
        self.assertFalse(self.model.up._forward_hooks)

    def test_recipe_file(self):
        rules = {rule["match"]: rule["recipe"] for rule in json.loads(self.rules)["rules"]}
        self.assertEqual(rules["up"], rules["up.[dw]grad"])
        self.assertEqual(rules["conv"], "none")
        self.assertIn("a Conv1d is no nn.Linear", self.page)
        self.assertIn("the batch does not reach it", self.page)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recipes.json"
            path.write_text(self.rules.replace('"rowwise"', '"mxfp8"'))
            backend = fp8.torch.Backend("current", recipe_file=str(path))
            find_loss(torch.compile(Model(), backend=backend)(self.x)).backward()
        found = {remark.name: remark.recipe for remark in backend.remarks}
        for name, product in self.measured.products.items():
            layer = name.partition(".")[0]
            if product.decibels and name in found:
                self.assertEqual(found[name], rules[layer].replace("rowwise", "mxfp8"), name)
        self.assertTrue({"up", "up.wgrad", "down", "down.dgrad", "down.wgrad"} <= set(found), found)

    def test_forward_only_and_autocast(self):
        model = nn.Sequential(nn.Linear(64, 64)).requires_grad_(False)
        with torch.autocast("cpu", torch.bfloat16):
            measured, *_ = measure(model, {"input": self.x}, loss=lambda y: y.sum())
        self.assertEqual(list(measured.products), ["0"])
        self.assertEqual(measured.tensors["0.x"]["current"].amax,
                         self.x.bfloat16().abs().max().item())

    def test_mistakes(self):
        for arguments, keywords, message in (
                ((self.model, self.x), {}, "expected a path"),
                ((self.model,), {"path": "p"}, "expected a batch"),
                ((self.model, self.x, "p"), {}, "expected a loss of one element"),
                ((self.model, 3, "p"), {}, "expected a batch that is a tensor"),
                ((self.model, self.x, "p.json"), {"loss": torch.sum}, "expected a page with another ending"),
                ((nn.Tanh(), self.x, "p"), {"loss": torch.sum}, "expected a model with linear layers")):
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.torch.report(*arguments, **keywords)
        self.assertIn("0 of", str(fp8.torch.report(self.model)))  # The form without a batch.
        with self.assertRaisesRegex(fp8.FileError, "nowhere"):
            fp8.torch.report(nn.Linear(16, 16), torch.ones(16, 16), "/nowhere/p.html", loss=torch.sum,
                             recipes=("current",))


if __name__ == "__main__":
    unittest.main()
