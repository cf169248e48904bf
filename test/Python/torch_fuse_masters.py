# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Optimizers that torch.optim has no fused form of, and what fused ones may keep in fewer bits: Lion, Muon, norms
that are clipped, masters in two halves or rounded stochastically, moments that are codes."""

import copy
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import step_factors

SIZES = (64, 128), (96, 192), (48,)
MAKERS = {
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.1, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9, nesterov=True, fused=True),
    "lion": lambda p: fp8.torch.Lion(p, 1e-3, weight_decay=0.1),
    "muon": lambda p: torch.optim.Muon(p, 0.02, weight_decay=0.1)}
OPTIONS = ({"moments": "fp8"}, {"masters": "stochastic"}, {"masters": "split"}, {"masters": "stochastic", "moments": "fp8"})


class Run:
    """An optimizer of a few parameters, whose gradients are bf16 numbers and the same for all."""

    def __init__(self, make, fuses, dtype=torch.float32, sizes=SIZES, **options):
        torch.manual_seed(0)
        self.parameters = [nn.Parameter(torch.randn(each).bfloat16().to(dtype)) for each in sizes]
        self.optimizer = make(self.parameters)
        if fuses:
            fp8.torch.fuse_optimizer(nn.Module(), self.optimizer, **options)
        self.done = 0

    def set_gradients(self):
        generator = torch.Generator().manual_seed(self.done)
        for parameter in self.parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator).bfloat16().to(parameter.dtype)

    def train(self, steps):
        for _ in range(steps):
            self.set_gradients()
            self.optimizer.step()
            self.done += 1
        return self

    def save(self):
        """All of it, as bytes."""
        file = io.BytesIO()
        torch.save({"parameters": [each.detach() for each in self.parameters], "done": self.done,
                    "optimizer": self.optimizer.state_dict()}, file)
        return file.getvalue()

    def load(self, data):
        states = torch.load(io.BytesIO(data))
        with torch.no_grad():
            for own, other in zip(self.parameters, states["parameters"]):
                own.copy_(other)
        self.optimizer.load_state_dict(states["optimizer"])
        self.done = states["done"]
        return self

    def list_tensors(self):
        """Parameters, and what the state has for them."""
        for place, parameter in enumerate(self.parameters):
            yield f"{place}", parameter.detach()
            for name, value in sorted(self.optimizer.state[parameter].items()):
                yield f"{place} {name}", value


def make_bits(value):
    return value.contiguous().reshape(-1).view(torch.uint8)


class Bits(unittest.TestCase):
    def compare(self, own, other):
        for (name, value), (its_name, expected) in zip(own.list_tensors(), other.list_tensors(), strict=True):
            self.assertEqual(name, its_name)
            self.assertTrue(torch.equal(make_bits(value), make_bits(expected)), name)

    def test_lion(self):
        """That of the published rule, operation by operation in f32, also rounded to bf16."""
        for make in (MAKERS["lion"], lambda p: fp8.torch.Lion(p, torch.tensor(3e-3), (0.8, 0.95), maximize=True)):
            for dtype in (torch.float32, torch.bfloat16):
                self.compare(Run(make, True, dtype).train(5), Run(make, False, dtype).train(5))

    def test_muon(self):
        """Its buffers and steps have the bits of torch.optim's, around the same products."""
        sizes = (64, 128), (96, 48), (64, 64)
        for keywords in ({}, {"nesterov": False}, {"momentum": 0.5}, {"momentum": 0.3},
                         {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0}):
            def make(parameters):
                return torch.optim.Muon(parameters, 0.02, **keywords)
            self.compare(Run(make, True, sizes=sizes).train(4), Run(make, False, sizes=sizes).train(4))

    def test_captured(self):
        """Optimizers without an option for CUDA graphs are not asked for it."""
        name = next(each for each in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check")
                    if hasattr(torch.optim.Optimizer, each))
        with mock.patch.object(torch.optim.Optimizer, name, side_effect=KeyError("capturable")) as check:
            Run(MAKERS["lion"], True).train(1)
            check.assert_not_called()
            with self.assertRaises(KeyError):
                Run(MAKERS["adamw"], True).train(1)
        expected = Run(MAKERS["lion"], True).train(2)
        with mock.patch.object(step_factors.Factors, "_is_of_gpu", return_value=True):
            got = Run(MAKERS["lion"], True).train(2)
        for mine, its in zip(got.parameters, expected.parameters, strict=True):
            self.assertTrue(torch.equal(mine, its))

    def test_split(self):
        """A master in two halves is that of f32, whose moments are f32, with gradients in bf16."""
        for name in ("adamw", "sgd", "lion"):
            own, other = (Run(MAKERS[name], dtype == torch.bfloat16, dtype, masters="split").train(6)
                          for dtype in (torch.bfloat16, torch.float32))
            for mine, its in zip(own.parameters, other.parameters):
                state = own.optimizer.state[mine]
                high, low = mine.detach().view(torch.int16).int(), state["master_low"].int()
                self.assertTrue(torch.equal(((high << 16) + low).view(torch.float32), its), name)
                torch.testing.assert_close(mine.float(), its, rtol=2.0 ** -8, atol=0)
                for key, value in other.optimizer.state[its].items():
                    self.assertTrue(torch.equal(state[key], value), key)

    def test_max_norm(self):
        """That of clip_grad_norm_, of all gradients, and with GradScaler's factor of what they are without."""
        for scale in (None, 64.0):
            own, other = (Run(MAKERS["adamw"], fuses, **({"max_norm": 0.5} if fuses else {})) for fuses in (True, False))
            for _ in range(3):
                for run in (own, other):
                    run.set_gradients()
                norm = nn.utils.clip_grad_norm_(other.parameters, 0.5)
                if scale is not None:
                    own.optimizer.grad_scale, own.optimizer.found_inf = torch.tensor(scale), torch.tensor(0.0)
                    torch._foreach_mul_([each.grad for each in own.parameters], scale)
                for run in (own, other):
                    run.optimizer.step()
                self.assertEqual(own.optimizer.grad_norm, norm)
            self.compare(own, other)


class Rounding(unittest.TestCase):
    def test_means(self):
        """A step of a quarter of bf16's changes a quarter of the elements, others in each step and parameter, and those
        that are numbers of bf16 stay so."""
        make = lambda parameters: torch.optim.SGD(parameters, 2.0 ** -9, fused=True)
        run = Run(make, True, torch.bfloat16, sizes=((256, 512), (256, 512)), masters="stochastic")
        moved = []
        for _ in range(2):
            for parameter in run.parameters:
                with torch.no_grad():
                    parameter.fill_(1.0)[0].fill_(float("inf"))[1:2].fill_(float("nan"))
                parameter.grad = torch.full_like(parameter, -1.0)
                parameter.grad[:, :8] = -4.0
            run.optimizer.step()
            for parameter in run.parameters:
                inner = parameter.detach()[1:, 8:]
                self.assertEqual(set(inner.unique().tolist()), {1.0, 1.0078125})
                self.assertTrue((parameter[1:, :8] == 1.0078125).all())
                self.assertTrue(parameter[0].isinf().sum() == 511 and parameter[0, 1].isnan())
                moved.append(inner > 1)
        for each in moved:
            # Five times the deviation of a mean of so many.
            self.assertAlmostEqual(each.float().mean().item(), 0.25, delta=5 * 0.433 / each.numel() ** 0.5)
        for i in range(4):
            for other in moved[:i]:
                both = (moved[i] & other).float().mean().item()
                self.assertAlmostEqual(both, 0.0625, delta=5 * 0.242 / other.numel() ** 0.5)

    def test_moments_decay(self):
        """Moments that change by less than a code's step in each step follow what they would be in f32."""
        runs = [Run(MAKERS["adamw"], True, sizes=((128, 256),), **keywords) for keywords in ({}, {"moments": "fp8"})]
        for run in runs:
            run.train(1)
            for _ in range(100):
                run.parameters[0].grad.zero_()
                run.optimizer.step()
        exact, coded = (run.optimizer.state[run.parameters[0]] for run in runs)
        values = coded["exp_avg_sq_codes"].float() * coded["exp_avg_sq_inverse"].repeat_interleave(128, 1)
        ratio = values.sum() / exact["exp_avg_sq"].sqrt().sum()
        self.assertAlmostEqual(ratio.item(), 1.0, delta=0.01)
        self.assertEqual(int((values == 0).sum()), int((exact["exp_avg_sq"] == 0).sum()))

    def test_sizes_of_moments(self):
        """Codes of a row are one of the two around each number whatever its size is; NaN stays, and is nobody else's."""
        run = Run(MAKERS["sgd"], True, sizes=((64, 128),), moments="fp8")
        parameter, sizes = run.parameters[0], torch.tensor([0, 1e-35, 1e-30, 1e-6, 1, 449, 1e5, 1e11])
        values = torch.linspace(-1, 1, 64 * 128).view(64, 128).sign() * (torch.rand(64, 128) + 1) * sizes.repeat(8)[:, None]
        values[8, 3] = float("nan")
        parameter.grad = values.clone()
        run.optimizer.step()
        state = run.optimizer.state[parameter]
        codes, inverse = state["momentum_buffer_codes"].float(), state["momentum_buffer_inverse"]
        self.assertTrue(torch.equal(codes.isnan(), values.isnan()))
        made, known = (codes * inverse).nan_to_num(), values.nan_to_num()
        self.assertTrue(((made - known).abs() <= known.abs() / 8).all())
        largest = codes.nan_to_num().abs().amax(1)
        self.assertTrue(((largest >= 224) & (largest <= 448) | (known.abs().amax(1) == 0)).all())

    def test_the_smallest_squares(self):
        """None above zero has a code of zero, by which a step would divide, however far it is below its neighbors."""
        run = Run(MAKERS["adamw"], True, sizes=((128, 256),), moments="fp8")
        parameter = run.parameters[0]
        parameter.grad = torch.full((128, 256), 1e-14)
        parameter.grad[:, ::128], parameter.grad[:, 1::128] = 1.0, 0.0
        run.optimizer.step()
        codes = run.optimizer.state[parameter]["exp_avg_sq_codes"].float()
        self.assertTrue(torch.equal(codes > 0, parameter.grad > 0))

    def test_moments(self):
        """A run with them is near one without; small parameters keep theirs."""
        for name in ("adamw", "sgd", "lion"):
            own, other = (Run(MAKERS[name], True, **keywords).train(20) for keywords in ({"moments": "fp8"}, {}))
            first = own.parameters[0].detach().clone()
            start = Run(MAKERS[name], False).parameters[0]
            error = (first - other.parameters[0]).norm() / (start - other.parameters[0]).norm()
            self.assertLess(error.item(), 0.35 if name == "lion" else 0.1, name)
            self.assertIn(next(iter(own.optimizer.state[own.parameters[2]].keys() - {"step"})), (
                "exp_avg", "exp_avg_sq", "momentum_buffer"))

    def test_changes(self):
        """Moments of a run become codes, and numbers again."""
        run = Run(MAKERS["adamw"], True).train(3)
        parameter = run.parameters[0]
        before = copy.deepcopy(run.optimizer.state[parameter])
        fp8.torch.fuse_optimizer(nn.Module(), run.optimizer, moments="fp8")
        run.optimizer._fp8_plan._begin(run.optimizer, run.optimizer.param_groups[0], run.optimizer._fp8_plan._get_item(parameter), {})
        self.assertEqual(set(run.optimizer.state[parameter]), {
            "step", "exp_avg_codes", "exp_avg_inverse", "exp_avg_sq_codes", "exp_avg_sq_inverse"})
        fp8.torch.fuse_optimizer(nn.Module(), run.optimizer)
        run.optimizer._fp8_plan._begin(run.optimizer, run.optimizer.param_groups[0], run.optimizer._fp8_plan._get_item(parameter), {})
        for name, relative in (("exp_avg", 0.0625), ("exp_avg_sq", 0.13)):
            torch.testing.assert_close(run.optimizer.state[parameter][name], before[name], rtol=relative, atol=1e-5)


class States(unittest.TestCase):
    def test_resumed(self):
        """A run that goes on from a checkpoint has the bits of one that did not stop."""
        for name in MAKERS:
            sizes = SIZES[:2] if name == "muon" else SIZES
            for options in OPTIONS:
                with self.subTest(name, **options):
                    whole = Run(MAKERS[name], True, torch.bfloat16, sizes, **options).train(4)
                    first = Run(MAKERS[name], True, torch.bfloat16, sizes, **options).train(2)
                    second = Run(MAKERS[name], True, torch.bfloat16, sizes, **options).load(first.save()).train(2)
                    for (key, value), (_, expected) in zip(second.list_tensors(), whole.list_tensors(), strict=True):
                        self.assertEqual(value.dtype, expected.dtype, key)
                        self.assertTrue(torch.equal(make_bits(value), make_bits(expected)), key)

    def test_others_states(self):
        """A checkpoint of torch.optim's goes on with other options."""
        data = Run(MAKERS["adamw"], False, torch.bfloat16).train(2).save()
        for options in OPTIONS:
            run = Run(MAKERS["adamw"], True, torch.bfloat16, **options).load(data).train(1)
            plain = Run(MAKERS["adamw"], False, torch.bfloat16).load(data).train(1)
            for own, other in zip(run.parameters, plain.parameters):
                torch.testing.assert_close(own, other, rtol=0.02, atol=2e-3)

    def test_killed(self):
        """What was saved is whole whenever a process is killed, and goes on as if it had not been."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.pt")
            child = subprocess.Popen([sys.executable, __file__, "--endless", path])
            try:
                deadline = time.monotonic() + 120
                while not os.path.exists(path) and time.monotonic() < deadline and child.poll() is None:
                    time.sleep(0.1)
                time.sleep(0.37)
            finally:
                child.send_signal(signal.SIGKILL)
                child.wait()
            with open(path, "rb") as file:
                run = make_endless().load(file.read())
        self.assertGreater(run.done, 0)
        whole = make_endless().train(run.done + 2)
        for (key, value), (_, expected) in zip(run.train(2).list_tensors(), whole.list_tensors(), strict=True):
            self.assertTrue(torch.equal(make_bits(value), make_bits(expected)), key)


class Refusals(unittest.TestCase):
    def test_refused(self):
        for options, message in (({"moments": "int8"}, "moments to be None or 'fp8', but got 'int8'"),
                                 ({"masters": "f32"}, "masters to be None, 'stochastic' or 'split', but got 'f32'"),
                                 ({"max_norm": 0}, "max_norm to be a number above 0, but got 0")):
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                Run(MAKERS["adamw"], True, **options)
        with self.assertRaisesRegex(fp8.ArgumentError, "lr and weight_decay of at least 0, but got -1"):
            fp8.torch.Lion([nn.Parameter(torch.ones(1))], -1)
        with self.assertRaisesRegex(fp8.ArgumentError, r"two betas in \[0, 1\), but got"):
            fp8.torch.Lion([nn.Parameter(torch.ones(1))], betas=(0.9, 1.0))


def make_endless():
    return Run(MAKERS["adamw"], True, torch.bfloat16, masters="stochastic", moments="fp8")


def run_endless(path):
    """Saves behind each step, under a name of its own until all is written."""
    run = make_endless()
    while True:
        data = run.train(1).save()
        with open(path + ".new", "wb") as file:
            file.write(data)
        os.replace(path + ".new", path)


if __name__ == "__main__":
    run_endless(sys.argv[2]) if sys.argv[1:2] == ["--endless"] else unittest.main()
