# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Delayed scales of attention on two ranks over gloo, each with half of the batches, as DistributedDataParallel and FSDP2
have them: results and scales are those of one process with all of them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

STEPS = 3


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = fp8.torch.AttentionScales(fp8.DelayedScaling(amax_history_len=2))
        self.factor = nn.Parameter(torch.ones(32))

    def forward(self, x):
        x = x * self.factor
        return fp8.torch.scaled_dot_product_attention(x, x, x, scales=self.scales)


def make_batches():
    batches = torch.randn(STEPS, 4, 2, 8, 32, generator=torch.Generator().manual_seed(0))
    for step in range(STEPS):
        batches[step, 3 * (step % 2), 0, 3, 5] = 20 + step
    return batches


def run(model, batches):
    results = []
    for batch in batches:
        with fp8.torch.accumulated(model):
            y = model(batch)
            y.sum().backward()
        results.append(y.detach())
    return results, [slot.scale for slot in model.scales.scales[""].values()]


def work():
    model = fp8.torch.share_amaxes(Model())
    return run(model, make_batches().chunk(2, 1)[dist.get_rank()])


def work_sharded():
    from torch.distributed.fsdp import fully_shard
    model = fully_shard(fp8.torch.share_amaxes(Model()))
    return run(model, make_batches().chunk(2, 1)[dist.get_rank()])


class Ranks(unittest.TestCase):
    def test_scales(self):
        expected, scales = run(Model(), make_batches())
        for body in work, work_sharded:
            (first, found), (second, other) = ranks.run(2, body)
            self.assertEqual((found, other), (scales, scales))
            for y, *parts in zip(expected, first, second):
                self.assertTrue(torch.equal(y, torch.cat(parts)))


if __name__ == "__main__":
    unittest.main()
