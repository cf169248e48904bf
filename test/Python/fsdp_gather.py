# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""FSDP2 whose gathers carry codes: the codes of one process, the losses and parameters of gathers in high precision,
bit by bit, and the bytes of both."""

import sys
import unittest
import warnings
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402
from fp8.torch import linear_programs, one_rank, shard_programs  # noqa: E402

RECIPES = "current", "delayed", "rowwise", "block"
WIDTH, PART, STEPS = 128, 16, 2
warnings.filterwarnings("ignore", "fp8: ")  # 16 rows are no K of every gradient.


class Bytes(TorchDispatchMode):
    """Counts bytes that a rank gives to gathers and reductions of maxima."""

    def __init__(self):
        super().__init__()
        self.gathered = self.reduced = self.reductions = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        sizes = [each.numel() * each.element_size() for each in tree_leaves(args) if type(each) is torch.Tensor]
        if name.startswith("c10d._allgather_base_"):
            self.gathered += min(sizes)
        elif name.startswith("c10d.allreduce_"):
            self.reduced += sum(sizes)
            self.reductions += 1
        return func(*args, **(kwargs or {}))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.saves = nn.Linear(width, width), True

    def compute(self, x):
        return x + torch.tanh(self.linear(x))

    def forward(self, x):
        return self.compute(x) if self.saves else checkpoint(self.compute, x, use_reentrant=False)


def make_model(recipe, gathers, width=WIDTH, saves=True, dtype=torch.float32, **options):
    torch.manual_seed(0)
    model = nn.Sequential(Residual(width), Residual(width)).to(dtype)
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")
    if gathers:
        assert fp8.torch.gather_in_fp8(model) == {}
    for block in model:
        block.saves = saves
        fully_shard(block, **options)
    return fully_shard(model, **options)


def train(model, precomputes=True, microbatches=1, width=WIDTH, dtype=torch.float32):
    """Losses, whole parameters, and what went between the ranks in the last step."""
    world = dist.get_world_size()
    batches = torch.randn(STEPS, microbatches, world, PART, width, generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses = []
    for step in batches:
        with Bytes() as bytes:
            with fp8.torch.accumulated(model):
                for place, batch in enumerate(step):
                    model.set_requires_gradient_sync(place == microbatches - 1)
                    part = batch[dist.get_rank()].to(dtype)
                    loss = (model(part) - part.roll(1, -1)).square().mean()
                    loss.backward()
                    losses.append(loss.detach())
            optimizer.step()
            optimizer.zero_grad()
            if precomputes:
                fp8.torch.precompute_scales(model)
    return losses, [value.full_tensor().detach() for value in model.parameters()], bytes


def compare(recipe, precomputes=True, microbatches=1, width=WIDTH, dtype=torch.float32, **options):
    """Whether losses and parameters are equal, and a gather's bytes as a part of those in high precision."""
    results = [train(make_model(recipe, gathers, width, dtype=dtype, **options), gathers and precomputes, microbatches,
                     width, dtype) for gathers in (False, True)]
    (losses, values, plain), (others, other_values, codes) = results
    is_same = all(map(torch.equal, losses, others)) and all(map(torch.equal, values, other_values))
    return is_same, (codes.gathered + codes.reduced - plain.reduced) / max(plain.gathered, 1), codes.reductions


class Gather(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Compiles what children then have."""
        for recipe in RECIPES:
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe=recipe, target="cpu")
            layer(torch.randn(PART, WIDTH)).sum().backward()
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe=recipe, target="cpu", cache_weights=True)
            layer(torch.randn(PART, WIDTH)).sum().backward()
            codes = shard_programs.find_codes(recipe)
            for block in (codes.forward, codes.backward):
                shard_programs.Shard(codes, layer.weight.detach(), 0, WIDTH, "cpu").measure(block)

    def test_bits_and_bytes(self):
        """Two ranks and four: of f32, whose codes are a quarter, with biases and all that is reduced."""
        for world in (2, 4):
            found = ranks.run(world, lambda: {recipe: compare(recipe) for recipe in RECIPES})
            for recipe in RECIPES:
                with self.subTest(recipe=recipe, world=world):
                    for is_same, part, reductions in (each[recipe] for each in found):
                        self.assertTrue(is_same)
                        # One collective for the amaxes of all weights; that of delayed scaling is there anyway.
                        self.assertEqual(reductions, 1)
                        self.assertLess(part, 0.30)

    def test_other_ways(self):
        cases = {"kept": {"reshard_after_forward": False}, "measured when gathered": {"precomputes": False},
                 "microbatches": {"microbatches": 2}, "checkpointing": {"saves": False}}
        found = ranks.run(2, lambda: {(recipe, case): compare(recipe, **options)[0] for recipe in RECIPES
                                      for case, options in cases.items() if recipe in ("delayed", "rowwise")})
        for each in found:
            self.assertEqual([case for case, is_same in each.items() if not is_same], [])

    def test_uneven_shards(self):
        """Three ranks have 22, 22 and 20 of 64 rows, or 43, 43 and 42 of 128, which no block ends with."""
        found = ranks.run(3, lambda: {recipe: compare(recipe, width=WIDTH if recipe == "block" else 64)[0]
                                      for recipe in ("current", "rowwise", "block")})
        for each in found:
            self.assertEqual([recipe for recipe, is_same in each.items() if not is_same], [])

    def test_bf16(self):
        """Half of bf16's bytes, of parameters in it and under a policy; where amaxes are of both directions, too."""
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        width, cases = 512, {"dtype": {"dtype": torch.bfloat16}, "policy": {"mp_policy": policy}}
        found = ranks.run(2, lambda: {(recipe, case): compare(recipe, width=width, **options)[:2]
                                      for recipe in ("block", "rowwise") for case, options in cases.items()})
        for each in found:
            for case, (is_same, part) in each.items():
                with self.subTest(case=case):
                    self.assertTrue(is_same)
                    self.assertLess(part, 0.52)

    def test_one_rank(self):
        """Nothing is gathered, codes are what a rank has, and gradients are what the backward left."""
        def run():
            found = {recipe: compare(recipe)[0] for recipe in RECIPES}
            kept, left = one_rank._Content.keep, []

            def record(content, gradients):
                left.append({each.data_ptr() for each in gradients})
                return kept(content, gradients)
            model, places = make_model("block", True), []
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            with mock.patch.object(one_rank._Content, "keep", record):
                for _ in range(2):
                    model(torch.ones(PART, WIDTH)).sum().backward()
                    places.append({value.grad.to_local().data_ptr() for value in model.parameters()})
                    optimizer.step()
                    optimizer.zero_grad()
                    fp8.torch.precompute_scales(model)
            return found, places[1] == set().union(*left) and len(left) == 2
        (found, is_same), = ranks.run(1, run)
        self.assertEqual([recipe for recipe, is_same in found.items() if not is_same], [])
        self.assertTrue(is_same)

    def test_one_rank_in_other_ways(self):
        """Gradients that are added up, of another dtype, divided, or seen by hooks are those of FSDP2 alone."""
        def run(way, is_ours):
            policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32 if way == "dtype" else None)
            model = make_model("block", True, mp_policy=policy)
            sums, factor = [], 2.0 if way == "divided" else None
            if factor:
                for block in (*model, model):
                    block.set_gradient_divide_factor(factor)
            if is_ours:
                fp8.torch.precompute_scales(model)
            if way == "hooks":
                for value in model.parameters():
                    value.register_post_accumulate_grad_hook(lambda value: sums.append(value.grad.to_local().sum()))
            x = torch.randn(2, PART, WIDTH, generator=torch.Generator().manual_seed(1))
            for part in x:
                if way == "not yet":
                    model.set_requires_gradient_sync(part is not x[0])
                model(part).square().mean().backward()
            return [*sums, *(value.grad.to_local() for value in model.parameters())]
        for found in ranks.run(1, lambda: {way: [run(way, is_ours) for is_ours in (False, True)] for way in (
                "added", "not yet", "dtype", "divided", "hooks")}):
            for way, (values, others) in found.items():
                with self.subTest(way=way):
                    self.assertEqual([value.dtype for value in values], [value.dtype for value in others])
                    self.assertTrue(all(map(torch.equal, values, others)))

    def test_codes_are_those_of_one_process(self):
        """Weights have zeros, a NaN and magnitudes that differ."""
        def make_weight():
            weight = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(3))
            weight[3], weight[5, 7], weight[90:, 100:], weight[70, 2] = 0, float("nan"), 1e-30, 1e3
            return weight

        def gather(recipe):
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe=recipe, target="cpu")
            layer.weight = nn.Parameter(make_weight())
            fp8.torch.gather_in_fp8(layer)
            fully_shard(layer, reshard_after_forward=False)
            layer.unshard()
            values = {**layer.weight._content.get_values("forward"), **layer.weight._content.get_values("backward")}
            return {name: value.flatten().view(torch.uint8) for name, value in values.items()}

        found = [each for world in (1, 2) for each in ranks.run(world, lambda: {recipe: gather(recipe) for recipe in RECIPES})]
        for recipe in RECIPES:
            program = linear_programs.get_programs(recipe, "cpu").get(linear_programs.Shape(
                PART, WIDTH, WIDTH, torch.float32, True, True), "cpu")
            function = program.quantize_weight
            state = fp8.State(program) if function.takes_state else None
            expected = function(make_weight(), state=state)
            for info, value in zip(function.results, expected):
                for each in found:
                    with self.subTest(recipe=recipe, name=info.name):
                        self.assertTrue(torch.equal(each[recipe][info.name], value.flatten().view(torch.uint8)))

    def test_what_programs_take(self):
        """Amaxes begin where vectors do, though they are parts of what all ranks reduce; and weights are quantized once
        in a step, all behind it."""
        def run(recipe):
            found, counts, kept = [], [], (shard_programs.Shard.scale, shard_programs.Shard.quantize)

            def scale(shard, block, amax):
                found.append(amax.data_ptr() % 16)
                return kept[0](shard, block, amax)

            def quantize(*arguments):
                counts[-1] += 1
                return kept[1](*arguments)
            model, batches = make_model(recipe, True), torch.ones(STEPS, PART, WIDTH)
            shard_programs.Shard.scale, shard_programs.Shard.quantize = scale, quantize
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for batch in batches:
                with fp8.torch.accumulated(model):
                    counts.append(0)
                    model(batch).square().mean().backward()
                optimizer.step()
                counts.append(0)
                fp8.torch.precompute_scales(model)
            shard_programs.Shard.scale, shard_programs.Shard.quantize = kept
            return found, counts
        for found in ranks.run(2, lambda: {recipe: run(recipe) for recipe in RECIPES}):
            for recipe, (places, counts) in found.items():
                with self.subTest(recipe=recipe):
                    self.assertEqual(set(places) - {0}, set())
                    self.assertEqual(counts, [4, 4 if recipe == "rowwise" else 2, 0, 4 if recipe == "rowwise" else 2])

    def test_tied_weights(self):
        """A weight that an embedding has, too, stays one, and is gathered as it is."""
        def make(gathers):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Embedding(WIDTH, WIDTH), Residual(WIDTH), nn.Linear(WIDTH, WIDTH, bias=False))
            model[2].weight = model[0].weight
            fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0, target="cpu")
            if gathers:
                self.assertEqual(fp8.torch.gather_in_fp8(model), {"2": "it shares its weight with 0.weight"})
                self.assertIs(model[2].weight, model[0].weight)
            fully_shard(model[1])
            return fully_shard(model)

        def run(gathers):
            model, losses = make(gathers), []
            optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
            for step in range(STEPS):
                ids = torch.arange(PART) + PART * (2 * step + dist.get_rank())
                loss = nn.functional.cross_entropy(model(ids), ids.roll(1))
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                fp8.torch.precompute_scales(model)
                losses.append(loss.item())
            return losses, [value.full_tensor().detach() for value in model.parameters()]
        for (losses, values), (others, other_values) in ranks.run(2, lambda: [run(gathers) for gathers in (False, True)]):
            self.assertEqual(losses, others)
            self.assertTrue(all(map(torch.equal, values, other_values)))

    def test_state_dicts_have_plain_tensors(self):
        def run():
            model = make_model("current", True)
            train(model)
            state = model.state_dict()
            other = make_model("current", True)
            other.load_state_dict(state)
            types = {type(value.to_local()) for value in state.values()}
            before = train(model)[0]
            return types, before, train(other)[0]
        for types, losses, others in ranks.run(2, run):
            self.assertEqual(types, {torch.Tensor})
            self.assertEqual(losses, others)

    def test_refused(self):
        def disagree():
            model = make_model("current" if dist.get_rank() else "rowwise", True)
            with self.assertRaisesRegex(fp8.MismatchError, "^expected all ranks to have the same layers and recipes, "
                                                           r"but got 'a weight of \[128, 128\]: rowwise, torch.float32' "
                                                           "on rank 0 and 'a weight of .*: current, .*' on rank 1"):
                train(model)
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected gather_in_fp8 before fully_shard, but got"):
                fp8.torch.gather_in_fp8(model)
            with self.assertRaisesRegex(fp8.UnsupportedError, "^expected a MixedPrecisionPolicy"):
                with torch.autocast("cpu", torch.bfloat16):
                    train(make_model("block", True))
        ranks.run(2, disagree)
        model = fp8.torch.convert_to_fp8_training(nn.Sequential(nn.Linear(64, 24), nn.Linear(24, 32)), "block",
                                                  first_last_bf16=0)
        with self.assertRaisesRegex(fp8.ArgumentError, "gathered as codes, but got none; 0: its sizes 64 and 24"):
            fp8.torch.gather_in_fp8(model)
        model[1].recipe = "current"
        self.assertEqual(list(fp8.torch.gather_in_fp8(model.append(
            fp8.torch.Linear(32, 32, recipe="rowwise")))), ["0", "1"])


if __name__ == "__main__":
    unittest.main()
