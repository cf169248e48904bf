# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""One rank with the kernels of a GPU, on the emulator: scales that ranks share, and FSDP2 with codes or without, have the
bits of neither."""

import sys
import unittest
import warnings
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

import fp8.torch  # noqa: E402
from fp8.torch import one_rank, shard_programs  # noqa: E402

WIDTH, STEPS = 128, 3
warnings.filterwarnings("ignore", "fp8: ")


def train(recipe, way=None):
    """Results and parameters."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH)).bfloat16()
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="sm_90a", only_faster=False)
    if way == "codes":
        fp8.torch.gather_in_fp8(model)
    if way in ("codes", "plain"):
        fully_shard(model)
    if way == "shared":
        fp8.torch.share_amaxes(model)
    optimizer, results = torch.optim.SGD(model.parameters(), 0.1), []
    for step in range(STEPS):
        x = (step + 1) * torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(step)).bfloat16()
        with fp8.torch.accumulated(model):
            y = model(x)
            y.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        fp8.torch.precompute_scales(model)
        results.append(y.detach())
    return results + [(value.full_tensor() if hasattr(value, "full_tensor") else value).detach() for value in model.parameters()]


class OneRank(unittest.TestCase):
    def test_bits(self):
        cases = ("current", "shared"), ("delayed", "shared"), ("block", "codes"), ("delayed", "codes"), ("delayed", "plain")

        def run():
            alone = {recipe: train(recipe) for recipe in ("current", "delayed", "block")}
            # Nothing is different for weights that FSDP2 copies before each use.
            with mock.patch.object(shard_programs, "turn", side_effect=AssertionError("a weight's codes are turned")):
                return {case: all(map(torch.equal, train(*case), alone[case[0]])) for case in cases}
        self.assertEqual(ranks.run(1, run), [{case: True for case in cases}])

    def test_gradients_of_the_same_memory(self):
        """They become gradients of their own, as FSDP2 copies them, and the bits are its."""
        class Sum(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = (nn.Parameter(torch.full((8, 8), number)) for number in (1.0, 2.0))

            def forward(self, x):
                return (self.a.view(-1) + self.b.view(-1)).view(8, 8) @ x

        def run():
            found = []
            for reduces in (False, True):
                model = Sum()
                fully_shard(model)
                if reduces:
                    one_rank.reduce_in_place(model)
                model(torch.ones(8, 8)).sum().backward()
                for parameter in model.parameters():
                    parameter.grad.mul_(0.5)
                found.append([parameter.grad.full_tensor() for parameter in model.parameters()])
            return [torch.equal(*each) for each in zip(*found)]
        self.assertEqual(ranks.run(1, run), [[True, True]])


if __name__ == "__main__":
    unittest.main()
