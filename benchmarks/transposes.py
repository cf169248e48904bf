"""Transposes beside PyTorch's copies: bit for bit, and in bytes/s.

Tensors of any bits, with elements of 8, 16 and 32 bits, in programs that transpose
the last two dimensions of them, or the codes of a scaled tensor. A copy of the same bytes,
`copy_` without a change of layout, is what the memory can do; `transpose` is PyTorch's
own transpose of the same elements. Rounds of all of them alternate.

usage: transposes.py [--build-dir build] [--programs DIR] [--compile-only]
                     [--rounds N] [--out FILE]

`--compile-only` makes programs in DIR, for a machine without the compiler.
"""

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
from pathlib import Path

from programs import (ROOT, Program, compile_program, copy_libraries, list_work, open_library,
                      tensor)

DEVICE = 0
BITS = {"f8E4M3FN": 8, "f8E5M2": 8, "bf16": 16, "f16": 16, "f32": 32, "i32": 32}
TIMED = [  # Element, extents; bytes beyond what L2 holds.
    ("f8E4M3FN", (8192, 14336)), ("f8E4M3FN", (16384, 16384)), ("f8E5M2", (16384, 8192)),
    ("bf16", (8192, 14336)), ("bf16", (16, 4096, 4096)), ("f32", (8192, 8192)),
    ("f8E4M3FN", (16, 4096, 4096)),
]
# Tiles that are cut at both sides, in one dimension, tensors of less than a tile, and
# extents that start rows between words, which is not the kernels' business.
CHECKED = [
    *(("f8E4M3FN", extents) for extents in ((4, 4), (36, 132), (132, 1000), (128, 128), (260, 4),
                                            (3, 36, 260), (33, 65), (5, 33, 64), (1, 7))),
    *(("bf16", extents) for extents in ((2, 2), (34, 66), (130, 998), (64, 64), (2, 66, 130),
                                        (33, 65))),
    *(("f32", extents) for extents in ((1, 1), (33, 65), (3, 1001), (32, 32), (1001, 3),
                                       (3, 31, 97), (2, 1, 5))),
    ("i32", (65, 33)), ("f16", (66, 34)), ("f8E5M2", (36, 132)),
]
# The extents of dynamic programs, called with all of those.
DYNAMIC = [
    ("f8E4M3FN", 2, ((36, 132), (4, 4), (1028, 260))), ("bf16", 3, ((3, 34, 66), (1, 2, 130))),
    ("f32", 2, ((33, 65), (1, 1), (1001, 3))),
]
SCALED = (260, 516)
CALLS = 20


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


def flip(extents):
    return (*extents[:-2], extents[-1], extents[-2])


def plain(name, element, extents):
    def type_of(extents):
        return f"tensor<{'x'.join(map(str, extents))}x{element}>"

    rank = len(extents)
    source, target = type_of(extents), type_of(flip(extents))
    sizes = "".join(f"""
  %c{i} = arith.constant {i} : index
  %d{i} = tensor.dim %x, %c{i} : {source}""" for i in range(rank) if extents[i] == "?")
    dynamic = ", ".join(f"%d{i}" for i in flip(range(rank)) if extents[i] == "?")
    return f"""
func.func @{name}(%x: {source}) -> {target} {{{sizes}
  %e = tensor.empty({dynamic}) : {target}
  %y = linalg.transpose ins(%x : {source}) outs(%e : {target})
      permutation = [{', '.join(map(str, flip(range(rank))))}]
  return %y : {target}
}}"""


def scaled(name, extents):
    m, n = extents
    return f"""
!source = !fp8.scaled<{m}x{n}xf8E4M3FN, block = [1, *], scale = f32>
!target = !fp8.scaled<{n}x{m}xf8E4M3FN, block = [*, 1], scale = f32>
func.func @{name}(%x: tensor<{m}x{n}xf8E4M3FN>, %factors: tensor<{m}x1xf32>)
    -> (tensor<{n}x{m}xf8E4M3FN>, tensor<1x{m}xf32>) {{
  %q = fp8.assemble %x, %factors : tensor<{m}x{n}xf8E4M3FN>, tensor<{m}x1xf32> -> !source
  %t = fp8.transpose %q permutation = [1, 0] : !source
  %codes, %transposed = fp8.disassemble %t : !target
  return %codes, %transposed : tensor<{n}x{m}xf8E4M3FN>, tensor<1x{m}xf32>
}}"""


def name_of(element, extents):
    return f"{element}_{'x'.join(map(str, extents))}".replace("?", "n")


def compile_programs(build, folder):
    cases = [*TIMED, *CHECKED, *((element, ("?",) * rank) for element, rank, _ in DYNAMIC)]
    source = folder / "transposes.mlir"
    source.write_text(scaled("scaled", SCALED) + "".join(
        plain(name_of(element, extents), element, extents) for element, extents in cases))
    options = ("--target=sm_90a", "--recipe=none")
    compile_program(build, source, folder / "transposes.so", *options)
    work = list_work(build, source, *options)
    (folder / "transposes.json").write_text(json.dumps(work, indent=1) + "\n")
    for element, extents in TIMED:
        launches = work[name_of(element, extents)]
        if len(launches) != 1 or not launches[0].startswith("fp8_transpose"):
            sys.exit(f"error: expected {name_of(element, extents)} to be a transposing kernel, "
                     f"but got {', '.join(launches)}")


# ===----------------------------------------------------------------------===
# Runs
# ===----------------------------------------------------------------------===


def make_tensor(bits, extents):
    """Any bits."""
    integer = {8: torch.uint8, 16: torch.int16, 32: torch.int32}[bits]
    count = bits // 8
    for extent in extents:
        count *= extent
    data = torch.randint(0, 256, (count,), dtype=torch.uint8, device="cuda")
    return data.view(integer).view(extents)


class Transposes:
    def __init__(self, library, folder, stream):
        self.library, self.stream = library, stream
        self.program = Program(library, folder / "transposes.so")
        self.work = json.loads((folder / "transposes.json").read_text())
        self.context = ctypes.c_void_p()
        library.fp8rt_context_create(DEVICE, stream, ctypes.byref(self.context))

    def bind(self, name, *sources):
        """A call of a function; what it returns it frees, or copies to `targets`."""
        function = self.program.functions[name]
        arguments = [tensor(list(source.shape), source.data_ptr()) for source in sources]

        def call(*targets):
            results = function.call(arguments, 0, self.context)
            for target, result in zip(targets, results):
                self.library.fp8rt_memory_copy(DEVICE, target.data_ptr(), result.data,
                                               target.numel() * target.element_size(), self.stream)
            for result in results:
                self.library.fp8rt_workspace_free(DEVICE, self.stream, result.allocated)

        return call

    def check(self, name, *sources):
        """What is wrong with the results."""
        expected = [source.transpose(-1, -2).contiguous() for source in sources]
        found = [torch.zeros_like(value) for value in expected]
        self.bind(name, *sources)(*found)
        return "" if all(map(torch.equal, found, expected)) else "other bits than PyTorch's"


def seconds(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * start.elapsed_time(end) / CALLS


def measure(transposes, element, extents, rounds):
    source = make_tensor(BITS[element], extents)
    same, target = torch.empty_like(source), source.new_empty(flip(extents))
    calls = {
        "ours": transposes.bind(name_of(element, extents), source),
        "copy": lambda: same.copy_(source),
        "transpose": lambda: target.copy_(source.transpose(-1, -2)),
    }
    times = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name in list(calls)[:: 1 if round_ % 2 else -1]:
            spent = seconds(calls[name])
            if round_:
                times[name].append(spent)
    moved = 2 * source.numel() * source.element_size()
    middle = {name: statistics.median(values) for name, values in times.items()}
    return {"element": element, "extents": list(extents), "tb_s": 1e-12 * moved / middle["ours"],
            "worst_tb_s": 1e-12 * moved / max(times["ours"]),
            "copy_tb_s": 1e-12 * moved / middle["copy"],
            "transpose_tb_s": 1e-12 * moved / middle["transpose"],
            "of_copy": middle["copy"] / middle["ours"]}


def run(library, folder, rounds):
    torch.manual_seed(1)
    stream, checks, rows = torch.cuda.Stream(), [], []
    with torch.cuda.stream(stream):
        transposes = Transposes(library, folder, stream.cuda_stream)

        def check(name, extents, *sources):
            try:
                message = transposes.check(name, *sources)
            except Exception as error:
                message = str(error)
            kernels = transposes.work[name]
            checks.append({"function": name, "extents": list(extents), "kernels": kernels,
                           "message": message})
            if message:
                print(f"{name} {extents}: {message}")

        for element, extents in [*CHECKED, *TIMED]:
            check(name_of(element, extents), extents, make_tensor(BITS[element], extents))
        for element, rank, all_extents in DYNAMIC:
            for extents in all_extents:
                check(name_of(element, ("?",) * rank), extents,
                      make_tensor(BITS[element], extents))
        check("scaled", SCALED, make_tensor(8, SCALED), make_tensor(32, (SCALED[0], 1)))
        failed = sum(bool(entry["message"]) for entry in checks)
        print(f"{len(checks)} checks, {failed} failures", flush=True)
        for element, extents in TIMED:
            row = measure(transposes, element, extents, rounds)
            rows.append(row)
            print(f"{name_of(element, extents):>24}: {row['tb_s']:.2f} TB/s (worst "
                  f"{row['worst_tb_s']:.2f}), {row['of_copy']:.2f} of a copy's "
                  f"{row['copy_tb_s']:.2f}, PyTorch's transpose {row['transpose_tb_s']:.2f}",
                  flush=True)
    return checks, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    folder = (args.programs or Path(tempfile.mkdtemp())).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if args.compile_only or not args.programs:
        compile_programs(args.build_dir, folder)
    if args.compile_only:
        copy_libraries(args.build_dir, folder)
        return 0
    global torch
    import torch
    checks, rows = run(open_library(args.build_dir, folder), folder, args.rounds)
    record = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
              "rounds": args.rounds, "calls": CALLS, "checks": checks, "rows": rows}
    if args.out:
        args.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if any(check["message"] for check in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
