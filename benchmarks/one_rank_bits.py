"""Bits of training on one rank, with FSDP2 and without, and the first tensor that differs.

A decoder of distributed_models.py takes five steps from the same weights, several times in each way: without FSDP2 (none), with it
(fsdp), with weights that travel as codes (codes). Outputs of modules, gradients of these, and parameters behind each step are summed up to a
number each, in the order of the program, so that two runs with other bits show where they part. Needs no GPU, but is meant for one.

PyTorch's attention adds up gradients of queries in any order unless torch.use_deterministic_algorithms(True) is on and no mere
warning: with warn_only=True flash, memory-efficient and cuDNN's attention only say so. --warns does that, to see it; bf16 is
a way without any code of ours.

usage: one_rank_bits.py [--recipes NAMES] [--ways NAMES] [--rounds N] [--warns] [--layers N] [--length N] [--steps N] [--out FILE]
"""

import argparse
import json
import os
import sys
import tempfile
import warnings

# cuBLAS asks for it where algorithms are to be deterministic.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from distributed_models import Contender  # noqa: E402

WAYS = {"none": {"sharding": "none"}, "fsdp": {"sharding": "fsdp"}, "codes": {"sharding": "fsdp", "gathers": True}}
ON_GPU = dict(width=4096, wide=14336, heads=32, groups=8, words=32000, batch=2)
ON_CPU = dict(width=256, wide=512, heads=4, groups=2, words=128, batch=2)


def digest(tensor):
    """A number of a tensor's bits; one that adds up in any order."""
    whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    flat = whole.detach().contiguous().view(-1)
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = flat.view(kinds[flat.element_size()]).to(torch.int64)
    weights = torch.arange(1, len(bits) + 1, device=bits.device) * 2654435761 | 1
    return (bits * weights).sum()


class Record:
    """Digests by name, in the order in which tensors come."""

    def __init__(self, model):
        self.entries, self.step = [], 0
        for name, module in model.named_modules():
            if name and not list(module.children()):
                module.register_forward_hook(self.watch(name))

    def add(self, name, tensor):
        self.entries.append((f"step {self.step}: {name}", digest(tensor)))

    def watch(self, name):
        def see(module, inputs, output):
            self.add(f"{name}", output)
            if output.requires_grad:
                output.register_hook(lambda gradient: self.add(f"the gradient of {name}", gradient))
        return see

    def take(self):
        return [(name, number.item()) for name, number in self.entries]


def train(args, device, recipe, way):
    library = {"library": "fp8", "recipe": recipe} if recipe != "bf16" else {"compiles": "parts"}
    torch._dynamo.reset()
    contender = Contender(args, device, dtype=torch.bfloat16, **library, **WAYS[way])
    tokens = torch.randint(args.words, (args.batch, args.length + 1), generator=torch.Generator().manual_seed(0)).to(device)
    record = Record(contender.holder)
    for record.step in range(args.steps):
        record.add("the loss", contender.step(tokens))
        for name, parameter in contender.holder.named_parameters():
            record.add(f"{name} behind the step", parameter)
    return record.take()


def find_first(one, other):
    """The first tensor that differs by name, and how many do. Ways have the same order of tensors but for a gather's own."""
    places = dict(other)
    differing = [name for name, number in one if places.get(name, number) != number]
    return (differing[0] if differing else None), len(differing)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipes", default="bf16,delayed,current,block,rowwise")
    parser.add_argument("--ways", default="none,fsdp,codes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warns", action="store_true")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--length", type=int)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out")
    args = parser.parse_args()
    is_gpu = torch.cuda.is_available()
    device = torch.device("cuda", 0) if is_gpu else torch.device("cpu")
    vars(args).update(ON_GPU if is_gpu else ON_CPU)
    args.length = args.length or (1024 if is_gpu else 64)
    torch.use_deterministic_algorithms(True, warn_only=args.warns)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dist.init_process_group("nccl" if is_gpu else "gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        records = compare(args, device)
        dist.destroy_process_group()
    reasons = sorted({str(each.message).partition(" (Triggered")[0] for each in said if "determinis" in str(each.message)})
    for reason in reasons:
        print("PyTorch:", reason)
    if args.out:
        with open(args.out, "w") as file:
            json.dump({"torch": torch.__version__, "warns": args.warns, "said": reasons, "records": records}, file, indent=1)
    return int(any(each["differing"] for each in records.values()))


def compare(args, device):
    records = {}
    for recipe in args.recipes.split(","):
        first = None
        for way in args.ways.split(","):
            for turn in range(args.rounds):
                if way == "codes" and recipe == "bf16":
                    continue
                found = train(args, device, recipe, way)
                first = first or found
                name, count = find_first(first, found)
                records[f"{recipe} {way} {turn}"] = {"first": name, "differing": count, "of": len(found)}
                print(f"{recipe:8} {way:6} {turn}: {len(found) - count} of {len(found)} tensors are the same"
                      + (f"; the first that is not: {name}" if name else ""), flush=True)
    return records


if __name__ == "__main__":
    sys.exit(main())
