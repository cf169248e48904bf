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
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import parallel  # noqa: E402
from torch.distributed.tensor.parallel import parallelize_module  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402
from fp8.torch.coded_results import CodedResult  # noqa: E402

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


class Block(nn.Module):
    """The result of attention is codes, which a layer multiplies. A rank may have some of the heads."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.q, self.k, self.v, self.out = (nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (-1, 32)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        assert type(y) is CodedResult
        return self.out(y.transpose(1, 2).flatten(2))

    @property
    def scales(self):
        return self.fp8_attention


def make_block():
    recipe = fp8.DelayedScaling(amax_history_len=2, fp8_mha=True)
    return fp8.torch.convert_to_fp8_training(Block().bfloat16(), recipe, first_last_bf16=0, filter=None, target="cpu")


def make_rows():
    rows = torch.randn(STEPS, 4, 16, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    # The first step's largest results are the second rank's.
    rows[:, 3] *= 4
    return rows


def run(model, batches):
    results = []
    for batch in batches:
        with fp8.torch.accumulated(model):
            y = model(batch)
            y.sum().backward()
        results.append(y.detach())
    return results, [slot.scale for slot in model.scales.scales[""].values()]


def work_in_codes():
    model = fp8.torch.share_amaxes(make_block())
    return run(model, make_rows().chunk(2, 1)[dist.get_rank()])


def work_on_heads():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    found = []
    for columns, rows in (fp8.torch.ColwiseParallel, fp8.torch.RowwiseParallel), (parallel.ColwiseParallel, parallel.RowwiseParallel):
        model = make_block()
        parallelize_module(model, mesh, {**{name: columns() for name in "qkv"}, "out": rows()})
        found.append(run(model, make_rows())[0])
    return found


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

    def test_results_in_codes(self):
        expected, scales = run(make_block(), make_rows())
        (first, found), (second, other) = ranks.run(2, work_in_codes)
        self.assertEqual(len(scales), 4)
        self.assertEqual((found, other), (scales, scales))
        for y, *parts in zip(expected, first, second):
            self.assertTrue(torch.equal(y, torch.cat(parts)))

    def test_results_in_codes_of_some_heads(self):
        """Each rank has a scale of its own."""
        expected = run(make_block(), make_rows())[0]
        for found in ranks.run(2, work_on_heads):
            for results in found:
                for y, theirs in zip(results, expected):
                    self.assertLess((y.float() - theirs.float()).norm() / theirs.float().norm(), 0.1)


if __name__ == "__main__":
    unittest.main()
