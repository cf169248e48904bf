# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""What stands beside training in FP8: optimizers with states of 8 and 4 bits, fused ones, clipping, GradScaler,
averages of weights, and layers whose forward is computed again."""

import copy
import importlib.util
import unittest

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

import fp8
import fp8.torch

X = torch.randn(32, 64, generator=torch.Generator().manual_seed(1))
HAS_TORCHAO, HAS_BITSANDBYTES = (importlib.util.find_spec(name) for name in ("torchao", "bitsandbytes"))


def make_model(recipe="delayed", width=64):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 64))
    return model if recipe is None else fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0)


def get_loss(model, x=X):
    return (model(x) - x.roll(1, 0)).square().mean()


def get_states(model):
    return [unit.get_saved() for layer in fp8.torch.modules.get_layers(model).values()
            for unit in layer.units.values()]


class Optimizers(unittest.TestCase):
    def train(self, make, recipe="delayed", width=64):
        """Losses of a few steps, and the optimizer."""
        model = make_model(recipe, width)
        optimizer, losses = make(model.parameters()), []
        for _ in range(6):
            loss = get_loss(model)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses, optimizer

    def check(self, make, width=64):
        losses, optimizer = self.train(make, width=width)
        expected, _ = self.train(make, None, width)
        self.assertLess(losses[-1], losses[0])
        for loss, other in zip(losses, expected):
            self.assertLess(abs(loss / other - 1), 0.02)
        return optimizer

    def test_fused(self):
        self.check(lambda parameters: torch.optim.AdamW(parameters, 1e-2, fused=True))
        self.check(lambda parameters: torch.optim.SGD(parameters, 1e-1, momentum=0.9, foreach=True))

    @unittest.skipUnless(HAS_TORCHAO, "takes torchao")
    def test_torchao(self):
        from torchao.optim import AdamW4bit, AdamW8bit
        self.addCleanup(torch.compiler.set_stance, "default")
        torch.compiler.set_stance("force_eager")  # It compiles a step, which takes a while.
        for cls in (AdamW8bit, AdamW4bit):
            optimizer = self.check(lambda parameters: cls(parameters, 1e-3), width=128)
            state = optimizer.state[optimizer.param_groups[0]["params"][2]]["exp_avg"]
            self.assertEqual(state.codes.dtype, torch.uint8)

    @unittest.skipUnless(HAS_BITSANDBYTES, "takes bitsandbytes")
    def test_bitsandbytes(self):
        from bitsandbytes.optim import AdamW8bit
        try:
            optimizer = self.check(lambda parameters: AdamW8bit(parameters, 1e-3, min_8bit_size=256))
        except (NotImplementedError, RuntimeError, AttributeError) as error:
            self.skipTest(f"bitsandbytes has none for a CPU: {error}")
        state = optimizer.state[optimizer.param_groups[0]["params"][2]]["state1"]
        self.assertEqual(state.dtype, torch.uint8)

    def test_clipping(self):
        model = make_model()
        get_loss(model).backward()
        norm = torch.cat([value.grad.flatten() for value in model.parameters()]).norm()
        found = nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        torch.testing.assert_close(found, norm)
        clipped = torch.cat([value.grad.flatten() for value in model.parameters()]).norm()
        self.assertAlmostEqual(clipped.item(), 1e-3, places=5)

    def test_grad_scaler(self):
        """A step with an Inf is left out, and scales go on as if it had not been."""
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 10)

        def step(x):
            with torch.autocast("cpu", torch.float16):
                loss = get_loss(model, x)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        step(X)
        self.assertEqual(scaler.get_scale(), 2.0 ** 10)
        before = [value.clone() for value in model.parameters()]
        spoiled = X.clone()
        spoiled[3, 5] = torch.nan
        step(spoiled)
        self.assertEqual(scaler.get_scale(), 2.0 ** 9)
        for value, old in zip(model.parameters(), before):
            self.assertTrue(torch.equal(value, old))
        step(X)
        self.assertTrue(all(value.isfinite().all() for value in model.parameters()))
        self.assertFalse(torch.equal(next(model.parameters()), before[0]))

    def test_averages(self):
        model = make_model()
        average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        expected = None
        for _ in range(3):
            get_loss(model).backward()
            optimizer.step()
            optimizer.zero_grad()
            average.update_parameters(model)
            weight = model[2].weight.detach().clone()
            expected = weight if expected is None else 0.5 * (expected + weight)
        torch.testing.assert_close(average.module[2].weight.detach(), expected)
        self.assertIs(type(average.module[2]), fp8.torch.Linear)
        # A copy has a state of its own.
        states = get_states(model)
        with torch.no_grad():
            self.assertTrue(get_loss(average).isfinite())
        self.assertTrue(get_states(model) == states)

    def test_checkpointing(self):
        for recipe in ("delayed", "current"):
            found = []
            for segments in (0, 2):
                model = make_model(recipe)
                for _ in range(2):  # The first step of delayed scaling is another.
                    x = X.clone().requires_grad_()
                    y = checkpoint_sequential(model, segments, x, use_reentrant=False) if segments else model(x)
                    model.zero_grad()
                    y.square().mean().backward()
                found.append(([value.grad for value in model.parameters()], get_states(model)))
            for value, other in zip(found[0][0], found[1][0]):
                self.assertTrue(torch.equal(value, other))
            self.assertTrue(found[0][1] == found[1][1])

    def test_copies_of_optimizers(self):
        """A run that goes on from what was saved is the same."""
        model = make_model()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(2):
            get_loss(model).backward()
            optimizer.step()
            optimizer.zero_grad()
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        other = make_model()
        other.load_state_dict(saved[0])
        second = torch.optim.AdamW(other.parameters(), 1e-2)
        second.load_state_dict(saved[1])
        for each, own in ((model, optimizer), (other, second)):
            get_loss(each).backward()
            own.step()
        for value, expected in zip(other.parameters(), model.parameters()):
            self.assertTrue(torch.equal(value, expected))
        self.assertTrue(get_states(other) == get_states(model))


if __name__ == "__main__":
    unittest.main()
