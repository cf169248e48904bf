# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Twenty steps on two ranks and four beside one process with the whole batch, where all sums are exact: losses and
parameters, bit by bit. Tensor and sequence parallelism, with and without FSDP2, and experts.

Weights are multiples of 1/128 and stay so, as a step moves each by 1/128 or not at all; activations and targets are small
integers, and scales powers of two. Codes then are multiples of the same, and no order of sums rounds otherwise.
"""

import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import Replicate, Shard, parallel  # noqa: E402
from torch.distributed.tensor.parallel import parallelize_module  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import fp8.torch  # noqa: E402

STEPS, UNIT = 20, 2.0 ** -7
DENSE = "none", "current,pow2=true", "delayed,pow2=true", "rowwise,pow2=true", "block,pow2=true", "mxfp8"
WIDTH, WIDE, BATCH, LENGTH = 128, 256, 4, 128  # Parts of two ranks, and rows of four, are blocks of 128.
# What experts have, and whether tokens travel as codes.
GROUPED = ("none", False), ("rowwise,pow2=true", True), ("block,pow2=true", True), ("mxfp8", False)
EXPERTS, EACH, TOKENS = 4, 2, 64
warnings.filterwarnings("ignore", "fp8: ")


def draw(generator, most, *sizes):
    return torch.randint(-most, most + 1, sizes, generator=generator).float()


def step(model):
    """Moves each parameter by its gradient's sign. FSDP2 means what one process adds up, which has the same sign."""
    with torch.no_grad():
        for value in model.parameters():
            value.sub_(value.grad.sign() * UNIT)
            value.grad = None


def get_whole(value):
    return (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().clone()


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


def make_dense(recipe):
    model, generator = MLP(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(draw(generator, 8, *value.shape) * UNIT)
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")


def make_batches():
    generator = torch.Generator().manual_seed(1)
    return [(draw(generator, 1, BATCH, LENGTH, WIDTH), draw(generator, 1, BATCH, LENGTH, WIDTH)) for _ in range(STEPS)]


def train_dense(model, take=lambda value: value, group=None):
    """Losses, sums of this rank's part, and whole parameters."""
    losses = []
    for x, target in make_batches():
        x, target = take(x), take(target)
        with fp8.torch.accumulated(model, group):
            loss = (model(x) * target).double().sum()
            loss.backward()
        step(model)
        fp8.torch.precompute_scales(model)
        losses.append(loss.detach().clone())
    return torch.stack(losses), [get_whole(value) for value in model.parameters()]


def cut(model, mesh, is_sequence, styles):
    up, down = ({"input_layouts": Shard(1)}, {"output_layouts": Shard(1)}) if is_sequence else ({}, {})
    return parallelize_module(model, mesh, {"up": styles.ColwiseParallel(**up), "down": styles.RowwiseParallel(**down)})


def train_cut(recipe, is_sequence, is_own):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = cut(make_dense(recipe), mesh, is_sequence, fp8.torch if is_own else parallel)
    if not is_sequence:
        return train_dense(model)
    losses, values = train_dense(model, lambda value: value.chunk(mesh.size(), 1)[mesh.get_local_rank()].contiguous())
    dist.all_reduce(losses)
    return losses, values


def train_sharded(recipe, gathers, parts):
    """FSDP2, of layers that so many ranks cut."""
    mesh = init_device_mesh("cpu", (dist.get_world_size() // parts, parts), mesh_dim_names=("data", "parts"))
    data, model = mesh["data"], make_dense(recipe)
    if parts > 1:
        cut(model, mesh["parts"], False, fp8.torch)
    if gathers:
        fp8.torch.gather_in_fp8(model)
    fully_shard(model, mesh=data)
    losses, values = train_dense(model, lambda value: value.chunk(data.size())[data.get_local_rank()])
    dist.all_reduce(losses, group=data.get_group())
    return losses, values


class Experts(nn.Module):
    """Those that a rank has of all."""

    def __init__(self, rank, world):
        super().__init__()
        generator, count = torch.Generator().manual_seed(2), EXPERTS // world
        self.up, self.down = (nn.Parameter((draw(generator, 8, EXPERTS, k, n) * UNIT)[
            rank * count:(rank + 1) * count].bfloat16()) for k, n in ((WIDTH, WIDTH), (WIDTH, WIDTH)))

    def forward(self, rows, ends):
        return F.grouped_mm(F.relu(F.grouped_mm(rows, self.up, offs=ends)), self.down, offs=ends)


def train_experts(recipe, codes, rank=0, world=1):
    """Results and gradients of tokens, and the parameters of this rank, in f32."""
    model = fp8.torch.convert_to_fp8_training(nn.ModuleList([Experts(rank, world)]), recipe, first_last_bf16=0, target="cpu")
    generator, found = torch.Generator().manual_seed(3), []
    for _ in range(STEPS):
        x, target = (draw(generator, 1, TOKENS, WIDTH).chunk(world)[rank].bfloat16() for _ in range(2))
        chosen = torch.rand(TOKENS, EXPERTS, generator=generator).argsort(-1)[:, :EACH].chunk(world)[rank]
        x.requires_grad_()
        rows, ends, exchange = fp8.torch.dispatch(x, chosen, EXPERTS, codes=codes)
        y = fp8.torch.combine(model[0](rows, ends), exchange).float().sum(1)
        (y * target).sum().backward()
        step(model)
        found.append((y.detach(), x.grad))
    return found, [value.detach().float() for value in model.parameters()]


class Exact(unittest.TestCase):
    def compare(self, world, cases, expected):
        """Cases are what ranks do for a recipe, and with what, beside what one process has for it."""
        found = ranks.run(world, lambda: {(recipe, *case): run(recipe, *case) for run, recipe, *case in cases})
        for rank, each in enumerate(found):
            for (recipe, *case), (losses, values) in each.items():
                with self.subTest(recipe=recipe, case=case, world=world, rank=rank):
                    self.assertTrue(torch.equal(losses, expected[recipe][0]))
                    self.assertTrue(all(map(torch.equal, values, expected[recipe][1])))

    def test_dense(self):
        _, current, delayed, rowwise, block, mxfp8 = DENSE
        expected = {recipe: train_dense(make_dense(recipe)) for recipe in DENSE}
        for recipe, (losses, values) in expected.items():
            moved = [(value - other).abs().max() for value, other in zip(values, make_dense("none").parameters())]
            self.assertGreater(max(moved), 4 * UNIT, recipe)
            self.assertEqual(len(set(losses.tolist())), STEPS)
        gathered = [(train_sharded, recipe, True, 1) for recipe in (current, delayed, rowwise, block)]
        whole = [(train_cut, recipe, False, False) for recipe in (current, rowwise)]
        parts = [(train_cut, recipe, True, True) for recipe in (current, delayed)]
        self.compare(2, [*gathered[::3], *whole, *parts, (train_sharded, mxfp8, False, 1),
                         (train_cut, block, True, True), (train_cut, mxfp8, False, False)], expected)
        both = [(train_sharded, recipe, True, 2) for recipe in (current, delayed, rowwise, block)]
        self.compare(4, [*gathered[2:], *whole[1:], *parts[1:], *both, (train_sharded, mxfp8, False, 2)], expected)

    def test_experts(self):
        alone, = ranks.run(1, lambda: {case: train_experts(*case) for case in GROUPED})
        for world in (2, 4):
            found = ranks.run(world, lambda: {case: train_experts(*case, dist.get_rank(), world) for case in GROUPED})
            for case, (steps, values) in alone.items():
                with self.subTest(case=case, world=world):
                    for number, whole in enumerate(steps):
                        for place, value in enumerate(whole):
                            self.assertTrue(torch.equal(torch.cat([each[case][0][number][place] for each in found]), value))
                    for place, value in enumerate(values):
                        self.assertTrue(torch.equal(torch.cat([each[case][1][place] for each in found]), value))


if __name__ == "__main__":
    unittest.main()
