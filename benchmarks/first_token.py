"""How long a fresh process takes to its first tokens on a GPU: layers of Llama 3 8B, random weights in 8 bits.

One process quantizes, generates with a static cache by the backend "fp8", and writes a checkpoint with all
that was compiled; another, whose caches are empty, loads it and generates. Both say where the seconds
went: `first` is a call for one token, which nothing is compiled for but layers, and `compiled` one for
three, with PyTorch's compilers. The one of bf16 does what the first does. Needs a GPU, but for --small.

`--share` says whether what layers repeat is compiled once (share_layers of fp8.torch.Backend), else the default does.

usage: first_token.py [--ways NAMES] [--layers N] [--share yes|no] [--small] [--out FILE]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("bf16", "write", "read")


def run_child(way, directory, args):
    """One process: seconds by what they went to."""
    clock = [time.perf_counter()]
    found = {}

    def note(name):
        clock.append(time.perf_counter())
        found[name] = round(clock[-1] - clock[-2], 2)

    import torch
    import transformers
    if way != "bf16":
        import fp8.torch
    import generation
    note("imports")
    device = "cpu" if args.small else "cuda"
    if way == "read":
        model = fp8.torch.load_pretrained(directory, device=device)
    else:
        model = generation.make(args.small, args.layers)
        note("random weights")
        if way == "write":
            fp8.torch.quantize_for_inference(model, filter=["*", "!lm_head"])
    note("model")
    asked = {"share_layers": args.share == "yes", "triton.cudagraphs": True} if args.share and way != "bf16" else None
    config = transformers.CompileConfig(backend="inductor" if way == "bf16" else "fp8",
                                        mode=None if asked else "reduce-overhead", options=asked)
    config._compile_all_devices = args.small
    tokens = torch.arange(64, device=device)[None] % 400 + 3

    def generate(count):
        model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_new_tokens=count,
                       min_new_tokens=count, cache_implementation="static", compile_config=config).cpu()

    generate(1)
    note("first")
    generate(3)
    note("compiled")
    found["all"] = round(clock[-1] - clock[0], 2)
    # Those within others are in them.
    spent = {name: sum(times) for name, times in torch._dynamo.utils.compilation_time_metrics.items()}
    found["torch.compile"] = {name: round(time, 2) for name, time in spent.items() if time >= 0.2}
    counters = torch._dynamo.utils.counters["inductor"]
    found["graphs"] = [counters["fxgraph_cache_hit"], counters["fxgraph_cache_miss"]]
    if way == "write":
        fp8.torch.save_quantized(model, directory)
        found["programs"] = fp8.torch.save_programs(directory)
    print(json.dumps(found))


def start(way, directory, args):
    """A process with caches of its own, which are empty."""
    folders = {name: os.path.join(directory, f"{way}-{name}") for name in ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR")}
    command = [sys.executable, __file__, "--child", way, "--directory", directory, "--layers", str(args.layers)]
    command += [*(["--small"] if args.small else []), *(["--share", args.share] if args.share else [])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "XDG_DATA_HOME": directory, **folders})


def finish(process):
    out = process.communicate()[0]
    return json.loads(out.splitlines()[-1]) if process.returncode == 0 else {"error": process.returncode}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="in their order")
    parser.add_argument("--layers", type=int, default=8, help="of 32 that Llama 3 8B has")
    parser.add_argument("--share", choices=["yes", "no"])
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all numbers")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        run_child(args.child, args.directory, args)
        return 0
    records = {}
    with tempfile.TemporaryDirectory() as directory:
        for way in args.ways:
            records[way] = finish(start(way, directory, args))
            print(way, json.dumps(records[way]), flush=True)
            if args.out:
                args.out.write_text(json.dumps(records, indent=1) + "\n")
    return int(any("error" in record for record in records.values()))


if __name__ == "__main__":
    raise SystemExit(main())
