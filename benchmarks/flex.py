"""fp8.torch.flex_attention beside PyTorch's flex_attention, compiled: ALiBi, a cap, packed sequences, a prefix, and biases of
positions, forward, and forward and backward where the gradient has a kernel. Milliseconds of calls, and how far results are from PyTorch's. Needs a GPU.

usage: flex.py [--rounds N] [--tokens N] [--only NAMES] [--out FILE]
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fp8.torch
from timing import show_machine, write_record

HEADS, HEADS_OF_K, DIM, CALLS = 32, 8, 128, 5
MAX_ERROR = 0.02


def make_cases(tokens):
    """By name: functions over scores and masks, and whether it is trained."""
    slopes = 2.0 ** (-8 * torch.arange(1, HEADS + 1, device="cuda") / HEADS)
    # Lengths that nobody chose tiles by.
    documents = torch.zeros(tokens, dtype=torch.int32, device="cuda")
    documents[torch.randperm(tokens, device="cuda")[:23]] = 1
    documents = documents.cumsum(0)
    bias = torch.randn(HEADS, 2 * tokens, device="cuda")

    def causal(b, h, q, k):
        return q >= k

    return {
        "alibi": (lambda s, b, h, q, k: s + slopes[h] * (k - q), causal, False),
        "cap": (lambda s, b, h, q, k: 30 * torch.tanh(s / 30), causal, True),
        "documents": (None, lambda b, h, q, k: (documents[q] == documents[k]) & (q >= k), True),
        "prefix": (None, lambda b, h, q, k: (q >= k) | (k < tokens // 3), True),
        "positions": (lambda s, b, h, q, k: s + bias[h, q - k + tokens], causal, False)}


def make_calls(score_mod, block_mask, tensors, grad):
    """A call forward and one forward and backward, of each."""
    peer = torch.compile(flex_attention)
    leaves = [x.detach().requires_grad_() for x in tensors]
    ways = {"flex": lambda q, k, v: peer(q, k, v, score_mod, block_mask, enable_gqa=True),
            "ours": lambda q, k, v: fp8.torch.flex_attention(q, k, v, score_mod, block_mask, enable_gqa=True),
            "e4m3": lambda q, k, v: fp8.torch.flex_attention(q, k, v, score_mod, block_mask, enable_gqa=True, format="e4m3",
                                                             accumulate="fast")}

    def train(way):
        return torch.autograd.grad(way(*leaves), leaves, grad)

    return ({name: lambda way=way: way(*tensors) for name, way in ways.items()},
            {name: lambda way=way: train(way) for name, way in ways.items()})


def milliseconds(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / CALLS


def measure(calls, rounds):
    times = {name: [] for name in calls}
    for round_ in range(rounds):
        for name in list(calls)[:: 1 if round_ % 2 else -1]:
            times[name].append(milliseconds(calls[name]))
    return {name: round(statistics.median(found), 3) for name, found in times.items()}


def get_error(found, expected):
    return max(((x.float() - y.float()).norm() / y.float().norm()).item() for x, y in zip(found, expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=7936)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    show_machine()
    torch.manual_seed(3)
    tensors = [torch.randn(1, options.tokens, heads, DIM, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
               for heads in (HEADS, HEADS_OF_K, HEADS_OF_K, HEADS)]
    *tensors, grad = tensors
    rows, is_right = [], True
    for name, (score_mod, mask_mod, trains) in make_cases(options.tokens).items():
        if options.only and name not in options.only:
            continue
        block_mask = create_block_mask(mask_mod, None, None, options.tokens, options.tokens, device="cuda", _compile=True)
        forward, both = make_calls(score_mod, block_mask, tensors, grad)
        row = {"case": name, "errors": {}}
        with torch.no_grad():
            expected = [forward["flex"]()]
            row["errors"]["forward"] = {way: get_error([forward[way]()], expected) for way in ("ours", "e4m3")}
            row["forward"] = measure(forward, options.rounds)
        if trains:
            expected = both["flex"]()
            row["errors"]["gradients"] = {way: get_error(both[way](), expected) for way in ("ours", "e4m3")}
            row["both"] = measure(both, options.rounds)
        is_right &= all(each["ours"] <= MAX_ERROR for each in row["errors"].values())
        rows.append(row)
        print(row, flush=True)
        write_record(options.out, rows=rows)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
