# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""fp8_mha in graphs of a Backend: parts take the codes of attention's results, with the bits that they would make of numbers."""

import copy
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import importer
from fp8.torch.parts import Part

MHA = fp8.DelayedScaling(amax_history_len=3, fp8_mha=True)
DPA = fp8.DelayedScaling(amax_history_len=3, fp8_dpa=True)


class Block(nn.Module):
    """`behind` is what reads the result of attention first; `is_outer`: heads lie outside of positions."""

    def __init__(self, behind=None, is_outer=False, is_shared=False, is_residual=False):
        super().__init__()
        torch.manual_seed(1)
        self.is_outer, self.is_residual, self.behind = is_outer, is_residual, behind
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.second = nn.Linear(64, 64) if is_shared else None
        self.bfloat16()

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], 2, 32).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if self.is_outer:
            q, k, v = (y.contiguous() for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        y = y if self.behind is None else self.behind(y)
        z = self.out(y)
        if self.second is not None:
            z = z + self.second(y)
        return z + y if self.is_residual else z


class Training:
    def __init__(self, recipe, options, **others):
        torch._dynamo.reset()
        others = {"rest": "eager", **others}
        dynamic = others.pop("dynamic", None)
        self.model, self.backend = Block(**options), fp8.torch.Backend(recipe, target="cpu", **others)
        self.call = torch.compile(self.model, backend=self.backend, dynamic=dynamic)

    def step(self, x):
        self.model.zero_grad()
        memory = {}

        def pack(value):
            memory[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
            return value

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            y = self.call(x)
        self.saved = sum(memory.values())
        y.float().pow(2).sum().backward()
        return [y.detach(), *(each.grad for each in self.model.parameters())]

    def count(self):
        """How many arguments of parts are codes that attention gives."""
        return [sum(info.name.startswith("attended") and info.name.endswith(".codes")
                    for info in part.program.functions[importer.FUNCTION].arguments)
                for part in self.backend.parts if isinstance(part, Part)]


def make(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(0)).bfloat16()


def find_error(found, expected):
    return ((found.float() - expected.float()).norm() / expected.float().norm()).item()


class CodedPartsTest(unittest.TestCase):
    def train(self, x, options=None, **others):
        ways = [Training(recipe, options or {}, **others) for recipe in (MHA, DPA)]
        for _ in range(3):
            results = [way.step(x) for way in ways]
        return *ways, *results

    def check(self, count, sizes=(2, 40, 64), options=None, is_whole=True, **others):
        """Expects codes for so many arguments of parts of the forward, and of the backward; those of a part of a result have the scale of
        all."""
        ours, plain, found, expected = self.train(make(*sizes), options, **others)
        self.assertEqual(sum(ours.count()), 2 * count)
        self.assertEqual(ours.backend.coded, ["graph0: results of 1 call of attention are codes"])
        self.assertEqual(plain.backend.coded, [])
        self.assertLess(ours.saved, plain.saved)
        names = ["y", *(name for name, _ in ours.model.named_parameters())]
        for name, mine, other in zip(names, found, expected, strict=True):
            # Sums of the gradient times the result are of codes, and all else is the same.
            if "qkv" in name or not is_whole:
                self.assertLess(find_error(mine, other), 0.03 if is_whole else 0.08, name)
            else:
                self.assertTrue(torch.equal(mine, other), name)
        return ours, plain

    def test_codes(self):
        for is_outer in False, True:
            self.check(1, options={"is_outer": is_outer})

    def test_orders(self):
        # Nothing tells of as many rows as columns in which order a program takes them.
        self.check(1, (2, 32, 64))
        self.check(1, (1, 64, 64))
        # Two products of a part read one argument.
        self.check(1, options={"is_shared": True})

    def test_views(self):
        self.check(1, options={"behind": lambda y: y.transpose(0, 1)[:, :, None].squeeze(2)})
        self.check(1, options={"behind": lambda y: y[:, 8:]}, is_whole=False)

    def test_without_other_codes(self):
        self.check(1, keep_codes=False)

    def test_inductor(self):
        self.check(1, rest="inductor")

    def test_numbers_for_others(self):
        ours, plain, found, expected = self.train(make(2, 40, 64), {"is_residual": True})
        self.assertEqual(sum(ours.count()), 2)
        self.assertLess(find_error(found[0], expected[0]), 0.05)
        # Where no product reads it, a result stays what it was.
        ours, plain, found, expected = self.train(make(2, 40, 64), {"behind": lambda y: y * 2})
        self.assertEqual((sum(ours.count()), ours.backend.coded), (0, []))
        self.assertTrue(torch.equal(found[0], expected[0]))

    def test_in_either_order(self):
        # Codes that a program quantizes itself where nothing tells their order have the same bits.
        for way, sizes in ("cost", (2, 40, 64)), ("kernel", (2, 32, 64)):
            ours, plain, found, expected = self.train(make(*sizes), transposed_codes=way)
            self.assertTrue(torch.equal(found[0], expected[0]))
            self.assertLess(find_error(found[3], expected[3]), 0.01)

    def test_any_number_of_rows(self):
        ours = Training(MHA, {}, dynamic=True)
        plain = Training(DPA, {}, dynamic=True)
        for rows in 40, 64:
            found, expected = (way.step(make(2, rows, 64)) for way in (ours, plain))
            self.assertTrue(torch.equal(found[0], expected[0]))

    def test_without_gradient(self):
        ours, plain = self.check(1)
        x = make(2, 40, 64)
        for way in ours, plain:
            way.model.requires_grad_(False)
        with torch.no_grad():
            found, expected = ours.call(x), plain.call(x)
        self.assertTrue(torch.equal(found, expected))
        self.assertEqual(len(ours.backend.coded), 2)

    def test_state(self):
        ours, _ = self.check(1)
        saved = copy.deepcopy(ours.backend.state_dict())
        found = ours.step(make(2, 40, 64))
        again = Training(MHA, {})
        again.step(make(2, 40, 64))
        again.backend.load_state_dict(saved)
        for mine, other in zip(again.step(make(2, 40, 64)), found, strict=True):
            self.assertTrue(torch.equal(mine, other))

    def test_present_scales(self):
        ours = Training(fp8.Float8CurrentScaling(fp8_mha=True), {})
        ours.step(make(2, 40, 64))
        self.assertEqual(ours.backend.coded, [])


if __name__ == "__main__":
    unittest.main()
