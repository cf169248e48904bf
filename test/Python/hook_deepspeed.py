# REQUIRES: pytorch, python-pytorch, python-deepspeed
# RUN: %import_python %s
"""Models that are converted before deepspeed.initialize, in one process on the CPU, under ZeRO 0 to 3: the parameters
of a loop without it."""

import os
import socket
import unittest

import deepspeed
import torch
from torch import nn

import fp8
import fp8.torch

BATCHES = torch.randn(3, 32, 64, generator=torch.Generator().manual_seed(1))


def make_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64))
    return fp8.torch.convert_to_fp8_training(model, "delayed", first_last_bf16=0)


class ZeRO(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
        deepspeed.init_distributed("gloo", verbose=False)

    def test_stages(self):
        expected = make_model()
        optimizer = torch.optim.SGD(expected.parameters(), 0.1)
        for batch in BATCHES:
            expected(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        for stage in (0, 1, 2, 3):
            with self.subTest(stage=stage):
                model = make_model()
                engine, *_ = deepspeed.initialize(
                    model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), config={
                        "train_micro_batch_size_per_gpu": 32, "zero_allow_untested_optimizer": True,
                        "zero_optimization": {"stage": stage}})
                for batch in BATCHES:
                    engine.backward(engine(batch).square().mean())
                    engine.step()
                with deepspeed.zero.GatheredParameters(list(model.parameters()), enabled=stage == 3):
                    for value, other in zip(model.parameters(), expected.parameters()):
                        torch.testing.assert_close(value.detach(), other.detach(), rtol=1e-5, atol=1e-6)
                engine.destroy()


if __name__ == "__main__":
    unittest.main()
