"""The most memory that a forward and backward allocates on a GPU, beside PyTorch's in bf16.

The MLP with RMSNorm of layers.py under each recipe, with the copies of codes that keep the
peak below that in high precision, and with `--no-keep-peak`. What counts is what the pool of
the runtime has taken from the device while calls follow each other, which is more than is in
use: blocks that lie between others. Each program is measured in a process of its own.

usage: peak_memory.py [--build-dir build] [--programs DIR] [--compile-only] [--out FILE]
"""

import subprocess
import sys
import threading

import layer_peers
from device import Call, Gpu
from layers import MAPS, norm_mlp_step
from programs import (Program, compile_program, make_parser, make_programs, open_library, sizes)
from timing import show_machine, torch, write_record

NAME, EXTENTS = "mlp_step", (8192, 14336, 4096)
RECIPES = ("none", "current", "delayed", "rowwise", "block")
WAYS = {"kept": (), "at once": ("--no-keep-peak",)}
CALLS = 30


def get_file(recipe, way):
    return f"{recipe}_{way.replace(' ', '_')}.so"


def compile_programs(build, folder):
    source = folder / f"{NAME}.mlir"
    source.write_text(MAPS + norm_mlp_step(NAME, *EXTENTS))
    for recipe in RECIPES:
        for way, options in WAYS.items():
            compile_program(build, source, folder / get_file(recipe, way), "--target=sm_90a",
                            f"--recipe={recipe}", *options)


def measure_program(library, path):
    """Bytes that the device has less while the program runs, its kernels among them."""
    function = Program(library, path).functions[NAME]
    values = layer_peers.make_values({info.name.decode(): sizes(info)
                                      for info in function.arguments})
    call = Call(Gpu(library), function, list(values.values()))
    torch.cuda.synchronize()
    before = least = torch.cuda.mem_get_info()[0]
    done = threading.Event()

    def poll():
        nonlocal least
        while not done.is_set():
            least = min(least, torch.cuda.mem_get_info()[0])

    poller = threading.Thread(target=poll)
    poller.start()
    for _ in range(CALLS):
        call()
    torch.cuda.synchronize()
    done.set()
    poller.join()
    return before - least


def measure_eager(library, path):
    """Bytes that PyTorch's allocator has given out at most, beside the arguments."""
    function = Program(library, path).functions[NAME]
    values = layer_peers.make_values({info.name.decode(): sizes(info)
                                      for info in function.arguments})
    layer_peers.run_step(layer_peers.norm_mlp, values)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    layer_peers.run_step(layer_peers.norm_mlp, values)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def measure_alone(folder, path, *options):
    """One of the above, in a process of its own."""
    command = [sys.executable, __file__, "--programs", folder, "--measure", path, *options]
    return int(subprocess.run(command, check=True, text=True, capture_output=True).stdout)


def main():
    parser = make_parser()
    parser.add_argument("--measure", help="print the bytes of one program of DIR")
    parser.add_argument("--eager", action="store_true", help="of PyTorch, with its arguments")
    args = parser.parse_args()
    if args.measure:
        library = open_library(args.build_dir, args.programs)
        measure_one = measure_eager if args.eager else measure_program
        print(measure_one(library, args.programs / args.measure))
        return 0
    folder = make_programs(args, lambda folder: compile_programs(args.build_dir, folder))
    if not folder:
        return 0
    show_machine()
    eager = measure_alone(folder, get_file("none", "kept"), "--eager")
    print(f"PyTorch eager, bf16: {eager / 1e6:.0f} MB\n\n{'recipe':>10}"
          + "".join(f"{way:>12}" for way in WAYS) + f"{'/eager':>10}")
    rows = []
    for recipe in RECIPES:
        taken = {way: measure_alone(folder, get_file(recipe, way)) for way in WAYS}
        rows.append({"recipe": recipe, **taken, "ratio": taken["kept"] / eager})
        print(f"{recipe:>10}" + "".join(f"{taken[way] / 1e6:>9.0f} MB" for way in WAYS)
              + f"{taken['kept'] / eager:>10.2f}", flush=True)
    write_record(args.out, calls=CALLS, eager=eager, rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
