# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Optimizers that step each parameter within the backward: bits of ordinary steps, and gradients that do not live together."""

import copy
import gc
import unittest
import weakref
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import backward_steps, update_plan

ROWS, WIDTH, DEPTH = 128, 256, 3
ADAMW = {"lr": 1e-2, "weight_decay": 0.1, "fused": True}
MAKERS = {"adamw": lambda p: torch.optim.AdamW(p, **ADAMW),
          "sgd": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True, fused=True),
          "lion": lambda p: fp8.torch.Lion(p, 1e-3, weight_decay=0.1)}


def make_model(recipe="delayed", dtype=torch.bfloat16, parameters=None):
    torch.manual_seed(0)
    layers = [each for _ in range(DEPTH) for each in (nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))]
    return fp8.torch.convert_to_fp8_training(nn.Sequential(*layers).to(dtype), recipe, first_last_bf16=0, target="cpu",
                                             parameters=parameters)


class Run:
    def __init__(self, in_backward, make=MAKERS["adamw"], recipe="delayed", dtype=torch.bfloat16, parameters=None, wrap=None,
                 **options):
        self.model, self.dtype, self.done = make_model(recipe, dtype, parameters), dtype, 0
        self.optimizer = make(self.model.parameters())
        fp8.torch.fuse_optimizer(self.model, self.optimizer, in_backward=in_backward, **options)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.7)
        self.call = wrap(self.model) if wrap else self.model

    def backward(self):
        x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(self.done)).to(self.dtype)
        loss = (self.call(x) - x.roll(1, 0)).float().square().mean()
        loss.backward()
        self.done += 1
        return loss.item()

    def train(self, steps):
        losses = []
        for _ in range(steps):
            losses.append(self.backward())
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
        return losses

    def list_bits(self):
        values = [*self.model.state_dict().values()]
        for parameter in self.model.parameters():
            values += [each for _, each in sorted(self.optimizer.state[parameter].items())]
        return [each.contiguous().view(torch.uint8) if each.ndim else each for each in values]


class Steps(unittest.TestCase):
    def check(self, own, expected):
        for mine, its in zip(own.list_bits(), expected.list_bits(), strict=True):
            self.assertTrue(torch.equal(mine, its))

    def test_bits(self):
        """Weights, moments, codes and histories are those of ordinary steps, as are losses."""
        cases = (("adamw", "delayed", torch.bfloat16, {}), ("sgd", "rowwise", torch.float32, {}),
                 ("lion", "block", torch.bfloat16, {"moments": "fp8"}), ("adamw", "delayed", torch.bfloat16, {"masters": "split"}),
                 ("adamw", "block", torch.bfloat16, {"parameters": "fp8", "moments": "fp8"}),
                 ("adamw", "current", torch.bfloat16, {"parameters": "fp8", "masters": "split"}))
        for name, recipe, dtype, options in cases:
            with self.subTest(optimizer=name, recipe=recipe, options=options):
                own, expected = (Run(each, MAKERS[name], recipe, dtype, **options) for each in (True, False))
                self.assertEqual(own.train(3), expected.train(3))
                self.check(own, expected)

    def test_one_gradient_at_a_time(self):
        """A weight's gradient is gone before the next weight's step."""
        for in_backward, most in ((True, 1), (False, DEPTH)):
            run, alive = Run(in_backward), []
            weights = [layer.weight for layer in run.model if isinstance(layer, nn.Linear)]
            step = update_plan.Plan.step

            def count(*arguments):
                alive.append(sum(each.grad is not None for each in weights))
                return step(*arguments)

            with mock.patch.object(update_plan.Plan, "step", count):
                run.train(2)
            self.assertEqual(max(alive), most)
            if in_backward:
                self.assertEqual(len(alive), 2 * (DEPTH + 1))
                run.backward()
                self.assertTrue(all(each.grad is None for each in weights))

    def test_checkpoints(self):
        """A run that goes on is one that did not stop, from ordinary steps to these and back."""
        for first, second in ((True, True), (True, False), (False, True)):
            whole = Run(False, moments="fp8")
            losses = whole.train(4)
            begun, resumed = Run(first, moments="fp8"), Run(second, moments="fp8")
            self.assertEqual(begun.train(2), losses[:2])
            resumed.model.load_state_dict(copy.deepcopy(begun.model.state_dict()))
            resumed.optimizer.load_state_dict(copy.deepcopy(begun.optimizer.state_dict()))
            resumed.scheduler.load_state_dict(begun.scheduler.state_dict())
            resumed.done = 2
            self.assertEqual(resumed.train(2), losses[2:])
            self.check(resumed, whole)

    def test_ways(self):
        """In torch.compile, with a closure, and under checkpointing."""
        expected = Run(False).train(2)
        self.assertEqual(Run(True, wrap=lambda model: torch.compile(model, backend="aot_eager")).train(2), expected)
        self.assertEqual(Run(True, wrap=lambda model: lambda x: torch.utils.checkpoint.checkpoint(
            model, x, use_reentrant=False)).train(2), expected)
        run = Run(True)
        losses = []
        for _ in range(2):
            losses.append(run.optimizer.step(run.backward))
            run.scheduler.step()
        self.assertEqual(losses, expected)

    def test_shared(self):
        """A layer that is called twice has its step when both gradients are there."""
        runs = []
        for in_backward in (True, False):
            run = Run(in_backward, recipe="current")
            run.call = lambda x, model=run.model: model(model[:3](x))
            runs.append((run.train(2), run))
        (own, mine), (expected, other) = runs
        self.assertEqual(own, expected)
        self.check(mine, other)

    def test_backward_that_fails(self):
        """zero_grad lets a batch be left out."""
        run = Run(True, recipe="current")
        hook = run.model[3].register_full_backward_hook(lambda *_: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            run.backward()
        hook.remove()
        with self.assertRaisesRegex(fp8.UnsupportedError, "a second backward.*use_reentrant=False"):
            run.backward()
        run.optimizer.zero_grad()
        run.train(2)

    def test_hooks_that_take_gradients(self):
        model = make_model("current")
        optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(lambda parameter: setattr(parameter, "grad", None))
        fp8.torch.fuse_optimizer(model, optimizer, in_backward=True)
        before = [parameter.clone() for parameter in model.parameters()]
        model(torch.randn(ROWS, WIDTH).bfloat16()).sum().backward()
        optimizer.step()
        self.assertTrue(all(map(torch.equal, before, model.parameters())))

    def test_groups_that_change(self):
        """Groups in another order, fewer of them, and without a parameter are what they are for ordinary steps."""
        def reverse(groups):
            groups.reverse()

        def pop(groups):
            groups.pop(0)

        def take_out(groups):
            groups[1]["params"] = groups[1]["params"][1:]

        for change in (reverse, pop, take_out):
            found = []
            for in_backward in (True, False):
                model = make_model("current")
                optimizer = torch.optim.AdamW([{"params": [*model[i].parameters()], "lr": 10.0 ** -i / 10} for i in (0, 3, 6)])
                fp8.torch.fuse_optimizer(model, optimizer, in_backward=in_backward)
                for step in range(3):
                    optimizer.zero_grad()
                    x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(step)).bfloat16()
                    model(x).float().square().mean().backward()
                    optimizer.step()
                    if step == 0:
                        change(optimizer.param_groups)
                found.append([*model.parameters()])
            self.assertTrue(all(map(torch.equal, *found)), change)

    def test_groups(self):
        """Parameters of a group that was added have their steps so, too; those without a gradient have none."""
        runs = []
        for in_backward in (True, False):
            model = make_model("block")
            optimizer = torch.optim.AdamW(model[0].parameters(), **ADAMW)
            fp8.torch.fuse_optimizer(model, optimizer, in_backward=in_backward)
            optimizer.add_param_group({"params": [*model[3].parameters(), *model[6].parameters()], "lr": 3e-3})
            model[6].requires_grad_(False)
            for step in range(3):
                x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(step)).bfloat16()
                model(x).float().square().mean().backward()
                self.assertEqual(model[3].weight.grad is None, in_backward)
                optimizer.step()
                optimizer.zero_grad()
            runs.append(model)
        for mine, its in zip(runs[0].parameters(), runs[1].parameters()):
            self.assertTrue(torch.equal(mine, its))

    def test_ends(self):
        """Once more without in_backward, or without the optimizer, backwards keep gradients."""
        run = Run(True)
        run.train(1)
        fp8.torch.fuse_optimizer(run.model, run.optimizer)
        run.backward()
        self.assertIsNotNone(run.model[0].weight.grad)
        run = Run(True)
        optimizer = weakref.ref(run.optimizer)
        run.optimizer = run.scheduler = None
        gc.collect()
        self.assertIsNone(optimizer())
        run.backward()
        self.assertIsNotNone(run.model[0].weight.grad)


class Refusals(unittest.TestCase):
    def test_norms(self):
        model = make_model()
        optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
        with self.assertRaisesRegex(fp8.ArgumentError, "no max_norm with in_backward, but got 1.0: the norm of all gradients"):
            fp8.torch.fuse_optimizer(model, optimizer, max_norm=1.0, in_backward=True)
        run = Run(True)
        run.optimizer.clip_factor = torch.ones(())
        with self.assertRaisesRegex(fp8.UnsupportedError, "clip_factor to be None"):
            run.backward()

    def test_accumulation(self):
        run = Run(True)
        run.backward()
        before = [each.clone() for each in run.model.parameters()]
        with self.assertRaisesRegex(fp8.UnsupportedError, "a second backward: with in_backward gradients are not accumulated"):
            run.backward()
        for mine, its in zip(run.model.parameters(), before):
            self.assertTrue(torch.equal(mine, its))
        run = Run(True)
        with self.assertRaisesRegex(fp8.UnsupportedError, "outside of fp8.torch.accumulated"), fp8.torch.accumulated(run.model):
            run.backward()

    def test_scalers(self):
        for make in (MAKERS["adamw"], MAKERS["lion"]):
            run, scaler = Run(True, make), torch.amp.GradScaler("cpu")
            x = torch.randn(ROWS, WIDTH).bfloat16()
            scaler.scale(run.model(x).float().square().mean()).backward()
            with self.assertRaisesRegex(fp8.UnsupportedError, "expected gradients that are not scaled"):
                scaler.step(run.optimizer)

    def test_ranks(self):
        run = Run(True)
        with mock.patch.object(backward_steps, "_has_ranks", lambda: True), self.assertRaisesRegex(
                fp8.UnsupportedError, "expected one process"):
            run.backward()


if __name__ == "__main__":
    unittest.main()
