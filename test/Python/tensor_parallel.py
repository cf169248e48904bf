# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Layers in FP8 under torch's tensor and sequence parallelism, alone and with FSDP2, beside one process: bit by bit where sums
have the same order."""

import contextlib
import functools
import gc
import sys
import tempfile
import unittest
import warnings
import weakref
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as funcol  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard, parallel  # noqa: E402
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel,  # noqa: E402
                                               parallelize_module)
from torch.nn import functional as F  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402
from fp8.torch import collectives  # noqa: E402

RECIPES = "none", "current", "delayed", "rowwise", "block", "mxfp8", "nvfp4"
WIDTH, WIDE, BATCH, LENGTH, STEPS = 256, 256, 2, 64, 3
warnings.filterwarnings("ignore", "fp8: ")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


def make_model(recipe):
    torch.manual_seed(0)
    return fp8.torch.convert_to_fp8_training(nn.Sequential(MLP(), MLP()), recipe, first_last_bf16=0, target="cpu")


def parallelize(model, mesh, is_sequence=False, style=ColwiseParallel):
    for block in model:
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        if is_sequence:
            plan = {"norm": SequenceParallel(), "up": style(input_layouts=Shard(1)),
                    "down": RowwiseParallel(output_layouts=Shard(1))}
        parallelize_module(block, mesh, plan)
    return model


def make_batches(parts=1, steps=STEPS):
    return torch.randn(steps, BATCH * parts, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))


def get_whole(value):
    return (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().clone()


def train(model, batches, find_part=lambda batch: batch, optimizer=None, parts=1):
    """Losses, parts of a mean, and whole parameters."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for batch in map(find_part, batches):
        with fp8.torch.accumulated(model):
            loss = (model(batch) - batch.roll(1, -1)).square().mean() / parts
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().clone())
    return losses, {name: get_whole(value) for name, value in model.named_parameters()}


def take_sequence(batch):
    return batch.chunk(dist.get_world_size(), 1)[dist.get_rank()]


def train_alone(recipe, parts=1):
    return train(make_model(recipe), make_batches(parts))


def compute(layer, x, dy):
    """y and all gradients, whole ones."""
    x = x.clone().requires_grad_()
    y = layer(x)
    y.backward(dy)
    return {"y": y.detach(), "dx": x.grad, "dweight": get_whole(layer.weight.grad), "dbias": get_whole(layer.bias.grad)}


def make_layer(recipe):
    torch.manual_seed(2)
    return fp8.torch.Linear(WIDTH, WIDE, recipe=recipe, target="cpu")


def make_tensors():
    generator = torch.Generator().manual_seed(3)
    x, dy = (torch.randn(BATCH * LENGTH, size, generator=generator) for size in (WIDTH, WIDE))
    return x * torch.logspace(-2, 2, WIDTH), dy * torch.logspace(-1, 1, WIDE)  # A part has another amax.


class Parallel(unittest.TestCase):
    def test_gradient_in_flight(self):
        """What torch's collectives return in a backward may not be there yet, and is no plain tensor."""
        def run(recipe):
            layer, (x, dy) = make_layer(recipe), make_tensors()
            y = layer(x)
            found = torch.autograd.grad(y, layer.weight, dy, retain_graph=True)[0]
            late = funcol.AsyncCollectiveTensor(funcol.all_reduce(dy / 2, "sum", dist.group.WORLD).trigger_wait())
            return torch.equal(torch.autograd.grad(y, layer.weight, late)[0], found)
        for found in ranks.run(2, lambda: {recipe: run(recipe) for recipe in ("block", "rowwise")}):
            self.assertEqual(set(found.values()), {True})

    def assert_close(self, value, expected, bound, name=None):
        error = (value - expected).norm() / expected.norm()
        self.assertLess(error.item(), bound, name)

    def test_columns(self):
        """All but the gradient of x, a sum over ranks, has the bits of one process."""
        def run(recipe):
            mesh = init_device_mesh("cpu", (2,))
            layer = parallelize_module(make_layer(recipe), mesh, ColwiseParallel(output_layouts=Replicate()))
            return compute(layer, *make_tensors())
        expected = {recipe: compute(make_layer(recipe), *make_tensors()) for recipe in RECIPES}
        for found in ranks.run(2, lambda: {recipe: run(recipe) for recipe in RECIPES}):
            for recipe, values in found.items():
                with self.subTest(recipe=recipe):
                    # nvfp4 has a factor of a whole tensor, which is that of a part here.
                    for name in ("y", "dweight", "dbias") if recipe != "nvfp4" else ():
                        self.assertTrue(torch.equal(values[name], expected[recipe][name]), name)
                    self.assert_close(values["dx"], expected[recipe]["dx"], BOUNDS.get(recipe, 1e-5), "dx")

    def test_rows(self):
        """All but y, a sum over ranks, has the bits of one process."""
        def run(recipe):
            mesh = init_device_mesh("cpu", (2,))
            style = RowwiseParallel(input_layouts=Replicate())
            return compute(parallelize_module(make_layer(recipe), mesh, style), *make_tensors())
        expected = {recipe: compute(make_layer(recipe), *make_tensors()) for recipe in RECIPES}
        for found in ranks.run(2, lambda: {recipe: run(recipe) for recipe in RECIPES}):
            for recipe, values in found.items():
                with self.subTest(recipe=recipe):
                    for name in ("dx", "dweight", "dbias") if recipe != "nvfp4" else ():
                        self.assertTrue(torch.equal(values[name], expected[recipe][name]), name)
                    self.assert_close(values["y"], expected[recipe]["y"], BOUNDS.get(recipe, 1e-5), "y")

    def test_training(self):
        """Activations are whole, and cut along the sequence."""
        expected = {recipe: train_alone(recipe) for recipe in RECIPES}

        def run(recipe, is_sequence):
            model = parallelize(make_model(recipe), init_device_mesh("cpu", (dist.get_world_size(),)), is_sequence)
            if not is_sequence:
                return train(model, make_batches())
            losses, values = train(model, make_batches(), take_sequence, parts=dist.get_world_size())
            for loss in losses:
                dist.all_reduce(loss)
            return losses, values
        cases = [(recipe, is_sequence) for recipe in RECIPES for is_sequence in (False, True)]
        for found in ranks.run(2, lambda: {case: run(*case) for case in cases}):
            for (recipe, is_sequence), (losses, values) in found.items():
                with self.subTest(recipe=recipe, is_sequence=is_sequence):
                    self.assert_close(torch.stack(losses), torch.stack(expected[recipe][0]), 1e-3, "losses")


    def test_with_fsdp(self):
        """Two ranks by two: gathers of codes have the bits of gathers in high precision."""
        def run(recipe, gathers):
            mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "parts"))
            model = parallelize(make_model(recipe), mesh["parts"])
            if gathers:
                self.assertEqual(fp8.torch.gather_in_fp8(model), {})
            for block in model:
                fully_shard(block, mesh=mesh["data"])
            fully_shard(model, mesh=mesh["data"])
            rank = mesh["data"].get_local_rank()
            return train(model, make_batches(2), lambda batch: batch.chunk(2)[rank])

        recipes = "current", "delayed", "rowwise", "block"
        expected = {recipe: train_alone(recipe, 2)[0] for recipe in recipes}
        found = ranks.run(4, lambda: {recipe: [run(recipe, gathers) for gathers in (False, True)]
                                      for recipe in recipes})
        for recipe in recipes:
            with self.subTest(recipe=recipe):
                for (losses, values), (others, other_values) in (each[recipe] for each in found):
                    self.assertEqual(losses, others)
                    for name, value in values.items():
                        self.assertTrue(torch.equal(value, other_values[name]), name)
                mean = torch.tensor([each[recipe][0][0] for each in found]).mean(0)
                self.assert_close(mean, torch.stack(expected[recipe]), 1e-2, "losses")

    def test_activations_as_codes(self):
        """Under the recipes that have one scale for a tensor these have the bits of others, in two steps of delayed
        scaling, too; bytes are a quarter of f32's."""
        def run(recipe, style):
            mesh = init_device_mesh("cpu", (2,))
            model, sizes = parallelize(make_model(recipe), mesh, True, style), []
            gather = dist.all_gather_into_tensor

            def count(every, part, **options):
                sizes.append(part.numel() * part.element_size())
                return gather(every, part, **options)
            dist.all_gather_into_tensor = count
            found = train(model, make_batches(), take_sequence, parts=2)
            dist.all_gather_into_tensor = gather
            return found, sizes

        recipes = "current", "delayed", "rowwise"
        for found in ranks.run(2, lambda: {recipe: [run(recipe, style) for style in (
                ColwiseParallel, fp8.torch.ColwiseParallel)] for recipe in recipes}):
            for recipe, (((losses, values), _), ((others, other_values), sizes)) in found.items():
                with self.subTest(recipe=recipe):
                    self.assertEqual(losses, others)
                    for name, value in values.items():
                        self.assertTrue(torch.equal(value, other_values[name]), name)
                    if recipe != "rowwise":
                        self.assertEqual(sizes, [BATCH * LENGTH // 2 * WIDTH] * 2 * STEPS)

    def test_own_styles(self):
        """They have the losses and parameters of torch's, whatever is cut, with scales of weights ahead of calls, too."""
        def run(recipe, is_sequence, is_own, precomputes):
            mesh, styles = init_device_mesh("cpu", (2,)), (fp8.torch if is_own else parallel)
            model = make_model(recipe)
            for block in model:
                layouts = {"input_layouts": Shard(1)}, {"output_layouts": Shard(1)}
                up, down = layouts if is_sequence else ({}, {})
                parallelize_module(block, mesh, {**({"norm": SequenceParallel()} if is_sequence else {}),
                                                 "up": styles.ColwiseParallel(**up), "down": styles.RowwiseParallel(**down)})
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            if precomputes:
                optimizer.register_step_post_hook(lambda *_: fp8.torch.precompute_scales(model))
            return train(model, make_batches(), take_sequence if is_sequence else lambda batch: batch, optimizer)
        cases = [(recipe, is_sequence) for recipe in ("current", "delayed", "block") for is_sequence in (False, True)]
        for found in ranks.run(2, lambda: {case: [run(*case, *each) for each in (
                (False, False), (True, False), (True, True))] for case in cases}):
            for case, (expected, *others) in found.items():
                for place, (losses, values) in enumerate(others):
                    with self.subTest(case=case, precomputes=bool(place)):
                        self.assertEqual(losses, expected[0])
                        for name, value in expected[1].items():
                            self.assertTrue(torch.equal(values[name], value), name)

    def test_nothing_is_kept(self):
        """What layers share lives as long as a forward and backward, and evaluation in inference mode changes nothing."""
        def run(is_sequence):
            mesh, styles = init_device_mesh("cpu", (2,)), fp8.torch
            layouts = ({"input_layouts": Shard(1)}, {"output_layouts": Shard(1)}) if is_sequence else ({}, {})
            model = make_model("current")[0]
            parallelize_module(model, mesh, {"up": styles.ColwiseParallel(**layouts[0]),
                                             "down": styles.RowwiseParallel(**layouts[1])})
            whole = make_batches()[0]
            part = take_sequence(whole).contiguous() if is_sequence else whole
            found = []
            with torch.inference_mode():
                model.down(F.gelu(model.up(part.clone())))
            for has_gradient in False, True:
                given = part.clone().requires_grad_(has_gradient)
                kept = weakref.ref(given)
                model.down(F.gelu(model.up(given))).sum().backward()
                del given
                gc.collect()
                found.append(kept() is None)
            return found
        for layouts in ranks.run(2, lambda: [run(is_sequence) for is_sequence in (False, True)]):
            self.assertEqual(layouts, [[True, True]] * 2)

    def test_collectives(self):
        """Layers that read the same activations gather them once, and nothing is measured that has scales. Under delayed
        scaling there are the amaxes of a step, of the model's group and of parts; under `current` all weights at once, the
        activations that are gathered, dy of both layers that columns cut, and x of the other one, in steps or without."""
        def run(recipe, has_steps=True):
            torch.manual_seed(0)
            mesh, norm = init_device_mesh("cpu", (2,)), nn.LayerNorm(WIDTH)
            layers = nn.ModuleList([nn.Linear(WIDTH, WIDE), nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH)])
            fp8.torch.convert_to_fp8_training(layers, recipe, first_last_bf16=0, target="cpu")
            columns, rows = fp8.torch.ColwiseParallel, fp8.torch.RowwiseParallel
            parallelize_module(layers, mesh, {**{name: columns(input_layouts=Shard(1)) for name in "01"},
                                              "2": rows(output_layouts=Shard(1))})
            optimizer = torch.optim.SGD(layers.parameters(), 0.1)
            for _ in range(3):
                owners = {"all_gather_into_tensor": dist, "reduce_scatter_tensor": dist, "reduce_max": collectives}
                counts, kept = {}, {name: getattr(owner, name) for name, owner in owners.items()}

                def count(name, *arguments, **options):
                    counts[name] = counts.get(name, 0) + 1
                    return kept[name](*arguments, **options)
                with contextlib.ExitStack() as stack:
                    for name, owner in owners.items():
                        stack.enter_context(mock.patch.object(owner, name, functools.partial(count, name)))
                    with fp8.torch.accumulated(layers, mesh.get_group()) if has_steps else contextlib.nullcontext():
                        y = norm(torch.randn(BATCH, LENGTH // 2, WIDTH))
                        layers[2](layers[0](y) * layers[1](y)).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    fp8.torch.precompute_scales(layers)
            return counts
        for found in ranks.run(2, lambda: {**{recipe: run(recipe) for recipe in ("delayed", "current", "block")},
                                           "alone": run("current", False)}):
            once = {"all_gather_into_tensor": 2, "reduce_scatter_tensor": 2}
            self.assertEqual(found["block"], once)
            self.assertEqual(found["delayed"], {**once, "reduce_max": 2})
            self.assertEqual(found["current"], {**once, "reduce_max": 5})
            self.assertEqual(found["alone"], {**once, "reduce_max": 5})

    def test_what_prepare_compiles(self):
        """Programs are of the sizes that a rank has: no call compiles another one."""
        def run():
            model = parallelize(make_model("block").to(torch.bfloat16), init_device_mesh("cpu", (2,)))
            fp8.torch.prepare(model, rows=[BATCH * LENGTH], dtype=torch.bfloat16, device="cpu")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model(make_batches()[0].bfloat16()).sum().backward()
        ranks.run(2, run)

    def test_scale_of_another_input(self):
        """A layer that gathers codes and is then left to PyTorch keeps no scale of them for its next input."""
        def run():
            mesh, found = init_device_mesh("cpu", (2,)), []
            for is_left in (True, False):
                torch.manual_seed(0)
                model = fp8.torch.convert_to_fp8_training(nn.Sequential(nn.Linear(WIDTH, WIDE)), "current",
                                                          first_last_bf16=0, target="cpu")
                parallelize_module(model, mesh, {"0": fp8.torch.ColwiseParallel(input_layouts=Shard(1))})
                with torch.no_grad():
                    if is_left:
                        with mock.patch.object(fp8.torch.Linear, "_is_slower", return_value=True):
                            model(torch.full((BATCH, LENGTH // 2, WIDTH), 1e-3))
                    x = torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))
                    found.append(model(DTensor.from_local(x, mesh, [Replicate()], run_check=False)))
            return [y.to_local() if isinstance(y, DTensor) else y for y in found]

        for y, expected in ranks.run(2, run):
            self.assertTrue(torch.equal(y, expected))

    def test_checkpoints(self):
        """Saved by four ranks, read by two and by one."""
        def make():
            model = parallelize(make_model("delayed"), init_device_mesh("cpu", (dist.get_world_size(),)))
            fp8.torch.make_states(model)
            return model, torch.optim.AdamW(model.parameters(), 1e-3)

        def get_state(model, optimizer):
            names, states = get_state_dict(model, optimizer)
            return {"model": names, "optimizer": states}

        def save(path):
            model, optimizer = make()
            train(model, make_batches(), optimizer=optimizer)
            dcp.save(get_state(model, optimizer), checkpoint_id=path)
            saved = {name: get_whole(value) for name, value in model.state_dict().items()}
            return saved, train(model, make_batches(), optimizer=optimizer)[0]

        def load(path):
            model, optimizer = make()
            state = get_state(model, optimizer)
            dcp.load(state, checkpoint_id=path)
            set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
            loaded = {name: get_whole(value) for name, value in model.state_dict().items()}
            return loaded, train(model, make_batches(), optimizer=optimizer)[0]

        with tempfile.TemporaryDirectory() as folder:
            saved, losses = zip(*ranks.run(4, lambda: save(folder)))
            for world in (2, 1):
                for values, others in ranks.run(world, lambda: load(folder)):
                    for name, value in saved[0].items():
                        self.assertTrue(torch.equal(values[name], value), name)
                    self.assert_close(torch.stack(others), torch.stack(losses[0]), 1e-3, "losses")

    def test_refused(self):
        def run():
            layer = parallelize_module(make_layer("current"), init_device_mesh("cpu", (2,)), ColwiseParallel())
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected x of .*256.*, but got"):
                layer(torch.zeros(16, 16))
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected x to be a DTensor on the mesh of the weight"):
                fp8.torch.Linear.forward(layer, torch.zeros(16, WIDTH))
        ranks.run(2, run)


# What sums differ by where parts have scales of their own.
BOUNDS = {"rowwise": 0.05, "nvfp4": 0.2}


if __name__ == "__main__":
    unittest.main()
