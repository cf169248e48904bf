"""Text generation with quantized weights on a GPU, beside bf16: tokens per second of
transformers' generate, for layers of Llama 3 8B of random weights.

By `quantize_for_inference`, the model as it is and with a static cache, for which transformers
compiles its forward; ways with "-fused" by the backend "fp8", all others by Inductor, those with
"-sdpa" with PyTorch's attention in decoding, with "-shared" with share_layers, and those with "-attention" with
attn_implementation="fp8", in bf16 or, with "-e4m3", in that. "-compiled" is torch.compile of the forward with
sizes that change, by Inductor for bf16 and by "fp8" for others, for caches that are not static, and prompts;
"-modules" of norms and MLPs alone, by fp8.torch.compile_regions.

Each way is a process of its own, or --processes of them, which take turns (turns.py), a call of each,
so that a host that slows down does so for all; tokens per second are those of the median of --rounds
calls of `generate` as Python calls it, and of all processes together. With --prefill also those of a
prompt of so many tokens, of which one is generated. Needs a GPU, but for --small.

usage: generation.py [--ways NAMES] [--caches NAMES] [--batches N...] [--layers N] [--rounds N] [--jobs N]
                     [--prefill N] [--processes N] [--apart] [--small] [--out FILE]
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

PROMPT = 128
WAYS = ("bf16", "current", "rowwise", "block", "current-fused", "rowwise-fused", "block-fused", "rowwise-attention",
        "rowwise-fused-sdpa", "rowwise-fused-shared", "rowwise-fused-attention", "block-fused-attention", "bf16-compiled",
        "rowwise-compiled", "rowwise-attention-e4m3", "rowwise-compiled-attention",
        "rowwise-compiled-attention-e4m3", "bf16-modules", "rowwise-modules", "rowwise-modules-attention-e4m3")


def make(is_small, layers=8, prefill=0):
    """Layers of Llama 3 8B."""
    import transformers
    torch.manual_seed(0)
    sizes = ({"hidden_size": 128, "intermediate_size": 384, "vocab_size": 512,
              "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2}
             if is_small else
             {"hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256,
              "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 8})
    # Not `model.to`, which rounds frequencies of rotary embeddings, too: transformers keeps these in f32.
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cpu" if is_small else "cuda"):
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
                max_position_embeddings=max(4096, prefill + 1), eos_token_id=None, pad_token_id=0, **sizes))
    finally:
        torch.set_default_dtype(usual)
    return model.eval()


def run_way(way, cache, number, args, wait):
    """Seconds of calls by batch, and the kernels of a token."""
    warnings.simplefilter("ignore")
    model = make(args.small, args.layers, args.prefill)
    if not way.startswith("bf16"):
        import fp8.torch
        model = fp8.torch.quantize_for_inference(model, way.partition("-")[0])
        if "-attention" in way:
            settings = fp8.torch.register_attention(format="e4m3" if way.endswith("-e4m3") else None)
            model.set_attn_implementation("fp8")
    if "-modules" in way:
        import fp8.torch
        fp8.torch.compile_regions(model)
    if "-compiled" in way:
        model.forward = torch.compile(
            model.forward, dynamic=True, backend="inductor" if way.startswith("bf16") else "fp8")
    device = next(model.parameters()).device
    options = {"do_sample": False, "max_new_tokens": args.tokens, "min_new_tokens": args.tokens}
    if cache == "static":
        options["cache_implementation"] = "static"
        if "-fused" in way:
            import transformers
            asked = {"attention": "torch"} if "-sdpa" in way else {"share_layers": True} if "-shared" in way else None
            asked = asked and {**asked, "triton.cudagraphs": True}
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

    def get_likelihood():
        """The mean logarithm of what the model gives each token of another prompt, and those that it likes best."""
        torch.manual_seed(1)
        tokens = torch.randint(3, 500, (1, min(args.prefill, 1024)), device=device)
        with torch.inference_mode():
            logits = model(input_ids=tokens).logits[0, :-1].float()
        chosen = torch.log_softmax(logits, -1).gather(1, tokens[0, 1:, None])
        return chosen.mean().item(), logits.argmax(-1).tolist()

    for batch in args.batches:
        for _ in range(2):
            call(batch)
    record = {"likelihood": get_likelihood()} if args.prefill else {}
    for name, run in [*([("prefill", read)] if args.prefill else []),
                      *((f"batch {batch}", lambda batch=batch: call(batch)) for batch in args.batches)]:
        run()
        run()
        record[name] = []
        for _ in range(args.rounds):
            wait()
            run()
            record[name].append(run())
        # What is known if time ends before others are done.
        print(way, cache, name, statistics.median(record[name]), file=sys.stderr, flush=True)
        if not args.small and number == 0:
            record[f"{name} kernels"] = count_kernels(run, 1 if name == "prefill" else args.tokens)
    if "-attention" in way:
        record["attention"] = [settings.taken, settings.reasons]
    return record


def join(records, args):
    """Tokens per second of all processes of a way together, and the least and most of one."""
    wrong = next((record for record in records if "error" in record), None)
    if wrong:
        return wrong
    found = {name: value for name, value in records[0].items() if name != "likelihood"}
    found["likelihood"], found["best"] = records[0].get("likelihood", (math.nan, []))
    for name, count in (("prefill", args.prefill), *((f"batch {batch}", batch * args.tokens) for batch in args.batches)):
        if name in found:
            medians = [statistics.median(record[name]) for record in records]
            found[name] = count / statistics.median(time for record in records for time in record[name])
            found[f"{name} of one"] = [count / max(medians), count / min(medians)]
    return found


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
    print(f"{'':24}{'cache':>9}" + "".join(
        f"{f'batch {batch}':>12}{'/bf16':>8}{'kernels':>9}{'of us':>8}" for batch in batches))
    for (way, cache), record in records.items():
        if "error" in record:
            print(f"{way:24}{cache:>9}  {record['error'].splitlines()[0][:120]}")
            continue
        base = records.get(("bf16", cache), {})
        line = f"{way:24}{cache:>9}"
        for batch in batches:
            speed, other = record[f"batch {batch}"], base.get(f"batch {batch}", math.nan)
            count, time = record.get(f"batch {batch} kernels", (math.nan, math.nan))
            line += f"{speed:12.1f}{speed / other:8.2f}{count:9.0f}{time:8.0f}"
        if "prefill" in record:
            best = base.get("best", [])
            same = sum(a == b for a, b in zip(record["best"], best)) / max(len(best), 1)
            line += (f"  prefill {record['prefill']:.0f} {record['prefill'] / base.get('prefill', math.nan):.2f}"
                     f"  likelihood {record['likelihood']:.4f}, the same best token as bf16 {same:.3f}")
        print(line)
        several = {name: found for name, found in record.items() if name.endswith(" of one")}
        if any(low != high for low, high in several.values()):
            print(f"{'':33}" + "  ".join(f"{name}: {low:.1f} to {high:.1f}" for name, (low, high) in several.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS[:4]))
    parser.add_argument("--caches", nargs="+", choices=["dynamic", "static"],
                        default=["dynamic", "static"])
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 32])
    parser.add_argument("--tokens", type=int, default=64, help="to generate")
    parser.add_argument("--layers", type=int, default=8, help="of 32 that Llama 3 8B has")
    parser.add_argument("--rounds", type=int, default=7, help="calls that are timed")
    parser.add_argument("--prefill", type=int, default=0, help="tokens of a prompt to time, too")
    parser.add_argument("--jobs", type=int, default=4, help="ways that compile at a time")
    parser.add_argument("--processes", type=int, default=1, help="of each way")
    parser.add_argument("--apart", action="store_true", help="a process for each batch, without sizes that change")
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all numbers")
    args = parser.parse_args()
    if args.jobs % args.processes:
        parser.error("expected --jobs to be a multiple of --processes")
    groups = [[batch] for batch in args.batches] if args.apart else [args.batches]
    units = [(way, cache, number, argparse.Namespace(**{**vars(args), "batches": batches})) for cache in args.caches
             for batches in groups for way in args.ways for number in range(args.processes)]
    records = {}
    for some in turns.run(run_way, units, args.jobs):
        for i in range(0, len(some), args.processes):
            found = join([record for _, record in some[i:i + args.processes]], some[i][0][3])
            records[some[i][0][:2]] = {**records.get(some[i][0][:2], {}), **found}
        if args.out:
            args.out.write_text(json.dumps([[*key, record] for key, record in records.items()],
                                           indent=1))
    show(records, args.batches)
    return any("error" in record for record in records.values())


if __name__ == "__main__":
    sys.exit(main())
