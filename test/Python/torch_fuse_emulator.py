# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all %import_python %s
"""Steps of optimizers that write codes, with the kernels of a GPU on the emulator: the bits of the CPU."""

import itertools
import re
import unittest

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import step_program, update_plan
from fp8.torch.held_codes import HeldCodes
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.shard_programs import find_codes
from fp8.torch.update_text import CODES, DRAWN, SPLIT, Part, Rule, Target, Update, write

RULES = (Rule("adamw", ("decay",)), Rule("adam", ("scaled", "maximize", "decay", "amsgrad", "late")),
         Rule("sgd", ("clipped", "decay", "nesterov", "momentum")), Rule("none"))
# Numbers by which steps are large, and found_inf is not set.
NUMBERS = {"decay": 0.9, "lerp": 0.1, "beta2": 0.99, "square": 0.01, "step_size": 1e-2, "root": 0.3, "eps": 1e-8,
           "momentum": 0.9, "damp": 0.7, "grad_scale": 256.0, "found_inf": 0.0, "clip": 0.3, "beta1": 0.9, "rest": 0.1,
           "count": 7.0}
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn}


def make_arguments(update):
    """Tensors for the arguments of an update, by their names and types."""
    text, names = write(update)
    generator = torch.Generator().manual_seed(1)
    values = {}
    for name in names:
        *sizes, element = re.search(rf"%{name}: \w+<([^>]*)>", text)[1].split("x")
        sizes, own = [int(size) for size in sizes], name.rpartition("_")[0]
        value = torch.randn(sizes, generator=generator)
        if name in NUMBERS:
            value.fill_(NUMBERS[name])
        elif own.startswith("place"):
            value = torch.arange(float(value.numel())).view(sizes)
        elif "inverse" in own or own in ("scale", "factor"):
            value.fill_({"scale": 64.0, "factor": 1 / 64}.get(own, 0.25))
        elif "sq" in own:
            value.square_()
        if value.numel() > 1 and (own == "grad" or "sq" in own and "inverse" not in own):
            # Roots that are above zero, and not by a scale and 2^-120.
            value[:, :4] *= 1e-14 if own == "grad" else 0
        values[name] = value.to(TYPES[element])
    return [values[name] for name in names], names


class Bits(unittest.TestCase):
    def run_update(self, rule, recipe, target, weight, compute, sizes, skips):
        """What an update makes of two parameters, by the names of its arguments."""
        generator = torch.Generator().manual_seed(1)
        layer = nn.Linear(*reversed(sizes), dtype=weight)
        layer.recipe, layer._options = recipe, ()
        update = Update(rule, (Part(*sizes, ELEMENTS[weight], HeldCodes(layer, compute).target),) * 2)
        function, names = update_plan._compile(update, target)
        values = {name: torch.full((1, 1), number) for name, number in NUMBERS.items()}
        values["found_inf"] = torch.full((1, 1), float(skips))
        for number in range(len(update.parts)):
            held = HeldCodes(layer, compute)
            one = {"scale": torch.full((1, 1), 64.0), "factor": torch.full((1, 1), 1 / 64), "row": torch.zeros(1, 1)}
            own = {**one, **held.arguments}
            for name in ("param", "grad", *rule.moments):
                value = torch.randn(sizes, generator=generator)
                own[name] = (value.square() if "sq" in name else value).to(weight)
            values.update({f"{name}_{number}": value for name, value in own.items()})
        function(*[values[name] for name in names])
        return {name: values[name] for name in names}

    def test_updates(self):
        f32, bf16 = torch.float32, torch.bfloat16
        types = itertools.cycle(((f32, f32), (f32, bf16), (bf16, bf16)))
        for recipe, rule in itertools.product(("delayed", "current", "rowwise", "block"), RULES):
            weight, compute = next(types)
            with self.subTest(recipe=recipe, rule=rule, types=(weight, compute)):
                own, cpu = (self.run_update(rule, recipe, target, weight, compute, (128, 256), weight == bf16)
                            for target in ("sm_90a", "cpu"))
                for name, value in own.items():
                    self.assertTrue(torch.equal(value.view(torch.uint8), cpu[name].view(torch.uint8)), name)

    def test_edges(self):
        """In place, where a tile's last threads have nothing: no element is read while another thread writes it."""
        generator = torch.Generator().manual_seed(1)
        for (rule, dtype), sizes in itertools.product(zip(RULES[:3], (torch.float32, torch.bfloat16, torch.float32)),
                                                      ((1, 3072), (77, 131))):
            with self.subTest(rule=rule, dtype=dtype, sizes=sizes):
                tensors = {name: torch.randn(sizes, generator=generator).square().to(dtype)
                           for name in ("param", "grad", *rule.moments)}
                made = []
                for target in ("sm_90a", "cpu"):
                    function, names = update_plan._compile(Update(rule, (Part(*sizes, ELEMENTS[dtype]),)), target)
                    values = {name: torch.full((1, 1), number) for name, number in NUMBERS.items()}
                    values.update({f"{name}_0": value.clone() for name, value in tensors.items()})
                    function(*[values[name] for name in names])
                    made.append({name: values[name] for name in names})
                for name, value in made[0].items():
                    self.assertTrue(torch.equal(value.view(torch.uint8), made[1][name].view(torch.uint8)), name)

    def test_kept(self):
        """Steps of masters in two halves, rounded stochastically or codes alone, and of moments that are codes."""
        delayed, block = (Target(find_codes(recipe), "bf16", recipe == "delayed") for recipe in ("delayed", "block"))
        drawn, clipped = ("decay", "drawn"), ("decay", "clipped")
        cases = ((Rule("adamw", clipped), Part(64, 256, "bf16", delayed, SPLIT)),
                 (Rule("lion", drawn), Part(64, 256, "bf16", delayed, DRAWN)),
                 (Rule("sgd", (*drawn, "momentum")), Part(77, 131, "f32", coded=True)),
                 (Rule("adamw", drawn), Part(128, 256, "bf16", block, CODES, True)),
                 (Rule("adamw", drawn), Part(64, 256, "bf16", delayed, CODES, True)),
                 (Rule("momentum", (*drawn, "nesterov")), Part(64, 256, "bf16", coded=True)),
                 (Rule("muon", drawn), Part(64, 256, "f32", delayed, gradient="bf16")))
        for rule, part in cases:
            with self.subTest(rule=rule, part=part):
                made = []
                for target in ("sm_90a", "cpu"):
                    update = Update(rule, (part,))
                    values, names = make_arguments(update)
                    update_plan._compile(update, target)[0](*values)
                    made.append(values)
                for name, own, cpu in zip(names, *made):
                    self.assertTrue(torch.equal(own.view(torch.uint8), cpu.view(torch.uint8)), name)

    def test_together(self):
        """Several parameters of a size, whose launches are one: each has its own numbers."""
        delayed = Target(find_codes("delayed"), "bf16", True)
        update = Update(Rule("adamw", ("decay",)), (Part(64, 128, "bf16", delayed),) * 3 + (Part(1, 256, "bf16"),) * 5)
        made = []
        for target in ("sm_90a", "cpu"):
            values, names = make_arguments(update)
            update_plan._compile(update, target)[0](*values)
            made.append(values)
        for name, own, cpu in zip(names, *made):
            self.assertTrue(torch.equal(own.view(torch.uint8), cpu.view(torch.uint8)), name)

    def test_numbers(self):
        """Those of a step, with a learning rate and a flag in memory."""
        for rule, constants in ((RULES[0], (0.9, 0.999, 1e-8, 0.1)), (RULES[2], (0.9, 0.1, 0.1))):
            made = []
            for target in ("sm_90a", "cpu"):
                count = step_program.compile(rule._replace(options=("decay",)), constants, True, rule.kind != "sgd", target)
                tensors = [torch.full((1, 1), 41.0), torch.zeros(1, 1)] if rule.kind != "sgd" else []
                tensors += [torch.full((1, 1), 1e-3), torch.zeros(1, 7 if rule.kind != "sgd" else 4)]
                count(*tensors)
                made.append(tensors)
            for own, cpu in zip(*made):
                self.assertTrue(torch.equal(own, cpu))


class Training(unittest.TestCase):
    def test_steps(self):
        """Training is that of an optimizer of torch.optim, for GPU programs of layers and optimizer."""
        for recipe in ("delayed", "block"):
            losses = []
            for fuses in (True, False):
                torch.manual_seed(0)
                model = nn.Sequential(nn.Linear(128, 128, bias=False), nn.Linear(128, 128, bias=False))
                fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="sm_90a", cache_weights=True)
                optimizer = torch.optim.AdamW(model.parameters(), 1e-2, fused=True)
                if fuses:
                    fp8.torch.fuse_optimizer(model, optimizer)
                x, own = torch.randn(128, 128), []
                for _ in range(3):
                    loss = (model(x) - x.roll(1, 0)).square().mean()
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    own.append(loss.item())
                losses.append(own)
            self.assertEqual(*losses)


if __name__ == "__main__":
    unittest.main()
