# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""fp8_mha: what attention computes is codes, which the layer behind it multiplies as they are, and whose backward is of
them. Its scale is the attention's own, in its state; all else that reads the result has numbers."""

import copy
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import torch
from functorch.compile import default_partition, make_boxed_func
from torch import nn
from torch._functorch.aot_autograd import aot_module_simplified
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention_calls, attention_scales, linear_ops, shared_codes
from fp8.torch.attention_scales import AttentionUnit
from fp8.torch.coded_results import CodedResult

MHA = fp8.DelayedScaling(amax_history_len=3, fp8_mha=True)
DPA = fp8.DelayedScaling(amax_history_len=3, fp8_dpa=True)
ROTATED = fp8.DelayedScaling(amax_history_len=3, fp8_mha=True, dpa_smooth_k=True, dpa_hadamard=True)


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


class Block(nn.Module):
    """`behind` is what reads the result of attention first; if it `is_shared` two layers read it, and if it `is_residual` a
    sum does, too."""

    def __init__(self, behind=None, is_outer=False, is_shared=False, is_residual=False):
        super().__init__()
        self.is_residual = is_residual
        torch.manual_seed(1)
        self.qkv, self.out, self.behind, self.is_outer = nn.Linear(64, 192), nn.Linear(64, 64), behind, is_outer
        self.second = nn.Linear(64, 64) if is_shared else None
        self.bfloat16()

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], 2, 32) for y in self.qkv(x).chunk(3, -1))
        if self.is_outer:
            # Heads lie outside of positions.
            q, k, v = (y.transpose(1, 2).contiguous() for y in (q, k, v))
        else:
            q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        self.seen = y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).flatten(2)
        y = y if self.behind is None else self.behind(y)
        if self.is_residual:
            return self.out(y) + y
        return self.out(y) if self.second is None else self.out(y) + self.second(y)


def convert(recipe=MHA, way="copy", **options):
    return fp8.torch.convert_to_fp8_training(Block(**options), recipe, first_last_bf16=0, filter=None, transposed_codes=way)


def step(model, x):
    model.zero_grad()
    y = model(x)
    y.float().pow(2).sum().backward()
    return y


def find_error(found, expected):
    found, expected = found.float(), expected.float()
    return ((found - expected).norm() / expected.norm()).item()


class Results(unittest.TestCase):
    def setUp(self):
        self.x = make(2, 40, 64).bfloat16()

    def test_are_codes_that_the_layer_multiplies(self):
        for is_outer in (False, True):
            model, plain = convert(is_outer=is_outer), convert(DPA, is_outer=is_outer)
            taken = []
            unit_type = linear_ops.Unit
            forward = unit_type.forward_coded
            unit_type.forward_coded = lambda unit, x, *others: taken.append(x) or forward(unit, x, *others)
            try:
                found = [step(model, self.x) for _ in range(3)]
            finally:
                unit_type.forward_coded = forward
            expected = [step(plain, self.x) for _ in range(3)]
            self.assertEqual(len(taken), 3)
            self.assertIsInstance(model.seen, CodedResult)
            self.assertEqual(model.seen.codes.dtype, torch.float8_e4m3fn)
            self.assertNotIsInstance(plain.seen, CodedResult)
            for ours, theirs in zip(found, expected):
                # The layer's own scale is that of the same numbers.
                self.assertTrue(torch.equal(ours, theirs))
            for (name, ours), theirs in zip(model.named_parameters(), plain.parameters()):
                self.assertLess(find_error(ours.grad, theirs.grad), 0.03, name)
            # The sums of dO times O are of codes, and all else is the same.
            self.assertTrue(torch.equal(model.out.weight.grad, plain.out.weight.grad))

    def test_in_either_order(self):
        """Also of as many rows as columns, whose shape is the same in both; and for two layers that read them."""
        for sizes, is_shared in (((2, 40, 64), True), ((2, 32, 64), True), ((1, 64, 64), False)):
            x, results = make(*sizes).bfloat16(), []
            for recipe, way in ((DPA, "copy"), (MHA, "copy"), (MHA, "cost"), (MHA, "kernel")):
                model = convert(recipe, way, is_shared=is_shared)
                for _ in range(2):
                    y = step(model, x)
                self.assertEqual(isinstance(model.seen, CodedResult), recipe is MHA)
                results.append([y, *(each.grad for name, each in model.named_parameters() if "qkv" not in name)])
            for found in results[1:]:
                for ours, theirs in zip(found, results[0], strict=True):
                    self.assertTrue(torch.equal(ours, theirs))

    def test_have_a_slot_and_a_history(self):
        model = convert()
        for _ in range(2):
            step(model, self.x)
        slots = next(iter(model.fp8_attention.scales.values()))
        self.assertEqual(list(slots), ["q", "k", "v", "o"])
        largest = model.seen.widen().abs().max().item()
        self.assertAlmostEqual(slots["o"].history[0] if hasattr(slots["o"], "history") else largest, largest, delta=largest / 8)
        again = convert()
        again.load_state_dict(copy.deepcopy(model.state_dict()))
        with torch.no_grad():
            self.assertTrue(torch.equal(again(self.x), model(self.x)))

    def test_are_numbers_to_all_else(self):
        for behind in (lambda y: y * 2, lambda y: F.dropout(y, 0.0) + y, lambda y: torch.cat([y[:1], y[1:]]),
                       lambda y: y.float().bfloat16(), nn.Identity()):
            model, plain = convert(behind=behind), convert(DPA, behind=behind)
            for _ in range(2):
                ours, theirs = step(model, self.x), step(plain, self.x)
            self.assertLess(find_error(ours, theirs), 0.08)
            self.assertLess(find_error(model.qkv.weight.grad, plain.qkv.weight.grad), 0.12)
        for behind in lambda y: y.mul_(2), lambda y: F.dropout(y, 0.5, inplace=True):
            with self.assertRaisesRegex(fp8.UnsupportedError, "to stay as it is, but aten.mul_.Tensor writes to it, as dropout"):
                convert(behind=behind)(self.x)

    def test_are_written_to_numbers(self):
        def set_rows(y):
            made = torch.zeros_like(y)
            made[:, 3:] = y[:, 3:]
            made[:, :3] = y[:, :3]
            return made

        def add(y):
            made = torch.ones_like(y)
            made += y
            return made.index_add_(0, torch.tensor([0, 1]), y)

        for behind in set_rows, add, lambda y: torch.empty_like(y).copy_(y):
            model, plain = convert(behind=behind), convert(DPA, behind=behind)
            ours, theirs = step(model, self.x), step(plain, self.x)
            self.assertIsInstance(model.seen, CodedResult)
            self.assertLess(find_error(ours, theirs), 0.08)
            self.assertLess(find_error(model.qkv.weight.grad, plain.qkv.weight.grad), 0.12)

    def test_have_no_memory_of_their_own(self):
        model = convert()
        with torch.no_grad():
            model(self.x)
        y, wide = model.seen, model.seen.widen()
        self.assertTrue(torch.equal(torch.cat([y, y], out=torch.empty(0, dtype=y.dtype)), torch.cat([wide, wide])))
        more = wide.clone()
        torch._foreach_add_([more], [y])
        self.assertTrue(torch.equal(more, wide + wide))
        self.assertEqual(y.tolist(), wide.tolist())
        self.assertTrue(torch.equal(torch.from_dlpack(y), wide))
        for write in (lambda: torch.add(wide, wide, out=y), lambda: torch._foreach_add_([y], [wide])):
            with self.assertRaisesRegex(fp8.UnsupportedError, "to stay as it is"):
                write()
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected numbers to share"):
            y.share_memory_()

    def test_are_for_a_compiled_layer(self):
        model, plain = convert(), convert()
        model.out.compile(backend="aot_eager")
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Dynamo")
            self.assertTrue(torch.equal(step(model, self.x), step(plain, self.x)))
        self.assertIsInstance(model.seen, CodedResult)

    def test_stay_numbers(self):
        # By present scales, as in Transformer Engine, in f32, and in graphs.
        for recipe, dtype in ((fp8.Float8CurrentScaling(fp8_mha=True), torch.bfloat16), (MHA, torch.float32)):
            model = convert(recipe).to(dtype)
            step(model, self.x.to(dtype))
            self.assertIs(type(model.seen), torch.Tensor)
        self.assertEqual(attention_calls.describe(fp8.Float8CurrentScaling(fp8_mha=True))[0], "e4m3")

    def test_have_given_scales(self):
        model = convert()
        for _ in range(3):
            step(model, self.x)
        model.fp8_attention.freeze()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.safetensors")
            next(iter(model.fp8_attention.units.values())).state.save(path)
            scales = fp8.torch.AttentionScales(fp8.StaticScaling(state=path, fp8_mha=True))
            q, k, v = ((make(1, 2, 24, 32, seed=seed) / 4).bfloat16() for seed in range(3))
            y = fp8.torch.scaled_dot_product_attention(q, k, v, scales=scales)
            theirs = fp8.torch.scaled_dot_product_attention(q, k, v, scales=model.fp8_attention)
        self.assertIsInstance(y, CodedResult)
        self.assertTrue(torch.equal(y.codes, theirs.codes))
        self.assertLess(find_error(y, F.scaled_dot_product_attention(q, k, v)), 0.08)

    def test_have_numbers_for_scales(self):
        q, k, v = (make(1, 2, 24, 32, seed=seed).bfloat16() for seed in range(3))
        v = v / 100
        of_v = v.abs().max().item() / 448
        expected = F.scaled_dot_product_attention(q, k, v)
        for options, factor in (({}, of_v), ({"o_scale": of_v / 2}, of_v / 2)):
            scales = fp8.torch.AttentionScales(MHA)
            scales.set_scales(1 / 64, 1 / 64, of_v, **options)
            y = fp8.torch.scaled_dot_product_attention(q, k, v, scales=scales)
            self.assertAlmostEqual(y.factor.item(), factor, delta=factor / 1e6)
            self.assertLess(find_error(y, expected), 0.08)
        with self.assertRaisesRegex(fp8.ArgumentError, "finite and positive, but got 1.0, 1.0, 1.0, 0.0"):
            scales.set_scales(1, 1, 1, o_scale=0)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected no o_scale"):
            fp8.torch.AttentionScales(DPA).set_scales(1, 1, 1, o_scale=1)


def compile_joint(module, inputs):
    """What Inductor does to a joint graph, run by PyTorch."""
    def partition(joint, joint_inputs, **keywords):
        shared_codes.rewrite(joint.graph)
        joint.graph.lint()
        joint.recompile()
        return default_partition(joint, joint_inputs, **keywords)

    def run(graph, inputs):
        shared_codes.rewrite(graph.graph)
        graph.graph.lint()
        graph.recompile()
        return make_boxed_func(graph.forward)

    return aot_module_simplified(module, inputs, fw_compiler=run, bw_compiler=lambda graph, _: make_boxed_func(graph.forward),
                                 inference_compiler=run, partition_fn=partition)


class Graphs(unittest.TestCase):
    """Layers in graphs of torch.compile have the bits of eager mode."""

    def setUp(self):
        torch.compiler.reset()
        self.x = make(2, 40, 64).bfloat16()

    def check(self, count, sizes=(2, 40, 64), way="copy", **options):
        x, called, forward = make(*sizes).bfloat16(), [], linear_ops.Unit.forward_coded
        model, plain = convert(way=way, **options), convert(way=way, **options)
        call = torch.compile(model, backend=compile_joint)
        with mock.patch.object(linear_ops.Unit, "forward_coded", lambda unit, *others: called.append(1) or forward(unit, *others)):
            for _ in range(3):
                model.zero_grad()
                y = call(x)
                y.float().pow(2).sum().backward()
                self.assertEqual(len(called), count)
                self.assertTrue(torch.equal(y, step(plain, x)))
                for (name, ours), theirs in zip(model.named_parameters(), plain.parameters()):
                    self.assertTrue(torch.equal(ours.grad, theirs.grad), name)
                called.clear()
            with torch.no_grad():
                y = call(x)
                self.assertEqual(len(called), count)
                self.assertTrue(torch.equal(y, plain(x)))
        for key, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, plain.state_dict()[key]), key)

    def test_codes(self):
        for is_outer in False, True:
            self.check(1, is_outer=is_outer)
        # What is done before codes is no part of their type.
        self.check(1, recipe=ROTATED)

    def test_kept_graphs(self):
        """Inductor keeps graphs between processes by their texts: other operations are there of other recipes."""
        kinds = {AttentionUnit(attention_scales.find_text(recipe)).number >> linear_ops._COUNTED
                 for recipe in (MHA, DPA, MHA, ROTATED)}
        self.assertEqual(len(kinds), 3)
        # And no pass runs where there is one.
        text = ("import torch, fp8.torch\nfrom fp8.torch import shared_codes\nshared_codes.use_in_graphs()\n"
                "print([op.__name__ for op in (torch.ops.fp8.attention_forward_coded, torch.ops.fp8.linear_forward_coded)])")
        subprocess.run([sys.executable, "-c", text], check=True, capture_output=True)

    def test_in_either_order(self):
        self.check(2, (2, 32, 64), "copy", is_shared=True)
        self.check(1, (2, 32, 64), "cost")

    def test_are_numbers_to_all_else(self):
        """Beside a layer; where none reads codes, it stays what it was, which eager mode has no way to know."""
        self.check(1, is_residual=True)
        model = convert(behind=lambda y: y * 2)
        y = step(torch.compile(model, backend=compile_joint), self.x)
        self.assertLess(find_error(y, step(convert(DPA, behind=lambda y: y * 2), self.x)), 0.01)


if __name__ == "__main__":
    unittest.main()
