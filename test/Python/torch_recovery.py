# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_OPT_LEVEL=3 %import_python %s
"""Training in FP8 goes on after activations that spike and gradients that are not finite."""

import math
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import modules

# Threads of such small tensors wait for each other where others are busy.
torch.set_num_threads(1)

WIDTH, STEPS, HISTORY = 128, 80, 16
DELAYED = f"delayed,amax_history_len={HISTORY}"
RECIPES = (DELAYED, "current", "rowwise", "block", "mxfp8", "nvfp4")
# What the events may do to the loss at the end, beside high precision.
CLOSE = 0.02


class Training:
    """A model that learns a function, with a GradScaler and clipped gradients as usual. `events`
    says in which steps something happens: "spike", x a thousand times as large; "nan" or "inf",
    an element of the gradient of the result; "nans", all of it, as of a loss that is NaN."""

    def __init__(self, make, recipe, events=()):
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH),
                                   nn.GELU(), nn.Linear(WIDTH, WIDTH))
        self.function, self.get_states = make(self.model, recipe)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 3e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
        self.events, self.losses, self.skipped = dict(events), [], 0

    def step(self, number):
        event = self.events.get(number)
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(128, WIDTH, generator=generator)
        y = self.function(1000 * x if event == "spike" else x)
        if event in ("nan", "inf"):
            y.register_hook(lambda dy: dy.index_put((torch.tensor(3), torch.tensor(5)),
                                                    torch.tensor(float(event))))
        elif event == "nans":
            y.register_hook(lambda dy: dy * math.nan)
        loss = F.mse_loss(y, x.sin())
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.skipped += self.scaler.get_scale() < before
        self.losses.append(loss.item())

    def run(self, steps=STEPS):
        while len(self.losses) < steps:
            self.step(len(self.losses))
        return self

    @property
    def last(self):
        """The loss at the end."""
        return sum(self.losses[-10:]) / 10

    @property
    def slots(self):
        """By names that say the layer, the slots of all states."""
        return {f"{holder}.{name}": slot for holder, state in self.get_states().items()
                for name, slot in state.slots.items() if slot.recorded or slot.non_finite}


def make_plain(model, recipe):
    return model, dict


def make_layers(model, recipe):
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu",
                                      stats=True)
    return model, lambda: {name: layer.units[recipe].state for name, layer in
                           modules.get_layers(model).items()}


def make_compiled(model, recipe):
    torch._dynamo.reset()
    backend = fp8.torch.Backend(recipe, target="cpu", rest="eager", stats=True, require=True)
    return (torch.compile(model, backend=backend),
            lambda: {part.name: part.state for part in backend.parts})


WAYS = {"layers": make_layers, "backend": make_compiled}


class Recovery(unittest.TestCase):
    def check_close(self, training, undisturbed):
        """The loss at the end, beside that of the same run without events, is what it is in
        high precision."""
        expected = Training(make_plain, None, training.events).run()
        ratio = expected.last / Training(make_plain, None).run().last
        self.assertEqual(training.skipped, expected.skipped)
        self.assertTrue(all(map(math.isfinite, training.losses)))
        self.assertLess(abs(training.last / undisturbed.last / ratio - 1), CLOSE,
                        (training.losses[::8], undisturbed.losses[::8], ratio))
        self.assertLess(ratio, 1.05)

    def check_scales(self, training, undisturbed):
        for name, slot in training.slots.items():
            ratio = slot.scale / undisturbed.slots[name].scale
            if name.endswith(".dy"):
                # A GradScaler takes a smaller factor after each step that it skips.
                ratio /= 2 ** training.skipped
            self.assertTrue(0.5 < ratio < 2, (name, ratio))

    def test_spikes(self):
        events = {step: "spike" for step in (20, 21, 22)}
        for name, make in WAYS.items():
            with self.subTest(name):
                undisturbed = Training(make, DELAYED).run()
                training = Training(make, DELAYED, events).run(20)
                before = training.slots
                training.run(23)
                # The first spike is too large for the scales, and counted; those of the next
                # step hold it.
                inputs = [name for name in training.slots if name.endswith(".x")]
                self.assertTrue(inputs)
                for name in inputs:
                    slot = training.slots[name]
                    self.assertGreater(slot.saturated, before[name].saturated, name)
                    self.assertLess(slot.scale, before[name].scale / 100, name)
                # It leaves the history, and they are about what they would have been.
                training.run(23 + HISTORY)
                self.check_scales(training, undisturbed)
                training.run()
                self.assertTrue(all(slot.non_finite == 0 for slot in training.slots.values()))
                self.check_close(training, undisturbed)

    def test_gradients_with_inf(self):
        """They are counted, and the scale stays until they have left the history."""
        for name, make in WAYS.items():
            with self.subTest(name):
                undisturbed = Training(make, DELAYED).run()
                training = Training(make, DELAYED, {20: "inf", 50: "inf"}).run(20)
                before = training.slots
                training.run(20 + HISTORY)
                hit = {name for name, slot in training.slots.items() if slot.non_finite}
                # Codes are finite, so that only the tensor has it in which it came.
                self.assertTrue(hit and all(name.endswith(".dy") for name in hit), hit)
                for name in hit:
                    self.assertEqual(training.slots[name].scale, before[name].scale, name)
                training.run()
                self.assertEqual({name: slot.non_finite for name, slot in
                                  training.slots.items() if slot.non_finite},
                                 dict.fromkeys(hit, 2))
                self.assertEqual(training.skipped, 2)
                self.check_scales(training, undisturbed)
                self.check_close(training, undisturbed)

    def test_gradients_with_nan(self):
        """Amaxes are those of the other elements; where there are none, nothing is recorded."""
        for name, make in WAYS.items():
            with self.subTest(name):
                undisturbed = Training(make, DELAYED).run()
                training = Training(make, DELAYED, {20: "nan", 40: "nans"}).run(40)
                self.assertEqual(training.skipped, 1)
                before = training.slots
                self.assertTrue(all(slot.recorded == 40 for slot in before.values()))
                training.run(41)
                self.assertEqual(training.skipped, 2)
                for name, slot in training.slots.items():
                    is_gradient = name.endswith(".dy")
                    self.assertEqual(slot.recorded, 40 if is_gradient else 41, name)
                    if is_gradient:
                        self.assertEqual(slot.scale, before[name].scale, name)
                training.run()
                self.check_scales(training, undisturbed)
                self.check_close(training, undisturbed)

    def test_all_recipes(self):
        events = {20: "spike", 21: "spike", 40: "nan", 45: "nans", 50: "inf"}
        for recipe in RECIPES:
            with self.subTest(recipe):
                undisturbed = Training(make_layers, recipe).run()
                training = Training(make_layers, recipe, events).run()
                self.assertEqual(training.skipped, 3)
                self.check_close(training, undisturbed)

    def test_what_casts_make_of_gradients_that_are_not_finite(self):
        """Who skips steps has to know: an Inf becomes the largest code of its scale, so that the
        gradient of the weight may be finite. By a scale of earlier steps it is no larger than
        usual, by a present one far too large. The gradient of the bias shows it."""
        for recipe, inf_is_finite, nan_is_finite in (
                (DELAYED, True, False), ("current", True, False), ("rowwise", True, False),
                ("block", True, False), ("mxfp8", False, False), ("nvfp4", True, True)):
            for value, is_finite in ((math.inf, inf_is_finite), (math.nan, nan_is_finite)):
                with self.subTest(recipe, value=value):
                    torch.manual_seed(2)
                    layer = fp8.torch.Linear(WIDTH, WIDTH, recipe=recipe, target="cpu")
                    x, dy = torch.randn(128, WIDTH), 1e-3 * torch.randn(128, WIDTH)
                    for _ in range(2):
                        layer.zero_grad()
                        layer(x).backward(dy)
                    usual = layer.weight.grad.abs().max()
                    dy[3, 5] = value
                    layer.zero_grad()
                    layer(x).backward(dy)
                    self.assertEqual(bool(layer.weight.grad.isfinite().all()), is_finite)
                    self.assertFalse(layer.bias.grad.isfinite().all())
                    ratio = layer.weight.grad.abs().max() / usual
                    if is_finite and (recipe == DELAYED or math.isnan(value)):
                        self.assertLess(ratio, 2)
                    elif is_finite:
                        self.assertGreater(ratio, 1000)


if __name__ == "__main__":
    unittest.main()
