"""What no generated kernel takes, on a GPU beside a copy of the same bytes.

Random functions (loop_functions.py), each compiled for the GPU and for the CPU. With small extents
their results have to be the same bits. With large ones they are timed in a graph, and the share
is that of a device-to-device copy of the bytes that have to move, in the same run.

usage: loops.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N] [--out FILE]
                [--seed N] [--count N] [--megabytes N]

`--compile-only` makes programs in DIR, for a machine without the compiler; loop_checks.py compares
small ones with the CPU on the emulator.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from loop_functions import get_batches, make_function
from programs import (Program, compile_program, list_work, make_parser, make_programs,
                      open_library)

GOAL, LEAST = 0.6, 0.3


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
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64,
              "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "i1": torch.bool}
    torch.manual_seed(len(function.text))
    return [torch.randint(0 if limit or element == "i1" else -3, limit or (2 if element == "i1" else 4), extents,
                          dtype=torch.int32, device=device).to(dtypes[element]) for extents, element, limit in function.arguments]


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
    times = measure({"ours": Call(gpu, program.functions[function.name], values),
                     "copy": lambda: target.copy_(source)}, args.rounds)
    return {"function": function.name, "kind": function.kind, "bytes": function.bytes, "times": times,
            "of_copy": get_ratio(times["copy"], times["ours"]),
            "types": [[*extents, element] for extents, element, *_ in [*function.arguments, *function.results]]}


def run(library, folder, args):
    from device import Gpu, Host
    from timing import torch

    settings = json.loads((folder / "loops.json").read_text())
    args.seed, args.count, args.megabytes = (settings[key] for key in ("seed", "count", "megabytes"))
    gpu, host, rows, wrong = Gpu(library), Host(), [], []
    for seeds in get_batches(args.seed, args.count):
        small, cpu, big = (Program(library, folder / f"{name}{seeds[0]}.so") for name in ("small", "cpu", "big"))
        for function in get_functions(seeds, args, is_small=True):
            try:
                is_same = check_one(function, gpu, host, (small, cpu), torch)
            except Exception as error:
                is_same = False
                print(f"{function.name}: {error}", flush=True)
            if not is_same:
                wrong.append(function.name)
                print(f"{function.name}: not the CPU's bits", flush=True)
        for function in get_functions(seeds, args, is_small=False):
            row = measure_one(function, gpu, big, args, torch)
            row["kernels"] = settings["work"].get(function.name, [])
            rows.append(row)
            share = row["of_copy"]
            print(f"{function.name:>16} {row['times']['ours'].get('ms', 0) * 1e3:9.1f} us "
                  f"{'failed' if share is None else f'{share:.3f}'} of a copy's {' '.join(row['kernels'])}  "
                  + " ".join("x".join(map(str, kind)) for kind in row["types"]), flush=True)
    return rows, wrong


def summarize(rows, wrong):
    shares = sorted(row["of_copy"] or 0 for row in rows)
    below = sum(share < GOAL for share in shares)
    print(f"\n{len(rows)} functions, {len(wrong)} wrong; of a copy's rate: least {shares[0]:.3f}, median "
          f"{shares[len(shares) // 2]:.3f}, {below} below {GOAL}, {sum(share < LEAST for share in shares)} below {LEAST}")
    for kind in sorted({row["kind"] for row in rows}):
        own = sorted(row["of_copy"] or 0 for row in rows if row["kind"] == kind)
        print(f"{kind:>12}: {len(own)}, least {own[0]:.3f}, median {own[len(own) // 2]:.3f}")


def main():
    parser = make_parser(rounds=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=64, help="of each function's largest tensor")
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
