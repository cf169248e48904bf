"""fp8.torch.scaled_dot_product_attention beside PyTorch's by cuDNN and FlashAttention, forward, and forward and backward, of
random batches and positions: TFLOP/s of graphs, where a causal one counts half, and errors against f32. In E4M3 quantizing Q, K and
V is in the time, and so is what the backward makes of their codes. Then the same bits of many runs, with
torch.use_deterministic_algorithms. Needs a GPU.

usage: attention_training.py [--seed N] [--count N] [--tokens N] [--runs N] [--only DIM] [--warm] [--out FILE]

--warm only compiles, so that families can be compiled beside each other.
"""

import argparse
import math
import random
import statistics
import sys
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import fp8.torch
from fp8.torch import attention_backward
from timing import capture, seconds, show_machine, write_record

# Columns, heads, heads of keys and values.
HEADS = [(128, 32, 8), (64, 16, 16), (256, 16, 4)]
PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
FAST = {"format": "e4m3", "accumulate": "fast"}
OURS = {"bf16": {}, "e4m3": {"format": "e4m3"}, "e4m3 fast": FAST}
ROUNDS, SAMPLE_S = 5, 0.012
# Shares of a norm.
TOLERANCE = {"cudnn": 0.02, "flash": 0.02, "bf16": 0.02, "e4m3": 0.15, "e4m3 fast": 0.15}


def make(family, causal, batch, positions):
    """q, k, v and the gradient of the result, as a model's projections leave them."""
    dim, heads, heads_of_k = family
    return [torch.randn(batch, positions, count, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
            for count in (heads, heads_of_k, heads_of_k, heads)]


def attend(name, q, k, v, causal):
    if name in OURS:
        return fp8.torch.scaled_dot_product_attention(q, k, v, is_causal=causal, **OURS[name])
    with sdpa_kernel(PEERS.get(name, SDPBackend.MATH)):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)


def make_calls(name, q, k, v, dy, causal):
    """A call forward, and one forward and backward."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]

    def train():
        y = attend(name, *leaves, causal)
        return (y.detach(), *torch.autograd.grad(y, leaves, dy))

    return {"forward": lambda: attend(name, q, k, v, causal), "both": train}


def find_errors(family, causal, positions):
    """The largest error of a result or a gradient, by name."""
    given = make(family, causal, 2, positions)
    expected = make_calls("math", *(x.float() for x in given), causal)["both"]()
    errors = {}
    for name in [*PEERS, *OURS]:
        found = make_calls(name, *given, causal)["both"]()
        errors[name] = max(((x.float() - y).norm() / y.norm()).item() for x, y in zip(found, expected))
    return errors


def measure(calls, flops):
    """Median TFLOP/s of graphs, in rounds of all that alternate."""
    count = max(1, int(SAMPLE_S * 5e14 / flops))
    graphs = {}
    for name, call in calls.items():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        stream.synchronize()
        graphs[name] = capture(call, count)
        graphs[name].replay()
    times = {name: [] for name in graphs}
    for round_ in range(ROUNDS):
        for name in list(graphs)[:: 1 if round_ % 2 else -1]:
            times[name].append(seconds(graphs[name].replay) / count)
    return {name: round(flops / statistics.median(each) * 1e-12, 1) for name, each in times.items()}


def count_bits(family, causal, name, runs):
    """How many different results so many runs have, of a forward and a backward."""
    torch.use_deterministic_algorithms(True)
    try:
        call = make_calls(name, *make(family, causal, 1, 2304), causal)["both"]
        first, differ = [x.clone() for x in call()], torch.zeros((), dtype=torch.int64, device="cuda")
        for _ in range(runs):
            others = [(x.view(torch.int16) != y.view(torch.int16)).any() for x, y in zip(call(), first)]
            differ += torch.stack(others).any()
        return differ.item()
    finally:
        torch.use_deterministic_algorithms(False)


def benchmark(family, causal, rng, options):
    dim, heads, _ = family
    for _ in range(options.count):
        positions = int(2 ** rng.uniform(11, math.log2(options.tokens)))
        batch = max(1, 16384 // positions)
        given = make(family, causal, batch, positions)
        row = {"dim": dim, "causal": causal, "batch": batch, "positions": positions}
        flops = 4 * batch * heads * positions ** 2 * dim / (2 if causal else 1)
        for what, share in (("forward", 1), ("both", 3.5)):
            calls = {name: make_calls(name, *given, causal)[what] for name in [*PEERS, *OURS]
                     if (name, dim) != ("e4m3", 256) and (what, name) != ("forward", "e4m3 speed")}
            row[what] = measure(calls, flops * share)
        print(row, flush=True)
        yield row


def warm(family, causal):
    for name in OURS:
        if (name, family[0]) != ("e4m3", 256):
            for call in make_calls(name, *make(family, causal, 1, 4608), causal).values():
                call()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", type=int)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    rng, families = random.Random(options.seed), [each for each in HEADS if options.only in (None, each[0])]
    kinds = [(family, causal) for family in families for causal in (True, False)]
    if options.warm:
        for kind in kinds:
            warm(*kind)
        return 0
    show_machine()
    errors, rows, bits = {}, [], {}
    for family, causal in kinds:
        key = f"d{family[0]} {'causal' if causal else 'full'}"
        if family[0] != 256:
            errors[key] = find_errors(family, causal, 777)
            print(key, {name: round(error, 4) for name, error in errors[key].items()}, flush=True)
        rows += benchmark(family, causal, rng, options)
        write_record(options.out, errors=errors, rows=rows, bits=bits)
    for family, causal in kinds:
        for name in ("bf16", "e4m3 fast") if family[0] != 256 else ():
            key = f"d{family[0]} {'causal' if causal else 'full'} {name}"
            bits[key] = count_bits(family, causal, name, options.runs)
            print(key, "runs with other bits:", bits[key], "of", options.runs, flush=True)
            write_record(options.out, errors=errors, rows=rows, bits=bits)
    print(attention_backward.explain())
    is_right = all(error <= TOLERANCE[name] for each in errors.values() for name, error in each.items())
    return 0 if is_right and not any(bits.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
