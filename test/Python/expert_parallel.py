# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""A mixture of experts on two ranks, to which tokens travel as codes, beside one process."""

import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

EXPERTS, EACH, WIDTH, WIDE, TOKENS, STEPS = 4, 2, 128, 256, 64, 2
RECIPES = "none", "block,pow2=true", "rowwise", "mxfp8"
warnings.filterwarnings("ignore", "fp8: ")


class Bytes(TorchDispatchMode):
    """Counts bytes that a rank gives to exchanges."""

    sent = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if str(func).startswith("c10d.alltoall_base"):
            self.sent += min(each.numel() * each.element_size() for each in tree_leaves(args)
                             if type(each) is torch.Tensor)
        return func(*args, **(kwargs or {}))


class Experts(nn.Module):
    """Those that a rank has of all."""

    def __init__(self, rank, world):
        super().__init__()
        generator, count = torch.Generator().manual_seed(0), EXPERTS // world
        self.up, self.down = (nn.Parameter((torch.randn(EXPERTS, k, n, generator=generator) / k ** 0.5)[
            rank * count:(rank + 1) * count].bfloat16()) for k, n in ((WIDTH, WIDE), (WIDE, WIDTH)))

    def forward(self, rows, ends):
        return F.grouped_mm(F.gelu(F.grouped_mm(rows, self.up, offs=ends)), self.down, offs=ends)


def make_experts(recipe, rank=0, world=1):
    return fp8.torch.convert_to_fp8_training(nn.ModuleList([Experts(rank, world)]), recipe, first_last_bf16=0,
                                             target="cpu")


def make_batches(tokens=TOKENS):
    """Tokens, their experts and what these weigh; the last expert has none."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(STEPS, tokens, WIDTH, generator=generator) * torch.logspace(-3, 3, WIDTH)
    chosen = torch.rand(STEPS, tokens, EXPERTS - 1, generator=generator).argsort(-1)[..., :EACH]
    return list(zip(x.bfloat16(), chosen, torch.rand(STEPS, tokens, EACH, generator=generator)))


def train(model, batches, codes=True, group=None):
    """Results and gradients of tokens, and the parameters of this rank."""
    optimizer, found = torch.optim.SGD(model.parameters(), 0.1), []
    for x, chosen, weights in batches:
        x = x.requires_grad_()
        rows, ends, exchange = fp8.torch.dispatch(x, chosen, EXPERTS, group, codes)
        y = fp8.torch.combine(model[0](rows, ends), exchange)
        y = (y.float() * weights[..., None]).sum(1)
        y.square().mean(1).sum().mul(1e-3).backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append((y.detach(), x.grad))
    return found, [value.detach() for value in model.parameters()]


def take(batches):
    world, rank = dist.get_world_size(), dist.get_rank()
    return [tuple(value.chunk(world)[rank] for value in batch) for batch in batches]


class Parallel(unittest.TestCase):
    def test_beside_one_process(self):
        """Results and gradients of tokens have its bits. In those of weights rows share scales by where they are, which
        depends on what experts there are before."""
        def run(recipe, world, codes):
            model = make_experts(recipe, dist.get_rank(), world)
            return train(model, take(make_batches()), codes)
        cases = [*((recipe, True) for recipe in RECIPES), ("block,pow2=true", False)]
        alone, = ranks.run(1, lambda: {case: run(case[0], 1, case[1]) for case in cases})
        both = ranks.run(2, lambda: {case: run(case[0], 2, case[1]) for case in cases})
        for case in cases:
            expected, values = alone[case]
            with self.subTest(case=case):
                steps = STEPS if case[0] == "none" else 1
                for step, (y, dx) in enumerate(expected[:steps]):
                    for place, whole in enumerate((y, dx)):
                        self.assertTrue(torch.equal(torch.cat([each[case][0][step][place] for each in both]), whole))
                for place, whole in enumerate(values):
                    found = torch.cat([each[case][1][place] for each in both])
                    self.assertLess((found - whole).norm() / whole.norm(), 1e-9 if case[0] == "none" else 0.1)

    def test_codes_are_those_of_the_recipe(self):
        """With scales that are powers of two products of a forward see what they see without."""
        def run(recipe, codes):
            return train(make_experts(recipe), make_batches(), codes)[0][0][0]
        found, = ranks.run(1, lambda: {(recipe, codes): run(recipe, codes) for recipe in ("none", "block,pow2=true")
                                       for codes in (True, False)})
        self.assertTrue(torch.equal(found["block,pow2=true", True], found["block,pow2=true", False]))
        error = (found["none", True] - found["none", False]).norm() / found["none", False].norm()
        self.assertGreater(error, 1e-4)
        self.assertLess(error, 0.05)

    def test_bytes(self):
        def run(codes):
            x, chosen, _ = take(make_batches())[0]
            with Bytes() as bytes:
                fp8.torch.dispatch(x, chosen, EXPERTS, codes=codes)
            return bytes.sent
        for with_codes, plain in ranks.run(2, lambda: (run(True), run(False))):
            self.assertLess(with_codes / plain, 0.53)

    def test_beside_linear_layers(self):
        """Experts have programs of another kind than layers of the same recipe that were prepared."""
        def run():
            fp8.torch.prepare(fp8.torch.Linear(WIDTH, WIDE, recipe="rowwise", target="cpu"), rows=[TOKENS])
            return train(make_experts("rowwise", dist.get_rank(), 2), take(make_batches())[:1])[0][0][0].isfinite().all().item()
        self.assertEqual(ranks.run(2, run), [True, True])

    def test_rows_share_a_program(self):
        """How many rows come is another number in each step: no program is compiled for each."""
        def run():
            model = make_experts("block,pow2=true", dist.get_rank(), 2)
            train(model, take(make_batches()))
            units = [unit for layer in fp8.torch.modules.get_layers(model).values() for unit in layer.units.values()]
            return {len(unit.used) for unit in units}
        self.assertEqual(ranks.run(2, run), [{1}, {1}])

    def test_a_rank_without_tokens(self):
        def run():
            x, chosen, _ = make_batches()[0]
            count = TOKENS * dist.get_rank()
            rows, ends, exchange = fp8.torch.dispatch(x[:count], chosen[:count], EXPERTS)
            y = fp8.torch.combine(rows, exchange)
            return ends.tolist(), y.shape
        (ends, first), (others, second) = ranks.run(2, run)
        self.assertEqual((ends[-1] + others[-1], tuple(first), tuple(second)),
                         (TOKENS * EACH, (0, EACH, WIDTH), (TOKENS, EACH, WIDTH)))

    def test_refused(self):
        def run():
            x, chosen, _ = make_batches()[0]
            for arguments, message in (
                    ((x, chosen, 3), "expected a multiple of 2 experts"),
                    ((x[0], chosen, 4), "expected x of tokens x features"),
                    ((x, chosen[1:], 4), "expected integers, 64 x experts of a token")):
                with self.assertRaisesRegex(fp8.ArgumentError, message):
                    fp8.torch.dispatch(*arguments)
            rows, _, exchange = fp8.torch.dispatch(x, chosen, 4)
            with self.assertRaisesRegex(fp8.ArgumentError, "rows, as dispatch returned"):
                fp8.torch.combine(rows[1:], exchange)
        ranks.run(2, run)


if __name__ == "__main__":
    unittest.main()
