"""Transposes beside PyTorch's copies: bit for bit, and in bytes/s.

Tensors of any bits, with elements of 8, 16 and 32 bits, in programs that transpose
the last two dimensions of them, or the codes of a scaled tensor. A copy of the same bytes,
`copy_` without a change of layout, is what the memory can do; `transpose` is PyTorch's
own transpose of the same elements. Rounds of all of them alternate.

usage: transposes.py [--build-dir build] [--programs DIR] [--compile-only]
                     [--rounds N] [--out FILE]

`--compile-only` makes programs in DIR, for a machine without the compiler.
"""

import json
import sys

from device import Call, Gpu
from programs import (Program, compile_program, list_work, make_parser, make_programs,
                      open_library)
from timing import get_ratio, measure, show_machine, show_time, torch, write_record

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
    def __init__(self, library, folder):
        self.gpu, self.program = Gpu(library), Program(library, folder / "transposes.so")
        self.work = json.loads((folder / "transposes.json").read_text())

    def bind(self, name, *sources):
        return Call(self.gpu, self.program.functions[name], sources)

    def check(self, name, *sources):
        """What is wrong with the results."""
        expected = [source.transpose(-1, -2).contiguous() for source in sources]
        found = self.bind(name, *sources).read()
        return "" if all(map(torch.equal, found, expected)) else "other bits than PyTorch's"


def measure_one(transposes, element, extents, rounds):
    source = make_tensor(BITS[element], extents)
    same, target = torch.empty_like(source), source.new_empty(flip(extents))
    times = measure({
        "ours": transposes.bind(name_of(element, extents), source),
        "copy": lambda: same.copy_(source),
        "transpose": lambda: target.copy_(source.transpose(-1, -2)),
    }, rounds)
    moved = 2 * source.numel() * source.element_size()
    rates = {name: 1e-9 * moved / row["ms"] for name, row in times.items() if "ms" in row}
    return {"element": element, "extents": list(extents), "times": times, "tb_s": rates,
            "of_copy": get_ratio(times["copy"], times["ours"])}


def show(row):
    rates = ", ".join(f"{name} {rate:.2f}" for name, rate in row["tb_s"].items())
    share = "" if row["of_copy"] is None else f"{row['of_copy']:.2f} of a copy's; "
    print(f"{name_of(row['element'], row['extents']):>24}: {show_time(row['times']['ours'])}, "
          f"{share}TB/s: {rates}", flush=True)


def run(library, folder, rounds):
    torch.manual_seed(1)
    checks, rows = [], []
    with torch.cuda.stream(torch.cuda.Stream()):
        transposes = Transposes(library, folder)

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
            rows.append(measure_one(transposes, element, extents, rounds))
            show(rows[-1])
    return checks, rows


def main():
    args = make_parser(rounds=10).parse_args()
    folder = make_programs(args, lambda folder: compile_programs(args.build_dir, folder))
    if not folder:
        return 0
    show_machine()
    checks, rows = run(open_library(args.build_dir, folder), folder, args.rounds)
    write_record(args.out, rounds=args.rounds, checks=checks, rows=rows)
    failed = any(check["message"] for check in checks)
    return 1 if failed or any("ms" not in row["times"]["ours"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
