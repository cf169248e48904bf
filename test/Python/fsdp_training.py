# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Models with layers in FP8 under FSDP2, gathered as they are, beside one process: losses and parameters, bit by bit
where sums have the same order; and what stands beside such layers."""

import sys
import tempfile
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict  # noqa: E402
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

RECIPES = "none", "current", "delayed", "rowwise", "block", "mxfp8", "nvfp4"
WIDTH, PART, STEPS, LONG = 128, 16, 3, 20  # A rank has PART rows.
warnings.filterwarnings("ignore", "fp8: ")  # 16 rows are no K of every gradient.


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)
        self.saves = True

    def compute(self, x):
        return x + self.down(F.gelu(self.up(x)))

    def forward(self, x):
        return self.compute(x) if self.saves else checkpoint(self.compute, x, use_reentrant=False)


def make_model(recipe, width=WIDTH, dtype=torch.float32, depth=1):
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(width) for _ in range(depth))).to(dtype)
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")


def make_batches(world, steps=STEPS, width=WIDTH):
    return torch.randn(steps, PART * world, width, generator=torch.Generator().manual_seed(1))


class Products(nn.Module):
    """Products with parameters that belong to no nn.Linear."""

    def __init__(self, width):
        super().__init__()
        self.w = nn.Parameter(torch.randn(width, width) / width ** 0.5)
        self.experts = nn.Parameter(torch.randn(2, width, width) / width ** 0.5)
        self.attention = nn.MultiheadAttention(width, 2)

    def forward(self, x):
        x = x + x @ self.w + x @ self.experts[1]
        return x + self.attention(x, x, x, need_weights=False)[0]


def make_products():
    torch.manual_seed(0)
    model = nn.Sequential(Products(64))
    return fp8.torch.convert_to_fp8_training(model, "delayed", first_last_bf16=0, target="cpu")


def shard(model, **options):
    for block in model:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), 1e-3)


def get_loss(model, batch):
    return (model(batch) - batch.roll(1, -1)).square().mean()


def get_values(model):
    """Parameters, whole ones, by name."""
    return {name: (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().clone()
            for name, value in model.named_parameters()}


def train(model, batches, optimizer=None):
    """Losses of this rank's rows, one for each step, under FSDP2."""
    rank, world = dist.get_rank(), dist.get_world_size()
    optimizer = optimizer or make_optimizer(model)
    losses = []
    for batch in batches:
        with fp8.torch.accumulated(model):
            loss = get_loss(model, batch.chunk(world)[rank])
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().clone())
    return losses


def train_alone(model, batches, parts):
    """The same by one process, whose micro-batches are the ranks' rows."""
    optimizer, losses = make_optimizer(model), []
    for batch in batches:
        with fp8.torch.accumulated(model):
            found = [get_loss(model, part) for part in batch.chunk(parts)]
            for loss in found:
                loss.backward()
        for value in model.parameters():
            if value.grad is not None:
                value.grad /= parts
        optimizer.step()
        optimizer.zero_grad()
        losses.append([loss.detach().clone() for loss in found])
    return losses, get_values(model)


def train_sharded(recipe, steps=STEPS):
    model = shard(make_model(recipe))
    return train(model, make_batches(dist.get_world_size(), steps)), get_values(model)


def make_exact(recipe):
    """A model and batches whose sums are exact, in any order: few bits, and scales that are powers of two."""
    generator = torch.Generator().manual_seed(2)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
    for layer in model:
        nn.init.zeros_(layer.bias)
        with torch.no_grad():
            layer.weight.copy_(torch.randint(-2, 3, (WIDTH, WIDTH), generator=generator) / 8)
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")
    x, target = (torch.randint(-1, 2, (STEPS, 4 * PART, WIDTH), generator=generator).float() for _ in range(2))
    return model, zip(x, target)


def train_exact(recipe, world=1):
    """Losses that add up to those of the whole batch, and parameters."""
    model, batches = make_exact(recipe)
    if world > 1:
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), 2.0 ** -6 * world)  # FSDP2 takes the mean.
    losses = []
    for x, target in batches:
        if world > 1:
            x, target = (value.chunk(world)[dist.get_rank()] for value in (x, target))
        with fp8.torch.accumulated(model):
            loss = (model(x) * target).double().sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().clone())
        if world > 1:
            dist.all_reduce(losses[-1])
    return losses, get_values(model)


class Plain(unittest.TestCase):
    def assert_same(self, values, expected):
        self.assertEqual(list(values), list(expected))
        for name, value in values.items():
            self.assertTrue(torch.equal(value, expected[name]), name)

    def assert_close(self, values, expected, bound):
        for name, value in values.items():
            error = (value - expected[name]).abs().max().item()
            self.assertLess(error, bound, name)

    def test_bits_are_those_of_micro_batches(self):
        expected = {recipe: train_alone(make_model(recipe), make_batches(2, LONG), 2) for recipe in RECIPES}
        found = ranks.run(2, lambda: {recipe: train_sharded(recipe, LONG) for recipe in RECIPES})
        for rank in range(2):
            for recipe, (losses, values) in expected.items():
                with self.subTest(recipe=recipe, rank=rank):
                    self.assertEqual(found[rank][recipe][0], [each[rank] for each in losses])
                    self.assert_same(found[rank][recipe][1], values)

    def test_bits_are_those_of_a_whole_batch(self):
        """Where sums are exact: all else differs by the order in which gradients are summed up."""
        recipes = "delayed,pow2=true,initial=one", "rowwise", "block"
        expected = {recipe: train_exact(recipe) for recipe in recipes}
        for world in (2, 4):
            found = ranks.run(world, lambda: {recipe: train_exact(recipe, world) for recipe in recipes})
            for rank in range(world):
                for recipe, (losses, values) in expected.items():
                    with self.subTest(recipe=recipe, world=world, rank=rank):
                        self.assertEqual(found[rank][recipe][0], losses)
                        self.assert_same(found[rank][recipe][1], values)

    def test_four_ranks_differ_by_the_order_of_sums(self):
        losses, values = train_alone(make_model("rowwise"), make_batches(4), 4)
        for rank, (found, others) in enumerate(ranks.run(4, lambda: train_sharded("rowwise"))):
            self.assertEqual(found[0], losses[0][rank])
            for loss, each in zip(found, losses):
                self.assertLess((loss - each[rank]).abs() / each[rank], 1e-3)
            # AdamW's first steps have a gradient's sign, whatever it is: two rates at most for each.
            self.assert_close(others, values, 2e-3 * STEPS)

    def test_what_stands_beside_layers(self):
        """Accumulated batches, checkpointing, bf16, frozen and unused parameters, and shards of several sizes."""
        def make(case):
            model = make_model("delayed" if case == "checkpointing" else "rowwise",
                               width=48 if case == "uneven" else WIDTH)
            if case == "uneven":
                model.append(nn.Linear(48, 50))
                fp8.torch.convert_to_fp8_training(model, "rowwise", first_last_bf16=0, target="cpu")
            if case == "frozen":
                model[0].up.requires_grad_(False)
            if case == "unused":
                model[0].other = fp8.torch.Linear(WIDTH, WIDTH, recipe="rowwise", target="cpu")
            model[0].saves = case != "checkpointing"
            return model

        def run(case):
            model = shard(make(case), reshard_after_forward=case != "frozen")
            get = (lambda part: model(part)[:, :48] - part) if case == "uneven" else (
                lambda part: model(part) - part.roll(1, -1))
            batches = make_batches(2, 4, 48 if case == "uneven" else WIDTH)
            return train_parts(model, get, batches, case)

        def train_parts(model, get, batches, case, rank=None):
            """Two batches are one step where they are accumulated."""
            rank = dist.get_rank() if rank is None else rank
            optimizer = make_optimizer(model)
            for pair in (batches.split(2) if case == "accumulated" else batches.split(1)):
                with fp8.torch.accumulated(model):
                    for place, batch in enumerate(pair):
                        if case == "accumulated":
                            model.set_requires_gradient_sync(place == len(pair) - 1)
                        get(batch.chunk(2)[rank]).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            return get_values(model)

        def run_alone(case):
            model, width = make(case), 48 if case == "uneven" else WIDTH
            optimizer = make_optimizer(model)
            for pair in make_batches(2, 4, width).split(2 if case == "accumulated" else 1):
                with fp8.torch.accumulated(model):
                    sums = {}
                    for rank in range(2):
                        for batch in pair:
                            part = batch.chunk(2)[rank]
                            y = model(part)
                            (y[:, :48] - part if case == "uneven" else y - part.roll(1, -1)).square().mean().backward()
                        for name, value in model.named_parameters():
                            if value.grad is not None:
                                sums[name] = sums.get(name, 0) + value.grad
                                value.grad = None
                for name, value in model.named_parameters():
                    value.grad = sums[name] / 2 if name in sums else None
                optimizer.step()
                optimizer.zero_grad()
            return get_values(model)

        cases = "accumulated", "checkpointing", "frozen", "unused", "uneven"
        expected = {case: run_alone(case) for case in cases}
        for found in ranks.run(2, lambda: {case: run(case) for case in cases}):
            for case in cases:
                with self.subTest(case=case):
                    self.assert_same(found[case], expected[case])

    def test_what_is_no_linear(self):
        """Their states are of a step, too, and by the same names."""
        def run():
            model = shard(make_products())
            losses = train(model, make_batches(2, width=64))
            return losses, get_values(model), list(fp8.torch.modules.get_layers(model))
        model = make_products()
        losses, values = train_alone(model, make_batches(2, width=64), 2)
        for rank, (found, others, names) in enumerate(ranks.run(2, run)):
            self.assertEqual(found, [each[rank] for each in losses])
            self.assert_same(others, values)
            self.assertEqual(names, list(fp8.torch.modules.get_layers(model)))

    def test_mixed_precision(self):
        def run():
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            model = shard(make_model("current"), mp_policy=policy)
            losses = train(model, make_batches(2, 1).expand(6, -1, -1))
            return [value.dtype for value in model.parameters()], losses
        for dtypes, losses in ranks.run(2, run):
            self.assertEqual(set(dtypes), {torch.float32})
            self.assertLess(losses[-1], losses[0])

    def test_a_nan_on_one_rank(self):
        """It is in no amax, and in the gradients of all, as from one process."""
        def run():
            model = shard(make_model("delayed"))
            batches = make_batches(2, 1)
            if dist.get_rank() == 1:
                batches[0, PART:, 3] = float("nan")
            train(model, batches, torch.optim.SGD(model.parameters(), 0.0))
            return {slot.name: slot.amax for slot in model[0].up.units["delayed"].state.slots.values()}
        first, second = ranks.run(2, run)
        self.assertEqual(first, second)
        self.assertTrue(all(0 < amax < 100 for name, amax in first.items() if name.startswith("fprop")), first)

    def test_ranks_that_disagree(self):
        def run():
            model = shard(make_model("delayed" if dist.get_rank() else "rowwise"))
            try:
                train(model, make_batches(2, 1))
            except fp8.MismatchError as error:
                return str(error)
        for message in ranks.run(2, run):
            self.assertRegex(message, "^expected all ranks to have the same layers and recipes, but got "
                                      "'0.up: rowwise' on rank 0 and '0.up: delayed' on rank 1 of the group$")

    def test_checkpoints(self):
        """Saved by four ranks, and read by two and by one: what four go on with, in other sums."""
        def make(is_new=True):
            model = shard(make_model("delayed"))
            fp8.torch.make_states(model)
            return model, make_optimizer(model)

        def get_state(model, optimizer):
            names, states = get_state_dict(model, optimizer)
            return {"model": names, "optimizer": states}

        def save(path):
            model, optimizer = make()
            batches = make_batches(4, 4)
            train(model, batches[:2], optimizer)
            dcp.save(get_state(model, optimizer), checkpoint_id=path)
            saved = get_values(model), model.state_dict()["0.up.fp8_state"]
            return saved, train(model, batches[2:], optimizer)

        def load(path):
            model, optimizer = make()
            state = get_state(model, optimizer)
            dcp.load(state, checkpoint_id=path)
            set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
            loaded = get_values(model), model.state_dict()["0.up.fp8_state"]
            return loaded, train(model, make_batches(4, 4)[2:], optimizer)

        with tempfile.TemporaryDirectory() as folder:
            saved, losses = zip(*ranks.run(4, lambda: save(folder)))
            for world in (2, 1):
                loaded, others = zip(*ranks.run(world, lambda: load(folder)))
                for values, state in loaded:
                    self.assert_same(values, saved[0][0])
                    self.assertTrue(torch.equal(state, saved[0][1]))
                expected, got = (torch.tensor(each).mean(0) for each in (losses, others))
                self.assertLess(((expected - got).abs() / expected).max(), 1e-3)


if __name__ == "__main__":
    unittest.main()
