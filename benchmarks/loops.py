"""What no generated kernel takes, on a GPU beside a copy of the same bytes.

Random functions (loop_functions.py), each compiled for the GPU and for the CPU. With small extents
their results have to be the same bits. With large ones they are timed in a graph, and the share
is that of a device-to-device copy of the bytes that have to move, in the same run. PyTorch's own
operations compute the same, where it has them, and with `--inductor` what Inductor makes of these.
Each kind of function has its turn, so that `--seconds` ends a run after some of every kind.

usage: loops.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N] [--out FILE]
                [--seed N] [--count N] [--megabytes N] [--seconds N] [--inductor] [--no-check]

`--compile-only` makes programs in DIR, for a machine without the compiler; loop_checks.py compares
small ones with the CPU on the emulator.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from loop_functions import DTYPES, get_batches, make_function
from programs import (Program, compile_program, list_work, make_parser, make_programs,
                      open_library)

GOAL, LEAST = 0.6, 0.3
PEERS = ("torch", "inductor")


def get_functions(seeds, args, is_small):
    return [make_function(seed, is_small, args.megabytes << 20) for seed in seeds]


def compile_programs(folder, args):
    def compile_batch(seeds):
        work = {}
        for size in ("small", "big"):
            source = folder / f"{size}{seeds[0]}.mlir"
            source.write_text("".join(
                function.text for function in get_functions(seeds, args, size == "small")))
            options = ("--target=sm_90a", "--recipe=none")
            quiet = {"stderr": subprocess.DEVNULL}
            compile_program(args.build_dir, source, folder / f"{size}{seeds[0]}.so", *options, **quiet)
            if size == "small":
                compile_program(args.build_dir, source, folder / f"cpu{seeds[0]}.so", "--recipe=none", **quiet)
            else:
                work = list_work(args.build_dir, source, *options)
        return work

    work = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(compile_batch, get_batches(args.seed, args.count)):
            work.update(found)
    settings = {"seed": args.seed, "count": args.count, "megabytes": args.megabytes, "work": work}
    for left in (*folder.glob("*.mlir"), *folder.glob("*.h")):
        left.unlink()
    (folder / "loops.json").write_text(json.dumps(settings, indent=1) + "\n")


# ===----------------------------------------------------------------------===
# Times
# ===----------------------------------------------------------------------===


def make_tensors(function, torch, device):
    torch.manual_seed(len(function.text))
    return [torch.randint(0 if limit or element == "i1" else -3, limit or (2 if element == "i1" else 4), extents,
                          dtype=torch.int32, device=device).to(getattr(torch, DTYPES[element]))
            for extents, element, limit in function.arguments]


def check_one(function, gpu, host, programs, torch):
    from device import Call

    values = make_tensors(function, torch, "cpu")
    expected = Call(host, programs[1].functions[function.name], values).read()
    actual = Call(gpu, programs[0].functions[function.name], [value.cuda() for value in values]).read()
    torch.cuda.synchronize()
    return all(torch.equal(one, other.cpu()) for one, other in zip(expected, actual))


def measure_one(function, gpu, program, args, torch):
    from device import Call
    from timing import get_ratio, measure

    values = make_tensors(function, torch, "cuda")
    half = max(function.bytes // 2, 1)
    source = torch.empty(half, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    contenders = {"ours": Call(gpu, program.functions[function.name], values),
                  "copy": lambda: target.copy_(source)}
    if function.eager:
        contenders["torch"] = lambda: function.eager(torch, *values)
        if args.inductor:
            compiled = torch.compile(lambda *x: function.eager(torch, *x), dynamic=False)
            contenders["inductor"] = lambda: compiled(*values)
    times = measure(contenders, args.rounds)
    return {"function": function.name, "kind": function.kind, "bytes": function.bytes, "times": times,
            "of_copy": get_ratio(times["copy"], times["ours"]),
            **{f"of_{peer}": get_ratio(times[peer], times["ours"]) for peer in PEERS if peer in times},
            "types": [[*extents, element] for extents, element, *_ in [*function.arguments, *function.results]]}


def run(library, folder, args):
    from device import Gpu, Host
    from timing import torch

    settings = json.loads((folder / "loops.json").read_text())
    args.seed, args.count, args.megabytes = (settings[key] for key in ("seed", "count", "megabytes"))
    gpu, host, rows, wrong = Gpu(library), Host(), [], []
    end = time.monotonic() + args.seconds
    for seeds in get_batches(args.seed, args.count):
        small, cpu, big = (Program(library, folder / f"{name}{seeds[0]}.so") for name in ("small", "cpu", "big"))
        for function in get_functions(seeds, args, is_small=True) if args.check else ():
            try:
                is_same = check_one(function, gpu, host, (small, cpu), torch)
            except Exception as error:
                is_same = False
                print(f"{function.name}: {error}", flush=True)
            if not is_same:
                wrong.append(function.name)
                print(f"{function.name}: not the CPU's bits", flush=True)
        for function in get_functions(seeds, args, is_small=False):
            if time.monotonic() > end:
                print(f"stopped after {args.seconds:.0f} s", flush=True)
                return rows, wrong
            row = measure_one(function, gpu, big, args, torch)
            row["kernels"] = settings["work"].get(function.name, [])
            rows.append(row)
            share = row["of_copy"]
            print(f"{function.name:>16} {row['times']['ours'].get('ms', 0) * 1e3:9.1f} us "
                  f"{'failed' if share is None else f'{share:.3f}'} of a copy's"
                  + "".join(f", {row[f'of_{peer}']:.2f} of {peer}'s" for peer in PEERS if row.get(f"of_{peer}"))
                  + f" {' '.join(row['kernels'])}  "
                  + " ".join("x".join(map(str, kind)) for kind in row["types"]), flush=True)
    return rows, wrong


def summarize(rows, wrong):
    shares = sorted(row["of_copy"] or 0 for row in rows)
    below = sum(share < GOAL for share in shares)
    print(f"\n{len(rows)} functions, {len(wrong)} wrong; of a copy's rate: least {shares[0]:.3f}, median "
          f"{shares[len(shares) // 2]:.3f}, {below} below {GOAL}, {sum(share < LEAST for share in shares)} below {LEAST}")
    for kind in sorted({row["kind"] for row in rows}):
        own = [row for row in rows if row["kind"] == kind]
        text = f"{kind:>12}: {len(own)}, of a copy's {describe([row['of_copy'] or 0 for row in own])}"
        for peer in PEERS:
            known = [row[f"of_{peer}"] for row in own if row.get(f"of_{peer}")]
            text += f"; of {peer}'s {describe(known)}" if known else ""
        print(text)


def describe(shares):
    shares = sorted(shares)
    return f"least {shares[0]:.3f}, median {shares[len(shares) // 2]:.3f}"


def main():
    parser = make_parser(rounds=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=64, help="of each function's largest tensor")
    parser.add_argument("--seconds", type=float, default=3600, help="after which no function is begun")
    parser.add_argument("--inductor", action="store_true", help="which takes seconds of each function to compile")
    parser.add_argument("--no-check", dest="check", action="store_false", help="compare no small ones with the CPU")
    args = parser.parse_args()
    folder = make_programs(args, lambda folder: compile_programs(folder, args))
    if not folder:
        return 0
    from timing import show_machine, torch, write_record

    show_machine()
    with torch.cuda.stream(torch.cuda.Stream()):
        rows, wrong = run(open_library(args.build_dir, folder), folder, args)
    summarize(rows, wrong)
    write_record(args.out, rounds=args.rounds, rows=rows, wrong=wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
