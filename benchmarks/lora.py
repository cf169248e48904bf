"""Steps of LoRA on a frozen base of 8 or 4 bits on a GPU, beside one of bf16.

Layers of Llama 3 8B of transformers with random weights and peft's adapters, in f32, on all of
their linear layers but the head: forward, backward and AdamW of the adapters, as Python calls
them. Each way is a process of its own (turns.py); times are medians of ROUNDS steps. Of adapters in
bf16 are ways with "-narrow", of adapters that peft computes beside a quantized base those with
"-by-peft", and with "-head" the head is quantized as the base is, with activations in bf16. `model` is
of parameters, and `all` of those of 32 layers. Needs a GPU, transformers and peft, but for --small.

usage: lora.py [--ways NAMES] [--layers N] [--batch N] [--positions N] [--rank N] [--compile]
               [--jobs N] [--profile] [--small] [--out FILE]
"""

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import generation
import torch
import turns

ROUNDS = 15
WAYS = ("bf16", "bf16-narrow", "rowwise", "rowwise-by-peft", "rowwise-head", "block", "current", "mxfp4",
        "mxfp4-head")


def count_bytes(module):
    return sum(value.numel() * value.element_size() for value in module.parameters())


def list_kernels(step):
    """Milliseconds and numbers of what a step's kernels are, those that take longest first."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    found = {}
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times = found.setdefault(event.name[:100], [0, 0])
            times[0] += event.device_time / 1e3
            times[1] += 1
    return sorted(([round(time, 2), count, name] for name, (time, count) in found.items()), reverse=True)


def run_way(way, args, wait):
    """Milliseconds of a step, bytes, and the loss before and after the steps."""
    import peft
    warnings.simplefilter("ignore")
    model = generation.make(args.small, args.layers)
    config = peft.LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules=[
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
    kind, _, variant = way.partition("-")
    if kind != "bf16":
        import fp8.peft
        recipe, weights = ("rowwise", "mxfp4") if kind == "mxfp4" else (kind, None)
        fp8.torch.quantize_for_inference(model, recipe, filter=["*", "!lm_head"], weights=weights)
        if variant == "head":
            fp8.torch.quantize_for_inference(model, recipe, filter="lm_head", weights=weights, activations="bf16")
        fp8.peft.register(config, by_peft=variant == "by-peft")
    torch.manual_seed(1)
    model = peft.get_peft_model(model, config, autocast_adapter_dtype=variant != "narrow")
    model.train()
    device = next(model.parameters()).device
    memory = count_bytes(model)
    layer = count_bytes(model.get_base_model().model.layers[0])
    trained = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    tokens = torch.randint(3, 500, (args.batch, args.positions), device=device)
    call = torch.compile(model) if args.compile else model

    def step():
        loss = call(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    losses = [step() for _ in range(3)]
    wait()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        losses.append(step())
        times.append(time.perf_counter() - start)
    kernels = list_kernels(step) if args.profile else []
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return {"ms": 1e3 * statistics.median(times), "worst": 1e3 * max(times), "memory": memory,
            "kernels": kernels, "all": memory + (32 - args.layers) * layer, "peak": peak, "first": losses[0], "last": losses[-1]}


def show(records):
    base = records.get("bf16", {})
    print(f"{'':16}{'ms':>9}{'speed':>8}{'worst':>9}{'model MB':>10}{'/bf16':>7}{'all MB':>9}{'/bf16':>7}"
          f"{'peak MB':>9}{'loss':>9}{'to':>9}")
    for way, record in records.items():
        if "error" in record:
            print(f"{way:16}  {record['error'].splitlines()[0][:120]}")
            continue
        speed = base["ms"] / record["ms"] if "ms" in base else float("nan")
        shares = [record[name] / base[name] if name in base else float("nan") for name in ("memory", "all")]
        print(f"{way:16}{record['ms']:9.2f}{speed:8.2f}{record['worst']:9.2f}"
              f"{record['memory'] / 1e6:10.0f}{shares[0]:7.3f}{record['all'] / 1e6:9.0f}{shares[1]:7.3f}"
              f"{record['peak'] / 1e6:9.0f}"
              f"{record['first']:9.4f}{record['last']:9.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS[:4]))
    parser.add_argument("--layers", type=int, default=8, help="of 32 that Llama 3 8B has")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--rank", type=int, default=16, help="of the adapters")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    parser.add_argument("--jobs", type=int, default=2, help="ways that get ready at a time")
    parser.add_argument("--profile", action="store_true", help="lists kernels of a step in --out")
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all numbers")
    args = parser.parse_args()
    records = {}
    for some in turns.run(run_way, [(way, args) for way in args.ways], args.jobs):
        records.update({way: record for (way, _), record in some})
        if args.out:
            args.out.write_text(json.dumps(records, indent=1) + "\n")
    show(records)
    return int(any("error" in record for record in records.values()))


if __name__ == "__main__":
    raise SystemExit(main())
