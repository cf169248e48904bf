"""Trains a small transformer on this project's documentation, byte by byte, in FP8 or bf16.

docs/Training.md goes through it.

usage: train_transformer.py [--recipe RECIPE] [--way layers|backend] [--steps N] [--stop N]
                            [--seed N] [--device cpu|cuda] [--width N] [--depth N] [--batch N]
                            [--length N] [--rate F] [--save FILE] [--resume FILE] [--out FILE] [--quiet]

RECIPE is bf16, which is PyTorch as it is, or what fp8.compile takes: delayed, current, rowwise,
block, mxfp8, nvfp4, with options such as delayed,margin=1. With +dpa behind it, as in delayed+dpa,
attention is in E4M3, too.
"""

import argparse
import hashlib
import json
import math
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch

EXAMPLES = Path(__file__).resolve().parent
DOCS = EXAMPLES.parent / "docs"
BYTES = 256
WARM_UP = 20
VALIDATION_BATCHES = 8
DPA_RECIPES = {"delayed": fp8.DelayedScaling, "current": fp8.Float8CurrentScaling}


# The model.

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, wide, bias=False) for _ in range(2))
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm, self.mlp_norm = (nn.RMSNorm(width) for _ in range(2))
        self.attention, self.mlp = Attention(width, heads), MLP(width, 3 * width)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """Logits of the next byte, [batch, length, 256], of bytes [batch, length]."""

    def __init__(self, width, depth, length):
        super().__init__()
        self.embed, self.place = nn.Embedding(BYTES, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(depth))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, BYTES, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, bytes_):
        x = self.embed(bytes_) + self.place.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


# The text.

class Text:
    """A file, or the pages of the documentation, of which the last tenth is for validation."""

    def __init__(self, args):
        # Without the page that shows the results, and those that tools write.
        pages = [args.text] if args.text else sorted(
            page for page in DOCS.glob("**/*.md") if page.name != "Training.md" and page.parent.name != "generated")
        if not pages:
            raise SystemExit(f"expected pages of documentation in '{DOCS}', as in a clone of the repository, or --text FILE")
        data = b"".join(page.read_bytes() for page in pages)
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.data = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        self.split = len(data) * 9 // 10
        if len(data) - self.split <= args.length:
            raise SystemExit(f"expected at least {10 * (args.length + 1)} bytes of text for --length {args.length}, "
                             f"but got {len(data)}")
        self.args = args

    def get_batch(self, number, validates=False):
        """Bytes and those that follow them: the same for the same number and seed, so that a
        run that is resumed sees what it would have seen."""
        seed = -1 if validates else self.args.seed
        generator = torch.Generator().manual_seed(1_000_000 * (seed + 1) + number)
        low, high = (self.split, len(self.data)) if validates else (0, self.split)
        starts = torch.randint(low, high - self.args.length, (self.args.batch, 1),
                               generator=generator)
        batch = self.data[starts + torch.arange(self.args.length + 1)].to(self.args.device)
        return batch[:, :-1].contiguous(), batch[:, 1:].contiguous()


# FP8: one line for either way. Both leave the first and the last layer as they are.

def make_recipe(text):
    name, _, attention = text.partition("+")
    if attention not in ("", "dpa") or attention and name not in DPA_RECIPES:
        raise SystemExit(f"expected +dpa behind {' or '.join(DPA_RECIPES)}, but got '{text}'")
    return DPA_RECIPES[name](fp8_dpa=True) if attention else text


def make_fp8(model, args):
    """What is called for the model, and the Backend or None."""
    if args.recipe == "bf16":
        return model, None
    recipe = make_recipe(args.recipe)
    if args.way == "layers":
        return fp8.torch.convert_to_fp8_training(model, recipe), None
    backend = fp8.torch.Backend(recipe, recipe_file=EXAMPLES / "train_recipes.json")
    return torch.compile(model, backend=backend), backend


# Training.

def get_loss(model, batch, args):
    bytes_, following = batch
    with torch.autocast(args.device, torch.bfloat16):
        logits = model(bytes_)
    return F.cross_entropy(logits.float().flatten(0, 1), following.flatten())


def get_rate(step, steps):
    """Up over the first steps, then down to a tenth along a cosine."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP)))


class Run:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args, self.text = args, Text(args)
        self.plain = Transformer(args.width, args.depth, args.length).to(args.device)
        self.model, self.backend = make_fp8(self.plain, args)
        self.optimizer = torch.optim.AdamW(self.plain.parameters(), args.rate, betas=(0.9, 0.95),
                                           weight_decay=0.1)
        self.losses = []

    def step(self):
        number = len(self.losses)
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.rate * get_rate(number, self.args.steps)
        loss = get_loss(self.model, self.text.get_batch(number), self.args)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.plain.parameters(), 1.0)
        self.optimizer.step()
        self.losses.append(loss.item())

    def save(self, path):
        torch.save({"model": self.plain.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "losses": self.losses,
                    "fp8": self.backend.state_dict() if self.backend else None}, path)

    def load(self, path):
        saved = torch.load(path)
        self.plain.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.losses = saved["losses"]
        if self.backend:
            # A backend has its states once a call has compiled the parts.
            get_loss(self.model, self.text.get_batch(0), self.args).backward()
            self.backend.load_state_dict(saved["fp8"])

    def explain(self):
        if self.backend:
            self.backend.explain()
        elif self.args.recipe != "bf16":
            print(fp8.torch.summarize(self.plain))

    def validate(self):
        """The loss of the trained weights in bf16, whatever they were trained in."""
        fp8.torch.convert_from_fp8(self.plain)
        with torch.no_grad():
            losses = [get_loss(self.plain, self.text.get_batch(number, True), self.args).item()
                      for number in range(VALIDATION_BATCHES)]
        return sum(losses) / len(losses)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", default="delayed")
    parser.add_argument("--way", choices=["layers", "backend"], default="layers")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--stop", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, default in (("width", 256), ("depth", 4), ("batch", 16), ("length", 256)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=1e-3)
    for name in ("text", "save", "resume", "out"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


def main():
    args = parse_arguments()
    run = Run(args)
    if args.resume:
        run.load(args.resume)
    first, start = len(run.losses), time.perf_counter()
    while len(run.losses) < (args.stop or args.steps):
        run.step()
        if len(run.losses) == first + 1:
            if not args.quiet:
                run.explain()
            start = time.perf_counter()  # What was before was compilation, too.
        if len(run.losses) % 20 == 0 and not args.quiet:
            print(f"step {len(run.losses):4}  loss {sum(run.losses[-20:]) / 20:.4f}", flush=True)
    seconds = (time.perf_counter() - start) / max(1, len(run.losses) - first - 1)
    if args.save:
        run.save(args.save)
    last = sum(run.losses[-20:]) / len(run.losses[-20:])
    validation = run.validate()
    print(f"{args.recipe} by {args.way if args.recipe != 'bf16' else 'PyTorch'}, seed {args.seed}:"
          f" loss of the last 20 steps {last:.4f}, validation {validation:.4f}, "
          f"{1e3 * seconds:.1f} ms a step")
    if args.out:
        args.out.write_text(json.dumps({
            "recipe": args.recipe, "way": args.way, "seed": args.seed, "steps": args.steps,
            "width": args.width, "depth": args.depth, "batch": args.batch, "length": args.length,
            "device": torch.cuda.get_device_name() if args.device == "cuda" else args.device,
            "torch": torch.__version__, "text": {"bytes": len(run.text.data),
                                                 "sha256": run.text.sha256},
            "seconds": seconds, "last": last, "validation": validation,
            "losses": [round(loss, 4) for loss in run.losses]}) + "\n")


if __name__ == "__main__":
    main()
