"""Whether whole models of transformers have the same bits at every batch, and what that costs (docs/Inference.md).

Random models like Llama, Qwen and Gemma under quantize_for_inference(..., invariant=True): logits of a prompt beside those
of the same tokens decoded in batches of others, behind padding, and by training's forward. A triple is
a position of a sequence, the batch that it is in, and how it was computed; their bits are compared. Then, with layers of
Llama 3 8B, the time of a prompt and of a decoded token beside the same model without the option.

usage: invariance_models.py [--triples N] [--layers N] [--prompts N...] [--batches N...] [--keys N] [--device cpu|cuda]
                            [--out FILE]
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch

VOCABULARY = 512


def make(name, device):
    """A small model with weights drawn at random."""
    import transformers
    configs = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
               "qwen": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
               "gemma": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM)}
    make_config, make_model = configs[name]
    torch.manual_seed(0)
    with torch.device(device):
        model = make_model(make_config(
            hidden_size=512, intermediate_size=1536, vocab_size=VOCABULARY, num_hidden_layers=2, num_attention_heads=8,
            num_key_value_heads=2, head_dim=64, max_position_embeddings=4096, pad_token_id=0, eos_token_id=None))
    for value in model.parameters():
        value.data = (value + 0.1 * torch.randn_like(value) if value.ndim == 1 else 2 * value).detach().bfloat16()
    return model.eval()


def draw(generator, batch, length):
    return torch.randint(3, VOCABULARY, (batch, length), generator=generator, device=generator.device)


def count_different(y, expected):
    return int((y != expected).flatten(0, -2).any(-1).sum())


def decode(model, tokens, prompt):
    """Logits of the tokens behind a prompt, one by one."""
    import transformers
    cache = transformers.DynamicCache(config=model.config)
    found = [model(tokens[:, :prompt], past_key_values=cache, use_cache=True).logits[:, -1]]
    for i in range(prompt, tokens.shape[1]):
        found.append(model(tokens[:, i:i + 1], past_key_values=cache, use_cache=True).logits[:, -1])
    return torch.stack(found, 1)


def check(name, args):
    """Triples and those that differ, by how they were computed."""
    import copy

    import fp8.torch
    base = make(name, args.device)
    model = fp8.torch.quantize_for_inference(copy.deepcopy(base), "rowwise", invariant=True)
    is_tied = base.lm_head.weight is base.model.embed_tokens.weight
    trained = fp8.torch.convert_to_fp8_training(
        base, "rowwise", first_last_bf16=0, invariant=True,
        filter=lambda layer, module: layer != "lm_head" or not is_tied).train()
    generator = torch.Generator(args.device).manual_seed(1)
    found = {}

    def note(kind, y, expected):
        counts = found.setdefault(kind, [0, 0])
        counts[0] += expected.shape[:-1].numel()
        counts[1] += count_different(y, expected)

    longest = 1500 if args.device == "cuda" else 20
    while sum(count for count, _ in found.values()) < args.triples:
        length = int(torch.randint(longest // 2, longest, (), generator=generator, device=args.device))
        batch = int(torch.randint(2, 65 if args.device == "cuda" else 4, (), generator=generator, device=args.device))
        tokens = draw(generator, batch, length)
        some = [0, batch - 1]
        with torch.inference_mode():
            alone = torch.cat([model(tokens[i:i + 1]).logits for i in some])
            note("in a batch", model(tokens).logits[some], alone)
            behind = length - 8
            note("decoded in a batch", decode(model, tokens, behind)[some], alone[:, behind - 1:])
            note("decoded alone", decode(model, tokens[:1], behind), alone[:1, behind - 1:])
            count = min(37, longest)
            pad = torch.zeros(batch, count, dtype=torch.long, device=args.device)
            padded, mask = torch.cat([pad, tokens], 1), torch.ones(batch, count + length, dtype=torch.long, device=args.device)
            mask[0, :count] = 0
            padded[1:, :count] = 5
            y = model(padded, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0)).logits[:1, count:]
            note("behind padding", y, alone[:1])
        note("training's forward", trained(tokens[:1]).logits.detach(), alone[:1])
    return found


def measure(args):
    """Seconds of prompts and tokens by mode, in turns."""
    import copy

    import fp8.torch
    import generation
    import transformers
    base = generation.make(args.device == "cpu", args.layers, max(args.prompts))
    models = {mode: fp8.torch.quantize_for_inference(copy.deepcopy(base), "rowwise", invariant=mode == "invariant")
              for mode in ("free", "invariant")}
    fp8.torch.register_attention()
    models["free"].set_attn_implementation("fp8")
    del base
    rows = []

    def take_turns(kind, batch, call):
        times = {mode: [] for mode in models}
        for turn in range(args.rounds + 1):
            for mode, model in models.items():
                found = call(model)
                times[mode] += [found] if turn else []
        row = {"kind": kind, "batch": batch, **{mode: statistics.median(found) for mode, found in times.items()}}
        row["ratio"] = row["invariant"] / row["free"]
        rows.append(row)
        print(f"{kind:20} batch {batch:3} free {1e3 * row['free']:8.2f} ms invariant {1e3 * row['invariant']:8.2f} ms "
              f"{row['ratio']:.3f}", flush=True)

    def wait():
        if args.device == "cuda":
            torch.cuda.synchronize()

    def time_prompt(model, tokens):
        wait()
        start = time.perf_counter()
        with torch.inference_mode():
            model(tokens, logits_to_keep=1)
        wait()
        return time.perf_counter() - start

    def time_kernels(model, batch):
        """A token of a batch, as a CUDA graph: what the host takes is left out."""
        tokens = torch.ones(batch, args.keys, dtype=torch.long, device=args.device)
        cache = transformers.DynamicCache(config=model.config)
        with torch.inference_mode():
            model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)

            def step():
                held = copy.copy(cache)
                held.layers = [copy.copy(layer) for layer in cache.layers]
                return model(tokens[:, :1], past_key_values=held, use_cache=True)

            step()
            wait()
            if args.device == "cpu":
                start = time.perf_counter()
                step()
                return time.perf_counter() - start
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            graph.replay()
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            for _ in range(5):
                graph.replay()
            events[1].record()
            wait()
            return 1e-3 * events[0].elapsed_time(events[1]) / 5

    for length in args.prompts:
        tokens = torch.arange(length, device=args.device)[None] % 400 + 3
        take_turns(f"prompt of {length}", 1, lambda model, tokens=tokens: time_prompt(model, tokens))
    for batch in args.batches:
        take_turns(f"token, {args.keys} keys", batch, lambda model, batch=batch: time_kernels(model, batch))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=["llama", "qwen", "gemma"])
    parser.add_argument("--triples", type=int, default=3400, help="of each model")
    parser.add_argument("--layers", type=int, default=8, help="of Llama 3 8B's 32 for times")
    parser.add_argument("--prompts", nargs="*", type=int, default=[1024, 8192])
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 32, 64])
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    record, wrong = {}, 0
    for name in args.models:
        record[name] = check(name, args)
        for kind, (count, differ) in record[name].items():
            print(f"{name:6} {kind:20} {count:6} triples {differ:5} differ", flush=True)
            wrong += differ
    print(f"{sum(count for found in record.values() for count, _ in found.values())} triples, {wrong} differ", flush=True)
    record["times"] = measure(args) if args.prompts or args.batches else []
    if args.out:
        args.out.write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
