# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Scales of attention that follow from earlier steps, or are given: fp8_dpa of DelayedScaling and StaticScaling in modules,
models of transformers and graphs, their histories in state_dict, under checkpointing and in steps of several calls."""

import copy
import os
import pickle
import tempfile
import unittest
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention as scaled
from torch.utils.checkpoint import checkpoint

import fp8
import fp8.torch
from fp8.torch import attention_scales
from fp8.torch.attention_callers import calls_attention

DELAYED = fp8.DelayedScaling(amax_history_len=3, fp8_dpa=True)
STATE = "fp8_attention.fp8_state"


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


class Block(nn.Module):
    def __init__(self, width=64, heads=2, calls=1):
        super().__init__()
        self.qkv, self.out, self.heads, self.calls = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, calls

    def forward(self, x):
        for _ in range(self.calls):
            q, k, v = (y.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
            x = self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x


class Inner(Block):
    """Checkpoints attention alone."""

    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant

    def attend(self, *tensors):
        return F.scaled_dot_product_attention(*tensors, is_causal=True)

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = checkpoint(self.attend, q, k, v, use_reentrant=self.reentrant)
        return self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, calls=1, checkpoints=False):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.ModuleList([Block(calls=calls) for _ in range(2)])
        self.places, self.checkpoints = nn.Parameter(torch.randn(9, 64)), checkpoints

    def forward(self, x):
        x = x + self.places
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpoints else layer(x)
        return x


def convert(recipe=DELAYED, filter=None, **options):
    return fp8.torch.convert_to_fp8_training(Model(**options), recipe, filter=filter, first_last_bf16=0)


def train(model, x):
    model.zero_grad()
    y = model(x)
    y.square().sum().backward()
    return [y.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def get_scales(model, key=""):
    return [scales.scales[key] for scales in attention_scales.find_all(model).values()]


class Case(unittest.TestCase):
    def check_same(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for x, y in zip(found, expected):
            self.assertTrue(torch.equal(x, y))


class Function(Case):
    def test_scales_are_of_earlier_steps(self):
        scales = fp8.torch.AttentionScales(DELAYED)
        q, k, v = (make(1, 2, 8, 32, seed=seed).requires_grad_() for seed in range(3))
        first = fp8.torch.scaled_dot_product_attention(q, k, v, scales=scales)
        # The first step has the scales of its own tensors, but for their rounding those of `current`.
        current = fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3")
        self.assertLess((first - current).abs().max().item(), 1e-5)
        first.sum().backward()
        slots = scales.scales[""]
        self.assertEqual(list(slots), ["q", "k", "v"])
        for slot, x in zip(slots.values(), (q, k, v)):
            self.assertEqual((slot.recorded, slot.amax), (1, x.abs().max().item()))
        # Larger ones saturate in the second step, and not in the third.
        y = fp8.torch.scaled_dot_product_attention(q, k, 4 * v, scales=scales)
        self.assertLessEqual(y.abs().max(), v.abs().max())
        y.sum().backward()
        y = fp8.torch.scaled_dot_product_attention(q, k, 4 * v, scales=scales)
        self.assertLess((y - 4 * current).norm(), 0.1 * y.norm())
        self.assertEqual(scales.scales[""]["v"].amax, 4 * v.abs().max().item())

    def test_formats_and_mistakes(self):
        q = make(1, 2, 8, 32)
        scales = fp8.torch.AttentionScales("delayed,format=e5m2,margin=-2,accumulate=fast")
        fp8.torch.scaled_dot_product_attention(q, q, q, scales=scales)
        self.assertEqual(scales.scales[""]["q"].format, "e5m2")
        for recipe in (fp8.Float8CurrentScaling(), "block", None):
            with self.assertRaisesRegex(fp8.ArgumentError, "expected a recipe with scales of other steps"):
                fp8.torch.AttentionScales(recipe)
        for given, format in ((scales, "e4m3"), ("a", None)):
            with self.assertRaisesRegex(fp8.ArgumentError, "expected an AttentionScales as scales, and no format, but got"):
                fp8.torch.scaled_dot_product_attention(q, q, q, scales=given, format=format)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected scales to keep"):
            fp8.torch.AttentionScales(DELAYED).freeze()
        with self.assertRaisesRegex(fp8.ArgumentError, "to be given to scaled_dot_product_attention"):
            scales(q)
        for wrong in (0, -1, float("nan"), float("inf"), 1e-320):
            before = [slot.scale for slot in scales.scales[""].values()]
            with self.assertRaisesRegex(fp8.ArgumentError, "expected scales to be finite and positive, but got 5.0, "):
                scales.set_scales(5, wrong, 1)
            self.assertEqual([slot.scale for slot in scales.scales[""].values()], before)
        scales.share_amaxes("group")
        self.assertEqual(copy.deepcopy(scales)._groups, {"group"})

    def test_nothing(self):
        """An empty tensor has no largest number, and shares none."""
        scales = fp8.torch.AttentionScales(DELAYED)
        scales.share_amaxes("group")
        with mock.patch("fp8.torch.collectives.reduce_max") as reduce_max:
            q = make(0, 2, 8, 32)
            self.assertEqual(fp8.torch.scaled_dot_product_attention(q, q, q, scales=scales).shape, q.shape)
        for call in reduce_max.call_args_list:
            self.assertEqual(call.args[0].tolist(), [0, 0, 0])

    def test_given_and_kept(self):
        q = make(1, 2, 8, 32)
        scales = fp8.torch.AttentionScales(DELAYED)
        scales.set_scales(0.25, 0.5, 0.125)
        expected = fp8.torch.scaled_dot_product_attention(q, q, q, scales=scales)
        leaf = q.clone().requires_grad_()
        for _ in range(2):
            y = fp8.torch.scaled_dot_product_attention(leaf, 3 * leaf, leaf, scales=scales)
            y.sum().backward()
        self.assertEqual([slot.scale for slot in scales.scales[""].values()], [4.0, 2.0, 8.0])
        self.assertTrue(torch.equal(fp8.torch.scaled_dot_product_attention(q, q, q, scales=scales), expected))
        # Scales of a checkpoint are kept as those of training are.
        scales.freeze(False)
        fp8.torch.scaled_dot_product_attention(leaf, leaf, leaf, scales=scales).sum().backward()
        self.assertEqual(scales.scales[""]["q"].amax, q.abs().max().item())

    def test_static(self):
        q = make(1, 2, 8, 32).requires_grad_()
        scales = fp8.torch.AttentionScales(DELAYED)
        fp8.torch.scaled_dot_product_attention(q, q, q, scales=scales).sum().backward()
        scales.freeze()
        expected = fp8.torch.scaled_dot_product_attention(q, q, q, scales=scales)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.safetensors")
            scales.units[""].state.save(path)
            static = fp8.torch.AttentionScales(fp8.StaticScaling(state=path, fp8_dpa=True))
            self.assertEqual(list(static.state_dict()), [])
            self.assertTrue(torch.equal(fp8.torch.scaled_dot_product_attention(q, q, q, scales=static), expected))
            self.assertEqual(list(static.state_dict()), [])


class Modules(Case):
    def test_each_module_has_its_own(self):
        model = convert(filter=["layers.*"])
        x = make(2, 9, 64)
        train(model, x)
        self.assertEqual(list(attention_scales.find_all(model)), [f"layers.{i}.fp8_attention" for i in range(2)])
        amaxes = [slots["v"].amax for slots in get_scales(model)]
        self.assertTrue(all(amaxes) and amaxes[0] != amaxes[1])
        self.assertIn("layers.0.fp8_attention: delayed,amax_history_len=3", fp8.torch.summarize(model))
        # One around them that has parameters of its own has no calls.
        self.assertEqual(len(get_scales(convert_and_train(x))), 2)

    def test_calls_of_one_forward(self):
        model = convert(calls=2)
        train(model, make(2, 9, 64))
        scales = attention_scales.find_all(model)["layers.0.fp8_attention"]
        self.assertEqual(list(scales.units), ["", "[1]"])
        self.assertNotEqual(*(slots["q"].amax for slots in scales.scales.values()))
        self.assertIn("layers.0.fp8_attention.fp8_state.[1]", model.state_dict())

    def test_by_name(self):
        """Modules that the filter leaves out have attention of their own type, and say so."""
        x = make(2, 9, 64)
        model = convert(filter=["layers.1.*", "layers.1"])
        train(model, x)
        self.assertEqual(list(attention_scales.find_all(model)), ["layers.1.fp8_attention"])
        self.assertIn("layers.0: attention in high precision: it was not converted", fp8.torch.summarize(model))
        self.check_same([model.layers[0](x)], [Model().layers[0](x)])
        self.assertFalse(torch.equal(model.layers[1](x), Model().layers[1](x)))

    def test_other_recipes_leave_it(self):
        model = convert(fp8.DelayedScaling())
        self.assertFalse(attention_scales.find_all(model))
        model = convert(fp8.Float8CurrentScaling(fp8_dpa=True))
        self.assertFalse(attention_scales.find_all(model))
        self.assertNotIn("attention in high", fp8.torch.summarize(model))
        model = fp8.torch.convert_from_fp8(convert())
        self.assertFalse(attention_scales.find_all(model))
        x = make(2, 9, 64)
        self.check_same(train(model, x), train(Model(), x))

    def test_multihead(self):
        torch.manual_seed(0)
        model = nn.Sequential(nn.MultiheadAttention(64, 2, batch_first=True))
        fp8.torch.convert_to_fp8_training(model, DELAYED, first_last_bf16=0)
        x = make(2, 9, 64)
        model[0](x, x, x, need_weights=False)[0].sum().backward()
        self.assertEqual(get_scales(model)[0]["q"].recorded, 1)
        self.assertIn(f"0.{STATE}", model.state_dict())

    def test_autocast(self):
        model, x = convert(None), make(2, 9, 64)
        # No module keeps scales that a recipe around calls would have.
        with fp8.torch.autocast(DELAYED):
            train(model, x)
        self.assertFalse(attention_scales.find_all(model))


class Aliases(nn.Module):
    """Calls attention by another name, in functions that functions call."""

    def __init__(self, attend, width=64):
        super().__init__()
        self.qkv, self.out, self.attend = nn.Linear(width, 3 * width), nn.Linear(width, width), attend

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], 2, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        return self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))


def attend(*tensors):
    return scaled(*tensors, is_causal=True)


def attend_further(*tensors):
    return attend(*tensors)


class Processor:
    def __call__(self, *tensors):
        return F.scaled_dot_product_attention(*tensors)


class Callers(Case):
    def test_other_names(self):
        for each in (scaled, attend, attend_further, Processor(), lambda *tensors: attend_further(*tensors)):
            self.assertTrue(calls_attention(Aliases(each)))
        self.assertFalse(calls_attention(Aliases(torch.add)))

    def test_one_that_only_names_it(self):
        """Another method may name it, and be that of a whole model, whose layers call it."""
        class Chooser(Model):
            def choose(self):
                return F.scaled_dot_product_attention

        class Caller(Aliases):
            def choose(self):
                return F.scaled_dot_product_attention

        self.assertFalse(calls_attention(Chooser()))
        self.assertTrue(calls_attention(Caller(torch.add)))
        model = fp8.torch.convert_to_fp8_training(Chooser(), DELAYED, filter=lambda name, _: "layers.0" != name,
                                                  first_last_bf16=0)
        train(model, make(2, 9, 64))
        self.assertEqual(list(attention_scales.find_all(model)), ["layers.1.fp8_attention"])

    def test_none(self):
        with self.assertWarnsRegex(UserWarning, "no module was found to call attention"):
            fp8.torch.convert_to_fp8_training(nn.Sequential(nn.Linear(64, 64)), DELAYED, first_last_bf16=0)


class Steps(Case):
    def test_state_dict(self):
        x, other = make(2, 9, 64), 2 * make(2, 9, 64, seed=1)
        model = convert()
        train(model, x)
        saved = copy.deepcopy(model.state_dict())
        self.assertIn(f"layers.0.{STATE}", saved)
        expected = train(model, other)
        loaded = convert()
        loaded.load_state_dict(saved)
        self.check_same(train(loaded, other), expected)
        for made in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
            self.assertEqual(get_scales_saved(made), get_scales_saved(loaded))
        # One without a history has none of what was computed.
        train(model, x)
        model.load_state_dict(saved)
        self.check_same(train(model, other), expected)

    def test_distributed_checkpoint(self):
        from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
        x = make(2, 9, 64)
        model = convert()
        train(model, x)
        saved = get_model_state_dict(model)
        self.assertIn(f"layers.1.{STATE}", saved)
        loaded = fp8_prepared()
        set_model_state_dict(loaded, saved)
        self.check_same(train(loaded, x), train(model, x))

    def test_checkpoint_before_calls(self):
        """A checkpoint has a state of each module, called or not, and one of another run has no history."""
        model, x = convert(), make(2, 9, 64)
        self.assertEqual(model.layers[0].fp8_attention.units, {})
        model.layers[1](x).sum().backward()
        saved = copy.deepcopy(model.state_dict())
        self.assertEqual({key for key in saved if "attention" in key}, {
            key for key in fp8_prepared().state_dict() if "attention" in key})
        loaded = convert()
        loaded.load_state_dict(saved)
        self.check_same(train(loaded, x), train(model, x))

    def test_checkpoint_without_histories(self):
        model, x = convert(), make(2, 9, 64)
        train(model, x)
        adapter = {"layers.0.qkv.lora_A.weight": x}
        model.load_state_dict(adapter, strict=False)
        self.assertEqual([slots["q"].recorded for slots in get_scales(model)], [1, 1])
        model.load_state_dict({key: value for key, value in model.state_dict().items() if "fp8" not in key})
        self.check_same(train(model, 2 * x), train(convert(), 2 * x))

    def test_weights_keep_scales(self):
        """Given scales stay whatever weights are loaded, and histories do unless all weights of the module are."""
        model, x = convert(), make(2, 9, 64)
        train(model, x)
        weights = {key: value for key, value in model.state_dict().items() if "fp8" not in key}
        model.load_state_dict({"layers.0.qkv.weight": weights["layers.0.qkv.weight"]}, strict=False)
        self.assertEqual([slots["q"].recorded for slots in get_scales(model)], [1, 1])
        model.layers[0].fp8_attention.set_scales(0.5, 0.25, 0.125)
        model.load_state_dict(weights)
        model(x)
        self.assertEqual([slot.scale for slot in get_scales(model)[0].values()], [2, 4, 8])

    def test_checkpointing(self):
        x = make(2, 9, 64)
        plain, repeated = convert(), convert(checkpoints=True)
        for step in range(3):
            self.check_same(train(repeated, (1 + step) * x), train(plain, (1 + step) * x))
        self.assertEqual(get_scales(repeated), get_scales(plain))

    def test_checkpointing_within(self):
        """What is repeated outside of the forward of a converted module is what it was in it."""
        x = make(2, 9, 64)
        for reentrant in (False, True):
            found = []
            for make_one in (Block, lambda: Inner(reentrant)):
                torch.manual_seed(0)
                model = nn.Sequential(make_one(), make_one())
                fp8.torch.convert_to_fp8_training(model, DELAYED, first_last_bf16=0)
                found.append([y for step in range(3) for y in train(model, (1 + step) * x)])
            self.check_same(*found)

    def test_checkpointed_products(self):
        """So are products with parameters."""
        class Product(nn.Module):
            def __init__(self, is_checkpointed):
                super().__init__()
                self.weight, self.is_checkpointed = nn.Parameter(make(64, 64, seed=1)), is_checkpointed

            def multiply(self, x):
                return (x @ self.weight).relu() @ self.weight.T

            def forward(self, x):
                return checkpoint(self.multiply, x, use_reentrant=True) if self.is_checkpointed else self.multiply(x)

        found = []
        for is_checkpointed in (False, True):
            model = nn.Sequential(Product(is_checkpointed))
            fp8.torch.convert_to_fp8_training(model, fp8.Float8CurrentScaling(), first_last_bf16=0)
            x = make(8, 64).requires_grad_()
            found.append([*train(model, x), x.grad])
        self.check_same(*found)

    def test_accumulated(self):
        model, x = convert(), make(2, 9, 64)
        with fp8.torch.accumulated(model):
            for factor in (1, 4, 2):
                model(factor * x).sum().backward()
                self.assertEqual(get_scales(model)[0]["q"].recorded, 0)
        self.assertEqual(get_scales(model)[0]["q"].recorded, 1)
        whole = convert()
        train(whole, 4 * x)
        self.assertEqual(get_scales(model)[0]["q"].amax, get_scales(whole)[0]["q"].amax)


class Graphs(Case):
    def test_compiled_modules(self):
        x = make(2, 9, 64)
        model, plain = convert(), convert()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        for step in range(3):
            expected = train(plain, (1 + step) * x)
            for found, y in zip(train(compiled, (1 + step) * x), expected):
                self.assertLess((found - y).norm(), 1e-4 * y.norm() + 1e-6)
        for found, slots in zip(get_scales(model), get_scales(plain)):
            self.assertEqual([slot.recorded for slot in found.values()], [slot.recorded for slot in slots.values()])

    def test_backend(self):
        x = make(2, 9, 64)
        backend = fp8.torch.Backend(fp8.DelayedScaling(fp8_dpa=True), rest="eager")
        model = torch.compile(Model(), backend=backend)
        train(model, x)
        saved = backend.state_dict()
        self.assertTrue({"graph0.attention0", "graph0.attention1"} <= set(saved))
        slots = next(part for part in backend.parts if part.name == "graph0.attention0").state.slots
        self.assertEqual(slots["q"].recorded, 1)
        self.assertTrue(all("delayed scales" in text for text in backend.attention.taken))
        train(model, 2 * x)
        backend.load_state_dict(saved)
        slots = next(part for part in backend.parts if part.name == "graph0.attention0").state.slots
        self.assertEqual(slots["q"].recorded, 1)


def convert_and_train(x):
    model = convert()
    train(model, x)
    return model


def fp8_prepared():
    model = convert()
    fp8.torch.make_states(model)
    return model


def get_scales_saved(model):
    return {key: value.tolist() for key, value in model.state_dict().items() if key.endswith(STATE)}


if __name__ == "__main__":
    unittest.main()
