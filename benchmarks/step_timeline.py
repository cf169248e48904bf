"""Where the time of a training step with AdamW goes: its kernels by what they are for, and the idle time between them.

Ways and models are those of optimizers.py. Each way is a process of its own: all compile side by side, then steps, as CUDA
graphs, take turns, without pause, as a model that trains. Then PyTorch's profiler has the kernels of some of such replays: of each
place in the graph the median. What our kernels do behind the last product of matrices is the optimizer's. TFLOP/s are of all products of a layer together. Needs a GPU.

usage: step_timeline.py [--case layer] [--ways GLOBS] [--seconds N] [--kernels] [--out FILE]
"""

import argparse
import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

import optimizers
import torch
import turns
from timing import describe_machine, seconds, write_record

ROUNDS, REPLAYS, PROFILED, KEPT = 5, 8, 12, 4
WAYS = "bf16;delayed fused;delayed, fp8 moments;backend *"
CASES = {"layer": (optimizers.Layer, optimizers.TOKENS, optimizers.WIDTH), **{
    f"mlp {width} x {tokens}": (lambda width=width: optimizers.make_mlp(width, 4 * width), tokens, width)
    for width, tokens in optimizers.GRID},
    "small": (lambda: optimizers.make_mlp(*optimizers.SMALL[1:]), optimizers.SMALL[0], optimizers.SMALL[1])}
# What kernels are for, by their names.
INDUCTOR, CASTS, OPTIMIZER = "activations, norms, residuals", "casts and what is fused with them", "optimizer, scales"
KINDS = ((INDUCTOR, r"^triton"), ("products", r"^fp8_matmul|nvjet|gemm|cutlass"), ("attention", r"attention|sdpa|flash|fmha"),
         (OPTIMIZER, r"multi_tensor"), ("copies", r"^Mem|copy_kernel"), (CASTS, r"^fp8_"), ("others", r""))


def find_kind(name):
    return next(kind for kind, pattern in KINDS if re.search(pattern, name, re.IGNORECASE))


def profile(graph):
    """Kernels of one replay, (name, begin, us), of each place the median over some in a row."""
    from torch.profiler import ProfilerActivity
    for _ in range(REPLAYS):
        graph.replay()
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(PROFILED):
            graph.replay()
        torch.cuda.synchronize()
    events = sorted((event.time_range.start, event.time_range.end, event.name) for event in profiler.events()
                    if event.device_type == torch.autograd.DeviceType.CUDA and event.time_range.end > event.time_range.start)
    count, rest = divmod(len(events), PROFILED)
    if rest:
        raise ValueError(f"expected as many kernels in each replay, but got {len(events)} of {PROFILED}")
    runs = [events[i * count:(i + 1) * count] for i in range(PROFILED)][-KEPT:]
    return [(same[0][2], statistics.median(begin - run[0][0] for (begin, _, _), run in zip(same, runs)),
             statistics.median(end - begin for begin, end, _ in same)) for same in zip(*runs)]


def divide(kernels):
    """Each kernel with its kind and its time, in order; and the time in which none runs. What two run in, as one that waits for the
    end of the other, is the first one's."""
    ordered, found, idle, behind = sorted(kernels, key=lambda kernel: kernel[1]), [], 0, 0
    last = max((i for i, (name, _, _) in enumerate(ordered) if find_kind(name) == "products"), default=-1)
    for i, (name, begin, us) in enumerate(ordered):
        kind, end = find_kind(name), begin + us
        idle += max(0, begin - behind)
        found.append((OPTIMIZER if i > last and kind == CASTS else kind, name, max(0, end - max(begin, behind))))
        behind = max(behind, end)
    return found, idle


def run_way(way, case, wait):
    torch._functorch.config.enable_autograd_cache = False
    make, tokens, width = CASES[case]
    torch.manual_seed(0)
    model = make().to("cuda", torch.bfloat16)
    x = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
    target = torch.randn_like(x) / x.numel() ** 0.5
    step, _objects = optimizers.make_step(model, x, target, *optimizers.WAYS[way])
    graph = optimizers.capture(step)
    times = []
    for _ in range(ROUNDS):
        wait()
        graph.replay()
        times.append(1e6 * seconds(lambda: [graph.replay() for _ in range(REPLAYS)]) / REPLAYS)
    wait()
    kernels, idle = divide(profile(graph))
    flops = 6 * tokens * sum(value.numel() for value in model.parameters() if value.ndim == 2)
    return {"us": statistics.median(times), "idle us": idle, "flops": flops,
            "kernels": [(kind, name[:160], round(us, 2)) for kind, name, us in kernels]}


def show(case, records, with_kernels):
    """A row for each kind, a column for each way; then kernels by name."""
    base = next((record["us"] for way, record in records.items() if way == "bf16" and "us" in record), None)
    ways = {way: record for way, record in records.items() if "kernels" in record}
    sums = {way: Counter() for way in ways}
    for way, record in ways.items():
        for kind, _, us in record["kernels"]:
            sums[way][kind] += us
    print(f"{case}, us of a replay\n{'':38}" + "".join(f"{way:>26}" for way in ways))
    for kind in dict.fromkeys(kind for each in sums.values() for kind, _ in each.most_common()):
        print(f"{kind:38}" + "".join(f"{sums[way][kind]:26.0f}" for way in ways))
    rows = {"idle": lambda record: f"{record['idle us']:.0f}", "kernels": lambda record: f"{len(record['kernels'])}",
            "replays without pause": lambda record: f"{record['us']:.0f}",
            "of bf16's": lambda record: f"{record['us'] / base:.3f}" if base else ""}
    for name, write in rows.items():
        print(f"{name:38}" + "".join(f"{write(record):>26}" for record in ways.values()))
    print(f"{'TFLOP/s of products':38}" + "".join(f"{ways[way]['flops'] / sums[way]['products'] * 1e-6:26.0f}" for way in ways), flush=True)
    for way, record in ways.items() if with_kernels else ():
        found = defaultdict(list)
        for kind, name, us in record["kernels"]:
            found[kind, name].append(us)
        print(f"\n{way}")
        for (kind, name), times in sorted(found.items(), key=lambda item: -sum(item[1])):
            print(f"{sum(times):9.1f} us {len(times):3}  {kind[:12]:13}{name[:110]}")
    for way, record in records.items():
        if "error" in record:
            print(f"{way}: {record['error'][:300]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="layer", choices=list(CASES))
    parser.add_argument("--ways", default=WAYS, help="globs of names, with semicolons")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    ways = optimizers.choose(optimizers.WAYS, args.ways)
    machine, records = describe_machine(), {}
    print(machine["gpu"], machine["driver"], machine["torch"], machine["date"], flush=True)
    for found in turns.run(run_way, [(way, args.case) for way in ways], len(ways), args.seconds, args.seconds):
        records.update({way: record for (way, _), record in found})
    write_record(args.out, case=args.case, ways=records)
    show(args.case, records, args.kernels)
    return 0 if all("us" in record for record in records.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
