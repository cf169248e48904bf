"""A training step, forward and backward, of a narrow Llama of transformers in eager mode, whose kernels are so short that the host decides:
milliseconds of a step, of the host alone and of the GPU alone (a CUDA graph of it), in bf16, with linear layers in FP8, and with
attention in FP8 as well. Ways alternate in rounds. With --profile the functions in which the host's time goes, of one way.

usage: host_steps.py [--layers 3] [--width 1024] [--tokens 2x512] [--ways WAY,...] [--rounds N] [--profile WAY] [--out FILE]
"""

import argparse
import copy
import cProfile
import pstats
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch

import fp8.torch
from timing import describe, show_machine, write_record

WAYS = "bf16", "linear", "dpa", "mha", "linear current", "dpa current"
CALLS, WARM_UP = 20, 5


def make_model(layers, width, device):
    import transformers
    config = transformers.LlamaConfig(
        hidden_size=width, intermediate_size=width * 11 // 4, num_hidden_layers=layers, num_attention_heads=width // 64,
        num_key_value_heads=max(1, width // 256), vocab_size=8192, use_cache=False, attn_implementation="sdpa")
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).to(device, torch.bfloat16)


def convert(model, way):
    kind, recipe = (*way.split(), "delayed")[:2]
    if kind == "bf16":
        return model
    options = {} if kind == "linear" else {f"fp8_{kind}": True}
    recipe = {"delayed": fp8.DelayedScaling, "current": fp8.Float8CurrentScaling}[recipe](**options)
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, only_faster=False)


class Step:
    def __init__(self, model, way, ids):
        self.model, self.ids, self.graph, self.failure = convert(copy.deepcopy(model), way), ids, None, ""

    def __call__(self):
        for parameter in self.model.parameters():
            parameter.grad = None
        self.loss = self.model(input_ids=self.ids, labels=self.ids).loss
        self.loss.backward()

    def capture(self):
        """A failure is kept: a model may not be one that a graph can have."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                self()
            torch.cuda.current_stream().wait_stream(stream)
            self.loss, graph = None, torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self()
            self.graph = graph
        except Exception as error:
            self.failure = describe(error)


def measure(call):
    """Milliseconds of a call, and of the host alone."""
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    host = time.perf_counter() - start
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / CALLS, 1e3 * host / CALLS


def profile(step, path):
    """The functions with the most time of their own, and those that call most, of steps in one thread."""
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(CALLS):
        step()
    profiler.disable()
    with open(path, "w") if path else sys.stdout as file:
        stats = pstats.Stats(profiler, stream=file)
        stats.sort_stats("tottime").print_stats(60)
        stats.sort_stats("cumtime").print_stats(80)


def compare(model, ways, ids, rounds):
    steps = {way: Step(model, way, ids) for way in ways}
    for step in steps.values():
        step(), step()
    times = {way: [] for way in ways}
    for _ in range(rounds):
        for way, step in steps.items():
            times[way].append(measure(step))
    replays = {way: [] for way in ways}
    for step in steps.values():
        step.capture()
    for _ in range(rounds):
        for way, step in steps.items():
            if step.graph is not None:
                replays[way].append(measure(step.graph.replay)[0])
    rows = []
    print(f"{'way':>15}{'ms':>8}{'worst':>8}{'host':>8}{'graph':>8}{'/bf16':>8}")
    for way, found in times.items():
        ms, worst, host = (statistics.median(t for t, _ in found), max(t for t, _ in found),
                           statistics.median(t for _, t in found))
        graph = statistics.median(replays[way]) if replays[way] else float("nan")
        rows.append({"way": way, "ms": ms, "worst_ms": worst, "host_ms": host, "graph_ms": graph})
        ratio = ms / rows[0]["ms"]
        print(f"{way:>15}{ms:>8.2f}{worst:>8.2f}{host:>8.2f}{graph:>8.2f}{ratio:>8.2f}  {steps[way].failure}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--tokens", default="2x512")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", choices=WAYS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    batch, length = map(int, args.tokens.split("x"))
    model = make_model(args.layers, args.width, args.device)
    ids = torch.randint(0, 8192, (batch, length), device=args.device)
    if args.profile:
        torch.autograd.set_multithreading_enabled(False)
        return profile(Step(model, args.profile, ids), args.out)
    show_machine()
    rows = compare(model, args.ways.split(","), ids, args.rounds)
    write_record(args.out, rounds=args.rounds, rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
