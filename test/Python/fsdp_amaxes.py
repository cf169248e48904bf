# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Scales of whole tensors that several ranks share: those of one process that has all rows."""

import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402
from fp8.torch import collectives  # noqa: E402

WIDTH, PART, STEPS = 64, 16, 3
RECIPES = "current", "current,style=torchao", "current,pow2=true,format=e4m3", "delayed"
warnings.filterwarnings("ignore", "fp8: ")


def make_model(recipe):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")


def train(model, world=1, rank=0):
    """Results, and gradients of x and parameters, by steps: each rank's rows."""
    found, factor = [], 1.0
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x = torch.randn(2 * PART, WIDTH, generator=generator)
        dy = torch.randn(2 * PART, WIDTH, generator=generator)
        # Other magnitudes on each rank, and in each step.
        x[PART:] *= 3 * factor
        dy[:PART] *= 5
        factor *= 1.5
        x, dy = x.chunk(world)[rank].requires_grad_(), dy.chunk(world)[rank]
        model.zero_grad()
        with fp8.torch.accumulated(model):
            y = model(x)
            y.backward(dy)
        gradients = [value.grad.full_tensor() * world if hasattr(value.grad, "full_tensor") else value.grad
                     for value in model.parameters()]
        found.append((y.detach(), x.grad, [value.clone() for value in gradients]))
    return found


def train_sharded(recipe, gathers):
    model = make_model(recipe)
    if gathers:
        fp8.torch.gather_in_fp8(model)
    for layer in (model[0], model[2]):
        fully_shard(layer)
    return train(fp8.torch.share_amaxes(fully_shard(model)), 2, dist.get_rank())


class Shared(unittest.TestCase):
    def test_values_are_those_of_all_rows(self):
        """Results and gradients of x have the same bits; those of weights are sums in another order."""
        expected = {recipe: train(make_model(recipe)) for recipe in RECIPES}
        cases = [(recipe, gathers) for recipe in RECIPES for gathers in (False, True)]
        found = ranks.run(2, lambda: {case: train_sharded(*case) for case in cases})
        for rank in range(2):
            for (recipe, gathers), steps in found[rank].items():
                for step, (values, alone) in enumerate(zip(steps, expected[recipe])):
                    with self.subTest(recipe=recipe, gathers=gathers, rank=rank, step=step):
                        self.assertTrue(torch.equal(values[0], alone[0].chunk(2)[rank]))
                        self.assertTrue(torch.equal(values[1], alone[1].chunk(2)[rank]))
                        for value, other in zip(values[2], alone[2]):
                            torch.testing.assert_close(value, other, rtol=1e-5, atol=1e-4)

    def test_without_it_each_rank_has_its_own(self):
        def run():
            return train(make_model("current"), 2, dist.get_rank())
        alone = train(make_model("current"))
        found = ranks.run(2, run)
        self.assertFalse(torch.equal(found[0][0][0], alone[0][0].chunk(2)[0]))

    def test_other_ranks_and_nan(self):
        """A rank that a group does not have leaves its amaxes, and NaN of either sign is above all."""
        def run():
            group = dist.new_group([0])
            amaxes = torch.tensor([1.0, float("nan"), 2.0]) if dist.get_rank() else torch.tensor([float("nan"), 1.0, 3.0])
            amaxes = torch.where(amaxes.isnan(), amaxes.copysign(torch.tensor(-1.0)), amaxes)
            alone = amaxes.clone()
            collectives.reduce_max(alone, group)
            collectives.reduce_max(amaxes)
            return alone.isnan().tolist(), amaxes.tolist()
        for rank, (alone, both) in enumerate(ranks.run(2, run)):
            self.assertEqual(alone, [rank == 0, rank == 1, False])
            self.assertEqual([str(each) for each in both], ["nan", "nan", "3.0"])

    def test_refused(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "^expected torch.distributed to be initialized, but it is not$"):
            fp8.torch.share_amaxes(make_model("current"))


if __name__ == "__main__":
    unittest.main()
