"""Trains a small transformer in FP8 or bf16, and says how fast, in how much memory and how well.

    USE_FP8=1 FP8_FORMAT=hybrid python examples/train.py --steps 200
    python examples/train.py --compare page.html      # Both, one after the other, and a page of them.

What is set by variables has an option, too, which goes first:

    USE_FP8                  --recipe bf16 if 0, else the recipe (1)
    FP8_RECIPE               --recipe: delayed, current, rowwise, block, mxfp8, nvfp4 (delayed)
    FP8_FORMAT               --format: hybrid, e4m3 or e5m2 (the recipe's own)
    FP8_AMAX_HISTORY_LEN     --history: steps that delayed scaling looks back at (1024)
    FP8_AMAX_COMPUTE_ALGO    --algo: max or most_recent
    FP8_FIRST_LAST_BF16      --first-last-bf16: layers in bf16 at either end (1)
    OPTIMIZER                --optimizer: adamw, or adamw8bit of torchao or bitsandbytes

The model is that of train_transformer.py, and so is the text, unless --text names a file.
"""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

import torch
from torch import nn
from train_transformer import Text, Transformer, get_loss, get_rate

import fp8.torch
import train_page

RECIPES = {"delayed": fp8.DelayedScaling, "current": fp8.Float8CurrentScaling,
           "rowwise": fp8.RowwiseScaling, "block": fp8.Float8BlockScaling,
           "mxfp8": fp8.MXFP8BlockScaling, "nvfp4": fp8.NVFP4BlockScaling}


def make_recipe(args):
    """The text of a recipe, or "bf16"."""
    if args.recipe == "bf16" or "," in args.recipe:
        return args.recipe
    if args.recipe not in RECIPES:
        raise SystemExit(f"expected a recipe of bf16, {', '.join(RECIPES)}, but got '{args.recipe}'")
    kind, options = RECIPES[args.recipe], {}
    for key, value in (("fp8_format", args.format), ("amax_history_len", args.history),
                       ("amax_compute_algo", args.algo)):
        if value is None:
            continue
        if not hasattr(kind, key):
            print(f"{args.recipe} has no {key}: {value} is not used", file=sys.stderr)
            continue
        options[key] = fp8.Format(value) if key == "fp8_format" else value
    return str(kind(**options))


def make_optimizer(parameters, args):
    options = {"lr": args.rate, "betas": (0.9, 0.95), "weight_decay": 0.1}
    if args.optimizer == "adamw":
        return torch.optim.AdamW(parameters, **options), "adamw"
    # bitsandbytes' own kernels are a GPU's.
    packages = ["torchao.optim"] if args.device == "cpu" else ["bitsandbytes.optim", "torchao.optim"]
    for package in packages:
        try:
            module = __import__(package, fromlist=["AdamW8bit"])
        except ImportError:
            continue
        return module.AdamW8bit(parameters, **options), f"adamw8bit of {package.partition('.')[0]}"
    raise SystemExit("expected torchao, or bitsandbytes on a GPU, for --optimizer adamw8bit, but "
                     "neither is installed")


def get_memory(device):
    """The most bytes in use: of the GPU since the last reset, on a CPU of the process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def find_device(args):
    return torch.cuda.get_device_name() if args.device == "cuda" else "cpu"


def train(args, recipe):
    """A record of one training."""
    torch.manual_seed(args.seed)
    text = Text(args)
    model = Transformer(args.width, args.depth, args.length).to(args.device)
    if recipe != "bf16":
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=args.first_last_bf16)
    optimizer, optimizer_name = make_optimizer(model.parameters(), args)
    if args.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    print(f"format {recipe}, device {find_device(args)}, optimizer {optimizer_name}, "
          f"{sum(value.numel() for value in model.parameters()) / 1e6:.2f} M parameters")
    losses, start, tokens = [], time.perf_counter(), args.batch * args.length
    for step in range(args.steps):
        for group in optimizer.param_groups:
            rate = args.rate * get_rate(step, args.steps)
            # 8-bit optimizers may hold it as a tensor.
            group["lr"].fill_(rate) if isinstance(group["lr"], torch.Tensor) else group.update(lr=rate)
        loss = get_loss(model, text.get_batch(step), args)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step == 0:
            if recipe != "bf16" and not args.quiet:
                print(fp8.torch.summarize(model))
            start = time.perf_counter()  # What was before was compilation, too.
        if (step + 1) % args.every == 0 and not args.quiet:
            speed = step * tokens / (time.perf_counter() - start)
            print(f"step {step + 1:5}  loss {sum(losses[-args.every:]) / args.every:.4f}  "
                  f"{speed:.0f} tokens/s  {get_memory(args.device) / 2 ** 20:.0f} MiB", flush=True)
    seconds = (time.perf_counter() - start) / max(1, args.steps - 1)
    last = losses[-min(20, len(losses)):]
    record = {"recipe": recipe, "optimizer": optimizer_name, "device": find_device(args),
              "steps": args.steps, "losses": losses, "last": sum(last) / len(last),
              "tokens_per_second": tokens / seconds, "bytes": get_memory(args.device)}
    print(f"{recipe}: loss {record['last']:.4f}, {record['tokens_per_second']:.0f} tokens/s, "
          f"{record['bytes'] / 2 ** 20:.0f} MiB{'' if args.device == 'cuda' else ' of the process'}")
    return record


def parse_arguments(environment):
    def get(name, default=None):
        return environment.get(name) or default

    uses_fp8 = get("USE_FP8", "1").lower() not in ("0", "false", "no", "off")
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", default=get("FP8_RECIPE", "delayed") if uses_fp8 else "bf16")
    parser.add_argument("--format", default=get("FP8_FORMAT", "").lower() or None,
                        choices=[None, "hybrid", "e4m3", "e5m2"])
    parser.add_argument("--history", type=int, default=get("FP8_AMAX_HISTORY_LEN"))
    parser.add_argument("--algo", default=get("FP8_AMAX_COMPUTE_ALGO"), choices=[None, "max", "most_recent"])
    parser.add_argument("--first-last-bf16", type=int, default=get("FP8_FIRST_LAST_BF16", "1"))
    parser.add_argument("--optimizer", default=get("OPTIMIZER", "adamw"), choices=["adamw", "adamw8bit"])
    parser.add_argument("--compare", type=Path, metavar="PAGE", help="train bf16, too, and write a page")
    parser.add_argument("--text", type=Path, help="what to train on, in place of this repository's documentation")
    parser.add_argument("--out", type=Path, help="records as JSON")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, default in (("steps", 200), ("width", 256), ("depth", 4), ("batch", 16), ("length", 256),
                          ("seed", 0), ("every", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    # argparse does not check what variables say.
    if args.format not in (None, "hybrid", "e4m3", "e5m2") or args.algo not in (None, "max", "most_recent"):
        parser.error(f"expected FP8_FORMAT to be hybrid, e4m3 or e5m2 and FP8_AMAX_COMPUTE_ALGO to be max or "
                     f"most_recent, but got {args.format} and {args.algo}")
    if args.steps < 1:
        parser.error(f"expected --steps above 0, but got {args.steps}")
    return args


def main():
    args = parse_arguments(os.environ)
    recipe = make_recipe(args)
    if args.compare and recipe == "bf16":
        raise SystemExit("expected a recipe to compare with bf16, but got bf16")
    records = [train(args, each) for each in (["bf16", recipe] if args.compare else [recipe])]
    if args.compare:
        args.compare.write_text(train_page.write(records))
        print(f"{args.compare}: {records[1]['last'] / records[0]['last'] - 1:+.2%} in loss, "
              f"{records[1]['tokens_per_second'] / records[0]['tokens_per_second']:.2f} times the speed of bf16")
    if args.out:
        args.out.write_text(json.dumps(records) + "\n")


if __name__ == "__main__":
    main()
