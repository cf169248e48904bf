# REQUIRES: pytorch, python-pytorch, python-transformers, python-accelerate
# RUN: %import_python %s
"""Training in FP8 by transformers' Trainer and by accelerate: losses beside those of a loop by hand, accumulated
batches, checkpoints and a run that is resumed; and what is refused."""

import copy
import os
import tempfile
import unittest
from unittest import mock

import accelerate
import torch
import transformers

import fp8
import fp8.accelerate
import fp8.torch
import fp8.transformers

SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "head_dim": 16}
DATA = [{"input_ids": row, "labels": row}
        for row in (torch.arange(64)[:, None] * 5 + torch.arange(16)) * 3 % 96]
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()


def make_model():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))


class Losses(transformers.TrainerCallback):
    def __init__(self):
        self.losses = []

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            self.losses.append(logs["loss"])


class Hooks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, name, steps, resume=None, makes_model=False, **options):
        """A Trainer's model and losses."""
        arguments = transformers.TrainingArguments(
            os.path.join(self.folder, name), max_steps=steps, per_device_train_batch_size=4, use_cpu=True, seed=3,
            save_steps=3, logging_steps=1, learning_rate=1e-2, lr_scheduler_type="constant", report_to=[],
            disable_tqdm=True, log_level="error", **options)
        losses = Losses()
        trainer = transformers.Trainer(
            None if makes_model else make_model(), arguments, train_dataset=DATA,
            model_init=make_model if makes_model else None,
            callbacks=[fp8.transformers.FP8Callback("delayed"), losses])
        trainer.train(resume_from_checkpoint=resume)
        return trainer.model, losses.losses

    @staticmethod
    def get_states(model):
        return {name: unit.get_saved() for name, layer in fp8.torch.modules.get_layers(model).items()
                for unit in layer.units.values()}

    def test_trainer(self):
        model, losses = self.train("whole", 6)
        self.assertEqual(len(losses), 6)
        self.assertLess(losses[-1], losses[0])
        self.assertIn("3 of 3 matrix products in FP8", fp8.torch.summarize(model))
        states = self.get_states(model)
        self.assertEqual(len(states), 13)
        # The same again from the middle, bit by bit.
        resumed, rest = self.train("resumed", 6, os.path.join(self.folder, "whole", "checkpoint-3"))
        self.assertEqual(rest, losses[3:])
        for (name, value), other in zip(model.named_parameters(), resumed.parameters()):
            self.assertTrue(torch.equal(value, other), name)
        self.assertTrue(self.get_states(resumed) == states)
        # Others load the weights, and leave the states.
        plain = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(self.folder, "whole", "checkpoint-6"))
        for (name, value), other in zip(model.named_parameters(), plain.parameters()):
            self.assertTrue(torch.equal(value, other), name)

    def test_steps_are_the_optimizers(self):
        """However many batches one has; with a model that the Trainer makes itself."""
        model, _ = self.train("accumulated", 2, makes_model=True, gradient_accumulation_steps=3)
        for layer in fp8.torch.modules.get_layers(model).values():
            self.assertEqual(layer.units["delayed"].state.steps, 2)

    def test_accelerate(self):
        model = make_model()
        by_hand = fp8.torch.convert_to_fp8_training(copy.deepcopy(model), "delayed")
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        data = torch.utils.data.DataLoader(DATA[:16], 4)
        model, optimizer, data = fp8.accelerate.prepare(accelerator, model, optimizer, data, recipe="delayed")
        for batch in data:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch).loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        other = torch.optim.SGD(by_hand.parameters(), 0.1)
        batches = list(torch.utils.data.DataLoader(DATA[:16], 4))
        for pair in (batches[:2], batches[2:]):
            with fp8.torch.accumulated(by_hand):
                for batch in pair:
                    (by_hand(**batch).loss / 2).backward()
            torch.nn.utils.clip_grad_norm_(by_hand.parameters(), 1.0)
            other.step()
            other.zero_grad()
        for (name, value), expected in zip(accelerator.unwrap_model(model).named_parameters(), by_hand.parameters()):
            self.assertTrue(torch.equal(value, expected), name)
        self.assertTrue(self.get_states(accelerator.unwrap_model(model)) == self.get_states(by_hand))
        # The states are in what accelerate saves.
        accelerator.save_state(self.folder)
        states = self.get_states(by_hand)
        for layer in fp8.torch.modules.get_layers(model).values():
            layer.units["delayed"].set_saved(None)
        accelerator.load_state(self.folder)
        self.assertTrue(self.get_states(accelerator.unwrap_model(model)) == states)

    def test_refused(self):
        accelerator = mock.Mock(mixed_precision="fp8")
        with self.assertRaisesRegex(fp8.ArgumentError, "mixed_precision bf16, fp16 or no"):
            fp8.accelerate.prepare(accelerator, make_model())
        with self.assertRaisesRegex(fp8.ArgumentError, "one model to prepare, but got 0"):
            fp8.accelerate.prepare(mock.Mock(mixed_precision="no"))
        with mock.patch.dict(os.environ, {"ACCELERATE_MIXED_PRECISION": "fp8"}):
            with self.assertRaisesRegex(fp8.ArgumentError, "beside FP8Callback"):
                fp8.transformers.FP8Callback().on_init_end(None, None, None, model=make_model())
        arguments = transformers.TrainingArguments(self.folder, report_to=[], use_cpu=True)
        callbacks = [fp8.transformers.FP8Callback(), fp8.transformers.FP8Callback("current")]
        with self.assertRaisesRegex(fp8.ArgumentError, "one FP8Callback of a Trainer, but got two"):
            transformers.Trainer(make_model(), arguments, callbacks=callbacks)
        transformers.Trainer(make_model(), arguments, callbacks=callbacks[:1])
        model = make_model()
        model.quantization_method = "bitsandbytes"
        with self.assertRaisesRegex(fp8.ArgumentError, "one that is quantized"):
            fp8.transformers.FP8Callback().on_init_end(None, None, None, model=model)


if __name__ == "__main__":
    unittest.main()
