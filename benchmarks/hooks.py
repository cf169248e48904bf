"""The hooks of other packages on a GPU: each trains or generates with a small model, beside the same in bf16.

transformers' from_pretrained, save_pretrained and Trainer, accelerate, peft and Lightning, those that are
installed. A line for each says what was compared; losses and logits have to be those of bf16 within
FP8's roundings, and what is saved and loaded the same to the bit. Needs a GPU, but for --small.

usage: hooks.py [--small] [--out FILE]
"""

import argparse
import importlib.metadata
import importlib.util
import json
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import torch

SIZES = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 3, "num_attention_heads": 8,
         "num_key_value_heads": 4, "vocab_size": 1024, "max_position_embeddings": 256}
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 128}
STEPS, BATCH, LENGTH = 8, 8, 64


class Bench:
    def __init__(self, is_small, folder):
        self.sizes, self.folder = SMALL if is_small else SIZES, folder
        self.device = torch.device("cpu" if is_small else "cuda")
        generator = torch.Generator().manual_seed(1)
        self.tokens = torch.randint(3, 100, (BATCH, LENGTH), generator=generator).to(self.device)

    def make(self, dtype=torch.bfloat16):
        import transformers
        torch.manual_seed(0)
        config = transformers.LlamaConfig(eos_token_id=None, pad_token_id=0, **self.sizes)
        return transformers.LlamaForCausalLM(config).to(self.device, dtype)

    def get_logits(self, model):
        with torch.inference_mode():
            return model(input_ids=self.tokens).logits.float()

    def train(self, model, optimizer, backward=lambda loss: loss.backward()):
        """Losses of a loop by hand."""
        losses = []
        for _ in range(STEPS):
            with torch.autocast(self.device.type, torch.bfloat16):
                loss = model(input_ids=self.tokens, labels=self.tokens).loss
            backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    def train_plain(self):
        model = self.make(torch.float32)
        return self.train(model, torch.optim.AdamW(model.parameters(), 1e-3))


def get_error(value, expected):
    return ((value - expected).norm() / expected.norm()).item()


def check(found, expected, what, tolerance):
    """Losses beside those of bf16: they fall, and differ by no more."""
    worst = max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))
    assert worst < tolerance and found[-1] < found[0], f"{what}: {found} for {expected}"
    return f"{what} from {found[0]:.3f} to {found[-1]:.3f}, bf16's to {expected[-1]:.3f}"


def check_transformers(bench):
    import transformers

    import fp8.torch
    import fp8.transformers
    plain = bench.make()
    expected = bench.get_logits(plain)
    plain.save_pretrained(f"{bench.folder}/plain")
    found = []
    for options in ({"recipe": "rowwise"}, {"recipe": "block"}, {"recipe": "rowwise", "weights": "mxfp4"}):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            f"{bench.folder}/plain", quantization_config=fp8.transformers.FP8Config(**options),
            device_map=bench.device, dtype=torch.bfloat16)
        logits = bench.get_logits(model)
        error, name = get_error(logits, expected), " ".join(options.values())
        assert 0 < error < (0.4 if "weights" in options else 0.15), (name, error)
        model.save_pretrained(f"{bench.folder}/quantized")
        again = transformers.AutoModelForCausalLM.from_pretrained(
            f"{bench.folder}/quantized", device_map=bench.device, dtype=torch.bfloat16)
        assert torch.equal(bench.get_logits(again), logits), name
        made = model.generate(bench.tokens[:2, :16], attention_mask=torch.ones_like(bench.tokens[:2, :16]),
                              max_new_tokens=8, do_sample=False)
        assert made.shape == (2, 24)
        found.append(f"{name} {error:.3f}")
    return f"logits differ from bf16's by {', '.join(found)}; saved and loaded: the same bits"


def check_trainer(bench):
    import transformers

    import fp8.transformers

    def run(callbacks):
        model, folder = bench.make(torch.float32), f"{bench.folder}/trainer"
        trainer = transformers.Trainer(model, transformers.TrainingArguments(
            folder, max_steps=STEPS, per_device_train_batch_size=BATCH, bf16=True, report_to=[], logging_steps=1,
            learning_rate=1e-3, lr_scheduler_type="constant", disable_tqdm=True, save_strategy="no", log_level="error",
            use_cpu=bench.device.type == "cpu"),
            train_dataset=[{"input_ids": row, "labels": row} for row in bench.tokens.cpu().repeat(STEPS, 1)],
            callbacks=callbacks)
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        trainer.train()
        return [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]

    return check(run([fp8.transformers.FP8Callback("delayed")]), run([]), "losses under delayed", 0.1)


def check_accelerate(bench):
    import accelerate

    import fp8.accelerate
    found = []
    for recipe in ("delayed", "rowwise"):
        accelerator = accelerate.Accelerator(cpu=bench.device.type == "cpu")
        model = bench.make(torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        model, optimizer = fp8.accelerate.prepare(accelerator, model, optimizer, recipe=recipe)
        losses = bench.train(model, optimizer, accelerator.backward)
        found.append(check(losses, bench.train_plain(), f"losses under {recipe}", 0.1))
    return "; ".join(found)


def check_peft(bench):
    import peft

    import fp8.peft
    import fp8.torch

    def run(weights, by_peft=False):
        model = bench.make()
        config = peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"])
        if weights is not None:
            fp8.torch.quantize_for_inference(model, filter=["*", "!lm_head"], weights=weights or None)
            fp8.peft.register(config, by_peft)
        torch.manual_seed(2)
        model = peft.get_peft_model(model, config)
        losses = bench.train(model, torch.optim.AdamW([
            value for value in model.parameters() if value.requires_grad], 1e-2))
        return losses, model

    expected, _ = run(None)
    found = [check(run(weights, by_peft)[0], expected, name, 0.15) for weights, by_peft, name in (
        ("", False, "losses on rowwise"), ("", True, "by peft"), ("mxfp4", False, "on mxfp4"))]
    model = run("")[1].eval()
    apart = bench.get_logits(model)
    model.merge_adapter()
    error = get_error(bench.get_logits(model), apart)
    model.unmerge_adapter()
    assert 0 < error < 0.15 and torch.equal(bench.get_logits(model), apart), error
    return f"{'; '.join(found)}; merged logits differ by {error:.3f}, unmerged by nothing"


def check_lightning(bench):
    import lightning

    import fp8.lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.losses = bench.make(torch.float32), []

        def training_step(self, batch, _):
            loss = self.model(input_ids=batch, labels=batch).loss
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-3)

    module = Module()
    lightning.Trainer(plugins=[fp8.lightning.FP8Precision("delayed")], max_epochs=1, logger=False,
                      accelerator="cpu" if bench.device.type == "cpu" else "gpu", devices=1,
                      enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False).fit(
        module, torch.utils.data.DataLoader(bench.tokens.cpu().repeat(STEPS, 1), batch_size=BATCH))
    return check(module.losses, bench.train_plain(), "losses under delayed", 0.1)


CHECKS = {"transformers": check_transformers, "Trainer": check_trainer, "accelerate": check_accelerate,
          "peft": check_peft, "lightning": check_lightning}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all lines")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    records = {}
    for name, run in CHECKS.items():
        package = "transformers" if name == "Trainer" else name
        if not importlib.util.find_spec(package):
            records[name] = "not installed"
        else:
            start = time.perf_counter()
            try:
                with tempfile.TemporaryDirectory() as folder:
                    records[name] = run(Bench(args.small, folder))
                records[name] += f" ({time.perf_counter() - start:.1f} s)"
            except Exception as error:  # Others are still of interest.
                traceback.print_exc()
                records[name] = f"FAILED: {type(error).__name__}: {error}"[:800]
        version = importlib.metadata.version(package) if importlib.util.find_spec(package) else ""
        print(f"{name} {version}: {records[name]}", flush=True)
        if args.out:
            args.out.write_text(json.dumps(records, indent=1) + "\n")
    return int(any(line.startswith("FAILED") for line in records.values()))


if __name__ == "__main__":
    raise SystemExit(main())
