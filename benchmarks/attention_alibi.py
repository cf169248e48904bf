"""ALiBi, causal, as a mask of slopes times the numbers of keys, batches x heads x 1 x keys, beside flex_attention, compiled, which
computes it of both positions, and PyTorch's function with a mask of all queries and keys: errors and microseconds of a forward,
all in turn.

usage: attention_alibi.py [--rounds N] --out FILE
"""

import argparse
import json
import statistics

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fp8.torch

SHAPES = ((1, 32, 8192, 128), (2, 16, 8192, 64))


def time_calls(call, count=10):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / count * 1000


def make_contenders(batch, heads, positions, dim):
    q, k, v = (torch.randn(batch, heads, positions, dim, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1, device="cuda") / heads)
    numbers = torch.arange(positions, device="cuda")
    of_keys = slopes[None, :, None, None] * (numbers - positions + 1)
    whole = (slopes[None, :, None, None] * (numbers - numbers[:, None])).masked_fill(numbers > numbers[:, None], -torch.inf)
    narrow = whole.bfloat16()

    def score(score, b, h, i, j):
        return score + slopes[h] * (j - i)

    block = create_block_mask(lambda b, h, i, j: i >= j, None, None, positions, positions)
    flex = torch.compile(flex_attention)
    contenders = {
        "ours": lambda: fp8.torch.scaled_dot_product_attention(q, k, v, of_keys, is_causal=True),
        "ours_e4m3": lambda: fp8.torch.scaled_dot_product_attention(q, k, v, of_keys, is_causal=True, format="e4m3"),
        "ours_without": lambda: fp8.torch.scaled_dot_product_attention(q, k, v, is_causal=True),
        "flex": lambda: flex(q, k, v, score_mod=score, block_mask=block),
        "torch_mask": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, narrow)}
    heads_of_one = [x[:, :4].float() for x in (q, k, v)]
    scores = heads_of_one[0] @ heads_of_one[1].mT * dim ** -0.5 + whole[:, :4]
    return contenders, torch.softmax(scores, -1) @ heads_of_one[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for shape in SHAPES:
        with torch.no_grad():
            contenders, expected = make_contenders(*shape)
            errors = {name: ((call()[:, :4].float() - expected).norm() / expected.norm()).item()
                      for name, call in contenders.items() if name != "ours_without"}
            times = {name: [] for name in contenders}
            for round_ in range(args.rounds):
                for name in list(contenders)[:: 1 if round_ % 2 else -1]:
                    time_calls(contenders[name], 2)
                    times[name].append(time_calls(contenders[name]))
        rows.append({"shape": shape, "errors": errors,
                     "us": {name: round(statistics.median(found), 1) for name, found in times.items()}})
        print(rows[-1], flush=True)
    with open(args.out, "w") as file:
        json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
