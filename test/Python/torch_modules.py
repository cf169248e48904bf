# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Linear layers of PyTorch in FP8: modules, their states, and what surrounds them."""

import copy
import io
import os
import tempfile
import unittest
import warnings
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import fp8
import fp8.torch
from fp8.torch import linear_ops, linear_programs, modules, speed


def make_model(width=64, wide=128, depth=3, dtype=torch.bfloat16):
    torch.manual_seed(1)
    layers = [nn.Linear(width, wide)]
    for _ in range(depth - 2):
        layers += [nn.GELU(), nn.Linear(wide, wide, bias=False)]
    return nn.Sequential(*layers, nn.GELU(), nn.Linear(wide, width)).to(dtype)


def convert(model, recipe="current", **options):
    options = {"first_last_bf16": 0, "target": "cpu", **options}
    return fp8.torch.convert_to_fp8_training(model, recipe, **options)


def make_layer(recipe="current", inputs=64, outputs=96, bias=True, dtype=torch.bfloat16):
    torch.manual_seed(2)
    return fp8.torch.Linear(inputs, outputs, bias, dtype=dtype, recipe=recipe, target="cpu")


def make_input(*sizes, dtype=torch.bfloat16, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator).to(dtype).requires_grad_()


def run(model, x, dy=None):
    """The result, dx, and the gradients of parameters by name."""
    model.zero_grad(set_to_none=True)
    x.grad = None
    y = model(x)
    y.backward(torch.ones_like(y) if dy is None else dy)
    return y.detach(), x.grad.clone(), {name: p.grad.clone() for name, p in
                                        model.named_parameters() if p.grad is not None}


def get_error(value, expected):
    return ((value.double() - expected.double()).norm() / expected.double().norm()).item()


def quantize(x, dtype):
    """x as the recipe `current` has it: by PyTorch's own casts, in f64."""
    largest = torch.finfo(dtype).max
    scale = torch.tensor(largest, dtype=torch.float32) / x.detach().float().abs().max()
    return (x.detach().float() * scale).to(dtype).double() / scale.double()


class Layers(unittest.TestCase):
    def test_products_are_those_of_quantized_operands(self):
        layer, x = make_layer(), make_input(32, 64)
        dy = make_input(32, 96, seed=4).detach()
        y, dx, gradients = run(layer, x, dy)
        qx, qw = (quantize(value, torch.float8_e4m3fn) for value in (x, layer.weight))
        qdy = quantize(dy, torch.float8_e5m2)
        # What is left is the rounding of results to bf16.
        self.assertLess(get_error(y, qx @ qw.T + layer.bias.detach().double()), 0.003)
        self.assertLess(get_error(dx, qdy @ qw), 0.003)
        self.assertLess(get_error(gradients["weight"], qdy.T @ qx), 0.003)
        self.assertLess(get_error(gradients["bias"], dy.double().sum(0)), 0.003)

    def test_dtypes(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            layer, x = make_layer(dtype=dtype), make_input(4, 8, 64, dtype=dtype)
            y, dx, gradients = run(layer, x)
            self.assertEqual((y.dtype, dx.dtype, gradients["weight"].dtype), (dtype,) * 3)
            self.assertEqual((y.shape, dx.shape), ((4, 8, 96), x.shape))
            self.assertLess(get_error(y, F.linear(x, layer.weight, layer.bias)), 0.06)

    def test_only_what_is_needed_is_computed(self):
        layer, x = make_layer("delayed"), make_input(32, 64)
        y, dx, gradients = run(layer, x)
        for needs_x, needs_weight in ((True, False), (False, True)):
            own = copy.deepcopy(layer)
            own.units["delayed"].set_saved(None)
            own.weight.requires_grad_(needs_weight), own.bias.requires_grad_(needs_weight)
            other = x.detach().clone().requires_grad_(needs_x)
            own(other).backward(torch.ones_like(y))
            if needs_x:
                self.assertTrue(torch.equal(other.grad, dx))
                self.assertIsNone(own.weight.grad)
            else:
                self.assertTrue(torch.equal(own.weight.grad, gradients["weight"]))
                self.assertTrue(torch.equal(own.bias.grad, gradients["bias"]))

    def test_gradients_are_right_in_high_precision(self):
        """With a recipe that leaves them there, backward is that of PyTorch."""
        layer, x = make_layer("block"), make_input(32, 64)
        with self.assertWarnsRegex(UserWarning, "64 inputs and 96 outputs .* not all in FP8: .*K="):
            values = run(layer, x)
        plain = nn.Linear(64, 96, dtype=torch.bfloat16)
        plain.load_state_dict(layer.state_dict())
        expected = run(plain, x)
        self.assertLess(get_error(values[1], expected[1]), 0.05)
        self.assertLess(get_error(values[2]["bias"], expected[2]["bias"]), 0.003)

    def test_sizes_that_change_share_a_program(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            layer = make_layer("current,pow2=true")
            for rows in (16, 32, 48, 64, 80, 96, 112):
                x = make_input(rows, 64)
                self.assertLess(get_error(layer(x), F.linear(x, layer.weight, layer.bias)), 0.06)
        self.assertEqual(len(layer.units["current,pow2=true"].used),
                         linear_programs.Programs.MOST_ROWS + 1)

    def test_parameters_of_another_size(self):
        """As a head's when a model is given more words."""
        for recipe in ("current", "delayed"):
            layer, x = make_layer(recipe), make_input(32, 64)
            run(layer, x)
            other = make_layer(recipe, outputs=112)
            layer.weight, layer.bias = other.weight, other.bias
            self.assertTrue(torch.equal(run(layer, x)[0], run(other, x)[0]))
        self.assertEqual(layer.units[recipe].state.steps, 2)  # Histories go on.

    def test_part_of_a_weight(self):
        """In the same memory, and at the same version, as codes that an optimizer's step has made."""
        layer, x = make_layer("current"), make_input(32, 64)
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        fp8.torch.fuse_optimizer(layer, optimizer)
        run(layer, x)
        optimizer.step()
        layer.weight = nn.Parameter(layer.weight.detach()[:64])
        layer.bias = nn.Parameter(layer.bias.detach()[:64])
        self.assertLess(get_error(layer(x), F.linear(x, layer.weight, layer.bias)), 0.06)

    def test_nothing_in(self):
        layer, x = make_layer(), make_input(0, 64)
        y, dx, gradients = run(layer, x)
        self.assertEqual((y.shape, dx.shape), ((0, 96), (0, 64)))
        self.assertEqual(gradients["weight"].abs().max(), 0)

    def test_views_are_read_as_they_are(self):
        layer = make_layer()
        y, dx, _ = run(layer, make_input(32, 64))
        turned = make_input(32, 64).detach().t().contiguous().t().requires_grad_()
        y2, dx2, _ = run(layer, turned)
        self.assertTrue(torch.equal(y, y2) and torch.equal(dx, dx2))

    def test_operations_are_right_for_pytorch(self):
        layer, x = make_layer("rowwise"), make_input(32, 64)
        layer(x)
        arguments = x, layer.weight, layer.bias, layer.units["rowwise"].number
        frozen = [getattr(value, "data", value) for value in arguments[1:]]
        torch.library.opcheck(torch.ops.fp8.linear.default, (x, *frozen, False))
        # The other checks sum results up, which codes cannot be.
        checks = "test_schema", "test_autograd_registration", "test_faketensor"
        torch.library.opcheck(torch.ops.fp8.linear.default, (*arguments, True),
                              test_utils=checks)

    def test_torch_autocast_rounds(self):
        layer, x = make_layer(dtype=torch.float32), make_input(32, 64, dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        y.sum().backward()
        self.assertEqual((y.dtype, x.grad.dtype, layer.weight.grad.dtype),
                         (torch.bfloat16, torch.float32, torch.float32))


class Models(unittest.TestCase):
    def test_modules_and_parameters_stay(self):
        model = make_model(depth=4)
        before = [(name, id(p)) for name, p in model.named_parameters()]
        plain = copy.deepcopy(model)
        self.assertIs(convert(model, first_last_bf16=1), model)
        kinds = [type(module) for module in model if isinstance(module, nn.Linear)]
        self.assertEqual(kinds, [nn.Linear, fp8.torch.Linear, fp8.torch.Linear, nn.Linear])
        self.assertEqual([(name, id(p)) for name, p in model.named_parameters()], before)
        model(make_input(32, 64))
        fp8.torch.convert_from_fp8(model)
        self.assertEqual(list(model.state_dict()), list(plain.state_dict()))
        self.assertEqual(str(model), str(plain))
        x = make_input(32, 64)
        self.assertTrue(torch.equal(model(x), plain(x)))

    def test_filters(self):
        for filter, expected in ((["2", "9"], ["2"]), ("[24]", ["2", "4"]),
                                 (lambda name, module: module.bias is None, ["2"]),
                                 (None, ["0", "2", "4"])):
            model = convert(make_model(), filter=filter)
            self.assertEqual(list(modules.get_layers(model)), expected)
        with self.assertRaisesRegex(fp8.ArgumentError, "^expected linear layers to convert, but "
                                                       "got 1 that match, of which 1 at either"):
            convert(make_model(), filter="2", first_last_bf16=1)

    def test_only_faster(self):
        # Nothing is compiled for a GPU that is not there.
        model, x = make_model(), make_input(32, 64)
        expected = model(x)
        convert(model, "delayed", target="sm_90a", only_faster=True)
        torch.testing.assert_close(model(x), expected, rtol=0, atol=0)
        text = fp8.torch.summarize(model)
        self.assertRegex(text, r"(?m)^0: delayed\n  32 rows: high precision: expected \d+ us "
                               r"forward and backward, and \d+ under delayed$")
        torch._dynamo.reset()
        for dynamic in (None, True):
            compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=dynamic)
            torch.testing.assert_close(compiled(x), expected, rtol=0, atol=0)
        self.assertIn("few rows, in torch.compile: high precision: expected no gain", fp8.torch.summarize(model))
        self.assertIs(type(fp8.torch.convert_from_fp8(model)[0]), nn.Linear)
        # On a CPU nothing is faster, and all is what was asked for.
        convert(model, "current", only_faster=True)
        self.assertGreater(get_error(model(x), expected), 1e-3)
        self.assertNotIn("high precision", fp8.torch.summarize(model))

    def test_left_again(self):
        """What is left to PyTorch is so without being asked again, until something of it is another."""
        plain = make_model().bfloat16()
        model = convert(copy.deepcopy(plain), "delayed", target="sm_90a", only_faster=True)
        x = make_input(32, 64).bfloat16()
        with mock.patch.object(speed, "is_slower", return_value=True) as ask:
            for each in (x, x[:16], x.view(4, 8, 64)):
                counts = []
                for _ in range(3):
                    self.assertTrue(torch.equal(model(each), plain(each)))
                    counts.append(ask.call_count)
                    ask.reset_mock()
                # The second call has the first layer ask again, for it did not know the rows of the second one.
                self.assertGreater(counts[0], 1)
                self.assertEqual(counts[2], 0)
            with torch.autocast("cpu", torch.float16):
                self.assertEqual(model(x).dtype, torch.float16)
            for wrong in (x.double(), x[:, :32], x.half()):
                with self.assertRaises(fp8.ArgumentError):
                    model(wrong)
            convert(model, "current", target="sm_90a", only_faster=False)
            self.assertIsNone(model[0]._left_call)

    def test_host_is_the_limit(self):
        """Where the host takes longer for a model's layers than the GPU, no cast gains anything."""
        def convert_layers(width, **options):
            with torch.device("meta"):
                model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4))).bfloat16()
            return convert(model, "delayed", target="sm_90a", **options)

        def is_left(layer, width):
            x = torch.empty(8192, width, device="meta", dtype=torch.bfloat16)
            return layer._is_slower(x, "delayed")

        model = convert_layers(1536, only_faster=True)
        self.assertTrue(speed.is_faster("delayed", 8192, 1536, 1536))
        self.assertTrue(is_left(model[1], 1536))
        self.assertRegex(fp8.torch.summarize(model), r"(?m)^1: delayed\n  8192 rows: high precision: "
                         r".* under delayed, but the host to take longer .* than the GPU$")
        self.assertTrue(is_left(copy.deepcopy(model)[1], 1536))
        self.assertFalse(is_left(convert_layers(4096, only_faster=True)[1], 4096))
        # No model is known of a layer alone.
        alone = fp8.torch.Linear(1536, 1536, device="meta", recipe="delayed", target="sm_90a",
                                 only_faster=True)
        self.assertFalse(is_left(alone, 1536))
        # Dynamo does not ask the driver which GPU there is, where it would end a graph.
        sums = speed.Model([(64, 64)]).get_sums(0)
        torch._dynamo.reset()
        torch.compile(lambda x: x + speed.is_limited_by_host(len(x), sums), backend="eager",
                      fullgraph=True)(torch.zeros(4))
        for options, expected in (({"mode": "reduce-overhead"}, 1.0), ({}, 0.0)):
            def ask(x):
                return x + (1.0 if speed.is_replayed() else 0.0)
            torch._dynamo.reset()
            self.assertEqual(torch.compile(ask, **options)(torch.zeros(())).item(), expected)
        self.assertFalse(speed.is_replayed())

    def test_towers(self):
        """Layers with many rows do not make up for those with few, which nobody knows of before they
        are called."""
        class Towers(nn.Module):
            def __init__(self):
                super().__init__()
                self.images = nn.Sequential(*(nn.Linear(64, 64) for _ in range(2)))
                self.texts = nn.Sequential(*(nn.Linear(64, 64) for _ in range(2)))

            def forward(self, x, y):
                x = self.images(x)
                if breaks:
                    torch._dynamo.graph_break()
                return x, self.texts(y)

        def estimate(recipe):
            return (0.0, 1e4 if recipe is None else 5e3, 0.0, 0.0, 0.0)

        breaks = False
        torch.manual_seed(6)
        plain, x, y = Towers().bfloat16(), make_input(64, 64), make_input(16, 64)
        expected = plain(x, y)
        def compute(unit, x, *others):
            unit.before_call()
            return [x.clone()]

        # A layer of 64 rows takes the GPU 1.13 us a product, one of 16 rows 0.28.
        for compiles, product, breaks in ((False, 0.9, False), (False, 0.6, False),
                                          (True, 0.9, False), (True, 0.6, False), (True, 0.9, True)):
            with self.subTest(compiles=compiles, product=product, breaks=breaks), torch.no_grad(), \
                    mock.patch.object(speed, "get_constants", estimate), \
                    mock.patch.object(speed, "get_host", lambda: (product, 1.3)), \
                    mock.patch.object(linear_ops.Unit, "forward", compute):
                torch._dynamo.reset()
                model = convert(copy.deepcopy(plain), "current", target="sm_90a", only_faster=True)
                call = torch.compile(model, backend="aot_eager") if compiles else model
                found = [[not torch.equal(*each) for each in zip(call(x, y), expected)]
                         for _ in range(4)]
                # The first call does not know of the texts before it gets there, nor does the
                # second where the texts are another graph.
                self.assertEqual(found[0], [True, product == 0.6 and not compiles])
                self.assertEqual(found[1 + breaks:], (3 - breaks) * [2 * [product == 0.6]])

    def test_expected_times(self):
        for recipe in ("delayed", "delayed,amax_history_len=4", "current", "rowwise", "block"):
            self.assertFalse(speed.is_faster(recipe, 32, 3072, 768), recipe)
            self.assertTrue(speed.is_faster(recipe, 8192, 14336, 4096), recipe)
        self.assertTrue(speed.is_faster("mxfp8", 1, 1, 1))
        # The cast of a weight whose codes an optimizer writes is not there.
        sizes = 256, 8192, 2048
        self.assertFalse(speed.is_faster("delayed", *sizes))
        self.assertTrue(speed.is_faster("delayed", *sizes, has_codes=True))
        self.assertFalse(speed.is_faster("delayed", 32, 3072, 768, has_codes=True))
        layer = convert(nn.Sequential(nn.Linear(2048, 8192, dtype=torch.bfloat16)), "delayed", target="sm_90a",
                        only_faster=True, first_last_bf16=0)[0]
        x = torch.empty(256, 2048, dtype=torch.bfloat16)
        with mock.patch.object(speed, "is_limited_by_host", return_value=False):
            self.assertTrue(layer._is_slower(x, "delayed"))
            fp8.torch.fuse_optimizer(layer, torch.optim.SGD(layer.parameters(), 0.1))
            self.assertFalse(layer._is_slower(x, "delayed"))
        self.assertLess(speed.estimate("delayed", 8192, 4096, 4096),
                        speed.estimate("rowwise", 8192, 4096, 4096))

    def test_summary(self):
        model = make_model()
        convert(model, filter="2")
        model(make_input(32, 64))
        text = fp8.torch.summarize(model)
        self.assertRegex(text, r"0: high precision: it was not converted\n2: current\n"
                               r"  3 of 3 matrix products in FP8\n  fprop  fprop  M=32 N=128 K=128")

    def test_summary_of_ends(self):
        model = convert(make_model(depth=4), first_last_bf16=1)
        for each in (model, copy.deepcopy(model)):
            lines = fp8.torch.summarize(each).split("\n")
            self.assertEqual([line.partition(":")[0] for line in lines if line.endswith("as one of the first or last layers (first_last_bf16)")],
                             ["0", "6"])
        self.assertNotIn("first", fp8.torch.summarize(convert(make_model(), filter="2")))

    def test_quantized(self):
        model = fp8.torch.quantize_for_inference(make_model(), "rowwise")
        with self.assertRaisesRegex(fp8.ArgumentError, "expected linear layers to convert.*; 3 are quantized for inference already"):
            convert(model)

    def test_autocast_says_which_recipe(self):
        model, x = convert(make_model(), None), make_input(32, 64)
        plain = fp8.torch.convert_from_fp8(copy.deepcopy(model))
        self.assertTrue(torch.equal(model(x), plain(x)))
        with fp8.torch.autocast(fp8.Float8CurrentScaling()):
            y = model(x)
            with fp8.torch.autocast("rowwise", enabled=False):
                self.assertTrue(torch.equal(model(x), plain(x)))
        self.assertFalse(torch.equal(y, plain(x)))
        self.assertTrue(torch.equal(y, convert(copy.deepcopy(plain))(x)))
        # Outside again, backward is still of FP8.
        y.sum().backward()
        self.assertIsNone(fp8.torch.autocast.current)

    def test_compiled_without_a_graph_break(self):
        for recipe in ("current", "delayed"):
            model, x = convert(make_model(), recipe), make_input(32, 64)
            compiled = torch.compile(copy.deepcopy(model), backend="aot_eager", fullgraph=True)
            for _ in range(3):
                expected, got = run(model, x), run(compiled, x)
                self.assertTrue(torch.equal(expected[0], got[0]))
                self.assertTrue(torch.equal(expected[1], got[1]))

    def test_compiled_with_autocast_inside(self):
        model, x = convert(make_model(), None), make_input(32, 64)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def compute(x):
            with fp8.torch.autocast("current"):
                return model(x)

        with fp8.torch.autocast("current"):
            expected = model(x)
        self.assertTrue(torch.equal(compute(x), expected))

    def test_checkpointing_repeats_with_the_same_scales(self):
        model = convert(make_model(), "delayed")
        other = copy.deepcopy(model)
        for seed in range(3):
            x = make_input(32, 64, seed=seed)
            expected = run(model, x)
            other.zero_grad(set_to_none=True)
            again = x.detach().clone().requires_grad_()
            y = checkpoint(other, again, use_reentrant=False)
            y.backward(torch.ones_like(y))
            self.assertTrue(torch.equal(y, expected[0]) and torch.equal(again.grad, expected[1]))
            for name, parameter in other.named_parameters():
                self.assertTrue(torch.equal(parameter.grad, expected[2][name]))

    def test_learns_as_in_bf16(self):
        losses = {}
        for recipe in (None, "delayed", "current", "rowwise"):
            model = make_model(dtype=torch.float32)
            if recipe:
                convert(model, recipe)
            optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
            generator = torch.Generator().manual_seed(5)
            for _ in range(60):
                x = torch.randn(64, 64, generator=generator)
                loss = F.mse_loss(model(x), x.sin())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses[recipe] = loss.item()
        for recipe, loss in losses.items():
            self.assertLess(abs(loss / losses[None] - 1), 0.05, (recipe, losses))


class States(unittest.TestCase):
    def get_slots(self, layer, recipe="delayed"):
        return {name: (slot.scale, slot.amax) for name, slot in
                layer.units[recipe].state.slots.items()}

    def test_each_backward_is_a_step(self):
        layer, x = make_layer("delayed"), make_input(32, 64)
        layer(x)
        self.assertEqual(layer.units["delayed"].state.steps, 0)
        run(layer, x)
        state = layer.units["delayed"].state
        self.assertEqual(state.steps, 1)
        amax = x.abs().max().item()
        self.assertEqual(state.slots["fprop.x"].amax, amax)
        self.assertAlmostEqual(state.slots["fprop.x"].scale, 448 / amax, places=3)

    def test_checkpoints(self):
        model, x = convert(make_model(), "delayed"), make_input(32, 64)
        for _ in range(3):
            run(model, x)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        other = convert(make_model(), "delayed")
        self.assertEqual(str(other.load_state_dict(torch.load(file, weights_only=True))),
                         "<All keys matched successfully>")
        clone = copy.deepcopy(model)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        expected = run(model, x)
        for own in (other, clone, loaded):
            got = run(own, x)
            self.assertTrue(torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1]))
        # A checkpoint from before, in high precision, loads too.
        convert(make_model(), "delayed").load_state_dict(make_model().state_dict())

    def test_a_checkpoint_of_before_the_first_step(self):
        """None in place of a state is restored: nothing had been computed."""
        model, x = convert(make_model(), "delayed"), make_input(32, 64)
        saved = copy.deepcopy(model.state_dict())
        self.assertFalse(any("fp8_state" in key for key in saved))
        expected = run(model, x)
        run(model, (x.detach() * 100).requires_grad_())
        model.load_state_dict(saved)
        got = run(model, x)
        self.assertTrue(torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1]))
        # The state of what is not loaded stays.
        name, layer = next(iter(modules.get_layers(model).items()))
        model.load_state_dict({key: value for key, value in saved.items()
                               if not key.startswith(f"{name}.")}, strict=False)
        self.assertEqual(layer.units["delayed"].state.steps, 1)

    def test_one_step_of_several_calls(self):
        layer = make_layer("delayed")
        first, second = make_input(32, 64), make_input(32, 64, seed=9)
        with fp8.torch.accumulated(layer):
            run(layer, first), run(layer, second)
        state = layer.units["delayed"].state
        self.assertEqual(state.steps, 1)
        self.assertEqual(state.slots["fprop.x"].amax,
                         max(first.abs().max().item(), second.abs().max().item()))
        run(layer, first)
        self.assertEqual(state.steps, 2)

    def test_spikes_and_nan_are_survived(self):
        model, x = convert(make_model(), "delayed"), make_input(32, 64)
        for _ in range(3):
            run(model, x)
        expected = run(model, x)[0]
        with torch.no_grad():
            spike = x.detach() * 1000
        run(model, spike.requires_grad_())
        self.assertTrue(run(model, x, torch.full_like(expected, float("nan")))[1].isnan().any())
        run(model, x, torch.full_like(expected, float("inf")))
        self.assertEqual(model[4].units["delayed"].state.slots["dgrad.dy"].non_finite, 1)
        y, dx, gradients = run(model, x)
        self.assertTrue(y.isfinite().all() and dx.isfinite().all())
        self.assertLess(get_error(y, expected), 0.2)

    def test_two_processes_have_the_state_of_one(self):
        """Each with half of the batch, as with the whole of it."""
        x = make_input(64, 64)
        single = convert(make_model(), "delayed")
        for _ in range(3):
            with fp8.torch.accumulated(single):
                run(single, x)
        expected = {name: self.get_slots(layer) for name, layer in
                    modules.get_layers(single).items()}
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(_train_half, (folder, x.detach()), nprocs=2)
            got = [torch.load(os.path.join(folder, f"{rank}.pt")) for rank in range(2)]
        self.assertEqual(got[0], got[1])
        for name, slots in expected.items():
            for slot, (_, amax) in slots.items():
                if amax == 0:
                    # A function that was not called has no state.
                    continue
                # Gradients are of half the batch, sums of fewer products: not the same bits.
                self.assertAlmostEqual(got[0][name][slot][1] / amax, 1, delta=0.02,
                                       msg=f"{name}.{slot}")


def _train_half(rank, folder, x):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=2)
    model = convert(make_model(), "delayed")
    half = x.chunk(2)[rank].clone().requires_grad_()
    for _ in range(3):
        with fp8.torch.accumulated(model):
            run(model, half)
    states = States()
    torch.save({name: states.get_slots(layer) for name, layer in
                modules.get_layers(model).items()}, os.path.join(folder, f"{rank}.pt"))
    torch.distributed.destroy_process_group()


class Mistakes(unittest.TestCase):
    def test_are_said_and_change_nothing(self):
        layer = make_layer()
        good = make_input(32, 64)
        expected = run(layer, good)[0]
        for x, message in (
                (make_input(32, 63), r"expected x of \[..., 64\], but got \[32, 63\]"),
                (make_input(32, 64, dtype=torch.float32),
                 r"expected the weight to be of torch.float32 as x is, but got torch.bfloat16"),
                (make_input(32, 64, dtype=torch.float64),
                 r"expected x of float32, float16 or bfloat16, but got torch.float64"),
                (make_input(32, 64).to("meta"), "expected the weight on meta")):
            with self.assertRaisesRegex(fp8.ArgumentError, f"^{message}"):
                layer(x)
        self.assertTrue(torch.equal(run(layer, good)[0], expected))
        model = make_model()
        for make in (lambda: make_layer("delaied"), lambda: fp8.torch.autocast("delaied"),
                     lambda: convert(model, "delaied"),
                     lambda: convert(model, "delayed", max_paddings=3)):
            with self.assertRaises(fp8.Error):
                make()
        self.assertEqual(modules.get_layers(model), {})
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a module or a Backend"):
            fp8.torch.end_step(3)


if __name__ == "__main__":
    unittest.main()
