"""fp8.torch.flex_attention, and PyTorch's by our backend of torch.compile, beside PyTorch's flex_attention, compiled:
ALiBi, a cap, packed sequences, a prefix, and biases of positions, forward, and forward and backward where the gradient has a kernel.
Milliseconds of calls, and how far results are from PyTorch's. Needs a GPU.

usage: flex.py [--rounds N] [--tokens N] [--only NAMES] [--turns FILE] [--out FILE]

torch.compile makes so many programs of one function and no more: give each case a process of its own. With --turns they compile
beside each other, and measure one after the other, when all have compiled.
"""

import argparse
import fcntl
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
            "backend": torch.compile(lambda q, k, v: flex_attention(q, k, v, score_mod, block_mask, enable_gqa=True),
                                     backend=fp8.torch.Backend(attention="fp8")),
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


def check_case(calls):
    """Errors by what is called; it compiles all."""
    errors = {}
    for what, each in calls.items():
        with torch.set_grad_enabled(what == "both"):
            results = {way: call() for way, call in each.items()}
            results = {way: y if what == "both" else [y] for way, y in results.items()}
            errors[what] = {way: get_error(y, results["flex"]) for way, y in results.items() if way != "flex"}
    return errors


def take_turn(file, alone):
    """Waits until nobody has the file for itself, or at all."""
    if file is not None:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=7936)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--turns", type=argparse.FileType("a"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    take_turn(options.turns, False)
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
        calls = dict(zip(("forward", "both") if trains else ("forward",), make_calls(score_mod, block_mask, tensors, grad)))
        row = {"case": name, "errors": check_case(calls)}
        rows.append(row)
        print(row, flush=True)
        take_turn(options.turns, True)
        for what, each in calls.items():
            with torch.set_grad_enabled(what == "both"):
                row[what] = measure(each, options.rounds)
            print(name, what, row[what], flush=True)
            write_record(options.out, rows=rows)
        is_right &= all(max(each["ours"], each["backend"]) <= MAX_ERROR for each in row["errors"].values())
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
