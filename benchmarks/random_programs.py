"""Random programs (generator/program.py) on a CPU with a tensor core's sums and on a GPU, or on
its model (docs/Emulator.md): the same bytes.

usage: random_programs.py check [--target sm_89|sm_90a|sm_100a|sm_120a|sm_121a] [--seed N] [--programs N] [--jobs N]
       random_programs.py print SEED
       random_programs.py make DIR [--seed N] [--programs N] [--jobs N] [--build-dir build]
                               [--code cubin|ptx]
       random_programs.py run DIR --out FILE [--library libfp8rt.so]

`check` compiles programs for both, in processes of their own, runs those for the GPU on the
emulator, and prints each that differs, or that one of them refuses, with the command for it alone.
Programs are the same for the same seed. FP8_EMULATOR_CHECK is as for anything else.

`make` compiles programs for an H200, to machine code, and notes what its model computes. It is for `run`,
on a machine with a GPU, which needs libfp8rt alone and writes as JSON what is not the same there.

Left out is what nobody promises. Functions that kernels approximate are compared within a
tolerance, and nothing else is made of their results. Sums of rows and columns, whose order is
another one, are of numbers whose sums are exact (generator/tensor_steps.py); NaNs are one.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from generator.compare import check_batch
from generator.program import Program, make_batches

CHUNK = 30  # Programs of a process.
BATCH = 10  # Programs of a module.

def work(args):
    """Lines of JSON for each batch of the seeds, until the device is lost: which they are, and what
    came of each."""
    for batch in make_batches(args.seeds, args.batch):
        print(json.dumps([[program.seed for program in batch], "begun", ""]), flush=True)
        for program, status, text, _ in check_batch(batch, args.target):
            print(json.dumps([[program.seed], status, text]), flush=True)
            if status == "lost":
                return 0
    return 0


def check_some(seeds, args, size):
    """What came of each, from processes of which each goes on where the last one ended."""
    found = {}
    environment = {**os.environ, "FP8_CUDA_DRIVER": os.environ.get("FP8_CUDA_DRIVER", "emulator"),
                   "FP8_EMULATOR_ARCH": args.target[3:].rstrip("a")}
    while seeds:
        command = [sys.executable, __file__, "work", "--target", args.target, "--batch", str(size),
                   *map(str, seeds)]
        begun, why = [], ""
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.PIPE, timeout=args.limit * len(seeds))
            output, why = done.stdout, f"status {done.returncode}\n{done.stderr[-3000:]}"
        except subprocess.TimeoutExpired as error:
            output, why = (error.stdout or b"").decode(), f"took more than {error.timeout} s"
        for line in output.splitlines():
            those, status, text = json.loads(line)
            if status == "begun":
                begun = those
                continue
            if status == "lost":
                text = f"{text}\n{why}"
            found[those[0]] = status, text
            begun = [seed for seed in begun if seed not in those or status == "lost"]
        if begun and found.get(begun[0], ("",))[0] != "lost":
            if len(begun) == 1:
                found[begun[0]] = "died", why
            else:
                found.update(check_some(begun, args, 1))
        rest = [seed for seed in seeds if seed not in found]
        if len(rest) == len(seeds):
            raise SystemExit(why)
        seeds = rest
    return found


def check(args):
    seeds = list(range(args.seed, args.seed + args.programs))
    chunks = [seeds[i:i + CHUNK] for i in range(0, len(seeds), CHUNK)]
    counts = {}
    with ThreadPoolExecutor(args.jobs) as pool:
        for chunk, found in zip(chunks, pool.map(lambda chunk: check_some(chunk, args, BATCH), chunks)):
            for seed, (status, text) in sorted(found.items()):
                counts[status] = counts.get(status, 0) + 1
                if status == "same":
                    continue
                command = f"random_programs.py check --target {args.target} --seed"
                print(f"{status}: {command} {seed} --programs 1, or with those beside it {chunk[0]} "
                      f"--programs {len(chunk)} ({Program(seed).recipe})\n{text}", flush=True)
                if args.programs == 1:
                    print(Program(seed).write())
    same = counts.get("same", 0)
    print(f"{same} of {len(seeds)} the same" + "".join(
        f", {count} {status}" for status, count in counts.items() if status != "same"))
    return int(same != len(seeds))


def make(args):
    from generator.shipped import make_programs

    return make_programs(args)


def run(args):
    from generator.shipped import run_programs

    return run_programs(args)


def show(args):
    program = Program(args.seed)
    print(f"// --recipe={program.recipe}\n{program.write()}", end="")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (check, work, make, run, show):
        command = commands.add_parser("print" if function is show else function.__name__)
        command.set_defaults(function=function)
        if function is show:
            command.add_argument("seed", type=int)
            continue
        if function in (make, run):
            command.add_argument("folder", type=Path)
            command.add_argument("--build-dir", type=Path, default=Path("build"))
        if function is run:
            command.add_argument("--library", type=Path)
            command.add_argument("--out", type=Path, required=True)
            continue
        if function is make:
            command.add_argument("--code", choices=["cubin", "ptx"], default="cubin")
        else:
            command.add_argument("--target", choices=["sm_89", "sm_90a", "sm_100a", "sm_120a", "sm_121a"], default="sm_90a")
        if function is work:
            command.add_argument("--batch", type=int, required=True)
            command.add_argument("seeds", type=int, nargs="+")
            continue
        command.add_argument("--seed", type=int, default=0, help="of the first program")
        command.add_argument("--programs", type=int, default=60)
        command.add_argument("--jobs", type=int, default=1)
        command.add_argument("--limit", type=int, default=60, help="seconds for a program")
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
