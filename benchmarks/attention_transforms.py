"""What smooth keys and rotations leave of the error of attention in E4M3, beside f64: of the result, and the largest of its
gradients. Data has what they are for, and what they are not for. On a GPU also what they take.

usage: attention_transforms.py [--positions N] [--device cuda|cpu] [--seed N] [--times] [--out FILE]
"""

import argparse
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

import fp8.torch
from timing import capture, repeat, show_machine, write_record

HEADS, HEADS_OF_K = 4, 2
WAYS = {"none": {}, "smooth_k": {"smooth_k": True}, "hadamard": {"hadamard": True},
        "both": {"smooth_k": True, "hadamard": True}}
# Batches, positions, heads, heads of keys, columns.
TIMED = [(1, 8192, 32, 8, 128), (4, 4096, 32, 8, 128), (1, 16384, 16, 16, 64)]
ROUNDS, CALLS = 7, 10


def make_biased(q, k, v):
    """Channels of keys have an offset each, which a bias or a norm gives them: of 1 in the median, of 10 in some."""
    return q, k + torch.randn_like(k[:1, :, :1]) * torch.exp(1.5 * torch.randn_like(k[:1, :, :1])), v


def make_shared(q, k, v):
    """The same channels are large in queries and keys."""
    for x in (q, k):
        x[..., 5::32] *= 6
    return q, k, v


def make_crossed(q, k, v):
    """One channel of keys is large, and small in queries; another one the other way round."""
    k[..., 5] *= 30
    q[..., 5] *= 0.05
    q[..., 9] *= 30
    k[..., 9] *= 0.05
    return q, k, v


def make_entries(q, k, v):
    """One number of a thousand is ten times as large, as FlashAttention-3's paper has it."""
    return *(x + 10 * torch.randn_like(x) * (torch.rand_like(x) < 1e-3) for x in (q, k)), v


def make_first(q, k, v):
    """The first key is large in one channel, as of models whose first token takes what no other is given."""
    k[:, :, 0, 3] = 200
    q[..., 3] *= 0.1
    return q, k, v


DATA = {"random": lambda *x: x, "biased": make_biased, "shared": make_shared, "entries": make_entries,
        "crossed": make_crossed, "first": make_first}


def get_error(x, expected):
    return ((x.double() - expected).norm() / expected.norm()).item()


def find_errors(kind, columns, positions, device):
    """The error of the result and the largest one of a gradient, for each way."""
    given = (torch.randn(2, heads, positions, columns, device=device) for heads in (HEADS, HEADS_OF_K, HEADS_OF_K))
    data = [x.bfloat16().requires_grad_() for x in DATA[kind](*given)]
    grad = torch.randn(2, HEADS, positions, columns, device=device)
    expected = F.scaled_dot_product_attention(*(x.double() for x in data), is_causal=True, enable_gqa=True)
    gradients = torch.autograd.grad(expected, data, grad.double())
    errors = {}
    for name, options in WAYS.items():
        y = fp8.torch.scaled_dot_product_attention(*data, is_causal=True, format="e4m3", **options)
        found = torch.autograd.grad(y, data, grad.to(y.dtype))
        errors[name] = get_error(y, expected), max(get_error(a, b) for a, b in zip(found, gradients))
    return errors


def measure(graphs):
    """The median of each, in milliseconds; all take turns."""
    times = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / CALLS)
    return {name: sorted(each)[ROUNDS // 2] for name, each in times.items()}


def find_times(batches, positions, heads, heads_of_k, columns):
    """Milliseconds of both directions, causal, in bf16 and in E4M3 with delayed scales."""
    data = [torch.randn(batches, positions, count, columns, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
            .requires_grad_() for count in (heads, heads_of_k, heads_of_k)]
    grad = torch.randn_like(data[0])
    scales = {name: fp8.torch.AttentionScales(fp8.DelayedScaling(
        fp8_dpa=True, **{f"dpa_{key}": True for key in options})) for name, options in WAYS.items()}
    calls = {"bf16": {}, **{name: {"scales": each} for name, each in scales.items()}}

    def make(options, trains):
        def call():
            y = fp8.torch.scaled_dot_product_attention(*data, is_causal=True, **options)
            return torch.autograd.grad(y, data, grad) if trains else y
        return call

    times = {}
    for direction in ("forward", "both"):
        made = {name: make(options, direction == "both") for name, options in calls.items()}
        for call in made.values():  # The first calls compile, and make what later ones have.
            repeat(call, 2)
        times[direction] = measure({name: capture(call, CALLS) for name, call in made.items()})
    return times


def main(arguments):
    torch.manual_seed(arguments.seed)
    record = {"errors": {}, "times": {}}
    for columns in (128, 64):
        print(f"{columns} columns, {arguments.positions} positions, causal")
        print(f"{'':8}" + "".join(f"{name:>20}" for name in WAYS))
        for kind in DATA:
            errors = find_errors(kind, columns, arguments.positions, arguments.device)
            record["errors"][f"{kind} {columns}"] = errors
            print(f"{kind:8}" + "".join(f"{a:12.4f}{b:8.4f}" for a, b in errors.values()), flush=True)
    for sizes in TIMED if arguments.times else ():
        times = record["times"][str(sizes)] = find_times(*sizes)
        for direction, each in times.items():
            print(*sizes, direction, *(f"{name} {ms:.3f} ms" for name, ms in each.items()), flush=True)
    if arguments.out:
        write_record(arguments.out, **record)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=512)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=2029)
    parser.add_argument("--times", action="store_true", help="also what they take, on a GPU")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if torch.cuda.is_available():
        show_machine()
    sys.exit(main(options))
