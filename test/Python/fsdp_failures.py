# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Several processes where one of them fails: an error on all others in time, and checkpoints that are whole or refused. And
replicas of shards, of which nothing fails."""

import os
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.checkpoint import CheckpointException  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import Replicate  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

WIDTH, PART, TIMEOUT = 128, 16, 60
warnings.filterwarnings("ignore", "fp8: ")


def make_model(recipe="delayed", gathers=False, mesh=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")
    if gathers:
        fp8.torch.gather_in_fp8(model)
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters(), 1e-3)


def train(model, optimizer, steps=2, before_backward=lambda step: None):
    losses = []
    for step in range(steps):
        x = torch.randn(PART, WIDTH, generator=torch.Generator().manual_seed(4 * step + dist.get_rank()))
        with fp8.torch.accumulated(model):
            loss = (model(x) - x.roll(1, -1)).square().mean()
            before_backward(step)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        fp8.torch.precompute_scales(model)
        losses.append(loss.item())
    return losses


def get_state(model, optimizer):
    names, states = get_state_dict(model, optimizer)
    return {"model": names, "optimizer": states}


def get_whole(model):
    return [value.full_tensor().detach().clone() for value in model.parameters()]


def die(step):
    if step == 1 and dist.get_rank() == 1:
        os._exit(1)


class Failures(unittest.TestCase):
    def test_a_rank_that_dies(self):
        """In a backward, or where a checkpoint is written: the other has an error, long before its collective's timeout, and what
        was saved before is whole. What was not is no checkpoint."""
        def run(path, gathers):
            model, optimizer = make_model(gathers=gathers)
            fp8.torch.make_states(model)
            train(model, optimizer)
            dcp.save(get_state(model, optimizer), checkpoint_id=f"{path}/whole")
            values, start = get_whole(model), time.monotonic()
            try:
                train(model, optimizer, before_backward=die)
            except RuntimeError as error:
                first = type(error).__name__
            try:
                dcp.save(get_state(model, optimizer), checkpoint_id=f"{path}/part")
            except (RuntimeError, CheckpointException) as error:
                return values, first, type(error).__name__, time.monotonic() - start

        def load(path):
            model, optimizer = make_model()
            fp8.torch.make_states(model)
            state = get_state(model, optimizer)
            with self.assertRaises(CheckpointException):
                dcp.load(state, checkpoint_id=f"{path}/part")
            dcp.load(state, checkpoint_id=f"{path}/whole")
            set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
            return get_whole(model), train(model, optimizer)

        with tempfile.TemporaryDirectory() as folder:
            (values, *errors, seconds), _ = ranks.run(2, lambda: run(folder, False), dies=[1], timeout=TIMEOUT)
            self.assertLess(seconds, 2 * TIMEOUT)
            self.assertEqual(len(errors), 2)
            for found, losses in ranks.run(2, lambda: load(folder)):
                self.assertTrue(all(map(torch.equal, found, values)))
                self.assertTrue(torch.tensor(losses).isfinite().all())

    def test_a_rank_that_dies_before_a_gather_of_codes(self):
        def run():
            model, optimizer = make_model("current", True)
            start = time.monotonic()
            with self.assertRaises(RuntimeError):
                train(model, optimizer, before_backward=die)
            return time.monotonic() - start
        seconds, _ = ranks.run(2, run, dies=[1], timeout=TIMEOUT)
        self.assertLess(seconds, 2 * TIMEOUT)

    def test_versions_that_disagree(self):
        """An error on all ranks: in gathers of codes, of parts, and in the end of a step."""
        def run(make):
            with mock.patch("fp8._core.get_versions", return_value=(0, 2 + dist.get_rank())):
                with self.assertRaisesRegex(fp8.MismatchError, "'fp8 0.2' on rank 0 and 'fp8 0.3' on rank 1 of the group$"):
                    make()

        def call_part():
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe="current", target="cpu")
            parallelize_module(layer, init_device_mesh("cpu", (2,)), ColwiseParallel())(torch.zeros(PART, WIDTH))
        ranks.run(2, lambda: [run(make) for make in (
            lambda: train(*make_model("block", True)), call_part, lambda: train(*make_model()))])

    def test_others_that_disagree(self):
        """In what tokens travel as, in scales that are shared, and where gradients are codes."""
        def run():
            rank, x = dist.get_rank(), torch.ones(PART, WIDTH)
            chosen = torch.zeros(PART, 2, dtype=torch.int64)
            with self.assertRaisesRegex(fp8.MismatchError, "'4 experts, 2 of a token of 128 x torch.float32, codes' on rank 0 "
                                                           "and '.* no codes' on rank 1"):
                fp8.torch.dispatch(x, chosen, 4, codes=rank == 0)
            layer = nn.Sequential(fp8.torch.Linear(WIDTH, WIDTH, recipe="delayed" if rank else "current", target="cpu"))
            with self.assertRaisesRegex(fp8.MismatchError, "'0: current' on rank 0 and '0: delayed' on rank 1"):
                fp8.torch.share_amaxes(layer)
            model = nn.parallel.DistributedDataParallel(layer)
            with mock.patch("fp8._core.get_versions", return_value=(0, 2 + rank)):
                with self.assertRaisesRegex(fp8.MismatchError, "'fp8 0.2' on rank 0 and 'fp8 0.3' on rank 1"):
                    fp8.torch.reduce_in_fp8(model)
        ranks.run(2, run)

    def test_a_rank_that_dies_before_an_exchange(self):
        """That of tokens, or that of an amax of parts."""
        def run(is_exchange):
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe="current", target="cpu")
            parallelize_module(layer, init_device_mesh("cpu", (2,)), RowwiseParallel(input_layouts=Replicate()))
            x, chosen = torch.ones(PART, WIDTH), torch.zeros(PART, 2, dtype=torch.int64)
            start = time.monotonic()
            with self.assertRaises(RuntimeError):
                for step in range(2):
                    die(step)
                    fp8.torch.dispatch(x, chosen, 4) if is_exchange else layer(x)
            return time.monotonic() - start
        for is_exchange in (True, False):
            seconds, _ = ranks.run(2, lambda: run(is_exchange), dies=[1], timeout=TIMEOUT)  # noqa: B023
            self.assertLess(seconds, 2 * TIMEOUT)

    def test_a_nan_of_one_rank(self):
        """Among tokens it is in the rows of these, and in results of no other; in no amax of parts, and states are equal."""
        def run():
            x, chosen = torch.ones(PART, WIDTH), torch.arange(2 * PART).view(PART, 2) % 4
            if dist.get_rank() == 1:
                x[3, 5] = float("nan")
            rows, _, exchange = fp8.torch.dispatch(x, chosen, 4)
            found = fp8.torch.combine(2 * rows, exchange).isnan().flatten(1).any(1)
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe="delayed", target="cpu")
            parallelize_module(layer, init_device_mesh("cpu", (2,)), RowwiseParallel())
            with fp8.torch.accumulated(layer, dist.group.WORLD):
                layer(x[:, :WIDTH // 2]).sum().backward()
            return found.nonzero().flatten().tolist(), {slot.name: slot.amax for slot in layer.units["delayed"].state.slots.values()}
        (first, amaxes), (second, others) = ranks.run(2, run)
        self.assertEqual((first, second), ([], [3]))
        self.assertEqual(amaxes, others)
        self.assertTrue(all(0 <= amax < 100 for amax in amaxes.values()), amaxes)

    def test_parts_that_disagree(self):
        def run():
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe="block" if dist.get_rank() else "current", target="cpu")
            parallelize_module(layer, init_device_mesh("cpu", (2,)), ColwiseParallel())
            with self.assertRaisesRegex(fp8.MismatchError, "cut along 0: current' on rank 0 and .*: block' on rank 1"):
                layer(torch.zeros(PART, WIDTH))
        ranks.run(2, run)


class Replicas(unittest.TestCase):
    def test_bits(self):
        """Two replicas of two shards: gathers of codes have the losses and parameters of gathers in high precision."""
        def run(recipe, gathers):
            mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
            model, optimizer = make_model(recipe, gathers, mesh)
            return train(model, optimizer), get_whole(model)
        recipes = "current", "delayed", "rowwise", "block"
        for found in ranks.run(4, lambda: {recipe: [run(recipe, gathers) for gathers in (False, True)] for recipe in recipes}):
            for recipe, ((losses, values), (others, other_values)) in found.items():
                with self.subTest(recipe=recipe):
                    self.assertEqual(losses, others)
                    self.assertTrue(all(map(torch.equal, values, other_values)))


if __name__ == "__main__":
    unittest.main()
