# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Weights that are codes: forwards, steps, graphs, checkpoints, copies and averages of layers with parameters in FP8."""

import copy
import io
import unittest
from unittest import mock

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

import fp8
import fp8.torch
from fp8.torch.coded_weights import CodedContent, CodedWeight

ROWS, WIDTH, WIDE = 128, 128, 256


def make_model(parameters="fp8", recipe="block", dtype=torch.bfloat16):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDE), nn.GELU(), nn.LayerNorm(WIDE), nn.Linear(WIDE, WIDTH, bias=False))
    return fp8.torch.convert_to_fp8_training(model.to(dtype), recipe, first_last_bf16=0, parameters=parameters)


def make_input(seed=5, dtype=torch.bfloat16):
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Run:
    def __init__(self, wrap=lambda model: model, dtype=torch.bfloat16, recipe="block", parameters="fp8", **options):
        self.model = make_model(parameters, recipe, dtype)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2, weight_decay=0.1, fused=True)
        fp8.torch.fuse_optimizer(self.model, self.optimizer, **options)
        self.call, self.dtype, self.done = wrap(self.model), dtype, 0

    def train(self, steps):
        losses = []
        for _ in range(steps):
            x = make_input(self.done, self.dtype)
            with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == torch.float32):
                loss = (self.call(x) - x.roll(1, 0)).float().square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.done += 1
            losses.append(loss.item())
        return losses


def get_bits(model):
    """Codes and factors of both directions."""
    return [tensor.view(torch.uint8) for layer in (model[0], model[3]) for direction in ("forward", "backward")
            for tensor in layer.weight.content.get_values(direction).values()]


class Steps(unittest.TestCase):
    def compare(self, own, other):
        for mine, its in zip(get_bits(own), get_bits(other)):
            self.assertTrue(torch.equal(mine, its))

    def test_forward(self):
        """It is that of layers that quantize the same weight, and so are gradients."""
        for recipe in ("block", "current"):
            own, other = (make_model(parameters, recipe) for parameters in ("fp8", None))
            results = []
            for model in (own, other):
                x = make_input().requires_grad_()
                y = model(x)
                y.float().square().sum().backward()
                results.append((y, x.grad, *(parameter.grad for parameter in model.parameters())))
            for mine, its in zip(*results):
                self.assertTrue(torch.equal(mine, its))

    def test_training(self):
        """Losses are near those with bf16 weights, whatever the optimizer keeps; both ways have the same codes, which are
        those of the master, if there is one."""
        plain = Run(parameters=None).train(8)
        for recipe in ("block", "current"):
            for options in ({}, {"moments": "fp8"}, {"masters": "split"}):
                run = Run(recipe=recipe, **options)
                losses = run.train(8)
                self.assertLess(abs(losses[-1] - plain[-1]), 0.02 * plain[-1])
                self.assertEqual(run.optimizer.fp8_left, {})
                for layer in (run.model[0], run.model[3]):
                    content = layer.weight.content
                    self.assertTrue(torch.equal(content.codes.view(torch.uint8).t(), content.turned.view(torch.uint8)))
                    self.assertTrue(torch.equal(content.factors.t(), content.turned_factors))
                    if "masters" in options:
                        made = content.clone()
                        made.fill(run.optimizer.state[layer.weight]["master"])
                        self.assertTrue(torch.equal(made.codes.view(torch.uint8), content.codes.view(torch.uint8)))

    def test_small_steps(self):
        """Steps that are a hundredth of a code's are not lost, as in rounding to the nearest."""
        model = make_model()
        weight = model[3].weight
        optimizer = torch.optim.SGD([weight], 1.0)
        fp8.torch.fuse_optimizer(model, optimizer)
        before = weight.content.dequantize(torch.float32)
        step = before.abs().mean().item() * 2.0 ** -4 / 100
        for _ in range(50):
            weight.grad = torch.full_like(before, step, dtype=torch.bfloat16)
            optimizer.step()
        moved = (before - weight.content.dequantize(torch.float32)).mean().item() / (50 * step)
        self.assertAlmostEqual(moved, 1.0, delta=0.1)

    def test_graphs(self):
        """In torch.compile, which takes codes, and under checkpointing, losses are the same."""
        own = Run()
        losses = own.train(3)
        for wrap in (lambda model: torch.compile(model, backend="aot_eager", fullgraph=True),
                     lambda model: lambda x: checkpoint(model, x, use_reentrant=False)):
            run = Run(wrap)
            self.assertEqual(run.train(3), losses)
            self.compare(run.model, own.model)

    def test_autocast(self):
        """Codes of parameters in f32 are taken as they are, and gradients are of the parameter's type."""
        self.assertLess(Run(dtype=torch.float32).train(8)[-1], 1.25)
        model, results = make_model(dtype=torch.float32), []
        for call in (model, torch.compile(model, backend="aot_eager", fullgraph=True)):
            with torch.autocast("cpu", torch.bfloat16), mock.patch.object(
                    CodedContent, "dequantize", side_effect=AssertionError("a weight was dequantized")):
                y = call(make_input())
                y.float().square().sum().backward()
            results.append((y.detach(), *(parameter.grad for parameter in model.parameters())))
            self.assertEqual({parameter.grad.dtype for parameter in model.parameters()}, {torch.float32})
            model.zero_grad()
        for mine, its in zip(*results):
            self.assertTrue(torch.equal(mine, its))

    def test_moved(self):
        """On another device factors that are the same both ways are so still, as a step writes them once."""
        layer = fp8.torch.convert_to_fp8_training(nn.Sequential(nn.Linear(WIDTH, WIDTH)), "block", first_last_bf16=0,
                                                  parameters="fp8", only_faster=False)[0]
        for moved in (layer.weight.to("meta"), layer.weight.to("cpu", copy=True), copy.deepcopy(layer.weight)):
            own, turned, other = (each.untyped_storage()._cdata for each in (
                moved.content.factors, moved.content.turned_factors, layer.weight.content.factors))
            self.assertEqual(own, turned)
            self.assertNotEqual(own, other)
        content = layer.weight.content.map(torch.clone)
        layer.weight = nn.Parameter(CodedWeight(content, torch.float32))
        optimizer = torch.optim.SGD(layer.parameters(), 100.0)
        fp8.torch.fuse_optimizer(layer, optimizer)
        layer.weight.grad = torch.randn(WIDTH, WIDTH)
        optimizer.step()
        self.assertTrue(torch.equal(content.factors, content.turned_factors))

    def test_types(self):
        """A parameter of another type, and on another device, is the same object, and has the same codes there."""
        model = make_model(dtype=torch.float32)
        weight, codes = model[3].weight, model[3].weight.content.codes.clone()
        weight.grad = torch.ones(weight.shape)
        model.to(torch.float16)
        self.assertIs(model[3].weight, weight)
        self.assertEqual((weight.dtype, weight.grad.dtype), (torch.float16, torch.float16))
        self.assertTrue(torch.equal(weight.content.codes.float(), codes.float()))
        self.assertEqual(model(make_input(dtype=torch.float16)).dtype, torch.float16)
        model.zero_grad()
        model.to("meta", torch.bfloat16)
        self.assertIs(model[3].weight, weight)
        self.assertEqual((weight.dtype, weight.device.type, weight.content.turned.device.type),
                         (torch.bfloat16, "meta", "meta"))
        model.to_empty(device="cpu")
        self.assertEqual((model[3].weight.content.codes.device.type, weight.device.type), ("cpu", "cpu"))

    def test_other_optimizers(self):
        """Those of PyTorch round to the nearest codes."""
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        x, losses = make_input(), []
        for _ in range(4):
            loss = (model(x) - x.roll(1, 0)).float().square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])


class States(unittest.TestCase):
    def test_checkpoints(self):
        """In bf16, or as codes, into models of either kind."""
        run, x = Run(), make_input()
        run.train(2)
        expected = run.model(x)
        for saves_codes in (False, True):
            for layer in (run.model[0], run.model[3]):
                layer.saves_codes = saves_codes
            file = io.BytesIO()
            torch.save(run.model.state_dict(), file)
            states = torch.load(io.BytesIO(file.getvalue()))
            self.assertEqual(states["0.weight"].dtype, torch.float8_e4m3fn if saves_codes else torch.bfloat16)
            self.assertEqual("0.weight_scale_inv" in states, saves_codes)
            for parameters in ("fp8", None):
                model = make_model(parameters)
                with torch.no_grad():
                    model[0].weight.zero_()
                self.assertEqual(str(model.load_state_dict(states)), "<All keys matched successfully>")
                self.assertTrue(torch.equal(model(x), expected))

    def test_resumed(self):
        """A run that goes on from a checkpoint is one that did not stop, from either kind."""
        for options in ({}, {"moments": "fp8"}, {"masters": "split"}):
            whole = Run(**options)
            losses = whole.train(4)
            for saves_codes in (True, False):
                first, second = Run(**options), Run(**options)
                first.train(2)
                for layer in (first.model[0], first.model[3]):
                    layer.saves_codes = saves_codes
                second.model.load_state_dict(copy.deepcopy(first.model.state_dict()))
                second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
                second.done = 2
                self.assertEqual(second.train(2), losses[2:])

    def test_copies(self):
        """A copy, and what has been pickled, has codes of its own."""
        run, x = Run(), make_input()
        run.train(1)
        file = io.BytesIO()
        torch.save(run.model, file)
        for other in (copy.deepcopy(run.model), torch.load(io.BytesIO(file.getvalue()), weights_only=False)):
            self.assertIsInstance(other[0].weight, CodedWeight)
            self.assertIsInstance(other[0].weight, nn.Parameter)
            self.assertTrue(torch.equal(other(x), run.model(x)))
            with torch.no_grad():
                other[0].weight.mul_(2)
            self.assertFalse(torch.equal(other(x), run.model(x)))

    def test_averages(self):
        """An average is of numbers, once its model has been converted back."""
        run = Run()
        average = AveragedModel(run.model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
        fp8.torch.convert_from_fp8(average.module)
        expected, weight = None, run.model[3].weight
        for _ in range(3):
            run.train(1)
            average.update_parameters(run.model)
            values = weight.content.dequantize(torch.bfloat16)
            expected = values if expected is None else expected.lerp(values, 0.5)
        self.assertIs(type(average.module[3].weight.data), torch.Tensor)
        torch.testing.assert_close(average.module[3].weight.detach(), expected, rtol=0.01, atol=1e-4)

    def test_values(self):
        """What is computed with a weight is of its values, and what is written is rounded."""
        weight = make_model()[3].weight
        with torch.no_grad():
            weight.fill_(1.5)
            self.assertEqual(set((weight + 1).flatten().tolist()), {2.5})
            torch._foreach_mul_([weight], 2.0)
        self.assertEqual(weight.float().max().item(), 3.0)
        self.assertEqual(weight.to(torch.float32).dtype, torch.float32)

    def test_assigned(self):
        """load_state_dict(assign=True) makes new parameters that are codes, too, of values or codes."""
        model, x = make_model(), make_input()
        for saves_codes in (False, True):
            for layer in (model[0], model[3]):
                layer.saves_codes = saves_codes
            states = model.state_dict()
            for device in ("cpu", "meta"):
                other = make_model()
                with torch.no_grad():
                    other[0].weight.zero_()
                other.to(device)
                self.assertEqual(str(other.load_state_dict(states, assign=True)), "<All keys matched successfully>")
                self.assertIsInstance(other[0].weight, CodedWeight)
                self.assertIsInstance(other[0].weight, nn.Parameter)
                self.assertTrue(torch.equal(other(x), model(x)))
            self.assertIs(type(states["0.weight"]), torch.Tensor)

    def test_data(self):
        """Values that are assigned to a parameter's data are rounded to its codes."""
        model, x = make_model(), make_input()
        weight = model[3].weight
        before, values = weight._version, torch.randn(weight.shape, dtype=torch.bfloat16)
        weight.data = values
        self.assertIsInstance(weight, CodedWeight)
        self.assertEqual(weight._version, before)
        other = make_model()
        with torch.no_grad():
            other[3].weight.copy_(values)
        self.assertTrue(torch.equal(weight.detach().float(), other[3].weight.detach().float()))
        self.assertTrue(torch.equal(model(x), other(x)))
        weight.data = make_model()[3].weight
        self.assertTrue(torch.equal(model(x), make_model()(x)))
        vector = torch.linspace(-1, 1, sum(each.numel() for each in model.parameters())).bfloat16()
        nn.utils.vector_to_parameters(vector, model.parameters())
        got = nn.utils.parameters_to_vector([each.detach().clone().to(torch.bfloat16) for each in model.parameters()])
        torch.testing.assert_close(got.float(), vector.float(), rtol=0.07, atol=2e-3)
        for wrong in (torch.zeros(3), 1.0):
            with self.assertRaisesRegex(fp8.ArgumentError, r"to be values of its sizes \["):
                weight.data = wrong
        for wrong in (values.float(), values.to("meta")):
            with self.assertRaisesRegex(fp8.ArgumentError, "to be torch.bfloat16 on cpu, as it is, but got torch.[a-z0-9]+ on "):
                weight.data = wrong

    def test_data_is_swapped(self):
        """What was a parameter's data stays what it is, also between a forward and its backward."""
        model, x = make_model(), make_input()
        weight, expected = model[3].weight, model(x)
        kept, codes = weight.data, weight.content.codes.clone()
        weight.data = torch.zeros(weight.shape, dtype=weight.dtype)
        self.assertEqual(model(x).abs().max().item(), 0)
        self.assertTrue(torch.equal(kept.content.codes.float(), codes.float()))
        weight.data = kept
        self.assertTrue(torch.equal(model(x), expected))
        y = model(x)
        weight.data = torch.ones(weight.shape, dtype=weight.dtype)
        y.float().sum().backward()
        self.assertEqual(weight.data[0, 0].item(), 1)
        self.assertIsNotNone(weight.grad)

    def test_data_between_forward_and_backward(self):
        """Gradients are those of the weights that the forward took."""
        for wrap in (lambda model: model, lambda model: torch.compile(model, backend="aot_eager", fullgraph=True)):
            expected = None
            for assigned in (None, 1.0, torch.nan):
                model, x = make_model(), make_input().requires_grad_()
                y = wrap(model)(x)
                if assigned is not None:
                    for layer in (model[0], model[3]):
                        layer.weight.data = torch.full(layer.weight.shape, assigned, dtype=layer.weight.dtype)
                y.float().square().sum().backward()
                got = [x.grad, *(each.grad for each in model.parameters())]
                expected = expected or got
                for mine, its in zip(got, expected, strict=True):
                    self.assertTrue(torch.equal(mine, its))
                self.assertEqual(assigned is None, torch.equal(model(x), y))

    def test_steps_behind_data(self):
        """An optimizer goes on with what the parameter's data is, and with its master where that is what it was."""
        for options in ({}, {"masters": "split"}, {"moments": "fp8"}):
            swapped, run = Run(**options), Run(**options)
            for each in (swapped, run):
                each.train(2)
            weight = swapped.model[0].weight
            kept = weight.data
            weight.data = torch.zeros(weight.shape, dtype=weight.dtype)
            weight.data = kept
            self.assertEqual(swapped.train(3), run.train(3))
            other = swapped.model[3].weight
            other.data = torch.zeros(other.shape, dtype=other.dtype)
            before = other.content
            swapped.train(1)
            # A step of Adam's is about lr.
            moved = other.content.dequantize(torch.float32).abs()
            self.assertIs(other.content, before)
            self.assertGreater(moved.max().item(), 0)
            self.assertLess(moved.max().item(), 0.06)

    def test_views(self):
        """Writes by an index reach the parameter; those to views raise, as these have no memory of it."""
        weight = make_model()[3].weight
        with torch.no_grad():
            weight[1] = 0
            weight.data[2:4] = 1.5
            weight[torch.tensor([5])] = 0
            self.assertEqual([set(weight.float()[row].tolist()) for row in (1, 2, 3, 5)], [{0.0}, {1.5}, {1.5}, {0.0}])
            for write in (lambda: weight[0].zero_(), lambda: weight.data[2:4].fill_(0), lambda: weight.view(-1)[3:].mul_(2),
                          lambda: weight.t().copy_(torch.zeros(weight.t().shape)), lambda: weight[0].detach().zero_(),
                          lambda: weight.unbind()[0].add_(1), lambda: torch.zeros(WIDE, out=weight[0])):
                with self.assertRaisesRegex(fp8.UnsupportedError, r"or by weight\[index\] = values"):
                    write()
        self.assertTrue(torch.equal(weight[2].clone() + weight.t()[:, 1], torch.full((WIDE,), 1.5)))
        self.assertEqual((set(weight[2].tolist()), weight[1].detach().float().numpy().max()), ({1.5}, 0))
        (weight[2] * 2).sum().backward()
        self.assertEqual((weight.grad[2].float().sum().item(), weight.grad.float().sum().item()), (2 * WIDE, 2 * WIDE))
        with self.assertRaisesRegex(RuntimeError, "leaf Variable that requires grad"):
            weight[1] = 0

    def test_tied(self):
        """What other modules have, too, stays what it is, and the summary says so."""
        model = nn.Sequential(nn.Embedding(WIDE, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH),
                              nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDE, bias=False))
        model[4].weight, model[2].weight = model[0].weight, model[1].weight
        fp8.torch.convert_to_fp8_training(model, "block", first_last_bf16=0, parameters="fp8")
        self.assertIs(model[4].weight, model[0].weight)
        self.assertIs(model[2].weight, model[1].weight)
        self.assertEqual([isinstance(layer.weight, CodedWeight) for layer in model], [False, False, False, True, False])
        text = fp8.torch.summarize(model)
        for names in ("0.weight, 4.weight", "1.weight, 2.weight"):
            self.assertIn(f"high precision: the weight, which is no codes, since it is shared: {names}", text)

    def test_masters(self):
        """What else than a step changes a weight stays, where the optimizer has a master of it, too."""
        run = Run(masters="split")
        run.train(1)
        weight, states = run.model[0].weight, copy.deepcopy(run.model.state_dict())
        master = run.optimizer.state[weight]["master"]
        fp8.torch.fuse_optimizer(run.model, run.optimizer, masters="split")
        self.assertFalse(torch.equal(master, weight.content.dequantize(torch.float32)))
        run.train(1)

        def zero():
            with torch.no_grad():
                weight.zero_()

        def zero_data():
            weight.data.zero_()
            run.optimizer.write_codes()

        def load():
            run.model.load_state_dict({**states, "0.weight": torch.zeros(weight.shape)})

        for change in (zero, zero_data, load):
            change()
            for parameter in run.model.parameters():
                parameter.grad = torch.zeros_like(parameter.detach().float()).to(parameter.dtype)
            weight.grad = torch.full(weight.shape, 1e-3, dtype=weight.dtype)
            run.optimizer.step()
            # A step of Adam's is about lr.
            self.assertLess(run.optimizer.state[weight]["master"].abs().max().item(), 0.05)
            self.assertLess(weight.content.dequantize(torch.float32).abs().max().item(), 0.06)
            with torch.no_grad():
                weight.fill_(1.0)
            run.optimizer.step()
            self.assertGreater(weight.content.dequantize(torch.float32).min().item(), 0.9)

    def test_converted_back(self):
        model = make_model()
        values = model[0].weight.content.dequantize(torch.bfloat16)
        fp8.torch.convert_from_fp8(model)
        self.assertIs(type(model[0].weight.data), torch.Tensor)
        self.assertTrue(torch.equal(model[0].weight, values))

    def test_refused(self):
        for recipe in ("delayed", "rowwise", "mxfp8"):
            with self.assertRaisesRegex(fp8.ArgumentError, f"block or current, for parameters in FP8, but got {recipe}"):
                make_model(recipe=recipe)
        with self.assertRaisesRegex(fp8.ArgumentError, "parameters to be None or 'fp8', but got 'int8'"):
            make_model("int8")
        model = nn.Sequential(nn.Linear(48, 128), nn.Linear(128, 128))
        fp8.torch.convert_to_fp8_training(model, "block", first_last_bf16=0, parameters="fp8")
        self.assertEqual([isinstance(layer.weight, CodedWeight) for layer in model], [False, True])


if __name__ == "__main__":
    unittest.main()
