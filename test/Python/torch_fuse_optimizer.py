# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Optimizers whose steps write the codes of weights: the same numbers as torch.optim's fused ones, and as
quantizing the new weights."""

import copy
import pickle
import unittest
import warnings
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import step_program
from fp8.torch.step_factors import make_numbers
from fp8.torch.update_text import Rule

RECIPES = ("delayed", "current", "rowwise", "block")
MAKERS = {
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1, fused=True),
    "adam": lambda p: torch.optim.Adam(p, 1e-2, weight_decay=0.1, amsgrad=True, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True, weight_decay=0.01, fused=True)}
# Rows and widths of which nothing of block's is in high precision, and whole vectors of torch's own loops.
ROWS, WIDTH, WIDE = 128, 128, 256


def make_model(recipe, dtype=torch.float32, width=WIDTH):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, WIDE), nn.GELU(), nn.LayerNorm(WIDE), nn.Linear(WIDE, width, bias=False))
    model = model.to(dtype)
    return model if recipe is None else fp8.torch.convert_to_fp8_training(
        model, recipe, first_last_bf16=0, cache_weights=True)


class Run:
    """A model, its optimizer, and inputs that are the same for all."""

    def __init__(self, recipe, make, fuses, dtype=torch.float32, autocast=False):
        self.model = make_model(recipe, dtype)
        self.optimizer = make(self.model.parameters())
        if fuses:
            fp8.torch.fuse_optimizer(self.model, self.optimizer)
        self.dtype, self.autocast = dtype, autocast
        self.generator, self.losses = torch.Generator().manual_seed(3), []

    def forward(self):
        x = torch.randn(ROWS, WIDTH, generator=self.generator).to(self.dtype)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            return (self.model(x) - x.roll(1, 0)).float().square().mean()

    def train(self, steps):
        for _ in range(steps):
            loss = self.forward()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.losses.append(loss.item())
        return self

    def get_moments(self):
        return [(name, value) for parameter in self.model.parameters()
                for name, value in sorted(self.optimizer.state[parameter].items())]


def get_units(model):
    return [layer.units[layer.recipe] for layer in fp8.torch.modules.get_layers(model).values()]


class Others(unittest.TestCase):
    """What else has, moves or changes a fused optimizer's tensors."""

    def make(self, layers=3, make=MAKERS["adamw"]):
        torch.manual_seed(0)
        model = nn.ModuleList([nn.Conv2d(4, 4, 3) for _ in range(layers)])
        return model, fp8.torch.fuse_optimizer(model, make(model.parameters()))

    @staticmethod
    def set_gradients(model, count=None):
        for parameter in list(model.parameters())[:count]:
            parameter.grad = torch.ones_like(parameter)

    @staticmethod
    def get_steps(model, optimizer):
        return {optimizer.state[parameter]["step"].item() for parameter in model.parameters()}

    def test_copies_count_their_steps(self):
        """A copy is torch's own, whose parameters share no number of steps."""
        for copying in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
            model, optimizer = self.make()
            for _ in range(2):
                self.set_gradients(model)
                optimizer.step()
            model, plain = copying((model, optimizer))
            self.assertIs(type(plain), torch.optim.AdamW)
            self.set_gradients(model)
            plain.step()
            self.assertEqual(self.get_steps(model, plain), {3})

    def test_parameters_that_become_torchs(self):
        """Their steps go on from where they were, each by itself."""
        model, optimizer = self.make()
        for _ in range(2):
            self.set_gradients(model)
            optimizer.step()
        model.to(memory_format=torch.channels_last)
        self.set_gradients(model)
        optimizer.step()
        self.assertEqual(self.get_steps(model, optimizer), {3})

    def test_parameters_without_a_gradient(self):
        """Their steps stand still, also behind a new group, or another call of fuse_optimizer."""
        for change in (lambda model, optimizer: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(16))]}),
                       fp8.torch.fuse_optimizer):
            model, optimizer = self.make(1)
            self.set_gradients(model)
            optimizer.step()
            change(model, optimizer)
            optimizer.zero_grad()
            self.set_gradients(model, 1)
            optimizer.step()
            self.assertEqual([optimizer.state[parameter]["step"].item() for parameter in model.parameters()], [2, 1])

    def test_state_that_is_replaced(self):
        """Tensors that others put into the state, as those who move it, are those of the next step."""
        model, optimizer = self.make(1)
        other, plain = copy.deepcopy((model, optimizer))
        for step in range(3):
            for each, its in ((model, optimizer), (other, plain)):
                self.set_gradients(each)
                its.step()
                for state in its.state.values():
                    if step == 1:
                        state.clear()
                    state.update({name: value.clone() for name, value in state.items()})
        for mine, its in zip(model.parameters(), other.parameters()):
            self.assertTrue(torch.equal(mine, its))
            self.assertTrue(torch.equal(optimizer.state[mine]["exp_avg"], plain.state[its]["exp_avg"]))

    def test_first_step_of_scaled_momentum(self):
        """There is no buffer to keep where the first gradients are not finite."""
        parameter = nn.Parameter(torch.ones(16))
        optimizer = torch.optim.SGD([parameter], 1.0, momentum=0.9, fused=True)
        fp8.torch.fuse_optimizer(nn.Module(), optimizer)
        for gradient, found, expected_value in ((float("inf"), 1.0, 1.0), (2.0, 0.0, 0.0)):
            parameter.grad = torch.full((16,), gradient)
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(found)
            optimizer.step()
            self.assertEqual(set(parameter.tolist()), {expected_value})

    def test_clip_factor(self):
        """All gradients are multiplied by it, those that torch.optim steps among them, which stay as they are."""
        weight, other = nn.Parameter(torch.ones(16)), nn.Parameter(torch.ones(16, 16).t())
        wide = nn.Parameter(torch.ones(16, dtype=torch.float64))
        optimizer = torch.optim.SGD([weight, other, wide], 1.0)
        fp8.torch.fuse_optimizer(nn.Module(), optimizer)
        optimizer.clip_factor = torch.tensor(0.5)
        for parameter in (weight, other, wide):
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        for parameter in (weight, other, wide):
            self.assertEqual(set(parameter.flatten().tolist()), {0.5})
            self.assertEqual(set(parameter.grad.flatten().tolist()), {1.0})
        for factor, got in ((0.5, "float"), (torch.ones(2), r"sizes \[2\]")):
            optimizer.clip_factor = factor
            with self.assertRaisesRegex(fp8.ArgumentError, f"clip_factor to be a tensor of one number, but got .*{got}"):
                optimizer.step()

    def test_writes_through_data(self):
        """A model that becomes one that evaluates, or trains, takes its weights as they are."""
        for recipe in ("current", "delayed"):
            run = Run(recipe, MAKERS["adamw"], True).train(2)
            for parameter in run.model.parameters():
                parameter.data.zero_()
            with torch.no_grad():
                self.assertEqual(run.model.eval()(torch.ones(ROWS, WIDTH)).abs().max().item(), 0.0, recipe)

    def test_inverses_stay_with_codes(self):
        """What a graph that was captured reads belongs to the codes, also where a state has gone on."""
        run = Run("delayed", MAKERS["adamw"], True).train(3)
        unit = get_units(run.model)[0]
        held = unit.held
        before = held.values["weight.scale_inv"].clone()
        for parameter in run.model.parameters():
            parameter.data.mul_(8)
        for _ in range(2):
            run.forward().backward()
        self.assertTrue(torch.equal(held.values["weight.scale_inv"], before))
        self.assertEqual(held.values["weight.scale_inv"].data_ptr() % 16, 0)


class Steps(unittest.TestCase):
    def compare(self, own, other):
        self.assertEqual(own.losses, other.losses)
        for (name, value), (_, expected) in zip(own.model.named_parameters(), other.model.named_parameters()):
            self.assertTrue(torch.equal(value, expected), name)
        for (name, value), (_, expected) in zip(own.get_moments(), other.get_moments(), strict=True):
            self.assertTrue(torch.equal(value, expected), name)

    def test_bits(self):
        """Twenty steps have the bits of torch.optim's fused forms, masters and moments, under each recipe."""
        for recipe in RECIPES:
            for name, make in MAKERS.items():
                with self.subTest(recipe=recipe, optimizer=name):
                    self.compare(Run(recipe, make, True).train(20), Run(recipe, make, False).train(20))

    def test_types(self):
        """So have those of bf16, and of masters in f32 whose layers compute in bf16."""
        for recipe in RECIPES:
            for keywords in ({"dtype": torch.bfloat16}, {"autocast": True}):
                with self.subTest(recipe=recipe, **keywords):
                    self.compare(Run(recipe, MAKERS["adamw"], True, **keywords).train(4),
                                 Run(recipe, MAKERS["adamw"], False, **keywords).train(4))

    def test_options(self):
        """And those with other options, numbers that change, and a tensor as the learning rate."""
        makers = {
            "late": lambda p: torch.optim.AdamW(p, 1e-2, betas=(0.4, 0.9), fused=True),
            "maximize": lambda p: torch.optim.AdamW(p, 1e-3, maximize=True, fused=True),
            "amsgrad": lambda p: torch.optim.AdamW(p, 1e-2, amsgrad=True, fused=True),
            "no decay": lambda p: torch.optim.Adam(p, 1e-2, fused=True),
            "tensor": lambda p: torch.optim.AdamW(p, torch.tensor(1e-2), fused=True),
            "sgd": lambda p: torch.optim.SGD(p, 1e-2, fused=True),
            "dampening": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, dampening=0.3, maximize=True, fused=True)}
        for name, make in makers.items():
            with self.subTest(name):
                runs = [Run("current", make, fuses) for fuses in (True, False)]
                for run in runs:
                    run.train(2)
                    run.optimizer.param_groups[0]["lr"] = 3e-3
                    run.train(2)
                self.compare(*runs)

    def test_groups(self):
        """Groups have their own numbers, and parameters that are frozen or miss a gradient their own steps."""
        def make(parameters):
            first, *others = parameters
            return torch.optim.AdamW([{"params": [first], "lr": 1e-3, "betas": (0.8, 0.99)},
                                      {"params": others, "weight_decay": 0.0}], 1e-2, fused=True)
        runs = [Run("delayed", make, fuses) for fuses in (True, False)]
        for run in runs:
            run.train(2)
            norm = run.model[2]
            norm.weight.requires_grad_(False)
            run.train(2)
            norm.weight.requires_grad_(True)
            run.train(2)
            steps = [run.optimizer.state[parameter]["step"].item() for parameter in run.model.parameters()]
            self.assertEqual(steps, [6, 6, 4, 6, 6])
        self.compare(*runs)

    def test_single_tensor(self):
        """Beside torch.optim's form of single tensors, whose products and sums are rounded otherwise, numbers
        differ by roundings."""
        own = Run("current", MAKERS["adamw"], True).train(5)
        other = Run("current", lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1, foreach=False), False).train(5)
        for value, expected in zip(own.model.parameters(), other.model.parameters()):
            torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)

    def test_clip_factor(self):
        runs = [Run("current", MAKERS["adamw"], fuses) for fuses in (True, False)]
        for run, fuses in zip(runs, (True, False)):
            for _ in range(3):
                run.forward().backward()
                gradients = [parameter.grad for parameter in run.model.parameters()]
                factor = (0.1 / (torch.nn.utils.get_total_norm(gradients) + 1e-6)).clamp(max=1)
                if fuses:
                    run.optimizer.clip_factor = factor
                else:
                    torch._foreach_mul_(gradients, factor)
                run.optimizer.step()
                run.optimizer.zero_grad()
        self.compare(*runs)

    def test_grad_scaler(self):
        """Factors of GradScaler, and steps that it leaves out, where gradients are not finite."""
        runs = [Run("current", MAKERS["adamw"], fuses) for fuses in (True, False)]
        for run in runs:
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 8, growth_interval=2)
            for step in range(5):
                scaler.scale(run.forward()).backward()
                if step == 2:
                    run.model[0].weight.grad[0, 0] = float("inf")
                scaler.step(run.optimizer)
                scaler.update()
                run.optimizer.zero_grad()
            self.assertEqual(run.optimizer.state[run.model[0].weight]["step"].item(), 4)
        self.compare(*runs)

    def test_other_parameters(self):
        """What programs do not take is torch.optim's: f64, views with strides, sparse gradients."""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(WIDTH, WIDTH)
                self.wide = nn.Parameter(torch.randn(16, dtype=torch.float64))
                self.turned = nn.Parameter(torch.randn(16, 32).t())

        models = []
        for fuses in (True, False):
            torch.manual_seed(0)
            model = fp8.torch.convert_to_fp8_training(Model(), "current", first_last_bf16=0, cache_weights=True)
            optimizer = torch.optim.AdamW(model.parameters(), 1e-2, fused=True)
            calls = []
            optimizer.register_step_post_hook(lambda *_: calls.append(1))
            if fuses:
                fp8.torch.fuse_optimizer(model, optimizer)
            for _ in range(3):
                loss = model.layer(torch.ones(16, WIDTH)).square().mean() + model.wide.square().sum()
                (loss + model.turned.square().sum()).backward()
                optimizer.step()
                optimizer.zero_grad()
            self.assertEqual(len(calls), 3)
            models.append(model)
        for value, expected in zip(*(model.parameters() for model in models)):
            self.assertTrue(torch.equal(value, expected))


class Codes(unittest.TestCase):
    def test_codes(self):
        """They are those of quantizing the new weight, both ways, with the same scales."""
        for recipe in RECIPES:
            for dtype in (torch.float32, torch.bfloat16):
                run = Run(recipe, MAKERS["adamw"], True, dtype).train(3)
                for unit, layer in zip(get_units(run.model), (run.model[0], run.model[3])):
                    held = unit._get_held(layer.weight, dtype)
                    self.assertIsNotNone(held)
                    quantize = unit._get("quantize_weight", ROWS, layer.weight, layer.bias is not None)
                    expected = dict(zip(quantize.results, quantize({"weight": layer.weight.detach()}, unit.state)))
                    self.assertEqual(set(held), set(expected))
                    for name, value in expected.items():
                        self.assertTrue(torch.equal(held[name].view(torch.uint8), value.view(torch.uint8)),
                                        f"{recipe} {dtype} {name}")

    def test_no_cast(self):
        """A forward quantizes no weight: no call of what does so, from the second step on."""
        for recipe in RECIPES:
            run = Run(recipe, MAKERS["adamw"], True).train(2)
            for unit in get_units(run.model):
                unit._functions = {key: value for key, value in unit._functions.items() if key[0] != "quantize_weight"}
            with mock.patch.object(fp8.torch.linear_ops._Function, "prepare"):
                run.train(2)
            for unit in get_units(run.model):
                self.assertNotIn("quantize_weight", {key[0] for key in unit._functions})

    def test_one_pass(self):
        """What a GPU launches for two weights of one size: under delayed scaling a kernel for both, which reads what
        it needs once, and one for each of large ones. Small parameters of one size are one launch."""
        from fp8.torch.update_text import Part, Target, Update, write
        from fp8.torch.shard_programs import find_codes
        def count(*parts):
            text, _ = write(Update(Rule("adamw", ("decay",)), parts))
            made = fp8.emit(text, "mlir", target="sm_90a", to="kernels").decode()
            return made.count("fp8_gpu.launch @")

        for recipe, kernels in {"delayed": 1, "block": 1, "current": 4}.items():
            target = Target(find_codes(recipe), "f32", recipe == "delayed")
            self.assertEqual(count(*[Part(512, 1024, "f32", target)] * 2), kernels, recipe)
        self.assertEqual(count(*[Part(16384, 8192, "f32")] * 2), 2)
        self.assertEqual(count(*[Part(1, 768, "f32")] * 7, Part(1, 3072, "f32")), 2)

    def test_one_launch(self):
        """A GPU counts the step and computes its numbers by one launch, and the host reads nothing of it."""
        for kind, constants in (("adamw", (0.9, 0.999, 1e-8, 0.01)), ("sgd", (0.9, 0.0, 0.0))):
            text = step_program.write(Rule(kind), constants, True, kind != "sgd")
            made = fp8.emit(text, "mlir", target="sm_90a", to="host").decode()
            self.assertEqual(made.count("call @fp8rt_context_launch("), 1, kind)
            self.assertNotIn("call @fp8rt_context_read(", made, kind)

    def test_changed_weight(self):
        """A weight that something else changes is quantized by the forward, until the next step."""
        run = Run("current", MAKERS["adamw"], True).train(2)
        other = copy.deepcopy(run.model)  # Has no codes.
        for model in (run.model, other):
            with torch.no_grad():
                model[0].weight.mul_(3)
        x = torch.randn(ROWS, WIDTH)
        self.assertTrue(torch.equal(run.model(x), other(x)))
        unit = get_units(run.model)[0]
        self.assertIsNone(unit._get_held(run.model[0].weight, torch.float32))
        run.optimizer.write_codes()
        self.assertIsNotNone(unit._get_held(run.model[0].weight, torch.float32))
        self.assertTrue(torch.equal(run.model(x), other(x)))

    def test_shared_memory(self):
        """A step of a parameter changes another one over the same memory, whose version says nothing of it."""
        for start in (0, 64):
            model = nn.ModuleDict({"first": nn.Linear(WIDTH, WIDTH, False), "other": nn.Linear(WIDTH, WIDTH - start, False)})
            model["other"].weight = nn.Parameter(model["first"].weight.data[start:])
            fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0)
            optimizer = fp8.torch.fuse_optimizer(model, torch.optim.SGD(model.parameters(), 1.0))
            x = torch.randn(ROWS, WIDTH)
            for changed, other in (("first", "other"), ("other", "first")):
                model[other](x)
                model[changed](x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                self.assertTrue(torch.equal(model[other](x), copy.deepcopy(model)[other](x)))
            self.assertEqual(optimizer.fp8_left, {"first": "it shares its memory with other.weight",
                                                  "other": "it shares its memory with first.weight"})

    def test_other_layers(self):
        """A layer that becomes another one, of another recipe, or torch's own, has the step that there was."""
        for recipe in ("rowwise", "mxfp8", None):
            runs = [Run("current", MAKERS["adamw"], fuses).train(2) for fuses in (True, False)]
            for run in runs:
                if recipe is None:
                    fp8.torch.convert_from_fp8(run.model)
                else:
                    fp8.torch.convert_to_fp8_training(run.model, recipe, first_last_bf16=0)
                run.train(2)
            if recipe == "rowwise":
                fp8.torch.fuse_optimizer(runs[0].model, runs[0].optimizer)
                [run.train(2) for run in runs]
                self.assertIsNotNone(get_units(runs[0].model)[0]._get_held(runs[0].model[0].weight, torch.float32))
            self.assertEqual(runs[0].losses, runs[1].losses)

    def test_behind_steps(self):
        """A model that was trained before its optimizer writes codes goes on with the scales that it has."""
        for recipe in RECIPES:
            losses = []
            for fused_behind in (0, 2):
                run = Run(recipe, MAKERS["adamw"], False)
                run.model = fp8.torch.convert_to_fp8_training(make_model(None), recipe, first_last_bf16=0)
                run.optimizer = MAKERS["adamw"](run.model.parameters())
                run.train(fused_behind)
                fp8.torch.fuse_optimizer(run.model, run.optimizer)
                losses.append(run.train(4 - fused_behind).losses)
            self.assertEqual(*losses, recipe)

    def test_microbatches(self):
        """Microbatches of a step, within `accumulated` and without."""
        for is_one_step in (True, False):
            runs = [Run("delayed", MAKERS["adamw"], fuses) for fuses in (True, False)]
            for run in runs:
                run.train(1)
                for _ in range(2):
                    if is_one_step:
                        with fp8.torch.accumulated(run.model):
                            losses = [run.forward() for _ in range(2)]
                            [loss.backward() for loss in losses]
                    else:
                        for _ in range(2):
                            run.forward().backward()
                    run.optimizer.step()
                    run.optimizer.zero_grad()
                run.train(1)
            self.assertEqual(runs[0].losses, runs[1].losses)

    def test_compile(self):
        """Within torch.compile, as layers are without."""
        for keywords in ({}, {"autocast": True}):
            runs = []
            for fuses in (True, False):
                run = Run("delayed", MAKERS["adamw"], fuses, **keywords)
                model, run.model = run.model, torch.compile(run.model, backend="aot_eager")
                run.train(4)
                run.model = model
                runs.append(run)
            self.assertEqual(runs[0].losses, runs[1].losses)


class States(unittest.TestCase):
    def test_resumed(self):
        """A run that goes on from a checkpoint has the numbers of one that did not stop, whichever of both
        was fused."""
        for recipe in RECIPES:
            whole = Run(recipe, MAKERS["adamw"], True).train(6)
            for saves, loads in ((True, True), (True, False), (False, True)):
                first = Run(recipe, MAKERS["adamw"], saves).train(3)
                states = copy.deepcopy((first.model.state_dict(), first.optimizer.state_dict()))
                second = Run(recipe, MAKERS["adamw"], loads)
                second.model.load_state_dict(states[0])
                second.optimizer.load_state_dict(states[1])
                second.generator = first.generator
                second.train(3)
                self.assertEqual(first.losses + second.losses, whole.losses, f"{recipe} {saves} {loads}")

    def test_pickle(self):
        """A copy is torch.optim's own."""
        run = Run("current", MAKERS["adamw"], True).train(2)
        for made in (pickle.loads(pickle.dumps(run.optimizer)), copy.deepcopy(run.optimizer)):
            self.assertIs(type(made), torch.optim.AdamW)
            self.assertEqual(made.state_dict()["param_groups"], run.optimizer.state_dict()["param_groups"])

    def test_schedulers(self):
        """Made before and behind it, without a warning."""
        for is_before in (True, False):
            run = Run("current", MAKERS["adamw"], False)
            if is_before:
                scheduler = torch.optim.lr_scheduler.StepLR(run.optimizer, 1, 0.5)
            fp8.torch.fuse_optimizer(run.model, run.optimizer)
            if not is_before:
                scheduler = torch.optim.lr_scheduler.StepLR(run.optimizer, 1, 0.5)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                run.train(1)
                scheduler.step()
            self.assertEqual(run.optimizer.param_groups[0]["lr"], 5e-3)

    def test_added_group(self):
        run = Run("current", MAKERS["adamw"], True).train(1)
        extra = nn.Parameter(torch.ones(16))
        run.optimizer.add_param_group({"params": [extra]})
        extra.grad = torch.ones(16)
        run.optimizer.step()
        self.assertLess(extra.max().item(), 1)

    def test_numbers_of_a_gpu(self):
        """The numbers of a step as a GPU computes them are those of the host, rounded to f32."""
        group = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.9, "dampening": 0.1}
        for rule, constants in ((Rule("adamw", ("decay",)), (0.9, 0.999, 1e-8, 0.1)),
                                (Rule("adam", ("late",)), (0.9, 0.999, 1e-8, 0.1)),
                                (Rule("sgd", ("momentum",)), (0.9, 0.1, 0.1)), (Rule("lion"), (0.9, 0.999, 0.1)),
                                (Rule("muon"), (1.0, 0.1)), (Rule("momentum", ("nesterov",)), (0.9, 0.1))):
            for before in (0, 1, 99, 12345, 2.0 ** 23):
                count = step_program.compile(rule, constants, False, False, "cpu")
                step, made = torch.full((1, 1), float(before)), torch.zeros(1, len(rule.factors))
                count(*[step] * rule.counts, 1e-3, made)
                numbers = make_numbers(rule, group, before + 1)
                expected = torch.tensor([numbers[name] for name in rule.factors], dtype=torch.float64).float()
                self.assertTrue(torch.equal(made[0], expected), (rule, before))
                self.assertEqual(step.item(), before + rule.counts)


class Refusals(unittest.TestCase):
    def test_refused(self):
        model = make_model("current")
        with self.assertRaisesRegex(fp8.ArgumentError, "expected one of the optimizers AdamW, Adam, SGD, Lion, Muon, but got RMSprop"):
            fp8.torch.fuse_optimizer(model, torch.optim.RMSprop(model.parameters()))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a module, but got int"):
            fp8.torch.fuse_optimizer(3, torch.optim.SGD(model.parameters()))
        with self.assertRaisesRegex(fp8.ArgumentError, "not differentiable"):
            fp8.torch.fuse_optimizer(model, torch.optim.SGD(model.parameters(), differentiable=True))
        optimizer = torch.optim.SGD(model.parameters())
        optimizer.step = lambda: None
        with self.assertRaisesRegex(fp8.ArgumentError, "something has replaced"):
            fp8.torch.fuse_optimizer(model, optimizer)

    def test_left(self):
        """Layers whose weights are not written say why."""
        model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
        model[1].weight = model[0].weight
        fp8.torch.convert_to_fp8_training(model, "mxfp8", first_last_bf16=0)
        optimizer = fp8.torch.fuse_optimizer(model, torch.optim.SGD(model.parameters()))
        self.assertEqual(set(optimizer.fp8_left), {"0", "1", "2"})
        self.assertIn("shares its weight with 0, 1", optimizer.fp8_left["0"])
        self.assertIn("mxfp8", optimizer.fp8_left["2"])


if __name__ == "__main__":
    unittest.main()
