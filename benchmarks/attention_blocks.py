"""Attention in E4M3 with factors for blocks of positions, beside one factor for the tensor: the error of the result beside f64, on
data where positions are alike and where they are not, and with --times what the kernel takes, of codes that there are.

usage: attention_blocks.py [--device cuda|cpu] [--times] [--seed N] [--rounds N] [--out FILE]
"""

import argparse
import random
import sys
from pathlib import Path

import torch

import fp8.torch
from timing import get_ratio, measure, show_machine, write_record

KINDS = "random", "positions", "first key", "quiet half"
BLOCKS = None, 128, 64


def make_data(kind, positions, columns, device, seed=0):
    generator = torch.Generator(device).manual_seed(seed)
    q, k, v = (torch.randn(1, heads, positions, columns, device=device, generator=generator) for heads in (8, 2, 2))
    if kind == "positions":  # Each one has its own size.
        for x in (q, k, v):
            x *= torch.exp(1.5 * torch.randn(1, x.shape[1], positions, 1, device=device, generator=generator))
        k /= 8
    elif kind == "first key":
        k[:, :, 0], v[:, :, 0] = 30 * k[:, :, 0], 3e4 * v[:, :, 0]
    elif kind == "quiet half":  # Values that most queries see alone.
        v[:, :, : positions // 2] *= 1e5
    return [x.bfloat16() for x in (q, k, v)]


def find_errors(device, positions, columns):
    """A row for each kind of data: the error of each way, of queries that see no other half."""
    rows = []
    window = (positions // 4 - 1, 0)
    for kind in KINDS:
        q, k, v = make_data(kind, positions, columns, device)
        expected = fp8.torch.scaled_dot_product_attention(*(x.float() for x in (q, k, v)), window=window)[:, :, -positions // 4:].double()
        row = {"kind": kind, "columns": columns}
        for block in BLOCKS:
            y = fp8.torch.scaled_dot_product_attention(q, k, v, window=window, format="e4m3", block=block)[:, :, -positions // 4:]
            row[str(block)] = ((y.double() - expected).norm() / expected.norm()).item()
        rows.append(row)
    return rows


def write(columns, heads, heads_of_k, accumulate, window, blocks):
    """An attention of codes with factors for blocks of so many positions of Q, K and V, 0 for the tensor."""
    arguments, made, types = [], "", []
    for name, count, block in zip("qkv", (heads, heads_of_k, heads_of_k), blocks):
        codes = f"tensor<?x?x{count}x{columns}xf8E4M3FN>"
        factors = f"tensor<?x?x{count}x1xf32>" if block else "tensor<1x1x1x1xf32>"
        extents = f"1, {block}, 1, *" if block else "*, *, *, *"
        scaled = f"!fp8.scaled<?x?x{count}x{columns}xf8E4M3FN, block = [{extents}], scale = f32>"
        arguments += [f"%{name}: {codes}", f"%{name}_factors: {factors}"]
        made += f"  %{name}_scaled = fp8.assemble %{name}, %{name}_factors : {codes}, {factors} -> {scaled}\n"
        types.append(scaled)
    result = f"tensor<?x?x{heads}x{columns}xbf16>"
    return (f"func.func @attention({', '.join(arguments)}) -> {result} {{\n{made}"
            f"  %o = fp8.attention %q_scaled, %k_scaled, %v_scaled scale = {columns ** -0.5:e}{window} accumulate = {accumulate} : "
            f"{', '.join(types)} -> {result}\n  return %o : {result}\n}}\n")


WAYS = {"promote": ("promote", (0, 0, 0)), "promote, blocks of 128": ("promote", (128, 128, 128)), "fast": ("fast", (0, 0, 0)),
        "fast, blocks of 128": ("fast", (128, 128, 0)), "fast, blocks of 192": ("fast", (192, 192, 0))}


def make_calls(batch, positions, columns, window):
    heads, heads_of_k, calls, results = 32, 8, {}, {}
    for way, (accumulate, blocks) in WAYS.items():
        function = fp8.compile(write(columns, heads, heads_of_k, accumulate, window, blocks), target="auto").functions["attention"]
        generator, given = torch.Generator("cuda").manual_seed(1), []
        for count, block in zip((heads, heads_of_k, heads_of_k), blocks):
            x = torch.randn(batch, positions, count, columns, device="cuda", generator=generator)
            given.append((x / 0.01).clamp(-448, 448).to(torch.float8_e4m3fn))
            sizes = (batch, -(-positions // block), count, 1) if block else (1, 1, 1, 1)
            given.append(torch.full(sizes, 0.01, device="cuda"))
        calls[way] = lambda function=function, given=given: function(*given)
        results[way] = calls[way]().double()
    for way in calls:
        reference = results[way.partition(",")[0]]
        error = ((results[way] - reference).norm() / reference.norm()).item()
        # With equal factors only the order of roundings differs.
        if error > 0.01:
            raise SystemExit(f"expected {way} to compute what one factor does, but it is off by {error}")
    return calls


def time_kernels(seed, rounds):
    rng, rows = random.Random(seed), []
    for columns in 128, 64:
        for window in "", " window = [*, 0]":
            for batch in 4, 1:
                positions = rng.randrange(2000, 5000) * (4 if batch == 1 else 1)
                measured = measure(make_calls(batch, positions, columns, window), rounds)
                work = 4 * batch * 32 * positions ** 2 * columns * (0.5 if window else 1)
                row = {"columns": columns, "causal": bool(window), "batch": batch, "positions": positions}
                print(f"{columns} columns, {'causal' if window else 'all keys'}, {batch} x {positions}", flush=True)
                for way, found in measured.items():
                    ratio = get_ratio(found, measured[way.partition(",")[0]])
                    row[way] = found
                    print(f"  {way:>24} {found['ms']:8.3f} ms {1e-9 * work / found['ms']:7.0f} TFLOP/s {ratio:6.3f}", flush=True)
                rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--positions", type=int, default=2048)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--seed", type=int, default=2037)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.device == "cuda":
        show_machine()
    print(f"{'data':>12}{'columns':>9}" + "".join(f"{'blocks of ' + str(block) if block else 'one factor':>16}" for block in BLOCKS))
    errors = []
    for columns in 128, 64:
        for row in find_errors(args.device, args.positions, columns):
            errors.append(row)
            print(f"{row['kind']:>12}{columns:>9}" + "".join(f"{row[str(block)]:>16.4f}" for block in BLOCKS), flush=True)
    times = time_kernels(args.seed, args.rounds) if args.times else []
    if args.device == "cuda":
        write_record(args.out, errors=errors, times=times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
