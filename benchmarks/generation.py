"""Text generation with quantized weights on a GPU, beside bf16: tokens per second of
transformers' generate, for layers of Llama 3 8B of random weights.

By `quantize_for_inference`, the model as it is and with a static cache, for which transformers
compiles its forward; ways with "-fused" by the backend "fp8", all others by Inductor, those with
"-sdpa" with PyTorch's attention in decoding, and those with "-attention" with
attn_implementation="fp8". Each
way is a process of its own (turns.py); its tokens per second are those of the median of ROUNDS
calls, after one, of `generate` as Python calls it. With --prefill also those of a prompt of so many
tokens, of which one is generated. Needs a GPU, but for --small.

usage: generation.py [--ways NAMES] [--caches NAMES] [--batches N...] [--layers N] [--jobs N]
                     [--prefill N] [--small] [--out FILE]
"""

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch
import turns

ROUNDS, PROMPT = 5, 128
WAYS = ("bf16", "current", "rowwise", "block", "current-fused", "rowwise-fused", "block-fused", "rowwise-attention",
        "rowwise-fused-sdpa", "rowwise-fused-attention", "block-fused-attention")


def make(is_small, layers=8, prefill=0):
    """Layers of Llama 3 8B."""
    import transformers
    torch.manual_seed(0)
    sizes = ({"hidden_size": 128, "intermediate_size": 384, "vocab_size": 512,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
             if is_small else
             {"hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256,
              "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 8})
    with torch.device("cpu" if is_small else "cuda"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            max_position_embeddings=max(4096, prefill + 1), eos_token_id=None, pad_token_id=0, **sizes))
    return model.to(torch.bfloat16).eval()


def run_way(way, cache, args, wait):
    """Tokens per second by batch."""
    warnings.simplefilter("ignore")
    model = make(args.small, args.layers, args.prefill)
    if way != "bf16":
        import fp8.torch
        model = fp8.torch.quantize_for_inference(model, way.partition("-")[0])
        if way.endswith("-attention"):
            settings = fp8.torch.register_attention()
            model.set_attn_implementation("fp8")
    device = next(model.parameters()).device
    options = {"do_sample": False, "max_new_tokens": args.tokens, "min_new_tokens": args.tokens}
    if cache == "static":
        options["cache_implementation"] = "static"
        if "-fused" in way:
            import transformers
            asked = {"attention": "torch", "triton.cudagraphs": True} if "-sdpa" in way else None
            options["compile_config"] = transformers.CompileConfig(
                backend="fp8", mode=None if asked else "reduce-overhead", options=asked)

    def call(batch):
        torch.manual_seed(batch)
        tokens = torch.randint(3, 500, (batch, PROMPT), device=device)
        start = time.perf_counter()
        model.generate(tokens, attention_mask=torch.ones_like(tokens), **options).cpu()
        return time.perf_counter() - start

    def read():
        torch.manual_seed(0)
        tokens = torch.randint(3, 500, (1, args.prefill), device=device)
        start = time.perf_counter()
        model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_new_tokens=1).cpu()
        return time.perf_counter() - start

    for batch in args.batches:
        for _ in range(2):
            call(batch)
    if args.prefill:
        read()
    wait()
    record = {}
    if args.prefill:
        read()
        record["prefill"] = args.prefill / statistics.median(read() for _ in range(ROUNDS))
    for batch in args.batches:
        call(batch)
        times = [call(batch) for _ in range(ROUNDS)]
        record[f"batch {batch}"] = batch * args.tokens / statistics.median(times)
        if way.endswith("-attention"):
            record["attention"] = [settings.taken, settings.reasons]
        if not args.small:
            record[f"batch {batch} kernels"] = count_kernels(lambda: call(batch), args.tokens)
    return record


def count_kernels(call, tokens):
    """How many kernels there are for each token, and how many microseconds they take."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    times = [event.device_time for event in profiler.events()
             if event.device_type == torch.autograd.DeviceType.CUDA]
    return len(times) / tokens, sum(times) / tokens


def show(records, batches):
    print(f"{'':14}{'cache':>9}" + "".join(
        f"{f'batch {batch}':>12}{'/bf16':>8}{'kernels':>9}{'of us':>8}" for batch in batches))
    for (way, cache), record in records.items():
        if "error" in record:
            print(f"{way:14}{cache:>9}  {record['error'].splitlines()[0][:120]}")
            continue
        base = records.get(("bf16", cache), {})
        line = f"{way:14}{cache:>9}"
        for batch in batches:
            speed, other = record[f"batch {batch}"], base.get(f"batch {batch}", math.nan)
            count, time = record.get(f"batch {batch} kernels", (math.nan, math.nan))
            line += f"{speed:12.1f}{speed / other:8.2f}{count:9.0f}{time:8.0f}"
        if "prefill" in record:
            line += f"  prefill {record['prefill']:.0f} {record['prefill'] / base.get('prefill', math.nan):.2f}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS[:4]))
    parser.add_argument("--caches", nargs="+", choices=["dynamic", "static"],
                        default=["dynamic", "static"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--tokens", type=int, default=64, help="to generate")
    parser.add_argument("--layers", type=int, default=8, help="of 32 that Llama 3 8B has")
    parser.add_argument("--prefill", type=int, default=0, help="tokens of a prompt to time, too")
    parser.add_argument("--jobs", type=int, default=4, help="ways that compile at a time")
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all numbers")
    args = parser.parse_args()
    units = [(way, cache, args) for cache in args.caches for way in args.ways]
    records = {}
    for some in turns.run(run_way, units, args.jobs):
        records.update({(way, cache): record for (way, cache, _), record in some})
        if args.out:
            args.out.write_text(json.dumps([[*key, record] for key, record in records.items()],
                                           indent=1))
    show(records, args.batches)
    return any("error" in record for record in records.values())


if __name__ == "__main__":
    sys.exit(main())
