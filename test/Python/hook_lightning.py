# REQUIRES: pytorch, python-pytorch, python-lightning
# RUN: %import_python %s
"""Plug-ins of Lightning and Fabric: the same parameters and states as by hand, checkpoints; and what is refused."""

import copy
import tempfile
import unittest
import warnings

import lightning
import torch
from torch import nn

import fp8
import fp8.lightning
import fp8.torch

warnings.filterwarnings("ignore", module="lightning")
BATCHES = torch.randn(4, 32, 64, generator=torch.Generator().manual_seed(1))


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64))


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = make_model()

    def training_step(self, batch, _):
        return self.model(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def train_by_hand(dtype, per_step):
    model = fp8.torch.convert_to_fp8_training(make_model(), "delayed")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for first in range(0, len(BATCHES), per_step):
        with fp8.torch.accumulated(model):
            for batch in BATCHES[first:first + per_step]:
                with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
                    loss = model(batch).square().mean() / per_step
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def get_states(model):
    return [unit.get_saved() for layer in fp8.torch.modules.get_layers(model).values()
            for unit in layer.units.values()]


class Plugins(unittest.TestCase):
    def compare(self, model, expected):
        for (name, value), other in zip(model.named_parameters(), expected.parameters()):
            self.assertTrue(torch.equal(value, other), name)
        self.assertTrue(get_states(model) == get_states(expected))
        self.assertTrue(get_states(model))

    def test_trainer(self):
        for dtype, per_step in ((torch.bfloat16, 1), (None, 2)):
            with self.subTest(dtype=dtype), tempfile.TemporaryDirectory() as folder:
                module = Module()
                trainer = lightning.Trainer(
                    plugins=[fp8.lightning.FP8Precision("delayed", dtype)], max_epochs=1, accelerator="cpu",
                    accumulate_grad_batches=per_step, logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
                trainer.fit(module, torch.utils.data.DataLoader(BATCHES, None))
                expected = train_by_hand(dtype, per_step)
                self.compare(module.model, expected)
                # Behind it each backward is a step again.
                self.assertTrue(all(layer._steps for layer in fp8.torch.modules.get_layers(module).values()))
                trainer.save_checkpoint(f"{folder}/last.ckpt")
                again = Module()
                fp8.torch.convert_to_fp8_training(again, "delayed")
                again.load_state_dict(torch.load(f"{folder}/last.ckpt")["state_dict"])
                self.compare(again.model, expected)

    def test_fabric(self):
        fabric = lightning.Fabric(accelerator="cpu", plugins=[fp8.lightning.FabricFP8Precision("delayed")])
        model = make_model()
        model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
        for batch in BATCHES:
            loss = model(batch).square().mean()
            fabric.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        self.compare(model.module, train_by_hand(torch.bfloat16, 1))

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "Choose one"):  # Lightning's own.
            lightning.Fabric(precision="bf16-mixed", plugins=[fp8.lightning.FabricFP8Precision()])
        with self.assertRaisesRegex(fp8.ArgumentError, "expected linear layers"):
            fp8.lightning.FP8Precision("current").convert_module(nn.Conv1d(3, 4, 5))
        with self.assertRaises(fp8.Error):
            fp8.lightning.FP8Precision("curent").convert_module(copy.deepcopy(make_model()))


if __name__ == "__main__":
    unittest.main()
