"""Whether a query's bits depend on the keys that it sees alone in invariant attention (docs/Attention.md), and what that costs.

A triple is a number of keys, the place of a query, and the batch, padding and room that it is decoded with: its bits are
beside those of a prompt that ends there. `make` compiles programs for an H200, with the heads of Llama 3 8B and others, and
`run` needs PyTorch, a GPU and no compiler.

usage: invariance_attention.py make DIR [--build-dir build]
       invariance_attention.py run DIR [--triples N] [--rounds N] [--out FILE]
"""

import argparse
import random
import sys
import time
from pathlib import Path

SHAPES = {"d128": (32, 8, 128), "d64": (8, 2, 64), "d256": (4, 4, 256)}
QUERIES, MOST_KEYS, MOST_BATCH = 512, 9000, 64
# The kinds of programs: operands beside Q, K and V, whether there is one query, and what the operation says.
KINDS = {"prompt": ((), False, "window = [*, 0] bottom_right"),
         "padded": (("key_starts", "key_ranges"), False, ""),
         "decode": (("key_lengths", "key_starts"), True, "window = [*, 0] bottom_right"),
         "masked": (("mask", "key_lengths", "key_starts"), True, "")}
PROMPTS = [(1, 1024), (1, 2048), (1, 8192), (4, 2048)]
DECODED = [(batch, keys) for batch in (1, 8, 64) for keys in (512, 2048, 8192)]


def write(kind, heads, heads_of_k, dim):
    told, is_one, attributes = KINDS[kind]
    queries = 1 if is_one else "?"
    kinds = {"key_lengths": "tensor<?xi32>", "key_starts": "tensor<?xi32>", "key_ranges": f"tensor<?x{queries}x2xi32>",
             "mask": f"tensor<?x1x{queries}x?xi1>"}
    types = [f"tensor<?x{heads}x{queries}x{dim}xbf16>", *[f"tensor<?x{heads_of_k}x?x{dim}xbf16>"] * 2]
    arguments = ", ".join([f"%{name}: {type_}" for name, type_ in zip("qkv", types)] + [f"%{name}: {kinds[name]}" for name in told])
    given = "".join(f" {name}(%{name} : {kinds[name]})" for name in told)
    return (f"func.func @main({arguments}) -> {types[0]} {{\n  %o = fp8.attention %q, %k, %v{given} scale = {dim ** -0.5:e} "
            f"{attributes} layout = bhsd : {', '.join(types)} -> {types[0]}\n  return %o : {types[0]}\n}}\n")


def make(args):
    from programs import compile_program, copy_libraries

    args.folder.mkdir(parents=True, exist_ok=True)
    for shape, sizes in SHAPES.items():
        for kind in KINDS:
            source = args.folder / "source.mlir"
            source.write_text(write(kind, *sizes))
            for mode in ("invariant", "free"):
                compile_program(args.build_dir, source, args.folder / f"{shape}_{kind}_{mode}.so", "--target=sm_90a",
                                *(["--invariant"] if mode == "invariant" else []))
            source.unlink()
    copy_libraries(args.build_dir, args.folder)
    return 0


class Programs:
    """Those of heads of a size, by kind."""

    def __init__(self, gpu, folder, shape, mode):
        from programs import Program

        self.gpu = gpu
        self.functions = {kind: Program(gpu.library, folder / f"{shape}_{kind}_{mode}.so").functions["main"] for kind in KINDS}

    def prepare(self, kind, *values):
        from device import Call

        return Call(self.gpu, self.functions[kind], [value.contiguous() for value in values])

    def call(self, kind, *values):
        return self.prepare(kind, *values).read()[0]


def draw(rng, shape, keys, batch=1, queries=None):
    import torch

    heads, heads_of_k, dim = SHAPES[shape]
    generator = torch.Generator("cuda").manual_seed(rng.randrange(1 << 30))
    sizes = (heads, queries or keys), (heads_of_k, keys), (heads_of_k, keys)
    return [torch.randn(batch, *size, dim, generator=generator, device="cuda").mul_(1.5).bfloat16() for size in sizes]


def check_sequence(programs, rng, shape):
    """Triples of one sequence, and how many of them differ."""
    import torch

    keys = max(1, int(2 ** rng.uniform(3, 13.1)))
    queries = min(keys, QUERIES)
    q, k, v = draw(rng, shape, keys, queries=queries)
    prompt = programs.call("prompt", q, k, v)[0]
    first = keys - queries
    start = rng.randrange(300)
    number = torch.arange(first, keys, dtype=torch.int32, device="cuda")
    ranges = torch.stack([torch.full_like(number, start), number + start + 1], -1)[None]
    pad = [torch.cat([torch.full_like(x[:, :, :1], 3.0).expand(-1, -1, start, -1), x], 2) for x in (k, v)]
    starts = torch.tensor([start], dtype=torch.int32, device="cuda")
    padded = programs.call("padded", q, *pad, starts, ranges)[0]
    differ = int((padded != prompt).any(-1).any(0).sum())
    batch = rng.randint(1, MOST_BATCH)
    places = [rng.randrange(first, keys) for _ in range(batch)]
    starts = [rng.randrange(200) if rng.random() < 0.5 else 0 for _ in places]
    size = max(place + 1 + begin for place, begin in zip(places, starts)) + rng.randrange(100)
    cache = [torch.full((batch, x.shape[1], size, x.shape[3]), 3.0, dtype=x.dtype, device="cuda") for x in (k, v)]
    mask = torch.zeros(batch, 1, 1, size, dtype=torch.uint8, device="cuda")
    for b, (place, begin) in enumerate(zip(places, starts)):
        for whole, x in zip(cache, (k, v)):
            whole[b, :, begin:begin + place + 1] = x[0, :, :place + 1]
        mask[b, 0, 0, begin:begin + place + 1] = 1
    one = torch.stack([q[0, :, place - first] for place in places])[:, :, None]
    lengths = torch.tensor([place + 1 + begin for place, begin in zip(places, starts)], dtype=torch.int32, device="cuda")
    begins = torch.tensor(starts, dtype=torch.int32, device="cuda")
    expected = torch.stack([prompt[:, place - first] for place in places])
    for kind, told in (("decode", (lengths, begins)), ("masked", (mask, lengths, begins))):
        y = programs.call(kind, one, *cache, *told)[:, :, 0]
        differ += int((y != expected).flatten(1).any(1).sum())
    return queries + 2 * batch, differ


def measure_costs(gpu, args):
    """Microseconds with the option and without."""
    import torch
    from timing import measure

    rng, both = random.Random(3), {mode: Programs(gpu, args.folder, "d128", mode) for mode in ("free", "invariant")}
    rows = []
    for kind, cases in (("prompt", PROMPTS), ("decode", DECODED)):
        for batch, keys in cases:
            values = draw(rng, "d128", keys, batch, 1 if kind == "decode" else None)
            if kind == "decode":
                values += [torch.full((batch,), keys, dtype=torch.int32, device="cuda"),
                           torch.zeros(batch, dtype=torch.int32, device="cuda")]
            calls = {mode: programs.prepare(kind, *values) for mode, programs in both.items()}
            times = measure(calls, args.rounds, 0.05)
            found = {mode: 1e3 * times[mode]["ms"] for mode in calls if "ms" in times[mode]}
            rows.append({"kind": kind, "batch": batch, "keys": keys, **found})
            ratio = found["invariant"] / found["free"] if len(found) == 2 else float("nan")
            print(f"{kind:8} batch {batch:3} keys {keys:5} " + " ".join(f"{mode} {us:8.1f} us" for mode, us in found.items())
                  + f" {ratio:.3f}", flush=True)
            del values, calls
    return rows


def run(args):
    from device import Gpu
    from programs import open_library
    from timing import show_machine, write_record

    show_machine()
    gpu = Gpu(open_library(None, args.folder.absolute()))
    record, total, wrong = {}, 0, 0
    for mode in ("invariant", "free"):
        rng, start = random.Random(args.seed), time.monotonic()
        for shape in SHAPES:
            programs, count, differ = Programs(gpu, args.folder, shape, mode), 0, 0
            while count < (args.triples if mode == "invariant" else 600) / len(SHAPES):
                more, bad = check_sequence(programs, rng, shape)
                count, differ = count + more, differ + bad
            record[f"{shape} {mode}"] = {"triples": count, "differ": differ}
            total, wrong = total + count * (mode == "invariant"), wrong + differ * (mode == "invariant")
            print(f"{shape} {mode:10} {count} triples {differ} differ, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{total} triples, {wrong} differ", flush=True)
    rows = measure_costs(gpu, args)
    if args.out:
        write_record(args.out, invariance=record, costs=rows)
    return int(bool(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (make, run):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        command.add_argument("--build-dir", type=Path, default=Path("build"))
        command.add_argument("--triples", type=int, default=10000)
        command.add_argument("--rounds", type=int, default=6)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--out", type=Path)
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
